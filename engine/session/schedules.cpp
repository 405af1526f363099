#include "engine/session/schedules.h"

#include "engine/schedule/schedule.h"
#include "engine/session/execution.h"

namespace cutaway {
namespace {

constexpr std::string_view kHalves[] = {"forward", "backward"};

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

Result<std::shared_ptr<const ScheduledProgram>> scheduleOf(Session::State::Run& run, const std::string& track,
                                                           const Progress& progress) {
    CT_TRY_VOID(checkLowered(run.trace));
    const std::lock_guard lock(run.looking);
    std::shared_ptr<const ScheduledProgram>& kept = run.schedules[track];
    if (!kept) {
        Snapshot module = lastGraph(run.trace, track);
        SymbolValues sizes;
        // As it is built; where sizes have no numbers the kernels still have their loops.
        if (const auto numbers = withNumbers(module, nullptr, sizes)) module = *numbers;
        CT_TRY(ScheduledProgram program, scheduleModule(module, progress));
        kept = std::make_shared<const ScheduledProgram>(std::move(program));
    }
    return kept;
}

}  // namespace cutaway
