// The Graph window's key: what the colours of calls mean.
#include <QHBoxLayout>
#include <QSettings>

#include "ui/windows/graph_window.h"
#include "ui/windows/legend_mark.h"

namespace cutaway::ui {
namespace {

QString keySetting() { return QStringLiteral("graph/key"); }

}  // namespace

QWidget* GraphWindow::makeKey() {
    m_key = new QWidget;
    m_key->setObjectName(QStringLiteral("colorKey"));
    auto* row = new QHBoxLayout(m_key);
    row->setContentsMargins(6, 0, 6, 3);
    const std::pair<OpClass, QString> classes[] = {{OpClass::Product, tr("Matrix products and convolutions")},
                                                   {OpClass::Pointwise, tr("Each element by itself")},
                                                   {OpClass::Reduction, tr("Many elements to one")},
                                                   {OpClass::View, tr("The same memory, seen otherwise")},
                                                   {OpClass::Other, tr("Moves data, makes it, or is not known")}};
    for (const auto& [opClass, tip] : classes) {
        LegendMark* mark = markOf(opClass, tip, m_key);
        mark->show();
        row->addWidget(mark);
    }
    row->addStretch();
    m_key->setVisible(QSettings().value(keySetting(), true).toBool());
    return m_key;
}

bool GraphWindow::isKeyShown() const { return m_key->isVisibleTo(widget()); }

void GraphWindow::showKey(bool shown) {
    QSettings().setValue(keySetting(), shown);
    m_key->setVisible(shown);
}

}  // namespace cutaway::ui
