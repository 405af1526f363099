#include "ui/graph/graph_scene.h"

#include <QFontMetricsF>
#include <QLineF>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/background.h"

namespace cutaway::ui {
namespace {

constexpr double kMargin = 30, kStubLength = 12, kStubHeight = 16;

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

QString nameFor(const Picture::Node& node) { return node.title; }

/// Stubs hang side by side under (or above) their node.
void addStubs(GraphScene& scene, const QFont& font) {
    QFont smallFont = font;
    smallFont.setPointSizeF(font.pointSizeF() * 0.8);
    const QFontMetricsF small(smallFont);
    std::vector<double> usedAbove(scene.nodes.size(), 0), usedBelow(scene.nodes.size(), 0);
    for (size_t i = 0; i < scene.edges.size(); ++i) {
        if (!scene.edges[i].stub) continue;
        const auto& edge = scene.picture.edges[i];
        const auto hang = [&](int node, int other, bool outgoing) {
            const QString arrow = outgoing ? QStringLiteral("↓ ") : QStringLiteral("↑ ");
            GraphScene::Stub stub{{}, small.elidedText(arrow + nameFor(scene.picture.nodes[other]), Qt::ElideRight, 110), node, other, outgoing, static_cast<int>(i)};
            const double width = small.horizontalAdvance(stub.text) + 8;
            double& used = (outgoing ? usedBelow : usedAbove)[node];
            const QRectF box = scene.nodes[node];
            const double y = outgoing ? box.bottom() + kStubLength / 2 : box.top() - kStubLength / 2 - kStubHeight;
            stub.box = QRectF(box.left() + used, y, width, kStubHeight);
            used += width + 3;
            scene.stubs.push_back(stub);
        };
        hang(edge.from, edge.to, true);
        hang(edge.to, edge.from, false);
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

QRectF GraphScene::changedArea() const {
    QRectF area;
    for (size_t i = 0; i < nodes.size(); ++i)
        if (picture.nodes[i].change != Change::Kept) area |= nodes[i];
    for (size_t i = 0; i < edges.size(); ++i)
        if (picture.edges[i].rewired) area |= nodes[picture.edges[i].from] | nodes[picture.edges[i].to];
    return area;
}

QRectF GraphScene::withKeptNeighbours(const QRectF& area, QSizeF room) const {
    const auto onBothSides = [this](int node) { return picture.nodes[static_cast<size_t>(node)].change != Change::Added && picture.nodes[static_cast<size_t>(node)].change != Change::Removed; };
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
    std::vector<int> opposite;  // what stands there on the other side
    for (const int node : kept)
        for (const int other : next[static_cast<size_t>(node)])
            if (!std::exchange(known[static_cast<size_t>(other)], 1) && !onBothSides(other)) opposite.push_back(other);
    const auto distance = [&](int node) { return QLineF(nodes[static_cast<size_t>(node)].center(), area.center()).length(); };
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
    scene->bounds = QRectF(0, 0, answer.width, answer.height).adjusted(-kMargin, -kMargin, kMargin, kMargin);
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
                const auto place = [picture = std::exchange(m_picture, nullptr), answer, font = m_font] { return placeScene(std::move(*picture), *answer, font); };
                inBackground(this, place, [this, note, generation = m_generation](const std::shared_ptr<const GraphScene>& scene) {
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
        auto picture = std::make_shared<Picture>(makePicture(*graph, options));
        picture->graph = graph;
        auto problem = std::make_shared<LayoutProblem>(problemOf(*picture));
        return {std::move(picture), std::move(problem)};
    };
    inBackground(this, make, [this, generation = ++m_generation](const Made& made) {
        if (generation != m_generation) return;
        m_picture = made.first;
        m_request = m_client.request(std::move(*made.second));
    });
}

void SceneBuilder::settleForPlain() { m_client.settleForPlain(tr("stopped waiting for dot; plain layout")); }

}  // namespace cutaway::ui
