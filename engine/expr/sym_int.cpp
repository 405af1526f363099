#include "engine/expr/polynomial.h"
#include "engine/support/checked.h"

namespace cutaway {

SymInt::SymInt(Expr expr) {
    if (expr && expr->outOfRange) throw SizeError(cutaway::text(expr) + " is not a number of 64 bits");
    if (auto value = expr.asInt()) m_value = *value;
    else m_expr = std::move(expr);
}
int64_t SymInt::value() const {
    CT_CHECK(!m_expr, "the caller has made sure that this size is a number");
    return m_value;
}
std::string SymInt::text() const { return m_expr ? cutaway::text(m_expr) : std::to_string(m_value); }
bool SymInt::operator==(const SymInt& other) const {
    if (!m_expr && !other.m_expr) return m_value == other.m_value;
    // An expression that always equals a number has become that number, so the two kinds never compare equal.
    return m_expr && other.m_expr && sameValue(m_expr, other.m_expr);
}

namespace {
SymInt combine(ExprKind kind, const SymInt& a, const SymInt& b) {
    return SymInt(Expr::make(kind, {a.expr(), b.expr()}));
}
}  // namespace

SymInt operator+(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return checkedAdd(a.value(), b.value());
    return combine(ExprKind::Add, a, b);
}
SymInt operator-(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return checkedSub(a.value(), b.value());
    return combine(ExprKind::Sub, a, b);
}
SymInt operator*(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return checkedMul(a.value(), b.value());
    return combine(ExprKind::Mul, a, b);
}
SymInt floorDiv(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt() && a.value() >= 0 && b.value() > 0) return a.value() / b.value();
    return combine(ExprKind::FloorDiv, a, b);
}
SymInt mod(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt() && a.value() >= 0 && b.value() > 0) return a.value() % b.value();
    return combine(ExprKind::Mod, a, b);
}
SymInt min(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return std::min(a.value(), b.value());
    return combine(ExprKind::Min, a, b);
}
SymInt max(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return std::max(a.value(), b.value());
    return combine(ExprKind::Max, a, b);
}

bool knownLessEqual(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return a.value() <= b.value();
    return neverNegative(Expr::make(ExprKind::Sub, {b.expr(), a.expr()}));
}

bool allInts(const SymDims& dims) {
    return std::all_of(dims.begin(), dims.end(), [](const SymInt& dim) { return dim.isInt(); });
}
std::vector<int64_t> toInts(const SymDims& dims) {
    std::vector<int64_t> out;
    out.reserve(dims.size());
    for (const SymInt& dim : dims) out.push_back(dim.value());
    return out;
}
SymDims toSymDims(const std::vector<int64_t>& dims) { return SymDims(dims.begin(), dims.end()); }
SymInt numel(const SymDims& sizes) {
    SymInt product = 1;
    for (const SymInt& size : sizes) product = product * size;
    return product;
}
SymDims contiguousStrides(const SymDims& sizes) {
    SymDims strides(sizes.size());
    SymInt step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = step;
        if (i == 0) break;  // the product of all is not a dim's stride, and need not fit
        // A size-0 dim counts as 1; a symbolic size is taken to be at least 1, as PyTorch does.
        if (!(sizes[i].isInt() && sizes[i].value() == 0)) step = step * sizes[i];
    }
    return strides;
}

}  // namespace cutaway
