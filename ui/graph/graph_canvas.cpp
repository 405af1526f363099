#include "ui/graph/graph_canvas.h"

#include <QLineF>
#include <QPaintEvent>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/graph/graph_accessible.h"

namespace cutaway::ui {
namespace {

constexpr double kMinScale = 0.0005, kMaxScale = 4, kReadable = 0.55;
constexpr int kMinimapNodes = 50, kMinimapSide = 170, kMinimapMargin = 10;

QString apartText() { return GraphCanvas::tr("Nothing here on this side: showing the nearest nodes"); }

}  // namespace

GraphCanvas::GraphCanvas(QWidget* parent) : QWidget(parent), m_colors(GraphColors::of(palette())) {
    installGraphAccessibility();
    m_staleFor.setSingleShot(true);
    connect(&m_staleFor, &QTimer::timeout, this, [this] {
        m_stale = true;
        update();
    });
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAccessibleName(tr("Graph"));
    setObjectName(QStringLiteral("graphCanvas"));
}

void GraphCanvas::setHint(const QString& hint) {
    m_hint = hint;
    update();
}

void GraphCanvas::setStale(bool stale) {
    constexpr int kMoment = 150;  // most pictures are there before: those do not flicker
    if (stale) return m_staleFor.start(kMoment);
    m_staleFor.stop();
    if (std::exchange(m_stale, false)) update();
}

void GraphCanvas::setTitle(const QString& title) {
    m_title = title;
    update();
}

void GraphCanvas::setScene(std::shared_ptr<const GraphScene> scene, bool another) {
    const QPointF held = m_scene && m_current >= 0 ? toWidget(m_scene->nodes[m_current].center()) : QPointF();
    const bool wasVisible = m_scene && m_current >= 0 && rect().contains(held.toPoint());
    m_scene = std::move(scene);
    m_hovered = -1;
    m_minimap = QPixmap();
    m_current = m_scene && m_currentId != NodeKey::None ? m_scene->picture.indexOf(m_currentId) : -1;
    dropAccessibleNodes(this);
    if (m_follows) {
        // The view comes from the other pane, which gets the same scene.
    } else if (m_scene && m_current >= 0 && wasVisible && m_moved &&
               (!another || !m_scene->picture.changed || m_scene->isChanged(m_current))) {
        m_offset = held - m_scene->nodes[m_current].center() * m_scale;
        viewMoved();
    } else {
        frameChange();
    }
    update();
}

void GraphCanvas::setMode(GraphMode mode) {
    m_mode = mode;
    update();
}

void GraphCanvas::setCurrent(NodeKey id, bool reveal) {
    m_currentId = id;
    m_current = m_scene && id != NodeKey::None ? m_scene->picture.indexOf(id) : -1;
    if (reveal && m_current >= 0) ensureVisible(m_current);
    ringKernels();
}

void GraphCanvas::setView(double scale, QPointF offset) { followView(scale, offset, {}, true); }

void GraphCanvas::followView(double scale, QPointF offset, QPointF away, bool moved) {
    m_scale = std::clamp(scale, kMinScale, kMaxScale);
    m_offset = offset - away * m_scale;
    m_apart = !away.isNull();
    m_noteBelow = away.y() < 0;
    m_moved = moved;
    setAccessibleDescription(m_apart ? apartText() : QString());
    update();
}

/// The box of the scene that is shown next to the middle of the view; -1 without any.
int GraphCanvas::nearestToMiddle() const {
    if (!m_scene) return -1;
    int best = -1;
    double least = 0;
    for (size_t i = 0; i < m_scene->nodes.size(); ++i) {
        if (!shownIn(m_mode, m_scene->picture.nodes[i].change)) continue;
        const double distance = QLineF(m_scene->nodes[i].center(), view().center()).length();
        if (best >= 0 && distance >= least) continue;
        best = static_cast<int>(i);
        least = distance;
    }
    return best;
}

GraphLook GraphCanvas::look() const {
    GraphLook look;
    look.scale = m_scale;
    look.moved = m_moved;
    look.middle = view().center();
    const int box = nearestToMiddle();
    if (box < 0) return look;
    look.node = m_scene->picture.nodes[static_cast<size_t>(box)].id;
    look.module = m_scene->picture.nodes[static_cast<size_t>(box)].key;
    look.way = look.middle - m_scene->nodes[static_cast<size_t>(box)].center();
    return look;
}

void GraphCanvas::lookAgain(const GraphLook& look) {
    if (!m_scene) return;
    const int box =
        look.module.isEmpty() ? m_scene->picture.indexOf(look.node) : m_scene->picture.indexOfModule(look.module);
    const QPointF middle = box < 0 ? look.middle : m_scene->nodes[static_cast<size_t>(box)].center() + look.way;
    m_scale = look.scale;
    m_offset = QPointF(width(), height()) / 2 - middle * m_scale;
    m_moved = look.moved;
    viewMoved();
}

void GraphCanvas::viewMoved(bool byHand) {
    m_apart = false;
    update();
    emit viewChanged(byHand);
}

void GraphCanvas::zoomBy(double factor, QPointF anchor) {
    m_moved = true;
    const double before = m_scale;
    m_scale = std::clamp(m_scale * factor, kMinScale, kMaxScale);
    m_offset = anchor - (anchor - m_offset) * (m_scale / before);
    viewMoved(true);
}

void GraphCanvas::fit() {
    if (!m_scene || m_scene->nodes.empty()) return;
    const QRectF& all = m_scene->bounds;
    m_scale = std::clamp(std::min(width() / all.width(), height() / all.height()), kMinScale, 1.25);
    m_offset = QPointF(width(), height()) / 2 - all.center() * m_scale;
    viewMoved();
}

void GraphCanvas::showAll() {
    fit();
    m_moved = true;
    if (m_scale >= kTextZoom) return;
    if (m_current >= 0) return centreOn(m_current);
    if (m_scene) showArea(m_scene->bounds);
}

/// All boxes of the pane's side if they are readable then, else the first of them.
void GraphCanvas::frameOwnSide() {
    QRectF all;
    int first = -1;
    for (size_t i = 0; i < m_scene->nodes.size(); ++i) {
        if (!shownIn(m_mode, m_scene->picture.nodes[i].change)) continue;
        all |= m_scene->nodes[i];
        if (first < 0 || m_scene->nodes[i].top() < m_scene->nodes[static_cast<size_t>(first)].top())
            first = static_cast<int>(i);
    }
    if (first < 0) return fit();
    all.adjust(-20, -20, 20, 20);
    m_moved = false;
    m_scale = std::clamp(std::min(width() / all.width(), height() / all.height()), kMinScale, 1.25);
    QPointF middle = all.center();
    if (m_scale < kTextZoom) {
        m_scale = kReadable;
        const QPointF top = m_scene->nodes[static_cast<size_t>(first)].center();
        middle = QPointF(top.x(), all.top() + height() / m_scale / 2);
    }
    m_offset = QPointF(width(), height()) / 2 - middle * m_scale;
    viewMoved();
}

void GraphCanvas::frameChange() {
    if (!m_scene || m_scene->nodes.empty()) return;
    if (m_ownSide) return frameOwnSide();
    fit();
    m_moved = false;
    if (m_scale >= kReadable) return;
    QRectF target = m_scene->changedArea();
    if (target.isNull()) {  // an unchanged graph is read from its top
        const auto& edges = m_scene->picture.edges;
        const auto top = std::min_element(edges.begin(), edges.end(), [this](const auto& a, const auto& b) {
            return std::pair(m_scene->nodes[a.from].top(), a.from) < std::pair(m_scene->nodes[b.from].top(), b.from);
        });
        target = top != edges.end() ? m_scene->nodes[top->from] : m_scene->nodes.front();
        m_scale = 0.85;
        m_offset = QPointF(freeWidth() / 2.0, 40) - QPointF(target.center().x(), target.top()) * m_scale;
        return viewMoved();
    }
    const double free = freeWidth();
    const auto scaleOf = [&](const QRectF& area) {
        return std::min(free / (area.width() + 80), height() / (area.height() + 80));
    };
    // With two panes, an area whose nodes are all of one side would leave the other pane empty.
    const auto around = [&](const QRectF& area) {
        return m_mode == GraphMode::Union
                   ? area
                   : m_scene->withKeptNeighbours(area, QSizeF(free, height()) / kReadable - QSizeF(80, 80));
    };
    const auto changes = [this] {
        int count = 0;
        for (size_t i = 0; i < m_scene->nodes.size(); ++i) count += m_scene->isChanged(static_cast<int>(i));
        return count;
    };
    // What a rewrite took and what it put there belong together, as long as boxes can be told from each other.
    constexpr int kOfOneRewrite = 12;
    if (scaleOf(target) < kReadable && scaleOf(target) >= kNameZoom && changes() <= kOfOneRewrite) {
        m_scale = scaleOf(target);
        m_offset = QPointF(free, height()) / 2 - target.center() * m_scale;
    } else if (scaleOf(target) < kReadable) {  // too much for one view: the first change, and what fits beside it
        constexpr double kScale = 0.85;
        QRectF first;
        for (size_t i = 0; i < m_scene->nodes.size(); ++i) {
            if (m_scene->picture.nodes[i].change == Change::Unchanged) continue;
            const QRectF more = first | m_scene->nodes[i];
            if (first.isNull() || scaleOf(more) >= kScale) first = more;
        }
        const QRectF wider = around(first);
        m_scale = std::min(kScale, scaleOf(wider));
        m_offset = QPointF(free, height()) / 2 - wider.center() * m_scale;
    } else {
        target = around(target);
        m_scale = std::min(1.0, scaleOf(target));
        m_offset = QPointF(free, height()) / 2 - target.center() * m_scale;
    }
    viewMoved();
}

int GraphCanvas::freeWidth() const {
    return minimapWanted() ? width() - static_cast<int>(minimapSize().width()) - kMinimapMargin : width();
}

void GraphCanvas::centreOn(int node) {
    if (!m_scene || node < 0) return;
    m_moved = true;
    m_scale = std::max(m_scale, kReadable);
    m_offset = QPointF(freeWidth(), height()) / 2 - m_scene->nodes[node].center() * m_scale;
    viewMoved();
}

void GraphCanvas::showArea(const QRectF& area) {
    if (!m_scene || area.isNull()) return;
    m_moved = true;
    const double free = freeWidth();
    const double fits = std::min(free / (area.width() + 40), height() / (area.height() + 40));
    m_scale = std::clamp(std::max(m_scale, kReadable), kReadable, std::max(kReadable, fits));
    m_offset = QPointF(free, height()) / 2 - area.center() * m_scale;
    // What is too high is read from its top.
    if (area.height() * m_scale > height()) m_offset.setY(20 - area.top() * m_scale);
    viewMoved();
}

void GraphCanvas::setCurrentBox(int node) {
    m_current = node;
    m_currentId = NodeKey::None;
    if (node >= 0) ensureVisible(node);
    ringKernels();
}

void GraphCanvas::ensureVisible(int node) {
    const QRectF box(toWidget(m_scene->nodes[node].topLeft()), m_scene->nodes[node].size() * m_scale);
    if (m_scale < kTextZoom || !QRectF(rect()).adjusted(10, 10, -10, -10).contains(box)) centreOn(node);
}

void GraphCanvas::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if (!m_scene || m_follows || !isVisible()) return;
    if (!m_moved) return frameChange();
    if (m_apart) return update();  // the other pane's view decides what is shown here
    const QSizeF grown = QSizeF(event->size()) - QSizeF(event->oldSize());
    m_offset += QPointF(grown.width(), grown.height()) / 2;
    viewMoved();
}

void GraphCanvas::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (!m_moved && !m_follows) frameChange();
}

void GraphCanvas::changeEvent(QEvent* event) {
    if (event->type() == QEvent::PaletteChange) {
        m_colors = GraphColors::of(palette());
        m_minimap = QPixmap();
        update();
    }
    QWidget::changeEvent(event);
}

void GraphCanvas::paintEvent(QPaintEvent* event) {
    QPainter painter(this);
    painter.fillRect(event->rect(), m_colors.canvas);
    if (!m_scene || m_scene->nodes.empty()) {
        painter.setPen(m_colors.detail);
        painter.drawText(rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap, m_hint);
        return;
    }
    painter.save();
    painter.translate(m_offset);
    painter.scale(m_scale, m_scale);
    PaintRequest request;
    request.area =
        QRectF(toScene(event->rect().topLeft()), QSizeF(event->rect().size()) / m_scale).adjusted(-8, -8, 8, 8);
    request.scale = m_scale;
    request.mode = m_mode;
    request.current = m_current;
    request.currentId = m_currentId;
    request.hovered = m_hovered;
    request.marks = m_marks.get();
    request.heat = m_heat.get();
    request.op = paintedOp();
    request.kernels = &m_kernels;
    request.ringed = &m_ringed;
    m_work = paintScene(painter, *m_scene, m_colors, request);
    painter.restore();
    if (m_stale) {
        QColor veil = m_colors.canvas;
        veil.setAlphaF(0.65F);
        painter.fillRect(event->rect(), veil);
    }
    if (minimapShown()) paintMinimap(painter);
    if (!m_title.isEmpty()) paintTitle(painter);
    if (m_apart) paintApart(painter);
    if (hasFocus()) {
        painter.setPen(QPen(m_colors.current, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

void GraphCanvas::setKernels(const KernelNames& kernels) {
    m_kernels = kernels;
    ringKernels();
}

void GraphCanvas::ringKernels() {
    m_ringed =
        m_kernels.marks && m_currentId != NodeKey::None ? m_kernels.marks->together(m_currentId) : QSet<quint64>();
    update();
}

void GraphCanvas::setMarkedOp(const QString& op) {
    m_markedOp = op;
    update();
}

/// Of the box below the pointer, else the one that somebody asked for.
int GraphCanvas::paintedOp() const {
    const Picture& picture = m_scene->picture;
    const QString hovered = picture.opOf(m_hovered);
    const QString& op = hovered.isEmpty() ? m_markedOp : hovered;
    const auto found = std::find(picture.ops.begin(), picture.ops.end(), op);
    return found == picture.ops.end() ? -1 : static_cast<int>(found - picture.ops.begin());
}

QRectF GraphCanvas::titleRect() const {
    QFont bold = font();
    bold.setBold(true);
    const QFontMetrics metrics(bold);
    return QRectF(10, 10, metrics.horizontalAdvance(m_title) + 16, metrics.height() + 6);
}

void GraphCanvas::paintTitle(QPainter& painter) {
    QFont bold = font();
    bold.setBold(true);
    painter.setFont(bold);
    painter.setPen(m_colors.edge);
    painter.setBrush(palette().color(QPalette::Window));
    painter.drawRoundedRect(titleRect(), 4, 4);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(titleRect(), Qt::AlignCenter, m_title);
    painter.setFont(font());
}

void GraphCanvas::paintApart(QPainter& painter) {
    const QString text = fontMetrics().elidedText(apartText(), Qt::ElideRight, width() - 40);
    const double high = fontMetrics().height() + 8;
    const double top = m_title.isEmpty() ? 10 : titleRect().bottom() + 6;
    const QRectF box(10, m_noteBelow ? height() - high - 10 : top, fontMetrics().horizontalAdvance(text) + 16, high);
    painter.setPen(m_colors[Change::Edited].line);
    painter.setBrush(m_colors[Change::Edited].fill);
    painter.drawRect(box);
    painter.setPen(m_colors[Change::Edited].text);
    painter.drawText(box, Qt::AlignCenter, text);
}

bool GraphCanvas::minimapWanted() const {
    return m_scene && static_cast<int>(m_scene->nodes.size()) > kMinimapNodes && width() >= 3 * kMinimapSide;
}

bool GraphCanvas::minimapShown() const {
    return minimapWanted() && !minimapRect().isNull() &&
           !QRectF(rect()).contains(QRectF(toWidget(m_scene->bounds.topLeft()), m_scene->bounds.size() * m_scale));
}

QSizeF GraphCanvas::minimapSize() const {
    return m_scene->bounds.size()
        .scaled(kMinimapSide, std::max(kMinimapSide, height() * 2 / 5), Qt::KeepAspectRatio)
        .expandedTo(QSizeF(24, 24));
}

QRectF GraphCanvas::minimapRect() const {
    const QSizeF size = minimapSize();
    const double right = width() - size.width() - kMinimapMargin, bottom = height() - size.height() - kMinimapMargin;
    const QPointF corners[] = {
        {right, kMinimapMargin}, {right, bottom}, {kMinimapMargin, bottom}, {kMinimapMargin, kMinimapMargin}};
    for (const QPointF& corner : corners) {
        const QRectF box(corner, size);
        const bool titled = !m_title.isEmpty() && titleRect().intersects(box);
        if (!titled && m_scene->nodeIndex.touching(QRectF(toScene(box.topLeft()), size / m_scale)).empty()) return box;
    }
    return {};
}

void GraphCanvas::paintMinimap(QPainter& painter) {
    const QRectF box = minimapRect();
    if (m_minimap.isNull() || m_minimap.deviceIndependentSize() != box.size().toSize()) {
        m_minimap = QPixmap((box.size() * devicePixelRatioF()).toSize());
        m_minimap.setDevicePixelRatio(devicePixelRatioF());
        m_minimap.fill(m_colors.canvas);
        QPainter mini(&m_minimap);
        const double scale = box.width() / m_scene->bounds.width();
        mini.scale(scale, box.height() / m_scene->bounds.height());
        mini.translate(-m_scene->bounds.topLeft());
        PaintRequest request;
        request.area = m_scene->bounds;
        request.scale = std::min(scale, kBoxZoom / 2);
        request.marks = m_marks.get();
        request.heat = m_heat.get();
        paintScene(mini, *m_scene, m_colors, request);
    }
    painter.drawPixmap(box.topLeft(), m_minimap);
    painter.setPen(m_colors.edge);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box);
    const double sx = box.width() / m_scene->bounds.width(), sy = box.height() / m_scene->bounds.height();
    const QPointF corner = toScene({0, 0}) - m_scene->bounds.topLeft();
    const QRectF view(box.left() + corner.x() * sx, box.top() + corner.y() * sy, width() / m_scale * sx,
                      height() / m_scale * sy);
    painter.setPen(QPen(m_colors.current, 1.5));
    QColor tint = m_colors.current;
    tint.setAlphaF(0.12f);
    painter.setBrush(tint);
    painter.drawRect(view.intersected(box));
}

}  // namespace cutaway::ui
