#pragma once
// A small plot of one line: points in order, some of them marked. The pointer or the arrow keys go from point to point,
// a click or Enter chooses one. Knows nothing of what the numbers mean.
#include <QWidget>
#include <vector>

namespace cutaway::ui {

struct PlotPoint {
    double x = 0, y = 0;
    QString said;  // its numbers, in words
};
/// Beside the line: a place of interest with its name.
struct PlotMark {
    double x = 0, y = 0;
    QString name;
    bool filled = true;
};
struct Plot {
    std::vector<PlotPoint> points;
    QString across, up;        // what the axes are
    QString least, most, top;  // what stands at the ends of the axis across; the largest value up
    bool stepped = false;      // a value holds until the next point; the area below is filled
    bool cornered = false;     // the line goes across, then up or down; points are chosen one by one
    double divider = -1;       // a line between two parts, at that x; negative: none
};

class PlotView : public QWidget {
    Q_OBJECT

  public:
    explicit PlotView(const QString& name, QWidget* parent = nullptr);

    void setPlot(Plot plot);
    /// What stands in place of a plot without points.
    void setHint(const QString& hint);
    void setMarks(std::vector<PlotMark> marks);
    /// The point that belongs to what is current elsewhere; -1 for none.
    void setCurrent(int point);
    int current() const { return m_current; }
    const Plot& plot() const { return m_plot; }
    const std::vector<PlotMark>& marks() const { return m_marks; }
    /// Where a point is drawn.
    QPointF positionOf(int point) const;
    QSize sizeHint() const override { return {300, 150}; }
    QSize minimumSizeHint() const override { return {120, 90}; }

  signals:
    void chosen(int point);

  protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

  private:
    QRectF area() const;
    QPointF toWidget(double x, double y) const;
    int nearest(QPointF at) const;
    void setHovered(int point);
    void paintLine(class QPainter& painter) const;
    void paintMarks(class QPainter& painter) const;
    void paintWords(class QPainter& painter) const;

    Plot m_plot;
    std::vector<PlotMark> m_marks;
    QString m_hint;
    double m_widest = 1, m_highest = 1, m_first = 0;
    int m_hovered = -1, m_current = -1;
};

}  // namespace cutaway::ui
