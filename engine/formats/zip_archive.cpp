#include "engine/formats/zip_archive.h"

#include <zlib.h>

#include "engine/formats/byte_cursor.h"

namespace cutaway {
namespace {

constexpr uint32_t kEndRecord = 0x06054b50, kEnd64Locator = 0x07064b50, kEnd64Record = 0x06064b50;
constexpr uint32_t kCentralHeader = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr size_t kEndRecordSize = 22, kLocatorSize = 20, kCentralSize = 46, kLocalSize = 30;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kEncryptedFlags = 0x0041;    // bits 0 and 6
constexpr uint64_t kMaxDeflateRatio = 1032;     // what the format can reach; more is a lie about the size
constexpr size_t kSummedUpTo = size_t{16} << 20;

struct Directory {
    uint64_t offset = 0, size = 0, count = 0;
};

std::span<const std::byte> span(const Storage& storage) { return {storage.data(), storage.size()}; }

std::optional<size_t> findEndRecord(std::span<const std::byte> bytes) {
    if (bytes.size() < kEndRecordSize) return std::nullopt;
    const size_t last = bytes.size() - kEndRecordSize;
    const size_t first = last > 0xFFFF ? last - 0xFFFF : 0;  // the comment after it has at most 65535 bytes
    for (size_t at = last + 1; at-- > first;) {
        ByteCursor cursor(bytes, at);
        if (*cursor.read<uint32_t>() != kEndRecord) continue;
        const uint16_t comment = *ByteCursor(bytes, at + 20).read<uint16_t>();
        if (at + kEndRecordSize + comment <= bytes.size()) return at;
    }
    return std::nullopt;
}

/// Sizes of all ones stand for values in the zip64 extra field, in this fixed order.
bool readZip64Extra(std::string_view extra, ZipEntry& entry, bool wantSize, bool wantPacked, bool wantOffset) {
    ByteCursor cursor(std::as_bytes(std::span(extra.data(), extra.size())));
    while (cursor.remaining() >= 4) {
        const uint16_t id = *cursor.read<uint16_t>();
        const auto body = cursor.text(*cursor.read<uint16_t>());
        if (!body) return false;
        if (id != 1) continue;
        ByteCursor fields(std::as_bytes(std::span(body->data(), body->size())));
        auto take = [&](bool wanted, uint64_t& field) {
            if (!wanted) return true;
            const auto value = fields.read<uint64_t>();
            if (value) field = *value;
            return value.has_value();
        };
        return take(wantSize, entry.size) && take(wantPacked, entry.packedSize) && take(wantOffset, entry.headerOffset);
    }
    return false;
}

}  // namespace

Error ZipArchive::fail(std::string_view rule, std::string what, const std::string& entry) const {
    return invalidInput(std::string(rule) + ": " + std::move(what), entry.empty() ? m_where : m_where + ": " + entry);
}

Result<ZipArchive> ZipArchive::open(std::shared_ptr<Storage> bytes, std::string where) {
    ZipArchive archive;
    archive.m_bytes = std::move(bytes);
    archive.m_where = std::move(where);
    CT_TRY_VOID(archive.readDirectory());
    return archive;
}

Result<void> ZipArchive::readDirectory() {
    const auto bytes = span(*m_bytes);
    const auto end = findEndRecord(bytes);
    if (!end) return fail("ZIP-1", "no end-of-directory record; the file is not a zip archive or is cut short");
    ByteCursor cursor(bytes, *end + 8);
    cursor.read<uint16_t>();
    Directory directory;
    directory.count = *cursor.read<uint16_t>();
    directory.size = *cursor.read<uint32_t>();
    directory.offset = *cursor.read<uint32_t>();
    if (directory.count == 0xFFFF || directory.size == 0xFFFFFFFF || directory.offset == 0xFFFFFFFF) {
        if (*end >= kLocatorSize && *ByteCursor(bytes, *end - kLocatorSize).read<uint32_t>() == kEnd64Locator) {
            const uint64_t at = *ByteCursor(bytes, *end - kLocatorSize + 8).read<uint64_t>();
            if (at > bytes.size() || bytes.size() - at < 56 || *ByteCursor(bytes, at).read<uint32_t>() != kEnd64Record)
                return fail("ZIP-1", "no zip64 record at byte " + std::to_string(at));
            ByteCursor record(bytes, at + 32);
            directory.count = *record.read<uint64_t>();
            directory.size = *record.read<uint64_t>();
            directory.offset = *record.read<uint64_t>();
        }
    }
    if (directory.offset > *end || directory.size > *end - directory.offset)
        return fail("ZIP-1", "the directory (" + std::to_string(directory.size) + " bytes at " +
                                 std::to_string(directory.offset) + ") does not lie inside the file");
    if (directory.count > directory.size / kCentralSize)
        return fail("ZIP-1", std::to_string(directory.count) + " entries do not fit a directory of " +
                                 std::to_string(directory.size) + " bytes");

    ByteCursor at(bytes.first(directory.offset + directory.size), directory.offset);
    std::vector<ZipEntry> all;
    for (uint64_t i = 0; i < directory.count; ++i) {
        const size_t start = at.position();
        auto cut = [&] { return fail("ZIP-1", "directory entry " + std::to_string(i) + " at byte " + std::to_string(start) + " is cut short"); };
        if (at.remaining() < kCentralSize) return cut();
        if (*at.read<uint32_t>() != kCentralHeader)
            return fail("ZIP-1", "no directory entry at byte " + std::to_string(start));
        at.text(4);  // versions
        ZipEntry entry;
        entry.flags = *at.read<uint16_t>();
        entry.method = *at.read<uint16_t>();
        at.text(4);  // time and date
        entry.crc = *at.read<uint32_t>();
        entry.packedSize = *at.read<uint32_t>();
        entry.size = *at.read<uint32_t>();
        const uint16_t nameLength = *at.read<uint16_t>(), extraLength = *at.read<uint16_t>(), commentLength = *at.read<uint16_t>();
        at.text(8);  // disk, attributes
        entry.headerOffset = *at.read<uint32_t>();
        const auto name = at.text(nameLength);
        const auto extra = name ? at.text(extraLength) : std::nullopt;
        if (!extra || !at.text(commentLength)) return cut();
        entry.name = std::string(*name);
        const bool size64 = entry.size == 0xFFFFFFFF, packed64 = entry.packedSize == 0xFFFFFFFF, offset64 = entry.headerOffset == 0xFFFFFFFF;
        if ((size64 || packed64 || offset64) && !readZip64Extra(*extra, entry, size64, packed64, offset64))
            return fail("ZIP-1", "zip64 sizes are missing", entry.name);
        if (!entry.name.ends_with('/')) all.push_back(std::move(entry));
    }

    const size_t slash = all.empty() ? std::string::npos : all[0].name.find('/');
    if (slash != std::string::npos) {
        const std::string prefix = all[0].name.substr(0, slash + 1);
        if (std::all_of(all.begin(), all.end(), [&](const ZipEntry& e) { return e.name.starts_with(prefix); })) {
            m_root = prefix.substr(0, slash);
            for (ZipEntry& entry : all) entry.name.erase(0, prefix.size());
        }
    }
    m_entries = std::move(all);
    for (size_t i = 0; i < m_entries.size(); ++i)
        if (!m_byName.emplace(m_entries[i].name, i).second)
            return fail("ZIP-1", "the directory names this entry twice", m_entries[i].name);
    return {};
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
    const auto found = m_byName.find(std::string(name));
    return found == m_byName.end() ? nullptr : &m_entries[found->second];
}
bool ZipArchive::hasFolder(std::string_view folder) const {
    return std::any_of(m_entries.begin(), m_entries.end(), [&](const ZipEntry& e) { return e.name.starts_with(folder); });
}

Result<size_t> ZipArchive::payloadStart(const ZipEntry& entry) const {
    const auto bytes = span(*m_bytes);
    const std::string at = "byte " + std::to_string(entry.headerOffset);
    if (entry.headerOffset > bytes.size() || bytes.size() - entry.headerOffset < kLocalSize)
        return fail("ZIP-2", "its header would lie at " + at + ", past the end", entry.name);
    if (*ByteCursor(bytes, entry.headerOffset).read<uint32_t>() != kLocalHeader)
        return fail("ZIP-2", "no local header at " + at, entry.name);
    ByteCursor lengths(bytes, entry.headerOffset + 26);
    const size_t nameLength = *lengths.read<uint16_t>(), extraLength = *lengths.read<uint16_t>();
    const size_t start = entry.headerOffset + kLocalSize + nameLength + extraLength;
    if (start > bytes.size() || entry.packedSize > bytes.size() - start)
        return fail("ZIP-2", std::to_string(entry.packedSize) + " bytes at " + std::to_string(start) + " reach past the end of the file", entry.name);
    return start;
}

Result<std::shared_ptr<Storage>> ZipArchive::read(const ZipEntry& entry) const {
    if (entry.flags & kEncryptedFlags) return fail("ZIP-3", "encrypted entries are not read", entry.name);
    if (entry.method != kStored && entry.method != kDeflated)
        return fail("ZIP-3", "compression method " + std::to_string(entry.method) + " is not read (0 stored, 8 deflated)", entry.name);
    CT_TRY(const size_t start, payloadStart(entry));
    const std::byte* data = m_bytes->data() + start;
    auto check = [&](const std::byte* content) -> Result<void> {
        if (entry.crc == 0) return {};
        const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(content), entry.size);
        if (sum != entry.crc) return fail("ZIP-4", "checksum does not fit; the entry is damaged", entry.name);
        return {};
    };
    if (entry.method == kStored) {
        if (entry.size != entry.packedSize) return fail("ZIP-3", "a stored entry with two different sizes", entry.name);
        if (entry.size <= kSummedUpTo) CT_TRY_VOID(check(data));
        return Storage::view(data, entry.size, m_bytes);
    }
    if (entry.size / kMaxDeflateRatio > entry.packedSize + 1)
        return fail("ZIP-3", std::to_string(entry.packedSize) + " bytes cannot inflate to " + std::to_string(entry.size), entry.name);
    if (entry.size > 0xFFFFFFFF || entry.packedSize > 0xFFFFFFFF)
        return unsupported("ZIP-3: deflated entries above 4 GiB are not read", m_where + ": " + entry.name, {"store the file uncompressed"});
    auto inflated = Storage::allocateUninitialized(entry.size);
    z_stream stream{};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return fail("ZIP-3", "zlib does not start", entry.name);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
    stream.avail_in = static_cast<uInt>(entry.packedSize);
    stream.next_out = reinterpret_cast<Bytef*>(inflated->data());
    stream.avail_out = static_cast<uInt>(entry.size);
    const int status = ::inflate(&stream, Z_FINISH);
    const bool whole = status == Z_STREAM_END && stream.total_out == entry.size;
    ::inflateEnd(&stream);
    if (!whole) return fail("ZIP-3", "deflated data is damaged", entry.name);
    CT_TRY_VOID(check(inflated->data()));
    return inflated;
}

Result<std::string> ZipArchive::readText(std::string_view name) const {
    const ZipEntry* entry = find(name);
    if (entry == nullptr) return Error{ErrorCode::NotFound, "no entry of this name", m_where + ": " + std::string(name), {}};
    CT_TRY(const std::shared_ptr<Storage> bytes, read(*entry));
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace cutaway
