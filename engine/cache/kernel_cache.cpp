#include "engine/cache/kernel_cache.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "engine/cache/sealed_folder.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"

namespace cutaway {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSpace = "kernel library";
constexpr uintmax_t kMostBytes = uintmax_t{512} << 20;

std::string digestOf(const std::string& bytes) { return Hasher().add(std::string_view(bytes)).finish().hex(); }

}  // namespace

std::shared_ptr<KernelCache> KernelCache::open(const std::string& storePath) {
    const std::string path = storePath.empty() ? ValueStore::defaultPath() : storePath;
    if (path.empty()) return nullptr;
    auto index = ValueStore::open(path);
    if (!index) return nullptr;
    const std::string folder = (fs::path(path).parent_path() / "kernels").string();
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return nullptr;
    fs::permissions(folder, fs::perms::owner_all, error);
    if (!isPrivateFolder(folder)) return nullptr;
    return std::shared_ptr<KernelCache>(new KernelCache(std::move(*index), folder));
}

std::optional<std::string> KernelCache::find(const std::string& key) {
    const auto name = m_index->find(std::string(kSpace), key);
    if (!name || !*name || (*name)->find('/') != std::string::npos) return std::nullopt;
    const std::string path = m_folder + "/" + **name;
    auto found = m_sound.find(**name);
    if (found == m_sound.end()) {
        const auto bytes = readFile(path);  // its name is its digest
        found = m_sound.emplace(**name, bytes && digestOf(*bytes) + ".so" == **name).first;
    }
    return found->second ? std::optional(path) : std::nullopt;
}

void KernelCache::keep(const std::string& library, const std::vector<std::string>& keys) {
    const auto bytes = readFile(library);
    if (!bytes) return;
    const std::string name = digestOf(*bytes) + ".so", path = m_folder + "/" + name;
    // Whoever looks meanwhile sees all of the file or none.
    const std::string unfinished = path + "." + std::to_string(::getpid());
    std::error_code error;
    if (!writeFile(unfinished, *bytes)) return;
    fs::rename(unfinished, path, error);
    if (error) return;
    m_sound[name] = true;
    for (const std::string& key : keys)
        if (!m_index->keep(std::string(kSpace), key, name)) return;
    makeRoom();
}

void KernelCache::makeRoom() const {
    std::vector<std::pair<fs::file_time_type, fs::path>> files;
    uintmax_t bytes = 0;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(m_folder, error)) {
        const uintmax_t own = entry.file_size(error);
        if (error) continue;
        bytes += own;
        files.emplace_back(entry.last_write_time(error), entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& [time, path] : files) {
        if (bytes <= kMostBytes) return;
        bytes -= std::min(bytes, fs::file_size(path, error));
        fs::remove(path, error);
    }
}

}  // namespace cutaway
