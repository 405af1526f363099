#pragma once
// Exceptions may not pass through Qt's event loop: what a window throws is reported as any other failure, and the
// windows stay open.
#include <QApplication>
#include <functional>

#include "cutaway/guarded.h"

class GuardedApplication final : public QApplication {
  public:
    using QApplication::QApplication;
    /// Is told what went wrong; until it is set, that goes to stderr.
    std::function<void(const cutaway::Error&)> failed;

    bool notify(QObject* receiver, QEvent* event) override {
        try {
            return QApplication::notify(receiver, event);
        } catch (...) {
            tell(cutaway::currentError());
            return false;
        }
    }

  private:
    void tell(const cutaway::Error& error) const {
        if (failed) return failed(error);
        std::fputs(("cutaway: " + error.text() + "\n").c_str(), stderr);
    }
};
