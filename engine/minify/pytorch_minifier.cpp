#include "engine/minify/pytorch_minifier.h"

#include <algorithm>
#include <bit>

#include "engine/minify/edits.h"

namespace cutaway {
namespace {

/// A state, or nothing where a strategy has none.
using OptionalCandidate = std::optional<Candidate>;

class Minifier {
  public:
    Minifier(Trials& trials, const PyTorchMinifierOptions& options) : m_trials(trials), m_options(options) {}

    Result<Candidate> run(const Candidate& start) {
        const int64_t cap = m_options.maxGranularity;
        if (cap != 0 && (cap < 0 || !std::has_single_bit(static_cast<uint64_t>(cap))))
            return invalidInput("max_granularity " + std::to_string(cap) + " not power of two");
        if (!m_options.skipSanity) {
            CT_TRY(const bool bad, m_trials.fails(start));
            if (!bad) return invalidInput("Input graph did not fail the tester");
        }
        say("Started off with " + std::to_string(sizeOf(start)) + " nodes");
        std::vector<std::string> names;
        for (const Node& node : start.module->graph().nodes()) names.push_back(node.name());
        CT_TRY_VOID(m_trials.computeValues(names));
        Candidate state = start;
        while (true) {
            CT_TRY(OptionalCandidate next, round(state));
            if (!next) break;
            state = std::move(*next);
        }
        CT_TRY(const bool bad, m_trials.fails(state));
        if (!bad)
            return Error{ErrorCode::ToolFailed,
                         "Uh oh, something went wrong :( Final graph is not failing",
                         {},
                         {"the check does not give the same answer each time: ask for repeats"}};
        return state;
    }

  private:
    using Strategy = Result<OptionalCandidate> (Minifier::*)(const Candidate&, int64_t granularity);

    static size_t sizeOf(const Candidate& state) { return state.module->graph().size(); }
    static size_t inputsOf(const Candidate& state) { return state.module->inputs.size(); }
    static size_t outputsOf(const Candidate& state) { return state.module->graph().outputs().size(); }
    void say(const std::string& line) const {
        if (m_options.log) m_options.log(line);
    }

    /// One step of the driver: the first success over all granularities.
    Result<OptionalCandidate> round(const Candidate& state) {
        auto granularity = static_cast<int64_t>(std::bit_floor(sizeOf(state)));
        if (m_options.maxGranularity > 0) granularity = std::min(granularity, m_options.maxGranularity);
        for (bool whole = true; granularity >= 1; granularity /= 2, whole = false) {
            CT_TRY(OptionalCandidate next, tryGranularity(state, granularity, whole));
            if (next) return next;
        }
        return apply("Remove outputs", &Minifier::removeOutputs, state, 1);
    }

    Result<OptionalCandidate> tryGranularity(const Candidate& state, int64_t granularity, bool whole) {
        say("Trying granularity " + std::to_string(granularity));
        std::vector<std::pair<const char*, Strategy>> strategies;
        if (outputsOf(state) > sizeOf(state) / 2) strategies.emplace_back("Remove outputs", &Minifier::removeOutputs);
        if (whole) {
            strategies.emplace_back("Eliminate dead code", &Minifier::eliminateDeadCode);
            strategies.emplace_back("Remove unused inputs", &Minifier::removeUnusedInputs);
            strategies.emplace_back("Consolidate Inputs", &Minifier::consolidateInputs);
        }
        strategies.emplace_back("Truncate suffix", &Minifier::truncateSuffix);
        strategies.emplace_back("Delta Debugging", &Minifier::deltaDebugging);
        for (const auto& [name, strategy] : strategies) {
            CT_TRY(OptionalCandidate next, apply(name, strategy, state, granularity));
            if (next) return next;
        }
        return OptionalCandidate();
    }

    /// What is found is tested once more before it counts.
    Result<OptionalCandidate> apply(const std::string& name, Strategy strategy, const Candidate& state,
                                    int64_t granularity) {
        say("Strategy: " + name + " (G: " + std::to_string(granularity) + ") (" + std::to_string(sizeOf(state)) +
            " nodes, " + std::to_string(inputsOf(state)) + " inputs)");
        CT_TRY(OptionalCandidate next, (this->*strategy)(state, granularity));
        if (!next) {
            say("FAIL: " + name);
            return OptionalCandidate();
        }
        bool progress = false;
        const auto tell = [&](size_t before, size_t after, const char* what, bool better) {
            if (!better) return;
            progress = true;
            say("SUCCESS: Went from " + std::to_string(before) + " to " + std::to_string(after) + " " + what);
        };
        tell(sizeOf(state), sizeOf(*next), "nodes", sizeOf(*next) < sizeOf(state));
        tell(inputsOf(state), inputsOf(*next), "inputs", inputsOf(*next) > inputsOf(state));
        tell(outputsOf(state), outputsOf(*next), "outputs", outputsOf(*next) < outputsOf(state));
        if (!progress) return Error{ErrorCode::ToolFailed, "Success raised but no progress made?", {}, {}};
        CT_TRY(const bool bad, m_trials.fails(*next));
        if (!bad) {
            say("WARNING: Something went wrong, not applying this minification");
            return OptionalCandidate();
        }
        CT_TRY_VOID(m_trials.accepted(*next, name));
        return next;
    }

    static Candidate with(const Candidate& state, std::shared_ptr<const Module> module) {
        return {std::move(module), state.request, state.values};
    }
    static std::shared_ptr<Module> copyOf(const Candidate& state) { return std::make_shared<Module>(*state.module); }

    Result<OptionalCandidate> ask(const Candidate& state, std::shared_ptr<const Module> module) {
        Candidate candidate = with(state, std::move(module));
        CT_TRY(const bool bad, m_trials.fails(candidate));
        return bad ? OptionalCandidate(std::move(candidate)) : OptionalCandidate();
    }

    Result<OptionalCandidate> truncateSuffix(const Candidate& state, int64_t granularity) {
        int64_t position = -1;
        for (const Node& node : state.module->graph().nodes()) {
            ++position;
            if (node.isPlaceholder() || node.isOutput()) continue;
            if (position % granularity != 0 || position % (2 * granularity) == 0) continue;
            const std::shared_ptr<Module> module = copyOf(state);
            Node* const last = module->graph().find(node.id());
            returnOnly(*module, {Argument(last)});
            while (module->graph().outputNode()->previous() != last)
                module->graph().erase(*module->graph().outputNode()->previous());
            if (module->graph().size() >= sizeOf(state)) continue;
            CT_TRY(OptionalCandidate next, ask(state, module));
            if (next) return next;
        }
        return OptionalCandidate();
    }

    Result<OptionalCandidate> deltaDebugging(const Candidate& state, int64_t granularity) {
        std::vector<NodeId> nodes;
        for (const Node& node : state.module->graph().nodes()) nodes.push_back(node.id());
        const auto window = static_cast<size_t>(granularity);
        for (size_t begin = 0; begin < nodes.size(); begin += window) {
            const std::shared_ptr<Module> module = copyOf(state);
            bool any = false;
            for (size_t i = begin; i < std::min(nodes.size(), begin + window); ++i)
                if (Node* node = module->graph().find(nodes[i])) any = makeInput(*module, *node) || any;
            if (!any) continue;
            dropDead(*module, true);
            CT_TRY(OptionalCandidate next, ask(state, module));
            if (next) return next;
        }
        return OptionalCandidate();
    }

    Result<OptionalCandidate> eliminateDeadCode(const Candidate& state, int64_t) {
        const std::shared_ptr<Module> module = copyOf(state);
        if (!dropDeadCalls(*module, true)) return OptionalCandidate();
        return ask(state, module);
    }

    Result<OptionalCandidate> removeUnusedInputs(const Candidate& state, int64_t) {
        const std::shared_ptr<Module> module = copyOf(state);
        if (!dropUnusedInputs(*module)) return OptionalCandidate();
        return ask(state, module);
    }

    /// PyTorch compares the length of the wrong list, so it never succeeds.
    Result<OptionalCandidate> consolidateInputs(const Candidate&, int64_t) { return OptionalCandidate(); }

    Result<OptionalCandidate> removeOutputs(const Candidate& state, int64_t granularity) {
        const auto window = static_cast<size_t>(std::max<int64_t>(1, granularity / 2));
        const std::vector<Argument> all = state.module->graph().outputs();
        const Argument& returned = state.module->graph().outputNode()->arg(0);
        if (returned.node() || all.size() == 1) return OptionalCandidate();
        std::map<NodeId, size_t> places;
        for (const Node& node : state.module->graph().nodes()) places.emplace(node.id(), places.size());
        std::vector<size_t> order(all.size());
        std::iota(order.begin(), order.end(), size_t{0});
        const auto placeOf = [&](size_t i) { return all[i].node() ? places[all[i].node()->id()] : SIZE_MAX; };
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return placeOf(a) < placeOf(b); });
        for (size_t begin = 0; begin < order.size(); begin += window) {
            std::vector<size_t> kept(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(begin));
            kept.insert(kept.end(), order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), begin + window)),
                        order.end());
            const std::shared_ptr<Module> module = copyOf(state);
            keepOutputs(*module, kept);
            CT_TRY(OptionalCandidate next, ask(state, module));
            if (next) return next;
        }
        return OptionalCandidate();
    }

    Trials& m_trials;
    const PyTorchMinifierOptions& m_options;
};

}  // namespace

Result<Candidate> minifyAsPyTorch(const Candidate& start, Trials& trials, const PyTorchMinifierOptions& options) {
    return Minifier(trials, options).run(start);
}

}  // namespace cutaway
