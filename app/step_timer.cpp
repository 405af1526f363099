#include "app/step_timer.h"

#include <QCoreApplication>
#include <QImage>
#include <QTimer>
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "ui/windows/graph_window.h"
#include "ui/windows/steps_window.h"

namespace cutaway::ui {
namespace {

constexpr int kFrames = 30, kBeatMilliseconds = 4;

/// Median and worst milliseconds of a frame while panning at `scale` across the picture.
std::pair<double, double> paintTimes(GraphCanvas& canvas, double scale) {
    if (!canvas.scene()) return {0, 0};
    QImage image(canvas.size() * canvas.devicePixelRatioF(), QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(canvas.devicePixelRatioF());
    const double oldScale = canvas.scale();
    const QPointF oldOffset = canvas.toWidget({0, 0});
    const QRectF all = canvas.scene()->bounds;
    std::vector<double> times;
    for (int i = 0; i < kFrames; ++i) {
        const double t = (i + 0.5) / kFrames;
        const QPointF at(all.left() + all.width() * 0.5, all.top() + all.height() * t);
        canvas.setView(scale, QPointF(canvas.width() / 2.0, canvas.height() / 2.0) - at * scale);
        // The processor's time: what other programs do meanwhile is not the picture's cost.
        const std::clock_t start = std::clock();
        canvas.render(&image);
        times.push_back(1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    canvas.setView(oldScale, oldOffset);
    std::sort(times.begin(), times.end());
    return {times[times.size() / 2], times.back()};
}

}  // namespace

StepTimer::StepTimer(MainWindow& window, CompileRequest request) : m_window(window), m_request(std::move(request)) {
    m_since.start();
    m_beat.start();
    // A beat that comes late was held up for that long.
    auto* beat = new QTimer(this);
    beat->setTimerType(Qt::PreciseTimer);
    connect(beat, &QTimer::timeout, this, [this] {
        m_longest = std::max(m_longest, m_beat.nsecsElapsed() - kBeatMilliseconds * 1000000LL);
        m_beat.restart();
    });
    beat->start(kBeatMilliseconds);
    connect(&window, &MainWindow::settledChanged, this, &StepTimer::wake);
    connect(&window.controller(), &SessionController::problem, this, [](const LogEntry& entry) {
        std::fprintf(
            stderr, "cutaway: %s\n",
            qPrintable(QStringList({entry.what, entry.where, entry.next}).join(QStringLiteral("\n    ")).trimmed()));
        if (!entry.place) QCoreApplication::exit(1);
    });
    wake();
}

/// The window may say that it is settled several times while one request leads to the next.
void StepTimer::wake() {
    if (m_waking) return;
    m_waking = true;
    QTimer::singleShot(0, this, [this] {
        m_waking = false;
        next();
    });
}

void StepTimer::next() {
    if (!m_window.controller().model() || !m_window.isSettled()) return;
    if (m_opened < 0) {
        m_opened = static_cast<double>(m_since.nsecsElapsed()) / 1e6;
        std::printf("%-38s %8s %8s %10s %10s %10s %12s %12s\n", "step", "nodes", "drawn", "shown ms", "pause ms",
                    "pan ms", "pan mid ms", "pan far ms");
        report(QStringLiteral("(opening)"));
        m_compiling = true;
        m_since.restart();
        m_longest = 0;
        return m_window.controller().compile(m_request);
    }
    if (m_compiling) {
        if (m_window.get<StepsWindow>().model().steps().empty()) return;
        m_compiling = false;
        report(QStringLiteral("(compiling)"));
        for (const StepInfo& step : m_window.get<StepsWindow>().model().steps())
            if (step.state == StepState::Changed) m_names.push_back(QString::fromStdString(step.key()));
        return showStep(0);
    }
    report(m_names[m_at]);
    showStep(m_at + 1);
}

void StepTimer::showStep(size_t which) {
    if (which >= m_names.size()) return finish();
    m_at = which;
    m_longest = 0;
    m_since.restart();
    if (!m_window.get<StepsWindow>().select(m_names[which])) QCoreApplication::exit(1);
    wake();
}

void StepTimer::report(const QString& name) {
    const double shown = static_cast<double>(m_since.nsecsElapsed()) / 1e6;
    const double pause = static_cast<double>(m_longest) / 1e6;
    GraphCanvas& canvas = m_window.get<GraphWindow>().view().canvas();
    const int total = canvas.scene() ? canvas.scene()->picture.total : 0;
    const size_t drawn = canvas.scene() ? canvas.scene()->nodes.size() : 0;
    const auto near = paintTimes(canvas, 1), middle = paintTimes(canvas, 0.25), far = paintTimes(canvas, 0.12);
    std::printf("%-38s %8d %8zu %10.1f %10.1f %4.1f / %-4.1f %4.1f / %-4.1f %4.1f / %-4.1f\n", qPrintable(name), total,
                drawn, shown, pause, near.first, near.second, middle.first, middle.second, far.first, far.second);
    std::fflush(stdout);
    m_beat.restart();  // our own painting is not a pause of the window's
}

void StepTimer::finish() {
    std::printf("%s\n", qPrintable(m_window.controller().runs().back().title()));
    std::printf(
        "shown: from the request to the picture; pause: longest stretch without the event loop; pan: painting, median / worst of %d frames, at 100 %%, 25 %% and 12 %%\n",
        kFrames);
    std::fflush(stdout);
    QCoreApplication::exit(0);
}

}  // namespace cutaway::ui
