// wordnet-to-jsonl FOLDER: WordNet's synsets as JSON Lines on standard output, one document a synset:
//
//   {"id":"n00001740","title":"entity","body":"that which is perceived or known or inferred to have its own ..."}
//
// FOLDER holds data.noun, data.verb, data.adj and data.adv, as Debian's wordnet-base installs them in
// /usr/share/wordnet. A line is "offset file type count word id [word id ...] ... | gloss", see wndb(5WN); the count is
// hexadecimal, the licence at the top is indented. The files are Latin-1.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

namespace {

std::string FromLatin1(std::string_view text) {
  std::string utf8;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xC0 | (byte >> 6));
      utf8 += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return utf8;
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \r") - first + 1);
}

// False if the line is not a synset.
bool Convert(const std::string& line, char part_of_speech, nlohmann::ordered_json* document) {
  std::istringstream fields(line);
  std::string offset, file, type, count, word, id;
  if (!(fields >> offset >> file >> type >> count)) return false;
  const unsigned long words = std::strtoul(count.c_str(), nullptr, 16);
  std::string title;
  for (unsigned long i = 0; i < words; ++i) {
    if (!(fields >> word >> id)) return false;
    for (char& c : word) {
      if (c == '_') c = ' ';
    }
    title += (i > 0 ? ", " : "") + word;
  }
  const size_t bar = line.find(" | ");
  if (bar == std::string::npos) return false;
  (*document)["id"] = part_of_speech + offset;
  (*document)["title"] = FromLatin1(title);
  (*document)["body"] = FromLatin1(Trim(std::string_view(line).substr(bar + 3)));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: wordnet-to-jsonl FOLDER\n";
    return 2;
  }
  for (const std::string_view name : {"noun", "verb", "adj", "adv"}) {
    const std::string path = std::string(argv[1]) + "/data." + std::string(name);
    std::ifstream file(path);
    if (!file) {
      std::cerr << "wordnet-to-jsonl: " << path << ": cannot be read\n";
      return 1;
    }
    // 'a' is taken by adjectives.
    const char part_of_speech = name == "adv" ? 'r' : name[0];
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.starts_with("  ")) continue;
      nlohmann::ordered_json document;
      if (!Convert(line, part_of_speech, &document)) {
        std::cerr << "wordnet-to-jsonl: " << path << ":" << number << ": is not a synset\n";
        return 1;
      }
      std::cout << document.dump() << '\n';
    }
  }
  std::cout.flush();
  return std::cout ? 0 : 1;
}
