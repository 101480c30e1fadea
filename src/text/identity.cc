#include <libstemmer.h>
#include <unicode/uchar.h>
#include <unicode/uversion.h>

#include "src/text/analyzer.h"

namespace ashlar::text {
namespace {

// Raised when the words, the folding or the token rule of this folder change.
constexpr int kRulesVersion = 1;

// "15.0", "72.1": two numbers, as the projects name their releases.
std::string TwoNumbers(const UVersionInfo version) {
  return std::to_string(version[0]) + "." + std::to_string(version[1]);
}

}  // namespace

std::string AnalyzerIdentity() {
  UVersionInfo unicode;
  UVersionInfo icu;
  u_getUnicodeVersion(unicode);
  u_getVersion(icu);
  // libstemmer can't be asked for its version; the build states it (src/text/meson.build).
  return "ashlar-" + std::to_string(kRulesVersion) + " unicode-" + TwoNumbers(unicode) + " icu-" + TwoNumbers(icu) +
         " snowball-" ASHLAR_SNOWBALL_VERSION;
}

std::vector<std::string> StemmerNames() {
  std::vector<std::string> names = {"none"};
  for (const char** name = sb_stemmer_list(); *name != nullptr; ++name) names.emplace_back(*name);
  return names;
}

}  // namespace ashlar::text
