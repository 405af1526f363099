#include "engine/support/temp_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>

#include "cutaway/program.h"
#include "engine/support/guard.h"
#include "engine/support/log.h"

namespace cutaway {
namespace {

constexpr std::string_view kPrefix = "cutaway-", kLetters = "abcdefghijklmnopqrstuvwxyz234567";
constexpr size_t kRandomLetters = 12;

bool removeFolder(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) logWarning("cannot remove temporary folder " + path.string() + ": " + error.message());
    return !error;
}

/// What is there now, with the open descriptor that holds its lock; removed at exit if owned by objects of static
/// lifetime.
class TempDirRegistry {
  public:
    ~TempDirRegistry() {
        while (!m_locks.empty()) remove(m_locks.begin()->first);
    }
    void add(const std::filesystem::path& path, int lock) {
        const std::lock_guard guard(m_mutex);
        m_locks.emplace(path, lock);
    }
    void remove(const std::filesystem::path& path) {
        int lock = -1;
        {
            const std::lock_guard guard(m_mutex);
            const auto found = m_locks.find(path);
            if (found == m_locks.end()) return;
            lock = found->second;
            m_locks.erase(found);
        }
        if (removeFolder(path)) releaseFolder(path);
        if (lock >= 0) ::close(lock);
    }

  private:
    std::mutex m_mutex;
    std::map<std::filesystem::path, int> m_locks;
};
TempDirRegistry& living() {
    static TempDirRegistry folders;
    return folders;
}

std::string randomLetters() {
    unsigned char bytes[kRandomLetters] = {};
    if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return {};
    std::string letters;
    for (const unsigned char byte : bytes) letters += kLetters[byte % kLetters.size()];
    return letters;
}

/// The descriptor of the folder with the lock on it; -1 if there is no such folder, or somebody holds it and `wait` is
/// not set.
int lockFolder(const std::filesystem::path& path, bool wait) {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return -1;
    struct stat held {
    }, named{};
    // A cleaner may have removed the folder meanwhile; then the lock is on a folder that the path no longer names.
    if (::flock(folder, wait ? LOCK_EX : LOCK_EX | LOCK_NB) == 0 && ::fstat(folder, &held) == 0 &&
        ::lstat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev)
        return folder;
    ::close(folder);
    return -1;
}

/// "cutaway-KIND-PID-LETTERS", as create() makes them.
bool isOurName(std::string_view name) {
    if (!name.starts_with(kPrefix)) return false;
    const size_t last = name.rfind('-'), before = last == std::string_view::npos ? last : name.rfind('-', last - 1);
    if (before == std::string_view::npos || before < kPrefix.size() || last == before + 1) return false;
    return name.size() - last - 1 == kRandomLetters &&
           name.find_first_not_of(kLetters, last + 1) == std::string_view::npos &&
           name.substr(before + 1, last - before - 1).find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Result<TempDir> TempDir::create(const std::string& kind) {
    std::error_code error;
    const auto base = std::filesystem::absolute(std::filesystem::temp_directory_path(error));
    if (error)
        return Error{ErrorCode::ToolFailed,
                     "no temporary folder: " + error.message(),
                     "",
                     {"set TMPDIR to a folder you may write to"}};
    while (true) {
        const auto path =
            base / (std::string(kPrefix) + kind + "-" + std::to_string(::getpid()) + "-" + randomLetters());
        if (!guardFolder(path)) return Error{ErrorCode::Cancelled, "the program is ending", path.string(), {}};
        if (::mkdir(path.c_str(), 0700) != 0) {
            const int reason = errno;
            releaseFolder(path);
            return Error{ErrorCode::ToolFailed,
                         "cannot make a temporary folder: " + std::generic_category().message(reason),
                         path.string(),
                         {"set TMPDIR to a folder you may write to"}};
        }
        const int lock = lockFolder(path, true);
        if (lock < 0 && !std::filesystem::exists(path, error)) continue;  // a cleaner was there between the two
        living().add(path, lock);
        return TempDir(path);
    }
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
    std::swap(m_path, other.m_path);
    return *this;
}

TempDir::~TempDir() {
    if (!m_path.empty()) living().remove(m_path);
}

void removeLeftFolders() {
    std::error_code error;
    const auto base = std::filesystem::temp_directory_path(error);
    for (std::filesystem::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
        const auto path = at->path();
        if (!isOurName(path.filename().native())) continue;
        struct stat status {};
        if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
            (status.st_mode & 07777) != 0700)
            continue;
        const int lock = lockFolder(path, false);
        if (lock < 0) continue;
        removeFolder(path);
        ::close(lock);
    }
}

Result<std::string> temporaryFolder() {
    CT_TRY(TempDir folder, TempDir::create("files"));
    static std::mutex mutex;
    static std::vector<TempDir> kept;
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(folder));
    return kept.back().path().string();
}

}  // namespace cutaway
