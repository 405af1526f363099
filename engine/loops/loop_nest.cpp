#include "engine/loops/loop_nest.h"

#include <unordered_set>

namespace cutaway {

int LoopNest::newVar(DType dtype, int count, bool changes) {
    vars.push_back({dtype, count, changes});
    return static_cast<int>(vars.size()) - 1;
}

DType LoopNest::memoryOf(const Expr& load) const { return memoryOf(bufferOf(load)); }

int lanesOf(const LoopNest& nest, const Expr& expr) {
    std::unordered_set<const ExprNode*> seen;
    auto isVector = [&](auto&& self, const Expr& e) -> bool {
        if (!seen.insert(&*e).second) return false;
        if (e->kind == ExprKind::Var) return nest.vars[static_cast<size_t>(e->integer)].lanes > 1;
        if (e->kind == ExprKind::Load && e->operands.size() == 2) return true;
        if (e->kind == ExprKind::Call) {
            if (e->name == "ramp" || e->name == "active") return true;
            if (e->name == "lane") return false;
        }
        return std::any_of(e->operands.begin(), e->operands.end(), [&](const Expr& o) { return self(self, o); });
    };
    return isVector(isVector, expr) ? nest.lanes : 1;
}

void forEachStmt(const Body& body, const std::function<void(const Stmt&)>& visit) {
    for (const Stmt& stmt : body) {
        visit(stmt);
        if (const auto* loop = std::get_if<For>(&stmt.node)) forEachStmt(loop->body, visit);
        if (const auto* branch = std::get_if<If>(&stmt.node)) forEachStmt(branch->body, visit);
    }
}

}  // namespace cutaway
