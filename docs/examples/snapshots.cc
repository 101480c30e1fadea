// How snapshots work: a fixed point in time that stays as it is while the store changes, and after it is closed.
// usage: snapshots

#include <ashlar/ashlar.h>

#include <iostream>
#include <string>

namespace {

bool Say(const absl::Status& status) {
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok();
}

uint64_t Count(const ashlar::Snapshot& snapshot, const ashlar::PreparedQuery& query) {
  auto result = snapshot.Search(query);
  return Say(result.status()) ? result->total : 0;
}

}  // namespace

int main() {
  ashlar::Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{.name = "id", .type = ashlar::FieldType::kKeyword}, {.name = "body"}};
  // The same store without files.
  auto store = ashlar::Store::OpenInMemory(schema);
  if (!Say(store.status())) return 1;
  for (int i = 0; i < 100; ++i) {
    const auto put = (*store)->Put(ashlar::Document().Add("id", std::to_string(i)).Add("body", "grey stone"));
    if (!Say(put.status())) return 1;
  }

  // A prepared query belongs to the store's schema and serves every snapshot.
  auto query = (*store)->Prepare("stone");
  if (!Say(query.status())) return 1;
  const ashlar::Snapshot before = (*store)->TakeSnapshot();
  for (int i = 0; i < 50; ++i) {
    if (!Say((*store)->Delete(std::to_string(i)).status())) return 1;
  }
  if (!Say((*store)->Merge(1))) return 1;
  const ashlar::Snapshot after = (*store)->TakeSnapshot();
  if (!Say((*store)->Close())) return 1;
  store->reset();

  // The first one still sees all, although the store is merged, closed and gone.
  std::cout << Count(before, *query) << " stones before, " << Count(after, *query) << " after\n";
  uint64_t scanned = 0;
  const absl::Status scan = before.Scan(ashlar::Snapshot::Order::kKey, [&](const ashlar::StoredDocument&) {
    ++scanned;
    return true;
  });
  std::cout << scanned << " scanned in order of key\n";
  return Say(scan) && Count(before, *query) == 100 && Count(after, *query) == 50 && scanned == 100 ? 0 : 1;
}
