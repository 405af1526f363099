#pragma once
// A label of one line that ends in "…" where there is no room, and says all of it as its tool tip and to screen
// readers.
#include <QLabel>
#include <QPainter>
#include <QStyle>

namespace cutaway::ui {

class ElidedLabel : public QLabel {
  public:
    using QLabel::QLabel;

    void setText(const QString& text) {
        QLabel::setText(text);
        setToolTip(text);
        setAccessibleName(text);
    }
    QSize minimumSizeHint() const override {
        return {fontMetrics().horizontalAdvance('x') * 6, QLabel::minimumSizeHint().height()};
    }

  protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        const QString shown = fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width());
        style()->drawItemText(&painter, contentsRect(), static_cast<int>(alignment()), palette(), isEnabled(), shown,
                              foregroundRole());
    }
};

}  // namespace cutaway::ui
