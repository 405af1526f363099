#include "engine/formats/byte_source.h"

#include "engine/support/check.h"

namespace cutaway {

Result<ByteSource> ByteSource::open(const std::string& path) {
    ByteSource source;
    CT_TRY(source.m_file, InputFile::open(path));
    source.m_size = source.m_file->size();
    return source;
}

Result<void> ByteSource::readInto(uint64_t offset, std::span<std::byte> into) const {
    CT_CHECK(offset <= m_size && into.size() <= m_size - offset, "readers ask for what lies inside their source");
    if (m_file) return m_file->read(m_start + offset, into);
    CT_TRY_VOID(m_bytes->load());
    if (!into.empty()) std::memcpy(into.data(), m_bytes->data() + m_start + offset, into.size());
    return {};
}

Result<std::shared_ptr<Storage>> ByteSource::read(uint64_t offset, uint64_t size) const {
    CT_CHECK(offset <= m_size && size <= m_size - offset, "readers ask for what lies inside their source");
    if (!m_file) {
        CT_TRY_VOID(m_bytes->load());
        if (offset == 0 && size == m_bytes->size()) return m_bytes;
        return Storage::view(m_bytes->data() + m_start + offset, size, m_bytes);
    }
    auto bytes = Storage::allocateUninitialized(size);
    CT_TRY_VOID(readInto(offset, {bytes->data(), size}));
    return Storage::view(bytes->data(), size, bytes);  // read-only, as the file is
}

Result<std::shared_ptr<Storage>> ByteSource::readText(const std::string& where) const {
    constexpr uint64_t kMaxText = uint64_t{1} << 30;
    if (m_size > kMaxText)
        return Error{
            ErrorCode::Limit, "a text of " + std::to_string(m_size) + " bytes; at most 1 GiB is read", where, {}};
    return read(0, m_size);
}

ByteSource ByteSource::part(uint64_t offset, uint64_t size) const {
    CT_CHECK(offset <= m_size && size <= m_size - offset, "readers ask for what lies inside their source");
    ByteSource source = *this;
    source.m_start += offset;
    source.m_size = size;
    return source;
}

}  // namespace cutaway
