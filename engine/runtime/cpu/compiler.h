#pragma once
// The system's C++ compiler as a child process: generated source in, shared library and log out.
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/result.h"

namespace cutaway {

struct CompilerOptions {
    std::string program;  // and its own options, as in CXX; empty = CXX, else c++, g++, clang++
    double timeoutSeconds = 300;
};
struct CompiledLibrary {
    std::string command, log;  // as run; what the compiler said
    double seconds = 0;
};
/// All that decides what becomes of a source: the compiler and its version, its options, the processor. Errors: no
/// compiler found.
Result<std::string> compilerIdentity(const CompilerOptions& options);
/// Compiles `source` (a path) to `library`. Errors: no compiler found (with what to install, or which name was
/// wrong), the time limit, the compiler's own message, or that it wrote nothing.
Result<CompiledLibrary> compileCpp(const std::string& source, const std::string& library,
                                   const CompilerOptions& options, const Progress& progress = {});

/// The options of a kernel's code, as compileCpp gives them, for whoever compiles it elsewhere.
std::vector<std::string> kernelOptions(std::string_view target = "native", bool debug = false);

/// What a library that stands alone is made of, as paths.
struct LibrarySources {
    std::vector<std::string> kernels;    // compiled as kernels are
    std::vector<std::string> sources;    // C++20 with `includes`
    std::vector<std::string> callers;    // the same, of long functions that call: compiled quickly
    std::vector<std::string> includes;   // folders
    std::string_view target = "native";  // of the kernels: a processor, as -march has it
    std::vector<std::string> options;    // of all of them, behind the others
    std::vector<std::string> linked;     // archives and libraries, in the linker's order
};
/// Compiles as many files at once as there are cores. Objects lie beside the sources while it works. Errors as
/// compileCpp's.
Result<CompiledLibrary> compileLibrary(const LibrarySources& from, const std::string& library,
                                       const CompilerOptions& options, const Progress& progress = {});

/// Compiles a file of C to a program beside the library that it calls ("libNAME.so"), with which it can be moved.
Result<CompiledLibrary> compileMain(const std::string& source, const std::string& name, const std::string& program,
                                    const CompilerOptions& options, const Progress& progress = {});

}  // namespace cutaway
