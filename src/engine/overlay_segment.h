// Overlay to segment: what a flush and a checkpoint write.
#ifndef ASHLAR_SRC_ENGINE_OVERLAY_SEGMENT_H_
#define ASHLAR_SRC_ENGINE_OVERLAY_SEGMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "format/catalog_value.h"
#include "src/env/env.h"
#include "src/overlay/overlay.h"
#include "src/segment/segment_builder.h"

namespace ashlar::engine {

// The ordinals that the first `documents` documents of an overlay get in its segment; format::kNoDocument for those that
// are not alive at `at`. The same whenever it is asked, unless `at` is beyond what a writer has come to.
std::vector<uint32_t> SegmentOrdinals(const overlay::Overlay& overlay, uint32_t documents, Sequence at);

// Writes those of the first `documents` documents of an overlay that are alive at `at` into a segment file, durable when
// it returns; nullopt: there are none, and no file. A writer may go on adding to the overlay meanwhile, if
// `spec.postings_per_field` is left empty. `analyzer_identity` and `documents_expected` of the spec are filled in.
absl::StatusOr<std::optional<format::SegmentEntry>> WriteOverlaySegment(env::Env env, const std::string& directory,
                                                                        const overlay::Overlay& overlay,
                                                                        uint32_t documents, Sequence at,
                                                                        segment::SegmentSpec spec);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_OVERLAY_SEGMENT_H_
