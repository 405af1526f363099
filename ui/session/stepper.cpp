#include "ui/session/stepper.h"

#include <algorithm>

namespace cutaway::ui {

Stepper::Stepper(SessionController& controller, Selection& selection, QObject* parent)
    : QObject(parent), m_controller(controller), m_selection(selection) {}

const Run* Stepper::run() const {
    if (m_controller.runs().empty()) return nullptr;
    const Run* current = m_selection.hasPlace() ? m_controller.runOf(m_selection.place().run) : nullptr;
    return current ? current : &m_controller.runs().back();
}

const StepInfo* Stepper::currentStep() const {
    const Run* now = run();
    const int step = m_selection.place().step;
    return now && step >= 0 && step < static_cast<int>(now->steps.size()) ? &now->steps[static_cast<size_t>(step)]
                                                                          : nullptr;
}

/// The next or previous step; if there is none, forward `from`, back -1, which is the graph as opened.
int Stepper::changedStep(int from, bool forward, bool onlyChanged) const {
    const auto& steps = run()->steps;
    for (int at = forward ? from + 1 : from - 1; at >= 0 && at < static_cast<int>(steps.size());
         at += forward ? 1 : -1) {
        const StepState state = steps[static_cast<size_t>(at)].state;
        if (!onlyChanged || state == StepState::Changed || state == StepState::Failed) return at;
    }
    return forward ? from : -1;
}

void Stepper::step(bool forward, bool onlyChanged) {
    if (!run()) {
        emit message(tr("Nothing to step through yet: compile the model first (Ctrl+B)."));
        return;
    }
    const Place now = m_selection.place();
    // From inside a step, back is the step itself.
    const int next = !forward && now.rewrites >= 0 ? now.step : changedStep(now.step, forward, onlyChanged);
    if (next == now.step && (forward || now.rewrites < 0))
        emit message(!forward      ? tr("This is the graph as it was opened.")
                     : onlyChanged ? tr("No later step changed the graph.")
                                   : tr("This is the last step."));
    else show({run()->id, next, -1});
}

void Stepper::rewrite(bool forward) {
    if (!run()) return step(forward, true);
    const Place now = m_selection.place();
    const StepInfo* info = currentStep();
    if (forward) {
        if (!info) return step(true, true);
        if (info->rewrites == 0) {
            emit message(tr("%1 made no single rewrites.").arg(QString::fromStdString(info->name)));
            return;
        }
        const int next = now.rewrites < 0 ? 1 : now.rewrites + 1;
        return next > info->rewrites ? step(true, true) : toRewrite(next);
    }
    if (now.rewrites > 0) return toRewrite(now.rewrites - 1);
    const int before = changedStep(now.step, false, true);
    if (before < 0) return step(false, true);
    const int last = run()->steps[static_cast<size_t>(before)].rewrites;
    show({run()->id, before, last > 0 ? last : -1});
}

void Stepper::toRewrite(int number) {
    const StepInfo* info = currentStep();
    if (!info) return;
    show({run()->id, info->index, number <= 0 ? -1 : std::min(number, info->rewrites)});
}

void Stepper::toFuel(int number) {
    const Run* now = run();
    if (!now || number < 1) return;
    for (const StepInfo& info : now->steps) {
        if (number <= info.rewrites) return show({now->id, info.index, number});
        number -= info.rewrites;
    }
    emit message(tr("This run made only %1 rewrites.").arg(fuelOfRun()));
}

int Stepper::fuel() const {
    const Run* now = run();
    if (!now) return 0;
    const Place place = m_selection.place();
    int count = 0;
    for (const StepInfo& info : now->steps) {
        if (info.index > place.step) break;
        count += info.index == place.step && place.rewrites >= 0 ? place.rewrites : info.rewrites;
    }
    return count;
}

int Stepper::fuelOfRun() const {
    int count = 0;
    if (const Run* now = run())
        for (const StepInfo& info : now->steps) count += info.rewrites;
    return count;
}

void Stepper::show(const Place& place) {
    Comparison what = comparisonAt(place);
    if (place.rewrites > 0 && m_allSoFar) what.before = {place.run, place.step, 0};
    const RewriteInfo* rewrite = m_controller.rewriteAt(place);
    m_selection.go(what, rewrite && rewrite->key != NodeKey::None ? rewrite->key : m_selection.node());
}

void Stepper::setAllSoFar(bool on) {
    if (m_allSoFar == on) return;
    m_allSoFar = on;
    emit allSoFarChanged(on);
    if (m_selection.hasPlace() && m_selection.place().rewrites > 0) show(m_selection.place());
}

}  // namespace cutaway::ui
