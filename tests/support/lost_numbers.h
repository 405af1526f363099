#pragma once
// What a check of the numbers of all steps found, in words.
#include <QString>

#include "engine/session/session_state.h"

namespace cutaway::testing {

/// "STEP: what differs", a line for each step that does not keep the numbers.
inline QString lostNumbers(const NumbersReport& report) {
    QString out;
    for (const StepNumbers& one : report.steps)
        if (!one.kept) out += QString::fromStdString(one.step.name + ": " + one.detail + "\n");
    return out;
}

}  // namespace cutaway::testing
