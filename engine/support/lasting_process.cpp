// Children that are wanted for longer than the job that started them, and how they are handed one request after the
// other.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "engine/support/process.h"

namespace cutaway {

bool awaitDescriptors(int seconds) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    int ready;
    do ready = ::poll(&input, 1, seconds * 1000);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

std::optional<Received> receiveDescriptors() {
    Received received;
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
    iovec data{&received.byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got;
    do got = ::recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got != 1) return std::nullopt;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        received.descriptors.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(received.descriptors.data(), CMSG_DATA(header), received.descriptors.size() * sizeof(int));
    }
    return received;
}

namespace {

/// A thread that starts such children, since a child ends with the thread that started it (process.h).
class Keeper {
  public:
    Keeper() : m_thread([this] { work(); }) {}
    ~Keeper() {
        {
            const std::lock_guard lock(m_mutex);
            m_ends = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }
    Result<ChildProcess> start(const ProcessOptions& options) {
        std::packaged_task<Result<ChildProcess>()> task([&] { return ChildProcess::start(options); });
        auto started = task.get_future();
        {
            const std::lock_guard lock(m_mutex);
            m_tasks.push_back(&task);
        }
        m_changed.notify_all();
        return started.get();
    }

  private:
    void work() {
        std::unique_lock lock(m_mutex);
        while (true) {
            m_changed.wait(lock, [&] { return m_ends || !m_tasks.empty(); });
            if (m_tasks.empty()) return;
            auto* const task = m_tasks.front();
            m_tasks.pop_front();
            lock.unlock();
            (*task)();
            lock.lock();
        }
    }
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<std::packaged_task<Result<ChildProcess>()>*> m_tasks;
    bool m_ends = false;
    std::thread m_thread;  // last: it uses the others
};

}  // namespace

Result<ChildProcess> startLasting(const ProcessOptions& options) {
    static Keeper keeper;
    return keeper.start(options);
}

}  // namespace cutaway
