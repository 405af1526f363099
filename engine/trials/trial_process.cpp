// The process that forks trials. It has no threads: nothing here may start one.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <string>

#include "cutaway/guarded.h"
#include "engine/passes/pipeline.h"
#include "engine/support/fault_points.h"
#include "engine/support/sanitized.h"
#include "engine/trials/trial_server.h"

namespace cutaway {
namespace {

constexpr int kOutOfMemory = 70;

/// What every trial would otherwise do anew: tables of operators and rules.
void warmUp() {
    const auto quiet = guarded([]() -> Result<int> {
        const std::string asked = askedFaults();
        setFault({});  // they are meant for the trials
        TrialJob job;
        job.graph = "def forward(x: \"f32[2]\"):\n    relu = aten.relu.default(x)\n    return (relu,)\n";
        job.check.level = TrialCheck::Level::Runs;
        job.inputs.push_back(Tensor::zeros(DType::F32, {2}));
        StatusPage board;
        runJob(job, board);
        setFault(asked);
        return 0;
    });
    static_cast<void>(quiet);
}

int64_t addressSpaceNow() {
    std::ifstream file("/proc/self/statm");
    int64_t pages = 0;
    file >> pages;
    return pages * ::sysconf(_SC_PAGESIZE);
}

struct Descriptors {
    int request, reply, errors, tensors;
};

/// The life of a trial.
[[noreturn]] void becomeTrial(const Descriptors& where, int64_t memoryBytes, const std::vector<Tensor>& table) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::lseek(where.errors, 0, SEEK_SET);
    ::dup2(where.errors, STDERR_FILENO);
    const rlimit core{0, 0};
    ::setrlimit(RLIMIT_CORE, &core);
    if (memoryBytes > 0 && !kSanitized) {
        const auto limit = static_cast<rlim_t>(memoryBytes + addressSpaceNow());
        const rlimit both{limit, limit};
        ::setrlimit(RLIMIT_AS, &both);
    }
    const auto served = guarded([&]() -> Result<int> {
        const SharedMemory request(::dup(where.request), "the graph");
        SharedMemory reply(::dup(where.reply), "the answer");
        std::shared_ptr<const void> owner;
        CT_TRY(const auto page, reply.share(kStatusBytes, owner));
        StatusPage& board = *reinterpret_cast<StatusPage*>(page.data());
        CT_TRY(const Message message, readMessage(request, 0));
        CT_TRY(const TrialJob job, readJob(message, table));
        const TrialOutcome outcome = runJob(job, board);
        CT_TRY_VOID(writeMessage(reply, kStatusBytes, writeOutcome(outcome), {}));
        return 0;
    });
    if (served) ::_exit(0);
    std::fprintf(stderr, "%s\n", served.error().text().c_str());
    ::_exit(served.error().code == ErrorCode::Limit ? kOutOfMemory : 1);
}

/// Ends everything that trials have left: orphans become children of this process.
void killOrphans() {
    while (true) {
        std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
        bool any = false;
        for (pid_t child = 0; file >> child;) {
            ::kill(child, SIGKILL);
            any = true;
        }
        if (!any) return;
        while (::waitpid(-1, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

class Server {
  public:
    Server(const Descriptors& where, std::vector<Tensor> table) : m_where(where), m_table(std::move(table)) {}

    int serve() {
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        sigset_t children;
        sigemptyset(&children);
        sigaddset(&children, SIGCHLD);
        ::sigprocmask(SIG_BLOCK, &children, nullptr);
        m_signals = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
        while (true) {
            pollfd events[2] = {{STDIN_FILENO, POLLIN, 0}, {m_signals, POLLIN, 0}};
            const int ready = ::poll(events, 2, m_child > 0 ? millisecondsLeft() : -1);
            if (ready < 0 && errno != EINTR) return 1;
            if (m_child > 0 && millisecondsLeft() == 0) end(true);
            if (events[1].revents) childEnded();
            if (events[0].revents && !readOrders()) break;
        }
        if (m_child > 0) ::kill(-m_child, SIGKILL);
        killOrphans();
        return 0;
    }

  private:
    int millisecondsLeft() const {
        const auto left = m_until - std::chrono::steady_clock::now();
        return static_cast<int>(
            std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(left).count()));
    }

    bool readOrders() {
        char block[256];
        const ssize_t count = ::read(STDIN_FILENO, block, sizeof block);
        if (count <= 0) return count < 0 && errno == EINTR;
        m_text.append(block, static_cast<size_t>(count));
        for (size_t end; (end = m_text.find('\n')) != std::string::npos; m_text.erase(0, end + 1))
            obey(m_text.substr(0, end));
        return true;
    }

    void obey(const std::string& line) {
        if (line == "kill") {
            if (m_child > 0) end(false);
            return;
        }
        double seconds = 0;
        long long memory = 0;
        if (std::sscanf(line.c_str(), "run %lf %lld", &seconds, &memory) != 2) return;
        if (::ftruncate(m_where.errors, 0) != 0) std::perror("cutaway-trials");
        m_until = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                         std::chrono::duration<double>(seconds));
        m_child = ::fork();
        if (m_child == 0) becomeTrial(m_where, memory, m_table);
        if (m_child < 0) say("memory");
        else ::setpgid(m_child, m_child);
    }

    /// Ends the trial from outside.
    void end(bool outOfTime) {
        ::kill(-m_child, SIGKILL);
        ::kill(m_child, SIGKILL);
        while (::waitpid(m_child, nullptr, 0) < 0 && errno == EINTR) {
        }
        m_child = -1;
        killOrphans();
        say(outOfTime ? "time" : "killed");
    }

    void childEnded() {
        signalfd_siginfo facts{};
        while (::read(m_signals, &facts, sizeof facts) == static_cast<ssize_t>(sizeof facts)) {
        }
        if (m_child <= 0) return;
        int status = 0;
        if (::waitpid(m_child, &status, WNOHANG) != m_child) return;
        ::kill(-m_child, SIGKILL);
        m_child = -1;
        killOrphans();
        if (WIFSIGNALED(status)) say("signal " + std::to_string(WTERMSIG(status)));
        else if (WEXITSTATUS(status) == kOutOfMemory) say("memory");
        else say("exit " + std::to_string(WEXITSTATUS(status)));
    }

    static void say(const std::string& line) {
        const std::string bytes = line + "\n";
        static_cast<void>(!::write(STDOUT_FILENO, bytes.data(), bytes.size()));
    }

    Descriptors m_where;
    std::vector<Tensor> m_table;
    int m_signals = -1;
    pid_t m_child = -1;
    std::chrono::steady_clock::time_point m_until;
    std::string m_text;
};

std::optional<int> number(std::string_view text) {
    int value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && value >= 0 ? std::optional(value)
                                                                                         : std::nullopt;
}

}  // namespace

int trialServerMain(int argc, char** argv) {
    int found[4] = {-1, -1, -1, -1};
    bool sound = argc == 5;
    for (int i = 0; sound && i < 4; ++i) {
        const auto value = number(argv[i + 1]);
        sound = value.has_value();
        found[i] = value.value_or(-1);
    }
    if (!sound) {
        std::fprintf(stderr,
                     "usage: cutaway-trials REQUEST REPLY ERRORS TENSORS\nStarted by cutaway; tries "
                     "graphs in processes of their own.\n");
        return 2;
    }
    const Descriptors where{found[0], found[1], found[2], found[3]};
    const auto served = guarded([&]() -> Result<int> {
        const SharedMemory tensors(::dup(where.tensors), "the weights");
        CT_TRY(Message table, readMessage(tensors, 0));
        warmUp();
        return Server(where, std::move(table.tensors)).serve();
    });
    if (served) return *served;
    std::fprintf(stderr, "%s\n", served.error().text().c_str());
    return 1;
}

}  // namespace cutaway
