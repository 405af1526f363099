#include "engine/support/temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <system_error>

#include "engine/support/log.h"

namespace cutaway {
namespace {

void removeFolder(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) logWarning("cannot remove temporary folder " + path.string() + ": " + error.message());
}

/// What is still there at exit: folders owned by objects with static lifetime.
class Living {
  public:
    ~Living() {
        for (const auto& path : m_paths) removeFolder(path);
    }
    void add(const std::filesystem::path& path) {
        const std::lock_guard lock(m_mutex);
        m_paths.insert(path);
    }
    bool drop(const std::filesystem::path& path) {
        const std::lock_guard lock(m_mutex);
        return m_paths.erase(path) > 0;
    }

  private:
    std::mutex m_mutex;
    std::set<std::filesystem::path> m_paths;
};
Living& living() {
    static Living folders;
    return folders;
}

Error systemError(const std::string& what, const std::string& path) {
    return {ErrorCode::ToolFailed, what + ": " + std::generic_category().message(errno), path, {}};
}

}  // namespace

Result<TempDir> TempDir::create(const std::string& prefix) {
    std::error_code error;
    const auto base = std::filesystem::temp_directory_path(error);
    if (error) return Error{ErrorCode::ToolFailed, "no temporary folder: " + error.message(), "", {"set TMPDIR to a folder you may write to"}};
    std::string pattern = (base / (prefix + "-XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) return systemError("cannot make a temporary folder", pattern);
    living().add(pattern);
    return TempDir(std::filesystem::path(pattern));
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
    std::swap(m_path, other.m_path);
    return *this;
}

TempDir::~TempDir() {
    if (!m_path.empty() && living().drop(m_path)) removeFolder(m_path);
}

Result<std::string> readFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return systemError("cannot open", path);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    if (file.bad()) return systemError("cannot read", path);
    return std::move(bytes).str();
}

Result<void> writeFile(const std::string& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return systemError("cannot write", path);
    return {};
}

}  // namespace cutaway
