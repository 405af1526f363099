#pragma once
// Steps as a debugger does: to the next changed step, into a step's single rewrites, forward and back among them, to a
// rewrite by its number. Moves only the selection; says so when there is nowhere to go.
#include <QObject>

#include "ui/session/session_controller.h"

namespace cutaway::ui {

class Stepper : public QObject {
    Q_OBJECT

  public:
    Stepper(SessionController& controller, Selection& selection, QObject* parent = nullptr);

    /// The run whose steps are walked: that of the current place, else the latest; null before the first compile.
    const Run* run() const;
    /// The step of the current place; null on the graph as opened.
    const StepInfo* currentStep() const;
    /// The next or previous step, of those that changed the graph or of all.
    void step(bool forward, bool onlyChanged);
    /// Forward or back by one rewrite: from a whole step to its first, from its last to the next changed step, and back
    /// in the same way.
    void rewrite(bool forward);
    /// A rewrite of the current step, counted from 1; 0 is the whole step.
    void toRewrite(int number);
    /// From a single rewrite to its whole step.
    void out() { toRewrite(0); }
    /// A rewrite by its number in the whole run, counted from 1: what `--fuel` counts.
    void toFuel(int number);
    /// Rewrites of the run up to and with the current place.
    int fuel() const;
    int fuelOfRun() const;
    /// Shows a place; of a single rewrite also the node that it started from.
    void show(const Place& place);

    /// Whether a rewrite is shown with all before it in its step, or alone.
    bool showsAllSoFar() const { return m_allSoFar; }
    void setAllSoFar(bool on);

  signals:
    void message(const QString& text);
    void allSoFarChanged(bool on);

  private:
    int changedStep(int from, bool forward, bool onlyChanged) const;

    SessionController& m_controller;
    Selection& m_selection;
    bool m_allSoFar = false;
};

}  // namespace cutaway::ui
