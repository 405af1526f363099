#pragma once
// One run of one graph of a session's run, interpreted or compiled.
#include "engine/session/chosen_program.h"

namespace cutaway {

struct Execution {
    std::vector<Tensor> outputs;
    double minimum = 0, median = 0;         // milliseconds
    std::vector<double> microseconds = {};  // of compiled kernels, in their order
    std::optional<RunCost> cost = {};
    /// What became of inputs that the graph writes to, by their place among the inputs.
    std::vector<std::pair<size_t, Tensor>> written = {};
    std::map<size_t, std::string> refused = {};  // CpuRun::refused
    bool tf32 = false;                           // library calls rounded f32 to TF32
    std::vector<double> milliseconds = {};       // of the timed runs, sorted
};

/// The times of one run, or of two that follow each other, into the report.
void reportTimes(const Execution& run, const Execution* next, RunReport& report);

/// The least tolerance of what it computed (compareOutput).
double toleranceOf(const Execution& execution);

/// `known`, here and below: numbers of size symbols that the inputs do not tell, such as those of a backward that its
/// forward knew.
Result<Execution> runInterpreted(const Module& module, const std::vector<Tensor>& inputs, int repeat,
                                 const Progress& progress, const SymbolValues& known = {});
/// The kernels of a graph ("" for the run's last graph), built where they are not yet. `given`: a graph to build and
/// run in its place; null for that.
Result<Execution> runCompiled(Session::State::Run& run, const std::string& graphName, const Snapshot& given,
                              const std::vector<Tensor>& inputs, const RunOptions& options, const Progress& progress,
                              const SymbolValues& known = {});
/// The compiled program of a graph, built if it is not there for the sizes of `inputs` (null: those that it last ran
/// with, else the example sizes). Both halves of a training run are one program, for the sizes of the forward.
Result<const CpuProgram*> programOf(Session::State::Run& run, const std::string& graphName,
                                    const std::vector<Tensor>* inputs, const Progress& progress,
                                    const SymbolValues& known = {});

/// checkLowered for whoever interprets, and may do without the schedule.
Result<void> checkPasses(const CompileTrace& trace);
/// Checks that types alone decide, before inputs are made and before anything is compiled.
Result<void> checkSizes(const Module& module, Backend backend);

}  // namespace cutaway
