// A selection of the exports of tests/scripts/try_exports.py, and the texts of record_flex.py: what PyTorch 2.15 wrote,
// and what eager gave for it. Each is run by the command line: interpreted, compiled, frozen, and its gradients.
#include <QDir>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/shell.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class TriedExportsTest : public QObject {
    Q_OBJECT

  private slots:
    void matchEager_data() {
        QTest::addColumn<QString>("folder");
        const QDir all(testFile("data/exports"));
        const QStringList names = all.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
        QVERIFY(!names.isEmpty());
        for (const QString& name : names) QTest::newRow(qPrintable(name)) << all.filePath(name);
    }
    void matchEager() {
        QFETCH(QString, folder);
        const QDir files(folder);
        const QString model = files.exists("model.pt2") ? "model.pt2" : "model.txt";
        const QStringList inputs = files.entryList({"inputs_*.safetensors"}, QDir::Files, QDir::Name);
        QVERIFY(!inputs.isEmpty());
        for (const QString& given : inputs) {
            QString expected = given;
            expected.replace("inputs", "expected");
            // What the program's guards forbid has no results.
            const bool forbidden = !files.exists(expected);
            for (const char* how : {" --backend reference", " --backend cpu", " --backend cpu --freeze"}) {
                const Ended ended = runShell(folder, "cutaway-cli run " + model + " --cache off --inputs " + given +
                                                         how + (forbidden ? QString() : " --expect " + expected));
                QVERIFY2(ended.status == (forbidden ? 1 : 0), qPrintable(given + how + ": " + ended.err + ended.out));
            }
        }
        if (!files.exists("gradients.safetensors")) return;
        for (const char* how : {" --backend reference", " --backend cpu"}) {
            const QString line = "cutaway-cli run " + model +
                                 " --cache off --mode training --inputs inputs_0.safetensors "
                                 "--expect-gradients gradients.safetensors";
            const Ended ended = runShell(folder, line + how);
            QVERIFY2(ended.status == 0, qPrintable(QString("gradients") + how + ": " + ended.err + ended.out));
        }
    }
};

CUTAWAY_SUITE(TriedExportsTest)
#include "tried_exports_test.moc"
