#include "engine/session/schedules.h"

#include "engine/host/bind_host.h"
#include "engine/runtime/cpu/host_package.h"
#include "engine/schedule/schedule.h"
#include "engine/session/execution.h"

namespace cutaway {
namespace {

constexpr std::string_view kHalves[] = {"forward", "backward"};

/// As it is built: with size symbols where one program serves all sizes. Null where it does not.
std::shared_ptr<const ScheduledProgram> forAllSizes(const Snapshot& module, const Progress& progress) {
    if (freeSymbols(*module).empty()) return nullptr;
    auto program = scheduleModule(module, progress);
    if (!program || !hostProgramOf(*program)) return nullptr;
    return std::make_shared<const ScheduledProgram>(std::move(*program));
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
    CT_TRY(const BoundFunction bound, bindMemory(function, sizes));
    bytes = bound.arenaBytes();
    std::vector<int64_t> places;
    for (size_t i = 0; i < function.values.size(); ++i)
        if (function.values[i].kind == HostValue::Kind::Slot) places.push_back(bound.values[i].offset);
    return places;
}

Result<std::shared_ptr<const ScheduledProgram>> scheduleOf(Session::State::Run& run, const std::string& track,
                                                           const Progress& progress) {
    CT_TRY_VOID(checkLowered(run.trace));
    const std::lock_guard lock(run.looking);
    std::shared_ptr<const ScheduledProgram>& kept = run.schedules[track];
    if (!kept) {
        const Snapshot module = lastGraph(run.trace, track);
        kept = forAllSizes(module, progress);
        if (!kept) {
            SymbolValues sizes;
            const auto numbers = withNumbers(module, nullptr, sizes);
            // Where sizes have no numbers the kernels still have their loops.
            CT_TRY(ScheduledProgram program, scheduleModule(numbers ? *numbers : module, progress));
            kept = std::make_shared<const ScheduledProgram>(std::move(program));
        }
    }
    return kept;
}

}  // namespace cutaway
