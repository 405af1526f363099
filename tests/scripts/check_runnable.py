#!/usr/bin/env python3
"""Runs graphs in PyTorch as Cutaway prints them.

usage: check_runnable.py CUTAWAY_CLI FILE...

Each FILE is turned into its runnable form by `CUTAWAY_CLI print --runnable FILE` and executed by this interpreter, which
must have PyTorch. Reports one line per file and fails if any file failed. Files whose operators this machine cannot run
(another device) are counted apart.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

CANNOT_RUN = ("Torch not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver")


def check(cli, path):
    printed = subprocess.run([cli, "print", "--runnable", path], capture_output=True, text=True)
    if printed.returncode != 0:
        return "refused", printed.stderr.strip().splitlines()[-1:]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "graph.py"
        script.write_text(printed.stdout)
        ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600)
    if ran.returncode == 0:
        return "ok", []
    if any(reason in ran.stderr for reason in CANNOT_RUN):
        return "skipped", []
    return "failed", ran.stderr.strip().splitlines()[-3:]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    counts = {}
    for path in sys.argv[2:]:
        outcome, lines = check(sys.argv[1], path)
        counts[outcome] = counts.get(outcome, 0) + 1
        print(outcome, path, *lines, sep="\n    " if lines else " ")
    print(counts)
    sys.exit(1 if counts.get("failed") or counts.get("refused") else 0)


if __name__ == "__main__":
    main()
