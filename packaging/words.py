#!/usr/bin/env python3
"""Holds what is written to the project's rules: packaging/check.sh words.

  packaging/words.py [--base COMMIT] [--list KIND]

It counts, in the files that git tracks:

  of-each          sentences that begin "Of each X the Y"
  is-no            "X is no Y" for "X is not a Y"
  spec-number      numbers of a specification (PT2-15) in the programs' strings
  long-line-md     lines of more than 120 columns in Markdown
  long-line-cpp    the same in C++, where clang-format leaves a string or a table alone
  long-sentence    sentences of more than 35 words in the programs' strings
  broken-link      relative links in Markdown that lead nowhere
  lines:FILE       lines of a document above its limit

packaging/words.txt says how many of a kind are left from earlier. A kind without a line there has none. A number may fall
and may not rise: not above words.txt, and words.txt not above what COMMIT has. --list prints where those of a kind are.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATCHET = "packaging/words.txt"
COLUMNS = 120
SENTENCE_WORDS = 35
LIMITS = {"README.md": 180, "engine/README.md": 150}
FOLDER_PAGE = 60  # README.md of any other folder

TEXT = {".cpp", ".h", ".c", ".md", ".py", ".sh", ".cmake", ".in", ".awk", ".yml"}
# These hold what the programs print, or what others have written.
QUOTED = ("tests/data/", "tests/cases/", "tests/fuzz/corpus/")

OF_EACH = re.compile(r'(?:^|[.!?:;]\s+|[/*#"(|]\s*|-\s+)Of (?:each|all|every|any)\b')
IS_NO = re.compile(r"(?<!\bthere )(?<!\bThere )\b(?:is|are|was|were|be|being) no (?!longer\b|one\b)(?!(?:more|less|\w+er)\b[^.]*\bthan\b)")
# Not AVX-512, UTF-8 and their kin, which are other people's names.
SPEC_NUMBER = re.compile(r"\b(?!AVX|UTF|SHA|ISO|RFC)[A-Z][A-Z0-9]{1,6}-\d+\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'                         # comments
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'      # raw strings: code and texts that are data
    r"|'(?:\\.|[^'\\\n])+'(?<!\d')"               # characters
    r'|"(?P<text>(?:\\.|[^"\\\n])*)"', re.S)


def tracked():
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in out.split("\0") if name and (ROOT / name).is_file()]


def is_text(name):
    return pathlib.Path(name).suffix in TEXT or pathlib.Path(name).name in ("CMakeLists.txt", "run")


def is_cpp(name):
    return pathlib.Path(name).suffix in (".cpp", ".h")


def is_program(name):
    """Whether its strings are what a user reads."""
    return is_cpp(name) and name.startswith(("app/", "ui/", "engine/")) and "/templates/" not in name


def strings(text):
    """(line, text) of each string of a C++ file; neighbours that the compiler joins are one."""
    line, joined, at, end = 0, None, 0, 0
    for token in TOKEN.finditer(text):
        if token["text"] is None:
            continue
        if joined is not None and not text[end:token.start()].strip():
            joined += token["text"]
        else:
            if joined is not None:
                yield line, joined
            line += text.count("\n", at, token.start())
            at, joined = token.start(), token["text"]
        end = token.end()
    if joined is not None:
        yield line, joined


def sentences(text):
    """Sentences of prose. Code has brackets or calls where prose has words, and is not read."""
    for each in re.split(r'\\n|[.!?]["\')]?\s|[;:]\s', text):
        words = re.findall(r"[A-Za-z][A-Za-z'-]*", each)
        names = re.findall(r"\w[_.:]\w", each)  # a list of operators or passes is not a sentence
        if len(words) > SENTENCE_WORDS and not re.search(r"[={}]|\w\(\w", each) and len(names) * 4 < len(words):
            yield each


def found():
    """Where each kind is: (file:line: what) by kind."""
    at = collections.defaultdict(list)

    def add(kind, name, line, what):
        at[kind].append(f"{name}:{line}: {what.strip()[:110]}")

    for name in tracked():
        if not is_text(name) or name.startswith(QUOTED) or name == "packaging/words.py":
            continue
        text = (ROOT / name).read_text(errors="replace")
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if OF_EACH.search(line):
                add("of-each", name, number, line)
            if " no " in line and IS_NO.search(line):
                add("is-no", name, number, line)
            if len(line) > COLUMNS and (is_cpp(name) or name.endswith(".md")):
                add("long-line-cpp" if is_cpp(name) else "long-line-md", name, number, line)
        if is_program(name):
            for line, each in strings(text):
                if SPEC_NUMBER.search(each):
                    add("spec-number", name, line + 1, each)
                for sentence in sentences(each):
                    add("long-sentence", name, line + 1, sentence)
        if name.endswith(".md"):
            for link in LINK.finditer(re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.S | re.M)):
                target = link[1].split("#")[0]
                if target and "://" not in target and not (ROOT / name).parent.joinpath(target).exists():
                    add("broken-link", name, text.count("\n", 0, text.find(link[0])) + 1, link[0])
            if pathlib.Path(name).name == "README.md":
                limit = LIMITS.get(name, FOLDER_PAGE)
                for number in range(limit, len(lines)):
                    add(f"lines:{name}", name, number + 1, f"this page may have {limit} lines")
    return at


def numbers(text):
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {kind: int(count) for kind, count in rows}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--base")
    parser.add_argument("--list", metavar="KIND")
    options = parser.parse_args()
    at = found()
    if options.list:
        print("\n".join(at.get(options.list, [])))
        return 0
    allowed = numbers((ROOT / RATCHET).read_text())
    status = 0
    for kind in sorted(set(at) | set(allowed)):
        count, most = len(at.get(kind, [])), allowed.get(kind, 0)
        if count > most:
            status = 1
            print(f"words: {count} of the kind '{kind}', and {RATCHET} allows {most}; "
                  f"packaging/words.py --list {kind} says where", file=sys.stderr)
            if most == 0:
                print("\n".join("  " + each for each in at[kind][:20]), file=sys.stderr)
        elif count < most:
            print(f"words: {RATCHET} can say '{kind} {count}' in place of {most}" if count else
                  f"words: {RATCHET} can lose its line '{kind} {most}'")
    if options.base:
        before = subprocess.run(["git", "show", f"{options.base}:{RATCHET}"], cwd=ROOT, capture_output=True, text=True)
        if before.returncode == 0:
            earlier = numbers(before.stdout)
            for kind, count in allowed.items():
                if count > earlier.get(kind, 0):
                    status = 1
                    print(f"words: {RATCHET} allows {count} of '{kind}', and allowed {earlier.get(kind, 0)} "
                          f"in {options.base}: it may only fall", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
