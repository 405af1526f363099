#pragma once
// Samples of what the canvas draws, as widgets.
#include <QWidget>
#include <functional>

#include "ui/windows/legend.h"

namespace cutaway::ui {

/// A sample of how the canvas draws one state.
class LegendMark : public QWidget {
  public:
    using Paint = std::function<void(QPainter&, const QRectF&, const GraphColors&)>;
    LegendMark(QString word, const QString& tip, Paint paint, QWidget* parent)
        : QWidget(parent), m_word(std::move(word)), m_paint(std::move(paint)) {
        setToolTip(tip);
        setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
        hide();  // until it is of use
    }
    QSize sizeHint() const override { return legendMarkSize(m_word, QFontMetricsF(font())).toSize(); }
    QSize minimumSizeHint() const override { return sizeHint(); }

  protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        m_paint(painter, rect(), GraphColors::of(palette()));
    }

  private:
    QString m_word;
    Paint m_paint;
};

template <class State>
LegendMark* markOf(State state, const QString& tip, QWidget* parent) {
    return new LegendMark(
        legendWord(state), tip,
        [state](QPainter& painter, const QRectF& box, const GraphColors& colors) {
            paintLegendMark(painter, box, state, colors);
        },
        parent);
}

}  // namespace cutaway::ui
