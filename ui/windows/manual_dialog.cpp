#include "ui/windows/manual_dialog.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QSplitter>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <algorithm>

#include "cutaway/program.h"

namespace cutaway::ui {

QVector<ManualPage> manualPages(const QString& manual) {
    constexpr int kDeepest = 3;  // headings below stay within their page
    QVector<ManualPage> pages;
    bool code = false;
    for (const QString& line : manual.split('\n')) {
        if (line.startsWith(QLatin1String("```"))) code = !code;
        const auto* const end = std::find_if(line.begin(), line.end(), [](QChar c) { return c != '#'; });
        const auto level = static_cast<int>(end - line.begin());
        if (!code && level > 0 && level <= kDeepest && line.mid(level).startsWith(' '))
            pages.append({line.mid(level + 1), {}, level});
        if (!pages.isEmpty()) pages.last().text += line + '\n';
    }
    return pages;
}

ManualDialog::ManualDialog(QWidget* parent)
    : QDialog(parent),
      m_field(new QLineEdit),
      m_list(new QListWidget),
      m_page(new QTextBrowser),
      m_problem(new QLabel) {
    setObjectName(QStringLiteral("manual"));
    setWindowTitle(tr("Manual"));
    m_field->setPlaceholderText(tr("Find in the manual"));
    m_field->setAccessibleName(tr("Find in the manual"));
    m_field->setClearButtonEnabled(true);
    m_list->setAccessibleName(tr("Pages"));
    m_list->setUniformItemSizes(true);
    m_page->setAccessibleName(tr("Page of the manual"));
    m_page->setOpenLinks(false);
    m_problem->setWordWrap(true);
    m_problem->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_problem->hide();
    auto* left = new QWidget;
    auto* leftColumn = new QVBoxLayout(left);
    leftColumn->setContentsMargins(0, 0, 0, 0);
    leftColumn->addWidget(m_field);
    leftColumn->addWidget(m_list, 1);
    auto* areas = new QSplitter;
    areas->addWidget(left);
    areas->addWidget(m_page);
    areas->setStretchFactor(1, 1);
    areas->setChildrenCollapsible(false);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    auto* column = new QVBoxLayout(this);
    column->addWidget(m_problem);
    column->addWidget(areas, 1);
    column->addWidget(buttons);
    const int letter = fontMetrics().averageCharWidth();
    resize(letter * 140, fontMetrics().lineSpacing() * 40);
    areas->setSizes({letter * 36, letter * 104});
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_field, &QLineEdit::textChanged, this, &ManualDialog::filter);
    connect(m_list, &QListWidget::currentRowChanged, this, &ManualDialog::showCurrent);
    connect(m_page, &QTextBrowser::anchorClicked, this, &ManualDialog::follow);
    read();
}

void ManualDialog::read() {
    const auto program = findHelper("cutaway-cli", "CUTAWAY_CLI");
    if (!program) return fail(QString::fromStdString(program.error().text()));
    connect(&m_printer, &QProcess::errorOccurred, this, [this] { fail(m_printer.errorString()); });
    connect(&m_printer, &QProcess::finished, this, [this](int status) {
        if (status != 0) return fail(QString::fromUtf8(m_printer.readAllStandardError()));
        m_pages = manualPages(QString::fromUtf8(m_printer.readAllStandardOutput()));
        filter();
        showPage(m_wanted);
    });
    m_printer.start(QString::fromStdString(*program), {QStringLiteral("manual")});
}

/// Lists the pages that hold every word.
void ManualDialog::filter() {
    const QStringList words = m_field->text().split(' ', Qt::SkipEmptyParts);
    m_list->clear();
    for (int i = 0; i < m_pages.size(); ++i) {
        const bool holds = std::all_of(words.begin(), words.end(), [&](const QString& word) {
            return m_pages[i].text.contains(word, Qt::CaseInsensitive);
        });
        if (!holds) continue;
        auto* item = new QListWidgetItem(QString(2 * (m_pages[i].level - 1), ' ') + m_pages[i].title, m_list);
        item->setData(Qt::UserRole, i);
    }
    m_list->setCurrentRow(0);
}

void ManualDialog::showCurrent() {
    const QListWidgetItem* item = m_list->currentItem();
    m_page->setMarkdown(item ? m_pages[item->data(Qt::UserRole).toInt()].text : tr("No page holds these words."));
}

/// A page links to another by its title, with hyphens for spaces: "steps-window.md".
void ManualDialog::follow(const QUrl& link) { showPage(link.path().section('.', 0, 0).replace('-', ' ')); }

void ManualDialog::showPage(const QString& title) {
    m_wanted = title;
    m_field->clear();
    for (int i = 0; i < m_pages.size(); ++i)
        if (m_pages[i].title.compare(title, Qt::CaseInsensitive) == 0) return m_list->setCurrentRow(i);
}

void ManualDialog::fail(const QString& problem) {
    m_problem->setText(tr("The manual cannot be shown: %1").arg(problem.trimmed()));
    m_problem->show();
}

}  // namespace cutaway::ui
