// Exceptions become errors in words wherever they are thrown, and errors that are worth it can be repeated.
#include "cutaway/reproducer.h"

#include <QtTest>

#include "cutaway/jobs.h"
#include "cutaway/session.h"
#include "engine/support/fault_points.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kModel = CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2";
/// Every exception of the standard library that code here could meet, our own, and something that is none.
const char* const kKinds[] = {"internal",      "logic_error",  "out_of_range",      "length_error",       "bad_alloc",
                              "runtime_error", "system_error", "bad_function_call", "bad_variant_access", "int"};

/// The folder that a message tells to repeat; "" if it tells none.
QString folderIn(const std::string& message) {
    static const QRegularExpression expression("run-repro '?([^'\\n]+)'?");
    return expression.match(QString::fromStdString(message)).captured(1);
}
std::string lastError(Session& session, RunId run) {
    const auto steps = session.steps(run);
    return steps && !steps->empty() ? steps->back().error : std::string();
}

}  // namespace

class ReproducerTest : public QObject {
    Q_OBJECT

  private slots:
    void init() {
        m_folder = std::make_unique<QTemporaryDir>();
        qputenv("CUTAWAY_REPROS", m_folder->path().toUtf8());
    }
    void cleanup() { setFault(""); }

    void inAPass_data() { kinds(); }
    void inAPass() {
        QFETCH(QString, kind);
        Session session;
        QVERIFY(session.open(kModel));
        setFault("pass:decompose:" + kind.toStdString());
        CompileRequest request;
        request.disabledPasses = {"functionalize"};
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const std::string error = lastError(session, *run);
        QVERIFY(!error.empty());
        const QString folder = folderIn(error);
        QVERIFY2(!folder.isEmpty(), error.c_str());
        const auto again = runReproducer(folder.toStdString());
        QVERIFY2(again && again->repeated, again ? again->now.c_str() : again.error().text().c_str());
        // The session goes on; and what was mended does not repeat.
        setFault("");
        QVERIFY(lastError(session, *session.compile({})).empty());
        const auto mended = runReproducer(folder.toStdString());
        QVERIFY2(mended && !mended->repeated && mended->now.empty(), mended ? mended->now.c_str() : "");
        QCOMPARE(mended->recorded, again->recorded);
    }

    void inAReader_data() { kinds(); }
    void inAReader() {
        QFETCH(QString, kind);
        Session session;
        QVERIFY(session.open(kModel));
        setFault("reader:*:" + kind.toStdString());
        const auto opened = session.open(kModel);
        QVERIFY(!opened);
        QVERIFY2(session.isOpen(), "what was open stays open");
        const QString folder = folderIn(opened.error().text());
        QVERIFY2(!folder.isEmpty(), opened.error().text().c_str());
        const auto again = runReproducer(folder.toStdString());
        QVERIFY2(again && again->repeated, again ? again->now.c_str() : again.error().text().c_str());
        setFault("");
        const auto mended = runReproducer(folder.toStdString());
        QVERIFY2(mended && !mended->repeated, mended ? mended->now.c_str() : mended.error().text().c_str());
    }

    void inAJob_data() { kinds(); }
    void inAJob() {
        QFETCH(QString, kind);
        setFault("job:looked:" + kind.toStdString());
        JobQueue queue;
        std::vector<std::string> problems;
        bool later = false;
        queue.post(
            "looked", [](const Progress&) {}, {}, [&](const Error& error) { problems.push_back(error.text()); });
        queue.drain();
        queue.post("other", [&](const Progress&) { later = true; });
        queue.drain();
        QCOMPARE(problems.size(), size_t(1));
        QVERIFY(!problems[0].empty() && later);
    }

    /// What a pass measured is in the folder, so it decides alike where nothing can be measured.
    void answersAreKept() {
        QTemporaryDir files;
        const std::string text =
            "def forward(a: \"f32[5, 63]\", b: \"f32[63, 7]\"):\n    y: \"f32[5, 7]\" = aten.mm.default(a, b)\n    return (y,)\n";
        QFile file(files.filePath("product.py"));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text.c_str()) > 0);
        file.close();
        Session session;
        QVERIFY(session.open(file.fileName().toStdString()));
        CompileHooks hooks;
        hooks.timeGraph = [](const std::string& graph) {
            return std::optional(graph.find("constant_pad_nd") == std::string::npos ? 2.0 : 1.0);
        };
        hooks.recall = [](const std::string&) { return std::optional<double>(); };
        hooks.remember = [](const std::string&, double) {};
        const CompileRequest request = *parseRequest("--enable pad_mm=any_device:1 --only joint");
        setFault("pass:replace_random_passes:runtime_error");
        const auto run = session.compile(request, hooks);
        QVERIFY(run);
        const QString folder = folderIn(lastError(session, *run));
        QVERIFY(!folder.isEmpty());
        QFile facts(folder + "/repro.json");
        QVERIFY(facts.open(QIODevice::ReadOnly));
        const QByteArray json = facts.readAll();
        QVERIFY2(json.contains("\"kind\": \"time\"") && json.contains("constant_pad_nd"), json.constData());
        QVERIFY(runReproducer(folder.toStdString())->repeated);
    }

    /// It would run by another one, and find the failure mended.
    void unknownBackendsAreRefused() {
        Session session;
        QVERIFY(session.open(kModel));
        setFault("pass:decompose:runtime_error");
        const auto run = session.compile({});
        QVERIFY(run);
        const QString folder = folderIn(lastError(session, *run));
        QFile facts(folder + "/repro.json");
        QVERIFY(facts.open(QIODevice::ReadOnly));
        QByteArray json = facts.readAll();
        facts.close();
        json.replace("\"operation\":", "\"backend\": \"gpu\", \"operation\":");
        QVERIFY(facts.open(QIODevice::WriteOnly) && facts.write(json) == json.size());
        facts.close();
        const auto refused = runReproducer(folder.toStdString());
        QVERIFY(!refused);
        QCOMPARE(refused.error().message, std::string("no backend is called 'gpu'"));
    }

    /// Mistakes of the user's are not failures to be repeated.
    void mistakesHaveNone() {
        Session session;
        const auto missing = session.open("no/such/file.pt2");
        QVERIFY(!missing && folderIn(missing.error().text()).isEmpty());
        QVERIFY(session.open(kModel));
        const auto refused = session.compile(*parseRequest("--only nothing"));
        QVERIFY(!refused && folderIn(refused.error().text()).isEmpty());
        QVERIFY(QDir(m_folder->path()).isEmpty());
    }

    void notWhereItIsOff() {
        qputenv("CUTAWAY_REPROS", "off");
        Session session;
        QVERIFY(session.open(kModel));
        setFault("pass:*:logic_error");
        const auto run = session.compile({});
        QVERIFY(run && folderIn(lastError(session, *run)).isEmpty());
        QVERIFY(QDir(m_folder->path()).isEmpty());
    }

    void equalFailuresShareAFolder() {
        Session session;
        QVERIFY(session.open(kModel));
        setFault("pass:decompose:logic_error");
        for (int i = 0; i < 3; ++i) QVERIFY(session.compile({}));
        QCOMPARE(QDir(m_folder->path()).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 1);
        // Many others push the oldest out.
        for (int i = 0; i < 25; ++i) {
            CompileRequest request;
            request.fuel = i;
            QVERIFY(session.compile(request));
        }
        QCOMPARE(QDir(m_folder->path()).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 20);
    }

    void noReproducers_data() {
        QTest::addColumn<QByteArray>("facts");
        QTest::addColumn<QString>("problem");
        QTest::newRow("nothing") << QByteArray() << "repro.json";
        QTest::newRow("no JSON") << QByteArray("{") << "repro.json";
        QTest::newRow("later version") << QByteArray("{\"version\": 2}") << "of version 2";
        QTest::newRow("no operation") << QByteArray("{\"version\": 1}") << "operation";
        QTest::newRow("bad request")
            << QByteArray(
                   "{\"version\": 1, \"operation\": \"compile\", \"input\": \"graph.py\", \"error\": \"\", "
                   "\"request\": \"--moed\", \"answers\": []}")
            << "did you mean --mode";
    }
    void noReproducers() {
        QFETCH(QByteArray, facts);
        QFETCH(QString, problem);
        if (!facts.isEmpty()) {
            QFile file(m_folder->filePath("repro.json"));
            QVERIFY(file.open(QIODevice::WriteOnly) && file.write(facts) > 0);
        }
        const auto report = runReproducer(m_folder->path().toStdString());
        QVERIFY(!report);
        QVERIFY2(QString::fromStdString(report.error().text()).contains(problem), report.error().text().c_str());
    }

  private:
    static void kinds() {
        QTest::addColumn<QString>("kind");
        for (const char* kind : kKinds) QTest::newRow(kind) << kind;
    }
    std::unique_ptr<QTemporaryDir> m_folder;
};

CUTAWAY_SUITE(ReproducerTest)
#include "reproducer_test.moc"
