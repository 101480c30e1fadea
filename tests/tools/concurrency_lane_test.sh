#!/usr/bin/env bash
# A small run of the concurrency lane: every caller finds the same page, all arms are reported, and a store that is kept is the same
# afterwards.
# that is kept is the same afterwards.
# usage: concurrency_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() {
  "$1" concurrency --docs 3000 --callers 1 3 --seconds 0.01 --keep --dir "$work/store" \
    --json "$work/report.json" "${@:2}" >"$work/out"
}
run "$1"
[ ! -e "$work/store-beside-writer" ]
(cd "$work/store" && find . -name '*.seg*' -exec sha256sum {} + | sort) >"$work/before"
python3 - "$work/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["lane"] == "concurrency" and report["corpus"]["docs"] == 3000, report
shapes = {}
for row in report["rows"]:
    shapes.setdefault(row["name"], []).append((row["writer"], row["callers"]))
    assert row["n"] > 0 and row["searches_per_s"] > 0, row
    assert (row["allocations"] > 0) == (row["name"] != "control"), row
    assert ("writer_docs_per_s" in row) == row["writer"], row
    assert "cpu_p50_us" in row and "cpu_p99_us" in row and "p50_us" in row and "p99_us" in row, row
    if row["writer"]:
        assert row["writer_docs_per_s"] > 0, row
    elif row["callers"] == 1:
        assert row["times_first"] == 1, row
assert len(shapes) == 10 and "control" in shapes, shapes.keys()
for name, arms in shapes.items():
    assert arms == [(False, 1), (False, 3), (True, 1), (True, 3)], (name, arms)
PY
run "$1" --shape one_tail
(cd "$work/store" && find . -name '*.seg*' -exec sha256sum {} + | sort) | cmp - "$work/before"
rows=$(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))["rows"]))' "$work/report.json")
[ "$rows" = 8 ]
