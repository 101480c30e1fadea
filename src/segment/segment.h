// Segment: one immutable file, opened by mapping or by loading it into an array, with the same answers.
#ifndef ASHLAR_SRC_SEGMENT_SEGMENT_H_
#define ASHLAR_SRC_SEGMENT_SEGMENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/options.h"
#include "ashlar/schema.h"
#include "format/catalog_value.h"
#include "format/layout.h"
#include "src/env/env.h"
#include "src/segment/posting_cursor.h"
#include "src/segment/verified_bytes.h"

namespace ashlar::segment {

// Lengths of one field or the group, by ordinal. Valid while the Segment lives. Segment::Lengths verifies them all when
// it makes one; that of Segment::SomeLengths is verified where it is looked at, belongs to one thread and notes damage
// in status().
class LengthReader {
 public:
  LengthReader() = default;  // all 0
  uint32_t operator[](uint32_t ordinal) const {
    if (ordinal >= count_) return 0;
    Ensure(&ordinal, 1);
    const uint16_t length = LoadU16(codes_ + size_t{2} * ordinal);
    return length != kEscape ? length : Escaped(ordinal);
  }
  // u16 an ordinal, little-endian; 0xFFFF: ask operator[]. Null: all lengths are 0. To look there at ordinals that
  // Ensure was asked for; at any, if is_whole().
  const std::byte* column() const { return codes_; }
  bool is_whole() const { return unverified_ == nullptr; }
  // Verifies those that are not yet. What is then found damaged shows in status(), for good.
  void Ensure(const uint32_t* ordinals, size_t n) const {
    if (unverified_ != nullptr) [[unlikely]]
      Verify(ordinals, n);
  }
  const absl::Status& status() const { return status_; }

 private:
  void Verify(const uint32_t* ordinals, size_t n) const;
  friend class Segment;
  friend class SegmentImpl;
  static constexpr uint16_t kEscape = 0xFFFF;
  uint32_t Escaped(uint32_t ordinal) const;
  const std::byte* codes_ = nullptr;  // u16 an ordinal; kEscape: look in the sorted exceptions
  uint32_t count_ = 0;
  const std::byte* exceptions_ = nullptr;  // (u32 ordinal, u32 length) pairs, ascending by ordinal
  uint32_t exception_count_ = 0;
  const VerifiedBytes* unverified_ = nullptr;  // the section, if not all of it is verified
  mutable absl::Status status_;
};

struct ReadOptions {
  ReadOptions(OpenMode open_mode = OpenMode::kMapped) : mode(open_mode) {}  // implicit: most callers say no more
  OpenMode mode;
  bool sigbus_guard = false;  // kMapped: see env::MappedRegion::Guard
  // kArray: pages that are damaged do not fail the opening. They fail what touches them, as in mapped mode, and
  // Segment::LoadDamage() tells of the first.
  bool keep_damaged = false;
};

// What: the reading side of one segment file.
// Owns: its bytes (mapping or array) and the open file; they stay readable after the name is removed.
// Threads: immutable but for the bits that remember verified pages; any number of threads.
// Errors: DataLoss naming file, section and offset where damage is met. What lengths and cursors gave counts only if
// CheckIntact() is OK afterwards; every other call asks it itself.
class Segment {
 public:
  // Checks the frame, that the file is `entry`'s file of store `store_id`, and that its generation is not newer than
  // `catalog_generation`. kArray: reads and verifies everything.
  static absl::StatusOr<std::shared_ptr<const Segment>> Open(env::Env env, const std::string& directory,
                                                             const format::SegmentEntry& entry,
                                                             const format::StoreId& store_id,
                                                             uint64_t catalog_generation, const ReadOptions& options);
  // Stands for a segment whose file can't be opened: its numbers are the catalog's, and every reading fails with
  // `damage`. LengthSum is 0; it can't be merged.
  static std::shared_ptr<const Segment> Unreadable(const std::string& directory, const format::SegmentEntry& entry,
                                                   absl::Status damage);
  virtual ~Segment() = default;

  virtual uint64_t number() const = 0;
  virtual uint32_t document_count() const = 0;  // dead ones included: a segment knows nothing of deaths
  virtual DocumentId first_id() const = 0;
  virtual DocumentId last_id() const = 0;
  virtual const Schema& schema() const = 0;  // the one it was built with: a prefix of the store's fields
  virtual const std::string& analyzer_identity() const = 0;
  virtual const std::string& path() const = 0;
  virtual std::map<std::string, uint64_t> SectionBytes() const = 0;
  virtual uint64_t file_bytes() const = 0;

  // --- damage ---
  // OK unless the file became shorter under the mapping, or a page of it could not be read, since it was opened: bytes
  // that were verified may then read as zeros. Costs a memory access.
  virtual absl::Status CheckIntact() const = 0;
  // Damage that the opening met and kept (ReadOptions::keep_damaged), or why nothing can be read.
  virtual absl::Status LoadDamage() const = 0;

  // --- documents ---
  virtual absl::StatusOr<std::optional<uint32_t>> FindKey(std::string_view key) const = 0;
  virtual absl::StatusOr<std::optional<uint32_t>> FindId(DocumentId id) const = 0;
  virtual absl::StatusOr<DocumentId> IdOf(uint32_t ordinal) const = 0;
  virtual absl::StatusOr<std::string> KeyOf(uint32_t ordinal) const = 0;
  virtual absl::StatusOr<ByteBuffer> StoredOf(uint32_t ordinal) const = 0;  // encoded stored values, without the key
  // (key, ordinal) in ascending order from the first key >= from; until `visit` returns false.
  virtual absl::Status VisitKeys(std::string_view from,
                                 const std::function<bool(std::string_view key, uint32_t ordinal)>& visit) const = 0;

  // --- scoring ---
  // Lengths of a field or the group; all 0 where the segment does not know the field.
  virtual absl::StatusOr<LengthReader> Lengths(format::IndexId index) const = 0;
  // The same for whoever looks at few of them: what it looks at is verified then, and a little more each time, until
  // all is.
  virtual absl::StatusOr<LengthReader> SomeLengths(format::IndexId index) const = 0;
  // Sum of lengths over all documents, dead ones included.
  virtual uint64_t LengthSum(format::IndexId index) const = 0;
  // The postings of a term; an empty cursor if there is none. For the largest field of the group it is the group's
  // list, filtered. For the key field it finds the one document. Damage shows in cursor.status().
  virtual PostingCursor OpenTerm(format::IndexId index, std::string_view term,
                                 std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const = 0;
  // The same for readers of positions: a smaller field of the group has lists of its own, which keep none, so this
  // opens the group's list filtered. Elsewhere it is OpenTerm. postings() may then be the group's.
  virtual PostingCursor OpenPositions(format::IndexId index, std::string_view term,
                                      std::pmr::memory_resource* memory = std::pmr::get_default_resource()) const = 0;

  // --- columns ---
  // Appends the sorted values of a column field of a document.
  virtual absl::Status ColumnValues(uint32_t field, uint32_t ordinal, std::vector<Value>* out) const = 0;

  // Copies the whole file to a new one, page by page verified, and syncs it; the directory is the caller's. Works after
  // the name of this one was removed. No file is left on an error.
  virtual absl::Status CopyTo(env::FileSystem& files, const std::string& path) const = 0;

  // Everything: pages, structure, cross-references. Each finding has its place, and a damaged page is named once.
  virtual std::vector<absl::Status> Check() const = 0;
};

// The catalog generation that a segment file was built on, read from its footer: for files that no catalog names.
absl::StatusOr<uint64_t> PeekGeneration(env::Env env, const std::string& directory, uint64_t number,
                                        const format::StoreId& store_id);

// What is known of a segment file from elsewhere, for when it can't say so itself.
struct SalvageHints {
  std::optional<format::SegmentEntry> entry;  // the catalog's
  const Schema* schema = nullptr;             // the store's; null: not known
};
struct SalvagedSegment {
  std::shared_ptr<const Segment> segment;  // ids, keys and stored documents only
  format::FileId file_id{};
  std::optional<format::StoreId> store_id;
  uint64_t generation = 0;
  uint32_t schema_number = 0;        // 0: not known
  std::vector<absl::Status> damage;  // what was found out by opening
};
// Opens what can be opened of a damaged segment file: documents are read one by one, each with the pages that it needs.
// Needs the footer, the section table and the roots; without meta section the hints, without header nothing.
absl::StatusOr<SalvagedSegment> OpenForSalvage(env::Env env, const std::string& directory, uint64_t number,
                                               const SalvageHints& hints);

struct MergeInput {
  std::shared_ptr<const Segment> segment;
  std::vector<bool> dead;  // by ordinal; empty: nobody
};

struct MergeOutput {
  format::SegmentEntry entry;                      // documents == 0: everything was dead and no file was written
  std::vector<std::vector<uint32_t>> new_ordinal;  // per input, by old ordinal; format::kNoDocument: dropped
};

// Merges adjacent segments (ascending DocumentId) into one file, dropping dead documents. Streaming; verifies what it
// copies. `cancelled`, if given, is asked now and then; true ends it with Aborted and no file.
// `spec.postings_per_field` and `documents_expected` are filled in by the merge.
struct SegmentSpec;
absl::StatusOr<MergeOutput> MergeSegments(env::Env env, const std::string& directory, const SegmentSpec& spec,
                                          const std::vector<MergeInput>& inputs,
                                          const std::function<bool()>& cancelled = nullptr);

}  // namespace ashlar::segment

#endif  // ASHLAR_SRC_SEGMENT_SEGMENT_H_
