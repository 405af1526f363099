// Signatures of failures: what makes two failures the same.
#include "cutaway/failure.h"

#include <QtTest>

#include "tests/support/suites.h"

using namespace cutaway;

class FailureTest : public QObject {
    Q_OBJECT

  private slots:
    void messagesLoseWhatDiffers_data() {
        QTest::addColumn<QString>("message");
        QTest::addColumn<QString>("normalised");
        QTest::newRow("numbers") << "size 12 does not fit 0x7f3a"
                                 << "size N does not fit N";
        QTest::newRow("real number at the end") << "error 0.25."
                                                << "error N.";
        QTest::newRow("names") << "argument 'mul_3' of \"add_7\" stands after it"
                               << "argument '...' of '...' stands after it";
        QTest::newRow("apostrophe") << "the pass doesn't like x'y"
                                    << "the pass doesn't like x'y";
        QTest::newRow("notes") << "first line\nsecond line"
                               << "first line";
        QTest::newRow("paths") << "cannot read /tmp/a1/b.py: no"
                               << "cannot read PATH: no";
        QTest::newRow("nothing") << ""
                                 << "";
    }
    void messagesLoseWhatDiffers() {
        QFETCH(QString, message);
        QFETCH(QString, normalised);
        QCOMPARE(QString::fromStdString(normalisedMessage(message.toStdString())), normalised);
    }

    void textReadsBack_data() {
        QTest::addColumn<QString>("text");
        QTest::newRow("kind") << "kind=hang";
        QTest::newRow("all") << "kind=pass-error; pass=joint/x; op=aten.mm.default; message=no; because=a; b";
    }
    void textReadsBack() {
        QFETCH(QString, text);
        const auto read = parseSignature(text.toStdString());
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        QCOMPARE(QString::fromStdString(read->text()), text);
    }

    void refusesWhatItDoesNotKnow_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        QTest::newRow("kind") << "kind=boom"
                              << "no kind of failure is called 'boom'";
        QTest::newRow("part") << "kind=hang; where=x"
                              << "no 'where'";
        QTest::newRow("no kind") << "pass=x"
                                 << "does not say which kind";
        QTest::newRow("no value") << "hang"
                                  << "KEY=VALUE";
    }
    void refusesWhatItDoesNotKnow() {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const auto read = parseSignature(text.toStdString());
        QVERIFY(!read);
        QVERIFY2(QString::fromStdString(read.error().message).contains(says), read.error().message.c_str());
    }

    void comparesWhatIsAskedFor() {
        const FailureSignature found{FailureKind::PassError, "no", "joint/x", "aten.mm.default"};
        QVERIFY(isSameFailure({FailureKind::PassError, "", "", ""}, found));
        QVERIFY(isSameFailure({FailureKind::PassError, "no", "joint/x", "aten.mm.default"}, found));
        QVERIFY(!isSameFailure({FailureKind::Crash, "", "", ""}, found));
        QVERIFY(!isSameFailure({FailureKind::PassError, "yes", "", ""}, found));
        QVERIFY(!isSameFailure({FailureKind::PassError, "", "joint/y", ""}, found));
        QVERIFY(!isSameFailure({FailureKind::PassError, "", "", "aten.add.Tensor"}, found));
    }
};

CUTAWAY_SUITE(FailureTest)
#include "failure_test.moc"
