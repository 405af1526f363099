#include "ui/windows/results_window.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/graph/graph_colors.h"
#include "ui/models/units.h"
#include "ui/windows/columns.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {

ResultsWindow::ResultsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_outputs(*new OutputsModel(this)),
      m_verdict(new QLabel),
      m_match(new QLabel),
      m_find(new QPushButton(tr("&Find the Rewrite…"))),
      m_table(makeList(m_outputs, OutputsModel::SortRole, tr("Outputs"))) {
    m_verdict->setWordWrap(true);
    new Columns(m_table->horizontalHeader(), objectName());
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    m_find->setToolTip(tr("Find the rewrite that broke the graph"));
    m_find->setAutoDefault(false);
    QFont bold = m_match->font();
    bold.setBold(true);
    m_match->setFont(bold);
    m_match->setObjectName(QStringLiteral("match"));
    m_match->setAutoFillBackground(true);
    m_match->setMargin(3);
    auto* row = new QHBoxLayout;
    row->addWidget(m_match);
    row->addWidget(m_find);
    row->addStretch();
    connect(m_find, &QPushButton::clicked, this, &ResultsWindow::bisectWanted);
    column->addWidget(m_verdict);
    column->addLayout(row);
    column->addWidget(m_table, 1);
    setWidget(page);
    const auto clear = [this] {
        m_outputs.setOutputs({});
        m_match->hide();
        m_find->hide();
        m_verdict->setText(
            tr("Execute the compiled model with Run > Execute (F5): its outputs are listed here and compared with what "
               "is expected."));
    };
    clear();
    connect(&parts.controller, &SessionController::modelOpened, this, clear);
    connect(&parts.controller, &SessionController::ran, this,
            [this, &controller = parts.controller](RunId run, const std::shared_ptr<const RunReport>& report) {
                showReport(*report, controller.runOf(run) ? controller.runOf(run)->title() : QString());
            });
}

void ResultsWindow::showReport(const RunReport& report, const QString& run) {
    m_outputs.setOutputs(report.outputs, report.written,
                         report.training ? report.training->gradients : std::vector<OutputReport>());
    fitColumns(*m_table);
    QString text = run + QStringLiteral(" · ") + tr("inputs: %1").arg(QString::fromStdString(report.inputsFrom)) +
                   QStringLiteral(" · ");
    text += timesText(report);
    if (!report.compared) text += QStringLiteral(" · ") + tr("nothing to compare with");
    m_match->setText(report.matches ? tr("✓ outputs match") : tr("✗ outputs differ"));
    const ChangeColors colors = GraphColors::of(palette())[report.matches ? Change::Added : Change::Removed];
    QPalette own = palette();
    own.setColor(QPalette::Window, colors.fill);
    own.setColor(QPalette::WindowText, colors.text);
    m_match->setPalette(own);
    m_match->setVisible(report.compared);
    m_find->setVisible(report.compared && !report.matches);
    if (report.training) text += QChar('\n') + trainingText(*report.training);
    for (const auto* sentences : {&report.refused, &report.notes})
        for (const std::string& sentence : *sentences) text += QChar('\n') + QString::fromStdString(sentence);
    m_verdict->setText(text);
    show();
    raise();
}

}  // namespace cutaway::ui
