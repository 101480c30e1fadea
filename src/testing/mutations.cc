// Mutation runs: each site switched off in a process of its own, until a driver finds something.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ashlar/testing/crash_lab.h"
#include "src/base/site.h"
#include "src/base/status.h"

namespace ashlar::testing {
namespace {

constexpr unsigned kChildSeconds = 900;

// One line each, in this order.
std::string Encode(const LabReport& report) {
  std::string text = absl::StrCat(report.states, "\n", report.seconds, "\n");
  if (report.findings.empty()) return text;
  const LabFinding& finding = report.findings[0];
  std::string message = finding.message;
  std::replace(message.begin(), message.end(), '\n', ' ');
  absl::StrAppend(&text, finding.driver, "\n", finding.workload, "\n", finding.seed, "\n", message, "\n");
  return text;
}

void Decode(const std::string& text, MutationResult* result) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() > 2) {
    result->states = std::strtoull(lines[0].c_str(), nullptr, 10);
    result->seconds = std::strtod(lines[1].c_str(), nullptr);
  }
  if (lines.size() < 6) return;
  result->found = true;
  result->driver = lines[2];
  result->workload = lines[3];
  result->seed = std::strtoull(lines[4].c_str(), nullptr, 10);
  result->message = lines[5];
}

// In the child: no way back.
[[noreturn]] void RunChild(const CrashLabOptions& options, Site site, int out) {
  ::alarm(kChildSeconds);
  DisableSite(site);
  const absl::StatusOr<LabReport> report = RunCrashLab(options);
  const std::string text = report.ok() ? Encode(*report) : std::string();
  const bool written = ::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::_exit(written ? 0 : 1);
}

absl::StatusOr<MutationResult> RunOne(const CrashLabOptions& options, Site site) {
  MutationResult result;
  result.site = SiteName(site);
  int ends[2];
  if (::pipe(ends) != 0) return ErrnoError(errno, "pipe", "");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return ErrnoError(errno, "fork", "");
  if (child == 0) {
    ::close(ends[0]);
    RunChild(options, site, ends[1]);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Decode(text, &result);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    result.found = signal != SIGALRM;
    result.driver = "(the process)";
    result.message = absl::StrCat("ended by signal ", signal);
  }
  return result;
}

// What only damaged bytes can show is looked for by damage, first all over the stores and then ever closer; the rest by
// crashes and faults.
std::vector<CrashLabOptions> AttemptsFor(const std::string& name, const CrashLabOptions& options) {
  CrashLabOptions one = options;
  one.findings_max = 1;
  one.progress = nullptr;
  std::vector<CrashLabOptions> attempts;
  if (name.starts_with("check") &&
      std::find(one.drivers.begin(), one.drivers.end(), Driver::kDamage) != one.drivers.end()) {
    for (const uint32_t share : {uint32_t{61}, uint32_t{7}}) {
      attempts.push_back(one);
      attempts.back().drivers = {Driver::kDamage};
      attempts.back().damage_share = std::max(options.damage_share, share);
    }
  }
  if (one.drivers.size() > 1) std::erase(one.drivers, Driver::kDamage);
  if (attempts.empty() || one.drivers.front() != Driver::kDamage) attempts.push_back(std::move(one));
  return attempts;
}

}  // namespace

std::vector<std::string> MutationSites() {
  std::vector<std::string> names;
  for (int i = 1; i < static_cast<int>(Site::kCount); ++i) names.emplace_back(SiteName(static_cast<Site>(i)));
  return names;
}

absl::StatusOr<std::vector<MutationResult>> RunMutations(const CrashLabOptions& options,
                                                         const std::vector<std::string>& sites,
                                                         const std::function<void(const MutationResult&)>& done) {
  std::vector<MutationResult> results;
  for (const std::string& name : sites.empty() ? MutationSites() : sites) {
    const Site site = SiteOf(name);
    if (site == Site::kNone) return InvalidArgument(absl::StrCat("there is no site '", name, "'"));
    MutationResult result;
    for (const CrashLabOptions& attempt : AttemptsFor(name, options)) {
      const uint64_t states_before = result.states;
      const double seconds_before = result.seconds;
      ASHLAR_ASSIGN_OR_RETURN(result, RunOne(attempt, site));
      result.states += states_before;
      result.seconds += seconds_before;
      if (result.found) break;
    }
    if (done) done(result);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace ashlar::testing
