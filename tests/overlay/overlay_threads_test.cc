// Readers of every age beside a writer. What a document holds follows from its ordinal, so that a reader knows what the
// first n documents must give without asking anyone. Meant for ThreadSanitizer as much as for its own assertions.
#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/base/prng.h"
#include "src/overlay/overlay.h"

namespace ashlar::overlay {
namespace {

constexpr uint32_t kDocuments = 20000;
constexpr uint32_t kKeys = 50;

Schema ThreadSchema() {
  Schema schema;
  schema.key = "key";
  schema.default_group = {"a", "b"};
  for (const char* name : {"key", "a", "b"}) {
    Field field;
    field.name = name;
    field.type = field.name == "key" ? FieldType::kKeyword : FieldType::kText;
    schema.fields.push_back(field);
  }
  return schema;
}

void AddToken(text::FieldTokens* field, const std::string& term) {
  text::TokenStream& stream = field->stream;
  stream.tokens.push_back({static_cast<uint32_t>(stream.bytes.size()), static_cast<uint16_t>(term.size()),
                           static_cast<uint32_t>(stream.tokens.size())});
  stream.bytes += term;
}

// Document i: in `a` "mod<d>" for each d in 1..7 that divides i, and "own<i>"; in `b` "mod1" i % 3 times.
text::AnalyzedDocument DocumentAt(uint32_t i) {
  text::AnalyzedDocument document;
  document.key = absl::StrCat("k", i % kKeys);
  document.fields.resize(2);
  document.fields[0].field = 1;
  document.fields[1].field = 2;
  for (uint32_t d = 1; d <= 7; ++d) {
    if (i % d == 0) AddToken(&document.fields[0], absl::StrCat("mod", d));
  }
  AddToken(&document.fields[0], absl::StrCat("own", i));
  for (uint32_t k = 0; k < i % 3; ++k) AddToken(&document.fields[1], "mod1");
  document.field_count = 2;
  const ByteSpan encoded = AsBytes(document.key);
  document.encoded.assign(encoded.begin(), encoded.end());
  return document;
}

// Counts what is wrong with the answers about the first n documents.
uint32_t ErrorsAt(const Overlay& overlay, uint32_t n, Prng* prng) {
  uint32_t errors = 0;
  const auto d = static_cast<uint32_t>(1 + prng->Below(7));
  const std::string term = absl::StrCat("mod", d);
  uint32_t expected = 0;
  for (Cursor cursor = overlay.OpenTerm(format::kGroupIndex, term, n); cursor.document() != format::kNoDocument;
       cursor.Next(), expected += d) {
    const uint32_t frequency = d == 1 ? 1 + expected % 3 : 1;
    errors += cursor.document() != expected || cursor.frequency() != frequency;
  }
  errors += expected / d != (n + d - 1) / d;
  errors += overlay.OpenTerm(1, term, n).postings() != (n + d - 1) / d;
  const auto ordinal = static_cast<uint32_t>(prng->Below(kDocuments));
  Cursor own = overlay.OpenTerm(1, absl::StrCat("own", ordinal), n);
  errors += own.document() != (ordinal < n ? ordinal : format::kNoDocument);
  if (ordinal >= n) return errors;
  std::vector<uint32_t> positions;
  own.AppendPositions(&positions);
  errors += positions != std::vector<uint32_t>{overlay.Length(1, ordinal) - 1};
  errors += overlay.Length(format::kGroupIndex, ordinal) != overlay.Length(1, ordinal) + ordinal % 3;
  errors += overlay.IdOf(ordinal) != ordinal + 1;
  errors += AsString(overlay.DocumentOf(ordinal)) != overlay.KeyOf(ordinal);
  return errors;
}

// The same by blocks, of which the writer may be making the next, and by seeking.
uint32_t BlockErrorsAt(const Overlay& overlay, uint32_t n, Prng* prng) {
  uint32_t errors = 0;
  const auto d = static_cast<uint32_t>(1 + prng->Below(7));
  const std::string term = absl::StrCat("mod", d);
  const uint32_t postings = (n + d - 1) / d;
  Cursor cursor = overlay.OpenTerm(format::kGroupIndex, term, n);
  errors += cursor.postings() != postings;
  const BlockBounds bounds = cursor.bounds();
  uint32_t expected = 0;
  for (uint32_t block = 0; block < (bounds.pairs == 0 ? 1 : bounds.headers->blocks); ++block) {
    if (bounds.pairs != 0) cursor.MoveToBlock(block);
    const std::span<const uint32_t> documents = cursor.block_documents(), frequencies = cursor.block_frequencies();
    for (size_t i = 0; i < documents.size(); ++i, expected += d) {
      errors += documents[i] != expected || frequencies[i] != (d == 1 ? 1 + expected % 3 : 1);
      if (bounds.pairs == 0) continue;
      const uint8_t highest = bounds.pair_frequencies[block],
                    shortest = bounds.pair_lengths[3 * bounds.headers->blocks + block];
      errors += format::FrequencyOfCode(highest) < frequencies[i];
      errors += format::LengthOfCode(shortest) > overlay.Length(format::kGroupIndex, documents[i]);
    }
  }
  errors += expected / d != postings;
  Cursor seeking = overlay.OpenTerm(format::kGroupIndex, term, n);
  const auto target = static_cast<uint32_t>(prng->Below(kDocuments));
  seeking.Seek(target);
  const uint32_t found = (target + d - 1) / d * d;
  errors += seeking.document() != (found < n ? found : format::kNoDocument);
  return errors;
}

// Document i is put at sequence i + 1 and replaces document i - kKeys then.
uint32_t KeyErrorsAt(const Overlay& overlay, uint32_t n, Prng* prng) {
  const auto key = static_cast<uint32_t>(prng->Below(kKeys));
  const std::optional<uint32_t> found = overlay.FindKey(absl::StrCat("k", key), n, n);
  if (key >= n) return found.has_value();
  const uint32_t newest = key + (n - 1 - key) / kKeys * kKeys;
  return found != newest;
}

TEST(OverlayThreadsTest, ReadersOfAnyAgeSeeTheirDocuments) {
  Overlay overlay(ThreadSchema());
  std::atomic<uint32_t> published{0};
  std::atomic<uint32_t> errors{0};
  std::atomic<uint32_t> rounds{0};
  const auto read = [&](uint64_t seed) {
    Prng prng(seed);
    for (uint32_t newest = 0; newest < kDocuments;) {
      newest = published.load(std::memory_order_acquire);
      const auto older = static_cast<uint32_t>(prng.Below(newest + 1));
      for (const uint32_t n : {newest, older}) {
        errors += ErrorsAt(overlay, n, &prng) + BlockErrorsAt(overlay, n, &prng) + KeyErrorsAt(overlay, n, &prng);
      }
      if (overlay.bytes() == 0) ++errors;
      ++rounds;
    }
  };
  std::vector<std::thread> readers;
  for (uint64_t seed = 1; seed <= 3; ++seed) readers.emplace_back(read, seed);
  for (uint32_t i = 0; i < kDocuments; ++i) {
    if (i >= kKeys) overlay.Kill(i - kKeys, i + 1);
    overlay.Add(i + 1, DocumentAt(i));
    published.store(i + 1, std::memory_order_release);
    // The readers keep up, or the writer would be done before they begin.
    while (i + 1 < kDocuments && rounds.load() < i / 4) std::this_thread::yield();
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(errors.load(), 0u);
  EXPECT_EQ(overlay.document_count(), kDocuments);
}

}  // namespace
}  // namespace ashlar::overlay
