#pragma once
// The code that compilers make of a printed kernel, as text.
#include "cutaway/loops.h"
#include "engine/codegen/cpp_printer.h"
#include "engine/loops/target.h"

namespace cutaway {

/// Compiles the kernel alone, as builds do, and lists what came of it, under the kernel's name: its functions are named
/// after what they do. Errors: the target has no such listing; the
/// compiler's; no disassembler, with the package that has it.
Result<std::string> listKernel(const std::string& name, const PrintedKernel& kernel, Listing listing,
                               const TargetInfo& target, const Progress& progress = {});

}  // namespace cutaway
