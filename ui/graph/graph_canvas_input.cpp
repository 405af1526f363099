// What hand and keyboard do on the canvas: choosing, walking edges, panning, zooming.
#include <QHelpEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "ui/graph/graph_accessible.h"
#include "ui/graph/graph_canvas.h"

namespace cutaway::ui {

int GraphCanvas::nodeAt(QPointF at) const {
    if (!m_scene) return -1;
    const std::vector<int> hits = m_scene->nodeIndex.touching(QRectF(at, QSizeF()));
    for (auto hit = hits.rbegin(); hit != hits.rend(); ++hit)
        if (shownIn(m_mode, m_scene->picture.nodes[*hit].change)) return *hit;
    return -1;
}

void GraphCanvas::choose(int node, NodeKey id) {
    m_current = node;
    m_currentId = id;
    ringKernels();
    announceCurrent(this, node);
    emit nodeChosen(id);
}

void GraphCanvas::activate(int node, bool equal) {
    if (node < 0) return;
    const Picture::Node& at = m_scene->picture.nodes[node];
    if (at.isModule()) emit moduleActivated(at.key, equal);
    else if (at.isFold()) emit foldActivated(at.members);
    else emit nodeActivated(at.id);
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
        if (best < 0 || distance < bestDistance) {
            best = node;
            bestDistance = distance;
        }
    };
    if (key == Qt::Key_Down || key == Qt::Key_Up) {
        for (const auto& edge : m_scene->picture.edges) {
            if (!shownIn(m_mode, edge.change)) continue;
            if (key == Qt::Key_Down && edge.from == m_current) offer(edge.to);
            if (key == Qt::Key_Up && edge.to == m_current) offer(edge.from);
        }
        return best;
    }
    const QRectF row(m_scene->bounds.left(), m_scene->nodes[m_current].top(), m_scene->bounds.width(),
                     m_scene->nodes[m_current].height());
    for (int node : m_scene->nodeIndex.touching(row)) {
        const double dx = m_scene->nodes[node].center().x() - from.x();
        if ((key == Qt::Key_Right && dx > 0) || (key == Qt::Key_Left && dx < 0)) offer(node);
    }
    return best;
}

/// Right opens a closed module, Left closes the one around; false where there is none.
bool GraphCanvas::walkModules(int key, bool equal) {
    if (!m_scene || m_current < 0) return false;
    if (key == Qt::Key_Right && m_scene->picture.nodes[m_current].isModule()) {
        activate(m_current, equal);
        return true;
    }
    const QString around = key == Qt::Key_Left ? m_scene->picture.moduleToClose(m_current) : QString();
    if (!around.isEmpty()) emit closeWanted(around);
    return !around.isEmpty();
}

/// The module whose title stands there.
QString GraphCanvas::clusterTitleAt(QPointF at) const {
    constexpr double kTitleHeight = 20;
    QString found;
    for (size_t i = 0; i < m_scene->clusters.size(); ++i) {
        QRectF title = m_scene->clusters[i];
        title.setHeight(std::min(title.height(), kTitleHeight));
        if (title.contains(at)) found = m_scene->picture.clusters[i].title;  // inner ones come later
    }
    return found;
}

void GraphCanvas::showModuleMenu(int node, QPoint at) {
    const Picture::Node& module = m_scene->picture.nodes[node];
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    const auto add = [&](const QString& text, auto does) { menu->addAction(text, this, does); };
    add(tr("Open %1").arg(module.key), [this, key = module.key] { emit moduleActivated(key, false); });
    if (module.equal > 1)
        add(tr("Open all %1 equal modules").arg(module.equal),
            [this, key = module.key] { emit moduleActivated(key, true); });
    if (const QString around = m_scene->picture.moduleToClose(node); !around.isEmpty())
        add(tr("Close %1").arg(around), [this, around] { emit closeWanted(around); });
    menu->popup(at);
}

void GraphCanvas::step(int key) {
    if (!m_scene || m_scene->nodes.empty()) return;
    int next = -1;
    const bool toEnd = key == Qt::Key_Home || key == Qt::Key_End;
    if (m_current < 0 && !toEnd) {  // what somebody looks at is a better place to start than the graph's first box
        next = nearestToMiddle();
    } else if (key == Qt::Key_Home) {
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
                return viewMoved(true);
            }
            if (walkModules(event->key(), control)) return;
            return step(event->key());
        case Qt::Key_Home:
        case Qt::Key_End: return step(event->key());
        case Qt::Key_Return:
        case Qt::Key_Enter: return activate(m_current, control);
        case Qt::Key_Plus:
        case Qt::Key_Equal: return zoomBy(1.25, middle);
        case Qt::Key_Minus: return zoomBy(0.8, middle);
        case Qt::Key_1:
        case Qt::Key_2:
        case Qt::Key_3:
        case Qt::Key_4:
        case Qt::Key_5:
        case Qt::Key_6:
        case Qt::Key_7:
        case Qt::Key_8:
        case Qt::Key_9:
            if (control || m_currentId == NodeKey::None) break;
            return emit partWanted({.node = m_currentId, .hops = event->key() - Qt::Key_0});
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
    if (node >= 0 && m_scene->picture.nodes[node].isModule())
        return showModuleMenu(
            node, keyed ? mapToGlobal(toWidget(m_scene->nodes[node].center()).toPoint()) : event->globalPos());
    if (node < 0 || m_scene->picture.nodes[node].isFold()) return;
    if (node != m_current) choose(node, m_scene->picture.nodes[node].id);
    emit menuWanted(m_currentId,
                    keyed ? mapToGlobal(toWidget(m_scene->nodes[node].center()).toPoint()) : event->globalPos());
}

void GraphCanvas::wheelEvent(QWheelEvent* event) {
    if (!m_scene) return;
    zoomBy(std::pow(1.0016, event->angleDelta().y()), event->position());
    event->accept();
}

void GraphCanvas::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return QWidget::mousePressEvent(event);
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
        return viewMoved(true);
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
        if (!shownIn(m_mode, m_scene->picture.edges[stub.ends.front().edge].change)) continue;
        return follow(stub, event->globalPosition().toPoint());
    }
    const int node = nodeAt(at);
    if (node < 0) return choose(-1, NodeKey::None);
    const NodeKey clickedOn = m_scene->picture.nodes[node].id;
    if (event->modifiers() & Qt::ControlModifier && m_currentId != NodeKey::None && clickedOn != NodeKey::None &&
        clickedOn != m_currentId)
        return emit partWanted({GraphPart::Kind::Path, m_currentId, clickedOn});
    const auto& chips = m_scene->picture.nodes[node].chips;
    for (size_t i = 0; i < chips.size(); ++i)
        if (chips[i].id != NodeKey::None && m_scene->chipRect(node, i).contains(at)) return choose(node, chips[i].id);
    choose(node, clickedOn);
}

/// To the other end of an edge that is not drawn, out of several to the one that is chosen.
void GraphCanvas::follow(const GraphScene::Stub& stub, QPoint at) {
    const auto go = [this](const GraphScene::FarEnd& end) {
        choose(end.box, end.node);
        centreOn(end.box);
    };
    if (stub.ends.size() == 1) return go(stub.ends.front());
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    // The menu may outlive the scene.
    for (const GraphScene::FarEnd& end : stub.ends)
        menu->addAction(end.name, this, [go, end, scene = m_scene, this] {
            if (scene == m_scene) go(end);
        });
    menu->popup(at);
}

void GraphCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !m_scene) return;
    const QPointF at = toScene(event->position());
    const int node = nodeAt(at);
    if (node >= 0) return activate(node, event->modifiers() & Qt::ControlModifier);
    if (const QString key = clusterTitleAt(at); !key.isEmpty()) emit closeWanted(key);
}

void GraphCanvas::setMarks(std::shared_ptr<const SideMarks> marks) {
    m_marks = std::move(marks);
    m_minimap = QPixmap();
    update();
}

void GraphCanvas::setHeat(std::shared_ptr<const HeatMarks> heat) {
    m_heat = std::move(heat);
    m_minimap = QPixmap();
    update();
}

QString GraphCanvas::spoken(int node) const {
    const SideMark* mark = m_marks ? m_marks->find(m_scene->picture.nodes[static_cast<size_t>(node)].id) : nullptr;
    const QString text = spokenText(m_scene->picture, node);
    const HeatMark* heat = m_heat ? m_heat->find(m_scene->picture.nodes[static_cast<size_t>(node)].id) : nullptr;
    if (heat) return text + QStringLiteral("; ") + heat->words;
    return mark ? text + QStringLiteral("; ") + wordsOf(*mark) : text;
}

bool GraphCanvas::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && m_scene) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int node = nodeAt(toScene(help->pos()));
        if (node >= 0) QToolTip::showText(help->globalPos(), spoken(node), this);
        else QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

void GraphCanvas::panByMinimap(QPointF at) {
    const QRectF box = minimapRect();
    const QPointF part((at.x() - box.left()) / box.width(), (at.y() - box.top()) / box.height());
    const QPointF target(m_scene->bounds.left() + part.x() * m_scene->bounds.width(),
                         m_scene->bounds.top() + part.y() * m_scene->bounds.height());
    m_moved = true;
    m_offset = QPointF(width(), height()) / 2 - target * m_scale;
    viewMoved(true);
}

}  // namespace cutaway::ui
