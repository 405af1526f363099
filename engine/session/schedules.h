#pragma once
// The schedules of a run's last graphs, for whoever looks at kernels and memory.
#include "engine/host/host_program.h"
#include "engine/interpret/specialize.h"
#include "engine/schedule/program.h"
#include "engine/session/session_state.h"

namespace cutaway {

/// A track and the prefix of its kernels' names: "backward" and "backward/"; both empty where nothing was split.
struct ScheduledTrack {
    std::string name, prefix;
};
std::vector<ScheduledTrack> scheduledTracks(const CompileTrace& trace);

/// The last graph of a track.
Snapshot lastGraph(const CompileTrace& trace, const std::string& track);

/// The schedule of a track, made once: a window asks for one kernel after the other. As it is built: with size
/// symbols where one program serves all sizes, else with numbers. Errors: the run failed; a call that nothing can
/// compute.
Result<std::shared_ptr<const ScheduledProgram>> scheduleOf(Session::State::Run& run, const std::string& track,
                                                           const Progress& progress);

/// The host program of a run, as it is built.
Result<HostProgram> hostProgramOf(Session::State::Run& run, const Progress& progress);

/// Of a program with size symbols: where the values in its memory lie for these sizes, in the order of
/// ScheduledProgram::values, then of the kernels' workspaces; and how many bytes there are. Segments, which begin where
/// a size is found in data, lie one behind the other.
Result<std::vector<int64_t>> placesOf(const ScheduledProgram& program, const SymbolValues& sizes, int64_t& bytes);
/// Numbers to assume for sizes that a run finds in its data: of each the number of elements of what it is found in.
/// Without sizes in `known`.
SymbolValues assumedSizes(const ScheduledProgram& program, const SymbolValues& known);

}  // namespace cutaway
