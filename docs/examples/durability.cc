// How batches and durability work: atomic batches, conditions, a mode for the store and a higher one for a batch.
// usage: durability DIRECTORY (which must not hold a store yet)

#include <ashlar/ashlar.h>

#include <iostream>
#include <string>

namespace {

bool Say(const absl::Status& status) {
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok();
}

ashlar::Document Account(const std::string& id, int64_t balance) {
  return ashlar::Document().Add("id", id).Add("balance", balance);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ashlar::Schema schema;
  schema.key = "id";
  schema.fields = {{.name = "id", .type = ashlar::FieldType::kKeyword},
                   {.name = "balance", .type = ashlar::FieldType::kInt64}};

  // kOs: a write survives the death of this process at once, and a loss of power as soon as something is synced.
  ashlar::Options options;
  options.durability = ashlar::Durability::kOs;
  auto opened = ashlar::Store::Create(argv[1], schema, options);
  if (!Say(opened.status())) return 1;
  ashlar::Store& store = **opened;
  if (!Say(store.Put(Account("ann", 100)).status()) || !Say(store.Put(Account("bob", 0)).status())) return 1;

  // Both accounts change or neither. This batch, and with it everything before it, is safe from a loss of power when
  // Write returns.
  ashlar::WriteBatch transfer;
  transfer.Put(Account("ann", 70));
  transfer.Put(Account("bob", 30));
  ashlar::WriteOptions synced;
  synced.durability = ashlar::Durability::kSync;
  auto written = store.Write(transfer, synced);
  if (!Say(written.status())) return 1;
  std::cout << "transferred, sequence " << written->sequence << "\n";

  // A change that depends on what was read: it fails if somebody else was there in between, and so does its whole
  // batch.
  auto ann = store.TakeSnapshot().Get("ann");
  if (!Say(ann.status())) return 1;
  if (!Say(store.Put(Account("ann", 71)).status())) return 1;
  const absl::Status refused = store.PutIf(Account("ann", 0), ann->id).status();
  std::cout << "on an old version: " << absl::StatusCodeToString(refused.code()) << "\n";

  // An insert of a key that is there is refused as well; the other document of its batch is not written either.
  ashlar::WriteBatch inserts;
  inserts.Insert(Account("cid", 5));
  inserts.Insert(Account("bob", 5));
  const absl::Status exists = store.Write(inserts).status();
  std::cout << "insert of a key that is there: " << absl::StatusCodeToString(exists.code()) << "\n";
  std::cout << store.TakeSnapshot().document_count() << " accounts\n";

  // A barrier: all of the above survives a loss of power from here on.
  if (!Say(store.Sync())) return 1;
  return Say(store.Close()) && absl::IsFailedPrecondition(refused) && absl::IsAlreadyExists(exists) ? 0 : 1;
}
