// What the controller looks up for the current place and node: differences, texts, details.
#include "ui/session/session_ask.h"

namespace cutaway::ui {

/// The windows have not changed, so the current place and node return to what they show.
void SessionController::returnToShown() {
    if (!m_shown || !m_selection.hasPlace()) return;
    m_returning = true;
    m_selection.go(m_shown->comparison, m_shownNode);
    m_returning = false;
}

struct SessionController::Loaded {
    std::shared_ptr<const SideBySide> beside;
    std::shared_ptr<const NodeIndex> nodes;
    QVector<DiffLine> lines;
};

Result<SessionController::Loaded> SessionController::loadBoth(Source& source, const Comparison& what, bool beside,
                                                              const Progress& progress) {
    Loaded both;
    UnionGraph graph;
    if (beside) {
        CT_TRY(const UnionGraph forward, source.diff(what.before, what.before, progress));
        CT_TRY(const UnionGraph backward, source.diff(what.after, what.after, progress));
        both.beside = std::make_shared<const SideBySide>(besideEachOther(forward, backward));
        graph = both.beside->graph;
    } else {
        CT_TRY(graph, source.diff(what.before, what.after, progress));
    }
    both.nodes = std::make_shared<const NodeIndex>(std::make_shared<const UnionGraph>(std::move(graph)));
    CT_TRY(GraphText after, source.text(what.after, false, progress));
    if (what.before == what.after) {
        both.lines = linesOf(after);
        return both;
    }
    if (both.beside)
        for (NodeKey& line : after.lineNodes) line = both.beside->shownKey(line);
    CT_TRY(GraphText before, source.text(what.before, false, progress));
    if (!both.beside) both.nodes->showBefore(before.lineNodes);
    both.lines = diffTexts(before, after);
    return both;
}

void SessionController::loadPlace() {
    ++m_moves;
    if (m_returning || !m_selection.hasPlace() || !m_model) return;
    const Comparison what = m_selection.comparison();
    const bool beside = isForwardBesideBackward(what);
    // Graph and text come together, so that all windows change at once or, cancelled, not at all.
    ask<Loaded>(
        Lane::Queries, QStringLiteral("place"), tr("Comparing graphs"),
        [what, beside](Source& source, const Progress& progress) { return loadBoth(source, what, beside, progress); },
        [this, what](Loaded both) {
            m_beside = both.beside;
            m_shown =
                std::make_shared<const Shown>(Shown{what, both.beside != nullptr, both.nodes->graph(), both.nodes});
            wantKernels();
            emit shown(m_shown);
            emit textShown(std::make_shared<const ShownText>(ShownText{what, std::move(both.lines)}));
            loadNode();
        },
        [this] { returnToShown(); });
    loadPartition();
}

void SessionController::nodeLoaded(NodeKey node, std::shared_ptr<const NodeFacts> facts) {
    m_shownNode = node;
    m_facts = facts;
    const auto marks = m_kernelQuery->marks(m_selection.place().run);
    if (marks && node != NodeKey::None) {
        NodeFacts all = *facts;
        all.kernels = marks;
        facts = std::make_shared<const NodeFacts>(std::move(all));
    }
    emit nodeShown(std::move(facts));
}

/// Once somebody looks at a node, or at the schedule: few steps of a run are, and planning it takes time.
void SessionController::wantKernels() {
    const Place place = m_selection.place();
    const Run* run = runOf(place.run);
    if (!run || run->stopped || run->steps.empty() || run->steps.back().state == StepState::Failed) return;
    const bool scheduled = place.step >= 0 && place.step < static_cast<int>(run->steps.size()) &&
                           run->steps[static_cast<size_t>(place.step)].stage == "schedule";
    if (scheduled || m_selection.node() != NodeKey::None) m_kernelQuery->want(place.run);
}

namespace {

/// A node of another step is not a failure: the window shows that it is not here.
Result<void> take(Result<NodeDetails> found, std::optional<NodeDetails>& into) {
    if (!found && found.error().code != ErrorCode::NotFound) return found.error();
    if (found) into = std::move(*found);
    return {};
}

Result<void> readNode(Source& source, const Comparison& what, NodeKey id, NodeFacts& facts, const Progress& progress) {
    CT_TRY_VOID(take(source.node(what.after, id, progress), facts.after));
    if (what.before == what.after) {
        facts.before = facts.after;
        return {};
    }
    // Graphs of two runs or files have keys of their own (cutaway/comparison.h).
    const UnionGraph::Node* const node = facts.nodes ? facts.nodes->find(id) : nullptr;
    if (node && node->change == Change::Added) return {};
    CT_TRY_VOID(take(source.node(what.before, node ? node->keyBefore() : id, progress), facts.before));
    if (!facts.before || !node || node->keyBefore() == id) return {};
    std::vector<std::vector<NodeKey>*> lists{&facts.before->node.inputs, &facts.before->node.users};
    for (std::vector<NodeKey>* keys : lists) facts.nodes->showBefore(*keys);
    return {};
}

/// Of a forward beside its backward only the sides that have the node: an id alone may mean another node there.
Result<void> readBeside(Source& source, const Comparison& what, NodeKey id, const SideBySide& beside, NodeFacts& facts,
                        const Progress& progress) {
    const UnionGraph::Node* node = facts.nodes->find(id);
    if (!node) return {};
    if (node->change != Change::Added) {
        CT_TRY_VOID(take(source.node(what.before, id, progress), facts.before));
    }
    if (node->change == Change::Removed) return {};
    CT_TRY_VOID(take(source.node(what.after, beside.backwardKey(id), progress), facts.after));
    if (!facts.after) return {};
    for (std::vector<NodeKey>* keys : {&facts.after->node.inputs, &facts.after->node.users})
        for (NodeKey& key : *keys) key = beside.shownKey(key);
    return {};
}

/// Why the partition has the node where it is; empty for nodes that came later.
QString explainedSide(Source& source, const Place& split, NodeKey id, const NodeFacts& facts,
                      const Progress& progress) {
    const auto joint = source.node(split, id, progress);
    const std::optional<NodeDetails>& here = facts.after ? facts.after : facts.before;
    if (!joint || !here || joint->node.name != here->node.name) return {};
    const auto why = source.explainPartition(split.run, id, progress);
    return why ? QString::fromStdString(*why) : QString();
}

}  // namespace

/// A constant's numbers may have to be read or computed, so everything else is shown first.
void SessionController::loadValues(NodeKey id, const std::shared_ptr<const NodeFacts>& facts) {
    const std::optional<NodeDetails>& here = facts->after ? facts->after : facts->before;
    if (!here || !here->constant) return;
    const Comparison what = m_selection.comparison();
    ask<ValueSummary>(
        Lane::Queries, QStringLiteral("values"), tr("Reading the constant"),
        [place = facts->after ? what.after : what.before, id](Source& source, const Progress& progress) {
            return source.values(place, id, progress);
        },
        [this, id, facts](ValueSummary values) {
            if (m_selection.node() != id || m_shownNode != id) return;
            NodeFacts all = *facts;
            all.values = std::move(values);
            nodeLoaded(id, std::make_shared<const NodeFacts>(std::move(all)));
        });
}

void SessionController::loadNode() {
    const NodeKey id = m_selection.node();
    if (m_returning) return;
    if (id == NodeKey::None || !m_shown || !m_selection.hasPlace()) {
        if (m_pending.contains(QStringLiteral("node"))) {
            ++m_generation[QStringLiteral("node")];
            settled(QStringLiteral("node"));
        }
        return nodeLoaded(NodeKey::None, std::make_shared<const NodeFacts>());
    }
    wantKernels();
    const Run* run = runOf(m_selection.place().run);
    ask<NodeFacts>(
        Lane::Queries, QStringLiteral("node"), tr("Reading the node"),
        [what = m_selection.comparison(), id, beside = m_beside, nodes = m_shown->nodes,
         split = run ? run->splitStep() : std::optional<int>(), steps = run ? run->steps : std::vector<StepInfo>()](
            Source& source, const Progress& progress) -> Result<NodeFacts> {
            NodeFacts facts;
            facts.steps = steps;
            facts.nodes = nodes;
            CT_TRY_VOID(beside ? readBeside(source, what, id, *beside, facts, progress)
                               : readNode(source, what, id, facts, progress));
            if (const auto start = source.definition(what.after, id)) facts.definition = QString::fromStdString(*start);
            if (split) facts.partition = explainedSide(source, {what.after.run, *split, -1}, id, facts, progress);
            return facts;
        },
        [this, id](NodeFacts facts) {
            const auto shown = std::make_shared<const NodeFacts>(std::move(facts));
            nodeLoaded(id, shown);
            loadValues(id, shown);
        },
        [this, id] { nodeLoaded(id, std::make_shared<const NodeFacts>()); });
}

void SessionController::comparePackage(RunId run, std::shared_ptr<const PackagedModel> model,
                                       std::function<void(std::shared_ptr<const PackageComparison>)> then) {
    ask<PackageComparison>(
        Lane::Queries, QStringLiteral("package"), tr("Comparing the package"),
        [run, model = std::move(model)](Source& source, const Progress& progress) {
            return source.comparePackage(run, *model, progress);
        },
        [then](PackageComparison all) { then(std::make_shared<const PackageComparison>(std::move(all))); },
        [then] { then(nullptr); });
}

}  // namespace cutaway::ui
