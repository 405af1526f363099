#include "ui/session/minify_search.h"

namespace cutaway::ui {

void MinifySearch::start(const MinifyOptions& options) {
    if (isRunning()) return;
    const int generation = ++m_generation;
    m_state = {};
    m_best.clear();
    m_graph.reset();
    m_report.reset();
    m_problem.clear();
    m_lines.clear();
    m_stopping = false;
    m_since.start();
    m_cancel = m_queue.post(
        "minify",
        [this, options, generation](const Progress& progress) {
            const auto watch = [this, generation](const MinifyState& state) {
                QMetaObject::invokeMethod(
                    this,
                    [this, generation, state] {
                        if (generation == m_generation) take(state);
                    },
                    Qt::QueuedConnection);
            };
            auto report = std::make_shared<Result<MinifyReport>>(m_source.minify(options, watch, progress));
            QMetaObject::invokeMethod(
                this,
                [this, generation, report] {
                    if (generation == m_generation) ended(*report);
                },
                Qt::QueuedConnection);
        },
        {},
        [this, generation](const Error& error) {
            QMetaObject::invokeMethod(
                this,
                [this, generation, error] {
                    if (generation == m_generation) ended(error);
                },
                Qt::QueuedConnection);
        });
    emit bestChanged();
    emit changed();
}

void MinifySearch::stop() {
    if (!isRunning() || m_stopping) return;
    m_stopping = true;  // the best is written and tried once more
    m_cancel->cancel();
    emit changed();
}

void MinifySearch::clear() {
    if (m_cancel) m_cancel->cancel();
    m_cancel.reset();
    ++m_generation;
    m_state = {};
    m_best.clear();
    m_graph.reset();
    m_report.reset();
    m_problem.clear();
    m_lines.clear();
    m_stopping = false;
    emit bestChanged();
    emit changed();
}

void MinifySearch::take(MinifyState state) {
    if (!state.logLine.empty()) m_lines << QString::fromStdString(state.logLine);
    const bool fresh = !state.best.empty();
    if (fresh) {
        m_best = QString::fromStdString(state.best);
        m_graph = state.graph;
    }
    m_state = std::move(state);
    if (fresh) emit bestChanged();
    emit changed();
}

void MinifySearch::ended(const Result<MinifyReport>& report) {
    m_cancel.reset();
    m_stopping = false;
    if (report) m_report = *report;
    else m_problem = QString::fromStdString(report.error().text());
    emit changed();
}

}  // namespace cutaway::ui
