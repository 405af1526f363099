#include "tests/support/zip_builder.h"

#include <zlib.h>

namespace cutaway::testing {
namespace {

void put(std::string& out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xFF : 0);
}

std::string deflated(const std::string& content) {
    std::string out(::compressBound(content.size()) + 16, '\0');
    z_stream stream{};
    ::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ::deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    ::deflateEnd(&stream);
    return out;
}

}  // namespace

std::string buildZip(const std::vector<ZipFile>& files, bool zip64, const std::string& comment) {
    std::string out, directory;
    for (const ZipFile& file : files) {
        const uint64_t offset = file.claimedOffset >= 0 ? static_cast<uint64_t>(file.claimedOffset) : out.size();
        const std::string packed = file.deflate ? deflated(file.content) : file.content;
        const auto method = file.method != 0xFFFF ? file.method : static_cast<uint16_t>(file.deflate ? 8 : 0);
        const uint64_t size = file.claimedSize >= 0 ? static_cast<uint64_t>(file.claimedSize) : file.content.size();
        const uint64_t packedSize = file.claimedSize >= 0 && !file.deflate ? size : packed.size();
        const auto crc = file.withCrc ? ::crc32(0, reinterpret_cast<const Bytef*>(file.content.data()),
                                                static_cast<uInt>(file.content.size()))
                                      : 0;
        put(out, 0x04034b50, 4);
        put(out, 20, 2);
        put(out, file.flags | 0x0808, 2);  // as PyTorch does: sizes come later, so they are 0 here
        put(out, method, 2);
        put(out, 0, 16);
        put(out, file.name.size(), 2);
        put(out, file.localExtra.size(), 2);
        out += file.name + file.localExtra + packed;
        put(out, 0x08074b50, 4);  // data descriptor
        put(out, crc, 4);
        put(out, packedSize, 4);
        put(out, size, 4);

        std::string extra;
        if (zip64) {
            put(extra, 1, 2);
            put(extra, file.plainSizes ? 8 : 24, 2);
            if (!file.plainSizes) {
                put(extra, size, 8);
                put(extra, packedSize, 8);
            }
            put(extra, offset, 8);
        }
        put(directory, 0x02014b50, 4);
        put(directory, 20, 2);
        put(directory, 20, 2);
        put(directory, file.flags | 0x0808, 2);
        put(directory, method, 2);
        put(directory, 0, 4);
        put(directory, crc, 4);
        put(directory, zip64 && !file.plainSizes ? 0xFFFFFFFF : packedSize, 4);
        put(directory, zip64 && !file.plainSizes ? 0xFFFFFFFF : size, 4);
        put(directory, file.name.size(), 2);
        put(directory, extra.size(), 2);
        put(directory, 0, 2 + 2 + 2 + 4);
        put(directory, zip64 ? 0xFFFFFFFF : offset, 4);
        directory += file.name + extra;
    }
    const uint64_t start = out.size();
    out += directory;
    if (zip64) {
        const uint64_t record = out.size();
        put(out, 0x06064b50, 4);
        put(out, 44, 8);
        put(out, 45, 2);
        put(out, 45, 2);
        put(out, 0, 8);
        put(out, files.size(), 8);
        put(out, files.size(), 8);
        put(out, directory.size(), 8);
        put(out, start, 8);
        put(out, 0x07064b50, 4);
        put(out, 0, 4);
        put(out, record, 8);
        put(out, 1, 4);
    }
    put(out, 0x06054b50, 4);
    put(out, 0, 4);
    put(out, zip64 ? 0xFFFF : files.size(), 2);
    put(out, zip64 ? 0xFFFF : files.size(), 2);
    put(out, zip64 ? 0xFFFFFFFF : directory.size(), 4);
    put(out, zip64 ? 0xFFFFFFFF : start, 4);
    put(out, comment.size(), 2);
    return out + comment;
}

}  // namespace cutaway::testing
