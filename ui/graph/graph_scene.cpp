#include "ui/graph/graph_scene.h"

#include <QFontMetricsF>
#include <QLineF>
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "ui/background.h"
#include "ui/models/node_index.h"

namespace cutaway::ui {
namespace {

constexpr double kSceneMargin = 30, kStubLength = 12, kStubHeight = 16;

QPainterPath pathOf(const std::vector<LayoutPoint>& route, QPointF offset) {
    const auto at = [&](size_t i) { return QPointF(route[i].x, route[i].y) + offset; };
    QPainterPath path(at(0));
    for (size_t i = 1; i + 2 < route.size(); i += 3) path.cubicTo(at(i), at(i + 1), at(i + 2));
    return path;
}

/// A point near the middle of the curve: by its segments, because measuring the curve costs more than drawing it.
QPointF middleOf(const std::vector<LayoutPoint>& route) {
    const auto at = [&](size_t i) { return QPointF(route[i].x, route[i].y); };
    const size_t segments = route.size() / 3;
    if (segments % 2 == 0) return at(segments / 2 * 3);
    const size_t first = segments / 2 * 3;
    return (at(first) + 3 * at(first + 1) + 3 * at(first + 2) + at(first + 3)) / 8;
}

using FarEnds = std::vector<GraphScene::FarEnd>;

/// The labels of one side of a node: side by side as far as they fit, the rest in one that counts them.
void addStubsOf(GraphScene& scene, int node, bool outgoing, const FarEnds& ends, const QFontMetricsF& small) {
    constexpr double kLeast = 70, kGap = 3, kPad = 8;
    const QRectF box = scene.nodes[static_cast<size_t>(node)];
    const double right = box.left() + std::max(box.width(), kLeast),
                 y = outgoing ? box.bottom() + kStubLength / 2 : box.top() - kStubLength / 2 - kStubHeight;
    double left = box.left();
    const auto hang = [&](const QString& text, double room, FarEnds leads) {
        const double width = std::min(small.horizontalAdvance(text) + kPad, room);
        scene.stubs.push_back({QRectF(left, y, width, kStubHeight),
                               small.elidedText(text, Qt::ElideMiddle, width - kPad + 1), node, outgoing,
                               std::move(leads)});
        left += width + kGap;
    };
    const QString arrow = outgoing ? QStringLiteral("↓ ") : QStringLiteral("↑ ");
    for (size_t i = 0; i < ends.size(); ++i) {
        const QString rest = QStringLiteral("+%1").arg(ends.size() - i);
        const double room = right - left - (i + 1 == ends.size() ? 0 : small.horizontalAdvance(rest) + kPad + kGap);
        if (i > 0 && small.horizontalAdvance(arrow + ends[i].name) + kPad > room)
            return hang(rest, right - left, FarEnds(ends.begin() + static_cast<std::ptrdiff_t>(i), ends.end()));
        hang(arrow + ends[i].name, room, {ends[i]});
    }
}

void addStubs(GraphScene& scene, const QFont& font) {
    QFont smallFont = font;
    smallFont.setPointSizeF(font.pointSizeF() * 0.8);
    std::map<std::pair<int, bool>, FarEnds> all;  // by node and side
    for (size_t i = 0; i < scene.edges.size(); ++i) {
        if (!scene.edges[i].stub) continue;
        const auto& edge = scene.picture.edges[i];
        all[{edge.from, true}].push_back({edge.to, edge.target, {}, static_cast<int>(i)});
        all[{edge.to, false}].push_back({edge.from, edge.source, {}, static_cast<int>(i)});
    }
    if (all.empty()) return;
    // An end has its node's name: the title of a fold would say "54 unchanged" at every end.
    std::optional<NodeIndex> nodes;
    if (scene.picture.graph) nodes.emplace(scene.picture.graph);
    const auto nameOf = [&](NodeKey id, int box) {
        const UnionGraph::Node* node = nodes ? nodes->find(id) : nullptr;
        return node ? textOf(node->info.name) : scene.picture.nodes[static_cast<size_t>(box)].title;
    };
    for (auto& [side, ends] : all) {
        for (auto& end : ends) end.name = nameOf(end.node, end.box);
        addStubsOf(scene, side.first, side.second, ends, QFontMetricsF(smallFont));
    }
}

}  // namespace

QRectF GraphScene::chipRect(int node, size_t chip) const {
    const QRectF box = nodes[node];
    double x = box.left() + 10;
    for (size_t i = 0; i < chip; ++i) x += picture.nodes[node].chips[i].width + 4;
    constexpr double kHeight = 15;
    return {x, box.bottom() - kHeight - 5, picture.nodes[node].chips[chip].width, kHeight};
}

bool GraphScene::isChanged(int node) const {
    return picture.nodes[static_cast<size_t>(node)].change != Change::Unchanged ||
           picture.changedChip(node) != NodeKey::None ||
           std::any_of(picture.edges.begin(), picture.edges.end(),
                       [&](const Picture::Edge& edge) { return edge.rewired && edge.to == node; });
}

QRectF GraphScene::changedArea() const {
    QRectF area;
    for (size_t i = 0; i < nodes.size(); ++i)
        if (picture.nodes[i].change != Change::Unchanged || picture.changedChip(static_cast<int>(i)) != NodeKey::None)
            area |= nodes[i];
    for (size_t i = 0; i < edges.size(); ++i)
        if (picture.edges[i].rewired) area |= nodes[picture.edges[i].from] | nodes[picture.edges[i].to];
    for (size_t i = 0; i < nodes.size() && !picture.changed; ++i)  // then the order is all that changed
        if (picture.nodes[i].moved) area |= nodes[i];
    return area;
}

QRectF GraphScene::withKeptNeighbours(const QRectF& area, QSizeF room) const {
    const auto onBothSides = [this](int node) {
        return picture.nodes[static_cast<size_t>(node)].change != Change::Added &&
               picture.nodes[static_cast<size_t>(node)].change != Change::Removed;
    };
    std::vector<int> reached;
    std::vector<char> known(nodes.size(), 0);
    for (size_t i = 0; i < nodes.size(); ++i) {
        if (!area.contains(nodes[i])) continue;
        if (onBothSides(static_cast<int>(i))) return area;
        known[i] = 1;
        reached.push_back(static_cast<int>(i));
    }
    std::vector<std::vector<int>> next(nodes.size());
    for (const auto& edge : picture.edges) {
        next[static_cast<size_t>(edge.from)].push_back(edge.to);
        next[static_cast<size_t>(edge.to)].push_back(edge.from);
    }
    std::vector<int> kept;
    for (size_t i = 0; i < reached.size(); ++i)
        for (const int other : next[static_cast<size_t>(reached[i])]) {
            if (std::exchange(known[static_cast<size_t>(other)], 1)) continue;
            (onBothSides(other) ? kept : reached).push_back(other);
        }
    std::vector<int> opposite;  // nodes of one side next to the kept ones
    for (const int node : kept)
        for (const int other : next[static_cast<size_t>(node)])
            if (!std::exchange(known[static_cast<size_t>(other)], 1) && !onBothSides(other)) opposite.push_back(other);
    const auto distance = [&](int node) {
        return QLineF(nodes[static_cast<size_t>(node)].center(), area.center()).length();
    };
    QRectF whole = area;
    for (std::vector<int>* offered : {&kept, &opposite}) {
        std::stable_sort(offered->begin(), offered->end(), [&](int a, int b) { return distance(a) < distance(b); });
        for (const int node : *offered) {
            const QRectF more = whole | nodes[static_cast<size_t>(node)];
            if (more.width() <= room.width() && more.height() <= room.height()) whole = more;
        }
    }
    return whole;
}

std::shared_ptr<const GraphScene> placeScene(Picture picture, const LayoutAnswer& answer, const QFont& font) {
    auto scene = std::make_shared<GraphScene>();
    scene->picture = std::move(picture);
    scene->font = font;
    scene->bounds =
        QRectF(0, 0, answer.width, answer.height).adjusted(-kSceneMargin, -kSceneMargin, kSceneMargin, kSceneMargin);
    for (size_t i = 0; i < answer.centres.size(); ++i) {
        QRectF box(QPointF(), scene->picture.nodes[i].size);
        box.moveCenter({answer.centres[i].x, answer.centres[i].y});
        scene->nodes.push_back(box);
    }
    for (const LayoutBox& box : answer.clusters) scene->clusters.emplace_back(box.x, box.y, box.width, box.height);
    std::vector<QRectF> edgeBoxes;
    for (size_t i = 0; i < answer.routes.size(); ++i) {
        GraphScene::Edge edge;
        const QRectF from = scene->nodes[scene->picture.edges[i].from], to = scene->nodes[scene->picture.edges[i].to];
        edge.stub = answer.routes[i].empty();
        edge.tail = QPointF(from.center().x(), from.bottom());
        edge.head = QPointF(to.center().x(), to.top());
        if (!edge.stub) {
            edge.path = pathOf(answer.routes[i], {});
            edge.tail = edge.path.elementAt(0);
            edge.head = edge.path.currentPosition();
            edge.middle = middleOf(answer.routes[i]);
        }
        edgeBoxes.push_back(edge.stub ? QRectF(edge.tail, QSizeF()) : edge.path.controlPointRect());
        scene->edges.push_back(std::move(edge));
    }
    addStubs(*scene, font);
    std::vector<QRectF> stubBoxes;
    for (const auto& stub : scene->stubs) {
        stubBoxes.push_back(stub.box);
        scene->bounds |= stub.box;
    }
    scene->nodeIndex = SpatialIndex(scene->nodes);
    scene->edgeIndex = SpatialIndex(edgeBoxes);
    scene->stubIndex = SpatialIndex(stubBoxes);
    return scene;
}

SceneBuilder::SceneBuilder(QObject* parent) : QObject(parent) {
    connect(&m_client, &LayoutClient::finished, this,
            [this](int request, const std::shared_ptr<const LayoutAnswer>& answer, const QString& note) {
                if (request != m_request || !m_picture) return;
                const auto place = [picture = std::exchange(m_picture, nullptr), answer, font = m_font] {
                    return placeScene(std::move(*picture), *answer, font);
                };
                inBackground(this, place,
                             [this, note, generation = m_generation](const std::shared_ptr<const GraphScene>& scene) {
                                 if (generation != m_generation) return;
                                 m_busy = false;
                                 emit ready(scene, note);
                             });
            });
}

void SceneBuilder::build(std::shared_ptr<const UnionGraph> graph, const PictureOptions& options) {
    m_client.cancel();
    m_picture.reset();
    m_busy = true;
    m_font = options.font;
    emit started(static_cast<int>(graph->nodes.size()));
    using Made = std::pair<std::shared_ptr<Picture>, std::shared_ptr<LayoutProblem>>;
    const auto make = [graph = std::move(graph), options]() -> Made {
        auto picture = std::make_shared<Picture>(drawnOf(graph, options));
        auto problem = std::make_shared<LayoutProblem>(problemOf(*picture));
        return {std::move(picture), std::move(problem)};
    };
    inBackground(this, make, [this, generation = ++m_generation](const Made& made) {
        if (generation != m_generation) return;
        m_picture = made.first;
        m_request = m_client.request(std::move(*made.second));
    });
}

void SceneBuilder::useSimpleLayout() { m_client.useSimpleLayout(tr("Graphviz cancelled; simple layout")); }

}  // namespace cutaway::ui
