#pragma once
// A sentence in full, on as many lines as its width takes. Tool bars give wrapped labels the height of their narrowest
// form, so this one tells layouts the height that it has now.
#include <QLabel>
#include <QResizeEvent>
#include <algorithm>

namespace cutaway::ui {

class SentenceLabel : public QLabel {
  public:
    explicit SentenceLabel(QWidget* parent = nullptr) : QLabel(parent) {
        setObjectName(QStringLiteral("sentence"));
        setWordWrap(true);
        setTextFormat(Qt::PlainText);
        setTextInteractionFlags(Qt::TextSelectableByMouse);
        setContentsMargins(10, 1, 10, 2);
        fit();
    }
    void setText(const QString& text) {
        QLabel::setText(text);
        if (text.isEmpty()) hide();
        else if (parentWidget()) show();
        fit();
    }
    bool hasHeightForWidth() const override { return false; }
    QSize sizeHint() const override { return {0, m_height}; }
    QSize minimumSizeHint() const override { return sizeHint(); }

  protected:
    void resizeEvent(QResizeEvent* event) override {
        QLabel::resizeEvent(event);
        // Not while the layout that gave the width is at work.
        if (event->oldSize().width() != width())
            QMetaObject::invokeMethod(
                this, [this] { fit(); }, Qt::QueuedConnection);
    }

  private:
    void fit() {
        constexpr int kNarrow = 300;  // pixels, which no window has: a layout on its way
        m_height = std::max(width() > kNarrow ? heightForWidth(width()) : 0, fontMetrics().lineSpacing() + 3);
        if (m_height != minimumHeight()) setFixedHeight(m_height);
    }
    int m_height = 0;
};

}  // namespace cutaway::ui
