// Graphs run one after the other share what they compute alike, and compute what they would alone.
#include "engine/interpret/shared_values.h"

#include <QtTest>

#include "engine/support/fault_points.h"
#include "engine/tensor/compare.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

class SharedValuesTest : public QObject {
    Q_OBJECT

  private slots:
    void shares_data();
    void shares();
    void looksAtContents();
    void keepsWhatItMay();
    void leavesFaultsAlone();
};

namespace {

constexpr int64_t kMuch = int64_t{1} << 30;

std::shared_ptr<const Module> graphOf(const QString& body) {
    auto module = parseText("def forward(x: \"f32[4, 4]\", y: \"f32[4, 4]\"):\n" + body.toStdString());
    if (!module) qFatal("%s", module.error().text().c_str());
    return std::move(*module);
}

std::vector<Tensor> inputs(uint64_t seed) {
    std::vector<Tensor> out;
    for (int i = 0; i < 2; ++i) {
        Tensor tensor = Tensor::empty(DType::F32, {4, 4});
        for (int64_t k = 0; k < 16; ++k) tensor.as<float>()[k] = static_cast<float>((seed + i) * 16 + k) / 7.0f - 2.0f;
        out.push_back(tensor);
    }
    return out;
}

bool sameResults(const Result<std::vector<Tensor>>& a, const Result<std::vector<Tensor>>& b) {
    if (!a || !b || a->size() != b->size()) return false;
    for (size_t i = 0; i < a->size(); ++i)
        if (!sameBits((*a)[i], (*b)[i])) return false;
    return true;
}

}  // namespace

void SharedValuesTest::shares_data() {
    QTest::addColumn<QString>("first");
    QTest::addColumn<QString>("second");
    QTest::addColumn<int>("reused");

    const auto body = [](const char* lines, const char* result) {
        QString text;
        for (const QString& line : QString(lines).split(QLatin1Char(';'))) text += "    " + line.trimmed() + "\n";
        return text + "    return (" + result + ",)\n";
    };
    const QString chain = body(
        "a = torch.ops.aten.mm.default(x, y); b = torch.ops.aten.relu.default(a); c = torch.ops.aten.exp.default(b)",
        "c");
    QTest::newRow("all") << chain << chain << 3;
    QTest::newRow("other names")
        << chain
        << body(
               "p = torch.ops.aten.mm.default(x, y); q = torch.ops.aten.relu.default(p); r = torch.ops.aten.exp.default(q)",
               "r")
        << 3;
    QTest::newRow("up to the change")
        << chain
        << body(
               "a = torch.ops.aten.mm.default(x, y); b = torch.ops.aten.sigmoid.default(a); c = torch.ops.aten.exp.default(b)",
               "c")
        << 1;
    QTest::newRow("operands the other way round")
        << chain
        << body(
               "a = torch.ops.aten.mm.default(y, x); b = torch.ops.aten.relu.default(a); c = torch.ops.aten.exp.default(b)",
               "c")
        << 0;
    QTest::newRow("another number") << body("a = torch.ops.aten.add.Tensor(x, y, alpha = 2)", "a")
                                    << body("a = torch.ops.aten.add.Tensor(x, y, alpha = 3)", "a") << 0;
    QTest::newRow("another position in a list") << body("a = torch.ops.aten.permute.default(x, [0, 1])", "a")
                                                << body("a = torch.ops.aten.permute.default(x, [1, 0])", "a") << 0;
    QTest::newRow("operands in a list") << body("a = torch.ops.aten.cat.default([x, y])", "a")
                                        << body("a = torch.ops.aten.cat.default([y, x])", "a") << 0;
    // A draw repeats as long as as many came before it; it is made again, and what is computed from it is not.
    QTest::newRow("draws") << body("a = torch.ops.aten.rand_like.default(x); b = torch.ops.aten.exp.default(a)", "b")
                           << body("a = torch.ops.aten.rand_like.default(x); b = torch.ops.aten.exp.default(a)", "b")
                           << 1;
    QTest::newRow("draws behind others")
        << body("a = torch.ops.aten.rand_like.default(x); b = torch.ops.aten.exp.default(a)", "b")
        << body(
               "z = torch.ops.aten.rand_like.default(y); a = torch.ops.aten.rand_like.default(x); b = torch.ops.aten.exp.default(a)",
               "b")
        << 0;
    QTest::newRow("two draws in one graph")
        << body(
               "a = torch.ops.aten.rand_like.default(x); b = torch.ops.aten.rand_like.default(x); c = torch.ops.aten.sub.Tensor(a, b)",
               "c")
        << body("a = torch.ops.aten.rand_like.default(x); b = torch.ops.aten.sub.Tensor(a, a)", "b") << 0;
    QTest::newRow("items of a tuple")
        << body("a = torch.ops.aten.split.Tensor(x, 2); b = a[0]; c = torch.ops.aten.exp.default(b)", "c")
        << body("a = torch.ops.aten.split.Tensor(x, 2); b = a[1]; c = torch.ops.aten.exp.default(b)", "c") << 1;
    QTest::newRow("writes") << body("a = torch.ops.aten.mm.default(x, y); b = torch.ops.aten.relu_.default(a)", "b")
                            << body("a = torch.ops.aten.mm.default(x, y); b = torch.ops.aten.exp.default(a)", "b") << 0;
    QTest::newRow("writes to what was computed before")
        << body("a = torch.ops.aten.mm.default(x, y); b = torch.ops.aten.exp.default(a)", "b")
        << body("a = torch.ops.aten.mm.default(x, y); b = torch.ops.aten.relu_.default(a)", "b") << 0;
}

void SharedValuesTest::shares() {
    QFETCH(QString, first);
    QFETCH(QString, second);
    QFETCH(int, reused);
    const auto one = graphOf(first), other = graphOf(second);
    const std::vector<Tensor> given = inputs(1);
    SharedValues shared(kMuch);
    QVERIFY(sameResults(shared.interpret(*one, given), interpret(*one, given)));
    QCOMPARE(shared.reused(), 0);
    QVERIFY(sameResults(shared.interpret(*other, given), interpret(*other, given)));
    QCOMPARE(shared.reused(), reused);
    QVERIFY(sameResults(shared.interpret(*one, given), interpret(*one, given)));
}

void SharedValuesTest::looksAtContents() {
    const auto graph = graphOf("    a = torch.ops.aten.mm.default(x, y)\n    return (a,)\n");
    SharedValues shared(kMuch);
    QVERIFY(shared.interpret(*graph, inputs(1)));
    QVERIFY(shared.interpret(*graph, inputs(1)));
    QCOMPARE(shared.reused(), 1);
    QVERIFY(sameResults(shared.interpret(*graph, inputs(2)), interpret(*graph, inputs(2))));
    QCOMPARE(shared.reused(), 1);
    // The same numbers under other strides are other inputs: a result's layout may follow its operands'.
    std::vector<Tensor> turned = inputs(1);
    turned[0] = Tensor(turned[0].storage(), DType::F32, {4, 4}, {1, 4});
    QVERIFY(sameResults(shared.interpret(*graph, turned), interpret(*graph, turned)));
}

void SharedValuesTest::keepsWhatItMay() {
    const auto graph = graphOf(
        "    a = torch.ops.aten.mm.default(x, y)\n    b = torch.ops.aten.view.default(a, [16])\n"
        "    c = torch.ops.aten.exp.default(b)\n    return (c,)\n");
    const std::vector<Tensor> given = inputs(1);
    for (const auto& [bytes, calls] : {std::pair(0, 0), std::pair(63, 0), std::pair(64, 2), std::pair(128, 3)}) {
        SharedValues shared(bytes);
        QVERIFY(shared.interpret(*graph, given));
        QVERIFY(sameResults(shared.interpret(*graph, given), interpret(*graph, given)));
        QCOMPARE(shared.reused(), calls);
    }
}

void SharedValuesTest::leavesFaultsAlone() {
    const auto graph = graphOf("    a = torch.ops.aten.relu.default(x)\n    return (a,)\n");
    const std::vector<Tensor> given = inputs(1);
    SharedValues shared(kMuch);
    const auto right = shared.interpret(*graph, given);
    setFault("op@after:aten.relu.default:wrong");
    {
        const FaultSideScope side(FaultSide::After);
        QVERIFY(!sameResults(shared.interpret(*graph, given), right));
    }
    setFault({});
    QVERIFY(sameResults(shared.interpret(*graph, given), right));
}

CUTAWAY_SUITE(SharedValuesTest)
#include "shared_values_test.moc"
