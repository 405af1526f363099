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

namespace {

class Printer {
  public:
    explicit Printer(const LoopNest& nest) : m_nest(&nest) {}
    std::string print() {
        m_out = m_nest->name + "(";
        for (size_t i = 0; i < m_nest->buffers.size(); ++i)
            m_out += (i ? ", " : "") + bufferName(static_cast<int>(i)) + ": " +
                     std::string(info(m_nest->buffers[i].dtype).abbreviation) + (m_nest->buffers[i].written ? "!" : "");
        for (const std::string& size : m_nest->sizes) m_out += ", " + size;
        m_out += ")\n";
        for (size_t i = 0; i < m_nest->scratch.size(); ++i)
            line(1, "scratch " + bufferName(~static_cast<int>(i)) + ": " +
                        std::string(info(m_nest->scratch[i].dtype).abbreviation) + "[" +
                        std::to_string(m_nest->scratch[i].count) + "]");
        body(m_nest->body, 1);
        return std::move(m_out);
    }

  private:
    void line(int depth, const std::string& code) {
        m_out += std::string(static_cast<size_t>(depth) * 2, ' ') + code + "\n";
    }
    std::string typed(int var) const {
        const NestVar& own = m_nest->vars[static_cast<size_t>(var)];
        const std::string lanes = own.lanes > 1 ? "x" + std::to_string(own.lanes) : "";
        return "t" + std::to_string(var) + ": " + std::string(info(own.dtype).abbreviation) + lanes;
    }
    static std::string x(int axis) { return text(Expr::axis(axis)); }
    static std::string states(const std::vector<int>& vars) {
        std::string all;
        for (const int var : vars) all += (all.empty() ? "t" : ", t") + std::to_string(var);
        return all;
    }
    void body(const Body& stmts, int depth) {
        for (const Stmt& stmt : stmts) std::visit([&](const auto& own) { on(own, depth); }, stmt.node);
    }
    void on(const For& loop, int depth) {
        const std::string how = std::string(loop.map == Map::Parts ? "parts " : "") +
                                (loop.lanes > 1 ? "vector " + std::to_string(loop.lanes) + " " : "");
        line(depth, how + "for " + x(loop.axis) + " in " + text(loop.from) + " .. " + text(loop.to) + ":");
        body(loop.body, depth + 1);
    }
    void on(const If& branch, int depth) {
        line(depth, "if " + text(branch.condition) + ":");
        body(branch.body, depth + 1);
    }
    void on(const Index& index, int depth) { line(depth, x(index.axis) + " = " + text(index.value)); }
    void on(const Let& let, int depth) { line(depth, "let " + typed(let.var) + " = " + text(let.value)); }
    void on(const Declare& own, int depth) { line(depth, "var " + typed(own.var) + " = " + text(own.value)); }
    void on(const Set& set, int depth) { line(depth, "t" + std::to_string(set.var) + " = " + text(set.value)); }
    void on(const Alloc& alloc, int depth) {
        std::string all;
        for (const int state : alloc.states) all += (all.empty() ? "" : ", ") + typed(state);
        line(depth, "alloc " + std::string(reducer(alloc.reducer).name) + " " + all);
    }
    void on(const Update& update, int depth) {
        line(depth, "update " + std::string(reducer(update.reducer).name) + " " + states(update.states) + " with " +
                        text(update.value) + (update.at ? " at " + text(update.at) : "") +
                        (update.active ? " where " + text(update.active) : ""));
    }
    void on(const Barrier&, int depth) { line(depth, "barrier"); }
    void on(const Merge& merge, int depth) {
        std::string with;
        for (const Expr& e : merge.with) with += (with.empty() ? "" : ", ") + text(e);
        line(depth, "merge " + std::string(reducer(merge.reducer).name) + " " + states(merge.states) + " with " + with);
    }
    void on(const Store& store, int depth) {
        line(depth, bufferName(store.buffer) + "[" + text(store.index) + (store.step ? " : " + text(store.step) : "") +
                        "] = " + text(store.value));
    }
    const LoopNest* m_nest;
    std::string m_out;
};

}  // namespace

std::string text(const LoopNest& nest) { return Printer(nest).print(); }

}  // namespace cutaway
