#include "engine/schedule/schedule.h"

#include "engine/interpret/higher_order.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/verify.h"
#include "engine/libraries/choose.h"
#include "engine/libraries/operations.h"
#include "engine/loops/kernel_rules.h"
#include "engine/ops/alias.h"
#include "engine/ops/executorch.h"
#include "engine/rewrite/dead_code.h"
#include "engine/schedule/fusion.h"
#include "engine/schedule/reuse.h"
#include "engine/schedule/traffic.h"
#include "engine/support/checked.h"
#include "engine/support/saturated.h"
#include "engine/tensor/tensor.h"

namespace cutaway {
namespace {

using Role = NodeFacts::Role;

/// The module with a schedule that no fuel limits. `empty`: one in which nothing is decided.
Result<std::shared_ptr<const Module>> scheduledAlike(std::shared_ptr<const Module> module, const Schedule& empty,
                                                     const Progress& progress) {
    const TargetInfo& target = empty.target;
    if (const Schedule* schedule = Schedule::of(*module)) {
        if (schedule->target == target) return module;
        return unsupported("the schedule is for " + std::string(schedule->target.name.text) + ", and " +
                               std::string(target.name.text) + " is wanted",
                           {}, {"compile the model for the other target"});
    }
    auto copy = std::make_shared<Module>(*module);
    const CompileRequest options;
    const auto run = [&](Result<bool> (*pass)(Module&, Rewriter&)) {
        Rewriter rewriter("schedule", options, {}, progress.cancel.get());
        return pass(*copy, rewriter);
    };
    CT_TRY_VOID(run(eliminateDeadCode));
    CT_TRY_VOID(checkSchedulable(*copy, empty));
    copy->plan = std::make_shared<Schedule>(empty);
    for (const auto pass : {viewReshapes, chooseLibraries, fuseNodes, reuseMemory}) CT_TRY_VOID(run(pass));
    return std::shared_ptr<const Module>(std::move(copy));
}

/// The graphs that a call runs. Errors: one that the module does not have.
Result<std::vector<std::pair<std::string, const Module*>>> bodiesOf(const Module& module, const Node& call) {
    std::vector<std::pair<std::string, const Module*>> bodies;
    if (!isHigherOrder(call.op().name())) return bodies;
    for (const Argument& argument : call.args()) {
        const auto* reference = argument.get<SubgraphRef>();
        if (reference == nullptr) continue;
        const Module* const body = module.subgraph(reference->name);
        if (body == nullptr)
            return invalidInput(call.op().name() + ": graph '" + reference->name + "' is not in the file", call.name());
        bodies.emplace_back(reference->name, body);
    }
    return bodies;
}

/// A call that no kernel computes has a function, at least the interpreter's.
Result<void> checkComputable(const Node& node) {
    if (isHigherOrder(node.op().name())) return {};  // its graphs are asked
    const Op* base = node.op().functional() ? node.op().functional() : &node.op();
    if (base->def() && base->def()->eval) return {};
    return unsupported(
        node.op().name() + " cannot be compiled: it has neither a lowering rule nor a kernel", node.name(),
        {node.op().isOpaque() ? std::string(adviceOnUnknown(node.op()))
                              : "run the pass decompose (stage capture), which writes the op as smaller ones"});
}

class Scheduler {
  public:
    Scheduler(std::shared_ptr<const Module> module, bool plans)
        : m_plans(plans), m_schedule(*Schedule::of(*module)), m_grouping(groupsOf(module->graph(), m_schedule)) {
        m_hints = hintedSymbols(*module);
        m_program.module = std::move(module);
        m_program.target = &m_schedule.target;
        m_program.memo = m_schedule.memo;
        for (const FusionDecision& decision : m_grouping.decisions) {
            m_sentences[decision.producer].push_back(&decision);
            m_sentences[decision.consumer].push_back(&decision);
        }
    }

    Result<ScheduledProgram> run() {
        makeUnits();
        for (size_t unit : order()) CT_TRY_VOID(emit(m_units[unit]));
        findLifetimes();
        return std::move(m_program);
    }

  private:
    struct Unit {
        int group = -1;
        const Node* node = nullptr;
        int position = 0;
        std::set<size_t> needs;
    };
    const Graph& graph() const { return m_program.module->graph(); }
    const NodeFacts& facts(const Node& node) const { return m_grouping.of(node); }

    void makeUnits() {
        std::map<int, size_t> unitOfGroup;
        std::map<NodeId, size_t> unitOfNode;
        for (const Node& node : graph().nodes()) {
            const NodeFacts& nodeFacts = facts(node);
            if (nodeFacts.role == Role::Lowered) {
                auto [slot, fresh] = unitOfGroup.emplace(nodeFacts.group, m_units.size());
                if (fresh) m_units.push_back({nodeFacts.group, nullptr, nodeFacts.position, {}});
                m_units[slot->second].position = nodeFacts.position;
                unitOfNode[node.id()] = slot->second;
            } else if (nodeFacts.role == Role::External) {
                unitOfNode[node.id()] = m_units.size();
                m_units.push_back({-1, &node, nodeFacts.position, {}});
            }
        }
        for (const Node& node : graph().nodes()) {
            auto unit = unitOfNode.find(node.id());
            if (unit == unitOfNode.end()) continue;
            addNeeds(node, unit->second, unitOfNode);
        }
    }
    /// Units that compute what the node reads, through aliases and free nodes, and that run before it (MemoryOrder).
    void addNeeds(const Node& node, size_t unit, const std::map<NodeId, size_t>& unitOfNode) {
        for (const Node* earlier : m_grouping.memory->before(node)) {
            const auto needed = unitOfNode.find(earlier->id());
            if (needed == unitOfNode.end()) addNeeds(*earlier, unit, unitOfNode);
            else if (needed->second != unit) m_units[unit].needs.insert(needed->second);
        }
        for (const Node* input : node.inputs()) {
            const auto found = unitOfNode.find(input->id());
            if (found == unitOfNode.end()) addNeeds(*input, unit, unitOfNode);
            else if (found->second != unit) m_units[unit].needs.insert(found->second);
        }
    }
    /// The units in an order that respects what they need; of those that are ready, the first in the graph comes next.
    std::vector<size_t> order() {
        std::vector<std::vector<size_t>> readers(m_units.size());
        std::vector<size_t> missing(m_units.size());
        std::set<std::pair<int, size_t>> ready;
        for (size_t i = 0; i < m_units.size(); ++i) {
            missing[i] = m_units[i].needs.size();
            for (size_t need : m_units[i].needs) readers[need].push_back(i);
            if (missing[i] == 0) ready.emplace(m_units[i].position, i);
        }
        std::vector<size_t> result;
        while (!ready.empty()) {
            const size_t unit = ready.begin()->second;
            ready.erase(ready.begin());
            result.push_back(unit);
            for (size_t reader : readers[unit])
                if (--missing[reader] == 0) ready.emplace(m_units[reader].position, reader);
        }
        CT_CHECK(result.size() == m_units.size(), "fusion keeps the graph of groups free of cycles");
        return result;
    }

    int64_t elements(const SymDims& sizes) const {
        int64_t count = 1;
        for (const SymInt& size : sizes) count = saturatedProduct({count, likelyValue(size, m_hints)});
        return count;
    }

    Result<void> emit(const Unit& unit) { return unit.node ? emitExternal(*unit.node) : emitKernel(unit.group); }

    Result<void> emitExternal(const Node& node) {
        ScheduledCall call;
        call.node = &node;
        call.nodes = {node.id()};
        const auto chosen = m_schedule.libraries.find(node.id());
        const LibraryRow* const row = chosen == m_schedule.libraries.end() ? nullptr : chosen->second;
        call.kind = row == nullptr ? CallKind::Reference : CallKind::Library;
        call.library = row;
        if (m_plans) CT_TRY_VOID(scheduleBodies(node));
        const bool graphs = isHigherOrder(node.op().name());
        call.description = graphs                        ? "graphs: " + std::string(node.op().baseName())
                           : row == nullptr              ? "reference: " + node.op().name()
                           : &row->library == &kPortable ? libraryText(*row, node, m_schedule.target)
                                                         : "library: " + libraryText(*row, node, m_schedule.target);
        if (row == nullptr) CT_TRY_VOID(checkComputable(node));
        const std::string& why = facts(node).rule.whyNot;
        call.reasons.push_back(node.name() + ": not fused, " +
                               (row == nullptr || row->isFunction() ? why : "the library's own kernel is faster"));
        auto add = [&](int64_t& bytes, const ValueType& type) {
            if (const TensorType* tensor = type.tensor())
                addSaturated(bytes, {elements(tensor->sizes), byteSize(tensor->dtype)});
        };
        for (const Node* input : node.inputs()) add(call.bytesRead, input->type());
        add(call.bytesWritten, node.type());
        if (const TupleType* tuple = node.type().tuple())
            for (const ValueType& item : *tuple) add(call.bytesWritten, item);
        addSaturated(call.bytesSpanned, {call.bytesRead});
        addSaturated(call.bytesSpanned, {call.bytesWritten});
        call.flops = operationsOf(node, [this](const SymInt& size) { return likelyValue(size, m_hints); });
        const size_t results = node.type().tuple() ? node.type().tuple()->size() : 1;
        for (size_t r = 0; r < results; ++r) define({&node, r});
        if (const auto found = m_schedule.reuses.find({node.id(), 0}); found != m_schedule.reuses.end())
            if (const Node* over = graph().find(found->second.first)) m_over[{&node, 0}] = {over, found->second.second};
        m_program.calls.push_back(std::move(call));
        return {};
    }
    Result<void> scheduleBodies(const Node& node) {
        CT_TRY(const auto bodies, bodiesOf(*m_program.module, node));
        Schedule like(m_schedule.target);
        like.roundsHalves = m_schedule.roundsHalves;
        like.memo = m_schedule.memo;
        for (const auto& [name, body] : bodies) {
            if (m_program.bodies.contains(name)) continue;
            CT_TRY(std::shared_ptr<const Module> planned,
                   scheduledAlike(std::shared_ptr<const Module>(m_program.module, body), like, {}));
            if (m_schedule.forExport) planned = forExport(planned);
            CT_TRY(ScheduledProgram program, scheduleModule(std::move(planned), m_schedule.target));
            m_program.bodies[name] = std::make_shared<const ScheduledProgram>(std::move(program));
        }
        return {};
    }
    /// What a call of a kernel is whatever values it is called for: groups that are alike are worked out once.
    struct Emitted {
        std::shared_ptr<const Kernel> draft;  // its address is the key
        size_t kernel = 0;                    // index into ScheduledProgram::kernels
        std::vector<size_t> bindings;         // of its buffers, by their places among the draft's
        std::vector<bool> written;
        std::vector<int64_t> reads;  // elements of each buffer
        bool reduces = false;
    };
    /// Of a draft's buffers the results that are written over operands.
    using Overs = std::vector<std::pair<size_t, size_t>>;

    Result<void> emitKernel(int groupNumber) {
        const FusionGroup& group = m_grouping.groups[static_cast<size_t>(groupNumber)];
        const BuiltKernel built = buildKernel(m_grouping, group);
        if (!built.problem.empty()) return Error{ErrorCode::Internal, built.problem, group.members[0]->name(), {}};
        const Overs overs = writtenOver(built.bindings);
        const Emitted& emitted = emittedAs(built, overs);
        ScheduledCall call;
        for (const size_t at : emitted.bindings) call.bindings.push_back(built.bindings[at]);
        call.description = emitted.reduces ? "reduction" : "pointwise";
        for (const Node* member : group.members) {
            call.nodes.push_back(member->id());
            addSaturated(call.flops, {facts(*member).rule.cost, elements(group.space.sizes)});
        }
        addReasons(call);
        if (call.reasons.empty())
            call.reasons.push_back(group.members[0]->name() +
                                   ": nothing to fuse with, its operands and readers are not computed by kernels");
        for (size_t i = 0; i < call.bindings.size(); ++i) {
            const TensorType& type = *tensorOf(call.bindings[i]);
            const bool written = emitted.written[i];
            const int64_t all = elements(type.sizes), size = byteSize(type.dtype);
            addSaturated(call.bytesSpanned, {all, size});
            if (written) addSaturated(call.bytesWritten, {all, size});
            if (!written || m_over.contains(call.bindings[i]))
                addSaturated(call.bytesRead, {std::min(all, emitted.reads[i]), size});
            if (written) define(call.bindings[i]);
        }
        call.kernel = emitted.kernel;
        m_program.calls.push_back(std::move(call));
        return {};
    }
    Overs writtenOver(const std::vector<ValueKey>& bindings) {
        Overs overs;
        for (size_t result = 0; result < bindings.size(); ++result) {
            const auto found = m_schedule.reuses.find({bindings[result].node->id(), bindings[result].result});
            if (found == m_schedule.reuses.end()) continue;
            for (size_t operand = 0; operand < bindings.size(); ++operand)
                if (std::pair(bindings[operand].node->id(), bindings[operand].result) == found->second) {
                    overs.emplace_back(result, operand);
                    m_over[bindings[result]] = bindings[operand];
                }
        }
        return overs;
    }
    const Emitted& emittedAs(const BuiltKernel& built, const Overs& overs) {
        const auto [slot, fresh] = m_emitted.try_emplace({built.kernel.get(), overs});
        Emitted& emitted = slot->second;
        if (!fresh) return emitted;
        emitted.draft = built.kernel;
        Kernel kernel = *built.kernel;
        std::vector<ValueKey> bindings = built.bindings;
        for (const auto& [result, operand] : overs) {
            const ValueKey& written = built.bindings[result];
            writeOver(kernel, bindings, written, built.bindings[operand]);
            const auto at = std::find(bindings.begin(), bindings.end(), written) - bindings.begin();
            for (KernelStore& store : kernel.stores)
                if (store.buffer == at) store.value = spoiled(store.value, "reuse", written.node->op());
        }
        for (const ValueKey& key : bindings)
            emitted.bindings.push_back(static_cast<size_t>(
                std::find(built.bindings.begin(), built.bindings.end(), key) - built.bindings.begin()));
        const std::vector<std::string> rules =
            m_plans ? applyKernelRules(kernel, m_schedule.target) : std::vector<std::string>();
        emitted.reduces = !reductionsOf(kernel).empty();
        emitted.reads = elementsRead(kernel, [this](const SymInt& size) { return likelyValue(size, m_hints); });
        for (const KernelBuffer& buffer : kernel.buffers) emitted.written.push_back(buffer.written);
        emitted.kernel = kernelOf(std::move(kernel), rules);
        return emitted;
    }
    /// The kernel's number in the program. Kernels of the same structure are one.
    size_t kernelOf(Kernel kernel, const std::vector<std::string>& rules) {
        const size_t next = m_program.kernels.size();
        kernel.name = "kernel" + std::to_string(next);
        if (!m_plans) {
            m_program.kernels.push_back({std::move(kernel), {}});
            return next;
        }
        const auto [slot, fresh] = m_kernelOf.emplace(structureKey(kernel), next);
        if (fresh) {
            LoopPlan plan = choosePlan(kernel, m_schedule.target);
            plan.why.insert(plan.why.begin(), rules.begin(), rules.end());
            m_program.kernels.push_back({std::move(kernel), std::move(plan)});
        }
        return slot->second;
    }
    /// What was decided of the kernel's nodes, in the order in which it was.
    void addReasons(ScheduledCall& call) const {
        std::set<const FusionDecision*> said;
        for (const NodeId node : call.nodes)
            if (const auto about = m_sentences.find(node); about != m_sentences.end())
                said.insert(about->second.begin(), about->second.end());
        for (const FusionDecision* decision : said) call.reasons.push_back(decision->sentence);
    }

    void define(const ValueKey& key) {
        if (tensorOf(key) == nullptr) return;
        ScheduledValue value;
        value.key = key;
        value.definedBy = value.lastUse = static_cast<int>(m_program.calls.size());
        m_program.values.push_back(value);
    }

    void findLifetimes() {
        std::vector<ScheduledValue> values;
        size_t position = 0;
        for (const Node& node : graph().nodes())
            if (!node.isCall() && !node.isOutput() && node.type().tensor()) {
                const auto kind = node.isPlaceholder() ? ScheduledValue::Kind::Input : ScheduledValue::Kind::Constant;
                values.push_back({{&node, 0}, kind, node.isPlaceholder() ? position++ : 0, -1, -1});
            } else if (node.isPlaceholder()) {
                ++position;
            }
        values.insert(values.end(), m_program.values.begin(), m_program.values.end());
        std::map<ValueKey, size_t> slot;
        for (size_t i = 0; i < values.size(); ++i) slot.emplace(values[i].key, i);
        auto use = [&](const ValueKey& key, int at) {
            if (auto found = slot.find(key); found != slot.end())
                values[found->second].lastUse = std::max(values[found->second].lastUse, at);
        };
        const int calls = static_cast<int>(m_program.calls.size());
        for (int at = 0; at < calls; ++at) {
            const ScheduledCall& call = m_program.calls[static_cast<size_t>(at)];
            for (const ValueKey& key : call.bindings) use(key, at);
            if (call.node == nullptr) continue;
            for (const Node* input : call.node->inputs()) {
                use(rootOf(*input), at);
                if (const TupleType* tuple = input->type().tuple())
                    for (size_t r = 0; r < tuple->size(); ++r) use({input, r}, at);
            }
        }
        if (const Node* output = graph().outputNode())
            for (const Node* input : output->inputs()) {
                auto keep = [&](const ValueKey& key) {
                    if (auto found = slot.find(key); found != slot.end()) {
                        values[found->second].lastUse = calls;
                        if (values[found->second].kind == ScheduledValue::Kind::Temporary)
                            values[found->second].kind = ScheduledValue::Kind::Output;
                    }
                };
                keep(rootOf(*input));
                if (const TupleType* tuple = input->type().tuple())
                    for (size_t r = 0; r < tuple->size(); ++r) keep({input, r});
            }
        for (ScheduledValue& value : values) value.memoryUntil = value.lastUse;
        for (size_t i = 0; i < values.size(); ++i) {
            const auto over = m_over.find(values[i].key);
            if (over == m_over.end()) continue;
            values[i].over = static_cast<int>(slot.at(over->second));
            // Values stand in the order in which they are made.
            for (int base = values[i].over; base >= 0; base = values[static_cast<size_t>(base)].over) {
                int& until = values[static_cast<size_t>(base)].memoryUntil;
                until = std::max(until, values[i].lastUse);
            }
        }
        m_program.values = std::move(values);
    }

    bool m_plans;
    const Schedule& m_schedule;  // the module's
    Grouping m_grouping;
    std::map<NodeId, std::vector<const FusionDecision*>> m_sentences;
    ScheduledProgram m_program;
    std::vector<Unit> m_units;
    std::map<std::pair<const Kernel*, Overs>, Emitted> m_emitted;  // lookups only, never iterated
    std::map<std::string, size_t> m_kernelOf;
    std::map<ValueKey, ValueKey> m_over;  // what is written over what
    SymbolValues m_hints;
};

/// Kernels read views at addresses without bounds checks, so views that lead outside of their memory are refused here.
Result<void> checkViews(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
        if (!node.isCall() || !node.is(Tag::View) || node.op().mutates()) continue;
        const TensorType* root = tensorOf(rootOf(node));
        if (root == nullptr || !allInts(root->sizes) || !allInts(root->strides) || !root->offset.isInt()) continue;
        const size_t results = node.type().tuple() ? node.type().tuple()->size() : 1;
        CT_TRY_VOID(withCheckedSizes(node.op().name(), node.name(), [&]() -> Result<void> {
            const int64_t bytes = checkedMul(extent(toInts(root->sizes), toInts(root->strides)), byteSize(root->dtype));
            for (size_t r = 0; r < results; ++r) {
                const TensorType* view = tensorOf({&node, r});
                if (view == nullptr || !allInts(view->sizes) || !allInts(view->strides) || !view->offset.isInt())
                    continue;
                const int64_t skipped = checkedMul(root->offset.value(), byteSize(root->dtype)) / byteSize(view->dtype);
                const int64_t reached =
                    extent(toInts(view->sizes), toInts(view->strides), checkedSub(view->offset.value(), skipped));
                if (reached > bytes / byteSize(view->dtype))
                    return invalidInput(node.op().name() + ": reaches element " + std::to_string(reached - 1) +
                                            " of '" + rootOf(node).node->name() + "', which has " +
                                            std::to_string(bytes / byteSize(view->dtype)),
                                        node.name());
            }
            return {};
        }));
    }
    return {};
}

}  // namespace

Result<void> checkSchedulable(const Module& module, const Schedule& schedule) {
    CT_TRY_VOID(checkCalls(module, Calls::Computable));
    CT_TRY_VOID(checkViews(module.graph()));
    const std::vector<NodeFacts> facts = classify(module.graph(), schedule);
    for (const Node& node : module.graph().nodes())
        if (facts[index(node.id())].role == NodeFacts::Role::External) {
            if (libraryRowOf(node, schedule.target) == nullptr) CT_TRY_VOID(checkComputable(node));
            CT_TRY(const auto bodies, bodiesOf(module, node));
            for (const auto& body : bodies) CT_TRY_VOID(checkSchedulable(*body.second, schedule));
        }
    return {};
}

Result<std::shared_ptr<const Module>> scheduled(std::shared_ptr<const Module> module, const TargetInfo& target,
                                                const Progress& progress) {
    return scheduledAlike(std::move(module), Schedule(target), progress);
}

Result<ScheduledProgram> scheduleModule(std::shared_ptr<const Module> module, const TargetInfo& target,
                                        const Progress& progress) {
    return withCheckedSizes("the schedule", {}, [&]() -> Result<ScheduledProgram> {
        CT_TRY(module, scheduled(std::move(module), target, progress));
        CT_TRY_VOID(checkViews(module->graph()));
        if (progress.cancelled()) return Error{ErrorCode::Cancelled, "cancelled", "", {}};
        return Scheduler(std::move(module), true).run();
    });
}

Result<ScheduledProgram> scheduleCalls(std::shared_ptr<const Module> module) {
    CT_CHECK(Schedule::of(*module), "only what has a schedule is asked for its calls");
    return withCheckedSizes("the schedule", {}, [&]() -> Result<ScheduledProgram> {
        CT_TRY_VOID(checkViews(module->graph()));
        return Scheduler(std::move(module), false).run();
    });
}

}  // namespace cutaway
