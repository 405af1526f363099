#include "ui/windows/keys_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QPdfWriter>
#include <QPushButton>
#include <QScreen>
#include <QScrollBar>
#include <QTextBrowser>
#include <QTextDocument>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "ui/windows/menu_actions.h"
#include "ui/windows/start_folder.h"
#include "ui/windows/window_table.h"

namespace cutaway::ui {
namespace {

struct Group {
    QString title;
    QVector<std::pair<QString, QString>> rows;  // what, key
};

QVector<Group> groupsOf(const QMenuBar& menus) {
    QVector<Group> groups;
    for (const MenuAction& each : menuActions(menus)) {
        if (each.action->shortcut().isEmpty()) continue;
        if (groups.isEmpty() || groups.back().title != each.menu) groups.append({each.menu, {}});
        groups.back().rows.append({each.action->text().remove('&').remove(QStringLiteral("…")),
                                   each.action->shortcut().toString(QKeySequence::NativeText)});
    }
    // What windows do with keys of their own, which no menu names.
    const auto tr = [](const char* text) { return KeysDialog::tr(text); };
    for (const WindowRow& row : windowRows()) {
        if (row.keys.empty()) continue;
        groups.append({tr("In the %1 window").arg(tr(row.title)), {}});
        for (const KeyHint& hint : row.keys) groups.back().rows.append({tr(hint.what), tr(hint.key)});
    }
    groups.append({tr("In lists and texts"),
                   {{tr("Copy rows"), tr("Ctrl+C")},
                    {tr("Go to what the row names"), tr("Enter")},
                    {tr("Show folded lines"), tr("Enter")},
                    {tr("Choose columns"), tr("right-click on the header")}}});
    groups.append({tr("Everywhere"),
                   {{tr("Cancel what was started last"), tr("Esc")}, {tr("Next window, next field"), tr("Tab")}}});
    return groups;
}

QString table(const QVector<Group>& groups) {
    QString html;
    for (const Group& group : groups) {
        html += QStringLiteral("<tr><td colspan=\"2\"><h4>%1</h4></td></tr>").arg(group.title.toHtmlEscaped());
        for (const auto& [what, key] : group.rows)
            html += QStringLiteral(
                        "<tr><td style=\"white-space: nowrap\">%1</td><td style=\"white-space: nowrap; padding-left: "
                        "14px\"><b>%2</b></td></tr>")
                        .arg(what.toHtmlEscaped(), key.toHtmlEscaped());
    }
    return QStringLiteral("<table cellspacing=\"0\" cellpadding=\"2\">%1</table>").arg(html);
}

}  // namespace

QString keysPage(const QMenuBar& menus, bool twoColumns) {
    const QVector<Group> groups = groupsOf(menus);
    if (!twoColumns) return table(groups);
    qsizetype rows = 0, above = 0, split = 0;
    for (const Group& group : groups) rows += group.rows.size() + 2;
    for (; split < groups.size() && above * 2 < rows; ++split) above += groups[split].rows.size() + 2;
    return QStringLiteral("<table width=\"100%\"><tr><td>%1</td><td width=\"28\"></td><td>%2</td></tr></table>")
        .arg(table(groups.mid(0, split)), table(groups.mid(split)));
}

KeysDialog::KeysDialog(const QMenuBar& menus, QWidget* parent) : QDialog(parent) {
    setWindowTitle(tr("Keys"));
    auto* page = new QTextBrowser;
    page->setAccessibleName(tr("All keys"));
    page->setHtml(keysPage(menus));
    page->setFrameShape(QFrame::NoFrame);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    QPushButton* save = buttons->addButton(tr("Save as &PDF…"), QDialogButtonBox::ActionRole);
    save->setToolTip(tr("One page to print"));
    connect(save, &QPushButton::clicked, this, [this, page] {
        const QString path = beginAt(QFileDialog::getSaveFileName(
            this, tr("Save the keys"), startFolder() + QStringLiteral("/cutaway-keys.pdf"), tr("PDF (*.pdf)")));
        if (path.isEmpty()) return;
        QPdfWriter writer(path);
        writer.setTitle(tr("Cutaway: keys"));
        page->document()->print(&writer);
    });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* column = new QVBoxLayout(this);
    column->addWidget(page, 1);
    column->addWidget(buttons);
    // As wide as its lines, which do not wrap, if the screen is.
    const auto needed = [page] {
        page->document()->setTextWidth(-1);
        return static_cast<int>(std::ceil(page->document()->idealWidth())) +
               page->verticalScrollBar()->sizeHint().width();
    };
    const QMargins around = column->contentsMargins();
    const int most = this->screen()->availableGeometry().width() - around.left() - around.right();
    if (needed() > most) page->setHtml(keysPage(menus, false));
    page->setMinimumWidth(std::min(needed(), most));
    resize(minimumSizeHint().width(), fontMetrics().lineSpacing() * 42);
}

}  // namespace cutaway::ui
