#pragma once
// Temporary folders that do not outlive their owner, nor the program: what its guard cannot remove any more, because it
// was killed too, the next program removes.
#include <filesystem>
#include <string>

#include "cutaway/result.h"

namespace cutaway {

/// A fresh folder below the system's temp folder, removed with everything in it by the destructor, or at exit for
/// owners that live until then. Its name is "cutaway-KIND-PID-" and letters; the program holds a lock on it (flock) for
/// as long as it lives, which tells a folder in use from one that was left.
class TempDir {
  public:
    static Result<TempDir> create(const std::string& kind = "files");
    TempDir(TempDir&& other) noexcept : m_path(std::exchange(other.m_path, {})) {}
    TempDir& operator=(TempDir&& other) noexcept;
    ~TempDir();

    const std::filesystem::path& path() const { return m_path; }
    std::string file(const std::string& name) const { return (m_path / name).string(); }

  private:
    explicit TempDir(std::filesystem::path path) : m_path(std::move(path)) {}
    std::filesystem::path m_path;
};

/// Removes folders of this user that no living program holds.
void removeLeftFolders();

}  // namespace cutaway
