#include "engine/passes/body_round.h"

#include <set>

namespace cutaway {
namespace {

using Path = std::vector<std::string>;

void collectNames(const Argument& argument, std::set<std::string>& names) {
    if (const auto* subgraph = argument.get<SubgraphRef>()) names.insert(subgraph->name);
    if (const auto* items = argument.list())
        for (const Argument& item : *items) collectNames(item, names);
}
/// The subgraphs that somebody names; others are not compiled.
std::set<std::string> namedIn(const Graph& graph) {
    std::set<std::string> names;
    for (const Node& node : graph.nodes()) {
        for (const Argument& arg : node.args()) collectNames(arg, names);
        for (const auto& [key, arg] : node.kwargs()) collectNames(arg, names);
    }
    return names;
}

/// Only the outermost: passes go into nested subgraphs themselves.
void collectNew(const Module& before, const Module& after, const Path& inside, std::vector<Path>& out) {
    const std::set<std::string> named = namedIn(after.graph());
    for (const auto& [name, body] : after.subgraphs) {
        if (!named.contains(name)) continue;
        Path path = inside;
        path.push_back(name);
        if (const Module* was = before.subgraph(name)) collectNew(*was, *body, path, out);
        else out.push_back(std::move(path));
    }
}

/// Null where a pass of the round has dropped it.
Module* moduleAt(Module& module, const Path& path) {
    Module* at = &module;
    for (const std::string& name : path)
        if (at) at = at->subgraph(name);
    return at;
}

}  // namespace

std::shared_ptr<const BodyRound> BodyRound::make(const Module& before, const Module& after,
                                                 const std::vector<const Pass*>& passes) {
    std::vector<Path> made;
    collectNew(before, after, {}, made);
    if (made.empty()) return nullptr;
    auto round = std::make_shared<BodyRound>();
    for (const Path& path : made) {
        if (!round->m_names.empty()) round->m_names += ", ";
        for (size_t i = 0; i < path.size(); ++i) round->m_names += (i ? "." : "") + path[i];
    }
    for (const Pass* pass : passes) {
        Entry& entry = round->m_entries.emplace_back();
        entry.summary = std::string(pass->summary) + ", in graphs that the stage has made: " + round->m_names;
        entry.run = [pass, made](Module& module, Rewriter& rewriter) -> Result<bool> {
            bool changed = false;
            for (const Path& path : made) {
                Module* body = moduleAt(module, path);
                if (body == nullptr) continue;
                CT_TRY(const bool inner, (*pass)(*body, rewriter));
                changed |= inner;
            }
            return changed;
        };
        entry.pass = *pass;
        entry.pass.summary = entry.summary;
        entry.pass.own = &entry.run;
    }
    return round;
}

std::vector<const Pass*> BodyRound::passes() const {
    std::vector<const Pass*> out;
    for (const Entry& entry : m_entries) out.push_back(&entry.pass);
    return out;
}

}  // namespace cutaway
