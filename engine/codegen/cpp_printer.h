#pragma once
// Prints kernels as C++: vectors of kLanes elements along one loop, a partial vector at its end, the same text for
// both.
//
// Every function has the signature
//   extern "C" void NAME(void* const* p, const long* s, long begin, long end, int* fault)
// p: buffers in the order of Kernel::buffers; s: values of Kernel::sizes; [begin, end): the part of the parallel range
// to compute, so that threads may share it; *fault becomes 1 when an index from data is out of range, 2 on integer
// division by zero. Float semantics are IEEE: compiled with -ffp-contract=off and without -ffast-math, since the
// interpreter, which results are compared with, rounds after every operation too. Sums of f32 accumulate in double.
#include "engine/codegen/cpp_prelude.h"
#include "engine/schedule/kernel.h"

namespace cutaway {

struct PrintedKernel {
    std::string source;             // the function alone
    std::set<std::string> helpers;  // for cppPrelude
    SymInt range = 1;               // size of the parallel range
};
PrintedKernel printCpp(const Kernel& kernel);

/// A whole file of these kernels, helpers first.
std::string cppFile(const std::vector<PrintedKernel>& kernels);

}  // namespace cutaway
