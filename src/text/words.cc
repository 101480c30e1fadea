#include "src/text/words.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include "src/base/status.h"
#include "src/text/icu_status.h"

namespace ashlar::text {
namespace {

// A character of the class Other with one byte, in place of those that we separate at and ICU's tailoring does not.
constexpr char kSeparator = '-';

bool IsConnectorAlone(std::string_view segment) {
  const auto* s = reinterpret_cast<const uint8_t*>(segment.data());
  const auto length = static_cast<int32_t>(segment.size());
  int32_t i = 0;
  while (i < length) {
    UChar32 c = 0;
    U8_NEXT(s, i, length, c);
    switch (u_getIntPropertyValue(c, UCHAR_WORD_BREAK)) {
      case U_WB_EXTENDNUMLET:
      case U_WB_EXTEND:
      case U_WB_FORMAT:
      case U_WB_ZWJ:
        break;
      default:
        return false;
    }
  }
  return true;
}

}  // namespace

struct IcuWords::Impl {
  std::unique_ptr<icu::BreakIterator> iterator;
  UText text = UTEXT_INITIALIZER;
  std::string masked;

  ~Impl() { utext_close(&text); }

  absl::Status MakeIterator() {
    UErrorCode error = U_ZERO_ERROR;
    iterator.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), error));
    if (U_FAILURE(error)) iterator.reset();
    return IcuStatus(error, "word break iterator");
  }

  std::string_view Masked(std::string_view utf8) {
    if (utf8.find_first_of("@:") == std::string_view::npos) return utf8;
    masked.assign(utf8);
    for (char& c : masked)
      if (c == '@' || c == ':') c = kSeparator;
    return masked;
  }
};

IcuWords::IcuWords() : impl_(std::make_unique<Impl>()) {}
IcuWords::~IcuWords() = default;

absl::Status IcuWords::Find(std::string_view utf8, std::vector<WordRange>* words) {
  words->clear();
  if (utf8.size() > kValueBytesMax) return InvalidArgument("a text value over 1 GiB");
  if (impl_->iterator == nullptr) ASHLAR_RETURN_IF_ERROR(impl_->MakeIterator());
  const std::string_view masked = impl_->Masked(utf8);
  UErrorCode error = U_ZERO_ERROR;
  utext_openUTF8(&impl_->text, masked.data(), static_cast<int64_t>(masked.size()), &error);
  icu::BreakIterator& iterator = *impl_->iterator;
  if (U_SUCCESS(error)) iterator.setText(&impl_->text, error);
  if (U_FAILURE(error)) return IcuStatus(error, "word break iterator");
  int32_t begin = iterator.first();
  for (int32_t end = iterator.next(); end != icu::BreakIterator::DONE; begin = end, end = iterator.next()) {
    if (iterator.getRuleStatus() < UBRK_WORD_NONE_LIMIT) continue;
    const auto first = static_cast<uint8_t>(masked[static_cast<size_t>(begin)]);
    // Connectors are '_' and characters of three bytes from U+203F on.
    if ((first == '_' || first >= 0xE2) &&
        IsConnectorAlone(masked.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)))) {
      continue;
    }
    words->push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
  return absl::OkStatus();
}

}  // namespace ashlar::text
