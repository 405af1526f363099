// What PyTorch refuses: sizes that no number holds, arguments that an operator does not take, views that lead outside
// of their memory. Each is an error that names its node, from the interpreter and from the passes; nothing runs all the
// same.
#include <QtTest>

#include "engine/expr/expr_parse.h"
#include "engine/formats/open.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/verify.h"
#include "engine/passes/pipeline.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();

Expr number(int64_t value) { return Expr::integer(value); }
Expr make(ExprKind kind, std::vector<Expr> operands) { return Expr::make(kind, std::move(operands)); }

template <class Action>
bool throwsSizeError(Action action) {
    try {
        action();
    } catch (const SizeError&) {
        return true;
    }
    return false;
}

/// What the interpreter says of a text with random inputs, and what compiling says before any pass; "" where it says
/// nothing.
struct Refused {
    QString run, compile;
};
Refused refusalOf(const QString& signature, const QString& body) {
    const auto module = parseText(("def forward(" + signature + "):\n    " + body + "\n").toStdString());
    if (!module) return {QString::fromStdString(module.error().text()), QString::fromStdString(module.error().text())};
    Refused refusal;
    auto inputs = randomInputs(**module, 1);
    if (inputs) {
        const auto bound = bindInputs(**module, *inputs);
        const auto results = bound ? interpret(**module, *bound) : Result<std::vector<Tensor>>(bound.error());
        if (!results) refusal.run = QString::fromStdString(results.error().text());
    } else {
        refusal.run = QString::fromStdString(inputs.error().text());
    }
    const auto trace = runPipeline(Snapshot(std::make_shared<const Module>(**module)), {});
    if (!trace) refusal.compile = QString::fromStdString(trace.error().text());
    else if (trace->failed()) refusal.compile = QString::fromStdString(trace->steps.back().info.error);
    return refusal;
}

}  // namespace

class RefusalsTest : public QObject {
    Q_OBJECT

  private slots:
    /// Constants are folded only where the result is a number of 64 bits.
    void arithmetic() {
        QVERIFY(make(ExprKind::Mul, {number(kMost), number(2)})->outOfRange);
        QVERIFY(make(ExprKind::Add, {number(kMost), number(1)})->outOfRange);
        QVERIFY(make(ExprKind::Sub, {number(kLeast), number(1)})->outOfRange);
        QVERIFY(make(ExprKind::FloorDiv, {number(kLeast), number(-1)})->outOfRange);
        QVERIFY(make(ExprKind::FloorDiv, {number(7), number(0)})->outOfRange);
        QVERIFY(make(ExprKind::Mod, {number(0), number(0)})->outOfRange);
        QVERIFY(make(ExprKind::Pow, {number(2), number(63)})->outOfRange);
        QCOMPARE(make(ExprKind::Sub, {number(-1), number(kLeast)}).asInt(), std::optional(kMost));
        QCOMPARE(make(ExprKind::Add, {number(kMost), number(5), number(-5)}).asInt(), std::optional(kMost));
        QCOMPARE(make(ExprKind::Mod, {number(kLeast), number(-1)}).asInt(), std::optional(int64_t{0}));
        QCOMPARE(make(ExprKind::Pow, {number(2), number(62)}).asInt(), std::optional(int64_t{1} << 62));
        QCOMPARE(make(ExprKind::Mul, {number(kMost), number(4), number(0)}).asInt(), std::optional(int64_t{0}));

        // A size that divides is not 0; an element may be.
        const Expr s = Expr::symbol("s0"), x = Expr::load("x", number(0), DType::I64);
        QCOMPARE(make(ExprKind::Mod, {s, s}).asInt(), std::optional(int64_t{0}));
        QCOMPARE(make(ExprKind::FloorDiv, {make(ExprKind::Mul, {s, x}), s}), x);
        for (const Expr& dividend : {x, number(0), make(ExprKind::Mul, {s, x})}) {
            QCOMPARE(make(ExprKind::Mod, {dividend, x})->kind, ExprKind::Mod);
            QCOMPARE(make(ExprKind::FloorDiv, {dividend, x})->kind, ExprKind::FloorDiv);
        }
        const Expr huge =
            make(ExprKind::Mul, {make(ExprKind::Mul, {s, number(int64_t{1} << 40)}), number(int64_t{1} << 40)});
        QVERIFY(huge->outOfRange);
        QVERIFY(!make(ExprKind::Mul, {s, number(kMost)})->outOfRange);
        QVERIFY(throwsSizeError([&] { static_cast<void>(SymInt{huge}); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(SymInt(kMost) + SymInt(1)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(SymInt(kLeast) - SymInt(1)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(SymInt(kMost) * SymInt(2)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(floorDiv(SymInt(3), SymInt(0))); }));
        QCOMPARE(floorDiv(SymInt(7), SymInt(2)).value(), int64_t{3});
        QCOMPARE(floorDiv(SymInt(-7), SymInt(2)).value(), int64_t{-4});
        QCOMPARE(mod(SymInt(7), SymInt(-2)).value(), int64_t{-1});
        QCOMPARE(mod(SymInt(-7), SymInt(2)).value(), int64_t{1});
        QCOMPARE(min(SymInt(-7), SymInt(2)).value(), int64_t{-7});
        QCOMPARE(max(SymInt(-7), SymInt(2)).value(), int64_t{2});
        QVERIFY(knownLessEqual(SymInt(kLeast), SymInt(kMost)));
        QVERIFY(!knownLessEqual(SymInt(kLeast), SymInt(s)));
    }

    /// No tensor has more elements or bytes than can be counted, or leads outside of its storage.
    void tensors() {
        QVERIFY(throwsSizeError([&] { static_cast<void>(numel(Dims{kMost, 4})); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(numel(Dims{-1})); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(Tensor::empty(DType::F32, {kMost})); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(Tensor::zeros(DType::F32, {kMost, 4})); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(Tensor::empty(DType::F32, {4}, {-1})); }));
        const Tensor six = Tensor::zeros(DType::F32, {6});
        QCOMPARE(six.view({2, 3}, {3, 1}, 0).numel(), int64_t{6});
        QCOMPARE(six.view({0}, {5}, 100).numel(), int64_t{0});
        QVERIFY(throwsSizeError([&] { static_cast<void>(six.view({4}, {5}, 0)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(six.view({1}, {1}, 6)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(six.view({2}, {-1}, 0)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(six.view({4, 4}, {kMost, 1}, 0)); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(broadcastTo(six, {5})); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(broadcastTo(six.view({1, 6}, {6, 1}, 0), {6})); }));
        QVERIFY(throwsSizeError([&] { static_cast<void>(six.view({0}, {1}, 0).item()); }));
    }

    void symbols_data() {
        QTest::addColumn<QString>("size");
        QTest::addColumn<qlonglong>("s0");
        QTest::addColumn<qlonglong>("s1");
        QTest::addColumn<QString>("says");
        QTest::newRow("a product wraps to 0")
            << "s0*s1" << 4294967296LL << 4294967296LL
            << "x: s0*s1 for s0 = 4294967296, s1 = 4294967296 does not fit into 64 bits";
        QTest::newRow("a sum wraps below 0") << "100000*s0 + 1" << 92233720368547758LL << 1LL
                                             << "x: 100000*s0 + 1 for s0 = 92233720368547758 does not fit into 64 bits";
        QTest::newRow("negative") << "s0 - 10" << 3LL << 1LL
                                  << "x: the size s0 - 10 for s0 = 3 is -7, and sizes are not negative";
        QTest::newRow("divided by 0") << "s0//s1" << 3LL << 0LL
                                      << "x: (s0//s1) for s0 = 3, s1 = 0 does not fit into 64 bits";
        QTest::newRow("fits") << "s0*s1" << 3LL << 4LL << "";
    }
    void symbols() {
        QFETCH(QString, size);
        QFETCH(qlonglong, s0);
        QFETCH(qlonglong, s1);
        QFETCH(QString, says);
        auto module = parseText("def forward(x: \"f32[" + size.toStdString() + "]\"):\n    return (x,)\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        const auto done = specialize(**module, {{"s0", s0}, {"s1", s1}});
        QCOMPARE(done ? QString() : QString::fromStdString(done.error().text()), says);
    }

    void calls_data() {
        QTest::addColumn<QString>("inputs");
        QTest::addColumn<QString>("call");
        QTest::addColumn<QString>("says");
        const auto row = [](const QString& inputs, const QString& call, const char* says) {
            QTest::newRow(qPrintable(call)) << inputs << call << says;
        };
        const char *x = "x: \"f32[4, 3]\"", *empty = "x: \"f32[0, 3]\"", *six = "x: \"f32[6]\"",
                   *image = "x: \"f32[1, 2, 5, 5]\"";
        // several results, which open all the same
        row("x: \"u64[]\"", "operator.floordiv(4, x)", "i64 and u64 have no common dtype");
        row("x: \"u16[3]\", y: \"i64[3]\"", "aten.add.Tensor(x, y)", "u16 and i64 have no common dtype");
        row("x: \"u32[3]\", y: \"b8[3]\"", "aten.cat.default([x, y])", "u32 and b8 have no common dtype");
        row("x: \"f8e4m3fn[3]\", y: \"f32[3]\"", "aten.stack.default([x, y])", "f8e4m3fn and f32 have no common dtype");
        row(x, "aten.topk.default(x, 99)", "k = 99");
        row(x, "aten.topk.default(x, -1)", "k = -1");
        row(x, "aten.split.Tensor(x, 0)", "split size 0");
        row(x, "aten.split_with_sizes.default(x, [-1, 5])", "negative split size -1");
        row(x, "aten.kthvalue.default(x, 5, 1)", "5");
        row(x, "aten.chunk.default(x, 0)", "positive number of chunks");
        row(x, "aten.tensor_split.sections(x, 0)", "sections");
        row("x: \"b8[2000000]\"", "aten.split.Tensor(x, 1)", "results are more than");
        row("x: \"f32[0]\"", "aten.chunk.default(x, 9223372036854775807)", "results are more than");
        row(empty, "aten.max.dim(x, 0)", "no elements");
        row(empty, "aten.min.dim(x, 0)", "no elements");
        row(empty, "aten.median.dim(x, 0)", "");
        row(empty, "aten.mode.default(x, 0)", "");
        row(image, "aten.native_group_norm.default(x, None, None, 1, 2, 25, 0, 1e-5)", "0 groups");
        row(image, "aten.native_group_norm.default(x, None, None, 1, 2, 25, 3, 1e-5)", "3 groups");
        // views
        row(six, "aten.as_strided.default(x, [4], [5])", "reaches element 15 of a storage of 6");
        row(six, "aten.as_strided.default(x, [1], [1], 1000000)", "reaches element 1000000");
        row(six, "aten.as_strided.default(x, [4, 4], [9223372036854775807, 1], 0)", "64 bits");
        row(six, "aten.as_strided.default(x, [2], [-1], 1)", "negative stride");
        row("x: \"f32[6]\", y: \"f32[4]\"", "aten.as_strided_scatter.default(x, y, [4], [5])", "reaches element 15");
        row(x, "aten.slice.Tensor(x, 0, 0, 4, 0)", "step");
        row(x, "aten.select.int(x, 0, 4)", "out of range");
        row(x, "aten.narrow.default(x, 0, 2, 5)", "");
        row(x, "aten.unfold.default(x, 0, 99, 1)", "does not fit");
        row(x, "aten.unfold.default(x, 0, 1, 0)", "step");
        row(x, "aten.expand.default(x, [9223372036854775807, 4, 3])", "more elements than 64 bits can count");
        row(x, "aten.view.default(x, [4611686018427387904, 4])", "");
        // sizes
        row(x, "aten.constant_pad_nd.default(x, [9223372036854775807, 9223372036854775807])",
            "does not fit into 64 bits");
        row(x, "aten.constant_pad_nd.default(x, [-9, 20])", "negative size");
        row(x, "aten.full.default([9223372036854775807, 4], 1.0)", "more elements than 64 bits can count");
        row(x, "aten.arange.default(9223372036854775807)", "i64[9223372036854775807] would have more than 2^63 bytes");
        row(x, "aten.eye.default(9223372036854775807)", "more elements than 64 bits can count");
        row(x, "aten.upsample_nearest2d.default(x, [9223372036854775807, 2])", "");
        row(x, "aten.repeat.default(x, [9223372036854775807, 2])", "64 bits");
        row(x, "aten.diag_embed.default(x, 4611686018427387904)", "");
        // windows
        row(image, "aten.avg_pool2d.default(x, [2, 2], [0, 0])", "'stride' of 0");
        row(image, "aten.max_pool2d_with_indices.default(x, [2, 2], [0, 0])", "'stride' of 0");
        row(image, "aten.avg_pool2d.default(x, [0, 0])", "'kernel_size' of 0");
        row(image, "aten.avg_pool2d.default(x, [2, 2], [1, 1], [2, 2])", "more than half");
        row(image, "aten.max_pool2d_with_indices.default(x, [2, 2], [1, 1], [0, 0], [4611686018427387904, 1])",
            "32 bits");
        row("x: \"f32[1, 2, 5, 5]\", w: \"f32[2, 2, 3, 3]\"",
            "aten.convolution.default(x, w, None, [0, 0], [0, 0], [1, 1], False, [0, 0], 1)", "");
        row("x: \"f32[1, 2, 5, 5]\", w: \"f32[2, 2, 3, 3]\"",
            "aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 0)", "");
        row("x: \"f32[1, 2, 5, 5]\", w: \"f32[2, 2, 3, 3]\"",
            "aten.convolution.default(x, w, None, [1, 1], [-1, 0], [1, 1], False, [0, 0], 1)", "");
        row("x: \"f32[1, 2, 5, 5]\", w: \"f32[2, 2, 3, 3]\"",
            "aten.convolution.default(x, w, None, [1, 1], [0, 0], [0, 1], False, [0, 0], 1)", "");
        // numbers that a dtype does not hold
        row(x, "aten.full.default([2], 300, dtype=torch.uint8)", "'fill_value' of 300 does not fit into uint8");
        row(x, "aten.full.default([2], 70000.0, dtype=torch.float16)", "does not fit into float16");
        row(x, "aten.full.default([2], nan, dtype=torch.int32)", "does not fit into int32");
        row("x: \"u8[4]\"", "aten.full_like.default(x, 300)", "does not fit into uint8");
        row("x: \"u8[4]\"", "aten.fill.Scalar(x, 300)", "does not fit into uint8");
        row("x: \"u8[4]\"", "aten.constant_pad_nd.default(x, [1, 1], 300)", "does not fit into uint8");
        row("x: \"u8[4]\", m: \"b8[4]\"", "aten.masked_fill.Scalar(x, m, 300)", "does not fit into uint8");
        // gradients
        row("x: \"f32[3]\"", "aten.select_backward.default(x, [4, 3], 3, 1)", "dim 3 is out of range");
        row("x: \"f32[2, 3]\"", "aten.slice_backward.default(x, [4, 3], 0, 1, 4, 1)", "does not fit the part");
        row("x: \"f32[3, 3]\"", "aten.unfold_backward.default(x, [7], 17, 3, 2)", "dim 17 is out of range");
        row("x: \"f32[2, 4, 9, 9]\", i: \"f32[2, 3, 8, 8]\", w: \"f32[4, 3, 3, 3]\"",
            "aten.convolution_backward.default(x, i, w, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, "
            "True])",
            "size 9 in dim 2, the output 4");
        row("x: \"f32[2, 3, 4]\", m: \"f32[2, 3, 1]\", w: \"f32[4]\"",
            "aten.native_layer_norm_backward.default(x, x, [17], m, m, w, w, [True, True, True])",
            "17 where the input");
        // operands of sizes that do not fit each other
        row("x: \"f32[4, 5]\", i: \"i64[1, 5]\", y: \"f32[5]\"", "aten.scatter.src(x, 0, i, y)", "the source 1");
        row("x: \"f64[8, 8]\", p: \"i32[]\"", "aten.lu_unpack.default(x, p)", "are not those of");
        row("x: \"f64[2, 8, 8]\", p: \"i32[0, 8]\"", "aten.lu_unpack.default(x, p, False)", "are not those of");
        row("x: \"f64[8, 8]\", p: \"i32[1]\", y: \"f64[8, 1]\"", "aten.linalg_lu_solve.default(x, p, y)",
            "are not those of");
        row("x: \"f32[5, 3]\", t: \"i64[2]\"", "aten.nll_loss_forward.default(x, t, None, 0, -100)", "does not fit");
        row("x: \"f32[2, 3]\", t: \"i64[2]\", w: \"f32[1]\"", "aten.nll_loss_forward.default(x, t, w, 1, -100)",
            "one number per class");
        row("x: \"f32[1, 3, 8]\", w: \"f32[4, 3, 0]\"",
            "aten.convolution.default(x, w, None, [1], [1], [1], False, [0], 1)", "no elements");
        row("x: \"f32[4]\", i: \"i64[]\", y: \"f32[0]\"", "aten.scatter_add.default(x, 0, i, y)",
            "larger than the source");
        row("x: \"c64[4, 3]\", i: \"i64[2]\", y: \"c64[2, 3]\"", "aten.index_reduce.default(x, 0, i, y, 'prod')",
            "complex");
        row("x: \"f32[2, 3, 4, 8]\", v: \"f32[0, 3, 4, 8]\"",
            "aten._scaled_dot_product_flash_attention_for_cpu.default(x, x, v)", "batch or head counts");
        row("x: \"f32[2, 3, 4, 8]\", m: \"i64[4, 4]\"", "aten.scaled_dot_product_attention.default(x, x, x, m)",
            "the mask is int64, not float32, or bool");
        row("x: \"bf16[2, 3, 4, 8]\", m: \"f64[4, 4]\"", "aten.scaled_dot_product_attention.default(x, x, x, m)",
            "the mask is float64, not bfloat16 or float32, or bool");
        row("x: \"f32[2, 3, 4, 8]\", m: \"b8[4, 4]\"",
            "aten._scaled_dot_product_flash_attention_for_cpu.default(x, x, x, attn_mask=m)", "the mask is bool");
        row("x: \"f32[2, 3, 2]\", t: \"f32[0, 2]\"", "aten.linalg_householder_product.default(x, t)", "do not fit");
        row("x: \"f32[1, 2, 2, 3, 2]\", y: \"f32[1, 2, 4, 6, 0]\"", "aten._adaptive_avg_pool3d_backward.default(x, y)",
            "no elements");
        row("x: \"c64[1, 1, 4, 4]\"", "aten.max_pool2d_with_indices.default(x, [2, 2])", "real numbers");
        // elements that share their place
        row("x: \"f32[3, 1]\", y: \"f32[3, 4]\"",
            "aten.expand.default(x, [3, 4])\n    bad = aten.copy_.default(bad, y)", "one place in memory");
        // the rest
        row("x: \"f32[1, 2, 5]\", w: \"f32[2, 3, 4]\"",
            "aten.convolution.default(x, w, None, [2], [1], [1], True, [2], 1)", "output padding of 2");
        row("x: \"f32[1, 3, 8]\", w: \"f32[4, 3, 3]\"",
            "aten.convolution.default(x, w, None, [2], [9223372036854775807], [1], False, [0], 1)", "64 bits");
        row("x: \"f64[3, 3]\"", "aten.linalg_matrix_power.default(x, -9223372036854775808)", "cannot be negated");
        row("x: \"f32[3]\"", "aten.l1_loss.default(x, x, -1)", "reduction is 0 (none), 1 (mean) or 2 (sum)");
        row(x, "aten.tril_indices.default(4611686018427387904, 5, -3)", "64 bits");
        row("x: \"i64[3]\"", "aten.repeat_interleave.Tensor(x, output_size=99)", "do not add up");
        row("x: \"f32[3]\", r: \"i64[3]\"", "aten.repeat_interleave.self_Tensor(x, r)", "annotate the result");
        // quantized products
        const char* quantized = "x: \"u8[5, 8]\", w: \"i8[8, 4]\", s: \"f32[4]\", o: \"f32[5, 4]\"";
        const auto linear = [&](const std::string& tail, const char* says) {
            row(quantized, ("onednn.qlinear_pointwise.default(x, 0.5, 3, w, s, None, None, " + tail + ")").c_str(),
                says);
        };
        linear("0.5, 0, torch.float32, 'none', [], ''", "needs an output scale of 1");
        linear("1.0, 0, torch.float16, 'none', [], ''", "not float16");
        linear("1.0, 0, torch.float32, 'sigmoid', [], ''", "knows no post-op 'sigmoid'");
        linear("1.0, 0, torch.float32, 'gelu', [], ''", "gelu by 'none' or 'tanh'");
        linear("1.0, 0, torch.float32, 'hardtanh', [1.0], ''", "hardtanh needs 2 numbers");
        const auto added = [&](const std::string& tail, const char* says) {
            row(quantized,
                ("onednn.qlinear_pointwise.binary(x, 0.5, 3, w, s, None, o, None, 1.0, 0, " + tail + ")").c_str(),
                says);
        };
        added("torch.float32, 1.0, 0, 'mul', 1.0, 'none', [], ''", "knows no binary post-op 'mul'");
        added("torch.float32, 1.0, 0, 'sum', 2.0, 'none', [], ''", "alpha of 1");
        added("torch.float32, 1.0, 0, 'sum', 1.0, 'tanh', [], ''", "knows no post-op 'tanh'");
        added("torch.bfloat16, 1.0, 0, 'sum', 1.0, 'none', [], ''", "the result's dtype bfloat16");
        added("torch.float32, 0.5, 0, 'sum', 1.0, 'none', [], ''", "only where it sums quantized numbers");
        const auto conv = [&](const char* input, const std::string& tail, const char* says) {
            row((std::string("x: \"") + input + "\", w: \"i8[4, 3, 3, 3]\", s: \"f32[4]\"").c_str(),
                ("onednn.qconv_pointwise.default(x, 0.5, 3, w, s, None, None, [1, 1], [0, 0], [1, 1], 1, " + tail + ")")
                    .c_str(),
                says);
        };
        conv("i8[2, 3, 8, 8]", "1.0, 0, torch.float32, 'none', [], ''", "not int8");
        conv("u8[2, 3, 8, 8]", "1.0, 0, torch.float32, 'gelu', [], 'none'", "knows no post-op 'gelu'");
        conv("u8[2, 3, 8, 8]", "0.5, 0, torch.float32, 'none', [], ''", "needs an output scale of 1");
        conv("u8[2, 2, 8, 8]", "1.0, 0, torch.float32, 'none', [], ''", "2 channels, the weight expects 3");
        row("x: \"u8[2, 3, 8]\", w: \"i8[4, 3, 3]\", s: \"f32[4]\"",
            "onednn.qconv_pointwise.default(x, 0.5, 3, w, s, None, None, [1], [0], [1], 1, 1.0, 0, torch.float32, "
            "'hardtanh', [0.0, 6.0], '')",
            "knows no post-op 'hardtanh'");
        row("x: \"u8[3, 8, 8]\"", "quantized.max_pool2d.default(x, [2, 2], [2, 2], [0, 0], [1, 1], False)",
            "with a batch");
        row("x: \"f32[4, 6]\", w: \"i8[8, 5]\", s: \"f32[8]\"", "aten._weight_int8pack_mm.default(x, w, s)",
            "as many columns");
        // indices
        row("x: \"f32[4, 5]\", i: \"i64[3]\", y: \"f32[3, 2]\"", "aten.index_add.default(x, 0, i, y)", "sizes of");
    }
    void calls() {
        QFETCH(QString, inputs);
        QFETCH(QString, call);
        QFETCH(QString, says);
        const bool tuple = call.contains("topk") || call.contains("split") || call.contains("kthvalue") ||
                           call.contains("chunk") || call.contains(".dim(") || call.contains("mode") ||
                           call.contains("native_group_norm") || call.contains("with_indices") ||
                           call.contains("n_backward") || call.contains("lu_unpack") || call.contains("attention") ||
                           call.contains("nll_loss_forward") || call.contains("norm_backward");
        const Refused refusal =
            refusalOf(inputs, "bad = " + call + "\n    " +
                                  (tuple ? "y = operator.getitem(bad, 0)\n    return (y,)" : "return (bad,)"));
        QVERIFY2(!refusal.run.isEmpty() && refusal.run.contains(says), qPrintable(refusal.run));
        // Memory that does not exist is asked for in the run only, and values are looked at there.
        if (!says.contains("2^63 bytes") && !says.contains("add up"))
            QVERIFY2(!refusal.compile.isEmpty() && refusal.compile.contains(says), qPrintable(refusal.compile));
    }

    /// The same arguments with a type annotation, which opens any call.
    void annotatedCalls() {
        const QString body = "bad: \"f32[4]\" = aten.as_strided.default(x, [4], [5])\n    return (bad,)";
        const auto module = parseText("def forward(x: \"f32[6]\"):\n    " + body.toStdString() + "\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        QVERIFY((*module)->origin.remarks.size() == 1 &&
                (*module)->origin.remarks[0].find("the graph can be looked at, not run") != std::string::npos);
        const Refused refusal = refusalOf("x: \"f32[6]\"", body);
        QVERIFY2(refusal.run.startsWith("bad: aten.as_strided.default: reaches element 15"), qPrintable(refusal.run));
        QVERIFY2(refusal.compile.startsWith("bad: aten.as_strided.default: reaches element 15"),
                 qPrintable(refusal.compile));
    }

    /// What an unknown operator gives has no type, so neither has what reads it: that can be looked at, and stepped.
    void unknownOperands() {
        const auto module = parseText(
            "def forward(x: \"f32[4]\"):\n    o = unknown.thing.default(x)\n"
            "    q = aten.topk.default(o, 99)\n    y = operator.getitem(q, 0)\n    return (y,)\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        QVERIFY(checkCalls(**module, Calls::Possible).has_value());
        const auto computable = checkCalls(**module, Calls::Computable);
        QVERIFY(!computable.has_value() && computable.error().where == "q");
        QVERIFY(computable.error().message.find("unknown.thing.default") != std::string::npos);
        const auto trace = runPipeline(Snapshot(std::make_shared<const Module>(**module)), {.passesOnly = true});
        QVERIFY(trace.has_value() && !trace->failed());
    }

    /// Scripts of torch.compile name the bodies of control flow and do not hold them.
    void absentBodies() {
        const auto module = parseText(
            "def forward(x: \"f32[4]\", p: \"b8[]\"):\n    a = self.a\n    b = self.b\n"
            "    c = torch.ops.higher_order.cond(p, a, b, (x,))\n    y = operator.getitem(c, 0)\n"
            "    m = aten.mean.default(y)\n    return (m,)\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        const auto computable = checkCalls(**module, Calls::Computable);
        QVERIFY(!computable.has_value() && computable.error().where == "m");
        QVERIFY(computable.error().message.find("self.a") != std::string::npos);
    }

    /// What was accepted once is not asked again, until it is edited.
    void acceptedUntilEdited() {
        const auto module =
            parseText("def forward(x: \"f32[4]\"):\n    y = aten.select.int(x, 0, 3)\n    return (y,)\n");
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        for (int i = 0; i < 2; ++i) QVERIFY(checkCalls(**module, Calls::Possible).has_value());
        Node& select = *(*module)->graph().findByName("y");
        (*module)->graph().setArg(select, 2, Argument(int64_t{4}));
        QVERIFY(!checkCalls(**module, Calls::Possible).has_value());
        (*module)->graph().setArg(select, 2, Argument(int64_t{3}));
        QVERIFY(checkCalls(**module, Calls::Possible).has_value());
    }

    /// Some results of a call are known from where they are read, the others are not.
    void partlyKnownResults() {
        const auto text = [](const std::string& rest) {
            return "def forward(x: \"f32[4]\"):\n    o = unknown.thing.default(x)\n    s = aten.split.Tensor(o, 2)\n"
                   "    a: \"f32[2]\" = operator.getitem(s, 1)\n" +
                   rest;
        };
        const auto written = parseText(text("    b: \"f32[2]\" = aten.add_.Tensor(a, 1)\n    return (b,)\n"));
        QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
        const auto trace = runPipeline(Snapshot(std::make_shared<const Module>(**written)), {});
        QVERIFY(trace.has_value() && trace->failed());
        QVERIFY(trace->steps.back().info.error.find("parts are not known") != std::string::npos);
        const auto read = parseText(text("    b: \"f32[2]\" = aten.mul.Tensor(a, 2)\n    return (b,)\n"));
        QVERIFY(read.has_value());
        CompileRequest training;
        training.mode = Mode::Training;
        QVERIFY(runPipeline(Snapshot(std::make_shared<const Module>(**read)), training).has_value());
    }

    /// A type that a file writes, and that its operator does not give, is not what memory is reserved by.
    void wrongTypes_data() {
        QTest::addColumn<QString>("inputs");
        QTest::addColumn<QString>("body");
        QTest::newRow("larger")
            << "x: \"f32[3]\""
            << "a: \"f32[3000]\" = aten.relu.default(x)\n    y = aten.neg.default(a)\n    return (y,)";
        QTest::newRow("smaller")
            << "x: \"f32[3000]\""
            << "a: \"f32[3]\" = aten.relu.default(x)\n    y = aten.neg.default(a)\n    return (y,)";
        QTest::newRow("of another dtype")
            << "x: \"f32[3]\""
            << "a: \"f64[3]\" = aten.relu.default(x)\n    y = aten.neg.default(a)\n    return (y,)";
        QTest::newRow("of another rank")
            << "x: \"f32[3]\""
            << "a: \"f32[3, 1]\" = aten.relu.default(x)\n    y = aten.cat.default([a, a])\n    return (y,)";
    }
    void wrongTypes() {
        QFETCH(QString, inputs);
        QFETCH(QString, body);
        const Refused refusal = refusalOf(inputs, body);
        QVERIFY2(refusal.run.contains("is written as"), qPrintable(refusal.run));
    }

    void acceptedCalls_data() {
        QTest::addColumn<QString>("inputs");
        QTest::addColumn<QString>("call");
        const auto row = [](const char* inputs, const char* call) { QTest::newRow(call) << inputs << call; };
        row("x: \"f32[6]\"", "aten.as_strided.default(x, [0], [5], 100)");
        row("x: \"f32[6]\"", "aten.slice.Tensor(x, 0, 0, 9223372036854775807, 9223372036854775807)");
        row("x: \"f32[6]\"", "aten.slice.Tensor(x, 0, -9223372036854775808)");
        row("x: \"f32[4, 3]\"", "aten.diagonal.default(x, 9223372036854775807)");
        row("x: \"f32[4, 3]\"", "aten.triu_indices.default(5, 5, 9223372036854775807)");
        row("x: \"f32[4, 3]\"", "aten.tril_indices.default(3, 9223372036854775807)");
        row("x: \"f32[4, 3]\"", "aten.arange.start_step(0, 10, 9223372036854775807)");
        row("x: \"f32[4, 3]\"", "aten.full.default([2], -1, dtype=torch.uint8)");
        row("x: \"f32[4, 3]\"", "aten.full.default([2], -inf, dtype=torch.float16)");
        row("x: \"f32[1, 2, 9, 9]\"", "aten.avg_pool2d.default(x, [3, 3])");
    }
    void acceptedCalls() {
        QFETCH(QString, inputs);
        QFETCH(QString, call);
        const Refused refusal = refusalOf(inputs, "y = " + call + "\n    return (y,)");
        QVERIFY2(refusal.run.isEmpty() && refusal.compile.isEmpty(), qPrintable(refusal.run + "; " + refusal.compile));
    }
};

CUTAWAY_SUITE(RefusalsTest)
#include "refusals_test.moc"
