#pragma once
// The system's C++ compiler as a child process: generated source in, shared library and log out.
#include "cutaway/jobs.h"
#include "cutaway/result.h"

namespace cutaway {

struct CompilerOptions {
    std::string program;         // empty = CXX, then c++, g++, clang++
    double timeoutSeconds = 300;
};
struct CompiledLibrary {
    std::string command, log;    // as run; what the compiler said
    double seconds = 0;
};
/// Compiles `source` (a path) to `library`. Errors: no compiler found (with what to install), the time limit, or the
/// compiler's own message.
Result<CompiledLibrary> compileCpp(const std::string& source, const std::string& library, const CompilerOptions& options,
                                   const Progress& progress = {});

}  // namespace cutaway
