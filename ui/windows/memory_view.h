#pragma once
// The picture of a memory plan: calls across, bytes up, a bar for each value, the bytes that live as a line, the peak
// marked. The pointer or the arrow keys go from bar to bar, a click or Enter chooses one; the wheel zooms in on calls.
#include <QWidget>

#include "ui/models/memory_chart.h"

class QPainter;

namespace cutaway::ui {

class MemoryView : public QWidget {
    Q_OBJECT

  public:
    explicit MemoryView(QWidget* parent = nullptr);

    void setChart(MemoryChart chart);
    /// What stands in place of an empty chart.
    void setHint(const QString& hint);
    /// The value that belongs to what is current elsewhere, scrolled to; -1 for none.
    void setCurrent(int value);
    /// The call that is looked at; -1 for none.
    void setCall(int call);
    void fit();
    int current() const { return m_current; }
    int hovered() const { return m_hovered; }
    /// Where a value is drawn, at least a pixel in each direction; may lie outside when zoomed in.
    QRectF rectOf(int value) const;
    double callsShown() const { return m_to - m_from; }
    QSize sizeHint() const override { return {500, 260}; }
    QSize minimumSizeHint() const override { return {160, 120}; }

  signals:
    /// `value` -1: the click met none.
    void chosen(int value, int call);

  protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

  private:
    QRectF area() const;
    double xOf(double call) const;
    double yOf(double byte) const;
    int callAt(double x) const;
    /// The value under the pointer, with a pixel or two to spare: bars may be thinner.
    int valueAt(QPointF at) const;
    void setHovered(int value);
    void reveal(int value);
    void zoom(double factor, double call);
    void showCalls(double from, double to);
    bool walk(int key);
    void paintBars(QPainter& painter) const;
    void paintLine(QPainter& painter) const;
    void paintMarks(QPainter& painter) const;
    void paintWords(QPainter& painter) const;
    void paintLegend(QPainter& painter, const QRectF& foot) const;

    MemoryChart m_chart;
    QString m_hint;
    double m_from = 0, m_to = 1;  // calls shown
    int m_hovered = -1, m_current = -1, m_call = -1;
};

}  // namespace cutaway::ui
