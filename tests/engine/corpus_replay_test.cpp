// Every file of the fuzz corpus through its reader: what once crashed must not crash again. Needs no fuzzer.
#include <QDir>
#include <QtTest>

#include "tests/fuzz/formats.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

class CorpusReplayTest : public QObject {
    Q_OBJECT

  private slots:
    void replays_data();
    void replays();
    void everyFormatHasSeeds();
};

void CorpusReplayTest::replays_data() {
    QTest::addColumn<int>("format");
    QTest::addColumn<QString>("path");
    int position = 0;
    for (const fuzz::Format& format : fuzz::formats()) {
        const QString name = QString::fromUtf8(format.name.data(), static_cast<qsizetype>(format.name.size()));
        const QDir folder(testing::testFile("fuzz/corpus/" + name));
        for (const QString& file : folder.entryList(QDir::Files, QDir::Name))
            QTest::newRow(qPrintable(name + "/" + file)) << position << folder.filePath(file);
        ++position;
    }
}
/// A crash ends the test program and an exception fails the row: there is nothing else to compare.
void CorpusReplayTest::replays() {
    QFETCH(int, format);
    QFETCH(QString, path);
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray bytes = file.readAll();
    fuzz::formats()[static_cast<size_t>(format)].run(
        {reinterpret_cast<const uint8_t*>(bytes.constData()), static_cast<size_t>(bytes.size())});
}

void CorpusReplayTest::everyFormatHasSeeds() {
    for (const fuzz::Format& format : fuzz::formats()) {
        const QString name = QString::fromUtf8(format.name.data(), static_cast<qsizetype>(format.name.size()));
        QVERIFY2(QDir(testing::testFile("fuzz/corpus/" + name)).entryList(QDir::Files).size() >= 3, qPrintable(name));
    }
}

CUTAWAY_SUITE(CorpusReplayTest)
#include "corpus_replay_test.moc"
