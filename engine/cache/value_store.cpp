#include "engine/cache/value_store.h"

#include <sqlite3.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/support/file_lock.h"
#include "engine/support/files.h"

namespace cutaway {
namespace {

constexpr int kVersion = 1;  // of the table below, and what user_version says in it; grows with every change
constexpr int kPatienceMilliseconds = 5000;
/// SQLite's header: its name, and at byte 68 what tells one program's databases from another's (PRAGMA application_id
/// below).
constexpr std::string_view kSqlite("SQLite format 3\0", 16);
constexpr std::string_view kApplication("CTST", 4);
constexpr size_t kApplicationAt = 68;

/// What SQLite says of a file that cannot be used, as opposed to a disk or a lock that gives trouble.
bool isDamage(int code) {
    return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB || (code & 0xff) == SQLITE_ERROR ||
           (code & 0xff) == SQLITE_FORMAT;
}

Error fault(const std::string& path, const std::string& what) {
    return {ErrorCode::ToolFailed,
            "the store of measured values cannot be used: " + what,
            path,
            {"name another file with --cache FILE, or none with --cache off"}};
}

constexpr const char* kForeign = "it is another program's database";

/// The name, or the name and the first number that make a path where nothing is.
std::string freeName(const std::string& wanted) {
    std::error_code error;
    std::string name = wanted;
    for (int number = 2; std::filesystem::exists(std::filesystem::symlink_status(name, error)); ++number)
        name = wanted + "." + std::to_string(number);
    return name;
}

}  // namespace

struct ValueStore::Database {
    sqlite3* handle = nullptr;
    int code = SQLITE_OK;

    Database() = default;
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    ~Database() { sqlite3_close_v2(handle); }

    std::string message() const { return handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code); }
    /// Runs a statement with these texts; the first column of the first row, if there is a row. `code` says how it
    /// went.
    std::optional<std::string> run(const char* sql, std::initializer_list<std::string_view> texts = {}) {
        std::optional<std::string> value;
        rows(sql, texts, [&](sqlite3_stmt* row) {
            if (!value) value = text(row, 0);
        });
        return value;
    }
    static std::string text(sqlite3_stmt* row, int column) {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
        return {bytes ? bytes : "", static_cast<size_t>(sqlite3_column_bytes(row, column))};
    }
    /// The same for each row.
    template <class Each>
    void rows(const char* sql, std::initializer_list<std::string_view> texts, Each&& each) {
        sqlite3_stmt* statement = nullptr;
        code = sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr);
        int position = 0;
        for (const std::string_view text : texts)
            if (code == SQLITE_OK)
                code = sqlite3_bind_text(statement, ++position, text.data(), static_cast<int>(text.size()),
                                         SQLITE_TRANSIENT);
        if (code == SQLITE_OK) {
            while ((code = sqlite3_step(statement)) == SQLITE_ROW) each(statement);
            if (code == SQLITE_DONE) code = SQLITE_OK;
        }
        const int finished = sqlite3_finalize(statement);
        if (code == SQLITE_OK) code = finished;
    }
    bool ok() const { return code == SQLITE_OK; }
};

ValueStore::ValueStore(std::string path) : m_path(std::move(path)) {}
ValueStore::~ValueStore() = default;

std::string ValueStore::remark() const {
    const std::lock_guard lock(m_mutex);
    return m_remark;
}

std::string ValueStore::defaultPath() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    // The specification has relative paths ignored.
    if (cache && cache[0] == '/') return std::string(cache) + "/cutaway/store.sqlite";
    return home && home[0] == '/' ? std::string(home) + "/.cache/cutaway/store.sqlite" : std::string();
}

Result<void> ValueStore::check(const std::string& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) return {};
    const auto file = InputFile::open(path);
    if (!file) return fault(path, file.error().message);
    std::string header(kApplicationAt + kApplication.size(), '\0');
    const size_t count = (*file)->peek(std::as_writable_bytes(std::span(header)));
    if (count == 0) return {};
    if (!header.starts_with(kSqlite)) return fault(path, "it is a file of another kind");
    if (header.substr(kApplicationAt) != kApplication) return fault(path, kForeign);
    return {};
}

Result<void> ValueStore::connect(bool& damaged, std::string& problem) {
    damaged = false;
    auto database = std::make_unique<Database>();
    database->code = sqlite3_open_v2(m_path.c_str(), &database->handle,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
    if (database->ok()) database->code = sqlite3_busy_timeout(database->handle, kPatienceMilliseconds);
    // Nothing waits for the disk: a store that a power failure damages is set aside, and all of it can be made again.
    if (database->ok()) database->run("PRAGMA synchronous = OFF");
    std::optional<std::string> version;
    if (database->ok()) version = database->run("PRAGMA user_version");
    if (database->ok() && version == "0") {
        // New: the table and the version come in one go. Another program may have begun its own meanwhile.
        const auto others = database->run("SELECT count(*) FROM sqlite_master WHERE tbl_name <> 'entry'");
        if (database->ok() && others != "0") return fault(m_path, kForeign);
        for (
            const char* sql :
            {"BEGIN IMMEDIATE",
             "CREATE TABLE IF NOT EXISTS entry (space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID",
             "PRAGMA user_version = 1", "PRAGMA application_id = 1129599828", "COMMIT"})
            if (database->ok()) database->run(sql);
    } else if (database->ok() && version != std::to_string(kVersion)) {
        damaged = true;
        problem = "it has version " + version.value_or("?") + ", not " + std::to_string(kVersion);
        return fault(m_path, problem);
    }
    if (database->ok()) database->run("SELECT value FROM entry LIMIT 1");
    if (!database->ok()) {
        damaged = database->handle && isDamage(database->code);
        problem = database->message();
        return fault(m_path, problem);
    }
    m_database = std::move(database);
    return {};
}

Result<void> ValueStore::beginAnew(const std::string& problem) {
    m_database.reset();
    constexpr double kSeconds = 60;
    const auto lock = FileLock::take(m_path + ".lock", kSeconds);
    bool damaged = false;
    std::string now;
    if (connect(damaged, now)) return {};  // another process was first
    CT_TRY_VOID(check(m_path));
    std::error_code error;
    const std::string aside = freeName(m_path + ".damaged");
    std::filesystem::rename(m_path, aside, error);
    if (error) return fault(m_path, problem + "; it cannot be set aside: " + error.message());
    std::filesystem::remove(m_path + "-journal", error);
    m_remark = "the store of measured values " + m_path + " could not be used (" + problem + "); it is kept as " +
               aside + ", and a new one was begun";
    return connect(damaged, now);
}

/// Runs `use`, and once more on a new file if it finds that this one is damaged.
template <class Use>
Result<void> ValueStore::repairing(Use&& use) {
    for (int attempt = 0;; ++attempt) {
        if (!m_database) return fault(m_path, "it was lost");
        use(*m_database);
        if (m_database->ok()) return {};
        const std::string problem = m_database->message();
        if (attempt > 0 || !isDamage(m_database->code)) return fault(m_path, problem);
        CT_TRY_VOID(beginAnew(problem));
    }
}

Result<std::shared_ptr<ValueStore>> ValueStore::open(const std::string& path) {
    CT_TRY_VOID(check(path));
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error) return fault(path, error.message());
    const std::shared_ptr<ValueStore> store(new ValueStore(path));
    bool damaged = false;
    std::string problem;
    if (const auto connected = store->connect(damaged, problem); !connected) {
        if (!damaged) return connected.error();
        CT_TRY_VOID(store->beginAnew(problem));
    }
    return store;
}

Result<std::optional<std::string>> ValueStore::find(const std::string& space, const std::string& key) {
    const std::lock_guard lock(m_mutex);
    std::optional<std::string> value;
    CT_TRY_VOID(repairing([&](Database& database) {
        value = database.run("SELECT value FROM entry WHERE space = ? AND key = ?", {space, key});
    }));
    return value;
}

Result<void> ValueStore::keep(const std::string& space, const std::string& key, const std::string& value) {
    const std::lock_guard lock(m_mutex);
    return repairing([&](Database& database) {
        database.run(
            "INSERT INTO entry (space, key, value) VALUES (?, ?, ?) ON CONFLICT (space, key) DO UPDATE SET value = excluded.value",
            {space, key, value});
    });
}

Result<void> ValueStore::change(const std::string& space, const std::string& key, const Change& change) {
    const std::lock_guard lock(m_mutex);
    return repairing([&](Database& database) {
        database.run("BEGIN IMMEDIATE");
        if (!database.ok()) return;
        const auto before = database.run("SELECT value FROM entry WHERE space = ? AND key = ?", {space, key});
        if (database.ok()) {
            const auto after = change(before);
            if (after)
                database.run(
                    "INSERT INTO entry (space, key, value) VALUES (?, ?, ?) ON CONFLICT (space, key) DO UPDATE SET value = excluded.value",
                    {space, key, *after});
            else database.run("DELETE FROM entry WHERE space = ? AND key = ?", {space, key});
        }
        const int code = database.code;
        database.run(code == SQLITE_OK ? "COMMIT" : "ROLLBACK");
        if (code != SQLITE_OK) database.code = code;
    });
}

Result<std::vector<std::pair<std::string, std::string>>> ValueStore::all(const std::string& space) {
    const std::lock_guard lock(m_mutex);
    std::vector<std::pair<std::string, std::string>> found;
    CT_TRY_VOID(repairing([&](Database& database) {
        found.clear();
        database.rows("SELECT key, value FROM entry WHERE space = ? ORDER BY key", {space},
                      [&](sqlite3_stmt* row) { found.emplace_back(Database::text(row, 0), Database::text(row, 1)); });
    }));
    return found;
}

}  // namespace cutaway
