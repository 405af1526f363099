#pragma once
// The compiler as a list of parts (stage, when, split, onEach), and the plan that one request makes of it: a list of
// passes.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/passes/stage.h"

namespace cutaway {

/// A part of the compiler. Only stage, when, split and onEach make one.
struct Part {
    const Stage* stage = nullptr;
    bool (*when)(const CompileRequest& request) = nullptr;
    std::vector<Part> parts;                   // of `when` and of onEach
    std::vector<std::string_view> graphNames;  // of `split`: what the stage's last pass makes graphs for
    bool eachGraph = false;
};
/// The passes of the stage's table.
Part stage(const Stage& of);
/// The parts, in runs of that kind only.
Part when(bool (*holds)(const CompileRequest&), std::vector<Part> parts);
/// The passes of the stage; the last one turns the graph into one for each graph (Pass::split).
Part split(const Stage& of, std::vector<std::string_view> graphNames);
/// All parts on the first graph, then all on the next; with one graph, on that.
Part onEach(std::vector<Part> parts);

/// A pass at its place in a run.
struct PlannedPass {
    const Pass* pass = nullptr;
    const Stage* stage = nullptr;
    std::string_view graphName;
    int occurrence = 1;                             // StepInfo's
    std::span<const Dependency> after = {};         // of the group that it stands in
    std::vector<std::string_view> graphNames = {};  // of a split

    bool required() const { return pass->required || stage->required; }
};

class UserPasses;

/// The passes of a run, in running order: the user's own at their places, optional ones as the request names them,
/// moved as it says. Occurrences are counted before anything is left out, so that switching a pass off renumbers
/// nothing. `next`: the stage that comes next for a graph that was recorded on its way through PyTorch's compiler;
/// earlier ones are left out. Errors: moves that name no pass of the plan, or break an order that passes depend on.
Result<std::vector<PlannedPass>> makePlan(const std::vector<Part>& compiler, const CompileRequest& request,
                                          const UserPasses& own, const std::string& next);

/// Every stage of the compiler, each once, in running order; with a request those of its runs.
std::vector<const Stage*> stagesOf(const std::vector<Part>& compiler, const CompileRequest* request = nullptr);

}  // namespace cutaway
