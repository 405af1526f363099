#pragma once
// What plugins do in a checked run: a judge says what is wrong, libraries compute calls of the checked graph. All in
// the worker, which has the values.
#include <map>

#include "engine/numerics/side_by_side.h"
#include "engine/runtime/cpu/plugin_library.h"
#include "engine/runtime/plugin_judge.h"
#include "engine/runtime/wire.h"

namespace cutaway {

struct CheckedPlugins {
    std::optional<PluginLibrary> judge = {};         // of Judge::Plugin
    std::map<NodeId, PluginLibrary> libraries = {};  // by the call that each computes
};

/// `graph`: whose calls the libraries compute; a worker has its nodes by their order alone.
void writePlugins(ByteWriter& out, const CheckedPlugins& plugins, const Module& graph);
CheckedPlugins readPlugins(ByteReader& in, const Module& graph);

/// The judge, for a run's options.
AskJudge askedBy(PluginJudge judge);

/// Libraries at work, a process each. What a library does not take with the numbers of the run is left to the
/// reference kernel, and remarked on.
class CallsOfPlugins {
  public:
    explicit CallsOfPlugins(const std::map<NodeId, PluginLibrary>& libraries) : m_libraries(libraries) {}
    /// For a run's options; null if there are none.
    ComputeCall compute();
    const std::set<std::string>& remarks() const { return m_remarks; }

  private:
    Result<std::optional<TensorList>> valueOf(const Node& call, const ValueSource& values);
    Result<std::shared_ptr<PluginCalls>> callsOf(const PluginLibrary& library);

    const std::map<NodeId, PluginLibrary>& m_libraries;
    std::vector<std::shared_ptr<PluginCalls>> m_calls;
    std::set<std::string> m_remarks;
};

}  // namespace cutaway
