#!/usr/bin/env python3
"""Writes the seeds of the fuzz corpus, tests/fuzz/corpus/<format>/seed_*: one small honest file per thing that a reader
tells apart. Needs nothing but Python; crashes that fuzzing finds are added beside them by hand, as crash_*."""
import collections
import hashlib
import io
import json
import pathlib
import pickle
import struct
import zipfile

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"


def write(folder, name, content):
    path = CORPUS / folder / ("seed_" + name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def archive(entries, root="m", deflate=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as file:
        for name, content in entries.items():
            info = zipfile.ZipInfo((root + "/" if root else "") + name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
            file.writestr(info, content)
    return out.getvalue()


# ---------------------------------------------------------------- exported programs

def tensor(name):
    return {"as_tensor": {"name": name}}


def meta(*sizes, dtype=7):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, size_value(step))
        step = step * size if isinstance(size, int) and isinstance(step, int) else 2
    return {"dtype": dtype, "sizes": [size_value(s) for s in sizes], "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7}


def size_value(size):
    if isinstance(size, int):
        return {"as_int": size}
    return {"as_expr": {"expr_str": size, "hint": {"as_int": 3}}}


def node(name, target, inputs, outputs=None, metadata=None, single=None):
    arguments = [{"name": key, "arg": value, "kind": 1} for key, value in inputs]
    return {"target": target, "name": name, "inputs": arguments, "outputs": outputs or [tensor(name)], "metadata": metadata or {},
            "is_hop_single_tensor_return": single}


def graph(inputs, outputs, nodes, tensors, single=False, sym_ints=None):
    return {"inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": tensors, "sym_int_values": sym_ints or {},
            "sym_bool_values": {}, "is_single_tensor_return": single, "custom_obj_values": {}, "sym_float_values": {}}


def program(body, input_specs, output_specs, ranges=None):
    return json.dumps({
        "graph_module": {"graph": body, "signature": {"input_specs": input_specs, "output_specs": output_specs}, "module_call_graph": [], "metadata": {}},
        "opset_version": {"aten": 10}, "range_constraints": ranges or {}, "schema_version": {"major": 8, "minor": 17},
        "verifiers": ["TRAINING"], "torch_version": "2.11.0"})


def user_input(name):
    return {"user_input": {"arg": tensor(name)}}


def user_output(name):
    return {"user_output": {"arg": tensor(name)}}


S77 = "Symbol('s77', positive=True, integer=True)"
RELU = program(graph([tensor("x")], [tensor("relu")], [node("relu", "torch.ops.aten.relu.default", [("self", tensor("x"))])],
                     {"x": meta(2), "relu": meta(2)}), [user_input("x")], [user_output("relu")])
LINEAR = program(
    graph([tensor("w"), tensor("x")], [tensor("linear")],
          [node("linear", "torch.ops.aten.linear.default", [("input", tensor("x")), ("weight", tensor("w"))],
                metadata={"stack_trace": 'File "m.py", line 3, in forward\n    return self.l(x)',
                          "nn_module_stack": "L__self__,,M;L__self__l,l,torch.nn.modules.linear.Linear",
                          "from_node": json.dumps([{"name": "l", "target": "l", "graph_id": 1, "pass_name": "p", "action": "create", "from_node": []}])})],
          {"w": meta(2, 2), "x": meta(S77, 2), "linear": meta(S77, 2)}),
    [{"parameter": {"arg": {"name": "w"}, "parameter_name": "l.weight"}}, user_input("x")], [user_output("linear")],
    {"s77": {"min_val": 2, "max_val": 64}})


def branch(name, op):
    return {"as_graph": {"name": name, "graph": graph([tensor("a")], [tensor("r")], [node("r", op, [("self", tensor("a"))])], {"a": meta(4), "r": meta(4)})}}


COND = program(
    graph([tensor("p"), tensor("x")], [tensor("getitem")],
          [node("cond", "torch.ops.higher_order.cond",
                [("", tensor("p")), ("", branch("true_graph_0", "torch.ops.aten.sin.default")), ("", branch("false_graph_0", "torch.ops.aten.neg.default")),
                 ("", {"as_tensors": [{"name": "x"}]})], [tensor("getitem")], single=False)],
          {"p": meta(dtype=12), "x": meta(4), "getitem": meta(4)}), [user_input("p"), user_input("x")], [user_output("getitem")])
KINDS = program(
    graph([tensor("x")], [tensor("x")],
          [node("n%d" % i, "torch.ops.lib.op.default", [("a", value)], [{"as_none": True}]) for i, value in enumerate([
              {"as_float": "-Infinity"}, {"as_ints": [1, 2]}, {"as_device": {"type": "cuda", "index": 0}}, {"as_scalar_type": 13},
              {"as_memory_format": 2}, {"as_string_to_argument": {"k": {"as_int": 1}}}, {"as_nested_tensors": [[{"name": "x"}], []]},
              {"as_sym_int": {"as_int": 4}}, {"as_complex": {"real": 1.0, "imag": -2.0}}, {"as_operator": "torch.ops.aten.relu.default"},
              {"as_rocket": 1}])],
          {"x": meta(2)}), [user_input("x")], [user_output("x")])


def programs():
    for name, text in {"relu": RELU, "linear": LINEAR, "cond": COND, "kinds": KINDS}.items():
        write("program", name, text)


# ---------------------------------------------------------------- torch.save

class Storage:
    def __init__(self, cls, key, numel):
        self.id = ("storage", cls, key, "cpu", numel)


class Name:
    """A global as it stands in a pickle, without the module that it names."""

    def __init__(self, module, name):
        self.module, self.name = module, name


def assemble(value):
    """The pickle of a value, by hand: a REDUCE is a tuple ("call", Name, arguments)."""
    if isinstance(value, Name):
        return b"c" + value.module.encode() + b"\n" + value.name.encode() + b"\n"
    if isinstance(value, Storage):
        return assemble(value.id) + b"Q"
    if isinstance(value, tuple) and value[:1] == ("call",):
        return assemble(value[1]) + assemble(tuple(value[2])) + b"R"
    if isinstance(value, tuple):
        return b"(" + b"".join(assemble(item) for item in value) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(assemble(item) for item in value) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(assemble(key) + assemble(item) for key, item in value.items()) + b"u"
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    text = value.encode()
    return b"X" + struct.pack("<I", len(text)) + text


def rebuilt(offset, sizes, strides, cls="FloatStorage", numel=16):
    hooks = ("call", Name("collections", "OrderedDict"), ())
    return ("call", Name("torch._utils", "_rebuild_tensor_v2"), (Storage(Name("torch", cls), "0", numel), offset, sizes, strides, False, hooks))


def pickles():
    values = {
        "plain": pickle.dumps([1, 2.5, "text", None, True, (1,), {"a": [2]}, 1 << 40], protocol=2),
        "protocol4": pickle.dumps({"k": [1, "x" * 10], "s": "y"}, protocol=4),
        "tensor": b"\x80\x02" + assemble(rebuilt(0, (2, 3), (3, 1))) + b".",
        "aliases": b"\x80\x02" + assemble({"a": rebuilt(0, (4,), (1,)), "b": rebuilt(2, (2, 2), (2, 1)), "s": rebuilt(1, (), ())}) + b".",
        "parameter": b"\x80\x02" + assemble(("call", Name("torch._utils", "_rebuild_parameter"),
                                             (rebuilt(0, (2,), (1,)), True, ("call", Name("collections", "OrderedDict"), ())))) + b".",
        "refused": b"\x80\x02" + assemble(("call", Name("os", "system"), ("true",))) + b".",
        "ordered": pickle.dumps(collections.OrderedDict(a=1, b=2), protocol=2),
    }
    for name, content in values.items():
        write("pickle", name, content)
    return values


def archives(saved):
    weights = json.dumps({"config": {"l.weight": {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta(2, 2)}}})
    save = archive({"data.pkl": saved["aliases"], "byteorder": "little", "data/0": bytes(64), "version": "3\n"}, "s")
    write("archive", "pt2", archive({"archive_format": "pt2", "archive_version": "0", "models/model.json": LINEAR, "data/weights/weight_0": bytes(16),
                                     "data/weights/model_weights_config.json": weights, "data/constants/model_constants_config.json": '{"config": {}}',
                                     "data/sample_inputs/model.pt": save, "byteorder": "little"}))
    write("archive", "pt2_deflated", archive({"archive_format": "pt2", "archive_version": "0", "models/model.json": RELU}, deflate=True))
    write("archive", "flat", archive({"version": "8.1", "serialized_exported_program.json": RELU, "serialized_state_dict.pt": save}, ""))
    write("archive", "save", save)
    write("archive", "package", archive({"archive_format": "pt2", "data/aotinductor/model/a.wrapper.so": b"\x7fELF",
                                         "data/aotinductor/model/a_metadata.json": '{"AOTI_DEVICE_KEY": "cpu"}'}))
    write("archive", "torchscript", archive({"constants.pkl": b"\x80\x02].", "code/a.py": ""}))


def safetensors():
    def file(header, data=b""):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data
    write("safetensors", "two", file({"__metadata__": {"a": "b"}, "x": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                                      "y": {"dtype": "I64", "shape": [], "data_offsets": [16, 24]}}, bytes(24)))
    write("safetensors", "empty", file({}))
    write("safetensors", "hole", file({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [4, 8]}}, bytes(8)))
    write("safetensors", "zero", file({"x": {"dtype": "F8_E4M3", "shape": [0, 3], "data_offsets": [0, 0]}}))


# ---------------------------------------------------------------- texts

CLASS = '''class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "Sym(s7)", arg1_1: "f32[s7, 3][3, 1]cpu", arg2_1: "f32[5, 3][3, 1]cpu"):
        # File: net.py:9 in forward, code: h = x @ self.w.t()
        permute: "f32[3, 5][1, 3]cpu" = torch.ops.aten.permute.default(arg2_1, [1, 0]);  arg2_1 = None
        mm: "f32[s7, 5][5, 1]cpu" = torch.ops.aten.mm.default(arg1_1, permute);  arg1_1 = permute = None
        # No stacktrace found for following nodes
        full: "f32[][]cpu" = torch.ops.aten.full.default([], -inf, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'), pin_memory = False)
        var_mean = torch.ops.aten.var_mean.correction(mm, [1], correction = 0, keepdim = True);  mm = None
        getitem: "f32[s7, 1][1, 1]cpu" = var_mean[0];  var_mean = None
        return (getitem, full, arg0_1)
'''
BRANCHES = '''class GraphModule(torch.nn.Module):
    def forward(self, p_1: "b8[]", x_1: "f32[4]"):
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(p_1, true_graph_0, false_graph_0, (x_1,));  p_1 = true_graph_0 = false_graph_0 = x_1 = None
        getitem: "f32[4]" = cond[0];  cond = None
        return (getitem,)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[4]"):
            sin: "f32[4]" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
            return (sin,)

    class false_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[4]"):
            neg: "f32[4]" = torch.ops.aten.neg.default(arg0_1);  arg0_1 = None
            return (neg,)
'''
SHORT = '''# symbol s0: lower=2, upper=64, hint=8
def forward(x: "f32[s0, 4]", w: "f32[4, 4]"):
    mm: "f32[s0, 4]" = aten.mm.default(x, w)
    y: "f32[2*s0, 4]" = foo.bar.default(mm, [s0 + 1, (s0 + 1)//2], 'it\\'s', slice(1, None, None), {'a': (1+2j)}, torch.float32, k = Ellipsis)
    return (y, mm, None)
'''
TREE = '''class inner_f(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[4, 4]"  # ParamAOTInput(target='w')
        tangents_1: "f32[4]"
        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(primals_1, tangents_1);  primals_1 = None
        return pytree.tree_unflatten([
            mul,  # PlainAOTOutput(idx=0)
            None,  # None
        ], self._out_spec)
'''
BOXED = '''class <lambda>(torch.nn.Module):
    def forward(self, args_list):
        args_iter = iter(args_list)
        x = next(args_iter)
        args_list.clear()
        x += 1;  y = x
        x[0] = 2;  z = x
        neg = -y
        return [neg, self.fc.weight, getattr(self, "0")]
'''
PRINTED = "ExportedProgram:\n" + "".join("    " + line + "\n" for line in BRANCHES.split("\n")) + '''Graph signature:
    # inputs
    p_1: USER_INPUT
    x_1: PARAMETER target='w'

    # outputs
    getitem: USER_OUTPUT

Range constraints: {s77: VR[2, 64]}
'''
REPRO = '''s7 = 8
import torch
torch._inductor.config.triton.store_cubin = False
# torch version: 2.11.0
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer('_tensor_constant0', tensor([1., 2.], device='cuda:0').cuda())
        self.p = torch.nn.Parameter(torch.randn([2, 2], dtype=torch.float32))
        self.act = ReLU()
    def forward(self, arg0_1, arg1_1):
        _tensor_constant0 = self._tensor_constant0
        add = torch.ops.aten.add.Tensor(arg1_1, _tensor_constant0);  arg1_1 = _tensor_constant0 = None
        return (add, arg0_1)
def load_args(reader):
    reader.symint(8)  # arg0_1
    buf0 = reader.storage(None, 4*s7, dtype_hint=torch.bfloat16)
    reader.tensor(buf0, (s7, 2), (1, s7), dtype=torch.bfloat16, is_leaf=True)  # arg1_1
load_args._version = 0
'''


def with_prefix(text, source, artifact):
    return "".join("V0303 12:00:00.123456 4711 torch/%s:12] [0/0] [__%s] %s\n" % (source, artifact, line) for line in text.rstrip("\n").split("\n"))


def logs():
    return {"two": with_prefix("TRACED GRAPH\n ===== Forward graph 0 =====\n a/b.py " + CLASS, "a.py", "aot_graphs") +
                   with_prefix("aot_config id: 0", "a.py", "aot_graphs") + with_prefix("TRACED GRAPH\n a/b.py " + TREE, "b.py", "aot_joint_graph"),
            "plain": CLASS + "\n\n" + BRANCHES, "coloured": CLASS.replace("mm", "\x1b[34mmm\x1b[0m") + BOXED}


def trace():
    def record(event, payload=None):
        event = dict(event)
        if payload is not None:
            event["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
        lines = "" if payload is None else "".join("\t" + line + "\n" for line in payload.split("\n"))
        return "V0303 12:00:00.123456 4711 torch/x.py:12] " + json.dumps(event) + "\n" + lines
    frame = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    text = record({"str": ["m.py", 0]})
    text += record({"create_symbol": {"symbol": "s7", "val": "5", "vr": "[2, int_oo]"}, **frame})
    text += record({"aot_forward_graph": {}, **frame}, CLASS.rstrip("\n"))
    text += record({"artifact": {"name": "fx_graph_runnable", "encoding": "string"}, **frame}, REPRO.rstrip("\n"))
    return {"good": text, "bad_sum": text.replace("permute", "permuted", 1), "cut": text[:-200]}


def folders():
    return {"debug": "@@ run/torchinductor/model__0/fx_graph_readable.py\n" + CLASS + "\n@@ run/torchinductor/model__0/fx_graph_runnable.py\n" + REPRO +
                     "\n@@ run/torchinductor/model__0/ir_pre_fusion.txt\nop0: SchedulerNode\n",
            "module": "@@ module.py\n" + BOXED, "log": "@@ a.log\n" + logs()["two"]}


def main():
    programs()
    archives(pickles())
    safetensors()
    for name, text in {"class": CLASS, "branches": BRANCHES, "short": SHORT, "tree": TREE, "boxed": BOXED, "printed": PRINTED}.items():
        write("text", name, text)
    for folder, texts in {"log": logs(), "trace": trace(), "folder": folders()}.items():
        for name, text in texts.items():
            write(folder, name, text)
    write("repro", "all", REPRO)
    write("repro", "no_graph", "# BackwardState is not supported by the repro\n")
    write("repro", "archive", "exported_program = torch.export.load('a.pt2')\ndef load_args(reader):\n    pass\n")


if __name__ == "__main__":
    main()
