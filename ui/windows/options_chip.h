#pragma once
// Beside Compile in the tool bar: what the options of the open model differ in from the compiler's defaults, with a
// cross that resets them. Nothing is shown where they do not.
#include <QFrame>

#include "ui/session/session_controller.h"

class QToolButton;

namespace cutaway::ui {

class OptionsChip : public QFrame {
    Q_OBJECT

  public:
    explicit OptionsChip(SessionController& controller, QWidget* parent = nullptr);
    /// Shows the options of now.
    void follow();
    QString text() const;

  signals:
    /// Whether there is anything to show.
    void shown(bool any);
    /// Somebody wants other options.
    void choiceWanted();
    void message(const QString& text);

  private:
    void reset();

    SessionController& m_controller;
    QToolButton *m_what, *m_reset;
};

}  // namespace cutaway::ui
