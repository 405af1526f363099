// Sentences of the windows: times with their spread, what follows from an error, files told apart by their folders.
#include <QtTest>

#include "tests/support/suites.h"
#include "ui/models/log_model.h"
#include "ui/models/results_model.h"
#include "ui/models/words.h"

using namespace cutaway;
using namespace cutaway::ui;

class SentencesTest : public QObject {
    Q_OBJECT

  private slots:
    void timesHaveASpread_data() {
        QTest::addColumn<int>("repeats");
        QTest::addColumn<double>("first");
        QTest::addColumn<double>("third");
        QTest::addColumn<QString>("text");
        QTest::newRow("one") << 1 << 28.0 << 28.0 << "28.0 ms";
        QTest::newRow("few") << 3 << 27.0 << 30.0 << "median 28.0 ms, fastest 26.0 ms of 3 runs";
        QTest::newRow("many") << 20 << 27.0 << 30.0 << "median 28.0 ms, half of 20 runs 27.0 ms to 30.0 ms";
        QTest::newRow("busy") << 20 << 21.0 << 35.0
                              << "median 28.0 ms, half of 20 runs 21.0 ms to 35.0 ms – the machine is busy: times vary "
                                 "by 50.0 %, so time again when it is idle";
    }
    void timesHaveASpread() {
        QFETCH(int, repeats);
        QFETCH(double, first);
        QFETCH(double, third);
        RunReport report;
        report.medianMilliseconds = 28;
        report.minMilliseconds = 26;
        report.repeats = repeats;
        report.firstQuartile = first;
        report.thirdQuartile = third;
        QTEST(timesText(report), "text");
    }

    /// Several things to do are sentences; a single one stays as it is, as it may be a command.
    void whatToDoIsSentences() {
        Error error{ErrorCode::Limit, "it ran longer than 60 s", {}, {"raise the time limit"}};
        QCOMPARE(entryOf(error, "Timing").next, "raise the time limit");
        error.notes.push_back("to repeat it: cutaway-cli run-repro /tmp/r");
        QCOMPARE(entryOf(error, "Timing").next, "Raise the time limit. To repeat it: cutaway-cli run-repro /tmp/r");
    }

    void filesAreToldApart() {
        QCOMPARE(shortPath("/models/gpt2_mini/model.pt2"), "gpt2_mini/model.pt2");
        QCOMPARE(shortPath("model.pt2"), "model.pt2");
        QCOMPARE(shortPath(""), "");
    }
};

CUTAWAY_SUITE(SentencesTest)
#include "sentences_test.moc"
