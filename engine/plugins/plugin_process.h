#pragma once
// A plugin in its own process, which is started when it is first called and kept for later calls.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/plugins.h"
#include "engine/support/process.h"
#include "engine/support/temp_dir.h"

namespace cutaway {

struct PluginCall {
    std::string kind;  // "describe", "pass", "importer", "oracle", "coloring"
    size_t index = 0;
    std::string file;  // of an importer: the name of what it reads
    std::string_view work;
    std::vector<std::string> settings;  // "key=value"
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
    explicit PluginProcess(std::string file) : m_file(std::move(file)) {}
    ~PluginProcess() { end(); }

    /// One call at a time, of any thread. Errors name the call and what happened: the plugin says that it failed, or
    /// crashed, hung, took too much memory, wrote too much. The next call then gets a new process.
    Result<PluginReply> call(const PluginCall& call, const Stopped& stopped);
    /// Whether it may start other processes, which it says of itself; a running one is ended by a change.
    void letStartProcesses(bool may);
    struct Counts {
        int calls = 0, faults = 0;
        double milliseconds = 0;
        std::string lastFault;
    };
    Counts counts() const;
    /// What the process holds of memory now; 0 while there is none.
    int64_t residentBytes() const;

  private:
    Result<void> start();
    void end();
    Result<std::vector<std::string>> exchange(const std::string& request, double seconds, const Stopped& stopped);
    Error gone(double seconds, const Error& error);

    std::string m_file;
    mutable std::mutex m_mutex, m_countsMutex;
    std::optional<TempDir> m_folder;
    std::optional<ChildProcess> m_child;
    bool m_mayStart = false;
    PluginLimits m_limits;  // of the process
    Counts m_counts;
};

}  // namespace cutaway
