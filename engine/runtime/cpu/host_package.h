#pragma once
// A host program with what it runs on.
#include "engine/codegen/cpp_printer.h"
#include "engine/host/host_program.h"
#include "engine/schedule/program.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// What a process is given once: it is sent again only to another process.
struct HostPackage {
    HostProgram program;
    std::vector<std::string> libraries;  // of each kernel the path of the one that has it
    std::vector<Tensor> constants;       // the program's
};

/// The code of the schedule's kernels, then of those of the graphs that its calls run.
std::vector<PrintedKernel> printKernels(const ScheduledProgram& scheduled);
/// The host program: function 0 is "run", others are graphs that calls run. `printed`: of printKernels. Errors of
/// makeHostFunction.
Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled, const std::vector<PrintedKernel>& printed);
Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled);
/// Its constants, laid out as the graph says: kernels walk memory by its strides.
Result<std::vector<Tensor>> constantsOf(const HostProgram& program, const ScheduledProgram& scheduled);

}  // namespace cutaway
