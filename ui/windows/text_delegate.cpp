#include "ui/windows/text_delegate.h"

#include <QPainter>
#include <QTextLayout>

#include "ui/graph/graph_painter.h"
#include "ui/models/syntax.h"
#include "ui/models/text_model.h"

namespace cutaway::ui {
namespace {

constexpr int kTextPad = 4;

/// Which state colours the cell: of an edited line in two panes the old side is removed, the new side added.
Change stateOf(const QModelIndex& at) {
    const auto kind = static_cast<DiffLine::Kind>(at.data(TextModel::KindRole).toInt());
    switch (kind) {
        case DiffLine::Kind::Same: return Change::Unchanged;
        case DiffLine::Kind::Added: return Change::Added;
        case DiffLine::Kind::Removed: return Change::Removed;
        case DiffLine::Kind::Edited: return at.column() < TextModel::Third ? Change::Removed : Change::Added;
    }
    return Change::Unchanged;
}

bool isNumber(const QModelIndex& at) {
    const auto* model = qobject_cast<const TextModel*>(at.model());
    const bool sides = model && model->layout() == TextModel::Layout::SideBySide;
    return at.column() == TextModel::First ||
           (sides ? at.column() == TextModel::Third : at.column() == TextModel::Second);
}

/// One line in syntax colours; the words that differ, which have marks, have the colour of their state, `ink`.
void layOut(QTextLayout& code, const QVector<MarkedRange>& marks, const QColor& ink, const QPalette& palette) {
    const SyntaxColors colors = SyntaxColors::of(palette);
    LineState state = kNothingOpen;
    QVector<QTextLayout::FormatRange> formats;
    const auto color = [&](int start, int length, const QColor& with) {
        QTextCharFormat format;
        format.setForeground(with);
        formats.append({start, length, format});
    };
    for (const TokenRange& part : tokensOf(code.text(), Language::Python, state))
        color(part.start, part.length, colors[part.token]);
    for (const MarkedRange& mark : marks) color(mark.start, mark.length, ink);
    QTextOption option;
    option.setWrapMode(QTextOption::NoWrap);
    code.setTextOption(option);
    code.setFormats(formats);
    code.setCacheEnabled(true);
    code.beginLayout();
    code.createLine();
    code.endLayout();
}

}  // namespace

void TextDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& at) const {
    const GraphColors colors = GraphColors::of(option.palette);
    const Change change = stateOf(at);
    const QString text = at.data().toString();
    const auto* model = qobject_cast<const TextModel*>(at.model());
    const bool sides = model && model->layout() == TextModel::Layout::SideBySide;
    const bool blankSide = sides && change != Change::Unchanged && text.isEmpty();
    painter->save();
    painter->setClipRect(option.rect);
    // The view has painted the style's selection, on which the states' colours cannot be read.
    painter->fillRect(option.rect, option.palette.color(QPalette::Base));
    if (change != Change::Unchanged && !blankSide) painter->fillRect(option.rect, colors[change].fill);
    const bool selected = option.state & QStyle::State_Selected;
    const bool scrolls = sides && !isNumber(at);
    const QRect inner = option.rect.adjusted(kTextPad - (scrolls ? m_shift : 0), 0, -kTextPad, 0);
    const bool folded = at.data(TextModel::FoldRole).toInt() > 0;
    const bool isText =
        at.column() == (sides ? TextModel::Second : TextModel::Fourth) || at.column() == TextModel::Fourth;
    QColor ink = change == Change::Unchanged ? option.palette.color(QPalette::Text) : colors[change].text;
    if (folded || isNumber(at)) ink = option.palette.color(QPalette::PlaceholderText);
    painter->setFont(option.font);
    painter->setPen(ink);
    const auto marks = isText ? at.data(TextModel::MarksRole).value<QVector<MarkedRange>>() : QVector<MarkedRange>();
    const bool colored = isText && !folded;
    QTextLayout code(colored ? text : QString(), option.font);
    if (colored) layOut(code, marks, ink, option.palette);
    for (const MarkedRange& mark : marks) {
        const int x = inner.left() + static_cast<int>(code.lineAt(0).cursorToX(mark.start));
        const int width = inner.left() + static_cast<int>(code.lineAt(0).cursorToX(mark.start + mark.length)) - x;
        QColor strong = colors[change].line;
        strong.setAlphaF(0.38f);
        painter->fillRect(QRect(x, option.rect.top() + 1, width, option.rect.height() - 2), strong);
        painter->fillRect(QRect(x, option.rect.bottom() - 1, width, 1), colors[change].line);
    }
    if (selected) {
        QColor tint = option.palette.color(QPalette::Highlight);
        // Light enough that the state's colour stays; the lines tell the current row.
        tint.setAlphaF(change == Change::Unchanged ? 0.22f : 0.10f);
        painter->fillRect(option.rect, tint);
        painter->fillRect(QRect(option.rect.left(), option.rect.top(), option.rect.width(), 1),
                          option.palette.color(QPalette::Highlight));
        painter->fillRect(QRect(option.rect.left(), option.rect.bottom(), option.rect.width(), 1),
                          option.palette.color(QPalette::Highlight));
    }
    const Qt::Alignment align = isNumber(at) ? Qt::AlignRight : Qt::AlignLeft;
    if (colored)
        code.draw(painter, QPointF(inner.left(), inner.top() + (inner.height() - code.boundingRect().height()) / 2));
    else painter->drawText(inner, static_cast<int>(align | Qt::AlignVCenter | Qt::TextSingleLine), text);
    painter->restore();
}

QSize TextDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& at) const {
    const QFontMetrics metrics(option.font);
    return {metrics.horizontalAdvance(at.data().toString()) + 2 * kTextPad + 2, metrics.height() + 2};
}

}  // namespace cutaway::ui
