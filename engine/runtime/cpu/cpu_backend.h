#pragma once
// From a graph to a compiled library, and from that to results and times. The graph must be functional except for copy_
// to inputs, and of ATen ops, as the post-grad passes leave it; calls without a lowering rule run on oneDNN or on the
// reference kernels, and say so. Compiled code only ever runs in cutaway-worker.
//
// Numbers: f16 and bf16 compute in f32 and are rounded where a value is stored, so fused chains round less often than
// the interpreter does, as in PyTorch.
#include <map>
#include <mutex>

#include "cutaway/session.h"
#include "engine/ir/module.h"
#include "engine/loops/loop_plan.h"
#include "engine/loops/target.h"
#include "engine/runtime/worker.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct HostProgram;
struct PlannedProgram;

struct CpuBuildOptions {
    /// What graphs that have no schedule yet are scheduled for; others have one.
    const TargetInfo* target = &kCpuTarget;
    std::string compiler;  // empty = found in the system
    double timeoutSeconds = 300;
    std::string folder;                          // where source and library go and stay; empty = a temporary one
    std::map<std::string, LoopPlan> plans = {};  // by kernel, in place of those that were chosen
    /// Where compiled kernels are kept (KernelCache): the path of a ValueStore, "" for the user's own, "off" for
    /// nowhere.
    std::string store = "off";
};
/// A compiled graph, or one of two that were compiled together. Copies share the library, which is removed with the
/// last of them unless a folder was given.
class CpuProgram {
  public:
    const BuildInfo& info() const;  // times of kernels are 0 until run
    /// What runs, as data.
    const HostProgram& host() const;
    /// Bytes of temporaries and outputs for these inputs, but for what depends on data.
    Result<int64_t> arenaBytes(const std::vector<Tensor>& inputs) const;

    /// The number of the process that holds the program between runs; 0 if there is none.
    int process() const;
    /// While it lasts no other thread runs the program, and its process is not given up for another's.
    struct Hold {
        std::shared_ptr<const void> worker;
        std::unique_lock<std::recursive_mutex> turn;  // goes first
    };
    Hold hold() const;

    struct State;
    struct Part;
    explicit CpuProgram(std::shared_ptr<const State> state, size_t part = 0)
        : m_state(std::move(state)), m_part(part) {}
    const State& state() const { return *m_state; }
    const Part& part() const;

  private:
    std::shared_ptr<const State> m_state;
    size_t m_part;
};

/// Prints and compiles a program's kernels: one program for each of its graphs. They share weights that several read.
/// Errors: of the compiler; the program cannot be run.
Result<std::vector<CpuProgram>> buildPlanned(std::shared_ptr<const PlannedProgram> planned,
                                             const CpuBuildOptions& options = {}, const Progress& progress = {});
/// The same of a graph: schedules, prints and compiles. Errors beside the scheduler's and the compiler's: a given plan
/// is of no kernel, or does not compute its kernel. KernelInfo: one per call in execution order; calls of one kernel
/// share its source.
Result<CpuProgram> buildCpu(std::shared_ptr<const Module> module, const CpuBuildOptions& options = {},
                            const Progress& progress = {});
/// Forward and backward as two functions of one program, which holds weights that both read once. `saved`: as
/// TrainingHalves has it.
struct CpuTraining {
    CpuProgram forward, backward;
};
Result<CpuTraining> buildTraining(std::shared_ptr<const Module> forward, std::shared_ptr<const Module> backward,
                                  std::vector<int64_t> saved, const CpuBuildOptions& options = {},
                                  const Progress& progress = {});
/// What of a compiled program outlives the process, but for its constants: for a cache of the same build.
struct SerializedProgram {
    std::string host;                    // the program, as bytes
    std::vector<std::string> libraries;  // of each kernel the path of the one that has it
    BuildInfo info;
    std::string store = "off";  // CpuBuildOptions::store of whoever loads it: `serialized` leaves it
};
SerializedProgram serialized(const CpuProgram& program);
/// `constants`: in the order of HostProgram::constants. Errors: bytes that are not a program.
Result<CpuProgram> loadSerialized(SerializedProgram kept,
                                  const std::function<Result<std::vector<Tensor>>(const HostProgram&)>& constants);
/// The BuildInfo of buildCpu, without compiling: source and kernels only.
Result<BuildInfo> previewCpu(std::shared_ptr<const Module> module, const Progress& progress = {});

struct CpuRunOptions {
    int repeat = 1;     // timed runs after the one that gives the results
    bool cold = false;  // before each timed run all caches are filled with other memory, which counts as the worker's
    double budgetSeconds = 0;  // no further timed run once they took so long; 0: all of them
    int threads = 0;           // 0 = one per core
    double timeoutSeconds = 60;
    int64_t memoryBytes = 0;  // limit of the worker's address space; 0 = none
    /// Kernels use all threads however little there is to do: for tests, whose tensors are small.
    bool splitSmall = false;
    /// Each value has memory of its own, which ends where the value ends, so that address sanitizers see overruns.
    bool apart = false;
    /// Of a forward: what its backward is given stays where it was computed, if the next run is that backward's. Else
    /// it is read from there when it is asked for, while it is there: until another run (CpuProgram::hold).
    bool leaveSaved = false;
};
struct CpuRun {
    std::vector<Tensor> outputs;       // as returned by the graph; undefined for None
    std::vector<double> microseconds;  // median per kernel, in the order of BuildInfo::kernels
    double medianMilliseconds = 0, minMilliseconds = 0;
    std::vector<double> milliseconds;  // of the timed runs, sorted
    RunCost cost;
    /// What became of inputs that the graph writes to, by their place among the inputs.
    std::vector<std::pair<size_t, Tensor>> written;
    /// Calls that their library did not take when it planned them, by their place in BuildInfo::kernels, in a sentence
    /// each: the reference kernel computed them.
    std::map<size_t, std::string> refused;
};
/// In a process that stays loaded for the next run, with few exceptions (ProgramWorker). Each run and repeat gets the
/// inputs as given, whatever the graph writes to them.
/// `inputs` in placeholder order (numbers as 0-d tensors). Errors: inputs that do not fit; the worker crashed, hung or
/// ran out of memory; an index from data was out of range.
Result<CpuRun> runCpu(const CpuProgram& program, const std::vector<Tensor>& inputs, const CpuRunOptions& options = {},
                      const Progress& progress = {});

}  // namespace cutaway
