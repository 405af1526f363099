// Printers on nests written by hand (tests/data/nests/printed.txt): each statement and each kind of access has one
// spelling, and nothing is decided on the way. What the code computes is tested where it is compiled (lowering_test,
// codegen_test) and on GPUs (cuda_printer_test).
#include <QtTest>

#include "engine/codegen/cpp_printer.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/loops/nest_text.h"
#include "engine/support/check.h"
#include "tests/support/paths.h"
#include "tests/support/sections.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct NestCase {
    QString name, nest, cpp, cuda;
};

QString nestsFile() { return testFile("data/nests/printed.txt"); }

NestCase caseOf(const Section& section) {
    const QString nest = section.text.section("--- c++\n", 0, 0), code = section.text.section("--- c++\n", 1);
    return {section.name, nest, code.section("--- cuda\n", 0, 0), code.section("--- cuda\n", 1)};
}

/// The statements of the one function that is printed.
QString statements(const std::string& source) {
    const QString all = QString::fromStdString(source);
    const auto from = all.indexOf("{\n", all.lastIndexOf("extern \"C\"")) + 2;
    return all.mid(from, all.lastIndexOf("}\n") - from);
}
QString cppOf(const LoopNest& nest) { return statements(printCpp({{nest}, {}}).source); }
QString cudaOf(const LoopNest& nest) { return statements(printCuda({{nest}, {}}).source); }

}  // namespace

class PrintersTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        if (!blesses()) return;
        Sections sections = readSections(nestsFile());
        for (Section& section : sections.all) {
            const QString text = caseOf(section).nest;
            const auto nest = parseNest(text.toStdString());
            QVERIFY2(bool(nest), nest ? "" : nest.error().text().c_str());
            section.text = text + "--- c++\n" + cppOf(*nest) + "--- cuda\n" + cudaOf(*nest);
        }
        QVERIFY(writeSections(nestsFile(), sections));
    }
    void nests_data() {
        QTest::addColumn<QString>("nest");
        QTest::addColumn<QString>("cpp");
        QTest::addColumn<QString>("cuda");
        for (const Section& section : readSections(nestsFile()).all) {
            const NestCase nestCase = caseOf(section);
            QTest::newRow(qPrintable(nestCase.name)) << nestCase.nest << nestCase.cpp << nestCase.cuda;
        }
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

CUTAWAY_SUITE(PrintersTest)
#include "printers_test.moc"
