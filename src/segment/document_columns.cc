#include "src/segment/document_columns.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "format/key_block.h"
#include "src/base/checksum.h"
#include "src/base/status.h"

namespace ashlar::segment {
namespace {

// The first eight bytes as a number that compares as they do.
uint64_t PrefixOf(std::string_view s) {
  uint64_t v = 0;
  for (size_t i = 0; i < 8; ++i) v = v << 8 | (i < s.size() ? static_cast<uint8_t>(s[i]) : 0);
  return v;
}

}  // namespace

void KeyTable::Add(std::string_view key) {
  bytes_.append(key);
  ends_.push_back(bytes_.size());
}

absl::StatusOr<std::vector<uint32_t>> KeyTable::SortedOrdinals() const {
  // Sorting (prefix, ordinal) pairs keeps most comparisons out of the keys' memory.
  struct Entry {
    uint64_t prefix;
    uint32_t ordinal;
  };
  const size_t count = ends_.size() - 1;
  std::vector<Entry> entries(count);
  for (uint32_t i = 0; i < count; ++i) entries[i] = {PrefixOf(KeyOf(i)), i};
  std::sort(entries.begin(), entries.end(), [this](const Entry& a, const Entry& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : KeyOf(a.ordinal) < KeyOf(b.ordinal);
  });
  std::vector<uint32_t> ordinals(count);
  for (size_t i = 0; i < count; ++i) {
    ordinals[i] = entries[i].ordinal;
    if (i > 0 && KeyOf(ordinals[i - 1]) == KeyOf(ordinals[i]))
      return AlreadyExists(absl::StrCat("two documents have the key \"", ToAbsl(KeyOf(ordinals[i])), "\""));
  }
  return ordinals;
}

ByteBuffer KeyTable::EncodeKeysSection(const std::vector<uint32_t>& ordinals) const {
  return format::EncodeKeys(ordinals, [&](uint32_t rank) { return KeyOf(ordinals[rank]); });
}

ByteBuffer KeyTable::EncodeFilter() const {
  const uint32_t count = static_cast<uint32_t>(ends_.size() - 1);
  ByteBuffer filter(format::KeyFilterBytes(count));
  for (uint32_t i = 0; i < count; ++i) format::AddToKeyFilter(HashBytes(KeyOf(i)), filter);
  return filter;
}

void ColumnGatherer::AddValue(const format::ValueView& value) {
  switch (type_) {
    case FieldType::kKeyword: values_.push_back(NumberOf(value.bytes)); break;
    case FieldType::kDouble: codes_.push_back(format::DoubleCode(value.real)); break;
    default: codes_.push_back(format::IntegerCode(value.integer)); break;
  }
}

void ColumnGatherer::EndDocument() {
  if (type_ == FieldType::kKeyword) {
    ends_.push_back(values_.size());
    return;
  }
  std::sort(codes_.begin(), codes_.end());
  writer_.Add(codes_);
  codes_.clear();
}

uint32_t ColumnGatherer::NumberOf(std::string_view keyword) {
  const auto it = numbers_.find(keyword);
  if (it != numbers_.end()) return it->second;
  const auto number = static_cast<uint32_t>(keywords_.size());
  keywords_.emplace_back(keyword);
  numbers_.emplace(keywords_.back(), number);
  return number;
}

ByteBuffer ColumnGatherer::Finish() {
  if (type_ != FieldType::kKeyword) return writer_.Finish(nullptr);
  std::vector<uint32_t> order(keywords_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keywords_[a] < keywords_[b]; });
  format::SortedStringsWriter strings;
  std::vector<uint64_t> rank_of(order.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    rank_of[order[rank]] = rank;
    strings.Add(keywords_[order[rank]]);
  }
  uint64_t begin = 0;
  for (const uint64_t end : ends_) {
    for (uint64_t i = begin; i < end; ++i) codes_.push_back(rank_of[values_[i]]);
    std::sort(codes_.begin(), codes_.end());
    writer_.Add(codes_);
    codes_.clear();
    begin = end;
  }
  return writer_.Finish(&strings);
}

}  // namespace ashlar::segment
