// Optional post-grad passes against PyTorch's: tests/cases/post_grad_recorded/*.txt, recorded by
// tests/scripts/record_post_grad.py. Each is held to: the graph after the passes is the recorded one (names, and mostly
// the order of independent calls, aside); before and after compute equal numbers; a second run changes nothing. Where
// PyTorch raises, ours leaves the graph alone.
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/ops/packed_int4.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/post_grad/overlap_costs.h"
#include "engine/text/parse.h"
#include "tests/support/case_files.h"
#include "tests/support/graph_text.h"
#include "tests/support/recorded_case.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::RecordedCase;

namespace {

Result<Snapshot> appliedPostGrad(const RecordedCase& one, Snapshot graph, int& rewrites) {
    for (const QString& name : one.passes) {
        const Pass* pass = testing::findPass(name);
        if (pass == nullptr) return invalidInput("no pass '" + name.toStdString() + "'");
        const Step step = runPass(*pass, graph, one.options);
        if (step.info.state == StepState::Failed) return invalidInput(step.info.error, step.info.name);
        rewrites += step.info.rewrites;
        graph = step.after;
    }
    return graph;
}

/// What of a graph is compared.
QString textOf(const RecordedCase& one, const Snapshot& graph) {
    if (!one.ordered) return testing::shapeOf(*graph);
    Module copy(*graph);
    return QString::fromStdString(testing::listing(copy));
}

void compareNumbers(const Snapshot& before, const Snapshot& after) {
    const auto inputs = randomInputs(*before, 1);
    QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
    const auto expected = interpret(*before, *inputs), actual = interpret(*after, *inputs);
    QVERIFY2(expected.has_value(), expected ? "" : ("before: " + expected.error().text()).c_str());
    QVERIFY2(actual.has_value(), actual ? "" : ("after: " + actual.error().text()).c_str());
    QCOMPARE(actual->size(), expected->size());
    for (size_t i = 0; i < expected->size(); ++i) {
        const double tolerance = isHalf((*expected)[i].dtype()) ? 1e-2 : 1e-5;
        const Comparison comparison = compare((*actual)[i], (*expected)[i], Tolerance{tolerance, tolerance});
        QVERIFY2(comparison.sameType && comparison.within, qPrintable(QString("result %1 differs").arg(i)));
    }
}

}  // namespace

class PostGradTest : public QObject {
    Q_OBJECT

  private slots:
    void cases_data() {
        QTest::addColumn<QString>("path");
        for (const QString& path : testing::recordedFiles("post_grad_recorded"))
            QTest::newRow(qPrintable(QFileInfo(path).completeBaseName())) << path;
    }
    void cases() {
        QFETCH(QString, path);
        const RecordedCase one = testing::readRecordedCase(path);
        const auto before = testing::parsedGraph(one.before);
        QVERIFY2(before.has_value(), before ? "" : before.error().text().c_str());
        int rewrites = 0;
        const auto after = appliedPostGrad(one, *before, rewrites);
        QVERIFY2(after.has_value(), after ? "" : after.error().text().c_str());
        const auto expected = one.after.isEmpty() ? before : testing::parsedGraph(one.after);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        QCOMPARE(textOf(one, *after), textOf(one, *expected));
        QCOMPARE(rewrites > 0, !one.after.isEmpty());
        if (one.idle.isEmpty()) {
            int again = 0;
            const auto twice = appliedPostGrad(one, *after, again);
            QVERIFY2(twice.has_value(), twice ? "" : twice.error().text().c_str());
            QCOMPARE(again, 0);
        }
        if (one.numbers.isEmpty()) compareNumbers(*before, *after);
    }

    /// What 256 MiB take on groups of one machine and of several, as PyTorch 2.11 estimates it
    /// (comm_analysis.estimate_nccl_collective_runtime_impl).
    void timesOfCollectives_data() {
        QTest::addColumn<QString>("gpu");
        QTest::addColumn<int>("members");
        QTest::addColumn<QList<double>>("milliseconds");  // all_reduce, all_gather, reduce_scatter, all_to_all
        const auto row = [](const char* gpu, int members, const QList<double>& milliseconds) {
            QTest::addRow("%d of %s", members, gpu) << QString(gpu) << members << milliseconds;
        };
        row("v100", 2, {6.41805641, 3.21232821, 3.21232821, 6.41805641});
        row("v100", 8, {11.2329487, 5.61977436, 5.61977436, 11.2329487});
        row("v100", 16, {37.5434, 18.7733, 18.7733, 37.5383});
        row("a100", 8, {5.00359749, 2.50509875, 2.50509875, 5.00359749});
        row("h100", 2, {1.78084965, 0.893724823, 0.893724823, 1.78084965});
        row("b200", 2, {1.67446667, 0.6322, 0.6322, 1.2578});
        row("b200", 8, {2.93166667, 1.10455, 1.10455, 2.2025});
        row("b200", 64, {39.5348, 19.769, 19.769, 39.5195});
    }
    void timesOfCollectives() {
        QFETCH(QString, gpu);
        QFETCH(int, members);
        QFETCH(QList<double>, milliseconds);
        const auto module = parseText(
            "def forward(x: \"f32[64]\"):\n"
            "    a = _c10d_functional.all_reduce.default(x, 'sum', '0')\n"
            "    b = _c10d_functional.all_gather_into_tensor.default(x, " +
            std::to_string(members) +
            ", '0')\n"
            "    c = _c10d_functional.reduce_scatter_tensor.default(x, 'sum', " +
            std::to_string(members) +
            ", '0')\n"
            "    d = _c10d_functional.all_to_all_single.default(x, [64], [64], '0')\n"
            "    return (a, b, c, d)\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        const OptionalPass settings{"overlap_scheduling", {{"gpu", gpu.toStdString()}}};
        const CompileRequest request;
        const CompileHooks hooks;
        const PassContext context(request, &hooks);
        const OverlapCosts costs((*module)->graph(), settings, context);
        QList<double> found;
        for (const Node& node : (*module)->graph().nodes())
            if (node.isCall()) found << costs.collectiveMs(node, double{1 << 28});
        QCOMPARE(found.size(), milliseconds.size());
        for (qsizetype i = 0; i < found.size(); ++i)
            QVERIFY2(
                std::abs(found[i] - milliseconds[i]) < 1e-7 * milliseconds[i],
                qPrintable(QString("%1: %2, not %3").arg(i).arg(found[i], 0, 'g', 9).arg(milliseconds[i], 0, 'g', 9)));
    }

    /// Bytes of packed 4-bit weights as PyTorch 2.15 lays them out for each ATEN_CPU_CAPABILITY, each counted by its
    /// place: number (7 r + 3 c) % 16 at row r, column c of 64.
    void packedWeights_data() {
        QTest::addColumn<Int4Packing>("packing");
        QTest::addColumn<int64_t>("rows");
        QTest::addColumn<int64_t>("sum");
        using enum Int4Packing;
        constexpr std::tuple<Int4Packing, int64_t, int64_t> kSums[] = {
            {Avx512, 16, 8048125}, {Avx512, 48, 24219981}, {Avx512, 64, 32375871}, {Avx512, 80, 40449143},
            {Avx2, 16, 8048125},   {Avx2, 48, 24219118},   {Avx2, 64, 32384405},   {Avx2, 80, 40457677},
            {Pairs, 16, 8048125},  {Pairs, 48, 24229966},  {Pairs, 64, 32398069},  {Pairs, 80, 40471341}};
        for (const auto& [packing, rows, sum] : kSums)
            QTest::addRow("%s, %d rows", name(packing), static_cast<int>(rows)) << packing << rows << sum;
    }
    void packedWeights() {
        QFETCH(Int4Packing, packing);
        QFETCH(int64_t, rows);
        QFETCH(int64_t, sum);
        Tensor numbers = Tensor::empty(DType::I32, {rows, 64});
        for (int64_t i = 0; i < numbers.numel(); ++i)
            numbers.as<int32_t>()[i] = static_cast<int32_t>((7 * (i / 64) + 3 * (i % 64)) % 16);
        const Tensor packed = packInt4(numbers, packing);
        int64_t counted = 0;
        for (int64_t i = 0; i < packed.numel(); ++i) counted += (i % 251 + 1) * packed.as<uint8_t>()[i];
        QCOMPARE(counted, sum);
        const Tensor again = unpackInt4(packed, packing);
        for (int64_t i = 0; i < numbers.numel(); ++i) QCOMPARE(again.as<int32_t>()[i], numbers.as<int32_t>()[i]);
    }

    /// The user's choice is PyTorch's own variable.
    void packingIsChosen() {
        const QByteArray before = qgetenv("ATEN_CPU_CAPABILITY");
        for (const Int4Packing packing : {Int4Packing::Avx512, Int4Packing::Avx2, Int4Packing::Pairs}) {
            qputenv("ATEN_CPU_CAPABILITY", name(packing));
            QCOMPARE(int4Packing(), packing);
        }
        if (before.isEmpty()) qunsetenv("ATEN_CPU_CAPABILITY");
        else qputenv("ATEN_CPU_CAPABILITY", before);
    }

    /// Weights with data of their own, joined: every product is that of the numbers that the weights stand for.
    void joinsPackedWeights() {
        auto module = parseText(
            "def forward(x: \"f32[3, 64]\"):\n"
            "    w: \"u8[80, 32]\" = self.w\n    s: \"f32[2, 80, 2]\" = self.s\n    v: \"u8[16, 32]\" = self.v\n    t: \"f32[2, 16, 2]\" = self.t\n"
            "    a: \"f32[3, 80]\" = aten._weight_int4pack_mm_for_cpu.default(x, w, 32, s)\n"
            "    b: \"f32[3, 16]\" = aten._weight_int4pack_mm_for_cpu.default(x, v, 32, t)\n    return (a, b)\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        std::map<std::string, Tensor> numbers;
        for (const auto& [name, scales, rows] : {std::tuple("w", "s", 80), std::tuple("v", "t", 16)}) {
            Tensor weight = Tensor::empty(DType::I32, {rows, 64}), pairs = Tensor::empty(DType::F32, {2, rows, 2});
            for (int64_t i = 0; i < weight.numel(); ++i)
                weight.as<int32_t>()[i] = static_cast<int32_t>((i * i + 5 * i / 64) % 16);
            for (int64_t i = 0; i < pairs.numel(); ++i) pairs.as<float>()[i] = static_cast<float>(i % 7) / 4 - 1;
            (*module)->tensors[name] = packInt4(weight);
            (*module)->tensors[scales] = pairs;
            numbers[name] = weight;
            numbers[scales] = pairs;
        }
        const Snapshot before = std::move(*module);
        const CompileRequest request;
        const Step step = runPass(*testing::findPass("concat_linear_woq_int4"), before, request);
        QVERIFY2(step.info.state == StepState::Changed, step.info.error.c_str());
        compareNumbers(before, step.after);
        const auto inputs = randomInputs(*before, 1);
        const auto outputs = interpret(*step.after, *inputs);
        QVERIFY(inputs && outputs);
        const Tensor& x = (*inputs)[0];
        for (const auto& [name, scales, result] : {std::tuple("w", "s", 0), std::tuple("v", "t", 1)}) {
            const Tensor &weight = numbers[name], &pairs = numbers[scales],
                         &out = (*outputs)[static_cast<size_t>(result)];
            for (int64_t i = 0; i < out.numel(); ++i) {
                const int64_t rows = weight.size(0), row = i % rows;
                double expected = 0;
                for (int64_t c = 0; c < 64; ++c) {
                    const float* pair = pairs.as<float>() + (c / 32 * rows + row) * 2;
                    expected += x.as<float>()[i / rows * 64 + c] *
                                ((weight.as<int32_t>()[row * 64 + c] - 8) * pair[0] + pair[1]);
                }
                QVERIFY(std::abs(out.as<float>()[i] - expected) < 1e-3);
            }
        }
    }
};

CUTAWAY_SUITE(PostGradTest)
#include "post_grad_test.moc"
