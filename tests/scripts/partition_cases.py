#!/usr/bin/env python3
"""Writes recorded partitions of PyTorch as test data.

    partition_cases.py RECORDED.json FOLDER

RECORDED.json holds, by function, its joint graph ([kind, name, target, args, kwargs, [sizes, dtype]] a node) and the
runs of torch._functorch.partitioners on it: options, saved values with their bytes, nodes of both graphs. FOLDER gets
one FX text per function and runs.json. Needs no PyTorch.
"""
import json
import os
import re
import sys

DTYPES = {"float32": "f32", "bool": "b8", "int8": "i8", "int64": "i64"}
# Marks that the recorded functions put on nodes: name -> (region or None, policy).
MARKS = {
    "mlp_must_recompute_relu_addmm": {"relu": (None, "MUST_RECOMPUTE"), "addmm": (None, "MUST_RECOMPUTE")},
    "mlp_must_save_permute": {"permute": (None, "MUST_SAVE")},
    "two_regions": {name: (region, "PREFER_RECOMPUTE")
                    for region, names in ((1, ("sin", "cos")), (2, ("mm", "tanh", "exp"))) for name in names},
}


def value(arg):
    if isinstance(arg, str):
        return arg[1:] if arg.startswith("%") else arg
    if isinstance(arg, list):
        return "[" + ", ".join(value(item) for item in arg) + "]"
    return repr(arg)


def keywords(kwargs):
    if isinstance(kwargs, dict):
        return [f"{key} = {value(item)}" for key, item in kwargs.items()]
    text = kwargs.strip("{}")
    return [f"{key} = {item}" for key, item in re.findall(r"'(\w+)': ((?:[^,(]|\([^)]*\))+)", text)]


def annotation(node):
    kind = node[5]
    if not isinstance(kind, list):
        return ""
    return f': "{DTYPES[kind[1]]}{kind[0]}"'


def text(name, nodes):
    inputs = [node for node in nodes if node[0] == "place"]
    lines = ["class joint(torch.nn.Module):", "    def forward(self, primals, tangents):"]
    lines.append("        " + "; ".join(node[1] + annotation(node) for node in inputs) + "; ")
    lines.append("")
    lines.append("        " + ", ".join(node[1] for node in inputs) +
                 ", = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)")
    marked = None
    for node in nodes:
        if node[0] == "call_":
            mark = MARKS.get(name, {}).get(node[1])
            if mark != marked:
                marked = mark
                lines.append("        # No stacktrace found for following nodes" if mark is None else
                             f"        # recompute: {mark[1]}" if mark[0] is None else
                             f"        # ac_graph_id: {mark[0]} - {mark[1]}")
            args = ", ".join([value(arg) for arg in node[3]] + keywords(node[4]))
            if "getitem" in node[2]:
                call = f"{value(node[3][0])}[{node[3][1]}]"
            else:
                call = f"torch.ops.{node[2]}({args})"
            lines.append(f"        {node[1]}{annotation(node)} = {call}")
        elif node[0] == "outpu":
            returned = node[3][0]
            lines.append(f"        return pytree.tree_unflatten({value(returned)}, self._out_spec)")
    return "\n".join(lines) + "\n"


def main():
    recorded, folder = json.load(open(sys.argv[1])), sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    runs, written = [], {}
    for name, entry in recorded.items():
        graph = text(name, entry["joint"])
        if graph not in written:  # some functions were recorded twice, for other options
            written[graph] = name
            with open(os.path.join(folder, name + ".py"), "w") as out:
                out.write(graph)
        for run in entry["runs"]:
            row = {"graph": written[graph], "options": run["opts"]}
            if name == "mlp_default":
                row["options"]["partitioner"] = "default"
            if "err" in run:
                row["error"] = run["err"]
            else:
                row |= {"saved": [f"{node} {size}" for node, size in run["saved"]],
                        "backward": " ".join(run["bw_in"]) + " | " + " ".join(run["bw_ops"]),
                        "forward": " ".join(run["fw_out"])}
            if "edges" in run:
                row["edges"] = [" ".join(str(part) for part in edge[:3]) for edge in run["edges"]]
                row["reasons"] = {edge[1].removesuffix("_in"): edge[3] for edge in run["edges"] if edge[0] == "source"}
            runs.append(row)
    with open(os.path.join(folder, "runs.json"), "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(row) for row in runs) + "\n]\n")


if __name__ == "__main__":
    main()
