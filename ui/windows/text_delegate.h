#pragma once
// Paints a cell of the text difference: line colour, word marks, no elision of indents.
#include <QStyledItemDelegate>

namespace cutaway::ui {

class TextDelegate : public QStyledItemDelegate {
    Q_OBJECT

  public:
    using QStyledItemDelegate::QStyledItemDelegate;
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& at) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& at) const override;
    /// By how many pixels the texts of both sides are scrolled; their line numbers stay.
    void setShift(int pixels) { m_shift = pixels; }

  private:
    int m_shift = 0;
};

}  // namespace cutaway::ui
