#!/usr/bin/env bash
# A small run of the store lane: it ends well (so all modes and traversals gave one answer) and its JSON is whole.
# usage: store_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" store --docs 3000 --runs 2 --dir "$work/store" --json "$work/report.json" >"$work/out"
python3 - "$work/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["lane"] == "store" and report["corpus"]["docs"] == 3000, report
for name in ("cpu", "cores", "kernel", "filesystem", "compiler", "build_type", "libraries"):
    assert name in report["machine"], name
phases = [row["phase"] for row in report["rows"] if "phase" in row]
assert phases == ["write", "flush", "merge", "segment", "open mapped", "open array"], phases
hashes = {}
for row in report["rows"]:
    if "result_hash" in row:
        # The page at least.
        assert row["allocations"] >= 1 and row["allocated_bytes"] >= 16 * row["hits"], row
        hashes.setdefault(row["name"], set()).add((row["mode"], row["traversal"], row["result_hash"]))
assert len(hashes) == 9, hashes.keys()
for name, found in hashes.items():
    assert len({hash for _, _, hash in found}) == 1, (name, found)
    assert {mode for mode, _, _ in found} == {"mapped", "array", "overlay"}, (name, found)
PY
