#!/usr/bin/env python3
"""Records what PyTorch computes for every op sample and for variants of it, for tests/engine/ops_recorded_test.cpp.

    op_samples_dump | python3 tests/scripts/record_ops.py tests/data/ops [OP...]
    op_samples_dump | python3 tests/scripts/record_ops.py --expansions tests/data/ops/expansions-RELEASE.txt

The second form writes, under an older release, the expansions that differ from those in expansions.txt.

Needs PyTorch on the CPU; the product, its build and its tests do not. With names, only these ops are run again and
the others keep their record, and values their places (those that nobody refers to any more go with the next run of
all). Inputs are not stored: both sides draw them by the rule in tests/support/op_samples.h.

Variants of an op's own samples (op_variants.py): other dtypes, transposed, sliced, expanded and channels-last layouts,
sizes 0 and 1, 0-d tensors, negative dims, flipped flags. Written files:
    samples.txt         per op its samples ("~": a variant); after each the types of the results ("/" strides that tracing
                        expects, "*" differentiable), then of the gradients by operand, each with the place of its values;
                        or that PyTorch refuses the call ("when run": its tracing accepts it, with these types), or why it
                        is not compared
    values.safetensors  the values, one array per dtype, equal ones stored once
    expansions.txt      the graph that the compiler's decompositions make of each sample of an op that expands
    README.md           how many samples each op has
"""
import importlib
import json
import os
import pickle
import re
import select
import struct
import sys
import warnings

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
import torch
import torch._inductor.inductor_prims  # noqa: F401  registers prims of the compiler
import torch._inductor.lowering  # noqa: F401  some decompositions look into it
import torch.onnx.ops  # noqa: F401  registers ONNX's operators

for package in ("transformers.integrations.moe", "executorch.exir", "torchao", "torchvision", "torchaudio"):
    try:
        importlib.import_module(package)  # registers operators of the package
    except ImportError:
        pass

import op_variants
from record_joint import SHORT, short_form, type_text

warnings.filterwarnings("ignore")
MASK = (1 << 64) - 1
IMAGINARY = 500  # the imaginary part of tensor t is drawn as tensor t + IMAGINARY is
DTYPES = {name: dtype for dtype, name in SHORT.items()}


def mix(z):
    z = z * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def draw(t, i, dtype, how):
    r = mix(((t + 1) << 32) + i + 1)
    floating = dtype.is_floating_point or dtype.is_complex
    if dtype == torch.bool:
        return r & 1
    if how == "!":
        value = 77 * i % 513 - 256
        return value / 64 if floating else value
    bound = int(how[1:]) if how.startswith("<") else 0
    if floating:
        if how == ">0":
            return (r % 256 + 1) / 64
        if how == "%":
            return (r % 127 + 1) / 128
        if bound:
            return (r % (128 * bound - 1) - (64 * bound - 1)) / 64
        return (r % 513 - 256) / 64
    if how == ">0":
        return r % 8 + 1
    if bound:
        return r % bound
    unsigned = dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
    return r % 9 if unsigned else r % 9 - 4


def make_tensor(t, dtype, sizes, strides=None, how=""):
    """The t-th tensor of a sample."""
    strides = strides or torch.empty(sizes, device="meta").stride()
    stored = [1 if stride == 0 and size > 1 else size for size, stride in zip(sizes, strides)]
    count = 1
    for size in stored:
        count *= size
    values = torch.tensor([draw(t, i, dtype, how) for i in range(count)], dtype=torch.float64).reshape(stored)
    if dtype.is_complex:
        values = torch.complex(values, torch.tensor([draw(t + IMAGINARY, i, dtype, how) for i in range(count)], dtype=torch.float64).reshape(stored))
    out = torch.zeros(1 + sum((size - 1) * stride for size, stride in zip(stored, strides)), dtype=dtype) if count else torch.empty(0, dtype=dtype)
    out = out.as_strided(stored, strides)
    out.copy_(values)
    return out.as_strided(sizes, strides)


def tangent(result, number):
    return make_tensor(1000 + number, result.dtype, list(result.shape))


class PackedWeight:
    """A quantized operator of oneDNN, which crashes on weights that were not packed for it. Ours takes them as they are."""

    def __init__(self, function):
        self.function, self._schema = function, function._schema

    def __call__(self, *args, **kwargs):
        names = [argument.name for argument in self._schema.arguments]
        values = dict(zip(names, args), **kwargs)
        number = names.index("qw" if "qw" in names else "w")
        if isinstance(args[number], torch._subclasses.FakeTensor):
            return self.function(*args, **kwargs)
        if "double" in str(values["bias"].dtype if values["bias"] is not None else "") or not self.sizes_fit(values):
            raise NotImplementedError("reads beside its operands")
        return self.function(*args[:number], self.pack(args[number], values), *args[number + 1:], **kwargs)

    def pack(self, weight, values):
        if "fp16" in self.function.name():
            return torch.ops.onednn.linear_prepack_fp16(weight.t().contiguous(), None)
        if "qlinear" in self.function.name():
            return torch.ops.onednn.qlinear_prepack(weight.t().contiguous(), None)
        scale, zero = [value.item() if isinstance(value, torch.Tensor) else value for value in (values["x_scale"], values["x_zero_point"])]
        numbers = [values[name] for name in ("stride", "padding", "dilation", "groups")]
        return torch.ops.onednn.qconv_prepack(weight, values["w_scale"], scale, zero, *numbers, list(values["qx"].shape))

    def sizes_fit(self, values):
        """Its kernels look neither at number, dtype and strides of scales and bias, nor whether the input fits the weight."""
        if any(not values[name].is_contiguous() for name in ("w_scale", "bias") if values.get(name) is not None):
            return False
        if "w_scale" not in values:
            return values["x"].dim() > 0 and values["w"].dim() == 2 and values["x"].shape[-1] == values["w"].shape[0]
        linear = "qlinear" in self.function.name()
        x, weight, scale = values["qx"], values["qw"], values["w_scale"]
        if x.dim() == 0 or weight.dim() < 2 or scale.dtype != torch.float32:
            return False
        channels = weight.shape[1] if linear else weight.shape[0]
        inner = x.shape[-1] == weight.shape[0] if linear else x.dim() == weight.dim() and x.shape[1] == weight.shape[1] * values["groups"]
        return inner and weight.dtype == torch.int8 and scale.numel() in (1, channels)

    def name(self):
        return self.function.name()

    def __str__(self):
        return str(self.function)


class WithoutWrite:
    """What an operator that writes into its last operand gives, the operand staying as it is."""

    def __init__(self, function):
        self.function, self._schema = function, function._schema

    def __call__(self, *args):
        return self.function(*args[:-1], args[-1].clone())

    def name(self):
        return self.function.name()

    def __str__(self):
        return str(self.function)


def resolve(name):
    if name == "torchaudio._lfilter_core_loop.functional":
        return WithoutWrite(torch.ops.torchaudio._lfilter_core_loop.default)
    namespace, packet, overload = (*name.split("."), "default")[:3]  # MKL's operators are called without one
    function = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    packs = namespace == "onednn" and packet.startswith(("qconv", "qlinear", "linear")) and "prepack" not in packet
    return PackedWeight(function) if packs else function


def exists(name):
    try:
        resolve(name)
    except (AttributeError, ValueError):
        return False
    return True


def spread(value, parameter):
    """A single number for an int[n], which schemas allow and the Python binding does not always."""
    return [value] if isinstance(value, int) and "List[int]" in str(parameter.type) else value


def arguments_of(text, function):
    tensors = []

    def build(match):
        dtype, sizes, strides, how = op_variants.parts(match)
        tensors.append(make_tensor(len(tensors), DTYPES[dtype], sizes, strides, how))
        return f"T[{len(tensors) - 1}]"

    code = op_variants.TENSOR.sub(build, text)
    names = {"T": tensors, "torch": torch, "device": torch.device, "inf": float("inf"), "nan": float("nan")}
    positional, keywords = eval(f"(lambda *a, **k: (list(a), k))({code})", names)  # noqa: S307  our own table rows
    parameters = function._schema.arguments
    positional = [spread(value, parameter) for value, parameter in zip(positional, parameters)] + positional[len(parameters):]
    named = {parameter.name: parameter for parameter in parameters}
    keywords = {key: spread(value, named[key]) if key in named else value for key, value in keywords.items()}
    return positional, keywords, tensors


def flat(result):
    if result is None:
        return []
    if not isinstance(result, (tuple, list)):
        return [result]
    return [one for item in result for one in (flat(item) if isinstance(item, (tuple, list)) else [item])]


def packed(tensor):
    """(dtype, the elements in row-major order)"""
    out = torch.empty(tensor.numel(), dtype=tensor.dtype)
    out.copy_(tensor.detach().reshape(-1))
    return SHORT[tensor.dtype], out.view(torch.uint8).numpy().tobytes()


class Store:
    """Flat arrays of values by dtype; equal runs are stored once. Values that are there already keep their places."""

    def __init__(self, kept):
        self.arrays, self.places = {name: bytearray(values.view(torch.uint8).numpy().tobytes()) for name, values in kept.items()}, {}

    def place(self, name, data):
        array = self.arrays.setdefault(name, bytearray())
        key = (name, data)
        if key not in self.places:
            self.places[key] = len(array) // DTYPES[name].itemsize
            array.extend(data)
        return self.places[key]

    def write(self, path):
        stored = {"f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32", "i16": "I16", "i8": "I8",
                  "u8": "U8", "b8": "BOOL", "c64": "C64"}
        header, at = {}, 0
        order = sorted(self.arrays, key=lambda name: (-DTYPES[name].itemsize, name))
        for name in order:
            size = len(self.arrays[name])
            header[name] = {"dtype": stored[name], "shape": [size // DTYPES[name].itemsize], "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(bytes(self.arrays[name]) for name in order))


def refusal(error):
    """Whether the call is wrong (True) or PyTorch only lacks a CPU kernel for the dtype (False)."""
    text = str(error)
    return not re.search(r"not implemented for|not supported for|NotImplementedError|could not create a (?:primitive|memory)|Could not run|Unsupported datatype", text) \
        and not isinstance(error, NotImplementedError)


def traced_types(function, text):
    """The results' types as tracing sees them; None where tracing refuses the call."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    positional, keywords, tensors = arguments_of(text, function)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        def fake(value):
            return mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
        try:
            positional, keywords = torch.utils._pytree.tree_map(fake, (positional, keywords))
            return flat(function(*positional, **keywords))
        except Exception as error:  # noqa: BLE001
            return "run time" if "DataDependent" in type(error).__name__ or "DynamicOutput" in type(error).__name__ else None


def refused(function, text):
    """What is recorded of a call that the kernel refuses. Tracing is all that PyTorch's compiler asks: where that accepts
    the call, and not merely because it does not see the values, the types that it gives are recorded too."""
    traced = traced_types(function, text)
    if traced is None or traced == "run time":
        return "refused"
    positional, keywords, tensors = arguments_of(text, function)
    for tensor in tensors:
        if not tensor.dtype.is_floating_point:
            tensor.untyped_storage().fill_(0)
    try:
        function(*positional, **keywords)
        return "refused"  # with other indices it is accepted
    except Exception:  # noqa: BLE001
        return "refused when run: " + "; ".join(type_text(result) if isinstance(result, torch.Tensor) else "-" for result in traced)


def misreads(function, text, results, gradients):
    """Whether the same values laid out row-major give other results: the kernel does not look at the strides of its
    operands, and reads beside them."""
    _, _, tensors = arguments_of(text, function)
    if "strided" in str(function) or "empty" in str(function) or all(tensor.is_contiguous() for tensor in tensors):
        return False
    row_major = op_variants.TENSOR.sub(lambda match: op_variants.text_of(*op_variants.parts(match)[:2], None, ""), text)
    values = [tensor.contiguous() for tensor in tensors]
    try:
        positional, keywords, places = arguments_of(row_major, function)
        for place, value in zip(places, values):
            place.copy_(value)
        again = flat(function(*with_packed_weights(function, positional), **keywords))
        found = record_gradients(function, row_major, values) if gradients else None
    except Exception:  # noqa: BLE001
        return False
    pairs = list(zip(results, again)) + [(a[1], b[1]) for a, b in zip(gradients, found[1] if found else [])]
    return any(isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not near(a, b) for a, b in pairs)


def near(a, b):
    if a.layout != torch.strided or a.shape != b.shape or a.dtype != b.dtype or a.dtype.is_complex or a.numel() == 0:
        return True
    a, b = a.detach().double(), b.detach().double()
    scale = float(b.abs().nan_to_num(0, 0, 0).max())
    return torch.allclose(a, b, rtol=0.02, atol=0.02 * scale, equal_nan=True)


def read_within(function, tensors, derived):
    """Whether a kernel that does not look at its operands' layouts or sizes gets those it takes for granted; with others
    it reads beside its operands."""
    name = str(function)
    if "flash_attention" in name:
        return all(tensor.stride()[-1:] == (1,) for tensor in tensors)
    if "native_layer_norm_backward" in name:
        return all(tensor.is_contiguous() for tensor in tensors[2:])
    return not (derived and ("unfold_backward" in name or "offsets_to_indices" in name or "lookup_seed" in name))


def draws(function, text):
    """Whether the call draws random numbers: the generator has moved on after it."""
    positional, keywords, _ = arguments_of(text, function)
    before = torch.get_rng_state()
    function(*positional, **keywords)
    return not torch.equal(before, torch.get_rng_state())


def with_packed_weights(function, positional):
    """The weights as freezing packs them for the call, where its kernel takes no others or lays its result out after
    them. Samples hold plain weights."""
    mkldnn, name = torch.ops.mkldnn, str(function)
    named = {parameter.name: number for number, parameter in enumerate(function._schema.arguments)}
    value = lambda key: positional[named[key]]  # noqa: E731
    out = list(positional)
    if name.startswith("mkl._mkl_linear"):
        out[named["MKL_W"]] = torch.ops.mkl._mkl_reorder_linear_weight(value("ORI_W"), value("batch_size"))
    elif name.startswith("mkldnn._convolution"):
        numbers = [value("padding")] + ([value("output_padding")] if "output_padding" in named else [])
        pack = mkldnn._reorder_convolution_transpose_weight if "output_padding" in named else mkldnn._reorder_convolution_weight
        out[named["W"]] = pack(value("W"), *numbers, value("stride"), value("dilation"), value("groups"), list(value("X").shape))
    return out


def record_sample(function, text, random, derived):
    """What follows the sample's text on its line, as strings and tensors to place."""
    positional, keywords, tensors = arguments_of(text, function)
    if not read_within(function, tensors, derived):
        return ["no kernel"]
    try:
        results = flat(function(*with_packed_weights(function, positional), **keywords))
        for result in results:
            if isinstance(result, torch.Tensor):
                result.resolve_neg()  # a negated view of bools fails only when it is read
    except Exception as error:  # noqa: BLE001
        return [refused(function, text)] if refusal(error) else ["no kernel"]
    if any(isinstance(result, torch.Tensor) and result.dtype not in SHORT for result in results):
        return ["no kernel"]  # complex128, which the record has no place for
    library = str(function).startswith(("mkl.", "mkldnn."))
    random = random or (not library and draws(function, text))
    traced = traced_types(function, text) or ("run time" if library else None)  # a few have no rule for tracing
    if traced is None:
        return ["eager only"]
    gradients = None if random else record_gradients(function, text)
    differentiated, found = gradients or (set(), [])
    if not random and misreads(function, text, results, found):
        return ["no kernel"]
    if any(isinstance(tensor, torch.Tensor) and tensor.layout != torch.strided for tensor in [*results, *(value for _, value in found)]):
        return ["no kernel"]  # a layout of a library's own
    uninitialised = random or "empty" in str(function)
    line = []
    for number, result in enumerate(results):
        line.append("; " if line else "")
        if not isinstance(result, torch.Tensor):
            line.append("-")
            continue
        line.append(type_text(result) + other_strides(result, traced, number) + ("*" if number in differentiated else ""))
        if not uninitialised:
            line.append(packed(result))
    if any(isinstance(part, str) and part.find("?") >= 0 for part in line):
        return ["eager only"]
    for key, value in found:
        line.append(f" | {key}: " + ("none" if value is None else type_text(value.contiguous())))
        if value is not None:
            line.append(packed(value))
    return line or ["nothing"]


def other_strides(result, traced, number):
    """The strides that tracing expects where they are not those that the kernel gives."""
    if traced == "run time" or number >= len(traced) or not isinstance(traced[number], torch.Tensor):
        return ""
    if traced[number].shape != result.shape or traced[number].dtype != result.dtype:
        return "?"
    strides = traced[number].stride()
    return "" if strides == result.stride() or result.numel() < 2 else "/" + str(list(strides))


def start(job):
    """`job()` begun in a process of its own: its id, and where its result will come."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as file:
            pickle.dump(job(), file)
        os._exit(0)
    os.close(writer)
    return child, reader


def finish(child, reader):
    """The result; None if the process died, as PyTorch does for a few wrong calls."""
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    return pickle.loads(data) if os.waitpid(child, 0)[1] == 0 else None


def in_child(job):
    return finish(*start(job))


def in_children(jobs):
    """The results of all jobs, as many at a time as there are cores."""
    waiting, running, results = list(enumerate(jobs)), {}, [None] * len(jobs)
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            number, job = waiting.pop(0)
            child, reader = start(job)
            running[reader] = number, child
        for reader in select.select(list(running), [], [])[0]:
            number, child = running.pop(reader)
            results[number] = finish(child, reader)
    return results


def has_derivative(function):
    """Eager mode differentiates what happens inside an op that registered nothing for autograd; the compiler, which sees
    the op alone, gives no gradients there."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return any(has_kernel(function.name(), key) for key in ("AutogradCPU", "Autograd", "CompositeImplicitAutograd"))


def continuous(tensor):
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def record_gradients(function, text, operands=None):
    """Which results are differentiable, and the gradient of each floating operand for tangents drawn by the rule. The
    operands are drawn by it too, or have the values given."""
    positional, keywords, tensors = arguments_of(text, function)
    for tensor, value in zip(tensors, operands or []):
        tensor.copy_(value)
    wanted = [t for t, tensor in enumerate(tensors) if continuous(tensor)]
    if not wanted or not has_derivative(function):
        return None
    for t in wanted:
        tensors[t].requires_grad_()
    try:
        results = flat(function(*positional, **keywords))
        numbers = [n for n, r in enumerate(results) if isinstance(r, torch.Tensor) and r.requires_grad and continuous(r)]
        if not numbers:
            return None
        tangents = [tangent(results[n], n) for n in numbers]
        values = torch.autograd.grad([results[n] for n in numbers], [tensors[t] for t in wanted], tangents, allow_unused=True)
    except Exception:  # noqa: BLE001  no derivative in PyTorch
        return None
    return set(numbers), list(zip(wanted, values))


def expansion(function, text, table):
    """The call's graph after decomposition, as short FX text."""
    from torch._subclasses.functional_tensor import dispatch_functionalize
    from torch.fx.experimental.proxy_tensor import make_fx

    positional, keywords, _ = arguments_of(text, function)
    leaves, spec = torch.utils._pytree.tree_flatten((positional, keywords))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def run(*tensors):
        filled = list(leaves)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        args, kwargs = torch.utils._pytree.tree_unflatten(filled, spec)
        return function(*args, **kwargs)

    # Without the mutations inside of composites, as the compiler traces; recurrent layers unrolled, not as one call of
    # the CPU's library.
    with torch.backends.mkldnn.flags(enabled=False):
        graph = make_fx(dispatch_functionalize(run), decomposition_table=table, tracing_mode="fake")(*[leaves[i] for i in places])
    graph.graph.eliminate_dead_code()
    return short_form(graph.graph)


def read_record(folder):
    """op -> its block of samples.txt and of expansions.txt, and the store with the values so far."""
    blocks = {"samples.txt": {}, "expansions.txt": {}}
    for name, found in blocks.items():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            for block in re.split(r"(?m)^(?=## )", open(path).read())[1:]:
                found[block.split("\n", 1)[0][3:]] = block
    return blocks


def read_values(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    return {name: torch.frombuffer(bytearray(data[slice(*entry["data_offsets"])]) or bytearray(8), dtype=DTYPES[name]) for name, entry in header.items()}


def record_op(row, table):
    """(the lines of samples.txt, the block of expansions.txt)"""
    function = resolve(row["op"])
    texts = op_variants.all_of(row["samples"], function._schema)
    return [record_sample(function, text, row["random"], text not in row["samples"]) for text in texts], record_expansions(row, table)


def record_each(row, table):
    """The same, sample by sample: some of them kill the process."""
    function = resolve(row["op"])
    texts = op_variants.all_of(row["samples"], function._schema)
    lines = [in_child(lambda text=text: record_sample(function, text, row["random"], text not in row["samples"])) or ["no kernel"] for text in texts]
    return lines, record_expansions(row, table)


def placed(row, lines, store):
    texts = op_variants.all_of(row["samples"], resolve(row["op"])._schema)
    out = f"## {row['op']}\n"
    for text, line in zip(texts, lines):
        shown = "".join(part if isinstance(part, str) else f" @{store.place(*part)}" for part in line)
        out += ("" if text in row["samples"] else "~") + f"{text} | {shown}\n"
    return out


def read_graphs(path):
    """(op, sample) -> its graph."""
    graphs, op, text = {}, "", ""
    for line in open(path):
        if line.startswith("## "):
            op = line[3:].rstrip("\n")
        elif line.startswith("# "):
            text = line[2:].rstrip("\n")
        else:
            graphs[op, text] = graphs.get((op, text), "") + line
    return graphs


def record_expansions(row, table, known=None):
    """The graphs of the samples; with `known`, those alone that it has otherwise."""
    if not row["expands"]:
        return ""
    function, blocks = resolve(row["op"]), []
    for text in row["samples"]:
        try:
            graph = expansion(function, text, table)
            if known is None or known.get((row["op"], text), graph) != graph:
                blocks.append(f"# {text}\n{graph}")
        except Exception as error:  # noqa: BLE001
            print(f"{row['op']}: {text}: not traced: {str(error).splitlines()[0][:160] if str(error) else error!r}", file=sys.stderr)
    return f"## {row['op']}\n" + "".join(blocks) if blocks else ""


def recorded_with(path):
    """The versions of PyTorch that the report names."""
    return re.findall(r"\d+\.\d+\.\d+", open(path).read().split("\n")[2]) if os.path.exists(path) else []


def report(samples, earlier):
    versions = sorted({*earlier, torch.__version__.split("+")[0]})
    rows, totals = [], [0, 0, 0, 0]
    for op in sorted(samples):
        lines = samples[op].splitlines()[1:]
        counts = [sum(" | refused" not in line and " | no kernel" not in line and " | eager only" not in line for line in lines), sum(line.count(" | ") > 1 for line in lines),
                  sum(" | refused" in line for line in lines), sum(" | no kernel" in line or " | eager only" in line for line in lines)]
        totals = [a + b for a, b in zip(totals, counts)]
        rows.append(f"| {op} | " + " | ".join(map(str, counts)) + " |\n")
    return ("# Samples of each op\n\nMade by tests/scripts/record_ops.py with PyTorch " + ", ".join(versions) + " on the CPU.\n\n"
            "- results: calls whose results are compared in dtype, sizes, strides and values\n- gradients: of these, calls whose gradients are compared too\n"
            "- refused: calls that PyTorch refuses and Cutaway must refuse as well; where only the kernel refuses and PyTorch's compiler goes on, Cutaway may go on with the same types\n- not compared: PyTorch has no CPU kernel for the dtype or the layout, or its kernel and its tracing disagree on the type\n\n"
            "| op | results | gradients | refused | not compared |\n|---|---|---|---|---|\n"
            f"| **all {len(samples)} ops** | {totals[0]} | {totals[1]} | {totals[2]} | {totals[3]} |\n" + "".join(rows))


def main():
    import torch._inductor.lowering  # decompositions of poolings ask it
    from torch._inductor.decomposition import select_decomp_table

    torch.manual_seed(0)
    torch.set_num_threads(1)
    traced_types(resolve("aten.neg.default"), "f32[2]")  # loads what tracing needs, once for all children
    # Resampling is expanded above autograd, so the compiler's own table does without it.
    table = {**{op: rule for op, rule in torch._decomp.decomposition_table.items() if "upsample" in str(op)}, **select_decomp_table()}
    if sys.argv[1] == "--expansions":
        newest = read_graphs(os.path.join(os.path.dirname(sys.argv[2]), "expansions.txt"))
        rows = [row for row in map(json.loads, sys.stdin) if exists(row["op"])]
        blocks = in_children([lambda row=row: record_expansions(row, table, newest) for row in rows])
        with open(sys.argv[2], "w") as file:
            file.write("".join(block for block in blocks if block))
        return
    folder, only = sys.argv[1], set(sys.argv[2:])
    kept = read_record(folder) if only else {"samples.txt": {}, "expansions.txt": {}}
    store = Store(read_values(os.path.join(folder, "values.safetensors")) if only else {})
    samples, expansions, rows = dict.fromkeys(kept["samples.txt"]), dict.fromkeys(kept["expansions.txt"]), []  # in their order
    for line in sys.stdin:
        row = json.loads(line)
        op = row["op"]
        if only and op not in only and op in kept["samples.txt"]:
            samples[op], expansions[op] = kept["samples.txt"][op], kept["expansions.txt"].get(op, "")
            continue
        if not exists(op):
            print(f"{op}: PyTorch has no such op", file=sys.stderr)
            continue
        samples[op] = expansions[op] = ""  # keeps the order of the tables
        rows.append(row)
    for row, result in zip(rows, in_children([lambda row=row: record_op(row, table) for row in rows])):
        lines, expansions[row["op"]] = result or record_each(row, table)
        samples[row["op"]] = placed(row, lines, store)
    samples, expansions = ({op: block for op, block in blocks.items() if block is not None} for blocks in (samples, expansions))  # of ops that are gone
    os.makedirs(folder, exist_ok=True)
    store.write(os.path.join(folder, "values.safetensors"))
    for name, text in (("samples.txt", "".join(samples.values())), ("expansions.txt", "".join(expansions.values())), ("README.md", report(samples, recorded_with(os.path.join(folder, "README.md")) if only else []))):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
