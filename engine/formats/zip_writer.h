#pragma once
// Zip files as PyTorch's loader takes them: entries stored, below one folder. Leaves alone: compression, archives of
// 4 GiB and more.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

/// Writes beside the target and renames at the end, so that nobody sees half a file.
class ZipWriter {
  public:
    /// `root`: the folder of all entries, without its slash.
    static Result<ZipWriter> create(const std::string& path, std::string root);
    ZipWriter(ZipWriter&& other) noexcept;
    ~ZipWriter();
    ZipWriter(const ZipWriter&) = delete;
    ZipWriter& operator=(const ZipWriter&) = delete;

    /// The payload begins at a multiple of 64.
    Result<void> add(std::string_view name, std::string_view bytes);
    Result<void> finish();

  private:
    struct Entry {
        std::string name;
        uint32_t crc = 0, size = 0, offset = 0;
    };
    ZipWriter(std::string path, std::string root, std::FILE* file)
        : m_path(std::move(path)), m_root(std::move(root)), m_file(file) {}
    Result<void> put(std::string_view bytes);

    std::string m_path, m_root;
    std::FILE* m_file;
    uint64_t m_at = 0;
    std::vector<Entry> m_entries;
};

}  // namespace cutaway
