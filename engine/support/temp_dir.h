#pragma once
// Temporary folders that do not outlive their owner, nor the program if it ends normally.
#include <filesystem>
#include <string>

#include "cutaway/result.h"

namespace cutaway {

/// A fresh folder below the system's temp folder, removed with everything in it by the destructor, or at exit for
/// owners that live until then.
class TempDir {
  public:
    static Result<TempDir> create(const std::string& prefix = "cutaway");
    TempDir(TempDir&& other) noexcept : m_path(std::exchange(other.m_path, {})) {}
    TempDir& operator=(TempDir&& other) noexcept;
    ~TempDir();

    const std::filesystem::path& path() const { return m_path; }
    std::string file(const std::string& name) const { return (m_path / name).string(); }

  private:
    explicit TempDir(std::filesystem::path path) : m_path(std::move(path)) {}
    std::filesystem::path m_path;
};

/// Whole files. Errors name the file and the system's reason.
Result<std::string> readFile(const std::string& path);
Result<void> writeFile(const std::string& path, std::string_view bytes);

}  // namespace cutaway
