// Names that ATen keeps beside those it writes today, and what numpy has under them: numbers where tensors stand, older
// linear algebra and convolutions, covariances. All are written with the operators of other files.
#include <cmath>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/infer_rules.h"
#include "engine/ops/number_operand.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/opmath.h"

namespace cutaway {
namespace {

constexpr Tag kOlderNamesTags = Tag::Pointwise | Tag::Inplace;

#define CUTAWAY_NUMBER_SECOND(schema, op, samples) CUTAWAY_SECOND_NUMBER(schema, op, samples, kOlderNamesTags)

Values spacedBetweenTensors(Decomposition& d) {
    const auto steps = read(d, d.size("steps"));
    if (!steps) return Value(d.builder(), nullptr);
    if (!steps->isInt()) return refuse(d, "needs a count of steps that is known before the run");
    const DType dtype = d.arg("dtype").isNone() ? DType::F32 : *d.dtype("dtype");
    if (!isFloating(dtype)) return refuse(d, "has floating-point results only here");
    const auto bound = [&](std::string_view param) -> Value {
        if (d.arg(param).node() == nullptr)
            return full(d.builder(), {}, Scalar(d.real(param)), dtype, d.device("device").value_or(Device()));
        return convert(d.in(param), dtype);
    };
    const Value start = bound("start"), end = bound("end");
    if (start.rank() != 0 || end.rank() != 0) return refuse(d, "start and end have to be single numbers, without dims");
    const int64_t count = steps->value();
    if (count < 0) return refuse(d, "the number of steps is negative");
    const Value at = convert(iota(d.builder(), *steps, start.type().device), dtype);
    if (count == 1) return expand(start, {1});
    const Value step = (end - start) / static_cast<double>(count - 1);
    // From both ends, so that both are met exactly.
    const Value up = start + step * at, down = end - step * ((at * -1.0) + static_cast<double>(count - 1));
    return where(compareScalar("lt", at, static_cast<double>(count / 2)), up, down);
}

/// The base, a number or a tensor, to the power of numbers that are spaced evenly between two bounds.
Values spacedPowers(Decomposition& d) {
    const NamedArguments options = {{"dtype", d.arg("dtype")},
                                    {"layout", d.arg("layout")},
                                    {"device", d.arg("device")},
                                    {"pin_memory", d.arg("pin_memory")}};
    const bool first = d.arg("start").node() != nullptr, second = d.arg("end").node() != nullptr;
    const std::string_view spaced =
        first ? second ? "aten.linspace.Tensor_Tensor" : "aten.linspace.Tensor_Scalar" : "aten.linspace.Scalar_Tensor";
    const Value at = d.call(spaced, {d.arg("start"), d.arg("end"), d.arg("steps")}, options);
    return d.call("aten.pow.Scalar", {d.real("base", 10), at});
}

// -- sums and statistics

/// Sums over what was broadcast, so that the sizes are those given.
Values sumToSize(Decomposition& d) {
    const Value x = d.in(0);
    const auto sizes = read(d, d.sizes("size"));
    if (!sizes) return Value(d.builder(), nullptr);
    const int64_t extra = x.rank() - static_cast<int64_t>(sizes->size());
    if (extra < 0) return refuse(d, "size has more dims than " + x.type().text());
    if (sizes->empty()) return unary("aten.sum.default", x);
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < x.rank(); ++i) {
        if (i >= extra && differ((*sizes)[static_cast<size_t>(i - extra)], SymInt(1))) {
            if (differ((*sizes)[static_cast<size_t>(i - extra)], x.size(i)))
                return refuse(d, "size does not expand to " + x.type().text());
            continue;
        }
        if (i < extra || !(x.size(i) == SymInt(1))) dims.push_back(i);
    }
    const Value total = dims.empty() ? x : sum(x, dims, true);
    return extra == 0 ? total : view(total, *sizes);
}
Values covariance(Decomposition& d) {
    Value x = d.in(0);
    if (x.rank() > 2) return refuse(d, "needs up to two dims, not " + x.type().text());
    if (x.dtype() == DType::Bool) return refuse(d, "has no kernel for bool");
    if (!d.arg("fweights").isNone() || !d.arg("aweights").isNone())
        return refuse(d, "is not written with weights; weight the mean and the products yourself");
    x = x.rank() < 2 ? view(x, {SymInt(1), x.rank() == 0 ? SymInt(1) : x.size(0)}) : x;
    if (!isFloating(x.dtype()) && !isComplex(x.dtype())) x = convert(x, DType::F32);
    const SymInt count = x.size(1);
    const Value centred = x - d.call("aten.mean.dim", {x, Argument(std::vector<int64_t>{1}), true});
    const Value other = isComplex(x.dtype()) ? unary("aten.conj.default", centred) : centred;
    const auto correction = read(d, d.integer("correction"));
    if (!correction) return Value(d.builder(), nullptr);
    // Fewer observations than the correction takes away are divided by 0.
    SymInt norm = count - SymInt(*correction);
    if (norm.isInt()) norm = max(norm, SymInt(0));
    const Value products = d.call("aten.matmul.default", {centred, transposeLast(other)});
    return unary("aten.squeeze.default", d.call("aten.div.Scalar", {products, Argument(norm)}));
}
Values correlation(Decomposition& d) {
    const Value c = d.call("aten.cov.default", {d.in(0)});
    if (c.rank() == 0) return c / c;
    if (isComplex(c.dtype())) return refuse(d, "is written for real numbers only");
    const Value deviation = unary("aten.sqrt.default", d.call("aten.diagonal.default", {c}));
    return d.call("aten.clamp.default", {c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0), -1.0, 1.0});
}

// -- layouts, lists

/// Memory in the order of `physical_layout`, seen in the order of `size`.
Values emptyPermuted(Decomposition& d) {
    const auto sizes = read(d, d.sizes("size"));
    const auto layout = read(d, d.integers("physical_layout"));
    if (!sizes || !layout) return Value(d.builder(), nullptr);
    SymDims physical;
    std::vector<int64_t> back(sizes->size(), -1);
    if (layout->size() != sizes->size()) return refuse(d, "physical_layout needs each dim once");
    for (size_t i = 0; i < layout->size(); ++i) {
        const int64_t dim = (*layout)[i];
        if (dim < 0 || dim >= static_cast<int64_t>(sizes->size()) || back[static_cast<size_t>(dim)] >= 0)
            return refuse(d, "physical_layout needs each dim once");
        back[static_cast<size_t>(dim)] = static_cast<int64_t>(i);
        physical.push_back((*sizes)[static_cast<size_t>(dim)]);
    }
    return permute(d.call("aten.empty.memory_format", {Argument(physical)},
                          {{"dtype", d.arg("dtype")},
                           {"layout", d.arg("layout")},
                           {"device", d.arg("device")},
                           {"pin_memory", d.arg("pin_memory")}}),
                   back);
}
Values padSequence(Decomposition& d) {
    const std::vector<Value> sequences = d.list("sequences");
    if (sequences.empty()) return refuse(d, "there is no sequence in the list");
    const std::string side = d.text("padding_side");
    if (side != "right" && side != "left") return refuse(d, "padding_side is right or left, not '" + side + "'");
    SymInt longest = 0;
    for (const Value& each : sequences) {
        if (each.rank() == 0 || each.rank() != sequences[0].rank()) return refuse(d, "sequences differ in their dims");
        longest = max(longest, each.size(0));
    }
    std::vector<Argument> rows;
    for (const Value& sequence : sequences) {
        const Value each = convert(sequence, sequences[0].dtype());
        if (!each) break;  // the call before was refused
        const SymInt missing = longest - each.size(0);
        std::vector<Argument> pad(static_cast<size_t>(2 * each.rank()), Argument(int64_t{0}));
        pad[pad.size() - (side == "left" ? 2 : 1)] = Argument(missing);
        rows.push_back(missing == SymInt(0)
                           ? each
                           : d.call("aten.constant_pad_nd.default", {each, Argument(pad), d.arg("padding_value")}));
    }
    return d.call("aten.stack.default", {Argument(rows), int64_t{d.flag("batch_first") ? 0 : 1}});
}

// -- older linear algebra

Values zeroTolerance(Decomposition& d, std::string_view op, bool relative, std::string_view param) {
    if (d.arg(param).node()) {
        const Value given = d.in(param);
        const Value none = full(d.builder(), {}, Scalar(0.0), DType::F64, given.type().device);
        return d.call(
            std::string(op) + "_tensor", {d.in(0)},
            {{"atol", relative ? none : given}, {"rtol", relative ? given : none}, {"hermitian", d.flag("hermitian")}});
    }
    const double value = d.real(param);
    return d.call(std::string(op) + "_float", {d.in(0)},
                  {{"atol", relative ? 0.0 : value},
                   {"rtol", relative ? value : 0.0},
                   {"hermitian", d.op().schema()->find("hermitian") >= 0 && d.flag("hermitian")}});
}
Values triangularSolve(Decomposition& d) {
    const Value b = d.in(0), a = d.in(1);
    if (a.rank() < 2 || b.rank() < 2) return refuse(d, "needs matrices");
    const bool upper = d.flag("upper"), transpose = d.flag("transpose");
    const Value x = d.call("aten.linalg_solve_triangular.default", {transpose ? transposeLast(a) : a, b},
                           {{"upper", upper != transpose}, {"unitriangular", d.flag("unitriangular")}});
    const Value columns =
        d.call("aten.clone.default", {transposeLast(a)}, {{"memory_format", MemoryFormat::Contiguous}});
    return {x, transposeLast(columns)};
}
/// All pairs i < j of `count` numbers, row by row. Of a count that is known at run time only, pair number k lies in the
/// row that the root of a quadratic equation gives, which doubles solve exactly for any count that fits into memory.
std::pair<Value, Value> pairsOf(Decomposition& d, const SymInt& count, Device device) {
    if (count.isInt()) {
        const Value both = d.call("aten.triu_indices.default", {count, count, int64_t{1}},
                                  {{"dtype", DType::I64}, {"device", device}, {"pin_memory", false}});
        const Value first = d.call("aten.select.int", {both, int64_t{0}, int64_t{0}});
        return {first, d.call("aten.select.int", {both, int64_t{0}, int64_t{1}})};
    }
    const SymInt odd = count * SymInt(2) - SymInt(1);
    const auto plusNumber = [&](const Value& x, const SymInt& by) {
        return d.call("aten.add.Scalar", {x, Argument(by)});
    };
    const Value k = iota(d.builder(), floorDiv(count * (count - SymInt(1)), SymInt(2)), device);
    const Value square = convert(plusNumber(k * -8, odd * odd), DType::F64);
    const Value root = unary("aten.sqrt.default", square);
    const Value row = convert(plusNumber(-root, odd) / 2, DType::I64);
    // Before row i stand i (2 count - i - 1) / 2 pairs.
    const Value before = d.call("aten.div.Tensor_mode", {row * plusNumber(-row, odd), int64_t{2}},
                                {{"rounding_mode", std::string("floor")}});
    return {row, k - before + row + 1};
}
Values pairDistances(Decomposition& d) {
    const Value x = d.in(0);
    if (x.rank() != 2) return refuse(d, "needs a matrix of points, not " + x.type().text());
    if (!(d.real("p") >= 0)) return refuse(d, "the norm's order must not be negative");
    const auto [first, second] = pairsOf(d, x.size(0), x.type().device);
    const auto points = [&](const Value& which) { return d.call("aten.index_select.default", {x, int64_t{0}, which}); };
    const Value from = points(first);
    return d.call("aten.linalg_vector_norm.default",
                  {from - points(second), d.arg("p"), Argument(std::vector<int64_t>{1})});
}

/// What one distance's gradient gives to the first of its points; the second gets the opposite.
Values pairDistancesBackward(Decomposition& d) {
    const Value gradient = d.in("grad_output"), x = d.in("self"), distance = d.in("pdist");
    if (x.rank() != 2) return refuse(d, "needs a matrix of points, not " + x.type().text());
    const double p = d.real("p");
    const auto [from, to] = pairsOf(d, x.size(0), x.type().device);
    const auto points = [&](const Value& which) { return d.call("aten.index_select.default", {x, int64_t{0}, which}); };
    const Value start = points(from), apart = start - points(to), far = unsqueeze(distance, -1);
    const Value size = unary("aten.abs.default", apart), sign = unary("aten.sign.default", apart);
    Value slope = sign;
    if (p == 0) slope = sign * 0.0;
    else if (std::isinf(p)) slope = sign * convert(d.call("aten.eq.Tensor", {size, far}), x.dtype());
    else if (p != 1)
        slope = sign * d.call("aten.pow.Tensor_Scalar", {size, p - 1}) / d.call("aten.pow.Tensor_Scalar", {far, p - 1});
    const Value zero = full(d.builder(), {}, Scalar(0.0), x.dtype(), x.type().device);
    const Value share = where(compareScalar("eq", far, 0.0), zero, slope * unsqueeze(gradient, -1));
    const Value none = full(d.builder(), x.sizes(), Scalar(0.0), x.dtype(), x.type().device);
    const Value once = d.call("aten.index_add.default", {none, int64_t{0}, from, share});
    return d.call("aten.index_add.default", {once, int64_t{0}, to, -share});
}

// -- older convolutions

Values convolved(Decomposition& d, bool transposed) {
    const Value input = d.in(size_t{0}), weight = d.in(1);
    const auto given = [&](std::string_view param, int64_t fallback) {
        return d.op().schema()->find(param) >= 0 ? d.arg(param) : Argument(std::vector<int64_t>{fallback});
    };
    if (input.rank() < 2) return refuse(d, "needs channels, not " + input.type().text());
    if (d.op().schema()->find("kernel_size") >= 0) {
        const auto kernel = read(d, d.integers("kernel_size"));
        if (!kernel) return Value(d.builder(), nullptr);
        const SymDims& sizes = weight.sizes();
        const SymDims own(sizes.begin() + std::min<std::ptrdiff_t>(2, std::ssize(sizes)), sizes.end());
        if (differ(own, SymDims(kernel->begin(), kernel->end())))
            return refuse(d, "the weight " + weight.type().text() + " does not have the kernel_size given");
    }
    return d.call("aten.convolution.default",
                  {input, weight, d.arg("bias"), d.arg("stride"), d.arg("padding"), given("dilation", 1), transposed,
                   given("output_padding", 0), int64_t{1}});
}
Values firstNine(Decomposition& d) {
    std::vector<Argument> args;
    for (size_t i = 0; i < 9; ++i) args.push_back(d.arg(i));
    return d.call("aten.convolution.default", std::move(args));
}
/// Time, batch, channels; the weight is [kernel, in, out].
Values convolvedInTime(Decomposition& d) {
    const Value x = d.in(0), weight = d.in(1);
    if (x.rank() != 3 || weight.rank() != 3) return refuse(d, "needs three dims of input and weight");
    const Value y = d.call("aten.convolution.default",
                           {permute(x, {1, 2, 0}), permute(weight, {2, 1, 0}), d.in("bias"),
                            Argument(std::vector<int64_t>{1}), Argument(std::vector<Argument>{d.arg("pad")}),
                            Argument(std::vector<int64_t>{1}), false, Argument(std::vector<int64_t>{0}), int64_t{1}});
    return d.call("aten.clone.default", {permute(y, {2, 0, 1})}, {{"memory_format", MemoryFormat::Contiguous}});
}

constexpr std::string_view kOlderSpaced = "f64[], f64[], 5, dtype=torch.float64\nf32[], f32[], 1\nf32[], f32[], 6";

constexpr OpDef kOlderNamesOps[] = {
    CUTAWAY_NUMBER_FIRST("aten.bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                         "aten.bitwise_left_shift.Tensor", "1, i64[4]<9\n3, u8[4]<7"),
    CUTAWAY_NUMBER_FIRST("aten.bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                         "aten.bitwise_right_shift.Tensor", "64, i64[4]<9\n64, i32[4]<9"),
    CUTAWAY_NUMBER_FIRST("aten.bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                         "aten.bitwise_and.Tensor", "6, i64[2, 3]\nTrue, b8[4]"),
    CUTAWAY_NUMBER_FIRST("aten.bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", "aten.bitwise_or.Tensor",
                         "6, i64[2, 3]\nTrue, b8[4]"),
    CUTAWAY_NUMBER_FIRST("aten.bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                         "aten.bitwise_xor.Tensor", "6, i64[2, 3]\nTrue, b8[4]"),
    CUTAWAY_NUMBER_FIRST("aten.remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", "aten.remainder.Tensor",
                         "7.5, f32[2, 3]>0\n7, i64[4]>0"),
    CUTAWAY_NUMBER_FIRST("aten.xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", "aten.xlogy.Tensor",
                         "2.5, f32[3]>0\n0, f32[3]>0\n2, i64[3]>0"),
    CUTAWAY_NUMBER_FIRST("aten.special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
                         "aten.special_xlog1py.default", "2.5, f32[3]>0\n0, f32[3]>0"),
    CUTAWAY_NUMBER_FIRST("aten.special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
                         "aten.special_zeta.default", "2.5, f32[3]>0"),
    CUTAWAY_NUMBER_SECOND("aten.xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", "aten.xlogy.Tensor",
                          "f32[3], 2.5\ni64[3], 2"),
    shorthand(
        "aten.special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
        [](Decomposition& d) { return numberSecond(d, "aten.special_xlog1py.default"); }, "f32[3], 2.5",
        Tag::Pointwise),
    shorthand(
        "aten.special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
        [](Decomposition& d) { return numberSecond(d, "aten.special_zeta.default"); }, "f32[3]>0, 2.5", Tag::Pointwise),
    CUTAWAY_NUMBER_SECOND("aten.copysign.Scalar(Tensor self, Scalar other) -> Tensor", "aten.copysign.Tensor",
                          "f32[2, 3], -1.0\nf32[2, 3], 2"),
    shorthand(
        "aten.floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.div.Tensor_mode", {d.in(0), d.arg(1)}, {{"rounding_mode", std::string("floor")}});
        },
        "f32[2, 3], 0.75\ni64[4], 3", kOlderNamesTags),
    shorthand(
        "aten.rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        [](Decomposition& d) -> Values {
            return d.call("aten.sub.Tensor", {d.in(1), d.in(size_t{0})}, {{"alpha", d.arg("alpha")}});
        },
        "f32[2, 3], f32[3]\nf32[2, 3], f32[3], alpha=2.5\ni64[4], i64[4], alpha=2", Tag::Pointwise),
    shorthand(
        "aten.isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
        [](Decomposition& d) -> Values {
            if (d.in(0).dtype() == DType::Bool) return refuse(d, "has no kernel for bool");
            return d.call(d.flag("invert") ? "aten.ne.Scalar" : "aten.eq.Scalar", {d.in(0), d.arg(1)});
        },
        "i64[2, 3]<3, 1\nf32[4], 0.5, invert=True"),
    shorthand(
        "aten.isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
        [](Decomposition& d) -> Values {
            if (d.in(1).dtype() == DType::Bool) return refuse(d, "has no kernel for bool");
            const Value found = unary("aten.any.default", d.call("aten.eq.Scalar", {d.in(1), d.arg(size_t{0})}));
            return d.flag("invert") ? unary("aten.logical_not.default", found) : found;
        },
        "1, i64[2, 3]<3\n0.5, f32[4], invert=True"),
    shorthand(
        "aten.logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        spacedPowers, "f64[]<2, f64[]<2, 5, dtype=torch.float64\nf32[]<2, f32[]<2, 4, 2.0"),
    shorthand(
        "aten.logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        spacedPowers, "f64[]<2, 1.5, 5, dtype=torch.float64"),
    shorthand(
        "aten.logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        spacedPowers, "0.5, f64[]<2, 5, dtype=torch.float64"),
    shorthand(
        "aten.linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        spacedBetweenTensors, kOlderSpaced),
    shorthand(
        "aten.linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        spacedBetweenTensors, "f32[], 2.0, 5"),
    shorthand(
        "aten.linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        spacedBetweenTensors, "-1.0, f32[], 5"),

    shorthand("aten.sum_to_size.default(Tensor self, SymInt[] size) -> Tensor", sumToSize,
              "f32[2, 3], [3]\nf32[2, 3], [2, 1]\nf32[4, 2, 3], [1, 3]\nf32[2], [2]\nf32[2, 3], []\nb8[], []"),
    shorthand(
        "aten.cov.default(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
        covariance, "f32[3, 5]\nf64[4]\nf32[3, 5], correction=0\ni64[2, 4]"),
    shorthand("aten.corrcoef.default(Tensor self) -> Tensor", correlation, "f32[3, 5]\nf64[2, 7]"),
    shorthand(
        "aten.empty_permuted.default(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        emptyPermuted, "[2, 3, 4], [0, 2, 1]\n[2, 3], [1, 0], dtype=torch.float64\n[], []", Tag::Factory),
    shorthand(
        "aten._reshape_alias.default(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
        [](Decomposition& d) -> Values {
            return d.call("aten.view.default", {d.in(0), d.arg("size")});
        },
        "f32[2, 6], [3, 4], [4, 1]"),
    shorthand(
        "aten.pad_sequence.default(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> Tensor",
        padSequence,
        "[f32[2, 3], f32[4, 3]]\n[f32[2], f32[3], f32[1]], True, 0.5\n[i64[2], i64[3]], True, 1.0, 'left'"),

    shorthand(
        "aten.linalg_pinv.default(Tensor self, float rcond, bool hermitian=False) -> Tensor",
        [](Decomposition& d) { return zeroTolerance(d, "aten.linalg_pinv.atol_rtol", true, "rcond"); },
        "f32[3, 2], 1e-6"),
    shorthand(
        "aten.linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
        [](Decomposition& d) { return zeroTolerance(d, "aten.linalg_pinv.atol_rtol", true, "rcond"); },
        "f64[3, 2], f64[]<1"),
    shorthand(
        "aten.pinverse.default(Tensor self, float rcond=1e-15) -> Tensor",
        [](Decomposition& d) { return zeroTolerance(d, "aten.linalg_pinv.atol_rtol", true, "rcond"); }, "f64[3, 2]"),
    shorthand(
        "aten.linalg_matrix_rank.default(Tensor self, float tol, bool hermitian=False) -> Tensor",
        [](Decomposition& d) { return zeroTolerance(d, "aten.linalg_matrix_rank.atol_rtol", false, "tol"); },
        "f32[3, 4], 1e-5"),
    shorthand(
        "aten.linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
        [](Decomposition& d) { return zeroTolerance(d, "aten.linalg_matrix_rank.atol_rtol", false, "tol"); },
        "f64[3, 4], f64[]>0"),
    shorthand(
        "aten.qr.default(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
        [](Decomposition& d) -> Values {
            const Value all =
                d.call("aten.linalg_qr.default", {d.in(0), std::string(d.flag("some") ? "reduced" : "complete")});
            return {all[0], all[1]};
        },
        "f64[4, 3]\nf32[3, 3]\nf64[4, 3], False"),
    shorthand(
        "aten.triangular_solve.default(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
        triangularSolve, "f64[3, 2], f64[3, 3]>0\nf64[3, 2], f64[3, 3]>0, False\nf64[3, 2], f64[3, 3]>0, True, True"),
    shorthand("aten._pdist_forward.default(Tensor self, float p=2) -> Tensor", pairDistances,
              "f32[4, 3]\nf64[3, 2], 1.0"),
    shorthand("aten._pdist_backward.default(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",
              pairDistancesBackward, "f32[6], f32[4, 3], 2.0, f32[6]>0\nf64[3], f64[3, 2], 3.0, f64[3]>0"),
    shorthand("aten.pdist.default(Tensor self, float p=2) -> Tensor", pairDistances,
              "f32[4, 3]\nf64[5, 2], 1.0\nf32[1, 3]"),

    shorthand(
        "aten._convolution.default(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
        firstNine,
        "f32[1, 2, 5, 5], f32[4, 2, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True, True"),
    shorthand(
        "aten._convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor",
        firstNine,
        "f32[1, 2, 5, 5], f32[4, 2, 3, 3], f32[4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True"),
    shorthand(
        "aten.thnn_conv2d.default(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0]) -> Tensor",
        [](Decomposition& d) { return convolved(d, false); }, "f32[1, 2, 5, 5], f32[4, 2, 3, 3], [3, 3], f32[4]"),
    shorthand(
        "aten.slow_conv3d.default(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0]) -> Tensor",
        [](Decomposition& d) { return convolved(d, false); },
        "f32[1, 2, 4, 4, 4], f32[3, 2, 2, 2, 2], [2, 2, 2], f32[3]"),
    shorthand(
        "aten.slow_conv_dilated2d.default(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        [](Decomposition& d) { return convolved(d, false); },
        "f32[1, 2, 6, 6], f32[4, 2, 2, 2], [2, 2], f32[4], [1, 1], [1, 1], [2, 2]"),
    shorthand(
        "aten.slow_conv_transpose2d.default(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt[2] dilation=[1, 1]) -> Tensor",
        [](Decomposition& d) { return convolved(d, true); },
        "f32[1, 2, 4, 4], f32[2, 3, 3, 3], [3, 3], f32[3], [2, 2], [1, 1], [1, 1]"),
    shorthand("aten.conv_tbc.default(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", convolvedInTime,
              "f32[5, 2, 3], f32[3, 3, 4], f32[4], 1\nf32[5, 2, 3], f32[2, 3, 4], f32[4]"),
};

}  // namespace

std::span<const OpDef> olderNameOps() { return kOlderNamesOps; }

}  // namespace cutaway
