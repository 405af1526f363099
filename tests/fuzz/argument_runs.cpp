#include "tests/fuzz/argument_runs.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <thread>

#include "tests/support/argument_check.h"

#if defined(__SANITIZE_ADDRESS__)
/// An allocation beyond 1 GiB fails, as it would where there is little memory; it must end in words.
extern "C" const char* __asan_default_options() {
    return "max_allocation_size_mb=1024:allocator_may_return_null=1:detect_leaks=1:handle_abort=1:abort_on_error=0";
}
extern "C" const char* __lsan_default_options() { return "report_objects=0"; }
/// QtTest's program has a thread of glib's, whose memory is not reached from the copies that are forked.
extern "C" const char* __lsan_default_suppressions() { return "leak:libglib-2.0\n"; }
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }
#endif

// Of the leak sanitizer, where it is linked.
extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

namespace cutaway::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = testing::CallReport::Outcome;
constexpr int kLeaked = 23;
constexpr double kCompileSeconds = 900;
constexpr double kWaiting = 20;  // a call hangs, too, once so many times its limit has passed on the clock

/// What parent and child both see while the child runs.
struct Progress {
    std::atomic<uint64_t> seed{0};
    std::atomic<int64_t> begun{0};       // of the call, by the steady clock
    std::atomic<int64_t> worked{0};      // by the process before the call
    std::atomic<const char*> stage{""};  // a literal, at the same place in both
    std::atomic<uint64_t> outcomes[4]{};
};

/// Memory of both processes.
class SharedProgress {
  public:
    SharedProgress()
        : m_memory(::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          m_progress(new (m_memory) Progress) {}
    SharedProgress(const SharedProgress&) = delete;
    SharedProgress& operator=(const SharedProgress&) = delete;
    ~SharedProgress() { ::munmap(m_memory, sizeof(Progress)); }
    Progress* operator->() const { return m_progress; }

  private:
    void* m_memory;
    Progress* m_progress;
};

/// A file without a name that a child writes and its parent reads.
class Scratch {
  public:
    Scratch() : m_file(std::tmpfile()) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { std::fclose(m_file); }
    int descriptor() const { return ::fileno(m_file); }
    std::string content() const {
        std::string text(static_cast<size_t>(std::max<off_t>(::lseek(descriptor(), 0, SEEK_END), 0)), '\0');
        if (::pread(descriptor(), text.data(), text.size(), 0) < 0) text.clear();
        return text;
    }

  private:
    std::FILE* m_file;
};

int64_t now() { return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count(); }
/// Milliseconds that a process has spent working, whatever else the machine did meanwhile.
int64_t workOf(pid_t pid) {
    clockid_t clock = 0;
    timespec spent{};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &spent) != 0) return 0;
    return int64_t{spent.tv_sec} * 1000 + spent.tv_nsec / 1000000;
}
std::string oneLine(std::string text) {
    for (char& c : text)
        if (c == '\n' || c == '\t') c = ' ';
    return text.substr(0, 800);
}

struct Child {
    pid_t pid = 0;
    uint64_t begin = 0, end = 0;
    SharedProgress progress;
    std::unique_ptr<Scratch> errors = std::make_unique<Scratch>(), problems = std::make_unique<Scratch>();
};

/// The child's whole life.
[[noreturn]] void live(const testing::ArgumentMutations& mutations, const ArgumentRuns& runs, Child& child) {
    ::dup2(child.errors->descriptor(), STDERR_FILENO);
    ::setpgid(0, 0);
    const rlimit none{0, 0}, memory{static_cast<rlim_t>(runs.memoryBytes), static_cast<rlim_t>(runs.memoryBytes)};
    ::setrlimit(RLIMIT_CORE, &none);
    if (runs.memoryBytes > 0) ::setrlimit(RLIMIT_AS, &memory);
    Progress& progress = *child.progress.operator->();
    const auto report = [&](const testing::CallText& call, const std::string& problem) {
        const std::string line =
            std::to_string(progress.seed.load()) + "\t" + call.text() + "\t" + oneLine(problem) + "\n";
        [[maybe_unused]] const ssize_t written = ::write(child.problems->descriptor(), line.data(), line.size());
    };
    std::vector<std::pair<testing::CallText, testing::CallReport>> ran;
    for (uint64_t seed = child.begin; seed < child.end; ++seed) {
        progress.begun = now();
        progress.worked = workOf(::getpid());
        progress.seed = seed;
        const testing::CallText call = mutations.at(seed);
        testing::CallReport result = testing::checkCall(call, [&](const char* stage) { progress.stage = stage; });
        for (const std::string& problem : result.problems) report(call, problem);
        ++progress.outcomes[static_cast<size_t>(result.outcome)];
        if (runs.compiled && result.scheduled && result.problems.empty()) ran.emplace_back(call, std::move(result));
    }
    progress.stage = "compiled";
    progress.begun = now() + static_cast<int64_t>(1000 * kCompileSeconds);
    progress.worked = workOf(::getpid()) + static_cast<int64_t>(1000 * kCompileSeconds);
    if (runs.compiled)
        for (const std::string& problem : testing::checkCompiled(ran, runs.compiler)) report({}, problem);
    ran.clear();
    progress.stage = "leaks";
    const bool leaked = __lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0;
    ::_exit(leaked ? kLeaked : 0);
}

/// The sentence of a sanitizer, or how the child ended.
std::string sentenceOf(const std::string& errors, int status) {
    for (const char* mark : {"runtime error: ", "SUMMARY: ", "Invalid read", "Invalid write", "terminate called"})
        if (const size_t at = errors.find(mark); at != std::string::npos) {
            const size_t line = errors.rfind('\n', at) + 1;
            return errors.substr(line, errors.find('\n', at) - line);
        }
    if (WIFSIGNALED(status)) return std::string("signal ") + ::strsignal(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

class Runner {
  public:
    Runner(const testing::ArgumentMutations& mutations, const ArgumentRuns& runs, void (*say)(const ArgumentFailure&))
        : m_mutations(mutations), m_runs(runs), m_say(say), m_next(runs.from) {}

    ArgumentTally run() {
        const auto start = Clock::now();
        std::vector<std::unique_ptr<Child>> children;
        while (true) {
            const bool stop =
                m_runs.seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > m_runs.seconds;
            while (!stop && children.size() < static_cast<size_t>(m_runs.jobs) && m_next < m_runs.from + m_runs.count) {
                const uint64_t end = std::min(m_next + m_runs.batch, m_runs.from + m_runs.count);
                children.push_back(begin(m_next, end));
                m_next = end;
            }
            if (children.empty()) return std::move(m_tally);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            for (size_t i = 0; i < children.size();) {
                std::unique_ptr<Child> next;
                if (!ended(*children[i], next)) ++i;
                else if (next) children[i++] = std::move(next);
                else children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }

  private:
    std::unique_ptr<Child> begin(uint64_t from, uint64_t end) {
        auto child = std::make_unique<Child>();
        child->begin = from;
        child->end = end;
        child->progress->begun = now();
        child->progress->seed = from;
        std::fflush(nullptr);
        child->pid = ::fork();
        if (child->pid == 0) live(m_mutations, m_runs, *child);
        return child;
    }
    /// Reaps the child if it is done. `next`: a child that goes on behind the call that ended this one.
    bool ended(Child& child, std::unique_ptr<Child>& next) {
        int status = 0;
        bool hangs = false;
        pid_t reaped = ::waitpid(child.pid, &status, WNOHANG);
        if (reaped == 0) {
            const auto limit = static_cast<int64_t>(1000 * m_runs.callSeconds);
            const int64_t worked = workOf(child.pid) - child.progress->worked;
            const int64_t waited = now() - child.progress->begun;
            if (worked <= limit && static_cast<double>(waited) <= kWaiting * static_cast<double>(limit)) return false;
            hangs = true;
            ::kill(-child.pid, SIGKILL);
            ::kill(child.pid, SIGKILL);
            reaped = ::waitpid(child.pid, &status, 0);
        }
        collect(child);
        if (!hangs && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
        const std::string stage = child.progress->stage.load();
        const bool during = stage != "compiled" && stage != "leaks";
        ArgumentFailure failure{hangs                                                 ? "hang"
                                : WIFEXITED(status) && WEXITSTATUS(status) == kLeaked ? "leak"
                                                                                      : "crash",
                                child.progress->seed,
                                {},
                                stage,
                                {}};
        if (during) failure.call = m_mutations.at(failure.seed).text();
        else failure.call = "one of the calls " + std::to_string(child.begin) + " to " + std::to_string(child.end - 1);
        const std::string errors = child.errors->content();
        failure.detail = hangs ? "still in " + stage + " after " + std::to_string(m_runs.callSeconds) + " s"
                               : sentenceOf(errors, status) + "\n" + errors.substr(0, 6000);
        add(std::move(failure));
        if (during && child.progress->seed + 1 < child.end) next = begin(child.progress->seed + 1, child.end);
        return true;
    }
    void collect(const Child& child) {
        const auto count = [&](Outcome outcome) {
            return child.progress->outcomes[static_cast<size_t>(outcome)].load();
        };
        m_tally.refusedByTypes += count(Outcome::RefusedByTypes);
        m_tally.refusedWhenRun += count(Outcome::RefusedWhenRun);
        m_tally.large += count(Outcome::Large);
        m_tally.ran += count(Outcome::Ran);
        m_tally.calls = m_tally.refusedByTypes + m_tally.refusedWhenRun + m_tally.large + m_tally.ran;
        std::string_view lines;
        const std::string problems = child.problems->content();
        for (lines = problems; !lines.empty();) {
            const size_t end = std::min(lines.find('\n'), lines.size());
            const std::string_view line = lines.substr(0, end);
            lines.remove_prefix(std::min(end + 1, lines.size()));
            const size_t one = line.find('\t'), two = line.find('\t', one + 1), colon = line.find(':', two + 1);
            if (colon == std::string_view::npos) continue;
            add({"problem", std::stoull(std::string(line.substr(0, one))),
                 std::string(line.substr(one + 1, two - one - 1)), std::string(line.substr(two + 1, colon - two - 1)),
                 std::string(line.substr(colon + 2))});
        }
    }
    void add(ArgumentFailure failure) {
        auto& same = m_tally.failures[failure.signature()];
        same.push_back(std::move(failure));
        if (same.size() == 1) m_say(same.front());
    }

    const testing::ArgumentMutations& m_mutations;
    const ArgumentRuns& m_runs;
    void (*m_say)(const ArgumentFailure&);
    uint64_t m_next;
    ArgumentTally m_tally;
};

}  // namespace

std::string ArgumentFailure::signature() const {
    std::string first = detail.substr(0, detail.find('\n'));
    if (const size_t worst = first.find(" in "); kind == "problem" && first.find("numbers differ") != std::string::npos)
        first.resize(worst);
    std::string text =
        kind + " " + stage + " " + (kind == "problem" || kind == "hang" ? call.substr(0, call.find('(')) + " " : "");
    for (char c : first)
        if (kind == "crash" || (c != '-' && (c < '0' || c > '9'))) text += c;
    return text;
}

ArgumentTally runArguments(const testing::ArgumentMutations& mutations, const ArgumentRuns& runs,
                           void (*say)(const ArgumentFailure&)) {
    return Runner(mutations, runs, say).run();
}

}  // namespace cutaway::fuzz
