// Where compiled graphs end: more tensors than a kernel has buffers, indices and views that lead outside of memory,
// numbers that a half float cannot hold. Kernels do what the reference does, and refuse what it refuses.
#include <QtTest>

#include "engine/autograd/expand.h"
#include "engine/autograd/joint_graph.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/support/compiled_calls.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class CpuLimitsTest : public QObject {
    Q_OBJECT

  private slots:
    /// More tensors than a kernel has buffers, and the gradients of as many.
    void concatenations_data() {
        QTest::addColumn<int>("count");
        QTest::addColumn<int>("dim");
        QTest::addColumn<bool>("gradients");
        for (const int count : {47, 48, 100, 1000})
            for (const int dim : {0, 1}) QTest::addRow("%d tensors along dim %d", count, dim) << count << dim << false;
        for (const int dim : {0, 1}) QTest::addRow("gradients of 100 tensors along dim %d", dim) << 100 << dim << true;
    }
    void concatenations() {
        QFETCH(int, count);
        QFETCH(int, dim);
        QFETCH(bool, gradients);
        QStringList inputs, names;
        for (int i = 0; i < count; ++i) {
            names << QString("x%1").arg(i);
            const QString rows = QString::number(i % 3 + 1);
            inputs << names.back() + ": \"f32[" + (dim == 0 ? rows + ", 4" : "4, " + rows) + "]\"";
        }
        const QString text = "def forward(" + inputs.join(", ") +
                             "):\n    a = aten.mul.Tensor(x1, 2)\n    c = aten.cat.default([a, " +
                             names.mid(1).join(", ") + "], " + QString::number(dim) +
                             ")\n    y = aten.exp.default(c)\n    return (y,)\n";
        auto module = moduleOf(text.toStdString());
        if (gradients) {
            auto joint = makeJointGraph(*module, {.inputs = {"x1", "x2", "x99"}});
            QVERIFY2(joint.has_value(), joint ? "" : joint.error().text().c_str());
            const CompileRequest options;
            Rewriter rewriter("test", options);
            QVERIFY(decompose(**joint, rewriter).has_value());
            module = std::move(*joint);
        }
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto values = drawnInputs(*module, 1);
        const auto expected = referenceOutputs(*module, values);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        const auto run = runCpu(*program, values);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY2(outputDifference(run->outputs, *expected).isEmpty(),
                 qPrintable(outputDifference(run->outputs, *expected)));
    }

    /// What PyTorch's kernels refuse, ours do: indices that count from the end, or lie outside. Where PyTorch takes
    /// them, ours do too. The calls stand as they are: what the passes expand some of them into takes more, as it does
    /// where PyTorch compiles.
    void indices_data() {
        QTest::addColumn<QString>("call");
        QTest::addColumn<QString>("index");
        QTest::addColumn<int>("value");
        QTest::addColumn<bool>("refused");
        const auto row = [](const char* call, const char* index, int value, bool refused) {
            QTest::addRow("%d: %s", value, call) << call << index << value << refused;
        };
        for (const int value : {-1, 4}) {
            row("aten.embedding.default(x, i)", "i64[2]", value, true);
            row("aten.index_select.default(x, 0, i)", "i64[2]", value, true);
            row("aten.gather.default(x, 0, i)", "i64[2, 3]", value, true);
            row("aten.scatter.value(x, 0, i, 2.0)", "i64[2, 3]", value, true);
            row("aten.index_add.default(x, 0, i, y)", "i64[2]", value, true);
            row("aten.index_copy.default(x, 0, i, y)", "i64[2]", value, true);
            row("aten.one_hot.default(i, 4)", "i64[2]", value, true);
            row("aten.max_unpool2d.default(z, i, [2, 2])", "i64[1, 2, 1, 1]", value, true);
            row("aten.index.Tensor(x, [i])", "i64[2]", value, value >= 4);
            row("aten._unsafe_index.Tensor(x, [i])", "i64[2]", value, value >= 4);
            row("aten.index_put.default(x, [i], y)", "i64[2]", value, value >= 4);
        }
    }
    void indices() {
        QFETCH(QString, call);
        QFETCH(QString, index);
        QFETCH(int, value);
        QFETCH(bool, refused);
        auto module = std::make_shared<Module>(*moduleOf(("def forward(x: \"f32[4, 3]\", y: \"f32[2, 3]\", "
                                                          "z: \"f32[1, 2, 1, 1]\", i: \"" +
                                                          index + "\"):\n    r = " + call + "\n    return (r,)\n")
                                                             .toStdString()));
        std::vector<Tensor> inputs = drawnInputs(*module, 1);
        inputs[3] = Tensor::full(DType::I64, inputs[3].sizes(), Scalar(int64_t{0}));
        inputs[3].as<int64_t>()[1] = value;
        const auto expected = referenceOutputs(*module, inputs);
        QCOMPARE(!expected.has_value(), refused);
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QCOMPARE(!run.has_value(), refused);
        if (refused)
            QVERIFY2(run.error().message.find("out of range") != std::string::npos ||
                         run.error().message.find("is not one of") != std::string::npos,
                     run.error().text().c_str());
        else
            QVERIFY2(outputDifference(run->outputs, *expected).isEmpty(),
                     qPrintable(outputDifference(run->outputs, *expected)));
    }

    /// A kernel that meets a wrong value names the nodes that may have met it, of all that it computes.
    void kernelsNameTheNode_data() {
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("where");
        QTest::newRow("an index")
            << "a = aten.mul.Tensor(x, 2.0)\n    e = aten.embedding.default(a, i)\n    r = aten.add.Tensor(e, 1.0)"
            << "e (kernel0)";
        QTest::newRow("a divisor")
            << "a = aten.add.Tensor(i, 1)\n    d = aten.remainder.Tensor(a, i)\n    r = aten.mul.Tensor(d, 3)"
            << "d (kernel0)";
        QTest::newRow("either")
            << "e = aten.embedding.default(x, i)\n    f = aten.index_select.default(x, 0, i)\n    r = aten.add.Tensor(e, f)"
            << "e, f (kernel0)";
    }
    void kernelsNameTheNode() {
        QFETCH(QString, body);
        QFETCH(QString, where);
        const auto module = moduleOf(
            ("def forward(x: \"f32[4, 3]\", i: \"i64[2]\"):\n    " + body + "\n    return (r,)\n").toStdString());
        std::vector<Tensor> inputs = drawnInputs(*module, 1);
        inputs[1] = Tensor::full(DType::I64, {2}, Scalar(int64_t{0}));  // what a division may not meet
        if (body.contains("x, ")) inputs[1].as<int64_t>()[1] = 7;       // nor an index
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        QCOMPARE(program->info().kernels.size(), size_t(1));
        const auto run = runCpu(*program, inputs);
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().where, where.toStdString());
    }

    /// Integer division by zero is an error at any element, whoever reads the quotient, in vector lanes and outside.
    void divisions_data() {
        QTest::addColumn<QString>("body");
        QTest::addColumn<int>("zero");  // which element of y is 0, none below 0
        QTest::addColumn<bool>("refused");
        const auto row = [](const char* name, const char* body, int zero, bool refused) {
            QTest::newRow(name) << body << zero << refused;
        };
        const char* const iota =
            "i = prims.iota.default(67, start=%1, step=1, dtype=torch.int64, device=torch.device('cpu'), "
            "requires_grad=False)\n    ";
        const QString from0 = QString(iota).arg(0), from1 = QString(iota).arg(1);
        for (const char* call : {"remainder.Tensor(x, y)", "fmod.Tensor(x, y)", "floor_divide.default(x, y)",
                                 "div.Tensor_mode(x, y, rounding_mode='trunc')"})
            for (const int zero : {-1, 0, 37, 66})
                QTest::addRow("%s, %d", call, zero) << QString("r = aten.") + call << zero << (zero >= 0);
        row("what nobody reads", "d = aten.fmod.Tensor(x, y)\n    r = aten.slice.Tensor(d, 0, 0, 40)", 66, true);
        row("what no condition takes",
            "d = aten.remainder.Tensor(x, y)\n    n = aten.ne.Scalar(y, 0)\n    r = aten.where.self(n, d, x)", 66,
            true);
        row("times zero", "d = aten.remainder.Tensor(x, y)\n    r = aten.mul.Tensor(d, 0)", 5, true);
        QTest::newRow("an index by itself") << from0 + "r = aten.remainder.Tensor(i, i)" << -1 << true;
        QTest::newRow("an index by itself, from 1") << from1 + "r = aten.remainder.Tensor(i, i)" << -1 << false;
        QTest::newRow("an index in a longer row")
            << from1 + "d = aten.remainder.Tensor(x, i)\n    r = aten.constant_pad_nd.default(d, [1, -1], 9)" << -1
            << false;
        QTest::newRow("beside others") << "d = aten.remainder.Tensor(x, y)\n    r = aten.cat.default([d, x, y])" << -1
                                       << false;
        row("a constant", "z = aten.full.default([67], 0, dtype=torch.int64)\n    r = aten.fmod.Tensor(x, z)", -1,
            true);
        QTest::newRow("64 bits without a sign")
            << "u = prims.convert_element_type.default(x, torch.uint64)\n    d = aten.remainder.Scalar(u, -3)\n"
               "    e = aten.fmod.Scalar(u, -3)\n    f = aten.add.Tensor(d, e)\n"
               "    r = prims.convert_element_type.default(f, torch.int64)"
            << -1 << false;
    }
    void divisions() {
        QFETCH(QString, body);
        QFETCH(int, zero);
        QFETCH(bool, refused);
        const auto module = moduleOf(
            ("def forward(x: \"i64[67]\", y: \"i64[67]\"):\n    " + body + "\n    return (r,)\n").toStdString());
        std::vector<Tensor> inputs{Tensor::zeros(DType::I64, {67}), Tensor::zeros(DType::I64, {67})};
        for (int64_t i = 0; i < 67; ++i) {
            inputs[0].as<int64_t>()[i] = 7 * i - 91;
            inputs[1].as<int64_t>()[i] = i == zero ? 0 : i % 2 == 0 ? i + 1 : -i;
        }
        const auto expected = referenceOutputs(*module, inputs);
        QVERIFY2(expected.has_value() != refused, expected ? "ran" : expected.error().text().c_str());
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run.has_value() != refused, run ? "ran" : run.error().text().c_str());
        if (refused) QVERIFY2(run.error().message.find("by zero") != std::string::npos, run.error().text().c_str());
        else
            QVERIFY2(outputDifference(run->outputs, *expected).isEmpty(),
                     qPrintable(outputDifference(run->outputs, *expected)));
    }

    /// Of two zeros the first is the larger one and the smaller one, as in PyTorch (where long tensors are compared
    /// with vector instructions its own kernels keep the second): the result has the sign of x.
    void signsOfZero_data() {
        QTest::addColumn<QString>("call");
        QTest::addColumn<bool>("keeps");
        for (const char* call : {"relu.default(x)", "relu6.default(x)", "leaky_relu.default(x)",
                                 "maximum.default(x, y)", "minimum.default(x, y)", "clamp.default(x, 0.0, 1.0)",
                                 "clamp.default(x, -1.0, -0.0)", "clamp.Tensor(x, y, None)", "clamp.Tensor(x, None, y)",
                                 "clamp_min.default(x, -0.0)", "clamp_max.default(x, 0.0)", "clamp_min.Tensor(x, y)",
                                 "clamp_max.Tensor(x, y)", "hardtanh.default(x, -0.0, 1.0)", "hardswish.default(x)"})
            QTest::newRow(call) << call << true;
        QTest::newRow("threshold") << "threshold.default(x, 0, 0.0)" << false;
    }
    void signsOfZero() {
        QFETCH(QString, call);
        QFETCH(bool, keeps);
        const auto module =
            moduleOf(("def forward(x: \"f32[20]\", y: \"f32[20]\"):\n    r = aten." + call + "\n    return (r, y)\n")
                         .toStdString());
        std::vector<Tensor> inputs = {Tensor::empty(DType::F32, {20}), Tensor::empty(DType::F32, {20})};
        for (int i = 0; i < 20; ++i) {  // whole vectors and a rest, every order of signs
            inputs[0].as<float>()[i] = i & 1 ? -0.0f : 0.0f;
            inputs[1].as<float>()[i] = i & 2 ? -0.0f : 0.0f;
        }
        const auto program = buildCpu(module);
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto compiled = runCpu(*program, inputs);
        const auto reference = referenceOutputs(*module, inputs);
        QVERIFY(compiled.has_value() && reference.has_value());
        for (const Tensor& result : {compiled->outputs[0], (*reference)[0]})
            for (int i = 0; i < 20; ++i) {
                const float value = result.as<float>()[i];
                QVERIFY2(value == 0 && std::signbit(value) == (keeps && i & 1), qPrintable(QString::number(i)));
            }
    }

    /// Half floats are computed in float and rounded by the store: a value may leave their range and come back inside a
    /// kernel. The reference rounds every result.
    void halfFloatsAreRoundedWhereTheyAreStored() {
        const auto module = moduleOf(R"(def forward(x: "f16[3]"):
    a = aten.mul.Tensor(x, 2)
    b = aten.div.Tensor(a, 2)
    return (a, b))");
        const std::vector<Tensor> inputs = {Tensor::full(DType::F16, {3}, 60000.0)};
        const auto expected = referenceOutputs(*module, inputs);
        const auto program = buildCpu(module);
        QVERIFY(expected.has_value() && program.has_value());
        const auto run = runCpu(*program, inputs);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(std::isinf(toDouble((*expected)[0].item())) && std::isinf(toDouble((*expected)[1].item())));
        QVERIFY(std::isinf(toDouble(run->outputs[0].item())));
        QCOMPARE(toDouble(run->outputs[1].item()), 60000.0);
    }

    /// Kernels read views at addresses: one that leads outside of its memory is refused when the program is built.
    void viewsOutside_data() {
        QTest::addColumn<QString>("body");
        QTest::newRow("of an input") << "v: \"f32[4][5]\" = aten.as_strided.default(x, [4], [5])";
        QTest::newRow("of a view of it")
            << "p = aten.slice.Tensor(x, 0, 2, 4)\n    v: \"f32[4][1]\" = aten.as_strided.default(p, [4], [1], 3)";
        QTest::newRow("of a result")
            << "p = aten.mul.Tensor(x, 2)\n    v: \"f32[7][1]\" = aten.as_strided.default(p, [7], [1])";
        QTest::newRow("written larger than it is") << "v: \"f32[600]\" = aten.relu.default(x)";
    }
    void viewsOutside() {
        QFETCH(QString, body);
        const auto program = buildCpu(
            moduleOf(("def forward(x: \"f32[6]\"):\n    " + body + "\n    y = aten.exp.default(v)\n    return (y,)\n")
                         .toStdString()));
        QVERIFY(!program.has_value());
        QVERIFY2(program.error().where == "v", program.error().text().c_str());
    }
};

CUTAWAY_SUITE(CpuLimitsTest)
#include "cpu_limits_test.moc"
