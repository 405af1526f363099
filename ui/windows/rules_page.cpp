#include "ui/windows/rules_page.h"

#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSettings>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "cutaway/files.h"
#include "ui/windows/code_view.h"

namespace cutaway::ui {
namespace {

constexpr int kKnownFiles = 10;
constexpr qint64 kShownBytes = 1 << 20;  // that are read at most, since the file may be none of rules

QString filesKey() { return QStringLiteral("compile/ruleFiles"); }

/// One name for a file that has several.
QString canonical(const QString& path) {
    const QFileInfo file(path);
    return file.exists() ? file.canonicalFilePath() : file.absoluteFilePath();
}

bool isFrom(const UserRules& rules, const QString& path) {
    return !rules.path.empty() && canonical(QString::fromStdString(rules.path)) == canonical(path);
}

/// Opens a file for reading; why not, as a sentence, or empty.
QString openToRead(QFile& file) {
    const QFileInfo info(file);
    if (!info.exists()) return RulesPage::tr("It does not exist.");
    // A pipe would wait for its writer.
    if (!info.isFile()) return RulesPage::tr("It is not a regular file.");
    return file.open(QIODevice::ReadOnly) ? QString() : file.errorString();
}

}  // namespace

RulesPage::RulesPage(const std::vector<PassInfo>& passes, const CompileRequest& from, QWidget* parent)
    : QWidget(parent), m_files(new QListWidget), m_off(new QLineEdit) {
    m_files->setAccessibleName(tr("Files with rules"));
    QStringList off;
    for (const std::string& name : from.disabledPasses)
        if (std::none_of(passes.begin(), passes.end(), [&](const PassInfo& pass) { return pass.name == name; }))
            off << QString::fromStdString(name);
    m_off->setText(off.join(' '));
    m_off->setPlaceholderText(tr("RULE or PASS/RULE"));
    auto* add = new QPushButton(tr("&Add…"));
    auto* remove = new QPushButton(tr("&Remove"));
    connect(add, &QPushButton::clicked, this, [this] {
        for (const QString& path :
             QFileDialog::getOpenFileNames(this, tr("Rules"), {}, tr("Rules (*.txt *.rules);;All files (*)")))
            addFile(path, true);
    });
    connect(remove, &QPushButton::clicked, this, [this] { delete m_files->takeItem(m_files->currentRow()); });
    const auto showRemove = [this, remove] {
        remove->setEnabled(m_files->currentItem());
        remove->setToolTip(m_files->currentItem() ? tr("Takes the file off this list")
                                                  : tr("Choose a file of the list first."));
    };
    connect(m_files, &QListWidget::currentItemChanged, this, showRemove);
    showRemove();
    auto* says =
        new QLabel(tr("Rules of your own, in the form that `cutaway-cli rules` prints. Checked files are read "
                      "again at every compile."));
    says->setWordWrap(true);
    auto* column = new QVBoxLayout(this);
    column->addWidget(says);
    column->addWidget(makeView(), 1);
    auto* row = new QHBoxLayout;
    row->addWidget(add);
    row->addWidget(remove);
    row->addStretch();
    column->addLayout(row);
    auto* form = new QFormLayout;
    form->addRow(tr("Rules switched &off"), m_off);
    column->addLayout(form);
    for (const QString& path : QSettings().value(filesKey()).toStringList())
        addFile(path, std::any_of(from.userRules.begin(), from.userRules.end(),
                                  [&](const UserRules& rules) { return isFrom(rules, path); }));
}

/// The files, and below them what is in the current one.
QWidget* RulesPage::makeView() {
    auto* view = new CodeView(Language::Rules, tr("Rules in the current file"),
                              tr("The rules in the current file are shown here."));
    connect(m_files, &QListWidget::currentItemChanged, view, [view](const QListWidgetItem* item) {
        QFile file(item ? item->text() : QString());
        if (!item) return view->setCode({});
        const QString problem = openToRead(file);
        view->setCode(problem.isEmpty() ? QString::fromUtf8(file.read(kShownBytes))
                                        : tr("# This file cannot be read. %1").arg(problem));
    });
    auto* areas = new QSplitter(Qt::Vertical);
    areas->addWidget(m_files);
    areas->addWidget(view);
    areas->setStretchFactor(1, 2);
    areas->setChildrenCollapsible(false);
    return areas;
}

void RulesPage::addFile(const QString& path, bool used) {
    auto* item = new QListWidgetItem(path, m_files);
    item->setToolTip(path);
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(used ? Qt::Checked : Qt::Unchecked);
}

QString RulesPage::addTo(CompileRequest& request) const {
    static const QRegularExpression gap(QStringLiteral("[\\s;]+"));
    for (const QString& rule : m_off->text().split(gap, Qt::SkipEmptyParts))
        request.disabledPasses.push_back(rule.toStdString());
    for (int row = 0; row < m_files->count(); ++row) {
        if (m_files->item(row)->checkState() != Qt::Checked) continue;
        const QString path = m_files->item(row)->text();
        auto text = readTextFile(path.toStdString(), kMaxSettingsFile);
        if (!text) return QString::fromStdString(text.error().text());
        request.userRules.push_back(
            {QFileInfo(path).completeBaseName().toStdString(), std::move(*text), path.toStdString()});
    }
    return {};
}

void RulesPage::remember() const {
    QStringList files;
    for (int row = 0; row < std::min(kKnownFiles, m_files->count()); ++row) files << m_files->item(row)->text();
    QSettings().setValue(filesKey(), files);
}

}  // namespace cutaway::ui
