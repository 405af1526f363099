// The partition of a training run: what is saved, at any memory budget, and why.
#include <chrono>
#include <map>

#include "engine/partition/explain_partition.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"
#include "engine/plugins/plugin_passes.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// What a memory budget means for a run's joint graph.
struct PartitionAtBudget {
    SavedValues saved;
    SplitGraph split;
    Sides sides;
};

namespace {

/// The step that split the graph. Errors: none did, with the reason.
Result<const Step*> splitStep(const CompileTrace& trace) {
    if (const Step* found = splitStepOf(trace)) return found;
    for (const Step& step : trace.steps)
        if (step.info.state == StepState::Failed)
            return Error{ErrorCode::NotFound,
                         "the run failed before the graph was split: " + step.info.error,
                         "step " + step.info.name,
                         {}};
    if (trace.request.mode != Mode::Training)
        return Error{ErrorCode::NotFound,
                     "only a run for training is split into forward and backward",
                     {},
                     {"compile with --mode training"}};
    return Error{ErrorCode::NotFound, "the stages of this run do not split the graph", {}, {"compile without --only"}};
}

Result<PartitionAtBudget> partitionWith(Partitioner& partitioner, double budget) {
    PartitionAtBudget out;
    CT_TRY(out.saved, partitioner.choose(budget));
    CT_TRY(out.split, partitioner.split(out.saved));
    out.sides = sidesOf(partitioner.facts(), out.split);
    return out;
}

/// The partitioner of the run's joint graph, and the lock that is held while it is used.
struct Chooser {
    std::unique_lock<std::mutex> turn;
    Session::State::Run* run = nullptr;

    Partitioner& partitioner() const { return *run->partitioner; }
    const JointFacts& facts() const { return run->partitioner->facts(); }
    /// At the run's own budget, which is chosen once for all who ask.
    Result<std::shared_ptr<const PartitionAtBudget>> own() const {
        if (!run->partition) {
            CT_TRY(PartitionAtBudget made, partitionWith(partitioner(), partitioner().options().budget));
            run->partition = std::make_shared<const PartitionAtBudget>(std::move(made));
        }
        return run->partition;
    }
};
Result<Chooser> chooserOf(Session::State& state, RunId id) {
    Chooser chooser;
    CT_TRY(chooser.run, state.run(id));
    CT_TRY(const Step* step, splitStep(chooser.run->trace));
    chooser.turn = std::unique_lock(chooser.run->choosing);
    if (!chooser.run->partitioner) {
        PassContext context(chooser.run->trace.request, &chooser.run->trace.hooks);
        context.replay(step->measurements);
        CT_TRY(chooser.run->partitioner,
               Partitioner::make(*step->before, withSizeHints(std::move(context), *step->before)));
    }
    return chooser;
}

SavedTensor describe(const JointFacts& facts, int value, std::string why) {
    const JointNode& fact = facts[value];
    SavedTensor out;
    out.node = nodeKey(0, fact.node->id());
    out.name = fact.node->name();
    out.op = fact.node->isCall() ? fact.node->op().name() : fact.node->isPlaceholder() ? "placeholder" : "get_attr";
    if (const TensorType* tensor = fact.node->type().tensor()) {
        out.type = tensor->text();
        out.dtype = info(tensor->dtype).torchName;
        for (const SymInt& size : tensor->sizes) out.sizes.push_back(size.text());
    } else if (const SymType* number = fact.node->type().sym()) {
        out.type = fact.node->type().text();
        out.dtype = info(number->dtype).torchName;
    }
    out.bytes = fact.bytes;
    out.input = fact.forwardInput;
    out.why = std::move(why);
    return out;
}

PartitionChoice describe(const JointFacts& facts, const PartitionAtBudget& choice) {
    PartitionChoice out;
    out.budget = choice.saved.budget;
    out.attempt = choice.saved.attempt;
    out.recomputedRuntime = choice.saved.recomputedRuntime;
    for (const std::vector<int>* group : {&choice.split.saved.values, &choice.split.saved.numbers})
        for (const int value : *group) {
            out.saved.push_back(describe(facts, value, explainSide(facts, choice.saved, choice.sides, value)));
            out.savedBytes += facts[value].bytes;
            if (!facts[value].forwardInput) out.activationBytes += facts[value].bytes;
        }
    for (size_t i = 0; i + 1 < facts.nodes.size(); ++i)
        if (choice.sides.forward[i] && choice.sides.backward[i] && !choice.sides.saved[i] &&
            facts.nodes[i].node->isCall())
            out.recomputed.push_back(nodeKey(0, facts.nodes[i].node->id()));
    return out;
}

/// `known`: the partition at this budget, if it was chosen before.
Result<PartitionChoice> choiceAt(Partitioner& partitioner, double budget,
                                 std::shared_ptr<const PartitionAtBudget> partitionAtBudget = nullptr) {
    const auto start = std::chrono::steady_clock::now();
    if (!partitionAtBudget) {
        CT_TRY(PartitionAtBudget made, partitionWith(partitioner, budget));
        partitionAtBudget = std::make_shared<const PartitionAtBudget>(std::move(made));
    }
    PartitionChoice out = describe(partitioner.facts(), *partitionAtBudget);
    if (budget == 0) {
        CT_TRY(out.recomputedRuntime, partitioner.allRecomputed());
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return out;
}

/// What the model calls the inputs among them, whose nodes are numbered: primals_3.
Result<PartitionChoice> named(Result<PartitionChoice> choice, const CompileTrace& trace) {
    const Step* split = splitStepOf(trace);
    if (!choice || !split) return choice;
    std::map<NodeKey, const std::string*> names;
    const std::vector<Node*> placeholders = split->before->graph().placeholders();
    for (size_t i = 0; i < placeholders.size() && i < split->before->inputs.size(); ++i) {
        const InputSpec& spec = split->before->inputs[i];
        using Kind = InputSpec::Kind;
        if (spec.kind == Kind::Parameter || spec.kind == Kind::Buffer || spec.kind == Kind::Constant)
            names.emplace(nodeKey(0, placeholders[i]->id()), &spec.target);
    }
    for (SavedTensor& saved : choice->saved)
        if (const auto found = names.find(saved.node); found != names.end()) saved.tensor = *found->second;
    return choice;
}

bool sameCost(const BudgetPoint& a, const BudgetPoint& b) {
    return a.activationBytes == b.activationBytes && a.recomputedRuntime == b.recomputedRuntime &&
           a.recomputed == b.recomputed;
}

}  // namespace

Result<PartitionChoice> Session::partition(RunId id, const Progress&) {
    return guarded([&]() -> Result<PartitionChoice> {
        CT_TRY(const Chooser chooser, chooserOf(*m_state, id));
        CT_TRY(auto own, chooser.own());
        const double budget = own->saved.budget;
        return named(choiceAt(chooser.partitioner(), budget, std::move(own)), chooser.run->trace);
    });
}

Result<PartitionChoice> Session::partitionAt(RunId id, double budget, const Progress&) {
    return guarded([&]() -> Result<PartitionChoice> {
        CT_TRY(const Chooser chooser, chooserOf(*m_state, id));
        return named(choiceAt(chooser.partitioner(), budget), chooser.run->trace);
    });
}

Result<std::vector<BudgetPoint>> Session::budgetCurve(RunId id, const Progress& progress) {
    return guarded([&]() -> Result<std::vector<BudgetPoint>> {
        const auto pointAt = [&](double budget) -> Result<BudgetPoint> {
            // One at a time, so that a slider need not wait for the whole curve.
            CT_TRY(const Chooser chooser, chooserOf(*m_state, id));
            CT_TRY(const PartitionChoice choice, choiceAt(chooser.partitioner(), budget));
            return BudgetPoint{budget, choice.activationBytes, choice.recomputedRuntime, choice.recomputed.size()};
        };
        CT_TRY(const BudgetPoint least, pointAt(0));
        CT_TRY(const BudgetPoint most, pointAt(1));
        std::vector<BudgetPoint> points = {least};
        // Halves each stretch whose ends differ, down to a thousandth, as PyTorch's plot does.
        std::vector<std::pair<BudgetPoint, BudgetPoint>> open = {{least, most}};
        while (!open.empty()) {
            if (progress.cancelled()) return Error{ErrorCode::Cancelled, "the curve was cancelled", {}, {}};
            const auto [low, high] = open.back();
            open.pop_back();
            if (sameCost(low, high)) continue;
            if (high.budget - low.budget < 1e-3) {
                points.push_back(high);
                continue;
            }
            CT_TRY(const BudgetPoint middle, pointAt((low.budget + high.budget) / 2));
            open.emplace_back(middle, high);
            open.emplace_back(low, middle);
            progress.say(low.budget, "memory budgets");
        }
        return points;
    });
}

Result<RunId> Session::deriveWithBudget(RunId id, double budget, const CompileHooks& hooks,
                                        const std::function<void(const StepInfo&)>& ended, const Progress& progress) {
    return guarded([&]() -> Result<RunId> {
        CT_TRY(const State::Run* run, std::as_const(*m_state).run(id));
        CT_TRY(const Step* split, splitStep(run->trace));
        CompileRequest request = run->trace.request;
        request.memoryBudget = budget;
        CT_TRY_VOID(checkRequest(request));
        CompileHooks lent = hooks;
        CT_TRY_VOID(lendPlugins(request, lent));
        return m_state->finish(deriveRun(run->trace, split->info.index, request, lent, ended, progress));
    });
}

Result<std::vector<NodeSide>> Session::sides(RunId id, const Progress&) {
    return guarded([&]() -> Result<std::vector<NodeSide>> {
        CT_TRY(const Chooser chooser, chooserOf(*m_state, id));
        CT_TRY(const auto choice, chooser.own());
        const JointFacts& facts = chooser.facts();
        std::vector<NodeSide> out;
        for (size_t i = 0; i + 1 < facts.nodes.size(); ++i) {
            const bool forward = choice->sides.forward[i], backward = choice->sides.backward[i];
            if (!forward && !backward) continue;
            const bool saved = choice->sides.saved[i];
            out.push_back({nodeKey(0, facts.nodes[i].node->id()),
                           forward && backward && !saved ? Side::Both
                           : forward                     ? Side::Forward
                                                         : Side::Backward,
                           saved});
        }
        return out;
    });
}

Result<std::string> Session::explainPartition(RunId id, NodeKey node, const Progress&) {
    return guarded([&]() -> Result<std::string> {
        CT_TRY(const Chooser chooser, chooserOf(*m_state, id));
        const JointFacts& facts = chooser.facts();
        const bool inMain = graphOf(node) == 0;
        const size_t slot = index(nodeOf(node));
        const int number = inMain && slot < facts.atId.size() ? facts.atId[slot] : -1;
        if (number < 0 || number + 1 == static_cast<int>(facts.nodes.size()))
            return Error{ErrorCode::NotFound, "the node is not in the joint graph that was split", {}, {}};
        CT_TRY(const auto choice, chooser.own());
        return explainSide(facts, choice->saved, choice->sides, number);
    });
}

Result<std::vector<SavedBytes>> Session::heldBytes(RunId id, const Progress&) {
    return guarded([&]() -> Result<std::vector<SavedBytes>> {
        CT_TRY(const Chooser chooser, chooserOf(*m_state, id));
        CT_TRY(const auto choice, chooser.own());
        const JointFacts& facts = chooser.facts();
        std::map<NodeId, int64_t> held;  // activations; inputs are there anyway
        for (const int value : choice->split.saved.values)
            if (!facts[value].forwardInput) held.emplace(facts[value].node->id(), facts[value].bytes);
        std::vector<SavedBytes> out;
        int64_t bytes = 0;
        for (const Node& node : choice->split.forward->graph().nodes()) {
            const auto saved = held.find(node.id());
            if (saved != held.end()) bytes += saved->second;
            if (node.isCall()) out.push_back({nodeKey(0, node.id()), node.name(), false, bytes});
        }
        std::map<NodeId, const Node*> last;  // reader of each saved value
        const Graph& backward = choice->split.backward->graph();
        for (const Node& node : backward.nodes())
            for (const Node* input : node.inputs())
                if (held.contains(input->id())) last[input->id()] = &node;
        for (const Node& node : backward.nodes()) {
            for (const Node* input : node.inputs())
                if (const auto found = last.find(input->id()); found != last.end() && found->second == &node)
                    bytes -= held[input->id()];
            if (node.isCall()) out.push_back({nodeKey(0, node.id()), node.name(), true, bytes});
        }
        return out;
    });
}

}  // namespace cutaway
