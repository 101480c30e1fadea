#!/usr/bin/env bash
# A small run of the traversal lane: one page from every traversal, the choice beside the best, and where a search allocates.
# usage: traversal_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" traversal --docs 3000 --runs 2 --segments 3 --deleted 10 --random 5 --trace-allocations --dir "$work/store" \
  --json "$work/report.json" >"$work/out" 2>"$work/traces"
[ ! -e "$work/store" ]
python3 - "$work/report.json" "$work/traces" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["corpus"]["segments"] == 3 and report["corpus"]["deleted_percent"] == 10, report["corpus"]
traversals = {}
for row in report["rows"]:
    if "result_hash" in row:
        assert row["segments"] == 3 and row["allocations"] > 0, row
        traversals.setdefault(row["name"], []).append((row["traversal"], row["total"]))
assert len(traversals) == 9, traversals.keys()
for name, found in traversals.items():
    assert found == [("auto", "none"), ("pruned", "none"), ("daat", "none"), ("exhaustive", "none"), ("auto", "exact")], name
assert sum("shape" in row for row in report["rows"]) == 9
assert [row["random"] for row in report["rows"] if "random" in row] == [5]
# Of every allocation the size and at least one place in the program.
traces = open(sys.argv[2]).read().split("search ")[1:]
assert len(traces) == 9
for trace in traces:
    sites = trace.split("allocation of ")[1:]
    assert sites and all("ashlar-bench" in site for site in sites), trace
PY
