// What the guards of a .pt2 program allow: each is read, asked for with sizes that it allows and that it forbids, by
// the interpreter and by compiled programs. The texts are what PyTorch 2.15 writes.
#include "engine/formats/pt2_guards.h"

#include <QtTest>

#include "engine/formats/pt2.h"
#include "engine/interpret/interpret.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "tests/support/bytes.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// a_0: f32[s0, s1] and b_k: f32[s2] through relu(a_0), with that guard; text stands between JSON's quotes.
Pt2Program guarded(const QString& guard) {
    const auto symbol = [](const char* name) {
        return R"J({"as_expr": {"expr_str": "Symbol(')J" + std::string(name) +
               R"J(', positive=True, integer=True)", "hint": {"as_int": 10}}})J";
    };
    Pt2Program program;
    program.inputs = tensorArgument("a_0") + ", " + tensorArgument("b_k");
    program.inputSpecs = userInput("a_0") + ", " + userInput("b_k");
    program.tensors = tensorValue("a_0", {symbol("s0"), symbol("s1")}, {symbol("s1"), "1"}) + ", " +
                      tensorValue("b_k", {symbol("s2")}, {"1"}) + ", " +
                      tensorValue("r", {symbol("s0"), symbol("s1")}, {symbol("s1"), "1"});
    program.ranges = R"J("s0": {"min_val": 2, "max_val": 64}, "s1": {"min_val": 2, "max_val": null},
                         "s2": {"min_val": 2, "max_val": null})J";
    program.nodes = call("r", "torch.ops.aten.relu.default", {argument("self", tensorArgument("a_0"))});
    program.outputs = tensorArgument("r");
    program.outputSpecs = userOutput("r");
    program.guards = "\"" + guard.toStdString() + "\"";
    return program;
}

std::vector<Tensor> inputsOf(const QList<int>& sizes) {
    return {Tensor::empty(DType::F32, {sizes[0], sizes[1]}), Tensor::empty(DType::F32, {sizes[2]})};
}

}  // namespace

class Pt2GuardsTest : public QObject {
    Q_OBJECT

  private slots:
    void allowAndForbid_data() {
        QTest::addColumn<QString>("guard");
        QTest::addColumn<QList<int>>("allowed");    // s0, s1, s2
        QTest::addColumn<QList<int>>("forbidden");  // empty where the symbols' ranges say the same
        const auto row = [](const char* guard, QList<int> allowed, QList<int> forbidden) {
            QTest::newRow(guard) << guard << std::move(allowed) << std::move(forbidden);
        };
        row("math.trunc(0.5*torch.sym_float(L['a'][0].size()[0])) == 5", {11, 4, 2}, {12, 4, 2});
        row("math.trunc(torch.sym_float(L['a'][0].size()[0]) ** 0.5) == 3", {15, 4, 2}, {16, 4, 2});
        row("(L['a'][0].size()[0] / L['a'][0].size()[1]) > 2.0", {9, 4, 2}, {8, 4, 2});
        row("(L['a'][0].size()[0] % 3) == 1", {4, 4, 2}, {5, 4, 2});
        row("(L['a'][0].size()[0] & 1) == 0", {4, 4, 2}, {5, 4, 2});
        row("(L['a'][0].size()[0] // 2) != 5", {12, 4, 2}, {11, 4, 2});
        row("L['a'][0].size()[0]*L['a'][0].size()[0] > 50", {8, 4, 2}, {7, 4, 2});
        row("torch.sym_max(L['a'][0].size()[0], L['a'][0].size()[1]) > 8", {2, 9, 2}, {8, 8, 2});
        row("min(L['a'][0].size()[0], L['a'][0].size()[1]) < 8", {9, 7, 2}, {8, 8, 2});
        row("L['a'][0].size()[0] == ((-1) + L['b']['k'].size()[0])", {3, 4, 4}, {3, 4, 3});
        row("L['a'][0].size()[0] >= 4 and L['a'][0].size()[0] <= L['a'][0].size()[1]", {4, 4, 2}, {5, 4, 2});
        row("L['a'][0].size()[0] == 4 or L['a'][0].size()[1] == 4", {5, 4, 2}, {5, 5, 2});
        row("not L['a'][0].size()[0] == 4", {5, 4, 2}, {4, 4, 2});
        row("L['a'][0].stride()[0] > 4", {2, 5, 2}, {2, 4, 2});
        row("L['a'][0].size()[0] >= 2", {2, 4, 2}, {});
        row("L['a'][0].size()[0] <= 64", {64, 4, 2}, {});
    }
    void allowAndForbid() {
        QFETCH(QString, guard);
        QFETCH(QList<int>, allowed);
        QFETCH(QList<int>, forbidden);
        auto read = readPt2Program(guarded(guard).json(), "t");
        QCOMPARE(failureOf(read), QString());
        const Snapshot module = std::move(*read);
        QVERIFY(module->origin.remarks.empty());
        const auto program = buildCpu(module);
        QCOMPARE(failureOf(program), QString());
        QCOMPARE(failureOf(interpret(*module, inputsOf(allowed))), QString());
        QCOMPARE(failureOf(runCpu(*program, inputsOf(allowed))), QString());
        if (forbidden.isEmpty()) {
            QCOMPARE(module->graph().placeholders().size() + 2, module->graph().nodeList().size());
            return;
        }
        for (const QString& said :
             {failureOf(interpret(*module, inputsOf(forbidden))), failureOf(runCpu(*program, inputsOf(forbidden)))})
            QVERIFY2(said.contains("Guard failed: " + guard), qPrintable(said));
    }

    /// What cannot be read does not keep the file from being opened.
    void saysWhatIsNotChecked_data() {
        QTest::addColumn<QString>("guard");
        QTest::addColumn<QString>("reason");
        const auto row = [](const char* guard, const char* reason) { QTest::newRow(guard) << guard << reason; };
        row("L['c'].size()[0] == 4", "there is no input 'c'");
        row("L['a'][0].size()[2] == 4", "'a_0' has no such dim");
        row("L['a'][0].dtype == 4", "it asks for more than sizes of 'a_0'");
        row("L['a'", "']' is missing");
        row("L['a'][0].size()[0] + 1", "it is not a condition");
        row("IsNonOverlappingAndDenseIndicator(L['a'][0].size()[0], 1) == 1",
            "it holds a function that is not computed");
        row("frobnicate(L['a'][0].size()[0]) == 1", "");
    }
    void saysWhatIsNotChecked() {
        QFETCH(QString, guard);
        QFETCH(QString, reason);
        const auto module = readPt2Program(guarded(guard).json(), "t");
        QCOMPARE(failureOf(module), QString());
        QCOMPARE((*module)->origin.remarks.size(), size_t{1});
        const QString remark = QString::fromStdString((*module)->origin.remarks[0]);
        QVERIFY2(remark.startsWith("guard '" + guard + "' is not checked: ") && remark.contains(reason),
                 qPrintable(remark));
    }
};

CUTAWAY_SUITE(Pt2GuardsTest)
#include "pt2_guards_test.moc"
