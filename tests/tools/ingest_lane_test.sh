#!/usr/bin/env bash
# A small run of the ingest lane, over zipf and over text: every arm is there, and the journal is written only where it is on.
# usage: ingest_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$work" <<'PY'
import json, sys
with open(sys.argv[1] + "/corpus.jsonl", "w") as corpus:
    for i in range(2500):
        body = " ".join(f"word{i * k % 997}" for k in range(1, 30))
        corpus.write(json.dumps({"id": f"d{i}", "title": f"ashlar {i % 7}", "body": body}) + "\n")
PY
"$1" ingest --docs 2500 --rounds 1 --dir "$work/store" --json "$work/zipf.json" >"$work/out"
"$1" ingest --corpus "$work/corpus.jsonl" --rounds 2 --peers --dir "$work/store" --json "$work/text.json" >"$work/out"
[ ! -e "$work/store" ]
python3 - "$work/zipf.json" "$work/text.json" <<'PY'
import json, sys
for name in sys.argv[1:]:
    report = json.load(open(name))
    assert report["corpus"]["docs"] == 2500 and report["corpus"]["bytes"] > 500000, report["corpus"]
    rows = [row for row in report["rows"] if "docs_per_s" in row]
    own = {(row["durability"], row["threads"]): row for row in rows if row["engine"] == "ashlar"}
    assert list(own) == [("off", 1), ("off", 2), ("sync", 1), ("sync", 2)], own.keys()
    for row in rows:
        assert row["docs_per_s"] > 0 and row["index_bytes"] > 0 and row["peak_bytes"] >= 0, row
    # The journal holds every byte of the input once.
    assert own["sync", 1]["bytes_written_per_input_byte"] > own["off", 1]["bytes_written_per_input_byte"] + 0.5, own
missing = {what.split(":")[0] for what in report["not_measured"] if "was not found" in what}
peers = {row["engine"] for row in rows} - {"ashlar"}
assert peers == {"sqlite", "xapian"} - missing, (peers, missing)
PY
