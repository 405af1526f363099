#include "engine/runtime/cpu/compiler.h"

#include <cstdlib>

#include "engine/support/process.h"

namespace cutaway {
namespace {

std::string findCompiler(const std::string& wanted) {
    if (!wanted.empty()) return findProgram(wanted);
    if (const char* fromEnvironment = std::getenv("CXX"); fromEnvironment != nullptr && *fromEnvironment != '\0')
        if (std::string found = findProgram(fromEnvironment); !found.empty()) return found;
    for (const char* name : {"c++", "g++", "clang++"})
        if (std::string found = findProgram(name); !found.empty()) return found;
    return {};
}

}  // namespace

Result<CompiledLibrary> compileCpp(const std::string& source, const std::string& library, const CompilerOptions& options, const Progress& progress) {
    const std::string compiler = findCompiler(options.program);
    if (compiler.empty())
        return Error{ErrorCode::ToolFailed, options.program.empty() ? "no C++ compiler found" : "C++ compiler not found: " + options.program, "",
                     {"install g++ (Debian, Ubuntu: apt install g++) or clang++, or set CXX to one", "without a compiler graphs run on the reference interpreter"}};
    ProcessOptions run;
    // -ffp-contract=off and no -ffast-math: results must be those of the interpreter, which rounds every operation.
    // -fwrapv: integers wrap as tensors' do. -fno-strict-aliasing: view.dtype reads one memory as two types. -w: vector types wider than a register warn about their ABI, which no
    // function here uses across a call.
    run.argv = {compiler, "-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
                "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti", "-w", "-shared", "-fPIC", "-o", library, source};
    run.wallSeconds = options.timeoutSeconds;
    run.environment = {{"LC_ALL", "C"}};
    CT_TRY(ProcessEnd end, runProcess(run, {}, progress));
    CompiledLibrary result;
    for (const std::string& word : run.argv) result.command += (result.command.empty() ? "" : " ") + word;
    result.log = end.output + end.errors;
    result.seconds = end.seconds;
    if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "cancelled while compiling", "", {}};
    if (end.how == ProcessEnd::How::TimedOut) return Error{ErrorCode::Limit, "the C++ compiler " + end.text(), source, {"split the graph, or raise the compile time limit"}};
    if (!end.ok()) {
        const std::string first = result.log.substr(0, 2000);
        return Error{ErrorCode::ToolFailed, "the C++ compiler " + end.text(), source, {result.command, first}};
    }
    return result;
}

}  // namespace cutaway
