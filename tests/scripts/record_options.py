"""Writes what releases of PyTorch changed in the options of torch._inductor and torch._functorch.

    record_options.py dump OUT.json                                 run with each release
    record_options.py table RELEASE=DUMP.json ... > engine/support/pytorch_options.inc   oldest release first

A row is a release, what it did to an option, the option's name, and its initial value ("default", also the one before).
"""
import json
import sys

# Names of private tables and of tests; values that are a path of the machine.
SKIPPED = ("_save_config_ignore", "_cache_config", "TESTING_ONLY", "cutlass_dir", "test_configs.")


def dump(path):
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    options = {}
    for prefix, module in (("inductor", inductor), ("functorch", functorch)):
        for name, entry in module._config.items():
            if not any(part in name for part in SKIPPED):
                options[f"{prefix}.{name}"] = repr(entry.default)
    with open(path, "w") as file:
        json.dump(options, file)


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def row(release, change, name, value="", before=""):
    return f"{{V{release.replace('.', '_')}, OptionChange::{change}, {literal(name)}, {literal(value)}, {literal(before)}}},"


def table(arguments):
    print("// Made by tests/scripts/record_options.py, which says how. clang-format off")
    dumps = [(release, json.load(open(path))) for release, path in (argument.split("=") for argument in arguments)]
    for (_, old), (release, new) in zip(dumps, dumps[1:]):
        for name in sorted(set(old) | set(new)):
            if name not in old:
                print(row(release, "Added", name, new[name]))
            elif name not in new:
                print(row(release, "Removed", name))
            elif old[name] != new[name] and " object at " not in old[name] + new[name]:
                print(row(release, "Changed", name, new[name], old[name]))


if __name__ == "__main__":
    if sys.argv[1] == "dump":
        dump(sys.argv[2])
    else:
        table(sys.argv[2:])
