// What is left of a graph when it is frozen, as counts of its calls: how many folds a chain takes, how many products
// those of one tensor become, what the libraries are given. The counts are PyTorch's (spec: freezing §4, §7;
// quantization-and-onednn §2, §9), and the results are those of the graph as it was.
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/case_files.h"
#include "tests/support/frozen.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// A graph of a module: parameters by name and type, inputs, statements, and what is returned.
struct Layer {
    std::vector<std::pair<std::string, std::string>> parameters, inputs;
    std::vector<std::string> calls;
    std::string returned;

    std::string text() const {
        std::string out = "def forward(\n";
        for (const auto& [name, type] : parameters)
            out += "    " + name + ": \"" + type + "\",  # ParamAOTInput(target='" + name + "')\n";
        int number = 0;
        for (const auto& [name, type] : inputs)
            out += "    " + name + ": \"" + type + "\",  # PlainAOTInput(idx=" + std::to_string(number++) + ")\n";
        out += "):\n";
        for (const std::string& call : calls) out += "    " + call + "\n";
        return out + "    return (" + returned + ",)\n";
    }
};

/// `dims` spatial dims of `size` each behind these.
std::string sized(std::string dtype, std::string front, int dims, const char* size) {
    for (int i = 0; i < dims; ++i) front += std::string(", ") + size;
    return dtype + "[" + front + "]";
}
std::string many(int dims, const char* item) {
    std::string out;
    for (int i = 0; i < dims; ++i) out += (i ? ", " : "") + std::string(item);
    return "[" + out + "]";
}
/// y = convolution of x by w and perhaps b, from 3 channels to 4.
Layer convolution(int dims = 2, const std::string& dtype = "f32", bool biased = false) {
    Layer layer;
    layer.parameters = {{"w", sized(dtype, "4, 3", dims, "2")}};
    if (biased) layer.parameters.emplace_back("b", dtype + "[4]");
    layer.inputs = {{"x", sized(dtype, "2, 3", dims, "5")}};
    layer.calls = {"c = aten.convolution.default(x, w, " + std::string(biased ? "b" : "None") + ", " + many(dims, "1") +
                   ", " + many(dims, "0") + ", " + many(dims, "1") + ", False, " + many(dims, "0") + ", 1)"};
    layer.returned = "c";
    return layer;
}
Layer normed(int dims, const std::string& dtype, bool biased) {
    Layer layer = convolution(dims, dtype, biased);
    for (const char* name : {"gamma", "beta", "mean", "variance"}) layer.parameters.emplace_back(name, dtype + "[4]");
    layer.calls.emplace_back("v = aten.abs.default(variance)");
    layer.calls.emplace_back(
        "n = aten._native_batch_norm_legit_no_training.default(c, gamma, beta, mean, v, 0.1, 1e-05)");
    layer.calls.emplace_back("y = n[0]");
    layer.returned = "y";
    return layer;
}
/// Products of one tensor with constants of so many columns each, biased or not.
Layer products(const std::vector<int>& columns, bool biased) {
    Layer layer;
    layer.inputs = {{"x", "f32[7, 10]cuda:0"}};
    for (size_t i = 0; i < columns.size(); ++i) {
        const std::string number = std::to_string(i), width = std::to_string(columns[i]);
        layer.parameters.emplace_back("w" + number, "f32[10, " + width + "]cuda:0");
        if (biased) layer.parameters.emplace_back("b" + number, "f32[" + width + "]cuda:0");
        layer.calls.push_back("y" + number + " = " +
                              (biased ? "aten.addmm.default(b" + number + ", x, w" + number + ")"
                                      : "aten.mm.default(x, w" + number + ")"));
        layer.returned += (i ? ", y" : "y") + number;
    }
    return layer;
}

/// "aten.mm.default 2, aten.relu.default 1": the calls that compute.
std::string callsOf(const Module& module) {
    std::string out;
    for (const auto& [op, count] : opHistogram(module)) {
        const bool computes =
            op.find('.') != std::string::npos && op != "operator.getitem" && !op.starts_with("prims.inductor_force");
        if (computes) out += (out.empty() ? "" : ", ") + op + " " + std::to_string(count);
    }
    return out;
}

std::vector<Tensor> pureResultsOf(const Module& module, const std::vector<Tensor>& given) {
    const auto bound = bindInputs(module, given);
    if (!bound) qFatal("%s", bound.error().text().c_str());
    auto values = interpret(module, *bound, {.pure = true});
    if (!values) qFatal("%s\n%s", values.error().text().c_str(), printText(module, {}).text.c_str());
    return std::move(*values);
}

}  // namespace

class FrozenCountsTest : public QObject {
    Q_OBJECT

    static void row(const std::string& name, const Layer& layer, const char* options, const char* stage, int folds,
                    const char* calls, double tolerance) {
        QTest::newRow(name.c_str()) << QByteArray::fromStdString(layer.text()) << QString(options) << QString(stage)
                                    << folds << QString(calls) << tolerance;
    }

    static constexpr const char* kUnpacked = "freeze=weight_prepack:false";

    static void addFolds() {
        // A link of a chain in each of four rounds.
        Layer chain = convolution();
        for (const char* name : {"k", "l", "m", "n"}) chain.parameters.emplace_back(name, "f32[4, 1, 1]");
        chain.calls.insert(chain.calls.end(),
                           {"p = aten.add.Tensor(c, k)", "q = aten.mul.Tensor(p, 2.5)", "r = aten.sub.Tensor(q, l)",
                            "s = aten.mul.Tensor(r, m)", "t = aten.add.Tensor(s, n)"});
        chain.returned = "t";
        row("of five constants four are folded", chain, kUnpacked, "freeze", 4,
            "aten.add.Tensor 1, aten.convolution.default 1", 1e-5);
        // Mean, 1 / sqrt(variance + eps), gamma and beta; halves are rounded once, in the end.
        for (const auto& [dtype, tolerance] : {std::pair("f32", 1e-5), {"bf16", 0x1p-7}, {"f16", 0x1p-10}})
            for (const bool biased : {false, true})
                for (const int dims : {1, 2, 3})
                    row(std::string("batch norm, ") + dtype + (biased ? ", biased, " : ", ") + std::to_string(dims) +
                            " dims",
                        normed(dims, dtype, biased), kUnpacked, "freeze", 4, "aten.convolution.default 1", tolerance);
        // Constants of f32 behind halves, which are rounded in the end.
        Layer wider;
        wider.parameters = {{"w", "bf16[3, 4]"}, {"k", "f32[1, 4]"}, {"l", "f32[1, 1]"}};
        wider.inputs = {{"x", "bf16[6, 3]"}};
        wider.calls = {"m = aten.mm.default(x, w)", "p = aten.sub.Tensor(m, k)", "q = aten.mul.Tensor(p, l)",
                       "y = prims.convert_element_type.default(q, torch.bfloat16)"};
        wider.returned = "y";
        row("a product of halves and two wider constants", wider,
            "freeze=weight_prepack:false,enable_linear_binary_folding:true", "freeze", 2, "aten.addmm.default 1",
            0x1p-7);
        Layer one = convolution();
        one.calls.emplace_back("y = aten.add.Tensor(c, 1.0)");
        one.returned = "y";
        row("a convolution and a number, packed", one, "", "freeze", 1, "mkldnn._convolution_pointwise.default 1",
            1e-5);
    }
    static void addProducts() {
        // The same bits: each column is computed by itself.
        const auto joined = [](const char* name, const std::vector<int>& columns, bool biased, const char* calls) {
            row(name, products(columns, biased), "cuda", "freeze", 0, calls, 0);
        };
        joined("two products", {10, 10}, false, "aten.mm.default 1, aten.split.Tensor 1");
        joined("three products", {10, 10, 10}, false, "aten.mm.default 1, aten.split.Tensor 1");
        joined("four products", {10, 10, 10, 10}, false, "aten.mm.default 2, aten.split.Tensor 1");
        joined("five products", {10, 10, 10, 10, 10}, false, "aten.mm.default 2, aten.split.Tensor 2");
        joined("six products", {10, 10, 10, 10, 10, 10}, false, "aten.mm.default 2, aten.split.Tensor 2");
        joined("two products of other widths", {10, 15}, false, "aten.mm.default 2");
        joined("three products of other widths", {10, 15, 12}, false, "aten.mm.default 3");
        joined("two products with biases", {10, 10}, true, "aten.addmm.default 2");
        joined("three products with biases", {10, 10, 10}, true, "aten.addmm.default 1, aten.split.Tensor 1");
        joined("four products with biases", {10, 10, 10, 10}, true, "aten.addmm.default 2, aten.split.Tensor 1");
        joined("three products with biases of other widths", {10, 15, 12}, true, "aten.addmm.default 3");
        // These are products of one tensor only once the equal reshapes in front of them are one.
        Layer linears;
        linears.parameters = {{"v", "f32[10, 10]cuda:0"}, {"w", "f32[10, 10]cuda:0"}};
        linears.inputs = {{"x", "f32[2, 3, 10]cuda:0"}};
        linears.calls = {"y = aten.linear.default(x, v)", "z = aten.linear.default(x, w)"};
        linears.returned = "y, z";
        row("two linear layers of three dims", linears, "cuda", "freeze", 0,
            "aten.mm.default 1, aten.reshape.default 3, aten.split.Tensor 1", 0);
    }
    static void addLibraries() {
        // MKL's linear takes no activation as a post-op, oneDNN's does.
        for (const auto& [dtype, options, calls, tolerance] :
             {std::tuple("f32", "", "aten.relu.default 1, mkl._mkl_linear 1", 1e-5),
              {"f32", "freeze=fuse_float32_linear:true", "mkldnn._linear_pointwise.default 1", 1e-5},
              {"bf16", "", "mkldnn._linear_pointwise.default 1", 0x1p-7},
              {"f16", "", "mkldnn._linear_pointwise.default 1", 0x1p-10},
              {"f32", kUnpacked, "aten.addmm.default 1, aten.relu.default 1", 1e-5}}) {
            Layer linear;
            const std::string type = dtype;
            linear.parameters = {{"w", type + "[5, 8]"}, {"b", type + "[5]"}};
            linear.inputs = {{"x", type + "[6, 8]"}};
            linear.calls = {"a = aten.linear.default(x, w, b)", "y = aten.relu.default(a)"};
            linear.returned = "y";
            row("a linear layer and relu, " + type + " " + options, linear, options, "post_grad", 0, calls, tolerance);
        }
        // The integers are folded, and nothing else of the weight: floats are convolved as they come.
        Layer quantized = convolution();
        quantized.parameters.emplace_back("scales", "f32[4]");
        quantized.parameters.emplace_back("zeros", "i64[4]");
        quantized.calls = {
            "a = aten.abs.default(scales)", "s = aten.add.Tensor(a, 0.5)",
            "q = quantized_decomposed.quantize_per_channel.default(w, s, zeros, 0, -128, 127, torch.int8)",
            "d = quantized_decomposed.dequantize_per_channel.default(q, s, zeros, 0, -128, 127, torch.int8)",
            "c = aten.convolution.default(x, d, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)"};
        row("floats and a quantized weight", quantized, "", "freeze", 0,
            "aten.clone.default 1, aten.convolution.default 1, quantized_decomposed.dequantize_per_channel.default 1",
            1e-5);
    }

  private slots:
    void counts_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("options");
        QTest::addColumn<QString>("stage");  // behind which the calls are counted
        QTest::addColumn<int>("folds");      // of constants into weights and biases
        QTest::addColumn<QString>("calls");
        QTest::addColumn<double>("tolerance");  // as a share of the largest number
        addFolds();
        addProducts();
        addLibraries();
    }
    void counts() {
        QFETCH(QByteArray, text);
        QFETCH(QString, options);
        QFETCH(QString, stage);
        QFETCH(int, folds);
        QFETCH(QString, calls);
        QFETCH(double, tolerance);
        auto parsed = parseText(text.toStdString());
        QVERIFY2(parsed.has_value(), parsed ? "" : parsed.error().text().c_str());
        const Snapshot before = std::move(*parsed);
        CompileRequest request = readOptions(options, "");
        request.freeze = true;
        const auto trace = runPipeline(before, request);
        QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        QVERIFY2(!trace->failed(), trace->steps.back().info.error.c_str());
        Snapshot after;
        int folded = 0;
        for (const Step& step : trace->steps) {
            if (step.info.stage == stage.toStdString()) after = step.after;
            if (step.info.name == "binary_folding") folded += step.info.rewrites;
        }
        QVERIFY(after != nullptr);
        QCOMPARE(folded, folds);
        QCOMPARE(QString::fromStdString(callsOf(*after)), calls);
        const auto given = randomInputs(*before, 3);
        QVERIFY2(given.has_value(), given ? "" : given.error().text().c_str());
        const std::vector<Tensor> expected = pureResultsOf(*before, *given), actual = pureResultsOf(*after, *given);
        QCOMPARE(actual.size(), expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
            const Comparison found =
                compare(actual[i], expected[i],
                        {.relative = 0, .absolute = tolerance * std::max(1.0, largestMagnitude(expected[i]))});
            QVERIFY2(
                found.sameType && found.within,
                qPrintable(
                    QString("result %1: error %2 of %3").arg(i).arg(found.maxAbsoluteError).arg(found.maxExpected)));
        }
    }
};

CUTAWAY_SUITE(FrozenCountsTest)
#include "frozen_counts_test.moc"
