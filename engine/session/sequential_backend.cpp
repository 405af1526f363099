#include "engine/session/sequential_backend.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/interpret/peak.h"
#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "engine/passes/pipeline.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

std::string counted(size_t count, const std::string& one) {
    return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

class Slots {
  public:
    Slots(const Module& module, bool parity) : m_module(std::make_shared<Module>(module)), m_parity(parity) {}

    /// Graphs hold overloads; packets are how the code of this backend writes them.
    void stripOverloads() {
        std::set<std::string> overloads;
        size_t calls = 0;
        for (const Node& node : graph().nodes()) {
            const size_t dot = node.isCall() ? node.op().name().rfind('.') : std::string::npos;
            if (dot == std::string::npos || node.op().schema() == nullptr) continue;
            ++calls;
            overloads.insert(node.op().name());
        }
        add("overloads stripped",
            counted(calls, "call") + " of " + counted(overloads.size(), "overload") +
                " named by their packets; their graph keeps the overloads",
            false);
    }
    /// Exactly one positional argument and exactly one keyword, dtype: PyTorch rewrites no other form.
    void rewriteToCopy() {
        size_t changed = 0, all = 0;
        const Op& to = requireOp("aten.to.dtype");
        for (Node& node : graph().nodes()) {
            if (!node.isCall("aten._to_copy.default")) continue;
            ++all;
            bool exact = !node.arg("dtype").isNone();
            for (size_t i = 1; i < node.args().size(); ++i) {
                const auto& name = node.op().schema()->params[i].name;
                if (name != "dtype") exact &= node.arg(i).isNone() || node.arg(i).asInt() == 0;
            }
            if (!exact) continue;
            const std::vector<Argument> args = {node.arg(0), node.arg("dtype"), false, false, Argument()};
            graph().setOp(node, to, args, node.type());
            ++changed;
        }
        add("_to_copy becomes to", std::to_string(changed) + " of " + counted(all, "call"), changed > 0);
    }
    void canonicalizeDevices() {
        size_t found = 0;
        std::set<std::string> lost;
        for (Node& node : graph().nodes()) {
            if (!node.isCall() || !node.op().schema()) continue;
            for (size_t i = 0; i < node.args().size(); ++i) {
                const Device* device = node.arg(i).get<Device>();
                if (device == nullptr) continue;
                ++found;
                if (device->index < 0) continue;
                lost.insert(device->text());
                if (m_parity) graph().setArg(node, i, Device{device->type, -1});
            }
        }
        std::string what = counted(found, "device argument");
        for (const std::string& each : lost)
            what += "; " + each + (m_parity ? " loses its index" : " keeps its index (PyTorch drops it: --parity)");
        add("devices", what, m_parity && !lost.empty());
    }
    Result<void> lint() {
        CT_TRY_VOID(verify(*m_module));
        add("lint", "the graph is well formed", false);
        return {};
    }
    /// Calls in order over registers that are given to others when their value has been read for the last time.
    void linearProgram() {
        std::map<NodeId, size_t> readsLeft;
        size_t held = 0, most = 0, calls = 0;
        for (const Node& node : graph().nodes()) {
            if (node.isOutput()) continue;
            readsLeft[node.id()] = node.users().size();
            calls += node.isCall();
            most = std::max(most, held += 1);
            if (!node.hasUsers()) --held;
            for (const Node* input : node.inputs())
                if (--readsLeft[input->id()] == 0) --held;
        }
        add("linear program", counted(calls, "instruction") + " over " + counted(most, "register"), false);
    }
    /// Functionalization, frozen constants and inference rewrites are our pipeline's, up to `last`.
    Result<void> passes(const CompileRequest& request, const Progress& progress) {
        CT_TRY(const CompileTrace trace, runPipeline(m_module, request, {}, progress));
        Snapshot before = m_module;
        for (const char* slot : {"mutation removed", "constants frozen", "inference rewrites"}) {
            Snapshot after = before;
            std::string names;
            for (const Step& step : trace.steps) {
                if (step.info.state == StepState::Failed)
                    return Error{step.error.code, step.info.error, "step " + step.info.name, {}};
                if (slot != slotOf(step.info)) continue;
                after = step.after;
                if (step.info.state == StepState::Changed) names += (names.empty() ? "" : ", ") + step.info.name;
            }
            m_module = std::make_shared<Module>(*after);
            add(slot, names.empty() ? "nothing to do" : names, !names.empty());
            before = after;
        }
        return {};
    }
    Sequential finish() { return {std::move(m_module), std::move(m_steps)}; }

  private:
    static std::string_view slotOf(const StepInfo& step) {
        if (step.stage == "pre_grad" || step.stage == "capture") return "mutation removed";
        if (step.stage == "joint" || step.stage == "layout" || step.stage == "freeze") return "constants frozen";
        return "inference rewrites";
    }
    Graph& graph() { return m_module->graph(); }
    void add(const std::string& name, const std::string& what, bool changed) {
        m_steps.push_back({name, what, changed, changed ? printText(*m_module).text : std::string()});
    }

    std::shared_ptr<Module> m_module;
    bool m_parity;
    std::vector<SequentialStep> m_steps;
};

/// A name as Graphviz takes it.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out.push_back('\\');
        out.push_back(c);
    }
    return out + "\"";
}

}  // namespace

Result<Sequential> compileSequentially(const Module& module, SequentialBackend backend, bool parity,
                                       const Progress& progress) {
    Slots slots(module, parity);
    const bool all = backend == SequentialBackend::Ts;
    if (!all && backend != SequentialBackend::SimpleTs) return slots.finish();
    slots.stripOverloads();
    if (all) {
        slots.rewriteToCopy();
        slots.canonicalizeDevices();
        CT_TRY_VOID(slots.lint());
    }
    slots.linearProgram();
    CompileRequest request;
    request.freeze = true;
    request.passesOnly = true;
    request.parity = parity;
    CT_TRY_VOID(slots.passes(request, progress));
    return slots.finish();
}

std::string drawn(const Module& module) {
    std::string out = "digraph " + quoted(module.name) + " {\n  node [shape=box, fontname=\"sans-serif\"];\n";
    for (const Node& node : module.graph().nodes()) {
        const std::string what = node.isCall() ? "\\n" + node.op().name() : std::string();
        std::string label = quoted(node.isOutput() ? "output" : node.name());
        label.insert(label.size() - 1, what + (node.type().tensor() ? "\\n" + node.type().text() : ""));
        out += "  n" + std::to_string(index(node.id())) + " [label=" + label + "];\n";
        for (const Node* input : node.inputs())
            out += "  n" + std::to_string(index(input->id())) + " -> n" + std::to_string(index(node.id())) + ";\n";
    }
    return out + "}\n";
}

}  // namespace cutaway
