// Every command of cutaway-cli, as its own table lists them: it works, its JSON has the shape that the manual tells, it
// fails when nobody takes its output, and refuses what it does not understand. A command without a row here fails.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <map>

#include "app/cli/json_shape.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway::cli;
using cutaway::testing::Ended;
using cutaway::testing::kWrongRule;
using cutaway::testing::runShell;

namespace {

constexpr const char* kShortChain = R"(def forward(x: "f32[4]"):
    a = aten.relu.default(x)
    b = aten.slice.Tensor(a, 0, 0, 9223372036854775807)
    c = aten.cos.default(b)
    return (c,)
)";

/// A line for each way in which a command reports; the first is the plain one.
struct Smoke {
    QString line;
    std::map<QString, QString> reports;  // by the options that the manual names
    QString environment = {};
};
const std::map<QString, Smoke> kSmoke = {
    {"info", {"info chain.py", {{"--json", "info chain.py"}}}},
    {"text", {"text chain.py --step decompose", {}}},
    {"compile", {"compile chain.py", {{"--json", "compile chain.py"}, {"--stages-json", "compile chain.py"}}}},
    {"steps",
     {"steps chain.py",
      {{"--json", "steps chain.py"},
       {"--json --rewrites", "steps chain.py --rewrites"},
       {"--json --check-numbers", "steps chain.py --check-numbers"}}}},
    {"diff",
     {"diff chain.py --step remove_noop_ops",
      {{"--json", "diff chain.py --step remove_noop_ops"}, {"--json OTHER", "diff chain.py chain.py"}}}},
    {"run", {"run chain.py", {{"--json", "run chain.py"}, {"--json --calls", "run chain.py --backend cpu --calls"}}}},
    {"loops",
     {"loops chain.py",
      {{"--json", "loops chain.py"},
       {"--json --kernel", "loops chain.py --kernel kernel0"},
       {"--json --listing", "loops chain.py --kernel kernel0 --listing assembly"},
       {"--json --plan", "loops chain.py --kernel kernel0 --plan plan.txt --repeat 2"}}}},
    {"memory", {"memory chain.py", {{"--json", "memory chain.py"}}}},
    {"export", {"export chain.py -o exported", {{"--json", "export chain.py -o exported"}}}},
    {"package",
     {"package " CUTAWAY_SOURCE_DIR "/tests/data/packages/2.15.pt2",
      {{"--json", "package " CUTAWAY_SOURCE_DIR "/tests/data/packages/2.11.pt2"},
       {"--json --against", "package " CUTAWAY_SOURCE_DIR "/tests/data/packages/2.15.pt2 --against " CUTAWAY_SOURCE_DIR
                            "/tests/data/packages/model.pt2"}}}},
    {"compile-op",
     {"compile-op aten::relu --arg 'f32[4]' --cache operators",
      {{"--json", "compile-op aten::relu --arg 'f32[4]' --cache operators"},
       {"--json --check", "compile-op aten::relu --arg 'f32[4]' --cache operators --check"}}}},
    {"cache",
     {"cache list --cache kept/store",
      {{"--json", "cache list --cache kept/store"}, {"--json MODEL", "cache why chain.py --cache kept/store"}}}},
    {"partition",
     {"partition " CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2",
      {{"--json", "partition " CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"},
       {"--json --curve", "partition --curve " CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"}}}},
    {"bench",
     {"bench chain.py --repeat 1",
      {{"--json", "bench chain.py --repeat 1 --build --run"}, {"--json --curve", "bench --curve 30 --repeat 1"}}}},
    {"bisect", {"bisect chain.py --rules wrong.rules", {{"--json", "bisect chain.py --rules wrong.rules"}}}},
    {"minify",
     {"minify chain.py --command '! grep -q aten.cos {}' -o small",
      {{"--json", "minify chain.py --command '! grep -q aten.cos {}' -o small"}}}},
    {"batch", {"batch chain.toml", {{"--json", "batch chain.toml"}}}},
    {"checked-run",
     {"checked-run chain.py",
      {{"--json", "checked-run chain.py"}, {"--json --values", "checked-run chain.py --values c"}}}},
    {"debug-compile", {"debug-compile chain.py -o bundle", {{"--json", "debug-compile chain.py -o bundle"}}}},
    {"explain",
     {"explain chain.py --node b",
      {{"--json", "explain " CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"},
       {"--json --node", "explain chain.py --node b"},
       {"--json --values",
        "explain " CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2 --freeze --node permute_3 --values"}}}},
    {"rules", {"rules --pass early_patterns", {{"--json", "rules --pass early_patterns"}}}},
    {"plugin",
     {"plugin list",
      {{"--json", "plugin list"},
       {"--json FILE", "plugin check mine.rules"},
       {"--json NAME MODEL", "plugin color color_family chain.py"}},
      "CUTAWAY_PLUGINS=" CUTAWAY_SOURCE_DIR "/plugins/samples "}},
    {"settings",
     {"settings",
      {{"--json", "settings"},
       {"--json --device", "settings --device"},
       {"--json --pytorch", "settings --pytorch 2.15"}}}},
    {"operators", {"operators", {{"--json", "operators"}}}},
    {"releases", {"releases", {{"--json", "releases 2.13"}}}},
    {"run-repro", {"run-repro repro", {{"--json", "run-repro repro"}}, "CUTAWAY_FAULT=pass:decompose:runtime_error "}},
    {"manual", {"manual", {{"--json", "manual"}}}},
};

}  // namespace

class CliCommandsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    Json m_table;

    Ended shell(const QString& line) const { return runShell(m_folder.path(), line); }
    void write(const QString& name, const QByteArray& text) const {
        QFile file(m_folder.filePath(name));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
            qFatal("cannot write %s", qPrintable(name));
    }
    static QString text(const Json& json) { return QString::fromStdString(json.get<std::string>()); }
    void addCommands() const {
        QTest::addColumn<QString>("name");
        for (const Json& command : m_table)
            QTest::newRow(qPrintable(text(command["command"]))) << text(command["command"]);
    }
    const Json& command(const QString& name) const {
        for (const Json& each : m_table)
            if (text(each["command"]) == name) return each;
        qFatal("no command %s", qPrintable(name));
    }
    static QString lineOf(const QString& name) {
        return kSmoke.at(name).environment + "cutaway-cli " + kSmoke.at(name).line;
    }
    /// "--json" of "--json FILE".
    static QString flagOf(const Json& option) { return text(option).section(' ', 0, 0); }

  private slots:
    void initTestCase() {
        write("chain.py", kShortChain);
        write("chain.toml", "cache = 'off'\nchecks = ['compile']\n[[model]]\npath = 'chain.py'\n");
        write("wrong.rules", kWrongRule);
        write("mine.rules", kWrongRule);
        write("plan.txt", "order x0\nvectors nothing\n");
        // A failure to repeat, made in a pass.
        const Ended failed =
            shell(kSmoke.at("run-repro").environment + "CUTAWAY_REPROS=repros cutaway-cli compile chain.py");
        QVERIFY2(failed.status == 1, failed.err.constData());
        const QStringList made = QDir(m_folder.filePath("repros")).entryList(QDir::Dirs | QDir::NoDotAndDotDot);
        QVERIFY2(made.size() == 1, failed.err.constData());
        QVERIFY(QDir(m_folder.path()).rename("repros/" + made[0], "repro"));
        const Ended ended = shell("cutaway-cli manual --json -");
        QVERIFY2(ended.status == 0, ended.err.constData());
        m_table = Json::parse(ended.out.toStdString());
        QVERIFY(!m_table.empty());
    }

    void everyCommandIsTriedHere() {
        for (const Json& command : m_table)
            QVERIFY2(kSmoke.contains(text(command["command"])), qPrintable(text(command["command"]) + " has no row"));
        QCOMPARE(m_table.size(), kSmoke.size());
    }

    void works_data() { addCommands(); }
    void works() {
        QFETCH(QString, name);
        const Ended ended = shell(lineOf(name));
        QVERIFY2(ended.status == 0, ended.err.constData());
        QVERIFY(!ended.out.isEmpty());
        QCOMPARE(ended.err, QByteArray());
    }

    void reportsAsTheManualTells_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("options");
        QTest::addColumn<QString>("shape");
        for (const Json& command : m_table)
            for (const Json& report : command["reports"])
                QTest::addRow("%s %s", qPrintable(text(command["command"])), qPrintable(text(report["options"])))
                    << text(command["command"]) << text(report["options"]) << text(report["shape"]);
    }
    void reportsAsTheManualTells() {
        QFETCH(QString, name);
        QFETCH(QString, options);
        QFETCH(QString, shape);
        const Smoke& smoke = kSmoke.at(name);
        QVERIFY2(smoke.reports.contains(options), qPrintable(options + " has no line"));
        const QString line =
            smoke.environment + "cutaway-cli " + smoke.reports.at(options) + " " + options.section(' ', 0, 0);
        const Ended ended = shell(line + " -");
        QVERIFY2(ended.status == 0, ended.err.constData());
        const Json report = Json::parse(ended.out.toStdString(), nullptr, false);
        QVERIFY2(!report.is_discarded() && !report.empty(), ended.out.left(2000).constData());
        const std::string problem = shapeProblem(report, Json::parse(shape.toStdString()));
        QVERIFY2(problem.empty(), problem.c_str());
        QCOMPARE(shell(line + " report.json").out, QByteArray());
    }

    /// Nobody reads: the status says so, and no more work is done for it than the first write.
    void failsWhenItsOutputIsNotTaken_data() { addCommands(); }
    void failsWhenItsOutputIsNotTaken() {
        QFETCH(QString, name);
        const QString line = lineOf(name);
        const Ended full = shell(line + " > /dev/full");
        QVERIFY2(full.status == 1 && full.err.contains("cannot write the output: No space left"), full.err.constData());
        const Ended closed = shell(line + " >&-");
        QVERIFY2(closed.status == 1 && closed.err.contains("cannot write the output: Bad file"),
                 closed.err.constData());
        const Ended gone = shell("rm -f pipe; mkfifo pipe; (: < pipe) & exec 3> pipe; wait; " + line + " >&3");
        QVERIFY2(gone.status == 141 && gone.err.isEmpty(), gone.err.constData());
    }

    void refusesWhatItDoesNotUnderstand_data() { addCommands(); }
    void refusesWhatItDoesNotUnderstand() {
        QFETCH(QString, name);
        const QString line = lineOf(name);
        const Ended unknown = shell(line + " --nosuch");
        QVERIFY2(unknown.status == 2 && unknown.err.contains("--nosuch") && unknown.out.isEmpty(),
                 unknown.err.constData());
        const Ended more = shell(line + " chain.py one two");
        QVERIFY2(name == "bench" || more.status == 2, more.err.constData());
        for (const Json& option : command(name)["options"]) {
            if (!text(option).startsWith("--") || !text(option).contains(' ')) continue;
            const Ended empty = shell(line + " " + flagOf(option) + " ''");
            QVERIFY2(empty.status == 2 && empty.err.contains(flagOf(option).toUtf8()),
                     qPrintable(text(option) + empty.err));
        }
    }

    void helpAndManualNameEveryOption_data() { addCommands(); }
    void helpAndManualNameEveryOption() {
        QFETCH(QString, name);
        const Ended help = shell("cutaway-cli " + name + " --help"), page = shell("cutaway-cli manual " + name);
        QCOMPARE(help.status, 0);
        QCOMPARE(page.status, 0);
        for (const Json& option : command(name)["options"]) {
            QVERIFY2(help.out.contains(flagOf(option).toUtf8()), qPrintable(text(option)));
            QVERIFY2(page.out.contains("`" + text(option).toUtf8() + "`"), qPrintable(text(option)));
        }
    }

    void theManualHasAPageOn_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const char* says) { QTest::newRow(name) << name << says; };
        row("exit-status", "could not be understood");
        row("json", "a sentence in place of each value");
        row("compiling", "--parity");
        row("pass-settings", "`min_fuse_set_size`: The fewest calls");
        row("passes", "### decompose\n");
        row("decompose", "Stage ");
        row("batch_linear", "batch_linear=min_fuse_set_size`");
        row("pad_mm", "pad_mm=");
        row("addmm", "p = aten.mm.default(a, b)");
        row("min_fuse_set_size", "Of `batch_linear_lhs`, ");
        row("fuel", "Of `compile`.");
    }
    void theManualHasAPageOn() {
        QFETCH(QString, name);
        QFETCH(QString, says);
        const Ended page = shell("cutaway-cli manual " + name);
        QVERIFY2(page.status == 0, page.err.constData());
        QVERIFY2(page.out.contains(says.toUtf8()), page.out.left(3000).constData());
    }

    void aRunSaysWhatItWroteAndHowLongItTook() {
        for (const bool writes : {false, true}) {
            write("writes.py", QByteArray("def forward(x: \"f32[4]\"):\n    y = aten.neg.default(x)\n") +
                                   (writes ? "    z = aten.copy_.default(x, y)\n" : "") + "    return (y,)\n");
            const Ended shown = shell("cutaway-cli run writes.py"), json = shell("cutaway-cli run writes.py --json -");
            QVERIFY2(shown.status == 0 && json.status == 0, (shown.err + json.err).constData());
            QVERIFY2(shown.out.contains("median "), shown.out.constData());
            QCOMPARE(shown.out.contains("written to buffers and inputs:"), writes);
            QCOMPARE(QJsonDocument::fromJson(json.out).object().contains("written"), writes);
        }
    }

    /// What reads something else than before is shown, too.
    void aDiffShowsWhatWasRewired() {
        write("rewired.py",
              "def forward(x: \"f32[4, 4]\", w: \"f32[4, 4]\", b: \"f32[4]\"):\n    m = aten.mm.default(x, w)\n"
              "    a = aten.add.Tensor(m, b)\n    r = aten.relu.default(a)\n    return (r,)\n");
        const Ended shown = shell("cutaway-cli diff rewired.py --step post_grad_pass_pattern_2");
        QVERIFY2(shown.status == 0, shown.err.constData());
        QStringList signs;
        for (const QByteArray& line : shown.out.split('\n'))
            if (line.contains(" = "))
                signs += QString(line).section(' ', 0, 0) + QString(line).simplified().section(' ', 1, 1);
        QCOMPARE(signs, (QStringList{"+addmm:", "-m:", "-a:", "=r:", "=r:"}));
    }

    /// Two files, names of graphs and stages within them, and what PyTorch recorded on both sides of a stage.
    void twoGraphsAreCompared() {
        const QByteArray head = "def forward(x: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n    m = aten.mm.default(x, w)\n";
        write("one.py", head + "    r = aten.relu.default(m)\n    return (r,)\n");
        write("renamed.py",
              "def forward(a: \"f32[4, 4]\", b: \"f32[4, 4]\"):\n    r = aten.mm.default(a, b)\n"
              "    m = aten.relu.default(r)\n    return (m,)\n");
        write("other.py", head + "    n = aten.neg.default(m)\n    r = aten.tanh.default(n)\n    return (r,)\n");
        const Ended same = shell("cutaway-cli diff one.py renamed.py");
        QVERIFY2(same.status == 0, (same.out + same.err).constData());
        QVERIFY2(same.out.startsWith("distance 0 of 5 and 5 nodes"), same.out.constData());
        const Ended differ = shell("cutaway-cli diff one.py other.py");
        QVERIFY2(differ.status == 1, differ.err.constData());
        QVERIFY2(differ.out.contains("+    n: ") && differ.out.contains("part at "), differ.out.constData());
        const Ended stages = shell("cutaway-cli diff one.py::joint one.py::post_grad");
        QVERIFY2(stages.status == 0, (stages.out + stages.err).constData());
        const Ended none = shell("cutaway-cli diff one.py::nonesuch one.py");
        QVERIFY2(none.status == 1 && none.err.contains("nonesuch"), none.err.constData());
        QVERIFY(QDir(m_folder.path()).mkpath("stages"));
        write("stages/04_post_grad.before.py", head + "    r = aten.relu.default(m)\n    return (r,)\n");
        write("stages/04_post_grad.after.py", head + "    r = aten.neg.default(m)\n    return (r,)\n");
        const Ended recorded = shell("cutaway-cli diff stages --recorded");
        QVERIFY2(recorded.status == 1 && recorded.out.contains("04_post_grad.after.py"), recorded.err.constData());
        // The release that wrote it merges no root and reciprocal; a newer one does.
        const QByteArray root =
            "def forward(x: \"f32[4, 4]\"):\n    s = aten.sqrt.default(x)\n"
            "    r = aten.reciprocal.default(s)\n    return (r,)\n";
        write("stages/04_post_grad.before.py", root);
        write("stages/04_post_grad.after.py", root);
        QCOMPARE(shell("cutaway-cli diff stages --recorded").status, 1);
        write("stages/fx_graph_runnable.py", "# torch version: 2.13.1+cpu\n");
        const Ended asWritten = shell("cutaway-cli diff stages --recorded");
        QVERIFY2(asWritten.status == 0 && asWritten.err.contains("PyTorch 2.13"),
                 (asWritten.out + asWritten.err).constData());
        QCOMPARE(shell("cutaway-cli diff stages --recorded --pytorch 2.15").status, 1);
        QVERIFY(shell("cutaway-cli info stages --json -").out.contains("\"pytorch\": \"2.13.1+cpu\""));
        const Ended missing = shell("cutaway-cli diff one.py --recorded");
        QVERIFY2(missing.status == 1 && missing.err.contains("before and after"), missing.err.constData());
    }

    void aPageIsOnWhatWasAskedFor() {
        for (const char* name : {"min_fuse_set_size", "fuel", "decompose", "addmm"}) {
            const Ended page = shell(QString("cutaway-cli manual ") + name);
            QCOMPARE(page.out.count("### min_fuse_set_size"), qstrcmp(name, "min_fuse_set_size") == 0 ? 1 : 0);
            QVERIFY2(page.out.count("### fuel") == (qstrcmp(name, "fuel") == 0 ? 1 : 0), page.out.constData());
        }
    }

    void shapes_data() {
        QTest::addColumn<QString>("json");
        QTest::addColumn<QString>("shape");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* json, const char* shape, const char* problem) {
            QTest::addRow("%s as %s", json, shape) << json << shape << problem;
        };
        row(R"({"a": 1, "b": ["x"]})", R"({"a": "integer: n", "b": ["string: s"]})", "");
        row(R"({"a": 1.5})", R"({"a": "integer: n"})", "$.a is 1.5, not: integer: n");
        row(R"({"a": "NaN"})", R"({"a": "real: r"})", "");
        row(R"({"a": "none"})", R"({"a": "real: r"})", "$.a is \"none\", not: real: r");
        row(R"({})", R"({"a": "integer: n"})", "$ lacks a");
        row(R"({})", R"({"a?": "integer: n"})", "");
        row(R"({"a": null})", R"({"a?": "integer: n"})", "");
        row(R"({"a": "x"})", R"({"a?": "integer: n"})", "$.a is \"x\", not: integer: n");
        row(R"({"b": 1})", R"({})", "$ has b, of which the shape says nothing");
        row(R"({"x": 1, "y": true})", R"({"*": "integer: n"})", "$.y is true, not: integer: n");
        row(R"([[1], 2])", R"([["integer: n"]])", "$[1] is not a list");
        row(R"([])", R"({})", "$ is not an object");
    }
    void shapes() {
        QFETCH(QString, json);
        QFETCH(QString, shape);
        QTEST(QString::fromStdString(shapeProblem(Json::parse(json.toStdString()), Json::parse(shape.toStdString()))),
              "problem");
    }
};

CUTAWAY_SUITE(CliCommandsTest)
#include "cli_commands_test.moc"
