#pragma once
// A host program with what it runs on.
#include "engine/host/plan_program.h"
#include "engine/runtime/cpu/constant_memory.h"

namespace cutaway {

struct BoundFunction;

/// What a process is given once: it is sent again only to another process.
struct HostPackage {
    explicit HostPackage(std::shared_ptr<const PlannedProgram> made)
        : planned(std::move(made)), program(planned->host) {}
    std::shared_ptr<const PlannedProgram> planned;
    const HostProgram& program;
    std::vector<std::string> libraries;  // of each kernel the path of the one that has it
    std::vector<Tensor> constants;       // the program's, as they are held
    std::string choices;                 // the file for what a GPU measures (keepCandidates); empty: none
};

/// Bytes returned to the caller, per result; 0 for None and, with `leaveSaved`, for what its backward
/// is given.
std::vector<size_t> returnedBytes(const HostProgram& program, size_t function, const BoundFunction& bound,
                                  bool leaveSaved);
/// Copies constants and weights, by function, whose strides are not those that the program walks memory by; those that
/// lie in one place once. `forget`, if it is there, is told of the originals that nothing else lies in.
void layOut(const HostProgram& program, std::vector<Tensor>& constants, std::vector<std::vector<Tensor>>& weights,
            const ForgetBytes& forget);
/// The constants of a program, with the strides that it walks memory by.
Result<std::vector<Tensor>> constantsOf(const HostProgram& program, const ScheduledProgram& scheduled);

}  // namespace cutaway
