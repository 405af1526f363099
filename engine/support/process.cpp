#include "engine/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cutaway/program.h"
#include "engine/support/check.h"
#include "engine/support/guard.h"
#include "engine/support/sanitized.h"

extern char** environ;

namespace cutaway {
namespace {

using Clock = std::chrono::steady_clock;

/// A file descriptor that closes itself.
class Handle {
  public:
    Handle() = default;
    explicit Handle(int fd) : m_fd(fd) {}
    Handle(Handle&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(m_fd, other.m_fd);
        return *this;
    }
    ~Handle() { close(); }
    int get() const { return m_fd; }
    bool open() const { return m_fd >= 0; }
    void close() {
        if (m_fd >= 0) ::close(m_fd);
        m_fd = -1;
    }

  private:
    int m_fd = -1;
};

struct Pipe {
    Handle read, write;
};
bool makePipe(Pipe& pipe) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    pipe.read = Handle(ends[0]);
    pipe.write = Handle(ends[1]);
    return true;
}

Error systemError(const std::string& what, int number) {
    return {ErrorCode::ToolFailed, what + ": " + std::generic_category().message(number), "", {}};
}

/// Where programs are looked for; a child without a PATH gets it too, so that it finds its own where we found it.
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

std::vector<std::string> mergedEnvironment(std::vector<std::pair<std::string, std::string>> changes) {
    std::vector<std::string> merged;
    const bool pathGiven =
        std::any_of(changes.begin(), changes.end(), [](const auto& change) { return change.first == "PATH"; });
    if (!pathGiven && std::getenv("PATH") == nullptr) changes.emplace_back("PATH", kDefaultPath);
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view key = text.substr(0, text.find('='));
        const bool replaced =
            std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return c.first == key; });
        if (!replaced) merged.emplace_back(text);
    }
    for (const auto& [key, value] : changes) merged.push_back(key + "=" + value);
    return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

void limit(decltype(RLIMIT_CPU) which, uint64_t value) {
    const rlimit both{value, value};
    ::setrlimit(which, &both);
}

struct Launch {
    const char* program;
    char** argv;
    char** environment;
    const ProcessOptions* options;
    int input, output, errors, report;
    pid_t parent;
};

/// The guard knows the group before there can be a grandchild; the kernel ends the child itself together with the
/// thread that started it.
bool tieToParent(pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent had ended before that took effect
    return guardGroup(::getpid());
}

/// Handlers are the parent's; what it ignores stays ignored. All signals are blocked until here.
void resetSignals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now {};
        ::sigaction(signal, nullptr, &now);
        if (now.sa_handler != SIG_IGN) ::signal(signal, SIG_DFL);
    }
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Between fork and exec only async-signal-safe calls are allowed: the parent may have threads holding locks.
[[noreturn]] void becomeChild(const Launch& launch) {
    const bool wanted = tieToParent(launch.parent);
    ::dup2(launch.input, STDIN_FILENO);
    ::dup2(launch.output, STDOUT_FILENO);
    ::dup2(launch.errors, STDERR_FILENO);
    for (const int descriptor : launch.options->descriptors) ::fcntl(descriptor, F_SETFD, 0);
    resetSignals();
    limit(RLIMIT_CORE, 0);
    if (launch.options->cpuSeconds > 0) limit(RLIMIT_CPU, static_cast<uint64_t>(std::ceil(launch.options->cpuSeconds)));
    if (launch.options->addressSpaceBytes > 0 && !kSanitized)
        limit(RLIMIT_AS, static_cast<uint64_t>(launch.options->addressSpaceBytes));
    const std::string& folder = launch.options->workingDirectory;
    if (wanted && (folder.empty() || ::chdir(folder.c_str()) == 0))
        ::execve(launch.program, launch.argv, launch.environment);
    const int reason = wanted ? errno : ECANCELED;
    [[maybe_unused]] const ssize_t written = ::write(launch.report, &reason, sizeof reason);
    ::_exit(127);
}

}  // namespace

std::string ProcessEnd::text() const {
    auto rounded = [](double value) {
        std::string digits = std::to_string(value);
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.') digits.pop_back();
        return digits;
    };
    switch (how) {
        case How::Exited: return "exited with status " + std::to_string(exitCode);
        case How::Signalled: return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
        case How::TimedOut: return "ran longer than " + rounded(limitSeconds) + " s and was killed";
        case How::Cancelled: return "was cancelled";
    }
    return {};
}

struct ChildProcess::State {
    pid_t pid = -1;
    bool reaped = false;
    int status = 0;
    Handle input, output, errors;
    std::string outputText, errorText;
    size_t outputLimit = 0, errorLimit = 0;
    double wallSeconds = 0;
    Clock::time_point started = Clock::now();
    ProcessEnd::How how = ProcessEnd::How::Exited;

    double elapsed() const { return std::chrono::duration<double>(Clock::now() - started).count(); }
    double remaining() const { return wallSeconds > 0 ? wallSeconds - elapsed() : 1e9; }
    void killGroup() {
        if (reaped || pid <= 0) return;
        ::kill(-pid, SIGKILL);
        ::kill(pid, SIGKILL);  // which may have left its group
    }
    /// Reaps the child if it has ended, or when it ends; false if it runs.
    bool reap(bool wait) {
        if (reaped || pid <= 0) return true;
        siginfo_t ended{};
        int got;
        do got = ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG));
        while (got < 0 && errno == EINTR);
        if (got == 0 && ended.si_pid == 0) return false;
        // Grandchildren that were left behind go too, while the dead child's number still keeps the group's from being
        // used again.
        ::kill(-pid, SIGKILL);
        releaseGroup(pid);
        while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        return reaped = true;
    }
    ~State() {
        killGroup();
        reap(true);
    }
    void take(Handle& from, std::string& into, size_t limit) {
        char block[65536];
        const ssize_t count = ::read(from.get(), block, sizeof block);
        if (count > 0) {
            if (into.size() < limit) into.append(block, std::min(static_cast<size_t>(count), limit - into.size()));
        } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
            from.close();
        }
    }
    /// One round of poll: reads what is there, writes what can be written. False when nothing happened in time.
    bool exchange(double seconds, std::string_view* pending) {
        pollfd fds[3];
        nfds_t count = 0;
        auto add = [&](const Handle& handle, short events) {
            if (handle.open()) fds[count++] = {handle.get(), events, 0};
        };
        add(output, POLLIN);
        add(errors, POLLIN);
        const bool writing = pending != nullptr && !pending->empty() && input.open();
        if (writing) add(input, POLLOUT);
        if (count == 0) return false;
        const int ready = ::poll(fds, count, static_cast<int>(std::clamp(seconds, 0.0, 0.2) * 1000) + 1);
        if (ready <= 0) return false;
        for (nfds_t i = 0; i < count; ++i) {
            if (fds[i].revents == 0) continue;
            if (output.open() && fds[i].fd == output.get()) take(output, outputText, outputLimit);
            else if (errors.open() && fds[i].fd == errors.get()) take(errors, errorText, errorLimit);
            else if (writing && fds[i].fd == input.get()) {
                const ssize_t sent = ::send(input.get(), pending->data(), pending->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
                if (sent > 0) pending->remove_prefix(static_cast<size_t>(sent));
                else if (sent < 0 && errno != EAGAIN && errno != EINTR) input.close();
            }
        }
        return true;
    }
    /// Kills the group if the time limit has passed; true if it has.
    bool outOfTime() {
        if (remaining() > 0) return false;
        how = ProcessEnd::How::TimedOut;
        killGroup();
        return true;
    }
};

ChildProcess::ChildProcess(std::unique_ptr<State> state) : m_state(std::move(state)) {}
ChildProcess::ChildProcess(ChildProcess&&) noexcept = default;
ChildProcess& ChildProcess::operator=(ChildProcess&&) noexcept = default;
ChildProcess::~ChildProcess() = default;

Result<ChildProcess> ChildProcess::start(const ProcessOptions& options) {
    CT_CHECK(!options.argv.empty(), "a process has a program");
    const std::string program = findProgram(options.argv[0]);
    if (program.empty()) return Error{ErrorCode::NotFound, "program not found: " + options.argv[0], "", {}};
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return systemError("cannot make a pipe", errno);
    Handle ourInput(sockets[0]), theirInput(sockets[1]);
    Pipe output, errors, report;
    if (!makePipe(output) || !makePipe(errors) || !makePipe(report)) return systemError("cannot make a pipe", errno);

    std::vector<std::string> argv = options.argv, environment = mergedEnvironment(options.environment);
    std::vector<char*> argvPointers = pointers(argv), environmentPointers = pointers(environment);
    const Launch launch{program.c_str(),    argvPointers.data(), environmentPointers.data(),
                        &options,           theirInput.get(),    output.write.get(),
                        errors.write.get(), report.write.get(),  ::getpid()};
    auto state = std::make_unique<State>();
    // A signal between fork and exec must not run the parent's handlers in the child.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    state->pid = ::fork();
    if (state->pid == 0) becomeChild(launch);
    const int forkError = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (state->pid < 0) return systemError("cannot start " + program, forkError);
    // Both sides set the group, so that it exists whoever runs first.
    ::setpgid(state->pid, state->pid);
    report.write.close();
    int reason = 0;
    ssize_t got;
    do got = ::read(report.read.get(), &reason, sizeof reason);
    while (got < 0 && errno == EINTR);
    if (got == sizeof reason) return systemError("cannot start " + program, reason);
    state->input = std::move(ourInput);
    state->output = std::move(output.read);
    state->errors = std::move(errors.read);
    state->outputLimit = options.outputLimit;
    state->errorLimit = std::min(options.outputLimit, options.errorLimit);
    state->wallSeconds = options.wallSeconds;
    return ChildProcess(std::move(state));
}

Result<void> ChildProcess::write(std::string_view bytes, double seconds, const std::function<bool()>& stopped) {
    const auto start = Clock::now();
    while (!bytes.empty()) {
        const double left = seconds - std::chrono::duration<double>(Clock::now() - start).count();
        if (left <= 0 || m_state->outOfTime())
            return Error{ErrorCode::Limit, "the child process ran out of time", "", {}};
        m_state->exchange(std::min(left, m_state->remaining()), &bytes);
        if (stopped && stopped()) return Error{ErrorCode::Cancelled, "the call was stopped", "", {}};
        if (!m_state->input.open())
            return Error{ErrorCode::ToolFailed, "the child process stopped reading its input", "", {}};
    }
    return {};
}

Result<void> ChildProcess::send(char byte, const std::vector<int>& descriptors) {
    CT_CHECK(descriptors.size() <= kMostDescriptors, "a few descriptors at a time");
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
    iovec data{&byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ssize_t sent;
    do sent = ::sendmsg(m_state->input.get(), &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent == 1) return {};
    return Error{ErrorCode::ToolFailed, "the child process stopped reading its input", "", {}};
}

void ChildProcess::closeInput() { m_state->input.close(); }

namespace {
Error endedEarly() { return {ErrorCode::ToolFailed, "the child process ended before it answered", "", {}}; }
}  // namespace

Result<std::string> ChildProcess::readLine(double seconds) {
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (true) {
        const size_t end = m_state->outputText.find('\n');
        if (end != std::string::npos) {
            std::string line = m_state->outputText.substr(0, end);
            m_state->outputText.erase(0, end + 1);
            return line;
        }
        if (!m_state->output.open()) return endedEarly();
        const double left = std::chrono::duration<double>(until - Clock::now()).count();
        if (left <= 0 || m_state->outOfTime())
            return Error{ErrorCode::Limit, "the child process did not answer in time", "", {}};
        m_state->exchange(std::min(left, m_state->remaining()), nullptr);
    }
}

Result<std::string> ChildProcess::readBytes(size_t count, double seconds) {
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    while (m_state->outputText.size() < count) {
        if (!m_state->output.open()) return endedEarly();
        const double left = std::chrono::duration<double>(until - Clock::now()).count();
        if (left <= 0 || m_state->outOfTime())
            return Error{ErrorCode::Limit, "the child process did not answer in time", "", {}};
        m_state->exchange(std::min(left, m_state->remaining()), nullptr);
    }
    std::string bytes = m_state->outputText.substr(0, count);
    m_state->outputText.erase(0, count);
    return bytes;
}

ProcessEnd ChildProcess::wait(const Progress& progress) {
    State& s = *m_state;
    s.input.close();
    // Ends when both outputs are closed; a grandchild that keeps them open is bounded by the time limit.
    while (s.output.open() || s.errors.open()) {
        if (s.outOfTime()) break;
        if (progress.cancelled()) {
            s.how = ProcessEnd::How::Cancelled;
            s.killGroup();
            break;
        }
        s.exchange(s.remaining(), nullptr);
        if (!running()) {
            // What is left in the pipes after its end is read without waiting.
            while ((s.output.open() || s.errors.open()) && s.exchange(0, nullptr)) {
            }
            break;
        }
    }
    while (running() && !s.outOfTime() && !progress.cancelled()) ::usleep(1000);
    if (running()) s.killGroup();
    s.reap(true);
    ProcessEnd end;
    end.how = s.how;
    end.limitSeconds = s.wallSeconds;
    end.seconds = s.elapsed();
    if (WIFEXITED(s.status)) end.exitCode = WEXITSTATUS(s.status);
    if (WIFSIGNALED(s.status)) {
        end.signal = WTERMSIG(s.status);
        if (end.how == ProcessEnd::How::Exited) end.how = ProcessEnd::How::Signalled;
    }
    end.output = std::move(s.outputText);
    end.errors = std::move(s.errorText);
    return end;
}

void ChildProcess::kill() { m_state->killGroup(); }

bool ChildProcess::running() { return !m_state->reap(false); }

int ChildProcess::pid() const { return m_state->pid; }

Result<ProcessEnd> runProcess(const ProcessOptions& options, std::string_view input, const Progress& progress) {
    CT_TRY(ChildProcess child, ChildProcess::start(options));
    // A child that does not want all of its input is not an error; how it ended says more.
    if (!input.empty()) static_cast<void>(child.write(input).has_value());
    return child.wait(progress);
}

std::string findProgram(const std::string& name) {
    std::error_code error;
    const auto runs = [&](const std::string& file) {
        return ::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, error);
    };
    if (name.find('/') != std::string::npos) return runs(name) ? name : std::string();
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : kDefaultPath;
    while (!rest.empty()) {
        const std::string_view folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
        if (folder.empty()) continue;
        std::string candidate = std::string(folder) + "/" + name;
        if (runs(candidate)) return candidate;
    }
    return {};
}

std::string programPath() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::vector<std::filesystem::path> placesBeside(const std::string& name) {
    const auto folder = std::filesystem::path(programPath()).parent_path();
    return {folder / name, folder.parent_path() / "bin" / name, folder.parent_path() / "libexec" / "cutaway" / name};
}

Result<std::string> findHelper(const std::string& name, const char* environmentVariable) {
    std::vector<std::string> tried;
    if (const char* given = std::getenv(environmentVariable); given != nullptr && *given != '\0') {
        if (!findProgram(given).empty()) return std::string(given);
        return Error{ErrorCode::NotFound,
                     std::string(environmentVariable) + " names no program that can be run: " + given,
                     "",
                     {std::string("correct it, or unset it: then ") + name +
                      " is looked for beside the running program and in PATH"}};
    }
    for (const auto& candidate : placesBeside(name)) {
        if (!findProgram(candidate.string()).empty()) return candidate.string();
        tried.push_back(candidate.string());
    }
    if (std::string found = findProgram(name); !found.empty()) return found;
    tried.push_back("PATH");
    return Error{ErrorCode::NotFound,
                 "helper program " + name + " not found",
                 "",
                 {"looked in: " +
                      [&] {
                          std::string list;
                          for (const std::string& place : tried) list += (list.empty() ? "" : ", ") + place;
                          return list;
                      }(),
                  std::string("set ") + environmentVariable + " to its path"}};
}

}  // namespace cutaway
