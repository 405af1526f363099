// How quantized numbers are rounded, at the numbers where PyTorch's operators differ from one another or from their
// compiled forms (spec: quantization-and-onednn §4, §6): one element at a time, by libraries, and compiled.
#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

Tensor tensorIn(DType dtype, Dims sizes, const std::vector<double>& numbers) {
    Tensor tensor = Tensor::empty(dtype, std::move(sizes));
    storeElements(dtype, tensor.data(), 1, tensor.numel(), numbers.data());
    return tensor;
}
/// "1 2; 3" for two results.
QString shownNumbers(const std::vector<Tensor>& tensors) {
    QStringList out;
    for (const Tensor& tensor : tensors) {
        QStringList numbers;
        for (int64_t i = 0; i < tensor.numel(); ++i) numbers << QString::number(toDouble(tensor.item(i)));
        out << numbers.join(' ');
    }
    return out.join("; ");
}

struct QuantizedCase {
    const char* name;
    const char* text;
    std::vector<Tensor> given;
    const char* result;
};

std::vector<QuantizedCase> cases() {
    const std::vector<double> halves{0.5, 1.5, 2.5, -0.5, -1.5, 0.5};
    const Tensor one = tensorIn(DType::F32, {1}, {1}), zero = tensorIn(DType::I64, {1}, {1});
    return {
        // The zero point is added to a rounded number, except by token and by group.
        {"halves, and a zero point of 1",
         R"(def forward(x: "f32[1, 6]", s: "f32[1]", z: "i64[1]"):
    r: "f32[1, 1]" = aten.view.default(s, [1, 1])
    u: "i64[1, 1]" = aten.view.default(z, [1, 1])
    a = quantized_decomposed.quantize_per_tensor.default(x, 1.0, 1, -128, 127, torch.int8)
    b = quantized_decomposed.quantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8)
    c = quantized_decomposed.quantize_per_channel.default(x, s, z, 0, -128, 127, torch.int8)
    d = quantized_decomposed.quantize_per_token.default(x, r, u, -128, 127, torch.int8)
    e = quantized_decomposed.quantize_per_channel_group.default(x, r, u, -128, 127, torch.int8, 6)
    return (a, b, c, d, e))",
         {tensorIn(DType::F32, {1, 6}, halves), one, zero},
         "1 3 3 1 -1 1; 1 3 3 1 -1 1; 1 3 3 1 -1 1; 2 2 4 0 0 2; 2 2 4 0 0 2"},
        // The range holds 0, whether the numbers do or not: PyTorch's compiled form takes 1/255 for the scale.
        {"a scale for numbers from 1 to 2",
         R"(def forward(x: "f32[3]"):
    p = quantized_decomposed.choose_qparams.tensor(x, 0, 255, 1e-05, torch.uint8)
    s = p[0]
    z = p[1]
    t = aten.mul.Tensor(s, 255)
    return (t, z))",
         {tensorIn(DType::F32, {3}, {1, 1.5, 2})},
         "2; 0"},
        // Products add the zero point before they round, so that ties with an odd one come out elsewhere.
        {"ties of a product",
         R"(def forward(x: "u8[8, 1]", w: "i8[1, 1]", s: "f32[1]"):
    a = onednn.qlinear_pointwise.default(x, 0.5, 0, w, s, None, None, 1.0, 1, torch.uint8, 'none', [], '')
    y = onednn.qlinear_pointwise.default(x, 0.5, 0, w, s, None, None, 1.0, 0, torch.float32, 'none', [], '')
    b = quantized_decomposed.quantize_per_tensor.default(y, 1.0, 1, 0, 255, torch.uint8)
    return (a, b))",
         {tensorIn(DType::U8, {8, 1}, {0, 1, 2, 3, 4, 5, 6, 7}), tensorIn(DType::I8, {1, 1}, {1}), one},
         "1 2 2 2 3 4 4 4; 1 1 2 3 3 3 4 5"},
        // 255 * 127 twice does not fit into 16 bits, where PyTorch adds pairs on CPUs without VNNI.
        {"sums of large products",
         R"(def forward(x: "u8[1, 64]", w: "i8[64, 1]", s: "f32[1]"):
    a = onednn.qlinear_pointwise.default(x, 1.0, 0, w, s, None, None, 1.0, 0, torch.float32, 'none', [], '')
    i: "u8[1, 64, 1, 1]" = aten.view.default(x, [1, 64, 1, 1])
    k: "i8[1, 64, 1, 1]" = aten.view.default(w, [1, 64, 1, 1])
    b = onednn.qconv_pointwise.default(i, 1.0, 0, k, s, None, None, [1, 1], [0, 0], [1, 1], 1, 1.0, 0, torch.float32, 'none', [], '')
    return (a, b))",
         {tensorIn(DType::U8, {1, 64}, std::vector<double>(64, 255)),
          tensorIn(DType::I8, {64, 1}, std::vector<double>(64, 127)), one},
         "2.07264e+06; 2.07264e+06"},
    };
}

}  // namespace

class QuantizedValuesTest : public QObject {
    Q_OBJECT

  private slots:
    void rounding_data() {
        QTest::addColumn<size_t>("number");
        const std::vector<QuantizedCase> all = cases();
        for (size_t i = 0; i < all.size(); ++i) QTest::newRow(all[i].name) << i;
    }
    void rounding() {
        QFETCH(size_t, number);
        const QuantizedCase one = cases()[number];
        const auto module = moduleOf(one.text);
        for (const bool pure : {true, false}) {
            const auto computed = interpret(*module, one.given, {.pure = pure});
            QVERIFY2(computed.has_value(), computed ? "" : computed.error().text().c_str());
            QCOMPARE(shownNumbers(*computed), QString(one.result));
        }
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto compiled = runCpu(*program, one.given);
        QVERIFY2(compiled.has_value(), compiled ? "" : compiled.error().text().c_str());
        QCOMPARE(shownNumbers(compiled->outputs), QString(one.result));
    }
};

CUTAWAY_SUITE(QuantizedValuesTest)
#include "quantized_values_test.moc"
