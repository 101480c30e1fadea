#include "bench/lane.h"

#include <lmdb.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unicode/uversion.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ashlar/version.h"
#include "src/base/status.h"
#include "src/env/env.h"

namespace ashlar::bench {
namespace {

// The value of the first line "name : value" of a /proc file.
std::string ProcField(const char* path, std::string_view name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    const size_t value = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "unknown";
}

uint64_t ProcKilobytes(std::string_view name) {
  return std::strtoull(ProcField("/proc/self/status", name).c_str(), nullptr, 10);
}

std::string InstructionSets() {
  const std::string flags = " " + ProcField("/proc/cpuinfo", "flags") + " ";
  std::string known;
  for (const char* name : {"sse4_2", "avx2", "avx512f", "avx512bw", "avx512vbmi", "avx512_vbmi2"}) {
    if (flags.find(absl::StrCat(" ", name, " ")) != std::string::npos)
      absl::StrAppend(&known, known.empty() ? "" : " ", name);
  }
  return known;
}

std::string Compiler() {
#if defined(__clang__)
  return absl::StrCat("clang ", __clang_version__);
#else
  return absl::StrCat("g++ ", __VERSION__);
#endif
}

std::string FileSystemName(const std::string& directory) {
  struct statfs facts;
  const std::filesystem::path parent = std::filesystem::absolute(directory).parent_path();
  if (statfs(parent.c_str(), &facts) != 0) return "unknown";
  switch (static_cast<uint64_t>(facts.f_type)) {
    case 0xEF53:
      return "ext4";
    case 0x01021994:
      return "tmpfs";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x794C7630:
      return "overlay";
    default:
      return absl::StrFormat("0x%x", static_cast<uint64_t>(facts.f_type));
  }
}

}  // namespace

Json MachineFacts(const std::string& directory) {
  struct utsname system;
  uname(&system);
  Json facts;
  facts["cpu"] = ProcField("/proc/cpuinfo", "model name");
  facts["cores"] = std::thread::hardware_concurrency();
  facts["isa"] = InstructionSets();
  facts["kernel"] = system.release;
  facts["filesystem"] = FileSystemName(directory);
  facts["memory"] = ProcField("/proc/meminfo", "MemTotal");
  facts["compiler"] = Compiler();
#ifdef NDEBUG
  facts["build_type"] = "release";
#else
  facts["build_type"] = "assertions";
#endif
  facts["libraries"] = {{"lmdb", MDB_VERSION_STRING ""},
                        {"xxhash", XXH_versionNumber()},
                        {"zstd", ZSTD_versionString()},
                        {"icu", U_ICU_VERSION}};
  return facts;
}

Json LoadAverages() {
  std::ifstream file("/proc/loadavg");
  Json loads = Json::array();
  double load = 0;
  for (int i = 0; i < 3 && file >> load; ++i) loads.push_back(load);
  return loads;
}

uint64_t PeakBytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void ResetPeakBytes() { std::ofstream("/proc/self/clear_refs") << 5; }
uint64_t PeakBytesSinceReset() { return ProcKilobytes("VmHWM") * 1024; }

uint64_t OwnBytes() {
  malloc_trim(0);  // what was given back to the allocator is not kept
  return ProcKilobytes("RssAnon") * 1024;
}

Written WrittenBytes() {
  return {std::strtoull(ProcField("/proc/self/io", "wchar").c_str(), nullptr, 10),
          std::strtoull(ProcField("/proc/self/io", "syscw").c_str(), nullptr, 10)};
}

uint64_t ProcessCpuNs() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  };
  return (us(usage.ru_utime) + us(usage.ru_stime)) * 1000;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

uint64_t DirectoryBytes(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

uint64_t NowNs() {
  static env::Clock* const clock = env::PosixEnv().clock;
  return clock->MonotonicNs();
}

Json PhaseRow(std::string_view phase, uint64_t ns, const std::string& directory) {
  return {{"phase", phase}, {"seconds", static_cast<double>(ns / 1000) / 1e6}, {"bytes", DirectoryBytes(directory)}};
}

void Latencies::Report(Json* row) const {
  std::vector<uint64_t> sorted = ns_;
  std::sort(sorted.begin(), sorted.end());
  const auto us = [](double ns) { return std::round(ns) / 1000; };
  const auto at = [&](double part) {
    return us(static_cast<double>(sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))]));
  };
  (*row)["n"] = sorted.size();
  if (sorted.empty()) return;
  (*row)["p50_us"] = at(0.5);
  (*row)["p99_us"] = at(0.99);
  (*row)["min_us"] = at(0);
  (*row)["mean_us"] = us(static_cast<double>(std::accumulate(sorted.begin(), sorted.end(), uint64_t{0})) /
                         static_cast<double>(sorted.size()));
}

double Latencies::QuantileUs(double part) const {
  std::vector<uint64_t> sorted = ns_;
  std::sort(sorted.begin(), sorted.end());
  return static_cast<double>(sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))]) / 1000;
}

double Latencies::MedianUs() const { return QuantileUs(0.5); }

Report::Report(std::string lane, const LaneOptions& options)
    : lane_(std::move(lane)), options_(options), load_before_(LoadAverages()) {
  corpus_ = {{"kind", "zipf"},
             {"docs", options.corpus.documents},
             {"words", options.corpus.words},
             {"vocab", options.corpus.vocabulary},
             {"exponent", kZipfExponent},
             {"seed", options.corpus.seed},
             {"variable_length", options.corpus.variable_length}};
}

void Report::AddRow(Json row) {
  std::string line;
  for (const auto& member : row.items()) {
    const Json& value = member.value();
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    absl::StrAppend(&line, line.empty() ? "" : "  ", member.key(), " ", text);
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

void Report::NotMeasured(std::string what) { not_measured_.push_back(std::move(what)); }

absl::Status Report::Finish() {
  if (options_.json_file.empty()) return absl::OkStatus();
  Json report;
  report["lane"] = lane_;
  report["version"] = ASHLAR_VERSION;
  report["machine"] = MachineFacts(options_.directory);
  report["load_before"] = load_before_;
  report["load_after"] = LoadAverages();
  report["corpus"] = corpus_;
  report["rows"] = rows_;
  report["not_measured"] = not_measured_;
  std::ofstream file(options_.json_file);
  file << report.dump(1) << "\n";
  file.close();
  if (!file) return Internal(absl::StrCat(options_.json_file, ": could not be written"));
  return absl::OkStatus();
}

}  // namespace ashlar::bench
