// Compilers that are missing or fail, and workers that crash, hang or run out of memory: none of it reaches this
// process.
#include <QtTest>

#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/support/fault_points.h"
#include "engine/support/files.h"
#include "engine/support/process.h"
#include "engine/support/sanitized.h"
#include "engine/support/temp_dir.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr const char* kProduct = R"(def forward(x: "f32[40, 30]", y: "f32[30]"):
    m = aten.mul.Tensor(x, y)
    return (m,))";

}  // namespace

class CpuFailuresTest : public QObject {
    Q_OBJECT

  private slots:
    void missingCompilerSaysWhatToInstall() {
        const auto program = buildCpu(moduleOf(kProduct), {.compiler = "no-such-compiler"});
        QVERIFY(!program.has_value());
        QVERIFY(program.error().text().find("install g++") != std::string::npos);
    }

    void compilersFromTheEnvironment_data() {
        QTest::addColumn<QByteArray>("compiler");
        QTest::addColumn<QString>("failure");
        QTest::newRow("with options") << QByteArray("c++ -DEXTRA") << "";
        QTest::newRow("missing") << QByteArray("/nowhere/c++ -O3") << "C++ compiler not found: /nowhere/c++";
        QTest::newRow("something else") << QByteArray("true") << "the compiler wrote no library";
    }
    void compilersFromTheEnvironment() {
        QFETCH(QByteArray, compiler);
        QFETCH(QString, failure);
        const QByteArray before = qgetenv("CXX");
        qputenv("CXX", compiler);
        const auto program = buildCpu(moduleOf(kProduct));
        qputenv("CXX", before);
        if (failure.isEmpty())
            QVERIFY2(program.has_value() && program->info().compileLog.find(" -DEXTRA ") != std::string::npos,
                     program ? "" : program.error().text().c_str());
        else
            QVERIFY2(!program && program.error().text().find(failure.toStdString()) != std::string::npos,
                     program ? "built" : program.error().text().c_str());
    }

    void workerFailures_data() {
        QTest::addColumn<QString>("body");
        QTest::addColumn<double>("seconds");
        QTest::addColumn<QString>("message");
        QTest::newRow("crash") << "*(volatile int*)8 = 1;" << 60.0 << "signal 11";
        QTest::newRow("abort") << "__builtin_trap();" << 60.0 << "killed by signal";
        QTest::newRow("hang") << "for (volatile int i = 0;;) i = i;" << 1.0 << "ran longer than 1 s";
        QTest::newRow("bad index") << "*fault = 1;" << 60.0 << "out of range";
    }
    void workerFailures() {
        qputenv("ASAN_OPTIONS", "handle_segv=0");  // a sanitizer in the worker shall let it die as it would without
        QFETCH(QString, body);
        QFETCH(double, seconds);
        QFETCH(QString, message);
        auto folder = TempDir::create();
        QVERIFY(folder.has_value());
        const auto program = buildCpu(moduleOf(kProduct), {.folder = folder->path().string()});
        QVERIFY(program.has_value());
        // The library is replaced by one whose kernel misbehaves.
        const QString function =
            QString::fromStdString(program->info().source).section("extern \"C\" void ", 1).section('(', 0, 0);
        const QString source =
            "extern \"C\" void " + function + "(void* const*, const long*, long, long, int* fault) { " + body + " }";
        QVERIFY(writeFile(folder->file("bad.cpp"), source.toStdString()).has_value());
        const auto compiled = runProcess(
            {.argv = {"c++", "-shared", "-fPIC", "-w", "-o", program->info().library, folder->file("bad.cpp")}});
        QVERIFY(compiled && compiled->ok());
        const auto run = runCpu(*program, drawnInputs(*moduleOf(kProduct), 1), {.timeoutSeconds = seconds});
        QVERIFY(!run.has_value());
        QVERIFY2(QString::fromStdString(run.error().text()).contains(message), run.error().text().c_str());
    }
    /// A call that its library does not take when it is planned is computed all the same, and the run says by what.
    void refusedCalls() {
        const auto module = moduleOf(R"(def forward(a: "f32[9, 5]", b: "f32[5, 7]"):
    r = aten.relu.default(a)
    p = aten.mm.default(r, b)
    return (p,))");
        const auto inputs = drawnInputs(*module, 1);
        const auto program = buildCpu(module);
        QVERIFY(program.has_value());
        const auto taken = runCpu(*program, inputs);
        QVERIFY(taken.has_value());
        QVERIFY(taken->refused.empty());
        setFault("library:aten.mm.default:refuse");
        const auto run = runCpu(*buildCpu(module), inputs);
        setFault("");
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(compare(run->outputs[0], taken->outputs[0], defaultTolerance(DType::F32)).within);
        QCOMPARE(run->refused.size(), size_t{1});
        const auto& [kernel, sentence] = *run->refused.begin();
        QVERIFY(program->info().kernels[kernel].kind.find("oneDNN") != std::string::npos);
        QCOMPARE(
            sentence,
            "p: oneDNN does not take aten.mm.default (asked for by CUTAWAY_FAULT): the reference kernel computes it");
    }
    void refusedWindows() {
        const auto module = moduleOf(R"(def forward(x: "f32[1, 2, 5]", w: "f32[2, 3, 4]"):
    y = aten.convolution.default(x, w, None, [3], [0], [64], True, [4], 1)
    return (y,))");
        const auto inputs = drawnInputs(*module, 1);
        const auto run = runCpu(*buildCpu(module), inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(compare(run->outputs[0], (*interpret(*module, inputs))[0], defaultTolerance(DType::F32)).within);
        QVERIFY(run->refused.empty());
    }
    void workerOutOfMemory() {
        if (kSanitized) QSKIP("sanitizers reserve more address space than the limit lets them");
        const auto module = moduleOf(R"(def forward(x: "f32[1]"):
    e = aten.expand.default(x, [1000000000])
    a = aten.add.Tensor(e, 1)
    return (a,))");
        const auto program = buildCpu(module);
        QVERIFY(program.has_value());
        const auto run = runCpu(*program, drawnInputs(*module, 1), {.memoryBytes = int64_t{1} << 30});
        QVERIFY(!run.has_value());
        QVERIFY2(QString::fromStdString(run.error().text()).contains("memory"), run.error().text().c_str());
    }
};

CUTAWAY_SUITE(CpuFailuresTest)
#include "cpu_failures_test.moc"
