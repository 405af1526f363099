#include "engine/schedule/kernel.h"

#include <unordered_set>

#include "engine/support/check.h"

namespace cutaway {
namespace {
constexpr std::string_view kReduceNames[] = {"reduce_sum",    "reduce_prod",   "reduce_max", "reduce_min",
                                             "reduce_argmax", "reduce_argmin", "reduce_any", "reduce_all"};

std::string loopsText(const std::vector<Loop>& loops) {
    std::string result;
    for (const Loop& loop : loops) result += " " + loop.symbol + "<" + loop.size.text();
    return result;
}
}  // namespace

std::string_view reduceFunction(ReduceKind kind) { return kReduceNames[static_cast<size_t>(kind)]; }

std::optional<ReduceKind> reduceKindOf(const Expr& expr) {
    if (expr->kind != ExprKind::Call || !expr->name.starts_with("reduce_")) return std::nullopt;
    for (size_t i = 0; i < std::size(kReduceNames); ++i)
        if (expr->name == kReduceNames[i]) return static_cast<ReduceKind>(i);
    return std::nullopt;
}

std::vector<Loop> reduceLoops(const Expr& reduction) {
    std::vector<Loop> loops;
    for (size_t i = 1; i + 1 < reduction->operands.size(); i += 2)
        loops.push_back({reduction->operands[i]->name, SymInt(reduction->operands[i + 1])});
    return loops;
}

Expr makeReduce(ReduceKind kind, const std::vector<Loop>& loops, const Expr& body) {
    std::vector<Expr> operands = {body};
    for (const Loop& loop : loops) {
        operands.push_back(Expr::symbol(loop.symbol));
        operands.push_back(loop.size.expr());
    }
    const bool position = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
    return Expr::call(reduceFunction(kind), std::move(operands), position ? DType::I64 : body->dtype);
}

void forEachExpr(const std::vector<Expr>& roots, const std::function<void(const Expr&)>& visit) {
    std::unordered_set<const ExprNode*> seen;
    auto walk = [&](auto&& self, const Expr& expr) -> void {
        if (!seen.insert(&*expr).second) return;
        for (const Expr& operand : expr->operands) self(self, operand);
        visit(expr);
    };
    for (const Expr& root : roots) walk(walk, root);
}

Expr withOperands(const Expr& expr, std::vector<Expr> operands) {
    switch (expr->kind) {
        case ExprKind::Load: return Expr::load(expr->name, std::move(operands[0]), expr->dtype);
        case ExprKind::Call: return Expr::call(expr->name, std::move(operands), expr->dtype);
        case ExprKind::Cast: return Expr::cast(std::move(operands[0]), expr->dtype);
        default: return Expr::make(expr->kind, std::move(operands), expr->dtype);
    }
}

Expr substituteShared(const Expr& root, const std::function<Expr(const std::string&)>& replace) {
    std::unordered_map<const ExprNode*, Expr> done;
    auto walk = [&](auto&& self, const Expr& expr) -> Expr {
        if (auto found = done.find(&*expr); found != done.end()) return found->second;
        Expr result = expr;
        if (expr->kind == ExprKind::Symbol) {
            if (Expr replacement = replace(expr->name)) result = replacement;
        } else if (!expr->operands.empty()) {
            std::vector<Expr> operands;
            bool changed = false;
            for (const Expr& operand : expr->operands) {
                operands.push_back(self(self, operand));
                changed |= &*operands.back() != &*operand;
            }
            if (changed) result = withOperands(expr, std::move(operands));
        }
        done.emplace(&*expr, result);
        return result;
    };
    return walk(walk, root);
}

std::string structureKey(const Kernel& kernel) {
    // Expressions are named by their structural hashes: their text would grow with every shared use.
    Hasher hasher;
    auto addLoops = [&](const std::vector<Loop>& loops) {
        hasher.add(static_cast<uint64_t>(loops.size()));
        for (const Loop& loop : loops) hasher.add(std::string_view(loop.symbol)).add(loop.size.expr()->hash);
    };
    for (const KernelBuffer& buffer : kernel.buffers)
        hasher.add(std::string_view(buffer.name)).add(static_cast<int>(buffer.dtype)).add(buffer.written);
    for (const std::string& size : kernel.sizes) hasher.add(std::string_view(size));
    addLoops(kernel.outer);
    for (const Store& store : kernel.stores) {
        hasher.add(std::string_view(store.buffer)).add(store.index->hash).add(store.value->hash);
        addLoops(store.inner);
    }
    return hasher.finish().hex();
}

std::string text(const Kernel& kernel) {
    std::string result = kernel.name + ":";
    for (const KernelBuffer& buffer : kernel.buffers)
        result += " " + buffer.name + ":" + std::string(info(buffer.dtype).abbreviation) + (buffer.written ? "!" : "");
    result += "\n  for" + loopsText(kernel.outer) + "\n";
    for (const Store& store : kernel.stores) {
        if (!store.inner.empty()) result += "    for" + loopsText(store.inner) + "\n  ";
        result += "    " + store.buffer + "[" + text(store.index) + "] = " + text(store.value) + "\n";
    }
    return result;
}

}  // namespace cutaway
