// Graphs that are kept beside the open one (cutaway/comparison.h).
#include <algorithm>

#include "cutaway/comparison.h"
#include "engine/ir/fingerprint.h"
#include "engine/session/session_state.h"

namespace cutaway {

Place Session::State::keep(Snapshot graph) {
    const std::lock_guard lock(mutex);
    const auto found = std::find(kept.begin(), kept.end(), graph);
    const auto number = found - kept.begin();
    if (found == kept.end()) kept.push_back(std::move(graph));
    return {kFirstKept - static_cast<RunId>(number), -1, -1};
}

Result<Snapshot> Session::State::keptAt(const Place& place) const {
    const std::lock_guard lock(mutex);
    const auto number = static_cast<size_t>(kFirstKept - place.run);
    if (number >= kept.size()) return Error{ErrorCode::NotFound, "no such graph is kept", {}, {}};
    return kept[number];
}

Result<Place> keepFile(Session& session, const std::string& path, const OpenSettings& settings,
                       const Progress& progress) {
    Session other;
    CT_TRY_VOID(other.open(path, settings, progress));
    return keepGraph(session, other, {-1, -1, -1});
}

Result<Place> keepGraph(Session& session, const Session& from, const Place& place) {
    CT_TRY(Snapshot graph, const_cast<Session&>(from).state().snapshot(place));
    return session.state().keep(std::move(graph));
}

/// The last graph that both runs have made in the same way, of the places' graph or one that all of a run is made
/// from; null where nothing is common.
Snapshot Session::State::common(const Place& before, const Place& after) const {
    if (isKept(before) || isKept(after)) return nullptr;
    Snapshot last = input;
    const auto left = run(before.run), right = run(after.run);
    if (!left || !right) return last;
    const auto graphNameAt = [](const Run& of, const Place& place) {
        return place.step < 0 ? std::string() : of.trace.steps[static_cast<size_t>(place.step)].info.graphName;
    };
    const std::string graphName = graphNameAt(**left, before);
    const bool oneGraph = graphName == graphNameAt(**right, after);
    const auto &mine = (*left)->trace.steps, &theirs = (*right)->trace.steps;
    for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
        if (mine[i].info.key() != theirs[i].info.key() || !mine[i].after || !theirs[i].after) break;
        if (mine[i].after != theirs[i].after && fingerprint(*mine[i].after) != fingerprint(*theirs[i].after)) break;
        const std::string& of = mine[i].info.graphName;
        if ((oneGraph && of == graphName) || of == "main" || of == "joint") last = mine[i].after;
    }
    return last;
}

/// Along one run ids say what is what; two runs give the same ids to nodes that have nothing to do with each other.
bool Session::State::oneLineage(const Place& before, const Place& after) const {
    if (isKept(before) || isKept(after)) return before == after;
    return before.run == after.run || before.step < 0 || after.step < 0;
}

namespace {

struct RecordedNames {
    std::string_view before, after;
};
/// Events of traces, files of debug folders, files of recorded stages; the first that is there counts.
constexpr RecordedNames kRecorded[] = {{"before_post_grad_graph", "inductor_post_grad_graph"},
                                       {"before_post_grad_graph", "after_post_grad_graph"},
                                       {"BEFORE POST GRAD", "AFTER POST GRAD"},
                                       {"fx_graph_readable.py", "fx_graph_transformed.py"},
                                       {"fx_graph_runnable.py", "fx_graph_transformed.py"},
                                       {"_post_grad.before.py", "_post_grad.after.py"}};

bool isOfTraining(const Module& module) {
    const auto inputs = module.graph().placeholders();
    return std::any_of(inputs.begin(), inputs.end(), [](const Node* input) {
        return input->target().starts_with("primals_") || input->target().starts_with("tangents_") ||
               input->name().starts_with("primals_") || input->name().starts_with("tangents_");
    });
}

}  // namespace

std::vector<RecordedPair> recordedPostGrad(const std::vector<std::string>& graphs) {
    std::vector<RecordedPair> out;
    for (const std::string& graph : graphs)
        for (const auto& [before, after] : kRecorded) {
            const size_t at = graph.rfind(after);
            if (at == std::string::npos) continue;
            std::string given = graph;
            given.replace(at, after.size(), before);
            if (std::find(graphs.begin(), graphs.end(), given) == graphs.end()) continue;
            out.push_back({std::move(given), graph});
            break;
        }
    return out;
}

Result<PostGradPlaces> postGradBesideRecorded(Session& session, const RecordedPair& pair, CompileRequest request,
                                              const Progress& progress) {
    CT_TRY(const Place theirs, keepFile(session, session.model().path, {pair.after, {}}, progress));
    if (isOfTraining(*session.state().input)) request.mode = Mode::Training;
    request.onlyStage = "post_grad";
    CT_TRY(const RunId run, session.compile(request, {}, progress));
    CT_TRY(const std::vector<StepInfo> steps, session.steps(run));
    if (steps.empty() || steps.back().state == StepState::Failed)
        return Error{ErrorCode::Unsupported,
                     steps.empty() ? "no post-grad pass runs on this graph" : steps.back().error,
                     session.model().path,
                     {}};
    return PostGradPlaces{theirs, {run, static_cast<int>(steps.size()) - 1, -1}};
}

}  // namespace cutaway
