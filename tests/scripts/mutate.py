#!/usr/bin/env python3
"""Plants faults, one line each, and counts how many the tests notice.

    mutate.py [--build build/release] [--count 200] [--seed 1] [--only engine/passes ...] [--list] [--jobs N] [--log F]

Every fault is one change that somebody could make by mistake: a comparison off by one, a condition turned round, a check
left out, a bound moved, an index that is not advanced, a branch not taken. They are chosen by seed, spread evenly over the
folders of engine, app and ui, and all planted at once, each behind a switch that CUTAWAY_MUTANT=NUMBER turns on: one build
serves all. The suites then run once with every switch off, which tells how long each takes and which faults it reaches;
each fault is then switched on for the suites that reach it, fastest first, until one fails, ends otherwise or takes ten
times as long. What cannot stand behind a switch (part of a statement over several lines, a constant expression) is
replaced by another fault. Suites that read the sources (export_test, settings_test) fail with all switches off, too, and
are left out.

The checkout must be clean: files are put back at the end, also at Ctrl-C. With --log F, faults whose answers stand there are
not tried again, and what the suites reach is kept beside it. The last line is the score; survivors are listed with file, line and text. Those that change nothing are
named, with the reason, in tests/mutants.txt, as "FILE: new text: reason", and are left out.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

# Pattern, replacement, what it is. Applied to code outside of comments, strings and preprocessor lines.
FAULTS = [
    (r"(?<= )<(?= )", "<=", "< becomes <="),
    (r"<= ", "< ", "<= becomes <"),
    (r"(?<= )>(?= )", ">=", "> becomes >="),
    (r">= ", "> ", ">= becomes >"),
    (r" == ", " != ", "== becomes !="),
    (r" != ", " == ", "!= becomes =="),
    (r" && ", " || ", "and becomes or"),
    (r" \|\| ", " && ", "or becomes and"),
    (r"\btrue\b", "false", "true becomes false"),
    (r"\bfalse\b", "true", "false becomes true"),
    (r" \+ 1\b", "", "one is not added"),
    (r" - 1\b", "", "one is not subtracted"),
    (r"\bstd::min\(", "std::max(", "min becomes max"),
    (r"\bstd::max\(", "std::min(", "max becomes min"),
    (r" \+= ", " -= ", "+= becomes -="),
    (r"\bcontinue;", ";", "continue is left out"),
    (r"\bbreak;", ";", "break is left out"),
    (r"(?<=[(\[ ])0(?=[)\];,])", "1", "0 becomes 1"),
    (r"(?<=[(\[ ])1(?=[)\];,])", "2", "1 becomes 2"),
    (r"\breturn true;", "return false;", "the answer is no"),
    (r"\breturn false;", "return true;", "the answer is yes"),
    (r"\.front\(\)", ".back()", "the last in place of the first"),
    (r"\bany_of\(", "all_of(", "any becomes all"),
    (r"\ball_of\(", "any_of(", "all becomes any"),
]

def folder_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] == "app" else "/".join(parts[:2])


def code_part(line):
    """The line with comments and the insides of strings blanked, so that places stay."""
    out, quote, i = [], None, 0
    while i < len(line):
        c = line[i]
        if quote:
            out.append(c if c == quote else " ")
            if c == "\\":
                out.append(" ")
                i += 1
            elif c == quote:
                quote = None
        elif line.startswith("//", i):
            out.append(" " * (len(line) - i))
            break
        else:
            if c in "\"'":
                quote = c
            out.append(c)
        i += 1
    return "".join(out)[: len(line)]


def turned_condition(code):
    """(column, end, replacement) that negates the condition of an `if` that ends on its line and declares nothing."""
    start = code.find("if (")
    if start < 0 or (start > 0 and code[start - 1].isalnum()) or "constexpr" in code:
        return None
    depth, begin = 0, start + 3
    for at in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            condition = code[begin + 1 : at]
            declares = re.match(r"\s*(const |auto |[\w:<>*& ]+ \w+ =(?!=))", condition) or ";" in condition
            return None if declares else (begin, at + 1, None)
    return None


def candidates(path):
    """(line, column, end, replacement, what) of each place of a file where a fault fits; no replacement: a condition."""
    found, raw = [], False
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file):
            code = code_part(line.rstrip("\n"))
            if 'R"(' in line:
                raw = True
            skip = raw or code.lstrip().startswith(("#", "template", "static_assert", "using")) or "CT_CHECK" in code or "for (" in code and "<" in code and ":" in code
            if ')"' in line:
                raw = False
            if skip:
                continue
            if turned := turned_condition(code):
                found.append((number,) + turned + ("a condition is turned round",))
            for pattern, replacement, what in FAULTS:
                for match in re.finditer(pattern, code):
                    found.append((number, match.start(), match.end(), replacement, what))
    return found


def equivalents():
    path = os.path.join(ROOT, "tests", "mutants.txt")
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(": ", 2) for line in file if line.strip() and not line.startswith("#")]
    return {(row[0], row[1]) for row in rows if len(row) == 3}


def choose(count, seed, only):
    """Faults in the order in which they are tried: folders take turns, so that any beginning is spread."""
    listed = subprocess.run(["git", "ls-files", "engine/*.cpp", "app/*.cpp", "ui/*.cpp"], cwd=ROOT, capture_output=True, text=True, check=True)
    known, picker = equivalents(), random.Random(seed)
    by_folder = collections.defaultdict(list)
    for path in listed.stdout.split():
        if only and not any(path.startswith(each) for each in only):
            continue
        for place in candidates(path):
            by_folder[folder_of(path)].append((path, place))
    for places in by_folder.values():
        picker.shuffle(places)
    chosen = []
    while by_folder and len(chosen) < count * 4:
        for folder in sorted(by_folder):
            if by_folder[folder]:
                path, place = by_folder[folder].pop()
                if (path, mutated_line(path, place)[1].strip()) not in known:
                    chosen.append((path, place))
            else:
                del by_folder[folder]
                break
    return chosen


def mutated_text(line, place):
    _, begin, end, replacement, _ = place
    if replacement is None:  # the condition in its parentheses
        replacement = "(!" + line[begin:end] + ")"
    return line[:begin] + replacement + line[end:]


def mutated_line_of(text, place):
    return mutated_text(text.splitlines(keepends=True)[place[0]], place)


def mutated_line(path, place):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        line = file.readlines()[place[0]]
    return line, mutated_text(line, place)


HEADER = r"""#pragma once
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>
namespace mutant {
inline void reached(int number, const char* file) {
    static std::atomic<bool> seen[4096];
    if (seen[number].exchange(true)) return;
    const std::string line = std::to_string(number) + "\n";
    const int out = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (out >= 0 && write(out, line.data(), line.size()) < 0) std::perror("mutant");
    if (out >= 0) close(out);
}
inline bool on(int number) {
    static const char* const chosen = std::getenv("CUTAWAY_MUTANT");
    static const char* const file = std::getenv("CUTAWAY_MUTANT_REACHED");
    static const int active = chosen ? std::atoi(chosen) : -1;
    if (file) reached(number, file);
    return number == active;
}
template <typename T> T least(bool most, const T& a, const T& b) { return (b < a) != most ? b : a; }
}  // namespace mutant
"""

# Faults that are one value in place of another: what stands there and what takes its place.
VALUES = {
    "true becomes false": ("true", "false"),
    "false becomes true": ("false", "true"),
    "one is not added": ("1", "0"),
    "one is not subtracted": ("1", "0"),
    "0 becomes 1": ("0", "1"),
    "1 becomes 2": ("1", "2"),
}
DECLARATION = re.compile(r"(?:const |auto |unsigned |[\w:]+(?:<[^;=]*>)?[ *&]+(?:const )?[*&]*)+\w+ = ")


def balanced(code):
    return all(code.count(a) == code.count(b) for a, b in ("()", "[]", "{}"))


def closing(code, begin):
    """Where the parenthesis that opens at `begin` is closed; None if not on this line."""
    depth = 0
    for at in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return None


def switched(number, lines, place):
    """The line with its fault behind switch `number`, or None if it cannot be."""
    at, begin, end, _, what = place
    old, new = lines[at], mutated_text(lines[at], place)
    code = code_part(old.rstrip("\n"))
    old, new = old[: len(code.rstrip())], new.rstrip("\n")
    if len(code.rstrip()) < len(code):  # a comment follows
        new = new[: len(old) + len(new) - len(lines[at].rstrip("\n"))]
    code = code.rstrip()
    on = f"mutant::on({number})"
    body = code.strip()
    if body.startswith(("static ", "constexpr ", "inline ", "case ", "enum ", "struct ", "class ", "typedef ")) or "constexpr" in body:
        return None
    if what in VALUES:
        was, becomes = VALUES[what]
        where = code.index(was, begin)
        return f"{old[:where]}({on} ? {becomes} : {was}){old[where + len(was):]}\n"
    if what in ("continue is left out", "break is left out"):
        return f"{old[:begin]}{{ if (!{on}) {old[begin:end]} }}{old[end:]}\n"
    if what in ("the answer is no", "the answer is yes"):
        return f"{old[:begin]}return {'!' if what.endswith('no') else ''}{on};{old[end:]}\n"
    if what in ("min becomes max", "max becomes min"):
        return f"{old[:begin]}mutant::least({'!' if what.startswith('max') else ''}{on}, {old[end:]}\n"
    # A condition on one line.
    head = re.match(r"\s*(?:(?:\} )?else )?(?:if|while) \(", code)
    if head:
        opens = head.end() - 1
        closes = closing(code, opens)
        if closes is None:
            return None
        condition = code[opens + 1 : closes]
        declares = re.match(r"\s*(const |auto |[\w:<>*& ]+ \*?\w+ =(?!=))", condition) or ";" in condition
        if begin >= opens and end <= closes + 1:
            changed = new[opens + 1 : len(new) - (len(old) - closes)]
            return None if declares else f"{old[:opens]}({on} ? bool({changed}) : bool({old[opens + 1 : closes]})){old[closes + 1:]}\n"
    head = re.match(r"\s*for \(", code)
    if head and code.count(";") >= 2:
        first = code.index(";")
        second = code.index(";", first + 1)
        if first < begin and end <= second:
            changed = new[first + 1 : len(new) - (len(old) - second)]
            return f"{old[:first + 1]} {on} ? bool({changed}) : bool({old[first + 1 : second]}){old[second:]}\n"
        return None
    # A statement of its own.
    before = next((code_part(lines[i].rstrip("\n")).strip() for i in range(at - 1, -1, -1) if code_part(lines[i].rstrip("\n")).strip()), "{")
    after = next((code_part(lines[i].rstrip("\n")).strip() for i in range(at + 1, len(lines)) if code_part(lines[i].rstrip("\n")).strip()), "}")
    if not body.endswith(";") or body.startswith("else") or not balanced(code) or before[-1] not in ";{}:" or after.startswith("else"):
        return None
    start = len(code) - len(code.lstrip())
    declared = None if body.startswith(("return", "if ", "for ", "while ", "delete ", "++", "--")) else DECLARATION.match(body)
    if declared:
        value = start + declared.end()
        if begin < value or "{" in code[value:]:
            return None
        return f"{old[:value]}{on} ? ({new[value:-1]}) : ({old[value:-1]});\n"
    return f"{old[:start]}if ({on}) {{ {new[start:]} }} else {{ {old[start:]} }}\n"


class Planted:
    """Files with faults behind switches; put back when left."""

    def __init__(self, build, jobs):
        self.build, self.jobs, self.originals, self.faults = os.path.join(ROOT, build), jobs, {}, {}
        self.header = os.path.join(self.build, "mutant.h")

    def __enter__(self):
        with open(self.header, "w", encoding="utf-8") as file:
            file.write(HEADER)
        return self

    def __exit__(self, *_):
        for path, text in self.originals.items():
            os.remove(os.path.join(ROOT, path + ".planted"))
            with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
                file.write(text)

    def plant(self, number, path, place):
        """Whether the fault fits behind a switch on a line that has none."""
        if path not in self.originals:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = file.read()
            if "Q_OBJECT" in text:
                return False
        else:
            text = self.originals[path]
        if any(p == path and other[0] == place[0] for p, other in self.faults.values()):
            return False
        line = switched(number, text.splitlines(keepends=True), place)
        if line is None:
            return False
        self.originals[path] = text
        self.faults[number] = (path, place)
        return True

    def write(self):
        """A file with faults includes its changed text as a system header: what compilers think of that is not asked."""
        for path, text in self.originals.items():
            lines = text.splitlines(keepends=True)
            for number, (p, place) in self.faults.items():
                if p == path:
                    lines[place[0]] = switched(number, text.splitlines(keepends=True), place)
            self.save(path + ".planted", f'#pragma GCC system_header\n#include "{self.header}"\n#line 1\n' + "".join(lines))
            self.save(path, f'#include "{os.path.basename(path)}.planted"\n')

    def save(self, path, text):
        full = os.path.join(ROOT, path)
        if os.path.exists(full):
            with open(full, encoding="utf-8") as file:
                if file.read() == text:
                    return
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def make(self):
        """Builds everything; faults that do not compile are taken out. How many faults are left."""
        while True:
            self.write()
            made = subprocess.run(["ninja", "-C", self.build, "-k", "0", "-j", str(self.jobs)], capture_output=True, text=True)
            if made.returncode == 0:
                return len(self.faults)
            wrong = set()
            for file, line in re.findall(r"([\w/.-]+\.planted):(\d+):\d+: (?:fatal )?error", made.stdout):
                for number, (path, place) in self.faults.items():
                    if file.endswith(path + ".planted") and place[0] + 1 == int(line):
                        wrong.add(number)
            if not wrong:
                # Of files that are compiled as one, messages name the file.
                named = {os.path.basename(path) for path in re.findall(r"([\w/.-]+)\.planted:\d+", made.stdout)}
                named |= {os.path.basename(path) for path in re.findall(r"FAILED: (\S+)\.o\b", made.stdout)}
                broken = [p for p in self.originals if os.path.basename(p) in named]
                wrong = {n for n, (path, _) in self.faults.items() if path in broken}
            if not wrong:
                sys.exit("mutate: does not build:\n" + made.stdout[-3000:])
            print(f"{len(wrong)} faults do not compile", flush=True)
            for number in wrong:
                del self.faults[number]


class Tests:
    """What stands in CTest, how long each takes and which faults it reaches."""

    def __init__(self, build, jobs):
        self.build, self.jobs = os.path.join(ROOT, build), jobs
        out = subprocess.run(["ctest", "--test-dir", self.build, "-N"], capture_output=True, text=True, check=True).stdout
        self.all = re.findall(r"Test +#\d+: (\S+)", out)
        self.seconds, self.reaches = {}, {}

    def passes(self, name, timeout, **environment):
        command = ["ctest", "--test-dir", self.build, "-R", f"^{name}$", "--timeout", str(int(timeout))]
        limit = lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        run = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, env={**os.environ, **environment})
        return run.returncode == 0

    def measure(self, name):
        with tempfile.NamedTemporaryFile() as file:
            start = time.monotonic()
            passed = self.passes(name, 900, CUTAWAY_MUTANT_REACHED=file.name)
            with open(file.name, encoding="utf-8") as lines:
                reached = {int(line) for line in lines if line.strip().isdigit()}
        if not passed:
            print(f"left out, fails without a fault: {name}", flush=True)
            return
        self.seconds[name], self.reaches[name] = time.monotonic() - start, reached

    def measure_all(self, kept, faults):
        """With a file `kept`, what an earlier call with the same faults has measured."""
        if kept and os.path.exists(kept):
            with open(kept, encoding="utf-8") as file:
                old = json.load(file)
            if old["faults"] == faults:
                self.seconds, self.reaches = old["seconds"], {name: set(numbers) for name, numbers in old["reaches"].items()}
                return
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.measure, self.all))
        if kept:
            with open(kept, "w", encoding="utf-8") as file:
                json.dump({"faults": faults, "seconds": self.seconds, "reaches": {name: sorted(numbers) for name, numbers in self.reaches.items()}}, file)

    def noticing(self, number, path):
        """The first suite that fails with the fault; '' if none does. Those named like its file come first."""
        stem = os.path.splitext(os.path.basename(path))[0]
        far = lambda name: not set(name.removesuffix("_test").split("_")) & set(stem.split("_"))
        near = sorted((name for name in self.seconds if number in self.reaches[name]), key=lambda name: (far(name), self.seconds[name]))
        for name in near:
            if not self.passes(name, 30 + 10 * self.seconds[name], CUTAWAY_MUTANT=str(number)):
                return name
        return ""


def main():
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--build", default="build/release")
    cli.add_argument("--count", type=int, default=200)
    cli.add_argument("--seed", type=int, default=1)
    cli.add_argument("--only", action="append")
    cli.add_argument("--jobs", type=int, default=os.cpu_count())
    cli.add_argument("--log", help="answers, one line of JSON each; read first, if there")
    cli.add_argument("--list", action="store_true", help="print the faults, plant none")
    args = cli.parse_args()
    chosen = choose(args.count, args.seed, args.only)
    if args.list:
        for path, place in chosen[: args.count]:
            print(f"{path}:{place[0] + 1}: {place[4]}: {mutated_line(path, place)[1].strip()}")
        return 0
    dirty = subprocess.run(["git", "status", "--porcelain", "engine", "app", "ui"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if dirty:
        sys.exit("mutate: the checkout has changes; commit them first")
    answers = {}
    if args.log and os.path.exists(args.log):
        with open(args.log, encoding="utf-8") as file:
            answers = {row["fault"]: row["noticed"] for row in map(json.loads, file)}
    guard = threading.Lock()
    with Planted(args.build, args.jobs) as planted:
        for number, (path, place) in enumerate(chosen):
            if len(planted.faults) < args.count + args.count // 20:  # some will not compile
                planted.plant(number, path, place)
        tests = Tests(args.build, args.jobs)
        print(f"{planted.make()} faults are planted", flush=True)
        kept = sorted(planted.faults)[: args.count]
        texts = {n: f"{p[0]}:{p[1][0] + 1}: {p[1][4]}: {mutated_line_of(planted.originals[p[0]], p[1]).strip()}" for n, p in planted.faults.items()}
        texts_in_order = [texts[n] for n in sorted(texts)]
        if any(texts[n] not in answers for n in kept):
            tests.measure_all(args.log and args.log + ".reached", texts_in_order)

        def answer(number):
            if texts[number] not in answers:
                noticed = tests.noticing(number, planted.faults[number][0])
                with guard:
                    answers[texts[number]] = noticed
                    print(f"caught by {noticed}: {texts[number]}" if noticed else f"SURVIVES: {texts[number]}", flush=True)
                    if args.log:
                        with open(args.log, "a", encoding="utf-8") as file:
                            file.write(json.dumps({"fault": texts[number], "noticed": noticed}) + "\n")
            return answers[texts[number]]

        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            noticed = list(pool.map(answer, kept))
    caught = sum(1 for each in noticed if each)
    for number, each in zip(kept, noticed):
        if not each:
            print(f"survivor: {texts[number]}")
    print(f"{caught} of {len(kept)} faults caught ({100.0 * caught / max(len(kept), 1):.1f} %)")
    return 0 if kept and caught >= 0.9 * len(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
