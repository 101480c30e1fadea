#!/usr/bin/env bash
# A small run of the prune lane: every traversal gave one page in every case, or the lane had failed.
# usage: prune_lane_test.sh ASHLAR_BENCH
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" prune --docs 3000 --runs 1 --dir "$work/store" --json "$work/report.json" >"$work/out"
[ ! -e "$work/store" ]
python3 - "$work/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["lane"] == "prune", report
cases = {}
for row in report["rows"]:
    case = cases.setdefault((row["lengths"], row["deleted"], row["name"]), {})
    case[row["traversal"]] = row
names = {name for _, _, name in cases}
assert len(cases) == 2 * 3 * len(names) and len(names) == 9 + 7 + 3, names
for key, rows in cases.items():
    assert set(rows) == {"auto", "pruned", "daat", "exhaustive"}, key
    assert len({row["result_hash"] for row in rows.values()}) == 1, key
    # Pruning counts what it looks at twice as two, so it may read more than there is.
    if key[1] == 0 and '"' not in rows["auto"]["query"] and "+" not in rows["auto"]["query"]:
        assert rows["daat"]["postings"] == rows["exhaustive"]["postings"] == rows["daat"]["postings_of_terms"], key
    if "head" in key[2]:
        assert rows["auto"]["postings_of_terms"] > 0, key
    assert (rows["auto"]["filter"] == "1 percent") == key[2].endswith(" filtered"), key
# A head term alone is skipped for the most part already here, and a filter lets 1 percent through.
assert cases["variable", 0, "one_head"]["pruned"]["postings"] < 3000, cases["variable", 0, "one_head"]["pruned"]
assert 0 < cases["fixed", 0, "one_head filtered"]["auto"]["hits"] <= 10
assert len({row["result_hash"] for (_, _, name), rows in cases.items() if name == "two_mid" for row in rows.values()}) > 3
PY
