// Batches: what a file of TOML says and where it is wrong; the same report however often the batch is killed, and
// whether it runs on this machine or as an array of Slurm's.
#include "cutaway/batch.h"

#include <signal.h>

#include <QDir>
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "engine/batch/batch_toml.h"
#include "tests/support/paths.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::builtProgram;
using cutaway::testing::contentOf;
using cutaway::testing::testFile;

namespace {

constexpr const char* kBatchModel = "[[model]]\npath = 'm.py'\n";

/// A report without what differs between runs that came to the same.
QJsonValue withoutTimes(const QJsonValue& value) {
    if (value.isArray()) {
        QJsonArray out;
        for (const QJsonValue item : value.toArray()) out.append(withoutTimes(item));
        return out;
    }
    if (!value.isObject()) return value;
    QJsonObject out;
    const QJsonObject object = value.toObject();
    for (const QString& key : object.keys())
        if (key != "seconds" && key != "minify_seconds" && key != "folder") out[key] = withoutTimes(object[key]);
    return out;
}

}  // namespace

class BatchTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    QString path(const QString& name) const { return m_folder.filePath(name); }
    void write(const QString& name, const QByteArray& text) const {
        QDir().mkpath(QFileInfo(path(name)).path());
        QFile file(path(name));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
    }
    /// Recorded models, one of which has other expectations than it computes, and a rule that changes what is computed.
    void writeBatch(const QString& name, const QByteArray& more = {}) const {
        write("wrong.rules", cutaway::testing::kWrongRule);
        write(
            "cosine/model.py",
            "def forward(x: \"f32[4]\"):\n    a = aten.cos.default(x)\n    b = aten.relu.default(a)\n    return (b,)\n");
        write("broken/model.py", "def forward(x: \"f32[4]\"):\n    a = aten.cos.default(z)\n    return (a,)\n");
        for (const char* model : {"addcmul", "clamp-mixed", "counter", "einsum", "index-add", "lerp"})
            for (const char* file : {"model.pt2", "inputs_0.safetensors", "expected_0.safetensors"})
                write(QString(model) + "/" + file, contentOf(testFile(QString("data/exports/") + model + "/" + file)));
        QByteArray others = contentOf(path("lerp/expected_0.safetensors"));
        others.back() = static_cast<char>(others.back() ^ 0x40);  // the largest bit of a number's exponent
        write("lerp/expected_0.safetensors", others);
        write(name, "cache = 'off'\nchecks = ['compile', 'run', 'freeze']\n" + more +
                        R"(
[minify]
trials = 60
[[model]]
path = '*/model.pt2'
inputs = 'inputs_0.safetensors'
expect = 'expected_0.safetensors'
[[model]]
path = '*/model.py'
[[request]]
name = 'plain'
[[request]]
name = 'wrong'
options = "--rules ')" + path("wrong.rules").toUtf8() +
                        R"('"
checks = ['run']
)");
    }
    /// Forty recorded models, each run against what PyTorch has computed.
    void writeForty(const QString& name, const QByteArray& more = {}) const {
        constexpr int kModels = 40;
        constexpr const char* kFiles[] = {"model.pt2", "inputs_0.safetensors", "expected_0.safetensors"};
        int models = 0;
        for (const QString& model : QDir(testFile("data/exports")).entryList(QDir::Dirs | QDir::NoDotAndDotDot)) {
            const QString from = testFile("data/exports/" + model + "/");
            if (!std::all_of(std::begin(kFiles), std::end(kFiles),
                             [&](const char* file) { return QFile::exists(from + file); }))
                continue;
            for (const char* file : kFiles) write("forty/" + model + "/" + file, contentOf(from + file));
            if (++models == kModels) break;
        }
        QCOMPARE(models, kModels);
        write(name, "cache = 'off'\njobs = 2\nchecks = ['run']\n" + more +
                        "[[model]]\npath = 'forty/*/model.pt2'\ninputs = 'inputs_0.safetensors'\n"
                        "expect = 'expected_0.safetensors'\n");
    }
    QJsonObject reportOf(const QString& folder) const {
        return QJsonDocument::fromJson(contentOf(path(folder + "/report.json"))).object();
    }
    QByteArray comparable(const QString& folder) const {
        QJsonObject report = withoutTimes(reportOf(folder)).toObject();
        report.remove("name");
        return QJsonDocument(report).toJson();
    }
    static void clearEnvironment() {
        for (const char* name : {"CUTAWAY_CLI", "SLURM_CONF"}) qunsetenv(name);
    }
    int results(const QString& folder) const {
        return static_cast<int>(QDir(path(folder + "/tasks")).entryList({"*.json"}, QDir::Files).size());
    }
    cutaway::testing::Ended batch(const QString& options) const {
        return cutaway::testing::runShell(m_folder.path(), "cutaway-cli batch " + options);
    }
    /// Kills the program once so many tasks have a result.
    void killAt(const QStringList& arguments, const QString& folder, int count) const {
        QProcess process;
        process.setWorkingDirectory(m_folder.path());
        process.start(builtProgram("cutaway-cli"), QStringList{"batch"} + arguments);
        QVERIFY(process.waitForStarted());
        QElapsedTimer clock;
        clock.start();
        while (results(folder) < count && process.state() == QProcess::Running && clock.elapsed() < 120'000)
            process.waitForFinished(5);
        ::kill(static_cast<pid_t>(process.processId()), SIGKILL);
        process.waitForFinished(-1);
    }

  private slots:
    void cleanup() { clearEnvironment(); }

    void refusesWhatIsWrong_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("error");
        const auto row = [](const char* name, const QString& text, const char* error) {
            QTest::newRow(name) << text << error;
        };
        const QString model(kBatchModel);
        row("no TOML", "a = = 2", "b.toml:1: this is not TOML");
        row("a string without an end", "name = 'x\n" + model, "b.toml:1: this is not TOML");
        row("a key twice", "jobs = 1\njobs = 2\n", "b.toml:2: this is not TOML");
        row("nothing", "", "b.toml: a batch needs [[model]]");
        row("an unknown key", "checkz = ['run']\n" + model,
            "b.toml:1: a batch has no key 'checkz'\n  did you mean checks");
        row("of a model", model + "input = 'a'\n", "b.toml:3: [[model]] has no key 'input'\n  did you mean inputs");
        row("of a request", model + "[[request]]\nname = 'a'\nmode = 'x'\n", "b.toml:5: [[request]] has no key 'mode'");
        row("of minify", model + "[minify]\nsecond = 1\n", "b.toml:4: [minify] has no key 'second'");
        row("of Slurm", model + "[slurm]\npartition = 'x'\n", "b.toml:4: [slurm] has no key 'partition'");
        row("a model without a path", "[[model]]\ngraph = 'a'\n", "b.toml:1: [[model]] needs 'path'");
        row("a table in place of a list", "[model]\npath = 'a'\n", "b.toml:1: 'model' is written as [[model]]");
        row("a request without a name", model + "[[request]]\noptions = '--freeze'\n",
            "b.toml:3: [[request]] needs 'name'");
        row("two of a name", model + "[[request]]\nname = 'a'\n\n[[request]]\nname = 'a'\n",
            "b.toml:6: two requests have the name 'a'");
        row("a number", "name = 3\n" + model, "b.toml:1: 'name' is a string, not an integer");
        row("an empty string", "folder = ''\n" + model, "b.toml:1: 'folder' is empty");
        row("another check", "checks = ['run',\n 'bench']\n" + model,
            "b.toml:2: 'checks' has no value 'bench'\n  there are: compile, run, freeze");
        row("no list", "checks = 'run'\n" + model, "b.toml:1: 'checks' is a list of strings, not a string");
        row("a list of numbers", model + "[slurm]\noptions = [1]\n",
            "b.toml:4: 'options' is a list of strings, not an integer");
        row("no backend", "backend = 'gpu'\n" + model, "b.toml:1: ");
        row("too many jobs", "jobs = 5000\n" + model, "b.toml:1: 'jobs' is from 0 to 1024, not 5000");
        row("no time", "seconds = 0\n" + model, "b.toml:1: 'seconds' is more than 0 seconds");
        row("infinite time", "seconds = inf\n" + model, "b.toml:1: 'seconds' is more than 0 seconds");
        row("a size below 0", model + "sizes = {s0 = -1}\n", "b.toml:3: 's0' is from 0 to");
        row("a date", "minify = 2020-01-01\n" + model,
            "b.toml:1: 'minify' is true, false or a table, not a date or time");
    }
    void refusesWhatIsWrong() {
        QFETCH(QString, text);
        QFETCH(QString, error);
        const auto parsed = parseBatch(text.toStdString(), "b.toml");
        QVERIFY(!parsed);
        QVERIFY2(parsed.error().text().starts_with(error.toStdString()), parsed.error().text().c_str());
    }

    void refusesWhatIsNotThere_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("error");
        const QByteArray model = "[[model]]\npath = 'one/m*.py'\n";
        QTest::newRow("a model") << QByteArray("[[model]]\npath = 'none/*.py'\n")
                                 << "b.toml:2: there is no model 'none/*.py'";
        QTest::newRow("expectations") << model + "expect = 'e.safetensors'\n"
                                      << "b.toml:3: ";
        QTest::newRow("a model twice") << model + "[[model]]\npath = 'one/m.py'\n"
                                       << "b.toml:4: the model 'one/m.py' is there twice";
        QTest::newRow("an option") << model + "[[request]]\nname = 'a'\noptions = '--freez'\n"
                                   << "b.toml:5: ";
        QTest::newRow("a frozen training")
            << model + "[[request]]\nname = 'a'\noptions = '--mode training'\nchecks = ['freeze']\n"
            << "b.toml:5: the check 'freeze' is for inference";
        QTest::newRow("a plugin") << model + "[[request]]\nname = 'a'\noptions = '--plugin none_such'\n"
                                  << "b.toml:5: ";
    }
    void refusesWhatIsNotThere() {
        QFETCH(QByteArray, text);
        QFETCH(QString, error);
        write("one/m.py", "def forward(x: \"f32[4]\"):\n    return (x,)\n");
        write("b.toml", text);
        const auto plan = readBatch(path("b.toml").toStdString());
        QVERIFY(!plan);
        const QString said = QString::fromStdString(plan.error().text()).replace(m_folder.path() + "/", "");
        QVERIFY2(said.startsWith(error), qPrintable(said));
    }

    void resultsBelongToContents() {
        for (const char* model : {"p/a.py", "p/b.py"}) write(model, "def forward(x: \"f32[4]\"):\n    return (x,)\n");
        write("p/c.py", "def forward(x: \"f32[5]\"):\n    return (x,)\n");
        const auto ids = [&](const QByteArray& more) {
            write("b.toml", more + "checks = ['compile']\n[[model]]\npath = 'p/*.py'\n");
            const auto plan = readBatch(path("b.toml").toStdString());
            std::vector<std::string> out;
            if (plan)
                for (const BatchTask& task : plan->tasks) out.push_back(task.id);
            return out;
        };
        const auto first = ids("");
        QCOMPARE(first.size(), size_t{3});
        QCOMPARE(first[0], first[1]);
        QVERIFY(first[0] != first[2]);
        QVERIFY(first == ids("jobs = 3\nname = 'other'\nretries = 0\n"));
        QVERIFY(first != ids("seconds = 5\n"));
        QVERIFY(first != ids("minify = true\n"));
        write("p/c.py", "def forward(x: \"f32[6]\"):\n    return (x,)\n");
        QVERIFY(first != ids(""));
    }

    void reportsAlike() {
        writeBatch("whole.toml");
        const auto whole = batch("whole.toml");
        QCOMPARE(whole.status, 1);
        const QJsonObject report = reportOf("whole.batch");
        const QJsonObject counts = report["counts"].toObject();
        // The expectations of one model, run, frozen and by the second request, and one that does not open.
        QVERIFY2(counts["fails"].toInt() == 4, QJsonDocument(report).toJson());
        QVERIFY2(counts["differs"].toInt() == 3, QJsonDocument(report).toJson());
        QCOMPARE(counts["lost"].toInt(), 0);
        QCOMPARE(report["tasks"].toArray().size(), 32);
        QVERIFY(report["signatures"].toArray().size() >= 2);
        for (const QJsonValue row : report["tasks"].toArray())
            if (const QString folder = row["reproducer"].toString(); !folder.isEmpty())
                QVERIFY2(QDir(path("whole.batch/" + folder)).exists(), qPrintable(folder));
        const QByteArray page = contentOf(path("whole.batch/report.html"));
        QVERIFY(page.contains("index-add/model.pt2") && !page.contains("http"));

        writeBatch("killed.toml");
        for (const int moment : {1, 12, 26}) killAt({"killed.toml"}, "killed.batch", moment);
        const int left = results("killed.batch");
        QVERIFY2(left >= 12 && left < 32, qPrintable(QString::number(left)));
        const auto resumed = batch("killed.toml");
        QCOMPARE(resumed.status, 1);
        QVERIFY2(resumed.out.contains(" tasks had a result before"), resumed.out);
        QCOMPARE(comparable("killed.batch"), comparable("whole.batch"));
        const auto again = batch("killed.toml --report");
        QCOMPARE(again.status, 1);
        QCOMPARE(comparable("killed.batch"), comparable("whole.batch"));
    }

    void minifiesWhatFails() {
        write(
            "f/m.py",
            "def forward(x: \"f32[4]\"):\n    a = aten.gelu.default(x)\n    b = aten.cos.default(a)\n    return (b,)\n");
        write("f.toml", "cache = 'off'\nchecks = ['compile', 'run']\nminify = true\n[[model]]\npath = 'f/m.py'\n");
        qputenv("CUTAWAY_FAULT", "pass:decompose:runtime_error");
        const auto failed = batch("f.toml");
        qunsetenv("CUTAWAY_FAULT");
        QCOMPARE(failed.status, 1);
        const QJsonObject report = reportOf("f.batch");
        const QJsonArray groups = report["signatures"].toArray();
        QVERIFY2(groups.size() == 1 && groups[0].toObject()["tasks"].toArray().size() == 2, failed.out);
        const QJsonObject row = report["tasks"].toArray()[0].toObject();
        QVERIFY2(row["minified"].toString().contains("nodes became"), failed.out);
        QVERIFY(row["signature"].toString().startsWith("kind=pass-error; pass="));
        qputenv("CUTAWAY_FAULT", "pass:decompose:runtime_error");
        const auto repeated = cutaway::testing::runShell(
            m_folder.path(), "cutaway-cli run-repro f.batch/" + row["reproducer"].toString());
        qunsetenv("CUTAWAY_FAULT");
        QVERIFY2(repeated.status == 0, repeated.err);
    }

    void runsAgainWhatWasKilled_data() {
        QTest::addColumn<int>("times");
        QTest::addColumn<int>("status");
        QTest::newRow("twice") << 2 << 0;
        QTest::newRow("each time") << 1000 << 1;
    }
    void runsAgainWhatWasKilled() {
        QFETCH(int, times);
        QFETCH(int, status);
        write("k/m.py", "def forward(x: \"f32[4]\"):\n    return (x,)\n");
        write("k.toml", "cache = 'off'\nchecks = ['compile']\nfolder = 'k" + QByteArray::number(times) +
                            "'\n[[model]]\npath = 'k/m.py'\n");
        QFile::remove(path("count"));
        write("killer.sh", "#!/bin/sh\necho x >> '" + path("count").toUtf8() + "'\n[ $(wc -l < '" +
                               path("count").toUtf8() + "') -le " + QByteArray::number(times) +
                               " ] && kill -9 $$\nexec '" + builtProgram("cutaway-cli").toUtf8() + "' \"$@\"\n");
        QFile::setPermissions(path("killer.sh"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        qputenv("CUTAWAY_CLI", path("killer.sh").toUtf8());
        const auto first = batch("k.toml");
        QVERIFY2(first.status == status, first.err);
        qunsetenv("CUTAWAY_CLI");
        if (status == 0) return;
        QVERIFY2(first.err.contains("the same command runs them again"), first.err);
        QCOMPARE(batch("k.toml").status, 0);
    }

    /// On two cores, killed and gone on with at three moments.
    void fortyModels() {
        writeForty("forty.toml");
        batch("forty.toml");
        QCOMPARE(reportOf("forty.batch")["tasks"].toArray().size(), 40);
        QCOMPARE(reportOf("forty.batch")["counts"].toObject()["passes"].toInt(), 40);
        writeForty("ended.toml");
        for (const int moment : {1, 14, 30}) killAt({"ended.toml"}, "ended.batch", moment);
        const auto resumed = batch("ended.toml");
        QVERIFY2(resumed.out.contains(" tasks had a result before"), resumed.out);
        QCOMPARE(comparable("ended.batch"), comparable("forty.batch"));
    }

    void oneAtATime() {
        writeBatch("both.toml");
        QProcess first;
        first.setWorkingDirectory(m_folder.path());
        first.start(builtProgram("cutaway-cli"), {"batch", "both.toml"});
        QElapsedTimer clock;
        clock.start();
        while (results("both.batch") < 1 && clock.elapsed() < 60'000) first.waitForFinished(5);
        const auto second = batch("both.toml");
        first.kill();
        first.waitForFinished(-1);
        QCOMPARE(second.status, 1);
        QVERIFY2(second.err.contains("another program works on this batch"), second.err);
    }

    void needsSlurm() {
        write("k/m.py", "def forward(x: \"f32[4]\"):\n    return (x,)\n");
        write("k.toml", "folder = 'none'\n[[model]]\npath = 'k/m.py'\n");
        const auto ended =
            cutaway::testing::runShell(m_folder.path(), "PATH=/nowhere cutaway-cli batch k.toml --slurm");
        QCOMPARE(ended.status, 1);
        QVERIFY2(ended.err.contains("there is no squeue, so no Slurm, on this machine"), ended.err);
    }

    void reportsAlikeBySlurm() {
        for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch", "squeue"})
            if (QStandardPaths::findExecutable(program).isEmpty() &&
                QStandardPaths::findExecutable(program, {"/usr/sbin", "/sbin"}).isEmpty())
                QSKIP("needs slurm-wlm and munge");
        // A path of its own: one of a socket is short.
        const QTemporaryDir node(QDir::tempPath() + "/slurm-XXXXXX");
        const QString script = testFile("scripts/one_node_slurm.sh");
        struct Stop {
            QString script, folder;
            ~Stop() { QProcess::execute(script, {"stop", folder}); }
        } stop{script, node.path()};
        QProcess start;
        start.setStandardOutputFile(QProcess::nullDevice());
        start.setStandardErrorFile(node.filePath("start.log"));  // daemons keep a pipe open
        start.start(script, {"start", node.path()});
        QVERIFY(start.waitForFinished(60'000));
        QVERIFY2(start.exitCode() == 0, contentOf(node.filePath("start.log")));
        qputenv("SLURM_CONF", node.filePath("slurm.conf").toUtf8());

        writeBatch("here.toml");
        QCOMPARE(batch("here.toml").status, 1);
        writeBatch("array.toml", "folder = 'array'\n");
        // The program that follows is killed, and the array goes on; then jobs are killed, too.
        for (const int moment : {1, 8}) killAt({"array.toml", "--slurm"}, "array", moment);
        QCOMPARE(QProcess::execute("scancel", {"--quiet", "--user", qEnvironmentVariable("USER", "root")}), 0);
        killAt({"array.toml", "--slurm"}, "array", 16);
        const auto ended = batch("array.toml --slurm");
        QVERIFY2(ended.status == 1, ended.err);
        QCOMPARE(comparable("array"), comparable("here.batch"));

        writeForty("forty_here.toml");
        batch("forty_here.toml");
        writeForty("forty_array.toml", "folder = 'forty_array'\n");
        for (const int moment : {1, 14, 30}) killAt({"forty_array.toml", "--slurm"}, "forty_array", moment);
        QCOMPARE(batch("forty_array.toml --slurm").status, 0);
        QCOMPARE(comparable("forty_array"), comparable("forty_here.batch"));
    }
};

CUTAWAY_SUITE(BatchTest)
#include "batch_test.moc"
