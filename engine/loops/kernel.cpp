#include "engine/loops/kernel.h"

#include <array>
#include <unordered_map>
#include <unordered_set>

#include "engine/support/check.h"

namespace cutaway {

std::string bufferName(int buffer) { return buffer < 0 ? "c" + std::to_string(~buffer) : "b" + std::to_string(buffer); }

int bufferOf(const Expr& load) {
    const char letter = load->name.empty() ? ' ' : load->name[0];
    CT_CHECK(load->kind == ExprKind::Load && (letter == 'b' || letter == 'c'), "loads name their buffers by number");
    const int number = std::atoi(load->name.c_str() + 1);
    return letter == 'c' ? ~number : number;
}

std::vector<Loop> reduceLoops(const Expr& reduction) {
    std::vector<Loop> loops;
    for (size_t i = 1; i + 1 < reduction->operands.size(); i += 2)
        loops.push_back({static_cast<int>(reduction->operands[i]->integer), SymInt(reduction->operands[i + 1])});
    return loops;
}

Expr makeReduce(int reducerNumber, const std::vector<Loop>& loops, const Expr& body) {
    std::vector<Expr> operands = {body};
    for (const Loop& loop : loops) {
        operands.push_back(Expr::axis(loop.axis));
        operands.push_back(loop.size.expr());
    }
    return Expr::reduce(reducerNumber, std::move(operands), reducer(reducerNumber).resultType(body->dtype));
}

std::vector<Expr> reductionsOf(const Kernel& kernel) {
    std::vector<Expr> roots, found;
    for (const KernelStore& store : kernel.stores) roots.insert(roots.end(), {store.index, store.value});
    forEachExpr(roots, [&](const Expr& e) {
        if (isReduce(e) && std::find(found.begin(), found.end(), e) == found.end()) found.push_back(e);
    });
    return found;
}

void forEachExpr(const std::vector<Expr>& roots, const std::function<void(const Expr&)>& visit) {
    // Most expressions are small, and are walked often: the first nodes are looked for one by one.
    std::array<const ExprNode*, 32> first;
    size_t firstCount = 0;
    std::unordered_set<const ExprNode*> more;
    auto isNew = [&](const ExprNode* node) {
        const auto end = first.begin() + static_cast<std::ptrdiff_t>(firstCount);
        if (std::find(first.begin(), end, node) != end) return false;
        if (firstCount == first.size()) return more.insert(node).second;
        first[firstCount++] = node;
        return true;
    };
    auto walk = [&](auto&& self, const Expr& expr) -> void {
        if (!isNew(&*expr)) return;
        for (const Expr& operand : expr->operands) self(self, operand);
        visit(expr);
    };
    for (const Expr& root : roots) walk(walk, root);
}

Expr withOperands(const Expr& expr, std::vector<Expr> operands) {
    switch (expr->kind) {
        case ExprKind::Load:
            if (operands.size() == 2)
                return Expr::loadAlong(expr->name, std::move(operands[0]), std::move(operands[1]), expr->dtype);
            return Expr::load(expr->name, std::move(operands[0]), expr->dtype);
        case ExprKind::Call: return Expr::call(expr->name, std::move(operands), expr->dtype);
        case ExprKind::Cast: return Expr::cast(std::move(operands[0]), expr->dtype);
        case ExprKind::Reduce: return Expr::reduce(static_cast<int>(expr->integer), std::move(operands), expr->dtype);
        default: return Expr::make(expr->kind, std::move(operands), expr->dtype);
    }
}

Expr rewriteShared(const Expr& root, const std::function<Expr(const Expr&)>& replace) {
    std::unordered_map<const ExprNode*, Expr> done;
    auto walk = [&](auto&& self, const Expr& expr) -> Expr {
        if (auto found = done.find(&*expr); found != done.end()) return found->second;
        Expr result = replace(expr);
        if (!result) {
            std::vector<Expr> operands;
            bool changed = false;
            for (const Expr& operand : expr->operands) {
                operands.push_back(self(self, operand));
                changed |= &*operands.back() != &*operand;
            }
            result = changed ? withOperands(expr, std::move(operands)) : expr;
        }
        done.emplace(&*expr, result);
        return result;
    };
    return walk(walk, root);
}

Expr replaceAxes(const Expr& root, const std::function<Expr(int)>& replace) {
    return rewriteShared(root, [&](const Expr& expr) {
        return expr->kind == ExprKind::Axis ? replace(static_cast<int>(expr->integer)) : Expr();
    });
}

bool isCheapCall(const Expr& expr) {
    const std::string& name = expr->name;
    return expr->kind == ExprKind::Call &&
           (name == "abs" || name == "floor" || name == "checked_index" || name.starts_with("round_"));
}

bool costsMuch(const Expr& value) {
    bool dear = false;
    forEachExpr({value}, [&](const Expr& e) {
        dear |= e->kind == ExprKind::Pow || (e->kind == ExprKind::Call && !isCheapCall(e));
    });
    return dear;
}

bool adds(const Kernel& kernel) {
    return std::any_of(kernel.stores.begin(), kernel.stores.end(), [](const KernelStore& store) { return store.adds; });
}

std::string structureKey(const Kernel& kernel) {
    // Expressions are named by their structural hashes: their text would grow with every shared use.
    Hasher hasher;
    auto addLoops = [&](const std::vector<Loop>& loops) {
        hasher.add(static_cast<uint64_t>(loops.size()));
        for (const Loop& loop : loops) hasher.add(loop.axis).add(loop.size.expr()->hash);
    };
    for (const KernelBuffer& buffer : kernel.buffers) hasher.add(static_cast<int>(buffer.dtype)).add(buffer.written);
    for (const std::string& size : kernel.sizes) hasher.add(std::string_view(size));
    addLoops(kernel.outer);
    for (const KernelStore& store : kernel.stores) {
        hasher.add(store.buffer).add(store.index->hash).add(store.value->hash).add(store.adds);
        addLoops(store.inner);
    }
    return hasher.finish().hex();
}

}  // namespace cutaway
