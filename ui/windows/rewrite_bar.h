#pragma once
// The bar above the windows: from step to step, and inside a step from rewrite to rewrite, with the rule, the node and
// the reason of the rewrite on show.
#include <QWidget>

#include "ui/session/stepper.h"

class QLabel;
class QSlider;
class QSpinBox;
class QToolButton;

namespace cutaway::ui {

class SentenceLabel;

class RewriteBar : public QWidget {
    Q_OBJECT

  public:
    /// `sentence`: where it says what the step or the rewrite does, as it takes more room than is left here.
    RewriteBar(SessionController& controller, Selection& selection, Stepper& stepper, SentenceLabel& sentence,
               QWidget* parent = nullptr);
    QString text() const;
    QSize minimumSizeHint() const override;

  signals:
    /// Why the rewrite's rule applies where it does.
    void explainWanted();

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    int widthNeeded(bool withTexts) const;
    void follow();
    QString sentence() const;
    QToolButton* addButton(const QString& text, const QString& tip, std::function<void()> action);

    SessionController& m_controller;
    Selection& m_selection;
    Stepper& m_stepper;
    QToolButton *m_previous, *m_next, *m_back, *m_on, *m_whole, *m_soFar, *m_why;
    QSpinBox* m_number;
    QSlider* m_slider;
    QLabel* m_count;
    SentenceLabel* m_text;
};

}  // namespace cutaway::ui
