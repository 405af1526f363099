// Verifier, fingerprint and diff: each rule broken once, each kind of change seen once.
#include <QTest>

#include "engine/ir/diff.h"
#include "engine/ir/fingerprint.h"
#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "tests/support/graphs.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::graph;

namespace {
constexpr const char* kPlain =
    "def forward(x: \"f32[2, 3]\", y: \"f32[2, 3]\"):\n"
    "    a: \"f32[2, 3]\" = aten.mul.Tensor(x, y)\n"
    "    b: \"f32[2, 3]\" = aten.mul.Tensor(a, 2.0)\n"
    "    return (b,)\n";

Node& named(Module& module, const char* name) {
    Node* node = module.graph().findByName(name);
    Q_ASSERT(node);
    return *node;
}

/// The rule that the message names, or "".
QString brokenRule(const Module& module, VerifyOptions options = {}) {
    auto result = verify(module, options);
    return result ? QString() : QString::fromStdString(result.error().where + " " + result.error().message);
}
}  // namespace

class IrTest : public QObject {
    Q_OBJECT

  private slots:
    void acceptsWhatIsRight();
    void findsBrokenRules();
    void functional();
    void fingerprintSeesEveryChange();
    void diffByIds();
    void aSmallGraphOfLargeIds();
};

void IrTest::acceptsWhatIsRight() {
    auto module = graph(kPlain);
    QCOMPARE(brokenRule(*module, {.functional = true, .types = true}), QString());
    QCOMPARE(brokenRule(Module(*module), {.functional = true, .types = true}), QString());
}

void IrTest::findsBrokenRules() {
    {
        auto module = graph(kPlain);
        module->graph().moveBefore(named(*module, "b"), named(*module, "a"));
        QCOMPARE(brokenRule(*module), QString("b verify (order): reads 'a', which stands after it"));
    }
    {
        auto module = graph(kPlain);
        module->graph().setType(named(*module, "a"), TensorType::contiguous(DType::F32, {2, 4}));
        QCOMPARE(brokenRule(*module), QString());
        QVERIFY(brokenRule(*module, {.types = true}).startsWith("a verify (types): is recorded as f32[2, 4][4, 1]cpu"));
        module->graph().setType(named(*module, "a"), ValueType());
        QCOMPARE(brokenRule(*module), QString("a verify (types): has no type"));
    }
    {
        auto module = graph(kPlain);
        module->graph().setArg(named(*module, "a"), 1, Argument("text"));
        QCOMPARE(brokenRule(*module),
                 QString("a verify (arguments): aten.mul.Tensor: argument 'other' is of the wrong kind"));
        module->graph().setArg(named(*module, "a"), 1, Argument(SubgraphRef{"gone"}));
        QVERIFY(!brokenRule(*module).isEmpty());
    }
    {
        auto module = graph(
            "def forward(x: \"f32[2]\"):\n    y = foo.f(x, body)\n    return (y,)\n\ndef body(a: \"f32[2]\"):\n    return (a,)\n");
        module->subgraphs[0].second->inputs.clear();
        QCOMPARE(brokenRule(*module), QString("body/body verify (inputs): 1 placeholders, 0 input specs"));
        module->subgraphs.clear();
        QCOMPARE(brokenRule(*module), QString("y verify (subgraphs): names the subgraph 'body', which does not exist"));
    }
    {
        Module module;
        QVERIFY(brokenRule(module).contains("there is no output"));
    }
}

void IrTest::functional() {
    auto module = graph(kPlain);
    module->graph().setOp(named(*module, "b"), findOrMakeOpaque("foo.add_.Tensor"), {Argument(&named(*module, "a"))},
                          named(*module, "a").type());
    QCOMPARE(brokenRule(*module), QString());
    QCOMPARE(brokenRule(*module, {.functional = true}),
             QString("b verify (functional): foo.add_.Tensor mutates its operand"));

    // What a capture returns may stand behind the copies, as long as it reads no input that has been written to.
    const QString writes =
        "def forward(x: \"f32[2]\", y: \"f32[2]\"):\n"
        "    v: \"f32[2]\" = aten.view.default(%1, [2])\n"
        "    a: \"f32[2]\" = aten.exp.default(y)\n"
        "    c: \"f32[2]\" = aten.copy_.default(x, a)\n"
        "    r: \"f32[2]\" = aten.neg.default(%2)\n"
        "    return (r,)\n";
    QCOMPARE(brokenRule(*graph(writes.arg("x", "a").toUtf8()), {.functional = true}), QString());
    QCOMPARE(brokenRule(*graph(writes.arg("y", "v").toUtf8()), {.functional = true}), QString());
    const QString late = "r verify (functional): reads 'x' after 'c' has written to it";
    QCOMPARE(brokenRule(*graph(writes.arg("x", "x").toUtf8()), {.functional = true}), late);
    QCOMPARE(brokenRule(*graph(writes.arg("x", "v").toUtf8()), {.functional = true}), late);
}

void IrTest::fingerprintSeesEveryChange() {
    auto module = graph(kPlain);
    module->tensors["w"] = Tensor::zeros(DType::F32, {2});
    const Hash128 before = fingerprint(*module);
    QVERIFY(fingerprint(Module(*module)) == before);
    auto changed = [&](auto&& edit) {
        Module copy(*module);
        edit(copy);
        return !(fingerprint(copy) == before);
    };
    QVERIFY(changed([](Module& m) { m.graph().rename(named(m, "a"), "c"); }));
    QVERIFY(changed([](Module& m) { m.graph().setArg(named(m, "b"), 1, Argument(2)); }));
    QVERIFY(changed([](Module& m) { m.graph().setArg(named(m, "a"), 1, Argument(&named(m, "x"))); }));
    QVERIFY(changed([](Module& m) { m.graph().setType(named(m, "a"), TensorType::contiguous(DType::F64, {2, 3})); }));
    QVERIFY(changed([](Module& m) { m.graph().moveBefore(named(m, "y"), named(m, "x")); }));
    QVERIFY(changed([](Module& m) { m.inputs[0].kind = InputSpec::Kind::Parameter; }));
    QVERIFY(changed([](Module& m) { m.tensors["w"] = Tensor::zeros(DType::F32, {2}); }));
    QVERIFY(!changed([](Module& m) {
        Provenance provenance;
        provenance.createdBy = "pass";
        m.graph().setProvenance(named(m, "a"), std::move(provenance));
    }));
}

void IrTest::diffByIds() {
    auto before = graph(kPlain);
    Module after(*before);
    QVERIFY(diff(*before, after).empty());
    Graph& edited = after.graph();
    Node& fresh = edited.call(named(after, "a").op(), {Argument(&named(after, "x")), Argument(3.0)},
                              named(after, "a").type(), &named(after, "b"), "n");
    edited.replaceInput(named(after, "b"), named(after, "a"), fresh);
    const NodeId gone = named(after, "a").id(), reader = named(after, "b").id();
    edited.erase(named(after, "a"));
    edited.rename(named(after, "y"), "z");
    const ModuleDiff found = diff(*before, after);
    QCOMPARE(found.added, std::vector<NodeId>{fresh.id()});
    QCOMPARE(found.removed, std::vector<NodeId>{gone});
    QCOMPARE(found.edited, std::vector<NodeId>{reader});
    QCOMPARE(found.renamed, std::vector<NodeId>{named(after, "z").id()});
    QCOMPARE(found.rewired, (std::vector<RewiredEdge>{{reader, gone, fresh.id()}}));
    QVERIFY(!found.reordered);
    edited.moveBefore(named(after, "z"), named(after, "x"));
    QVERIFY(diff(*before, after).reordered);
}

/// What a folded constant is computed from: few nodes, with the ids of a large graph.
void IrTest::aSmallGraphOfLargeIds() {
    Graph graph;
    graph.reserveIds(10'000'000);
    QCOMPARE(graph.idLimit(), 10'000'000u);
    Node& first = graph.placeholder("x", TensorType::contiguous(DType::F32, {2}));
    Node& second = graph.placeholder("y", TensorType::contiguous(DType::F32, {2}));
    QCOMPARE(index(first.id()), 10'000'000u);
    QCOMPARE(graph.find(first.id()), &first);
    for (const uint32_t absent : {0u, 31u, 9'999'999u, 10'000'002u, 10'000'031u, 10'000'064u, UINT32_MAX})
        QCOMPARE(graph.find(static_cast<NodeId>(absent)), nullptr);
    const auto copy = graph.clone();
    QCOMPARE(copy->idLimit(), graph.idLimit());
    QCOMPARE(copy->find(second.id())->name(), std::string("y"));
    QVERIFY(copy->find(second.id()) != &second);
    const NodeId erased = second.id();
    graph.erase(second);
    QCOMPARE(graph.find(erased), nullptr);
    QCOMPARE(graph.idLimit(), 10'000'002u);  // its id is nobody's again
}

CUTAWAY_SUITE(IrTest)
#include "ir_test.moc"
