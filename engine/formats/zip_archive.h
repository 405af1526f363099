#pragma once
// Zip files as PyTorch writes them, read by the central directory alone (spec: input-formats §1, ZIP-1..6).
// Our own reader because libzip cannot tell where a stored entry's bytes lie, and weights are read only when they are
// used. Leaves alone: writing, encryption, multi-part archives, names (nothing is ever extracted to disk).
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/byte_source.h"

namespace cutaway {

struct ZipEntry {
    std::string name;           // root stripped
    uint64_t headerOffset = 0;  // bytes from the start of the archive
    uint64_t size = 0, packedSize = 0;
    uint32_t crc = 0;
    uint16_t method = 0, flags = 0;
};

class ZipArchive {
  public:
    /// Reads the directory; no payload is touched. `where` names the archive in errors.
    static Result<ZipArchive> open(ByteSource source, std::string where);

    /// In directory order, folders left out.
    const std::vector<ZipEntry>& entries() const { return m_entries; }
    /// The first path component that all entries share, without the slash; empty for flat archives.
    const std::string& root() const { return m_root; }
    const std::string& where() const { return m_where; }
    const ZipEntry* find(std::string_view name) const;
    /// True if any entry lies in the folder, given with its slash: "data/weights/".
    bool hasFolder(std::string_view folder) const;

    /// Largest size of documents (graphs, pickles, texts), and of the short texts that say what an archive is.
    static constexpr uint64_t kMaxDocument = uint64_t{1} << 30, kMaxMarker = 1 << 12;

    /// The entry's bytes: of bytes at hand and stored a view, else a copy. Errors: damage, a checksum that does not
    /// fit, more than `limit` bytes.
    Result<std::shared_ptr<Storage>> read(const ZipEntry& entry, uint64_t limit = kMaxDocument) const;
    /// The same for weights, of any size: of a file, what is large is read and checked when it is first used.
    Result<std::shared_ptr<Storage>> readLater(const ZipEntry& entry) const;
    /// Same for text. Error NotFound for a name that is not there.
    Result<std::string> readText(std::string_view name, uint64_t limit = kMaxDocument) const;
    /// The entry as a file of its own: an archive in the archive.
    Result<ByteSource> source(const ZipEntry& entry) const;

  private:
    explicit ZipArchive(ByteSource source, std::string where)
        : m_source(std::move(source)), m_where(std::move(where)) {}
    Result<void> readDirectory();
    Result<void> parseDirectory(std::span<const std::byte> bytes, uint64_t offset, uint64_t count);
    void stripRoot();
    Error fail(std::string what, const std::string& entry = {}) const;
    /// Where the payload begins, of an entry that can be read.
    Result<uint64_t> payloadStart(const ZipEntry& entry) const;
    Result<void> unpack(const ZipEntry& entry, uint64_t start, std::span<std::byte> into) const;
    Result<void> checkSum(const ZipEntry& entry, std::span<const std::byte> content) const;

    ByteSource m_source;
    bool m_summed = false;  // an entry without a checksum is damaged
    std::string m_where, m_root;
    std::vector<ZipEntry> m_entries;
    std::unordered_map<std::string, size_t> m_byName;
};

}  // namespace cutaway
