#include "app/start_timer.h"

#include <unistd.h>

#include <QCoreApplication>
#include <QEvent>
#include <QFile>
#include <QTimer>
#include <cstdio>
#include <ctime>

#include "ui/windows/graph_window.h"

namespace cutaway::ui {
namespace {

/// Milliseconds since the process was started: what the loader and the constructors took counts. The system tells it in
/// ticks, mostly of 10 ms (proc(5), field 22 of stat).
double sinceStart() {
    QFile file(QStringLiteral("/proc/self/stat"));
    if (!file.open(QIODevice::ReadOnly)) return -1;
    const QByteArray all = file.readAll();
    // The second field is the program's name in parentheses, which may hold spaces.
    const QList<QByteArray> fields = all.mid(all.lastIndexOf(')') + 2).split(' ');
    constexpr int kStarted = 22 - 3;
    std::timespec now{};
    if (fields.size() <= kStarted || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return -1;
    const double started = fields[kStarted].toDouble() / static_cast<double>(sysconf(_SC_CLK_TCK));
    return 1e3 * (static_cast<double>(now.tv_sec) - started) + static_cast<double>(now.tv_nsec) / 1e6;
}

}  // namespace

StartTimer::StartTimer(MainWindow& window, bool opens) : m_window(window), m_opens(opens) {
    window.installEventFilter(this);
    connect(&window, &MainWindow::settledChanged, this, &StartTimer::wake);
    connect(&window.controller(), &SessionController::problem, this, [](const LogEntry& entry) {
        std::fprintf(stderr, "cutaway: %s\n", qPrintable(entry.what));
        if (!entry.place) QCoreApplication::exit(1);
    });
}

bool StartTimer::eventFilter(QObject* watched, QEvent* event) {
    // Once the event is through, the window and all in it are painted.
    if (event->type() == QEvent::Paint && m_painted < 0) {
        m_painted = 0;
        QTimer::singleShot(0, this, [this] {
            m_painted = sinceStart();
            std::printf("first picture  %7.0f ms\n", m_painted);
            wake();
        });
    }
    return QObject::eventFilter(watched, event);
}

/// The window may say that it is settled several times while one request leads to the next.
void StartTimer::wake() {
    if (m_waking) return;
    m_waking = true;
    QTimer::singleShot(0, this, [this] {
        m_waking = false;
        next();
    });
}

void StartTimer::next() {
    if (m_painted <= 0) return;
    if (m_opens) {
        if (!m_window.controller().model() || !m_window.isSettled()) return;
        GraphCanvas& canvas = m_window.get<GraphWindow>().view().canvas();
        if (!canvas.scene()) return;
        canvas.repaint();
        std::printf("graph on show  %7.0f ms  %d nodes\n", sinceStart(), canvas.scene()->picture.total);
    }
    std::fflush(stdout);
    QCoreApplication::exit(0);
}

}  // namespace cutaway::ui
