#!/usr/bin/env python3
"""Counts the instructions of three searches and compares them with what they took when this was last measured.

usage: instructions_test.py ASHLAR ASHLAR_BENCH

A clock says little on a busy machine; the number of instructions says the same on every one. Callgrind counts those within
Snapshot::Search, with scalar kernels, so that the processor does not matter. It is the first search of a process, so checking the
pages that it touches is in it. A count may be TOLERANCE above or below the recorded one: when it is below, it has to be recorded
anew, else the gain could be lost again unnoticed. Prints the Test Anything Protocol; skips where there is no valgrind.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

DOCUMENTS = 40000
TOLERANCE = 0.10
# query, options -> instructions (x86-64, g++ 12 -O3)
RECORDED = {
    "w20000x": (["--total", "exact"], 86461),
    "w1x w10x w100x w1000x w10000x": (["--total", "none"], 428063),
    "w1x w2x w3x w4x w5x w6x w7x w8x w9x w10x": (["--total", "none", "-k", "100"], 5102614),
}
SCHEMA = '{"fields": [{"name": "id", "type": "keyword"}, {"name": "body", "type": "text"}], "key": "id", "default_group": ["body"]}'


def count(ashlar, store, query, options, folder):
    """Instructions within Snapshot::Search."""
    environment = dict(os.environ, ASHLAR_SIMD="scalar")
    environment.pop("MALLOC_PERTURB_", None)  # which meson sets: filling what is allocated would be counted
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out",
               "--toggle-collect=ashlar::Snapshot::Search*", ashlar, "search", store, query, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return int(found.group(1))


def build_store(ashlar, bench, folder):
    store = os.path.join(folder, "store")
    schema = os.path.join(folder, "schema.json")
    with open(schema, "w", encoding="utf-8") as file:
        file.write(SCHEMA)
    subprocess.run([ashlar, "create", store, "--schema", schema], check=True, stdout=subprocess.DEVNULL)
    corpus = subprocess.Popen([bench, "zipf", str(DOCUMENTS)], stdout=subprocess.PIPE)
    subprocess.run([ashlar, "add", store, "-"], stdin=corpus.stdout, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    if corpus.wait() != 0:
        raise RuntimeError("the corpus was not made")
    subprocess.run([ashlar, "merge", store], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return store


def main():
    ashlar, bench = sys.argv[1:3]
    if shutil.which("valgrind") is None:
        print("1..0 # SKIP no valgrind")
        return 0
    folder = tempfile.mkdtemp(prefix="ashlar-instructions-")
    failed = 0
    try:
        store = build_store(ashlar, bench, folder)
        for number, (query, (options, recorded)) in enumerate(RECORDED.items(), 1):
            counted = count(ashlar, store, query, options, folder)
            fits = abs(counted - recorded) <= TOLERANCE * recorded
            failed += not fits
            print(f"{'ok' if fits else 'not ok'} {number} - {query}: {counted} instructions, {recorded} recorded")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"1..{len(RECORDED)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
