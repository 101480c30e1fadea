// Feeds a fuzz target the files named on the command line: whole, every prefix, and 20,000 seeded damages of each.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "src/base/prng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void Feed(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (whole.empty()) {
      std::fprintf(stderr, "%s: no bytes\n", argv[i]);
      return 1;
    }
    for (size_t length = 0; length <= whole.size(); ++length) Feed(whole.substr(0, length));
    ashlar::Prng prng(static_cast<uint64_t>(i));
    for (int round = 0; round < 20000; ++round) {
      // A stretch of the file, so that decoders of its parts are met too, with a few bytes changed.
      std::string bytes = whole.substr(prng.Below(whole.size()));
      bytes.resize(1 + prng.Below(bytes.size()));
      for (uint64_t n = prng.Below(6); n > 0; --n) bytes[prng.Below(bytes.size())] = static_cast<char>(prng.Next());
      Feed(bytes);
    }
    inputs += whole.size() + 1 + 20000;
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(inputs));
  return inputs == 0;
}
