// cutaway: the desktop program. Also makes pictures unattended: --screenshot opens, compiles, goes to the step,
// waits until everything asked for is on the screen and saves the window. Exit status 0 only if what was asked was
// done.
#include <QApplication>
#include <QCommandLineParser>
#include <QDockWidget>
#include <QSettings>
#include <QTextStream>
#include <QTimer>
#include <algorithm>
#include <chrono>
#include <string_view>

#include "app/guarded_application.h"
#include "app/start_timer.h"
#include "app/step_timer.h"
#include "cutaway/jobs.h"
#include "cutaway/program.h"
#include "cutaway/step_key.h"
#include "cutaway/version.h"
#include "ui/session/source.h"
#include "ui/session/stepper.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/icons.h"
#include "ui/windows/main_window.h"
#include "ui/windows/run_dialogs.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"
#include "ui/windows/theme.h"
#include "ui/windows/window_table.h"

namespace {

using namespace cutaway;
using namespace cutaway::ui;

constexpr int kPictureTimeoutMilliseconds = 120000;

struct PictureOrder {
    QString step, window, file, mode, node;
    int rewrite = 0;
    bool list = false, kernels = false;
    CompileRequest request = {};
    bool wanted() const { return list || !file.isEmpty(); }
};

void complain(const QString& text) { QTextStream(stderr) << "cutaway: " << text << '\n'; }

/// A step on a graph of training is one of a run for training, whatever else is asked for.
CompileRequest requestOf(const QString& step, CompileRequest request) {
    const auto key = parseStepKey(step.toStdString());
    if (key && (key->graphName == "joint" || key->graphName == "forward" || key->graphName == "backward"))
        request.mode = Mode::Training;
    return request;
}

/// Drives the window to what was asked for, one state at a time; every state starts when the window has settled. A
/// picture or a list of it ends the program, and so does what goes wrong on the way to them.
class Guide : public QObject {
  public:
    Guide(MainWindow& window, PictureOrder order, bool compiles)
        : m_window(window), m_order(std::move(order)), m_compiles(compiles) {
        connect(&window, &MainWindow::settledChanged, this, &Guide::wake);
        wake();
        if (!m_order.wanted()) return;
        connect(&window.controller(), &SessionController::problem, this, [this](const LogEntry& entry) {
            // A failed step is something to look at, like any other; the picture shows it.
            if (entry.place) return;
            complain(QStringList{entry.what, entry.where, entry.next}.join(QStringLiteral("\n    ")).trimmed());
            m_failed = true;
            QCoreApplication::exit(1);
        });
        QTimer::singleShot(kPictureTimeoutMilliseconds, this, [] {
            complain(QStringLiteral("the window did not come to rest in %1 s").arg(kPictureTimeoutMilliseconds / 1000));
            QCoreApplication::exit(1);
        });
    }

  private:
    void wake() {
        if (!m_waking)
            QTimer::singleShot(50, this, [this] {
                m_waking = false;
                next();
            });
        m_waking = true;
    }
    void next() {
        if (m_failed || m_state > kLastState || !m_window.isSettled()) return;
        if (m_state == 0 && m_compiles) {
            if (!m_window.controller().model()) return;
            m_window.controller().compile(m_order.request);
        } else if (m_state == 1 && !m_order.step.isEmpty()) {
            const QString asked =
                m_order.rewrite > 0 ? m_order.step + QStringLiteral(":%1").arg(m_order.rewrite) : m_order.step;
            const auto found = m_window.get<StepsWindow>().select(asked);
            if (!found) return fail(found.error());
            if (found->rewrites.value_or(0) > 0) m_window.stepper().toRewrite(*found->rewrites);
        } else if (m_state == 2 && m_order.kernels && !m_window.controller().runs().empty()) {
            const Run& run = m_window.controller().runs().back();
            m_window.controller().run(run.id, timingOptions(run.options.target, {}));
            m_window.controller().build(run.id, run.options.target);  // after it: the kernels then have their times
        } else if (m_state == 3) {
            if (m_order.list) return printSteps();
            arrange();
        } else if (m_state == kLastState) {
            ++m_state;
            if (m_order.wanted()) save();
            return;
        }
        ++m_state;
        wake();
    }
    void fail(const Error& error) {
        m_failed = true;
        if (m_order.wanted()) {
            complain(QString::fromStdString(error.text()));
            return QCoreApplication::exit(1);
        }
        const LogEntry entry = entryOf(error, tr("What the command line asks for is not there"));
        m_window.controller().log().append(entry);
        emit m_window.controller().problem(entry);
    }
    void arrange() {
        if (QDockWidget* dock = m_window.window(m_order.window))
            dock->raise();  // some windows ask only when they are seen
        if (m_order.mode == QLatin1String("side")) {
            m_window.get<GraphWindow>().setMode(GraphMode::SideBySide);
            m_window.get<TextWindow>().setSideBySide(true);
        }
        if (m_order.node.isEmpty()) return;
        if (const auto& graph = m_window.get<GraphWindow>().view().graph())
            for (const auto& node : graph->nodes)
                if (QString::fromStdString(node.info.name) == m_order.node) {
                    m_window.selection().setNode(node.info.id);
                    m_window.get<GraphWindow>().view().setCurrent(node.info.id, true);
                }
    }
    void printSteps() {
        std::vector<StepInfo> changed;
        for (const StepInfo& step : m_window.get<StepsWindow>().model().steps())
            if (step.state == StepState::Changed) changed.push_back(step);
        const auto size = [](const StepInfo& step) { return step.added + step.removed + step.edited; };
        std::stable_sort(changed.begin(), changed.end(),
                         [&](const StepInfo& a, const StepInfo& b) { return size(a) > size(b); });
        QTextStream out(stdout);
        for (const StepInfo& step : changed) out << QString::fromStdString(step.name) << '\n';
        out.flush();
        QCoreApplication::exit(0);
    }
    void save() {
        QWidget* target = &m_window;
        if (QDockWidget* dock = m_window.window(m_order.window)) {
            dock->raise();
            target = dock;
        }
        QCoreApplication::processEvents();
        const bool saved = target->grab().save(m_order.file);
        if (!saved) complain(QStringLiteral("%1 cannot be written").arg(m_order.file));
        QCoreApplication::exit(saved ? 0 : 1);
    }

    MainWindow& m_window;
    PictureOrder m_order;
    bool m_compiles, m_waking = false, m_failed = false;
    static constexpr int kLastState = 4;
    int m_state = 0;
};

int run(int argc, char** argv) {
    // What is printed or becomes a picture needs no screen.
    for (int i = 1; i < argc; ++i) {
        const std::string_view option(argv[i]);
        const bool screenless = option.starts_with("--screenshot") || option.starts_with("--list-") ||
                                option == "--time-steps" || option == "--version" || option == "-v" ||
                                option.starts_with("--help") || option == "-h";
        if (screenless && qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    }
    GuardedApplication application(argc, argv);
    QApplication::setApplicationName(QStringLiteral("cutaway"));
    QApplication::setApplicationDisplayName(QStringLiteral("Cutaway"));
    QApplication::setOrganizationName(QStringLiteral("cutaway"));
    QApplication::setApplicationVersion(QString::fromStdString(version()));
    QApplication::setDesktopFileName(QStringLiteral("cutaway"));
    QApplication::setWindowIcon(programIcon());

    QCommandLineParser parser;
    parser.setApplicationDescription(QStringLiteral("Shows what a graph compiler does to a model, step by step."));
    parser.addHelpOption();
    const QCommandLineOption about({QStringLiteral("v"), QStringLiteral("version")},
                                   QStringLiteral("Print the version and how it was built, and quit."));
    parser.addPositionalArgument(QStringLiteral("model"), QStringLiteral("Model, graph or debug folder to open."),
                                 QStringLiteral("[model]"));
    const QCommandLineOption compile(QStringLiteral("compile"),
                                     QStringLiteral("Compile after opening, with the default options."));
    const QCommandLineOption step(QStringLiteral("step"), QStringLiteral("Compile and go to this step."),
                                  QStringLiteral("key"));
    const QCommandLineOption options(
        QStringLiteral("options"),
        QStringLiteral("Compile after opening, with these options, as cutaway-cli takes them: \"--mode training\"."),
        QStringLiteral("text"));
    const QCommandLineOption graph(
        QStringLiteral("graph"), QStringLiteral("The graph to open, of a file with several."), QStringLiteral("name"));
    const QCommandLineOption rewrite(QStringLiteral("rewrite"),
                                     QStringLiteral("With --step: go to this single rewrite of it, counted from 1."),
                                     QStringLiteral("number"));
    const QCommandLineOption screenshot(QStringLiteral("screenshot"), QStringLiteral("Save a picture and quit."),
                                        QStringLiteral("file"));
    const QCommandLineOption window(
        QStringLiteral("window"),
        QStringLiteral("Bring this window to the front, of which a picture is then taken alone: %1.")
            .arg(windowNames().join(QStringLiteral(", "))),
        QStringLiteral("name"));
    const QCommandLineOption node(QStringLiteral("node"), QStringLiteral("Make this node the current one."),
                                  QStringLiteral("name"));
    const QCommandLineOption mode(QStringLiteral("mode"), QStringLiteral("difference or side (by side)."),
                                  QStringLiteral("mode"), QStringLiteral("difference"));
    const QCommandLineOption theme(QStringLiteral("theme"), QStringLiteral("light, dark or system."),
                                   QStringLiteral("theme"));
    const QCommandLineOption size(QStringLiteral("size"), QStringLiteral("Size of the main window, such as 1440x900."),
                                  QStringLiteral("WxH"));
    const QCommandLineOption list(
        QStringLiteral("list-changed-steps"),
        QStringLiteral("Compile, print the names of the steps that changed the graph, most changes first, and quit."));
    const QCommandLineOption timing(
        QStringLiteral("time-steps"),
        QStringLiteral("Compile, show every changed step, print how long each took and quit."));
    const QCommandLineOption start(
        QStringLiteral("time-start"),
        QStringLiteral("Print how long the first picture and the model's graph took, and quit."));
    const QCommandLineOption kernels(QStringLiteral("kernels"), QStringLiteral("Compile, generate code and time it."));
    const QCommandLineOption names(QStringLiteral("list-windows"),
                                   QStringLiteral("Print the windows' names and quit."));
    parser.addOptions({about, names, kernels, list, timing, start, graph, compile, step, options, rewrite, screenshot,
                       window, node, mode, theme, size});
    parser.process(application);

    if (parser.isSet(about)) {
        QTextStream(stdout) << QString::fromStdString("cutaway " + version() + "\n" + buildText());
        return 0;
    }
    if (parser.isSet(names)) {
        QTextStream(stdout) << windowNames().join('\n') << '\n';
        return 0;
    }
    const QString path = parser.positionalArguments().value(0);
    const auto request = parseRequest(parser.value(options).toStdString());
    if (!request) {
        complain(QString::fromStdString(request.error().text()));
        return 2;
    }
    const PictureOrder order{parser.value(step), parser.value(window),  parser.value(screenshot),
                             parser.value(mode), parser.value(node),    parser.value(rewrite).toInt(),
                             parser.isSet(list), parser.isSet(kernels), requestOf(parser.value(step), *request)};
    // A picture must not depend on, nor change, how somebody left the windows.
    if (order.wanted() || parser.isSet(timing) || parser.isSet(start)) {
        const auto noSettings = temporaryFolder();
        if (!noSettings) {
            complain(QString::fromStdString(noSettings.error().text()));
            return 1;
        }
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, QString::fromStdString(*noSettings));
    }
    applyTheme(
        themeNamed(parser.isSet(theme) ? parser.value(theme) : QSettings().value(QStringLiteral("theme")).toString()));

    MainWindow main(makeSessionSource());
    application.failed = [&main](const Error& error) {
        const LogEntry entry = entryOf(error, QObject::tr("A window failed"));
        main.controller().log().append(entry);
        emit main.controller().problem(entry);
    };
    if (parser.isSet(size)) {
        const QStringList parts = parser.value(size).split('x');
        const QSize asked(parts.value(0).toInt(), parts.value(1).toInt());
        if (parts.size() != 2 || asked.isEmpty()) {
            complain(QStringLiteral("--size needs two numbers, such as 1440x900"));
            return 1;
        }
        main.resize(asked);
    }
    if (!order.window.isEmpty() && !main.window(order.window)) {
        complain(QStringLiteral("no window is called \"%1\"; there are %2")
                     .arg(order.window, windowNames().join(QStringLiteral(", "))));
        return 1;
    }
    std::unique_ptr<StartTimer> startTimer;
    if (parser.isSet(start)) startTimer = std::make_unique<StartTimer>(main, !path.isEmpty());
    main.show();
    if (!path.isEmpty()) main.open(path, parser.value(graph));
    const bool compiles = !path.isEmpty() && (parser.isSet(compile) || parser.isSet(step) || parser.isSet(options) ||
                                              parser.isSet(list) || parser.isSet(kernels));
    // With nothing but --compile the options are those of the last time.
    const bool arranged = parser.isSet(step) || parser.isSet(options) || parser.isSet(kernels) ||
                          parser.isSet(window) || parser.isSet(mode) || parser.isSet(node);
    std::unique_ptr<Guide> guide;
    std::unique_ptr<StepTimer> timer;
    if (parser.isSet(timing) && !path.isEmpty()) timer = std::make_unique<StepTimer>(main, *request);
    else if (order.wanted() || (arranged && !path.isEmpty())) guide = std::make_unique<Guide>(main, order, compiles);
    else if (compiles) main.compileWhenOpened();
    const int status = QApplication::exec();
    // A pass that hangs may not keep the program alive.
    main.hide();
    if (constexpr std::chrono::milliseconds kPatience{2000}; !endAllJobs(kPatience)) endProgram(status);
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    beginProgram();
    try {
        return run(argc, argv);
    } catch (...) {
        complain(QString::fromStdString(currentError().text()));
        return 1;
    }
}
