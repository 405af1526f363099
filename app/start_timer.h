#pragma once
// `cutaway --time-start [MODEL]`: how long it takes from the start of the process until the window has painted its
// first picture, and until the graph of the model is on show; prints both and quits.
#include <QObject>

#include "ui/windows/main_window.h"

namespace cutaway::ui {

class StartTimer : public QObject {
    Q_OBJECT

  public:
    /// Made before the window is shown. Exit status 1 if the model cannot be opened.
    StartTimer(MainWindow& window, bool opens);

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void wake();
    void next();

    MainWindow& m_window;
    bool m_opens, m_waking = false;
    double m_painted = -1;
};

}  // namespace cutaway::ui
