#include "engine/support/guard.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "cutaway/program.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace {

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kPatienceMilliseconds = 3000;

/// The program's end of the socket. Records keep their borders (SOCK_SEQPACKET), so one send is one message.
int guardSocket = -1;
pid_t guardProcess = -1;
/// Set once a signal ends the program; shared with what it has forked and not yet become another program.
std::atomic<bool>* ending = nullptr;

enum class Order : char { AddGroup, DropGroup, AddFolder, DropFolder };
struct Message {
    Order order;
    pid_t group;
    char path[PATH_MAX];
};
constexpr size_t kHeadSize = offsetof(Message, path);

/// Async-signal-safe.
bool tell(const Message& message, size_t pathLength) {
    if (guardSocket < 0) return true;
    ssize_t sent;
    do sent = ::send(guardSocket, &message, kHeadSize + pathLength, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    // If somebody has killed the guard, the program goes on without this safety.
    return sent >= 0 || !ending->load();
}
bool tellGroup(Order order, pid_t group) {
    Message message;
    message.order = order;
    message.group = group;
    return tell(message, 0);
}
bool tellFolder(Order order, const std::filesystem::path& path) {
    Message message;
    message.order = order;
    message.group = 0;
    const std::string& text = path.native();
    if (text.size() > sizeof message.path) return false;
    std::memcpy(message.path, text.data(), text.size());
    return tell(message, text.size());
}

/// The guard's life: learns what there is, and cleans up when the program's end of the socket is closed.
[[noreturn]] void guardMain(int socket) {
    std::set<pid_t> groups;
    std::set<std::string> folders;
    Message message;
    while (true) {
        const ssize_t count = ::recv(socket, &message, sizeof message, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count < static_cast<ssize_t>(kHeadSize)) break;
        const std::string path(message.path, static_cast<size_t>(count) - kHeadSize);
        switch (message.order) {
            case Order::AddGroup: groups.insert(message.group); break;
            case Order::DropGroup: groups.erase(message.group); break;
            case Order::AddFolder: folders.insert(path); break;
            case Order::DropFolder: folders.erase(path); break;
        }
    }
    for (const pid_t group : groups) ::kill(-group, SIGKILL);
    // Who was killed may still be inside a system call that makes a file.
    for (int waited = 0; !folders.empty() && waited < kPatienceMilliseconds; waited += 10) {
        std::erase_if(folders, [](const std::string& folder) {
            std::error_code error;
            std::filesystem::remove_all(folder, error);
            return !std::filesystem::exists(std::filesystem::symlink_status(folder, error));
        });
        if (!folders.empty()) ::usleep(10000);
    }
    ::_exit(0);
}

/// Lets go of everything that the program has open: whoever reads its output must not wait for the guard.
[[noreturn]] void becomeGuard(int socket) {
    ::setsid();  // Ctrl-C and a closed terminal are for the program
    for (const int signal : kEndSignals) ::signal(signal, SIG_IGN);
    ::prctl(PR_SET_NAME, "cutaway-guard");
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int standard = 0; standard < 3; ++standard) ::dup2(nothing, standard);
    const int kept = ::dup2(socket, 3);
    ::close_range(4, ~0u, 0);
    if (::chdir("/") != 0) ::_exit(1);
    guardMain(kept);
}

/// Async-signal-safe: has the guard do its work now and waits until it has ended.
void dismissGuard() {
    if (guardSocket < 0) return;
    ending->store(true);
    ::shutdown(guardSocket, SHUT_WR);
    pollfd answer{guardSocket, POLLIN, 0};
    int ready;
    do ready = ::poll(&answer, 1, kPatienceMilliseconds + 500);
    while (ready < 0 && errno == EINTR);
    if (ready > 0) ::waitpid(guardProcess, nullptr, 0);
}

/// Async-signal-safe: cleans up and ends as the signal would have.
void endBySignal(int signal) {
    dismissGuard();
    // Waits until the children that were killed are gone, so that they are when this process is.
    for (int waited = 0; waited < 100 && ::waitpid(-1, nullptr, WNOHANG) >= 0; ++waited) ::poll(nullptr, 0, 1);
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

void handleEndSignals() {
    struct sigaction action {};
    action.sa_handler = endBySignal;
    sigemptyset(&action.sa_mask);
    for (const int signal : kEndSignals) sigaddset(&action.sa_mask, signal);
    for (const int signal : kEndSignals) {
        struct sigaction now {};
        ::sigaction(signal, nullptr, &now);
        if (now.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup has them ignored
    }
}

/// A standard stream that was closed is taken by something that cannot be used, or the next file to be opened would
/// become it.
void occupyStandardStreams() {
    for (int stream = 0; stream < 3; ++stream)
        if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY));
}

}  // namespace

void beginProgram() {
    occupyStandardStreams();
    ::signal(SIGXFSZ, SIG_IGN);
    removeLeftFolders();
    void* const shared = ::mmap(nullptr, sizeof *ending, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int sockets[2];
    if (shared == MAP_FAILED || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return;
    ending = new (shared) std::atomic<bool>(false);
    guardProcess = ::fork();
    if (guardProcess == 0) becomeGuard(sockets[1]);
    ::close(sockets[1]);
    if (guardProcess < 0) ::close(sockets[0]);
    else guardSocket = sockets[0];
    handleEndSignals();
    std::atexit(dismissGuard);
}

void endProgram(int status) {
    dismissGuard();
    ::_exit(status);
}

bool guardGroup(pid_t group) { return tellGroup(Order::AddGroup, group); }
void releaseGroup(pid_t group) { tellGroup(Order::DropGroup, group); }
bool guardFolder(const std::filesystem::path& path) { return tellFolder(Order::AddFolder, path); }
void releaseFolder(const std::filesystem::path& path) { tellFolder(Order::DropFolder, path); }

}  // namespace cutaway
