#include "ui/windows/columns.h"

#include <QMenu>
#include <QSettings>
#include <memory>

namespace cutaway::ui {

Columns::Columns(QHeaderView* header, const QString& name, const QSet<int>& hidden)
    : QObject(header),
      m_header(header),
      m_key(QStringLiteral("columns/") + name),
      m_hidden(hidden),
      m_standardHidden(hidden) {
    header->setSectionsMovable(true);
    header->setFirstSectionMovable(false);
    header->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(header, &QHeaderView::customContextMenuRequested, this, [this](QPoint at) {
        const std::unique_ptr<QMenu> menu(makeMenu(m_header));
        menu->exec(m_header->mapToGlobal(at));
    });
    const QSettings settings;
    if (settings.contains(m_key + QStringLiteral("/hidden"))) {
        m_hidden.clear();
        for (const QVariant& column : settings.value(m_key + QStringLiteral("/hidden")).toList())
            m_hidden.insert(column.toInt());
    }
    const QVariantList order = settings.value(m_key + QStringLiteral("/order")).toList();
    if (order.size() == header->count())  // else of a version with other columns
        for (int visual = 1; visual < order.size(); ++visual)
            if (const int now = header->visualIndex(order[visual].toInt()); now > 0) header->moveSection(now, visual);
    for (int column = 0; column < header->count(); ++column) apply(column);
    connect(header, &QHeaderView::sectionMoved, this, &Columns::save);
}

void Columns::setRoom(int column, bool room) {
    if (room) m_noRoom.remove(column);
    else m_noRoom.insert(column);
    apply(column);
}

void Columns::setShown(int column, bool shown) {
    if (shown) m_hidden.remove(column);
    else m_hidden.insert(column);
    apply(column);
    save();
}

void Columns::apply(int column) {
    m_header->setSectionHidden(column, column > 0 && (m_hidden.contains(column) || m_noRoom.contains(column)));
}

QMenu* Columns::makeMenu(QWidget* parent) {
    auto* menu = new QMenu(parent);
    for (int visual = 1; visual < m_header->count(); ++visual) {
        const int column = m_header->logicalIndex(visual);
        const QString name = m_header->model()->headerData(column, Qt::Horizontal).toString();
        QAction* action = menu->addAction(
            m_noRoom.contains(column) && !m_hidden.contains(column) ? tr("%1 (no room)").arg(name) : name);
        action->setCheckable(true);
        action->setChecked(!m_hidden.contains(column));
        connect(action, &QAction::toggled, this, [this, column](bool shown) { setShown(column, shown); });
    }
    menu->addSeparator();
    menu->addAction(tr("Reset Columns"), this, [this] {
        m_hidden = m_standardHidden;
        for (int column = 0; column < m_header->count(); ++column) {
            m_header->moveSection(m_header->visualIndex(column), column);
            apply(column);
        }
        save();
    });
    return menu;
}

void Columns::save() const {
    QVariantList hidden, order;
    for (int column : m_hidden) hidden << column;
    for (int visual = 0; visual < m_header->count(); ++visual) order << m_header->logicalIndex(visual);
    QSettings settings;
    settings.setValue(m_key + QStringLiteral("/hidden"), hidden);
    settings.setValue(m_key + QStringLiteral("/order"), order);
}

}  // namespace cutaway::ui
