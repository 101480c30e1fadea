#include "src/engine/file_names.h"

#include "src/base/file_number.h"

namespace ashlar::engine {
namespace {

constexpr std::string_view kPrefix = "deaths-";
constexpr std::string_view kSuffix = ".dea";

}  // namespace

std::string DeathsFileName(uint64_t number) { return NumberedName(kPrefix, number, kSuffix); }
std::string ParentOf(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  const size_t slash = last == std::string::npos ? std::string::npos : path.rfind('/', last);
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

uint64_t DeathsNumberOf(std::string_view name) { return NumberInName(kPrefix, name, kSuffix).value_or(0); }

}  // namespace ashlar::engine
