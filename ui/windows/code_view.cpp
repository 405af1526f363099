#include "ui/windows/code_view.h"

#include <QEvent>
#include <QFontDatabase>
#include <QSyntaxHighlighter>
#include <QTextBlock>

namespace cutaway::ui {

class CodeView::Highlighter : public QSyntaxHighlighter {
  public:
    Highlighter(CodeView& view, Language language)
        : QSyntaxHighlighter(view.document()), m_view(view), m_language(language) {}

    void color(int first, int last) {
        m_first = first;
        m_last = last;
        for (QTextBlock block = document()->findBlockByNumber(first); block.isValid() && block.blockNumber() <= last;
             block = block.next()) {
            const auto* done = static_cast<const Colored*>(block.userData());
            if (!done || done->palette != m_view.palette().cacheKey()) rehighlightBlock(block);
        }
    }

  protected:
    void highlightBlock(const QString& text) override {
        LineState state = std::max(previousBlockState(), kNothingOpen);
        const int line = currentBlock().blockNumber();
        const bool seen = line >= m_first && line <= m_last;
        // Of lines that are not visible only the state that they leave for the lines below is computed.
        if (!seen && state == kNothingOpen && !mayStayOpen(text)) return setCurrentBlockState(kNothingOpen);
        const QVector<TokenRange> parts = tokensOf(text, m_language, state);
        setCurrentBlockState(state);
        if (!seen) return;
        setCurrentBlockUserData(new Colored(m_view.palette().cacheKey()));
        const SyntaxColors colors = SyntaxColors::of(m_view.palette());
        for (const TokenRange& part : parts) setFormat(part.start, part.length, colors[part.token]);
    }

  private:
    struct Colored : QTextBlockUserData {
        explicit Colored(qint64 key) : palette(key) {}
        qint64 palette;
    };
    static bool mayStayOpen(const QString& text) {
        return text.contains(QLatin1String("/*")) || text.contains(QLatin1String("'''")) ||
               text.contains(QLatin1String("\"\"\""));
    }

    CodeView& m_view;
    Language m_language;
    int m_first = 0, m_last = -1;
};

CodeView::CodeView(Language language, const QString& name, const QString& hint, QWidget* parent)
    : QPlainTextEdit(parent) {
    setReadOnly(true);
    setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    setLineWrapMode(QPlainTextEdit::NoWrap);
    setTabChangesFocus(true);
    setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    setAccessibleName(name);
    setPlaceholderText(hint);
    m_highlighter = new Highlighter(*this, language);
    connect(this, &QPlainTextEdit::updateRequest, this, &CodeView::colorVisible);
}

void CodeView::setCode(const QString& code) {
    setPlainText(code);
    colorVisible();
}

void CodeView::markLine(int line) {
    const QTextBlock block = document()->findBlockByNumber(line);
    if (line < 0 || !block.isValid()) return setExtraSelections({});
    QTextEdit::ExtraSelection mark;
    QColor color = palette().color(QPalette::Highlight);
    color.setAlphaF(0.25F);
    mark.format.setBackground(color);
    mark.format.setProperty(QTextFormat::FullWidthSelection, true);
    mark.cursor = QTextCursor(block);
    setExtraSelections({mark});
    setTextCursor(mark.cursor);
    centerCursor();
}

void CodeView::mouseReleaseEvent(QMouseEvent* event) {
    QPlainTextEdit::mouseReleaseEvent(event);
    if (event->button() == Qt::LeftButton && !textCursor().hasSelection())
        emit lineChosen(cursorForPosition(event->position().toPoint()).blockNumber());
}

void CodeView::keyPressEvent(QKeyEvent* event) {
    if (event->key() != Qt::Key_Return && event->key() != Qt::Key_Enter) return QPlainTextEdit::keyPressEvent(event);
    emit lineChosen(textCursor().blockNumber());
}

void CodeView::changeEvent(QEvent* event) {
    QPlainTextEdit::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) colorVisible();
}

void CodeView::colorVisible() {
    if (m_coloring) return;  // colouring asks for another update itself
    m_coloring = true;
    const int first = firstVisibleBlock().blockNumber();
    m_highlighter->color(first, first + viewport()->height() / std::max(1, fontMetrics().lineSpacing()) + 1);
    m_coloring = false;
}

}  // namespace cutaway::ui
