#pragma once
// The search for the rewrite that broke the graph, as a strip: all rewrites from left to right, parted by stage and
// pass, with a mark for every test (a tick for good, a cross for bad) and the range that is left. Hidden where there
// was not a search in the run on show.
#include <QWidget>
#include <memory>

#include "cutaway/bisect.h"

namespace cutaway::ui {

class Selection;
class SessionController;

class BisectStrip : public QWidget {
    Q_OBJECT

  public:
    BisectStrip(SessionController& controller, Selection& selection, QWidget* parent = nullptr);

    /// Null: nothing is known yet.
    void setReport(RunId run, std::shared_ptr<const BisectReport> report);
    /// What stands below the bar: what is known so far, at last the culprit and its numbers.
    QString sentence() const;
    /// A test and its answer in words.
    QString describe(int probe) const;
    QRectF markOf(int probe) const;
    /// The part of the bar in which the culprit still may be.
    QRectF rangeLeft() const;
    int current() const { return m_current; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

  protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

  private:
    QRectF bar() const;
    double across(int rewrites) const;
    int probeAt(QPointF at) const;
    std::vector<int> fromLeft() const;
    void setCurrent(int probe);
    void goTo(int probe);
    void follow();
    void paintSections(class QPainter& painter) const;
    void paintMarks(class QPainter& painter) const;

    SessionController& m_controller;
    Selection& m_selection;
    RunId m_run = -1;
    std::shared_ptr<const BisectReport> m_report;
    int m_current = -1;
};

}  // namespace cutaway::ui
