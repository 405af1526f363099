#!/usr/bin/env python3
"""Runs graphs in PyTorch as Cutaway prints them.

usage: check_runnable.py CUTAWAY_CLI FILE...

Each FILE is turned into its runnable form by `CUTAWAY_CLI text --runnable FILE` and executed unchanged by this
interpreter, which must have PyTorch: loaded once, each script in a process of its own. Reports one line per file and
fails if any file failed. Files that this machine cannot run (another device), and those that Cutaway refuses because they
lack the type of an input, are counted apart.
"""
import contextlib
import io
import os
import subprocess
import sys
import traceback

import torch
import torch._inductor.inductor_prims
import torch.ao.quantization.fx._decomposed

CANNOT_RUN = ("Torch not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver")


def execute(script):
    """The end of the traceback, empty for success."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        torch.set_num_threads(1)
        text = ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(script, "graph.py", "exec"), {"__name__": "__main__"})
        except BaseException:
            text = "\n".join(traceback.format_exc().strip().splitlines()[-3:])
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text if status == 0 else text + "the process ended with status %d" % status


def check(cli, path):
    printed = subprocess.run([cli, "text", "--runnable", path], capture_output=True, text=True)
    if printed.returncode != 0:
        return ("incomplete" if "has no type in the file" in printed.stderr else "refused"), printed.stderr.strip().splitlines()[:2]
    problem = execute(printed.stdout)
    if not problem:
        return "ok", []
    if any(reason in problem for reason in CANNOT_RUN):
        return "skipped", []
    return "failed", problem.splitlines()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    counts = {}
    for path in sys.argv[2:]:
        outcome, lines = check(sys.argv[1], path)
        counts[outcome] = counts.get(outcome, 0) + 1
        print(outcome, path, *lines, sep="\n    " if lines else " ", flush=True)
    print(counts)
    sys.exit(1 if counts.get("failed") or counts.get("refused") else 0)


if __name__ == "__main__":
    main()
