#!/usr/bin/env python3
"""Runs the commands of documents, so that what they say can be typed.

  run_documents.py BIN MODELS FILE...

Each block that is fenced as ```bash runs in an empty folder with the bundled samples (MODELS), one folder a FILE, with
the programs of BIN first in the path. A line's exit status must be 0, or what its comment says: "# status 1". Blocks
fenced otherwise are not run: they need a display, a network, root or a GPU, or are not commands.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS = 300  # for one line


def lines(text):
    """(number, command, expected status) of each command; a line that ends with a backslash goes on."""
    inside, command, begun = False, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line.strip() == "```bash"
            continue
        if not inside or not line.strip():
            continue
        begun = begun if command else number
        command += line
        if command.endswith("\\"):
            command = command[:-1]
            continue
        said = re.search(r"# status (\d+)", command)
        yield begun, command, int(said[1]) if said else 0
        command = ""


def run(path, folder, environment):
    """What is wrong in a document: (line, command, what)."""
    wrong, count = [], 0
    for number, command, expected in lines(path.read_text()):
        count += 1
        # export and unset are for the lines that follow.
        if changed := re.match(r"(export|unset) (\w+)(?:=(\S*))?\s*(?:#.*)?$", command):
            environment.pop(changed[2], None)
            if changed[1] == "export":
                environment[changed[2]] = changed[3]
            continue
        try:
            ended = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, errors="replace", timeout=SECONDS)
            status, said = ended.returncode, ended.stderr.strip()[-600:]
        except subprocess.TimeoutExpired:
            status, said = "none", f"it did not end in {SECONDS} s"
        if status != expected:
            wrong.append(f"{path}:{number}: {command}\n    status {status}, not {expected}: {said}")
    return wrong, count


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    programs, models = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    wrong, total = [], 0
    with tempfile.TemporaryDirectory() as made:
        for each in sys.argv[3:]:
            folder = pathlib.Path(made) / str(sys.argv.index(each))
            shutil.copytree(models, folder, ignore=shutil.ignore_patterns("*.py"))
            environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", HOME=made, CUTAWAY_REPROS="off",
                               XDG_CACHE_HOME=f"{made}/cache", XDG_DATA_HOME=f"{made}/data")
            environment.pop("CUTAWAY_FAULT", None)
            found, count = run(pathlib.Path(each), folder, environment)
            wrong += found
            total += count
    print("\n".join(wrong))
    print(f"{total} commands, {len(wrong)} of them not as said")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
