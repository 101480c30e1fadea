#!/usr/bin/env python3
"""Kills `ashlar add --durability sync --acks` with SIGKILL at random moments; what was acknowledged must be there.

usage: kill_test.py ASHLAR [ROUNDS [SEED]]

All rounds write to one store, so that what a kill leaves behind is what the next writer opens. After each kill: every acknowledged
document of the round is there, those there are whole batches and a prefix of what was sent, and earlier rounds are untouched. In
between flush and merge are killed as well, which may change no document. Prints the Test Anything Protocol.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

BATCH = 7
DOCUMENTS = 3000 * BATCH  # more than a round gets to write
SECONDS_MAX = 0.2


class KillTest:
    def __init__(self, ashlar, seed):
        self.ashlar = ashlar
        self.random = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="ashlar-kill-")
        self.store = os.path.join(self.folder, "store")
        self.kept = {}  # round -> how many of its documents are there
        self.count = 0
        self.failed = 0

    def result(self, name, problem):
        self.count += 1
        print(f"{'not ok' if problem else 'ok'} {self.count} - {name}")
        if problem:
            self.failed += 1
            print(f"# {problem}")

    def run(self, *arguments):
        return subprocess.run([self.ashlar, *arguments], capture_output=True, text=True, check=False)

    def create(self):
        sample = os.path.join(self.folder, "sample.jsonl")
        with open(sample, "w", encoding="ascii") as file:
            file.write('{"id":"k","body":"word"}\n')
        done = self.run("create", self.store, "--infer", sample)
        if done.returncode != 0:
            sys.exit(f"create: {done.stderr}")

    def documents_of(self, number):
        """Numbers of the documents of a round that the store holds, or an error message."""
        done = self.run("search", self.store, f"round{number}", "-k", str(DOCUMENTS), "--json")
        if done.returncode != 0:
            return f"search: {done.stderr.strip()}"
        return sorted(int(hit["key"].split("-")[1]) for hit in json.loads(done.stdout)["hits"])

    def killed_add(self, number):
        """Sends documents, kills, and returns how many were acknowledged."""
        lines = os.path.join(self.folder, "lines.jsonl")
        # Some rounds write large documents, which fill journal files and make them rotate.
        filler = " filler" * self.random.choice([1, 10, 1000])
        with open(lines, "w", encoding="ascii") as file:
            for i in range(DOCUMENTS if len(filler) < 1000 else 300 * BATCH):
                file.write(f'{{"id":"{number}-{i}","body":"round{number} word{i}{filler}"}}\n')
        acks = os.path.join(self.folder, "acks")
        with open(acks, "wb") as out:
            command = [self.ashlar, "add", self.store, lines, "--acks", "--durability", "sync", "--batch", str(BATCH)]
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
            time.sleep(self.random.uniform(0, SECONDS_MAX))
            process.kill()
            process.wait()
        with open(acks, encoding="ascii") as file:
            whole = [line for line in file.read().splitlines(keepends=True) if line.endswith("\n")]
        return int(whole[-1].split()[1]) if whole else 0

    def add_round(self, number):
        acknowledged = self.killed_add(number)
        there = self.documents_of(number)
        if isinstance(there, str):
            return there
        if there != list(range(len(there))):
            return f"the documents there are no prefix of what was sent: {len(there)} of up to {there[-1]}"
        if len(there) < acknowledged:
            return f"{acknowledged} documents were acknowledged and {len(there)} are there"
        if len(there) % BATCH != 0:
            return f"half a batch: {len(there)} documents in batches of {BATCH}"
        self.kept[number] = len(there)
        print(f"# round {number}: {acknowledged} acknowledged, {len(there)} there")
        return None

    def upkeep_round(self, command):
        process = subprocess.Popen([self.ashlar, command, self.store], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.uniform(0, SECONDS_MAX))
        process.kill()
        process.wait()
        number = self.random.choice(list(self.kept))
        there = self.documents_of(number)
        if there != list(range(self.kept[number])):
            return f"round {number} had {self.kept[number]} documents; now: {there if isinstance(there, str) else len(there)}"
        return None

    def everything(self):
        done = self.run("export", self.store)
        if done.returncode != 0:
            return f"export: {done.stderr.strip()}"
        keys = [json.loads(line)["id"] for line in done.stdout.splitlines()]
        expected = {f"{number}-{i}" for number, count in self.kept.items() for i in range(count)}
        if set(keys) != expected or len(keys) != len(expected):
            return f"{len(keys)} documents, {len(expected)} expected"
        return None

    def files(self):
        """After a writer has opened, flushed and merged, nothing is left of the killed ones."""
        for command in ("flush", "merge"):
            done = self.run(command, self.store)
            if done.returncode != 0:
                return f"{command}: {done.stderr.strip()}"
        done = self.run("stat", self.store, "--json")
        segments = len(json.loads(done.stdout)["segments"])
        names = [name for name in os.listdir(self.store) if name.endswith(".seg")]
        return None if segments == len(names) else f"{segments} segments, and the files {names}"

    def check(self):
        done = self.run("check", self.store)
        return None if done.returncode == 0 and "note:" not in done.stdout else done.stdout + done.stderr

    def main(self, rounds):
        self.create()
        for number in range(rounds):
            self.result(f"round {number}: acknowledged documents are there, no half batch", self.add_round(number))
            if number % 5 == 4 and self.kept:
                command = self.random.choice(["flush", "merge"])
                self.result(f"round {number}: a killed {command} changes nothing", self.upkeep_round(command))
        self.result("all rounds together", self.everything())
        self.result("no files of killed writers", self.files())
        self.result("the same after a merge", self.everything())
        self.result("check finds nothing", self.check())
        print(f"# {sum(self.kept.values())} documents survived {rounds} kills")
        print(f"1..{self.count}")
        shutil.rmtree(self.folder)
        return 1 if self.failed else 0


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    print(f"# seed {seed}")
    return KillTest(sys.argv[1], seed).main(rounds)


if __name__ == "__main__":
    sys.exit(main())
