// Calls that become kernels: of each row no call is left to reference kernels or portable functions, and compiled code
// computes what the former do, for all results together where one loop makes them, or for one alone.
#include <QtTest>
#include <cstring>

#include "engine/ops/op_registry.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/support/compiled_calls.h"
#include "tests/support/graph_eval.h"
#include "tests/support/op_samples.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr int kAll = -1;

struct LoweredRow {
    const char* op;
    const char* arguments;  // as samples are written (op_samples.h)
    int result = kAll;      // of several
};

constexpr LoweredRow kRows[] = {
    // Bags: sizes from the offsets; sum, mean, max, what the gradients need of each.
    {"aten._embedding_bag_forward_only.default", "f32[10, 40], i64[300]<10, i64[1]<1", 0},
    {"aten._embedding_bag_forward_only.default", "f32[10, 40], i64[8]<10, i64[3]<1, False, 1", 0},
    {"aten._embedding_bag_forward_only.default", "f32[10, 1], i64[8]<10, i64[3]<1, False, 0", 0},
    {"aten._embedding_bag_forward_only.default", "f16[10, 17], i32[8]<10, i64[2]<1, False, 0, False, f16[8]", 0},
    {"aten._embedding_bag_forward_only.default", "f32[5, 4], i64[30]<5, i64[2]<1, False, 1, False, None, False, 3", 0},
    {"aten._embedding_bag_forward_only.default", "f32[5, 4], i64[30]<5, i64[4]<1, False, 0, False, None, True, 3", 0},
    {"aten._embedding_bag.default", "f64[5, 4], i64[30]<5, i64[2]<1, False, 2, False, None, False, 3", 0},
    {"aten._embedding_bag.default", "f32[5, 4]?, i64[30]<5, i64[2]<1, False, 2", 0},
    {"aten._embedding_bag.default", "f32[5, 4]?, i64[30]<5, i64[2]<1, False, 2", 3},
    {"aten._embedding_bag.default", "f32[5, 4], i64[30]<5, i64[2]<1, False, 2, False, None, False, 3", 3},
    {"aten._embedding_bag.default", "f32[5, 4], i64[30]<5, i64[2]<1, False, 2", 2},
    {"aten._embedding_bag.default", "f32[5, 4], i64[30]<5, i64[3]<1, False, 1, False, None, False, 3", 1},
    {"aten._embedding_bag.default", "f32[5, 4], i64[30]<5, i64[3]<1, False, 1, False, None, False, 3", 2},
    {"aten._embedding_bag.default", "f32[5, 4], i64[30]<5, i64[3]<1, False, 1, False, None, False, 3", 3},
    {"aten._embedding_bag_per_sample_weights_backward.default",
     "f32[2, 40], f32[10, 40], i64[8]<10, i64[2]<1, i64[8]<1, 0, 3"},
    {"aten._embedding_bag_per_sample_weights_backward.default",
     "f32[2, 4], f32[10, 4], i64[8]<10, i64[2]<1, i64[0]<1, 0"},
    // Quotients as Python rounds them, whatever the signs; remainders of integers.
    {"aten.div.Tensor_mode", "f32[400]?, f32[400]?, rounding_mode = 'floor'"},
    {"aten.div.Tensor_mode", "i8[40], i8[40]>0, rounding_mode = 'floor'"},
    {"aten.div.Tensor_mode", "u8[40], u8[40]>0, rounding_mode = 'trunc'"},
    {"aten.fmod.Tensor", "i32[40], i32[40]>0"},
    {"aten.bitwise_right_shift.Tensor", "i8[40], i64[40]<40"},
    // Ranks: equal elements, NaN, both orders, bool.
    {"aten.topk.default", "f32[9, 40]?, 8"},
    {"aten.topk.default", "f32[9, 40]?, 3, 0, False"},
    {"aten.topk.default", "f32[3, 128], 2"},
    {"aten.topk.default", "f32[], 0"},
    {"aten.sort.default", "f32[40, 8]?"},
    {"aten.sort.default", "f32[40, 8]?, -1, True"},
    {"aten.sort.default", "i64[8, 40], 0"},
    {"aten.sort.default", "b8[40, 5]"},
    // Parts of another dtype than what they replace.
    {"aten.select_scatter.default", "f32[4, 50], i32[4], 1, 1"},
    {"aten.slice_scatter.default", "f32[50, 3], i64[20, 3], 0, 1, 41, 2"},
    // Truth values among numbers.
    {"aten.searchsorted.Tensor", "f32[3]!, b8[4, 5]"},
    {"aten.searchsorted.Tensor", "b8[1], f32[4, 5]"},
    // Windows that overlap, parts that do not.
    {"aten._adaptive_avg_pool2d.default", "f16[2, 3, 12, 17], [4, 17]"},
    {"aten.avg_pool2d_backward.default",
     "f32[2, 3, 8, 6], f32[2, 3, 13, 17], [4, 5], [2, 3], [2, 1], True, False, None"},
    {"aten.searchsorted.Tensor", "f32[4, 1], f32[4, 33]?"},
    {"aten.bucketize.Tensor", "f32[65]?, i64[5]<1"},
    {"aten._cdist_forward.default", "f32[3, 9, 20], f32[7, 20], 0.5, None"},
    {"aten._cdist_forward.default", "f32[9, 20]?, f32[7, 20], inf, None"},
};

/// Ops of which all samples become kernels, but for those that a rule leaves alone.
struct OpRow {
    const char* op;
    int left = 0;  // samples that stay on the reference kernel, or a portable function
};

constexpr OpRow kOps[] = {
    {"aten.div.Tensor_mode", 1},  // of complex numbers
    {"aten.div.Scalar_mode"},
    {"aten.fmod.Tensor"},
    {"aten.fmod.Scalar"},
    {"prims.fma.default"},
    {"prims.inductor_lookup_seed.default"},
    {"aten.bitwise_left_shift.Tensor"},
    {"aten.bitwise_left_shift.Tensor_Scalar"},
    {"aten.bitwise_right_shift.Tensor"},
    {"aten.bitwise_right_shift.Tensor_Scalar"},
    {"aten.__lshift__.Scalar"},
    {"aten.__rshift__.Tensor"},
    {"aten.sort.default"},
    {"aten.sort.stable"},
    {"aten.topk.default"},
    {"aten._adaptive_avg_pool2d.default", 3},
    {"aten._adaptive_avg_pool3d.default", 1},
    {"aten.avg_pool2d_backward.default"},
    {"aten.avg_pool3d_backward.default"},
    {"aten.bucketize.Tensor"},
    {"aten.searchsorted.Tensor", 1},
    {"aten._cdist_forward.default"},
};

/// The call, returning one of its results or all.
std::shared_ptr<Module> moduleOfCall(const SampleCall& sample, int result) {
    auto module = std::make_shared<Module>();
    const auto values = appendSample(sample, *module);
    if (!values) return nullptr;
    std::vector<Argument> outputs;
    for (size_t i = 0; i < values->size(); ++i)
        if (result == kAll || result == static_cast<int>(i)) outputs.push_back(Argument((*values)[i]));
    module->graph().output(ArgumentList{std::move(outputs), true});
    module->outputs.resize(module->graph().outputs().size());
    for (Node* value : *values)
        if (value->users().empty() && value->isCall("operator.getitem")) module->graph().erase(*value);
    return module;
}

double largestOf(const Tensor& tensor) {
    double largest = 0;
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (const double value = std::fabs(toDouble(tensor.item(i))); std::isfinite(value))
            largest = std::max(largest, value);
    return largest;
}

/// What results of this dtype may differ by, relative to the largest.
double unitOf(DType dtype) {
    if (!isFloating(dtype)) return 0;
    if (isHalf(dtype)) return 4e-3;
    return dtype == DType::F32 ? 2e-6 : 1e-13;
}

QString differenceOf(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
        const double unit = unitOf(expected[i].dtype());
        const Comparison c = compare(actual[i], expected[i], {unit, unit * std::max(1.0, largestOf(expected[i]))});
        if (!c.sameType) return QString("output %1 has another type").arg(i);
        if (!c.within) return QString("output %1: %2 wrong, by %3").arg(i).arg(c.mismatches).arg(c.maxAbsoluteError);
    }
    return {};
}

}  // namespace

class LoweredOpsTest : public QObject {
    Q_OBJECT

  private slots:
    void calls_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kRows); ++i)
            QTest::addRow("%s(%s) %d", kRows[i].op, kRows[i].arguments, kRows[i].result) << static_cast<int>(i);
    }
    void calls() {
        QFETCH(int, row);
        const LoweredRow& call = kRows[row];
        const auto sample = buildSample(requireOp(call.op), call.arguments);
        QVERIFY2(sample.has_value(), sample ? "" : sample.error().text().c_str());
        const auto module = moduleOfCall(**sample, call.result);
        QVERIFY(module);
        const auto expected = referenceOutputs(*module, (*sample)->inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        for (const auto& kernel : program->info().kernels)
            QVERIFY2(!isLeft(kernel), kernel.reasons.empty() ? "" : kernel.reasons[0].c_str());
        for (const int threads : {1, 4}) {
            CpuRunOptions options;
            options.threads = threads;
            options.repeat = 0;
            const auto run = runCpu(*program, (*sample)->inputs, options);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const QString wrong = differenceOf(run->outputs, *expected);
            QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
        }
    }

    void samples_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < std::size(kOps); ++i) QTest::newRow(kOps[i].op) << static_cast<int>(i);
    }
    void samples() {
        QFETCH(int, row);
        const auto module = std::make_shared<Module>();
        std::vector<Tensor> inputs;
        std::vector<Argument> outputs;
        for (const OpSample& text : samplesOf(requireOp(kOps[row].op))) {
            const auto sample = buildSample(*text.op, text.text);
            QVERIFY2(sample.has_value(), sample ? "" : sample.error().text().c_str());
            const auto values = appendSample(**sample, *module);
            QVERIFY(values.has_value());
            for (Node* value : *values) outputs.push_back(Argument(value));
            inputs.insert(inputs.end(), (*sample)->inputs.begin(), (*sample)->inputs.end());
        }
        module->graph().output(ArgumentList{std::move(outputs), true});
        module->outputs.resize(module->graph().outputs().size());
        const auto expected = referenceOutputs(*module, inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        QByteArrayList left;
        for (const auto& kernel : program->info().kernels)
            if (isLeft(kernel)) left.append(kernel.reasons.empty() ? "no reason" : kernel.reasons[0].c_str());
        QVERIFY2(left.size() == kOps[row].left, left.join("\n"));
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        const QString wrong = differenceOf(run->outputs, *expected);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
    }

    void drawsAreTheSameBits_data() {
        QTest::addColumn<QString>("mode");
        QTest::newRow("uniform") << "rand";
        QTest::newRow("normal") << "randn";
    }
    void drawsAreTheSameBits() {
        QFETCH(QString, mode);
        const auto module =
            moduleOf("def forward(seed: \"i64[]\"):\n    r = prims.inductor_random.default([37, 1001], seed, '" +
                     mode.toStdString() + "')\n    return (r,)");
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        QCOMPARE(QString::fromStdString(program->info().kernels[0].kind), "pointwise");
        for (const int64_t seed : {int64_t{0}, int64_t{-1}, int64_t{0x7fffffff12345678}}) {
            const std::vector<Tensor> inputs = {Tensor::scalar(DType::I64, Scalar(seed))};
            const auto expected = referenceOutputs(*module, inputs);
            const auto run = runCpu(*program, inputs);
            QVERIFY(expected.has_value() && run.has_value());
            QVERIFY(std::memcmp(run->outputs[0].data(), (*expected)[0].data(), (*expected)[0].bytes()) == 0);
        }
    }

    void wrongNumbersAreErrors_data() {
        QTest::addColumn<QString>("indices");
        QTest::addColumn<QString>("offsets");
        QTest::newRow("an index beyond the table") << "0 1 2 9"
                                                   << "0 2";
        QTest::newRow("a negative index") << "0 1 2 -1"
                                          << "0 2";
        QTest::newRow("the first bag begins late") << "0 1 2 3"
                                                   << "1 2";
        QTest::newRow("a bag that ends before it begins") << "0 1 2 3"
                                                          << "0 3 2";
        QTest::newRow("a bag that begins behind the last index") << "0 1 2 3"
                                                                 << "0 5";
    }
    void wrongNumbersAreErrors() {
        QFETCH(QString, indices);
        QFETCH(QString, offsets);
        const auto tensorOf = [](const QString& words) {
            const QStringList parts = words.split(' ');
            Tensor tensor = Tensor::zeros(DType::I64, {parts.size()});
            for (qsizetype i = 0; i < parts.size(); ++i) tensor.as<int64_t>()[i] = parts[i].toLongLong();
            return tensor;
        };
        const std::vector<Tensor> inputs = {Tensor::full(DType::F32, {5, 40}, 1.5), tensorOf(indices),
                                            tensorOf(offsets)};
        const auto module =
            moduleOf("def forward(w: \"f32[5, 40]\", i: \"i64[4]\", o: \"i64[" + std::to_string(inputs[2].numel()) +
                     "]\"):\n    r = aten._embedding_bag_forward_only.default(w, i, o)\n"
                     "    y = r[0]\n    return (y,)");
        QVERIFY(!referenceOutputs(*module, inputs).has_value());
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QVERIFY(!run.has_value());
        QVERIFY2(run.error().text().find("r") != std::string::npos, run.error().text().c_str());
    }
};

CUTAWAY_SUITE(LoweredOpsTest)
#include "lowered_ops_test.moc"
