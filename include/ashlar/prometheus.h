// The statistics of a store in the text format of Prometheus, for a host that has a /metrics page.
#ifndef ASHLAR_PROMETHEUS_H_
#define ASHLAR_PROMETHEUS_H_

#include <map>
#include <string>

#include "ashlar/options.h"

namespace ashlar {

// Every number of `stats` as a metric with HELP and TYPE, in base units (bytes, seconds), counters with names in
// _total; states as 0 and 1. Texts (causes, remedies, damage) are left out, but for names that do not change while the
// store is open. Counters begin at 0 when the store is opened. `labels` are put on each sample: to tell stores apart;
// names must be label names (letters, digits and '_'), values may be any UTF-8. Exposition format 0.0.4. Any thread.
std::string PrometheusText(const Stats& stats, const std::map<std::string, std::string>& labels = {});

}  // namespace ashlar

#endif  // ASHLAR_PROMETHEUS_H_
