#include "engine/loops/loop_nest.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "engine/support/check.h"

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

namespace {

const Expr* valueOf(const Stmt& stmt) {
    if (const auto* let = std::get_if<Let>(&stmt.node)) return &let->value;
    if (const auto* own = std::get_if<Declare>(&stmt.node)) return &own->value;
    const auto* set = std::get_if<Set>(&stmt.node);
    return set ? &set->value : nullptr;
}
int variableOf(const Stmt& stmt) {
    if (const auto* let = std::get_if<Let>(&stmt.node)) return let->var;
    if (const auto* own = std::get_if<Declare>(&stmt.node)) return own->var;
    const auto* set = std::get_if<Set>(&stmt.node);
    return set ? set->var : -1;
}
/// Vectors of which the statement reads lanes of others.
std::set<int> readAcross(Stmt stmt) {
    std::set<int> vectors;
    forEachValue(stmt, [&](const Expr& value) {
        forEachExpr({value}, [&](const Expr& e) {
            if (e->kind == ExprKind::Call && (e->name == "lane" || e->name == "lanes_from"))
                vectors.insert(static_cast<int>(e->operands[0]->integer));
        });
    });
    return vectors;
}
void findShared(const Body& body, std::map<const Stmt*, std::vector<int>>& before) {
    std::set<int> current;
    for (size_t i = 0; i < body.size(); ++i) {
        const Stmt& stmt = body[i];
        if (const auto* loop = std::get_if<For>(&stmt.node)) findShared(loop->body, before);
        if (const auto* branch = std::get_if<If>(&stmt.node)) findShared(branch->body, before);
        if (valueOf(stmt) == nullptr) {
            CT_CHECK(readAcross(stmt).empty(), "lanes are read into variables");
            current.clear();
            continue;
        }
        const auto needs = [&](int vector) { return !current.contains(vector); };
        const std::set<int> read = readAcross(stmt);
        if (std::any_of(read.begin(), read.end(), needs)) {
            // What follows reads more lanes, of what is known here: all of them with the same barriers.
            std::set<int> written;
            std::vector<int>& shared = before[&stmt];
            for (size_t j = i; j < body.size() && valueOf(body[j]) != nullptr; ++j) {
                for (const int vector : readAcross(body[j]))
                    if (needs(vector) && !written.contains(vector)) {
                        shared.push_back(vector);
                        current.insert(vector);
                    }
                written.insert(variableOf(body[j]));
            }
        }
        current.erase(variableOf(stmt));
    }
}

}  // namespace

std::map<const Stmt*, std::vector<int>> sharedBefore(const Body& body) {
    std::map<const Stmt*, std::vector<int>> before;
    findShared(body, before);
    return before;
}

void forEachStmt(const Body& body, const std::function<void(const Stmt&)>& visit) {
    for (const Stmt& stmt : body) {
        visit(stmt);
        if (const auto* loop = std::get_if<For>(&stmt.node)) forEachStmt(loop->body, visit);
        if (const auto* branch = std::get_if<If>(&stmt.node)) forEachStmt(branch->body, visit);
    }
}

}  // namespace cutaway
