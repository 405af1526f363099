// How far functions in generated code are from the truth, over the whole range of numbers: within the bounds below, in
// units of the last place, for f32 and f64. `vector_math_test -v1` prints what was measured.
#include <QtTest>
#include <cmath>
#include <limits>
#include <numbers>

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
/// By Newton's method from what f64 can say.
Wide inverseErf(Wide y) {
    if (!(y > -1 && y < 1)) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
    const Wide a = std::fabs(y), w = std::log((1 - a) * (1 + a)), t = 4.330746750799873L + w / 2;
    Wide x = std::sqrt(std::sqrt(t * t - w / 0.147L) - t);
    for (int step = 0; step < 8; ++step) {
        const Wide apart = a < 0.5L ? std::erf(x) - a : (1 - a) - std::erfc(x);
        const Wide by = apart / (std::numbers::inv_sqrtpi_v<Wide> * 2 * std::exp(-x * x));
        x -= by / (1 + x * by);
    }
    return a == 0 ? y : std::copysign(x, y);
}
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
    {"lgamma", std::lgamma, 2, 10},
    {"erfinv", inverseErf, 1, 25},
    {"floor", std::floor, 0, 0},
    {"ceil", std::ceil, 0, 0},
    {"trunc", std::trunc, 0, 0},
    {"round", std::nearbyint, 0, 0},
    {"abs", std::fabs, 0, 0},
    {"neg", [](Wide x) { return -x; }, 0, 0},
};

/// Functions of two numbers that have no error at all.
struct PairFunction {
    const char* op;
    double (*exact)(double, double);
    float (*exact32)(float, float);
};
template <class T>
T floorRemainder(T a, T b) {
    const T m = std::fmod(a, b);
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}
constexpr PairFunction kPairFunctions[] = {
    {"fmod.Tensor", std::fmod, std::fmod},
    {"remainder.Tensor", floorRemainder, floorRemainder},
    {"nextafter.default", std::nextafter, std::nextafter},
    {"copysign.Tensor", std::copysign, std::copysign},
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
std::string textOfAll(const std::string& type) {
    std::string text = "def forward(x: \"" + type + "\"):\n", results;
    for (const Function& function : kFunctions) {
        text += std::string("    y_") + function.op + " = aten." + function.op + ".default(x)\n";
        results += std::string("y_") + function.op + ", ";
    }
    return text + "    return (" + results + ")";
}
std::vector<Tensor> computed(const std::string& text, const std::vector<Tensor>& inputs) {
    const auto module = moduleOf(text);
    const auto schedule = scheduleModule(module, kCpuTarget);
    for (const ScheduledCall& call : schedule->calls)
        if (call.kind != CallKind::Kernel) throw std::runtime_error("no kernel computes " + call.node->name());
    const auto program = buildCpu(module);
    if (!program) throw std::runtime_error(program.error().text());
    auto run = runCpu(*program, inputs);
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

    /// The first by the second, which is the first in another order: large by small, both signs, NaN.
    template <class T>
    static void compareExact(const PairFunction& function, DType dtype, const std::vector<T>& x) {
        std::vector<T> y(x.size());
        for (size_t i = 0; i < x.size(); ++i)
            y[i] = i % 3 == 0 ? x[(i * 7919 + 13) % x.size()] : x[(i + i % 64) % x.size()];
        const std::string type = (sizeof(T) == 4 ? "f32[" : "f64[") + std::to_string(x.size()) + "]";
        const auto made = computed("def forward(x: \"" + type + "\", y: \"" + type + "\"):\n    r = aten." +
                                       function.op + "(x, y)\n    return (r,)",
                                   {tensorOf(dtype, x), tensorOf(dtype, y)});
        for (size_t i = 0; i < x.size(); ++i) {
            T wanted;
            if constexpr (sizeof(T) == 4) wanted = function.exact32(x[i], y[i]);
            else wanted = function.exact(x[i], y[i]);
            const T got = made[0].template as<T>()[i];
            const bool same = std::isnan(wanted) ? std::isnan(got) : std::memcmp(&wanted, &got, sizeof(T)) == 0;
            QVERIFY2(same, qPrintable(QString("%1(%2, %3) = %4, not %5")
                                          .arg(function.op)
                                          .arg(static_cast<double>(x[i]), 0, 'g', 17)
                                          .arg(static_cast<double>(y[i]), 0, 'g', 17)
                                          .arg(static_cast<double>(got), 0, 'g', 17)
                                          .arg(static_cast<double>(wanted), 0, 'g', 17)));
        }
    }

  private slots:
    void pairs_data() {
        QTest::addColumn<int>("number");
        for (size_t i = 0; i < std::size(kPairFunctions); ++i)
            QTest::addRow("%s", kPairFunctions[i].op) << static_cast<int>(i);
    }
    void pairs() {
        QFETCH(int, number);
        compareExact(kPairFunctions[number], DType::F32, m_x32);
        if (!QTest::currentTestFailed()) compareExact(kPairFunctions[number], DType::F64, m_x64);
    }
    void initTestCase() {
        m_outputs32 = computed(textOfAll("f32[" + std::to_string(m_x32.size()) + "]"), {tensorOf(DType::F32, m_x32)});
        m_outputs64 = computed(textOfAll("f64[" + std::to_string(m_x64.size()) + "]"), {tensorOf(DType::F64, m_x64)});
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
