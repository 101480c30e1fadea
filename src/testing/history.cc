#include "src/testing/history.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "src/base/bytes.h"
#include "src/base/checksum.h"
#include "src/base/status.h"
#include "src/testing/workload.h"

namespace ashlar::testing {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

uint64_t HashValue(const Value& value, uint64_t seed) {
  seed += value.index();
  if (const auto* text = std::get_if<std::string>(&value)) return Checksum(AsBytes(*text), seed);
  if (const auto* blob = std::get_if<Blob>(&value)) return Checksum(AsBytes(blob->bytes), seed);
  if (const auto* integer = std::get_if<int64_t>(&value)) return Mix(seed, static_cast<uint64_t>(*integer));
  if (const auto* number = std::get_if<double>(&value)) return Mix(seed, std::bit_cast<uint64_t>(*number));
  return Mix(seed, static_cast<uint64_t>(std::get<Date>(value).milliseconds));
}

}  // namespace

uint64_t HashDocument(const Document& document) {
  uint64_t hash = 0;
  for (const FieldValue& value : document.values) hash = HashValue(value.value, Checksum(AsBytes(value.field), hash));
  return hash;
}

absl::StatusOr<DocumentList> ReadDocuments(const Snapshot& snapshot) {
  DocumentList found;
  ASHLAR_RETURN_IF_ERROR(snapshot.Scan(Snapshot::Order::kDocumentId, [&found](const StoredDocument& stored) {
    found.emplace_back(stored.id, HashDocument(stored.document));
    return true;
  }));
  return found;
}

LabStatePtr MakeState(std::shared_ptr<const Oracle> oracle, std::optional<std::string> watermark,
                      DocumentId uncertain_from) {
  auto state = std::make_shared<LabState>();
  state->watermark = watermark;
  state->uncertain_from = uncertain_from;
  for (const DocumentId id : oracle->Ids())
    state->documents.emplace_back(id, HashDocument(oracle->GetById(id)->document));
  uint64_t hash = Mix(oracle->schema().fields.size(), watermark.has_value() ? Checksum(AsBytes(*watermark), 1) : 0);
  for (const auto& [id, document] : state->documents) {
    const bool certain = uncertain_from == 0 || id < uncertain_from;
    hash = Mix(Mix(hash, certain ? id : 0), document);
  }
  state->fingerprint = hash;
  state->oracle = std::move(oracle);
  return state;
}

const OracleResult& LabState::Expected(size_t query) const {
  if (expected_.empty()) expected_.resize(LabQueries().size());
  std::optional<OracleResult>& result = expected_[query];
  if (!result.has_value()) result = oracle->Search(LabQueries()[query].query, LabQueries()[query].options);
  return *result;
}

History::History(const Schema& schema) {
  states_.push_back(MakeState(std::make_shared<const Oracle>(schema), std::nullopt, 0));
}

void History::Push(std::shared_ptr<const Oracle> oracle, std::optional<std::string> watermark, bool uncertain,
                   Sequence first) {
  states_.resize(acknowledged_ + 1);
  states_.push_back(MakeState(std::move(oracle), watermark, uncertain ? first : 0));
}

absl::Status History::Begin(const WriteBatch& batch, std::optional<std::string> watermark) {
  auto next = std::make_shared<Oracle>(oracle());
  next->SetNextSequence(std::max(next->next_sequence(), next_sequence_min_));
  const Sequence first = next->next_sequence();
  ASHLAR_ASSIGN_OR_RETURN(OracleWrite write, next->Apply(batch));
  begun_ = batch;
  begun_existed_ = std::move(write.existed);
  Push(std::move(next), watermark.has_value() ? watermark : acknowledged_state().watermark, !exact_, first);
  return absl::OkStatus();
}

void History::BeginFields(const std::vector<Field>& fields) {
  auto next = std::make_shared<Oracle>(oracle());
  next->AddFields(fields);
  Push(std::move(next), acknowledged_state().watermark, false, 0);
}

absl::Status History::Acknowledge(Sequence sequence) {
  const Sequence count = std::max<size_t>(1, begun_.size());
  if (sequence < next_sequence_min_ + count - 1)
    return Internal(absl::StrCat("a batch was given sequence ", sequence, ", which was given before"));
  const Sequence predicted = states_.back()->oracle->next_sequence() - 1;
  if (sequence != predicted) {
    if (exact_)
      return Internal(absl::StrCat("a batch was given sequence ", sequence, " where ", predicted, " was due"));
    auto next = std::make_shared<Oracle>(oracle());
    next->SetNextSequence(sequence - count + 1);
    ASHLAR_RETURN_IF_ERROR(next->Apply(begun_).status());
    const std::optional<std::string> watermark = states_.back()->watermark;
    Push(std::move(next), watermark, false, 0);
  } else if (states_.back()->uncertain_from != 0) {
    states_.back() = MakeState(states_.back()->oracle, states_.back()->watermark, 0);
  }
  exact_ = true;
  next_sequence_min_ = sequence + 1;
  ++acknowledged_;
  return absl::OkStatus();
}

void History::AcknowledgeFields() { ++acknowledged_; }

void History::Refuse() {
  states_.resize(acknowledged_ + 1);
  exact_ = false;  // the refused batch may have taken its sequences all the same
}

LabStatePtr History::Match(const DocumentList& found, const Schema& schema, std::optional<std::string> watermark,
                           size_t least, size_t* index) const {
  for (size_t i = states_.size(); i-- > least;) {
    const LabState& state = *states_[i];
    if (state.documents.size() != found.size() || state.watermark != watermark || state.oracle->schema() != schema) {
      continue;
    }
    DocumentId shift = 0;
    bool same = true;
    for (size_t d = 0; d < found.size() && same; ++d) {
      const auto& [id, document] = state.documents[d];
      same = document == found[d].second;
      if (id == found[d].first || !same) continue;
      const bool uncertain = state.uncertain_from != 0 && id >= state.uncertain_from && found[d].first > id;
      same = uncertain && (shift == 0 || found[d].first - id == shift);
      shift = found[d].first - id;
    }
    if (!same) continue;
    *index = i;
    if (shift == 0) return states_[i];
    auto shifted = std::make_shared<Oracle>(oracle());
    shifted->SetNextSequence(state.uncertain_from + shift);
    if (!shifted->Apply(begun_).ok()) return nullptr;
    return MakeState(std::move(shifted), state.watermark, 0);
  }
  return nullptr;
}

void History::ContinueFrom(size_t least, size_t index, LabStatePtr state) {
  // An older state that looks the same may be the one that was found: then numbering goes on from there.
  Sequence next = state->oracle->next_sequence();
  for (size_t i = least; i < index; ++i)
    if (states_[i]->documents == state->documents && states_[i]->watermark == state->watermark &&
        states_[i]->oracle->schema() == state->oracle->schema())
      next = std::min(next, states_[i]->oracle->next_sequence());
  if (next != state->oracle->next_sequence()) {
    auto oracle = std::make_shared<Oracle>(*state->oracle);
    oracle->SetNextSequence(next);
    state = MakeState(std::move(oracle), state->watermark, 0);
  }
  // Sequences of acknowledged states that are gone are never given again: next_sequence_min_ stays. That of a batch
  // that was never acknowledged, but turned out to be there, is not promised before something makes it durable.
  states_.resize(index + 1);
  states_[index] = std::move(state);
  acknowledged_ = index;
  durable_ = std::min(durable_, index);
  exact_ = false;
}

}  // namespace ashlar::testing
