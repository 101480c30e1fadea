#include "src/segment/segment_impl.h"
namespace ashlar::segment {
std::vector<std::string> SegmentImpl::Check() const { return {}; }
}
