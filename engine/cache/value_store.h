#pragma once
// A cache that outlives the program: texts by namespace and key in one SQLite file, which several processes may use at
// once. It holds nothing that cannot be made again, so a damaged store, or one of another version, is moved aside and a
// new one begun. A file that is not a store by its header (SQLite's application_id) is left as it is. Leaves out:
// limits on size and age (engine/cache/entry_index.h has them), and anything larger than a text.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

class ValueStore {
  public:
    /// Succeeds if there is a store, an empty file or nothing at the path. The error names what else is there.
    static Result<void> check(const std::string& path);
    /// Opens or makes the file and the folders above it. Errors: those of check; no file can be made there (with the
    /// system's reason).
    static Result<std::shared_ptr<ValueStore>> open(const std::string& path);
    ~ValueStore();

    /// The value kept under the key; none if there is none. Errors: the file cannot be read (locked for long, disk
    /// error).
    Result<std::optional<std::string>> find(const std::string& space, const std::string& key);
    /// Keeps a value in place of any earlier one. Errors: the file cannot be written.
    Result<void> keep(const std::string& space, const std::string& key, const std::string& value);
    /// Puts what `change` makes of the value (none: there is none) in its place, in one go for all processes; none
    /// removes it. `change` may be called again. Errors: the file cannot be written.
    using Change = std::function<std::optional<std::string>(const std::optional<std::string>&)>;
    Result<void> change(const std::string& space, const std::string& key, const Change& change);
    /// Keys and values of a namespace, by key.
    Result<std::vector<std::pair<std::string, std::string>>> all(const std::string& space);

    const std::string& path() const { return m_path; }
    /// What was wrong with the file and what was done about it, as a sentence; empty if nothing was.
    std::string remark() const;

    /// $XDG_CACHE_HOME/cutaway/store.sqlite, with $HOME/.cache where that is not set; empty where there is no home.
    static std::string defaultPath();

  private:
    struct Database;
    explicit ValueStore(std::string path);
    /// Opens the file as a store of this version; `damaged` says that it is a store but cannot be used, `problem` why.
    Result<void> connect(bool& damaged, std::string& problem);
    /// Moves a damaged store out of the way, to a name that nothing has, unless another process has done so meanwhile,
    /// and begins a new one.
    Result<void> beginAnew(const std::string& problem);
    template <class Use>
    Result<void> repairing(Use&& use);

    std::string m_path, m_remark;
    mutable std::mutex m_mutex;
    std::unique_ptr<Database> m_database;
};

}  // namespace cutaway
