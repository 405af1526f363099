#include "ui/graph/graph_painter.h"

#include <algorithm>

#include "ui/graph/edge_painter.h"

namespace cutaway::ui {
namespace {

constexpr double kRadius = 5;
/// More boxes than this in view, too small for names, are plain rectangles: rounded ones take longer and look the same.
constexpr size_t kManyNodes = 500;

class ScenePainter {
  public:
    ScenePainter(QPainter& painter, const GraphScene& scene, const GraphColors& colors, const PaintRequest& request)
        : m_painter(painter),
          m_scene(scene),
          m_colors(colors),
          m_request(request),
          m_edges(painter, scene, colors, request, m_work) {
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
            m_edges.paintFar(edges);
            paintFarNodes(nodes);
        } else {
            m_edges.paint(edges);
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

    /// Of a closed module the side that all of it is on.
    const SideMark* markOf(const Picture::Node& node) const {
        if (!m_request.marks) return nullptr;
        if (!node.isModule()) return node.isFold() ? nullptr : m_request.marks->find(node.id);
        const SideMark* one = nullptr;
        for (const NodeKey member : node.members) {
            const SideMark* mark = m_request.marks->find(member);
            if (one && mark && mark->side != one->side) return nullptr;
            if (mark && (!one || mark->saved)) one = mark;
        }
        return one;
    }
    /// Of a closed module the worst in it.
    const HeatMark* heatOf(const Picture::Node& node) const {
        if (!m_request.heat) return nullptr;
        if (!node.isModule()) return node.isFold() ? nullptr : m_request.heat->find(node.id);
        const HeatMark* worst = nullptr;
        for (const NodeKey member : node.members) {
            const HeatMark* mark = m_request.heat->find(member);
            if (mark && (!worst || mark->heat > worst->heat)) worst = mark;
        }
        return worst;
    }
    /// Modules look like calls, of which they are made.
    static bool isPill(const Picture::Node& node) {
        return node.role != NodeRole::Call || (node.isFold() && !node.isModule());
    }
    /// Whether something else than the states is on show.
    bool isMarked() const { return m_request.marks || m_request.heat; }
    const ChangeColors& colorsOf(const Picture::Node& node) const {
        if (const HeatMark* mark = heatOf(node)) return m_colors[mark->heat];
        if (const SideMark* mark = markOf(node)) return m_colors[mark->side];
        return m_colors[isMarked() ? Change::Unchanged : node.change];
    }
    const QColor& fillOf(const Picture::Node& node) const {
        if (node.change != Change::Unchanged) return m_colors[node.change].fill;
        if (node.role != NodeRole::Call) return m_colors.input;
        return node.isFold() ? m_colors[Change::Unchanged].fill : m_colors[node.opClass];
    }

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

    void paintStub(int index) {
        const GraphScene::Stub& stub = m_scene.stubs[index];
        const Change change = m_scene.picture.edges[stub.ends.front().edge].change;
        if (!shown(change) || !shown(stateOf(stub.node)) || !shown(stateOf(stub.ends.front().box))) return;
        const bool plain = change == Change::Unchanged || isMarked();
        m_painter.setPen(QPen(plain ? m_colors.edge : m_colors[change].line, 1));
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
        paintKernel(node, box);
        if (m_request.heat) paintHeat(node, box, index == m_request.hovered);
        else if (m_request.marks) paintSide(node, box, index == m_request.hovered);
        else paintFrame(node, box, index == m_request.hovered);
        if (hasMarkedOp(node)) paintOpMark(box);
        if (textShown()) paintKernelName(node, box);
        if (textShown()) paintTexts(node, box, index);
        else if (!m_crowded && m_request.scale >= kNameZoom) paintName(node, box);
    }

    bool hasMarkedOp(const Picture::Node& node) const {
        return m_request.op >= 0 && std::find(node.ops.begin(), node.ops.end(), m_request.op) != node.ops.end();
    }
    void paintOpMark(const QRectF& box) {
        QPen pen(m_colors.hover, 2.5);
        pen.setCosmetic(true);
        m_painter.setPen(pen);
        m_painter.setBrush(Qt::NoBrush);
        m_painter.drawRoundedRect(box.adjusted(-2, -2, 2, 2), kRadius + 2, kRadius + 2);
    }

    bool isRinged(const Picture::Node& node) const {
        if (!m_request.ringed || m_request.ringed->isEmpty()) return false;
        const auto holds = [this](NodeKey id) { return m_request.ringed->contains(packed(id)); };
        return node.isFold() ? std::any_of(node.members.begin(), node.members.end(), holds) : holds(node.id);
    }
    /// What computes the node, on the upper edge of its box.
    void paintKernelName(const Picture::Node& node, const QRectF& box) {
        if (!m_request.kernels || !m_request.kernels->named || !m_request.kernels->marks || node.isFold()) return;
        const QString name = m_request.kernels->marks->shortName(node.id, m_request.kernels->graphName);
        if (name.isEmpty()) return;
        const QFontMetricsF metrics(m_stubFont);
        const QSizeF size(metrics.horizontalAdvance(name) + 6, metrics.height());
        const QRectF tag(QPointF(box.right() - size.width() - 4, box.top() - size.height() / 2), size);
        m_painter.setPen(QPen(m_colors.edge, 1));
        m_painter.setBrush(m_colors.canvas);
        m_painter.drawRoundedRect(tag, 3, 3);
        m_painter.setFont(m_stubFont);
        m_painter.setPen(m_colors.detail);
        m_painter.drawText(tag, Qt::AlignCenter, name);
        ++m_work.texts;
    }

    /// Nodes that share a kernel have an outline of one colour; those of the current node's kernel a ring, in the steps
    /// before there are kernels, too.
    void paintKernel(const Picture::Node& node, const QRectF& box) {
        const bool shared = node.kernel >= 0 && m_request.current >= 0 &&
                            m_scene.picture.nodes[m_request.current].kernel == node.kernel;
        const bool current = shared || isRinged(node);
        if (!current && (node.kernel < 0 || isMarked())) return;
        const bool dark = m_colors.canvas.lightness() < 128;
        // From cyan to pink, since red, amber and green say what changed; neighbours in number are far apart.
        constexpr int kFirstHue = 175, kHues = 155, kApart = 61;
        QColor color = QColor::fromHsv(kFirstHue + std::max(node.kernel, 0) * kApart % kHues, 170, dark ? 220 : 170);
        const double margin = current ? 5 : 3;
        m_painter.setPen(QPen(color, current ? 4 : 2));
        color.setAlphaF(current ? 0.35F : 0.12F);
        m_painter.setBrush(color);
        m_painter.drawRoundedRect(box.adjusted(-margin, -margin, margin, margin), kRadius + margin, kRadius + margin);
    }

    void paintFrame(const Picture::Node& node, const QRectF& box, bool hovered) {
        const ChangeColors& state = m_colors[node.change];
        QPen pen(hovered ? m_colors.hover : state.line, node.change == Change::Unchanged && !node.moved ? 1.1 : 2.0);
        if (node.change == Change::Removed) pen.setDashPattern({3, 2});
        if (node.isFold() && !node.isModule()) pen.setDashPattern({1, 2});
        m_painter.setPen(pen);
        m_painter.setBrush(fillOf(node));
        if (node.equal > 1 && !m_crowded)  // a pile of the same
            m_painter.drawRoundedRect(box.translated(4, 4), kRadius, kRadius);
        if (m_crowded) {
            m_painter.setRenderHint(QPainter::Antialiasing, false);
            m_painter.drawRect(box);
            m_painter.setRenderHint(QPainter::Antialiasing, true);
            return;
        }
        const double radius = isPill(node) ? box.height() / 2.2 : kRadius;
        m_painter.drawRoundedRect(box, radius, radius);
        if (node.isModule()) {
            m_painter.setPen(QPen(pen.color(), 3));
            m_painter.drawLine(box.topLeft() + QPointF(1.5, kRadius), box.bottomLeft() + QPointF(1.5, -kRadius));
        }
        if (node.change == Change::Added) {  // double outline: added is told from edited without its colour
            m_painter.setPen(QPen(state.line, 0.8));
            m_painter.setBrush(Qt::NoBrush);
            m_painter.drawRoundedRect(box.adjusted(3, 3, -3, -3), radius - 2, radius - 2);
        }
    }

    /// Of a partition's picture: the outline tells the side without its colour, a ring what is saved.
    void paintSide(const Picture::Node& node, const QRectF& box, bool hovered) {
        const SideMark* mark = markOf(node);
        const ChangeColors& side = colorsOf(node);
        QPen pen(hovered ? m_colors.hover : side.line, mark ? 1.6 : 1.1);
        if (mark && mark->side == Side::Backward) pen.setDashPattern({4, 2});
        if (node.isFold() && !node.isModule()) pen.setDashPattern({1, 2});
        const double radius = isPill(node) ? box.height() / 2.2 : kRadius;
        m_painter.setPen(pen);
        m_painter.setBrush(side.fill);
        m_painter.drawRoundedRect(box, radius, radius);
        m_painter.setBrush(Qt::NoBrush);
        if (mark && mark->side == Side::Both) {
            m_painter.setPen(QPen(side.line, 0.8));
            m_painter.drawRoundedRect(box.adjusted(3, 3, -3, -3), radius - 2, radius - 2);
        }
        if (mark && mark->saved) {
            m_painter.setPen(QPen(m_colors.saved, 3));
            m_painter.drawRoundedRect(box.adjusted(-3.5, -3.5, 3.5, 3.5), radius + 3, radius + 3);
        }
        if (mark && textShown()) paintBadge(box.topLeft() + QPointF(3, 1), signOf(mark->side), side);
    }
    /// Of a checked run: how far off the value is, as a number in the corner too.
    void paintHeat(const Picture::Node& node, const QRectF& box, bool hovered) {
        const HeatMark* mark = heatOf(node);
        const ChangeColors& heat = colorsOf(node);
        const double markedWidth = mark && mark->heat == Heat::Wrong ? 3 : 1.6;
        QPen pen(hovered ? m_colors.hover : heat.line, mark ? markedWidth : 1.1);
        if (!mark || (node.isFold() && !node.isModule())) pen.setDashPattern({1, 2});
        const double radius = isPill(node) ? box.height() / 2.2 : kRadius;
        m_painter.setPen(pen);
        m_painter.setBrush(heat.fill);
        m_painter.drawRoundedRect(box, radius, radius);
        if (mark && textShown() && mark->heat != Heat::Equal)
            paintBadge(box.topLeft() + QPointF(3, 1), mark->sign, heat);
    }
    void paintBadge(QPointF at, const QString& sign, const ChangeColors& colors) {
        const QFontMetricsF metrics(m_smallFont);
        const double side = metrics.height();
        const double wide = std::max(side, metrics.horizontalAdvance(sign) + side / 2);
        const QRectF disc(at - QPointF(side, side) / 2, QSizeF(wide, side));
        m_painter.setPen(QPen(colors.line, 1));
        m_painter.setBrush(m_colors.canvas);
        m_painter.drawRoundedRect(disc, side / 2, side / 2);
        m_painter.setFont(m_smallFont);
        m_painter.setPen(colors.text);
        m_painter.drawText(disc, Qt::AlignCenter, sign);
        ++m_work.texts;
    }

    void paintTexts(const Picture::Node& node, const QRectF& box, int index) {
        const ChangeColors& state = colorsOf(node);
        const QFontMetricsF title(m_titleFont), small(m_smallFont);
        QRectF line(box.left() + 10, box.top() + 4, box.width() - 20, title.height());
        const Qt::Alignment align = node.chips.empty() ? Qt::AlignHCenter : Qt::AlignLeft;
        m_painter.setFont(m_titleFont);
        m_painter.setPen(state.text);
        // A closed module has its signs, with numbers, in a line of their own.
        const QString sign = isMarked() || node.isModule() ? QString() : signOf(node);
        m_painter.drawText(line, align | Qt::AlignVCenter,
                           sign.isEmpty() ? node.title : sign + QStringLiteral(" ") + node.title);
        ++m_work.texts;
        if (!node.detail.isEmpty()) {
            line = QRectF(line.left(), line.bottom(), line.width(), small.height());
            m_painter.setFont(m_smallFont);
            m_painter.setPen(m_colors.detail);
            m_painter.drawText(line, align | Qt::AlignVCenter, node.detail);
            ++m_work.texts;
        }
        if (!node.more.isEmpty()) {
            line = QRectF(line.left(), line.bottom(), line.width(), small.height());
            m_painter.setPen(state.text);
            m_painter.drawText(line, align | Qt::AlignVCenter, node.more);
            ++m_work.texts;
        }
        for (size_t i = 0; i < node.chips.size(); ++i) paintChip(node.chips[i], m_scene.chipRect(index, i));
    }

    /// The op or module alone, as large as it has to be to be read.
    void paintName(const Picture::Node& node, const QRectF& box) {
        constexpr double kPixels = 9;
        QFont font = m_scene.font;
        font.setPixelSize(std::max(1, static_cast<int>(kPixels / m_request.scale)));
        const QString name = node.isFold() ? node.title : node.title.section(QChar('.'), 0, 0);
        m_painter.setFont(font);
        m_painter.setPen(colorsOf(node).text);
        m_painter.drawText(box, Qt::AlignCenter, QFontMetricsF(font).elidedText(name, Qt::ElideRight, box.width() - 2));
        ++m_work.texts;
    }

    void paintChip(const Picture::Chip& chip, const QRectF& box) {
        if (!shown(chip.change)) return;
        const bool isCurrent = chip.id != NodeKey::None && chip.id == m_request.currentId;
        const SideMark* mark = m_request.marks ? m_request.marks->find(chip.id) : nullptr;
        const bool saved = mark && mark->saved;
        const QColor line = saved                                            ? m_colors.saved
                            : chip.change == Change::Unchanged || isMarked() ? m_colors.chip.darker(115)
                                                                             : m_colors[chip.change].line;
        m_painter.setPen(QPen(isCurrent ? m_colors.current : line, isCurrent || saved ? 2 : 1));
        m_painter.setBrush(m_colors.chip);
        m_painter.drawRoundedRect(box, 4, 4);
        m_painter.setFont(m_smallFont);
        m_painter.setPen(m_colors.chipText);
        m_painter.drawText(box, Qt::AlignCenter, isMarked() ? chip.text.mid(signOf(chip.change).size()) : chip.text);
        ++m_work.texts;
    }

    void paintFarNodes(const std::vector<int>& nodes) {
        // In whole pixels of the widget: the fast way through the rasteriser, and nothing gets too small to be seen.
        const QTransform toPixels = m_painter.worldTransform();
        m_painter.save();
        m_painter.resetTransform();
        for (const bool plainOnes : {true, false})  // changes, and what is saved, on top
            for (int index : nodes) {
                const Picture::Node& node = m_scene.picture.nodes[static_cast<size_t>(index)];
                const SideMark* mark = markOf(node);
                const HeatMark* heat = heatOf(node);
                const bool plain = m_request.heat    ? !heat || heat->heat == Heat::Equal
                                   : m_request.marks ? !mark || !mark->saved
                                                     : node.change == Change::Unchanged;
                if (!shown(node.change) || plain != plainOnes) continue;
                const QRect box = toPixels.mapRect(m_scene.nodes[index]).toRect();
                const QSize least = plain && !hasMarkedOp(node) ? QSize(1, 1) : QSize(3, 3);
                const QColor color = hasMarkedOp(node)     ? m_colors.hover
                                     : heat                ? m_colors[heat->heat].line
                                     : mark && mark->saved ? m_colors.saved
                                     : mark                ? m_colors[mark->side].line
                                     : plain               ? m_colors.edge
                                                           : m_colors[node.change].line;
                m_painter.fillRect(QRect(box.topLeft(), box.size().expandedTo(least)), color);
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
        m_painter.drawRoundedRect(m_scene.nodes[m_request.current].adjusted(-margin, -margin, margin, margin),
                                  kRadius + 3, kRadius + 3);
    }

    QPainter& m_painter;
    const GraphScene& m_scene;
    const GraphColors& m_colors;
    const PaintRequest& m_request;
    QFont m_titleFont, m_smallFont, m_stubFont;
    bool m_crowded = false;  // boxes are plain rectangles
    PaintWork m_work;
    EdgePainter m_edges;
};

}  // namespace

bool shownIn(GraphMode mode, Change change) {
    if (mode == GraphMode::Before) return change != Change::Added;
    if (mode == GraphMode::After) return change != Change::Removed;
    return true;
}

PaintWork paintScene(QPainter& painter, const GraphScene& scene, const GraphColors& colors,
                     const PaintRequest& request) {
    return ScenePainter(painter, scene, colors, request).paint();
}

}  // namespace cutaway::ui
