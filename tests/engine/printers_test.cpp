// Printers on nests written by hand (tests/data/nests/printed.txt): each statement and each kind of access has one
// spelling, and nothing is decided on the way. What the code computes is tested where it is compiled (lowering_test,
// codegen_test) and on GPUs (cuda_printer_test).
#include <QtTest>

#include "engine/codegen/cpp_printer.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/loops/nest_text.h"
#include "engine/support/check.h"
#include "tests/support/paths.h"

using namespace cutaway;

namespace {

struct NestCase {
    QString name, nest, cpp, cuda;
};

QString path() { return testing::testFile("data/nests/printed.txt"); }

/// What stands before the first case, and the cases.
std::pair<QString, QList<NestCase>> readCases() {
    QFile file(path());
    if (!file.open(QIODevice::ReadOnly)) return {};
    QStringList parts = QString::fromUtf8(file.readAll()).split("\n=== ");
    const QString head = parts.takeFirst();
    QList<NestCase> cases;
    for (const QString& part : parts) {
        const QString name = part.section('\n', 0, 0), rest = part.section('\n', 1);
        const QString nest = rest.section("--- c++\n", 0, 0), code = rest.section("--- c++\n", 1);
        const QString cpp = code.section("--- cuda\n", 0, 0), cuda = code.section("--- cuda\n", 1);
        cases.push_back({name, nest, cpp, cuda.endsWith('\n') || cuda.isEmpty() ? cuda : cuda + "\n"});
    }
    return {head, cases};
}

/// The statements of the one function that is printed.
QString statements(const std::string& source) {
    const QString all = QString::fromStdString(source);
    const auto from = all.indexOf("{\n", all.lastIndexOf("extern \"C\"")) + 2;
    return all.mid(from, all.lastIndexOf("}\n") - from);
}
QString cppOf(const LoopNest& nest) { return statements(printCpp({{nest}, {}}).source); }
QString cudaOf(const LoopNest& nest) {
    const auto printed = printCuda({{nest}, {}});
    return printed ? statements(printed->source) : QString::fromStdString("refused: " + printed.error().text()) + "\n";
}

}  // namespace

class PrintersTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        if (qEnvironmentVariableIsEmpty("CUTAWAY_BLESS")) return;
        const auto [head, cases] = readCases();
        QString all = head;
        for (const NestCase& own : cases) {
            const auto nest = parseNest(own.nest.toStdString());
            QVERIFY2(bool(nest), nest ? "" : nest.error().text().c_str());
            all += "\n=== " + own.name + "\n" + own.nest + "--- c++\n" + cppOf(*nest) + "--- cuda\n" + cudaOf(*nest);
        }
        QFile file(path());
        QVERIFY(file.open(QIODevice::WriteOnly));
        QVERIFY(file.write(all.toUtf8()) > 0);
    }
    void nests_data() {
        QTest::addColumn<QString>("nest");
        QTest::addColumn<QString>("cpp");
        QTest::addColumn<QString>("cuda");
        for (const NestCase& own : readCases().second)
            QTest::newRow(qPrintable(own.name)) << own.nest << own.cpp << own.cuda;
    }
    void nests() {
        QFETCH(QString, nest);
        QFETCH(QString, cpp);
        QFETCH(QString, cuda);
        const auto read = parseNest(nest.toStdString());
        QVERIFY2(bool(read), read ? "" : read.error().text().c_str());
        QCOMPARE(QString::fromStdString(text(*read)), nest);
        QCOMPARE(cppOf(*read), cpp);
        QCOMPARE(cudaOf(*read), cuda);
    }
    /// Statements that lowering has to remove are refused.
    void reductionsAreLoweredBefore() {
        const auto read = parseNest("k(b0: f32!)\n  alloc sum t0: f64 of f32\n");
        QVERIFY(bool(read));
        QVERIFY_THROWS_EXCEPTION(InternalError, printCpp({{*read}, {}}));
        QVERIFY_THROWS_EXCEPTION(InternalError, (void)printCuda({{*read}, {}}));
    }
};

QTEST_APPLESS_MAIN(PrintersTest)
#include "printers_test.moc"
