#include "engine/session/chosen_program.h"

#include <algorithm>

#include "engine/partition/join_graphs.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr std::string_view kHalves[] = {"forward", "backward"};

/// Loops in the schedule of the module have the graph's symbolic sizes; replaces these by numbers, too.
void fixLoops(Module& module, const SymbolValues& values) {
    const Schedule* schedule = Schedule::of(module);
    if (schedule == nullptr) return;
    auto fixed = std::make_shared<Schedule>(*schedule);
    for (Schedule::Group& group : fixed->groups)
        for (SymInt& size : group.space.sizes)
            if (const auto number = valueFor(size, values)) size = *number;
    module.plan = std::move(fixed);
}

bool refuses(const Error& error) {
    return error.code == ErrorCode::Unsupported || error.code == ErrorCode::InvalidInput;
}

/// The graphs with numbers; a backward has its forward's.
Result<std::vector<Snapshot>> allWithNumbers(std::vector<Snapshot> graphs, const SizeRequest& wanted,
                                             SymbolValues& sizes) {
    CT_TRY(graphs[0], withNumbers(graphs[0], wanted.inputs, sizes, wanted.known));
    SymbolValues all = wanted.known;
    all.insert(sizes.begin(), sizes.end());
    for (size_t i = 1; i < graphs.size(); ++i) {
        SymbolValues behind;
        CT_TRY(graphs[i], withNumbers(graphs[i], nullptr, behind, all));
    }
    return graphs;
}

}  // namespace

Result<Snapshot> withNumbers(const Snapshot& module, const std::vector<Tensor>* inputs, SymbolValues& values,
                             const SymbolValues& known) {
    const std::vector<std::string> symbols = freeSymbols(*module);
    if (symbols.empty()) return module;
    values.clear();
    if (inputs) {
        CT_TRY(values, solveSymbols(*module, *inputs));
    }
    values.insert(known.begin(), known.end());
    if (!inputs) values.merge(hintedSymbols(*module));
    auto fixed = std::make_shared<Module>(*module);
    CT_TRY_VOID(specialize(*fixed, values));
    fixLoops(*fixed, values);
    for (const std::string& symbol : freeSymbols(*fixed))
        return unsupported("compiling needs a value for every size, and size symbol '" + symbol + "' has none", {},
                           {"set it when opening: --size " + symbol + "=8",
                            "or run with --backend reference, which takes sizes that depend on data as they come"});
    return Snapshot(std::move(fixed));
}

Result<std::vector<int64_t>> savedResults(const Module& forward, const Module& backward) {
    CT_TRY(const std::vector<size_t> outputs, savedOutputs(forward, backward));
    std::vector<int64_t> saved;
    size_t next = 0;
    for (size_t i = 0; i < backward.graph().placeholders().size(); ++i) {
        const bool isSaved = i < backward.inputs.size() && backward.inputs[i].kind == InputSpec::Kind::Saved;
        saved.push_back(isSaved ? static_cast<int64_t>(outputs.at(next++)) : -1);
    }
    return saved;
}

Result<void> checkLowered(const CompileTrace& trace) {
    if (!trace.failed()) return {};
    const StepInfo& step = trace.steps.back().info;
    return Error{ErrorCode::InvalidInput,
                 "compiling failed, so there is nothing to run: " + step.error,
                 "step " + step.name,
                 {}};
}

Result<ChosenProgram> chooseSizes(const std::vector<Snapshot>& graphs,
                                  const std::function<Result<PlannedProgram>(const std::vector<Snapshot>&)>& plan,
                                  const SizeRequest& wanted, const std::string& whyFixed) {
    const bool symbols =
        std::any_of(graphs.begin(), graphs.end(), [](const Snapshot& graph) { return !freeSymbols(*graph).empty(); });
    const auto chosen = [](PlannedProgram& program) {
        return ChosenProgram{std::make_shared<const PlannedProgram>(std::move(program)), true, {}, {}};
    };
    std::optional<Result<PlannedProgram>> forAll;
    std::string why = whyFixed;
    if (!symbols || whyFixed.empty()) {
        forAll = plan(graphs);
        if (!symbols && !*forAll) return forAll->error();
        const Error* const error = !*forAll               ? &forAll->error()
                                   : (*forAll)->whyNoHost ? &*(*forAll)->whyNoHost
                                                          : nullptr;
        if (!symbols || error == nullptr) return chosen(**forAll);
        if (!refuses(*error)) return *error;
        why = error->message;
    }
    SymbolValues sizes;
    auto numbers = allWithNumbers(graphs, wanted, sizes);
    if (!numbers) {
        if (!forAll) forAll = plan(graphs);
        if (!*forAll) return numbers.error();
        (*forAll)->whyNoHost = numbers.error();
        return chosen(**forAll);
    }
    CT_TRY(PlannedProgram fixed, plan(*numbers));
    return ChosenProgram{std::make_shared<const PlannedProgram>(std::move(fixed)), false, std::move(sizes),
                         std::move(why)};
}

std::vector<ScheduledGraph> scheduledGraphs(const CompileTrace& trace) {
    if (!trace.isSplit()) return {{}};
    std::vector<ScheduledGraph> graphs;
    for (const std::string_view half : kHalves)
        graphs.push_back({std::string(half), std::string(half) + "/", graphs.size()});
    return graphs;
}

std::vector<Snapshot> lastGraphs(const CompileTrace& trace) {
    std::vector<Snapshot> graphs;
    for (const ScheduledGraph& graphName : scheduledGraphs(trace))
        graphs.push_back(graphName.name.empty() ? trace.result() : trace.resultOf(graphName.name));
    return graphs;
}

Result<std::shared_ptr<const ChosenProgram>> chosenProgram(Session::State::Run& run, const SizeRequest& wanted,
                                                           const Progress& progress) {
    CT_TRY_VOID(checkLowered(run.trace));
    const std::lock_guard lock(run.looking);
    std::shared_ptr<const ChosenProgram>& program = run.chosen;
    if (program && program->allSizes) return program;
    const std::vector<Snapshot> graphs = lastGraphs(run.trace);
    if (program) {
        const bool fits = std::all_of(wanted.known.begin(), wanted.known.end(), [&](const auto& number) {
            const auto found = program->sizes.find(number.first);
            return found != program->sizes.end() && found->second == number.second;
        });
        if (wanted.inputs == nullptr && fits) return program;
        SymbolValues sizes;
        CT_TRY_VOID(withNumbers(graphs[0], wanted.inputs, sizes, wanted.known));
        if (sizes == program->sizes) return program;
    }
    const auto plan = [&](const std::vector<Snapshot>& own) -> Result<PlannedProgram> {
        std::vector<int64_t> saved;
        if (own.size() > 1) {
            CT_TRY(saved, savedResults(*own[0], *own[1]));
        }
        return planProgram(own, std::move(saved), targetOf(run.trace.request), {}, progress);
    };
    CT_TRY(ChosenProgram made, chooseSizes(graphs, plan, wanted, program ? program->whyFixed : std::string()));
    return program = std::make_shared<const ChosenProgram>(std::move(made));
}

}  // namespace cutaway
