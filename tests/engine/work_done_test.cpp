// How much work is done for each recorded model, as text: what time would show, where it cannot be measured. A change
// that makes a kernel more, a copy more or a larger arena shows here; `CUTAWAY_BLESS=1` takes it over.
#include <QtTest>

#include "engine/formats/open.h"
#include "engine/interpret/specialize.h"
#include "engine/passes/pipeline.h"
#include "engine/schedule/schedule.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "tests/support/sections.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::modelFiles;
using cutaway::testing::modelName;

namespace {

const char* const kGolden = "data/work_done.txt";

struct Kind {
    const char* name;
    CompileRequest request;
    std::vector<const char*> graphNames;
};
std::vector<Kind> kinds() {
    CompileRequest frozen, training;
    frozen.freeze = true;
    training.mode = Mode::Training;
    return {{"inference", {}, {"main"}}, {"frozen", frozen, {"main"}}, {"training", training, {"forward", "backward"}}};
}

/// "12 kernels; addmm (oneDNN) 4; reference: aten.cumsum.default 1; 12 kB read, 3 kB written; arena 4096 of 4000 bytes"
QString workOf(const Module& graph) {
    auto numbers = std::make_shared<Module>(graph);
    if (const auto fixed = specialize(*numbers, hintedSymbols(*numbers)); !fixed)
        return QString::fromStdString(fixed.error().text());
    const auto program = scheduleModule(numbers, kCpuTarget);
    if (!program) return QString::fromStdString(program.error().text());
    std::map<QString, int> others;
    int kernels = 0;
    int64_t read = 0, written = 0;
    for (const ScheduledCall& call : program->calls) {
        if (call.kind == CallKind::Kernel) ++kernels;
        else ++others[QString::fromStdString(call.description).remove("library: ")];
        read += call.bytesRead;
        written += call.bytesWritten;
    }
    QStringList parts = {QString("%1 kernels").arg(kernels)};
    for (const auto& [name, count] : others) parts << QString("%1 %2").arg(name).arg(count);
    parts << QString("%1 bytes read, %2 written").arg(read).arg(written);
    const auto memory = memoryOf(*program);
    if (!memory) return parts.join("; ") + "; " + QString::fromStdString(memory.error().text());
    parts << QString("arena %1 for %2 bytes").arg(memory->arena).arg(memory->largestLive);
    return parts.join("; ");
}

std::map<QString, QString> golden() {
    std::map<QString, QString> rows;
    QFile file(testing::testFile(kGolden));
    if (!file.open(QIODevice::ReadOnly)) return rows;
    for (const QString& line : QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts))
        rows[line.section(": ", 0, 0)] = line.section(": ", 1);
    return rows;
}

}  // namespace

class WorkDoneTest : public QObject {
    Q_OBJECT

  private slots:
    void modelsDoTheWorkThatTheyDid_data() {
        QTest::addColumn<QString>("file");
        for (const QString& file : modelFiles()) QTest::newRow(qPrintable(modelName(file))) << file;
    }
    void modelsDoTheWorkThatTheyDid() {
        QFETCH(QString, file);
        auto opened = openFile(file.toStdString(), {});
        QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        const Snapshot input = std::move(opened->graphs[0].module);
        for (const Kind& kind : kinds()) {
            const auto trace = runPipeline(input, kind.request, {.cacheFile = "off"}, {});
            const QString name = modelName(file) + " " + kind.name;
            for (const char* graphName : kind.graphNames) {
                const QString row = kind.graphNames.size() > 1 ? name + " " + graphName : name;
                const Snapshot graph = trace ? trace->resultOf(graphName) : nullptr;
                const QString work = !trace            ? QString::fromStdString(trace.error().message)
                                     : trace->failed() ? QString::fromStdString(trace->steps.back().info.error)
                                     : !graph          ? QString("no graph")
                                                       : workOf(*graph);
                if (testing::blesses()) m_rows[row] = work;
                else QCOMPARE(row + ": " + work, row + ": " + m_rows[row]);
            }
        }
    }
    /// Memory is planned close to what lives at once.
    void arenasAreTight() {
        for (const auto& [name, work] : m_rows) {
            const auto found = QRegularExpression("arena (\\d+) for (\\d+) bytes").match(work);
            if (!found.hasMatch()) continue;
            const double arena = found.captured(1).toDouble(), live = found.captured(2).toDouble();
            QVERIFY2(arena <= 1.1 * live, qPrintable(name + ": " + work));
        }
    }
    void initTestCase() { m_rows = golden(); }
    void cleanupTestCase() {
        if (!testing::blesses()) return;
        QFile file(testing::testFile(kGolden));
        QVERIFY(file.open(QIODevice::WriteOnly));
        for (const auto& [name, work] : m_rows) file.write((name + ": " + work + "\n").toUtf8());
    }

  private:
    std::map<QString, QString> m_rows;
};

CUTAWAY_SUITE(WorkDoneTest)
#include "work_done_test.moc"
