#pragma once
// Child processes: started without a shell, in a process group of their own, with limits on time, memory and output;
// killed as a group. What a child does cannot harm its parent, and none outlives it (support/guard.h): a child ends,
// too, with the thread that started it, which therefore must live as long as the child is wanted.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/result.h"

namespace cutaway {

struct ProcessOptions {
    std::vector<std::string> argv;                                 // a name without '/' is looked up in PATH
    std::string workingDirectory;                                  // empty = the parent's
    std::vector<std::pair<std::string, std::string>> environment;  // added to the parent's, or replacing
    std::vector<int> descriptors;    // of the parent, which the child has under the same numbers
    double wallSeconds = 60;         // after which the group is killed; 0 = no limit
    double cpuSeconds = 0;           // RLIMIT_CPU, rounded up; 0 = none
    int64_t addressSpaceBytes = 0;   // RLIMIT_AS; 0 = none; not in sanitizers' builds
    size_t outputLimit = 64u << 20;  // bytes kept of each of stdout and stderr; the rest is read and dropped
    size_t errorLimit = SIZE_MAX;    // of stderr, where it is less
};

struct ProcessEnd {
    enum class How : uint8_t { Exited, Signalled, TimedOut, Cancelled };
    How how = How::Exited;
    int exitCode = 0, signal = 0;
    std::string output, errors;  // what had been read by then
    double seconds = 0;

    bool ok() const { return how == How::Exited && exitCode == 0; }
    /// "exited with status 1", "was killed by signal 11 (Segmentation fault)", "ran longer than 2 s and was killed".
    std::string text() const;
    double limitSeconds = 0;
};

constexpr size_t kMostDescriptors = 4;  // that are sent to a child at once

/// A running child. Destroying it kills the group.
class ChildProcess {
  public:
    /// NotFound when the program does not exist, ToolFailed for anything else that prevents the start.
    static Result<ChildProcess> start(const ProcessOptions& options);
    ChildProcess(ChildProcess&&) noexcept;
    ChildProcess& operator=(ChildProcess&&) noexcept;
    ~ChildProcess();

    /// Writes all of it, reading output meanwhile so that neither side waits for the other. Errors when the child has
    /// gone, `seconds` pass, or the time limit strikes.
    /// Cancelled once `stopped` says so.
    Result<void> write(std::string_view bytes, double seconds = 1e9, const std::function<bool()>& stopped = {});
    /// The same with descriptors of the parent, which the child gets as numbers of its own (receiveDescriptors).
    Result<void> send(char byte, const std::vector<int>& descriptors);
    void closeInput();
    /// The next line of stdout without its newline. Errors: the child ended, `seconds` passed, the time limit struck.
    Result<std::string> readLine(double seconds);
    /// Exactly `count` bytes of stdout.
    Result<std::string> readBytes(size_t count, double seconds);
    /// Closes the input, reads to the end and reaps.
    ProcessEnd wait(const Progress& progress = {});
    void kill();
    bool running();
    int pid() const;

  private:
    struct State;
    explicit ChildProcess(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

/// A child that may be wanted for longer than the calling thread lives: it ends with the program.
Result<ChildProcess> startLasting(const ProcessOptions& options);

/// In the child: a byte and the descriptors that came with it; nullopt at the end of the input.
struct Received {
    char byte = 0;
    std::vector<int> descriptors;
};
std::optional<Received> receiveDescriptors();
/// In the child: whether they come, or the input ends, within so many seconds.
bool awaitDescriptors(int seconds);

/// start, write `input`, wait.
Result<ProcessEnd> runProcess(const ProcessOptions& options, std::string_view input = {},
                              const Progress& progress = {});

/// Full path of a program: itself if it contains '/', else from PATH; empty if there is none.
std::string findProgram(const std::string& name);
/// Path of the running program; helper programs are looked for beside it.
std::string programPath();
/// Where a file that belongs to the running program may lie, however the tree was built or installed.
std::vector<std::filesystem::path> placesBeside(const std::string& name);

}  // namespace cutaway
