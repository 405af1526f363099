// Strategies on what the graph takes and returns: fewer outputs and inputs, plainer inputs, a simpler request.
#include <algorithm>

#include "engine/minify/edits.h"
#include "engine/minify/reducer.h"
#include "engine/passes/pipeline.h"

namespace cutaway {

Result<bool> dropOutputs(Reducer& reducer) {
    bool any = false;
    size_t chunk = reducer.graph().graph().outputs().size() / 2;
    while (chunk > 0) {
        const size_t count = reducer.graph().graph().outputs().size();
        if (count < 2) return any;
        chunk = std::min(chunk, count - 1);
        // Counted from the last output on, since dropping outputs renumbers only those behind them.
        CT_TRY(const bool smaller, reducer.sweep((count + chunk - 1) / chunk,
                                                 [&](size_t i) -> std::optional<Candidate> {
                                                     const size_t now = reducer.graph().graph().outputs().size();
                                                     const size_t end = count - i * chunk,
                                                                  begin = end > chunk ? end - chunk : 0;
                                                     std::vector<size_t> kept;
                                                     for (size_t at = 0; at < now; ++at)
                                                         if (at < begin || at >= end) kept.push_back(at);
                                                     if (kept.empty() || kept.size() == now) return std::nullopt;
                                                     const std::shared_ptr<Module> module = reducer.copy();
                                                     keepOutputs(*module, kept);
                                                     dropDead(*module);
                                                     return reducer.with(module);
                                                 },
                                                 "returns less"));
        any = any || smaller;
        if (!smaller || chunk > 1) chunk /= 2;
    }
    return any;
}

Result<bool> mergeInputs(Reducer& reducer) {
    const auto merged = [&](size_t which) -> std::optional<Candidate> {
        const std::shared_ptr<Module> module = reducer.copy();
        const std::vector<Node*> inputs = module->graph().placeholders();
        if (which >= inputs.size() || !inputs[which]->type().tensor()) return std::nullopt;
        for (size_t i = 0; i < which; ++i) {
            const TensorType* type = inputs[i]->type().tensor();
            if (!type || !type->sameMeta(*inputs[which]->type().tensor())) continue;
            module->graph().replaceUses(*inputs[which], *inputs[i]);
            dropDead(*module);
            if (module->graph().size() >= reducer.graph().graph().size()) return std::nullopt;
            return reducer.with(module);
        }
        return std::nullopt;
    };
    bool any = false;
    // From the last on: dropping one renumbers only those behind it.
    const size_t count = reducer.graph().inputs.size();
    CT_TRY(any, reducer.sweep(
                    count, [&](size_t i) { return merged(count - 1 - i); }, "one input for two"));
    return any;
}

Result<bool> plainInputs(Reducer& reducer) {
    const std::shared_ptr<Module> module = reducer.copy();
    auto values = std::make_shared<NamedValues>(
        module->inputs.empty() || !reducer.best().values ? NamedValues() : *reducer.best().values);
    const std::vector<Node*> inputs = module->graph().placeholders();
    bool any = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
        InputSpec& spec = module->inputs[i];
        if (spec.isGiven() && spec.kind == InputSpec::Kind::UserInput) continue;
        if (!inputs[i]->type().tensor()) continue;
        if (auto value = reducer.trials().valueOf(reducer.best(), inputs[i]->name()))
            values->insert_or_assign(inputs[i]->name(), std::move(*value));
        spec = InputSpec{};
        any = true;
    }
    for (OutputSpec& spec : module->outputs) {
        any = any || spec.kind != OutputSpec::Kind::UserOutput;
        spec = OutputSpec{};
    }
    if (!any) return false;
    Candidate candidate = reducer.with(module);
    candidate.values = values;
    return reducer.take(candidate, "parameters became inputs");
}

/// Replaces inputs by constants (1, else 0), all at once or one by one, so that the reproducer needs less data.
Result<bool> constantInputs(Reducer& reducer) {
    bool any = false;
    const size_t count = reducer.graph().graph().placeholders().size();
    const auto constant = [&](size_t begin, size_t end, double value) -> std::optional<Candidate> {
        const std::shared_ptr<Module> module = reducer.copy();
        const std::vector<Node*> inputs = module->graph().placeholders();
        bool changed = false;
        for (size_t i = std::min(end, inputs.size()); i-- > begin;)
            changed = makeConstant(*module, *inputs[i], value) || changed;
        return changed ? std::optional(reducer.with(module)) : std::nullopt;
    };
    for (const size_t chunk : {count, size_t{1}}) {
        if (count == 0 || (chunk == count && any)) break;
        const size_t chunks = count / chunk;
        // From the last on: dropping one renumbers only those behind it.
        CT_TRY(const bool fewer, reducer.sweep(
                                     chunks * 2,
                                     [&](size_t i) {
                                         const size_t end = count - i / 2 * chunk;
                                         return constant(end - chunk, end, i % 2 == 0 ? 1 : 0);
                                     },
                                     "constants for inputs"));
        any = any || fewer;
        if (fewer || count == 1) break;
    }
    return any;
}

namespace {

/// Takes one option out of the request; false if it was not set.
using Simpler = bool (*)(CompileRequest&);
const Simpler kSimpler[] = {
    [](CompileRequest& r) { return std::exchange(r.parity, false); },
    [](CompileRequest& r) { return std::exchange(r.allStages, false); },
    [](CompileRequest& r) { return std::exchange(r.strict, false); },
    [](CompileRequest& r) { return std::exchange(r.freeze, false); },
    [](CompileRequest& r) { return std::exchange(r.mode, Mode::Inference) != Mode::Inference; },
    [](CompileRequest& r) { return std::exchange(r.target, Target::Cpu) != Target::Cpu; },
    [](CompileRequest& r) { return std::exchange(r.tf32, Tf32::Conv) != Tf32::Conv; },
    [](CompileRequest& r) { return std::exchange(r.memoryBudget, 1.0) != 1.0; },
    [](CompileRequest& r) { return std::exchange(r.solver, "dp") != "dp"; },
};

template <class T>
bool eraseAt(std::vector<T>& list, size_t at) {
    if (at >= list.size()) return false;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
}

}  // namespace

Result<bool> simplifyRequest(Reducer& reducer) {
    bool any = false;
    const auto attempt = [&](auto&& change) -> Result<bool> {
        Candidate candidate = reducer.best();
        if (!change(candidate.request) || !checkRequest(candidate.request)) return false;
        CT_TRY(const bool taken, reducer.take(candidate, "asks for less"));
        any = any || taken;
        return taken;
    };
    for (const Simpler simpler : kSimpler) CT_TRY_VOID(attempt(simpler));
    const auto shorten = [&](auto member) -> Result<void> {
        for (size_t i = (reducer.best().request.*member).size(); i-- > 0;)
            CT_TRY_VOID(attempt([&](CompileRequest& request) { return eraseAt(request.*member, i); }));
        return {};
    };
    CT_TRY_VOID(shorten(&CompileRequest::userRules));
    CT_TRY_VOID(shorten(&CompileRequest::plugins));
    CT_TRY_VOID(shorten(&CompileRequest::moves));
    CT_TRY_VOID(shorten(&CompileRequest::enabledPasses));
    for (size_t i = reducer.best().request.enabledPasses.size(); i-- > 0;)
        for (size_t k = reducer.best().request.enabledPasses[i].settings.size(); k-- > 0;)
            CT_TRY_VOID(
                attempt([&](CompileRequest& request) { return eraseAt(request.enabledPasses[i].settings, k); }));
    CT_TRY_VOID(shorten(&CompileRequest::disabledPasses));
    CT_TRY_VOID(shorten(&CompileRequest::gradients));
    return any;
}

/// Of the passes that change the graph, in chunks of falling size; the others do nothing to it.
Result<bool> leaveOutPasses(Reducer& reducer) {
    CT_TRY(std::vector<std::string> passes, reducer.trials().changingPasses(reducer.best()));
    std::erase_if(passes, [](const std::string& name) {
        return std::any_of(pipeline().begin(), pipeline().end(), [&](const StagePass& row) {
            return row.pass->name == name && (row.pass->required || row.stage->required);
        });
    });
    bool any = false;
    for (size_t chunk = passes.size(); chunk > 0; chunk /= 2) {
        CT_TRY(const bool fewer, reducer.sweep((passes.size() + chunk - 1) / chunk,
                                               [&](size_t i) -> std::optional<Candidate> {
                                                   Candidate candidate = reducer.best();
                                                   std::vector<std::string>& off = candidate.request.disabledPasses;
                                                   const size_t before = off.size();
                                                   for (size_t at = i * chunk;
                                                        at < std::min(passes.size(), (i + 1) * chunk); ++at)
                                                       if (std::find(off.begin(), off.end(), passes[at]) == off.end())
                                                           off.push_back(passes[at]);
                                                   return off.size() > before ? std::optional(candidate) : std::nullopt;
                                               },
                                               "leaves out passes"));
        any = any || fewer;
        if (fewer && chunk == passes.size()) break;
    }
    return any;
}

Result<bool> shrinkBodies(Reducer& reducer) {
    bool any = false;
    std::vector<std::string> paths;
    const auto collect = [&](const Module& module, const std::string& prefix, auto&& self) -> void {
        for (const auto& [name, body] : module.subgraphs) {
            paths.push_back(prefix + name);
            self(*body, prefix + name + "/", self);
        }
    };
    collect(reducer.graph(), {}, collect);
    for (const std::string& path : paths) {
        const Module* body = reducer.graph().body(path);
        if (!body) continue;
        const std::vector<NodeId> calls = cuttableCalls(*body);
        for (size_t chunk = calls.size(); chunk > 0; chunk /= 2) {
            CT_TRY(const bool smaller, reducer.sweep((calls.size() + chunk - 1) / chunk,
                                                     [&](size_t i) -> std::optional<Candidate> {
                                                         const std::shared_ptr<Module> module = reducer.copy();
                                                         Module& inner = *module->body(path);
                                                         const size_t before = inner.graph().size();
                                                         const size_t end = calls.size() - i * chunk;
                                                         for (size_t at = end; at-- > (end > chunk ? end - chunk : 0);)
                                                             if (Node* node = inner.graph().find(calls[at]))
                                                                 bypass(inner, *node);
                                                         dropDeadCalls(inner, false);
                                                         if (inner.graph().size() >= before) return std::nullopt;
                                                         return reducer.with(module);
                                                     },
                                                     "made a body smaller"));
            any = any || smaller;
        }
    }
    return any;
}

}  // namespace cutaway
