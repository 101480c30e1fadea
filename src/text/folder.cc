#include "src/text/folder.h"

#include <unicode/bytestream.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "src/text/icu_status.h"

namespace ashlar::text {
namespace {

absl::Status Normalize(const icu::Normalizer2& normalizer, std::string_view in, std::string* out) {
  out->clear();
  icu::StringByteSink<std::string> sink(out);
  UErrorCode error = U_ZERO_ERROR;
  normalizer.normalizeUTF8(0, icu::StringPiece(in.data(), static_cast<int32_t>(in.size())), sink, nullptr, error);
  return IcuStatus(error, "normalization");
}

// Removes code points of category Mn in place; returns whether there were any.
bool RemoveNonspacingMarks(std::string* text) {
  const auto* s = reinterpret_cast<const uint8_t*>(text->data());
  const auto length = static_cast<int32_t>(text->size());
  int32_t read = 0;
  size_t written = 0;
  while (read < length) {
    const int32_t begin = read;
    UChar32 c = 0;
    U8_NEXT(s, read, length, c);
    if (u_charType(c) == U_NON_SPACING_MARK) continue;
    for (int32_t i = begin; i < read; ++i) (*text)[written++] = (*text)[static_cast<size_t>(i)];
  }
  const bool removed = written != text->size();
  text->resize(written);
  return removed;
}

}  // namespace

absl::Status Folder::Load() {
  UErrorCode error = U_ZERO_ERROR;
  decompose_ = icu::Normalizer2::getNFDInstance(error);
  compose_ = icu::Normalizer2::getNFCInstance(error);
  fold_ = icu::Normalizer2::getNFKCCasefoldInstance(error);
  if (U_FAILURE(error)) fold_ = nullptr;
  return IcuStatus(error, "normalization data");
}

absl::Status Folder::RemoveMarks(std::string* word) {
  ASHLAR_RETURN_IF_ERROR(Normalize(*decompose_, *word, &decomposed_));
  // Without marks the composed form is what we have.
  if (!RemoveNonspacingMarks(&decomposed_)) return absl::OkStatus();
  return Normalize(*compose_, decomposed_, word);
}

absl::Status Folder::Fold(std::string_view word, std::string* out) {
  if (fold_ == nullptr) ASHLAR_RETURN_IF_ERROR(Load());
  ASHLAR_RETURN_IF_ERROR(Normalize(*fold_, word, out));
  return marks_ == Marks::kRemove ? RemoveMarks(out) : absl::OkStatus();
}

}  // namespace ashlar::text
