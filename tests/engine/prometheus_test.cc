// The metrics page, read by the rules of Prometheus' text format (0.0.4).
#include "ashlar/prometheus.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "ashlar/store.h"
#include "tests/support/status_matchers.h"

namespace ashlar {
namespace {

bool IsName(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

struct Page {
  std::map<std::string, std::string> types;  // by metric
  std::map<std::string, double> samples;     // "name" or "name{a=x,b=y}", labels unescaped and in order of name
};

// Reads `name="value",...}`; false if it is not that.
bool ReadLabels(std::istream& in, std::map<std::string, std::string>* labels) {
  while (true) {
    std::string name, value;
    if (!std::getline(in, name, '=') || !IsName(name) || in.get() != '"') return false;
    for (int c = in.get(); c != '"'; c = in.get()) {
      if (c == EOF || c == '\n') return false;
      if (c == '\\') {
        c = in.get();
        if (c != '\\' && c != '"' && c != 'n') return false;
        if (c == 'n') c = '\n';
      }
      value += static_cast<char>(c);
    }
    if (!labels->emplace(name, value).second) return false;
    const int next = in.get();
    if (next == '}') return true;
    if (next != ',') return false;
  }
}

void ReadSample(const std::string& line, const std::string& metric, Page* page) {
  const size_t end = line.find_first_of("{ ");
  ASSERT_NE(end, std::string::npos) << line;
  std::string name = line.substr(0, end);
  EXPECT_EQ(name, metric) << "each metric's lines stand together";
  std::istringstream rest(line.substr(end));
  if (rest.peek() == '{') {
    rest.get();
    std::map<std::string, std::string> labels;
    ASSERT_TRUE(ReadLabels(rest, &labels)) << line;
    std::string separator = "{";
    for (const auto& [label, value] : labels) {
      name += separator + label + "=" + value;
      separator = ",";
    }
    name += "}";
  }
  ASSERT_EQ(rest.get(), ' ') << line;
  double value = 0;
  ASSERT_TRUE(rest >> value) << line;
  EXPECT_EQ(rest.peek(), EOF) << line;
  EXPECT_TRUE(page->samples.emplace(name, value).second) << "twice: " << name;
}

Page Parse(const std::string& text) {
  Page page;
  EXPECT_TRUE(text.ends_with('\n'));
  std::istringstream in(text);
  std::string line, metric, helped;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string sign, keyword, name, type, more;
    if (!line.starts_with('#')) {
      ReadSample(line, metric, &page);
      continue;
    }
    words >> sign >> keyword >> name;
    EXPECT_TRUE(IsName(name)) << line;
    if (keyword == "HELP") {
      helped = name;
      EXPECT_TRUE(words >> more) << "no help: " << line;
      continue;
    }
    EXPECT_EQ(keyword, "TYPE");
    EXPECT_EQ(helped, name) << "HELP before TYPE";
    words >> type;
    EXPECT_TRUE(type == "gauge" || type == "counter") << line;
    EXPECT_EQ(type == "counter", name.ends_with("_total")) << line;
    EXPECT_TRUE(page.types.emplace(name, type).second) << "twice: " << line;
    metric = name;
  }
  return page;
}

std::unique_ptr<Store> SmallStore() {
  Schema schema;
  schema.key = "id";
  schema.default_group = {"body"};
  schema.fields = {{"id", FieldType::kKeyword, true, false, false, {}},
                   {"body", FieldType::kText, true, true, false, {}}};
  auto store = Store::OpenInMemory(schema);
  EXPECT_OK(store);
  for (const char* key : {"a", "b", "c"}) EXPECT_OK((*store)->Put(Document().Add("id", key).Add("body", "stone")));
  EXPECT_OK((*store)->Flush());
  EXPECT_OK((*store)->Delete("b"));
  EXPECT_OK((*store)->Put(Document().Add("id", "d").Add("body", "wall")));
  return *std::move(store);
}

TEST(PrometheusTest, EveryNumberOfTheStatistics) {
  const std::unique_ptr<Store> store = SmallStore();
  Stats stats = store->GetStats();
  const Page page = Parse(PrometheusText(stats));
  EXPECT_EQ(page.samples.at("ashlar_documents"), 3);
  EXPECT_EQ(page.samples.at("ashlar_deleted_documents"), 1);
  EXPECT_EQ(page.samples.at("ashlar_segments"), 1);
  EXPECT_EQ(page.samples.at("ashlar_overlay_documents"), 1);
  const std::string segment = "{segment=" + std::to_string(stats.segments[0].id) + "}";
  EXPECT_EQ(page.samples.at("ashlar_segment_documents" + segment), 3);
  EXPECT_EQ(page.samples.at("ashlar_segment_deleted_documents" + segment), 1);
  EXPECT_EQ(page.samples.at("ashlar_segment_damaged" + segment), 0);
  for (const auto& [section, bytes] : stats.segments[0].bytes)
    EXPECT_EQ(page.samples.at("ashlar_segment_section_bytes{section=" + section + "," + segment.substr(1)), bytes);
  EXPECT_EQ(page.samples.at("ashlar_state{state=healthy}"), 1);
  EXPECT_EQ(page.samples.at("ashlar_state{state=failed_sync}"), 0);
  EXPECT_EQ(page.samples.at("ashlar_visible_sequence"), static_cast<double>(stats.visible_sequence));
  EXPECT_EQ(page.samples.at("ashlar_flushes_total"), 1);
  EXPECT_EQ(page.samples.at("ashlar_batches_total"), 5);
  EXPECT_EQ(page.types.at("ashlar_journal_written_bytes_total"), "counter");
  EXPECT_EQ(page.types.at("ashlar_journal_bytes"), "gauge");
  size_t counters = 0;
  for (const auto& [name, type] : page.types) counters += type == "counter" ? 1 : 0;
  EXPECT_EQ(counters, stats.counters.size());
}

TEST(PrometheusTest, BaseUnits) {
  Stats stats;
  stats.counters = {{"stall_ns", 2'500'000'000}, {"something_new", 4}};
  stats.state_since_ms = 1'700'000'000'250;
  stats.oldest_snapshot_age_ms = 1500;
  stats.state = StoreState::kNoSpace;
  stats.write_amplification = 1.25;
  stats.documents = 123'456'789'012'345;
  const Page page = Parse(PrometheusText(stats));
  EXPECT_DOUBLE_EQ(page.samples.at("ashlar_write_stall_seconds_total"), 2.5);
  EXPECT_EQ(page.samples.at("ashlar_something_new_total"), 4);
  EXPECT_DOUBLE_EQ(page.samples.at("ashlar_state_since_timestamp_seconds"), 1'700'000'000.25);
  EXPECT_DOUBLE_EQ(page.samples.at("ashlar_oldest_snapshot_age_seconds"), 1.5);
  EXPECT_EQ(page.samples.at("ashlar_state{state=no_space}"), 1);
  EXPECT_EQ(page.samples.at("ashlar_write_amplification"), 1.25);
  EXPECT_EQ(page.samples.at("ashlar_documents"), 123'456'789'012'345);
  EXPECT_EQ(page.samples.count("ashlar_segment_documents"), 0u) << "no metric without a sample";
}

TEST(PrometheusTest, LabelsAreEscapedAndOnEverySample) {
  const std::unique_ptr<Store> store = SmallStore();
  const std::string name = "a \"b\"\\c\nd \u00e9, {x=y}";
  const Page page = Parse(PrometheusText(store->GetStats(), {{"store", name}}));
  EXPECT_EQ(page.samples.at("ashlar_documents{store=" + name + "}"), 3);
  for (const auto& [sample, value] : page.samples) EXPECT_NE(sample.find("store=" + name), std::string::npos) << sample;
}

}  // namespace
}  // namespace ashlar
