#include "ui/graph/graph_painter.h"

#include <algorithm>
#include <map>

#include "ui/graph/visible_path.h"

namespace cutaway::ui {
namespace {

constexpr double kRadius = 5;
/// More edges or boxes than these in one view: smooth curves cost the frame, and nobody can tell them from plain lines.
constexpr size_t kManyEdges = 60, kManyNodes = 500;

class ScenePainter {
  public:
    ScenePainter(QPainter& painter, const GraphScene& scene, const GraphColors& colors, const PaintRequest& request)
        : m_painter(painter), m_scene(scene), m_colors(colors), m_request(request) {
        m_titleFont = scene.font;
        m_titleFont.setBold(true);
        m_smallFont = scene.font;
        m_smallFont.setPointSizeF(scene.font.pointSizeF() * 0.85);
        m_stubFont = scene.font;
        m_stubFont.setPointSizeF(scene.font.pointSizeF() * 0.8);
    }

    PaintWork paint() {
        const bool far = m_request.scale < kBoxZoom;
        m_painter.setRenderHint(QPainter::Antialiasing, !far);
        if (!far) paintClusters();
        const std::vector<int> edges = m_scene.edgeIndex.touching(m_request.area);
        const std::vector<int> nodes = m_scene.nodeIndex.touching(m_request.area);
        if (far) {
            paintFarEdges(edges);
            paintFarNodes(nodes);
        } else {
            paintEdges(edges);
            m_crowded = nodes.size() > kManyNodes && !textShown();
            for (int stub : m_scene.stubIndex.touching(m_request.area)) paintStub(stub);
            for (int node : nodes) paintNode(node);
        }
        paintCurrent();
        return m_work;
    }

  private:
    bool shown(Change change) const { return shownIn(m_request.mode, change); }
    bool textShown() const { return m_request.scale >= kTextZoom; }

    /// In "before" and "after" the state of an added or removed node still shows: that is what will go or has come.
    Change stateOf(int node) const { return m_scene.picture.nodes[node].change; }

    void paintClusters() {
        m_painter.setFont(m_smallFont);
        for (size_t i = 0; i < m_scene.clusters.size(); ++i) {
            const QRectF& box = m_scene.clusters[i];
            if (box.isEmpty() || !box.intersects(m_request.area)) continue;
            m_painter.setPen(QPen(m_colors.cluster, 1 / std::min(1.0, m_request.scale)));
            QColor fill = m_colors.cluster;
            fill.setAlphaF(0.10f);
            m_painter.setBrush(fill);
            m_painter.drawRoundedRect(box, 8, 8);
            if (!textShown()) continue;
            m_painter.setPen(m_colors.clusterText);
            const QFontMetricsF metrics(m_smallFont);
            m_painter.drawText(box.adjusted(6, 2, -6, 0), Qt::AlignLeft | Qt::AlignTop,
                               metrics.elidedText(m_scene.picture.clusters[i].title, Qt::ElideLeft, box.width() - 12));
            ++m_work.texts;
        }
    }

    bool touchesCurrent(int edge) const {
        const auto& link = m_scene.picture.edges[edge];
        return m_request.current >= 0 && (link.from == m_request.current || link.to == m_request.current);
    }

    QPen penOf(int edge) const {
        const auto& link = m_scene.picture.edges[edge];
        QColor color = link.change == Change::Kept ? m_colors.edge : m_colors[link.change].line;
        double width = link.change == Change::Kept ? 1.1 : 1.8;
        if (touchesCurrent(edge)) {
            if (link.change == Change::Kept) color = m_colors.current;
            width += 0.9;
        }
        QPen pen(color, width / std::min(1.0, m_request.scale * 1.6));
        if (link.rewired) pen.setDashPattern({4, 3});
        pen.setCapStyle(Qt::FlatCap);
        return pen;
    }

    bool edgeShown(int index) const {
        const auto& link = m_scene.picture.edges[index];
        return !m_scene.edges[index].stub && shown(link.change) && shown(stateOf(link.from)) && shown(stateOf(link.to));
    }

    /// Unchanged edges first, so that none of them hides a changed one where there are many.
    void paintEdges(const std::vector<int>& touching) {
        std::vector<int> kept, changed;
        for (int index : touching)
            if (edgeShown(index)) {
                const auto& link = m_scene.picture.edges[index];
                (link.change == Change::Kept && !link.rewired && !touchesCurrent(index) ? kept : changed).push_back(index);
            }
        m_work.edges += static_cast<int>(kept.size() + changed.size());
        if (kept.size() + changed.size() <= kManyEdges) {
            for (int index : touching)
                if (edgeShown(index)) paintEdge(index);
            return;
        }
        paintPlainEdges(kept);
        if (changed.size() <= kManyEdges) {
            for (int index : changed) paintEdge(index);
            return;
        }
        paintPlainEdges(changed);
        for (int index : changed) paintSignOf(index);
    }

    void paintEdge(int index) {
        const QPen pen = penOf(index);
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(pen);
        m_painter.drawPath(visiblePart(m_scene.edges[index].path, m_request.area));
        paintArrowOf(index, pen.color());
        paintSignOf(index);
    }

    /// As lines a pixel or two wide, all of one look in one call.
    void paintPlainEdges(const std::vector<int>& edges) {
        std::map<std::pair<QRgb, bool>, QList<QLineF>> looks;   // by colour and whether dashed
        for (int index : edges)
            appendVisibleLines(m_scene.edges[index].path, m_request.area, 0.4 / m_request.scale, looks[{penOf(index).color().rgba(), m_scene.picture.edges[index].rewired}]);
        m_painter.setRenderHint(QPainter::Antialiasing, false);
        for (const auto& [look, lines] : looks) {
            const QColor color = QColor::fromRgba(look.first);
            QPen pen(color, color == m_colors.edge ? 1 : 2);
            pen.setCosmetic(true);
            if (look.second) pen.setDashPattern({4, 3});
            m_painter.setPen(pen);
            m_painter.drawLines(lines);
        }
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        for (int index : edges) paintArrowOf(index, penOf(index).color());
    }

    void paintArrowOf(int index, const QColor& color) {
        const GraphScene::Edge& edge = m_scene.edges[index];
        if (m_request.scale < 0.3 || !m_request.area.adjusted(-10, -10, 10, 10).contains(edge.head)) return;
        const QPainterPath::Element before = edge.path.elementAt(std::max(0, edge.path.elementCount() - 2));
        paintArrow(before, edge.head, color);
    }
    void paintSignOf(int index) {
        const Change change = m_scene.picture.edges[index].change;
        const QPointF middle = m_scene.edges[index].middle;
        if (change != Change::Kept && textShown() && m_request.area.adjusted(-10, -10, 10, 10).contains(middle)) paintSign(middle, change);
    }

    void paintArrow(QPointF from, QPointF head, const QColor& color) {
        QLineF direction(head, from);
        if (direction.length() < 0.5) direction = QLineF(head, head - QPointF(0, 1));
        direction.setLength(7);
        QLineF left = direction, right = direction;
        left.setAngle(direction.angle() + 24);
        right.setAngle(direction.angle() - 24);
        m_painter.setPen(Qt::NoPen);
        m_painter.setBrush(color);
        m_painter.drawPolygon(QPolygonF{head, left.p2(), right.p2()});
    }

    void paintSign(QPointF at, Change change) {
        const QRectF disc(at - QPointF(6, 6), QSizeF(12, 12));
        m_painter.setPen(QPen(m_colors[change].line, 1));
        m_painter.setBrush(m_colors.canvas);
        m_painter.drawEllipse(disc);
        m_painter.setFont(m_stubFont);
        m_painter.drawText(disc, Qt::AlignCenter, signOf(change));
        ++m_work.texts;
    }

    void paintStub(int index) {
        const GraphScene::Stub& stub = m_scene.stubs[index];
        const Change change = m_scene.picture.edges[stub.edge].change;
        if (!shown(change) || !shown(stateOf(stub.node)) || !shown(stateOf(stub.other))) return;
        const QColor color = change == Change::Kept ? m_colors.edge : m_colors[change].line;
        m_painter.setPen(QPen(color, 1));
        m_painter.setBrush(m_colors.canvas);
        m_painter.drawRoundedRect(stub.box, 7, 7);
        if (!textShown()) return;
        m_painter.setFont(m_stubFont);
        m_painter.setPen(m_colors.detail);
        m_painter.drawText(stub.box, Qt::AlignCenter, stub.text);
        ++m_work.texts;
    }

    void paintNode(int index) {
        const Picture::Node& node = m_scene.picture.nodes[index];
        if (!shown(node.change)) return;
        ++m_work.nodes;
        const QRectF& box = m_scene.nodes[index];
        paintFrame(node, box, index == m_request.hovered);
        if (textShown()) paintTexts(node, box, index);
    }

    void paintFrame(const Picture::Node& node, const QRectF& box, bool hovered) {
        const ChangeColors& state = m_colors[node.change];
        QPen pen(hovered ? m_colors.hover : state.line, node.change == Change::Kept ? 1.1 : 2.0);
        if (node.change == Change::Removed) pen.setDashPattern({3, 2});
        if (node.isFold()) pen.setDashPattern({1, 2});
        m_painter.setPen(pen);
        m_painter.setBrush(node.role == NodeRole::Call ? state.fill : (node.change == Change::Kept ? m_colors.input : state.fill));
        if (m_crowded) {
            m_painter.setRenderHint(QPainter::Antialiasing, false);
            m_painter.drawRect(box);
            m_painter.setRenderHint(QPainter::Antialiasing, true);
            return;
        }
        const double radius = node.role == NodeRole::Call && !node.isFold() ? kRadius : box.height() / 2.2;
        m_painter.drawRoundedRect(box, radius, radius);
        if (node.change == Change::Added) {  // double outline: added is told from edited without its colour
            m_painter.setPen(QPen(state.line, 0.8));
            m_painter.setBrush(Qt::NoBrush);
            m_painter.drawRoundedRect(box.adjusted(3, 3, -3, -3), radius - 2, radius - 2);
        }
    }

    void paintTexts(const Picture::Node& node, const QRectF& box, int index) {
        const ChangeColors& state = m_colors[node.change];
        const QFontMetricsF title(m_titleFont), small(m_smallFont);
        QRectF line(box.left() + 10, box.top() + 4, box.width() - 20, title.height());
        const Qt::Alignment align = node.chips.empty() ? Qt::AlignHCenter : Qt::AlignLeft;
        m_painter.setFont(m_titleFont);
        m_painter.setPen(state.text);
        const QString sign = signOf(node.change);
        m_painter.drawText(line, align | Qt::AlignVCenter, sign.isEmpty() ? node.title : sign + QStringLiteral(" ") + node.title);
        ++m_work.texts;
        if (!node.detail.isEmpty()) {
            line = QRectF(line.left(), line.bottom(), line.width(), small.height());
            m_painter.setFont(m_smallFont);
            m_painter.setPen(m_colors.detail);
            m_painter.drawText(line, align | Qt::AlignVCenter, node.detail);
            ++m_work.texts;
        }
        for (size_t i = 0; i < node.chips.size(); ++i) paintChip(node.chips[i], m_scene.chipRect(index, i));
    }

    void paintChip(const Picture::Chip& chip, const QRectF& box) {
        if (!shown(chip.change)) return;
        const bool isCurrent = chip.id != NodeId::None && chip.id == m_request.currentId;
        const QColor line = chip.change == Change::Kept ? m_colors.chip.darker(115) : m_colors[chip.change].line;
        m_painter.setPen(QPen(isCurrent ? m_colors.current : line, isCurrent ? 2 : 1));
        m_painter.setBrush(m_colors.chip);
        m_painter.drawRoundedRect(box, 4, 4);
        m_painter.setFont(m_smallFont);
        m_painter.setPen(m_colors.chipText);
        m_painter.drawText(box, Qt::AlignCenter, chip.text);
        ++m_work.texts;
    }

    /// Far away everything of one colour is one call: thousands of paths would cost the frame.
    void paintFarEdges(const std::vector<int>& edges) {
        std::map<int, QVector<QLineF>> lines;
        for (int index : edges) {
            const auto& link = m_scene.picture.edges[index];
            if (m_scene.edges[index].stub || !shown(link.change) || !shown(stateOf(link.from)) || !shown(stateOf(link.to))) continue;
            // Shorter than a pixel and unchanged: thousands of them would cost the frame and show nothing.
            const QLineF line(m_scene.edges[index].tail, m_scene.edges[index].head);
            const double pixels = (std::abs(line.dx()) + std::abs(line.dy())) * m_request.scale;
            if (link.change == Change::Kept && pixels < 1.5) continue;
            lines[static_cast<int>(link.change)].append(line);
            ++m_work.edges;
        }
        for (const auto& [change, batch] : lines) {
            const bool kept = static_cast<Change>(change) == Change::Kept;
            QPen pen(kept ? m_colors.edge : m_colors.states[change].line, kept ? 1 : 2);
            pen.setCosmetic(true);
            m_painter.setPen(pen);
            m_painter.drawLines(batch);
        }
    }

    void paintFarNodes(const std::vector<int>& nodes) {
        // In whole pixels of the widget: the fast way through the rasteriser, and nothing gets too small to be seen.
        const QTransform toPixels = m_painter.worldTransform();
        m_painter.save();
        m_painter.resetTransform();
        for (const bool keptOnes : {true, false})  // changes on top
            for (int index : nodes) {
                const Change change = stateOf(index);
                if (!shown(change) || (change == Change::Kept) != keptOnes) continue;
                const QRect box = toPixels.mapRect(m_scene.nodes[index]).toRect();
                const QSize least = keptOnes ? QSize(1, 1) : QSize(3, 3);
                m_painter.fillRect(QRect(box.topLeft(), box.size().expandedTo(least)), keptOnes ? m_colors.edge : m_colors[change].line);
                ++m_work.nodes;
            }
        m_painter.restore();
    }

    void paintCurrent() {
        if (m_request.current < 0 || !shown(stateOf(m_request.current))) return;
        const double margin = 4 / std::min(1.0, m_request.scale);
        QPen pen(m_colors.current, 2.5);
        pen.setCosmetic(true);
        m_painter.setPen(pen);
        m_painter.setBrush(Qt::NoBrush);
        m_painter.drawRoundedRect(m_scene.nodes[m_request.current].adjusted(-margin, -margin, margin, margin), kRadius + 3, kRadius + 3);
    }

    QPainter& m_painter;
    const GraphScene& m_scene;
    const GraphColors& m_colors;
    const PaintRequest& m_request;
    QFont m_titleFont, m_smallFont, m_stubFont;
    bool m_crowded = false;   // boxes are plain rectangles
    PaintWork m_work;
};

}  // namespace

bool shownIn(GraphMode mode, Change change) {
    if (mode == GraphMode::Before) return change != Change::Added;
    if (mode == GraphMode::After) return change != Change::Removed;
    return true;
}

GraphColors GraphColors::of(const QPalette& palette) {
    GraphColors colors;
    const bool dark = palette.color(QPalette::Base).lightness() < 128;
    const auto state = [&](Change change, const char* fill, const char* line, const char* text) {
        colors.states[static_cast<int>(change)] = {QColor(fill), QColor(line), QColor(text)};
    };
    if (dark) {
        state(Change::Kept, "#33363b", "#6b7178", "#dfe3e8");
        state(Change::Added, "#173d27", "#4fc37d", "#c9f5d8");
        state(Change::Removed, "#4a2023", "#f07178", "#ffd6d8");
        state(Change::Edited, "#463614", "#e3b341", "#fbe9bd");
        colors.canvas = QColor("#1d1f22"), colors.edge = QColor("#7b828a"), colors.cluster = QColor("#5d6f8a");
        colors.clusterText = QColor("#9fb2cf"), colors.detail = QColor("#b3bac2"), colors.chip = QColor("#44505f");
        colors.chipText = QColor("#dfe7f0"), colors.current = QColor("#4aa3ff"), colors.hover = QColor("#9ccfff");
        colors.input = QColor("#2b3644");
    } else {
        state(Change::Kept, "#f1f3f5", "#9aa1a9", "#24292f");
        state(Change::Added, "#dcf5e4", "#1a7f37", "#0b4a1e");
        state(Change::Removed, "#ffe3e3", "#c4232c", "#7a1218");
        state(Change::Edited, "#fff3d1", "#9a6700", "#5c3d00");
        colors.canvas = QColor("#ffffff"), colors.edge = QColor("#8a929b"), colors.cluster = QColor("#8aa0c0");
        colors.clusterText = QColor("#4a6285"), colors.detail = QColor("#57606a"), colors.chip = QColor("#dde6f0");
        colors.chipText = QColor("#2b3a4b"), colors.current = QColor("#0b6bcb"), colors.hover = QColor("#3d8bd9");
        colors.input = QColor("#e6eef8");
    }
    return colors;
}

PaintWork paintScene(QPainter& painter, const GraphScene& scene, const GraphColors& colors, const PaintRequest& request) {
    return ScenePainter(painter, scene, colors, request).paint();
}

}  // namespace cutaway::ui
