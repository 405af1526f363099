// What the values of a run's schedules take in memory, and when.
#include <algorithm>
#include <set>

#include "cutaway/guarded.h"
#include "cutaway/memory.h"
#include "engine/host/bind_host.h"
#include "engine/interpret/constants.h"
#include "engine/schedule/schedule.h"
#include "engine/session/chosen_program.h"
#include "engine/support/checked.h"
#include "engine/tensor/tensor.h"

namespace cutaway {
namespace {

constexpr int64_t kBlock = 64;
int64_t inBlocks(int64_t bytes) { return (std::max<int64_t>(bytes, 1) + kBlock - 1) / kBlock * kBlock; }

MemoryMaker makerOf(CallKind kind) {
    switch (kind) {
        case CallKind::Kernel: return MemoryMaker::Kernel;
        case CallKind::Library: return MemoryMaker::Library;
        case CallKind::Reference: break;
    }
    return MemoryMaker::Reference;
}

/// The numbers of sizes. Errors: one that is known only at run time.
Result<Dims> numbersOf(const SymDims& dims, const SymbolValues& sizes, const TensorType& type,
                       const std::string& name) {
    Dims numbers;
    for (const SymInt& dim : dims) {
        const auto number = valueFor(dim, sizes);
        if (!number)
            return unsupported("the size of " + name + ", " + type.text() + ", is known only at run time", name);
        numbers.push_back(*number);
    }
    return numbers;
}
/// Bytes between the first and the last element.
Result<int64_t> bytesAt(const TensorType& type, const SymbolValues& values, const std::string& name) {
    CT_TRY(const Dims sizes, numbersOf(type.sizes, values, type, name));
    CT_TRY(const Dims strides, numbersOf(type.strides, values, type, name));
    return checkedMul(extent(sizes, strides), byteSize(type.dtype));
}

/// Numbers to assume for sizes that a run finds in its data: of each the number of elements of what it is found in.
/// Without sizes in `known`.
SymbolValues assumedSizes(const HostFunction& function, const SymbolValues& known) {
    SymbolValues all = known, assumed;
    for (const HostStep& step : function.steps) {
        int64_t most = 1;
        for (const int64_t operand : step.operands) {
            if (operand < 0 || step.found.empty()) continue;
            int64_t elements = 1;
            for (const SymInt& size : function.values[static_cast<size_t>(operand)].type.sizes)
                elements = checkedMul(elements, valueFor(size, all).value_or(1));
            most = std::max(most, elements);
        }
        for (const HostStep::BoundSize& found : step.found)
            if (all.emplace(found.symbol, most).second) assumed.emplace(found.symbol, most);
    }
    return assumed;
}

/// Shows the memory that a function of a host program has; which value lies where is the program's.
class MemoryPlanner {
  public:
    MemoryPlanner(const PlannedProgram& program, const ScheduledGraph& scheduled, SymbolValues sizes)
        : m_program(program.graphs[scheduled.graph]),
          m_kernels(program.host.kernels),
          m_function(program.host.functions[program.functionOf(scheduled.graph)]),
          m_scheduled(scheduled) {
        m_plan.graphName = scheduled.name;
        m_plan.sizes = std::move(sizes);
    }

    Result<MemoryPlan> run() {
        for (const ScheduledCall& call : m_program.calls) addCall(call);
        CT_TRY_VOID(addValues());
        CT_TRY_VOID(addWorkspaces());
        CT_TRY_VOID(takePlaces());
        placeOwn();
        placeOverOthers();
        std::stable_sort(m_plan.values.begin(), m_plan.values.end(),
                         [](const MemoryValue& a, const MemoryValue& b) { return a.first < b.first; });
        findPeak();
        return std::move(m_plan);
    }

  private:
    void addCall(const ScheduledCall& call) {
        MemoryCall shown;
        shown.maker = makerOf(call.kind);
        shown.kind = call.description;
        if (call.kind == CallKind::Kernel) shown.name = m_scheduled.prefix + m_program.kernels[call.kernel].kernel.name;
        else shown.name = call.node->name();
        for (const NodeId node : call.nodes) {
            shown.nodes.push_back(nodeKey(0, node));
            const Node* found = m_program.module->graph().find(node);
            shown.nodeNames.push_back(found ? found->name() : std::string());
        }
        m_plan.calls.push_back(std::move(shown));
    }

    static std::string nameOfValue(const ValueKey& key) {
        if (key.node->type().tuple() == nullptr) return key.node->name();
        return key.node->name() + "[" + std::to_string(key.result) + "]";
    }

    Result<void> addValues() {
        for (const ScheduledValue& value : m_program.values) {
            const TensorType& type = *tensorOf(value.key);
            CT_TRY(const int64_t bytes, bytesAt(type, m_plan.sizes, value.key.node->name()));
            if (value.definedBy < 0) {
                MemoryTotal& total = value.kind == ScheduledValue::Kind::Input ? m_plan.inputs : m_plan.constants;
                ++total.count;
                const ConstantPlace memory = value.kind == ScheduledValue::Kind::Constant
                                                 ? constantPlace(*m_program.module, value.key.node->target())
                                                 : ConstantPlace();
                // A packed weight and the plain one, or parts of one tensor, lie in one memory.
                if (memory.of != nullptr && !m_constants.insert(memory.of).second) continue;
                total.bytes = checkedAdd(total.bytes, memory.bytes > 0 ? memory.bytes : bytes);
                continue;
            }
            MemoryValue shown;
            shown.node = nodeKey(0, value.key.node->id());
            shown.name = nameOfValue(value.key);
            shown.type = type.text();
            shown.bytes = bytes;
            shown.first = value.definedBy;
            shown.last = value.lastUse;
            shown.output = value.kind == ScheduledValue::Kind::Output;
            const bool reference = m_program.calls[static_cast<size_t>(value.definedBy)].kind == CallKind::Reference;
            shown.place = reference ? MemoryValue::Place::Heap : MemoryValue::Place::Arena;
            const auto number = static_cast<size_t>(&value - m_program.values.data());
            m_shownOf[number] = m_plan.values.size();
            Memory memory{value.memoryUntil, std::nullopt};
            if (value.over >= 0) {
                memory.over = m_shownOf.at(static_cast<size_t>(value.over));
                MemoryValue& before = m_plan.values[*memory.over];
                before.last = value.definedBy - 1;
                shown.over = before.name;
            }
            add(std::move(shown), memory);
        }
        return {};
    }

    /// Workspaces: partial results of reductions that are cut into parts; compiled programs have them in the arena.
    Result<void> addWorkspaces() {
        for (size_t at = 0; at < m_program.calls.size(); ++at) {
            const ScheduledCall& call = m_program.calls[at];
            if (call.kind != CallKind::Kernel) continue;
            for (const Workspace& space : m_kernels[m_function.steps[at].kernel].workspace) {
                MemoryValue shown;
                shown.node = nodeKey(0, call.nodes.back());
                shown.name = m_plan.calls[at].name + " workspace";
                const auto known = valueFor(space.count, m_plan.sizes);
                if (!known)
                    return unsupported("the size of " + shown.name + " is known only at run time",
                                       m_plan.calls[at].nodeNames.back());
                const int64_t count = *known;
                shown.type = TensorType::contiguous(space.dtype, {SymInt(count)}).text();
                shown.bytes = checkedMul(count, byteSize(space.dtype));
                shown.first = shown.last = static_cast<int>(at);
                shown.workspace = true;
                add(std::move(shown), {static_cast<int>(at), std::nullopt});
            }
        }
        return {};
    }
    /// `until`: the last call at which the memory is in use. `over`: the value whose memory this one is written over.
    struct Memory {
        int until = 0;
        std::optional<size_t> over;
    };
    void add(MemoryValue value, Memory memory) {
        m_plan.values.push_back(std::move(value));
        m_memory.push_back(memory);
    }
    bool takes(size_t value, MemoryValue::Place where) const {
        return m_plan.values[value].place == where && !m_memory[value].over;
    }
    void placeOverOthers() {
        for (size_t i = 0; i < m_memory.size(); ++i)
            if (m_memory[i].over) m_plan.values[i].offset = m_plan.values[*m_memory[i].over].offset;
    }

    /// Values that lie in slots come in the order in which the host program has them.
    Result<void> takePlaces() {
        CT_TRY(const BoundFunction bound, bindAllMemory(m_function, m_plan.sizes));
        m_plan.arena = bound.arenaBytes();
        std::vector<int64_t> starts(1, 0), places;
        for (const int64_t segment : bound.bytes) starts.push_back(starts.back() + segment);
        for (size_t i = 0; i < m_function.values.size(); ++i) {
            const HostValue& value = m_function.values[i];
            if (value.kind != HostValue::Kind::Slot) continue;
            const size_t segment = m_function.memory[static_cast<size_t>(value.index)].segment;
            places.push_back(starts[segment] + bound.values[i].offset);
        }
        size_t next = 0;
        for (size_t i = 0; i < m_plan.values.size(); ++i)
            if (takes(i, MemoryValue::Place::Arena)) m_plan.values[i].offset = places.at(next++);
        return {};
    }
    /// A picture of the values that have memory of their own: no program places them.
    void placeOwn() {
        std::vector<MemoryBlock> blocks;
        std::vector<size_t> own;
        for (size_t i = 0; i < m_plan.values.size(); ++i)
            if (takes(i, MemoryValue::Place::Heap)) {
                blocks.push_back({m_plan.values[i].bytes, m_plan.values[i].first, m_memory[i].until, 0});
                own.push_back(i);
            }
        m_plan.own = planMemory(blocks, m_program.target->alignment);
        for (size_t i = 0; i < own.size(); ++i) m_plan.values[own[i]].offset = blocks[i].offset;
    }

    void findPeak() {
        const auto calls = static_cast<int>(m_plan.calls.size());
        std::vector<int64_t> change(m_plan.calls.size() + 1);
        for (MemoryValue& value : m_plan.values) {
            value.last = std::min(value.last, calls - 1);  // what is returned lives on behind the last call
            change[static_cast<size_t>(value.first)] += inBlocks(value.bytes);
            change[static_cast<size_t>(value.last) + 1] -= inBlocks(value.bytes);
        }
        int64_t live = 0;
        for (int at = 0; at < calls; ++at) {
            m_plan.live.push_back(live = checkedAdd(live, change[static_cast<size_t>(at)]));
            if (m_plan.peak < 0 || live > m_plan.largestLive()) m_plan.peak = at;
        }
    }

    const ScheduledProgram& m_program;
    const std::vector<HostKernel>& m_kernels;
    const HostFunction& m_function;
    const ScheduledGraph& m_scheduled;
    MemoryPlan m_plan;
    std::vector<Memory> m_memory;        // of m_plan.values
    std::map<size_t, size_t> m_shownOf;  // from the program's values to those
    std::set<const void*> m_constants;   // memory that is counted; membership only
};

Result<MemoryPlan> planOf(const ChosenProgram& chosen, const ScheduledGraph& scheduled) {
    const PlannedProgram& program = *chosen.program;
    if (program.whyNoHost) return *program.whyNoHost;
    const ScheduledProgram& graph = program.graphs[scheduled.graph];
    return withCheckedSizes("the memory plan", {}, [&]() -> Result<MemoryPlan> {
        if (!chosen.allSizes) return MemoryPlanner(program, scheduled, chosen.sizes).run();
        const SymbolValues assumed =
            assumedSizes(program.host.functions[program.functionOf(scheduled.graph)], hintedSymbols(*graph.module));
        SymbolValues sizes;
        CT_TRY_VOID(withNumbers(graph.module, nullptr, sizes, assumed));
        CT_TRY(MemoryPlan plan, MemoryPlanner(program, scheduled, std::move(sizes)).run());
        for (const auto& [symbol, number] : assumed) plan.assumed.insert(symbol);
        return plan;
    });
}

}  // namespace

std::string_view nameOf(MemoryMaker maker) {
    switch (maker) {
        case MemoryMaker::Kernel: return "kernel";
        case MemoryMaker::Library: return "library";
        case MemoryMaker::Reference: break;
    }
    return "fallback";
}

std::vector<size_t> livingAt(const MemoryPlan& plan, int call) {
    std::vector<size_t> living;
    for (size_t i = 0; i < plan.values.size(); ++i)
        if (plan.values[i].first <= call && call <= plan.values[i].last) living.push_back(i);
    std::stable_sort(living.begin(), living.end(),
                     [&](size_t a, size_t b) { return plan.values[a].bytes > plan.values[b].bytes; });
    return living;
}

Result<std::vector<MemoryPlan>> memoryPlans(Session& session, RunId id, const Progress& progress) {
    return guarded([&]() -> Result<std::vector<MemoryPlan>> {
        CT_TRY(Session::State::Run * run, session.state().run(id));
        CT_TRY(const auto chosen, chosenProgram(*run, {}, progress));
        std::vector<MemoryPlan> plans;
        for (const ScheduledGraph& scheduled : scheduledGraphs(run->trace)) {
            CT_TRY(MemoryPlan plan, planOf(*chosen, scheduled));
            plans.push_back(std::move(plan));
        }
        return plans;
    });
}

}  // namespace cutaway
