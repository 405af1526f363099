#pragma once
// Small graphs sent through the pipeline, with passes that a test lends, and what became of them in words.
#include <QStringList>
#include <QtTest>
#include <functional>

#include "engine/passes/pipeline.h"

namespace cutaway::testing {

inline CompileTrace compiled(const Snapshot& input, const CompileRequest& options, const CompileHooks& hooks = {}) {
    auto trace = runPipeline(input, options, hooks);
    if (!trace) qFatal("%s", trace.error().text().c_str());
    return std::move(*trace);
}
inline QStringList stepNames(const CompileTrace& trace) {
    QStringList names;
    for (const Step& step : trace.steps) names << QString::fromStdString(step.info.name);
    return names;
}
/// "op, op" of the calls.
inline QString calls(const Module& module) {
    QStringList names;
    for (const Node& node : module.graph().nodes())
        if (node.isCall()) names << QString::fromStdString(node.op().name());
    return names.join(", ");
}

using PassFunction = std::function<Result<bool>(Module&, Rewriter&)>;
/// Asks for a plugin's pass; what it returns lends its function.
inline CompileHooks lend(CompileRequest& request, const PluginPass& id, PassFunction function) {
    request.plugins.push_back(id);
    CompileHooks hooks;
    hooks.passes.push_back({id, "Made by a test", std::move(function)});
    return hooks;
}

}  // namespace cutaway::testing
