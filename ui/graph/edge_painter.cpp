#include "ui/graph/edge_painter.h"

#include <algorithm>
#include <map>

#include "ui/graph/visible_path.h"

namespace cutaway::ui {
namespace {

/// With more edges than this in view, curves become line segments: these paint faster and look the same.
constexpr size_t kManyEdges = 60;

}  // namespace

EdgePainter::EdgePainter(QPainter& painter, const GraphScene& scene, const GraphColors& colors,
                         const PaintRequest& request, PaintWork& work)
    : m_painter(painter), m_scene(scene), m_colors(colors), m_request(request), m_work(work), m_signFont(scene.font) {
    m_signFont.setPointSizeF(scene.font.pointSizeF() * 0.8);
}

bool EdgePainter::nodeShown(int node) const { return shownIn(m_request.mode, m_scene.picture.nodes[node].change); }

bool EdgePainter::touchesCurrent(int edge) const {
    const auto& link = m_scene.picture.edges[edge];
    return m_request.current >= 0 && (link.from == m_request.current || link.to == m_request.current);
}

Change EdgePainter::lookOf(int edge) const {
    return m_request.marks ? Change::Unchanged : m_scene.picture.edges[edge].change;
}

QPen EdgePainter::penOf(int edge) const {
    const auto& link = m_scene.picture.edges[edge];
    const Change look = lookOf(edge);
    QColor color = look == Change::Unchanged ? m_colors.edge : m_colors[look].line;
    double width = look == Change::Unchanged ? 1.1 : 1.8;
    if (touchesCurrent(edge)) {
        if (look == Change::Unchanged) color = m_colors.current;
        width += 0.9;
    }
    QPen pen(color, width / std::min(1.0, m_request.scale * 1.6));
    if (link.rewired && !m_request.marks) pen.setDashPattern({4, 3});
    pen.setCapStyle(Qt::FlatCap);
    return pen;
}

bool EdgePainter::edgeShown(int index) const {
    const auto& link = m_scene.picture.edges[index];
    return !m_scene.edges[index].stub && shownIn(m_request.mode, link.change) && nodeShown(link.from) &&
           nodeShown(link.to);
}

/// Unchanged edges first, so that none of them hides a changed one where there are many.
void EdgePainter::paint(const std::vector<int>& touching) {
    std::vector<int> kept, changed;
    for (int index : touching)
        if (edgeShown(index)) {
            const bool rewired = m_scene.picture.edges[index].rewired && !m_request.marks;
            (lookOf(index) == Change::Unchanged && !rewired && !touchesCurrent(index) ? kept : changed)
                .push_back(index);
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

void EdgePainter::paintEdge(int index) {
    const QPen pen = penOf(index);
    m_painter.setBrush(Qt::NoBrush);
    m_painter.setPen(pen);
    m_painter.drawPath(visiblePart(m_scene.edges[index].path, m_request.area));
    paintArrowOf(index, pen.color());
    paintSignOf(index);
}

/// As line segments a pixel or two wide; all edges of one colour and style in one draw call.
void EdgePainter::paintPlainEdges(const std::vector<int>& edges) {
    std::map<std::pair<QRgb, bool>, QList<QLineF>> looks;  // by colour and whether dashed
    for (int index : edges)
        appendVisibleLines(m_scene.edges[index].path, m_request.area, 0.4 / m_request.scale,
                           looks[{penOf(index).color().rgba(), m_scene.picture.edges[index].rewired}]);
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

void EdgePainter::paintArrowOf(int index, const QColor& color) {
    const GraphScene::Edge& edge = m_scene.edges[index];
    if (m_request.scale < 0.3 || !m_request.area.adjusted(-10, -10, 10, 10).contains(edge.head)) return;
    const QPainterPath::Element before = edge.path.elementAt(std::max(0, edge.path.elementCount() - 2));
    paintArrow(before, edge.head, color);
}
void EdgePainter::paintSignOf(int index) {
    const Change change = lookOf(index);
    const QPointF middle = m_scene.edges[index].middle;
    if (change != Change::Unchanged && m_request.scale >= kTextZoom &&
        m_request.area.adjusted(-10, -10, 10, 10).contains(middle))
        paintSign(middle, change);
}

void EdgePainter::paintArrow(QPointF from, QPointF head, const QColor& color) {
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

void EdgePainter::paintSign(QPointF at, Change change) {
    const QRectF disc(at - QPointF(6, 6), QSizeF(12, 12));
    m_painter.setPen(QPen(m_colors[change].line, 1));
    m_painter.setBrush(m_colors.canvas);
    m_painter.drawEllipse(disc);
    m_painter.setFont(m_signFont);
    m_painter.drawText(disc, Qt::AlignCenter, signOf(change));
    ++m_work.texts;
}

/// Zoomed out, all edges of one colour are one draw call: painting thousands of paths would take too long.
void EdgePainter::paintFar(const std::vector<int>& edges) {
    std::map<int, QVector<QLineF>> lines;
    for (int index : edges) {
        if (!edgeShown(index)) continue;
        // Unchanged and hardly longer than a pixel: thousands of them would take long to paint and show nothing.
        const QLineF line(m_scene.edges[index].tail, m_scene.edges[index].head);
        const double pixels = (std::abs(line.dx()) + std::abs(line.dy())) * m_request.scale;
        if (lookOf(index) == Change::Unchanged && pixels < 1.5) continue;
        lines[static_cast<int>(lookOf(index))].append(line);
        ++m_work.edges;
    }
    for (const auto& [change, batch] : lines) {
        const bool kept = static_cast<Change>(change) == Change::Unchanged;
        QPen pen(kept ? m_colors.edge : m_colors.states[change].line, kept ? 1 : 2);
        pen.setCosmetic(true);
        m_painter.setPen(pen);
        m_painter.drawLines(batch);
    }
}

}  // namespace cutaway::ui
