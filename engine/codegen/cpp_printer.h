#pragma once
// Prints loop nests as C++. It chooses nothing: a statement of the nest is a statement of the text, a vector loop is
// its body once, run on whole vectors and on the rest.
//
// Every function has the signature
//   extern "C" void NAME(void* const* p, const long* s, long begin, long end, int* fault)
// p: buffers in the order of LoopNest::buffers; s: values of LoopNest::sizes; [begin, end): the part of the loop over
// parts to run, so that threads may share it; *fault becomes 1 when an index from data is out of range, 2 on integer
// division by zero. Float semantics are IEEE: compiled with -ffp-contract=off and without -ffast-math, since the
// interpreter, which results are compared with, rounds after every operation too. All identifiers are numbered, so that
// no name of a model is one of them.
#include "engine/codegen/code_text.h"
#include "engine/codegen/cpp_prelude.h"
#include "engine/loops/loop_nest.h"

namespace cutaway {

struct PrintedKernel {
    std::vector<std::string> functions;  // one after the other
    std::string source;                  // the functions alone
    std::vector<CodeLine> lines;         // those of `source`
    std::string content;                 // of them a hash, in which kernels' names have no part
    int lanes = 16;                      // of its vectors
    std::set<std::string> helpers;       // for cppPrelude

    /// One more function, under the name of its nest.
    void append(const std::string& nest, const PrintedFunction& function);
};
PrintedKernel printCpp(const LoweredKernel& kernel);

/// A whole file of these functions, helpers first.
std::string cppFile(const std::vector<PrintedKernel>& kernels);

}  // namespace cutaway
