#!/usr/bin/env bash
# A small run of the text lane: classes, engines and ratios are reported, answers are counted, and what is behind is listed.
# usage: text_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$work" <<'PY'
import json, sys
with open(sys.argv[1] + "/corpus.jsonl", "w") as corpus:
    for i in range(500):
        body = " ".join(["stone"] * (i % 3 == 0) + ["wall"] * (i % 2) + ["laid", "without", "gaps", f"number{i}"])
        corpus.write(json.dumps({"id": f"d{i}", "title": f"ashlar {i % 7}", "body": body}) + "\n")
with open(sys.argv[1] + "/queries.jsonl", "w") as queries:
    for query, kind in (("wall", "term"), ("gaps", "term"), ("stone wall", "union"), ("+stone +wall", "intersection"),
                        ('"stone wall"', "phrase")):
        queries.write(json.dumps({"query": query, "tags": [kind, kind + ":x"]}) + "\n")
PY
"$1" text --corpus "$work/corpus.jsonl" --queries "$work/queries.jsonl" --runs 1 --peers --dir "$work/store" \
  --json "$work/report.json" >"$work/out"
[ ! -e "$work/store" ]
python3 - "$work/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["corpus"]["docs"] == 500 and report["corpus"]["bytes"] > 10000, report["corpus"]
engines = [row["engine"] for row in report["rows"] if row.get("phase") == "build"]
missing = [what for what in report["not_measured"] if "was not found" in what]
assert engines[0] == "ashlar" and {"ashlar", "sqlite", "xapian"} - set(engines) <= {what.split(":")[0] for what in missing}, engines
# Matches: 250 have "wall", 167 "stone", 83 both (side by side), all "gaps".
counts = {"term:x": (250 + 500) / 2, "union:x": 250 + 167 - 83, "intersection:x": 83, "phrase:x": 83}
seen = set()
for row in report["rows"]:
    if "class" not in row:
        continue
    seen.add((row["class"], row["wanted"], row["engine"]))
    expected = counts[row["class"]]
    if row["wanted"] != "count":
        k = int(row["wanted"].split()[1])
        expected = min(k, expected) if row["class"] != "term:x" else (min(k, 250) + min(k, 500)) / 2
    assert row["hits_mean"] == expected, row
    assert row["p50_us"] <= row["p99_us"], row
    assert ("times_ashlar_mean" in row) == (row["engine"] != "ashlar"), row
assert seen == {(c, w, e) for c in counts for w in ("top 10", "top 100", "top 1000", "count") for e in engines}, seen
assert isinstance(report["rows"][-1]["not_ahead"], list), report["rows"][-1]
PY
