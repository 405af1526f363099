// However cutaway-cli is ended while it compiles or runs a model, its processes end and its temporary folders go.
// CUTAWAY_ENDINGS=20 tries each signal that often; the moments are random, CUTAWAY_SEED repeats them.
#include <QElapsedTimer>
#include <QProcess>
#include <QRandomGenerator>
#include <QTemporaryDir>
#include <QUuid>
#include <QtTest>
#include <csignal>

#include "tests/support/paths.h"
#include "tests/support/suites.h"

class EndingsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder, m_scratch;
    const QByteArray m_mark = "CUTAWAY_TEST=" + QUuid::createUuid().toByteArray();
    QRandomGenerator m_random;
    qint64 m_untilRunning = 0;  // milliseconds from the start to the run of what was compiled

    /// Compiles for a while, then runs until its time limit.
    void start(QProcess& process, const QStringList& arguments = {}) const {
        QStringList environment = QProcess::systemEnvironment();
        environment << QString::fromLatin1(m_mark) << "TMPDIR=" + m_scratch.path();
        process.setEnvironment(environment);
        // Whoever runs the tests may have Ctrl-C ignored, as shells do for what is in the background.
        process.setChildProcessModifier([] {
            for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
        });
        process.start(cutaway::testing::builtProgram("cutaway-cli"),
                      arguments.isEmpty() ? QStringList{"run", m_folder.filePath("graph.py"), "--backend", "cpu",
                                                        "--cache", "off", "--repeat", "1000000"}
                                          : arguments);
        QVERIFY(process.waitForStarted());
    }
    /// The process and all that it started, however deep: they share its environment. The dead have none.
    QStringList living() const {
        QStringList found;
        for (const QString& pid : QDir("/proc").entryList(QDir::Dirs)) {
            QFile environment("/proc/" + pid + "/environ"), name("/proc/" + pid + "/comm");
            if (!environment.open(QIODevice::ReadOnly) || !environment.readAll().split('\0').contains(m_mark)) continue;
            if (name.open(QIODevice::ReadOnly)) found << pid + " " + QString::fromLatin1(name.readAll()).trimmed();
        }
        return found;
    }
    QStringList folders() const {
        return QDir(m_scratch.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
    }
    bool runs() const { return !living().filter(QRegularExpression("cutaway-(worker|trials)")).isEmpty(); }
    void end(QProcess& process, int signal) const {
        QCOMPARE(::kill(static_cast<pid_t>(process.processId()), signal), 0);
        QVERIFY(process.waitForFinished());
        QCOMPARE(process.exitStatus(), QProcess::CrashExit);  // as the signal itself ends a program: shells see it
        QCOMPARE(process.exitCode(), signal);
    }
    void startAnother() const {
        QProcess next;
        start(next, {"--version"});
        QVERIFY(next.waitForFinished());
    }

  private slots:
    void initTestCase() {
        const uint seed = qEnvironmentVariableIsSet("CUTAWAY_SEED") ? qEnvironmentVariable("CUTAWAY_SEED").toUInt()
                                                                    : QRandomGenerator::global()->generate();
        qInfo("CUTAWAY_SEED=%u", seed);
        m_random.seed(seed);
        QFile graph(m_folder.filePath("graph.py"));
        QVERIFY(graph.open(QIODevice::WriteOnly));
        QByteArray text = "def forward(x: \"f32[512, 512]\"):\n    n0 = aten.tanh.default(x)\n";
        for (int i = 1; i <= 12; ++i) {
            const QByteArray before = "n" + QByteArray::number(i - 1), here = QByteArray::number(i);
            text +=
                "    s" + here + " = aten.sum.dim_IntList(" + before + ", [" + QByteArray::number(i % 2) + "], True)\n";
            text += "    n" + here + " = aten.div.Tensor(" + before + ", s" + here + ")\n";
        }
        graph.write(text + "    return (n12,)\n");
        graph.close();

        QElapsedTimer timer;
        timer.start();
        QProcess process;
        start(process);
        QTRY_VERIFY2_WITH_TIMEOUT(runs() || process.state() == QProcess::NotRunning, "neither runs nor ends", 120000);
        QVERIFY2(process.state() == QProcess::Running, process.readAllStandardError().constData());
        m_untilRunning = timer.elapsed();
        end(process, SIGTERM);
    }

    void noProcessAndNoFolderStays_data() {
        QTest::addColumn<int>("signal");
        QTest::newRow("Ctrl-C") << SIGINT;
        QTest::newRow("SIGTERM") << SIGTERM;
        QTest::newRow("a closed terminal") << SIGHUP;
        QTest::newRow("SIGKILL") << SIGKILL;
    }
    void noProcessAndNoFolderStays() {
        QFETCH(int, signal);
        const int count =
            qEnvironmentVariableIsSet("CUTAWAY_ENDINGS") ? qEnvironmentVariableIntValue("CUTAWAY_ENDINGS") : 3;
        for (int i = 0; i < count; ++i) {
            QProcess process;
            start(process);
            QTest::qWait(static_cast<int>(m_random.bounded(m_untilRunning * 3 / 2 + 1)));
            end(process, signal);
            if (signal != SIGKILL) QCOMPARE(folders(), QStringList());  // gone with the program
            QTRY_COMPARE_WITH_TIMEOUT(living(), QStringList(), 10000);
            if (signal == SIGKILL) startAnother();
            QCOMPARE(folders(), QStringList());
        }
    }

    /// If the guard is killed as well, the kernel ends the processes, and the next program removes the folders.
    void whatIsKilledTogetherWithItsGuard() {
        QProcess process;
        start(process);
        QTRY_VERIFY_WITH_TIMEOUT(runs(), 120000);
        const QStringList guard = living().filter("cutaway-guard");
        QCOMPARE(guard.size(), 1);
        QCOMPARE(::kill(guard[0].section(' ', 0, 0).toInt(), SIGKILL), 0);
        end(process, SIGKILL);
        QTRY_COMPARE_WITH_TIMEOUT(living(), QStringList(), 10000);
        QVERIFY(!folders().isEmpty());
        startAnother();
        QCOMPARE(folders(), QStringList());
    }

    void aNormalEndLeavesNothing() {
        QProcess process;
        start(process, {"run", m_folder.filePath("graph.py"), "--backend", "cpu", "--cache", "off"});
        QVERIFY(process.waitForFinished(120000));
        QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0,
                 process.readAllStandardError().constData());
        QCOMPARE(folders(), QStringList());
        QCOMPARE(living(), QStringList());
    }
};

CUTAWAY_SUITE(EndingsTest)
#include "endings_test.moc"
