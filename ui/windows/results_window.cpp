#include "ui/windows/results_window.h"

#include <QLabel>
#include <QVBoxLayout>

#include "ui/models/units.h"
#include "ui/windows/columns.h"
#include "ui/windows/tables.h"

namespace cutaway::ui {

ResultsWindow::ResultsWindow(const WindowRow& tableRow, const WindowParts& parts)
    : Window(tableRow),
      m_outputs(*new OutputsModel(this)),
      m_verdict(new QLabel),
      m_table(makeList(m_outputs, OutputsModel::SortRole, tr("Outputs"))) {
    m_verdict->setWordWrap(true);
    new Columns(m_table->horizontalHeader(), objectName());
    auto* page = new QWidget;
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(4, 6, 4, 4);
    column->addWidget(m_verdict);
    column->addWidget(m_table, 1);
    setWidget(page);
    const auto clear = [this] {
        m_outputs.setOutputs({});
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
    text += report.repeats > 1 ? tr("median %1, fastest %2 of %3")
                                     .arg(durationText(report.medianMilliseconds), durationText(report.minMilliseconds))
                                     .arg(report.repeats)
                               : durationText(report.medianMilliseconds);
    text += QStringLiteral(" · ");
    text += !report.compared ? tr("nothing to compare with")
            : report.matches ? tr("✓ outputs match")
                             : tr("✗ outputs differ");
    if (report.training) text += QChar('\n') + trainingText(*report.training);
    for (const auto* sentences : {&report.refused, &report.notes})
        for (const std::string& sentence : *sentences) text += QChar('\n') + QString::fromStdString(sentence);
    m_verdict->setText(text);
    show();
    raise();
}

}  // namespace cutaway::ui
