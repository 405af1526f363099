"""Minifies each model of a list with faults asked for (CUTAWAY_FAULT) in passes, rules, operators and compiled code that it
really uses, and says where the result is too large, fails in another way, blames another pass, or does not repeat.

    python3 tests/scripts/check_minify.py CLI MODEL... [--options "--mode training"] [--faults N] [--seed S]
            [--places pass,rule,op,kernel,command] [--kinds wrong,crash]

A result is small enough with at most 8 nodes, or 5 % of the model's. The command of the last place needs PyTorch
(--python); the others need none.
"""

import argparse
import collections
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

Kind = collections.namedtuple("Kind", "check options")
PLAIN = Kind("crash", [])
# The fault is put at whichever call stands last, so the operator at which the graph is wrong says nothing.
INVALID = Kind("crash", ["--signature", "kind=invalid-graph"])
# What may go wrong at a place, and how it is looked for. A hang costs its limit of time in each trial that has it.
KINDS = {
    "pass": {"wrong": Kind("numbers", []), "nan": Kind("nan", []), "invalid": INVALID, "crash": PLAIN, "logic_error": PLAIN,
             "hang": Kind("crash", ["--timeout", "2"]), "leak": Kind("crash", ["--memory", "3000"])},
    "rule": {"wrong": Kind("numbers", []), "nan": Kind("nan", []), "invalid": INVALID, "abort": PLAIN},
    "op": {"wrong": Kind("numbers", []), "nan": Kind("nan", []), "crash": PLAIN, "runtime_error": PLAIN},
    "kernel": {"wrong": Kind("numbers", ["--backend", "cpu"]), "crash": Kind("crash", ["--backend", "cpu"])},
    "command": {"accuracy": Kind("command", []), "compile_error": Kind("command", [])},
}


def run(words, fault=None, timeout=900):
    env = dict(os.environ, CUTAWAY_REPROS="off")
    if fault:
        env["CUTAWAY_FAULT"] = fault
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout)


def report_of(words):
    done = run([*words, "--json", "-"])
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def not_a_view(op):
    """Faults of operators are in what they compute; views compute nothing."""
    return not re.match(r"aten\.(view|permute|expand|unsqueeze|squeeze|slice|select|t|transpose|as_strided|detach|alias)\.", op)


def used(cli, model, options):
    """Names by place: passes that change the model, rules that apply in them, operators that are left at last."""
    report = report_of([cli, "steps", model, "--rewrites", *options])
    steps = report["steps"] if isinstance(report, dict) else report
    passes, rules = [], []
    for step in steps:
        if step.get("state") != "changed" or step["stage"] in ("lowering", "schedule"):
            continue
        passes.append(step["name"])
        for rewrite in step.get("list", []):
            rules.append((step["name"], rewrite["rule"]))
    last = [step["key"] for step in steps if step["stage"] not in ("lowering", "schedule") and step["state"] == "changed"]
    text = run([cli, "text", model, "--step", last[-1], *options]).stdout if last else ""
    ops = [op for op in re.findall(r"^ +\w+: .* = ((?:aten|prims)\.[\w.]+)\(", text, re.M) if not_a_view(op)]
    return sorted(set(passes)), sorted(set(rules)), sorted(set(ops))


def minified(cli, model, options, fault, kind, blamed):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        begin = time.time()
        words = [cli, "minify", model, "--check", kind.check, "-o", os.path.join(folder, "out"), "--json", report]
        done = run([*words, *kind.options, *options], fault)
        seconds = time.time() - begin
        if not os.path.exists(report):
            said = done.stderr.strip().splitlines()
            if said and "the graph does not fail" in said[0]:
                return " (no effect: the fault is in what nothing that is compared reads)", seconds
            return f"no result: {' | '.join(said[:3]) if said else done.returncode}", seconds
        found = json.load(open(report))
        if not found["reproduced"]:
            return f"does not repeat ({found['nodes']} nodes): {found['signature']}", seconds
        if found["nodes"] > max(8, 0.05 * found["nodes_before"]):
            return f"{found['nodes']} of {found['nodes_before']} nodes after {found['trials']} trials", seconds
        if blamed and f"pass=" in found["signature"] and blamed not in found["signature"]:
            return f"blames another pass: {found['signature']}", seconds
        again = run([cli, "run-repro", found["repro"]], fault)
        if again.returncode:
            return f"run-repro: {again.stderr.strip()}", seconds
        return (f"  {found['nodes_before']:5} -> {found['nodes']} in {found['trials']} trials, "
                f"{found['overhead_ms']:.1f} ms each; {found['signature']}"), seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cli")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--options", default="")
    parser.add_argument("--faults", type=int, default=3, help="passes, rules, operators a model")
    parser.add_argument("--places", default="pass")
    parser.add_argument("--kinds", default="", help="only these")
    parser.add_argument("--python", default=sys.executable, help="one that has PyTorch, for --places command")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    options = shlex.split(arguments.options)
    only = set(filter(None, arguments.kinds.split(",")))
    chance = random.Random(arguments.seed)
    wrong = total = 0
    for model in arguments.models:
        passes, rules, ops = used(arguments.cli, model, options)
        names = {"pass": [(name, name) for name in passes], "rule": [(f"{owner}/{rule}", owner) for owner, rule in rules],
                 "op": [(op, None) for op in ops], "kernel": [(op, None) for op in ops], "command": [("relu", None)]}
        for place in arguments.places.split(","):
            for name, blamed in chance.sample(names[place], min(arguments.faults, len(names[place]))):
                for kind, how in KINDS[place].items():
                    if only and kind not in only:
                        continue
                    total += 1
                    at = "op@after" if place == "op" and kind in ("wrong", "nan") else place
                    fault = f"{at}:{name}:{kind}"
                    if place == "command":
                        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch_fault.py")
                        command = f"{shlex.quote(arguments.python)} {shlex.quote(script)} {{}} {kind}"
                        how, fault = how._replace(options=["--command", command]), None
                    try:
                        said, seconds = minified(arguments.cli, model, options, fault, how, blamed)
                    except subprocess.TimeoutExpired as error:
                        said, seconds = "did not end", error.timeout
                    good, idle = said.startswith("  "), said.startswith(" (")
                    wrong += not good and not idle
                    total -= idle
                    print(f"{'ok  ' if good else 'idle' if idle else 'BAD '} {model} {place} {name} {kind}: {said.strip()} ({seconds:.1f} s)",
                          flush=True)
    print(f"{total - wrong} of {total}, seed {arguments.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
