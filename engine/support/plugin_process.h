#pragma once
// A plugin in its own process, which is started when it is first called and kept for later calls.
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/plugins.h"
#include "engine/support/file_stamp.h"
#include "engine/support/plugin_use.h"
#include "engine/support/process.h"
#include "engine/support/process_tree.h"
#include "engine/support/temp_dir.h"

namespace cutaway {

struct PluginCall {
    std::string kind;  // "describe", "pass", "importer", "oracle", "coloring", "judge", "takes", "compute"
    size_t index = 0;
    std::string file;  // of an importer: the name of what it reads
    std::string_view work;
    std::vector<std::string> settings;  // "key=value", or what plugins/host/serve.h says of the kind
    std::string name;                   // for messages: "pass fuse_addcmul"
    double seconds = 0;                 // 0: the limit's
};
struct PluginReply {
    bool yes = false;
    std::vector<std::string> said;  // groups of a word and as many texts as belong to it (plugins/host/serve.h)
};

/// Whether the caller does not want the answer any more.
using Stopped = std::function<bool()>;

class PluginProcess {
  public:
    /// `stamp`: of the file when it was read. No other one is run in its place. `shared`: what calls take is counted
    /// with that of all such processes of the file (plugin_use.h), in place of counts().
    PluginProcess(std::string file, const FileStamp& stamp, bool shared = false)
        : m_file(std::move(file)), m_stamp(stamp), m_shared(shared) {}
    ~PluginProcess() { end(); }

    /// One call at a time, of any thread. Errors name the call and what happened: the plugin says that it failed, or
    /// crashed, hung, took too much memory, wrote too much. The next call then gets a new process.
    Result<PluginReply> call(const PluginCall& call, const Stopped& stopped);
    /// Whether it may start other processes, which it says of itself; a running one is ended by a change.
    void letStartProcesses(bool may);
    /// Descriptors of this program that the process has, under the same numbers; before the first call.
    void lend(std::vector<int> descriptors) { m_lent = std::move(descriptors); }
    PluginCounts counts() const;
    /// What the process holds of memory now; 0 while there is none.
    int64_t residentBytes() const;
    const FileStamp& stamp() const { return m_stamp; }

  private:
    Result<void> start();
    void end();
    Result<std::vector<std::string>> exchange(const std::string& request, double seconds, const Stopped& stopped);
    Error gone(double seconds, const Error& error);
    void count(const PluginCounts& counts);
    std::optional<Error> lookAtIt();

    std::string m_file;
    FileStamp m_stamp;
    mutable std::mutex m_mutex, m_countsMutex;
    std::optional<TempDir> m_folder;
    std::optional<ChildProcess> m_child;
    bool m_shared = false, m_mayStart = false;
    std::optional<ProcessTree> m_tree;  // of m_child
    int64_t m_written = 0;              // by it and what it has started, when that was looked at between two calls
    int64_t m_replied = 0;              // of that, answers; since then
    std::chrono::steady_clock::time_point m_looked;
    std::vector<int> m_lent;
    PluginLimits m_limits;  // of the process
    PluginCounts m_counts;
};

}  // namespace cutaway
