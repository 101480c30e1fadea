// The query syntax of ashlar/query.h:
//
//   query  = clause (space clause)*             space: one or more of blank, tab, CR, LF, FF, VT
//   clause = ['+' | '-'] [field ':'] (word | phrase) ['^' boost]
//   phrase = '"' character* '"'
//   boost  = a decimal number in (0, 1e6]
//
// '\' takes the sign of the next character. The first ':' ends the field, the first '^' after it begins the boost; a
// sign counts only at the start of a clause. A quotation mark begins a phrase where a word could begin, and the next
// one ends it: between them only '\' and '"' mean anything. Everything else, other quotation marks too (5"), is left to
// the analyzer. What follows a phrase without a space, other than a boost, is an error: it may get a meaning.
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ashlar/query.h"
#include "src/base/status.h"
#include "src/query/prepare.h"
#include "src/text/analyzer.h"

namespace ashlar {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Columns count characters from 1. A continuation byte of UTF-8 begins no character.
size_t ColumnOf(std::string_view text, size_t offset) {
  size_t column = 1;
  for (size_t i = 0; i < offset; ++i) column += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
  return column;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Query> Parse() {
    if (const size_t bad = text::FirstInvalidUtf8(text_); bad < text_.size()) return Error(bad, "invalid UTF-8");
    Query query;
    for (SkipSpace(); at_ < text_.size(); SkipSpace()) {
      ASHLAR_ASSIGN_OR_RETURN(Clause clause, ParseClause());
      query.clauses.push_back(std::move(clause));
    }
    return query;
  }

 private:
  absl::Status Error(size_t offset, std::string_view message) const {
    return InvalidArgument(absl::StrCat("query, column ", ColumnOf(text_, offset), ": ", ToAbsl(message)));
  }

  bool AtEnd() const { return at_ == text_.size() || IsSpace(text_[at_]); }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }

  absl::StatusOr<Clause> ParseClause() {
    Clause clause;
    ParseSign(&clause);
    if (!AtEnd() && (text_[at_] == '+' || text_[at_] == '-')) return Error(at_, "a second sign; write \\+ or \\-");
    ASHLAR_RETURN_IF_ERROR(ParseText(/*may_be_field=*/true, &clause));
    if (!clause.phrase && !AtEnd() && text_[at_] == ':') {
      if (clause.text.empty()) return Error(at_, "no field before ':'");
      ++at_;
      clause.field = std::exchange(clause.text, std::string());
      ASHLAR_RETURN_IF_ERROR(ParseText(/*may_be_field=*/false, &clause));
    }
    // An empty phrase is a phrase whose words were all removed.
    if (clause.text.empty() && !clause.phrase) return Error(at_, "expected a word");
    ASHLAR_RETURN_IF_ERROR(ParseBoost(&clause.boost));
    return clause;
  }

  void ParseSign(Clause* clause) {
    if (text_[at_] == '+') clause->occur = Occur::kMust;
    if (text_[at_] == '-') clause->occur = Occur::kMustNot;
    if (clause->occur != Occur::kShould) ++at_;
  }

  absl::Status ParseText(bool may_be_field, Clause* clause) {
    clause->phrase = !AtEnd() && text_[at_] == '"';
    return clause->phrase ? ParsePhrase(&clause->text) : ParseWord(may_be_field, &clause->text);
  }

  absl::Status ParsePhrase(std::string* words) {
    const size_t begin = at_++;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      words->push_back(text_[at_]);
    }
    if (at_ == text_.size()) return Error(begin, "a quotation mark that no other one ends; write \\\" for the sign");
    ++at_;
    if (!AtEnd() && text_[at_] != '^') return Error(at_, "expected a space or '^' after a phrase");
    return absl::OkStatus();
  }

  // Stops at a space, at '^' and, if the word may turn out to be a field, at ':'.
  absl::Status ParseWord(bool may_be_field, std::string* word) {
    for (; !AtEnd() && text_[at_] != '^' && !(may_be_field && text_[at_] == ':'); ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) return Error(at_ - 1, "nothing after '\\'");
      word->push_back(text_[at_]);
    }
    return absl::OkStatus();
  }

  absl::Status ParseBoost(double* boost) {
    if (AtEnd()) return absl::OkStatus();
    const size_t begin = ++at_;  // behind '^'
    while (!AtEnd()) ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *boost);
    const bool whole = end == digits.data() + digits.size();
    if (!whole || (error != std::errc() && error != std::errc::result_out_of_range)) {
      return Error(begin, "expected a number after '^'");
    }
    if (error != std::errc() || !(*boost > 0 && *boost <= query::kBoostMax)) {
      return Error(begin, "a boost must be greater than 0 and at most 1e6");
    }
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<Query> ParseQuery(std::string_view text) { return Parser(text).Parse(); }

Query PlainWords(std::string_view text) {
  Query query;
  for (size_t at = 0; at < text.size();) {
    if (IsSpace(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && !IsSpace(text[at])) ++at;
    Clause clause;
    clause.text = std::string(text.substr(begin, at - begin));
    query.clauses.push_back(std::move(clause));
  }
  return query;
}

}  // namespace ashlar
