#include "engine/formats/zip_archive.h"

#include <zlib.h>

#include <limits>

#include "engine/formats/byte_cursor.h"

namespace cutaway {
namespace {

constexpr uint32_t kEndRecord = 0x06054b50, kEnd64Locator = 0x07064b50, kEnd64Record = 0x06064b50;
constexpr uint32_t kCentralHeader = 0x02014b50, kLocalHeader = 0x04034b50;
constexpr size_t kEndRecordSize = 22, kEnd64RecordSize = 56, kLocatorSize = 20, kCentralSize = 46, kLocalSize = 30;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kEncryptedFlags = 0x0041;          // bits 0 and 6
constexpr uint64_t kMaxDeflateRatio = 1032;           // what the format can reach; more is a lie about the size
constexpr uint64_t kReadAtOnce = uint64_t{64} << 10;  // what is smaller costs less than coming back for it
constexpr uint64_t kMaxDirectory = uint64_t{1} << 30;

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

Error ZipArchive::fail(std::string what, const std::string& entry) const {
    return invalidInput(std::move(what), entry.empty() ? m_where : m_where + ": " + entry);
}

Result<ZipArchive> ZipArchive::open(ByteSource source, std::string where) {
    ZipArchive archive(std::move(source), std::move(where));
    CT_TRY_VOID(archive.readDirectory());
    return archive;
}

Result<void> ZipArchive::readDirectory() {
    const uint64_t fileSize = m_source.size();
    const uint64_t tailSize = std::min<uint64_t>(fileSize, kLocatorSize + kEndRecordSize + 0xFFFF);
    CT_TRY(const std::shared_ptr<Storage> tailBytes, m_source.read(fileSize - tailSize, tailSize));
    const auto tail = span(*tailBytes);
    const auto end = findEndRecord(tail);
    if (!end) return fail("no end-of-directory record; the file is not a zip archive or is cut short");
    const uint64_t endOffset = fileSize - tailSize + *end;
    ByteCursor cursor(tail, *end + 8);
    cursor.read<uint16_t>();
    Directory directory;
    directory.count = *cursor.read<uint16_t>();
    directory.size = *cursor.read<uint32_t>();
    directory.offset = *cursor.read<uint32_t>();
    if (directory.count == 0xFFFF || directory.size == 0xFFFFFFFF || directory.offset == 0xFFFFFFFF) {
        if (*end >= kLocatorSize && *ByteCursor(tail, *end - kLocatorSize).read<uint32_t>() == kEnd64Locator) {
            const uint64_t at = *ByteCursor(tail, *end - kLocatorSize + 8).read<uint64_t>();
            if (at > fileSize || fileSize - at < kEnd64RecordSize)
                return fail("no zip64 record at byte " + std::to_string(at));
            CT_TRY(const std::shared_ptr<Storage> recordBytes, m_source.read(at, kEnd64RecordSize));
            ByteCursor record(span(*recordBytes), 0);
            if (*record.read<uint32_t>() != kEnd64Record) return fail("no zip64 record at byte " + std::to_string(at));
            record.text(28);
            directory.count = *record.read<uint64_t>();
            directory.size = *record.read<uint64_t>();
            directory.offset = *record.read<uint64_t>();
        }
    }
    if (directory.offset > endOffset || directory.size > endOffset - directory.offset)
        return fail("the directory (" + std::to_string(directory.size) + " bytes at " +
                    std::to_string(directory.offset) + ") does not lie inside the file");
    if (directory.count > directory.size / kCentralSize)
        return fail(std::to_string(directory.count) + " entries do not fit a directory of " +
                    std::to_string(directory.size) + " bytes");
    if (directory.size > kMaxDirectory) return fail("a directory of " + std::to_string(directory.size) + " bytes");
    CT_TRY(const std::shared_ptr<Storage> bytes, m_source.read(directory.offset, directory.size));
    return parseDirectory(span(*bytes), directory.offset, directory.count);
}

Result<void> ZipArchive::parseDirectory(std::span<const std::byte> bytes, uint64_t offset, uint64_t count) {
    ByteCursor at(bytes, 0);
    std::vector<ZipEntry> all;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t start = offset + at.position();
        auto cut = [&] {
            return fail("directory entry " + std::to_string(i) + " at byte " + std::to_string(start) + " is cut short");
        };
        if (at.remaining() < kCentralSize) return cut();
        if (*at.read<uint32_t>() != kCentralHeader) return fail("no directory entry at byte " + std::to_string(start));
        at.text(4);  // versions
        ZipEntry entry;
        entry.flags = *at.read<uint16_t>();
        entry.method = *at.read<uint16_t>();
        at.text(4);  // time and date
        entry.crc = *at.read<uint32_t>();
        entry.packedSize = *at.read<uint32_t>();
        entry.size = *at.read<uint32_t>();
        const uint16_t nameLength = *at.read<uint16_t>(), extraLength = *at.read<uint16_t>(),
                       commentLength = *at.read<uint16_t>();
        at.text(8);  // disk, attributes
        entry.headerOffset = *at.read<uint32_t>();
        const auto name = at.text(nameLength);
        const auto extra = name ? at.text(extraLength) : std::nullopt;
        if (!extra || !at.text(commentLength)) return cut();
        entry.name = std::string(*name);
        const bool size64 = entry.size == 0xFFFFFFFF, packed64 = entry.packedSize == 0xFFFFFFFF,
                   offset64 = entry.headerOffset == 0xFFFFFFFF;
        if ((size64 || packed64 || offset64) && !readZip64Extra(*extra, entry, size64, packed64, offset64))
            return fail("zip64 sizes are missing", entry.name);
        if (!entry.name.ends_with('/')) all.push_back(std::move(entry));
    }

    m_entries = std::move(all);
    stripRoot();
    for (size_t i = 0; i < m_entries.size(); ++i)
        if (!m_byName.emplace(m_entries[i].name, i).second)
            return fail("the directory names this entry twice", m_entries[i].name);
    // torch.save can be told to leave checksums out, of all entries or of the storages, and writes 0 for them;
    // torch.export always has them.
    m_summed = find("data.pkl") == nullptr &&
               std::any_of(m_entries.begin(), m_entries.end(), [](const ZipEntry& e) { return e.crc != 0; });
    return {};
}

void ZipArchive::stripRoot() {
    const size_t slash = m_entries.empty() ? std::string::npos : m_entries[0].name.find('/');
    if (slash != std::string::npos) {
        const std::string prefix = m_entries[0].name.substr(0, slash + 1);
        if (std::all_of(m_entries.begin(), m_entries.end(),
                        [&](const ZipEntry& e) { return e.name.starts_with(prefix); })) {
            m_root = prefix.substr(0, slash);
            for (ZipEntry& entry : m_entries) entry.name.erase(0, prefix.size());
        }
    }
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
    const auto found = m_byName.find(std::string(name));
    return found == m_byName.end() ? nullptr : &m_entries[found->second];
}
bool ZipArchive::hasFolder(std::string_view folder) const {
    return std::any_of(m_entries.begin(), m_entries.end(),
                       [&](const ZipEntry& e) { return e.name.starts_with(folder); });
}

Result<uint64_t> ZipArchive::payloadStart(const ZipEntry& entry) const {
    if (entry.flags & kEncryptedFlags) return fail("encrypted entries are not read", entry.name);
    if (entry.method != kStored && entry.method != kDeflated)
        return fail("compression method " + std::to_string(entry.method) + " is not read (0 stored, 8 deflated)",
                    entry.name);
    const std::string at = "byte " + std::to_string(entry.headerOffset);
    if (entry.headerOffset > m_source.size() || m_source.size() - entry.headerOffset < kLocalSize)
        return fail("its header would lie at " + at + ", past the end", entry.name);
    CT_TRY(const std::shared_ptr<Storage> header, m_source.read(entry.headerOffset, kLocalSize));
    if (*ByteCursor(span(*header), 0).read<uint32_t>() != kLocalHeader)
        return fail("no local header at " + at, entry.name);
    ByteCursor lengths(span(*header), 26);
    const size_t nameLength = *lengths.read<uint16_t>(), extraLength = *lengths.read<uint16_t>();
    const uint64_t start = entry.headerOffset + kLocalSize + nameLength + extraLength;
    if (start > m_source.size() || entry.packedSize > m_source.size() - start)
        return fail(
            std::to_string(entry.packedSize) + " bytes at " + std::to_string(start) + " reach past the end of the file",
            entry.name);
    if (entry.method == kStored) {
        if (entry.size != entry.packedSize) return fail("a stored entry has two different sizes", entry.name);
        return start;
    }
    if (entry.size / kMaxDeflateRatio > entry.packedSize + 1)
        return fail(std::to_string(entry.packedSize) + " bytes cannot inflate to " + std::to_string(entry.size),
                    entry.name);
    if (entry.size > 0xFFFFFFFF || entry.packedSize > 0xFFFFFFFF)
        return unsupported("deflated entries above 4 GiB are not read", m_where + ": " + entry.name,
                           {"store the file uncompressed"});
    return start;
}

Result<void> ZipArchive::checkSum(const ZipEntry& entry, std::span<const std::byte> content) const {
    if (entry.crc == 0 && !m_summed) return {};
    const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    if (sum != entry.crc) return fail("wrong checksum; the entry is damaged", entry.name);
    return {};
}

Result<void> ZipArchive::unpack(const ZipEntry& entry, uint64_t start, std::span<std::byte> into) const {
    if (entry.method == kStored) {
        CT_TRY_VOID(m_source.readInto(start, into));
        return checkSum(entry, into);
    }
    CT_TRY(const std::shared_ptr<Storage> packed, m_source.read(start, entry.packedSize));
    z_stream stream{};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return fail("zlib cannot start", entry.name);
    stream.next_in = reinterpret_cast<Bytef*>(packed->data());
    stream.avail_in = static_cast<uInt>(entry.packedSize);
    stream.next_out = reinterpret_cast<Bytef*>(into.data());
    stream.avail_out = static_cast<uInt>(into.size());
    const int status = ::inflate(&stream, Z_FINISH);
    const bool whole = status == Z_STREAM_END && stream.total_out == into.size();
    ::inflateEnd(&stream);
    if (!whole) return fail("deflated data is damaged", entry.name);
    return checkSum(entry, into);
}

Result<std::shared_ptr<Storage>> ZipArchive::read(const ZipEntry& entry, uint64_t limit) const {
    CT_TRY(const uint64_t start, payloadStart(entry));
    if (entry.size > limit)
        return Error{ErrorCode::Limit,
                     std::to_string(entry.size) + " bytes where at most " + std::to_string(limit) + " are expected",
                     m_where + ": " + entry.name,
                     {}};
    if (entry.method == kStored && m_source.atHand()) {
        CT_TRY(std::shared_ptr<Storage> view, m_source.read(start, entry.size));
        CT_TRY_VOID(checkSum(entry, span(*view)));
        return view;
    }
    auto bytes = Storage::allocateUninitialized(entry.size);
    CT_TRY_VOID(unpack(entry, start, {bytes->data(), bytes->size()}));
    return Storage::view(bytes->data(), bytes->size(), bytes);  // read-only, as the file is
}

Result<std::shared_ptr<Storage>> ZipArchive::readLater(const ZipEntry& entry) const {
    if (m_source.atHand() || entry.size <= kReadAtOnce) return read(entry, std::numeric_limits<uint64_t>::max());
    CT_TRY(const uint64_t start, payloadStart(entry));
    // What remains of the archive is what this entry needs.
    ZipArchive rest(m_source, m_where);
    rest.m_summed = m_summed;
    return Storage::deferred(entry.size,
                             [rest = std::move(rest), entry, start](std::span<std::byte> into) -> Result<void> {
                                 auto unpacked = rest.unpack(entry, start, into);
                                 if (!unpacked) unpacked.error().where = rest.m_where + ": " + entry.name;
                                 return unpacked;
                             });
}

Result<std::string> ZipArchive::readText(std::string_view name, uint64_t limit) const {
    const ZipEntry* entry = find(name);
    if (entry == nullptr)
        return Error{ErrorCode::NotFound, "no entry of this name", m_where + ": " + std::string(name), {}};
    CT_TRY(const std::shared_ptr<Storage> bytes, read(*entry, limit));
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Result<ByteSource> ZipArchive::source(const ZipEntry& entry) const {
    if (entry.method == kStored && !m_source.atHand()) {
        CT_TRY(const uint64_t start, payloadStart(entry));
        return m_source.part(start, entry.size);
    }
    CT_TRY(std::shared_ptr<Storage> bytes, read(entry));
    return ByteSource(std::move(bytes));
}

}  // namespace cutaway
