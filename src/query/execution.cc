#include "src/query/execution.h"

#include <algorithm>

namespace ashlar::query {
namespace {

// How many hits can be needed.
uint64_t LimitOf(const SearchOptions& options, uint64_t live_documents) {
  if (options.offset >= live_documents) return 0;
  return options.offset + std::min(options.k, live_documents - options.offset);
}

}  // namespace

Execution::Execution(std::shared_ptr<const Plan> plan, const SearchOptions& options, IndexStatistics statistics,
                     std::pmr::memory_resource* memory)
    : memory_(memory),
      plan_(std::move(plan)),
      options_(options),
      statistics_(std::move(statistics)),
      states_(plan_->terms.size(), memory),
      phrase_states_(plan_->phrases.size(), memory),
      phrase_words_(memory),
      norms_(plan_->indexes.size(), memory),
      can_match_(!plan_->matches_nothing && statistics_.live_documents > 0),
      collected_(LimitOf(options_, statistics_.live_documents), memory),
      ranges_(memory) {
  for (const PlannedPhrase& phrase : plan_->phrases) {
    if (phrase.occur == Occur::kMustNot) continue;
    for (const PlacedWord& word : phrase.words) phrase_words_[{phrase.index, word.term}] = 0;
  }
}

absl::StatusOr<Execution> Execution::Create(const PreparedTerms& prepared, const Schema& schema,
                                            const SearchOptions& options, IndexStatistics statistics,
                                            std::pmr::memory_resource* memory) {
  ASHLAR_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, MakePlan(prepared, schema, options));
  return Execution(std::move(plan), options, std::move(statistics), memory);
}

double Execution::IdfOf(uint64_t live_frequency) const {
  return Idf(statistics_.live_documents, std::min(live_frequency, statistics_.live_documents));
}

std::optional<double> Execution::WeightOf(const PlannedPhrase& phrase) const {
  double idf = 0;
  for (const PlacedWord& word : phrase.words) {
    const uint64_t live_frequency = phrase_words_.at({phrase.index, word.term});
    if (live_frequency == 0) return std::nullopt;
    idf += IdfOf(live_frequency);
  }
  return Weight(idf, options_.k1, phrase.boost);
}

void Execution::FinishWeights() {
  if (!can_match_) return;
  for (size_t i = 0; i < norms_.size(); ++i) {
    uint64_t length_sum = 0;
    if (!plan_->indexes[i].is_key) {
      for (const format::IndexId member : plan_->indexes[i].members) length_sum += statistics_.length_sum(member);
    }
    norms_[i] = MakeNorm(options_.k1, options_.b, length_sum, statistics_.live_documents);
  }
  std::pmr::vector<double> weights(plan_->terms.size(), memory_);
  std::pmr::vector<double> scoring(memory_);
  scoring.reserve(plan_->terms.size() + plan_->phrases.size());
  for (size_t i = 0; i < plan_->terms.size(); ++i) {
    const PlannedTerm& term = plan_->terms[i];
    if (term.occur == Occur::kMust && !states_[i].scores()) can_match_ = false;
    if (term.occur == Occur::kMustNot || !states_[i].scores()) continue;
    weights[i] = Weight(IdfOf(states_[i].live_frequency), options_.k1, term.boost);
    scoring.push_back(weights[i]);
  }
  std::pmr::vector<double> phrase_weights(plan_->phrases.size(), memory_);
  for (size_t i = 0; i < plan_->phrases.size(); ++i) {
    const PlannedPhrase& phrase = plan_->phrases[i];
    if (phrase.occur == Occur::kMustNot) continue;
    const std::optional<double> weight = WeightOf(phrase);
    if (phrase.occur == Occur::kMust && !weight.has_value()) can_match_ = false;
    if (!weight.has_value()) continue;
    phrase_states_[i].scores = true;
    phrase_weights[i] = *weight;
    scoring.push_back(*weight);
  }
  if (scoring.empty()) can_match_ = false;
  if (!can_match_) return;
  scale_ = ScaleOf(scoring);
  for (size_t i = 0; i < plan_->terms.size(); ++i) states_[i].weight = ScaledWeight(weights[i], scale_);
  for (size_t i = 0; i < plan_->phrases.size(); ++i) phrase_states_[i].weight = ScaledWeight(phrase_weights[i], scale_);
}

Handle Execution::HandleOf(uint32_t put_order) const {
  // The last range that begins at or before it.
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), put_order,
                                      [](uint32_t order, const Range& range) { return order < range.base; });
  const Range& range = *(after - 1);
  return {range.index, put_order - range.base};
}

SearchResult Execution::Results() {
  collected_.scratch.GiveBack();
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.base < b.base; });
  SearchResult result;
  result.traversal = pruned_ ? Traversal::kPruned : exhaustive_ ? Traversal::kExhaustive : Traversal::kDaat;
  result.total = collected_.total;
  result.total_is_exact = collected_.total_is_exact;
  if (can_match_ && counts_only_term()) {
    result.total = states_[0].live_frequency;
    result.total_is_exact = true;
  }
  result.postings_read = collected_.postings_read;
  const std::span<const uint64_t> keys = collected_.top.Take();
  if (options_.offset >= keys.size()) return result;
  result.hits.reserve(keys.size() - options_.offset);
  for (size_t i = options_.offset; i < keys.size(); ++i) {
    result.hits.push_back({HandleOf(TopK::PutOrderOf(keys[i])), ScoreOf(TopK::ScoreOf(keys[i]), scale_)});
  }
  return result;
}

}  // namespace ashlar::query
