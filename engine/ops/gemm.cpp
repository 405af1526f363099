// Matrix products: mm, bmm, addmm and their kin with kernels; linear, matmul and other shorthands by expansion.
#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/gemm_rules.h"
#include "engine/ops/matrix.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"
#include "engine/support/release_changes.h"

namespace cutaway {

Result<TensorType> productType(const InferContext& c, const TensorType& a, const TensorType& b, int64_t rank) {
    if (a.rank() != rank || b.rank() != rank)
        return c.fail("needs operands of " + std::to_string(rank) + " dims, not " + std::to_string(a.rank()) + " and " +
                      std::to_string(b.rank()));
    if (a.dtype != b.dtype)
        return c.fail("operands of dtypes " + std::string(info(a.dtype).torchName) + " and " +
                      std::string(info(b.dtype).torchName));
    if (a.dtype == DType::Bool) return c.fail("no product of bool matrices; convert them first");
    const size_t last = static_cast<size_t>(rank) - 1;
    if (differ(a.sizes[last], b.sizes[last - 1]))
        return c.fail("inner sizes " + a.sizes[last].text() + " and " + b.sizes[last - 1].text() + " differ");
    if (rank == 3 && differ(a.sizes[0], b.sizes[0]))
        return c.fail("batch sizes " + a.sizes[0].text() + " and " + b.sizes[0].text() + " differ");
    SymDims sizes = a.sizes;
    sizes[last] = b.sizes[last];
    return TensorType::contiguous(a.dtype, std::move(sizes), a.device);
}

Result<ValueType> addendFits(const InferContext& c, TensorType product) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    const SymDims shapes[] = {self.sizes, product.sizes};
    auto sizes = broadcastSizes(shapes);
    if (!sizes || differ(*sizes, product.sizes))
        return c.fail("the added tensor does not broadcast to the product's shape");
    for (const char* factor : {"beta", "alpha"})
        if (const auto* number = c.arg(factor).get<std::complex<double>>();
            number && number->imag() != 0 && !isComplex(product.dtype))
            return c.fail("'" + std::string(factor) + "' is complex, the product " +
                          std::string(info(product.dtype).torchName));
    return ValueType(std::move(product));
}

Value scaled(const Value& x, const std::optional<Scalar>& factor) {
    return isOne(factor) ? x : x.builder().call("aten.mul.Scalar", {x, Argument(conjugated(*factor))});
}

namespace {

Result<ValueType> inferProduct(const InferContext& c, int64_t rank, size_t first) {
    CT_TRY(const TensorType a, c.tensor(first));
    CT_TRY(const TensorType b, c.tensor(first + 1));
    CT_TRY(TensorType type, productType(c, a, b, rank));
    if (first == 0) return ValueType(std::move(type));
    CT_TRY(const TensorType addend, c.tensor(size_t{0}));
    if (addend.dtype != type.dtype)
        return c.fail("operands of dtypes " + std::string(info(addend.dtype).torchName) + " and " +
                      std::string(info(type.dtype).torchName));
    return addendFits(c, std::move(type));
}

EvalResult evalProduct(const EvalContext& c) {
    Tensor out = c.result();
    multiplyMatrices(c.in(size_t{0}), c.in(1), out);
    return out;
}
EvalResult evalScaledProduct(const EvalContext& c) {
    Tensor out = c.result();
    multiplyMatrices(c.in(1), c.in(2), out, {c.in(size_t{0}), c.number("alpha"), c.number("beta")});
    return out;
}

Value t(const Value& x) { return x ? x.builder().call("aten.t.default", {x}) : x; }
Value swapLast(const Value& x) { return x ? x.builder().call("aten.transpose.int", {x, 1, 2}) : x; }
Value mm(const Value& a, const Value& b) { return a ? a.builder().call("aten.mm.default", {a, b}) : a; }
Value bmm(const Value& a, const Value& b) { return a ? a.builder().call("aten.bmm.default", {a, b}) : a; }

bool columnMajor(const TensorType& type) { return type.strides[0] == SymInt(1) && type.strides[1] == type.sizes[0]; }

/// Gradients in y = alpha * a b. A gradient is computed in the layout of its operand, as PyTorch does, so that a
/// transposed weight gets a transposed gradient without a copy.
void deriveLeft(Derivation& d, size_t first, const std::optional<Scalar>& alpha) {
    if (!d.needs(first)) return;
    const Value a = conjugated(d.in(first)), b = conjugated(d.in(first + 1)), dy = d.dy();
    d.input(first) = scaled(columnMajor(a.type()) ? t(mm(b, t(dy))) : mm(dy, t(b)), alpha);
}
void deriveRight(Derivation& d, size_t first, const std::optional<Scalar>& alpha) {
    if (!d.needs(first + 1)) return;
    const Value a = conjugated(d.in(first)), b = conjugated(d.in(first + 1)), dy = d.dy();
    d.input(first + 1) = scaled(columnMajor(b.type()) ? t(mm(t(dy), a)) : mm(t(a), dy), alpha);
}
void deriveBatchLeft(Derivation& d, size_t first, const std::optional<Scalar>& alpha) {
    if (d.needs(first)) d.input(first) = scaled(bmm(d.dy(), swapLast(conjugated(d.in(first + 1)))), alpha);
}
void deriveBatchRight(Derivation& d, size_t first, const std::optional<Scalar>& alpha) {
    if (d.needs(first + 1)) d.input(first + 1) = scaled(bmm(swapLast(conjugated(d.in(first))), d.dy()), alpha);
}
void deriveBias(Derivation& d) {
    if (d.needs(0)) d.input(0) = scaled(d.dy(), d.scalar("beta"));
}

// Rewrites of tiny products on the CPU, where a library call costs more than the arithmetic. Half precision computes
// in f32 and is rounded at the end.
bool onCpu(const Value& x) { return x.type().device.type == DeviceType::Cpu; }
bool isOne(const SymInt& size) { return size == SymInt(1); }
Value wide(const Value& x) { return isHalf(x.dtype()) ? convert(x, DType::F32) : x; }
Value squeeze(const Value& x, int64_t dim) { return x ? x.builder().call("aten.squeeze.dim", {x, dim}) : x; }
/// Two operands that are made one after the other (C++ leaves the order of function arguments open).
struct Pair {
    Value a, b;
};
Pair wide(const Value& a, const Value& b) { return Pair{wide(a), wide(b)}; }
Value product(const Pair& operands) { return operands.a * operands.b; }
Value narrowed(const Value& x, const Value& like) { return convert(x, like.dtype()); }
/// A row times a column (of each matrix of a batch, whose dim `dim` counts the rows), as multiply and sum.
Value rowTimesColumn(const Pair& operands, int64_t dim) {
    return unsqueeze(sum(product(Pair{squeeze(operands.a, dim), squeeze(operands.b, -1)}), {dim}, true), dim);
}

Values decomposeMm(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1);
    if (!onCpu(a)) return Values::notHandled();
    const SymInt count = numel(a.sizes()) + numel(b.sizes());
    const bool line = has(d.release(), ReleaseChange::ProductsOfOneTerm) && (isOne(a.size(0)) || isOne(b.size(1)));
    if (!line && isOne(a.size(1)) && isOne(b.size(0)) && a.size(0).isInt() && a.size(0).value() > 0 && count.isInt() &&
        count.value() <= 32)
        return narrowed(product(wide(a, b)), a);
    if (isOne(a.size(0)) && isOne(b.size(1))) return narrowed(rowTimesColumn(wide(a, b), 0), a);
    return Values::notHandled();
}

Values decomposeBmm(Decomposition& d) {
    const Value a = d.in(0), b = d.in(1);
    if (isOne(a.size(2)) && isOne(b.size(1)) && has(d.release(), ReleaseChange::ProductsOfOneTerm)) {
        const Value each = product(wide(a, b));
        return narrowed(each.type().isContiguous()
                            ? each
                            : d.call("aten.clone.default", {each}, {{"memory_format", MemoryFormat::Contiguous}}),
                        a);
    }
    if (!onCpu(a) || !isOne(a.size(1)) || !isOne(b.size(2))) return Values::notHandled();
    return narrowed(rowTimesColumn(wide(a, b), 1), a);
}

Values decomposeAddmm(Decomposition& d) {
    const Value a = d.in(1), b = d.in(2);
    if (!onCpu(a) || !isOne(a.size(0))) return Values::notHandled();
    const bool dot = isOne(b.size(1));
    const bool small = b.size(0).isInt() && b.size(1).isInt() && b.size(0).value() <= 16 && b.size(1).value() <= 16;
    if (!dot && !small) return Values::notHandled();
    const Value addend = wide(d.in(0));
    const Pair operands = wide(a, b);
    const Value result = dot ? rowTimesColumn(operands, 0) : sum(permute(operands.a, {1, 0}) * operands.b, {0}, true);
    const Value scaledResult = result * d.any(4), scaledAddend = addend * d.any(3);
    return narrowed(scaledResult + scaledAddend, a);
}

Result<ValueType> inferMv(const InferContext& c) {
    CT_TRY(const TensorType matrix, c.tensor(size_t{0}));
    CT_TRY(const TensorType vector, c.tensor(1));
    if (matrix.rank() != 2 || vector.rank() != 1) return c.fail("needs a matrix and a vector");
    if (matrix.dtype != vector.dtype) return c.fail("operands of different dtypes");
    if (differ(matrix.sizes[1], vector.sizes[0]))
        return c.fail("the matrix has " + matrix.sizes[1].text() + " columns, the vector " + vector.sizes[0].text() +
                      " elements");
    return ValueType(TensorType::contiguous(matrix.dtype, {matrix.sizes[0]}, matrix.device));
}

Result<ValueType> inferDot(const InferContext& c) {
    CT_TRY(const TensorType a, c.tensor(size_t{0}));
    CT_TRY(const TensorType b, c.tensor(1));
    if (a.rank() != 1 || b.rank() != 1) return c.fail("needs two vectors");
    if (a.dtype != b.dtype) return c.fail("operands of different dtypes");
    if (differ(a.sizes[0], b.sizes[0]))
        return c.fail("vectors of " + a.sizes[0].text() + " and " + b.sizes[0].text() + " elements");
    return ValueType(TensorType::contiguous(a.dtype, {}, a.device));
}

EvalResult evalVectors(const EvalContext& c) {
    const Tensor a = c.in(size_t{0}), b = c.in(1);
    const int64_t k = b.size(0), rows = a.rank() == 2 ? a.size(0) : 1;
    const Tensor matrix = a.rank() == 2 ? a : a.view({1, k}, {0, a.stride(0)}, a.offset());
    Tensor out = c.result();
    Tensor column = out.view({rows, 1}, {1, 1}, out.offset());
    multiplyMatrices(matrix, b.view({k, 1}, {b.stride(0), 1}, b.offset()), column);
    return out;
}

constexpr std::string_view kMmSamples = R"(
f32[2, 3], f32[3, 4]
f32[2, 3][1, 2], f32[3, 4][1, 3]
f64[5, 7], f64[7, 5]
bf16[4, 8], bf16[8, 2]
f16[4, 8], f16[8, 2]
i64[2, 3], i64[3, 2]
f32[2, 0], f32[0, 3]
f32[0, 2], f32[2, 3]
f32[1, 5], f32[5, 1]
f32[4, 1], f32[1, 4]
bf16[4, 1], bf16[1, 4]
c64[2, 3], c64[3, 2]
f32[40, 33], f32[33, 17]
)";

constexpr OpDef kGemmOps[] = {
    // Product of two matrices of one dtype. Integers wrap; half precision is summed in f32 and rounded once.
    {.schema = "aten.mm.default(Tensor self, Tensor mat2) -> Tensor",
     .tags = Tag::Heavy,
     .infer = [](const InferContext& c) { return inferProduct(c, 2, 0); },
     .eval = evalProduct,
     .expand = Expand::Decompose,
     .decompose = decomposeMm,
     .derive =
         [](Derivation& d) {
             deriveRight(d, 0, std::nullopt);
             deriveLeft(d, 0, std::nullopt);
         },
     .samples = kMmSamples},
    // Product of two batches of matrices.
    {.schema = "aten.bmm.default(Tensor self, Tensor mat2) -> Tensor",
     .tags = Tag::Heavy,
     .infer = [](const InferContext& c) { return inferProduct(c, 3, 0); },
     .eval = evalProduct,
     .expand = Expand::Decompose,
     .decompose = decomposeBmm,
     .derive =
         [](Derivation& d) {
             deriveBatchRight(d, 0, std::nullopt);
             deriveBatchLeft(d, 0, std::nullopt);
         },
     .samples = R"(
f32[2, 3, 4], f32[2, 4, 5]
f32[2, 3, 4][12, 1, 3], f32[2, 4, 5][20, 1, 4]
f64[3, 2, 2], f64[3, 2, 2]
bf16[2, 3, 4], bf16[2, 4, 5]
f32[0, 3, 4], f32[0, 4, 5]
f32[2, 3, 0], f32[2, 0, 5]
f32[3, 1, 4], f32[3, 4, 1]
f32[2, 3, 4][0, 4, 1], f32[2, 4, 5]
i32[2, 2, 2], i32[2, 2, 2]
)"},
    // beta * self + alpha * mat1 mat2; self broadcasts, and is not read when beta is 0.
    {.schema = "aten.addmm.default(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .tags = Tag::Heavy | Tag::Inplace,
     .infer = [](const InferContext& c) { return inferProduct(c, 2, 1); },
     .eval = evalScaledProduct,
     .expand = Expand::Decompose,
     .decompose = decomposeAddmm,
     .derive =
         [](Derivation& d) {
             deriveLeft(d, 1, d.scalar("alpha"));
             deriveRight(d, 1, d.scalar("alpha"));
             deriveBias(d);
         },
     .samples = R"(
f32[4], f32[2, 3], f32[3, 4]
f32[2, 4], f32[2, 3], f32[3, 4]
f32[], f32[2, 3], f32[3, 4][1, 3]
f32[4], f32[2, 3], f32[3, 4], beta=2, alpha=0.5
f32[4], f32[2, 3], f32[3, 4], beta=0
f64[2, 1], f64[2, 3], f64[3, 4]
bf16[4], bf16[2, 3], bf16[3, 4]
f32[4], f32[2, 0], f32[0, 4]
f32[4], f32[0, 3], f32[3, 4]
f32[4], f32[1, 3], f32[3, 4]
f32[1], f32[1, 3], f32[3, 1], beta=2
i64[4], i64[2, 3], i64[3, 4], beta=3
)"},
    {.schema =
         "aten.baddbmm.default(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     .tags = Tag::Heavy | Tag::Inplace,
     .infer = [](const InferContext& c) { return inferProduct(c, 3, 1); },
     .eval = evalScaledProduct,
     .derive =
         [](Derivation& d) {
             deriveBatchLeft(d, 1, d.scalar("alpha"));
             deriveBatchRight(d, 1, d.scalar("alpha"));
             deriveBias(d);
         },
     .samples = R"(
f32[2, 3, 5], f32[2, 3, 4], f32[2, 4, 5]
f32[5], f32[2, 3, 4], f32[2, 4, 5], beta=2, alpha=0.5
f64[1, 3, 5], f64[2, 3, 4], f64[2, 4, 5]
bf16[2, 3, 5], bf16[2, 3, 4], bf16[2, 4, 5], beta=0
f32[2, 3, 5], f32[2, 3, 0], f32[2, 0, 5]
)"},
    // Matrix times vector.
    {.schema = "aten.mv.default(Tensor self, Tensor vec) -> Tensor",
     .infer = inferMv,
     .eval = evalVectors,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return narrowed(sum(product(wide(d.in(0), d.in(1))), {1}, false), d.in(0));
     },
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = d.call("aten.outer.default", {d.dy(), conjugated(d.in(1))});
             if (d.needs(1)) d.input(1) = d.call("aten.mv.default", {t(conjugated(d.in(0))), d.dy()});
         },
     .samples =
         "f32[4, 5], f32[5]\nf32[4, 5][1, 4], f32[5]\nbf16[3, 2], bf16[2]\nf64[0, 5], f64[5]\nf32[3, 0], f32[0]\ni64[2, 3], i64[3]"},
    // Sum of the products of two vectors, as a 0-d tensor.
    {.schema = "aten.dot.default(Tensor self, Tensor tensor) -> Tensor",
     .infer = inferDot,
     .eval = evalVectors,
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) -> Values {
         return narrowed(d.call("aten.sum.default", {product(wide(d.in(0), d.in(1)))}), d.in(0));
     },
     .derive =
         [](Derivation& d) {
             if (d.needs(0)) d.input(0) = d.dy() * conjugated(d.in(1));
             if (d.needs(1)) d.input(1) = d.dy() * conjugated(d.in(0));
         },
     .samples = "f32[5], f32[5]\nf64[0], f64[0]\nf32[4][2], f32[4]\nbf16[3], bf16[3]\ni32[3], i32[3]"},
    {.schema = "aten.outer.default(Tensor self, Tensor vec2) -> Tensor",
     .infer = inferExpanded,
     .eval = evalExpanded,
     .expand = Expand::Composite,
     .decompose = [](Decomposition& d) -> Values {
         if (d.in(0).rank() != 1 || d.in(1).rank() != 1) d.builder().fail(d.fail("needs two vectors"));
         return view(d.in(0), {d.in(0).size(0), SymInt(1)}) * d.in(1);
     },
     .samples = "f32[3], f32[4]\ni64[2], f32[3]"},
};

}  // namespace

std::span<const OpDef> gemmOps() { return kGemmOps; }

}  // namespace cutaway
