#pragma once
// Zip files as PyTorch writes them, read by the central directory alone (spec: input-formats §1, ZIP-1..6).
// Our own reader because libzip cannot tell where a stored entry's bytes lie, and weights are mapped, not copied.
// Leaves alone: writing, encryption, multi-part archives, names (nothing is ever extracted to disk).
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cutaway/result.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

struct ZipEntry {
    std::string name;               // root stripped
    uint64_t headerOffset = 0;      // bytes from the start of the archive
    uint64_t size = 0, packedSize = 0;
    uint32_t crc = 0;               // 0 = not computed
    uint16_t method = 0, flags = 0;
};

class ZipArchive {
  public:
    /// Reads the directory; no payload is touched. `where` names the archive in errors.
    static Result<ZipArchive> open(std::shared_ptr<Storage> bytes, std::string where);

    /// In directory order, folders left out.
    const std::vector<ZipEntry>& entries() const { return m_entries; }
    /// The first path component that all entries share, without the slash; empty for flat archives.
    const std::string& root() const { return m_root; }
    const std::string& where() const { return m_where; }
    const ZipEntry* find(std::string_view name) const;
    /// True if any entry lies in the folder, given with its slash: "data/weights/".
    bool hasFolder(std::string_view folder) const;

    /// The entry's bytes: a view of the archive when stored, an inflated copy when deflated. A checksum that does not
    /// fit is an error; stored payloads above 16 MiB are not summed, so that they stay unread until they are used.
    Result<std::shared_ptr<Storage>> read(const ZipEntry& entry) const;
    /// Same for text. Error NotFound for a name that is not there.
    Result<std::string> readText(std::string_view name) const;

  private:
    Result<void> readDirectory();
    Error fail(std::string_view rule, std::string what, const std::string& entry = {}) const;
    Result<size_t> payloadStart(const ZipEntry& entry) const;

    std::shared_ptr<Storage> m_bytes;
    std::string m_where, m_root;
    std::vector<ZipEntry> m_entries;
    std::unordered_map<std::string, size_t> m_byName;
};

}  // namespace cutaway
