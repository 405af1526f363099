#pragma once
// A host program with what it runs on.
#include "engine/codegen/cpp_printer.h"
#include "engine/host/host_program.h"
#include "engine/runtime/cpu/constant_memory.h"
#include "engine/schedule/program.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct BoundFunction;

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

/// A program for training: function 0 is "forward"; the function "backward" comes behind the graphs that calls of the
/// forward run. `saved`: of each placeholder of the backward the result of the forward that it is given, or -1.
struct TrainingHalves {
    const ScheduledProgram *forward = nullptr, *backward = nullptr;
    std::vector<int64_t> saved;
};
/// `printed`: of the forward, then of the backward.
Result<HostProgram> hostProgramOf(const TrainingHalves& halves, const std::vector<PrintedKernel>& printed);
Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const TrainingHalves& halves);
std::optional<size_t> functionNamed(const HostProgram& program, std::string_view name);
/// Whether a result of the function is what the program's backward is given of its forward.
bool isSaved(const HostProgram& program, size_t function, int64_t result);
/// Of each result the bytes that go to who runs the function; 0 for None and, with `leaveSaved`, for what its backward
/// is given.
std::vector<size_t> returnedBytes(const HostProgram& program, size_t function, const BoundFunction& bound,
                                  bool leaveSaved);
/// The constants of a program as its graphs hold them.
Result<std::vector<Tensor>> heldConstantsOf(const HostProgram& program, const ScheduledProgram& scheduled);
/// Copies constants and weights, by function, whose strides are not those that the program walks memory by; those that
/// lie in one place once. `forget`, if it is there, is told of the originals that nothing else lies in.
void layOut(const HostProgram& program, std::vector<Tensor>& constants, std::vector<std::vector<Tensor>>& weights,
            const ForgetBytes& forget);
/// The constants of a program, with the strides that it walks memory by.
Result<std::vector<Tensor>> constantsOf(const HostProgram& program, const ScheduledProgram& scheduled);

}  // namespace cutaway
