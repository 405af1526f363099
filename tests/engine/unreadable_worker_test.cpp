// Where the system does not let a program read its worker's memory, results come through shared memory, to the same
// bits.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <cerrno>
#include <cstddef>

#include "tests/support/paths.h"
#include "tests/support/suites.h"

namespace {

/// From now on this process and its children get EPERM for reading another one's memory.
bool forbidReading() {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(rules), rules};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
constexpr int kNoFilter = 99;

}  // namespace

class UnreadableWorkerTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    /// The status of a training run, or kNoFilter; its results go to `file`.
    int run(const QString& file, const QString& backend, bool readable) const {
        QProcess process;
        process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        if (!readable)
            process.setChildProcessModifier([] {
                if (!forbidReading()) ::_exit(kNoFilter);
            });
        process.start(cutaway::testing::builtProgram("cutaway-cli"),
                      {"run", m_folder.filePath("graph.py"), "--mode", "training", "--grad", "w", "--backend", backend,
                       "--gradients", m_folder.filePath(file)});
        if (!process.waitForFinished(120'000)) qFatal("the run does not end");
        return process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1;
    }
    QByteArray bytes(const QString& file) const {
        QFile opened(m_folder.filePath(file));
        return opened.open(QIODevice::ReadOnly) ? opened.readAll() : QByteArray();
    }

  private slots:
    void initTestCase() {
        QFile graph(m_folder.filePath("graph.py"));
        QVERIFY(graph.open(QIODevice::WriteOnly));
        graph.write(R"(def forward(x: "f32[256, 256]", w: "f32[256, 256]"):
    m = aten.mm.default(x, w)
    t = aten.tanh.default(m)
    n = aten.mm.default(t, w)
    return (n, t)
)");
    }

    void sameResults_data() {
        QTest::addColumn<QString>("backend");
        QTest::newRow("compiled") << "cpu";
        QTest::newRow("interpreted") << "reference";
    }
    void sameResults() {
        QFETCH(const QString, backend);
        QCOMPARE(run("readable", backend, true), 0);
        const int status = run("unreadable", backend, false);
        if (status == kNoFilter) QSKIP("this system has no filters of system calls");
        QCOMPARE(status, 0);
        QVERIFY(bytes("readable").size() > 3 * 256 * 256 * 4);
        QCOMPARE(bytes("unreadable"), bytes("readable"));
    }
};

CUTAWAY_SUITE(UnreadableWorkerTest)
#include "unreadable_worker_test.moc"
