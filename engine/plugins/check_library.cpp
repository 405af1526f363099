// Holds a plugin's library to its contract, on the samples of the operators that it names.
#include <regex>
#include <sstream>

#include "cutaway/words.h"
#include "engine/interpret/interpret.h"
#include "engine/ops/op_registry.h"
#include "engine/plugins/plugin_libraries.h"
#include "engine/runtime/cpu/plugin_library.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

constexpr double kLibraryTolerance = 1e-3;
constexpr size_t kMostSamples = 24;

/// A sample of an operator as a graph of one call; null for one whose tensors are drawn in a way of their own.
std::unique_ptr<Module> graphOf(const std::string& op, const std::string& sample, const std::string& size = {}) {
    if (sample.find_first_of("<>!?%$") != std::string::npos || sample.find("][") != std::string::npos) return nullptr;
    static const std::regex tensor(R"(\b([fiubc][0-9]+|bf16)\[([0-9, ]*)\])");
    std::string inputs, args;
    size_t from = 0;
    int count = 0;
    for (std::sregex_iterator at(sample.begin(), sample.end(), tensor), end; at != end; ++at) {
        const std::string name = "p" + std::to_string(count);
        std::string type = at->str();
        // The first size of the first tensor is one that only a run knows.
        if (!size.empty() && count == 0)
            type = std::regex_replace(type, std::regex(R"(\[[0-9]+)"), "[" + size,
                                      std::regex_constants::format_first_only);
        ++count;
        inputs += (inputs.empty() ? "" : ", ") + name + ": \"" + type + "\"";
        args += sample.substr(from, static_cast<size_t>(at->position()) - from) + name;
        from = static_cast<size_t>(at->position() + at->length());
    }
    args += sample.substr(from);
    auto parsed = parseText("def forward(" + inputs + "):\n    r = " + op + "(" + args + ")\n    return (r,)\n");
    return parsed && count > 0 ? std::move(*parsed) : nullptr;
}
const Node* callOf(const Module& module) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall()) return &node;
    return nullptr;
}

class InputValues : public ValueSource {
  public:
    InputValues(const Module& module, const std::vector<Tensor>& inputs) {
        size_t next = 0;
        for (const Node* node : module.graph().placeholders()) m_values[node->id()] = {inputs.at(next++)};
    }
    const TensorList& valueOf(const Node& node) const override { return m_values.at(node.id()); }

  private:
    std::map<NodeId, TensorList> m_values;
};

/// What is wrong with what it computes.
std::string whyWrong(const std::shared_ptr<PluginCalls>& calls, const Module& module) {
    const Node& call = *callOf(module);
    const auto inputs = randomInputs(module, 0);
    if (!inputs) return {};
    std::optional<TensorList> expected;
    InterpretOptions watching;
    watching.observe = [&](const Node& node, const TensorList& values) {
        if (node.id() == call.id()) expected = values;
    };
    if (!interpret(module, *inputs, watching) || !expected) return {};
    const InputValues values(module, *inputs);
    std::string refusal;
    const auto compute = [&]() -> Result<TensorList> {
        CT_TRY(auto computed, computeByPlugin(calls, call, values, refusal));
        if (!computed) return Error{ErrorCode::ToolFailed, "it does not take it: " + refusal, {}, {}};
        return std::move(*computed);
    };
    const auto actual = compute();
    if (!actual) return actual.error().text();
    for (size_t i = 0; i < expected->size(); ++i)
        if (!compare((*actual)[i], (*expected)[i], {kLibraryTolerance, kLibraryTolerance}).within)
            return "result " + std::to_string(i) + " has other numbers than the reference";
    const auto again = compute();
    if (!again) return again.error().text();
    for (size_t i = 0; i < again->size(); ++i)
        if ((*again)[i].bytes() > 0 && std::memcmp((*again)[i].data(), (*actual)[i].data(), (*actual)[i].bytes()) != 0)
            return "the same call gave other bits the second time";
    return {};
}

}  // namespace

std::vector<PluginTrial> checkLibrary(const PluginItemRef& found, const Progress& progress) {
    std::vector<PluginTrial> trials;
    const std::string title = "library " + found.item->name;
    const auto note = [&](const std::string& what, const std::string& problem) {
        trials.push_back({title, what, problem});
    };
    const auto calls = PluginCalls::create(describedItem(found));
    if (!calls) {
        note("shares memory", calls.error().text());
        return trials;
    }
    std::istringstream names(found.item->operators);
    for (std::string name; names >> name;) {
        const Op* const op = findOp(name);
        note("names an operator that Cutaway knows: " + visibleText(name),
             op != nullptr && !op->isOpaque() ? std::string() : "there is none of that name");
        if (op == nullptr || op->def() == nullptr) continue;
        std::istringstream lines{std::string(op->def()->samples)};
        size_t taken = 0, asked = 0;
        for (std::string sample; std::getline(lines, sample) && asked < kMostSamples;) {
            if (progress.cancelled()) return trials;
            const auto module = graphOf(name, sample);
            const Node* const call = module ? callOf(*module) : nullptr;
            if (call == nullptr) continue;
            const std::string what = "computes " + name + "(" + sample + ")";
            progress.say(-1, title + ": " + what);
            ++asked;
            const auto why = whyNotTaken(found, *call), again = whyNotTaken(found, *call);
            if (!why || !again) {
                note(what, (why ? again : why).error().text());
                return trials;  // each further sample may take as long
            }
            if (*why != *again) note(what, "the same call was answered in another way");
            if (const auto open = graphOf(name, sample, "s0"); open && callOf(*open)) {
                const auto unknown = whyNotTaken(found, *callOf(*open));
                if (!unknown) note("answers where a size is not known: " + what, unknown.error().text());
            }
            if (!why->empty()) continue;
            ++taken;
            note(what, whyWrong(*calls, *module));
        }
        note("takes a sample of " + name,
             taken > 0 || asked == 0 ? std::string() : "it takes none of " + std::to_string(asked));
    }
    return trials;
}

}  // namespace cutaway
