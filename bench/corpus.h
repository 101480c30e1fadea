// The zipf corpus: documents of words whose frequencies follow Zipf's law, the same bytes on every machine.
#ifndef ASHLAR_BENCH_CORPUS_H_
#define ASHLAR_BENCH_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/prng.h"

namespace ashlar::bench {

struct ZipfOptions {
  uint64_t documents = 0;
  uint64_t seed = 1;
  uint64_t words = 50;  // of a document; the median with variable_length
  uint64_t vocabulary = 30000;
  bool variable_length = false;  // lognormal, sigma 0.8, between 5 and 2,000 words
  uint64_t first_id = 0;         // numbers documents from here; the random stream begins at the seed all the same
};

inline constexpr double kZipfExponent = 1.07;

// Document i (from 0) is {"id":"d<first_id + i>","body":"w<rank>x w<rank>x ..."}. Each word takes one draw u, uniform
// in [0, 1): the rank, from 1, is the first whose cumulated probability is above u; probability of rank r is
// proportional to r^-1.07. With variable length two draws before the words give it, by Box and Muller. Threads: one.
// Memory: 24 bytes a word of the vocabulary.
class ZipfCorpus {
 public:
  explicit ZipfCorpus(const ZipfOptions& options);

  // The next document's words with blanks between them. False after the last.
  bool Next(std::string* id, std::string* body);
  // Appends the next document as a line of JSON.
  bool NextLine(std::string* lines);

  uint64_t words_made() const { return words_made_; }

 private:
  uint64_t DrawLength();
  size_t DrawRank();  // from 0

  ZipfOptions options_;
  Prng prng_;
  std::vector<double> cumulated_;  // by rank
  std::vector<std::string> terms_;
  uint64_t next_ = 0;
  uint64_t words_made_ = 0;
  std::string id_, body_;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_CORPUS_H_
