// Reindex: a new store from an old one's stored documents, with this build's analyzer.
#ifndef ASHLAR_REINDEX_H_
#define ASHLAR_REINDEX_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "ashlar/options.h"
#include "ashlar/store.h"

namespace ashlar {

// Writes every live document of `source` into a new store at `directory` under its old DocumentId, and the watermark:
// the cure for another analyzer identity. FailedPrecondition if a field is not stored; AlreadyExists if the directory
// exists. It is built as `directory`.unfinished and renamed at the end; what a failure leaves there may be removed.
// `progress`, if given, is called after each document.
absl::Status Reindex(const Store& source, const std::string& directory, const Options& options = {},
                     const std::function<void(uint64_t documents)>& progress = nullptr);

}  // namespace ashlar

#endif  // ASHLAR_REINDEX_H_
