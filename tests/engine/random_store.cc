#include "tests/engine/random_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "src/engine/engine.h"
#include "tests/support/status_matchers.h"

namespace ashlar::testing {
namespace {

// A few words are frequent, most are rare; some need ICU, folding or stemming.
constexpr const char* kWords[] = {"stone", "wall",  "arch",      "granite",   "marble", "running", "runs",
                                  "the",   "and",   "Caf\u00e9", "caf\u00e9", "\u77f3", "\u58c1",  "it's",
                                  "3.14",  "a_b",   "STONES",    "x",         "y",      "z",       "mortar",
                                  "lime",  "slate", "chalk",     "basalt"};

// Whether a phrase may be asked of a field, or of the group and parts of it.
bool KeepsPositions(const Schema& schema, const std::string& field) {
  const Field& asked =
      schema.fields[static_cast<size_t>(schema.IndexOf(field.empty() ? schema.default_group[0] : field))];
  return asked.type == FieldType::kKeyword || asked.positions;
}

}  // namespace

RandomStore::RandomStore(uint64_t seed) : prng_(seed), keys_(5 + prng_.Below(40)) {}

Schema RandomStore::RandomSchema() {
  Schema schema;
  const AnalyzerOptions analyzer =
      prng_.OneIn(2) ? AnalyzerOptions{} : AnalyzerOptions{StopWords::kEnglish33, "english", Marks::kRemove};
  const bool positions = !prng_.OneIn(4);
  if (!prng_.OneIn(5)) {
    schema.key = "id";
    schema.fields.push_back({"id", FieldType::kKeyword, true, false, false, {}});
  }
  const uint64_t members = 1 + prng_.Below(3);
  for (uint64_t i = 0; i < members; ++i) {
    const std::string name = "g" + std::to_string(i);
    schema.default_group.push_back(name);
    schema.fields.push_back({name, FieldType::kText, true, positions, false, analyzer});
  }
  schema.fields.push_back({"note", FieldType::kText, true, !prng_.OneIn(2), false, {}});
  schema.fields.push_back({"tag", FieldType::kKeyword, true, false, true, {}});
  schema.fields.push_back({"year", FieldType::kInt64, true, false, true, {}});
  schema.fields.push_back({"ratio", FieldType::kDouble, true, false, prng_.OneIn(2), {}});
  schema.fields.push_back({"until", FieldType::kDate, true, false, true, {}});
  return schema;
}

Options RandomStore::RandomOptions() {
  Options options;
  options.open_mode = prng_.OneIn(2) ? OpenMode::kMapped : OpenMode::kArray;
  constexpr Durability kModes[] = {Durability::kSync, Durability::kInterval, Durability::kOs};
  options.durability = kModes[prng_.Below(3)];
  options.overlay_bytes_max = uint64_t{64 * 1024} << prng_.Below(6);
  options.merge_factor = prng_.OneIn(3) ? 0 : 2 + static_cast<uint32_t>(prng_.Below(5));
  return options;
}

std::string RandomStore::RandomKey() { return "k" + std::to_string(prng_.Below(keys_)); }

std::string RandomStore::RandomWords() {
  std::string text;
  const uint64_t count = prng_.OneIn(20) ? prng_.Below(400) : prng_.Below(12);
  for (uint64_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : prng_.OneIn(9) ? ", " : " ") + FrequentWord();
  }
  return text;
}

Document RandomStore::RandomDocument(const Schema& schema) {
  Document document;
  for (const Field& field : schema.fields) {
    if (field.name == schema.key) {
      document.Add(field.name, RandomKey());
      continue;
    }
    for (uint64_t values = prng_.OneIn(4) ? prng_.Below(4) : 1; values > 0; --values) {
      switch (field.type) {
        case FieldType::kText:
          document.Add(field.name, RandomWords());
          break;
        case FieldType::kKeyword:
          document.Add(field.name, std::string(kWords[prng_.Below(std::size(kWords))]));
          break;
        case FieldType::kInt64:
          document.Add(field.name, static_cast<int64_t>(prng_.Next() >> prng_.Below(64)));
          break;
        case FieldType::kDate:
          document.Add(field.name, Date{static_cast<int64_t>(prng_.Below(1000)) - 500});
          break;
        default:
          document.Add(field.name, prng_.Uniform());
      }
    }
  }
  if (document.values.empty()) document.Add(schema.fields[0].name, std::string("stone"));
  return document;
}

WriteBatch RandomStore::RandomBatch(const Schema& schema, const Oracle& oracle) {
  WriteBatch batch;
  const uint64_t count = prng_.OneIn(12) ? 0 : prng_.OneIn(6) ? prng_.Below(60) : 1 + prng_.Below(4);
  const std::vector<DocumentId> ids = oracle.Ids();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t kind = prng_.Below(20);
    if (kind < 2 && !ids.empty()) {
      batch.DeleteId(prng_.OneIn(10) ? prng_.Below(100) + 1 : ids[prng_.Below(ids.size())]);
    } else if (kind < 5 && !schema.key.empty()) {
      batch.Delete(RandomKey());
    } else if (kind == 5) {
      batch.Insert(RandomDocument(schema));
    } else if (kind == 6 && !schema.key.empty()) {
      Document document = RandomDocument(schema);
      const std::optional<StoredDocument> live = oracle.Get(std::get<std::string>(*document.Find(schema.key)));
      batch.PutIf(std::move(document), live.has_value() ? live->id : 0);
    } else {
      batch.Put(RandomDocument(schema));
    }
  }
  return batch;
}

std::string RandomStore::FrequentWord() {
  return kWords[std::min(prng_.Below(std::size(kWords)), prng_.Below(std::size(kWords)))];
}

Query RandomStore::RandomQuery(const Schema& schema) {
  Query query;
  const uint64_t count = 1 + prng_.Below(5);
  for (uint64_t i = 0; i < count; ++i) {
    Clause clause;
    const uint64_t occur = i == 0 ? 0 : prng_.Below(8);
    clause.occur = occur == 6 ? Occur::kMust : occur == 7 ? Occur::kMustNot : Occur::kShould;
    if (i == 0 && prng_.OneIn(3)) clause.occur = Occur::kMust;
    clause.text = FrequentWord();
    if (prng_.OneIn(6)) clause.text += " " + std::string(kWords[prng_.Below(std::size(kWords))]);
    if (prng_.OneIn(3)) {
      const Field& field = schema.fields[prng_.Below(schema.fields.size())];
      if (field.type == FieldType::kText || field.type == FieldType::kKeyword) clause.field = field.name;
      if (field.name == schema.key) clause.text = RandomKey();
    }
    if (prng_.OneIn(3) && KeepsPositions(schema, clause.field)) {
      clause.phrase = true;
      for (uint64_t more = prng_.Below(4); more > 0; --more) clause.text += " " + FrequentWord();
    }
    if (prng_.OneIn(4)) clause.boost = 0.25 + prng_.Uniform() * 3;
    query.clauses.push_back(clause);
  }
  return query;
}

SearchOptions RandomStore::RandomSearchOptions(const Schema& schema) {
  SearchOptions options;
  options.k = prng_.OneIn(3) ? 1000 : 1 + prng_.Below(12);
  options.offset = prng_.OneIn(4) ? prng_.Below(8) : 0;
  if (prng_.OneIn(4)) options.k1 = prng_.Uniform() * 3;
  if (prng_.OneIn(4)) options.b = prng_.OneIn(3) ? 0 : prng_.Uniform();
  if (prng_.OneIn(4))
    for (const std::string& member : schema.default_group)
      if (prng_.OneIn(2)) options.fields.push_back(member);
  if (prng_.OneIn(2)) std::reverse(options.fields.begin(), options.fields.end());
  return options;
}

absl::StatusOr<std::unique_ptr<Store>> OpenOn(env::Env env, const std::string& directory, const Options& options,
                                              const Schema* schema) {
  auto engine = engine::Engine::Open(env, nullptr, directory, options, schema);
  if (!engine.ok()) return engine.status();
  return std::make_unique<Store>(*std::move(engine));
}

void ExpectEqual(const Store& store, const Snapshot& snapshot, const Oracle& oracle, RandomStore* random, int queries) {
  ASSERT_EQ(snapshot.document_count(), oracle.document_count());
  const Schema& schema = oracle.schema();
  for (int i = 0; i < queries; ++i) {
    const Query query = random->RandomQuery(schema);
    SearchOptions options = random->RandomSearchOptions(schema);
    ASSERT_OK_AND_ASSIGN(const PreparedQuery prepared, store.Prepare(query));
    const OracleResult expected = oracle.Search(query, options);
    for (const Traversal traversal : {Traversal::kExhaustive, Traversal::kDaat, Traversal::kAuto, Traversal::kPruned}) {
      options.traversal = traversal;
      options.total = traversal == Traversal::kPruned ? Total::kNone : Total::kExact;
      ASSERT_OK_AND_ASSIGN(const SearchResult result, snapshot.Search(prepared, options));
      std::vector<Handle> handles;
      for (const Hit& hit : result.hits) handles.push_back(hit.handle);
      ASSERT_OK_AND_ASSIGN(const std::vector<DocumentId> ids, snapshot.FetchIds(handles));
      ASSERT_EQ(result.hits.size(), expected.hits.size());
      for (size_t h = 0; h < ids.size(); ++h) {
        ASSERT_EQ(ids[h], expected.hits[h].id) << "hit " << h;
        ASSERT_EQ(std::bit_cast<uint64_t>(result.hits[h].score), std::bit_cast<uint64_t>(expected.hits[h].score))
            << "hit " << h;
      }
      if (options.total == Total::kNone) continue;
      ASSERT_TRUE(result.total_is_exact);
      ASSERT_EQ(result.total, expected.total);
    }
  }
  if (schema.key.empty()) return;
  for (int i = 0; i < queries; ++i) {
    const std::string key = random->RandomKey();
    const std::optional<StoredDocument> expected = oracle.Get(key);
    const absl::StatusOr<StoredDocument> found = snapshot.Get(key);
    if (!expected.has_value()) {
      EXPECT_CODE(found, kNotFound);
      continue;
    }
    ASSERT_OK(found);
    EXPECT_EQ(found->id, expected->id);
    EXPECT_EQ(found->document, expected->document);
  }
}

void ExpectSameDocuments(const Snapshot& snapshot, const Oracle& oracle) {
  std::vector<DocumentId> ids;
  ASSERT_OK(snapshot.Scan(Snapshot::Order::kDocumentId, [&](const StoredDocument& stored) {
    ids.push_back(stored.id);
    const std::optional<StoredDocument> expected = oracle.GetById(stored.id);
    EXPECT_TRUE(expected.has_value()) << stored.id;
    if (expected.has_value()) EXPECT_EQ(stored.document, expected->document) << stored.id;
    return true;
  }));
  EXPECT_EQ(ids, oracle.Ids());
  if (oracle.schema().key.empty()) return;
  std::vector<std::pair<std::string, DocumentId>> keys;
  ASSERT_OK(snapshot.ScanKeys([&](std::string_view key, DocumentId id) {
    keys.emplace_back(std::string(key), id);
    return true;
  }));
  EXPECT_EQ(keys, oracle.Keys());
}

void ExpectCheckClean(const Store& store) {
  const absl::StatusOr<std::vector<Finding>> findings = store.Check();
  ASSERT_OK(findings);
  for (const Finding& finding : *findings) ADD_FAILURE() << finding.message;
}

}  // namespace ashlar::testing
