#include "engine/formats/zip_writer.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

namespace cutaway {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kAlignment = 64;

Error cannotWrite(const std::string& path) {
    return {ErrorCode::ToolFailed, std::string("cannot write the file: ") + std::strerror(errno), path, {}};
}

/// Little-endian numbers one after the other.
class Bytes {
  public:
    Bytes& u16(uint64_t value) { return number(value, 2); }
    Bytes& u32(uint64_t value) { return number(value, 4); }
    std::string text;

  private:
    Bytes& number(uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
        return *this;
    }
};

std::string beside(const std::string& path) { return path + ".new"; }

}  // namespace

Result<ZipWriter> ZipWriter::create(const std::string& path, std::string root) {
    std::FILE* file = std::fopen(beside(path).c_str(), "wb");
    if (file == nullptr) return cannotWrite(path);
    return ZipWriter(path, std::move(root), file);
}
ZipWriter::ZipWriter(ZipWriter&& other) noexcept
    : m_path(std::move(other.m_path)),
      m_root(std::move(other.m_root)),
      m_file(std::exchange(other.m_file, nullptr)),
      m_at(other.m_at),
      m_entries(std::move(other.m_entries)) {}
ZipWriter::~ZipWriter() {
    if (m_file == nullptr) return;
    std::fclose(m_file);
    std::error_code ignored;
    std::filesystem::remove(beside(m_path), ignored);
}

Result<void> ZipWriter::put(std::string_view bytes) {
    if (m_at + bytes.size() > kMost)
        return Error{ErrorCode::Limit, "an archive of 4 GiB and more", m_path, {"leave the weights out"}};
    if (std::fwrite(bytes.data(), 1, bytes.size(), m_file) != bytes.size()) return cannotWrite(m_path);
    m_at += bytes.size();
    return {};
}

Result<void> ZipWriter::add(std::string_view name, std::string_view bytes) {
    Entry entry{m_root + "/" + std::string(name), 0, static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(m_at)};
    if (bytes.size() > kMost) return put(bytes);  // which refuses it
    entry.crc = static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
    constexpr uint64_t kHeader = 30, kExtra = 4;
    const uint64_t start = m_at + kHeader + entry.name.size() + kExtra;
    const uint64_t padding = (kAlignment - start % kAlignment) % kAlignment;
    Bytes header;
    header.u32(0x04034b50).u16(20).u16(0x0800).u16(0).u16(0).u16(0x21).u32(entry.crc).u32(entry.size).u32(entry.size);
    header.u16(entry.name.size()).u16(kExtra + padding);
    header.text += entry.name;
    header.text += "FB";  // as PyTorch's writer names its padding
    header.u16(padding);
    header.text.append(padding, 'Z');
    CT_TRY_VOID(put(header.text));
    CT_TRY_VOID(put(bytes));
    m_entries.push_back(std::move(entry));
    return {};
}

Result<void> ZipWriter::finish() {
    const uint64_t start = m_at;
    for (const Entry& entry : m_entries) {
        Bytes record;
        record.u32(0x02014b50).u16(20).u16(20).u16(0x0800).u16(0).u16(0).u16(0x21);
        record.u32(entry.crc).u32(entry.size).u32(entry.size).u16(entry.name.size());
        record.u16(0).u16(0).u16(0).u16(0).u32(0).u32(entry.offset);
        CT_TRY_VOID(put(record.text + entry.name));
    }
    Bytes end;
    end.u32(0x06054b50).u16(0).u16(0).u16(m_entries.size()).u16(m_entries.size()).u32(m_at - start).u32(start).u16(0);
    CT_TRY_VOID(put(end.text));
    const bool closed = std::fclose(std::exchange(m_file, nullptr)) == 0;
    std::error_code error;
    if (closed) std::filesystem::rename(beside(m_path), m_path, error);
    if (!closed || error) return cannotWrite(m_path);
    return {};
}

}  // namespace cutaway
