#include "engine/session/schedules.h"

#include "engine/host/bind_host.h"
#include "engine/host/make_program.h"
#include "engine/schedule/schedule.h"
#include "engine/session/execution.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

constexpr std::string_view kHalves[] = {"forward", "backward"};

using Kept = std::shared_ptr<const ScheduledProgram>;

Result<HostProgram> trainingProgramOf(const Module& forward, const Module& backward, const Kept& ahead,
                                      const Kept& back) {
    CT_TRY(std::vector<int64_t> saved, savedResults(forward, backward));
    return hostProgramOf(TrainingHalves{ahead.get(), back.get(), std::move(saved)});
}

/// That of the graph's schedule; without one that of the compiler which takes it, and there is one for CPUs.
const TargetInfo& targetFor(const Module& module) {
    const Schedule* own = Schedule::of(module);
    return own ? own->target : kCpuTarget;
}

/// As they are built, by track: with size symbols where one program serves all sizes. Empty where it does not.
Result<std::map<std::string, Kept>> forAllSizes(const CompileTrace& trace, const Progress& progress) {
    std::map<std::string, Kept> all;
    bool symbols = false;
    for (const ScheduledTrack& track : scheduledTracks(trace))
        symbols |= !freeSymbols(*lastGraph(trace, track.name)).empty();
    if (!symbols) return all;
    for (const ScheduledTrack& track : scheduledTracks(trace)) {
        const Snapshot graph = lastGraph(trace, track.name);
        auto program = scheduleModule(graph, targetFor(*graph), progress);
        if (!program) return std::map<std::string, Kept>();
        all[track.name] = std::make_shared<const ScheduledProgram>(std::move(*program));
    }
    const auto host = trace.isSplit() ? trainingProgramOf(*trace.resultOf("forward"), *trace.resultOf("backward"),
                                                          all["forward"], all["backward"])
                                      : hostProgramOf(*all[""]);
    if (!host) all.clear();
    return all;
}

}  // namespace

std::vector<ScheduledTrack> scheduledTracks(const CompileTrace& trace) {
    if (!trace.isSplit()) return {{}};
    std::vector<ScheduledTrack> tracks;
    for (const std::string_view half : kHalves) tracks.push_back({std::string(half), std::string(half) + "/"});
    return tracks;
}

Snapshot lastGraph(const CompileTrace& trace, const std::string& track) {
    return track.empty() ? trace.result() : trace.resultOf(track);
}

Result<std::vector<int64_t>> placesOf(const ScheduledProgram& program, const SymbolValues& sizes, int64_t& bytes) {
    CT_TRY(const HostProgram host, hostProgramOf(program));
    const HostFunction& function = host.functions[0];
    CT_TRY(const BoundFunction bound, bindAllMemory(function, sizes));
    bytes = bound.arenaBytes();
    std::vector<int64_t> starts(1, 0), places;
    for (const int64_t segment : bound.bytes) starts.push_back(starts.back() + segment);
    for (size_t i = 0; i < function.values.size(); ++i) {
        const HostValue& value = function.values[i];
        if (value.kind != HostValue::Kind::Slot) continue;
        const size_t segment = function.memory[static_cast<size_t>(value.index)].segment;
        places.push_back(starts[segment] + bound.values[i].offset);
    }
    return places;
}

SymbolValues assumedSizes(const ScheduledProgram& program, const SymbolValues& known) {
    SymbolValues all = known, assumed;
    const auto host = hostProgramOf(program);
    if (!host) return assumed;
    const HostFunction& function = host->functions[0];
    for (const HostStep& step : function.steps) {
        int64_t most = 1;
        for (const int64_t operand : step.operands) {
            if (operand < 0 || step.found.empty()) continue;
            int64_t elements = 1;
            for (const SymInt& size : function.values[static_cast<size_t>(operand)].type.sizes)
                elements = checkedMul(elements, valueFor(size, all).value_or(1));
            most = std::max(most, elements);
        }
        for (const HostStep::Found& found : step.found)
            if (all.emplace(found.symbol, most).second) assumed.emplace(found.symbol, most);
    }
    return assumed;
}

Result<std::shared_ptr<const ScheduledProgram>> scheduleOf(Session::State::Run& run, const std::string& track,
                                                           const Progress& progress) {
    CT_TRY_VOID(checkLowered(run.trace));
    const std::lock_guard lock(run.looking);
    std::shared_ptr<const ScheduledProgram>& kept = run.schedules[track];
    if (kept) return kept;
    CT_TRY(auto all, forAllSizes(run.trace, progress));
    for (auto& [name, program] : all) run.schedules[name] = std::move(program);
    if (kept) return kept;
    const Snapshot module = lastGraph(run.trace, track);
    SymbolValues sizes, known;
    // A backward has the numbers that its forward is run with.
    if (track == "backward") static_cast<void>(withNumbers(run.trace.resultOf("forward"), nullptr, known));
    const auto numbers = withNumbers(module, nullptr, sizes, known);
    // Where sizes have no numbers the kernels still have their loops.
    CT_TRY(ScheduledProgram program,
           scheduleModule(numbers ? *numbers : module, targetFor(numbers ? **numbers : *module), progress));
    return kept = std::make_shared<const ScheduledProgram>(std::move(program));
}

Result<HostProgram> hostProgramOf(Session::State::Run& run, const Progress& progress) {
    if (!run.trace.isSplit()) {
        CT_TRY(const Kept scheduled, scheduleOf(run, {}, progress));
        return hostProgramOf(*scheduled);
    }
    CT_TRY(const Kept ahead, scheduleOf(run, "forward", progress));
    CT_TRY(const Kept back, scheduleOf(run, "backward", progress));
    return trainingProgramOf(*run.trace.resultOf("forward"), *run.trace.resultOf("backward"), ahead, back);
}

}  // namespace cutaway
