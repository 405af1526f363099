#pragma once
// Checked runs for the windows: one at a time, on a thread of its own; rows arrive while it goes on.
#include <QElapsedTimer>
#include <QMutex>
#include <QObject>
#include <memory>
#include <optional>

#include "cutaway/jobs.h"
#include "ui/graph/heat_marks.h"
#include "ui/session/source.h"

namespace cutaway::ui {

/// The value of a node on one side of a checked run.
struct ShownValue {
    NodeKey node = NodeKey::None;
    ValueSide side = ValueSide::Checked;
    std::shared_ptr<const NodeValue> value;  // null: `problem` says why
    QString problem;
};

class CheckedRuns : public QObject {
    Q_OBJECT

  public:
    explicit CheckedRuns(Source& source) : m_source(source) {}

    /// Checks the graph at a place; its rows replace those of the run before.
    void start(const Place& place, const CheckedRunOptions& options);
    /// The first changed step of a run whose graph diverges.
    void findFirst(RunId run, const CheckedRunOptions& options);
    /// The gradients of a training run against central differences: rows are the calls whose derivative is not right.
    void checkGradients(RunId run);
    /// Rows that have come stay.
    void stop();
    void clear();
    /// Of the place that was checked last.
    void readValue(const Place& place, NodeKey node, ValueSide side);

    bool isRunning() const { return m_cancel != nullptr; }
    const std::optional<Place>& place() const { return m_place; }
    const std::vector<NodeNumbers>& rows() const { return m_rows; }
    /// Once it has ended by itself.
    const std::optional<CheckedRun>& result() const { return m_result; }
    /// What it found, or how far it is, in a sentence.
    const QString& summary() const { return m_summary; }
    double fraction() const { return m_fraction; }
    QElapsedTimer since() const { return m_since; }
    /// Errors as marks on the graph; null while they are switched off or there are none.
    std::shared_ptr<const HeatMarks> heat() const { return m_heatShown ? m_heat : nullptr; }
    bool isHeatShown() const { return m_heatShown; }
    void showHeat(bool shown);

  signals:
    /// Another run has begun or everything is gone: all rows are new.
    void reset();
    void rowsAdded();
    /// Running or not, summary, result.
    void changed();
    void heatChanged();
    void valueShown(std::shared_ptr<const cutaway::ui::ShownValue> value);

  private:
    void begin(const QString& doing);
    void takeRows(int generation);
    void ended(CheckedRun run, const QString& summary);
    void failed(const Error& error);
    std::function<void(double, const std::string&)> reporter();

    Source& m_source;
    std::optional<Place> m_place;
    std::vector<NodeNumbers> m_rows;
    std::optional<CheckedRun> m_result;
    std::shared_ptr<const HeatMarks> m_heat;
    bool m_heatShown = true;
    QString m_summary;
    double m_fraction = -1;
    QElapsedTimer m_since;
    int m_generation = 0, m_valueGeneration = 0;
    std::shared_ptr<CancelToken> m_cancel;
    QMutex m_mutex;
    std::vector<NodeNumbers> m_fresh;  // guarded; not yet in m_rows
    JobQueue m_queue, m_values;        // last, so destroyed first: their threads use the rest
};

}  // namespace cutaway::ui
