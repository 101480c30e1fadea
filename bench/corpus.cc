#include "bench/corpus.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace ashlar::bench {
namespace {

constexpr double kTwoPi = 6.283185307179586477;
constexpr double kSigma = 0.8;
constexpr double kWordsMin = 5, kWordsMax = 2000;

}  // namespace

ZipfCorpus::ZipfCorpus(const ZipfOptions& options) : options_(options), prng_(options.seed) {
  double sum = 0;
  for (uint64_t rank = 1; rank <= options.vocabulary; ++rank) {
    sum += std::pow(static_cast<double>(rank), -kZipfExponent);
    cumulated_.push_back(sum);
    terms_.push_back(absl::StrCat("w", rank, "x"));
  }
  for (double& value : cumulated_) value /= sum;
  if (!cumulated_.empty()) cumulated_.back() = 1.0;
}

uint64_t ZipfCorpus::DrawLength() {
  if (!options_.variable_length) return options_.words;
  const double u1 = prng_.Uniform(), u2 = prng_.Uniform();
  const double normal = std::sqrt(-2.0 * std::log(1.0 - u1)) * std::cos(kTwoPi * u2);
  const double length = std::floor(static_cast<double>(options_.words) * std::exp(kSigma * normal) + 0.5);
  return static_cast<uint64_t>(std::min(kWordsMax, std::max(kWordsMin, length)));
}

size_t ZipfCorpus::DrawRank() {
  const double u = prng_.Uniform();
  const auto rank = static_cast<size_t>(std::upper_bound(cumulated_.begin(), cumulated_.end(), u) - cumulated_.begin());
  return std::min(rank, cumulated_.size() - 1);
}

bool ZipfCorpus::Next(std::string* id, std::string* body) {
  if (next_ == options_.documents || terms_.empty()) return false;
  id->assign("d");
  absl::StrAppend(id, options_.first_id + next_);
  body->clear();
  const uint64_t length = DrawLength();
  for (uint64_t i = 0; i < length; ++i) {
    if (i > 0) body->push_back(' ');
    body->append(terms_[DrawRank()]);
  }
  words_made_ += length;
  ++next_;
  return true;
}

bool ZipfCorpus::NextLine(std::string* lines) {
  if (!Next(&id_, &body_)) return false;
  absl::StrAppend(lines, "{\"id\":\"", id_, "\",\"body\":\"", body_, "\"}\n");
  return true;
}

}  // namespace ashlar::bench
