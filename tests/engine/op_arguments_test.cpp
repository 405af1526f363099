// Operators with arguments that nobody would write. Calls that once went wrong (corpus/arguments, a call per line after
// what must become of it: "refused" or "ran") are put through everything in this process; so many new ones, from a
// seed, in processes of their own. A seed that fails here fails in `op_arguments_fuzz --from SEED --count 1`.
#include <QDir>
#include <QtTest>

#include "tests/fuzz/argument_runs.h"
#include "tests/support/argument_check.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class OpArgumentsTest : public QObject {
    Q_OBJECT

  private slots:
    void corpus_data();
    void corpus();
    void mutations_data();
    void mutations();
};

void OpArgumentsTest::corpus_data() {
    QTest::addColumn<QString>("call");
    QTest::addColumn<bool>("refused");
    const QDir folder(testFile("fuzz/corpus/arguments"));
    for (const QString& name : folder.entryList(QDir::Files, QDir::Name)) {
        QFile file(folder.filePath(name));
        QVERIFY(file.open(QIODevice::ReadOnly));
        int number = 0;
        for (const QString& line : QString::fromUtf8(file.readAll()).split('\n')) {
            ++number;
            if (line.isEmpty() || line.startsWith('#')) continue;
            const QString wanted = line.section(' ', 0, 0);
            QVERIFY2(wanted == "refused" || wanted == "ran", qPrintable(name + ": " + line));
            QTest::newRow(qPrintable(name + ":" + QString::number(number)))
                << line.section(' ', 1) << (wanted == "refused");
        }
    }
}
void OpArgumentsTest::corpus() {
    QFETCH(QString, call);
    QFETCH(bool, refused);
    const auto parsed = parseCall(call.toStdString());
    QVERIFY2(parsed, qPrintable(call));
    const CallReport report = checkCall(*parsed, [](const char*) {});
    QVERIFY2(report.problems.empty(),
             report.problems.empty() ? "" : qPrintable(call + ": " + QString::fromStdString(report.problems[0])));
    const bool wasRefused =
        report.outcome == CallReport::Outcome::RefusedByTypes || report.outcome == CallReport::Outcome::RefusedWhenRun;
    QVERIFY2(wasRefused == refused,
             qPrintable(call + (refused ? ": accepted" : ": " + QString::fromStdString(report.refusal))));
    QVERIFY2(!refused || !report.refusal.empty(), "refused without a word");
}

/// CUTAWAY_SEED starts elsewhere, CUTAWAY_SEEDS makes more of them. Operators without samples have calls in the corpus.
void OpArgumentsTest::mutations_data() {
    QTest::addColumn<QString>("samples");
    QTest::addColumn<double>("ran");  // at least so many of all
    QTest::newRow("samples") << "" << 1.0 / 3;
    QTest::newRow("calls of operators without samples") << "fuzz/corpus/arguments/unsampled.txt" << 0.1;
}
void OpArgumentsTest::mutations() {
    QFETCH(QString, samples);
    QFETCH(double, ran);
    const auto mutations =
        samples.isEmpty() ? ArgumentMutations() : ArgumentMutations(callsIn(testFile(samples).toStdString()));
    fuzz::ArgumentRuns runs;
    runs.from = qEnvironmentVariableIntValue("CUTAWAY_SEED");
    runs.count = qEnvironmentVariableIsSet("CUTAWAY_SEEDS") ? qEnvironmentVariableIntValue("CUTAWAY_SEEDS") : 2000;
    runs.callSeconds = 60;  // what takes seconds on a busy machine is for op_arguments_fuzz to find
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    runs.memoryBytes = 0;  // sanitizers reserve more than there is
#endif
    const fuzz::ArgumentTally tally = fuzz::runArguments(mutations, runs, [](const fuzz::ArgumentFailure& failure) {
        qWarning("%s in %s, mutation %llu: %s\n%s", failure.kind.c_str(), failure.stage.c_str(),
                 static_cast<unsigned long long>(failure.seed), failure.call.c_str(), failure.detail.c_str());
    });
    qInfo("%llu mutations from %llu: %llu refused, %llu ran", static_cast<unsigned long long>(tally.calls),
          static_cast<unsigned long long>(runs.from),
          static_cast<unsigned long long>(tally.refusedByTypes + tally.refusedWhenRun),
          static_cast<unsigned long long>(tally.ran));
    QVERIFY2(tally.failures.empty(), qPrintable(QString::number(tally.failures.size()) + " kinds of failures"));
    QVERIFY(static_cast<double>(tally.ran) > ran * static_cast<double>(runs.count));
}

CUTAWAY_SUITE(OpArgumentsTest)
#include "op_arguments_test.moc"
