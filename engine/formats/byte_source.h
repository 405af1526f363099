#pragma once
// The bytes that readers read: of a file, read in pieces when needed, or bytes in memory. Files are not mapped, so what
// a reader or a kernel holds stays the same even if the file is written to or cut short.
#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "engine/support/files.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

class ByteSource {
  public:
    /// Errors: there is no such file, it is a folder, a pipe, a device.
    static Result<ByteSource> open(const std::string& path);
    ByteSource(std::shared_ptr<Storage> bytes) : m_bytes(std::move(bytes)), m_size(m_bytes->size()) {}

    uint64_t size() const { return m_size; }
    /// The caller has checked that these bytes lie inside the source. Errors: the file has changed, the disk failed.
    Result<std::shared_ptr<Storage>> read(uint64_t offset, uint64_t size) const;
    /// All of it as a text. Error Limit: more than 1 GiB.
    Result<std::shared_ptr<Storage>> readText(const std::string& where) const;
    Result<void> readInto(uint64_t offset, std::span<std::byte> into) const;
    /// At most `size` bytes from the start, for telling what the source is.
    Result<std::shared_ptr<Storage>> readStart(uint64_t size) const { return read(0, std::min(size, m_size)); }
    /// False for a file: large parts that are kept should then be read when they are first used (Storage::deferred).
    bool atHand() const { return m_file == nullptr; }
    /// A part of it as a source of its own, such as a file in an archive.
    ByteSource part(uint64_t offset, uint64_t size) const;

  private:
    ByteSource() = default;

    std::shared_ptr<const InputFile> m_file;  // null: the bytes are at hand
    std::shared_ptr<Storage> m_bytes;
    uint64_t m_start = 0, m_size = 0;  // in the file or in the bytes
};

}  // namespace cutaway
