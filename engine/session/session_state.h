#pragma once
// The state of a session, shared by threads: the mutex guards what grows; everything else never changes.
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "cutaway/comparison.h"
#include "cutaway/guarded.h"
#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/passes/pass_runner.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/session/node_keys.h"
#include "engine/session/reproducer.h"

namespace cutaway {

class Partitioner;
struct PartitionAtBudget;
struct ChosenProgram;

struct Session::State {
    struct Run {
        CompileTrace trace;
        std::mutex turn;                                     // held while building or running; guards the members below
        std::map<std::string, CpuProgram> cpu;               // by graph, "" for the run's last; built on first use
        std::shared_ptr<const ChosenProgram> built;          // what they were built from
        std::vector<double> kernelMicroseconds;              // of the last compiled run, in the order of its kernels
        std::map<size_t, std::string> refusedKernels;        // the same run's CpuRun::refused
        std::mutex looking;                                  // guards `chosen`
        std::shared_ptr<const ChosenProgram> chosen;         // made when it is looked at or run
        std::mutex choosing;                                 // guards the two below
        std::shared_ptr<Partitioner> partitioner;            // of the joint graph; made on first use
        std::shared_ptr<const PartitionAtBudget> partition;  // at the run's own budget; made on first use
    };
    std::optional<OpenedFile> file;
    OpenSettings settings;  // that it was opened with
    Snapshot input;
    std::vector<Tensor> sampleInputs;  // of the file, when all of them are tensors
    std::string noSamples;             // why there are none, if the file has some that cannot be used
    ModelInfo info;
    mutable std::mutex mutex;  // of `runs`, `replayed` and `kept`
    std::deque<Run> runs;      // grows at its end, so that a run stays where it is
    /// The latest graphs between two rewrites: a place is asked for by its difference, its text and its nodes.
    mutable std::vector<std::pair<Place, Snapshot>> replayed;

    /// Graphs of other files and sessions, at places whose run is kFirstKept and below.
    std::vector<Snapshot> kept;
    static constexpr RunId kFirstKept = -2;
    Place keep(Snapshot graph);
    Result<Snapshot> keptAt(const Place& place) const;
    bool oneLineage(const Place& before, const Place& after) const;
    Snapshot common(const Place& before, const Place& after) const;

    Result<const Run*> run(RunId id) const;
    Result<Run*> run(RunId id);
    size_t runCount() const;
    RunId add(CompileTrace trace);
    /// The run's number; a failure gets how to repeat it.
    Result<RunId> finish(Result<CompileTrace> compiled);
    Result<RunReport> execute(RunId id, const RunOptions& options, const Progress& progress);
    Result<Snapshot> snapshot(const Place& place, const CancelToken* cancel = nullptr) const;

    /// What `body` returns; an error that gets a reproducer names it.
    template <class Body>
    auto repeatable(const char* operation, RunId id, const RunOptions* options, Body&& body) const -> decltype(body()) {
        auto result = guarded(body);
        if (result || !isReproducible(result.error())) return result;
        return withReproducer(result.error(), [&] { return failureOf(operation, id, options); });
    }
    Failure failureOf(const char* operation, RunId id, const RunOptions* options) const;
};

}  // namespace cutaway
