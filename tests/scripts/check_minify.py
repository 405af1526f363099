"""Minifies each model of a folder with faults asked for in passes that change it (CUTAWAY_FAULT), and says where the
result is too large, fails in another way, or does not repeat.

    python3 tests/scripts/check_minify.py CLI MODEL... [--options "--mode training"] [--faults N] [--seed S]

A result is small enough with at most 8 nodes, or 5 % of the model's. Needs no PyTorch.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time

CHECKS = {"wrong": "numbers", "nan": "nan", "invalid": "crash", "crash": "crash", "logic_error": "crash"}


def run(words, fault=None, timeout=900):
    env = dict(os.environ, CUTAWAY_REPROS="off")
    if fault:
        env["CUTAWAY_FAULT"] = fault
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout)


def changed_passes(cli, model, options):
    done = run([cli, "steps", model, "--json", "-", *options])
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr}")
    steps = json.loads(done.stdout)
    steps = steps["steps"] if isinstance(steps, dict) else steps
    names = []
    for step in steps:
        if step.get("state") == "changed" and step["stage"] not in ("lowering", "schedule"):
            if step["name"] not in names:
                names.append(step["name"])
    return names


def check(cli, model, options, name, kind):
    fault = f"pass:{name}:{kind}"
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        begin = time.time()
        words = [cli, "minify", model, "--check", CHECKS[kind], "-o", os.path.join(folder, "out"), "--json", report]
        done = run([*words, *options], fault)
        seconds = time.time() - begin
        if not os.path.exists(report):
            return f"no result: {done.stderr.strip().splitlines()[0] if done.stderr.strip() else done.returncode}", seconds
        found = json.load(open(report))
        small = found["nodes"] <= max(8, 0.05 * found["nodes_before"])
        if not found["reproduced"]:
            return f"does not repeat ({found['nodes']} nodes)", seconds
        if not small:
            return f"{found['nodes']} of {found['nodes_before']} nodes after {found['trials']} trials", seconds
        again = run([cli, "run-repro", found["repro"]], fault)
        if again.returncode:
            return f"run-repro: {again.stderr.strip()}", seconds
        bad = f"  {found['nodes_before']:5} -> {found['nodes']} in {found['trials']} trials, {found['overhead_ms']:.1f} ms each"
        return bad, seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cli")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--options", default="")
    parser.add_argument("--faults", type=int, default=3, help="passes a model")
    parser.add_argument("--kinds", default=",".join(CHECKS))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    options = shlex.split(arguments.options)
    chance = random.Random(arguments.seed)
    wrong = total = 0
    for model in arguments.models:
        names = changed_passes(arguments.cli, model, options)
        chosen = chance.sample(names, min(arguments.faults, len(names)))
        for name in chosen:
            for kind in arguments.kinds.split(","):
                total += 1
                said, seconds = check(arguments.cli, model, options, name, kind)
                good = said.startswith("  ")
                wrong += not good
                print(f"{'ok  ' if good else 'BAD '} {model} {name} {kind}: {said.strip()} ({seconds:.1f} s)", flush=True)
    print(f"{total - wrong} of {total}, seed {arguments.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
