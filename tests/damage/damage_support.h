// Small stores that are made to be damaged, and where their bytes are.
#ifndef ASHLAR_TESTS_DAMAGE_DAMAGE_SUPPORT_H_
#define ASHLAR_TESTS_DAMAGE_DAMAGE_SUPPORT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ashlar/store.h"
#include "format/section_table.h"
#include "src/testing/oracle.h"

namespace ashlar::testing {

// Key, two text fields that form the group, a keyword and a number in a column.
Schema DamageSchema();
// Document `i` of generation `version`: words that all share, that a third shares, and one of its own.
Document DamageDocument(int i, int version);
std::string DamageKey(int i);

// A file in a store.
std::string SegmentPath(const std::string& directory, uint64_t number);
std::vector<format::SectionEntry> SectionsOf(ByteSpan segment_file);
// A bit in the middle of a page that only the largest section of a kind is in; fails the test if there is none.
uint64_t BitIn(ByteSpan segment_file, format::SectionKind kind);

// Expects DataLoss with a place in `file` and a section.
void ExpectDamageIn(const absl::Status& status, const std::string& file);

// Compares hits, order, bits of scores and totals.
void ExpectHits(const Snapshot& snapshot, const SearchResult& result, const OracleResult& expected);

}  // namespace ashlar::testing

#endif  // ASHLAR_TESTS_DAMAGE_DAMAGE_SUPPORT_H_
