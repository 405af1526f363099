// Compiled graphs against the reference kernels: what becomes a kernel, and that results agree. Compilers and
// workers that fail stand in cpu_failures_test.cpp.
#include "engine/runtime/cpu/cpu_backend.h"

#include <QtTest>
#include <cmath>

#include "engine/numerics/side_by_side.h"
#include "engine/ops/op_registry.h"
#include "engine/support/files.h"
#include "engine/tensor/fill.h"
#include "tests/engine/cpu_backend_cases.h"
#include "tests/support/compiled_calls.h"
#include "tests/support/graph_eval.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

QString kindsOf(const BuildInfo& info) {
    QStringList kinds;
    for (const KernelInfo& kernel : info.kernels) kinds << QString::fromStdString(kernel.kind);
    return kinds.join(", ");
}
QByteArray reasonLines(const BuildInfo& info) {
    QByteArray text;
    for (const KernelInfo& kernel : info.kernels)
        for (const std::string& reason : kernel.reasons) text += "\n  " + QByteArray::fromStdString(reason);
    return text;
}

}  // namespace

class CpuBackendTest : public QObject {
    Q_OBJECT

  private slots:
    void cases_data() {
        QTest::addColumn<int>("number");
        for (size_t i = 0; i < std::size(kCpuBackendCases); ++i)
            QTest::newRow(kCpuBackendCases[i].name) << static_cast<int>(i);
    }
    void cases() {
        QFETCH(int, number);
        const CpuBackendCase& test = kCpuBackendCases[number];
        const auto module = moduleOf(test.text);
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        QVERIFY2(kindsOf(program->info()) == test.kinds,
                 qPrintable(kindsOf(program->info()) + reasonLines(program->info())));
        for (const KernelInfo& kernel : program->info().kernels)
            QVERIFY(!kernel.reasons.empty() && !kernel.nodes.empty());
        const auto inputs = drawnInputs(*module, 1);
        const auto expected = referenceOutputs(*module, inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const QString wrong = outputDifference(run->outputs, *expected);
        if (const size_t at = program->info().source.find("extern"); !wrong.isEmpty() && at != std::string::npos)
            qWarning("%s", program->info().source.substr(at).c_str());
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
        QCOMPARE(run->microseconds.size(), program->info().kernels.size());
    }

    /// What the interpreter makes up for a constant without data, in the layout of its type.
    void constantsWithoutData() {
        const auto module = moduleOf(R"(def forward(x: "f32[6, 20]"):
    w: "f32[6, 20][1, 6]" = self.w
    t = aten.permute.default(w, [1, 0])
    a = aten.add.Tensor(x, w)
    b = aten.mm.default(x, t)
    return (a, b))");
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto inputs = drawnInputs(*module, 1);
        Module filled = *module;
        copyInto(filled.tensors["w"] = Tensor::empty(DType::F32, {6, 20}, {1, 6}),
                 filledTensor("w", 0, DType::F32, {6, 20}));
        const auto expected = referenceOutputs(filled, inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const QString wrong = outputDifference(run->outputs, *expected);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
    }

    void equalKernelsArePrintedOnce() {
        const auto info = previewCpu(moduleOf(R"(def forward(x: "f32[8, 8]", y: "f32[8, 8]"):
    a = aten.relu.default(x)
    b = aten.mm.default(a, y)
    c = aten.relu.default(b)
    d = aten.mm.default(c, y)
    e = aten.relu.default(d)
    return (e,))"));
        QVERIFY(info.has_value());
        QCOMPARE(kindsOf(*info),
                 QString("pointwise, library: mm (oneDNN), pointwise, library: mm (oneDNN), pointwise"));
        // The first one does not write over what it reads, since that is the caller's.
        QCOMPARE(QString::fromStdString(info->source).count("extern \"C\""), 2);
        QCOMPARE(info->kernels[2].name, info->kernels[4].name);
    }

    void reasonsSayWhyAndWhyNot() {
        // The product must run between the two halves of the diamond, so they cannot share a kernel.
        const auto info = previewCpu(moduleOf(R"(def forward(x: "f32[8, 8]", y: "f32[8, 8]"):
    a = aten.relu.default(x)
    b = aten.mm.default(a, y)
    c = aten.add.Tensor(a, b)
    d = aten.mul.Tensor(c, 2)
    return (d,))"));
        QVERIFY(info.has_value());
        const QByteArray reasons = reasonLines(*info);
        QVERIFY2(reasons.contains("a is not computed in the kernel of c: b must run between them"),
                 reasons.constData());
        QVERIFY2(reasons.contains("c is computed in the kernel of d: one loop over [8, 8] makes both"),
                 reasons.constData());
        QVERIFY2(reasons.contains("b: not fused, the library's own kernel is faster"), reasons.constData());
    }

    void dynamicSizes() {
        const auto module = moduleOf(R"(def forward(x: "f32[s0, 16]", y: "f32[16]"):
    a = aten.mul.Tensor(x, y)
    s = aten.sum.dim_IntList(a, [1])
    return (a, s))");
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        for (int64_t rows : {1, 5, 40}) {
            const Tensor x = Tensor::full(DType::F32, {rows, 16}, 1.5), y = Tensor::full(DType::F32, {16}, 2.0);
            const auto run = runCpu(*program, {x, y});
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            QVERIFY(outputDifference(run->outputs, {Tensor::full(DType::F32, {rows, 16}, 3.0),
                                                    Tensor::full(DType::F32, {rows}, 48.0)})
                        .isEmpty());
        }
    }

    void wrongInputsAreNamed() {
        const auto program = buildCpu(moduleOf(kCpuBackendCases[0].text));
        QVERIFY(program.has_value());
        const auto few = runCpu(*program, {Tensor::zeros(DType::F32, {40, 30})});
        QVERIFY(!few.has_value() && few.error().message.find("2 inputs") != std::string::npos);
        const auto shape = runCpu(*program, {Tensor::zeros(DType::F32, {40, 30}), Tensor::zeros(DType::F32, {31})});
        QVERIFY(!shape.has_value() && shape.error().message.find("'y'") != std::string::npos);
        const auto dtype = runCpu(*program, {Tensor::zeros(DType::F32, {40, 30}), Tensor::zeros(DType::F64, {30})});
        QVERIFY(!dtype.has_value());
    }

    void models_data() {
        QTest::addColumn<QString>("file");
        for (const char* file :
             {"mlp/cpu_infer_freeze/01_joint.after.py", "resnet_mini/cpu_infer_freeze/01_joint.after.py",
              "bert_mini/cpu_infer_freeze/01_joint.after.py"})
            QTest::newRow(file) << file;
    }
    void models() {
        QFETCH(QString, file);
        const QString folder = referenceFolder("models");
        if (folder.isEmpty()) QSKIP("no reference models here");
        const auto text = readFile((folder + "/" + file).toStdString());
        QVERIFY(text.has_value());
        const auto module = moduleOf(*text);
        std::vector<Tensor> inputs = drawnInputs(*module, 7, 2);
        for (Tensor& input : inputs)  // variances are positive, and a model of NaN would agree with anything
            for (int64_t i = 0; input.dtype() == DType::F32 && input.rank() == 1 && i < input.numel(); ++i)
                input.as<float>()[i] = std::fabs(input.as<float>()[i]) + 0.5f;
        const auto expected = referenceOutputs(*module, inputs);
        if (!expected) QSKIP(expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, inputs, {.repeat = 5, .timeoutSeconds = 250});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        // Made-up weights give scores of attention in the hundreds, where the reference is itself that far from the
        // right numbers: both are compared with those in f64.
        const auto wide = resultsOf({std::make_shared<Module>(*module), inputs}, true, {});
        QVERIFY2(wide.has_value(), wide ? "" : wide.error().text().c_str());
        for (size_t i = 0; i < run->outputs.size(); ++i) {
            const Tensor& due = (*wide)[i];
            for (int64_t e = 0; e < due.numel(); ++e) QVERIFY(std::isfinite(toDouble(due.item(e))));
            const Comparison reference = compare((*expected)[i].to(due.dtype()), due, {0, 0});
            const double allowed =
                std::max(1e-5 * std::max(1.0, reference.maxExpected), 2 * reference.maxAbsoluteError);
            const Comparison ours = compare(run->outputs[i].to(due.dtype()), due, {.relative = 0, .absolute = allowed});
            QCOMPARE(run->outputs[i].dtype(), (*expected)[i].dtype());
            QVERIFY2(ours.sameType && ours.within, qPrintable(QString("output %1: error %2, of the reference %3, of %4")
                                                                  .arg(i)
                                                                  .arg(ours.maxAbsoluteError)
                                                                  .arg(reference.maxAbsoluteError)
                                                                  .arg(ours.maxExpected)));
            qInfo("output %zu: error %g, of the reference %g, of %g", i, ours.maxAbsoluteError,
                  reference.maxAbsoluteError, ours.maxExpected);
        }
        qInfo("%zu calls, %.3f s to compile, %.3f ms", program->info().kernels.size(), program->info().compileSeconds,
              run->medianMilliseconds);
    }
};

CUTAWAY_SUITE(CpuBackendTest)
#include "cpu_backend_test.moc"
