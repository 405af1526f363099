#include "ui/graph/graph_accessible.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QHash>
#include <QPointer>
#include <mutex>

#include "ui/graph/graph_canvas.h"

namespace cutaway::ui {
namespace {

class AccessibleNode : public QAccessibleInterface {
  public:
    AccessibleNode(GraphCanvas* canvas, int node) : m_canvas(canvas), m_node(node) {}

    bool isValid() const override {
        return m_canvas && m_canvas->scene() && m_node < static_cast<int>(m_canvas->scene()->nodes.size());
    }
    QObject* object() const override { return nullptr; }
    QWindow* window() const override { return nullptr; }
    QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(m_canvas); }
    QAccessibleInterface* child(int) const override { return nullptr; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QAccessible::Role role() const override { return QAccessible::ListItem; }
    void setText(QAccessible::Text, const QString&) override {}

    QString text(QAccessible::Text kind) const override {
        if (!isValid()) return {};
        const Picture& picture = m_canvas->scene()->picture;
        return kind == QAccessible::Name    ? m_canvas->spoken(m_node)
               : kind == QAccessible::Value ? picture.nodes[m_node].title
                                            : QString();
    }
    QRect rect() const override {
        if (!isValid()) return {};
        const QRectF box = m_canvas->scene()->nodes[m_node];
        const QRectF at(m_canvas->toWidget(box.topLeft()), box.size() * m_canvas->scale());
        return at.toRect().translated(m_canvas->mapToGlobal(QPoint()));
    }
    QAccessible::State state() const override {
        QAccessible::State state;
        state.focusable = state.selectable = true;
        state.focused = state.selected = isValid() && m_canvas->currentIndex() == m_node;
        state.invalid = !isValid();
        return state;
    }

  private:
    QPointer<GraphCanvas> m_canvas;
    int m_node;
};

class AccessibleCanvas : public QAccessibleWidget {
  public:
    explicit AccessibleCanvas(GraphCanvas* canvas) : QAccessibleWidget(canvas, QAccessible::List), m_canvas(canvas) {}
    ~AccessibleCanvas() override { dropNodes(); }

    int childCount() const override {
        return m_canvas->scene() ? static_cast<int>(m_canvas->scene()->nodes.size()) : 0;
    }
    QAccessibleInterface* child(int index) const override {
        if (index < 0 || index >= childCount()) return nullptr;
        if (const auto found = m_ids.constFind(index); found != m_ids.constEnd())
            return QAccessible::accessibleInterface(*found);
        auto* made = new AccessibleNode(m_canvas, index);
        m_ids.insert(index, QAccessible::registerAccessibleInterface(made));
        return made;
    }
    int indexOfChild(const QAccessibleInterface* child) const override {
        for (auto at = m_ids.constBegin(); at != m_ids.constEnd(); ++at)
            if (QAccessible::accessibleInterface(*at) == child) return at.key();
        return -1;
    }
    QAccessibleInterface* focusChild() const override { return child(m_canvas->currentIndex()); }
    QAccessibleInterface* childAt(int x, int y) const override {
        for (int i = 0; i < childCount(); ++i)
            if (QAccessibleInterface* node = child(i); node->rect().contains(x, y)) return node;
        return nullptr;
    }
    void dropNodes() {
        for (QAccessible::Id id : std::as_const(m_ids)) QAccessible::deleteAccessibleInterface(id);
        m_ids.clear();
    }

  private:
    GraphCanvas* m_canvas;
    mutable QHash<int, QAccessible::Id> m_ids;
};

QAccessibleInterface* makeInterface(const QString& className, QObject* object) {
    auto* canvas =
        className == QLatin1String("cutaway::ui::GraphCanvas") ? qobject_cast<GraphCanvas*>(object) : nullptr;
    return canvas ? new AccessibleCanvas(canvas) : nullptr;
}

}  // namespace

void installGraphAccessibility() {
    static std::once_flag once;
    std::call_once(once, [] { QAccessible::installFactory(makeInterface); });
}

void announceCurrent(QWidget* canvas, int node) {
    if (!QAccessible::isActive() || node < 0) return;
    QAccessibleEvent event(canvas, QAccessible::Focus);
    event.setChild(node);
    QAccessible::updateAccessibility(&event);
}

void dropAccessibleNodes(QWidget* canvas) {
    if (!QAccessible::isActive()) return;
    if (auto* found = dynamic_cast<AccessibleCanvas*>(QAccessible::queryAccessibleInterface(canvas)))
        found->dropNodes();
}

}  // namespace cutaway::ui
