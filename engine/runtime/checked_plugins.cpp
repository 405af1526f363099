#include "engine/runtime/checked_plugins.h"

#include "engine/runtime/plugin_io.h"

namespace cutaway {

void writePlugins(ByteWriter& out, const CheckedPlugins& plugins, const Module& graph) {
    out.pod(plugins.judge.has_value());
    if (plugins.judge) writePlugin(out, *plugins.judge);
    std::vector<std::pair<uint64_t, const PluginLibrary*>> calls;
    uint64_t position = 0;
    for (const Node& node : graph.graph().nodes()) {
        if (const auto found = plugins.libraries.find(node.id()); found != plugins.libraries.end())
            calls.emplace_back(position, &found->second);
        ++position;
    }
    out.count(calls.size());
    for (const auto& [at, library] : calls) {
        out.pod(at);
        writePlugin(out, *library);
    }
    out.pod(pluginLimits());
}

CheckedPlugins readPlugins(ByteReader& in, const Module& graph) {
    std::vector<NodeId> nodes;
    for (const Node& node : graph.graph().nodes()) nodes.push_back(node.id());
    CheckedPlugins plugins;
    if (in.pod<bool>()) plugins.judge = readPlugin(in);
    in.each([&] {
        const auto at = in.pod<uint64_t>();
        PluginLibrary library = readPlugin(in);
        if (at < nodes.size()) plugins.libraries.emplace(nodes[at], std::move(library));
        else in.fail();
    });
    if (const auto limits = in.pod<PluginLimits>(); !in.failed()) setPluginLimits(limits);
    return plugins;
}

AskJudge askedBy(PluginJudge judge) {
    return [judge = std::move(judge)](const Tensor& value, const Tensor& reference) -> Result<std::string> {
        CT_TRY(const JudgeAnswer answer, judge.ask(value, reference));
        return answer.takes ? std::string() : sentenceOf(answer);
    };
}

ComputeCall CallsOfPlugins::compute() {
    if (m_libraries.empty()) return {};
    return [this](const Node& call, const ValueSource& values) { return valueOf(call, values); };
}

Result<std::optional<TensorList>> CallsOfPlugins::valueOf(const Node& call, const ValueSource& values) {
    const auto found = m_libraries.find(call.id());
    if (found == m_libraries.end()) return std::optional<TensorList>();
    CT_TRY(const auto calls, callsOf(found->second));
    std::string refusal;
    CT_TRY(auto computed, computeByPlugin(calls, call, values, refusal));
    if (!computed)
        m_remarks.insert(found->second.title + " did not take a call of " + std::string(call.op().name()) +
                         ", which the reference computed: " + refusal);
    return computed;
}

Result<std::shared_ptr<PluginCalls>> CallsOfPlugins::callsOf(const PluginLibrary& library) {
    for (const auto& known : m_calls)
        if (known->library() == library) return known;
    CT_TRY(auto made, PluginCalls::create(library));
    return m_calls.emplace_back(std::move(made));
}

}  // namespace cutaway
