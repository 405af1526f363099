#include "engine/runtime/cpu/compiler.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "engine/support/process.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

/// A path that may hold spaces, or words as make takes them: "ccache g++ -m64".
std::vector<std::string> words(const std::string& command) {
    if (!findProgram(command).empty()) return {command};
    std::istringstream stream(command);
    return {std::istream_iterator<std::string>(stream), {}};
}

constexpr const char* kInstall = "install g++ (Debian, Ubuntu: apt install g++) or clang++, or set CXX to one";

// -ffp-contract=off and no -ffast-math: every operation rounds as the interpreter's does, to the type it is
// computed in. That is float for half floats, which are rounded to their own type only where a kernel stores them,
// as PyTorch's compiler does it. -fwrapv: integers wrap as tensors' do. -fno-strict-aliasing: view.dtype reads one
// memory as two types. -w: vector types wider than a register warn about their ABI, which no function here uses
// across a call.
constexpr const char* kOptions[] = {"-std=c++17",
                                    "-O2",
                                    "-march=native",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fwrapv",
                                    "-fno-strict-aliasing",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-w"};
constexpr const char* kShared[] = {"-shared", "-fPIC"};

/// What -march=native stands for.
const std::string& processor() {
    static const std::string known = [] {
        std::ifstream file("/proc/cpuinfo");
        std::string text;
        for (std::string line; std::getline(file, line) && !line.empty();)  // of the first core
            if (line.starts_with("model name") || line.starts_with("flags") || line.starts_with("Features"))
                text += line + "\n";
        return text;
    }();
    return known;
}
/// The compiler and the options that were named with it.
Result<std::vector<std::string>> findCompiler(const std::string& wanted) {
    const char* fromEnvironment = std::getenv("CXX");
    const std::string named = !wanted.empty() || fromEnvironment == nullptr ? wanted : fromEnvironment;
    if (std::vector<std::string> command = words(named); !command.empty()) {
        std::string found = findProgram(command[0]);
        if (found.empty())
            return Error{ErrorCode::ToolFailed,
                         "C++ compiler not found: " + command[0],
                         "",
                         {wanted.empty() ? "CXX names it: set it to a compiler that is installed, or unset it"
                                         : "name one that is installed",
                          kInstall}};
        command[0] = std::move(found);
        return command;
    }
    for (const char* name : {"c++", "g++", "clang++"})
        if (std::string found = findProgram(name); !found.empty()) return std::vector{found};
    return Error{ErrorCode::ToolFailed,
                 "no C++ compiler found",
                 "",
                 {kInstall, "without a compiler graphs run on the reference interpreter"}};
}

}  // namespace

Result<std::string> compilerIdentity(const CompilerOptions& options) {
    static std::mutex mutex;
    static std::map<std::vector<std::string>, std::string> versions;  // by command; asking takes milliseconds
    CT_TRY(std::vector<std::string> command, findCompiler(options.program));
    const std::lock_guard lock(mutex);
    const auto [known, fresh] = versions.try_emplace(command);
    if (fresh) {
        ProcessOptions ask;
        ask.argv = command;
        ask.argv.emplace_back("--version");
        const auto answer = runProcess(ask);
        for (const std::string& word : command) known->second += word + " ";
        for (const std::string& option : kernelOptions()) known->second += option + " ";
        known->second += (answer ? answer->output : std::string()) + processor();
    }
    return known->second;
}

namespace {

/// The compiler with these arguments, which makes `output`.
Result<CompiledLibrary> make(const std::vector<std::string>& arguments, const std::string& source,
                             const std::string& output, const CompilerOptions& options, const Progress& progress) {
    ProcessOptions run;
    CT_TRY(run.argv, findCompiler(options.program));
    run.argv.insert(run.argv.end(), arguments.begin(), arguments.end());
    run.argv.insert(run.argv.end(), {"-o", output});
    run.wallSeconds = options.timeoutSeconds;
    // The compiler's temporary files lie beside the output and are removed with it, even if the compiler is killed.
    run.environment = {{"LC_ALL", "C"}, {"TMPDIR", std::filesystem::path(output).parent_path().string()}};
    std::error_code none;
    std::filesystem::remove(output, none);  // what is there afterwards is new
    CT_TRY(ProcessEnd end, runProcess(run, {}, progress));
    CompiledLibrary result;
    for (const std::string& word : run.argv) result.command += (result.command.empty() ? "" : " ") + word;
    result.log = end.output + end.errors;
    result.seconds = end.seconds;
    if (end.how == ProcessEnd::How::Cancelled) return Error{ErrorCode::Cancelled, "cancelled while compiling", "", {}};
    if (end.how == ProcessEnd::How::TimedOut)
        return Error{ErrorCode::Limit,
                     "the C++ compiler " + end.text(),
                     source,
                     {"split the graph, or raise the compile time limit"}};
    if (!end.ok()) {
        const std::string first = result.log.substr(0, 2000);
        return Error{ErrorCode::ToolFailed, "the C++ compiler " + end.text(), source, {result.command, first}};
    }
    std::error_code missing;
    if (std::filesystem::file_size(output, missing) == 0 || missing)
        return Error{ErrorCode::ToolFailed,
                     "the compiler wrote no library",
                     output,
                     {result.command, "CXX must name a C++ compiler"}};
    return result;
}

}  // namespace

std::vector<std::string> kernelOptions(std::string_view target, bool debug) {
    std::vector<std::string> all(std::begin(kOptions), std::end(kOptions));
    std::replace(all.begin(), all.end(), std::string("-march=native"), "-march=" + std::string(target));
    if (debug) all.emplace_back("-g");
    return all;
}

Result<CompiledLibrary> compileCpp(const std::string& source, const std::string& library,
                                   const CompilerOptions& options, const Progress& progress) {
    std::vector<std::string> arguments = kernelOptions();
    arguments.insert(arguments.end(), std::begin(kShared), std::end(kShared));
    arguments.push_back(source);
    return make(arguments, source, library, options, progress);
}

Result<CompiledLibrary> compileLibrary(const LibrarySources& from, const std::string& library,
                                       const CompilerOptions& options, const Progress& progress) {
    struct Job {
        std::string source;
        std::vector<std::string> arguments;
    };
    std::vector<Job> jobs;
    for (const std::string& kernel : from.kernels) jobs.push_back({kernel, kernelOptions(from.target)});
    std::vector<std::string> own = {"-std=c++20", "-O2", "-ffp-contract=off", "-w"};
    for (const std::string& include : from.includes) own.push_back("-I" + include);
    for (const std::string& source : from.sources) jobs.push_back({source, own});
    std::replace(own.begin(), own.end(), std::string("-O2"), std::string("-O1"));
    for (const std::string& source : from.callers) jobs.push_back({source, own});

    std::atomic<size_t> next{0};
    std::vector<Result<CompiledLibrary>> done(jobs.size(), CompiledLibrary{});
    const auto work = [&] {
        for (size_t i = next++; i < jobs.size(); i = next++) {
            std::vector<std::string> arguments = jobs[i].arguments;
            // Kernels are hidden, too: the host program alone calls them.
            arguments.insert(arguments.end(), from.options.begin(), from.options.end());
            arguments.insert(arguments.end(), {"-fPIC", "-fvisibility=hidden", "-c", jobs[i].source});
            done[i] = make(arguments, jobs[i].source, jobs[i].source + ".o", options, progress);
        }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < std::min(threadCount(), static_cast<int>(jobs.size())); ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();

    CompiledLibrary all;
    std::vector<std::string> arguments(std::begin(kShared), std::end(kShared));
    std::error_code none;
    const auto removeObjects = [&] {
        for (const Job& job : jobs) std::filesystem::remove(job.source + ".o", none);
    };
    for (size_t i = 0; i < jobs.size(); ++i) {
        if (!done[i]) {
            removeObjects();
            return std::move(done[i].error());
        }
        all.log += done[i]->command + "\n" + done[i]->log;
        all.seconds += done[i]->seconds;
        arguments.push_back(jobs[i].source + ".o");
    }
    arguments.insert(arguments.end(), from.linked.begin(), from.linked.end());
    auto linked = make(arguments, library, library, options, progress);
    removeObjects();
    if (!linked) return std::move(linked.error());
    linked->log = all.log + linked->command + "\n" + linked->log;
    linked->seconds += all.seconds;
    return std::move(*linked);
}

Result<CompiledLibrary> compileMain(const std::string& source, const std::string& name, const std::string& program,
                                    const CompilerOptions& options, const Progress& progress) {
    const std::string folder = std::filesystem::path(program).parent_path().string();
    return make({"-x", "c", "-std=c11", "-D_GNU_SOURCE", "-O1", "-w", source, "-L" + folder, "-l" + name,
                 "-Wl,-rpath,$ORIGIN", "-lm"},
                source, program, options, progress);
}

}  // namespace cutaway
