// How far functions in generated code are from the truth, over the whole range of numbers: within the bounds below, in
// units of the last place, for f32 and f64. `vector_math_test -v1` prints what was measured.
#include <QtTest>
#include <cmath>
#include <limits>

#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/schedule/schedule.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

using Wide = long double;  // 64 bits of mantissa: the truth for f64, too

struct Function {
    const char* op;
    Wide (*exact)(Wide);
    double ulps32, ulps64;
    bool flushes = false;  // results below the normal range may be 0: on the way to them exp(-x) is infinite
};
Wide sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
constexpr Function kFunctions[] = {
    {"exp", std::exp, 1.5, 1},
    {"exp2", std::exp2, 1, 1},
    {"expm1", std::expm1, 2, 1},
    {"log", std::log, 1, 1},
    {"log2", std::log2, 2, 1},
    {"log10", std::log10, 2.5, 2},
    {"log1p", std::log1p, 2, 1},
    {"sqrt", std::sqrt, 0.5, 0.501},
    {"rsqrt", [](Wide x) { return 1 / std::sqrt(x); }, 1.5, 1.5},
    {"sin", std::sin, 2, 1},
    {"cos", std::cos, 2, 1},
    {"tan", std::tan, 3.5, 1},
    {"asin", std::asin, 3, 1},
    {"acos", std::acos, 2.5, 1},
    {"atan", std::atan, 2, 1},
    {"sinh", std::sinh, 2, 2},
    {"cosh", std::cosh, 2.5, 1},
    {"tanh", std::tanh, 2.5, 2.5},
    {"asinh", std::asinh, 2, 2},
    {"acosh", std::acosh, 2.5, 2},
    {"atanh", std::atanh, 2, 2},
    {"erf", std::erf, 5, 1},
    {"erfc", std::erfc, 3, 3},
    {"sigmoid", sigmoid, 2, 2, true},
    {"floor", std::floor, 0, 0},
    {"ceil", std::ceil, 0, 0},
    {"trunc", std::trunc, 0, 0},
    {"round", std::nearbyint, 0, 0},
    {"abs", std::fabs, 0, 0},
    {"neg", [](Wide x) { return -x; }, 0, 0},
};

/// Bit patterns spread over all numbers, a dense middle, and special ones.
template <class T>
std::vector<T> allKinds() {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    std::vector<T> values = {0.f,     -0.f,   1.f,   -1.f,     0.5f,       -0.5f,     2.f,    1e-30f,
                             -1e-30f, 1e-42f, 88.f,  88.8f,    89.f,       -87.f,     -88.f,  -103.f,
                             -104.f,  -105.f, 1e30f, -1e30f,   2.5f,       3.5f,      -2.5f,  -0.3f,
                             1e-8f,   3.9f,   4.1f,  -3.9f,    8388607.5f, 8388609.f, 709.5f, -745.f,
                             -708.f,  11.25f, -9.f,  INFINITY, -INFINITY,  float(NAN)};
    for (uint64_t i = 0; i < 60000; ++i) {
        const Bits bits = static_cast<Bits>(i * (sizeof(T) == 4 ? 71573u : 307400021093511ull) + 12345u);
        T value;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
    }
    for (int i = 0; i < 40000; ++i) values.push_back(static_cast<T>(i - 20000) / static_cast<T>(1999));
    return values;
}

struct Measured {
    double worst = 0, at = 0;
    QString wrong;  // where infinities, signs of zero or NaN are not what they should be
};
template <class T>
Measured measure(const Function& function, const std::vector<T>& x, const T* y) {
    Measured found;
    for (size_t i = 0; i < x.size(); ++i) {
        const Wide wanted = function.exact(x[i]);
        const T rounded = static_cast<T>(wanted);
        const auto say = [&] {
            if (found.wrong.isEmpty())
                found.wrong = QString("%1(%2) = %3, not %4")
                                  .arg(function.op)
                                  .arg(static_cast<double>(x[i]), 0, 'g', 17)
                                  .arg(static_cast<double>(y[i]), 0, 'g', 17)
                                  .arg(static_cast<double>(rounded), 0, 'g', 17);
        };
        if (std::isnan(wanted) || std::isinf(rounded) || std::isinf(y[i]) || std::isnan(y[i])) {
            // The largest number and infinity may be taken for each other where the result is about as large.
            const bool border = std::isinf(rounded) != std::isinf(y[i]) && !std::isnan(y[i]) &&
                                std::fabs(wanted) > std::numeric_limits<T>::max() * Wide(0.9999);
            if (std::isnan(wanted) ? !std::isnan(y[i]) : y[i] != rounded && !border) say();
            continue;
        }
        if (function.ulps32 == 0 && (y[i] != rounded || std::signbit(y[i]) != std::signbit(rounded))) say();
        if (function.flushes && std::fabs(wanted) < std::numeric_limits<T>::min() && y[i] == 0) continue;
        // Below the normal range the unit is that of the smallest normal number.
        const Wide size = std::max(std::fabs(wanted), static_cast<Wide>(std::numeric_limits<T>::min()));
        const Wide unit = std::ldexp(Wide(1), std::ilogb(size) - std::numeric_limits<T>::digits + 1);
        const auto ulps = static_cast<double>(std::fabs(y[i] - wanted) / unit);
        if (ulps > found.worst) {
            found.worst = ulps;
            found.at = static_cast<double>(x[i]);
        }
    }
    return found;
}

/// All functions of the same numbers, as one program; its results in the order of kFunctions.
std::vector<Tensor> computed(const char* type, const Tensor& x) {
    std::string text = std::string("def forward(x: \"") + type + "[" + std::to_string(x.numel()) + "]\"):\n", results;
    for (const Function& function : kFunctions) {
        text += std::string("    y_") + function.op + " = aten." + function.op + ".default(x)\n";
        results += std::string("y_") + function.op + ", ";
    }
    const auto module = moduleOf(text + "    return (" + results + ")");
    const auto schedule = scheduleModule(module, kCpuTarget);
    for (const ScheduledCall& call : schedule->calls)
        if (call.kind != CallKind::Kernel) throw std::runtime_error("no kernel computes " + call.node->name());
    const auto program = buildCpu(module);
    if (!program) throw std::runtime_error(program.error().text());
    auto run = runCpu(*program, {x});
    if (!run) throw std::runtime_error(run.error().text());
    return run->outputs;
}

}  // namespace

class VectorMathTest : public QObject {
    Q_OBJECT

    std::vector<Tensor> m_outputs32, m_outputs64;
    std::vector<float> m_x32 = allKinds<float>();
    std::vector<double> m_x64 = allKinds<double>();

    template <class T>
    static Tensor tensorOf(DType dtype, const std::vector<T>& values) {
        Tensor tensor = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
        std::memcpy(tensor.data(), values.data(), values.size() * sizeof(T));
        return tensor;
    }

  private slots:
    void initTestCase() {
        m_outputs32 = computed("f32", tensorOf(DType::F32, m_x32));
        m_outputs64 = computed("f64", tensorOf(DType::F64, m_x64));
    }
    void functions_data() {
        QTest::addColumn<int>("number");
        QTest::addColumn<bool>("wide");
        for (size_t i = 0; i < std::size(kFunctions); ++i)
            for (const bool wide : {false, true})
                QTest::addRow("%s %s", kFunctions[i].op, wide ? "f64" : "f32") << static_cast<int>(i) << wide;
    }
    void functions() {
        QFETCH(int, number);
        QFETCH(bool, wide);
        const Function& function = kFunctions[number];
        const size_t at = static_cast<size_t>(number);
        const Measured found = wide ? measure(function, m_x64, m_outputs64[at].as<double>())
                                    : measure(function, m_x32, m_outputs32[at].as<float>());
        qInfo("%s %s: %.3f ulps at %.9g", function.op, wide ? "f64" : "f32", found.worst, found.at);
        QVERIFY2(found.wrong.isEmpty(), qPrintable(found.wrong));
        QVERIFY2(found.worst <= (wide ? function.ulps64 : function.ulps32),
                 qPrintable(QString("%1 ulps at %2").arg(found.worst).arg(found.at, 0, 'g', 17)));
    }
};

CUTAWAY_SUITE(VectorMathTest)
#include "vector_math_test.moc"
