// A trial that writes outside of its values changes no other trial's answer, and leaves nothing behind: no process, no
// folder, no shared memory.
#include <QTemporaryDir>
#include <QUuid>
#include <QtTest>

#include "engine/support/fault_points.h"
#include "engine/trials/trial_server.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr int64_t kSize = 256;

// `first` lies before `second` in the memory that all trials share.
const char* const kBoth = R"(def forward(self, x: "f32[4, 256]"):
    first: "f32[256, 256]" = self.first
    second: "f32[256, 256]" = self.second
    t = aten.t.default(first)
    m = aten.mm.default(x, t)
    n = aten.mm.default(m, second)
    return (n,)
)";
const char* const kSecond = R"(def forward(self, x: "f32[4, 256]"):
    second: "f32[256, 256]" = self.second
    a = aten.add.Tensor(second, 1.0)
    r = aten.tanh.default(a)
    s = aten.sum.dim_IntList(r, [0], True)
    y = aten.mul.Tensor(x, s)
    return (y,)
)";

Tensor numbers() {
    Tensor tensor = Tensor::zeros(DType::F32, {kSize, kSize});
    for (int64_t i = 0; i < kSize * kSize; ++i) tensor.as<float>()[i] = static_cast<float>(i % 13 - 6) / 100;
    return tensor;
}

QStringList sharedMemory() {
    QStringList found;
    for (const QFileInfo& each : QDir("/proc/self/fd").entryInfoList(QDir::AllEntries | QDir::System))
        if (const QString target = each.symLinkTarget(); target.contains("memfd:")) found << target;
    return found;
}

}  // namespace

class TrialIsolationTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;
    const QByteArray m_mark = QUuid::createUuid().toByteArray();

    /// Processes that this program has started; not itself, since /proc shows its environment from before the mark.
    QStringList living() const {
        QStringList found;
        for (const QString& pid : QDir("/proc").entryList(QDir::Dirs)) {
            QFile environment("/proc/" + pid + "/environ");
            if (environment.open(QIODevice::ReadOnly) && environment.readAll().contains(m_mark)) found << pid;
        }
        return found;
    }

  private slots:
    void initTestCase() {
        QVERIFY(m_scratch.isValid());
        qputenv("TMPDIR", m_scratch.path().toLocal8Bit());
        qputenv("CUTAWAY_TEST", m_mark);
        qputenv("CUTAWAY_REPROS", "off");
    }
    void cleanup() { setFault(""); }

    void aWriteOutsideChangesOneAnswer_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<bool>("compiled");
        QTest::addColumn<bool>("seen");
        // Behind a view of a weight lies the next weight: the trial itself sees it.
        QTest::newRow("a weight") << "op:aten.t.default:outside" << false << true;
        QTest::newRow("a value") << "op:aten.mm.default:outside" << false << false;
        QTest::newRow("a library's result") << "kernel:aten.mm.default:outside" << true << false;
        QTest::newRow("a kernel's result") << "kernel:aten.neg.default:outside" << true << false;
    }
    void aWriteOutsideChangesOneAnswer() {
        QFETCH(QString, fault);
        QFETCH(bool, compiled);
        QFETCH(bool, seen);
        const QStringList before = sharedMemory();
        setFault(fault.toStdString());
        {
            const Tensor first = numbers(), second = numbers();
            const auto table = std::make_shared<const TensorTable>([=] { return std::vector<Tensor>{first, second}; });
            auto server = TrialServer::start(table);
            QVERIFY2(server.has_value(), server ? "" : server.error().text().c_str());
            TrialJob bad, good;
            bad.graph = kBoth;
            if (fault.contains("neg"))
                bad.graph.replace(bad.graph.find("    return"), 0, "    o = aten.neg.default(n)\n");
            if (fault.contains("neg")) bad.graph.replace(bad.graph.find("(n,)"), 4, "(o,)");
            good.graph = kSecond;
            for (TrialJob* job : {&bad, &good}) {
                job->constants = {{"first", first}, {"second", second}};
                job->inputs = {Tensor::full(DType::F32, {4, kSize}, 0.5)};
                job->check.level = TrialCheck::Level::NonFinite;
                job->check.backend = compiled ? Backend::Cpu : Backend::Reference;
            }
            const auto known = server->run(good, {}, {});
            QVERIFY2(known && !known->failure, known ? known->detail.c_str() : known.error().text().c_str());
            for (int i = 0; i < 3; ++i) {
                const auto spoiled = server->run(bad, {}, {});
                QVERIFY2(spoiled.has_value(), spoiled ? "" : spoiled.error().text().c_str());
                if (seen) {
                    QVERIFY(spoiled->failure.has_value());
                    QCOMPARE(spoiled->failure->kind, FailureKind::NonFinite);
                }
                const auto next = server->run(good, {}, {});
                QVERIFY2(next && !next->failure, next ? next->detail.c_str() : next.error().text().c_str());
                QCOMPARE(next->detail, known->detail);
            }
        }
        QTRY_COMPARE(living(), QStringList());
        QCOMPARE(QDir(m_scratch.path()).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot),
                 QStringList());
        QCOMPARE(sharedMemory(), before);
    }
};

CUTAWAY_SUITE(TrialIsolationTest)
#include "trial_isolation_test.moc"
