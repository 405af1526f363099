#include "engine/loops/nest_text.h"

#include "engine/loops/expr_writer.h"

namespace cutaway {
namespace {

/// Statements whose expressions are this large when written out get names for what they read twice: nests whose values
/// are not shared yet would otherwise grow with each reader.
constexpr int kLongStatement = 300;

std::string cellDtypeText(DType dtype) { return std::string(info(dtype).abbreviation); }

/// The words of statements that are left when a nest is printed.
struct Words {
    std::string parallel, prefetch, transpose;
};
const Words kWords = {"parallel ", "prefetch ", "transpose "};
/// Those of version 0.1.
const Words kKeyWords = {"parts ", "fetch ", "turn "};

class Writer {
  public:
    Writer(const LoopNest& nest, const Words& words)
        : m_nest(nest), m_words(words), m_exprs([this](const Expr& load) { return m_nest.memoryOf(load); }) {}

    std::string write() {
        unify(m_nest.body);
        chooseNames();
        m_out = m_nest.name + "(" + buffersText(m_nest.buffers);
        for (const std::string& size : m_nest.sizes) m_out += (m_out.back() == '(' ? "" : ", ") + symbolText(size);
        m_out += ")\n";
        if (m_nest.lanes > 1) line(1, "lanes " + std::to_string(m_nest.lanes));
        if (!(m_nest.range == SymInt(1))) line(1, "range " + m_exprs.shown(m_nest.range.expr()));
        for (size_t i = 0; i < m_nest.scratch.size(); ++i)
            line(1, "scratch " + bufferName(~static_cast<int>(i)) + ": " + cellDtypeText(m_nest.scratch[i].dtype) +
                        "[" + std::to_string(m_nest.scratch[i].count) + "]");
        body(m_nest.body, 1);
        return std::move(m_out);
    }

  private:
    void unify(Body& stmts) {
        forEachValueIn(stmts, [&](Expr& e) { e = m_exprs.unique(e); });
    }
    void chooseNames() {
        std::unordered_map<const ExprNode*, int> weights;  // as trees
        std::vector<Expr> large;
        forEachValueIn(m_nest.body, [&](const Expr& root) {
            forEachExpr({root}, [&](const Expr& e) {
                int weight = 1;
                for (const Expr& operand : e->operands) weight = std::min(weight + weights[&*operand], kLongStatement);
                weights[&*e] = weight;
            });
            if (weights[&*root] >= kLongStatement) large.push_back(root);
        });
        m_exprs.chooseNames(large);
    }

    void line(int depth, const std::string& code) {
        m_out += std::string(static_cast<size_t>(depth) * 2, ' ') + code + "\n";
    }
    std::string typed(int var) const {
        const NestVar& nestVar = m_nest.vars[static_cast<size_t>(var)];
        const std::string lanes = nestVar.lanes > 1 ? "x" + std::to_string(nestVar.lanes) : "";
        return t(var) + ": " + cellDtypeText(nestVar.dtype) + lanes;
    }
    static std::string t(int var) { return "t" + std::to_string(var); }
    static std::string x(int axis) { return "x" + std::to_string(axis); }
    static std::string reducerText(int number) { return std::string(reducer(number).name); }
    static std::string states(const std::vector<int>& vars) {
        std::string all;
        for (const int var : vars) all += (all.empty() ? "" : ", ") + t(var);
        return all;
    }
    std::string shown(const Expr& e) { return m_exprs.shown(e); }

    void body(Body& stmts, int depth) {
        for (Stmt& stmt : stmts) {
            std::vector<Expr> roots;
            forEachValue(stmt, [&](const Expr& e) { roots.push_back(e); });
            for (const std::string& definition : m_exprs.definitions(roots)) line(depth, definition);
            std::visit([&](auto& own) { on(own, depth); }, stmt.node);
        }
    }
    void on(For& loop, int depth) {
        const std::string how =
            (loop.map == Map::Parallel ? m_words.parallel : std::string()) +
            (loop.lanes > 1 ? "vector " + std::to_string(loop.lanes) + " " : "") +
            (loop.unrollJam > 1 ? "unroll_jam " + std::to_string(loop.unrollJam) + " " : "") +
            (loop.accumulators > 1 ? "accumulators " + std::to_string(loop.accumulators) + " " : "") +
            (loop.whole ? "whole " : "");
        line(depth, how + "for " + x(loop.axis) + " in " + shown(loop.from) + " .. " + shown(loop.to) + ":");
        body(loop.body, depth + 1);
    }
    void on(If& branch, int depth) {
        line(depth, "if " + shown(branch.condition) + ":");
        body(branch.body, depth + 1);
    }
    void on(const Index& index, int depth) { line(depth, x(index.axis) + " = " + shown(index.value)); }
    void on(const Let& let, int depth) { line(depth, "let " + typed(let.var) + " = " + shown(let.value)); }
    void on(const Declare& declare, int depth) {
        line(depth, "var " + typed(declare.var) + " = " + shown(declare.value));
    }
    void on(const Set& set, int depth) { line(depth, t(set.var) + " = " + shown(set.value)); }
    void on(const Alloc& alloc, int depth) {
        std::string all;
        for (const int state : alloc.states) all += (all.empty() ? "" : ", ") + typed(state);
        line(depth, "alloc " + reducerText(alloc.reducer) + " " + all + " of " + cellDtypeText(alloc.body));
    }
    void on(const Accumulate& accumulated, int depth) {
        line(depth, "accumulate " + reducerText(accumulated.reducer) + " " + states(accumulated.states) + " with " +
                        shown(accumulated.value) + (accumulated.at ? " at " + shown(accumulated.at) : "") +
                        (accumulated.active ? " where " + shown(accumulated.active) : ""));
    }
    void on(const Barrier&, int depth) { line(depth, "barrier"); }
    void on(const Prefetch& prefetch, int depth) {
        line(depth, m_words.prefetch + bufferName(prefetch.buffer) + "[" + shown(prefetch.index) + "]" +
                        (prefetch.toWrite ? " to write" : ""));
    }
    void on(const Transpose& transpose, int depth) {
        const auto side = [&](const Transpose::Side& own) {
            return bufferName(own.buffer) + "[" + shown(own.index) + "] by " + shown(own.step);
        };
        line(depth, m_words.transpose + side(transpose.to) + " with " + side(transpose.from) + " of " +
                        shown(transpose.rows) + " by " + shown(transpose.columns));
    }
    void on(const Combine& combine, int depth) {
        std::string with;
        for (const Expr& e : combine.with) with += (with.empty() ? "" : ", ") + shown(e);
        line(depth, "combine " + reducerText(combine.reducer) + " " + states(combine.states) + " with " + with);
    }
    void on(const Store& store, int depth) {
        line(depth, (store.how == StoreHow::Atomic ? "atomic " : "") + bufferName(store.buffer) + "[" +
                        shown(store.index) + (store.step ? " : " + shown(store.step) : "") +
                        (store.how == StoreHow::Puts ? "] = " : "] += ") + shown(store.value));
    }

    LoopNest m_nest;
    const Words& m_words;
    ExprWriter m_exprs;
    std::string m_out;
};

}  // namespace

std::string text(const LoopNest& nest) { return Writer(nest, kWords).write(); }
std::string keyText(const LoopNest& nest) { return Writer(nest, kKeyWords).write(); }

}  // namespace cutaway
