// Generated C++: conversions of half-precision numbers bit by bit, and accuracy of long sums. Functions have a test of
// their own (vector_math_test).
#include <QtTest>
#include <cmath>
#include <limits>

#include "engine/interpret/interpret.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/tensor/compare.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Bit patterns spread over all floats, and the special ones.
Tensor allKindsOfFloats() {
    std::vector<float> values = {0.f,    -0.f,   1.f,      -1.f,      0.5f,  -0.5f,      2.f,       1e-30f, -1e-30f,
                                 1e-42f, 88.f,   88.8f,    89.f,      -87.f, -88.f,      -103.f,    -104.f, -105.f,
                                 1e30f,  -1e30f, INFINITY, -INFINITY, NAN,   8388607.5f, 8388609.f, 2.5f,   3.5f,
                                 -2.5f,  -0.3f,  1e-8f,    3.9f,      4.1f,  -3.9f};
    for (uint32_t i = 0; i < 60000; ++i) {
        const uint32_t bits = i * 71573u + 12345u;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
    }
    for (int i = 0; i < 40000; ++i) values.push_back(static_cast<float>(i - 20000) / 1999.f);
    Tensor tensor = Tensor::empty(DType::F32, {static_cast<int64_t>(values.size())});
    std::memcpy(tensor.data(), values.data(), values.size() * sizeof(float));
    return tensor;
}

}  // namespace

class CodegenTest : public QObject {
    Q_OBJECT

  private slots:
    /// A float that became an integer has no zero with a sign.
    void integersHaveOneZero() {
        const auto program = buildCpu(
            moduleOf("def forward(x: \"f32[1]\"):\n    i = prims.convert_element_type.default(x, torch.int64)\n"
                     "    r = aten.reciprocal.default(i)\n    return (r,)"));
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        Tensor x = Tensor::zeros(DType::F32, {1});
        x.as<float>()[0] = -0.5f;
        const auto run = runCpu(*program, {x});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(run->outputs[0].as<float>()[0], INFINITY);
    }

    void halfConversions_data() {
        QTest::addColumn<QString>("type");
        QTest::newRow("f16") << "f16";
        QTest::newRow("bf16") << "bf16";
    }
    /// All 65536 patterns in, f32 rounded back out.
    void halfConversions() {
        QFETCH(QString, type);
        const bool f16 = type == "f16";
        const DType dtype = f16 ? DType::F16 : DType::BF16;
        Tensor bits = Tensor::empty(dtype, {65536});
        for (int i = 0; i < 65536; ++i) bits.as<uint16_t>()[i] = static_cast<uint16_t>(i);
        const std::string name = f16 ? "torch.float16" : "torch.bfloat16";
        const auto program = buildCpu(moduleOf("def forward(x: \"" + type.toStdString() +
                                               "[65536]\", z: \"f32[100040]\"):\n"
                                               "    w = prims.convert_element_type.default(x, torch.float32)\n"
                                               "    n = prims.convert_element_type.default(z, " +
                                               name + ")\n    return (w, n)"));
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        Tensor floats = Tensor::zeros(DType::F32, {100040});
        const Tensor all = allKindsOfFloats();
        std::memcpy(floats.data(), all.data(), std::min(all.bytes(), floats.bytes()));
        const auto run = runCpu(*program, {bits, floats});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        for (int i = 0; i < 65536; ++i) {
            const float wanted = f16 ? halfToFloat(static_cast<uint16_t>(i)) : bfloatToFloat(static_cast<uint16_t>(i)),
                        got = run->outputs[0].as<float>()[i];
            QVERIFY2(std::isnan(wanted) ? std::isnan(got) : std::memcmp(&wanted, &got, 4) == 0,
                     qPrintable(QString("pattern %1: %2, not %3").arg(i).arg(got).arg(wanted)));
        }
        for (int64_t i = 0; i < floats.numel(); ++i) {
            const float in = floats.as<float>()[i];
            const uint16_t wanted = f16 ? floatToHalf(in) : floatToBfloat(in), got = run->outputs[1].as<uint16_t>()[i];
            if (std::isnan(in)) continue;
            QVERIFY2(wanted == got, qPrintable(QString("%1: %2, not %3").arg(in).arg(got).arg(wanted)));
        }
    }

    void longSumsAreExactToRounding() {
        // 0.1 a million times: adding one after the other in f32 would be off in the second digit.
        const auto program =
            buildCpu(moduleOf("def forward(x: \"f32[1000000]\"):\n    y = aten.sum.default(x)\n    return (y,)"));
        QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, {Tensor::full(DType::F32, {1000000}, 0.1)});
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(run->outputs[0].as<float>()[0], static_cast<float>(static_cast<double>(0.1f) * 1e6));
    }

    void castsAreEmulated_data() {
        QTest::addColumn<QString>("type");
        QTest::newRow("f16") << "f16";
        QTest::newRow("bf16") << "bf16";
    }
    /// With emulate_precision_casts a fused kernel has the bits of its calls one by one; without, fewer roundings.
    void castsAreEmulated() {
        QFETCH(QString, type);
        const std::string one = "\"" + type.toStdString() + "[64, 40]\"", row = "\"" + type.toStdString() + "[40]\"";
        const auto module = moduleOf("def forward(x: " + one + ", y: " + one + ", z: " + row +
                                     "):\n"
                                     "    a = aten.mul.Tensor(x, y)\n"
                                     "    b = aten.add.Tensor(a, z)\n"
                                     "    c = aten.div.Tensor(a, b)\n"
                                     "    d = aten.sub.Tensor(c, x)\n"
                                     "    e = aten.relu.default(d)\n"
                                     "    f = aten.amax.default(e, [1], True)\n"
                                     "    g = aten.mul.Tensor(d, f)\n"
                                     "    return (g, e)");
        const DType dtype = type == "f16" ? DType::F16 : DType::BF16;
        std::vector<Tensor> inputs;
        for (const Dims& sizes : {Dims{64, 40}, Dims{64, 40}, Dims{40}}) {
            Tensor input = Tensor::empty(dtype, sizes);
            for (int64_t i = 0; i < input.numel(); ++i) {
                const auto value = static_cast<float>(std::sin(static_cast<double>(i * 37 + sizes[0])) * 3);
                input.as<uint16_t>()[i] = dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
            }
            inputs.push_back(input);
        }
        const auto expected = interpret(*module, inputs);
        QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
        for (const char* const asked : {"true", "false"}) {
            const auto request = parseRequest(std::string("--enable fusion=emulate_precision_casts:") + asked);
            QVERIFY2(request.has_value(), request ? "" : request.error().text().c_str());
            const auto trace = runPipeline(module, *request, {.cacheFile = "off"}, {});
            QVERIFY2(trace && !trace->failed(), trace ? "" : trace.error().text().c_str());
            const auto program = buildCpu(trace->resultOf("main"));
            QVERIFY2(program.has_value(), program ? "" : program.error().text().c_str());
            QCOMPARE(program->info().kernels.size(), size_t(1));
            const auto run = runCpu(*program, inputs);
            QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
            const bool same = sameBits(run->outputs[0], (*expected)[0]) && sameBits(run->outputs[1], (*expected)[1]);
            QCOMPARE(same, qstrcmp(asked, "true") == 0);
        }
    }

    /// In the graphs that calls run, too, and where nothing shares a kernel.
    void castsAreEmulatedInBranches() {
        const auto module = moduleOf(
            "def forward(p: \"b8[]\", x: \"bf16[9]\"):\n"
            "    c = higher_order.cond(p, yes, no, [x])\n    r: \"bf16[9]\" = c[0]\n    return (r,)\n\n"
            "def yes(x: \"bf16[9]\"):\n    a: \"bf16[9]\" = aten.mul.Tensor(x, x)\n"
            "    b: \"bf16[9]\" = aten.add.Tensor(a, x)\n    return (b,)\n\n"
            "def no(x: \"bf16[9]\"):\n    a: \"bf16[9]\" = aten.neg.default(x)\n    return (a,)\n");
        for (const char* const asked : {"true", "false"}) {
            const auto request = parseRequest(std::string("--enable fusion=emulate_precision_casts:") + asked);
            const auto trace = runPipeline(module, *request, {.cacheFile = "off"}, {});
            QVERIFY2(trace && !trace->failed(), trace ? trace->steps.back().info.error.c_str() : "");
            const auto info = previewCpu(trace->resultOf("main"));
            QVERIFY2(info.has_value(), info ? "" : info.error().text().c_str());
            QCOMPARE(info->source.find("round_bf16((") != std::string::npos, qstrcmp(asked, "true") == 0);
        }
    }

    void generatedCodeIncludesNothing() {
        const auto info =
            previewCpu(moduleOf("def forward(x: \"bf16[10]\"):\n    y = aten.exp.default(x)\n    return (y,)"));
        QVERIFY(info.has_value());
        QVERIFY(info->source.find("#include") == std::string::npos);
        // Helpers only where used.
        QVERIFY(info->source.find("f_exp") != std::string::npos);
        QVERIFY(info->source.find("f_erf") == std::string::npos);
    }
};

CUTAWAY_SUITE(CodegenTest)
#include "codegen_test.moc"
