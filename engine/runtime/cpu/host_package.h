#pragma once
// A host program with what it runs on.
#include "engine/codegen/cpp_printer.h"
#include "engine/host/host_program.h"
#include "engine/runtime/cpu/constant_memory.h"
#include "engine/schedule/program.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// What a process is given once: it is sent again only to another process.
struct HostPackage {
    HostProgram program;
    std::vector<std::string> libraries;  // of each kernel the path of the one that has it
    std::vector<Tensor> constants;       // the program's, as they are held
};

/// The code of the schedule's kernels, then of those of the graphs that its calls run.
std::vector<PrintedKernel> printKernels(const ScheduledProgram& scheduled);
/// The host program: function 0 is "run", others are graphs that calls run. `printed`: of printKernels. Errors of
/// makeHostFunction.
Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled, const std::vector<PrintedKernel>& printed);
Result<HostProgram> hostProgramOf(const ScheduledProgram& scheduled);
/// Its constants as they are held.
Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const ScheduledProgram& scheduled);
/// Copies constants and, if there are any, the function's weights whose strides are not those that the program walks
/// memory by. `forget`, if it is there, is told of the originals that nothing else lies in.
void layOut(const HostProgram& program, std::vector<Tensor>& constants, size_t function, std::vector<Tensor>& weights,
            const ForgetBytes& forget);
/// Its constants, laid out.
Result<std::vector<Tensor>> constantsOf(const HostProgram& program, const ScheduledProgram& scheduled);

}  // namespace cutaway
