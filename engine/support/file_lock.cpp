#include "engine/support/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

namespace cutaway {

std::optional<FileLock> FileLock::take(const std::string& path, double seconds, std::string* problem,
                                       const Progress& progress) {
    if (problem) problem->clear();
    FileLock lock(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    const auto failed = [&] {
        if (problem) *problem = path + ": " + std::generic_category().message(errno);
        return std::nullopt;
    };
    if (lock.m_file < 0) return failed();
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    constexpr std::chrono::milliseconds kPause(10);
    while (::flock(lock.m_file, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return failed();
        if (progress.cancelled() || Clock::now() >= end) return std::nullopt;
        std::this_thread::sleep_for(kPause);
    }
    return lock;
}

FileLock::~FileLock() {
    if (m_file >= 0) ::close(m_file);
}

}  // namespace cutaway
