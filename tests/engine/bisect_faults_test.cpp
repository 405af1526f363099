// Bisecting names the guilty rewrite, whatever is wrong with it and in whatever kind of run.
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "cutaway/bisect.h"
#include "engine/support/fault_points.h"
#include "engine/support/process.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

const char* const kPlain =
    "def forward(x: \"f32[3, 4]\", w: \"f32[4, 4]\"):\n"
    "    a: \"f32[3, 4]\" = aten.clone.default(x)\n"
    "    b: \"f32[3, 4]\" = aten.mm.default(a, w)\n"
    "    c: \"f32[3, 4]\" = aten.clone.default(b)\n"
    "    d: \"f32[3, 4]\" = aten.gelu.default(c)\n"
    "    e: \"f32[3, 4]\" = aten.silu.default(d)\n"
    "    return (e,)\n";

// Three kernels, one of a chain, one of a reduction and what reads it.
const char* const kFused =
    "def forward(x: \"f32[30, 40]\", w: \"f32[40, 40]\"):\n"
    "    a = aten.relu.default(x)\n"
    "    c = aten.cos.default(a)\n"
    "    m = aten.mm.default(c, w)\n"
    "    t = aten.tanh.default(m)\n"
    "    e = aten.exp.default(t)\n"
    "    n = aten.mm.default(e, w)\n"
    "    s = aten.sum.dim_IntList(n, [1], True)\n"
    "    d = aten.div.Tensor(n, s)\n"
    "    return (d,)\n";

struct Kind {
    const char* name;
    const char* request;
};
constexpr Kind kRuns[] = {{"inference", ""}, {"training", "--mode training --grad x --grad w"}, {"frozen", "--freeze"}};

struct Wrong {
    const char* kind;
    BisectCheck check;
};
constexpr Wrong kWrongs[] = {{"wrong", BisectCheck::Numbers}, {"nan", BisectCheck::Nan},
                             {"invalid", BisectCheck::Crash}, {"runtime_error", BisectCheck::Crash},
                             {"int", BisectCheck::Crash},     {"crash", BisectCheck::Crash},
                             {"abort", BisectCheck::Crash},   {"hang", BisectCheck::Crash},
                             {"sigterm", BisectCheck::Crash}, {"leak", BisectCheck::Crash}};

}  // namespace

class BisectFaultsTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        qputenv("CUTAWAY_REPROS", "off");
        m_file = m_folder.filePath("graph.py").toStdString();
        std::ofstream(m_file) << kPlain;
    }
    void cleanup() { setFault(""); }

    void rules_data() {
        QTest::addColumn<QString>("request");
        QTest::addColumn<QString>("pass");
        QTest::addColumn<QString>("rule");
        QTest::addColumn<QString>("kind");
        QTest::addColumn<int>("check");
        for (const Kind& run : kRuns)
            for (const Wrong& wrong : kWrongs)
                for (const auto& [pass, rule] :
                     {std::pair("remove_noop_ops", "aten.clone.default"), std::pair("decompose", "aten.silu.default")})
                    QTest::addRow("%s, %s, %s", run.name, wrong.kind, rule)
                        << run.request << pass << rule << wrong.kind << static_cast<int>(wrong.check);
    }
    void rules() {
        QFETCH(QString, request);
        QFETCH(QString, pass);
        QFETCH(QString, rule);
        QFETCH(QString, kind);
        QFETCH(int, check);
        const BisectReport report = search("rule:" + pass + "/" + rule + ":" + kind, request, check);
        if (QTest::currentTestFailed()) return;
        QVERIFY(report.found);
        QCOMPARE(QString::fromStdString(report.step.name), pass);
        QCOMPARE(QString::fromStdString(report.rewrite.rule), rule);
        QVERIFY(!report.rewrite.node.empty());
        const auto count = report.levels.size();
        QCOMPARE(count, size_t(4));
        QCOMPARE(QString::fromStdString(report.levels[2].name).section('#', 0, 0), pass);
        QVERIFY(report.levels[3].name.find(rule.toStdString()) != std::string::npos);
        QCOMPARE(report.bad, report.good + 1);
        if (static_cast<BisectCheck>(check) == BisectCheck::Numbers)
            QVERIFY(report.value && report.value->worst.actual != report.value->worst.expected);
    }

    void passes_data() {
        QTest::addColumn<QString>("request");
        QTest::addColumn<QString>("kind");
        QTest::addColumn<int>("check");
        for (const Kind& run : kRuns)
            for (const Wrong& wrong : kWrongs)
                QTest::addRow("%s, %s", run.name, wrong.kind)
                    << run.request << wrong.kind << static_cast<int>(wrong.check);
    }
    /// A fault of a whole pass is a rewrite of its own, `fault`, or strikes before the pass's first rewrite.
    void passes() {
        QFETCH(QString, request);
        QFETCH(QString, kind);
        QFETCH(int, check);
        const BisectReport report = search("pass:remove_noop_ops:" + kind, request, check);
        if (QTest::currentTestFailed()) return;
        QVERIFY(report.found);
        QCOMPARE(QString::fromStdString(report.step.name), QStringLiteral("remove_noop_ops"));
        const bool rewrites = kind == "wrong" || kind == "nan" || kind == "invalid";
        QCOMPARE(report.rewrite.index >= 0, rewrites);
        if (rewrites) QCOMPARE(QString::fromStdString(report.rewrite.rule), QStringLiteral("fault"));
    }

    /// Freezing removes inputs, so graphs up to the end of freezing are compared with the graph as opened.
    void rewritesBeforeFreezing_data() {
        QTest::addColumn<QString>("pass");
        QTest::addColumn<QString>("rule");
        QTest::newRow("before") << "expand_composites"
                                << "aten.linear.default";
        QTest::newRow("the weights") << "replace_params_with_constants"
                                     << "freeze_parameter";
        QTest::newRow("behind") << "view_to_reshape"
                                << "view_to_reshape";
    }
    void rewritesBeforeFreezing() {
        QFETCH(QString, pass);
        QFETCH(QString, rule);
        setFault(("rule:" + pass + "/" + rule + ":wrong").toStdString());
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/tiny_resnet.pt2"));
        CompileRequest request;
        request.freeze = true;
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto report = bisect(session, *run, {});
        QVERIFY2(report && report->found, report ? report->note.c_str() : report.error().text().c_str());
        QCOMPARE(QString::fromStdString(report->step.name), pass);
        QCOMPARE(QString::fromStdString(report->rewrite.rule), rule);
    }

    void runsThatDie_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<bool>("compiled");
        QTest::addColumn<int>("check");
        QTest::addColumn<bool>("found");
        // What a rewrite makes and the graph as opened has not.
        QTest::newRow("interpreter") << "op:aten.maximum.default:crash" << false << int(BisectCheck::Crash) << true;
        QTest::newRow("compiled") << "kernel:aten.maximum.default:abort" << true << int(BisectCheck::Crash) << true;
        QTest::newRow("numbers") << "kernel:aten.maximum.default:wrong" << true << int(BisectCheck::Numbers) << true;
        QTest::newRow("a NaN") << "kernel:aten.maximum.default:nan" << true << int(BisectCheck::Nan) << true;
        QTest::newRow("a NaN, interpreted")
            << "op@after:aten.maximum.default:nan" << false << int(BisectCheck::Nan) << true;
        QTest::newRow("anyhow") << "op:aten.mm.default:crash" << false << int(BisectCheck::Crash) << false;
    }
    void runsThatDie() {
        QFETCH(QString, fault);
        QFETCH(bool, compiled);
        QFETCH(int, check);
        QFETCH(bool, found);
        setFault(fault.toStdString());
        Session session;
        QVERIFY(session.open(m_file));
        BisectOptions options;
        options.check = static_cast<BisectCheck>(check);
        options.backend = compiled ? Backend::Cpu : Backend::Reference;
        CompileRequest request;
        request.userRules.push_back(
            {"mine",
             "rule twice\n  place joint_custom_pre_pass\n  find\n    c = aten.clone.default(x)\n"
             "    return c\n  replace\n    m = aten.maximum.default(x, x)\n"
             "    return m\n"});
        const auto report = bisectCompile(session, request, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(report->found, found);
        QCOMPARE(report->badAsOpened, !found);
        if (found) QCOMPARE(QString::fromStdString(report->rewrite.rule), QStringLiteral("twice"));
    }

    void decisions_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("node");
        for (const char* kind : {"wrong", "nan"}) {
            QTest::addRow("a chain, %s", kind) << QString("fusion:aten.tanh.default:%1").arg(kind) << "e";
            QTest::addRow("a reduction, %s", kind) << QString("fusion:aten.sum.dim_IntList:%1").arg(kind) << "d";
            QTest::addRow("a value over another, %s", kind) << QString("reuse:aten.div.Tensor:%1").arg(kind) << "d";
        }
    }
    /// A node goes wrong only where it shares a kernel with others, or is written over another: the search names the
    /// decision for that.
    void decisions() {
        QFETCH(QString, fault);
        QFETCH(QString, node);
        const QString graph = m_folder.filePath("fused.py"), json = m_folder.filePath("fused.json");
        std::ofstream(graph.toStdString()) << kFused;
        ProcessOptions options;
        const bool nan = fault.endsWith(":nan");
        options.argv = {
            m_cli,    "bisect",          graph.toStdString(), "--backend", "cpu", "--check", nan ? "nan" : "numbers",
            "--json", json.toStdString()};
        options.environment = {{"CUTAWAY_FAULT", fault.toStdString()}};
        const auto end = runProcess(options);
        QVERIFY2(end && end->ok(), end ? (end->output + end->errors).c_str() : "");
        QFile report(json);
        QVERIFY(report.open(QIODevice::ReadOnly));
        const QByteArray text = report.readAll();
        const QJsonObject found = QJsonDocument::fromJson(text).object();
        const QJsonObject step = found["step"].toObject(), rewrite = found["rewrite"].toObject();
        QVERIFY2(found["found"].toBool(), text.constData());
        QCOMPARE(step["stage"].toString(), QStringLiteral("schedule"));
        const bool fused = fault.startsWith("fusion");
        QCOMPARE(step["name"].toString(), fused ? QStringLiteral("fuse_nodes") : QStringLiteral("reuse_memory"));
        QCOMPARE(rewrite["rule"].toString(), fused ? QStringLiteral("fuse") : QStringLiteral("in_place"));
        QCOMPARE(rewrite["node"].toString(), node);
        // Two libraries, three fusions, two values over others (not all of them where the last is not needed to be
        // wrong); what passes trace while they are looking for patterns is not among them.
        const int searched = found["searched"].toInt();
        QVERIFY2(searched >= 5 && searched <= 7, text.constData());
    }

    /// The tests of a search in a failed run name places of that run, whose graphs can be read.
    void placesInTheRun() {
        setFault("rule:remove_noop_ops/aten.clone.default:runtime_error");
        Session session;
        QVERIFY(session.open(m_file));
        const auto run = session.compile({});
        QVERIFY(run);
        BisectOptions options;
        options.check = BisectCheck::Crash;
        const auto report = bisect(session, *run, options);
        QVERIFY2(report && report->found, report ? "" : report.error().text().c_str());
        QCOMPARE(report->culprit.run, *run);
        const auto steps = *session.steps(*run);
        QCOMPARE(steps[static_cast<size_t>(report->culprit.step)].name, std::string("remove_noop_ops"));
        for (const BisectProbe& probe : report->probes) QVERIFY(probe.place.step < 0 || session.text(probe.place));
    }

    /// Each test's command line does what the test did.
    void commandsRepeatTheTests_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<int>("check");
        QTest::newRow("an exception") << "runtime_error" << static_cast<int>(BisectCheck::Crash);
        QTest::newRow("a crash") << "crash" << static_cast<int>(BisectCheck::Crash);
        QTest::newRow("numbers") << "wrong" << static_cast<int>(BisectCheck::Numbers);
    }
    void commandsRepeatTheTests() {
        QFETCH(QString, kind);
        QFETCH(int, check);
        const char* const rule =
            kind == "wrong" ? "pass:constant_fold_uniform_value:" : "rule:decompose/aten.silu.default:";
        const QString fault = rule + kind;
        const BisectReport report = search(fault, {}, check);
        if (QTest::currentTestFailed()) return;
        QVERIFY(report.probes.size() > 1);
        QString good, bad;
        for (const BisectProbe& probe : report.probes) {
            ProcessOptions options;
            const QString line = QString::fromStdString(probe.command);
            QVERIFY2(line.contains("cutaway-cli "), qPrintable(line));
            options.argv = {"sh", "-c",
                            QString(line).replace("cutaway-cli ", QString::fromStdString(m_cli + " ")).toStdString()};
            options.workingDirectory = m_folder.path().toStdString();
            options.environment = {{"CUTAWAY_FAULT", fault.toStdString()}};
            const auto end = runProcess(options);
            QVERIFY(end);
            if (static_cast<BisectCheck>(check) == BisectCheck::Crash)
                QVERIFY2(end->ok() == !probe.bad, (probe.command + "\n" + end->errors).c_str());
            else (probe.bad ? bad : good) = QString::fromStdString(end->output);
        }
        if (static_cast<BisectCheck>(check) == BisectCheck::Numbers) QVERIFY(!good.isEmpty() && good != bad);
    }

    void aCommandThatFailsAnyhow() {
        Session session;
        QVERIFY(session.open(m_file));
        const auto run = session.compile({});
        BisectOptions options;
        options.check = BisectCheck::Command;
        options.command = "false";
        const auto report = bisect(session, *run, options);
        QVERIFY(report && !report->found && report->badAsOpened);
        QCOMPARE(report->probes.back().rewrites, 0);
    }

    /// A search that cannot be made says how to repeat it.
    void errorsHaveAReproducer() {
        QTemporaryDir repros;
        qputenv("CUTAWAY_REPROS", repros.path().toUtf8());
        Session session;
        QVERIFY(session.open(m_file));
        const auto run = session.compile({});
        setFault("op@before:aten.mm.default:crash");
        const auto report = bisect(session, *run, {});
        const auto checked = session.checkNumbers(*run);
        qputenv("CUTAWAY_REPROS", "off");
        QVERIFY(!report && !checked);
        for (const std::string& text : {report.error().text(), checked.error().text()})
            QVERIFY2(text.find("run-repro") != std::string::npos, text.c_str());
        QCOMPARE(QDir(repros.path()).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 2);
        for (const QString& folder : QDir(repros.path()).entryList(QDir::Dirs | QDir::NoDotAndDotDot)) {
            ProcessOptions options;
            options.argv = {m_cli, "run-repro", repros.filePath(folder).toStdString()};
            options.environment = {{"CUTAWAY_FAULT", askedFaults()}};
            const auto end = runProcess(options);
            QVERIFY2(end && end->ok(), end ? (end->output + end->errors).c_str() : "");
        }
    }

  private:
    BisectReport search(const QString& fault, const QString& request, int check) {
        setFault(fault.toStdString());
        Session session;
        BisectReport none;
        [&] { QVERIFY(session.open(m_file)); }();
        BisectOptions options;
        options.check = static_cast<BisectCheck>(check);
        options.timeoutSeconds = fault.endsWith("hang") || fault.endsWith("sigterm") ? 1 : 60;
        if (fault.endsWith("leak")) options.memoryBytes = int64_t{1} << 30;
        const CompileRequest asked = *parseRequest(request.toStdString());
        Result<BisectReport> report = Error{};
        if (options.check == BisectCheck::Crash) report = bisectCompile(session, asked, options);
        else if (const auto run = session.compile(asked)) report = bisect(session, *run, options);
        [&] { QVERIFY2(report, report ? "" : report.error().text().c_str()); }();
        return report ? *report : none;
    }
    QTemporaryDir m_folder;
    std::string m_file;
    const std::string m_cli = testing::builtProgram("cutaway-cli").toStdString();
};

CUTAWAY_SUITE(BisectFaultsTest)
#include "bisect_faults_test.moc"
