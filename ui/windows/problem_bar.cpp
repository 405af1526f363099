#include "ui/windows/problem_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/graph/graph_painter.h"

namespace cutaway::ui {
namespace {
constexpr int kLineSpacing = 2;
}  // namespace

ProblemBar::ProblemBar(QWidget* parent)
    : QFrame(parent), m_what(new QLabel), m_more(new QLabel), m_go(new QPushButton(tr("Go there"))) {
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Window);  // inside a tool bar it would be that of buttons
    setObjectName(QStringLiteral("problemBar"));
    QFont bold = font();
    bold.setBold(true);
    m_what->setFont(bold);
    for (QLabel* label : {m_what, m_more}) {
        label->setTextFormat(Qt::PlainText);
        label->setWordWrap(true);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    }
    auto* close = new QPushButton(tr("Dismiss"));
    connect(close, &QPushButton::clicked, this, &QWidget::hide);
    connect(m_go, &QPushButton::clicked, this, [this] {
        if (m_where) emit goTo(*m_where);
    });
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(10, 6, 10, 6);
    auto* lines = new QVBoxLayout;
    lines->setSpacing(kLineSpacing);
    lines->addWidget(m_what);
    lines->addWidget(m_more);
    row->addLayout(lines, 1);
    row->addWidget(m_go);
    row->addWidget(close);
    hide();
}

void ProblemBar::showProblem(const LogEntry& entry) {
    m_what->setText(QStringLiteral("✗ ") + entry.what);
    QStringList more;
    if (!entry.where.isEmpty()) more << tr("Where: %1").arg(entry.where);
    if (!entry.next.isEmpty()) more << entry.next;
    m_more->setText(more.join('\n'));
    m_more->setVisible(!more.isEmpty());
    m_where = entry.place;
    m_go->setVisible(m_where.has_value());
    const ChangeColors colors =
        GraphColors::of(parentWidget() ? parentWidget()->palette() : palette())[Change::Removed];
    QPalette own;
    own.setColor(QPalette::Window, colors.fill);
    own.setColor(QPalette::WindowText, colors.text);
    setPalette(own);
    show();
}

/// A tool bar gives wrapped text the height of its narrowest form, and layouts keep what they measured while hidden,
/// so the height comes from the labels themselves, at the width that they have.
void ProblemBar::fitHeight() {
    int text = 0;
    for (const QLabel* label : {m_what, m_more})
        if (!label->isHidden()) text += label->heightForWidth(label->width()) + (text > 0 ? kLineSpacing : 0);
    const QMargins around = layout()->contentsMargins();
    const int height = std::max(text, m_go->sizeHint().height()) + around.top() + around.bottom() + 2 * frameWidth();
    if (height != minimumHeight()) setFixedHeight(height);
}

/// Measured when all that is under way with shape and content is done.
bool ProblemBar::event(QEvent* event) {
    const QEvent::Type type = event->type();
    if (type == QEvent::Show || type == QEvent::Resize || type == QEvent::LayoutRequest)
        QMetaObject::invokeMethod(this, &ProblemBar::fitHeight, Qt::QueuedConnection);
    return QFrame::event(event);
}

QString ProblemBar::text() const { return isHidden() ? QString() : m_what->text() + '\n' + m_more->text(); }

}  // namespace cutaway::ui
