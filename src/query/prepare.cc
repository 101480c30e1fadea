#include "src/query/prepare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/base/status.h"
#include "src/text/analyzer.h"

namespace ashlar::query {
namespace {

bool InRange(double value, double low, double high) { return value >= low && value <= high; }

// --- preparing ---

// A text field of each distinct analyzer, so that words without a field are analysed once per analyzer.
std::vector<uint32_t> AnalyzerFields(const Schema& schema) {
  std::vector<uint32_t> fields;
  for (uint32_t i = 0; i < schema.fields.size(); ++i) {
    if (schema.fields[i].type != FieldType::kText) continue;
    const bool known = std::any_of(fields.begin(), fields.end(), [&](uint32_t field) {
      return schema.fields[field].analyzer == schema.fields[i].analyzer;
    });
    if (!known) fields.push_back(i);
  }
  return fields;
}

absl::Status CheckClause(const Clause& clause, const Schema& schema) {
  if (!(clause.boost > 0 && clause.boost <= kBoostMax)) {
    return InvalidArgument(absl::StrCat("boost ", clause.boost, " is not in (0, 1e6]"));
  }
  if (!text::IsValidUtf8(clause.text)) return InvalidArgument("a query word is not valid UTF-8");
  if (!clause.field.empty()) return absl::OkStatus();
  if (!schema.default_group.empty()) return absl::OkStatus();
  return InvalidArgument(absl::StrCat("word \"", clause.text, "\" names no field and the schema has no default group"));
}

absl::StatusOr<uint32_t> SearchableField(const Schema& schema, const std::string& name) {
  const int index = text::IsValidUtf8(name) ? schema.IndexOf(name) : -1;
  if (index < 0) return InvalidArgument(absl::StrCat("unknown field \"", name, "\""));
  const FieldType type = schema.fields[static_cast<size_t>(index)].type;
  if (type == FieldType::kText || type == FieldType::kKeyword) return static_cast<uint32_t>(index);
  return InvalidArgument(
      absl::StrCat("field \"", name, "\" can't be searched for words: it is of type ", ToAbsl(FieldTypeName(type))));
}

absl::StatusOr<std::vector<PlacedWord>> WordsOf(uint32_t field, const std::string& text,
                                                text::DocumentAnalyzer& analyzer) {
  text::TokenStream stream;
  ASHLAR_RETURN_IF_ERROR(analyzer.AnalyzeText(field, text, &stream));
  std::vector<PlacedWord> words;
  for (const text::Token& token : stream.tokens)
    words.push_back({std::string(token.term(stream.bytes)), token.position});
  return words;
}

// Whether these words can be a phrase of these fields. One word needs nothing.
absl::Status CheckPhrase(const Schema& schema, const std::vector<uint32_t>& fields,
                         const std::vector<PlacedWord>& words) {
  if (words.size() < 2) return absl::OkStatus();
  for (const uint32_t field : fields) {
    if (schema.fields[field].positions) continue;
    return InvalidArgument(
        absl::StrCat("field \"", schema.fields[field].name,
                     "\" can't be searched for phrases: it was made without the option \"positions\""));
  }
  // A wider one could lead from one value of a field into the next.
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].place - words[i - 1].place <= text::kPositionGap) continue;
    return InvalidArgument(absl::StrCat("a phrase in which the analyzer removes ", text::kPositionGap,
                                        " words in a row or more, before \"", words[i].term, "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<PreparedClause> PrepareClause(const Clause& clause, const Schema& schema,
                                             const std::vector<uint32_t>& analyzer_fields,
                                             text::DocumentAnalyzer& analyzer) {
  ASHLAR_RETURN_IF_ERROR(CheckClause(clause, schema));
  PreparedClause prepared;
  prepared.occur = clause.occur;
  prepared.boost = clause.boost;
  prepared.phrase = clause.phrase;
  if (clause.field.empty()) {
    for (const uint32_t field : analyzer_fields) {
      ASHLAR_ASSIGN_OR_RETURN(auto words, WordsOf(field, clause.text, analyzer));
      prepared.words.push_back(std::move(words));
    }
    return prepared;
  }
  ASHLAR_ASSIGN_OR_RETURN(prepared.field, SearchableField(schema, clause.field));
  if (static_cast<int>(prepared.field) == schema.KeyIndex()) {
    prepared.words.push_back({{clause.text, 0}});  // keys are looked up as they are
    return prepared;
  }
  ASHLAR_ASSIGN_OR_RETURN(auto words, WordsOf(prepared.field, clause.text, analyzer));
  if (clause.phrase) ASHLAR_RETURN_IF_ERROR(CheckPhrase(schema, {prepared.field}, words));
  prepared.words.push_back(std::move(words));
  return prepared;
}

// --- planning ---

absl::Status CheckOptions(const SearchOptions& options) {
  if (options.k < 1) return InvalidArgument("k must be at least 1");
  if (!InRange(options.k1, 0, kK1Max)) return InvalidArgument(absl::StrCat("k1 ", options.k1, " is not in [0, 1000]"));
  if (!InRange(options.b, 0, 1)) return InvalidArgument(absl::StrCat("b ", options.b, " is not in [0, 1]"));
  return absl::OkStatus();
}

std::vector<uint32_t> GroupFields(const Schema& schema) {
  std::vector<uint32_t> fields;
  for (const std::string& name : schema.default_group) fields.push_back(static_cast<uint32_t>(schema.IndexOf(name)));
  std::sort(fields.begin(), fields.end());
  return fields;
}

// The fields that words without a field search, ascending.
absl::StatusOr<std::vector<uint32_t>> SearchedFields(const Schema& schema, const SearchOptions& options) {
  if (options.fields.empty()) return GroupFields(schema);
  std::vector<uint32_t> fields;
  for (const std::string& name : options.fields) {
    const int index = schema.IndexOf(name);
    if (index < 0) return InvalidArgument(absl::StrCat("fields: unknown field \"", name, "\""));
    const Field& field = schema.fields[static_cast<size_t>(index)];
    if (field.type != FieldType::kText)
      return InvalidArgument(absl::StrCat("fields: \"", name, "\" is not a text field"));
    if (std::count(fields.begin(), fields.end(), static_cast<uint32_t>(index)) > 0) {
      return InvalidArgument(absl::StrCat("fields: \"", name, "\" is named twice"));
    }
    if (!fields.empty() && schema.fields[fields[0]].analyzer != field.analyzer) {
      return InvalidArgument(
          absl::StrCat("fields: \"", name, "\" and \"", schema.fields[fields[0]].name, "\" have different analyzers"));
    }
    fields.push_back(static_cast<uint32_t>(index));
  }
  std::sort(fields.begin(), fields.end());
  return fields;
}

// The index of a set of fields. The group's own index serves the whole group, a group of one field too.
PlannedIndex IndexOfFields(const Schema& schema, const std::vector<uint32_t>& fields) {
  PlannedIndex index;
  if (!schema.default_group.empty() && fields == GroupFields(schema)) {
    index.members = {format::kGroupIndex};
    return index;
  }
  index.members = fields;
  index.is_key = fields.size() == 1 && static_cast<int>(fields[0]) == schema.KeyIndex();
  return index;
}

// Collects a plan's terms and phrases and merges equal ones.
class Planner {
 public:
  Planner(const PreparedTerms& prepared, const Schema& schema) : prepared_(prepared), schema_(schema) {}

  absl::Status Add(const PreparedClause& clause, const std::vector<uint32_t>& searched) {
    const bool without_field = clause.field == PreparedClause::kSearchedFields;
    size_t list = 0;
    if (without_field) {
      ASHLAR_ASSIGN_OR_RETURN(list, AnalyzerOf(searched));
    } else if (clause.field >= schema_.fields.size()) {
      return InvalidArgument("the query was prepared for another schema");
    }
    const std::vector<uint32_t> fields = without_field ? searched : std::vector<uint32_t>{clause.field};
    const PlannedIndex index = IndexOfFields(schema_, fields);
    std::vector<PlacedWord> words = clause.words[list];
    if (clause.phrase && words.size() > 1) {
      ASHLAR_RETURN_IF_ERROR(CheckPhrase(schema_, fields, words));
      const uint32_t first = words[0].place;
      for (PlacedWord& word : words) word.place -= first;
      AddPart(clause, index, std::move(words));
      return absl::OkStatus();
    }
    for (PlacedWord& word : words) AddPart(clause, index, {{std::move(word.term), 0}});
    return absl::OkStatus();
  }

  std::shared_ptr<const Plan> Finish() {
    auto made = std::make_shared<Plan>();
    Plan& plan = *made;
    plan.matches_nothing = true;
    for (auto& [key, part] : parts_) {
      const auto& [members, words, excludes] = key;
      const uint32_t index = IndexIn(&plan, {members, part.is_key});
      const Occur occur = excludes ? Occur::kMustNot : part.must ? Occur::kMust : Occur::kShould;
      std::sort(part.boosts.begin(), part.boosts.end());
      double boosts = 0;
      for (const double boost : part.boosts) boosts += boost;
      plan.matches_nothing = plan.matches_nothing && excludes;
      plan.has_merged_index = plan.has_merged_index || members.size() > 1;
      if (words.size() == 1) {
        plan.terms.push_back({occur, index, words[0].term, boosts});
      } else {
        plan.phrases.push_back({occur, index, words, boosts});
      }
    }
    return made;
  }

 private:
  // (index, the term or the phrase's words, whether it excludes): what makes two clauses equal. Ordered, so that the
  // plan is.
  using Key = std::tuple<std::vector<format::IndexId>, std::vector<PlacedWord>, bool>;
  struct Part {
    bool is_key = false;
    bool must = false;
    std::vector<double> boosts;
  };

  void AddPart(const PreparedClause& clause, const PlannedIndex& index, std::vector<PlacedWord> words) {
    Part& part = parts_[{index.members, std::move(words), clause.occur == Occur::kMustNot}];
    part.is_key = index.is_key;
    part.must = part.must || clause.occur == Occur::kMust;
    part.boosts.push_back(clause.boost);
  }

  absl::StatusOr<size_t> AnalyzerOf(const std::vector<uint32_t>& searched) const {
    if (searched.empty()) return InvalidArgument("the query was prepared for another schema");
    const AnalyzerOptions& wanted = schema_.fields[searched[0]].analyzer;
    const auto found = std::find(prepared_.analyzers.begin(), prepared_.analyzers.end(), wanted);
    if (found == prepared_.analyzers.end()) {
      return InvalidArgument(
          absl::StrCat("field \"", schema_.fields[searched[0]].name, "\" is newer than the query; prepare it again"));
    }
    return static_cast<size_t>(found - prepared_.analyzers.begin());
  }

  static uint32_t IndexIn(Plan* plan, const PlannedIndex& index) {
    const auto found = std::find(plan->indexes.begin(), plan->indexes.end(), index);
    if (found != plan->indexes.end()) return static_cast<uint32_t>(found - plan->indexes.begin());
    plan->indexes.push_back(index);
    return static_cast<uint32_t>(plan->indexes.size() - 1);
  }

  const PreparedTerms& prepared_;
  const Schema& schema_;
  std::map<Key, Part> parts_;
};

absl::StatusOr<std::shared_ptr<const Plan>> PlanAnew(const PreparedTerms& prepared, const Schema& schema,
                                                     const SearchOptions& options) {
  ASHLAR_ASSIGN_OR_RETURN(const std::vector<uint32_t> searched, SearchedFields(schema, options));
  Planner planner(prepared, schema);
  for (const PreparedClause& clause : prepared.clauses) ASHLAR_RETURN_IF_ERROR(planner.Add(clause, searched));
  return planner.Finish();
}

// Whether a plan made for this schema, or for one with fewer or more fields, can be used.
bool Suits(const Plan& plan, const Schema& schema) {
  return std::all_of(plan.indexes.begin(), plan.indexes.end(), [&](const PlannedIndex& index) {
    return index.members[0] == format::kGroupIndex ? !schema.default_group.empty()
                                                   : index.members.back() < schema.fields.size();
  });
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PreparedTerms>> Prepare(const Query& query, const Schema& schema,
                                                             text::DocumentAnalyzer& analyzer) {
  const bool has_positive = std::any_of(query.clauses.begin(), query.clauses.end(),
                                        [](const Clause& clause) { return clause.occur != Occur::kMustNot; });
  if (!has_positive) return InvalidArgument("the query has no word to look for");
  auto prepared = std::make_shared<PreparedTerms>();
  const std::vector<uint32_t> analyzer_fields = AnalyzerFields(schema);
  for (const uint32_t field : analyzer_fields) prepared->analyzers.push_back(schema.fields[field].analyzer);
  for (const Clause& clause : query.clauses) {
    ASHLAR_ASSIGN_OR_RETURN(PreparedClause one, PrepareClause(clause, schema, analyzer_fields, analyzer));
    prepared->clauses.push_back(std::move(one));
  }
  absl::StatusOr<std::shared_ptr<const Plan>> plan = PlanAnew(*prepared, schema, SearchOptions());
  if (plan.ok()) prepared->default_plan = *std::move(plan);
  return prepared;
}

absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const PreparedTerms& prepared, const Schema& schema,
                                                     const SearchOptions& options) {
  ASHLAR_RETURN_IF_ERROR(CheckOptions(options));
  if (options.fields.empty() && prepared.default_plan != nullptr && Suits(*prepared.default_plan, schema))
    return prepared.default_plan;
  return PlanAnew(prepared, schema, options);
}

}  // namespace ashlar::query
