#!/usr/bin/env python3
"""Plants faults, one line each, and counts how many the tests notice.

    mutate.py [--build build/release] [--count 200] [--seed 1] [--only engine/passes ...] [--list] [--jobs N]

Every fault is one change that somebody could make by mistake: a comparison off by one, a condition turned round, a check
left out, a bound moved, an index that is not advanced, a branch not taken. They are chosen by seed, spread evenly over the
folders of engine, app and ui, and applied one by one: the suites nearest to the file are built and run first, then the
others, until one fails. A fault that does not compile is replaced by another.

The checkout must be clean: files are put back after each fault, also at Ctrl-C. The last line is the score; survivors are
listed with file, line and both texts. Those that change nothing are named, with the reason, in tests/mutants.txt, as
"FILE: new text: reason", and are left out.
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys

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

# The suites that look at a folder, nearest first; all others follow.
NEAR = {
    "engine/ops": ["ops_test", "ops_recorded_test", "ops_expansion_test", "op_arguments_test", "symbolic_test"],
    "engine/expr": ["sizes_test", "schedule_test", "symbolic_test"],
    "engine/tensor": ["compare_test", "interpret_test", "ops_test"],
    "engine/ir": ["ir_test", "rewriter_test", "cases_test", "text_test"],
    "engine/text": ["text_test", "recorded_texts_test", "cases_test"],
    "engine/formats": ["pt2_test", "torch_save_test", "zip_test", "safetensors_test", "logs_test", "open_test", "repro_test", "corpus_replay_test"],
    "engine/interpret": ["interpret_test", "ops_test"],
    "engine/rewrite": ["rules_test", "matcher_test", "cases_test", "rewriter_test"],
    "engine/autograd": ["functionalize_test", "joint_test", "ops_test"],
    "engine/passes": ["cases_test", "post_grad_test", "pre_grad_test", "explain_test", "idempotent_test", "user_passes_test", "plan_test", "padding_test"],
    "engine/schedule": ["schedule_test", "cpu_backend_test", "cpu_limits_test"],
    "engine/codegen": ["codegen_test", "cpu_backend_test"],
    "engine/runtime": ["worker_test", "cpu_backend_test", "thread_pool_test", "library_kernels_test"],
    "engine/cache": ["value_store_test"],
    "engine/minify": ["bisect_test"],
    "engine/session": ["engine_session_test", "bodies_test", "numbers_test", "reproducer_test", "threads_test"],
    "engine/support": ["request_test", "step_key_test", "process_test", "job_queue_test", "words_test", "files_test"],
    "app": ["cli_test", "cli_commands_test"],
    "ui/graph": ["picture_test", "canvas_test", "layout_test", "panes_test"],
    "ui/models": ["models_test", "steps_model_test", "syntax_test"],
    "ui/session": ["controller_test", "explaining_test", "stepping_test"],
    "ui/windows": ["windows_test", "window_keys_test", "dialogs_test", "menu_dialogs_test", "window_looks_test", "welcome_test", "commands_test"],
}


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


def mutated_line(path, place):
    number, begin, end, replacement, _ = place
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        line = file.readlines()[number]
    if replacement is None:  # the condition in its parentheses
        replacement = "(!" + line[begin:end] + ")"
    return line, line[:begin] + replacement + line[end:]


class Tests:
    """Builds suites one by one and runs them."""

    def __init__(self, build, jobs):
        self.build, self.jobs = os.path.join(ROOT, build), jobs
        out = subprocess.run(["ctest", "--test-dir", self.build, "-N"], capture_output=True, text=True, check=True).stdout
        self.all = re.findall(r"Test +#\d+: (\S+)", out)

    def ordered(self, path):
        near = [name for name in NEAR.get(folder_of(path), []) if name in self.all]
        return near + [name for name in self.all if name not in near]

    def make(self, targets):
        return subprocess.run(["ninja", "-C", self.build, "-j", str(self.jobs)] + targets, capture_output=True, text=True).returncode == 0

    def fails(self, name):
        made = [name] if os.path.exists(os.path.join(self.build, "tests", name)) else []
        helpers = ["cutaway-cli", "cutaway-worker"]
        if not self.make(made + helpers):
            return "does not build"
        run = subprocess.run(["ctest", "--test-dir", self.build, "-R", f"^{name}$", "--timeout", "300"], capture_output=True, text=True)
        return "" if run.returncode == 0 else "fails"


def try_fault(tests, path, place):
    """Which suite noticed; '' if none did; None if it does not compile."""
    full = os.path.join(ROOT, path)
    with open(full, encoding="utf-8") as file:
        before = file.read()
    line, changed = mutated_line(path, place)
    lines = before.splitlines(keepends=True)
    lines[place[0]] = changed
    try:
        with open(full, "w", encoding="utf-8") as file:
            file.write("".join(lines))
        if not tests.make(["cutaway-cli"] if not path.startswith("ui/") else ["cutaway"]):
            return None
        for name in tests.ordered(path):
            how = tests.fails(name)
            if how == "does not build":
                return None
            if how:
                return name
        return ""
    finally:
        with open(full, "w", encoding="utf-8") as file:
            file.write(before)


def main():
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--build", default="build/release")
    cli.add_argument("--count", type=int, default=200)
    cli.add_argument("--seed", type=int, default=1)
    cli.add_argument("--only", action="append")
    cli.add_argument("--jobs", type=int, default=os.cpu_count())
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
    tests = Tests(args.build, args.jobs)
    caught, survivors = 0, []
    for path, place in chosen:
        if caught + len(survivors) == args.count:
            break
        noticed = try_fault(tests, path, place)
        if noticed is None:
            continue
        where = f"{path}:{place[0] + 1}: {place[4]}"
        if noticed:
            caught += 1
            print(f"caught by {noticed}: {where}", flush=True)
        else:
            survivors.append((path, place))
            print(f"SURVIVES: {where}\n    {mutated_line(path, place)[1].strip()}", flush=True)
    tests.make(["all"])
    total = caught + len(survivors)
    print(f"{caught} of {total} faults caught ({100.0 * caught / max(total, 1):.1f} %)")
    return 0 if total and caught >= 0.9 * total else 1


if __name__ == "__main__":
    sys.exit(main())
