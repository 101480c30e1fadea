#include "src/engine/file_names.h"

#include "src/base/file_number.h"

namespace ashlar::engine {
namespace {

constexpr std::string_view kPrefix = "deaths-";
constexpr std::string_view kSuffix = ".dea";

}  // namespace

std::string DeathsFileName(uint64_t number) { return NumberedName(kPrefix, number, kSuffix); }
uint64_t DeathsNumberOf(std::string_view name) { return NumberInName(kPrefix, name, kSuffix).value_or(0); }

}  // namespace ashlar::engine
