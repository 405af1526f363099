#pragma once
// The one place where files are opened for reading. A path may lead to anything: a pipe that nobody writes to, a device
// without an end, a file that somebody else cuts short meanwhile; each is an error, and nothing waits or ends the
// program.
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cutaway/files.h"

namespace cutaway {

/// A regular file, open for reading. It must stay as it was when it was opened.
class InputFile {
  public:
    static Result<std::shared_ptr<const InputFile>> open(const std::string& path);
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    ~InputFile();

    const std::string& path() const { return m_path; }
    uint64_t size() const { return m_size; }
    /// Fills `into` with the bytes from `offset` on, which lie inside the file. Any thread may read. Errors: the file
    /// has been cut short or written to since it was opened, the disk.
    Result<void> read(uint64_t offset, std::span<std::byte> into) const;
    /// The first bytes as they are now, whoever writes to the file; how many there were.
    size_t peek(std::span<std::byte> into) const;
    /// All of it. Error Limit: it is larger than `limit`.
    Result<std::string> readAll(uint64_t limit) const;

  private:
    InputFile(std::string path, int descriptor) : m_path(std::move(path)), m_descriptor(descriptor) {}
    Result<void> checkUnchanged() const;

    std::string m_path;
    int m_descriptor;
    uint64_t m_size = 0;
    int64_t m_modifiedSeconds = 0, m_modifiedNanoseconds = 0;
};

/// Whole files of our own. Errors name the file and the system's reason.
Result<std::string> readFile(const std::string& path);
Result<void> writeFile(const std::string& path, std::string_view bytes);
/// Writes beside the path, to the disk, and renames: whoever reads meanwhile, or after a kill, has all of the old bytes
/// or all of the new. One that is killed leaves PATH.PROCESS and this:
inline constexpr const char* kUnfinished = ".tmp";
Result<void> replaceFile(const std::string& path, std::string_view bytes);

}  // namespace cutaway
