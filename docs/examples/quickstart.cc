// Create a store, put two documents into it, search, and fetch what was found.
// usage: quickstart DIRECTORY (which must not hold a store yet)

#include <ashlar/ashlar.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ashlar::Schema schema;
  schema.key = "id";
  schema.default_group = {"title", "body"};
  schema.fields = {{.name = "id", .type = ashlar::FieldType::kKeyword}, {.name = "title"}, {.name = "body"}};
  auto store = ashlar::Store::Create(argv[1], schema);
  if (!store.ok()) return std::cerr << store.status() << "\n", 1;

  ashlar::WriteBatch batch;
  batch.Put(ashlar::Document().Add("id", "a").Add("title", "Ashlar").Add("body", "a squared stone laid without gaps"));
  batch.Put(ashlar::Document().Add("id", "b").Add("title", "Rubble").Add("body", "rough stone of any shape"));
  if (auto written = (*store)->Write(batch); !written.ok()) return std::cerr << written.status() << "\n", 1;

  ashlar::Snapshot snapshot = (*store)->TakeSnapshot();
  auto query = (*store)->Prepare("squared stone");
  if (!query.ok()) return std::cerr << query.status() << "\n", 1;
  auto found = snapshot.Search(*query);
  if (!found.ok()) return std::cerr << found.status() << "\n", 1;
  for (const ashlar::Hit& hit : found->hits) {
    auto documents = snapshot.Fetch({&hit.handle, 1});
    if (!documents.ok()) return std::cerr << documents.status() << "\n", 1;
    std::cout << hit.score << " " << documents->front().key << "\n";
  }
  return (*store)->Close().ok() ? 0 : 1;
}
