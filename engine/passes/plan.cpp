#include "engine/passes/plan.h"

#include <algorithm>
#include <map>

#include "engine/passes/pass_order.h"
#include "engine/passes/user_passes.h"

namespace cutaway {
namespace {

/// Writes the plan down, part by part.
class Planner {
  public:
    Planner(const CompileRequest& request, const UserPasses& passes)
        : m_request(request), m_own(passes), m_graphNames{request.mode == Mode::Training ? "joint" : "main"} {}

    void add(const std::vector<Part>& parts) {
        for (const Part& part : parts) add(part);
    }
    std::vector<PlannedPass> plan;

  private:
    void add(const Part& part) {
        if (part.when && !part.when(m_request)) return;
        if (part.eachGraph) {
            const std::vector<std::string_view> graphNames = m_graphNames;
            for (const std::string_view graphName : graphNames) {
                m_graphNames = {graphName};
                add(part.parts);
            }
            m_graphNames = graphNames;
        } else if (part.stage) {
            for (const Row& row : part.stage->rows) std::visit([&](const auto& one) { addRow(one, *part.stage); }, row);
            if (part.graphNames.empty() || plan.empty()) return;
            plan.back().graphNames = part.graphNames;
            m_graphNames = part.graphNames;
        } else {
            add(part.parts);
        }
    }

    void addRow(const Pass& pass, const Stage& stage) {
        if (pass.onRequest) addRequested({&pass, 1}, {}, stage);
        else addPass(pass, stage);
    }
    void addRow(const AnyOrder& group, const Stage& stage) { addRequested(group.passes, group.after, stage); }
    void addRow(const Repeat& group, const Stage& stage) {
        for (int i = 0; i < group.times; ++i)
            for (const Pass& pass : group.passes) addPass(pass, stage);
    }
    void addRow(const UserPlace& place, const Stage& stage) {
        for (const Pass* pass : m_own.at(place.name)) addPass(*pass, stage);
    }

    /// In the order, and as often as, the request names them.
    void addRequested(std::span<const Pass> passes, std::span<const Dependency> after, const Stage& stage) {
        for (const OptionalPass& wanted : m_request.enabledPasses)
            for (const Pass& pass : passes) {
                if (pass.name != wanted.name && (pass.alsoRequestedBy != wanted.name || wanted.name.empty())) continue;
                const double times = std::clamp(wanted.number("counter", 1), 0.0, 100.0);
                for (int i = 0; i < static_cast<int>(times); ++i) addPass(pass, stage, after);
            }
    }
    void addPass(const Pass& pass, const Stage& stage, std::span<const Dependency> after = {}) {
        if (!pass.releases.hold(m_request.pytorch)) return;
        const std::string_view graphName = m_graphNames.front();
        plan.push_back({&pass, &stage, graphName, ++m_count[{graphName, stage.name, pass.name}], after, {}});
    }

    const CompileRequest& m_request;
    const UserPasses& m_own;
    std::vector<std::string_view> m_graphNames;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, int> m_count;
};

/// A graph that was split before it was recorded, or is not split in this run, stays one graph: the passes behind the
/// split are planned once, on the graph of the others.
void dropUnsplitGraphs(std::vector<PlannedPass>& plan) {
    if (plan.empty() || std::any_of(plan.begin(), plan.end(), [](const auto& one) { return !one.graphNames.empty(); }))
        return;
    std::vector<std::string_view> graphNames;
    for (const PlannedPass& one : plan)
        if (std::find(graphNames.begin(), graphNames.end(), one.graphName) == graphNames.end())
            graphNames.push_back(one.graphName);
    if (graphNames.size() == 1 && graphNames.front() == "joint") return;
    const std::string_view kept =
        graphNames.front() == "joint" && graphNames.size() > 1 ? graphNames[1] : graphNames.front();
    std::erase_if(plan,
                  [&](const PlannedPass& one) { return one.graphName != graphNames.front() && one.graphName != kept; });
    for (PlannedPass& one : plan) one.graphName = "main";
}

void collectStages(const std::vector<Part>& parts, const CompileRequest* request, std::vector<const Stage*>& out) {
    for (const Part& part : parts) {
        if (request && part.when && !part.when(*request)) continue;
        if (part.stage && std::find(out.begin(), out.end(), part.stage) == out.end()) out.push_back(part.stage);
        collectStages(part.parts, request, out);
    }
}

}  // namespace

Part stage(const Stage& of) {
    Part part;
    part.stage = &of;
    return part;
}
Part when(bool (*holds)(const CompileRequest&), std::vector<Part> parts) {
    Part part;
    part.when = holds;
    part.parts = std::move(parts);
    return part;
}
Part split(const Stage& of, std::vector<std::string_view> graphNames) {
    Part part;
    part.stage = &of;
    part.graphNames = std::move(graphNames);
    return part;
}
Part onEach(std::vector<Part> parts) {
    Part part;
    part.parts = std::move(parts);
    part.eachGraph = true;
    return part;
}

std::vector<const Stage*> stagesOf(const std::vector<Part>& compiler, const CompileRequest* request) {
    std::vector<const Stage*> out;
    collectStages(compiler, request, out);
    return out;
}

Result<std::vector<PlannedPass>> makePlan(const std::vector<Part>& compiler, const CompileRequest& request,
                                          const UserPasses& passes, const std::string& next) {
    Planner planner(request, passes);
    planner.add(compiler);
    std::vector<PlannedPass> plan = std::move(planner.plan);
    const std::vector<const Stage*> stages = stagesOf(compiler);
    const auto placeOf = [&](std::string_view name) {
        return std::find_if(stages.begin(), stages.end(), [&](const Stage* each) { return each->name == name; });
    };
    const bool whole = request.onlyStage.empty() && !request.allStages;
    const bool beforeDispatch = request.enabled("is_predispatch") != nullptr;
    std::erase_if(plan, [&](const PlannedPass& one) {
        if (whole && placeOf(next) != stages.end() && placeOf(one.stage->name) < placeOf(next)) return true;
        if (beforeDispatch && one.stage == &kPreGrad && !one.pass->predispatch) return true;
        if (!request.onlyStage.empty() && one.stage->name != request.onlyStage) return true;
        return one.pass->when != nullptr && !one.pass->when(request);
    });
    dropUnsplitGraphs(plan);
    CT_TRY_VOID(movePasses(plan, request.moves));
    return plan;
}

}  // namespace cutaway
