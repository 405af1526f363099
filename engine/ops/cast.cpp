// Casts, copies and identities.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// The operand's type in a fresh tensor of another dtype, laid out like the operand (preserve_format) or as asked.
Result<ValueType> copiedType(const InferContext& c, DType dtype, std::optional<MemoryFormat> format,
                             std::optional<Device> device) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    TensorType type = TensorType::contiguous(dtype, self.sizes, device.value_or(self.device));
    if (!format || *format == MemoryFormat::Preserve) {
        type.strides = preservedStrides(self);
    } else {
        auto strides = formatStrides(*format, self.sizes);
        if (!strides)
            return c.fail(std::string(name(*format)) + " does not fit a tensor of rank " + std::to_string(self.rank()));
        type.strides = std::move(*strides);
    }
    return ValueType(std::move(type));
}
EvalResult copied(const EvalContext& c) {
    Tensor out = c.result();
    copyInto(out, c.in(size_t{0}));
    return out;
}
Result<ValueType> inferClone(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    return copiedType(c, self.dtype,
                      c.op().schema()->find("memory_format") >= 0 ? c.memoryFormat("memory_format") : std::nullopt, {});
}
Result<ValueType> inferToCopy(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    return copiedType(c, c.dtype("dtype").value_or(self.dtype), c.memoryFormat("memory_format"), c.device("device"));
}
Expr rounded(const Expr& x, DType half) { return call1(half == DType::F16 ? "round_f16" : "round_bf16", x); }
/// Kernels hold f16 and bf16 as f32, whose bits stay on the way to f32 and back. To and from all other types a half is
/// rounded, as it is in memory: that is what such a conversion was written for.
Expr lowerConverted(LowerContext& c) {
    const DType from = c.in(0).dtype, to = c.out().dtype;
    Expr x = c.loadOwn(0);
    const bool inMemory = x->kind == ExprKind::Cast && x->operands[0]->kind == ExprKind::Load;
    if (isHalf(from) && to != from && to != DType::F32 && !inMemory) x = rounded(x, from);
    const bool wider = from == DType::F64 || (isIntegral(from, false) && byteSize(from) > 1) || isHalf(from);
    const Expr y = Expr::cast(x, computeTypeOf(to));
    return isHalf(to) && wider && to != from ? rounded(y, to) : y;
}
void passGradient(Derivation& d) { d.input(0) = d.dy(); }

/// Same device, where no index means whichever is current.
bool sameDevice(const Device& a, const Device& b) {
    return a.type == b.type && (a.index == b.index || a.index < 0 || b.index < 0 || a.type == DeviceType::Cpu);
}
Value toCopy(Decomposition& d, std::optional<DType> dtype, std::optional<Device> device, NamedArguments rest = {}) {
    NamedArguments keywords;
    if (dtype) keywords.emplace_back("dtype", *dtype);
    if (device) keywords.emplace_back("device", *device);
    for (auto& one : rest) keywords.push_back(std::move(one));
    return d.call("aten._to_copy.default", {d.in(size_t{0})}, std::move(keywords));
}
/// The `.to` family: the tensor itself when nothing would change, else a copy.
Values convertOrKeep(Decomposition& d, std::optional<DType> dtype, std::optional<Device> device) {
    const Value self = d.in(size_t{0});
    const auto format = d.op().schema()->find("memory_format") >= 0 ? d.memoryFormat("memory_format") : std::nullopt;
    bool keeps =
        !d.flag("copy") && (!dtype || *dtype == self.dtype()) && (!device || sameDevice(*device, self.type().device));
    if (format && *format != MemoryFormat::Preserve) {
        const auto wanted = formatStrides(*format, self.sizes());
        keeps = keeps && wanted && *wanted == self.type().strides;
    }
    if (keeps) return self;
    NamedArguments rest;
    if (format) rest.emplace_back("memory_format", *format);
    return toCopy(d, dtype, device, std::move(rest));
}
std::optional<DType> givenDType(const Decomposition& d) {
    return d.op().schema()->find("dtype") >= 0 ? d.dtype("dtype") : std::nullopt;
}
std::optional<Device> givenDevice(const Decomposition& d) {
    return d.op().schema()->find("device") >= 0 ? d.device("device") : std::nullopt;
}

Values decomposeToCopy(Decomposition& d) {
    Value x = d.in(size_t{0});
    const auto dtype = d.dtype("dtype");
    const auto device = d.device("device");
    const bool moves = device && !sameDevice(*device, x.type().device);
    if (!dtype && !device && !d.has("memory_format")) return d.call("aten.clone.default", {x});
    // Values are converted on whichever side is not the CPU.
    const bool convertFirst = dtype && moves && device->type == DeviceType::Cpu;
    auto converted = [&] { x = d.call("prims.convert_element_type.default", {x, *dtype}); };
    if (convertFirst) converted();
    if (moves) x = d.call("prims.device_put.default", {x, *device, d.flag("non_blocking")});
    if (dtype && !convertFirst) converted();
    if (d.has("memory_format"))
        x = d.call("aten.clone.default", {x}, {{"memory_format", *d.memoryFormat("memory_format")}});
    return x;
}

/// Checks what the arguments pin down; the message says what differs.
Result<ValueType> inferAssertMetadata(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (c.has("size")) {
        CT_TRY(const SymDims sizes, c.sizes("size"));
        if (allInts(sizes) && allInts(self.sizes) && !(sizes == self.sizes))
            return c.fail("the tensor is " + self.text() + ", not of the asserted sizes");
    }
    if (c.has("stride")) {
        CT_TRY(const SymDims strides, c.sizes("stride"));
        if (allInts(strides) && allInts(self.strides) && !(strides == self.strides))
            return c.fail("the tensor is " + self.fullText() + ", not of the asserted strides");
    }
    if (const auto dtype = c.dtype("dtype"); dtype && *dtype != self.dtype)
        return c.fail("the tensor is " + std::string(info(self.dtype).torchName) + ", asserted " +
                      std::string(info(*dtype).torchName));
    if (const auto device = c.device("device"); device && !sameDevice(*device, self.device))
        return c.fail("the tensor is on " + self.device.text() + ", asserted " + device->text());
    return ValueType();
}

constexpr std::string_view kCopySamples = R"(
f32[2, 3]
f32[2, 3][1, 2]
f32[2, 3, 4, 4][48, 1, 12, 3]
f32[2, 3][0, 1]
f32[4, 3][6, 2]
i64[0, 2]
b8[]
bf16[3, 1, 2][2, 7, 1]
)";

constexpr OpDef kCastOps[] = {
    // Values converted: floats to integers truncate, to bool "not zero", wider to narrower floats round to even.
    {.schema = "prims.convert_element_type.default(Tensor a, ScalarType dtype) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const Operand self, c.operand(0));
         CT_TRY(TensorType type, elementwiseType(c, std::span(&self, 1), c.dtype("dtype").value_or(self.type.dtype)));
         return ValueType(std::move(type));
     },
     .eval = copied,
     .derive =
         [](Derivation& d) {
             if (isFloating(d.in(size_t{0}).dtype()))
                 d.input(0) = d.call("prims.convert_element_type.default", {d.dy(), d.in(size_t{0}).dtype()});
         },
     .lower = lowerConverted,
     .samples = R"(
f32[2, 3], torch.bfloat16
f32[2, 3], torch.float32
f32[2, 3][1, 2], torch.float64
f32[4], torch.int64
f32[4], torch.bool
i64[4], torch.bool
i64[4], torch.float16
bf16[2, 3], torch.float32
b8[3], torch.float32
i64[3], torch.uint8
f64[3], torch.int8
f32[0], torch.int32
f32[2, 3, 4, 4][48, 1, 12, 3], torch.float16
)"},
    // To another device; values unchanged.
    {.schema = "prims.device_put.default(Tensor a, Device device, bool non_blocking=False) -> Tensor",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return copiedType(c, self.dtype, {}, c.device("device"));
     },
     .eval = copied,
     .derive =
         [](Derivation& d) {
             d.input(0) = d.call("prims.device_put.default", {d.dy(), d.in(size_t{0}).type().device});
         }},
    {.schema =
         "aten._to_copy.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
         "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferToCopy,
     .eval = copied,
     .expand = Expand::Decompose,
     .decompose = decomposeToCopy,
     .derive =
         [](Derivation& d) {
             const TensorType& self = d.in(size_t{0}).type();
             if (!isFloating(self.dtype)) return;
             d.input(0) = d.call("aten._to_copy.default", {d.dy()},
                                 {{"dtype", self.dtype}, {"layout", Layout::Strided}, {"device", self.device}});
         },
     .samples = R"(
f32[2, 3]
f32[2, 3], dtype = torch.float64
f32[2, 3], dtype = torch.float32
f32[2, 3][1, 2], dtype = torch.bfloat16
f32[2, 3, 4, 4], memory_format = torch.channels_last
f32[2, 3, 4, 4][48, 1, 12, 3], dtype = torch.float64, memory_format = torch.contiguous_format
i64[4], dtype = torch.bool
)"},
    {.schema =
         "aten.to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return convertOrKeep(d, givenDType(d), {}); },
     .samples = "f32[2, 3], torch.bfloat16\nf32[2, 3], torch.float32\nf32[2, 3], torch.float32, False, True"},
    {.schema =
         "aten.to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return convertOrKeep(d, givenDType(d), givenDevice(d)); },
     .samples = "f32[2, 3], device(type='cpu'), torch.float64\nf32[2, 3], device(type='cpu'), torch.float32"},
    {.schema =
         "aten.to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
         "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return convertOrKeep(d, givenDType(d), givenDevice(d)); },
     .samples =
         "f32[2, 3], dtype = torch.float64, layout = torch.strided, device = device(type='cpu')\nf32[2, 3], dtype = torch.float32"},
    {.schema =
         "aten.to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) { return convertOrKeep(d, d.in(1).dtype(), d.in(1).type().device); },
     .samples = "f32[2, 3], f64[1]\nf32[2, 3], f32[1]"},
    {.schema = "aten.type_as.default(Tensor self, Tensor other) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const TensorType other = d.in(1).type();
         const Value self = d.in(size_t{0});
         if (self.dtype() == other.dtype && sameDevice(self.type().device, other.device)) return self;
         return toCopy(d, other.dtype,
                       sameDevice(self.type().device, other.device) ? std::nullopt : std::optional(other.device));
     },
     .samples = "f32[2, 3], f16[1]\nf32[2, 3], f32[1]"},
    // A fresh tensor of the same values; strides kept if dense, or as the memory format says.
    {.schema = "aten.clone.default(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Pointwise,
     .infer = inferClone,
     .eval = copied,
     .derive = passGradient,
     .lower = lowerConverted,
     .samples = R"(
f32[2, 3]
f32[2, 3][1, 2]
f32[2, 3][1, 2], memory_format = torch.contiguous_format
f32[2, 3, 4, 4], memory_format = torch.channels_last
f32[2, 3, 4, 4][48, 1, 12, 3], memory_format = torch.preserve_format
f32[2, 3][0, 1]
f32[4, 3][6, 2]
f32[3, 4, 5][1, 20, 4]
i64[0, 2]
b8[]
)"},
    {.schema = "aten.contiguous.default(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         const Value self = d.in(size_t{0});
         const MemoryFormat format = d.memoryFormat("memory_format").value_or(MemoryFormat::Contiguous);
         if (format == MemoryFormat::Contiguous && self.type().isContiguous()) return self;
         if (const auto strides = formatStrides(format, self.sizes()); strides && *strides == self.type().strides)
             return self;
         return d.call("aten.clone.default", {self}, {{"memory_format", format}});
     },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]\nf32[2, 3, 4, 4], memory_format = torch.channels_last"},
    // The same tensor under another name.
    {.schema = "aten.alias.default(Tensor(a) self) -> Tensor(a)",
     .tags = Tag::View,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(TensorType self, c.tensor(size_t{0}));
         return ValueType(std::move(self));
     },
     .eval = [](const EvalContext& c) { return c.in(size_t{0}); },
     .derive = passGradient,
     .samples = kCopySamples},
    // alias that no gradient passes.
    {.schema = "aten.detach.default(Tensor(a) self) -> Tensor(a)",
     .tags = Tag::View | Tag::NoGradient | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(TensorType self, c.tensor(size_t{0}));
         self.requiresGrad = false;
         return ValueType(std::move(self));
     },
     .eval = [](const EvalContext& c) { return c.in(size_t{0}); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values { return unary("aten.alias.default", d.in(size_t{0})); },
     .samples = kCopySamples},
    // What tracing leaves where a constant tensor entered the graph.
    {.schema = "aten.lift_fresh_copy.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise,
     .infer =
         [](const InferContext& c) {
             return copiedType(c, c.tensor(size_t{0}) ? c.tensor(size_t{0})->dtype : DType::F32,
                               MemoryFormat::Contiguous, {});
         },
     .eval = copied,
     .derive = passGradient,
     .lower = lowerConverted,
     .samples = kCopySamples},
    // `src` broadcast and converted to the type of `self`, whose values are not read.
    {.schema = "aten.copy.default(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
     .tags = Tag::Pointwise | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY(const TensorType source, c.tensor(1));
         const SymDims shapes[] = {self.sizes, source.sizes};
         auto sizes = broadcastSizes(shapes);
         if (!sizes) return c.fail(sizes.error().message);
         for (size_t i = 0; i < sizes->size(); ++i)  // a symbolic size may turn out to fit
             if (i < self.sizes.size() && (!(*sizes)[i].isInt() || !self.sizes[i].isInt())) (*sizes)[i] = self.sizes[i];
         if (!(*sizes == self.sizes))
             return c.fail("the source " + source.text() + " does not fit into " + self.text());
         if (std::find(self.strides.begin(), self.strides.end(), SymInt(0)) != self.strides.end())
             return copiedType(c, self.dtype, {}, {});
         TensorType type = TensorType::contiguous(self.dtype, self.sizes, self.device);
         type.strides = self.strides;
         return ValueType(std::move(type));
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         copyInto(out, c.in(1));
         return out;
     },
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.dy();
         },
     .lower = [](LowerContext& c) { return Expr::cast(c.loadOwn(1), computeTypeOf(c.out().dtype)); },
     .samples =
         "f32[2, 3], f32[2, 3]\nf32[2, 3][1, 2], f64[3]\ni64[2], f32[1]\nb8[2, 2], f32[2, 2]\nf32[2, 3][1, 2], f32[2, 3]"},
    {.schema = "aten.fill.Scalar(Tensor self, Scalar value) -> Tensor",
     .tags = Tag::Pointwise | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         CT_TRY_VOID(checkNumber(c, "value", self.dtype));
         return inferClone(c);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         copyInto(out, Tensor::full(out.dtype(), {}, c.number("value")));
         return out;
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.full_like.default", {d.in(size_t{0}), d.arg(1)});
     },
     .derive = [](Derivation& d) { d.input(0) = unary("aten.zeros_like.default", d.dy()); },
     .samples = "f32[2, 3], 2\ni64[2], 3\nf32[2, 3][1, 2], 0.5\nb8[2], True"},
    {.schema = "aten.fill.Tensor(Tensor self, Tensor value) -> Tensor",
     .tags = Tag::Pointwise | Tag::Inplace,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType value, c.tensor(1));
         if (value.rank() != 0) return c.fail("fills with a 0-d tensor, not with " + value.text());
         return inferClone(c);
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         copyInto(out, c.in(1));
         return out;
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.copy.default", {d.in(size_t{0}), d.in(1)});
     },
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = unary("aten.zeros_like.default", d.dy());
             if (d.needs(1)) d.input(1) = unary("aten.sum.default", d.dy());
         },
     .samples = "f32[2, 3], f32[]\ni64[2], f32[]\nf32[2, 3][1, 2], f64[]\nb8[2], b8[]"},
    // zero_ without the mutation.
    {.schema = "aten.zero.default(Tensor self) -> Tensor",
     .tags = Tag::Pointwise | Tag::Inplace,
     .infer = inferClone,
     .eval = [](const EvalContext& c) -> EvalResult {
         Tensor out = c.result();
         copyInto(out, Tensor::full(out.dtype(), {}, int64_t{0}));
         return out;
     },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return d.call("aten.full_like.default",
                       {d.in(size_t{0}), d.out().dtype == DType::Bool ? Argument(false) : Argument(0)});
     },
     .derive = [](Derivation& d) { d.input(0) = unary("aten.zeros_like.default", d.dy()); },
     .samples = "f32[2, 3]\ni64[4]\nb8[2]\nf32[3, 2][1, 3]\nbf16[0, 2]"},
    // Raises unless the tensor is what the traced program assumed. That is checked when the graph is read.
    // Only exported programs hold such calls, and PyTorch keeps them until post-grad. Here the decomposition drops
    // them, so that an exported program becomes
    // the same graph as a capture from Python.
    {.schema =
         "aten._assert_tensor_metadata.default(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
         "Device? device=None, Layout? layout=None) -> ()",
     .tags = Tag::Impure,
     .infer = inferAssertMetadata,
     .eval = [](const EvalContext&) -> EvalResult { return TensorList{}; },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition&) -> Values { return Values(std::vector<Value>{}); }},
};

}  // namespace

std::span<const OpDef> castOps() { return kCastOps; }

}  // namespace cutaway
