#pragma once
// The schedules of a run's last graphs, for whoever looks at kernels and memory.
#include "engine/schedule/program.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// "backward" and "backward/", which its kernels' names begin with; "" and "" for a run's last graph.
struct ScheduledTrack {
    std::string name, prefix;
};
std::vector<ScheduledTrack> scheduledTracks(const CompileTrace& trace);

/// The last graph of a track.
Snapshot lastGraph(const CompileTrace& trace, const std::string& track);

/// The schedule of a track, made once: a window asks for one kernel after the other. As it is built, with numbers for
/// its sizes, where these are known. Errors: the run failed; a call that nothing can compute.
Result<std::shared_ptr<const ScheduledProgram>> scheduleOf(Session::State::Run& run, const std::string& track,
                                                           const Progress& progress);

}  // namespace cutaway
