// Resolution: what each operation of a batch will do, decided before anything is written. A batch that fails leaves the
// group as it was.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/engine/engine.h"

namespace ashlar::engine {

void Engine::Group::BeginBatch() {
  batch_first_effect = effects.size();
  undo_keys.clear();
  undo_added.clear();
  undo_killed.clear();
}

void Engine::Group::SetKey(const std::string& key, const Location& location) {
  const auto found = keys.find(key);
  undo_keys.emplace_back(key, found == keys.end() ? std::nullopt : std::optional<Location>(found->second));
  keys[key] = location;
}

void Engine::Group::RollBackBatch() {
  effects.resize(batch_first_effect);
  for (auto it = undo_keys.rbegin(); it != undo_keys.rend(); ++it) {
    if (it->second.has_value()) {
      keys[it->first] = *it->second;
    } else {
      keys.erase(it->first);
    }
  }
  for (const DocumentId id : undo_added) added_ids.erase(id);
  for (const DocumentId id : undo_killed) killed_ids.erase(id);
}

// A put of this same batch that is superseded is not added, and leaves its own kill to the operation that supersedes
// it.
Engine::Location Engine::Group::Supersede(const Location& location) {
  if (location.where != Location::Where::kPending || location.ordinal < batch_first_effect) return location;
  Effect& earlier = effects[location.ordinal];
  earlier.adds = false;
  added_ids.erase(earlier.sequence);
  return std::exchange(earlier.kills, Location{});
}

absl::StatusOr<Engine::Location> Engine::FindLive(std::string_view key, const Group& group) const {
  if (const auto found = group.keys.find(ToAbsl(key)); found != group.keys.end()) return found->second;
  Location location;
  for (size_t i = view_->frozen.size() + 1; i-- > 0;) {
    const LiveOverlay& overlay = OverlayAt(i);
    if (const std::optional<uint32_t> ordinal = overlay.FindKey(key, overlay.document_count(), cell_.sequence)) {
      location.where = Location::Where::kOverlay;
      location.source = static_cast<uint32_t>(i);
      location.ordinal = *ordinal;
      location.id = overlay.IdOf(*ordinal);
      return location;
    }
  }
  // A key that is alive in one segment is dead or absent in all others, so damage matters only where nobody else has it.
  std::vector<Doubtful> doubtful;
  for (size_t i = view_->segments.size(); i-- > 0;) {
    LiveSegment& live = *view_->segments[i];
    const absl::StatusOr<std::optional<uint32_t>> ordinal = live.FindKey(key);
    if (ordinal.ok() && (!ordinal->has_value() || live.DeathOf(**ordinal) != 0)) continue;
    const absl::StatusOr<DocumentId> id = ordinal.ok() ? live.IdOf(**ordinal) : ordinal.status();
    if (id.ok() && group.killed_ids.contains(*id)) continue;
    if (id.ok()) {
      location.where = Location::Where::kSegment;
      location.source = static_cast<uint32_t>(i);
      location.ordinal = **ordinal;
      location.id = *id;
      return location;
    }
    doubtful.push_back({&live, id.status()});
  }
  ASHLAR_RETURN_IF_ERROR(Settle(doubtful));
  return location;
}

// After look-ups that damage kept from an answer. A fresh write fails. Replay can't: its batches were acknowledged. It takes the
// document as not there, seals the segments off, whose dead documents are not known any more, and keeps the journal: a flush
// would move the floor beyond batches that must be replayed again once the file is whole.
absl::Status Engine::Settle(const std::vector<Doubtful>& doubtful) const {
  for (const auto& [live, damage] : doubtful)
    if (replay_analyzer_ == nullptr || !IsDamage(damage))
      return Annotate(damage, absl::StrCat("what the batch replaces can't be told, so it was not written (",
                                           ToAbsl(RemedyOf(StoreState::kDamaged)), ")"));
  for (const auto& [live, damage] : doubtful) {
    live->SealOff(Annotate(damage, "batches in the journal may replace documents of this segment"));
    live->set_unsettled();
  }
  return absl::OkStatus();
}

absl::StatusOr<Engine::Location> Engine::FindLiveId(DocumentId id, const Group& group) const {
  Location location;
  if (group.killed_ids.contains(id)) return location;
  if (const auto found = group.added_ids.find(id); found != group.added_ids.end()) {
    location.where = Location::Where::kPending;
    location.ordinal = found->second;
    location.id = id;
    return location;
  }
  for (size_t i = 0; i <= view_->frozen.size(); ++i) {
    const LiveOverlay& overlay = OverlayAt(i);
    const std::optional<uint32_t> ordinal = overlay.FindId(id, overlay.document_count());
    if (!ordinal.has_value()) continue;
    if (overlay.DeathOf(*ordinal) != 0) return location;
    location.where = Location::Where::kOverlay;
    location.source = static_cast<uint32_t>(i);
    location.ordinal = *ordinal;
    location.id = id;
    return location;
  }
  for (size_t i = 0; i < view_->segments.size(); ++i) {
    LiveSegment& live = *view_->segments[i];
    if (id < live.segment().first_id() || id > live.segment().last_id()) continue;
    const absl::StatusOr<std::optional<uint32_t>> found = live.FindId(id);
    if (!found.ok()) {
      ASHLAR_RETURN_IF_ERROR(Settle({{&live, found.status()}}));
      return location;
    }
    const std::optional<uint32_t> ordinal = *found;
    if (!ordinal.has_value() || live.DeathOf(*ordinal) != 0) return location;
    location.where = Location::Where::kSegment;
    location.source = static_cast<uint32_t>(i);
    location.ordinal = *ordinal;
    location.id = id;
    return location;
  }
  return location;
}

absl::Status Engine::ResolveOperation(AnalyzedOperation* operation, Sequence sequence, WriteResult* result,
                                      Group* group) {
  Location live;
  const bool has_key =
      operation->is_put() ? !operation->document.key.empty() : operation->kind == WriteBatch::Kind::kDelete;
  if (has_key) {
    ASHLAR_ASSIGN_OR_RETURN(live, FindLive(operation->key_of(), *group));
  } else if (operation->kind == WriteBatch::Kind::kDeleteId) {
    ASHLAR_ASSIGN_OR_RETURN(live, FindLiveId(operation->expected, *group));
  }
  const bool existed = live.where != Location::Where::kNone;
  if (operation->kind == WriteBatch::Kind::kInsert && existed)
    return AlreadyExists(absl::StrCat("a document with key '", operation->key_of(), "' exists (DocumentId ", live.id,
                                      "); the batch was not written"));
  if (operation->kind == WriteBatch::Kind::kPutIf && live.id != operation->expected)
    return FailedPrecondition(absl::StrCat("the document with key '", operation->key_of(), "' is ", live.id, ", not ",
                                           operation->expected, "; the batch was not written"));
  Location now;
  if (operation->kind == WriteBatch::Kind::kDeleteId) {
    ASHLAR_RETURN_IF_ERROR(ForgetKeyOf(live, group));
    group->added_ids.erase(operation->expected);
  }
  Effect effect;
  effect.operation = operation;
  effect.sequence = sequence;
  effect.adds = operation->is_put();
  if (existed) {
    effect.kills = group->Supersede(live);
    if (group->killed_ids.insert(live.id).second) group->undo_killed.push_back(live.id);
  }
  group->effects.push_back(effect);
  result->existed.push_back(existed);
  if (existed) ++result->documents_replaced;
  if (effect.adds) {
    now.where = Location::Where::kPending;
    now.ordinal = static_cast<uint32_t>(group->effects.size() - 1);
    now.id = sequence;
    group->added_ids[sequence] = now.ordinal;
    group->undo_added.push_back(sequence);
  }
  if (has_key) group->SetKey(operation->key_of(), now);
  return absl::OkStatus();
}

absl::Status Engine::ResolveBatch(PendingWrite* write, Sequence first, Group* group) {
  group->BeginBatch();
  Sequence sequence = first;
  for (AnalyzedOperation& operation : *write->operations) {
    const absl::Status status = ResolveOperation(&operation, sequence++, &write->result, group);
    if (status.ok()) continue;
    group->RollBackBatch();
    write->result = WriteResult{};
    return status;
  }
  return absl::OkStatus();
}

// A delete by id of a document with a key: later operations of the group must see the key as free.
absl::Status Engine::ForgetKeyOf(const Location& location, Group* group) const {
  if (view_->schema->key.empty()) return absl::OkStatus();
  std::string key;
  switch (location.where) {
    case Location::Where::kNone:
    case Location::Where::kSegment:  // FindLive looks at killed_ids
      return absl::OkStatus();
    case Location::Where::kOverlay:
      key = std::string(OverlayAt(location.source).KeyOf(location.ordinal));
      break;
    case Location::Where::kPending:
      key = group->effects[location.ordinal].operation->document.key;
      break;
  }
  group->SetKey(key, Location{});
  return absl::OkStatus();
}

}  // namespace ashlar::engine
