// How copies work: a checkpoint beside a writer, bringing it up to date, and the copy as a store of its own.
// usage: copies DIRECTORY (which must not hold a store yet; the copy goes to DIRECTORY-copy)

#include <ashlar/ashlar.h>

#include <iostream>
#include <string>

namespace {

bool Say(const absl::Status& status) {
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok();
}

ashlar::Document Note(int number) {
  return ashlar::Document().Add("id", "n" + std::to_string(number)).Add("text", "note " + std::to_string(number));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = argv[1], copy = directory + "-copy";
  ashlar::Schema schema;
  schema.key = "id";
  schema.default_group = {"text"};
  schema.fields = {{.name = "id", .type = ashlar::FieldType::kKeyword}, {.name = "text"}};
  auto opened = ashlar::Store::Create(directory, schema);
  if (!Say(opened.status())) return 1;
  ashlar::Store& store = **opened;
  for (int i = 0; i < 3; ++i)
    if (!Say(store.Put(Note(i)).status())) return 1;

  // Everything acknowledged so far, checked when it returns. The store may be written to meanwhile; another process may
  // make the copy, too, with a store that is open read-only.
  auto first = store.Checkpoint(copy);
  if (!Say(first.status())) return 1;
  std::cout << first->documents << " documents up to sequence " << first->sequence << "\n";

  // Later only what is new is added. A crash in between leaves the first state or the second.
  if (!Say(store.Put(Note(3)).status())) return 1;
  ashlar::CheckpointOptions incremental;
  incremental.incremental = true;
  auto second = store.Checkpoint(copy, incremental);
  if (!Say(second.status())) return 1;
  std::cout << second->documents << " documents up to sequence " << second->sequence << "\n";

  // The copy is a store: it opens, and may be written to. After that it is no checkpoint of this store any more.
  auto restored = ashlar::Store::Open(copy);
  if (!Say(restored.status())) return 1;
  if (!Say((*restored)->Put(Note(100)).status()) || !Say((*restored)->Close())) return 1;
  const absl::Status refused = store.Checkpoint(copy, incremental).status();
  std::cout << "onto a copy that was written to: " << absl::StatusCodeToString(refused.code()) << "\n";
  return Say(store.Close()) && absl::IsFailedPrecondition(refused) ? 0 : 1;
}
