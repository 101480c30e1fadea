#include "src/text/letters.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <cstring>

#include "src/text/folder.h"
#include "src/text/utf8.h"

namespace ashlar::text {
namespace {

// Stands for a separator in folded text: no part of any word, and not the space by which stretches are cut.
constexpr char kNoWord = '\n';

bool IsAsciiLetter(unsigned char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }
bool IsAsciiDigit(unsigned char c) { return static_cast<unsigned char>(c - '0') < 10; }

// ICU sends these to its dictionaries, or to rules of their own.
bool NeedsDictionary(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  switch (uscript_getScript(c, &error)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_HANGUL:
      return true;
    default:
      break;
  }
  return u_getIntPropertyValue(c, UCHAR_LINE_BREAK) == U_LB_COMPLEX_CONTEXT ||
         u_hasBinaryProperty(c, UCHAR_IDEOGRAPHIC) != 0;
}

bool IsPlainLetter(UChar32 c) {
  return u_getIntPropertyValue(c, UCHAR_WORD_BREAK) == U_WB_ALETTER && !NeedsDictionary(c);
}

// Whether a folded character is a run of letters that nothing before it can change, so that the folded form of a word
// is the folded forms of its characters, one after the other. With marks removed the text is decomposed and composed
// again, so it must stand alone there too.
bool StandsAlone(std::string_view folded, Marks marks) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(error);
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(error);
  if (U_FAILURE(error) || folded.empty()) return false;
  const auto* s = reinterpret_cast<const uint8_t*>(folded.data());
  const auto length = static_cast<int32_t>(folded.size());
  for (int32_t i = 0; i < length;) {
    UChar32 c = 0;
    U8_NEXT(s, i, length, c);
    if (!IsPlainLetter(c)) return false;
    if (marks == Marks::kRemove && (!nfd->hasBoundaryBefore(c) || !nfc->hasBoundaryBefore(c))) return false;
  }
  return true;
}

}  // namespace

const SimpleCharacters::Entry SimpleCharacters::kNotSimple = {};

SimpleCharacters::Entry SimpleCharacters::MakeEntry(uint32_t code_point, Marks marks) {
  const auto c = static_cast<UChar32>(code_point);
  Entry entry{};
  char original[U8_MAX_LENGTH];
  int32_t length = 0;
  U8_APPEND_UNSAFE(original, length, c);
  const std::string_view self(original, static_cast<size_t>(length));
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* fold = icu::Normalizer2::getNFKCCasefoldInstance(error);
  Folder folder(marks);
  std::string folded;
  if (U_FAILURE(error) || !fold->hasBoundaryBefore(c) || !folder.Fold(self, &folded).ok()) return entry;
  switch (u_getIntPropertyValue(c, UCHAR_WORD_BREAK)) {
    case U_WB_OTHER:
      if (!NeedsDictionary(c)) entry.kind = kSeparator;
      break;
    case U_WB_ALETTER:
      if (!NeedsDictionary(c) && StandsAlone(folded, marks)) entry.kind = kLetter;
      break;
    case U_WB_MIDNUMLET:
      if (folded == self) entry.kind = kMidBoth;
      break;
    case U_WB_MIDLETTER:
      if (folded == self) entry.kind = kMidLetter;
      break;
    default:
      break;
  }
  if (entry.kind == kNone) return entry;
  if (entry.kind == kSeparator) folded.assign(1, kNoWord);
  if (folded.size() > entry.folded.size()) return Entry{};
  std::memcpy(entry.folded.data(), folded.data(), folded.size());
  entry.folded_bytes = static_cast<uint8_t>(folded.size());
  return entry;
}

SimpleCharacters SimpleCharacters::Make(Marks marks) {
  SimpleCharacters table;
  for (uint32_t c = kFirst; c < kFirstEnd; ++c) table.entries_[c - kFirst] = MakeEntry(c, marks);
  for (uint32_t c = kSecond; c < kSecondEnd; ++c)
    table.entries_[(kFirstEnd - kFirst) + (c - kSecond)] = MakeEntry(c, marks);
  return table;
}

const SimpleCharacters& SimpleCharacters::Of(Marks marks) {
  if (marks == Marks::kRemove) {
    static const SimpleCharacters kRemoving = Make(Marks::kRemove);
    return kRemoving;
  }
  static const SimpleCharacters kKeeping = Make(Marks::kKeep);
  return kKeeping;
}

// The entry of the character of two bytes or more at `at`, and its size.
inline const SimpleCharacters::Entry& SimpleCharacters::At(std::string_view utf8, size_t at, size_t* bytes) const {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(utf8[at + i])); };
  const uint32_t lead = byte(0);
  if (lead < 0xE0) {
    *bytes = 2;
    return entries_[((lead & 0x1F) << 6 | (byte(1) & 0x3F)) - kFirst];
  }
  if (lead >= 0xF0) return kNotSimple;
  *bytes = 3;
  const uint32_t c = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return c >= kSecond && c < kSecondEnd ? entries_[(kFirstEnd - kFirst) + (c - kSecond)] : kNotSimple;
}

size_t SimpleCharacters::RunEnd(std::string_view utf8, size_t from) const {
  size_t at = from;
  while (at < utf8.size()) {
    if (static_cast<unsigned char>(utf8[at]) < 0x80) {
      at += AsciiPrefix(utf8.substr(at));
      continue;
    }
    size_t bytes = 0;
    if (At(utf8, at, &bytes).kind == kNone) break;
    at += bytes;
  }
  return at;
}

// Of the character that ends at `at`: kLetter, or kNone with `digit` said.
SimpleCharacters::Class SimpleCharacters::ClassBefore(std::string_view run, size_t at, bool* digit) const {
  *digit = false;
  if (at == 0) return kNone;
  size_t begin = at - 1;
  const auto last = static_cast<unsigned char>(run[begin]);
  if (last < 0x80) {
    *digit = IsAsciiDigit(last);
    return IsAsciiLetter(last) ? kLetter : kNone;
  }
  while ((static_cast<unsigned char>(run[begin]) & 0xC0) == 0x80) --begin;
  size_t bytes = 0;
  return At(run, begin, &bytes).kind == kLetter ? kLetter : kNone;
}

// WB6, WB7, WB11, WB12 for the mid character at `at`.
bool SimpleCharacters::JoinsAt(std::string_view run, size_t at, size_t bytes, Class mid) const {
  const size_t after = at + bytes;
  if (after == run.size()) return false;
  bool digit_before = false;
  const bool letter_before = ClassBefore(run, at, &digit_before) == kLetter;
  const auto next = static_cast<unsigned char>(run[after]);
  size_t next_bytes = 0;
  const bool letter_after = next < 0x80 ? IsAsciiLetter(next) : At(run, after, &next_bytes).kind == kLetter;
  if (letter_before && letter_after) return true;
  return mid == kMidBoth && digit_before && IsAsciiDigit(next);
}

void SimpleCharacters::AppendFolded(std::string_view run, std::string* out) const {
  const size_t base = out->size();
  // A character of two bytes folds to six at most, and each is stored as eight.
  out->resize(base + run.size() * 3 + sizeof(Entry));
  char* to = out->data() + base;
  size_t at = 0;
  while (at < run.size()) {
    const auto c = static_cast<unsigned char>(run[at]);
    if (c < 0x80) {
      *to++ = static_cast<char>(c | (static_cast<unsigned char>(c - 'A') < 26 ? 0x20 : 0));
      ++at;
      continue;
    }
    size_t bytes = 0;
    const Entry& entry = At(run, at, &bytes);
    if (entry.kind >= kMidBoth && !JoinsAt(run, at, bytes, entry.kind)) {
      *to++ = kNoWord;
    } else {
      std::memcpy(to, &entry, sizeof entry);
      to += entry.folded_bytes;
    }
    at += bytes;
  }
  out->resize(static_cast<size_t>(to - out->data()));
}

}  // namespace ashlar::text
