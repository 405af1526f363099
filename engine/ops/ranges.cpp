// Tensors of evenly spaced numbers, identity matrices, and the coordinates of triangles.
#include <cmath>

#include "engine/ops/arithmetic.h"
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/number_range.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/packed.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

Result<ValueType> madeType(const InferContext& c, SymDims sizes, DType fallback) {
    for (const SymInt& size : sizes)
        if (exceeds(0, size)) return c.fail("a negative size");
    return ValueType(TensorType::contiguous(c.dtype("dtype").value_or(fallback), std::move(sizes),
                                            c.device("device").value_or(Device{})));
}

// -- linspace and logspace

/// The dtypes that PyTorch has a kernel for; for fewer than two numbers it needs none.
bool isSpaced(DType dtype) {
    if (dtype == DType::Bool || dtype == DType::C32) return false;
    return isIntegral(dtype) ? dtype == DType::U8 || !isUnsigned(dtype) : isComplex(dtype) || byteSize(dtype) > 1;
}
Result<ValueType> inferSpaced(const InferContext& c) {
    CT_TRY(const SymInt steps, c.size("steps"));
    bool complex = false;
    for (std::string_view bound : {"start", "end"}) {
        if (!c.arg(bound).isNumber())
            return unsupported(c.op().name() + ": '" + std::string(bound) + "' is known only at run time", {},
                               {"give a number"});
        complex |= c.arg(bound).get<std::complex<double>>() != nullptr;
    }
    CT_TRY(const ValueType type, madeType(c, {steps}, complex ? DType::C64 : DType::F32));
    const DType dtype = type.tensor()->dtype;
    const std::string name(info(dtype).torchName);
    if (complex && !isComplex(dtype)) return c.fail("complex numbers do not fit into " + name);
    const bool several = !steps.isInt() || steps.value() > 1;
    if (several && !isSpaced(dtype)) return c.fail("has no kernel for " + name);
    if (!(steps == SymInt(0))) CT_TRY_VOID(checkNumber(c, "start", dtype));
    if (several) CT_TRY_VOID(checkNumber(c, "end", dtype));
    return type;
}
/// True and False are 1 and 0.
Argument plainNumber(const Argument& bound) {
    const bool* truth = bound.get<bool>();
    return truth ? Argument(static_cast<int64_t>(*truth)) : bound;
}
bool isLiteral(const Argument& bound) { return bound.asReal() || bound.get<std::complex<double>>(); }
std::complex<double> complexNumber(const Argument& bound) {
    const auto* z = bound.get<std::complex<double>>();
    return z ? *z : std::complex<double>(*bound.asReal());
}
/// (end - start) / last
Argument stepBetween(const Argument& start, const Argument& end, int64_t last) {
    const std::complex<double> step = (complexNumber(end) - complexNumber(start)) / static_cast<double>(last);
    return start.asReal() && end.asReal() ? Argument(step.real()) : Argument(step);
}
Argument truncated(const Argument& bound, DType dtype) {
    return isIntegral(dtype, true) && bound.get<double>() ? Argument(static_cast<int64_t>(*bound.get<double>()))
                                                          : bound;
}
/// From both ends towards the middle, so that the first and last element are exact.
Value spaced(Decomposition& d, const Argument& first, const Argument& final, const SymInt& steps, DType dtype) {
    const Device device = d.out().device;
    const Argument start = plainNumber(first), end = plainNumber(final);
    if (steps == SymInt(0)) return full(d.builder(), {steps}, Scalar(int64_t{0}), dtype, device);
    if (steps == SymInt(1))
        return d.call("aten.full.default", {Argument(SymDims{steps}), start},
                      {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", device}, {"pin_memory", false}});
    if (!steps.isInt() || !isLiteral(start) || !isLiteral(end)) {
        const std::string what = steps.isInt() ? "a bound" : "the number of steps";
        d.builder().fail(unsupported(d.op().name() + ": " + what + " is known only at run time", {},
                                     {"set the sizes of the inputs"}));
        return Value(d.builder(), nullptr);
    }
    const int64_t last = steps.value() - 1;
    const Argument step = stepBetween(start, end, last);
    const DType work = isIntegral(dtype, true) ? DType::I64 : isHalf(dtype) ? DType::F32 : dtype;
    const Value range = iota(d.builder(), steps, device);
    const Value firstHalf = d.call("aten.lt.Scalar", {range, static_cast<double>(steps.value()) / 2});
    const Value up = d.call("aten.add.Tensor", {d.call("aten.mul.Tensor", {convert(range, work), step}), start});
    const Value remaining = convert(d.call("aten.sub.Tensor", {last, range}), work);
    const Value down = d.call("aten.sub.Tensor", {end, d.call("aten.mul.Tensor", {remaining, step})});
    return convert(where(firstHalf, up, down), dtype);
}
Values decomposeLinspace(Decomposition& d) {
    return spaced(d, d.arg("start"), d.arg("end"), *d.size("steps"), d.out().dtype);
}
Values decomposeLogspace(Decomposition& d) {
    const DType dtype = d.out().dtype;
    const bool complex = d.arg("start").get<std::complex<double>>() || d.arg("end").get<std::complex<double>>();
    const Value exponents = spaced(d, truncated(d.arg("start"), dtype), truncated(d.arg("end"), dtype),
                                   *d.size("steps"), complex ? DType::C128 : DType::F64);
    return convert(d.call("aten.pow.Scalar", {d.arg("base"), exponents}), dtype);
}

bool fromStart(int64_t i, int64_t steps) { return i < steps - i; }
/// PyTorch's kernel: the step in the result's own type (float for half floats), mirrored in the middle: an
/// odd one out counts from the start, as in the expansion (PyTorch's kernel counts it from the end).
template <class T>
std::vector<T> spacedElements(T start, T end, int64_t steps) {
    std::vector<T> out(static_cast<size_t>(steps), start);
    if (steps < 2) return out;
    const auto step = (static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(steps - 1);
    for (int64_t i = 0; i < steps; ++i) {
        if constexpr (std::is_integral_v<T>)
            out[static_cast<size_t>(i)] = static_cast<T>(
                fromStart(i, steps) ? static_cast<double>(start) + step * static_cast<double>(i)
                                    : static_cast<double>(end) - step * static_cast<double>(steps - 1 - i));
        else
            out[static_cast<size_t>(i)] = fromStart(i, steps)
                                              ? start + static_cast<T>(step) * static_cast<T>(i)
                                              : end - static_cast<T>(step) * static_cast<T>(steps - 1 - i);
    }
    return out;
}
template <class Part>
std::vector<std::complex<Part>> spacedElements(std::complex<Part> start, std::complex<Part> end, int64_t steps) {
    std::vector<std::complex<Part>> out(static_cast<size_t>(steps), start);
    if (steps < 2) return out;
    const std::complex<Part> step = (end - start) / static_cast<Part>(steps - 1);
    for (int64_t i = 0; i < steps; ++i)
        out[static_cast<size_t>(i)] =
            fromStart(i, steps) ? start + step * static_cast<Part>(i) : end - step * static_cast<Part>(steps - 1 - i);
    return out;
}
EvalResult evalLinspace(const EvalContext& c) {
    Tensor out = c.result();
    withComplex(out.dtype(), [&](auto tag) {
        using T = decltype(tag);
        unpackElements(spacedElements(scalarAs<T>(c.number("start")), scalarAs<T>(c.number("end")), out.numel()), out);
    });
    return out;
}

// -- eye

Result<ValueType> inferEye(const InferContext& c) {
    CT_TRY(const SymInt rows, c.size("n"));
    if (c.op().schema()->find("m") < 0) return madeType(c, {rows, rows}, DType::F32);
    CT_TRY(const SymInt columns, c.size("m"));
    return madeType(c, {rows, columns}, DType::F32);
}
/// The narrowest type that counts that far.
DType rangeType(const SymInt& a, const SymInt& b) {
    if (!a.isInt() || !b.isInt()) return DType::I64;
    const int64_t most = std::max(a.value(), b.value());
    for (DType dtype : {DType::U8, DType::U16, DType::I32})
        if (most <= (dtype == DType::U8 ? 255 : dtype == DType::U16 ? 65535 : 2147483647)) return dtype;
    return DType::I64;
}
constexpr int64_t kCountable = int64_t{1} << 40;
Values decomposeEye(Decomposition& d) {
    const SymInt rows = d.out().sizes[0], columns = d.out().sizes[1];
    // An identity without elements may have a side that is too long for a range; it needs no ranges.
    if (numel(d.out().sizes) == SymInt(0) &&
        (!knownLessEqual(rows, kCountable) || !knownLessEqual(columns, kCountable)))
        return full(d.builder(), d.out().sizes, Scalar(int64_t{0}), d.out().dtype, d.out().device);
    const DType counting = rangeType(rows, columns);
    const Value down = iota(d.builder(), rows, d.out().device, 0, 1, counting),
                across = iota(d.builder(), columns, d.out().device, 0, 1, counting);
    return convert(d.call("aten.eq.Tensor", {unsqueeze(down, -1), across}), d.out().dtype);
}
EvalResult evalEye(const EvalContext& c) {
    Tensor out = Tensor::zeros(c.resultType().dtype, c.resultSizes());
    const int64_t count = std::min(out.size(0), out.size(1));
    if (count == 0) return out;
    Tensor diagonal = out.view({count}, {out.size(1) + 1}, out.offset());
    copyInto(diagonal, Tensor::scalar(out.dtype(), int64_t{1}));
    return out;
}

// -- coordinates of triangles

/// A lower triangle as a trapezoid whose rows grow by one element, above a rectangle of full rows.
struct Triangle {
    int64_t trapezoid = 0, rectangle = 0, firstRow = 0;  // elements, elements, elements of the trapezoid's first row
};
Triangle lowerTriangleIndices(int64_t rows, int64_t columns, int64_t offset) {
    if (rows == 0 || columns == 0) return {};
    Triangle t;
    t.firstRow = offset > 0 ? std::min(columns, 1 + offset) : rows + offset > 0 ? 1 : 0;
    const int64_t below = checkedAdd(rows, offset);
    const int64_t lastRow = std::max<int64_t>(0, std::min(columns, below)),
                  all = std::max<int64_t>(0, std::min(rows, below));
    const int64_t growing = lastRow - t.firstRow + 1;
    t.trapezoid = checkedMul(checkedAdd(t.firstRow, lastRow), growing) / 2;
    t.rectangle = std::max<int64_t>(0, checkedMul(all - growing, columns));
    return t;
}
/// An upper triangle: the rectangle stands above, and the rows of the trapezoid shrink.
Triangle upperTriangle(int64_t rows, int64_t columns, int64_t offset) {
    if (rows == 0 || columns == 0) return {};
    Triangle t;
    t.firstRow = offset > 0 ? std::max<int64_t>(0, columns - offset) : columns;
    t.rectangle = checkedMul(std::max<int64_t>(0, std::min(rows, -offset)), columns);
    const Triangle below = lowerTriangleIndices(rows, columns, std::max(offset - 1, -rows));
    t.trapezoid = checkedMul(rows, columns) - below.trapezoid - below.rectangle - t.rectangle;
    return t;
}
struct TriangleCall {
    int64_t rows, columns, offset;
    Triangle triangle;
};
Result<TriangleCall> readTriangle(const InferContext& c, bool lower) {
    CT_TRY(const int64_t rows, c.integer("row"));
    CT_TRY(const int64_t columns, c.integer("col"));
    CT_TRY(int64_t offset, c.integer("offset"));
    if (rows < 0 || columns < 0) return c.fail("a negative size");
    if (offset < -kCountable || offset > kCountable)
        offset = std::clamp(offset, -rows, columns);  // beyond, all or nothing is in it
    return TriangleCall{rows, columns, offset,
                        lower ? lowerTriangleIndices(rows, columns, offset) : upperTriangle(rows, columns, offset)};
}
Result<ValueType> inferTriangleIndices(const InferContext& c, bool lower) {
    CT_TRY(const TriangleCall call, readTriangle(c, lower));
    CT_TRY(ValueType type, madeType(c, {2, checkedAdd(call.triangle.trapezoid, call.triangle.rectangle)}, DType::I64));
    if (const DType dtype = type.tensor()->dtype; dtype != DType::I64 && dtype != DType::I32)
        return c.fail("needs int64 or int32");
    return type;
}
EvalResult evalTriangle(const EvalContext& c, bool lower) {
    const TriangleCall call = *readTriangle(c, lower);
    Tensor out = c.result();  // before the loops: where there is no memory for it, they need not begin
    std::vector<int64_t> rows, columns;
    const int64_t offset = call.offset;
    // Rows that have none of the triangle stand first in the lower one and last in the upper one.
    const int64_t first = lower ? std::max<int64_t>(0, -offset) : 0;
    // Rows from columns - offset on have no element; compared so that the difference is made only where it fits.
    const int64_t last = lower || offset < call.columns - call.rows ? call.rows : call.columns - offset;
    for (int64_t i = first; i < last && call.columns > 0; ++i) {
        const int64_t from = lower ? 0 : std::max<int64_t>(0, i + offset),
                      to = lower ? std::min(call.columns, i + offset + 1) : call.columns;
        for (int64_t j = from; j < to; ++j) {
            rows.push_back(i);
            columns.push_back(j);
        }
    }
    rows.insert(rows.end(), columns.begin(), columns.end());
    unpackElements(rows, out);
    return out;
}
struct Coordinates {
    Value rows, columns;
};
Value rangeScaledBy(const Value& x, double factor) { return x * OperandValue(factor); }
/// Rows and columns of the trapezoid, from the position by the quadratic formula.
Coordinates trapezoid(Decomposition& d, const TriangleCall& call, bool lower) {
    const double m = static_cast<double>(call.triangle.firstRow), b = lower ? m - 0.5 : -0.5 - m;
    const Value index = iota(d.builder(), call.triangle.trapezoid, d.out().device);
    const Value position = convert(d.call("aten.add.Tensor", {d.call("aten.mul.Tensor", {index, 1}), 0}), DType::F64);
    const Value doubled = position * OperandValue(2);
    const Value inner = lower ? doubled + OperandValue(b * b) : d.call("aten.sub.Tensor", {b * b, doubled});
    const Value root = unary("aten.sqrt.default", inner);
    const Value row =
        unary("aten.floor.default", lower ? root + OperandValue(-b) : d.call("aten.sub.Tensor", {-b, root}));
    const int64_t width = 2 * call.triangle.firstRow - 1;
    const Value sides = lower ? row + OperandValue(width) : d.call("aten.sub.Tensor", {width, row});
    const Value before = rangeScaledBy(sides * row, 0.5);
    return {row, unary("aten.floor.default", position - before)};
}
Values decomposeTriangleIndices(Decomposition& d, bool lower) {
    const TriangleCall call = *readTriangle(d, lower);
    const DType dtype = d.out().dtype;
    const auto rectangle = [&]() -> Coordinates {
        const Value position = iota(d.builder(), call.triangle.rectangle, d.out().device, 0, 1, dtype);
        if (call.columns == 0) return {position, position};
        const Value row = d.call("aten.div.Tensor_mode", {position, call.columns}, {{"rounding_mode", "floor"}});
        // Where this wraps around there is no rectangle.
        const int64_t start = wrapAdd<int64_t>(call.columns - call.triangle.firstRow,
                                               wrapAdd<int64_t>(std::max<int64_t>(0, -call.offset), 1));
        return {lower ? row + OperandValue(start) : row, d.call("aten.remainder.Scalar", {position, call.columns})};
    };
    Coordinates top, bottom;
    if (lower) {
        top = trapezoid(d, call, lower);
        top.rows = convert(top.rows + OperandValue(std::max<int64_t>(0, -call.offset)), dtype);
        top.columns = convert(top.columns, dtype);
        bottom = rectangle();
    } else {
        top = rectangle();
        bottom = trapezoid(d, call, lower);
        bottom.rows = convert(bottom.rows, dtype);
        bottom.columns = convert(bottom.columns, dtype);
        if (call.columns != 0) bottom.rows = bottom.rows + OperandValue(call.triangle.rectangle / call.columns);
        bottom.columns = bottom.columns + OperandValue(std::max<int64_t>(0, call.offset));
    }
    const Value rows = cat(d.builder(), {top.rows, bottom.rows}, 0),
                columns = cat(d.builder(), {top.columns, bottom.columns}, 0);
    return d.call("aten.stack.default", {Argument(std::vector<Argument>{rows, columns})});
}

constexpr std::string_view kSpaced = R"(
0, 1, 5
0, 10, 5, dtype=torch.int64
-1.5, 2.5, 8
3, 3, 4
0, 1, 1
0, 1, 0
0, 1, 6, dtype=torch.float64
0, 1, 7, dtype=torch.bfloat16
5, -5, 11
)";
constexpr std::string_view kTriangles =
    "3, 4\n3, 4, 1\n4, 3, -1\n5, 5, 2\n5, 5, -3\n0, 4\n3, 0\n2, 6, 5\n6, 2, -5\n3, 3, 0, dtype=torch.int32\n2, 2, 7\n2, 2, -7";

constexpr OpDef kRangesOps[] = {
    {.schema =
         "aten.linspace.default(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferSpaced,
     .eval = evalLinspace,
     .expand = Expand::Decompose,
     .decompose = decomposeLinspace,
     .samples = kSpaced},
    {.schema =
         "aten.logspace.default(Scalar start, Scalar end, int steps, float base=10, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
         "bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferSpaced,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = decomposeLogspace,
     .samples = "0, 1, 5\n0, 2, 3, 2.0\n-2, 2, 5, dtype=torch.float64\n0, 3, 4, dtype=torch.int64\n0, 1, 1\n0, 1, 0"},
    {.schema =
         "aten.eye.default(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferEye,
     .eval = evalEye,
     .expand = Expand::Decompose,
     .decompose = decomposeEye,
     .samples = "3\n0\n1, dtype=torch.int64\n2, dtype=torch.bool\n4, dtype=torch.bfloat16\n300"},
    {.schema =
         "aten.eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = inferEye,
     .eval = evalEye,
     .expand = Expand::Decompose,
     .decompose = decomposeEye,
     .samples = "3, 4\n4, 2, dtype=torch.int32\n0, 3\n2, 2, dtype=torch.complex64"},
    // Rows and columns of the elements on and below (above) a diagonal.
    {.schema =
         "aten.tril_indices.default(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) { return inferTriangleIndices(c, true); },
     .eval = [](const EvalContext& c) { return evalTriangle(c, true); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeTriangleIndices(d, true); },
     .samples = kTriangles},
    {.schema =
         "aten.triu_indices.default(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     .tags = Tag::Factory,
     .infer = [](const InferContext& c) { return inferTriangleIndices(c, false); },
     .eval = [](const EvalContext& c) { return evalTriangle(c, false); },
     .expand = Expand::Decompose,
     .decompose = [](Decomposition& d) { return decomposeTriangleIndices(d, false); },
     .samples = kTriangles},
};

}  // namespace

std::span<const OpDef> rangeOps() { return kRangesOps; }

}  // namespace cutaway
