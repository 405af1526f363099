#include "ui/graph/graph_view.h"

#include <QGuiApplication>
#include <QThreadPool>
#include <algorithm>
#include <utility>

#include "ui/graph/nearest_place.h"
#include "ui/models/node_index.h"

namespace cutaway::ui {
namespace {

/// A fold with more nodes opens module by module: all of it at once would bury what is on show.
constexpr size_t kRevealAtOnce = 250;
constexpr int kRest = 400;  // milliseconds after which a hand rests

}  // namespace

GraphView::GraphView(QWidget* parent)
    : QSplitter(Qt::Horizontal, parent), m_first(new GraphCanvas(this)), m_second(new GraphCanvas(this)) {
    addWidget(m_first);
    addWidget(m_second);
    setChildrenCollapsible(false);
    m_second->hide();
    m_second->setObjectName(QStringLiteral("secondGraphCanvas"));
    m_options.font = font();
    connectCanvas(m_first, m_second);
    connectCanvas(m_second, m_first);
    m_second->setFollows(true);
    m_second->installEventFilter(this);
    m_handRests.setSingleShot(true);
    m_handRests.setInterval(kRest);
    connect(&m_handRests, &QTimer::timeout, this, [this] {
        if (QGuiApplication::mouseButtons() != Qt::NoButton) return m_handRests.start();
        if (m_hand) lookTogether(m_hand, false);
    });
    connect(&m_builder, &SceneBuilder::started, this, &GraphView::layoutStarted);
    connect(&m_builder, &SceneBuilder::started, this, [this] {
        for (GraphCanvas* canvas : {m_first, m_second}) canvas->setStale(true);
    });
    connect(&m_builder, &SceneBuilder::ready, this,
            [this](const std::shared_ptr<const GraphScene>& scene, const QString& note) {
                sceneReady(scene);
                emit sceneShown(note);
            });
}

void GraphView::sceneReady(const std::shared_ptr<const GraphScene>& scene) {
    // Freeing tens of thousands of boxes takes a while, so it is not done on the window's thread.
    std::shared_ptr<const GraphScene> old = m_first->sharedScene();
    m_second->setScene(scene);
    m_first->setScene(scene, std::exchange(m_isNew, false));
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->setStale(false);
    QThreadPool::globalInstance()->start([gone = std::move(old)]() mutable { gone.reset(); });
    lookTogether();
    const bool fits = std::exchange(m_fitNext, false);
    if (fits) m_first->showAll();
    if (const NodeKey wanted = std::exchange(m_wanted, NodeKey::None); wanted != NodeKey::None)
        setCurrent(wanted, true);
    showOpened();
    if (const auto look = std::exchange(m_look, nullptr)) m_first->lookAgain(*look);
}

GraphLook GraphView::look() const {
    GraphLook look = m_first->look();
    look.open = m_options;
    return look;
}

void GraphView::lookAgain(std::shared_ptr<const GraphLook> look) {
    const OpenBoxes& now = m_options;
    if (now == look->open && !m_builder.isBusy()) return m_first->lookAgain(*look);
    openAs(std::move(look));
    rebuild();
}

/// The next scene gets the boxes of that look, and its view.
void GraphView::openAs(std::shared_ptr<const GraphLook> look) {
    m_wanted = NodeKey::None;
    const bool others = m_options.modules != look->open.modules;
    static_cast<OpenBoxes&>(m_options) = look->open;
    m_look = std::move(look);
    if (others) emit modulesChanged();
}

void GraphView::showPart(const std::optional<GraphPart>& part) {
    if (part == m_options.part || !m_graph) return;
    if (part && !partOf(*m_graph, *part))
        return emit message(part->kind == GraphPart::Kind::Path ? tr("No path leads from one to the other.")
                                                                : tr("This graph does not have the node."));
    emit aboutToOpen();
    m_options.part = part;
    m_fitNext = part.has_value();
    m_wanted = m_first->currentId();
    m_options.current = m_wanted;
    rebuild();
}

void GraphView::connectCanvas(GraphCanvas* canvas, GraphCanvas* other) {
    connect(canvas, &GraphCanvas::viewChanged, this, [this, canvas](bool byHand) { lookTogether(canvas, byHand); });
    connect(canvas, &GraphCanvas::nodeChosen, this, [this, other](NodeKey id) {
        other->setCurrent(id, false);
        emit nodeChosen(id);
    });
    connect(canvas, &GraphCanvas::nodeActivated, this, &GraphView::nodeActivated);
    connect(canvas, &GraphCanvas::menuWanted, this, &GraphView::menuWanted);
    connect(canvas, &GraphCanvas::moduleActivated, this, &GraphView::openModule);
    connect(canvas, &GraphCanvas::partWanted, this, &GraphView::showPart);
    connect(canvas, &GraphCanvas::closeWanted, this, &GraphView::closeModule);
    connect(canvas, &GraphCanvas::foldActivated, this, [this](const std::vector<NodeKey>& members) {
        if (members.empty()) return;
        emit aboutToOpen();
        reveal(members, members.front());
        emit nodeFollows(members.front());
    });
}

void GraphView::showGraph(std::shared_ptr<const UnionGraph> graph, const QString& about, NodeKey current,
                          std::shared_ptr<const GraphLook> look) {
    m_isNew = m_isNew || about != m_about;
    m_graph = std::move(graph);
    m_options.current = current;
    if (about != m_about) m_options.revealed.clear();
    m_about = about;
    m_look.reset();
    if (look) openAs(std::move(look));
    rebuild();
}

void GraphView::clear(const QString& hint) {
    m_graph.reset();
    m_builder.client().cancel();
    for (GraphCanvas* canvas : {m_first, m_second}) {
        canvas->setScene(nullptr);
        canvas->setHint(hint);
    }
}

void GraphView::setMode(GraphMode mode) {
    const bool two = mode == GraphMode::SideBySide;
    m_first->setMode(two ? GraphMode::Before : mode);
    m_second->setMode(GraphMode::After);
    const bool wereTwo = isSideBySide();
    m_second->setVisible(two);
    namePanes();
    if (two == wereTwo) return;
    if (two) setSizes({width() / 2, width() / 2});
    // At half the width another part should be in view: the change, and the current node.
    QMetaObject::invokeMethod(
        this,
        [this] {
            m_first->frameChange();
            if (!m_linked) m_second->frameChange();
            setCurrent(m_first->currentId(), true);
        },
        Qt::QueuedConnection);
}

void GraphView::setPaneNames(const QString& first, const QString& second) {
    m_firstName = first;
    m_secondName = second;
    namePanes();
}

void GraphView::namePanes() {
    const bool two = isSideBySide();
    m_first->setAccessibleName(two ? tr("Graph, %1").arg(m_firstName.toLower()) : tr("Graph"));
    m_second->setAccessibleName(tr("Graph, %1").arg(m_secondName.toLower()));
    m_first->setTitle(two ? m_firstName : QString());
    m_second->setTitle(two ? m_secondName : QString());
}

void GraphView::setLinked(bool linked) {
    if (m_linked == linked) return;
    m_linked = linked;
    m_second->setFollows(linked);
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->setOwnSide(!linked);
}

void GraphView::setMarks(std::shared_ptr<const SideMarks> marks) {
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->setMarks(marks);
}

void GraphView::setHeat(std::shared_ptr<const HeatMarks> heat) {
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->setHeat(heat);
}

void GraphView::setKernels(const KernelNames& kernels) {
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->setKernels(kernels);
}

void GraphView::setMarkedOp(const QString& op) {
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->setMarkedOp(op);
}

bool GraphView::eventFilter(QObject* watched, QEvent* event) {
    // After the pane itself has got its new size.
    if (watched == m_second && event->type() == QEvent::Resize)
        QMetaObject::invokeMethod(
            this, [this] { lookTogether(); }, Qt::QueuedConnection);
    return QSplitter::eventFilter(watched, event);
}

void GraphView::lookTogether() { lookTogether(m_first->isApart() ? m_second : m_first, false); }

bool GraphView::isSideBySide() const { return m_second->isVisibleTo(this); }

/// The other pane shows what `leader` shows. While the user moves a pane, its own view stays as it is.
void GraphView::lookTogether(GraphCanvas* leader, bool byHand) {
    if (!m_linked) return;
    const double scale = leader->scale();
    const QPointF offset = leader->toWidget({0, 0});
    const bool moved = leader->isMoved();
    const auto viewOf = [&](const GraphCanvas* canvas) {
        return QRectF(-offset / scale, QSizeF(canvas->size()) / scale);
    };
    const auto showsSome = [&](const GraphCanvas* canvas) {
        return canvas->scene() && showsNodes(*canvas->scene(), canvas->mode(), viewOf(canvas));
    };
    const bool both = isSideBySide() && m_first->scene() == m_second->scene();
    const bool one = both && showsSome(m_first) != showsSome(m_second);
    for (GraphCanvas* canvas : {m_first, m_second}) {
        if (canvas == leader && byHand) continue;
        canvas->followView(
            scale, offset,
            one && !showsSome(canvas) ? wayToNearest(*canvas->scene(), canvas->mode(), viewOf(canvas)) : QPointF(),
            moved);
    }
    m_handRests.stop();
    if (!byHand) return;
    m_hand = leader;
    m_handRests.start();
}

void GraphView::setFolding(bool fold, int hops) {
    if (m_options.fold == fold && m_options.hops == hops) return;
    m_options.fold = fold;
    m_options.hops = hops;
    m_options.revealed.clear();
    rebuild();
}

void GraphView::setCurrent(NodeKey id, bool reveal) {
    if (m_builder.isBusy() && reveal) m_wanted = id;
    // It comes into view in a pane that shows it; the other follows.
    const GraphScene* scene = m_first->scene();
    const int box = scene && id != NodeKey::None ? scene->picture.indexOf(id) : -1;
    const bool second =
        isSideBySide() && box >= 0 && !shownIn(m_first->mode(), scene->picture.nodes[static_cast<size_t>(box)].change);
    (second ? m_first : m_second)->setCurrent(id, false);
    (second ? m_second : m_first)->setCurrent(id, reveal);
}

void GraphView::fit() {
    if (m_linked) return m_first->fit();
    for (GraphCanvas* canvas : {m_first, m_second}) canvas->frameChange();
}

void GraphView::goTo(NodeKey id) {
    const GraphScene* scene = m_first->scene();
    const int box = scene ? scene->picture.indexOf(id) : -1;
    if (box < 0 && id != NodeKey::None && scene && scene->picture.partly && m_graph && NodeIndex(m_graph).find(id)) {
        m_options.part.reset();  // it is not part of that
        m_options.current = m_wanted = id;
        return rebuild();
    }
    if (box >= 0 && scene->picture.nodes[static_cast<size_t>(box)].isModule()) {
        m_options.current = m_wanted = id;
        rebuild();
    } else if (box >= 0 && scene->picture.nodes[static_cast<size_t>(box)].isFold())
        reveal(scene->picture.nodes[static_cast<size_t>(box)].members, id);
    else setCurrent(id, true);
}

NodeKey GraphView::nextChange(bool forward) const {
    const GraphScene* scene = m_first->scene();
    if (!scene || scene->nodes.empty()) return NodeKey::None;
    const auto count = static_cast<int>(scene->nodes.size());
    const int from = m_first->currentIndex() >= 0 ? m_first->currentIndex() : forward ? -1 : count;
    std::vector<char> rewired(scene->nodes.size(), 0);  // reads another value than before
    for (const auto& edge : scene->picture.edges)
        if (edge.rewired) rewired[static_cast<size_t>(edge.to)] = 1;
    for (int i = 1; i <= count; ++i) {
        const auto at = static_cast<size_t>((from + (forward ? i : -i) + 2 * count) % count);
        const Picture::Node& node = scene->picture.nodes[at];
        const bool shown = isSideBySide() || shownIn(m_first->mode(), node.change);
        if (!shown) continue;
        // Of a graph in which nothing changed but the order, what stands elsewhere.
        const bool changed = node.change != Change::Unchanged || rewired[at] || (!scene->picture.changed && node.moved);
        const NodeKey chip = scene->picture.changedChip(static_cast<int>(at));
        if (!changed && chip == NodeKey::None) continue;
        if (!node.isFold()) return changed ? node.id : chip;
        if (const NodeKey inside = changedIn(node, forward); inside != NodeKey::None) return inside;
    }
    return NodeKey::None;
}

/// The first or last node of a closed module that changed.
NodeKey GraphView::changedIn(const Picture::Node& module, bool first) const {
    if (!module.isModule() || !m_graph) return NodeKey::None;
    const NodeIndex nodes(m_graph);
    const auto isChanged = [&](NodeKey id) {
        const UnionGraph::Node* node = nodes.find(id);
        return node && (node->change != Change::Unchanged || (node->moved && !m_first->scene()->picture.changed));
    };
    if (first) {
        const auto found = std::find_if(module.members.begin(), module.members.end(), isChanged);
        return found == module.members.end() ? NodeKey::None : *found;
    }
    const auto found = std::find_if(module.members.rbegin(), module.members.rend(), isChanged);
    return found == module.members.rend() ? NodeKey::None : *found;
}

void GraphView::reveal(const std::vector<NodeKey>& members, NodeKey wanted) {
    const bool whole = members.size() <= kRevealAtOnce || !m_graph;
    std::optional<NodeIndex> nodes;
    if (!whole) nodes.emplace(m_graph);
    const auto moduleOf = [&](NodeKey id) {
        const UnionGraph::Node* node = nodes->find(id);
        return node ? std::string_view(node->info.module) : std::string_view();
    };
    // Of a huge fold the module of the wanted node, and of a huge module its part from there on.
    const std::string_view module = whole ? std::string_view() : moduleOf(wanted);
    auto from = members.begin();
    if (!whole && std::count_if(members.begin(), members.end(), [&](NodeKey id) { return moduleOf(id) == module; }) >
                      static_cast<std::ptrdiff_t>(kRevealAtOnce))
        from = std::find(members.begin(), members.end(), wanted);
    size_t shown = 0;
    for (; from != members.end(); ++from) {
        if (!whole && (shown >= kRevealAtOnce || moduleOf(*from) != module)) continue;
        m_options.revealed.insert(packed(*from));
        ++shown;
    }
    m_wanted = wanted;
    rebuild();
}

void GraphView::startAnew(const ModuleFolding& modules) {
    static_cast<OpenBoxes&>(m_options) = {};
    m_options.modules = modules;
    setMarkedOp({});
}

void GraphView::setTimes(std::shared_ptr<const QHash<quint64, double>> microseconds) {
    if (m_options.microseconds == microseconds) return;
    m_options.microseconds = std::move(microseconds);
    if (m_first->scene() && m_first->scene()->picture.modules > 0) rebuild();
}

void GraphView::modulesMoved() {
    rebuild();
    emit modulesChanged();
}

void GraphView::openModule(const QString& key, bool equal) {
    emit aboutToOpen();
    m_options.modules.open(key);
    if (const GraphScene* scene = m_first->scene(); equal && scene) {
        const auto& nodes = scene->picture.nodes;
        if (const int box = scene->picture.indexOfModule(key); box >= 0)
            for (const auto& node : nodes)
                if (node.isModule() && node.structure == nodes[static_cast<size_t>(box)].structure)
                    m_options.modules.open(node.key);
    }
    m_opened = key;
    modulesMoved();
}

void GraphView::closeModule(const QString& key) {
    emit aboutToOpen();
    m_options.modules.close(key);
    m_options.current = NodeKey::None;
    m_closed = key;
    emit nodeFollows(NodeKey::None);
    modulesMoved();
}

QString GraphView::moduleToClose(NodeKey node) const {
    const GraphScene* scene = m_first->scene();
    return scene && node != NodeKey::None ? scene->picture.moduleToClose(scene->picture.indexOf(node)) : QString();
}

void GraphView::openLevel(bool more) {
    const GraphScene* scene = m_first->scene();
    if (!scene || scene->picture.depth == 0) return;
    emit aboutToOpen();
    const int depth = scene->picture.depth, level = std::min(scene->picture.level, depth) + (more ? 1 : -1);
    m_options.modules.opened.clear();
    m_options.modules.closed.clear();
    m_options.modules.level = level >= depth ? ModuleFolding::kAll : std::max(0, level);
    modulesMoved();
}

void GraphView::openAllModules() {
    emit aboutToOpen();
    m_options.modules.level = ModuleFolding::kAll;
    m_options.modules.closed.clear();
    modulesMoved();
}

void GraphView::foldModulesBack() {
    emit aboutToOpen();
    m_options.modules = ModuleFolding();
    m_options.revealed.clear();
    m_options.current = NodeKey::None;
    modulesMoved();
}

/// What was opened comes into view with its first node current, of what was closed the box.
void GraphView::showOpened() {
    const QString opened = std::exchange(m_opened, QString()), closed = std::exchange(m_closed, QString());
    const GraphScene* scene = m_first->scene();
    if (!scene) return;
    if (const int box = scene->picture.indexOfModule(closed); box >= 0) m_first->setCurrentBox(box);
    if (opened.isEmpty()) return;
    QRectF area;
    int first = -1;
    for (size_t i = 0; i < scene->nodes.size(); ++i) {
        const Picture::Node& node = scene->picture.nodes[i];
        QString key = moduleKey(node.module, node.backward);
        while (!key.isEmpty() && key != opened) key = moduleAround(key);
        if (key.isEmpty()) continue;
        area |= scene->nodes[i];
        if (first < 0) first = static_cast<int>(i);
    }
    if (first < 0) return;
    m_first->setCurrentBox(first);
    if (const NodeKey id = scene->picture.nodes[static_cast<size_t>(first)].id; id != NodeKey::None)
        emit nodeFollows(id);
    m_first->showArea(area);
}

void GraphView::rebuild() {
    if (!m_graph) return;
    m_options.font = font();
    m_builder.build(m_graph, m_options);
}

}  // namespace cutaway::ui
