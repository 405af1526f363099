#include "ui/windows/options_chip.h"

#include <QHBoxLayout>
#include <QToolButton>

#include "ui/session/kept_requests.h"

namespace cutaway::ui {

OptionsChip::OptionsChip(SessionController& controller, QWidget* parent)
    : QFrame(parent), m_controller(controller), m_what(new QToolButton), m_reset(new QToolButton) {
    setObjectName(QStringLiteral("optionsChip"));
    setFrameShape(QFrame::StyledPanel);
    setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Maximum);
    m_reset->setText(QStringLiteral("✕"));
    m_reset->setObjectName(QStringLiteral("resetOptions"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    for (QToolButton* button : {m_what, m_reset}) {
        button->setAutoRaise(true);
        button->setFocusPolicy(Qt::TabFocus);
        row->addWidget(button);
    }
    connect(m_what, &QToolButton::clicked, this, &OptionsChip::choiceWanted);
    connect(m_reset, &QToolButton::clicked, this, &OptionsChip::reset);
}

void OptionsChip::follow() {
    constexpr int kLetters = 26;  // of what is shown; the tool tip says all of it
    const QString key = m_controller.modelKey();
    const CompileRequest now = rememberedRequest(key), usual = usualRequest();
    const QString words = optionWords(now).join(QStringLiteral(", "));
    const bool any = m_controller.model() && !words.isEmpty();
    emit shown(any);
    if (!any) return m_what->setText({});
    const QFontMetrics letters = m_what->fontMetrics();
    m_what->setText(letters.elidedText(words, Qt::ElideRight, kLetters * letters.averageCharWidth()));
    const QString from = now == usual ? tr("the default that you chose") : tr("chosen for this model");
    m_what->setToolTip(tr("Compile (Ctrl+B) takes: %1 (%2). Click to choose others.").arg(words, from));
    m_what->setAccessibleName(m_what->toolTip());
    m_reset->setToolTip(now == usual || usual == CompileRequest()
                            ? tr("Compile this model without options")
                            : tr("Compile this model with the default that you chose"));
    m_reset->setAccessibleName(m_reset->toolTip());
}

QString OptionsChip::text() const { return m_what->text(); }

void OptionsChip::reset() {
    resetRequest(m_controller.modelKey());
    follow();
    const QString words = optionWords(rememberedRequest(m_controller.modelKey())).join(QStringLiteral(", "));
    emit message(words.isEmpty() ? tr("Compile (Ctrl+B) takes no options for this model.")
                                 : tr("Compile (Ctrl+B) takes for this model: %1.").arg(words));
}

}  // namespace cutaway::ui
