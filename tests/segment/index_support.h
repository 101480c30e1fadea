// For tests of the inverted index: sections that are unreadable until they were ensured, and a plain model of an index.
#ifndef ASHLAR_TESTS_SEGMENT_INDEX_SUPPORT_H_
#define ASHLAR_TESTS_SEGMENT_INDEX_SUPPORT_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/base/prng.h"
#include "src/base/status.h"
#include "src/segment/index_reader.h"
#include "src/segment/index_writer.h"

namespace ashlar::segment {

// A section whose bytes are garbage until Ensure() asked for them: whoever looks before reads nonsense.
class LazyBytes final : public VerifiedBytes {
 public:
  static std::unique_ptr<LazyBytes> Make(ByteBuffer bytes, std::string name) {
    auto shown = std::make_unique<ByteBuffer>(bytes.size(), std::byte{0xA5});
    return std::unique_ptr<LazyBytes>(new LazyBytes(std::move(bytes), std::move(shown), std::move(name)));
  }
  absl::Status Damage(uint64_t offset, std::string_view message) const override {
    return DataLoss("test.seg", name_, offset, message);
  }
  uint64_t ensured() const { return ensured_; }  // bytes that were asked for, each time

 protected:
  absl::Status Verify(uint64_t offset, uint64_t length) const override {
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), length,
                shown_->begin() + static_cast<ptrdiff_t>(offset));
    ensured_ += length;
    return absl::OkStatus();
  }

 private:
  LazyBytes(ByteBuffer bytes, std::unique_ptr<ByteBuffer> shown, std::string name)
      : VerifiedBytes(shown->data(), shown->size(), false),
        bytes_(std::move(bytes)),
        shown_(std::move(shown)),
        name_(std::move(name)) {}
  ByteBuffer bytes_;
  std::unique_ptr<ByteBuffer> shown_;
  std::string name_;
  mutable uint64_t ensured_ = 0;
};

struct ModelPosting {
  uint32_t ordinal = 0;
  std::vector<uint32_t> frequencies;  // by member
  std::vector<uint32_t> positions;    // members' one after another
  uint32_t total() const {
    uint32_t sum = 0;
    for (const uint32_t f : frequencies) sum += f;
    return sum;
  }
};

struct Model {
  format::IndexShape shape;
  uint32_t documents = 0;
  std::vector<uint32_t> lengths;
  std::vector<std::vector<uint32_t>> member_lengths;
  std::map<std::string, std::vector<ModelPosting>> terms;
};

// A written index with its reader.
struct OpenIndex {
  std::unique_ptr<LazyBytes> terms, headers, postings;
  std::unique_ptr<IndexReader> reader;

  static OpenIndex Of(IndexBytes bytes, uint32_t documents) {
    OpenIndex index;
    index.terms = LazyBytes::Make(std::move(bytes.terms), "terms");
    index.headers = LazyBytes::Make(std::move(bytes.headers), "block headers");
    index.postings = LazyBytes::Make(std::move(bytes.postings), "postings");
    auto reader = IndexReader::Open(documents, index.terms.get(), index.headers.get(), index.postings.get());
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (reader.ok()) index.reader = *std::move(reader);
    return index;
  }
};

// Writes the model; `members`, if given, receives the members' own indexes (none for the largest).
inline IndexBytes WriteModel(const Model& model, std::map<uint32_t, IndexBytes>* members = nullptr) {
  MemorySink sink;
  std::vector<std::span<const uint32_t>> member_lengths(model.member_lengths.begin(), model.member_lengths.end());
  IndexWriter writer(model.shape, model.documents, model.lengths, member_lengths, &sink);
  for (const auto& [term, postings] : model.terms) {
    EXPECT_TRUE(writer.BeginTerm(term, postings.size()).ok());
    for (const ModelPosting& p : postings) {
      const absl::Status status = writer.AddPosting({p.ordinal, p.frequencies, p.positions});
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE(writer.EndTerm().ok());
  }
  IndexBytes bytes;
  EXPECT_TRUE(writer.Finish(&bytes.terms, &bytes.headers).ok());
  bytes.postings = std::move(sink.bytes());
  for (uint32_t m = 0; members != nullptr && model.shape.members > 1 && m < model.shape.members; ++m) {
    if (m != model.shape.largest) (*members)[m] = writer.TakeMember(m);
  }
  return bytes;
}

// What a member alone has of the model.
inline Model MemberOf(const Model& model, uint32_t member, bool positions) {
  Model out;
  out.shape.positions = positions;
  out.documents = model.documents;
  out.lengths = model.member_lengths[member];
  for (const auto& [term, postings] : model.terms) {
    for (const ModelPosting& p : postings) {
      if (p.frequencies[member] == 0) continue;
      ModelPosting own{p.ordinal, {p.frequencies[member]}, {}};
      if (positions) {
        size_t skip = 0;
        for (uint32_t m = 0; m < member; ++m) skip += p.frequencies[m];
        const auto from = p.positions.begin() + static_cast<ptrdiff_t>(skip);
        own.positions.assign(from, from + p.frequencies[member]);
      }
      out.terms[term].push_back(std::move(own));
    }
  }
  return out;
}

// `count` distinct ordinals below `documents`, ascending.
inline std::vector<uint32_t> RandomOrdinals(uint32_t count, uint32_t documents, Prng* prng) {
  std::vector<uint32_t> ordinals;
  if (count * 2 > documents) {
    // Selection sampling keeps them in order and distinct (Knuth, TAOCP 2, 3.4.2, algorithm S).
    for (uint32_t d = 0; d < documents && ordinals.size() < count; ++d) {
      if (prng->Below(documents - d) < count - ordinals.size()) ordinals.push_back(d);
    }
    return ordinals;
  }
  std::set<uint32_t> chosen;
  while (chosen.size() < count) chosen.insert(static_cast<uint32_t>(prng->Below(documents)));
  ordinals.assign(chosen.begin(), chosen.end());
  return ordinals;
}

inline uint32_t RandomFrequency(Prng* prng) {
  uint32_t f = 1;
  while (prng->OneIn(3)) ++f;
  return prng->OneIn(500) ? f + static_cast<uint32_t>(prng->Below(400)) : f;
}

inline ModelPosting RandomPosting(const format::IndexShape& shape, uint32_t ordinal, Prng* prng) {
  ModelPosting p;
  p.ordinal = ordinal;
  do {
    p.frequencies.clear();
    for (uint32_t m = 0; m < shape.members; ++m) {
      const bool there = m == shape.largest ? !prng->OneIn(6) : prng->OneIn(4);
      p.frequencies.push_back(there ? RandomFrequency(prng) : 0);
    }
  } while (p.total() == 0);
  for (uint32_t m = 0; shape.positions && m < shape.members; ++m) {
    uint32_t position = 0;
    for (uint32_t i = 0; i < p.frequencies[m]; ++i) {
      position += static_cast<uint32_t>(prng->Below(prng->OneIn(50) ? 100'000 : 60));
      p.positions.push_back(position);
    }
  }
  return p;
}

// An index of terms with the given document frequencies. Lengths vary as those of text do.
inline Model RandomModel(const format::IndexShape& shape, uint32_t documents, const std::vector<uint32_t>& counts,
                         Prng* prng) {
  Model model;
  model.shape = shape;
  model.documents = documents;
  model.member_lengths.resize(shape.members);
  for (uint32_t d = 0; d < documents; ++d) {
    uint32_t sum = 0;
    for (uint32_t m = 0; m < shape.members; ++m) {
      const auto length = static_cast<uint32_t>(prng->Below(uint64_t{1} << prng->Below(10))) + 1;
      model.member_lengths[m].push_back(length);
      sum += length;
    }
    model.lengths.push_back(sum);
  }
  for (size_t t = 0; t < counts.size(); ++t) {
    std::string term(1 + prng->Below(6), 'a');
    for (char& c : term) c = static_cast<char>('a' + prng->Below(3));
    term += std::to_string(t);
    if (prng->OneIn(40)) term.resize(format::kTermBytesMax, 'z');
    std::vector<ModelPosting>& postings = model.terms[term];
    postings.clear();
    for (const uint32_t ordinal : RandomOrdinals(std::min(counts[t], documents), documents, prng)) {
      postings.push_back(RandomPosting(shape, ordinal, prng));
    }
  }
  return model;
}

}  // namespace ashlar::segment

#endif  // ASHLAR_TESTS_SEGMENT_INDEX_SUPPORT_H_
