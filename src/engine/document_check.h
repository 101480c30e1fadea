// The stored documents of a segment, against its schema, columns and lengths.
#ifndef ASHLAR_SRC_ENGINE_DOCUMENT_CHECK_H_
#define ASHLAR_SRC_ENGINE_DOCUMENT_CHECK_H_

#include "absl/status/status.h"
#include "src/segment/segment.h"

namespace ashlar::engine {

// For a segment that Segment::Check finds nothing wrong with. The first document that does not fit, with its place.
absl::Status CheckDocuments(const segment::Segment& segment);

}  // namespace ashlar::engine

#endif  // ASHLAR_SRC_ENGINE_DOCUMENT_CHECK_H_
