// Symbolic sizes: what simplifies, which are equal, and which is at most which. A wrong answer makes a graph wrong at
// other sizes, so whatever is claimed is also held against numbers.
#include <QtTest>
#include <random>

#include "engine/expr/expr_parse.h"
#include "engine/expr/polynomial.h"
#include "engine/ops/infer_rules.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

SymInt size(const QString& text) {
    auto expr = parseExpr(text.toStdString());
    if (!expr) qFatal("%s", expr.error().text().c_str());
    return SymInt(*expr);
}

class RandomSizes {
  public:
    explicit RandomSizes(uint64_t seed) : m_bits(seed) {}
    int64_t below(int64_t count) { return static_cast<int64_t>(m_bits() % static_cast<uint64_t>(count)); }
    Expr expr(int depth) {
        if (depth == 0 || below(4) == 0) {
            static constexpr const char* kNames[] = {"s0", "s1", "u0", "i"};
            return below(3) == 0 ? Expr::integer(below(9) - 3) : Expr::symbol(kNames[below(4)]);
        }
        static constexpr ExprKind kKinds[] = {ExprKind::Add, ExprKind::Sub, ExprKind::Mul,      ExprKind::Mul,
                                              ExprKind::Min, ExprKind::Max, ExprKind::FloorDiv, ExprKind::Mod};
        const ExprKind kind = kKinds[below(8)];
        if (kind == ExprKind::FloorDiv || kind == ExprKind::Mod)
            return Expr::make(kind, {expr(depth - 1), below(2) ? Expr::integer(1 + below(6)) : Expr::symbol("s1")});
        return Expr::make(kind, {expr(depth - 1), expr(depth - 1)});
    }
    /// Numbers as sizes have them: at least 1 for backed ones.
    std::map<std::string, int64_t> values() {
        return {{"s0", 1 + below(12)}, {"s1", 1 + below(12)}, {"u0", below(12)}, {"i", below(12)}};
    }

  private:
    std::mt19937_64 m_bits;
};

int64_t valueOf(const Expr& expr, const std::map<std::string, int64_t>& values) {
    const Expr number = substitute(expr, [&](const std::string& name) { return Expr::integer(values.at(name)); });
    if (!number.asInt()) qFatal("%s is not a number", text(number).c_str());
    return *number.asInt();
}

}  // namespace

class SizesTest : public QObject {
    Q_OBJECT

  private slots:
    void simplifies_data() {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        const auto row = [](const char* from, const char* to) { QTest::newRow(from) << from << to; };
        row("(32*s0*s1)//(8*s0*s1)", "4");  // view(s0, s1, -1, 8) of [s0, s1, 32]
        row("(s0*s1 + s0)//(s1 + 1)", "s0");
        row("(s0*s0 - 1)//(s0 + 1)", "s0 - 1");
        row("(6*s0*s1)//(4*s0)", "(3*s1)//2");
        row("(s0*s1)//(s0*s2)", "s1//s2");
        row("Mod(12*s0*s1, 4*s1)", "0");
        row("Mod(s0 + 1, s1)", "Mod(s0 + 1, s1)");
        row("Max(1, s0)", "s0");  // sizes of inputs are at least 1
        row("Max(0, u0)", "u0");
        row("Max(1, u0)", "Max(1, u0)");  // what depends on data may be empty
        row("Min(s0, s0 + 3)", "s0");
        row("Min(s0*s1, s0)", "s0");
        row("Max(s0, s1)", "Max(s0, s1)");
        row("(2*s0 + 1)//2", "s0");
        row("7//s0", "7//s0");
        row("Piecewise((1, s0 <= 100), (2, True))", "Where(s0 <= 100, 1, 2)");
        row("Piecewise(ExprCondPair(Integer(1), LessThan(Symbol('s0'), Integer(100))), ExprCondPair(Integer(2), true))",
            "Where(s0 <= 100, 1, 2)");
        row("Piecewise((s0, s0 < 4), (4, s0 < 8), (8, True))", "Where(s0 < 4, s0, Where(s0 < 8, 4, 8))");
    }
    void simplifies() {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QCOMPARE(size(from).text(), size(to).text());
    }

    /// Sizes that a graph computes through floats, as graphs print them.
    void printedAndReadAlike_data() {
        QTest::addColumn<QString>("printed");
        for (const char* function : {"trunc", "floor", "ceil"})
            QTest::newRow(function) << QString("i64(%1(f64(s0)*0.5))").arg(function);
        for (const char* function :
             {"sqrt", "exp", "log", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "abs"})
            QTest::newRow(function) << QString("%1(f64(s0)*0.5)").arg(function);
        QTest::newRow("PyTorch's floor") << "floor(s0*0.5)";
    }
    void printedAndReadAlike() {
        QFETCH(QString, printed);
        const auto read = parseExpr(printed.toStdString());
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        const auto again = parseExpr(text(*read));
        QVERIFY(again && *again == *read);
        if (!printed.startsWith("floor")) QCOMPARE(QString::fromStdString(text(*read)), printed);
    }

    void orders_data() {
        QTest::addColumn<QString>("a");
        QTest::addColumn<QString>("b");
        QTest::addColumn<bool>("known");
        const auto row = [](const char* a, const char* b, bool known) {
            QTest::newRow(qPrintable(QString("%1 <= %2").arg(a, b))) << a << b << known;
        };
        row("s0", "s0*s1", true);
        row("s0", "2*s0 - 1", true);
        row("s0 + s1", "s0*s1 + 1", true);
        row("s0", "s1", false);
        row("u0", "u0*s0", true);
        row("s0", "s0*u0", false);  // u0 may be 0
        row("1", "s0", true);
        row("2", "s0", false);
        row("s0 - 1", "s0", true);
        row("0", "(s0 - 1)//2", true);
        row("0", "Mod(s0, 4)", true);
    }
    void orders() {
        QFETCH(QString, a);
        QFETCH(QString, b);
        QFETCH(bool, known);
        QCOMPARE(knownLessEqual(size(a), size(b)), known);
    }

    void equalHoweverWritten() {
        QVERIFY(size("s0*(s1 + 1)") == size("s0*s1 + s0"));
        QVERIFY(size("(s0 + 1)*(s0 - 1)") == size("s0*s0 - 1"));
        QVERIFY(!(size("s0*(s1 + 1)") == size("s0*s1 + s1")));
        QVERIFY(!(size("s0//2*2") == size("s0")));
        QVERIFY(!(size("s0") == SymInt(1)));
    }

    /// PyTorch writes Max(1, size) in strides: where a dim is empty they do not matter.
    void stridesOfPossiblyEmptyTensors() {
        TensorType type;
        type.sizes = {size("s0"), size("(s1 + 3)//4"), SymInt(8)};
        type.strides = {size("8*Max(1, (s1 + 3)//4)"), SymInt(8), SymInt(1)};
        QVERIFY(type.isContiguous());
        const auto strides = viewStrides(type.sizes, type.strides, {size("s0*((s1 + 3)//4)"), SymInt(2), SymInt(4)});
        QVERIFY(strides.has_value());
        QVERIFY(*strides == (SymDims{SymInt(8), SymInt(4), SymInt(1)}));
        type.strides[0] = size("16*Max(1, (s1 + 3)//4)");
        QVERIFY(!type.isContiguous());
    }

    /// A dim cut by a number that may not divide it, where its neighbours do not lie without gaps.
    void viewsOfQuotients() {
        const SymDims sizes = {size("s0"), size("s1")}, strides = {SymInt(1), size("s0")};
        const auto cut = viewStrides(sizes, strides, {size("s0"), size("s1//2"), SymInt(2)});
        QVERIFY(cut.has_value());
        QVERIFY(*cut == (SymDims{SymInt(1), size("2*s0"), size("s0")}));
        QVERIFY(!viewStrides(sizes, strides, {size("s0"), size("s1//3"), SymInt(2)}));
        QVERIFY(!viewStrides(sizes, strides, {size("s0*s1")}));
    }

    /// Random expressions: simplified as they are built, they have the values of their parts; what is claimed of two
    /// holds for numbers.
    void claimsHoldForNumbers() {
        const uint64_t seed = qEnvironmentVariableIsSet("CUTAWAY_SEED")
                                  ? qEnvironmentVariable("CUTAWAY_SEED").toULongLong()
                                  : std::random_device{}();
        qInfo("CUTAWAY_SEED=%llu", static_cast<unsigned long long>(seed));
        RandomSizes random(seed);
        int claims = 0;
        for (int i = 0; i < 4000; ++i) {
            const Expr a = random.expr(3), b = random.expr(3);
            const bool equal = sameValue(a, b), least = neverNegative(a);
            const auto quotient = exactQuotient(a, b);
            const auto [dividend, divisor] = reduced(a, b);
            claims += equal + least + quotient.has_value();
            for (int k = 0; k < 8; ++k) {
                const auto values = random.values();
                const int64_t x = valueOf(a, values), y = valueOf(b, values);
                const std::string what = text(a) + " and " + text(b);
                if (equal) QVERIFY2(x == y, what.c_str());
                if (least) QVERIFY2(x >= 0, what.c_str());
                if (quotient) QVERIFY2(valueOf(*quotient, values) * y == x, what.c_str());
                QVERIFY2(valueOf(dividend, values) * y == valueOf(divisor, values) * x, what.c_str());
                for (const ExprKind kind : {ExprKind::Min, ExprKind::Max}) {
                    const int64_t want = kind == ExprKind::Min ? std::min(x, y) : std::max(x, y);
                    QVERIFY2(valueOf(Expr::make(kind, {a, b}), values) == want, what.c_str());
                }
                if (y > 0) {
                    QVERIFY2(valueOf(Expr::make(ExprKind::FloorDiv, {a, b}), values) == (x - ((x % y) + y) % y) / y,
                             what.c_str());
                    QVERIFY2(valueOf(Expr::make(ExprKind::Mod, {a, b}), values) == ((x % y) + y) % y, what.c_str());
                }
            }
        }
        QVERIFY(claims > 200);  // else nothing was tried
    }
};

CUTAWAY_SUITE(SizesTest)
#include "sizes_test.moc"
