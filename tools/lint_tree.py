#!/usr/bin/env python3
"""Checks of the whole tree that no compiler makes. Run by `meson test --suite lint`, or by hand: tools/lint_tree.py [ROOT].

Prints one line per finding, `file:line: what`, and exits with 1 if there is any. The rules:

  layers      an include points to a lower level or to its own folder (docs/architecture.md prints the same table)
  calls       files, mappings, clocks, threads and randomness are touched in src/env only
  text        sources are ASCII, at most 132 columns, without tabs, trailing blanks or notes of work left undone
  links       links between Markdown files lead somewhere, headings included
  spec        a rule of format/SPEC.md that code or tests cite exists there, and is defined once
  build       every source is named in a meson.build; scores are never fused (-ffp-contract=off)
  readme      the program quoted in README.md is docs/examples/quickstart.cc
  tests       no test is switched off
"""

import os
import re
import sys

# Folder -> level. A longer name wins over a shorter one.
LEVELS = {
    "include/ashlar": 0,
    "src/base": 1,
    "format": 2,
    "src/env": 2,
    "src/text": 2,
    "src/simd": 2,
    "src/journal": 3,
    "src/overlay": 3,
    "src/segment": 3,
    "src/catalog": 3,
    "src/query": 4,
    "src/engine": 5,
    "include/ashlar/testing": 6,
    "src/testing": 7,
    "tools": 8,
    "bench": 9,
    "docs/examples": 9,
    "tests": 10,
}
# Siblings that may be included all the same: analysis hands over documents in their encoded form.
EXCEPTIONS = {("src/text", "format")}
# The query layer is written against cursors and knows neither files nor where postings live.
FORBIDDEN = {("src/query", level) for level in ("src/journal", "src/overlay", "src/segment", "src/catalog", "src/env")}
# These declare what src/engine implements; nothing below it may see them.
ENGINE_HEADERS = {"ashlar/store.h", "ashlar/snapshot.h", "ashlar/reindex.h", "ashlar/ashlar.h"}

FILE_CALLS = r"open|openat|creat|fsync|fdatasync|msync|mmap|munmap|pread|pwrite|ftruncate|fallocate|unlink|rename|mkdir|flock"
BANNED_CALLS = [
    (re.compile(r"(?<![\w.>])(?:%s)\s*\(" % FILE_CALLS), "file calls belong to src/env", ("src/env", "tests")),
    (re.compile(r"\bstd::j?thread\b|\bstd::async\b"), "threads belong to src/env", ("src/env", "src/testing", "tests", "bench")),
    (re.compile(r"::now\s*\(|\b(?:gettimeofday|clock_gettime)\s*\(|(?<![\w.>])time\s*\(\s*(?:nullptr|NULL|0)\s*\)"),
     "clocks belong to src/env", ("src/env", "bench")),
    (re.compile(r"(?<![\w.>])s?rand\s*\(|\brandom_device\b"), "random numbers come from src/base/prng.h or env::Entropy",
     ("src/env",)),
    (re.compile(r"(?<![\w.>])u?sleep\s*\(|\bsleep_(?:for|until)\b"), "nothing sleeps", ("src/env",)),
]

SOURCE_SUFFIXES = (".h", ".cc", ".c", ".py", ".sh", ".build")
COLUMNS_MAX = 132
UNDONE = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
TEST_OFF = re.compile(r"\bGTEST_" r"SKIP\b|\bDIS" r"ABLED_")


class Lint:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.files = sorted(self.walk())

    def walk(self):
        for folder, folders, names in os.walk(self.root):
            relative = os.path.relpath(folder, self.root)
            folders[:] = [f for f in folders if not f.startswith(("build", ".git", "__pycache__"))]
            if relative == "subprojects":
                folders[:] = [f for f in folders if f == "packagefiles"]
            for name in names:
                yield name if relative == "." else f"{relative}/{name}"

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def say(self, path, line, what):
        self.findings.append(f"{path}:{line}: {what}")

    def is_source(self, path):
        if path.startswith(("tests/tools/data/", "format/golden/", "tests/format/golden/")):
            return False
        if path.endswith(SOURCE_SUFFIXES):
            return True
        # Scripts without a suffix.
        return os.path.dirname(path) in ("tools", ".ci") and self.read(path).startswith("#!")

    # --- layers ---

    @staticmethod
    def folder_of(path):
        best = None
        for folder in LEVELS:
            if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
                best = folder
        return best

    def check_layers(self):
        for path in self.files:
            if not path.endswith((".h", ".cc")) or path.startswith("subprojects/"):
                continue
            folder = self.folder_of(path)
            if folder is None:
                self.say(path, 1, "its folder is not in the table of layers")
                continue
            for number, line in enumerate(self.read(path).split("\n"), 1):
                match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if match:
                    self.check_include(path, number, folder, match.group(1))

    def check_include(self, path, number, folder, name):
        if name in ENGINE_HEADERS and 0 < LEVELS[folder] < 5:
            self.say(path, number, f"only src/engine and what stands above it include {name}")
            return
        target = self.folder_of("include/" + name if name.startswith("ashlar/") else name)
        if target is None:
            if not name.startswith(("absl/", "benchmark/", "gtest/")):
                self.say(path, number, f'"{name}" is not a path from the top of the tree')
            return
        if target == folder or (folder, target) in EXCEPTIONS:
            return
        if LEVELS[target] >= LEVELS[folder] or (folder, target) in FORBIDDEN:
            self.say(path, number, f"{folder} may not include {target}")

    # --- calls ---

    @staticmethod
    def code_only(text):
        """The text without comments and without what is inside quotes; lines stay where they are."""
        pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])'", re.S)
        return pattern.sub(lambda m: "\n" * m.group(0).count("\n") or " ", text)

    def check_calls(self):
        for path in self.files:
            if not path.endswith((".h", ".cc")) or path.startswith("subprojects/"):
                continue
            lines = self.code_only(self.read(path)).split("\n")
            for pattern, why, allowed in BANNED_CALLS:
                if path.startswith(tuple(folder + "/" for folder in allowed)):
                    continue
                for number, line in enumerate(lines, 1):
                    match = pattern.search(line)
                    if match:
                        self.say(path, number, f"{match.group(0).strip()}: {why}")

    # --- text ---

    def check_text(self):
        for path in self.files:
            if not self.is_source(path):
                continue
            for number, line in enumerate(self.read(path).split("\n"), 1):
                if not line.isascii():
                    self.say(path, number, "not ASCII")
                if len(line) > COLUMNS_MAX and not path.endswith("meson.build"):
                    self.say(path, number, f"{len(line)} columns, at most {COLUMNS_MAX}")
                if line != line.rstrip():
                    self.say(path, number, "blanks at the end")
                if "\t" in line:
                    self.say(path, number, "a tab")
                if UNDONE.search(line):
                    self.say(path, number, "work left undone")
                if TEST_OFF.search(line):
                    self.say(path, number, "a test that does not run")

    # --- links ---

    @staticmethod
    def without_fences(text):
        return re.sub(r"^( *```).*?^\1[^\n]*$", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S | re.M)

    def anchors(self, path):
        result = set()
        for line in self.without_fences(self.read(path)).split("\n"):
            match = re.match(r"#+\s+(.*)", line)
            if match:
                title = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
                result.add(title.replace(" ", "-"))
        return result

    def check_links(self):
        for path in self.files:
            if not path.endswith(".md") or path.startswith("tests/tools/data/"):
                continue
            for number, line in enumerate(self.without_fences(self.read(path)).split("\n"), 1):
                for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                    if re.match(r"[a-z]+:", link):
                        continue
                    name, _, anchor = link.partition("#")
                    target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
                    if not os.path.exists(os.path.join(self.root, target)):
                        self.say(path, number, f"{link}: there is no such file")
                    elif anchor and target.endswith(".md") and anchor not in self.anchors(target):
                        self.say(path, number, f"{link}: there is no such heading")

    # --- spec ---

    def check_spec(self):
        spec = "format/SPEC.md"
        defined = {}
        for number, line in enumerate(self.read(spec).split("\n"), 1):
            match = re.match(r"\s*- \*\*([A-Z]-\d+)\*\*", line)
            if match:
                if match.group(1) in defined:
                    self.say(spec, number, f"{match.group(1)} is defined twice")
                defined[match.group(1)] = number
        cited = re.compile(r"(?<![\w-])([A-Z]-\d+)(?![\w-])")
        for path in self.files:
            if not path.startswith(("format/", "src/", "tests/", "include/")) or not path.endswith((".h", ".cc", ".md")):
                continue
            for number, line in enumerate(self.read(path).split("\n"), 1):
                for rule in cited.findall(line):
                    if rule not in defined:
                        self.say(path, number, f"format/SPEC.md has no rule {rule}")

    # --- build ---

    def check_build(self):
        if "'-ffp-contract=off'" not in self.read("meson.build"):
            self.say("meson.build", 1, "-ffp-contract=off is missing: scores would depend on the compiler")
        builds = {os.path.dirname(p): self.read(p) for p in self.files if os.path.basename(p) == "meson.build"}
        for path in self.files:
            if not path.endswith(".cc") or path.startswith("subprojects/"):
                continue
            folder, name = os.path.split(path)
            while True:
                if f"{name}'" in builds.get(folder, "") or f"'{name[:-3]}'" in builds.get(folder, ""):
                    break
                if not folder:
                    self.say(path, 1, "no meson.build names it")
                    break
                folder, last = os.path.split(folder)
                name = f"{last}/{name}"

    # --- readme ---

    def check_readme(self):
        example = "docs/examples/quickstart.cc"
        match = re.search(r"<!-- docs/examples/quickstart.cc -->\n```cpp\n(.*?)```", self.read("README.md"), re.S)
        if not match:
            self.say("README.md", 1, f"does not quote {example}")
            return
        code = re.sub(r"\A(?://[^\n]*\n)+\n?", "", self.read(example))
        if match.group(1) != code:
            line = self.read("README.md")[: match.start()].count("\n") + 1
            self.say("README.md", line, f"the quoted program is not {example}")

    def run(self):
        self.check_layers()
        self.check_calls()
        self.check_text()
        self.check_links()
        self.check_spec()
        self.check_build()
        self.check_readme()
        for finding in self.findings:
            print(finding)
        print(f"{len(self.files)} files, {len(self.findings)} findings")
        return 1 if self.findings else 0


if __name__ == "__main__":
    sys.exit(Lint(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")).run())
