#include <unordered_map>

#include "engine/expr/evaluate.h"
#include "engine/loops/interpret.h"
#include "engine/loops/unique_exprs.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

/// An expression as a list of operations on slots, operands first; what is inside of reductions has lists of its own.
struct Tape {
    struct Entry {
        Expr expr;
        std::vector<size_t> in;
    };
    std::vector<Entry> entries;  // the last one is the value
};

class KernelInterpreter {
  public:
    KernelInterpreter(const Kernel& kernel, std::span<void* const> buffers, const std::map<std::string, int64_t>& sizes)
        : m_kernel(&kernel), m_buffers(buffers), m_sizes(&sizes) {}

    KernelFault run() {
        for (const KernelStore& store : m_kernel->stores) {
            std::vector<Loop> loops = m_kernel->outer;
            loops.insert(loops.end(), store.inner.begin(), store.inner.end());
            const Tape index = tapeOf(store.index), value = tapeOf(store.value);
            const DType memory = m_kernel->buffers[static_cast<size_t>(store.buffer)].dtype;
            over(loops, 0, [&] {
                const int64_t at = evaluate(index).whole;
                void* const buffer = m_buffers[static_cast<size_t>(store.buffer)];
                const Cell element = evaluate(value);
                if (store.adds) addToElement(buffer, memory, at, element);
                else writeElement(buffer, memory, at, element);
            });
        }
        return m_fault;
    }

  private:
    template <class Body>
    void over(const std::vector<Loop>& loops, size_t depth, const Body& body) {
        if (depth == loops.size()) return body();
        const int64_t size = evaluate(tapeOf(loops[depth].size.expr())).whole;
        for (int64_t i = 0; i < size; ++i) {
            m_axes[loops[depth].axis] = i;
            over(loops, depth + 1, body);
        }
    }

    const Tape& tapeOf(const Expr& raw) {
        const Expr root = m_exprs.unique(raw);
        auto [slot, fresh] = m_tapes.try_emplace(&*root);
        if (!fresh) return slot->second;
        Tape tape;
        std::unordered_map<const ExprNode*, size_t> done;
        auto add = [&](auto&& self, const Expr& e) -> size_t {
            if (auto found = done.find(&*e); found != done.end()) return found->second;
            Tape::Entry entry{e, {}};
            if (!isReduce(e))
                for (const Expr& operand : e->operands) entry.in.push_back(self(self, operand));
            tape.entries.push_back(std::move(entry));
            return done[&*e] = tape.entries.size() - 1;
        };
        add(add, root);
        return m_tapes[&*root] = std::move(tape);
    }

    Cell evaluate(const Tape& tape) {
        std::vector<Cell> slots(tape.entries.size());
        std::vector<Cell> in;
        for (size_t i = 0; i < slots.size(); ++i) {
            const Expr& e = tape.entries[i].expr;
            in.clear();
            for (const size_t operand : tape.entries[i].in) in.push_back(slots[operand]);
            slots[i] = valueOf(e, in);
        }
        return slots.back();
    }
    Cell valueOf(const Expr& e, const std::vector<Cell>& in) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return literalCell(e);
            case ExprKind::Symbol: return literalCell(symbolLiteral(e->name, m_sizes->at(e->name)));
            case ExprKind::Axis: return {0, m_axes.at(static_cast<int>(e->integer))};
            case ExprKind::Load: return readElement(m_buffers[static_cast<size_t>(bufferOf(e))], e->dtype, in[0].whole);
            case ExprKind::Reduce: return reduce(e);
            default: return applyOperation(*e, in, m_fault);
        }
    }

    /// The last value of each reduction is kept with the axes that it was made for: most are the same for a whole row.
    struct CachedReduction {
        std::vector<int64_t> axes;
        Cell value;
        bool valid = false;
    };
    Cell reduce(const Expr& e) {
        std::vector<int64_t> axes;
        for (const int leaf : m_exprs.leaves(e)) axes.push_back(m_axes.at(leaf / 2));
        CachedReduction& kept = m_reductions[&*e];
        if (kept.valid && kept.axes == axes) return kept.value;
        const Reducer& row = reducerOf(e);
        const DType body = e->operands[0]->dtype;
        const std::vector<Loop> loops = reduceLoops(e);
        // The reducer's own expressions, over variables that stand for states, element and position.
        std::vector<Expr> vars;
        const std::vector<DType> types = row.stateTypes(body, DType::F64);  // what it means, on any target
        for (size_t i = 0; i < types.size(); ++i) vars.push_back(Expr::var(static_cast<int>(i), types[i]));
        const Expr element = Expr::var(100, body), at = Expr::var(101, DType::I64);
        const std::vector<Expr> steps = row.step(vars, element, at);
        std::vector<Cell> states;
        for (const Expr& identity : row.identity(types)) states.push_back(literalCell(identity));
        const Tape value = tapeOf(e->operands[0]);
        int64_t position = 0;
        over(loops, 0, [&] {
            const Cell cell = evaluate(value), where{0, position++};
            auto leaf = [&](const Expr& var) {
                return var->integer == 100   ? cell
                       : var->integer == 101 ? where
                                             : states[static_cast<size_t>(var->integer)];
            };
            std::vector<Cell> next;
            for (const Expr& step : steps) next.push_back(small(step, leaf));
            states = std::move(next);
        });
        const Cell result =
            small(row.finish(vars, body), [&](const Expr& var) { return states[static_cast<size_t>(var->integer)]; });
        // Looked up again, since evaluating the body may have added inner reductions to m_reductions.
        m_reductions[&*e] = {std::move(axes), result, true};
        return result;
    }
    /// Of a reducer: a few operations.
    template <class Leaf>
    Cell small(const Expr& e, const Leaf& leaf) {
        if (e->kind == ExprKind::Var) return leaf(e);
        if (e->operands.empty()) return literalCell(e);
        std::vector<Cell> in;
        for (const Expr& operand : e->operands) in.push_back(small(operand, leaf));
        return applyOperation(*e, in, m_fault);
    }

    const Kernel* m_kernel;
    std::span<void* const> m_buffers;
    const std::map<std::string, int64_t>* m_sizes;
    std::map<int, int64_t> m_axes;
    UniqueExprs m_exprs;
    std::unordered_map<const ExprNode*, Tape> m_tapes;
    std::unordered_map<const ExprNode*, CachedReduction> m_reductions;
    KernelFault m_fault = KernelFault::None;
};

}  // namespace

KernelFault interpretKernel(const Kernel& kernel, std::span<void* const> buffers,
                            const std::map<std::string, int64_t>& sizes) {
    return KernelInterpreter(kernel, buffers, sizes).run();
}

}  // namespace cutaway
