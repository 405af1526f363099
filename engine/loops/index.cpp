#include "engine/loops/index.h"

#include <algorithm>
#include <unordered_set>

namespace cutaway {
namespace {

/// Products of two bounds fit.
__extension__ typedef __int128 Wide;

constexpr int64_t kHuge = int64_t{1} << 52;  // beyond this, bounds are not worth the risk of overflow

std::optional<Bounds> checked(Wide low, Wide high) {
    if (low < -kHuge || high > kHuge || low > high) return std::nullopt;
    return Bounds{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

std::optional<Bounds> product(const Bounds& a, const Bounds& b) {
    const Wide corners[] = {static_cast<Wide>(a.low) * b.low, static_cast<Wide>(a.low) * b.high,
                            static_cast<Wide>(a.high) * b.low, static_cast<Wide>(a.high) * b.high};
    return checked(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

/// c*n*(e // n) + c*(e % n) = c*e, wherever both stand in one sum.
Expr recombine(const Expr& sum) {
    auto split = [](const Expr& term) -> std::pair<int64_t, Expr> {
        if (term->kind == ExprKind::Mul && term->operands.size() == 2)
            if (auto constant = term->operands[0].asInt()) return {*constant, term->operands[1]};
        return {1, term};
    };
    const std::vector<Expr>& terms = sum->operands;
    for (size_t i = 0; i < terms.size(); ++i) {
        const auto [c, mod] = split(terms[i]);
        if (mod->kind != ExprKind::Mod) continue;
        const auto n = mod->operands[1].asInt();
        if (!n) continue;
        for (size_t j = 0; j < terms.size(); ++j) {
            const auto [d, div] = split(terms[j]);
            if (j == i || d != c * *n) continue;
            // The quotient may have been merged with an outer division, so it is rebuilt before it is compared.
            if (!(div == Expr::make(ExprKind::FloorDiv, {mod->operands[0], mod->operands[1]}))) continue;
            std::vector<Expr> rest = {Expr::make(ExprKind::Mul, {Expr::integer(c), mod->operands[0]})};
            for (size_t k = 0; k < terms.size(); ++k)
                if (k != i && k != j) rest.push_back(terms[k]);
            const Expr joined = Expr::make(ExprKind::Add, std::move(rest));
            return joined->kind == ExprKind::Add ? recombine(joined) : joined;
        }
    }
    return sum;
}

}  // namespace

int64_t floorDivide(int64_t a, int64_t b) {
    const int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a % b < 0) != (b < 0)));
}

void IndexSimplifier::setSize(int axis, const SymInt& size) { m_sizes.insert_or_assign(axis, size); }

std::optional<Bounds> IndexSimplifier::boundsOf(const Expr& expr) {
    if (expr->dtype != DType::I64) return std::nullopt;
    if (auto value = expr.asInt()) return checked(*value, *value);
    if (auto found = m_bounds.find(&*expr); found != m_bounds.end()) return found->second;
    std::vector<std::optional<Bounds>> in;
    if (expr->kind != ExprKind::Load && expr->kind != ExprKind::Call)
        for (const Expr& operand : expr->operands) in.push_back(boundsOf(operand));
    auto known = [&] { return std::all_of(in.begin(), in.end(), [](const auto& b) { return b.has_value(); }); };
    std::optional<Bounds> result;
    switch (expr->kind) {
        case ExprKind::Axis:
            if (auto size = m_sizes.find(static_cast<int>(expr->integer)); size != m_sizes.end())
                if (auto value = size->second.asInt()) result = checked(0, std::max<int64_t>(*value - 1, 0));
            break;
        case ExprKind::Add:
            if (known()) {
                Wide low = 0, high = 0;
                for (const auto& bounds : in) {
                    low += bounds->low;
                    high += bounds->high;
                }
                result = checked(low, high);
            }
            break;
        case ExprKind::Mul:
            if (known()) {
                result = Bounds{1, 1};
                for (const auto& bounds : in)
                    if (result) result = product(*result, *bounds);
            }
            break;
        case ExprKind::FloorDiv:
            if (known() && in[1]->low == in[1]->high && in[1]->low > 0)
                result = Bounds{floorDivide(in[0]->low, in[1]->low), floorDivide(in[0]->high, in[1]->low)};
            break;
        case ExprKind::Mod:
            if (in[1] && in[1]->low == in[1]->high && in[1]->low > 0) result = Bounds{0, in[1]->low - 1};
            break;
        case ExprKind::Min:
            if (known()) result = Bounds{std::min(in[0]->low, in[1]->low), std::min(in[0]->high, in[1]->high)};
            break;
        case ExprKind::Max:
            if (known()) result = Bounds{std::max(in[0]->low, in[1]->low), std::max(in[0]->high, in[1]->high)};
            break;
        case ExprKind::Where:
            if (in[1] && in[2]) result = Bounds{std::min(in[1]->low, in[2]->low), std::max(in[1]->high, in[2]->high)};
            break;
        case ExprKind::Call:
            if (expr->name == "checked_index")
                if (auto size = expr->operands[1].asInt()) result = checked(0, std::max<int64_t>(*size - 1, 0));
            break;
        default: break;
    }
    m_bounds.emplace(&*expr, result);
    m_keep.push_back(expr);
    return result;
}

Expr IndexSimplifier::simplify(const Expr& expr) {
    if (expr->operands.empty() || expr->kind == ExprKind::Load) return expr;
    if (expr->dtype != DType::I64 && expr->dtype != DType::Bool) return expr;
    if (auto found = m_done.find(&*expr); found != m_done.end()) return found->second;
    std::vector<Expr> operands;
    bool changed = false;
    for (const Expr& operand : expr->operands) {
        operands.push_back(simplify(operand));
        changed |= &*operands.back() != &*operand;
    }
    const Expr rebuilt = changed ? withOperands(expr, std::move(operands)) : expr;
    const Expr result = simplifyNode(rebuilt);
    m_done.emplace(&*expr, result);
    m_keep.push_back(expr);
    return result;
}

Expr IndexSimplifier::simplifyNode(const Expr& expr) {
    const auto& in = expr->operands;
    switch (expr->kind) {
        case ExprKind::Add: return expr->dtype == DType::I64 ? recombine(expr) : expr;
        case ExprKind::FloorDiv:
        case ExprKind::Mod: {
            const auto divisor = in[1].asInt();
            if (!divisor || *divisor <= 0) return expr;
            const auto bounds = boundsOf(in[0]);
            const bool quotient = expr->kind == ExprKind::FloorDiv;
            if (bounds && bounds->low >= 0 && bounds->high < *divisor) return quotient ? Expr::integer(0) : in[0];
            if (in[0]->kind != ExprKind::Add) return expr;
            // (g*a + b) // (g*k) = a // k when 0 <= b < g: digits below the divisor's unit do not carry.
            for (const Expr& term : in[0]->operands) {
                if (term->kind != ExprKind::Mul) continue;
                const auto g = term->operands[0].asInt();
                if (!g || *g <= 1 || *divisor % *g != 0) continue;
                std::vector<Expr> high, low = {Expr::integer(0)};
                for (const Expr& other : in[0]->operands) {
                    const auto c = other->kind == ExprKind::Mul ? other->operands[0].asInt() : other.asInt();
                    (c && *c % *g == 0 ? high : low).push_back(other);
                }
                const Expr lowSum = Expr::make(ExprKind::Add, low), highSum = Expr::make(ExprKind::Add, high);
                const auto lowBounds = boundsOf(lowSum);
                if (!lowBounds || lowBounds->low < 0 || lowBounds->high >= *g || lowSum.asInt() == 0) continue;
                const Expr reduced = Expr::make(ExprKind::FloorDiv, {highSum, Expr::integer(*g)});
                const Expr k = Expr::integer(*divisor / *g);
                if (quotient) return simplify(Expr::make(ExprKind::FloorDiv, {reduced, k}));
                return simplify(Expr::make(
                    ExprKind::Add,
                    {lowSum, Expr::make(ExprKind::Mul,
                                        {Expr::integer(*g), simplify(Expr::make(ExprKind::Mod, {reduced, k}))})}));
            }
            return expr;
        }
        case ExprKind::Lt:
        case ExprKind::Le:
        case ExprKind::Gt:
        case ExprKind::Ge:
        case ExprKind::Eq:
        case ExprKind::Ne: {
            const auto a = boundsOf(in[0]), b = boundsOf(in[1]);
            if (!a || !b) return expr;
            const bool less = a->high<b->low, lessEqual = a->high <= b->low, greater = a->low> b->high,
                       greaterEqual = a->low >= b->high;
            switch (expr->kind) {
                case ExprKind::Lt: return less ? Expr::boolean(true) : greaterEqual ? Expr::boolean(false) : expr;
                case ExprKind::Le: return lessEqual ? Expr::boolean(true) : greater ? Expr::boolean(false) : expr;
                case ExprKind::Gt: return greater ? Expr::boolean(true) : lessEqual ? Expr::boolean(false) : expr;
                case ExprKind::Ge: return greaterEqual ? Expr::boolean(true) : less ? Expr::boolean(false) : expr;
                case ExprKind::Eq: return less || greater ? Expr::boolean(false) : expr;
                default: return less || greater ? Expr::boolean(true) : expr;
            }
        }
        case ExprKind::Min:
        case ExprKind::Max: {
            const auto a = boundsOf(in[0]), b = boundsOf(in[1]);
            if (!a || !b) return expr;
            if (a->high <= b->low) return expr->kind == ExprKind::Min ? in[0] : in[1];
            if (b->high <= a->low) return expr->kind == ExprKind::Min ? in[1] : in[0];
            return expr;
        }
        case ExprKind::Call:
            if (expr->name == "checked_index") {
                const auto bounds = boundsOf(in[0]);
                const auto size = in[1].asInt();
                if (bounds && size && bounds->low >= 0 && bounds->high < *size) return in[0];
            }
            return expr;
        default: return expr;
    }
}

bool reads(const Expr& expr, int axis) {
    std::unordered_set<const ExprNode*> seen;  // of what has operands with operands
    const auto walk = [&](const auto& self, const Expr& e) -> bool {
        if (e->kind == ExprKind::Axis) return e->integer == axis;
        const auto isInner = [](const Expr& operand) { return !operand->operands.empty(); };
        if (std::any_of(e->operands.begin(), e->operands.end(), isInner) && !seen.insert(&*e).second) return false;
        return std::any_of(e->operands.begin(), e->operands.end(), [&](const Expr& part) { return self(self, part); });
    };
    return walk(walk, expr);
}

std::optional<Affine> affineIn(const Expr& expr, int axis) {
    if (expr->kind == ExprKind::Axis && expr->integer == axis) return Affine{Expr::integer(1), Expr::integer(0)};
    if (!reads(expr, axis)) return Affine{Expr::integer(0), expr};
    if (expr->kind == ExprKind::Add) {
        std::vector<Expr> coefficients = {Expr::integer(0)}, rests = {Expr::integer(0)};
        for (const Expr& term : expr->operands) {
            const auto part = affineIn(term, axis);
            if (!part) return std::nullopt;
            coefficients.push_back(part->coefficient);
            rests.push_back(part->rest);
        }
        return Affine{Expr::make(ExprKind::Add, std::move(coefficients)), Expr::make(ExprKind::Add, std::move(rests))};
    }
    if (expr->kind == ExprKind::Mul) {
        std::optional<Affine> inner;
        std::vector<Expr> factors = {Expr::integer(1)};
        for (const Expr& factor : expr->operands) {
            if (!reads(factor, axis)) factors.push_back(factor);
            else if (inner) return std::nullopt;
            else if (!(inner = affineIn(factor, axis))) return std::nullopt;
        }
        const Expr scale = Expr::make(ExprKind::Mul, std::move(factors));
        return Affine{Expr::make(ExprKind::Mul, {scale, inner->coefficient}),
                      Expr::make(ExprKind::Mul, {scale, inner->rest})};
    }
    return std::nullopt;
}

bool indexNeverNegative(const Expr& e) {
    switch (e->kind) {
        case ExprKind::Axis:
        case ExprKind::Symbol: return true;
        case ExprKind::Int: return e->integer >= 0;
        case ExprKind::Add:
        case ExprKind::Mul:
        case ExprKind::FloorDiv:
        case ExprKind::Mod: return std::all_of(e->operands.begin(), e->operands.end(), indexNeverNegative);
        case ExprKind::Call: return e->name == "ramp" || e->name == "quotient" || e->name == "remainder";
        default: return false;
    }
}

}  // namespace cutaway
