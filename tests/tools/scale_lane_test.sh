#!/usr/bin/env bash
# A small run of the scale lane: each size is built, opened both ways and asked every shape, and growth is told from the second on.
# usage: scale_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" scale --sizes 500 3000 --runs 1 --dir "$work/store" --json "$work/report.json" >"$work/out"
[ ! -e "$work/store" ]
python3 - "$work/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["lane"] == "scale" and report["corpus"]["docs"] == [500, 3000], report
phases = [(row["docs"], row["phase"]) for row in report["rows"] if "phase" in row]
assert phases == [(docs, phase) for docs in (500, 3000) for phase in ("build", "open array", "open mapped")], phases
for row in report["rows"]:
    if row.get("phase") == "build":
        assert row["index_bytes_per_doc"] > 50 and row["docs_per_s"] > 0 and row["peak_bytes"] > 0, row
    elif "phase" in row:
        assert row["open_us"] > 0 and row["first_query_us"] > 0, row
    else:
        assert ("times_smaller" in row) == (row["docs"] == 3000), row
assert sum("times_smaller" in row for row in report["rows"]) == 9
PY
