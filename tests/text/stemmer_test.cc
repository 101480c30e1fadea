// Snowball through our cache gives Snowball's stems.
#include "src/text/stemmer.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "src/text/analyzer.h"
#include "tests/text/test_data.h"

namespace ashlar::text {
namespace {

struct Vocabulary {
  const char* algorithm;
  size_t words;
  // The lists are of Snowball 3; 2.2.0 (Debian 12) knows fewer exceptions. English: a list of single words (added,
  // internal, interval, evening ...). German: the suffixes -et, -eln and -ae- are new there. Porter: "s" has an empty
  // stem, where we keep the word.
  size_t different_max;
};

class Vocabularies : public testing::TestWithParam<Vocabulary> {};

TEST_P(Vocabularies, GiveTheListedStems) {
  const Vocabulary v = GetParam();
  const std::string file = ReadTestData(std::string(v.algorithm) + ".tsv.gz");
  ASSERT_FALSE(file.empty());
  absl::StatusOr<std::unique_ptr<Stemmer>> stemmer = Stemmer::Create(v.algorithm);
  ASSERT_TRUE(stemmer.ok()) << stemmer.status();
  // Twice: from Snowball and, where the slot still holds it, from the cache.
  size_t words = 0;
  size_t different = 0;
  for (const std::string_view line : SplitLines(file)) {
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string_view::npos);
    const std::string word(line.substr(0, tab));
    std::string_view first;
    ASSERT_TRUE((*stemmer)->Stem(word, &first));
    const std::string stem(first);
    std::string_view again;
    ASSERT_TRUE((*stemmer)->Stem(word, &again));
    ASSERT_EQ(again, stem) << word;
    ++words;
    if (stem == line.substr(tab + 1)) continue;
    if (++different <= 20)
      std::cout << v.algorithm << ": " << word << " -> " << stem << ", listed " << line.substr(tab + 1) << "\n";
  }
  EXPECT_EQ(words, v.words);
  EXPECT_LE(different, v.different_max);
  std::cout << v.algorithm << ": " << words << " words, " << different << " different\n";
}

INSTANTIATE_TEST_SUITE_P(Snowball, Vocabularies,
                         testing::Values(Vocabulary{"english", 42649, 57}, Vocabulary{"porter", 42603, 1},
                                         Vocabulary{"german", 35033, 1247}),
                         [](const auto& test) { return std::string(test.param.algorithm); });

TEST(Stemmer, EveryListedAlgorithmWorks) {
  const std::vector<std::string> names = StemmerNames();
  ASSERT_GT(names.size(), 20u);
  EXPECT_EQ(names[0], "none");
  for (size_t i = 1; i < names.size(); ++i) {
    absl::StatusOr<std::unique_ptr<Stemmer>> stemmer = Stemmer::Create(names[i]);
    ASSERT_TRUE(stemmer.ok()) << names[i];
    std::string_view stem;
    ASSERT_TRUE((*stemmer)->Stem("words", &stem));
    EXPECT_FALSE(stem.empty()) << names[i];
  }
}

TEST(Stemmer, UnknownNamesAreInvalid) {
  for (const char* name : {"none", "", "klingon", "ENGLISH", "en"}) {
    const absl::Status status = Stemmer::Create(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(Stemmer, CacheTellsWordsWithTheSameEndsApart) {
  absl::StatusOr<std::unique_ptr<Stemmer>> stemmer = Stemmer::Create("porter");
  ASSERT_TRUE(stemmer.ok());
  // Equal length, first and last eight bytes: three words for two slots.
  for (int round = 0; round < 3; ++round) {
    for (const char middle : {'X', 'Y', 'Z'}) {
      const std::string word = std::string("abcdefgh") + middle + "ijklmnop";
      std::string_view stem;
      ASSERT_TRUE((*stemmer)->Stem(word + "s", &stem));
      EXPECT_EQ(stem, word);
      ASSERT_TRUE((*stemmer)->Stem(word, &stem));
      EXPECT_EQ(stem, word);
    }
  }
}

}  // namespace
}  // namespace ashlar::text
