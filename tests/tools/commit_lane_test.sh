#!/usr/bin/env bash
# A small run of the commit lane: every arm is there, and a synced commit costs a sync of the journal.
# usage: commit_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" commit --docs 500 --batches 1 20 --writers 1 3 --commits 12 --rounds 2 --peers --dir "$work/store" \
  --json "$work/report.json" >"$work/out"
[ ! -e "$work/store" ]
python3 - "$work/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
rows = [row for row in report["rows"] if "batch" in row]
arms = {}
for row in rows:
    arms.setdefault((row["engine"], row["durability"]), []).append((row["batch"], row["writers"]))
    assert row["n"] == 12, row
    assert row["p50_us"] <= row["p99_us"] <= row["p999_us"] <= row["max_us"], row
    assert row["raw_p50_us"] > 0 and row["commits_per_s"] > 0 and row["bytes_per_commit"] > 0, row
    if row["engine"] == "ashlar" and row["durability"] == "sync":
        # Writers may share one; alone each has its own.
        assert 150 * row["batch"] < row["journal_bytes_per_commit"] < 500 * row["batch"] + 500, row
        assert 0 < row["syncs_per_commit"] <= 2 and (row["writers"] > 1 or row["syncs_per_commit"] >= 1), row
    if row["engine"] == "ashlar" and row["durability"] == "os":
        assert row["syncs_per_commit"] < 1, row
missing = {what.split(":")[0] for what in report["not_measured"] if "was not found" in what}
expected = {("ashlar", mode) for mode in ("sync", "interval", "os")}
expected |= {(peer, "sync") for peer in ("sqlite", "xapian", "rocksdb", "leveldb", "lmdb") if peer not in missing}
assert set(arms) == expected, (arms.keys(), missing)
for arm, cases in arms.items():
    assert cases == [(1, 1), (1, 3), (20, 1), (20, 3)], (arm, cases)
PY
