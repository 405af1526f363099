#!/usr/bin/env python3
"""Checks packaging/words.py: each rule finds a planted text, and leaves one beside it alone.

  check_words.py WORDS_PY
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

# '~' is a space in planted texts: this file is read by the same rules.
LONG = " ".join(["to"] * 36)
CASES = [  # what it shows, kind, file, text, how many are found
    ("the habit in a comment", "of-each", "engine/a.h", "/// Of~each node the type.\n", 1),
    ("after another sentence", "of-each", "a.md", "It is read. Of~all nodes the first.\n", 1),
    ("within a sentence", "of-each", "a.md", "The type of each node.\n", 0),
    ("in texts that programs print", "of-each", "tests/cases/a.md", "Of~each node the type.\n", 0),
    ("a noun that is denied", "is-no", "engine/a.h", "// What is~no tensor stays.\n", 1),
    ("there is none", "is-no", "engine/a.h", "// There is~no tensor.\n", 0),
    ("no longer", "is-no", "engine/a.h", "// It is~no longer read.\n", 0),
    ("no more than", "is-no", "engine/a.h", "// It is~no larger than the other.\n", 0),
    ("a private number in a string", "spec-number", "ui/a.cpp", 'auto a = "ABC-4: no archive";\n', 1),
    ("in a comment", "spec-number", "ui/a.cpp", "// ABC-4\n", 0),
    ("of others", "spec-number", "ui/a.cpp", 'auto a = "UTF-8, AVX512-1";\n', 0),
    ("in a test", "spec-number", "tests/a.cpp", 'auto a = "ABC-4";\n', 0),
    ("121 columns of Markdown", "long-line-md", "a.md", "x" * 121 + "\n", 1),
    ("120 columns", "long-line-md", "a.md", "x" * 120 + "\n", 0),
    ("121 columns of C++", "long-line-cpp", "engine/a.cpp", "//" + "x" * 119 + "\n", 1),
    ("120 columns of C++", "long-line-cpp", "engine/a.cpp", "//" + "x" * 118 + "\n", 0),
    ("36 words in a string", "long-sentence", "app/a.cpp", f'f("{LONG}");\n', 1),
    ("in two strings that are one", "long-sentence", "app/a.cpp", f'f("{LONG[:54]}"\n  "{LONG[54:]}");\n', 1),
    ("two sentences", "long-sentence", "app/a.cpp", f'f("{LONG[:54]}. {LONG[54:]}");\n', 0),
    ("in a comment", "long-sentence", "app/a.cpp", f"/* {LONG} */\n", 0),
    ("a file that is not there", "broken-link", "a.md", "[page](missing.md)\n", 1),
    ("the page itself", "broken-link", "a.md", "[page](a.md#part) [site](https://example.org)\n", 0),
    ("code", "broken-link", "a.md", "`[page](missing.md)`\n", 0),
    ("README of 181 lines", "lines:README.md", "README.md", "x\n" * 181, 1),
    ("README of 180 lines", "lines:README.md", "README.md", "x\n" * 180, 0),
    ("a folder's page of 61 lines", "lines:ui/README.md", "ui/README.md", "x\n" * 61, 1),
]


def git(root, *words):
    subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@example.org", *words], cwd=root, check=True,
                   capture_output=True)


def run(root, *words):
    return subprocess.run([sys.executable, root / "packaging/words.py", *words], capture_output=True, text=True)


def project(folder, script, files, allowed=""):
    """A repository with these files, and what words.txt allows."""
    root = pathlib.Path(folder)
    for name, text in {**files, "packaging/words.txt": allowed}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("~", " "))
    shutil.copy(script, root / "packaging/words.py")
    git(root, "init", "-q")
    git(root, "add", "-A")
    return root


def main():
    script, failures = sys.argv[1], []

    def expect(what, holds, result):
        if not holds:
            failures.append(f"{what}: status {result.returncode}\n{result.stdout}{result.stderr}")

    for what, kind, name, text, count in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = project(folder, script, {name: text})
            listed = run(root, "--list", kind)
            lines = [line for line in listed.stdout.splitlines() if line]
            expect(f"{kind}, {what}: {len(lines)} found, not {count}", len(lines) == count, listed)
            checked = run(root)
            expect(f"{kind}, {what}: the status", checked.returncode == (1 if count else 0), checked)
            expect(f"{kind}, {what}: where", not count or name in checked.stderr, checked)
    with tempfile.TemporaryDirectory() as folder:
        two = "// What is~no tensor stays.\n" * 2
        root = project(folder, script, {"engine/a.h": two}, "is-no 2\n")
        expect("as many as allowed", run(root).returncode == 0, run(root))
        git(root, "commit", "-qm", "two")
        (root / "packaging/words.txt").write_text("is-no 3\n")
        expect("one more than allowed before", run(root, "--base", "HEAD").returncode == 1, run(root, "--base", "HEAD"))
        expect("a number that can fall", "'is-no 2'" in run(root).stdout, run(root))
        (root / "packaging/words.txt").write_text("is-no 1\n")
        expect("more than allowed", run(root).returncode == 1, run(root))
    print("\n".join(failures) or f"{len(CASES)} planted texts and the limits")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
