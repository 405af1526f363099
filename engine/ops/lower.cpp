#include "engine/ops/lower.h"

#include <algorithm>
#include <limits>

#include "engine/expr/expr_parse.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

template <class T>
T accepted(Result<T> result) {
    CT_CHECK(result.has_value(), "the op's shape rule has accepted these arguments");
    return std::move(*result);
}

// Those of lower.h, and round_f16 and round_bf16: an f32 that is rounded to fewer bits.
constexpr std::string_view kFunctions[] = {
    "exp",   "exp2",  "expm1", "log",   "log2",     "log10",     "log1p",     "sqrt",       "rsqrt",
    "sin",   "cos",   "tan",   "asin",  "acos",     "atan",      "sinh",      "cosh",       "tanh",
    "asinh", "acosh", "atanh", "erf",   "erfc",     "erfinv",    "lgamma",    "digamma",    "sigmoid",
    "floor", "ceil",  "trunc", "round", "abs",      "isnan",     "isinf",     "isfinite",   "signbit",
    "pow",   "atan2", "fmod",  "hypot", "copysign", "nextafter", "round_f16", "round_bf16",
};

/// Aligned with the last dims of the result; size-1 dims repeat.
std::vector<Expr> broadcastIndex(const std::vector<Expr>& index, const SymDims& sizes) {
    std::vector<Expr> at;
    const size_t skip = index.size() - sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d) at.push_back(sizes[d].asInt() == 1 ? Expr::integer(0) : index[skip + d]);
    return at;
}

bool hasFloats(const Expr& expr) {
    return expr->dtype == DType::F64 || std::any_of(expr->operands.begin(), expr->operands.end(), hasFloats);
}
}  // namespace

Expr kernelNumber(const Expr& expr) {
    if (!hasFloats(expr)) return expr;
    std::vector<Expr> in;
    for (const Expr& operand : expr->operands) in.push_back(kernelNumber(operand));
    if (in.empty()) return expr;
    const auto real = [](const Expr& e) { return Expr::cast(e, DType::F64); };
    const bool mixed = expr->kind != ExprKind::Where &&
                       std::any_of(in.begin(), in.end(), [](const Expr& e) { return e->dtype == DType::F64; });
    if (mixed)
        for (Expr& each : in) each = real(each);
    if (expr->kind == ExprKind::Cast) return Expr::cast(in[0], expr->dtype);
    if (expr->kind != ExprKind::Call) return Expr::make(expr->kind, std::move(in), expr->dtype);
    const std::string& name = expr->name;
    if (name == "FloatTrueDiv" || name == "IntTrueDiv")
        return Expr::make(ExprKind::Div, {real(in[0]), real(in[1])}, DType::F64);
    static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"TruncToInt", "trunc"}, {"FloorToInt", "floor"},   {"CeilToInt", "ceil"}, {"RoundToInt", "round"},
        {"ceiling", "ceil"},     {"TruncToFloat", "trunc"}, {"FloatPow", "pow"}};
    std::string_view ours = plainFunctionName(name);
    for (const auto& [theirs, own] : kNames)
        if (theirs == name) ours = own;
    if (!isKernelFunction(ours)) throw SizeError("the number " + text(expr) + " has no form in a kernel");
    for (Expr& each : in) each = real(each);
    return Expr::cast(Expr::call(ours, std::move(in), DType::F64), expr->dtype);
}
namespace {

/// A number that depends on sizes or on data; null for anything else.
Expr numberOf(const Argument& value) {
    const SymType* type = value.node() ? value.node()->type().sym() : nullptr;
    const Expr number = value.get<Expr>() ? *value.get<Expr>() : type ? type->expr : Expr();
    return number ? kernelNumber(number) : number;
}
}  // namespace

bool isKernelFunction(std::string_view name) {
    return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

Expr LowerContext::load(size_t operand) {
    const Argument& value = arg(operand);
    const DType dtype = computeType();
    if (const auto* flag = value.get<bool>()) return constantOf(*flag, dtype);
    if (const auto* integer = value.get<int64_t>()) return constantOf(*integer, dtype);
    if (const auto* real = value.get<double>()) return constantOf(*real, dtype);
    return Expr::cast(loadOwn(operand), dtype);
}

Expr LowerContext::loadRounded(size_t operand) {
    const DType common = commonType();
    const Argument& value = arg(operand);
    const Expr loaded = load(operand);
    if (!isHalf(common) || (value.node() && value.node()->type().tensor() && in(operand).dtype == common))
        return loaded;
    return call1(common == DType::F16 ? "round_f16" : "round_bf16", loaded);
}

Expr LowerContext::loadOwn(size_t operand) {
    const Argument& value = arg(operand);
    if (value.node() && value.node()->type().tensor()) {
        const TensorType type = in(operand);
        CT_CHECK(type.sizes.size() <= index().size(), "an elementwise operand has no more dims than the result");
        return loadAt(operand, broadcastIndex(index(), type.sizes));
    }
    if (const auto* flag = value.get<bool>()) return Expr::boolean(*flag);
    if (const auto* real = value.get<double>())
        return Expr::real(*real, computeType() == DType::F64 ? DType::F64 : DType::F32);
    if (const auto* integer = value.get<int64_t>()) return Expr::integer(*integer);
    const Expr number = numberOf(value);
    CT_CHECK(number, "the shape rule has checked that this argument is a tensor or a number");
    return number->dtype == DType::F64 && computeType() != DType::F64 ? Expr::cast(number, DType::F32) : number;
}

Expr LowerContext::checkedIndex(const Expr& index, const SymInt& size) {
    return Expr::call("checked_index", {Expr::cast(index, DType::I64), size.expr()}, DType::I64);
}
Expr LowerContext::wrappedIndex(const Expr& index, const SymInt& size) {
    const Expr at = Expr::cast(index, DType::I64), zero = Expr::integer(0);
    return checkedIndex(Expr::where(compare(ExprKind::Lt, at, zero), at + size.expr(), at), size);
}

Expr LowerContext::numberAt(std::string_view param, DType dtype) {
    const Argument& value = arg(param);
    if (auto literal = scalar(param)) return constantOf(*literal, dtype);
    if (value.node() && value.node()->type().tensor()) {
        const SymInt elements = numel(in(param).sizes);
        if (elements.isInt() && elements.value() != 1)
            throw SizeError("'" + std::string(param) + "' of " + m_op->name() + " is not one number, but has " +
                            elements.text() + " elements");
        return Expr::cast(
            loadAt(static_cast<size_t>(position(param)), std::vector<Expr>(in(param).sizes.size(), Expr::integer(0))),
            dtype);
    }
    const Expr number = numberOf(value);
    CT_CHECK(number, "the shape rule has checked that this argument is a number");
    return Expr::cast(number, dtype);
}

DType LowerContext::commonType() const {
    const DType result = out(resultNumber()).dtype;
    if (result != DType::Bool) return result;
    std::vector<Operand> operands;
    for (size_t i = 0; i < count(); ++i) {
        const ParamKind kind = op().schema()->params[i].kind;
        if (op().schema()->params[i].list || (kind != ParamKind::Tensor && kind != ParamKind::Number)) continue;
        if (arg(i).node() || arg(i).isNumber()) operands.push_back(accepted(operand(i)));
    }
    return operands.empty() ? DType::Bool : resultType(operands);
}

TensorType LowerContext::in(size_t operand) const { return accepted(tensor(operand)); }
std::vector<TensorType> LowerContext::inList(std::string_view param) const { return accepted(tensors(param)); }
int64_t LowerContext::integerOr(std::string_view param, int64_t fallback) const {
    return accepted(integer(param, fallback));
}
std::vector<int64_t> LowerContext::integersOf(std::string_view param) const { return accepted(integers(param)); }
int64_t LowerContext::dimOf(std::string_view param, int64_t rank) const { return accepted(dim(param, rank)); }
std::vector<int64_t> LowerContext::dimsOf(std::string_view param, int64_t rank, bool emptyIsAll) const {
    return accepted(dims(param, rank, emptyIsAll));
}
SymDims LowerContext::sizesOf(std::string_view param) const { return accepted(sizes(param)); }

Expr constantOf(const Scalar& value, DType dtype) {
    if (dtype == DType::Bool) return Expr::boolean(toDouble(value) != 0);
    if (isFloating(dtype)) return Expr::real(toDouble(value), dtype);
    return Expr::integer(toInt(value), dtype);
}

Expr constantLike(const Expr& like, double value) { return constantOf(Scalar(value), like->dtype); }

Expr reduceMean(LowerContext& c, const SymDims& sizes, const LowerContext::Body& body) {
    const Expr sum = c.reduce(ReduceKind::Sum, sizes, body);
    return sum / Expr::cast(numel(sizes).expr(), sum->dtype);
}

Expr reduceSquaredDeviations(LowerContext& c, const SymDims& sizes, const LowerContext::Body& body) {
    // Two passes rather than a running update: exact to rounding, and a row stays in the cache between them.
    const Expr mean = reduceMean(c, sizes, body);
    return c.reduce(ReduceKind::Sum, sizes, [&](const std::vector<Expr>& r) {
        const Expr deviation = body(r) - mean;
        return deviation * deviation;
    });
}

std::vector<Expr> reindex(const std::vector<Expr>& index, const SymDims& from, const SymDims& to) {
    CT_CHECK(index.size() == from.size(), "one index per dim");
    std::vector<Expr> result(to.size(), Expr::integer(0));
    // From the last dims backwards: the shortest runs of dims with equal products are taken apart on their own, so
    // that dims which do not change stay plain indices.
    size_t f = from.size(), t = to.size();
    while (t > 0) {
        if (to[t - 1].asInt() == 1) {
            --t;
            continue;
        }
        size_t fBegin = f, tBegin = t;
        SymInt fSize = 1, tSize = 1;
        while (tBegin > 0 || fBegin > 0) {
            const auto a = fSize.asInt(), b = tSize.asInt();
            const bool started = tBegin < t;
            if (started && fSize == tSize) break;
            const bool growTo = !started || (a && b ? *b < *a : fBegin == 0);
            if (growTo && tBegin > 0) tSize = tSize * to[--tBegin];
            else if (fBegin > 0) fSize = fSize * from[--fBegin];
            else tSize = tSize * to[--tBegin];
        }
        Expr position = Expr::integer(0);
        for (size_t d = fBegin; d < f; ++d)
            if (from[d].asInt() != 1)
                position = Expr::make(ExprKind::Add, {Expr::make(ExprKind::Mul, {position, from[d].expr()}), index[d]});
        for (size_t d = t; d-- > tBegin;) {
            // The first dim that is not 1 takes what is left.
            bool first = true;
            for (size_t k = tBegin; k < d; ++k) first &= to[k].asInt() == 1;
            if (to[d].asInt() == 1) continue;
            result[d] = first ? position : Expr::make(ExprKind::Mod, {position, to[d].expr()});
            position = Expr::make(ExprKind::FloorDiv, {position, to[d].expr()});
        }
        f = fBegin;
        t = tBegin;
    }
    return result;
}

}  // namespace cutaway
