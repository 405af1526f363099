#include "engine/ir/size_guards.h"

#include <algorithm>
#include <optional>

#include "engine/expr/expr_parse.h"
#include "engine/expr/polynomial.h"
#include "engine/ir/infer.h"

namespace cutaway {
namespace {

/// Where guards go while sizeGuards() infers a graph's types; null at all other times, when passes ask the same rules.
thread_local std::vector<Expr>* t_open = nullptr;

void open(ExprKind kind, const SymInt& a, const SymInt& b) {
    t_open->push_back(Expr::make(kind, {a.expr(), b.expr()}, DType::Bool));
}

/// Whether a size has a Min or Max, as clamped slices do: it may be 1 at run time and broadcast, so it gives no guard.
bool isClamped(const Expr& expr) {
    return expr->kind == ExprKind::Min || expr->kind == ExprKind::Max ||
           std::any_of(expr->operands.begin(), expr->operands.end(), isClamped);
}

/// scale * symbol + offset
struct Linear {
    std::string symbol;
    int64_t scale = 1, offset = 0;
};
std::optional<Linear> linearOf(const Expr& difference) {
    const auto polynomial = polynomialOf(difference);
    if (!polynomial) return std::nullopt;
    Linear linear;
    for (const auto& [monomial, coefficient] : *polynomial) {
        if (monomial.empty()) {
            linear.offset = coefficient;
            continue;
        }
        if (monomial.size() != 1 || monomial[0]->kind != ExprKind::Symbol || !linear.symbol.empty())
            return std::nullopt;
        linear.symbol = monomial[0]->name;
        linear.scale = coefficient;
    }
    return linear.symbol.empty() ? std::nullopt : std::optional(linear);
}

/// Removes a quotient without changing the test for the sign: e//c + o >= 0 exactly where e + c*o >= 0.
SymInt withoutQuotient(const SymInt& room) {
    const auto polynomial = polynomialOf(room.expr());
    if (!polynomial || polynomial->empty() || polynomial->size() > 2) return room;
    const auto& [monomial, coefficient] = *polynomial->begin();
    if (coefficient != 1 || monomial.size() != 1 || monomial[0]->kind != ExprKind::FloorDiv) return room;
    const SymInt dividend(monomial[0]->operands[0]), divisor(monomial[0]->operands[1]);
    if (!divisor.isInt() || divisor.value() < 1) return room;
    return withoutQuotient(dividend + divisor * (room - SymInt(monomial[0])));
}

struct Range {
    std::optional<int64_t> least, most;
};

/// Gathers conditions, those on one symbol as its range.
class Guards {
  public:
    explicit Guards(const Module& module) {
        for (const auto& [symbol, info] : module.symbols) m_ranges[symbol] = {leastValue(symbol, info), info.upper};
    }
    void add(const Expr& condition, const Node& node) {
        const SymInt a(condition->operands[0]), b(condition->operands[1]);
        if (condition->kind == ExprKind::Le) {
            const SymInt room = withoutQuotient(b - a);
            if (const auto linear = linearOf(room.expr())) return bound(*linear, node);
            // Several symbols: dropped if always true, or true for sizes above 0 where the ranges exclude 0.
            if (neverNegative(fromZeroOn(room.expr()))) return;
            if (knownLessEqual(a, b) && noneIsZero(room.expr())) return;
        }
        keep(condition, node);
    }
    std::vector<SizeGuard> take() && { return std::move(m_all); }

  private:
    void keep(const Expr& condition, const Node& node) {
        for (const SizeGuard& guard : m_all)
            if (guard.condition == condition) return;
        m_all.push_back({condition, node.name(), node.op().name()});
    }
    /// Renames symbols, so that neverNegative() does not take them for backed sizes, which it assumes to be at least 1.
    /// What may be below zero becomes a difference.
    Expr fromZeroOn(const Expr& expr) const {
        return substitute(expr, [this](const std::string& symbol) {
            const Expr any = Expr::symbol("any_" + symbol);
            const auto range = m_ranges.find(symbol);
            const bool signless =
                isUnbacked(symbol) && (range == m_ranges.end() || range->second.least.value_or(-1) < 0);
            return signless ? Expr::make(ExprKind::Sub, {any, Expr::symbol("below_" + symbol)}) : any;
        });
    }
    bool noneIsZero(const Expr& expr) const {
        const auto symbols = symbolsOf(expr);
        return std::all_of(symbols.begin(), symbols.end(), [this](const std::string& symbol) {
            const auto range = m_ranges.find(symbol);
            return range != m_ranges.end() && range->second.least && *range->second.least > 0;
        });
    }
    /// scale * symbol + offset is not negative.
    void bound(const Linear& linear, const Node& node) {
        Range& range = m_ranges[linear.symbol];
        const bool below = linear.scale > 0;
        const int64_t edge =
            (below ? SymInt(0) - floorDiv(linear.offset, linear.scale) : floorDiv(linear.offset, -linear.scale))
                .value();
        if (below ? range.least && *range.least >= edge : range.most && *range.most <= edge) return;
        if (below && !range.least && edge <= 0 && !isUnbacked(linear.symbol)) return;
        (below ? range.least : range.most) = edge;
        const Expr symbol = Expr::symbol(linear.symbol);
        const auto kind = below ? ExprKind::Ge : ExprKind::Le;
        std::erase_if(m_all, [&](const SizeGuard& guard) {
            return guard.condition->kind == kind && guard.condition->operands[0] == symbol &&
                   guard.condition->operands[1].asInt();
        });
        m_all.push_back({Expr::make(kind, {symbol, Expr::integer(edge)}, DType::Bool), node.name(), node.op().name()});
    }

    std::map<std::string, Range> m_ranges;
    std::vector<SizeGuard> m_all;
};

}  // namespace

bool differ(const SymInt& a, const SymInt& b) {
    if (a.isInt() && b.isInt()) return a.value() != b.value();
    if (t_open != nullptr && !(a == b) && !isClamped(a.expr()) && !isClamped(b.expr()))
        a.isInt() ? open(ExprKind::Eq, b, a) : open(ExprKind::Eq, a, b);
    return false;
}
bool differ(const SymDims& a, const SymDims& b) {
    if (a.size() != b.size()) return true;
    bool known = false;
    for (size_t i = 0; i < a.size() && !known; ++i) known = differ(a[i], b[i]);
    return known;
}
bool exceeds(const SymInt& size, const SymInt& limit) {
    if (size.isInt() && limit.isInt()) return size.value() > limit.value();
    if (t_open != nullptr) open(ExprKind::Le, size, limit);
    return false;
}
bool leavesRemainder(const SymInt& size, const SymInt& by) {
    if (size.isInt() && by.isInt()) return size.value() % by.value() != 0;
    if (t_open == nullptr || floorDiv(size, by) * by == size) return false;
    const auto [dividend, divisor] = reduced(size.expr(), by.expr());
    open(ExprKind::Eq, mod(SymInt(dividend), SymInt(divisor)), 0);
    return false;
}

std::optional<int64_t> leastValue(const std::string& symbol, const SymbolInfo& info) {
    if (symbolDType(symbol) == DType::F64) return std::nullopt;
    if (!isUnbacked(symbol)) return info.least();
    return info.lower && *info.lower >= 0 ? std::optional(info.least()) : info.lower;
}

std::string SizeGuard::text() const { return cutaway::text(condition) + " (" + node + ": " + op + ")"; }

namespace {
void addGuards(Guards& guards, const Node& call) {
    struct Restore {
        std::vector<Expr>* before = t_open;
        ~Restore() { t_open = before; }
    } restore;
    std::vector<Expr> found;
    t_open = &found;
    (void)inferCall(call.op(), call.args());  // a call that is refused was written by hand, and fails where it runs
    for (const Expr& condition : found) guards.add(condition, call);
}
}  // namespace

std::vector<SizeGuard> sizeGuards(const Module& module) {
    Guards guards(module);
    for (const Node& node : module.graph().nodes())
        if (node.isCall()) addGuards(guards, node);
    return std::move(guards).take();
}
std::vector<SizeGuard> sizeGuards(const Module& module, const Node& call) {
    Guards guards(module);
    if (call.isCall()) addGuards(guards, call);
    return std::move(guards).take();
}

}  // namespace cutaway
