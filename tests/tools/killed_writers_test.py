#!/usr/bin/env python3
"""Cases C11 and C13: writers with large documents, so that a flush takes many writes, killed at random system calls.

usage: killed_writers_test.py TORTURE_WORKER ROUNDS [SEED]

Each round opens a writer the moment the one before was killed (C11: without waiting, without removing anything by hand);
it proves that all acknowledged batches are there and no half one. At the end one more batch is written and the store is
closed (C13): the files are those that the store names, and their size is within the worker's bound of a fresh store's.
"""

import os
import random
import subprocess
import sys
import tempfile

KILLED = 137
CALLS_MAX = 4000  # about as many as 40 batches take; opening and proving what is there takes up to 1,000


def main():
    worker, rounds = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 13
    rng = random.Random(seed)
    wrong, kills, acknowledged, calls = [], 0, 0, []
    # What survives the death of a process needs no disk, and a busy one makes this slow.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="ashlar-killed-", dir=memory) as folder:
        store = os.path.join(folder, "store")

        def run(*words):
            done = subprocess.run([worker, *map(str, words), "--seed", str(seed), "--big", "--acked", str(acknowledged)],
                                  capture_output=True, text=True, check=False)
            if done.returncode not in (0, KILLED):
                wrong.append(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
            return done.returncode, dict(line.split() for line in done.stdout.splitlines())

        for _ in range(rounds):
            calls.append(rng.randrange(CALLS_MAX))
            code, said = run("killed", calls[-1], "writer", store, "--batches", 40)
            kills += code == KILLED
            acknowledged = max([acknowledged, *(int(said[name]) for name in ("opened", "acked", "flushed") if name in said)])
            if wrong:
                break
        settled = len(wrong)
        _, said = run("settle", store)
        print(f"# seed {seed}: {rounds} writers, {kills} killed, {acknowledged} batches; {said}")
        print("1..3")
        print(f"{'ok' if settled == 0 else 'not ok'} 1 - C11: each writer opens at once and holds all that was acknowledged")
        print(f"{'ok' if len(wrong) == settled else 'not ok'} 2 - C13: no file of a killed writer is left, and the size is bounded")
        # The test would say nothing if the kills came too early or too late.
        enough = kills >= rounds // 2 and acknowledged >= rounds // 2
        print(f"{'ok' if enough else 'not ok'} 3 - most writers were killed, and most wrote something before")
        for line in wrong:
            print(f"# {line}")
    return 0 if not wrong and enough else 1


if __name__ == "__main__":
    sys.exit(main())
