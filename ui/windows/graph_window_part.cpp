// The Graph window's part of a graph that is shown alone, and how a picture is looked at again when somebody goes back.
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QToolButton>

#include "ui/models/words.h"
#include "ui/windows/elided_label.h"
#include "ui/windows/graph_window.h"

namespace cutaway::ui {

QWidget* GraphWindow::makePartBar() {
    m_partBar = new QWidget;
    m_partBar->setObjectName(QStringLiteral("partBar"));
    auto* row = new QHBoxLayout(m_partBar);
    row->setContentsMargins(6, 0, 6, 4);
    m_partText = new ElidedLabel;
    m_partText->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_partHops = new QSpinBox;
    m_partHops->setRange(1, GraphPart::kMostHops);
    m_partHops->setPrefix(tr("Edges: "));
    m_partHops->setAccessibleName(tr("Edges from the node"));
    connect(m_partHops, &QSpinBox::valueChanged, this, [this](int hops) {
        std::optional<GraphPart> part = m_view->part();
        if (!part) return;
        part->hops = hops;
        m_view->showPart(part);
    });
    auto* whole = new QToolButton;
    whole->setText(tr("Whole Graph"));
    whole->setToolTip(tr("Show all nodes again (Ctrl+Shift+W)"));
    connect(whole, &QToolButton::clicked, this, [this] { m_view->showPart(std::nullopt); });
    row->addWidget(m_partText, 1);
    row->addWidget(m_partHops);
    row->addWidget(whole);
    m_partBar->hide();
    return m_partBar;
}

void GraphWindow::showPartBar() {
    const std::optional<GraphPart>& part = m_view->part();
    m_partBar->setVisible(part.has_value());
    if (!part) return;
    const NodeIndex nodes(m_view->graph());
    const auto nameOf = [&](NodeKey id) {
        const UnionGraph::Node* node = nodes.find(id);
        return node ? textOf(node->info.name) : tr("a node of another step");
    };
    const QString name = nameOf(part->node);
    QString text;
    switch (part->kind) {
        case GraphPart::Kind::Inputs: text = tr("What %1 is made of").arg(name); break;
        case GraphPart::Kind::Users: text = tr("What is made of %1").arg(name); break;
        case GraphPart::Kind::Path: text = tr("Between %1 and %2").arg(name, nameOf(part->other)); break;
        case GraphPart::Kind::Around:
            text = tr("Around %1, up to %2 away").arg(name, counted(part->hops, tr("edge"), tr("edges")));
            break;
    }
    const Picture& picture = m_view->canvas().scene()->picture;
    m_partText->setText(text + (picture.partly
                                    ? tr(": %1 of %2 nodes").arg(picture.total).arg(m_view->graph()->nodes.size())
                                    : tr(": this graph has no such part, so all of it is shown")));
    m_partHops->setVisible(part->kind == GraphPart::Kind::Around);
    const QSignalBlocker quiet(m_partHops);
    m_partHops->setValue(part->hops);
}

/// Each stop of the history keeps how the picture was looked at, and gets it back.
void GraphWindow::connectHistory() {
    m_selection.setLooker([this]() -> std::shared_ptr<const GraphLook> {
        if (m_drawing || !m_shown || !m_selection.hasPlace() || *m_shown != m_selection.comparison()) return nullptr;
        return m_view->canvas().scene() ? std::make_shared<const GraphLook>(m_view->look()) : nullptr;
    });
    connect(m_view, &GraphView::aboutToOpen, &m_selection, &Selection::addStop);
    connect(m_view, &GraphView::nodeFollows, &m_selection, &Selection::moveNode);
    connect(&m_selection, &Selection::returned, this, [this](const std::shared_ptr<const GraphLook>& look) {
        if (m_shown && *m_shown == m_selection.comparison()) return m_view->lookAgain(look);
        m_returnTo = look;
        m_returnPlace = m_selection.comparison();
    });
}

}  // namespace cutaway::ui
