#pragma once
// A lock between processes: flock on a file that is made for it and stays. The system gives it up when its holder ends,
// however that happens. Programs that lock the same file the same way, as PyTorch's file locks do, keep each other out.
#include <optional>
#include <string>
#include <utility>

#include "cutaway/jobs.h"

namespace cutaway {

class FileLock {
  public:
    /// Waits at most so many seconds, 0: not at all. None: somebody else has it still, the wait was cancelled, or the
    /// file cannot be made (`problem` says why, and is empty otherwise).
    static std::optional<FileLock> take(const std::string& path, double seconds, std::string* problem = nullptr,
                                        const Progress& progress = {});
    FileLock(FileLock&& other) noexcept : m_file(std::exchange(other.m_file, -1)) {}
    FileLock& operator=(FileLock&& other) noexcept {
        std::swap(m_file, other.m_file);
        return *this;
    }
    ~FileLock();

  private:
    explicit FileLock(int file) : m_file(file) {}
    int m_file;
};

}  // namespace cutaway
