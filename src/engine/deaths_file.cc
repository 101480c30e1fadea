#include "src/engine/deaths_file.h"

#include <memory>

#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::engine {

absl::StatusOr<uint64_t> WriteDeathsFile(const env::Env& env, const std::string& path,
                                         const format::DeathsFile& deaths) {
  const ByteBuffer bytes = format::EncodeDeaths(deaths);
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<env::WritableFile> file, env.files->CreateFile(path));
  ASHLAR_RETURN_IF_ERROR(file->Append(bytes));
  if (SiteIsOn(Site::kDeathsSync)) ASHLAR_RETURN_IF_ERROR(file->Sync());
  ASHLAR_RETURN_IF_ERROR(file->Close());
  return bytes.size();
}

}  // namespace ashlar::engine
