#include "ui/windows/rewrite_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSlider>
#include <QSpinBox>
#include <QToolButton>

#include "ui/models/words.h"
#include "ui/windows/icons.h"
#include "ui/windows/sentence_label.h"

namespace cutaway::ui {

RewriteBar::RewriteBar(SessionController& controller, Selection& selection, Stepper& stepper, SentenceLabel& sentence,
                       QWidget* parent)
    : QWidget(parent),
      m_controller(controller),
      m_selection(selection),
      m_stepper(stepper),
      m_number(new QSpinBox),
      m_slider(new QSlider(Qt::Horizontal)),
      m_count(new QLabel),
      m_text(&sentence) {
    setObjectName(QStringLiteral("rewriteBar"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(6, 3, 6, 3);
    row->setSpacing(4);
    m_previous =
        addButton(tr("Previous"), tr("Previous changed step (Shift+F10)"), [this] { m_stepper.step(false, true); });
    m_next = addButton(tr("Next"), tr("Next changed step (F10)"), [this] { m_stepper.step(true, true); });
    row->addSpacing(10);
    m_back = addButton(QStringLiteral("◀"), tr("Previous rewrite (Shift+F11)"), [this] { m_stepper.rewrite(false); });
    m_number->setAccessibleName(tr("Rewrite of the step; 0 shows the whole step"));
    m_number->setToolTip(m_number->accessibleName());
    m_number->setSpecialValueText(tr("all"));
    m_number->setKeyboardTracking(false);
    row->addWidget(m_number);
    row->addWidget(m_count);
    m_on = addButton(QStringLiteral("▶"), tr("Next rewrite (F11)"), [this] { m_stepper.rewrite(true); });
    m_slider->setAccessibleName(tr("Rewrites done"));
    m_slider->setToolTip(tr("Drag through the rewrites of the step"));
    m_slider->setMinimumWidth(70);
    m_slider->setMaximumWidth(180);
    m_slider->setTracking(false);
    row->addWidget(m_slider, 1);
    m_whole = addButton(tr("Step out"), tr("Leave the single rewrites and show the whole step (Ctrl+F11)"),
                        [this] { m_stepper.out(); });
    m_soFar = addButton(tr("Cumulative"), tr("Show each rewrite together with those before it in its step"), {});
    m_soFar->setCheckable(true);
    connect(m_soFar, &QToolButton::toggled, &stepper, &Stepper::setAllSoFar);
    connect(&stepper, &Stepper::allSoFarChanged, m_soFar, &QToolButton::setChecked);
    m_why = addButton(tr("Explain"), tr("Why the rule applies there (Ctrl+E)"), [this] { emit explainWanted(); });
    row->addStretch();

    const std::pair<QToolButton*, const char*> icons[] = {{m_previous, "step-previous"},
                                                          {m_next, "step-next"},
                                                          {m_back, "rewrite-previous"},
                                                          {m_on, "rewrite-next"},
                                                          {m_whole, "step-out"},
                                                          {m_soFar, "so-far"},
                                                          {m_why, "explain"}};
    for (const auto& [button, name] : icons) button->setIcon(iconNamed(QString::fromLatin1(name)));
    row->setSizeConstraint(QLayout::SetNoConstraint);

    connect(m_number, &QSpinBox::valueChanged, &stepper, &Stepper::toRewrite);
    connect(m_slider, &QSlider::valueChanged, &stepper, &Stepper::toRewrite);
    // While the handle is dragged the number tells where it would stop.
    connect(m_slider, &QSlider::sliderMoved, this, [this](int number) {
        const QSignalBlocker quiet(m_number);
        m_number->setValue(number);
    });
    connect(&selection, &Selection::placeChanged, this, &RewriteBar::follow);
    connect(&controller, &SessionController::compiled, this, &RewriteBar::follow);
    connect(&controller, &SessionController::modelOpened, this, &RewriteBar::follow);
    follow();
}

QToolButton* RewriteBar::addButton(const QString& text, const QString& tip, std::function<void()> action) {
    auto* button = new QToolButton;
    button->setText(text);
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    button->setFocusPolicy(Qt::TabFocus);
    if (action) connect(button, &QToolButton::clicked, this, std::move(action));
    layout()->addWidget(button);
    return button;
}

/// With the buttons' texts, or with their icons alone.
int RewriteBar::widthNeeded(bool withTexts) const {
    const QMargins margins = layout()->contentsMargins();
    int width = margins.left() + margins.right() + layout()->spacing() * (layout()->count() - 1);
    for (int i = 0; i < layout()->count(); ++i) {
        const QLayoutItem& item = *layout()->itemAt(i);
        const auto* button = qobject_cast<const QToolButton*>(item.widget());
        if (!button) width += item.minimumSize().width();
        else if (withTexts && button != m_back && button != m_on)
            width += button->fontMetrics().horizontalAdvance(button->text()) + button->iconSize().width() + 20;
        else width += button->iconSize().width() + 12;
    }
    return width;
}

QSize RewriteBar::minimumSizeHint() const { return {widthNeeded(false), layout()->minimumSize().height()}; }

void RewriteBar::resizeEvent(QResizeEvent* event) {
    const bool texts = width() >= widthNeeded(true);
    for (QToolButton* button : {m_previous, m_next, m_whole, m_soFar, m_why})
        button->setToolButtonStyle(texts ? Qt::ToolButtonTextBesideIcon : Qt::ToolButtonIconOnly);
    QWidget::resizeEvent(event);
}

QString RewriteBar::text() const { return m_text->text(); }

QString RewriteBar::sentence() const {
    if (!m_stepper.run())
        return m_controller.model() ? tr("Compile the model (Ctrl+B) to step through what each pass does to it.")
                                    : QString();
    const Place after = m_selection.place();
    if (m_selection.hasPlace() && after.rewrites < 0 && m_selection.comparison() != comparisonAt(after))
        return tr("Compared: %1 against %2.")
            .arg(m_controller.placeName(m_selection.comparison().before), m_controller.placeName(after));
    const StepInfo* step = m_stepper.currentStep();
    if (!step) return tr("The graph as it was opened. F10 goes to the first change.");
    if (const RewriteInfo* rewrite = m_controller.rewriteAt(m_selection.place())) {
        QString text = QString::fromStdString(rewrite->rule);
        if (!rewrite->node.empty()) text += tr(" at %1").arg(QString::fromStdString(rewrite->node));
        if (!rewrite->why.empty()) text += QStringLiteral(" – ") + QString::fromStdString(rewrite->why);
        return text;
    }
    const QString summary = QString::fromStdString(step->summary);
    if (step->state == StepState::Disabled) return tr("Switched off. %1").arg(summary);
    if (step->state == StepState::Failed) return tr("Failed: %1").arg(QString::fromStdString(step->error));
    if (step->rewrites == 0 && step->state == StepState::Unchanged) return tr("No changes. %1").arg(summary);
    return summary;
}

void RewriteBar::follow() {
    const StepInfo* step = m_stepper.currentStep();
    const int count = step ? step->rewrites : 0, now = std::max(0, m_selection.place().rewrites);
    {
        const QSignalBlocker quietNumber(m_number), quietSlider(m_slider);
        m_number->setRange(0, count);
        m_number->setValue(now);
        m_slider->setRange(0, count);
        m_slider->setPageStep(std::max(1, count / 10));
        m_slider->setValue(now);
    }
    m_count->setText(tr("of %1").arg(counted(count, tr("rewrite"), tr("rewrites"))));
    m_count->setToolTip(
        step ? tr("%1 of the run's %2 rewrites applied (fuel)").arg(m_stepper.fuel()).arg(m_stepper.fuelOfRun())
             : QString());
    const bool any = m_stepper.run() != nullptr;
    for (QWidget* widget : std::initializer_list<QWidget*>{m_previous, m_next, m_back, m_on}) widget->setEnabled(any);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_number, m_slider, m_soFar}) widget->setEnabled(count > 0);
    m_whole->setEnabled(now > 0);
    m_why->setEnabled(step != nullptr);
    m_text->setText(sentence());
}

}  // namespace cutaway::ui
