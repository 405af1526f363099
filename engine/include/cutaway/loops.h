#pragma once
// The loops of a run's kernels: what each kernel means, how it runs and why, the nests on the way to code and the code
// itself; and a run in which one kernel goes by another plan.
#include <span>

#include "cutaway/code_line.h"
#include "cutaway/session.h"

namespace cutaway {

/// A kernel of a run. Calls that compute the same of other values share it.
struct LoopKernel {
    std::string name;            // "kernel3"; of a training run "backward/kernel3"
    std::string kind;            // "pointwise", "reduction"
    std::vector<NodeKey> nodes;  // computed by its calls, in the order of these
    std::vector<std::string> nodeNames;
    int calls = 0;
    double microseconds = 0;  // of all its calls together, as last measured; 0 until timed
};
/// Of kernels alone: calls of libraries and reference kernels have no loops.
Result<std::vector<LoopKernel>> loopKernels(Session& session, RunId run, const Progress& progress = {});

struct LoopForm {
    std::string name, text;
};
struct KernelLoops {
    std::string kernel;           // its text: what it computes
    std::string plan;             // how it runs, a choice a line, reasons as comments
    std::vector<LoopForm> steps;  // the nests after each step of lowering
    std::string source;           // C++, or CUDA C++
    std::vector<CodeLine> lines;  // those of `source`
    Target target = Target::Cpu;
};
/// The forms of one kernel by the plan that was chosen, or by another one as text. Errors: no such kernel; a plan that
/// cannot be read, with its line; a plan that does not compute the kernel, with the reason.
Result<KernelLoops> kernelLoops(Session& session, RunId run, const std::string& kernel,
                                const std::optional<std::string>& plan = {}, const Progress& progress = {});

/// What compilers make of a kernel, as text: for the CPU assembly in Intel's notation; for NVIDIA GPUs PTX, and SASS,
/// the code of the GPU that is there (else of compute capability 9.0).
enum class Listing : uint8_t { Assembly, Ptx, Sass };
std::span<const Listing> listingsOf(Target target);
/// As the command line names it: "assembly", "ptx", "sass".
std::string_view listingName(Listing listing);
/// Of one kernel, by the plan that was chosen or by another one as text. Errors beside kernelLoops': the run's target
/// has no such listing; no compiler or disassembler, with what to install; what they say.
Result<std::string> kernelListing(Session& session, RunId run, const std::string& kernel, Listing listing,
                                  const std::optional<std::string>& plan = {}, const Progress& progress = {});

struct PlanRunOptions {
    std::string inputsFile;  // as RunOptions'
    int repeat = 20;
    double timeoutSeconds = 60;
};
/// Medians, of all calls of the kernel together and of the whole run.
struct PlanTimes {
    double kernelMilliseconds = 0, milliseconds = 0;
};
struct PlanRun {
    PlanTimes chosen, given;
    bool sameBits = false;   // the results of both are equal bit for bit
    bool same = false;       // they are within the tolerance of their dtypes
    std::string difference;  // "largest error 3e-07"
    int repeats = 0;
    std::string inputsFrom;
};
/// Runs the compiled graph as it was planned and once more with this plan of one kernel. Errors beside kernelLoops':
/// the run is for training; what Session::run fails with.
Result<PlanRun> runWithPlan(Session& session, RunId run, const std::string& kernel, const std::string& plan,
                            const PlanRunOptions& options = {}, const Progress& progress = {});

}  // namespace cutaway
