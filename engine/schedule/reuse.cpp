#include "engine/schedule/reuse.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "engine/rewrite/rewriter.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/schedule.h"

namespace cutaway {
namespace {

bool loads(const Expr& expr, int buffer) {
    bool found = false;
    forEachExpr({expr}, [&](const Expr& e) { found |= e->kind == ExprKind::Load && bufferOf(e) == buffer; });
    return found;
}

/// Looks for loads of the operand that would come after the store that overwrites what they read.
class Overwriting {
  public:
    Overwriting(const Kernel& kernel, const KernelStore& store, int operand) : m_store(&store), m_operand(operand) {
        for (const Loop& loop : kernel.outer) m_outer.insert(loop.axis);
    }

    /// `loops`: of the reduction that the expression is the body of; null outside of all.
    std::string whyNot(const Expr& expr, const std::vector<Loop>* loops = nullptr) {
        if (!m_seen.emplace(&*expr, loops != nullptr).second) return {};
        if (isReduce(expr)) return loads(expr, m_operand) ? whyNotReduced(expr) : std::string();
        if (expr->kind == ExprKind::Load && bufferOf(expr) == m_operand && !isAt(expr->operands[0], loops))
            return loops ? "a reduction reads more of it than the row that is written"
                         : "it is read at other places than it is written";
        for (const Expr& operand : expr->operands)
            if (std::string why = whyNot(operand, loops); !why.empty()) return why;
        return {};
    }

  private:
    /// What is reduced once for a row comes before the row's first store, and may read that row.
    std::string whyNotReduced(const Expr& reduction) {
        const std::set<int>& axes = freeAxes(reduction);
        if (!std::includes(m_outer.begin(), m_outer.end(), axes.begin(), axes.end()))
            return "a reduction reads it again for each element";
        const std::vector<Loop> loops = reduceLoops(reduction);
        const auto sameSize = [](const Loop& a, const Loop& b) { return a.size == b.size; };
        if (!std::equal(loops.begin(), loops.end(), m_store->inner.begin(), m_store->inner.end(), sameSize))
            return "a reduction reads more of it than the row that is written";
        return whyNot(reduction->operands[0], &loops);
    }
    bool isAt(const Expr& index, const std::vector<Loop>* loops) const {
        if (loops == nullptr) return index == m_store->index;
        return m_store->index == replaceAxes(index, [&](int axis) {
                   for (size_t i = 0; i < loops->size(); ++i)
                       if ((*loops)[i].axis == axis) return Expr::axis(m_store->inner[i].axis);
                   return Expr();
               });
    }

    /// Axes that an expression reads, other than those of its own reductions.
    const std::set<int>& freeAxes(const Expr& expr) {
        if (const auto found = m_free.find(&*expr); found != m_free.end()) return found->second;
        std::set<int> axes;
        if (expr->kind == ExprKind::Axis) axes = {static_cast<int>(expr->integer)};
        for (const Expr& operand : expr->operands) {
            const std::set<int>& own = freeAxes(operand);
            axes.insert(own.begin(), own.end());
        }
        if (isReduce(expr))
            for (const Loop& loop : reduceLoops(expr)) axes.erase(loop.axis);
        return m_free.emplace(&*expr, std::move(axes)).first->second;
    }

    const KernelStore* m_store;
    int m_operand;
    std::set<int> m_outer;
    std::unordered_map<const ExprNode*, std::set<int>> m_free;
    std::set<std::pair<const ExprNode*, bool>> m_seen;  // membership only
};

/// Decides which values of a scheduled module are written over operands.
class Reuser {
  public:
    /// `program` has a copy of the graph.
    Reuser(const Graph& graph, const ScheduledProgram& program, Schedule& schedule, Rewriter& rewriter)
        : m_graph(&graph), m_program(&program), m_schedule(&schedule), m_rewriter(&rewriter) {
        for (const ScheduledValue& value : program.values) m_values.emplace(value.key, &value);
    }

    void run() {
        for (size_t at = 0; at < m_program->calls.size(); ++at)
            if (!(m_program->calls[at].kind == CallKind::Kernel ? decide(static_cast<int>(at))
                                                                : decideCall(static_cast<int>(at))))
                return;
        for (const Node& node : m_graph->nodes())
            if (m_rewriter->watches(node)) m_rewriter->refuse("in_place", node, whyNotWritten(node));
    }

  private:
    /// False once the fuel is used up.
    bool decide(int at) {
        const ScheduledCall& call = m_program->calls[static_cast<size_t>(at)];
        const Kernel& kernel = m_program->kernels[call.kernel].kernel;
        std::set<int> taken;  // membership only
        for (int result = 0; result < static_cast<int>(kernel.buffers.size()); ++result) {
            if (!kernel.buffers[static_cast<size_t>(result)].written) continue;
            const ValueKey& written = call.bindings[static_cast<size_t>(result)];
            const Node& node = *m_graph->find(written.node->id());
            for (int operand = 0; operand < static_cast<int>(kernel.buffers.size()); ++operand) {
                const ValueKey& over = call.bindings[static_cast<size_t>(operand)];
                if (kernel.buffers[static_cast<size_t>(operand)].written || taken.contains(operand)) continue;
                std::string why = whyNotGivenUp(over, at);
                if (why.empty() && !areAlike(written, over)) why = "it has another dtype, size or layout";
                if (why.empty()) why = whyNotOver(call.kernel, result, operand);
                if (!why.empty()) {
                    if (m_rewriter->watches(node))
                        m_rewriter->refuse("in_place", node,
                                           "cannot reuse the memory of `" + over.node->name() + "`: " + why);
                    continue;
                }
                const Go go = m_rewriter->begin("in_place", node,
                                                "it reuses the memory of " + over.node->name() +
                                                    ", of which it is the last reader: each element is read before");
                if (go == Go::Stop) return false;
                if (go != Go::Yes) continue;
                m_schedule->reuses.emplace(std::pair(written.node->id(), written.result),
                                           std::pair(over.node->id(), over.result));
                taken.insert(operand);
                break;
            }
        }
        return true;
    }
    /// Asked once for all calls of a kernel.
    const std::string& whyNotOver(size_t kernel, int result, int operand) {
        const auto [slot, fresh] = m_whyNotOver.try_emplace({kernel, result, operand});
        if (fresh) slot->second = cutaway::whyNotOver(m_program->kernels[kernel].kernel, result, operand);
        return slot->second;
    }
    /// The same of a library's call, over the operand that it names.
    bool decideCall(int at) {
        const ScheduledCall& call = m_program->calls[static_cast<size_t>(at)];
        const Node* operand = call.library && call.library->over ? call.library->over(*call.node) : nullptr;
        if (operand == nullptr) return true;
        const ValueKey over = rootOf(*operand);
        const Node& node = *m_graph->find(call.node->id());
        std::string why = whyNotGivenUp(over, at);
        if (why.empty() && !areAlike({call.node, 0}, over)) why = "it has another dtype, size or layout";
        for (const Node* input : call.node->inputs())
            if (why.empty() && input != operand && rootOf(*input) == over)
                why = "it is read as " + input->name() + ", too";
        const auto readTwice = std::count_if(call.node->args().begin(), call.node->args().end(),
                                             [&](const Argument& argument) { return argument.node() == operand; });
        if (why.empty() && readTwice > 1) why = "it is more than one operand of the call";
        if (!why.empty()) {
            if (m_rewriter->watches(node))
                m_rewriter->refuse("in_place", node, "cannot reuse the memory of `" + operand->name() + "`: " + why);
            return true;
        }
        const Go go = m_rewriter->begin(
            "in_place", node,
            "it reuses the memory of " + operand->name() + ", of which it is the last reader: the library adds to it");
        if (go == Go::Yes)
            m_schedule->reuses.emplace(std::pair(node.id(), size_t{0}), std::pair(over.node->id(), over.result));
        return go != Go::Stop;
    }
    /// Why nothing is decided about a node that no kernel writes, or whose kernel reads nothing.
    std::string whyNotWritten(const Node& node) const {
        if (node.isOutput() || !node.isCall()) return "nothing is computed here";
        for (const ScheduledCall& call : m_program->calls) {
            if (call.node && call.node->id() == node.id())
                return m_schedule->reuses.contains({node.id(), 0}) ? "it reuses the memory of an operand"
                       : call.kind == CallKind::Library            ? "a library computes it, in memory of its own"
                                                                   : "it is computed in memory of its own";
            if (call.kind != CallKind::Kernel ||
                std::find(call.nodes.begin(), call.nodes.end(), node.id()) == call.nodes.end())
                continue;
            for (const ValueKey& key : call.bindings)
                if (key.node->id() == node.id()) return "its kernel reads no operand whose memory it could reuse";
            return "its kernel does not write it to memory";
        }
        return "no call computes it: it is a view, or computed where it is read";
    }
    /// Why the value's memory is not given away after this call; empty if it is.
    std::string whyNotGivenUp(const ValueKey& key, int at) const {
        const auto found = m_values.find(key);
        if (found == m_values.end()) return "it has no memory of its own";
        const ScheduledValue& value = *found->second;
        switch (value.kind) {
            case ScheduledValue::Kind::Input: return "it is an input of the program";
            case ScheduledValue::Kind::Constant: return "it is a constant";
            case ScheduledValue::Kind::Output: return "it is returned";
            case ScheduledValue::Kind::Temporary: break;
        }
        if (value.lastUse != at) return "it is read later";
        return m_program->calls[static_cast<size_t>(value.definedBy)].kind == CallKind::Reference
                   ? "a function of the engine has made it, in memory of its own"
                   : "";
    }
    static bool areAlike(const ValueKey& a, const ValueKey& b) {
        const TensorType &x = *tensorOf(a), &y = *tensorOf(b);
        return x.dtype == y.dtype && numel(x.sizes) == numel(y.sizes) && isDense(x) && isDense(y);
    }
    /// Without gaps, in any order of dims.
    static bool isDense(const TensorType& type) {
        SymInt last = 1;
        for (size_t d = 0; d < type.sizes.size(); ++d) last = last + (type.sizes[d] - 1) * type.strides[d];
        return last == numel(type.sizes);
    }

    const Graph* m_graph;
    const ScheduledProgram* m_program;
    Schedule* m_schedule;
    Rewriter* m_rewriter;
    std::map<ValueKey, const ScheduledValue*> m_values;
    std::map<std::tuple<size_t, int, int>, std::string> m_whyNotOver;
};

}  // namespace

std::string whyNotOver(const Kernel& kernel, int result, int operand) {
    const KernelStore* kernelStore = nullptr;
    for (const KernelStore& store : kernel.stores) {
        if (store.buffer == result && kernelStore != nullptr) return "the result is written twice";
        if (store.buffer == result) kernelStore = &store;
        else if (loads(store.value, operand) || loads(store.index, operand)) return "another result is made of it, too";
    }
    if (kernelStore == nullptr) return "the result is not written";
    bool fromData = false;
    forEachExpr({kernelStore->index}, [&](const Expr& e) { fromData |= e->kind == ExprKind::Load; });
    return fromData ? "where the result is written follows from data"
                    : Overwriting(kernel, *kernelStore, operand).whyNot(kernelStore->value);
}

void writeOver(Kernel& kernel, std::vector<ValueKey>& bindings, const ValueKey& result, const ValueKey& operand) {
    const auto numberOf = [&](const ValueKey& key) {
        return static_cast<int>(std::find(bindings.begin(), bindings.end(), key) - bindings.begin());
    };
    const int to = numberOf(result), from = numberOf(operand);
    if (to == static_cast<int>(bindings.size()) || from == static_cast<int>(bindings.size())) return;
    const auto renumbered = [&](int buffer) {
        if (buffer == from) return to - (to > from);
        return buffer - (buffer > from);
    };
    const auto rename = [&](const Expr& root) {
        const auto load = [&](auto&& self, const Expr& e) -> Expr {
            if (e->kind != ExprKind::Load) return {};
            return Expr::load(bufferName(renumbered(bufferOf(e))),
                              rewriteShared(e->operands[0], [&](const Expr& inner) { return self(self, inner); }),
                              e->dtype);
        };
        return rewriteShared(root, [&](const Expr& e) { return load(load, e); });
    };
    for (KernelStore& store : kernel.stores) {
        store.buffer = renumbered(store.buffer);
        store.index = rename(store.index);
        store.value = rename(store.value);
    }
    kernel.buffers.erase(kernel.buffers.begin() + from);
    bindings.erase(bindings.begin() + from);
}

Result<bool> reuseMemory(Module& module, Rewriter& rewriter) {
    const std::shared_ptr<Schedule> schedule = copyOfSchedule(module, rewriter.request());
    if (!schedule->reuses.empty()) return false;  // decided before
    const auto copy = std::make_shared<Module>(module);
    copy->plan = schedule;
    CT_TRY(const ScheduledProgram program, scheduleCalls(copy));
    const auto decided = std::make_shared<Schedule>(*schedule);
    Reuser(module.graph(), program, *decided, rewriter).run();
    if (rewriter.changed()) module.plan = decided;
    return rewriter.changed();
}

}  // namespace cutaway
