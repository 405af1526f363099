// The minifiers on predicates over graphs: PyTorch's golden runs query for query, and ours against them.
#include <QtTest>
#include <set>

#include "engine/ir/verify.h"
#include "engine/minify/pytorch_minifier.h"
#include "engine/minify/reduce.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Fails if the graph calls each of these operators at least so often.
class Needs : public Trials {
  public:
    explicit Needs(std::map<std::string, int> ops) : m_ops(std::move(ops)) {}
    Result<bool> fails(const Candidate& candidate) override {
        // The program remembers answers, so a graph that is asked for twice costs nothing; PyTorch's minifier asks.
        if (m_asked.insert(printText(*candidate.module).text).second || !remembers) ++queries;
        if (const auto sound = verify(*candidate.module); !sound) qFatal("%s", sound.error().text().c_str());
        std::map<std::string, int> left = m_ops;
        for (const Node& node : candidate.module->graph().nodes())
            if (node.isCall()) --left[node.op().name()];
        return std::all_of(m_ops.begin(), m_ops.end(), [&](const auto& op) { return left[op.first] <= 0; });
    }
    Result<void> accepted(const Candidate& candidate, const std::string&) override {
        sizes.push_back(candidate.module->graph().size());
        return {};
    }
    std::vector<std::vector<std::string>> near() const override { return blamed; }
    std::vector<std::vector<std::string>> blamed;
    int queries = 0;
    bool remembers = false;
    std::vector<size_t> sizes;

  private:
    std::map<std::string, int> m_ops;
    std::set<std::string> m_asked;
};

/// Op i is sin of the running value, relu at the bad places; an add with y after each i with i mod 10 = 3; each i with
/// i mod 25 = 7 is returned, too.
std::string goldenChain(int length, const std::vector<int>& bad) {
    std::string text = "def forward(x: \"f32[4]\", y: \"f32[4]\"):\n", value = "x", returned;
    for (int i = 0; i < length; ++i) {
        const bool isBad = std::find(bad.begin(), bad.end(), i) != bad.end();
        const std::string name = "v" + std::to_string(i);
        text += "    " + name + " = aten." + (isBad ? "relu" : "sin") + ".default(" + value + ")\n";
        value = name;
        if (i % 10 == 3) {
            text += "    a" + std::to_string(i) + " = aten.add.Tensor(" + value + ", y)\n";
            value = "a" + std::to_string(i);
        }
        if (i % 25 == 7) returned += value + ", ";
    }
    return text + "    return (" + returned + value + ",)\n";
}
std::string plainChain(const std::vector<int>& bad) {
    std::string text = "def forward(x: \"f32[4]\"):\n", value = "x";
    for (int i = 0; i < 256; ++i) {
        const bool isBad = std::find(bad.begin(), bad.end(), i) != bad.end();
        text += "    v" + std::to_string(i) + " = aten." + (isBad ? "relu" : "sin") + ".default(" + value + ")\n";
        value = "v" + std::to_string(i);
    }
    return text + "    return (" + value + ",)\n";
}

Candidate parsed(const std::string& text) {
    auto module = parseText(text);
    if (!module) qFatal("%s", module.error().text().c_str());
    return {std::shared_ptr<const Module>(std::move(*module)), {}, nullptr};
}

const char* const kSeven = R"(def forward(x: "f32[4]", y: "f32[4]"):
    relu = aten.relu.default(x)
    sin = aten.sin.default(relu)
    add = aten.add.Tensor(sin, y)
    cos = aten.cos.default(y)
    return (add, cos, relu)
)";
const char* const kSplit = R"(def forward(x: "f32[4]"):
    split = aten.split.Tensor(x, 2)
    getitem = operator.getitem(split, 0)
    getitem_1 = operator.getitem(split, 1)
    add = aten.add.Tensor(getitem, getitem_1)
    relu = aten.relu.default(add)
    return (relu,)
)";
// PyTorch's minifier keeps calls of random numbers that nobody reads any more until it makes them inputs.
const char* const kRandom = R"(def forward(x: "f32[4]"):
    sin = aten.sin.default(x)
    rand = aten.rand_like.default(sin)
    add = aten.add.Tensor(sin, rand)
    relu = aten.relu.default(add)
    cos = aten.cos.default(relu)
    mul = aten.mul.Tensor(cos, rand)
    return (mul,)
)";
const char* const kTwoOutputs = R"(def forward(x: "f32[4]", y: "f32[4]"):
    sin = aten.sin.default(x)
    add = aten.add.Tensor(sin, y)
    relu = aten.relu.default(add)
    cos = aten.cos.default(relu)
    mul = aten.mul.Tensor(cos, 2)
    return (cos, mul)
)";
const std::map<std::string, int> kOneRelu = {{"aten.relu.default", 1}}, kTwoRelus = {{"aten.relu.default", 2}};

}  // namespace

class MinifierTest : public QObject {
    Q_OBJECT

  private slots:
    void beginsNearWhatIsToBlame_data() {
        QTest::addColumn<QString>("needs");
        QTest::addColumn<QString>("blamed");
        QTest::addColumn<int>("queries");
        QTest::addColumn<int>("calls");
        // One question whether the whole graph fails, one for each surroundings, one for smaller sizes.
        QTest::newRow("the call") << "aten.relu.default 1"
                                  << "v130" << 3 << 3;
        QTest::newRow("two calls far apart") << "aten.relu.default 2"
                                             << "v30" << 4 << 7;
        QTest::newRow("another one is to blame") << "aten.relu.default 1"
                                                 << "v240;v130" << 7 << 3;
        QTest::newRow("further away") << "aten.relu.default 1"
                                      << "v126" << 5 << 9;
        QTest::newRow("not near") << "aten.relu.default 1"
                                  << "v60" << 5 << 0;
        QTest::newRow("a name that is not there") << "aten.relu.default 1"
                                                  << "w130;x" << 1 << 0;
        QTest::newRow("items of a tuple") << "aten.sub.Tensor 1"
                                          << "s" << 2 << 3;
    }
    void beginsNearWhatIsToBlame() {
        QFETCH(QString, needs);
        QFETCH(QString, blamed);
        QFETCH(int, queries);
        QFETCH(int, calls);
        // v30 and v200 are relu, and v200 is read by what v30 is read by; s is split into items far from its reader.
        std::string text = "def forward(x: \"f32[4]\"):\n", value = "x";
        for (int i = 0; i < 256; ++i) {
            const bool relu = i == 30 || i == 130 || i == 200;
            const std::string name = "v" + std::to_string(i);
            text += "    " + name + " = aten." + (relu ? "relu" : "sin") + ".default(" + value + ")\n";
            value = name;
            if (i == 10) text += "    s = aten.split.Tensor(v10, 2)\n";
            if (i == 250)
                text +=
                    "    a = operator.getitem(s, 0)\n    b = operator.getitem(s, 1)\n    d = aten.sub.Tensor(a, b)\n";
            if (i == 230) text += "    far = aten.mul.Tensor(v30, v200)\n";
        }
        text += "    return (" + value + ", d, far)\n";
        Needs trials({{needs.section(' ', 0, 0).toStdString(), needs.section(' ', 1).toInt()}});
        for (const QString& name : blamed.split(';')) trials.blamed.push_back({name.toStdString()});
        ReduceOptions options;
        for (const ReduceStrategy& each : reduceStrategies())
            if (each.name != "near") options.without.emplace_back(each.name);
        const auto found = reduce(parsed(text), trials, options);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        int left = 0;
        for (const Node& node : found->module->graph().nodes())
            left += node.isCall() && !node.isCall("operator.getitem") ? 1 : 0;
        if (calls > 0) QCOMPARE(left, calls);
        else QVERIFY(left > 200);
        QCOMPARE(trials.queries, queries);
    }

    /// What cannot get smaller is found out in one round.
    void oneCallIsAskedForOnce() {
        Needs trials(kOneRelu);
        const auto found =
            reduce(parsed("def forward(x: \"f32[]\"):\n    r = aten.relu.default(x)\n    return (r,)\n"), trials);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QCOMPARE(found->module->graph().size(), size_t{3});
        QCOMPARE(trials.queries, 4);
    }

    /// Literals are tried with the values that parameters have if nothing is given, and no others.
    void literalsAreTriedOnce_data() {
        QTest::addColumn<QString>("call");
        QTest::addColumn<int>("queries");
        QTest::newRow("as nothing given") << "aten.sum.dim_IntList(x, [0], False)" << 7;
        QTest::newRow("another") << "aten.sum.dim_IntList(x, [0], True)" << 8;
        QTest::newRow("a value") << "aten.clamp.Tensor(x, y, x)" << 7;
    }
    void literalsAreTriedOnce() {
        QFETCH(QString, call);
        QFETCH(int, queries);
        Needs trials({{call.section('(', 0, 0).toStdString(), 1}});
        const auto found = reduce(
            parsed("def forward(x: \"f32[]\", y: \"f32[]\"):\n    r = " + call.toStdString() + "\n    return (r,)\n"),
            trials);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QCOMPARE(trials.queries, queries);
    }

    void goldenRuns_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<int>("relus");
        QTest::addColumn<QString>("needs");
        QTest::addColumn<int>("granularity");
        QTest::addColumn<int>("nodes");
        QTest::addColumn<int>("queries");
        const auto row = [](const char* name, const std::string& graph, int relus, int nodes, int queries,
                            int granularity = 0, const char* needs = "") {
            QTest::newRow(name) << QString::fromStdString(graph) << relus << QString(needs) << granularity << nodes
                                << queries;
        };
        row("seven nodes", kSeven, 1, 3, 12);
        row("64 at 20", goldenChain(64, {20}), 1, 3, 37);
        row("256 at 130", goldenChain(256, {130}), 1, 3, 39);
        row("256 at 250", goldenChain(256, {250}), 1, 3, 20);
        row("1024 at 700", goldenChain(1024, {700}), 1, 3, 48);
        row("two bad ops far apart", plainChain({30, 200}), 2, 173, 1081);
        row("two bad ops far apart, granularity 4", plainChain({30, 200}), 2, 173, 782, 4);
        row("two bad ops side by side", plainChain({30, 31}), 2, 4, 28);
        row("two bad ops side by side, granularity 4", plainChain({30, 31}), 2, 4, 66, 4);
        row("always", kSeven, 0, 2, 8);
        row("split", kSplit, 0, 4, 9, 0, "aten.add.Tensor");
        row("two outputs", kTwoOutputs, 1, 3, 9);
        row("random numbers", kRandom, 1, 3, 9);
    }
    void goldenRuns() {
        QFETCH(QString, graph);
        QFETCH(int, relus);
        QFETCH(QString, needs);
        QFETCH(int, granularity);
        QFETCH(int, nodes);
        QFETCH(int, queries);
        std::map<std::string, int> ops;
        if (relus > 0) ops["aten.relu.default"] = relus;
        if (!needs.isEmpty()) ops[needs.toStdString()] = 1;
        Needs trials(ops);
        PyTorchMinifierOptions options;
        options.maxGranularity = granularity;
        const auto found = minifyAsPyTorch(parsed(graph.toStdString()), trials, options);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QCOMPARE(static_cast<int>(found->module->graph().size()), nodes);
        QCOMPARE(trials.queries, queries);
    }

    /// The same graphs: never more questions than PyTorch's minifier where one operator is to blame.
    void ours_data() { goldenRuns_data(); }
    void ours() {
        QFETCH(QString, graph);
        QFETCH(int, relus);
        QFETCH(QString, needs);
        QFETCH(int, nodes);
        QFETCH(int, queries);
        std::map<std::string, int> ops;
        if (relus > 0) ops["aten.relu.default"] = relus;
        if (!needs.isEmpty()) ops[needs.toStdString()] = 1;
        Needs trials(ops);
        trials.remembers = true;
        const auto found = reduce(parsed(graph.toStdString()), trials);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        qInfo() << found->module->graph().size() << "nodes after" << trials.queries << "questions, PyTorch" << nodes
                << "after" << queries;
        QVERIFY(found->module->graph().size() <= static_cast<size_t>(std::min(nodes, 6)));
        const bool oneBadOp = QString(QTest::currentDataTag()).contains(" at ");
        QVERIFY(trials.queries <= (oneBadOp ? queries : 150));
    }
};

CUTAWAY_SUITE(MinifierTest)
#include "minifier_test.moc"
