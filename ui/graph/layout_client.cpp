#include "ui/graph/layout_client.h"

#include <cstring>
#include <sstream>

#include "cutaway/program.h"
#include "ui/background.h"

namespace cutaway::ui {
namespace {

/// dot finishes about 2 000 boxes within its time limit on an idle machine; with more the wait would be for nothing.
constexpr size_t kTooManyForDot = 3000;

}  // namespace

LayoutClient::LayoutClient(QObject* parent) : QObject(parent), m_program(defaultProgram()) {
    m_deadline.setSingleShot(true);
    connect(&m_deadline, &QTimer::timeout, this, [this] {
        useSimpleLayout(tr("Graphviz did not finish in %1 s; simple layout").arg(m_timeLimit / 1000.0, 0, 'g', 2));
    });
}

LayoutClient::~LayoutClient() { stopProcess(); }

QString LayoutClient::defaultProgram() {
    const auto found = findHelper("cutaway-layout", "CUTAWAY_LAYOUT");
    return found ? QString::fromStdString(*found) : QString();
}

int LayoutClient::request(LayoutProblem problem) {
    stopProcess();
    m_busy = true;
    const int generation = ++m_generation;
    m_problem = std::make_shared<const LayoutProblem>(std::move(problem));
    if (m_problem->nodes.size() > kTooManyForDot) {
        useSimpleLayout(tr("simple layout, as for all graphs of more than %L1 boxes").arg(kTooManyForDot));
        return generation;
    }
    m_deadline.start(m_timeLimit);
    const auto write = [asked = m_problem] { return QByteArray::fromStdString(writeProblem(*asked)); };
    inBackground(this, write, [this, generation](const QByteArray& text) {
        if (generation == m_generation && m_deadline.isActive()) startProcess(text);
    });
    return generation;
}

void LayoutClient::startProcess(const QByteArray& text) {
    if (m_program.isEmpty()) return useSimpleLayout(tr("cutaway-layout is not installed; simple layout"));
    m_process = new QProcess(this);
    connect(m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) useSimpleLayout(tr("%1 does not start; simple layout").arg(m_program));
    });
    connect(m_process, &QProcess::finished, this, [this, process = m_process](int code, QProcess::ExitStatus status) {
        if (process == m_process) readOutput(process, code, status);
    });
    m_process->start(m_program, {});
    m_process->write(text);
    m_process->closeWriteChannel();
}

void LayoutClient::stopProcess() {
    m_deadline.stop();
    if (!m_process) return;
    QProcess* process = m_process;
    m_process = nullptr;
    disconnect(process, nullptr, this, nullptr);
    // Waiting for the end would block the window; the killed process deletes its object when it is gone.
    process->setParent(nullptr);
    connect(process, &QProcess::finished, process, &QObject::deleteLater);
    if (process->state() == QProcess::NotRunning) process->deleteLater();
    else process->kill();
}

void LayoutClient::readOutput(QProcess* process, int exitCode, QProcess::ExitStatus status) {
    m_deadline.stop();
    if (status != QProcess::NormalExit || exitCode != 0) {
        const QString said = QString::fromLocal8Bit(process->readAllStandardError()).trimmed().section('\n', -1);
        if (status == QProcess::CrashExit)
            return useSimpleLayout(tr("the layout process was killed by signal %1 (%2); simple layout")
                                       .arg(exitCode)
                                       .arg(QLatin1String(::strsignal(exitCode))));
        return useSimpleLayout(
            said.isEmpty() ? tr("the layout process ended with status %1 and no message; simple layout").arg(exitCode)
                           : tr("Graphviz failed (%1); simple layout").arg(said));
    }
    const QByteArray text = process->readAllStandardOutput();
    process->deleteLater();
    m_process = nullptr;
    using Parsed = std::pair<std::shared_ptr<const LayoutAnswer>, QString>;
    const auto read = [text, asked = m_problem]() -> Parsed {
        std::istringstream in(text.toStdString());
        auto answer = readAnswer(in, *asked);
        if (!answer) return {nullptr, QString::fromStdString(answer.error().message)};
        return {std::make_shared<const LayoutAnswer>(std::move(*answer)), {}};
    };
    inBackground(this, read, [this, generation = m_generation](const Parsed& parsed) {
        if (generation != m_generation) return;
        if (parsed.first) finish(parsed.first, QString::fromStdString(parsed.first->note));
        else useSimpleLayout(tr("Graphviz's answer cannot be read (%1); simple layout").arg(parsed.second));
    });
}

void LayoutClient::useSimpleLayout(const QString& reason) {
    if (!m_busy) return;
    stopProcess();
    using Answer = std::shared_ptr<const LayoutAnswer>;
    const auto lay = [asked = m_problem]() -> Answer {
        return std::make_shared<const LayoutAnswer>(layoutPlainly(*asked));
    };
    inBackground(this, lay, [this, reason, generation = m_generation](const Answer& answer) {
        if (generation == m_generation) finish(answer, reason);
    });
}

void LayoutClient::cancel() {
    stopProcess();
    ++m_generation;
    m_busy = false;
}

void LayoutClient::finish(std::shared_ptr<const LayoutAnswer> answer, const QString& note) {
    m_busy = false;
    emit finished(m_generation, std::move(answer), note);
}

}  // namespace cutaway::ui
