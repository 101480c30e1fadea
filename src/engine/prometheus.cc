#include "ashlar/prometheus.h"

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status.h"

namespace ashlar {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// What each counter of Stats::counters is called; one that is not here keeps its own name.
struct KnownCounter {
  std::string_view counter;
  std::string_view metric;
  std::string_view help;
  double unit;  // of one count
};
constexpr KnownCounter kKnownCounters[] = {
    {"batches", "batches", "Batches acknowledged.", 1},
    {"operations", "operations", "Operations in them.", 1},
    {"groups", "write_groups", "Groups of batches that shared one journal write.", 1},
    {"flushes", "flushes", "Overlays flushed.", 1},
    {"bytes_flushed", "flushed_bytes", "Bytes of segments that flushes wrote.", 1},
    {"merges", "merges", "Merges done.", 1},
    {"segments_merged", "merged_segments", "Segments that were merged into others.", 1},
    {"bytes_merged", "merged_bytes", "Bytes of segments that merges wrote.", 1},
    {"purges", "purges", "Purges done.", 1},
    {"stalls", "write_stalls", "Writes that waited for memory.", 1},
    {"stall_ns", "write_stall_seconds", "Time that writes waited for memory.", 1e-9},
    {"reader_retries", "reader_retries", "Readings begun again because the writer had gone on.", 1},
    {"tokens_cut", "tokens_cut", "Tokens that were too long and were cut.", 1},
    {"journal_writes", "journal_writes", "Writes to the journal.", 1},
    {"journal_syncs", "journal_syncs", "Syncs of the journal.", 1},
    {"journal_bytes", "journal_written_bytes", "Bytes written to the journal.", 1},
    {"journal_rotations", "journal_rotations", "Changes to a new journal file.", 1},
    {"journal_files_created", "journal_files_created", "Journal files made.", 1},
    {"journal_files_recycled", "journal_files_recycled", "Journal files used again.", 1},
};

class Writer {
 public:
  explicit Writer(const std::map<std::string, std::string>& labels) : labels_(labels.begin(), labels.end()) {}

  void Begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = absl::StrCat("ashlar_", ToAbsl(name));
    absl::StrAppend(&text_, "# HELP ", name_, " ", ToAbsl(help), "\n# TYPE ", name_, " ", ToAbsl(type), "\n");
  }
  void Sample(const std::string& value, const Labels& labels = {}) {
    text_ += name_;
    std::string separator = "{";
    for (const Labels* list : {&labels_, &labels})
      for (const auto& [label, content] : *list) {
        absl::StrAppend(&text_, separator, label, "=\"", Escaped(content), "\"");
        separator = ",";
      }
    if (separator == ",") text_ += "}";
    absl::StrAppend(&text_, " ", value, "\n");
  }
  void Sample(uint64_t value, const Labels& labels = {}) { Sample(absl::StrCat(value), labels); }
  void Gauge(std::string_view name, std::string_view help, uint64_t value) {
    Begin(name, "gauge", help);
    Sample(value);
  }
  void Gauge(std::string_view name, std::string_view help, double value) {
    Begin(name, "gauge", help);
    Sample(Number(value));
  }
  std::string Take() { return std::move(text_); }

  // With all digits: absl::StrCat gives six.
  static std::string Number(double value) {
    char digits[32];
    return std::string(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%.15g", value)));
  }

 private:
  static std::string Escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
      if (c == '\n') {
        result += "\\n";
        continue;
      }
      if (c == '\\' || c == '"') result += '\\';
      result += c;
    }
    return result;
  }

  const Labels labels_;
  std::string name_;
  std::string text_;
};

constexpr double kSecondsPerMs = 1e-3;

void WriteDocuments(const Stats& stats, Writer* out) {
  out->Gauge("documents", "Live documents.", stats.documents);
  out->Gauge("deleted_documents", "Dead documents that are still in segments or overlay.", stats.deleted);
  out->Gauge("overlay_documents", "Documents that are not flushed yet, dead ones included.", stats.overlay_documents);
  out->Gauge("overlay_bytes", "Memory of the overlay.", stats.overlay_bytes);
  out->Gauge("watermark_bytes", "Bytes of the watermark; 0: it is empty, or no batch has had one.",
             uint64_t{stats.watermark.value_or("").size()});
  out->Gauge("visible_sequence", "Sequence that a snapshot taken now shows.", stats.visible_sequence);
}

void WriteSegments(const Stats& stats, Writer* out) {
  out->Gauge("segments", "Segments.", uint64_t{stats.segments.size()});
  const auto per_segment = [&](std::string_view name, std::string_view help, auto value) {
    if (stats.segments.empty()) return;
    out->Begin(name, "gauge", help);
    for (const SegmentStats& segment : stats.segments)
      out->Sample(uint64_t{value(segment)}, {{"segment", absl::StrCat(segment.id)}});
  };
  per_segment("segment_documents", "Documents of a segment, dead ones included.",
              [](const SegmentStats& segment) { return segment.documents; });
  per_segment("segment_deleted_documents", "Dead documents of a segment.",
              [](const SegmentStats& segment) { return segment.deleted; });
  per_segment("segment_damaged", "1 if a segment is quarantined for damage.",
              [](const SegmentStats& segment) { return segment.damage.empty() ? 0u : 1u; });
  if (stats.segments.empty()) return;
  out->Begin("segment_section_bytes", "gauge", "Bytes of a segment's section.");
  for (const SegmentStats& segment : stats.segments)
    for (const auto& [section, bytes] : segment.bytes)
      out->Sample(bytes, {{"segment", absl::StrCat(segment.id)}, {"section", section}});
}

void WriteJournal(const Stats& stats, Writer* out) {
  out->Gauge("journal_files", "Journal files.", stats.journal_files);
  out->Gauge("journal_bytes", "Bytes of the journal files.", stats.journal_bytes);
  out->Gauge("journal_replay_bytes", "Bytes that a reopening would replay now.", stats.replay_bytes);
  out->Gauge("recovered_batches", "Batches that the opening replayed.", stats.recovery.batches_replayed);
  out->Gauge("recovered_bytes", "Bytes that the opening replayed.", stats.recovery.bytes_replayed);
  out->Gauge("recovery_torn_bytes", "Bytes of a torn tail that the opening cut.", stats.recovery.torn_bytes);
  out->Gauge("recovery_orphans_removed", "Files of unfinished work that the opening removed.",
             stats.recovery.orphans_removed);
}

void WriteState(const Stats& stats, Writer* out) {
  out->Begin("state", "gauge", "1 for the state that the store is in, 0 for the others.");
  for (const StoreState state :
       {StoreState::kHealthy, StoreState::kNoSpace, StoreState::kFailedSync, StoreState::kClosed, StoreState::kDamaged})
    out->Sample(uint64_t{state == stats.state}, {{"state", std::string(StoreStateName(state))}});
  out->Gauge("state_since_timestamp_seconds", "Since when the store is in its state, Unix time.",
             static_cast<double>(stats.state_since_ms) * kSecondsPerMs);
  out->Gauge("last_failure_timestamp_seconds", "When a write, flush, merge or sync failed last, Unix time; 0: never.",
             static_cast<double>(stats.last_failure_ms) * kSecondsPerMs);
  out->Gauge("merges_paused", "1 while merges that nobody asked for are paused.", uint64_t{stats.merges_are_paused});
  out->Gauge("write_amplification", "Bytes of segments written, by byte flushed; 0: nothing was flushed.",
             stats.write_amplification);
  out->Gauge("oldest_snapshot_sequence", "Sequence of the oldest snapshot that is held; 0: none is.",
             stats.oldest_snapshot_sequence);
  out->Gauge("oldest_snapshot_age_seconds", "For how long the oldest snapshot has been held.",
             static_cast<double>(stats.oldest_snapshot_age_ms) * kSecondsPerMs);
  out->Begin("store_info", "gauge", "1; how the store is open, and what made its terms and would make new ones.");
  out->Sample(uint64_t{1}, {{"open_mode", stats.open_mode == OpenMode::kMapped ? "mapped" : "array"},
                            {"scheduler", stats.scheduler == Scheduler::kBackground ? "background" : "cooperative"},
                            {"analyzer", stats.analyzer_identity},
                            {"analyzer_build", stats.analyzer_identity_build}});
}

void WriteCounters(const Stats& stats, Writer* out) {
  for (const auto& [name, value] : stats.counters) {
    const KnownCounter* known = nullptr;
    for (const KnownCounter& candidate : kKnownCounters)
      if (candidate.counter == name) known = &candidate;
    const std::string metric =
        absl::StrCat(known != nullptr ? ToAbsl(known->metric) : absl::string_view(name), "_total");
    out->Begin(metric, "counter", known != nullptr ? known->help : "See Stats::counters.");
    if (known == nullptr || known->unit == 1) {
      out->Sample(value);
    } else {
      out->Sample(Writer::Number(static_cast<double>(value) * known->unit));
    }
  }
}

}  // namespace

std::string PrometheusText(const Stats& stats, const std::map<std::string, std::string>& labels) {
  Writer out(labels);
  WriteDocuments(stats, &out);
  WriteSegments(stats, &out);
  WriteJournal(stats, &out);
  WriteState(stats, &out);
  WriteCounters(stats, &out);
  return out.Take();
}

}  // namespace ashlar
