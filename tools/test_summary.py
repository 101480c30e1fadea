#!/usr/bin/env python3
"""Adds up what `meson test` did in a build directory: prints "PASSED FAILED", counting GoogleTest cases one by one.

A test program that crashed or ran out of time has no list of cases of its own and counts as one failure.
Exit status 1: there is no log, that is, the tests were not built.
"""

import json
import os
import sys
import xml.etree.ElementTree as ElementTree


def cases_by_program(path):
    """(cases, failed cases) of each test program, from Meson's JUnit log."""
    counts = {}
    if not os.path.exists(path):
        return counts
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        cases = suite.findall("testcase")
        bad = sum(1 for case in cases if case.find("failure") is not None or case.find("error") is not None)
        # GoogleTest programs are named by project and test ("ashlar.name"), and so are their suites below it.
        name = suite.get("name", "")
        total, failed = counts.get(name, (0, 0))
        counts[name] = (total + len(cases), failed + bad)
    return counts


def main():
    logs = os.path.join(sys.argv[1], "meson-logs")
    path = os.path.join(logs, "testlog.json")
    if not os.path.exists(path):
        return 1
    counts = cases_by_program(os.path.join(logs, "testlog.junit.xml"))
    passed = failed = 0
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            name = test["name"].split(" / ")[-1]
            total, bad = 0, 0
            for suite, (suite_total, suite_bad) in counts.items():
                if suite.split(".")[-1] == name or f".{name}." in f".{suite}.":
                    total += suite_total
                    bad += suite_bad
            total = max(total, 1)
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                passed += total
            elif test["result"] == "SKIP":
                print(f"skipped: {name}", file=sys.stderr)
            else:
                bad = max(bad, 1)
                failed += bad
                passed += max(total - bad, 0)
    print(passed, failed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
