// Minifying as users do: trials in child processes, a folder that outlives the program, a result that runs alone.
#include "cutaway/minify.h"

#include <signal.h>
#include <unistd.h>

#include <QDir>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "cutaway/reproducer.h"
#include "engine/support/fault_points.h"
#include "engine/support/files.h"
#include "engine/support/process.h"
#include "engine/support/sanitized.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// A chain of `length` sines with a relu at each of the bad places.
std::string chain(int length, const std::vector<int>& bad) {
    std::string text = "def forward(x: \"f32[4]\"):\n", value = "x";
    for (int i = 0; i < length; ++i) {
        const bool isBad = std::find(bad.begin(), bad.end(), i) != bad.end();
        text += "    v" + std::to_string(i) + " = aten." + (isBad ? "relu" : "sin") + ".default(" + value + ")\n";
        value = "v" + std::to_string(i);
    }
    return text + "    return (" + value + ",)\n";
}

const char* const kFewRelus = "test $(grep -c 'aten.relu' {}) -lt 2";  // fails as long as there are two

/// Takes the log of a negative number in its middle.
const char* const kLog = R"(def forward(x: "f32[4]", y: "f32[4]"):
    sin = aten.sin.default(x)
    mul = aten.mul.Tensor(sin, sin)
    neg = aten.neg.default(mul)
    sub = aten.sub.Tensor(neg, 1)
    log = aten.log.default(sub)
    cos = aten.cos.default(log)
    add = aten.add.Tensor(cos, y)
    relu = aten.relu.default(y)
    return (add, relu)
)";

const char* const kCopies = R"(def forward(x: "f32[4, 4]", y: "f32[4, 4]"):
    a = aten.clone.default(x)
    b = aten.mm.default(a, y)
    c = aten.clone.default(b)
    d = aten.silu.default(c)
    return (d,)
)";
const char* const kTrained = R"(def forward(x: "f32[4, 4]", w: "f32[4, 4]"):
    a = aten.mm.default(x, w)
    b = aten.sigmoid.default(a)
    c = aten.sin.default(b)
    d = aten.mul.Tensor(c, a)
    e = aten.sum.default(d)
    return (e,)
)";

/// The environment as it was, when this goes.
class Environment {
  public:
    Environment(const char* name, const std::string& value) : m_name(name) { qputenv(name, value.c_str()); }
    ~Environment() { qunsetenv(m_name); }

  private:
    const char* m_name;
};

}  // namespace

class MinifyTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string path(const std::string& name) const { return m_folder.filePath(name.c_str()).toStdString(); }
    std::string write(const std::string& name, const std::string& text) const {
        const auto written = writeFile(path(name), text);
        if (!written) qFatal("%s", written.error().text().c_str());
        return path(name);
    }
    static Result<MinifyReport> minifyFile(const std::string& file, const MinifyOptions& options,
                                           const Progress& progress = {}) {
        Session session;
        CT_TRY_VOID(session.open(file));
        return minify(session, options, {}, progress);
    }
    const std::string m_cli = testing::builtProgram("cutaway-cli").toStdString();
    MinifyOptions byCommand(const std::string& command, const std::string& folder) const {
        MinifyOptions options;
        options.check = MinifyCheck::Command;
        options.command = command;
        options.folder = path(folder);
        return options;
    }

  private slots:
    void init() { QVERIFY(m_folder.isValid()); }

    void findsWhatACommandObjectsTo() {
        const std::string file = write("one.py", chain(64, {20}));
        const auto report = minifyFile(file, byCommand("! grep -q aten.relu {}", "one"));
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(report->nodes, 3);
        QCOMPARE(report->nodesBefore, 66);
        QVERIFY(report->reproduced);
        QVERIFY(report->trials <= 37);
        const auto again = runReproducer(report->folder);
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        QVERIFY(again->repeated);
    }

    void resultDoesNotDependOnJobs() {
        const std::string file = write("two.py", chain(120, {30, 90}));
        std::vector<std::pair<int, std::string>> seen;
        for (const int jobs : {1, 4}) {
            MinifyOptions options = byCommand(kFewRelus, "jobs" + std::to_string(jobs));
            options.jobs = jobs;
            const auto report = minifyFile(file, options);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QCOMPARE(report->nodes, 4);
            seen.emplace_back(report->trials, report->text);
        }
        QCOMPARE(seen[0].first, seen[1].first);
        QCOMPARE(seen[0].second, seen[1].second);
    }

    void sameAsPyTorchWithParity() {
        const std::string file = write("parity.py", chain(64, {20}));
        MinifyOptions options = byCommand("! grep -q aten.relu {}", "parity");
        options.request.parity = true;
        const auto report = minifyFile(file, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(report->nodes, 3);
        options.maxGranularity = 3;
        options.restart = true;
        const auto refused = minifyFile(file, options);
        QVERIFY(!refused);
        QCOMPARE(QString::fromStdString(refused.error().message), QString("max_granularity 3 not power of two"));
    }

    void findsTheCallThatMakesNaN() {
        MinifyOptions options;
        options.check = MinifyCheck::Nan;
        options.folder = path("nan");
        const auto report = minifyFile(write("log.py", kLog), options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY2(report->nodes <= 4, report->text.c_str());
        QVERIFY2(report->text.find("aten.log.default") != std::string::npos, report->text.c_str());
        QVERIFY(report->reproduced);
    }

    void aGraphThatDoesNotFailIsRefused() {
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.folder = path("good");
        const auto report = minifyFile(write("good.py", chain(10, {})), options);
        QVERIFY(!report);
        QCOMPARE(report.error().code, ErrorCode::NotFound);
        QVERIFY(QString::fromStdString(report.error().message).contains("does not fail"));
    }

    void aPassThatFails() {
        setFault("pass:remove_noop_ops:logic_error");
        MinifyOptions options;
        options.folder = path("crash");
        const auto report = minifyFile(write("crash.py", chain(40, {7})), options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(report->nodes <= 3);
        QCOMPARE(QString::fromStdString(report->signature.pass), QString("joint/remove_noop_ops"));
        const auto page = readFile(report->folder + "/README.md");
        QVERIFY(page && page->find("cutaway-cli bisect") != std::string::npos);
        // Without the fault the result is good, and that is said.
        setFault({});
        const auto again = runReproducer(report->folder);
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        QVERIFY(!again->repeated);
    }

    /// Whatever a trial does, it ends, leaves nothing behind, and is told by its signature.
    void aTrialCostsOnlyItself_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("signature");
        QTest::newRow("crash") << "crash"
                               << "kind=crash; pass=joint/remove_noop_ops";
        QTest::newRow("abort") << "abort"
                               << "kind=crash; pass=joint/remove_noop_ops";
        QTest::newRow("hang") << "hang"
                              << "kind=hang; pass=joint/remove_noop_ops";
        QTest::newRow("ignores SIGTERM") << "sigterm"
                                         << "kind=hang; pass=joint/remove_noop_ops";
        QTest::newRow("takes all memory") << "leak"
                                          << "kind=memory";
        QTest::newRow("an invalid graph") << "invalid"
                                          << "kind=invalid-graph; pass=joint/remove_noop_ops";
        QTest::newRow("leaves children") << "fork"
                                         << "";
    }
    void aTrialCostsOnlyItself() {
        QFETCH(QString, kind);
        QFETCH(QString, signature);
        const QByteArray mark = "CUTAWAY_MINIFY_TEST=" + QByteArray::number(::getpid()) + "_" + kind.toUtf8();
        const Environment marked("CUTAWAY_MINIFY_TEST", mark.mid(mark.indexOf('=') + 1).toStdString());
        setFault("pass:remove_noop_ops:" + kind.toStdString());
        MinifyOptions options;
        options.folder = path("only_" + kind.toStdString());
        options.timeoutSeconds = 2;
        options.memoryBytes = int64_t{400} << 20;
        options.maxTrials = 4;
        const auto report = minifyFile(write("only.py", chain(12, {7})), options);
        setFault({});
        if (signature.isEmpty()) {
            QVERIFY(!report);
            QCOMPARE(report.error().code, ErrorCode::NotFound);
        } else {
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QVERIFY2(QString::fromStdString(report->signature.text()).startsWith(signature),
                     report->signature.text().c_str());
            QVERIFY(report->reproduced);
        }
        // Nobody is left who inherited the mark.
        const auto left = [&] {
            int count = 0;
            for (const QString& process : QDir("/proc").entryList({"[0-9]*"}, QDir::Dirs)) {
                if (process.toInt() == ::getpid()) continue;
                QFile environment("/proc/" + process + "/environ");
                count += environment.open(QIODevice::ReadOnly) && environment.readAll().contains(mark);
            }
            return count;
        };
        QTRY_COMPARE(left(), 0);
    }

    void wrongKernelsAreFoundAgainstTheInterpreter() {
        setFault("kernel:aten.relu.default:wrong");
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.backend = Backend::Cpu;
        options.folder = path("kernel");
        const auto report = minifyFile(write("kernel.py", chain(10, {6})), options);
        setFault({});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY2(report->nodes <= 3, report->text.c_str());
        QVERIFY2(report->text.find("aten.relu.default") != std::string::npos, report->text.c_str());
    }

    void wrongNumbersNameTheirPass() {
        setFault("pass:remove_noop_ops:wrong");
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.folder = path("named");
        const std::string file = write("named.py", chain(30, {6}));
        const auto report = minifyFile(file, options);
        // Searches for a given signature: the one that was found, and another.
        options.folder = path("asked");
        options.signature = "kind=numbers; pass=joint/remove_noop_ops";
        const auto asked = minifyFile(file, options);
        options.signature = "kind=numbers; pass=post_grad/decompose";
        options.folder = path("another");
        const auto another = minifyFile(file, options);
        setFault({});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(QString::fromStdString(report->signature.pass), QString("joint/remove_noop_ops"));
        QVERIFY2(report->nodes <= 3, report->text.c_str());
        QVERIFY(report->reproduced);
        QVERIFY2(asked, asked ? "" : asked.error().text().c_str());
        QCOMPARE(asked->nodes, report->nodes);
        QVERIFY(!another);
        QVERIFY(QString::fromStdString(another.error().message).contains("does not fail as"));
    }

    /// Two calls that a rule joins stand at both ends of the graph, so that no part of its order has both.
    void callsFarApart_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<int>("check");
        QTest::addColumn<QString>("failure");
        const auto row = [](const char* kind, MinifyCheck check, const char* failure) {
            QTest::newRow(kind) << QString("rule:pointless_permute_pair:%1").arg(kind) << static_cast<int>(check)
                                << QString(failure);
        };
        row("wrong", MinifyCheck::Numbers, "numbers");
        row("nan", MinifyCheck::Nan, "nan");
        row("invalid", MinifyCheck::Crash, "invalid-graph");
        row("logic_error", MinifyCheck::Crash, "pass-error");
        row("abort", MinifyCheck::Crash, "crash");
    }
    void callsFarApart() {
        QFETCH(QString, fault);
        QFETCH(int, check);
        QFETCH(QString, failure);
        std::string text = "def forward(x: \"f32[4, 4]\"):\n    p = aten.permute.default(x, [1, 0])\n", value = "x";
        for (int i = 0; i < 200; ++i) {
            const std::string name = "v" + std::to_string(i);
            text += "    " + name + " = aten.sin.default(" + value + ")\n";
            value = name;
        }
        text += "    q = aten.permute.default(p, [1, 0])\n    r = aten.add.Tensor(" + value + ", q)\n    return (r,)\n";
        setFault(fault.toStdString());
        MinifyOptions options;
        options.check = static_cast<MinifyCheck>(check);
        options.folder = path("far_" + failure.toStdString());
        const auto report = minifyFile(write("far.py", text), options);
        setFault({});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(QString::fromUtf8(nameOf(report->signature.kind).data()), failure);
        QVERIFY2(report->nodes <= 6, report->text.c_str());
        QVERIFY(report->reproduced);
        // Halving the order, and then taking out calls, asks twice as often.
        QVERIFY2(report->trials <= 30, qPrintable(QString::number(report->trials)));
    }

    /// One of them in the backward, made of what differentiation made and took apart again: a tied weight.
    void callsFarApartInTraining() {
        std::string text = "def forward(w: \"f32[600, 8]\", i: \"i64[1, 4]\"):\n    v = aten.embedding.default(w, i)\n",
                    v = "v";
        for (int i = 0; i < 60; ++i, v += "v") text += "    " + v + "v = aten.sin.default(" + v + ")\n";
        setFault("rule:addmm:wrong");
        MinifyOptions options;
        options.request = {.mode = Mode::Training, .gradients = {"w"}};
        options.check = MinifyCheck::Numbers;
        options.folder = path("tied");
        text += "    y = aten.linear.default(" + v + ", w)\n    return (y,)\n";
        const auto report = minifyFile(write("tied.py", text), options);
        setFault({});
        QVERIFY2(report && report->nodes <= 6 && report->trials <= 50, report ? report->text.c_str() : "not minified");
    }

    /// The result's request names only passes that the failure needs, and the result needs no file of inputs.
    void theResultAsksForNoMoreThanItNeeds() {
        setFault("pass:remove_noop_ops:logic_error");
        MinifyOptions options;
        options.request.enabledPasses = {{"pad_mm", {{"force_shape_pad", "1"}}}};
        options.folder = path("least");
        const auto report = minifyFile(write("least.py", kCopies), options);
        const auto facts = report ? readFile(report->folder + "/repro.json") : Result<std::string>(Error{});
        setFault({});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(report->reproduced);
        QVERIFY2(facts && facts->find("pad_mm") == std::string::npos, facts ? facts->c_str() : "");
        QCOMPARE(report->inputs, 0);
        QVERIFY2(report->text.find("aten.full.default") != std::string::npos, report->text.c_str());
    }

    void compiledTrainingIsComparedWithTheInterpreter() {
        setFault("kernel:aten.sigmoid.default:wrong");
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.backend = Backend::Cpu;
        options.request.mode = Mode::Training;
        options.request.gradients = {"w"};
        options.folder = path("halves");
        const auto report = minifyFile(write("halves.py", kTrained), options);
        setFault({});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY2(report->nodes <= 4, report->text.c_str());
        QVERIFY(report->reproduced);
        // Without the fault both halves compute what the interpreter does.
        options.folder = path("soundHalves");
        const auto sound = minifyFile(write("halves.py", kTrained), options);
        QVERIFY(!sound);
        QVERIFY2(QString::fromStdString(sound.error().message).contains("does not fail"), sound.error().text().c_str());
    }

    /// The graph of a step is tried from its stage on.
    void theGraphOfAStep() {
        Session session;
        QVERIFY(session.open(write("step.py", kTrained)));
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = {"w"};
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto steps = session.steps(*run);
        QVERIFY(steps);
        const auto half = std::find_if(steps->begin(), steps->end(),
                                       [](const StepInfo& step) { return step.graphName == "backward"; });
        QVERIFY(half != steps->end());
        setFault("pass:remove_noop_ops:logic_error");
        MinifyOptions options;
        options.request = request;
        options.place = Place{*run, half->index, -1};
        options.folder = path("step");
        const auto none = minify(session, options);
        // No stage behind it has that pass.
        QVERIFY(!none);
        setFault("pass:reinplace_inplaceable_ops:logic_error");
        const auto report = minify(session, options);
        setFault({});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(report->nodesBefore, half->nodesAfter);
        QVERIFY(report->nodes <= 3);
        QVERIFY(report->reproduced);
    }

    /// Inputs that are made up give NaN where a file's would not.
    void resultsThatAreNanAnywaySaySo() {
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.folder = path("hidden");
        const std::string graph =
            "def forward(x: \"f32[8]\"):\n    a = aten.abs.default(x)\n"
            "    b = aten.neg.default(a)\n    c = aten.sqrt.default(b)\n    return (c,)\n";
        const auto report = minifyFile(write("hidden.py", graph), options);
        QVERIFY(!report);
        const QString said = QString::fromStdString(report.error().text());
        QVERIFY2(said.contains("8 of 8 elements are not finite before the passes already"), qPrintable(said));
    }

    void anotherSearchInTheFolderIsRefused() {
        const std::string file = write("a.py", chain(20, {5})), other = write("b.py", chain(30, {5}));
        const MinifyOptions options = byCommand("! grep -q aten.relu {}", "shared");
        QVERIFY(minifyFile(file, options));
        const auto refused = minifyFile(other, options);
        QVERIFY(!refused);
        QVERIFY(QString::fromStdString(refused.error().message).contains("search of another graph"));
        MinifyOptions fresh = options;
        fresh.restart = true;
        QVERIFY(minifyFile(other, fresh));
    }

    void goesOnWhereItWasStopped() {
        const std::string file = write("stop.py", chain(120, {30, 90}));
        const auto whole = minifyFile(file, byCommand(kFewRelus, "whole"));
        QVERIFY2(whole, whole ? "" : whole.error().text().c_str());
        MinifyOptions options = byCommand(kFewRelus, "stopped");
        int made = 0;
        int best = 1000;
        for (const int64_t most : {3, 9, 20, 5, 0}) {
            options.maxTrials = most;
            const auto part = minifyFile(file, options);
            QVERIFY2(part, part ? "" : part.error().text().c_str());
            QCOMPARE(part->stopped, most != 0);
            QVERIFY(part->reproduced);
            made += part->made;
            QVERIFY(part->nodes <= best);
            best = part->nodes;
            if (most == 0) {
                QCOMPARE(part->text, whole->text);
                QCOMPARE(part->trials, whole->trials);
            }
        }
        // The whole graph is tried at each start; speculation may add some.
        QVERIFY2(made <= whole->made + 5 + 8, qPrintable(QString("%1 against %2").arg(made).arg(whole->made)));
    }

    /// At any moment the folder holds a whole result, and the search can go on.
    void survivesBeingKilled() {
        const std::string file = write("kill.py", chain(120, {30, 90})), folder = path("killed");
        ProcessOptions options;
        options.argv = {m_cli, "minify", file, "--check", "command", "--command", kFewRelus, "-o", folder};
        bool ended = false;
        int kills = 0, best = 1000;
        for (; !ended && kills < 200; ++kills) {
            auto child = ChildProcess::start(options);
            QVERIFY(child);
            // Starting takes longer under sanitizers, and on a busy machine.
            QTest::qWait((20 + (kills * 37) % 90) * (kSanitized ? 20 : 1 + kills / 60));
            ended = !child->running();
            ::kill(child->pid(), SIGKILL);
            const ProcessEnd end = child->wait();
            if (ended) QVERIFY2(end.ok(), end.errors.c_str());
            if (std::ifstream(folder + "/best/repro.json").good()) {
                Session session;
                QVERIFY(session.open(folder + "/best/graph.py"));
                const int nodes = session.model().graphs.front().nodes;
                QVERIFY2(nodes <= best, qPrintable(QString("%1 nodes after %2").arg(nodes).arg(best)));
                best = nodes;
            }
        }
        QVERIFY2(ended, "the search never came to its end");
        const auto again = runReproducer(folder + "/best");
        QVERIFY2(again && again->repeated, again ? "another failure" : again.error().text().c_str());
        Session session;
        QVERIFY(session.open(folder + "/best/graph.py"));
        QCOMPARE(session.model().graphs.front().nodes, 4);
    }

    void cancellingKeepsTheBest() {
        Progress progress;
        int asked = 0;
        progress.report = [&](double, const std::string&) {
            if (++asked == 12) progress.cancel->cancel();
        };
        const auto report =
            minifyFile(write("cancel.py", chain(120, {30, 90})), byCommand(kFewRelus, "cancel"), progress);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(report->stopped && report->reproduced);
    }
};

CUTAWAY_SUITE(MinifyTest)
#include "minify_test.moc"
