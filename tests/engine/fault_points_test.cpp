// Faults that tests ask for do what they say, at each place.
#include "engine/support/fault_points.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <fstream>

#include "cutaway/bisect.h"
#include "engine/interpret/interpret.h"
#include "engine/runtime/reference.h"
#include "engine/support/process.h"
#include "engine/text/parse.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kText =
    "def forward(x: \"f32[3]\"):\n"
    "    z: \"f32[3]\" = aten.clone.default(x)\n"
    "    r: \"f32[3]\" = aten.relu.default(z)\n"
    "    s: \"f32[3]\" = aten.sin.default(r)\n"
    "    return (s,)\n";

Snapshot graph() {
    auto module = parseText(kText);
    if (!module) qFatal("%s", module.error().text().c_str());
    return std::move(*module);
}
std::vector<Tensor> inputs() { return {Tensor::full(DType::F32, {3}, Scalar(0.5))}; }

Result<double> resultOf(const ReferenceOptions& options) {
    CT_TRY(const ReferenceRun run, runReference(*graph(), inputs(), options));
    return toDouble(run.outputs[0].item(0));
}

/// The children that this process has inherited from one that died.
std::vector<pid_t> adopted() {
    std::vector<pid_t> found;
    for (const QString& entry : QDir("/proc").entryList(QDir::Dirs)) {
        std::ifstream stat("/proc/" + entry.toStdString() + "/stat");
        std::string line;
        if (entry.toInt() == 0 || !std::getline(stat, line)) continue;
        std::istringstream rest(line.substr(line.rfind(')') + 1));
        char state = 0;
        int parent = 0, group = 0, session = 0;
        rest >> state >> parent >> group >> session;
        if (parent == ::getpid() && state != 'Z' && session == entry.toInt()) found.push_back(entry.toInt());
    }
    return found;
}

}  // namespace

class FaultPointsTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        qputenv("CUTAWAY_REPROS", "off");
        m_file = m_folder.filePath("graph.py").toStdString();
        std::ofstream(m_file) << kText;
    }
    void cleanup() { setFault(""); }

    void runsThatEnd_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("message");
        QTest::newRow("internal") << "internal"
                                  << "asked for by CUTAWAY_FAULT";
        QTest::newRow("runtime_error") << "runtime_error"
                                       << "asked for by CUTAWAY_FAULT";
        QTest::newRow("bad_alloc") << "bad_alloc"
                                   << "memory";
        QTest::newRow("crash") << "crash"
                               << "signal 11";
        QTest::newRow("abort") << "abort"
                               << "signal 6";
        QTest::newRow("hang") << "hang"
                              << "ran longer than";
        QTest::newRow("sigterm") << "sigterm"
                                 << "ran longer than";
        QTest::newRow("leak") << "leak"
                              << "memory";
    }
    /// A fault that is set in this process acts in the worker.
    void runsThatEnd() {
        QFETCH(QString, kind);
        QFETCH(QString, message);
        setFault("op:aten.relu.default:" + kind.toStdString());
        ReferenceOptions options;
        options.timeoutSeconds = kind == "hang" || kind == "sigterm" ? 1 : 60;
        options.memoryBytes = int64_t{3} << 30;
        const auto run = resultOf(options);
        QVERIFY(!run);
        const QString said = QString::fromStdString(run.error().text());
        QVERIFY2(said.contains(message), qPrintable(said));
        QCOMPARE(QString::fromStdString(run.error().where), QStringLiteral("r"));
        setFault("");
        options.timeoutSeconds = 60;
        QVERIFY(resultOf(options));
    }

    void valuesThatAreWrong() {
        const double right = std::sin(0.5), wrong = std::sin(1 + 2 * 0.5);
        setFault("op:aten.relu.default:wrong");
        QVERIFY(std::abs(*resultOf({}) - wrong) < 1e-6);
        setFault("op:aten.relu.default:nan");
        QVERIFY(std::isnan(*resultOf({})));
        setFault("op:aten.cos.default:wrong;op:aten.relu.default:wrong");
        QVERIFY(std::abs(*resultOf({}) - wrong) < 1e-6);
        setFault("op@after:aten.relu.default:wrong");
        ReferenceOptions after;
        after.faultSide = FaultSide::After;
        QVERIFY(std::abs(*resultOf({}) - right) < 1e-6);
        QVERIFY(std::abs(*resultOf(after) - wrong) < 1e-6);
        // Memory that others read, too, stays as it is.
        setFault("op:aten.view.default:wrong");
        const auto views =
            *parseText("def forward(x: \"f32[3]\"):\n    v = aten.view.default(x, [3])\n    return (x, v)\n");
        const auto both = *interpret(*views, inputs());
        QCOMPARE(toDouble(both[0].item(0)), 0.5);
        QCOMPARE(toDouble(both[1].item(0)), 2.0);
    }

    /// Children that leave their parent's group outlive it, so whoever runs such things must look for them.
    void childrenOfItsOwn() {
        QCOMPARE(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        setFault("op:aten.relu.default:fork");
        QVERIFY(std::abs(*resultOf({}) - std::sin(0.5)) < 1e-6);
        std::vector<pid_t> left;
        QTRY_COMPARE((left = adopted()).size(), size_t(3));
        for (const pid_t child : left) {
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
        }
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    }

    void programsThatEnd_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<int>("signal");
        QTest::newRow("a pass crashes") << "pass:decompose:crash" << SIGSEGV;
        QTest::newRow("a pass aborts") << "pass:decompose:abort" << SIGABRT;
        QTest::newRow("a rule crashes") << "rule:*:crash" << SIGSEGV;
        QTest::newRow("a pass hangs") << "pass:decompose:hang" << 0;
    }
    void programsThatEnd() {
        QFETCH(QString, fault);
        QFETCH(int, signal);
        ProcessOptions options;
        options.argv = {testing::builtProgram("cutaway-cli").toStdString(), "compile", m_file};
        options.environment = {{"CUTAWAY_FAULT", fault.toStdString()}};
        options.wallSeconds = signal == 0 ? 1 : 60;
        const auto end = runProcess(options);
        QVERIFY(end);
        QCOMPARE(end->how, signal == 0 ? ProcessEnd::How::TimedOut : ProcessEnd::How::Signalled);
        if (signal != 0) QCOMPARE(end->signal, signal);
    }

    void graphsThatAreWrong_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("rule");  // in which bisecting finds it; or what the verifier says
        QTest::newRow("a rule's numbers") << "rule:aten.clone.default:wrong"
                                          << "aten.clone.default";
        QTest::newRow("a rule's numbers, by its pass") << "rule:remove_noop_ops/aten.clone.default:wrong"
                                                       << "aten.clone.default";
        QTest::newRow("a pass's numbers") << "pass:remove_noop_ops:wrong"
                                          << "fault";
        QTest::newRow("a rule's NaN") << "rule:aten.clone.default:nan"
                                      << "aten.clone.default";
        QTest::newRow("a pass's NaN") << "pass:decompose:nan"
                                      << "fault";
        QTest::newRow("a rule's invalid graph") << "rule:aten.clone.default:invalid"
                                                << "strides";
        QTest::newRow("a pass's invalid graph") << "pass:decompose:invalid"
                                                << "strides";
        QTest::newRow("another pass's rule") << "rule:decompose/aten.clone.default:invalid"
                                             << "";
    }
    void graphsThatAreWrong() {
        QFETCH(QString, fault);
        QFETCH(QString, rule);
        setFault(fault.toStdString());
        Session session;
        QVERIFY(session.open(m_file));
        const auto run = session.compile({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto steps = *session.steps(*run);
        if (rule == "strides") {
            QVERIFY(steps.back().state == StepState::Failed);
            QVERIFY2(steps.back().error.find("verify (types)") != std::string::npos, steps.back().error.c_str());
            return;
        }
        for (const StepInfo& step : steps) QVERIFY2(step.error.empty(), step.error.c_str());
        BisectOptions options;
        if (fault.endsWith("nan")) options.check = BisectCheck::Nan;
        const auto found = bisect(session, *run, options);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QCOMPARE(found->found, !rule.isEmpty());
        if (found->found) QCOMPARE(QString::fromStdString(found->rewrite.rule), rule);
    }

    void compiledCode_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("message");
        QTest::newRow("wrong") << "wrong"
                               << "";
        QTest::newRow("nan") << "nan"
                             << "";
        QTest::newRow("crash") << "crash"
                               << "signal 11";
        QTest::newRow("runtime_error") << "runtime_error"
                                       << "asked for by CUTAWAY_FAULT";
    }
    void compiledCode() {
        QFETCH(QString, kind);
        QFETCH(QString, message);
        setFault("kernel:aten.relu.default:" + kind.toStdString());
        Session session;
        QVERIFY(session.open(m_file));
        const auto run = session.compile({});
        QVERIFY(run);
        RunOptions options;
        const auto reference = session.run(*run, options);
        QVERIFY2(reference, reference ? "" : reference.error().text().c_str());
        options.backend = Backend::Cpu;
        const auto compiled = session.run(*run, options);
        QCOMPARE(bool(compiled), message.isEmpty());
        if (!compiled) {
            QVERIFY(QString::fromStdString(compiled.error().text()).contains(message));
            return;
        }
        const OutputReport &is = compiled->outputs[0], &should = reference->outputs[0];
        QCOMPARE(is.nonFinite, kind == "nan" ? int64_t(3) : int64_t(0));
        if (kind == "wrong") QVERIFY(std::abs(is.mean - should.mean) > 0.01);
    }

    /// A check that runs both graphs in the interpreter sees a fault of one side.
    void oneSideOfAComparison() {
        Session session;
        QVERIFY(session.open(m_file));
        const auto run = session.compile({});
        setFault("op:aten.relu.default:wrong");
        QVERIFY(session.checkNumbers(*run)->kept);
        QVERIFY(!bisect(session, *run, {})->found);
        for (const char* side : {"after", "before"}) {
            setFault(std::string("op@") + side + ":aten.relu.default:wrong");
            QVERIFY(!session.checkNumbers(*run)->kept);
            QVERIFY(bisect(session, *run, {})->found);
        }
    }

    void nothingElse() {
        setFault("op:aten.relu.default:wrong; ;nonsense;pass:no_such:crash");
        QVERIFY(faultsAsked());
        QVERIFY(faultEffect("op", "aten.relu.default") == FaultEffect::Wrong);
        QVERIFY(faultEffect("op", "aten.relu") == FaultEffect::None);
        QVERIFY(faultEffect("pass", "aten.relu.default") == FaultEffect::None);
        setFault("rule:a/b:nan");
        QVERIFY(faultEffect("rule", "b", "a") == FaultEffect::Nan);
        QVERIFY(faultEffect("rule", "b", "c") == FaultEffect::None);
        QVERIFY(faultEffect("rule", "b") == FaultEffect::None);
    }

  private:
    QTemporaryDir m_folder;
    std::string m_file;
};

CUTAWAY_SUITE(FaultPointsTest)
#include "fault_points_test.moc"
