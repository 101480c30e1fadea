// What a workload has done to a store and what it may rely on: every state that the store may be in, in order, and
// which of them the promises of docs/durability.md still allow.
#ifndef ASHLAR_SRC_TESTING_HISTORY_H_
#define ASHLAR_SRC_TESTING_HISTORY_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/document.h"
#include "ashlar/snapshot.h"
#include "src/testing/oracle.h"

namespace ashlar::testing {

// The documents of a store as (DocumentId, hash of all values), ascending.
using DocumentList = std::vector<std::pair<DocumentId, uint64_t>>;
uint64_t HashDocument(const Document& document);
absl::StatusOr<DocumentList> ReadDocuments(const Snapshot& snapshot);

// One state: after a batch or a change of the schema. Immutable.
struct LabState {
  std::shared_ptr<const Oracle> oracle;
  std::optional<std::string> watermark;
  DocumentList documents;
  // Ids from here on may all be larger by one same number: after an unclean end it is not known where numbering goes on
  // until the first batch is acknowledged. 0: all are certain.
  DocumentId uncertain_from = 0;
  // Of documents, schema and watermark; ids that are not certain are left out of it.
  uint64_t fingerprint = 0;

  // What LabQueries()[i] must give; computed once. One thread at a time.
  const OracleResult& Expected(size_t query) const;

 private:
  mutable std::vector<std::optional<OracleResult>> expected_;
};
using LabStatePtr = std::shared_ptr<const LabState>;
LabStatePtr MakeState(std::shared_ptr<const Oracle> oracle, std::optional<std::string> watermark,
                      DocumentId uncertain_from);

// Not thread safe.
class History {
 public:
  explicit History(const Schema& schema);

  // The store exists: from now on opening it must work.
  void SetCreated() { created_ = true; }
  bool created() const { return created_; }

  // The last acknowledged state, and what the next batch starts from.
  const Oracle& oracle() const { return *states_[acknowledged_]->oracle; }
  const LabState& acknowledged_state() const { return *states_[acknowledged_]; }
  size_t acknowledged() const { return acknowledged_; }
  size_t durable() const { return durable_; }
  size_t state_count() const { return states_.size(); }
  const LabStatePtr& state(size_t index) const { return states_[index]; }
  bool in_flight() const { return states_.size() > acknowledged_ + 1; }
  // A batch that is acknowledged from now on must begin at this sequence or beyond.
  Sequence next_sequence_min() const { return next_sequence_min_; }

  // A batch (or added fields) is about to be handed to the store; it must be valid.
  absl::Status Begin(const WriteBatch& batch, std::optional<std::string> watermark);
  // What the batch begun last must say of each of its operations.
  const std::vector<bool>& begun_existed() const { return begun_existed_; }
  void BeginFields(const std::vector<Field>& fields);
  // What was begun is acknowledged. `sequence`: of a batch's last operation; an error says what is wrong with it.
  absl::Status Acknowledge(Sequence sequence);
  void AcknowledgeFields();
  // What was begun was refused for certain, or its fate is unknown until the store is opened again.
  void Refuse();
  void LeaveUnknown() { exact_ = false; }

  // Everything acknowledged, or all up to `state`, survives power loss from now on.
  void SetDurable() { durable_ = acknowledged_; }
  void SetDurable(size_t state) { durable_ = std::max(durable_, state); }
  // Everything acknowledged survives the death of the process; else only what is durable.
  void SetJournaled(bool journaled) { journaled_ = journaled; }
  // The least state that may be found after the power was lost, or after the process died.
  size_t least_after_power_loss() const { return durable_; }
  size_t least_after_kill() const { return journaled_ ? acknowledged_ : durable_; }

  // The store was closed, so that even after power loss the next sequence follows the last one; until it is opened
  // again.
  void SetSealed(bool sealed) { sealed_ = sealed; }
  // Where the next batch must be given a sequence that is known: that one.
  std::optional<Sequence> next_sequence_exactly() const {
    if (!sealed_ || !exact_ || in_flight()) return std::nullopt;
    return std::max(oracle().next_sequence(), next_sequence_min_);
  }

  // Checkpoints of acknowledged states. Until one is acknowledged the one before may still be in place.
  void BeginCopy() { copies_.push_back(states_[acknowledged_]); }
  void AcknowledgeCopy() {
    copies_ = {copies_.back()};
    copy_is_promised_ = true;
  }
  const std::vector<LabStatePtr>& copies() const { return copies_; }
  bool copy_is_promised() const { return copy_is_promised_; }

  // The state in [least, last] that `found` is, or null. Several may be alike; the newest is given. Where ids were not
  // certain, the state given has the right ones.
  LabStatePtr Match(const DocumentList& found, const Schema& schema, std::optional<std::string> watermark, size_t least,
                    size_t* index) const;
  // The store was opened and is in this state, as Match gave it: later ones are gone for good.
  void ContinueFrom(size_t least, size_t index, LabStatePtr state);

 private:
  void Push(std::shared_ptr<const Oracle> oracle, std::optional<std::string> watermark, bool uncertain, Sequence first);

  std::vector<LabStatePtr> states_;
  std::vector<LabStatePtr> copies_;
  bool copy_is_promised_ = false;
  size_t acknowledged_ = 0;
  size_t durable_ = 0;
  bool created_ = false;
  bool journaled_ = true;
  bool sealed_ = false;
  bool exact_ = true;  // the next sequence is that of the oracle
  Sequence next_sequence_min_ = 1;
  WriteBatch begun_;
  std::vector<bool> begun_existed_;
};

}  // namespace ashlar::testing

#endif  // ASHLAR_SRC_TESTING_HISTORY_H_
