// Operators that make tensors from numbers.
#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

DType dtypeOfNumber(const InferContext& c, std::string_view param) {
    if (const auto value = c.scalar(param)) {
        if (std::holds_alternative<bool>(*value)) return DType::Bool;
        if (std::holds_alternative<int64_t>(*value)) return DType::I64;
        if (std::holds_alternative<std::complex<double>>(*value)) return DType::C64;
        return DType::F32;
    }
    auto operand = c.operand(static_cast<size_t>(c.position(param)));
    return operand ? operand->type.dtype : DType::F32;
}
Result<ValueType> contiguousType(const InferContext& c, SymDims sizes, DType dtype, Device device) {
    for (const SymInt& size : sizes)
        if (exceeds(0, size)) return c.fail("negative size " + size.text());
    return ValueType(TensorType::contiguous(dtype, std::move(sizes), device));
}
/// full, zeros, ones: sizes given, dtype given or `fallback`.
Result<ValueType> inferFilled(const InferContext& c, DType fallback) {
    CT_TRY(SymDims sizes, c.sizes("size"));
    return contiguousType(c, std::move(sizes), c.dtype("dtype").value_or(fallback),
                          c.device("device").value_or(Device{}));
}
/// The same of a given number, which the dtype must hold.
Result<ValueType> withNumber(const InferContext& c, std::string_view param, Result<ValueType> type) {
    if (type && type->tensor()) CT_TRY_VOID(checkNumber(c, param, type->tensor()->dtype));
    return type;
}
Result<ValueType> inferFloatFilled(const InferContext& c) { return inferFilled(c, DType::F32); }
/// new_zeros and its kin: dtype and device default to the tensor's.
Result<ValueType> inferNew(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(SymDims sizes, c.sizes("size"));
    return contiguousType(c, std::move(sizes), c.dtype("dtype").value_or(self.dtype),
                          c.device("device").value_or(self.device));
}
Result<ValueType> inferStrided(const InferContext& c, DType fallback, Device device) {
    CT_TRY(const SymDims sizes, c.sizes("size"));
    CT_TRY(const SymDims strides, c.sizes("stride"));
    if (sizes.size() != strides.size()) return c.fail("sizes and strides differ in length");
    CT_TRY(ValueType type,
           contiguousType(c, sizes, c.dtype("dtype").value_or(fallback), c.device("device").value_or(device)));
    type.tensor()->strides = strides;
    return type;
}

EvalResult filledTensor(const EvalContext& c, const Scalar& value) {
    Tensor out = c.result();
    copyInto(out, Tensor::full(out.dtype(), {}, value));
    return out;
}
EvalResult filledWithArgument(const EvalContext& c) { return filledTensor(c, c.number("fill_value")); }
/// What "uninitialised" reads as here: zeros, so that runs repeat.
EvalResult filledWithZero(const EvalContext& c) { return filledTensor(c, int64_t{0}); }
EvalResult filledWithOne(const EvalContext& c) { return filledTensor(c, int64_t{1}); }

Expr lowerNumber(LowerContext& c, int64_t value) { return constantOf(value, computeTypeOf(c.out().dtype)); }
Expr lowerFill(LowerContext& c, std::string_view param) { return c.numberAt(param, computeTypeOf(c.out().dtype)); }

/// 0 and 1 as PyTorch writes them in traces: False and True for bool.
Scalar unitValue(DType dtype, bool one) { return dtype == DType::Bool ? Scalar(one) : Scalar(int64_t{one}); }

Values decomposeFilled(Decomposition& d, bool one) {
    const DType dtype = d.dtype("dtype").value_or(DType::F32);
    return full(d.builder(), d.sizesOf("size"), unitValue(dtype, one), dtype, d.device("device").value_or(Device{}));
}
Values decomposeNew(Decomposition& d, const std::optional<Scalar>& value) {
    const TensorType self = d.in(size_t{0}).type();
    const DType dtype = d.dtype("dtype").value_or(self.dtype);
    const Device device = d.device("device").value_or(self.device);
    if (value) return full(d.builder(), d.sizesOf("size"), *value, dtype, device);
    return d.call("aten.empty.memory_format", {Argument(d.sizesOf("size"))},
                  {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
}

/// The dims of a dense tensor from slowest to fastest.
std::vector<int64_t> memoryOrder(const TensorType& type) {
    const SymDims strides = preservedStrides(type);
    std::vector<int64_t> order(strides.size());
    std::iota(order.begin(), order.end(), 0);
    if (!type.isContiguous() && allInts(strides))
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return strides[static_cast<size_t>(a)].value() > strides[static_cast<size_t>(b)].value();
        });
    return order;
}
/// A tensor laid out like `self`: made row-major in memory order, then permuted (and cloned, so that later passes see
/// a fresh tensor of those strides). `make` builds it from sizes, dtype and device.
template <class Make>
Values decomposeLike(Decomposition& d, bool cloned, Make make) {
    const TensorType self = d.in(size_t{0}).type();
    const DType dtype = d.dtype("dtype").value_or(self.dtype);
    const Device device = d.device("device").value_or(self.device);
    const auto format = d.memoryFormat("memory_format");
    if (format && *format != MemoryFormat::Preserve) {
        const Value made = make(self.sizes, dtype, device);
        return *format == MemoryFormat::Contiguous ? made
                                                   : d.call("aten.clone.default", {made}, {{"memory_format", *format}});
    }
    const std::vector<int64_t> order = memoryOrder(self);
    if (std::is_sorted(order.begin(), order.end())) return make(self.sizes, dtype, device);
    SymDims sizes;
    std::vector<int64_t> inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        sizes.push_back(self.sizes[static_cast<size_t>(order[i])]);
        inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    const Value permuted = permute(make(sizes, dtype, device), inverse);
    return cloned ? unary("aten.clone.default", permuted) : permuted;
}
Values decomposeFilledLike(Decomposition& d, const std::optional<Scalar>& value) {
    return decomposeLike(d, true, [&](const SymDims& sizes, DType dtype, Device device) {
        return full(d.builder(), sizes, value.value_or(unitValue(dtype, false)), dtype, device);
    });
}

// -- ranges

struct Range {
    Argument start = int64_t{0}, end, step = int64_t{1};
    bool floating = false;
    SymInt length;
};
/// The arguments of any arange overload, checked.
Result<Range> createdRange(const InferContext& c) {
    Range range;
    const Schema& schema = *c.op().schema();
    if (schema.find("start") >= 0) range.start = c.arg("start");
    if (schema.find("step") >= 0) range.step = c.arg("step");
    range.end = c.arg("end");
    // With symbols among the bounds, floats that are integers count as such: arange(s, -s, -1.0) has 2*s elements.
    const auto isSymbol = [](const Argument& argument) { return argument.get<Expr>() || argument.node(); };
    const bool symbols = isSymbol(range.start) || isSymbol(range.end) || isSymbol(range.step);
    const auto bound = [&](const Argument& argument) {
        const auto* real = argument.get<double>();
        if (!symbols || real == nullptr || *real != std::floor(*real) || std::fabs(*real) > 1e15)
            return symIntOf(argument);
        range.floating = true;
        return std::optional(SymInt(static_cast<int64_t>(*real)));
    };
    const auto start = bound(range.start), end = bound(range.end), step = bound(range.step);
    if (start && end && step) {
        if (!step->isInt()) return unsupported(c.op().name() + ": the step is known only at run time");
        if (step->value() == 0) return c.fail("the step is 0");
        const SymInt span = step->value() > 0 ? *end - *start : *start - *end;
        const int64_t by = step->value() > 0 ? step->value() : checkedSub(0, step->value());
        if (exceeds(0, span)) return c.fail("the end lies on the wrong side of the start");
        range.length = by == 1        ? span
                       : span.isInt() ? SymInt(span.value() / by + (span.value() % by != 0))
                                      : floorDiv(span + SymInt(by - 1), SymInt(by));
        return range;
    }
    const auto from = range.start.asReal(), to = range.end.asReal(), by = range.step.asReal();
    if (!from || !to || !by)
        return unsupported(c.op().name() + ": a bound is a floating-point value known only at run time");
    if (*by == 0) return c.fail("the step is 0");
    const double span = (*to - *from) / *by;
    if (!(span >= 0)) return c.fail("the end lies on the wrong side of the start");
    if (span > 1e15) return c.fail("the range is not finite");
    range.floating = true;
    range.length = static_cast<int64_t>(std::ceil(span));
    return range;
}
Result<ValueType> inferArange(const InferContext& c) {
    CT_TRY(const Range range, createdRange(c));
    return contiguousType(c, {range.length}, c.dtype("dtype").value_or(range.floating ? DType::F32 : DType::I64),
                          c.device("device").value_or(Device{}));
}
EvalResult evalArange(const EvalContext& c) {
    auto made = createdRange(c);
    if (!made) return made.error();
    Tensor out = c.result();
    const int64_t count = out.numel();
    if (made->floating) {
        const double start = *made->start.asReal(), step = *made->step.asReal();
        std::vector<double> values(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = start + static_cast<double>(i) * step;
        storeElements(out.dtype(), out.data(), 1, count, values.data());
    } else {
        const int64_t start = symIntOf(made->start)->value(), step = symIntOf(made->step)->value();
        std::vector<int64_t> values(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = start + i * step;
        storeElements(out.dtype(), out.data(), 1, count, values.data());
    }
    return out;
}
Value iota(Decomposition& d, const SymInt& length, const Argument& start, const Argument& step, DType dtype,
           Device device) {
    return d.call("prims.iota.default", {length},
                  {{"start", start}, {"step", step}, {"dtype", dtype}, {"device", device}, {"requires_grad", false}});
}
Values decomposeArange(Decomposition& d) {
    const auto range = read(d, createdRange(d));
    if (!range) return Value();
    const Device device = d.device("device").value_or(Device{});
    const DType dtype = d.dtype("dtype").value_or(range->floating ? DType::F32 : DType::I64);
    if (!range->floating && isIntegral(dtype)) return iota(d, range->length, range->start, range->step, dtype, device);
    Value index = iota(d, range->length, 0, 1, DType::I64, device);
    if (range->floating) index = convert(index, DType::F64);
    const Value scaled = d.call("aten.mul.Tensor", {index, range->step});
    return d.call("prims.convert_element_type.default", {d.call("aten.add.Tensor", {scaled, range->start}), dtype});
}

constexpr OpDef kCreateOps[] = {
    // A tensor of one value; the dtype follows the value when not given.
    {.schema = "aten.full.default(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer =
         [](const InferContext& c) {
             return withNumber(c, "fill_value", inferFilled(c, dtypeOfNumber(c, "fill_value")));
         },
     .eval = filledWithArgument,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         if (d.has("dtype")) return Values::notHandled();
         NamedArguments keywords = {{"dtype", d.out().dtype}, {"device", d.out().device}, {"pin_memory", false}};
         if (d.has("layout")) keywords.insert(keywords.begin() + 1, {"layout", d.arg("layout")});
         return d.call("aten.full.default", {d.arg(0), d.arg(1)}, std::move(keywords));
     },
     .lower = [](LowerContext& c) { return lowerFill(c, "fill_value"); },
     .samples = R"(
[2, 3], 1.5
[2], 3
[], True
[2], 1.5, dtype = torch.bfloat16
[2, 2], 3.7, dtype = torch.int64
[0, 2], 1
[2], -inf
)"},
    {.schema = "aten.zeros.default(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferFloatFilled,
     .eval = filledWithZero,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeFilled(d, false); },
     .samples = "[2, 3]\n[2], dtype = torch.int64\n[], dtype = torch.bool"},
    {.schema = "aten.ones.default(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferFloatFilled,
     .eval = filledWithOne,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeFilled(d, true); },
     .samples = "[2, 3]\n[2], dtype = torch.int64\n[], dtype = torch.bool"},
    // Uninitialised in PyTorch; reads as zeros here. Two of them are two tensors: never merged.
    {.schema = "aten.empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(ValueType type, inferFloatFilled(c));
         if (const auto format = c.memoryFormat("memory_format"); format && *format != MemoryFormat::Preserve) {
             auto strides = formatStrides(*format, type.tensor()->sizes);
             if (!strides)
                 return c.fail(std::string(name(*format)) + " does not fit rank " +
                               std::to_string(type.tensor()->rank()));
             type.tensor()->strides = std::move(*strides);
         }
         return type;
     },
     .eval = filledWithZero,
     .samples = "[2, 3]\n[2], dtype = torch.float64\n[2, 3, 4, 4], memory_format = torch.channels_last"},
    {.schema = "aten.empty_strided.default(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) { return inferStrided(c, DType::F32, {}); },
     .eval = filledWithZero,
     .samples = "[2, 3], [1, 2]\n[2, 3], [3, 1], dtype = torch.int64"},
    {.schema = "aten.new_empty_strided.default(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
               "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const TensorType self, c.tensor(size_t{0}));
         return inferStrided(c, self.dtype, self.device);
     },
     .eval = filledWithZero,
     .samples = "f64[1], [2, 3], [1, 2]\ni64[1], [2, 3], [3, 1], dtype = torch.float32"},
    {.schema = "aten.full_like.default(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = [](const InferContext& c) { return withNumber(c, "fill_value", inferLikeFactory(c)); },
     .eval = filledWithArgument,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeFilledLike(d, d.scalar("fill_value")); },
     .lower = [](LowerContext& c) { return lowerFill(c, "fill_value"); },
     .samples = R"(
f32[2, 3], 2
f32[2, 3][1, 2], 1.5
f32[2, 3, 4, 4][48, 1, 12, 3], 2
f32[2, 3], 2, dtype = torch.int64
f32[2, 3][1, 2], 2, memory_format = torch.contiguous_format
i64[2], 3
b8[2], True
)"},
    {.schema = "aten.zeros_like.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferLikeFactory,
     .eval = filledWithZero,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeFilledLike(d, unitValue(d.out().dtype, false)); },
     .lower = [](LowerContext& c) { return lowerNumber(c, 0); },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]\nb8[2]\nf32[2], dtype = torch.int64"},
    {.schema = "aten.ones_like.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferLikeFactory,
     .eval = filledWithOne,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeFilledLike(d, unitValue(d.out().dtype, true)); },
     .lower = [](LowerContext& c) { return lowerNumber(c, 1); },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]\nb8[2]\nf32[2], dtype = torch.int64"},
    {.schema = "aten.empty_like.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferLikeFactory,
     .eval = filledWithZero,
     .expand = Expand::Decompose,
     .decompose =
         [](Decomposition& d) {
             return decomposeLike(d, false, [&](const SymDims& sizes, DType dtype, Device device) {
                 return d.call(
                     "aten.empty.memory_format", {Argument(sizes)},
                     {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
             });
         },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]"},
    {.schema = "aten.new_zeros.default(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferNew,
     .eval = filledWithZero,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeNew(d, unitValue(d.out().dtype, false)); },
     .samples = "f32[1], [2, 3]\nf64[1], [2], dtype = torch.bool"},
    {.schema = "aten.new_ones.default(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferNew,
     .eval = filledWithOne,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeNew(d, unitValue(d.out().dtype, true)); },
     .samples = "f32[1], [2, 3]\ni64[1], [], dtype = torch.bool"},
    {.schema = "aten.new_full.default(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
               "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = [](const InferContext& c) { return withNumber(c, "fill_value", inferNew(c)); },
     .eval = filledWithArgument,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeNew(d, d.scalar("fill_value")); },
     .samples = "f32[1], [2, 3], 2\ni64[1], [2], 3"},
    {.schema = "aten.new_empty.default(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
               "Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::NoGradient,
     .infer = inferNew,
     .eval = filledWithZero,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeNew(d, std::nullopt); },
     .samples = "f32[1], [2, 3]"},
    // A number as a 0-d tensor; float32 when no dtype is given, whatever the number.
    {.schema = "aten.scalar_tensor.default(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         const DType dtype = c.dtype("dtype").value_or(DType::F32);
         Result<ValueType> type = contiguousType(c, {}, dtype, c.device("device").value_or(Device{}));
         // Beyond the range of a half float it is infinite.
         return isHalf(dtype) ? type : withNumber(c, "s", std::move(type));
     },
     .eval = [](const EvalContext& c) { return filledTensor(c, c.number("s")); },
     .lower = [](LowerContext& c) { return lowerFill(c, "s"); },
     .samples =
         "1.5\n2, dtype = torch.int64\nTrue, dtype = torch.bool\n3\n-3.4028234663852886e+38, dtype = torch.bfloat16\n1e6, dtype = torch.float16"},
    // start, start + step, ... up to but without end. Integer arguments give int64, floating ones float32.
    {.schema = "aten.arange.default(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
               "bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferArange,
     .eval = evalArange,
     .expand = Expand::Decompose,
     .decompose = decomposeArange,
     .samples = "5\n0\n5.0\n3, dtype = torch.float32"},
    {.schema = "aten.arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
               "device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferArange,
     .eval = evalArange,
     .expand = Expand::Decompose,
     .decompose = decomposeArange,
     .samples = "2, 7\n2, 7, dtype = torch.float32\n0.5, 3.25"},
    {.schema = "aten.arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferArange,
     .eval = evalArange,
     .expand = Expand::Decompose,
     .decompose = decomposeArange,
     .samples = "1, 8, 2\n10, 2, -3\n0.5, 3, 0.5\n0, 8, 2, dtype = torch.bfloat16\n1, 8, 2, dtype = torch.int32"},
    // start + i * step for i below length, in an integer dtype.
    {.schema = "prims.iota.default(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool "
               "requires_grad) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(const SymInt length, c.size("length"));
         const DType dtype = c.dtype("dtype").value_or(DType::I64);
         if (c.flag("requires_grad")) return c.fail("a tensor of integers has no gradient");
         if (!isIntegral(dtype)) return c.fail("needs an integer dtype");
         return contiguousType(c, {length}, dtype, c.device("device").value_or(Device{}));
     },
     .eval = [](const EvalContext& c) -> EvalResult {
         const int64_t start = toInt(c.number("start")), step = toInt(c.number("step"));
         Tensor out = c.result();
         std::vector<int64_t> values(static_cast<size_t>(out.numel()));
         for (size_t i = 0; i < values.size(); ++i) values[i] = wrapAdd(start, wrapMul(static_cast<int64_t>(i), step));
         storeElements(out.dtype(), out.data(), 1, out.numel(), values.data());
         return out;
     },
     .lower =
         [](LowerContext& c) {
             const Expr start = c.numberAt("start", DType::I64), step = c.numberAt("step", DType::I64);
             return Expr::cast(start + c.index()[0] * step, c.out().dtype);
         },
     .samples = R"(
5, start = 0, step = 1, dtype = torch.int64, device = device(type='cpu'), requires_grad = False
4, start = 3, step = -2, dtype = torch.int32, device = device(type='cpu'), requires_grad = False
0, start = 0, step = 1, dtype = torch.int64, device = device(type='cpu'), requires_grad = False
)"},
};

}  // namespace

std::span<const OpDef> createOps() { return kCreateOps; }

}  // namespace cutaway
