// Plugins: found, asked, run as passes, and what it costs when one misbehaves: itself, by name, and nothing else.
#include "cutaway/plugins.h"

#include <unistd.h>

#include <QtTest>
#include <chrono>
#include <thread>

#include "cutaway/session.h"
#include "tests/support/plugins.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::PluginsFolder;

namespace {

constexpr const char* kModel = R"(def forward(x: "f32[4, 8]", y: "f32[4, 8]"):
    mul: "f32[4, 8]" = aten.mul.Tensor(x, y)
    add: "f32[4, 8]" = aten.add.Tensor(mul, y)
    relu: "f32[4, 8]" = aten.relu.default(add)
    return (relu, mul)
)";
constexpr const char* kFusable = R"(def forward(x: "f32[4, 8]", y: "f32[4, 8]"):
    mul: "f32[4, 8]" = aten.mul.Tensor(x, y)
    add: "f32[4, 8]" = aten.add.Tensor(mul, y)
    relu: "f32[4, 8]" = aten.relu.default(add)
    mul_1: "f32[4, 8]" = aten.mul.Tensor(relu, y)
    add_1: "f32[4, 8]" = aten.add.Tensor(x, mul_1)
    return (add_1,)
)";

CompileRequest asking(const std::string& words) {
    auto request = parseRequest(words);
    if (!request) qFatal("%s", request.error().text().c_str());
    request->passesOnly = true;
    return *request;
}

}  // namespace

class PluginsTest : public QObject {
    Q_OBJECT

    PluginsFolder m_folder;
    Session m_session;

    void open(const QByteArray& text) { QCOMPARE(testing::openText(m_session, text), QString()); }
    /// The step of the plugin's pass.
    std::optional<StepInfo> stepOf(RunId run, const QString& pass) {
        const auto steps = m_session.steps(run);
        for (const StepInfo& step : *steps)
            if (QString::fromStdString(step.name).endsWith("." + pass)) return step;
        return std::nullopt;
    }

  private slots:
    void initTestCase() {
        QCOMPARE(m_folder.build(PluginsFolder::sample("fuse_addcmul.c"), "fuse_addcmul.so"), QString());
        QCOMPARE(m_folder.build(PluginsFolder::data("misbehaves.c"), "misbehaves.so"), QString());
        QVERIFY(m_folder.copy(PluginsFolder::sample("fuse_silu.rules"), "fuse_silu.rules"));
    }
    void init() { setPluginLimits({}); }

    /// The pass is a pass: in the list, stepped, switched off, moved, with settings, in the request by name and hash.
    void passOfARun() {
        open(kFusable);
        const auto run = m_session.compile(asking("--plugin fuse_addcmul"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto step = stepOf(*run, "fuse_addcmul.fuse");
        QVERIFY(step.has_value());
        QCOMPARE(step->state, StepState::Changed);
        QCOMPARE(step->rewrites, 2);
        const auto rewrites = m_session.rewrites(*run, step->index);
        QCOMPARE(rewrites->front().rule, std::string("addcmul"));
        QCOMPARE(rewrites->front().why, std::string("a product and the sum that reads it are one call"));
        const auto half = m_session.text({*run, step->index, 1});
        QCOMPARE(QString::fromStdString(half->text).count("addcmul"), 1);
        const auto whole = m_session.text({*run, step->index, -1});
        QCOMPARE(QString::fromStdString(whole->text).count("addcmul"), 2);

        const auto request = m_session.requestOf(*run);
        QCOMPARE(static_cast<int>(request->plugins.size()), 1);
        QCOMPARE(request->plugins[0].name, std::string("fuse_addcmul.fuse"));
        QCOMPARE(request->plugins[0].version, std::string("1.0"));
        QCOMPARE(static_cast<int>(request->plugins[0].hash.size()), 32);
        const auto again = m_session.compile(*parseRequest(request->text()));
        QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
        QCOMPARE(stepOf(*again, "fuse_addcmul.fuse")->rewrites, 2);

        const auto one = m_session.compile(asking("--plugin fuse_addcmul:most=1"));
        QCOMPARE(stepOf(*one, "fuse_addcmul.fuse")->rewrites, 1);
        const auto off =
            m_session.compile(asking("--plugin fuse_addcmul --disable post_grad_custom_post_pass.fuse_addcmul.fuse"));
        QCOMPARE(stepOf(*off, "fuse_addcmul.fuse")->state, StepState::Disabled);
        const auto moved = m_session.compile(
            asking("--plugin fuse_addcmul --move post_grad_custom_post_pass.fuse_addcmul.fuse=before:remove_noop_ops"));
        QVERIFY2(moved.has_value(), moved ? "" : moved.error().text().c_str());
        QVERIFY(stepOf(*moved, "fuse_addcmul.fuse")->index < step->index);
    }

    void rulesAlone() {
        open(
            "def forward(x: \"f32[4]\"):\n    s: \"f32[4]\" = aten.sigmoid.default(x)\n"
            "    m: \"f32[4]\" = aten.mul.Tensor(x, s)\n    return (m,)\n");
        const auto run = m_session.compile(asking("--plugin fuse_silu"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(stepOf(*run, "fuse_silu")->rewrites, 1);
        QVERIFY(m_session.requestOf(*run)->plugins.empty());  // the request has the text
    }

    /// Operators that Cutaway does not know are written out by their definitions, and then run.
    void operators() {
        m_folder.write("defines.py", R"(from cutaway_plugin import plugin
mine = plugin("defines", "1", "Defines operators", operators='''
# What mylib's operators compute
def mylib.scale_add.default(x, y):
    p = aten.mul.Tensor(x, 2.0)
    r = aten.add.Tensor(p, y)
    return r
def mylib.gate.default(x):
    r = torch.nn.functional.silu(x)
    return r
''')
)");
        open(
            "def forward(x: \"f32[4]\", y: \"f32[4]\"):\n    a: \"f32[4]\" = mylib.scale_add.default(x, y)\n"
            "    b: \"f32[4]\" = mylib.gate.default(a)\n    return (b,)\n");
        const auto run = m_session.compile(asking("--plugin defines"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(stepOf(*run, "defines")->rewrites, 2);
        const auto report = m_session.run(*run, {});
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(QFile::remove(m_folder.path("defines.py")));
    }

    void refused_data() {
        QTest::addColumn<QString>("words");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* words, const char* problem) { QTest::newRow(words) << words << problem; };
        row("--plugin fuse_addcmull", "did you mean fuse_addcmul");
        row("--plugin fuse_addcmul.other", "gives no pass named 'fuse_addcmul.other'");
        row("--plugin fuse_addcmul:mosst=1", "did you mean most");
        row("--plugin post_grad_custom_post_pass:fuse_addcmul.fuse:0.9:abc",
            "names plugin fuse_addcmul 0.9 (abc), and 1.0");
        row("--plugin nowhere:fuse_addcmul.fuse::", "no place named 'nowhere'");
    }
    void refused() {
        QFETCH(QString, words);
        QFETCH(QString, problem);
        open(kFusable);
        const auto run = m_session.compile(asking(words.toStdString()));
        QVERIFY(!run.has_value());
        QVERIFY2(QString::fromStdString(run.error().text()).contains(problem), run.error().text().c_str());
    }

    void misbehaves_data() {
        QTest::addColumn<QString>("pass");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* pass, const char* problem) { QTest::newRow(pass) << pass << problem; };
        row("crash", "its process was killed by signal 11");
        row("ends", "its process exited with status 0");
        row("hang", "did not answer within 1 s and was ended");
        row("forks", "failed: Operation not permitted");
        row("executes", "failed: Operation not permitted");
        row("signals", "failed: Operation not permitted");
        row("leaves_group", "failed: Operation not permitted");
        row("stops", "did not answer within 1 s and was ended");
        row("closes", "closed its connection to Cutaway and was ended");
        row("fails_and_goes_on", "failed: it has no licence");
        row("says_much", "failed: wwww");
        row("writes", "wrote a file of more than 1048576 bytes and was ended");
        row("writes_many", "wrote more than 8388608 bytes together and was ended");
        row("writes_elsewhere", "failed: Permission denied");
        row("remembers", "failed: no memory");
        row("scribbles", "");
        row("silent", "it returned 2 and did not say why");
        row("returns", "it returned 4711 and did not say why");
        row("returns_much", "and may return 20971520");
        row("twice", "returned more than one graph");
        row("rubbish", "the text holds no function");
        row("nothing", "the text holds no function");
        row("unknown_operator", "the operator 'mine.relu.default' is not known");
        row("wrong_arguments", "aten.relu.default");
        row("cyclic", "'relu' is read before it is computed");
        row("itself", "mul");
        row("undefined", "nobody");
        row("missing", "'mul' is read, and nothing computes it");
        row("defined_twice", "'mul' is computed twice");
        row("other_inputs", "the graph has other inputs");
        row("fewer_outputs", "the graph has other outputs");
        row("other_output", "output 0 is");
        row("wrong_type", "aten.relu.default gives");
        row("adds_graph", "it adds a graph");
        row("computes_input", "'x' is an input, and is computed under the same name");
        row("grows", "bytes, and may return");
        row("long_name", "aaaa");
        row("no_tensor", "the model has no tensor 'nobody'");
    }
    /// Whether the kernel can keep a process from writing elsewhere: landlock_create_ruleset tells its version.
    static bool keepsWrites() { return ::syscall(444, nullptr, 0, 1) > 0; }
    /// The message names plugin and call, and the session goes on: with the plugin's other passes, and without it.
    void misbehaves() {
        QFETCH(QString, pass);
        QFETCH(QString, problem);
        if (pass == "remembers") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
            QSKIP("sanitizers need more address space than any limit leaves");
#endif
        }
        if (pass == "writes_elsewhere" && !keepsWrites()) QSKIP("needs Landlock, of Linux 5.13");
        open(kModel);
        setPluginLimits({1, int64_t{128} << 20, 1 << 20, 20 << 20});
        const auto run = m_session.compile(asking("--plugin misbehaves." + pass.toStdString()));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto step = stepOf(*run, "misbehaves." + pass);
        QVERIFY(step.has_value());
        QCOMPARE(step->state, StepState::Failed);
        const QString error = QString::fromStdString(step->error);
        QVERIFY2(error.contains("plugin misbehaves 1, pass " + pass + ":"), qPrintable(error));
        QVERIFY2(error.contains(problem), qPrintable(error));
        QVERIFY2(error.size() < 10000, qPrintable(QString::number(error.size())));
        setPluginLimits({});
        const auto next = m_session.compile(asking("--plugin misbehaves.good"));
        QCOMPARE(stepOf(*next, "misbehaves.good")->state, StepState::Changed);
        const auto without = m_session.compile(asking(""));
        QVERIFY(without.has_value());
    }
    /// What a plugin prints is not taken for its answer.
    void prints() {
        open(kModel);
        const auto run = m_session.compile(asking("--plugin misbehaves.prints"));
        QCOMPARE(stepOf(*run, "misbehaves.prints")->state, StepState::Unchanged);
    }
    /// One that may start processes takes them along when it is ended, even those that have left its group.
    void processesEnd() {
        m_folder.write("starts.py", R"(import os, subprocess, time
from cutaway_plugin import plugin
mine = plugin("starts", "1", "Starts a process", processes=1)
@mine.oracle("starts", "Starts a process that goes away")
def starts(graph, host):
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    host.say(str(child.pid))
    open("pid", "w").write(str(child.pid))
    if "hang" in graph:
        time.sleep(1000)
    return False
)");
        const auto verdict = askOracle("starts", "good", 20);
        QVERIFY2(verdict.has_value(), verdict ? "" : verdict.error().text().c_str());
        const QString process = "/proc/" + QString::fromStdString(verdict->sentence);
        QVERIFY(QFile::exists(process));
        const auto hangs = askOracle("starts", "hang", 1);
        QVERIFY(!hangs.has_value());
        QTRY_VERIFY(!QFile::exists(process) || [&] {
            QFile state(process + "/stat");
            return !state.open(QIODevice::ReadOnly) || state.readAll().contains(") Z ");
        }());
        QVERIFY(QFile::remove(m_folder.path("starts.py")));
    }
    /// Started by a thread that goes on; a link that leads to a large file is none.
    void threadsAndLinks() {
        QFile large(m_folder.home("large"));
        QVERIFY(large.open(QIODevice::WriteOnly) && large.resize(64 << 20));
        m_folder.write("threads.py", R"(import os, subprocess, threading, time
from cutaway_plugin import plugin
mine = plugin("threads", "1", "Starts a process in a thread", processes=1)
@mine.oracle("threads", "Starts a process that goes away")
def threads(graph, host):
    if graph.startswith("link"):
        os.symlink(graph[5:], "large")
        time.sleep(0.5)
        return False
    pids = []
    def run():
        pids.append(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
        time.sleep(1000)
    threading.Thread(target=run, daemon=True).start()
    while not pids:
        time.sleep(0.01)
    host.say(str(pids[0]))
    return False
)");
        setPluginLimits({20, int64_t{1} << 30, 1 << 20, 20 << 20});
        const auto link = askOracle("threads", "link " + m_folder.home("large").toStdString(), 20);
        QVERIFY2(link.has_value(), link ? "" : link.error().text().c_str());
        const auto verdict = askOracle("threads", "start", 20);
        QVERIFY2(verdict.has_value(), verdict ? "" : verdict.error().text().c_str());
        const QString process = "/proc/" + QString::fromStdString(verdict->sentence);
        QVERIFY(QFile::exists(process));
        setPluginLimits({20, int64_t{1} << 30, 2 << 20, 20 << 20});  // its process is another one now
        QVERIFY(askOracle("threads", "link /dev/null", 20).has_value());
        QTRY_VERIFY(!QFile::exists(process) || [&] {
            QFile state(process + "/stat");
            return !state.open(QIODevice::ReadOnly) || state.readAll().contains(") Z ");
        }());
        QVERIFY(QFile::remove(m_folder.path("threads.py")));
    }
    void rulesOfOneName() {
        open(kModel);
        const auto own = m_session.compile(
            asking("--plugin fuse_silu --rule-text 'fuse_silu:" + std::string(testing::kWrongRule) + "'"));
        QVERIFY(!own.has_value());
        QVERIFY2(own.error().text().find("has rules named 'fuse_silu' that are not those of plugin fuse_silu") !=
                     std::string::npos,
                 own.error().text().c_str());
    }
    void colorsOfNobody() {
        m_folder.write("paints.py", R"(from cutaway_plugin import plugin
mine = plugin("paints", "1", "Colours")
@mine.coloring("paints", "Colours what is not there, too")
def paints(graph, host):
    for node in ["x", "relu", "nobody"]:
        host.color(node, kind="a", why="b")
)");
        const auto coloring = colorGraph("paints", kModel);
        QVERIFY2(coloring.has_value(), coloring ? "" : coloring.error().text().c_str());
        QCOMPARE(coloring->nodes.size(), size_t{2});
        QCOMPARE(coloring->unknown, std::vector<std::string>{"nobody"});
        QVERIFY(QFile::remove(m_folder.path("paints.py")));
    }
    void importIsCancelled() {
        m_folder.write("slow.py", R"(import time
from cutaway_plugin import plugin
mine = plugin("slow", "1", "Imports slowly")
@mine.importer("slow", "Takes its time", "*.slow")
def slow(name, content, host):
    time.sleep(1000)
)");
        m_folder.write("a.slow", "no graph");
        Progress progress;
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            progress.cancel->cancel();
        });
        Session session;
        setPluginLimits({60, int64_t{1} << 30, 1 << 20, 20 << 20});
        const auto start = std::chrono::steady_clock::now();
        const auto opened = session.open(m_folder.path("a.slow").toStdString(), {}, progress);
        canceller.join();
        QVERIFY(!opened);
        QVERIFY2(opened.error().code == ErrorCode::Cancelled, opened.error().text().c_str());
        QVERIFY(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
        for (const char* file : {"slow.py", "a.slow"}) QVERIFY(QFile::remove(m_folder.path(file)));
    }
    void faultsAreCounted() {
        open(kModel);
        static_cast<void>(m_session.compile(asking("--plugin misbehaves.crash")));
        for (const PluginInfo& info : installedPlugins()) {
            if (info.name != "misbehaves") continue;
            QVERIFY(info.faults > 0);
            QVERIFY(info.calls >= info.faults);
            const PluginFault& last = info.lastFaults.back();
            QVERIFY2(last.sentence.find("signal 11") != std::string::npos, last.sentence.c_str());
            QVERIFY(std::abs(last.milliseconds - QDateTime::currentMSecsSinceEpoch()) < 60'000);
            return;
        }
        QFAIL("the plugin is not listed");
    }

    /// What lies in a plugin's place later is not run for it: the run that began with the other says so, the next one
    /// takes what is there.
    void replaced() {
        const QByteArray text = R"py(from cutaway_plugin import plugin
mine = plugin("changing", "1", "Is replaced")
@mine.transform("edit", "Edits")
def edit(graph, host):
    host.say("edits")
    return graph.replace("aten.relu.default(add)", "aten.relu.default(mul)")
)py";
        m_folder.write("changing.py", text);
        open(kModel);
        const auto first = m_session.compile(asking("--plugin changing"));
        QCOMPARE(stepOf(*first, "changing.edit")->state, StepState::Changed);
        const std::string request = m_session.requestOf(*first)->text();
        QVERIFY(QFile::remove(m_folder.path("changing.py")));
        m_folder.write("changing.py", QByteArray(text).replace("\"1\"", "\"2\""));
        const auto next = m_session.compile(asking("--plugin changing"));
        QCOMPARE(m_session.requestOf(*next)->plugins[0].version, std::string("2"));
        const auto refused = m_session.compile(*parseRequest(request));
        QVERIFY(!refused.has_value());
        QVERIFY2(refused.error().text().find("names plugin changing 1") != std::string::npos,
                 refused.error().text().c_str());
        // A check has a process of its own, and leaves what is counted.
        const auto trials = checkPlugin(m_folder.path("changing.py").toStdString());
        for (const PluginTrial& trial : *trials) QVERIFY2(trial.problem.empty(), (trial.what + trial.problem).c_str());
        for (const PluginInfo& info : installedPlugins())
            if (info.name == "changing") QCOMPARE(info.calls, 1);
        QVERIFY(QFile::remove(m_folder.path("changing.py")));
    }
    /// A check of what hangs ends with the first trial that does.
    void checkedHang() {
        m_folder.write("hangs.py", R"(from cutaway_plugin import plugin
mine = plugin("hangs", "1", "Hangs")
@mine.oracle("hangs", "Hangs")
def hangs(graph, host):
    while "mul" in graph:
        pass
)");
        setPluginLimits({5});
        static_cast<void>(pluginIn(m_folder.path("hangs.py").toStdString()));
        setPluginLimits({0.5});
        const auto trials = checkPlugin(m_folder.path("hangs.py").toStdString());
        int wrong = 0;
        for (const PluginTrial& trial : *trials) wrong += !trial.problem.empty();
        QCOMPARE(wrong, 1);
        QVERIFY(QFile::remove(m_folder.path("hangs.py")));
    }

    void onAndOff() {
        QVERIFY(switchPlugin("fuse_addcmul", false).has_value());
        open(kFusable);
        const auto run = m_session.compile(asking("--plugin fuse_addcmul"));
        QVERIFY(!run.has_value());
        QVERIFY2(run.error().text().find("is switched off") != std::string::npos, run.error().text().c_str());
        for (const PluginInfo& info : installedPlugins()) QCOMPARE(info.on, info.name != "fuse_addcmul");
        QVERIFY(switchPlugin("fuse_addcmul", true).has_value());
        QVERIFY(m_session.compile(asking("--plugin fuse_addcmul")).has_value());
        QVERIFY(!switchPlugin("nobody", true).has_value());
    }

    /// A pass that has to follow another says which, and a move that breaks it is refused.
    void order() {
        m_folder.write("late.py", R"(from cutaway_plugin import plugin
mine = plugin("late", "1", "Runs late")
@mine.transform("late", "Runs late", place="post_grad_custom_post_pass", after="remove_noop_ops nobody")
def late(graph, host):
    return None
)");
        open(kFusable);
        const auto run = m_session.compile(asking("--plugin late"));
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const auto early = m_session.compile(
            asking("--plugin late --move post_grad_custom_post_pass.late.late=before:remove_noop_ops"));
        QVERIFY(!early.has_value());
        QVERIFY2(early.error().text().find("which it says must run earlier") != std::string::npos,
                 early.error().text().c_str());
        QVERIFY(QFile::remove(m_folder.path("late.py")));
    }
};

CUTAWAY_SUITE(PluginsTest)
#include "plugins_test.moc"
