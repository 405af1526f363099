// Numbers in which a GPU's answer is not the CPU's, compiled and run on the GPU of this machine: what eager
// PyTorch 2.11 gives there (an H200, CUDA 13.0). Without a GPU the rows skip.
#include <QtTest>
#include <cmath>
#include <limits>

#include "engine/ops/packed.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/runtime/cuda/requests.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

struct Numbers {
    const char* name;
    DType dtype;  // of x and y
    std::vector<double> x, y;
    const char* statements;  // that give z
    std::vector<double> expected;
};

const std::vector<Numbers>& rows() {
    static const std::vector<Numbers> all = {
        {"f32 to u8",
         DType::F32,
         {kInf, 1e19, 3e9, 65536.5, -1.5, 300.7},
         {},
         "z = prims.convert_element_type.default(x, torch.uint8)",
         {255, 255, 0, 0, 255, 44}},
        {"f64 to u8",
         DType::F64,
         {kInf, 1e19, 3e9, 65536.5, -1.5, 300.7},
         {},
         "z = prims.convert_element_type.default(x, torch.uint8)",
         {255, 255, 0, 0, 255, 44}},
        {"f32 to i8",
         DType::F32,
         {kInf, 1e19, 3e9, 200.9},
         {},
         "z = prims.convert_element_type.default(x, torch.int8)",
         {-1, -1, -1, -56}},
        {"f32 to i16",
         DType::F32,
         {kInf, 3e9, -kInf, 65536.5},
         {},
         "z = prims.convert_element_type.default(x, torch.int16)",
         {-1, -1, 0, 0}},
        {"f32 to i32",
         DType::F32,
         {kNan, kInf, -kInf, 3e9, -3e9},
         {},
         "z = prims.convert_element_type.default(x, torch.int32)",
         {0, 2147483647., -2147483648., 2147483647., -2147483648.}},
        {"f64 to i32",
         DType::F64,
         {kNan, kInf},
         {},
         "z = prims.convert_element_type.default(x, torch.int32)",
         {-2147483648., 2147483647.}},
        {"f64 to i16", DType::F64, {kNan}, {}, "z = prims.convert_element_type.default(x, torch.int16)", {0}},
        {"f32 to i64",
         DType::F32,
         {kNan, -kInf},
         {},
         "z = prims.convert_element_type.default(x, torch.int64)",
         {-9223372036854775808., -9223372036854775808.}},
        {"f32 to u16",
         DType::F32,
         {-1.5, kInf, 3e9},
         {},
         "z = prims.convert_element_type.default(x, torch.uint16)",
         {0, 65535, 24064}},
        {"f32 to u32",
         DType::F32,
         {kNan, kInf, -1.5},
         {},
         "z = prims.convert_element_type.default(x, torch.uint32)",
         {0, 4294967295., 0}},
        {"floor division subtracts the remainder first",
         DType::F32,
         {1, -5, 7},
         {0.1, kInf, -2},
         "z = aten.div.Tensor_mode(x, y, rounding_mode = 'floor')",
         {9, -1, -4}},
        {"small numbers stay in a root's reciprocal",
         DType::F32,
         {1e-40},
         {},
         "z = aten.rsqrt.default(x)",
         {1.0000026588687840e20}},
        {"the next number after 0", DType::F32, {0}, {1}, "z = aten.nextafter.default(x, y)", {1.401298464324817e-45}},
        {"of zeros the positive is larger",
         DType::F32,
         {0., -0., 0.},
         {-0., 0., 0.},
         "m = aten.maximum.default(x, y); z = aten.reciprocal.default(m)",
         {kInf, kInf, kInf}},
        {"of zeros the negative is smaller",
         DType::F32,
         {0., -0.},
         {-0., 0.},
         "m = aten.minimum.default(x, y); z = aten.reciprocal.default(m)",
         {-kInf, -kInf}},
        {"a remainder of -0",
         DType::F32,
         {-0.},
         {3},
         "m = aten.remainder.Tensor(x, y); z = aten.reciprocal.default(m)",
         {-kInf}},
        {"rounded to places", DType::F32, {2.675}, {}, "z = aten.round.decimals(x, decimals = 2)", {2.68f}},
        {"two roundings in a product with a sum",
         DType::F32,
         {1 + 0x1p-12},
         {-1},
         "m = aten.mul.Tensor(x, x); z = aten.add.Tensor(m, y)",
         {0x1p-11}},
        {"NaN lies past the end", DType::F32, {kNan, 0.5}, {0, 1}, "z = aten.bucketize.Tensor(x, y)", {2, 1}},
        {"extremes of equals are the last",
         DType::F32,
         {1, 3, 3, 2},
         {},
         "t = aten.cummax.default(x, 0); z = operator.getitem(t, 1)",
         {0, 1, 2, 2}},
        {"the first of equals is the largest", DType::F32, {1, 3, 3, 2}, {}, "z = aten.argmax.default(x, 0)", {1}},
        {"a variance far from 0",
         DType::F32,
         {10000, 10001, 10002, 10003},
         {},
         "z = aten.var.correction(x, [0], correction = 1)",
         {1.6666666}},
    };
    return all;
}

Tensor tensorOf(DType dtype, const std::vector<double>& values) {
    Tensor tensor = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
    unpackElements(values, tensor);
    return tensor;
}

bool same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 2e-7 * std::abs(b);
}

}  // namespace

class GpuNumbersTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() {
        const auto found = findCuda();
        if (!found || found->device.empty()) QSKIP("this machine has no GPU");
    }
    void numbers_data() {
        QTest::addColumn<int>("row");
        for (size_t i = 0; i < rows().size(); ++i) QTest::newRow(rows()[i].name) << static_cast<int>(i);
    }
    void numbers() {
        QFETCH(int, row);
        const Numbers& one = rows()[static_cast<size_t>(row)];
        const std::string type = std::string(info(one.dtype).abbreviation);
        std::string inputs = "x: \"" + type + "[" + std::to_string(one.x.size()) + "]\"";
        std::vector<Tensor> values{tensorOf(one.dtype, one.x)};
        if (!one.y.empty()) {
            inputs += ", y: \"" + type + "[" + std::to_string(one.y.size()) + "]\"";
            values.push_back(tensorOf(one.dtype, one.y));
        }
        const auto module = moduleOf(inputs, std::string(one.statements) + "; return z");
        CpuBuildOptions build;
        build.target = &kH100Target;
        const auto program = buildCpu(module, build);
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, values);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        for (size_t i = 0; i < one.expected.size(); ++i) {
            const double actual = toDouble(run->outputs[0].item(static_cast<int64_t>(i)));
            QVERIFY2(same(actual, one.expected[i]), ("element " + std::to_string(i) + " is " + std::to_string(actual) +
                                                     " instead of " + std::to_string(one.expected[i]))
                                                        .c_str());
        }
    }
};

CUTAWAY_SUITE(GpuNumbersTest)
#include "gpu_numbers_test.moc"
