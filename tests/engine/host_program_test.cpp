// Host programs: the interpreter of their data and the printed C++ give the same bits, in ten contexts at once.
#include <QtTest>
#include <future>

#include "engine/codegen/host_printer.h"
#include "engine/formats/open.h"
#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "tests/engine/host_harness.h"
#include "tests/support/graph_eval.h"
#include "tests/support/models.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

Snapshot afterPasses(const QString& file, bool freeze, QString& problem) {
    auto opened = openFile(file.toStdString(), {});
    if (!opened) {
        problem = QString::fromStdString(opened.error().text());
        return nullptr;
    }
    CompileRequest request;
    request.freeze = freeze;
    const Snapshot input = std::move(opened->graphs[0].module);
    const auto trace = runPipeline(input, request, {.cacheFile = "off"}, {});
    if (!trace || trace->failed()) {
        problem = "the passes failed";
        return nullptr;
    }
    return trace->result();
}

}  // namespace

class HostProgramTest : public QObject {
    Q_OBJECT

  private slots:
    void sameAsPrinted_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<bool>("freeze");
        QStringList files = modelFiles();
        for (const char* name : {"training_ir_dynamic", "decomposed_dynamic"})
            if (const QString file = QString(CUTAWAY_SOURCE_DIR "/../shared/reference/formats/%1.pt2").arg(name);
                QFile::exists(file))
                files << file;
        for (const QString& file : files)
            for (const bool freeze : {false, true})
                QTest::newRow(qPrintable(modelName(file) + QFileInfo(file).baseName() + (freeze ? " frozen" : "")))
                    << file << freeze;
    }
    void sameAsPrinted() {
        QFETCH(QString, file);
        QFETCH(bool, freeze);
        QString problem;
        const Snapshot module = afterPasses(file, freeze, problem);
        QVERIFY2(module, qPrintable(problem));
        const auto user = cutaway::randomInputs(*module, 1);
        QVERIFY2(user.has_value(), user ? "" : user.error().text().c_str());
        const auto bound = bindInputs(*module, *user);
        QVERIFY2(bound.has_value(), bound ? "" : bound.error().text().c_str());
        auto made = compiled(module, *bound);
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const HostFunction& function = (*made)->host.functions[0];
        const auto sizes = bindSymbols(function, *bound);
        QVERIFY2(sizes.has_value(), sizes ? "" : sizes.error().text().c_str());
        const auto given = laidOut(function, *bound, *sizes);
        QVERIFY2(given.has_value(), given ? "" : given.error().text().c_str());

        StatusPage board;
        const auto wanted = HostContext((*made)->loaded, 0).run(*given, 0, board);
        QVERIFY2(wanted.has_value(), wanted ? "" : wanted.error().text().c_str());
        std::vector<std::future<QString>> others;
        for (int i = 0; i < kContexts; ++i)
            others.push_back(std::async(std::launch::async, [&] {
                StatusPage page;
                const auto run = HostContext((*made)->loaded, 0).run(*given, 1, page);
                return run ? difference(run->outputs, wanted->outputs) : QString::fromStdString(run.error().text());
            }));
        for (auto& other : others) QCOMPARE(other.get(), QString());
        const auto source = printHost((*made)->host);
        const auto reference = std::find_if(function.steps.begin(), function.steps.end(),
                                            [](const HostStep& step) { return step.kind == HostStepKind::Reference; });
        if (reference != function.steps.end()) {
            QVERIFY(!source);
            QVERIFY2(source.error().message.find("computed by the engine") != std::string::npos,
                     source.error().message.c_str());
            return;
        }
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        QCOMPARE(printedProblem(**made, *source, *given, wanted->outputs), QString());
    }

    /// A run draws what the one before it drew.
    void drawsBeginAnew() {
        const Snapshot module = moduleOf(R"py(
def forward(self, x: "f32[16]"):
    randperm: "i64[16]" = torch.ops.aten.randperm.default(16, device = device(type='cpu'), pin_memory = False)
    index: "f32[16]" = torch.ops.aten.index.Tensor(x, [randperm])
    return (index, randperm)
)py");
        auto made = compiled(module, {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        HostContext context((*made)->loaded, 0);
        const std::vector<Tensor> inputs = drawnInputs(*module, 1);
        for (int i = 0; i < 3; ++i) QCOMPARE(runProblem(context, *module, inputs, Agree::ToTheBit), QString());
    }

    void text() {
        auto made = compiled(moduleOf(R"py(
def forward(self, x: "f32[s0, 8]", w: "f32[8, 4]"):
    mm: "f32[s0, 4]" = torch.ops.aten.mm.default(x, w)
    relu: "f32[s0, 4]" = torch.ops.aten.relu.default(mm)
    return (relu,)
)py"),
                             {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        const QString said = QString::fromStdString(cutaway::text((*made)->host));
        const QString wanted = R"(
function run(x: f32[s0, 8], w: f32[8, 4])
    s0 = size 0 of x
    slot0: 16*s0 bytes
    v0: f32[s0, 8] = x  # x
    v1: f32[8, 4] = w  # w
    v2: f32[s0, 4] = slot0  # mm
    v3: f32[s0, 4] = view of v2  # relu
    v2 = aten.mm.default(v0, v1) by oneDNN  # mm
    kernel0(v3) over 4*s0  # relu (kernel0)
    return v3
)";
        QVERIFY2(said.endsWith(wanted.mid(1)), qPrintable(said));
    }

    void refusals_data() {
        QTest::addColumn<QList<qint64>>("sizes");
        QTest::addColumn<QString>("says");
        QTest::newRow("another inner size") << QList<qint64>{3, 7} << "input 'x' must be f32[3, 8], not f32[3, 7]";
        QTest::newRow("more than was exported")
            << QList<qint64>{65, 8} << "size s0 = 65 is outside the range that the program was exported for";
        QTest::newRow("another rank") << QList<qint64>{3} << "input 'x' must be f32[s0, 8], not f32[3]";
    }
    void refusals() {
        QFETCH(QList<qint64>, sizes);
        QFETCH(QString, says);
        auto made = compiled(
            moduleOf(
                "# symbol s0: lower=2, upper=64, hint=8\ndef forward(self, x: \"f32[s0, 8]\"):\n    relu: \"f32[s0, 8]\" = "
                "torch.ops.aten.relu.default(x)\n    return (relu,)\n"),
            {});
        QVERIFY2(made.has_value(), made ? "" : made.error().text().c_str());
        StatusPage board;
        const auto run = HostContext((*made)->loaded, 0)
                             .run({Tensor::empty(DType::F32, Dims(sizes.begin(), sizes.end()))}, 0, board);
        QVERIFY(!run);
        QCOMPARE(QString::fromStdString(run.error().message), says);
    }
};

CUTAWAY_SUITE(HostProgramTest)
#include "host_program_test.moc"
