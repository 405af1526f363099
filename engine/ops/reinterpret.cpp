// Memory seen as another dtype, complex numbers seen as pairs, and broadcasting to named dims.
#include "engine/ops/alias.h"
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/kernels.h"
#include "engine/ops/lower.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/view_rules.h"

namespace cutaway {
namespace {

std::string torchName(DType dtype) { return std::string(info(dtype).torchName); }

/// Sizes and strides in elements of another width: the last dim shrinks or grows.
Result<ValueType> inferViewDtype(const InferContext& c) {
    CT_TRY(TensorType type, c.tensor(size_t{0}));
    const DType dtype = c.dtype("dtype").value_or(type.dtype);
    const int from = byteSize(type.dtype), to = byteSize(dtype);
    if (from == 0 || to == 0) return c.fail("no view between " + torchName(type.dtype) + " and " + torchName(dtype));
    type.dtype = dtype;
    if (from == to) return ValueType(std::move(type));
    if (type.rank() == 0) return c.fail("a 0-d tensor has no dim to resize");
    if (!(type.strides.back() == SymInt(1))) return c.fail("the last dim must have stride 1");
    if (from > to) {
        const SymInt factor = from / to;
        type.sizes.back() = type.sizes.back() * factor;
        for (size_t i = 0; i + 1 < type.strides.size(); ++i) type.strides[i] = type.strides[i] * factor;
        type.offset = type.offset * factor;
        return ValueType(std::move(type));
    }
    const SymInt factor = to / from;
    auto divisible = [&](const SymInt& value) { return !leavesRemainder(value, factor); };
    if (!divisible(type.sizes.back()) || !divisible(type.offset))
        return c.fail("the last dim or the offset does not divide by " + factor.text());
    for (size_t i = 0; i + 1 < type.strides.size(); ++i) {
        if (!divisible(type.strides[i]))
            return c.fail("stride " + type.strides[i].text() + " does not divide by " + factor.text());
        type.strides[i] = floorDiv(type.strides[i], factor);
    }
    type.sizes.back() = floorDiv(type.sizes.back(), factor);
    type.offset = floorDiv(type.offset, factor);
    return ValueType(std::move(type));
}
/// The operand's own storage in elements of the result's dtype.
EvalResult evalReinterpret(const EvalContext& c) {
    const Tensor self = c.in(size_t{0});
    const TensorType& type = c.resultType();
    const int64_t bytes = self.offset() * byteSize(self.dtype());
    if (bytes % byteSize(type.dtype) != 0) return c.fail("the tensor starts inside an element of the new dtype");
    return Tensor(self.storage(), type.dtype, toInts(type.sizes), toInts(type.strides), bytes / byteSize(type.dtype),
                  self.device());
}

DType partOfComplex(DType complex) {
    return complex == DType::C128 ? DType::F64 : complex == DType::C32 ? DType::F16 : DType::F32;
}

Result<ValueType> inferViewAsReal(const InferContext& c) {
    CT_TRY(TensorType type, c.tensor(size_t{0}));
    if (!isComplex(type.dtype)) return c.fail("needs a complex tensor, not " + torchName(type.dtype));
    type.dtype = partOfComplex(type.dtype);
    for (SymInt& stride : type.strides) stride = stride * SymInt(2);
    type.sizes.push_back(2);
    type.strides.push_back(1);
    type.offset = type.offset * SymInt(2);
    return ValueType(std::move(type));
}
Result<ValueType> inferViewAsComplex(const InferContext& c) {
    CT_TRY(TensorType type, c.tensor(size_t{0}));
    if (type.dtype != DType::F32 && type.dtype != DType::F64 && type.dtype != DType::F16)
        return c.fail("needs float16, float32 or float64, not " + torchName(type.dtype));
    if (type.rank() == 0 || !(type.sizes.back() == SymInt(2))) return c.fail("the last dim must have size 2");
    if (!(type.strides.back() == SymInt(1))) return c.fail("the last dim must have stride 1");
    type.dtype = type.dtype == DType::F64 ? DType::C128 : type.dtype == DType::F16 ? DType::C32 : DType::C64;
    type.sizes.pop_back();
    type.strides.pop_back();
    for (SymInt& stride : type.strides) {
        if (leavesRemainder(stride, 2)) return c.fail("stride " + stride.text() + " is odd");
        stride = floorDiv(stride, SymInt(2));
    }
    if (leavesRemainder(type.offset, 2)) return c.fail("the tensor starts at an odd element");
    type.offset = floorDiv(type.offset, SymInt(2));
    return ValueType(std::move(type));
}
Values partOfComplex(Decomposition& d, int64_t part) {
    const Value self = d.in(0);
    if (!isComplex(self.dtype()))
        return part == 0 ? Values(self) : refuse(d, "a real tensor has no imaginary part to view");
    return d.call("aten.select.int", {unary("aten.view_as_real.default", self), self.rank(), part});
}

// -- conjugates. A conjugated view of PyTorch is lazy; here the numbers are computed.

Result<ValueType> inferConjugate(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    return inferLikeFirst(c);
}
EvalResult evalConjugate(const EvalContext& c) {
    Tensor out = c.result();
    withComplex(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        elementwise<T, 1>(out, {c.in(size_t{0})}, [](T x) {
            if constexpr (std::is_arithmetic_v<T>) return x;
            else return std::conj(x);
        });
    });
    return out;
}
Values decomposeConj(Decomposition& d, std::string_view op) {
    const Value self = d.in(0);
    return isComplex(self.dtype()) ? unary(op, self) : self;
}
Result<ValueType> inferComplexPair(const InferContext& c) {
    CT_TRY(const Operand real, c.operand(0));
    CT_TRY(const Operand imaginary, c.operand(1));
    if (real.type.dtype != imaginary.type.dtype) return c.fail("operands of different dtypes");
    const DType dtype = real.type.dtype;
    if (dtype != DType::F32 && dtype != DType::F64 && dtype != DType::F16)
        return c.fail("needs float16, float32 or float64");
    const Operand both[] = {real, imaginary};
    CT_TRY(TensorType type, elementwiseType(c, both,
                                            dtype == DType::F64   ? DType::C128
                                            : dtype == DType::F16 ? DType::C32
                                                                  : DType::C64));
    return ValueType(std::move(type));
}
EvalResult evalComplexPair(const EvalContext& c, bool polar) {
    Tensor out = c.result();
    auto fill = [&](auto tag) {
        using T = decltype(tag);
        elementwise<std::complex<T>, 2>(out, {c.in(size_t{0}), c.in(1)}, [polar](std::complex<T> a, std::complex<T> b) {
            return polar ? std::complex<T>(a.real() * std::cos(b.real()), a.real() * std::sin(b.real()))
                         : std::complex<T>(a.real(), b.real());
        });
    };
    if (out.dtype() == DType::C128) fill(double{});
    else fill(float{});
    return out;
}

// -- broadcasting

Result<ValueType> inferBroadcastInDim(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    CT_TRY(const SymDims sizes, c.sizes("shape"));
    CT_TRY(const std::vector<int64_t> dims, c.integers("broadcast_dimensions"));
    if (dims.size() != self.sizes.size())
        return c.fail("needs one dim of the result for each of the tensor's " + std::to_string(self.rank()));
    SymDims strides(sizes.size(), SymInt(0));
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] < 0 || dims[i] >= static_cast<int64_t>(sizes.size()) || (i > 0 && dims[i] <= dims[i - 1]))
            return c.fail("the dims must rise and lie inside the result");
        const SymInt& wanted = sizes[static_cast<size_t>(dims[i])];
        // A symbolic size is never taken for 1: it has to equal the wanted one.
        const bool kept = self.sizes[i] == wanted || !(self.sizes[i] == SymInt(1));
        if (kept && differ(self.sizes[i], wanted))
            return c.fail("size " + self.sizes[i].text() + " does not broadcast to " + wanted.text());
        strides[static_cast<size_t>(dims[i])] = kept ? self.strides[i] : SymInt(0);
    }
    // A dim of size 1 that was not there takes the stride of what follows.
    for (size_t i = sizes.size(); i-- > 0;)
        if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) == dims.end() && sizes[i] == SymInt(1))
            strides[i] = i + 1 < sizes.size() ? strides[i + 1] * sizes[i + 1] : SymInt(1);
    return ValueType(viewType(self, sizes, strides, self.offset));
}
Expr lowerBroadcastInDim(LowerContext& c) {
    const TensorType self = c.in(size_t{0});
    const std::vector<int64_t> dims = c.integersOf("broadcast_dimensions");
    std::vector<Expr> at;
    for (size_t i = 0; i < dims.size(); ++i)
        at.push_back(self.sizes[i] == SymInt(1) ? Expr::integer(0) : c.index()[static_cast<size_t>(dims[i])]);
    return c.loadAt(0, at);
}
void deriveBroadcastInDim(Derivation& d) {
    const std::vector<int64_t> dims = d.integersOf("broadcast_dimensions");
    std::vector<int64_t> summed;
    for (int64_t dim = 0; dim < d.dy().rank(); ++dim) {
        const auto found = std::find(dims.begin(), dims.end(), dim);
        const SymInt own = found == dims.end() ? SymInt(1) : d.in(0).size(found - dims.begin());
        if (found == dims.end() || (own == SymInt(1) && !(d.dy().size(dim) == SymInt(1)))) summed.push_back(dim);
    }
    const Value total = summed.empty() ? d.dy() : sum(d.dy(), summed, true);
    d.input(0) = reshape(total, d.in(0).sizes());
}

Result<ValueType> refuseResize(const InferContext& c) {
    return unsupported(c.op().name() + ": gives a tensor other memory, which a graph of values cannot say", {},
                       {"use as_strided or copy_, or make a new tensor"});
}

/// The first elements of the memory, row-major. More than there are would have no values.
Values resized(Decomposition& d) {
    const Value x = d.in(size_t{0});
    const auto size = read(d, d.sizes("size"));
    if (!size) return Value(d.builder(), nullptr);
    for (const SymInt& one : *size)
        if (one.isInt() && one.value() < 0) return refuse(d, "a negative size");
    const auto format = d.memoryFormat("memory_format");
    if (*size == x.sizes() && !format) return x;
    if (format && *format == MemoryFormat::Preserve)
        return refuse(d, "needs a memory format that says where elements lie");
    const auto strides = formatStrides(format.value_or(MemoryFormat::Contiguous), *size);
    if (!strides) return refuse(d, "the memory format does not fit " + std::to_string(size->size()) + " dims");
    const auto mayBe = [](const SymInt& a, const SymInt& b) { return !a.isInt() || !b.isInt() || a == b; };
    if (!format && !x.type().isContiguous() && size->size() == x.sizes().size() &&
        std::equal(size->begin(), size->end(), x.sizes().begin(), mayBe))
        return refuse(
            d, "keeps the layout of " + x.type().text() + " if it has these sizes already, which depends on symbols");
    const SymInt wanted = numel(*size), have = numel(x.sizes());
    if (wanted.isInt() && have.isInt() && wanted.value() > have.value())
        return refuse(d, "makes " + x.type().text() +
                             " larger, and what is new would have no values; make a new tensor of " + wanted.text() +
                             " elements");
    if (!wanted.isInt() && !(wanted == have))
        return refuse(d, "may make " + x.type().text() + " larger, and what is new would have no values");
    return d.call("aten.as_strided.default", {x, Argument(*size), Argument(*strides)});
}

/// What is lazily conjugated or negated in PyTorch is computed at once here, but writes to it reach what it looks at:
/// until it is resolved, which makes a copy.
Values resolved(Decomposition& d) {
    const Value x = d.in(0);
    for (const Node* node = x.node(); node && node->isCall();) {
        if (isLazyView(*node)) return unary("aten.clone.default", x);
        if (!node->is(Tag::View) && !node->isCall("operator.getitem")) break;
        node = node->arg(0).node();
    }
    return x;
}

constexpr OpDef kReinterpretOps[] = {
    // The same bytes as elements of another dtype.
    {.schema = "aten.view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
     .tags = Tag::View | Tag::NoGradient,
     .infer = inferViewDtype,
     .eval = evalReinterpret,
     .samples = R"(
f32[2, 3], torch.int32
f32[2, 3], torch.int16
i16[2, 4], torch.float32
bf16[2, 4], torch.int8
u8[3, 8], torch.float64
f32[], torch.int32
f32[2, 3][1, 2], torch.int32
f32[0, 4], torch.float64
i64[2, 2], torch.uint8
)"},
    {.schema = "aten.view_as_real.default(Tensor(a) self) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferViewAsReal,
     .eval = evalReinterpret,
     .derive =
         [](Derivation& d) {
             d.input(0) = unary("aten.view_as_complex.default", d.call("aten.contiguous.default", {d.dy()}));
         },
     .samples = "c64[2, 3]\nc128[3]\nc64[2, 3][1, 2]\nc64[]"},
    {.schema = "aten.view_as_complex.default(Tensor(a) self) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferViewAsComplex,
     .eval = evalReinterpret,
     .derive = [](Derivation& d) { d.input(0) = unary("aten.view_as_real.default", d.dy()); },
     .samples = "f32[3, 2]\nf64[2]\nf32[2, 3, 2][2, 4, 1]\nf32[0, 2]"},
    shorthand(
        "aten.real.default(Tensor(a) self) -> Tensor(a)", [](Decomposition& d) { return partOfComplex(d, 0); },
        "c64[2, 3]\nf32[2]\nc128[]"),
    shorthand(
        "aten.imag.default(Tensor(a) self) -> Tensor(a)", [](Decomposition& d) { return partOfComplex(d, 1); },
        "c64[2, 3]\nc128[]"),
    {.schema = "aten._conj.default(Tensor(a) self) -> Tensor(a)",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         // In PyTorch a view with a flag; here fresh elements in the same places.
         CT_TRY(TensorType type, c.tensor(size_t{0}));
         type.offset = 0;
         type.requiresGrad = false;
         return ValueType(std::move(type));
     },
     .eval = evalConjugate,
     .derive = [](Derivation& d) { d.input(0) = unary("aten._conj.default", d.dy()); },
     .samples = "c64[2, 3]\nc128[3]"},
    {.schema = "aten._conj_physical.default(Tensor self) -> Tensor",
     .infer = inferConjugate,
     .eval = evalConjugate,
     .derive = [](Derivation& d) { d.input(0) = unary("aten._conj_physical.default", d.dy()); },
     .samples = "c64[2, 3]\nc64[2, 3][1, 2]\nc128[]"},
    shorthand(
        "aten.conj.default(Tensor(a) self) -> Tensor(a)",
        [](Decomposition& d) { return decomposeConj(d, "aten._conj.default"); }, "c64[2, 3]\nf32[3]\ni64[2]"),
    shorthand(
        "aten.conj_physical.default(Tensor self) -> Tensor",
        [](Decomposition& d) { return decomposeConj(d, "aten._conj_physical.default"); }, "c64[2, 3]\nf32[3]",
        Tag::Inplace),
    {.schema = "aten._neg_view.default(Tensor(a) self) -> Tensor(a)",
     .infer = [](const InferContext& c) -> Result<ValueType> {
         CT_TRY(TensorType type, c.tensor(size_t{0}));
         if (type.dtype == DType::Bool) return c.fail("negates no bools");
         type.offset = 0;
         type.requiresGrad = false;
         return ValueType(std::move(type));
     },
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values { return -d.in(0); },
     .derive = [](Derivation& d) { d.input(0) = -d.dy(); },
     .samples = "f32[2, 3]\nf32[2, 3][1, 2]\ni64[4]"},
    shorthand("aten.resolve_conj.default(Tensor(a) self) -> Tensor(a)", resolved, "c64[2, 3]\nf32[3]"),
    shorthand("aten.resolve_neg.default(Tensor(a) self) -> Tensor(a)", resolved, "c64[2, 3]\nf32[3]"),
    {.schema = "aten.complex.default(Tensor real, Tensor imag) -> Tensor",
     .infer = inferComplexPair,
     .eval = [](const EvalContext& c) { return evalComplexPair(c, false); },
     .derive =
         [](Derivation& d) {
             if (d.needs(1)) d.input(1) = d.call("aten.imag.default", {d.dy()});
             if (d.needs(0)) d.input(0) = d.call("aten.real.default", {d.dy()});
         },
     .samples = "f32[2, 3], f32[2, 3]\nf64[2, 1], f64[3]\nf32[], f32[]"},
    {.schema = "aten.polar.default(Tensor abs, Tensor angle) -> Tensor",
     .infer = inferComplexPair,
     .eval = [](const EvalContext& c) { return evalComplexPair(c, true); },
     .derive =
         [](Derivation& d) {
             const Value real = unary("aten.real.default", d.dy()), imaginary = unary("aten.imag.default", d.dy());
             const Value cos = unary("aten.cos.default", d.in(1)), sin = unary("aten.sin.default", d.in(1));
             if (d.needs(0)) d.input(0) = real * cos + imaginary * sin;
             if (d.needs(1)) d.input(1) = d.in(0) * (imaginary * cos - real * sin);
         },
     .samples = "f32[2, 3]>0, f32[2, 3]\nf64[3]>0, f64[3]"},
    // Dim i of the tensor becomes dim broadcast_dimensions[i] of the result; the others repeat it.
    {.schema = "prims.broadcast_in_dim.default(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)",
     .tags = Tag::View,
     .infer = inferBroadcastInDim,
     .eval = evalView,
     .derive = deriveBroadcastInDim,
     .lower = lowerBroadcastInDim,
     .samples =
         "f32[3], [2, 3], [1]\nf32[2, 1], [2, 4, 3], [0, 2]\ni64[], [2, 2], []\nf32[2, 3], [2, 3], [0, 1]\nf32[3], [3, 2], [0]"},
    // resize_ makes the tensor another view of its own memory; set_ gives it other memory, and is refused.
    shorthand(
        "aten.resize_.default(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
        resized,
        "f32[2, 3], [2, 2]\nf32[2, 3], [3, 2]\nf32[2, 3][1, 2], [2, 3]\nf32[2, 3][1, 2], [2]\nf64[4, 6], [1, 2, 3, 4], memory_format = torch.channels_last"),
    {.schema = "aten.set_.default(Tensor(a!) self) -> Tensor(a!)", .tags = Tag::Impure, .infer = refuseResize},
    {.schema = "aten.set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
     .tags = Tag::Impure,
     .infer = refuseResize},
    {.schema =
         "aten.set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
     .tags = Tag::Impure,
     .infer = refuseResize},
};

}  // namespace

std::span<const OpDef> reinterpretOps() { return kReinterpretOps; }

}  // namespace cutaway
