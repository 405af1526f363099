// Which calls are alike, so that a lowering rule is tried once and a kernel drafted once.
#include "engine/schedule/lowering_memo.h"

#include <QtTest>

#include "engine/schedule/fusion.h"
#include "engine/schedule/schedule.h"
#include "engine/support/fault_points.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

struct PairOfCalls {
    const char *name, *body;  // in which a and b are compared
    bool alike;
    std::string results = "a, b";
};
/// x, y: f32[8, 4]; t: f32[4, 8]; h: f16[8, 4]; i, j: i64[8, 4]; s: f32[s0, 4].
const PairOfCalls kPairs[] = {
    {"other operands", "a = aten.exp.default(x); b = aten.exp.default(y)", true},
    {"an operand that is computed", "c = aten.neg.default(x); a = aten.exp.default(x); b = aten.exp.default(c)", true},
    {"another operator", "a = aten.exp.default(x); b = aten.sin.default(x)", false},
    {"another literal", "a = aten.mul.Scalar(x, 2.0); b = aten.mul.Scalar(x, 3.0)", false},
    {"another size", "a = aten.exp.default(x); b = aten.exp.default(t)", false},
    {"a size that is a symbol", "a = aten.exp.default(x); b = aten.exp.default(s)", false},
    {"another dtype", "a = aten.exp.default(x); b = aten.exp.default(h)", false},
    {"one operand twice", "a = aten.mul.Tensor(x, x); b = aten.mul.Tensor(x, y)", false},
    {"two views of one memory",
     "p = aten.permute.default(t, [1, 0]); q = aten.permute.default(t, [1, 0]); a = aten.mul.Tensor(p, q); "
     "u = aten.permute.default(y, [1, 0]); r = aten.permute.default(u, [1, 0]); b = aten.mul.Tensor(p, r)",
     false},
    {"an operand in other strides",
     "p = aten.permute.default(t, [1, 0]); a = aten.exp.default(x); b = aten.exp.default(p)", false},
    {"operands the other way round", "a = aten.sub.Tensor(x, y); b = aten.sub.Tensor(y, x)", true},
    {"another result that is read",
     "a = aten.var_mean.correction(x, [1]); c = operator.getitem(a, 0); b = aten.var_mean.correction(x, [1]); "
     "d = operator.getitem(b, 1)",
     false, "c, d"},
    {"the same result that is read",
     "a = aten.var_mean.correction(x, [1]); c = operator.getitem(a, 1); b = aten.var_mean.correction(y, [1]); "
     "d = operator.getitem(b, 1)",
     true, "c, d"},
};
const char* const kInputs =
    R"(x: "f32[8, 4]", y: "f32[8, 4]", t: "f32[4, 8]", h: "f16[8, 4]", i: "i64[8, 4]", j: "i64[8, 4]", s: "f32[s0, 4]")";

std::shared_ptr<const Module> planned(const std::string& body) {
    const auto module = scheduled(moduleOf(kInputs, body + "; return (a, b, g)"), kCpuTarget);
    if (!module) throw std::runtime_error(module.error().text());
    return *module;
}
const Node& named(const Module& module, const char* name) {
    for (const Node& node : module.graph().nodes())
        if (node.name() == name) return node;
    throw std::runtime_error(std::string("no node ") + name);
}
Hash128 nameOf(const Node& call) {
    LoweringMemo memo;
    LoweringName name(memo, [](const ValueKey&) { return false; });
    for (const size_t result : readResults(call)) name.addResult(call, result);
    return name.finish();
}

/// Two layers that are alike, with a product between them.
constexpr const char* kLayers =
    "c = aten.exp.default(x); d = aten.add.Tensor(c, y); a = aten.sum.dim_IntList(d, [1], True); "
    "m = aten.mm.default(d, t); n = aten.mm.default(m, d); "
    "e = aten.exp.default(n); f = aten.add.Tensor(e, y); b = aten.sum.dim_IntList(f, [1], True); g = aten.mm.default(f, t)";

std::vector<BuiltKernel> kernelsOf(const Module& module) {
    const Grouping grouping = groupsOf(module.graph(), *Schedule::of(module));
    std::vector<BuiltKernel> kernels;
    for (const FusionGroup& group : grouping.groups) kernels.push_back(buildKernel(grouping, group));
    return kernels;
}

}  // namespace

class LoweringMemoTest : public QObject {
    Q_OBJECT

  private slots:
    void cleanup() { setFault(""); }

    void callsThatAreAlike_data() {
        QTest::addColumn<int>("number");
        for (size_t i = 0; i < std::size(kPairs); ++i) QTest::newRow(kPairs[i].name) << static_cast<int>(i);
    }
    void callsThatAreAlike() {
        QFETCH(int, number);
        const auto module =
            moduleOf(kInputs, std::string(kPairs[number].body) + "; return (" + kPairs[number].results + ")");
        const Node &a = named(*module, "a"), &b = named(*module, "b");
        QCOMPARE(nameOf(a) == nameOf(b), kPairs[number].alike);
        LoweringMemo memo;
        for (const Node* call : {&a, &b}) {
            const RuleFacts kept = probe(*call, kCpuTarget, memo), own = probe(*call, kCpuTarget);
            QCOMPARE(kept.lowers, own.lowers);
            QCOMPARE(kept.whyNot, own.whyNot);
            QCOMPARE(kept.cost, own.cost);
            QCOMPARE(kept.reduces, own.reduces);
            QVERIFY(kept.spaceSizes == own.spaceSizes && kept.reduced == own.reduced);
        }
    }
    /// Integers are sorted by the names of what is loaded, so the order of these counts there.
    void orderOfLoads_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<bool>("shared");
        QTest::newRow("floats") << "f32" << true;
        QTest::newRow("integers") << "i64" << false;
    }
    void orderOfLoads() {
        QFETCH(QString, type);
        QFETCH(bool, shared);
        const auto module = scheduled(
            moduleOf(QString(R"(p: "%1[8]", q: "%1[8]", r: "%1[3]", s: "%1[3]")").arg(type).toStdString(),
                     "a = aten.add.Tensor(p, q); b = aten.add.Tensor(q, p); c = aten.add.Tensor(r, s); return (a, b)"),
            kCpuTarget);
        QVERIFY2(bool(module), module ? "" : module.error().text().c_str());
        Grouping grouping = groupsOf((*module)->graph(), *Schedule::of(**module));
        std::vector<BuiltKernel> kernels;
        for (const char* name : {"a", "b"}) {
            const Node& call = named(**module, name);
            const FusionGroup group{{&call}, {call.tensor().sizes, {false}}, 1};
            kernels.push_back(buildKernel(grouping, group));
            QVERIFY(kernels.back().kernel);
        }
        QCOMPARE(kernels[0].kernel == kernels[1].kernel, shared);
        QCOMPARE(kernels[0].bindings[1].node == kernels[1].bindings[1].node, !shared);
    }
    void layersShareAKernel() {
        const auto module = planned(kLayers);
        const std::vector<BuiltKernel> kernels = kernelsOf(*module), again = kernelsOf(*module);
        QCOMPARE(kernels.size(), size_t{2});
        QVERIFY(kernels[0].kernel && kernels[0].kernel == kernels[1].kernel);
        QVERIFY(kernels[0].kernel == again[1].kernel);
        QStringList bound;
        for (const BuiltKernel& kernel : kernels)
            for (const ValueKey& key : kernel.bindings) bound << QString::fromStdString(key.node->name());
        QCOMPARE(bound.join(' '), QString("d a x y f b n y"));
        const auto program = scheduleModule(module, kCpuTarget);
        QVERIFY2(bool(program), program ? "" : program.error().text().c_str());
        QCOMPARE(program->kernels.size(), size_t{1});
    }
    /// What tests ask to go wrong is in no kernel that is made without.
    void faultsAreNotKept() {
        const auto module = planned(kLayers);
        const std::string before = structureKey(*kernelsOf(*module)[0].kernel);
        setFault("kernel:aten.exp.default:wrong");
        QVERIFY(structureKey(*kernelsOf(*module)[0].kernel) != before);
        setFault("");
        QCOMPARE(structureKey(*kernelsOf(*module)[0].kernel), before);
    }
};

CUTAWAY_SUITE(LoweringMemoTest)
#include "lowering_memo_test.moc"
