#include "ui/graph/graph_canvas.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPaintEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "ui/graph/graph_accessible.h"

namespace cutaway::ui {
namespace {

constexpr double kMinScale = 0.0005, kMaxScale = 4, kReadable = 0.55;
constexpr int kMinimapNodes = 50, kMinimapSide = 170, kMinimapMargin = 10;

}  // namespace

GraphCanvas::GraphCanvas(QWidget* parent) : QWidget(parent), m_colors(GraphColors::of(palette())) {
    installGraphAccessibility();
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

void GraphCanvas::setScene(std::shared_ptr<const GraphScene> scene) {
    const QPointF held = m_scene && m_current >= 0 ? toWidget(m_scene->nodes[m_current].center()) : QPointF();
    const bool wasVisible = m_scene && m_current >= 0 && rect().contains(held.toPoint());
    m_scene = std::move(scene);
    m_hovered = -1;
    m_minimap = QPixmap();
    m_current = m_scene && m_currentId != NodeId::None ? m_scene->picture.indexOf(m_currentId) : -1;
    dropAccessibleNodes(this);
    if (m_scene && m_current >= 0 && wasVisible && m_moved) {
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

void GraphCanvas::setCurrent(NodeId id, bool reveal) {
    m_currentId = id;
    m_current = m_scene && id != NodeId::None ? m_scene->picture.indexOf(id) : -1;
    if (reveal && m_current >= 0) ensureVisible(m_current);
    update();
}

void GraphCanvas::setView(double scale, QPointF offset) {
    m_moved = true;
    followView(scale, offset);
}

void GraphCanvas::followView(double scale, QPointF offset) {
    m_scale = std::clamp(scale, kMinScale, kMaxScale);
    m_offset = offset;
    update();
}

void GraphCanvas::viewMoved() {
    update();
    emit viewChanged(m_scale, m_offset);
}

void GraphCanvas::zoomBy(double factor, QPointF anchor) {
    m_moved = true;
    const double before = m_scale;
    m_scale = std::clamp(m_scale * factor, kMinScale, kMaxScale);
    m_offset = anchor - (anchor - m_offset) * (m_scale / before);
    viewMoved();
}

void GraphCanvas::fit() {
    if (!m_scene || m_scene->nodes.empty()) return;
    const QRectF& all = m_scene->bounds;
    m_scale = std::clamp(std::min(width() / all.width(), height() / all.height()), kMinScale, 1.25);
    m_offset = QPointF(width(), height()) / 2 - all.center() * m_scale;
    viewMoved();
}

void GraphCanvas::frameChange() {
    if (!m_scene || m_scene->nodes.empty()) return;
    fit();
    m_moved = false;
    if (m_scale >= kReadable) return;
    QRectF target = m_scene->changedArea();
    if (target.isNull()) {  // an unchanged graph is read from its top
        int first = static_cast<int>(m_scene->nodes.size());  // that anything reads
        for (const auto& edge : m_scene->picture.edges) first = std::min(first, edge.from);
        target = first < static_cast<int>(m_scene->nodes.size()) ? m_scene->nodes[first] : m_scene->nodes.front();
        m_scale = 0.85;
        m_offset = QPointF(freeWidth() / 2.0, 40) - QPointF(target.center().x(), target.top()) * m_scale;
        return viewMoved();
    }
    const auto scaleOf = [this](const QRectF& area) { return std::min(width() / (area.width() + 80), height() / (area.height() + 80)); };
    // Of two panes on one place, what stands on one side only would leave the other empty.
    const auto around = [&](const QRectF& area) { return m_mode == GraphMode::Union ? area : m_scene->withKeptNeighbours(area, QSizeF(width(), height()) / kReadable - QSizeF(80, 80)); };
    if (scaleOf(target) < kReadable) {  // too much has changed for one view: start at the first change
        for (size_t i = 0; i < m_scene->nodes.size(); ++i)
            if (m_scene->picture.nodes[i].change != Change::Kept) {
                target = m_scene->nodes[i];
                break;
            }
        const QRectF wider = around(target);
        m_scale = wider == target ? 0.85 : std::min(0.85, scaleOf(wider));
        m_offset = QPointF(freeWidth() / 2.0, wider == target ? height() / 3.0 : height() / 2.0) - wider.center() * m_scale;
    } else {
        target = around(target);
        m_scale = std::min(1.0, scaleOf(target));
        m_offset = QPointF(width(), height()) / 2 - target.center() * m_scale;
    }
    viewMoved();
}

int GraphCanvas::freeWidth() const { return minimapShown() ? static_cast<int>(minimapRect().left()) : width(); }

void GraphCanvas::centreOn(int node) {
    if (!m_scene || node < 0) return;
    m_moved = true;
    m_scale = std::max(m_scale, kReadable);
    m_offset = QPointF(freeWidth(), height()) / 2 - m_scene->nodes[node].center() * m_scale;
    viewMoved();
}

void GraphCanvas::ensureVisible(int node) {
    const QRectF box(toWidget(m_scene->nodes[node].topLeft()), m_scene->nodes[node].size() * m_scale);
    if (m_scale < kTextZoom || !QRectF(rect()).adjusted(10, 10, -10, -10).contains(box)) centreOn(node);
}

int GraphCanvas::nodeAt(QPointF at) const {
    if (!m_scene) return -1;
    const std::vector<int> hits = m_scene->nodeIndex.touching(QRectF(at, QSizeF()));
    for (auto hit = hits.rbegin(); hit != hits.rend(); ++hit)
        if (shownIn(m_mode, m_scene->picture.nodes[*hit].change)) return *hit;
    return -1;
}

void GraphCanvas::choose(int node, NodeId id) {
    m_current = node;
    m_currentId = id;
    update();
    announceCurrent(this, node);
    if (id != NodeId::None) emit nodeChosen(id);
}

void GraphCanvas::activate(int node) {
    if (node < 0) return;
    const Picture::Node& at = m_scene->picture.nodes[node];
    if (at.isFold())
        emit foldActivated(at.members);
    else
        emit nodeActivated(at.id);
}

/// Down and Up follow edges (to the neighbour nearest sideways), Left and Right go to the nearest node beside.
int GraphCanvas::neighbour(int key) const {
    const QPointF from = m_scene->nodes[m_current].center();
    int best = -1;
    double bestDistance = 0;
    const auto offer = [&](int node) {
        if (node == m_current || !shownIn(m_mode, m_scene->picture.nodes[node].change)) return;
        const QPointF to = m_scene->nodes[node].center() - from;
        const double distance = key == Qt::Key_Down || key == Qt::Key_Up ? std::abs(to.x()) + std::abs(to.y()) / 4
                                                                         : std::abs(to.x()) + 4 * std::abs(to.y());
        if (best < 0 || distance < bestDistance) best = node, bestDistance = distance;
    };
    if (key == Qt::Key_Down || key == Qt::Key_Up) {
        for (const auto& edge : m_scene->picture.edges) {
            if (!shownIn(m_mode, edge.change)) continue;
            if (key == Qt::Key_Down && edge.from == m_current) offer(edge.to);
            if (key == Qt::Key_Up && edge.to == m_current) offer(edge.from);
        }
        return best;
    }
    const QRectF row(m_scene->bounds.left(), m_scene->nodes[m_current].top(), m_scene->bounds.width(), m_scene->nodes[m_current].height());
    for (int node : m_scene->nodeIndex.touching(row)) {
        const double dx = m_scene->nodes[node].center().x() - from.x();
        if ((key == Qt::Key_Right && dx > 0) || (key == Qt::Key_Left && dx < 0)) offer(node);
    }
    return best;
}

void GraphCanvas::step(int key) {
    if (!m_scene || m_scene->nodes.empty()) return;
    int next = -1;
    if (key == Qt::Key_Home || (m_current < 0 && key != Qt::Key_End)) {
        for (size_t i = 0; i < m_scene->nodes.size() && next < 0; ++i)
            if (shownIn(m_mode, m_scene->picture.nodes[i].change)) next = static_cast<int>(i);
    } else if (key == Qt::Key_End) {
        for (size_t i = m_scene->nodes.size(); i-- > 0 && next < 0;)
            if (shownIn(m_mode, m_scene->picture.nodes[i].change)) next = static_cast<int>(i);
    } else {
        next = neighbour(key);
    }
    if (next < 0) return;
    choose(next, m_scene->picture.nodes[next].id);
    ensureVisible(next);
}

void GraphCanvas::keyPressEvent(QKeyEvent* event) {
    const QPointF middle(width() / 2.0, height() / 2.0);
    const bool control = event->modifiers() & Qt::ControlModifier;
    if (event->modifiers() & Qt::AltModifier) return QWidget::keyPressEvent(event);  // history
    switch (event->key()) {
        case Qt::Key_Up:
        case Qt::Key_Down:
        case Qt::Key_Left:
        case Qt::Key_Right:
            if (event->modifiers() & Qt::ShiftModifier) {
                const int dx = event->key() == Qt::Key_Left ? 60 : event->key() == Qt::Key_Right ? -60 : 0;
                const int dy = event->key() == Qt::Key_Up ? 60 : event->key() == Qt::Key_Down ? -60 : 0;
                m_moved = true;
                m_offset += QPointF(dx, dy);
                return viewMoved();
            }
            return step(event->key());
        case Qt::Key_Home:
        case Qt::Key_End: return step(event->key());
        case Qt::Key_Return:
        case Qt::Key_Enter: return activate(m_current);
        case Qt::Key_Plus:
        case Qt::Key_Equal: return zoomBy(1.25, middle);
        case Qt::Key_Minus: return zoomBy(0.8, middle);
        case Qt::Key_0:
            if (control) return fit();
            break;
        default: break;
    }
    QWidget::keyPressEvent(event);
}

void GraphCanvas::contextMenuEvent(QContextMenuEvent* event) {
    const bool keyed = event->reason() == QContextMenuEvent::Keyboard;
    const int node = keyed ? m_current : nodeAt(toScene(event->pos()));
    if (node < 0 || m_scene->picture.nodes[node].isFold()) return;
    if (node != m_current) choose(node, m_scene->picture.nodes[node].id);
    emit menuWanted(m_currentId, keyed ? mapToGlobal(toWidget(m_scene->nodes[node].center()).toPoint()) : event->globalPos());
}

void GraphCanvas::wheelEvent(QWheelEvent* event) {
    if (!m_scene) return;
    zoomBy(std::pow(1.0016, event->angleDelta().y()), event->position());
    event->accept();
}

void GraphCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) return QWidget::mousePressEvent(event);
    m_pressed = event->position();
    m_pressedOffset = m_offset;
    m_dragging = false;
    m_onMinimap = minimapShown() && minimapRect().contains(m_pressed);
    if (m_onMinimap) panByMinimap(m_pressed);
}

void GraphCanvas::mouseMoveEvent(QMouseEvent* event) {
    if (!m_scene) return;
    if (event->buttons() & (Qt::LeftButton | Qt::MiddleButton)) {
        if (m_onMinimap) return panByMinimap(event->position());
        const QPointF moved = event->position() - m_pressed;
        if (!m_dragging && moved.manhattanLength() < 4) return;
        m_dragging = m_moved = true;
        setCursor(Qt::ClosedHandCursor);
        m_offset = m_pressedOffset + moved;
        return viewMoved();
    }
    const int hovered = nodeAt(toScene(event->position()));
    if (hovered != m_hovered) {
        m_hovered = hovered;
        update();
    }
}

void GraphCanvas::mouseReleaseEvent(QMouseEvent* event) {
    const bool clicked = !m_dragging && !m_onMinimap && event->button() == Qt::LeftButton;
    m_dragging = m_onMinimap = false;
    unsetCursor();
    if (!clicked || !m_scene) return;
    const QPointF at = toScene(event->position());
    for (int hit : m_scene->stubIndex.touching(QRectF(at, QSizeF()))) {
        const GraphScene::Stub& stub = m_scene->stubs[hit];
        if (!shownIn(m_mode, m_scene->picture.edges[stub.edge].change)) continue;
        choose(stub.other, m_scene->picture.nodes[stub.other].id);
        return centreOn(stub.other);
    }
    const int node = nodeAt(at);
    if (node < 0) return choose(-1, NodeId::None);
    const auto& chips = m_scene->picture.nodes[node].chips;
    for (size_t i = 0; i < chips.size(); ++i)
        if (chips[i].id != NodeId::None && m_scene->chipRect(node, i).contains(at)) return choose(node, chips[i].id);
    choose(node, m_scene->picture.nodes[node].id);
}

void GraphCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) activate(nodeAt(toScene(event->position())));
}

bool GraphCanvas::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && m_scene) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int node = nodeAt(toScene(help->pos()));
        if (node >= 0)
            QToolTip::showText(help->globalPos(), spokenText(m_scene->picture, node), this);
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

void GraphCanvas::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if (!m_scene) return;
    // A hidden second pane shares the view; its size must not move it.
    if (!isVisible()) return;
    if (!m_moved) return frameChange();
    const QSizeF grown = QSizeF(event->size()) - QSizeF(event->oldSize());
    m_offset += QPointF(grown.width(), grown.height()) / 2;
    viewMoved();
}

void GraphCanvas::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (!m_moved) frameChange();
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
    request.area = QRectF(toScene(event->rect().topLeft()), QSizeF(event->rect().size()) / m_scale).adjusted(-8, -8, 8, 8);
    request.scale = m_scale;
    request.mode = m_mode;
    request.current = m_current;
    request.currentId = m_currentId;
    request.hovered = m_hovered;
    m_work = paintScene(painter, *m_scene, m_colors, request);
    painter.restore();
    if (minimapShown()) paintMinimap(painter);
    if (hasFocus()) {
        painter.setPen(QPen(m_colors.current, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
}

bool GraphCanvas::minimapShown() const {
    if (!m_scene || static_cast<int>(m_scene->nodes.size()) <= kMinimapNodes || width() < 3 * kMinimapSide) return false;
    return !QRectF(rect()).contains(QRectF(toWidget(m_scene->bounds.topLeft()), m_scene->bounds.size() * m_scale));
}

QRectF GraphCanvas::minimapRect() const {
    QSizeF size = m_scene->bounds.size().scaled(kMinimapSide, std::max(kMinimapSide, height() * 2 / 5), Qt::KeepAspectRatio);
    size = size.expandedTo(QSizeF(24, 24));
    return {QPointF(width() - size.width() - kMinimapMargin, kMinimapMargin), size};
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
        paintScene(mini, *m_scene, m_colors, request);
    }
    painter.drawPixmap(box.topLeft(), m_minimap);
    painter.setPen(m_colors.edge);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box);
    const double sx = box.width() / m_scene->bounds.width(), sy = box.height() / m_scene->bounds.height();
    const QPointF corner = toScene({0, 0}) - m_scene->bounds.topLeft();
    const QRectF view(box.left() + corner.x() * sx, box.top() + corner.y() * sy, width() / m_scale * sx, height() / m_scale * sy);
    painter.setPen(QPen(m_colors.current, 1.5));
    QColor tint = m_colors.current;
    tint.setAlphaF(0.12f);
    painter.setBrush(tint);
    painter.drawRect(view.intersected(box));
}

void GraphCanvas::panByMinimap(QPointF at) {
    const QRectF box = minimapRect();
    const QPointF part((at.x() - box.left()) / box.width(), (at.y() - box.top()) / box.height());
    const QPointF target(m_scene->bounds.left() + part.x() * m_scene->bounds.width(), m_scene->bounds.top() + part.y() * m_scene->bounds.height());
    m_moved = true;
    m_offset = QPointF(width(), height()) / 2 - target * m_scale;
    viewMoved();
}

}  // namespace cutaway::ui
