#include "src/base/site.h"

#include <array>

namespace ashlar {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Site::kCount)> kNames = {
    "none",
};

}  // namespace

namespace internal {
std::atomic<Site> disabled_site{Site::kNone};
}

std::string_view SiteName(Site site) { return kNames[static_cast<size_t>(site)]; }

Site SiteOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Site>(i);
  return Site::kNone;
}

void DisableSite(Site site) { internal::disabled_site.store(site, std::memory_order_relaxed); }

}  // namespace ashlar
