#include "tests/segment/segment_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/segment/segment_schema.h"

namespace ashlar::segment {
namespace {

using format::IndexId;
using format::kGroupIndex;

std::string Word(uint64_t n) { return absl::StrCat("w", n); }

// Small numbers are common, as words are.
uint64_t Skewed(uint64_t n, Prng* random) { return random->Below(random->Below(n) + 1); }

Value RandomValue(FieldType type, Prng* random) {
  switch (type) {
    case FieldType::kKeyword:
      return absl::StrCat(random->OneIn(2) ? "common-prefix-of-twenty-" : "", random->Below(40));
    case FieldType::kDouble:
      return random->OneIn(5) ? 0.0 : (random->Uniform() - 0.5) * (random->OneIn(2) ? 1.0 : 1e300);
    case FieldType::kDate: return Date{static_cast<int64_t>(1700000000000 + random->Below(1u << 30))};
    default:
      return random->OneIn(4) ? static_cast<int64_t>(random->Next()) : static_cast<int64_t>(random->Below(100)) - 50;
  }
}

bool Less(const Value& a, const Value& b) {
  if (const auto* d = std::get_if<Date>(&a)) return d->milliseconds < std::get<Date>(b).milliseconds;
  if (const auto* s = std::get_if<std::string>(&a)) return *s < std::get<std::string>(b);
  if (const auto* i = std::get_if<int64_t>(&a)) return *i < std::get<int64_t>(b);
  return std::get<double>(a) < std::get<double>(b);
}

format::ValueView ViewOf(uint32_t field, FieldType type, const Value& value) {
  format::ValueView v;
  v.field = field;
  v.type = type;
  if (const auto* s = std::get_if<std::string>(&value)) v.bytes = *s;
  if (const auto* i = std::get_if<int64_t>(&value)) v.integer = *i;
  if (const auto* d = std::get_if<double>(&value)) v.real = *d;
  if (const auto* d = std::get_if<Date>(&value)) v.integer = d->milliseconds;
  return v;
}

std::vector<uint32_t> MembersOf(const Schema& schema, IndexId index) {
  return index == kGroupIndex ? GroupFieldsOf(schema) : std::vector<uint32_t>{index};
}

bool HasPositions(const Schema& schema, IndexId index) {
  const Field& f = schema.fields[MembersOf(schema, index)[0]];
  return f.type == FieldType::kText && f.positions;
}

std::set<std::string> TermsOf(const Schema& schema, IndexId index, const std::vector<ModelDocument>& documents) {
  std::set<std::string> terms;
  for (const uint32_t field : MembersOf(schema, index))
    for (const ModelDocument& d : documents)
      for (const auto& [term, positions] : d.terms[field]) terms.insert(term);
  return terms;
}

absl::Status AddIndex(const Schema& schema, IndexId index, const std::vector<ModelDocument>& documents,
                      SegmentBuilder* builder) {
  const std::vector<uint32_t> members = MembersOf(schema, index);
  ASHLAR_RETURN_IF_ERROR(builder->BeginIndex(index));
  for (const std::string& term : TermsOf(schema, index, documents)) {
    ASHLAR_RETURN_IF_ERROR(builder->BeginTerm(term, documents.size()));
    for (uint32_t ordinal = 0; ordinal < documents.size(); ++ordinal) {
      std::vector<uint32_t> frequencies, positions;
      for (const uint32_t field : members) {
        const auto found = documents[ordinal].terms[field].find(term);
        const bool there = found != documents[ordinal].terms[field].end();
        frequencies.push_back(there ? static_cast<uint32_t>(found->second.size()) : 0);
        if (there && HasPositions(schema, index))
          positions.insert(positions.end(), found->second.begin(), found->second.end());
      }
      if (std::all_of(frequencies.begin(), frequencies.end(), [](uint32_t f) { return f == 0; })) continue;
      ASHLAR_RETURN_IF_ERROR(builder->AddPosting({ordinal, frequencies, positions}));
    }
    ASHLAR_RETURN_IF_ERROR(builder->EndTerm());
  }
  return builder->EndIndex();
}

std::string TextOf(const Value& v) {
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  if (const auto* i = std::get_if<int64_t>(&v)) return absl::StrCat("i", *i);
  if (const auto* d = std::get_if<Date>(&v)) return absl::StrCat("t", d->milliseconds);
  return absl::StrCat("d", std::bit_cast<uint64_t>(std::get<double>(v)));
}

absl::Status Walk(PostingCursor cursor, std::string* answer) {
  absl::StrAppend(answer, " n", cursor.postings());
  for (; cursor.document() != format::kNoDocument; cursor.Next()) {
    absl::StrAppend(answer, " ", cursor.document(), "x", cursor.frequency());
    std::vector<uint32_t> positions;
    ASHLAR_RETURN_IF_ERROR(cursor.AppendPositions(&positions));
    for (const uint32_t p : positions) absl::StrAppend(answer, ",", p);
  }
  return cursor.status();
}

// What Walk should find.
std::string Expected(const Schema& schema, IndexId index, const std::string& term, bool positions,
                     const std::vector<ModelDocument>& documents) {
  std::string body;
  uint32_t count = 0;
  for (uint32_t ordinal = 0; ordinal < documents.size(); ++ordinal) {
    uint32_t frequency = 0;
    std::string places;
    for (const uint32_t field : MembersOf(schema, index)) {
      const auto found = documents[ordinal].terms[field].find(term);
      if (found == documents[ordinal].terms[field].end()) continue;
      frequency += static_cast<uint32_t>(found->second.size());
      if (positions)
        for (const uint32_t p : found->second) absl::StrAppend(&places, ",", p);
    }
    if (frequency == 0) continue;
    ++count;
    absl::StrAppend(&body, " ", ordinal, "x", frequency, places);
  }
  return absl::StrCat(" n", count, body);
}

}  // namespace

uint32_t ModelDocument::LengthOf(uint32_t field) const {
  uint32_t n = 0;
  for (const auto& [term, positions] : terms[field]) n += static_cast<uint32_t>(positions.size());
  return n;
}

void AddField(std::string name, FieldType type, Schema* schema) {
  Field field;
  field.name = std::move(name);
  field.type = type;
  schema->fields.push_back(std::move(field));
}

Schema RandomSchema(Prng* random) {
  Schema schema;
  const auto add = [&](std::string name, FieldType type) {
    Field f;
    f.name = std::move(name);
    f.type = type;
    f.column = type != FieldType::kText && !random->OneIn(4);
    f.positions = true;
    schema.fields.push_back(f);
  };
  const uint64_t group = random->Below(4);
  const bool positions = random->OneIn(2);
  for (uint64_t i = 0; i < group; ++i) {
    if (random->OneIn(3)) add(absl::StrCat("number", i), FieldType::kInt64);
    add(absl::StrCat("text", i), FieldType::kText);
    schema.fields.back().positions = positions;
    schema.default_group.push_back(schema.fields.back().name);
  }
  std::reverse(schema.default_group.begin(), schema.default_group.end());
  if (!random->OneIn(3)) {
    add("key", FieldType::kKeyword);
    schema.key = "key";
  }
  add("tag", FieldType::kKeyword);
  add("alone", FieldType::kText);
  add("when", FieldType::kDate);
  add("weight", FieldType::kDouble);
  add("size", FieldType::kInt64);
  add("raw", FieldType::kBytes);
  return schema;
}

std::vector<ModelDocument> RandomDocuments(const Schema& schema, size_t count, DocumentId first_id, Prng* random) {
  std::vector<ModelDocument> documents(count);
  DocumentId id = first_id;
  const bool dense = random->OneIn(2);
  const int key = KeyFieldOf(schema);
  for (ModelDocument& d : documents) {
    d.id = id;
    id += dense ? 1 : 1 + random->Below(50);
    if (key >= 0) d.key = absl::StrCat(random->OneIn(3) ? "prefix/" : "", random->Next() % 10, "-", d.id);
    d.terms.resize(schema.fields.size());
    d.columns.resize(schema.fields.size());
    for (uint32_t field = 0; field < schema.fields.size(); ++field) {
      const Field& f = schema.fields[field];
      if (IsSearchable(schema, field) && !random->OneIn(10)) {
        uint32_t position = 0;
        const uint64_t words = Skewed(f.type == FieldType::kText ? 40 : 3, random);
        for (uint64_t w = 0; w < words; ++w) {
          d.terms[field][Word(Skewed(200, random))].push_back(position);
          position += 1 + static_cast<uint32_t>(random->OneIn(9) ? random->Below(300) : 0);
        }
      }
      const bool column = f.column && f.type != FieldType::kText && f.type != FieldType::kBytes;
      if (column && static_cast<int>(field) != key && !random->OneIn(4)) {
        const uint64_t values = f.name == "size" ? random->Below(4) : 1;
        for (uint64_t v = 0; v < values; ++v) d.columns[field].push_back(RandomValue(f.type, random));
        std::sort(d.columns[field].begin(), d.columns[field].end(), Less);
      }
    }
    const uint64_t stored = random->OneIn(40) ? random->Below(6000) : random->Below(200);
    for (uint64_t i = 0; i < stored; ++i)
      d.stored += static_cast<char>('a' + Skewed(random->OneIn(7) ? 26 : 4, random));
  }
  return documents;
}

ModelStore::ModelStore() : memory(env::NewMemoryEnv()) {
  env = memory->env();
  EXPECT_TRUE(env.files->CreateDirectory(directory).ok());
  env.entropy->Fill(store_id);
}

ModelStore::ModelStore(env::Env environment) : env(environment) {
  EXPECT_TRUE(env.files->CreateDirectory(directory).ok());
  EXPECT_TRUE(env.files->SyncDirectory("").ok());
  env.entropy->Fill(store_id);
}

SegmentSpec ModelStore::Spec(const Schema& schema, uint64_t number) const {
  SegmentSpec spec;
  spec.number = number;
  spec.store_id = store_id;
  spec.schema = schema;
  spec.schema_number = 3;
  spec.analyzer_identity = "none";
  spec.generation = 7;
  return spec;
}

absl::StatusOr<format::SegmentEntry> ModelStore::Build(const Schema& schema, uint64_t number,
                                                       const std::vector<ModelDocument>& documents) const {
  SegmentSpec spec = Spec(schema, number);
  spec.postings_per_field.resize(schema.fields.size());
  for (const ModelDocument& d : documents)
    for (size_t field = 0; field < d.terms.size(); ++field) spec.postings_per_field[field] += d.terms[field].size();
  ASHLAR_ASSIGN_OR_RETURN(const std::unique_ptr<SegmentBuilder> builder,
                          SegmentBuilder::Create(env, directory, spec));
  for (const ModelDocument& d : documents) {
    std::vector<uint32_t> lengths(schema.fields.size());
    std::vector<format::ValueView> columns;
    for (uint32_t field = 0; field < schema.fields.size(); ++field) {
      lengths[field] = d.LengthOf(field);
      for (const Value& v : d.columns[field]) columns.push_back(ViewOf(field, schema.fields[field].type, v));
    }
    DocumentRow row;
    row.id = d.id;
    row.key = d.key;
    row.lengths = lengths;
    row.stored = AsBytes(d.stored);
    row.columns = columns;
    ASHLAR_RETURN_IF_ERROR(builder->AddDocument(row));
  }
  for (const IndexId index : IndexesOf(schema))
    ASHLAR_RETURN_IF_ERROR(AddIndex(schema, index, documents, builder.get()));
  return builder->Finish();
}

absl::StatusOr<std::shared_ptr<const Segment>> ModelStore::Open(const format::SegmentEntry& entry,
                                                                OpenMode mode) const {
  return Segment::Open(env, directory, entry, store_id, 7, mode);
}

void ExpectHolds(const Segment& segment, const Schema& schema, const std::vector<ModelDocument>& documents) {
  ASSERT_EQ(segment.document_count(), documents.size());
  EXPECT_EQ(segment.first_id(), documents.front().id);
  EXPECT_EQ(segment.last_id(), documents.back().id);
  EXPECT_EQ(segment.schema(), schema);
  std::vector<std::pair<std::string, uint32_t>> keys;
  for (uint32_t ordinal = 0; ordinal < documents.size(); ++ordinal) {
    const ModelDocument& d = documents[ordinal];
    EXPECT_EQ(*segment.IdOf(ordinal), d.id);
    EXPECT_EQ(*segment.FindId(d.id), std::optional<uint32_t>(ordinal));
    EXPECT_EQ(*segment.KeyOf(ordinal), d.key);
    if (!d.key.empty()) {
      keys.emplace_back(d.key, ordinal);
      EXPECT_EQ(*segment.FindKey(d.key), std::optional<uint32_t>(ordinal)) << d.key;
      EXPECT_EQ(*segment.FindKey(d.key + "!"), std::nullopt);
    }
    EXPECT_EQ(AsString(*segment.StoredOf(ordinal)), d.stored);
    for (uint32_t field = 0; field < schema.fields.size(); ++field) {
      if (static_cast<int>(field) == KeyFieldOf(schema)) continue;
      std::vector<Value> values;
      ASSERT_TRUE(segment.ColumnValues(field, ordinal, &values).ok());
      EXPECT_EQ(values, d.columns[field]) << ordinal << " " << schema.fields[field].name;
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::pair<std::string, uint32_t>> visited;
  ASSERT_TRUE(segment
                  .VisitKeys({},
                             [&](std::string_view key, uint32_t ordinal) {
                               visited.emplace_back(key, ordinal);
                               return true;
                             })
                  .ok());
  EXPECT_EQ(visited, keys);

  std::vector<IndexId> all = IndexesOf(schema);
  for (const uint32_t field : GroupFieldsOf(schema)) all.push_back(field);
  for (const IndexId index : all) {
    const std::vector<uint32_t> members = MembersOf(schema, index);
    uint64_t sum = 0;
    absl::StatusOr<LengthReader> lengths = segment.Lengths(index);
    ASSERT_TRUE(lengths.ok()) << lengths.status();
    for (uint32_t ordinal = 0; ordinal < documents.size(); ++ordinal) {
      uint32_t length = 0;
      for (const uint32_t field : members) length += documents[ordinal].LengthOf(field);
      EXPECT_EQ((*lengths)[ordinal], length);
      sum += length;
    }
    EXPECT_EQ(segment.LengthSum(index), sum);
    for (const std::string& term : TermsOf(schema, index, documents)) {
      std::string answer;
      ASSERT_TRUE(Walk(segment.OpenPositions(index, term), &answer).ok());
      const bool positions = HasPositions(schema, index);
      std::string expected = Expected(schema, index, term, positions, documents);
      // The number of postings of a filtered list may be the group's.
      EXPECT_EQ(answer.substr(answer.find(' ', 1)), expected.substr(expected.find(' ', 1))) << term;
      answer.clear();
      PostingCursor cursor = segment.OpenTerm(index, term);
      for (; cursor.document() != format::kNoDocument; cursor.Next())
        absl::StrAppend(&answer, " ", cursor.document(), "x", cursor.frequency());
      expected = Expected(schema, index, term, false, documents);
      EXPECT_EQ(absl::StrCat(" n", cursor.postings(), answer), expected) << term << " " << index;
    }
    EXPECT_EQ(segment.OpenTerm(index, "no such term").document(), format::kNoDocument);
  }
}

absl::Status AskEverything(const Segment& segment, const Schema& schema, const std::vector<ModelDocument>& documents,
                           std::vector<std::string>* answers) {
  const auto count = static_cast<uint32_t>(documents.size());
  for (uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    ASHLAR_ASSIGN_OR_RETURN(const DocumentId id, segment.IdOf(ordinal));
    ASHLAR_ASSIGN_OR_RETURN(const std::string key, segment.KeyOf(ordinal));
    ASHLAR_ASSIGN_OR_RETURN(const ByteBuffer stored, segment.StoredOf(ordinal));
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<uint32_t> by_id, segment.FindId(documents[ordinal].id));
    ASHLAR_ASSIGN_OR_RETURN(const std::optional<uint32_t> by_key, segment.FindKey(documents[ordinal].key));
    std::string answer = absl::StrCat(id, "/", key, "/", ToAbsl(AsString(stored)), "/", by_id.value_or(count), "/",
                                      by_key.value_or(count));
    for (uint32_t field = 0; field < schema.fields.size(); ++field) {
      std::vector<Value> values;
      ASHLAR_RETURN_IF_ERROR(segment.ColumnValues(field, ordinal, &values));
      for (const Value& v : values) absl::StrAppend(&answer, "/", TextOf(v));
    }
    answers->push_back(std::move(answer));
  }
  ASHLAR_RETURN_IF_ERROR(segment.VisitKeys("p", [&](std::string_view key, uint32_t ordinal) {
    answers->push_back(absl::StrCat(ToAbsl(key), "=", ordinal));
    return true;
  }));
  std::vector<IndexId> all = IndexesOf(schema);
  for (const uint32_t field : GroupFieldsOf(schema)) all.push_back(field);
  for (const IndexId index : all) {
    ASHLAR_ASSIGN_OR_RETURN(const LengthReader lengths, segment.Lengths(index));
    std::string answer;
    for (uint32_t ordinal = 0; ordinal < count; ++ordinal) absl::StrAppend(&answer, lengths[ordinal], " ");
    answers->push_back(std::move(answer));
    for (const std::string& term : TermsOf(schema, index, documents)) {
      answer = absl::StrCat(index, term);
      ASHLAR_RETURN_IF_ERROR(Walk(segment.OpenTerm(index, term), &answer));
      ASHLAR_RETURN_IF_ERROR(Walk(segment.OpenPositions(index, term), &answer));
      answers->push_back(std::move(answer));
    }
  }
  return absl::OkStatus();
}

}  // namespace ashlar::segment
