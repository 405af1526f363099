// What a plugin with processes of its own may write, start and do between two calls.
#include <QtTest>

#include "cutaway/plugins.h"
#include "tests/support/plugins.h"
#include "tests/support/suites.h"

using namespace cutaway;

class PluginLimitsTest : public QObject {
    Q_OBJECT

    testing::PluginsFolder m_folder;

  private slots:
    void init() { setPluginLimits({}); }

    /// What a plugin and its processes write together is limited, in files that are gone again, too, and what they hand
    /// on to each other; so are the processes. Nothing goes on between two calls.
    void limitsOfProcesses_data() {
        QTest::addColumn<QString>("action");
        QTest::addColumn<QString>("problem");  // "|": or
        QTest::newRow("elsewhere") << "elsewhere"
                                   << "wrote more than 8388608 bytes together and was ended";
        QTest::newRow("unlinked") << "unlinked"
                                  << "wrote more than 8388608 bytes together and was ended";
        QTest::newRow("by one that has ended") << "ended"
                                               << "wrote more than 8388608 bytes together and was ended";
        QTest::newRow("quickly") << "quickly"
                                 << "wrote more than 8388608 bytes together and was ended";
        QTest::newRow("pipes") << "pipes"
                               << "wrote more than 8388608 bytes together and was ended";
        QTest::newRow("processes") << "processes"
                                   << "had more than 64 processes at a time and was ended|BlockingIOError";
        QTest::newRow("little") << "little"
                                << "";
    }
    void limitsOfProcesses() {
        QFETCH(QString, action);
        QFETCH(QString, problem);
        m_folder.write("burden.py", R"py(import os, subprocess, sys, tempfile, time
from cutaway_plugin import plugin
mine = plugin("burden", "1", "Burdens the machine", processes=1)
CODE = "import os, sys\nfor i in range(64):\n open(sys.argv[1] + str(i), 'w').write('a' * (512 << 10))\n"
def write(name, count):
    for i in range(count):
        with open(name + str(i), "w") as out:
            out.write("a" * (512 << 10))
        os.unlink(name + str(i))
@mine.oracle("burdens", "Burdens the machine")
def burdens(action, host):
    place = os.path.join(tempfile.mkdtemp(dir=os.environ["CUTAWAY_TEST_ELSEWHERE"]), "f")
    if action == "elsewhere":
        subprocess.Popen([sys.executable, "-c", CODE, place])
        time.sleep(100)
    if action == "ended":
        subprocess.run([sys.executable, "-c", CODE, place])
    if action == "unlinked":
        write("f", 64)
        time.sleep(100)
    if action == "quickly":
        write("f", 64)
    if action == "little":
        write("f", 8)
    if action == "pipes":
        subprocess.run("head -c 6000000 /dev/zero | cat | cat > /dev/null", shell=True)
    if action == "processes":
        for i in range(200):
            if os.fork() == 0:
                time.sleep(100)
        time.sleep(100)
    return False
)py");
        qputenv("CUTAWAY_TEST_ELSEWHERE", m_folder.home("").toUtf8());
        setPluginLimits({20, int64_t{1} << 30, 1 << 20, 20 << 20});
        const auto verdict = askOracle("burden", action.toStdString(), 20);
        qunsetenv("CUTAWAY_TEST_ELSEWHERE");
        QVERIFY(QFile::remove(m_folder.path("burden.py")));
        if (problem.isEmpty()) {
            QVERIFY2(verdict.has_value(), verdict ? "" : verdict.error().text().c_str());
            return;
        }
        QVERIFY(!verdict.has_value());
        const QString error = QString::fromStdString(verdict.error().text());
        const QStringList either = problem.split('|');
        QVERIFY2(error.contains("plugin burden 1, oracle burdens:"), qPrintable(error));
        QVERIFY2(std::any_of(either.begin(), either.end(), [&](const QString& one) { return error.contains(one); }),
                 qPrintable(error));
    }
    void stillBetweenCalls() {
        m_folder.write("goes_on.py", R"py(import os, subprocess, time
from cutaway_plugin import plugin
mine = plugin("goes_on", "1", "Goes on", processes=1)
started = []
@mine.oracle("goes_on", "Starts one that counts, and waits for it")
def goes_on(graph, host):
    if not started:
        started.append(subprocess.Popen(["sh", "-c", "while :; do echo >> counted; sleep 0.01; done"]))
    while graph == "read" and not os.path.exists("counted"):
        time.sleep(0.01)
    host.say(str(started[0].pid))
    return False
)py");
        const auto pid = askOracle("goes_on", "start", 20);
        QVERIFY2(pid.has_value(), pid ? "" : pid.error().text().c_str());
        const QString state = "/proc/" + QString::fromStdString(pid->sentence) + "/stat";
        // Stopped, or waiting for a child of vfork that is.
        const auto isStill = [&] {
            QFile file(state);
            const QByteArray text = file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
            return text.contains(") T ") || text.contains(") D ");
        };
        QTRY_VERIFY(isStill());
        QVERIFY(askOracle("goes_on", "read", 20).has_value());  // in which it went on
        QTRY_VERIFY(isStill());
        QVERIFY(QFile::remove(m_folder.path("goes_on.py")));
    }
};

CUTAWAY_SUITE(PluginLimitsTest)
#include "plugin_limits_test.moc"
