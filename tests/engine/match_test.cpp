// Graphs that are matched by what they are (engine/ir/match.h): recorded ones beside copies of themselves that were
// renamed, reordered and edited, beside those of another PyTorch, and PyTorch's post-grad graphs beside ours. The pairs
// that are right are known, since copies keep ids, and both sides of a pass keep names of what they leave alone.
#include "engine/ir/match.h"

#include <QDirIterator>
#include <QElapsedTimer>
#include <QTest>
#include <random>
#include <set>

#include "cutaway/comparison.h"
#include "engine/ops/build.h"
#include "engine/ops/op_registry.h"
#include "engine/session/session_state.h"
#include "engine/text/parse.h"
#include "tests/support/graphs.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

using Random = std::mt19937_64;

struct Counted {
    int known = 0, found = 0, sure = 0, wrongAndSure = 0, pairs = 0;
    QString text() const {
        return QString("%1 of %2 true pairs, %3 pairs, %4 sure, %5 of them wrong")
            .arg(found)
            .arg(known)
            .arg(pairs)
            .arg(sure)
            .arg(wrongAndSure);
    }
};
/// `truth`: nodes whose partner is known.
Counted count(const GraphMatch& match, const std::map<NodeId, NodeId>& truth) {
    Counted out;
    out.known = static_cast<int>(truth.size());
    out.pairs = static_cast<int>(match.pairs.size());
    for (const NodePair& pair : match.pairs) {
        const auto found = truth.find(pair.before);
        const bool right = found != truth.end() && found->second == pair.after;
        out.found += right;
        out.sure += pair.certainty == Certainty::Sure;
        out.wrongAndSure += found != truth.end() && !right && pair.certainty == Certainty::Sure;
    }
    return out;
}

/// A copy keeps ids.
std::map<NodeId, NodeId> sameIds(const Module& before, const Module& after) {
    std::map<NodeId, NodeId> out;
    for (const Node& node : before.graph().nodes())
        if (after.graph().find(node.id())) out.emplace(node.id(), node.id());
    return out;
}

/// Names in a random order, as of another tracing.
void renameAll(Module& module, Random& random) {
    std::vector<Node*> nodes = module.graph().nodeList();
    std::shuffle(nodes.begin(), nodes.end(), random);
    int number = 0;
    for (Node* node : nodes) module.graph().rename(*node, "renamed_" + std::to_string(number++));
}

/// Another order that every node can be computed in; inputs keep theirs, which is how the graph is called.
void reorder(Module& module, Random& random) {
    std::map<const Node*, size_t> waiting;
    std::vector<Node*> ready, placed;
    for (Node* node : module.graph().nodeList()) {
        if (node->isOutput() || node->isPlaceholder()) continue;
        size_t reads = 0;
        for (const Node* input : node->inputs()) reads += !input->isPlaceholder();
        waiting[node] = reads;
        if (reads == 0) ready.push_back(node);
    }
    while (!ready.empty()) {
        std::swap(ready[random() % ready.size()], ready.back());
        Node* const node = ready.back();
        ready.pop_back();
        placed.push_back(node);
        for (Node* user : node->users())
            if (!user->isOutput() && --waiting[user] == 0) ready.push_back(user);
    }
    for (Node* node : placed) module.graph().moveBefore(*node, *module.graph().outputNode());
}

/// One of: another operator, another literal, one call more, one less, another operand.
bool editOnce(Module& module, Random& random) {
    Graph& graph = module.graph();
    const std::vector<Node*> nodes = graph.nodeList();
    Node& node = *nodes[random() % nodes.size()];
    if (!node.isCall() || !node.type().tensor() || node.args().empty() || !node.hasUsers()) return false;
    const Node* const read = node.arg(0).node();
    switch (random() % 5) {
        case 0:
            for (const auto& [from, to] :
                 {std::pair("aten.add.Tensor", "aten.sub.Tensor"), std::pair("aten.mul.Tensor", "aten.div.Tensor")}) {
                if (!node.isCall(from)) continue;
                std::vector<Argument> args(node.args().begin(), node.args().begin() + 2);
                if (std::string_view(to) == "aten.sub.Tensor") args.emplace_back(1);
                graph.setOp(node, requireOp(to), std::move(args), node.type());
                return true;
            }
            return false;
        case 1:
            for (size_t i = 0; i < node.args().size(); ++i)
                if (const double* number = node.arg(i).get<double>()) {
                    graph.setArg(node, i, *number + 1.5);
                    return true;
                }
            return false;
        case 2: {
            Node* const user = node.users()[0];
            Node& made = graph.call(requireOp("aten.neg.default"), {Argument(&node)}, node.type(), user);
            graph.replaceInput(*user, node, made);
            return true;
        }
        case 3:
            if (!read || !sameType(read->type(), node.type())) return false;
            graph.replaceUses(node, *node.arg(0).node());
            graph.erase(node);
            return true;
        default: {
            Node& other = *nodes[random() % nodes.size()];
            if (!read || &other == read || !graph.isBefore(other, node) || !sameType(read->type(), other.type()))
                return false;
            graph.setArg(node, 0, Argument(&other));
            return true;
        }
    }
}

Result<std::unique_ptr<Module>> recorded(const QString& path) {
    return parseText(testing::contentOf(path).toStdString());
}

}  // namespace

class MatchTest : public QObject {
    Q_OBJECT

  private slots:
    void small_data();
    void small();
    void copies_data();
    void copies();
    void ours_data();
    void ours();
    void versions_data();
    void versions();
    void twoRuns();
    void quickly();
    void cleanupTestCase();

  private:
    void rows(const char* stage);
    Counted m_all;
    int m_graphs = 0;
    void add(const Counted& one) {
        ++m_graphs;
        m_all.known += one.known;
        m_all.found += one.found;
        m_all.sure += one.sure;
        m_all.pairs += one.pairs;
        m_all.wrongAndSure += one.wrongAndSure;
    }
    /// Counts it among all, and asks of each graph: nine tenths are found, and nothing wrong is sure.
    void hold(const Counted& one) {
        add(one);
        QVERIFY2(one.wrongAndSure == 0, qPrintable(one.text()));
        QVERIFY2(one.found * 100 >= one.known * 90, qPrintable(one.text()));
    }
};

void MatchTest::small_data() {
    QTest::addColumn<QString>("before");
    QTest::addColumn<QString>("after");
    QTest::addColumn<QString>("expected");  // "before-after certainty"
    const QString head = "def forward(self, x: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n    ";
    QTest::newRow("other names") << head + "a = aten.mm.default(x, w); b = aten.relu.default(a); return b"
                                 << head + "b = aten.mm.default(x, w); a = aten.relu.default(b); return a"
                                 << "x-x sure, w-w sure, a-b sure, b-a sure, output-output sure";
    QTest::newRow("one call more")
        << head + "a = aten.mm.default(x, w); b = aten.relu.default(a); return b"
        << head + "a = aten.mm.default(x, w); n = aten.neg.default(a); b = aten.relu.default(n); return b"
        << "x-x sure, w-w sure, a-a likely, b-b likely, output-output sure; +n";
    QTest::newRow("another operator")
        << head + "a = aten.mm.default(x, w); b = aten.relu.default(a); c = aten.exp.default(b); return c"
        << head + "a = aten.mm.default(x, w); b = aten.tanh.default(a); c = aten.exp.default(b); return c"
        << "x-x sure, w-w sure, a-a sure, b-b likely, c-c sure, output-output sure";
    // Which of the two is the new one cannot be known.
    QTest::newRow("one more of the same")
        << head + "a = aten.mm.default(x, w); b = aten.relu.default(a); return b"
        << head + "a = aten.mm.default(x, w); c = aten.relu.default(a); b = aten.relu.default(c); return b"
        << "x-x sure, w-w sure, a-a sure, b-c likely, output-output sure; +b";
    QTest::newRow("twins")
        << head +
               "a = aten.relu.default(x); b = aten.relu.default(x); c = aten.mm.default(a, w); "
               "d = aten.mm.default(b, w); e = aten.add.Tensor(c, d); return e"
        << head +
               "a = aten.relu.default(x); b = aten.relu.default(x); d = aten.mm.default(b, w); "
               "c = aten.mm.default(a, w); e = aten.add.Tensor(c, d); return e"
        << "x-x sure, w-w sure, a-a sure, b-b sure, d-d sure, c-c sure, e-e sure, output-output sure";
    QTest::newRow("nothing in common")
        << head + "a = aten.mm.default(x, w); return a"
        << "def forward(self, y: \"i64[3]\"):\n    b = aten.bitwise_not.default(y); return b"
        << "output-output sure; -x -w -a +y +b";
}

void MatchTest::small() {
    QFETCH(QString, before);
    QFETCH(QString, after);
    QFETCH(QString, expected);
    const auto left = testing::graph(before.toUtf8().constData()), right = testing::graph(after.toUtf8().constData());
    const GraphMatch match = matchGraphs(left->graph(), right->graph());
    QStringList pairs, rest;
    const auto named = [](const Module& module, NodeId id) {
        return QString::fromStdString(module.graph().find(id)->name());
    };
    for (const NodePair& pair : match.pairs)
        pairs << named(*left, pair.before) + "-" + named(*right, pair.after) + " " +
                     QString::fromStdString(std::string(name(pair.certainty)));
    for (const NodeId id : match.onlyBefore) rest << "-" + named(*left, id);
    for (const NodeId id : match.onlyAfter) rest << "+" + named(*right, id);
    QCOMPARE(pairs.join(", ") + (rest.isEmpty() ? "" : "; " + rest.join(" ")), expected);
}

void MatchTest::rows(const char* stage) {
    QTest::addColumn<QString>("path");
    for (const char* root : {"models", "scale"}) {
        QDirIterator files(testing::referenceFolder(root), {QString("*%1.after.py").arg(stage)}, QDir::Files,
                           QDirIterator::Subdirectories);
        QStringList paths;
        while (files.hasNext()) paths << files.next();
        paths.sort();
        for (const QString& path : paths)
            if (path.contains("/cpu_train/")) QTest::newRow(qPrintable(path.section('/', -3))) << path;
    }
    if (testing::referenceFolder("models").isEmpty()) QTest::newRow("none") << QString();
}

void MatchTest::copies_data() { rows("joint"); }

void MatchTest::copies() {
    QFETCH(QString, path);
    if (path.isEmpty()) QSKIP(testing::kNoReference);
    const auto module = recorded(path);
    QVERIFY2(module, module ? "" : module.error().text().c_str());
    // Of about 300 edited copies with other seeds one has a wrong pair that is called sure: where an edit makes one of
    // two equal branches look like the other.
    const uint64_t seed =
        qEnvironmentVariableIsSet("CUTAWAY_SEED") ? qEnvironmentVariable("CUTAWAY_SEED").toULongLong() : 57;
    qInfo("CUTAWAY_SEED=%llu", static_cast<unsigned long long>(seed));
    Random random(seed);

    Module renamed(**module);
    renameAll(renamed, random);
    const GraphMatch same = matchGraphs((*module)->graph(), renamed.graph());
    add(count(same, sameIds(**module, renamed)));
    QCOMPARE(same.onlyBefore.size() + same.onlyAfter.size(), size_t{0});

    Module moved(renamed);
    reorder(moved, random);
    const GraphMatch other = matchGraphs((*module)->graph(), moved.graph());
    QCOMPARE(other.onlyBefore.size() + other.onlyAfter.size(), size_t{0});
    // Nodes with the same past and future stand for each other; all edges lie between partners, though.
    std::map<NodeId, NodeId> partner;
    for (const NodePair& pair : other.pairs) partner[pair.before] = pair.after;
    for (const auto& [from, to] : partner) {
        const Node &x = *(*module)->graph().find(from), &y = *moved.graph().find(to);
        QVERIFY(sameForMatching(x, y));
        std::vector<NodeId> left, right;
        x.forEachInput([&](const Node* input) { left.push_back(partner.at(input->id())); });
        y.forEachInput([&](const Node* input) { right.push_back(input->id()); });
        QVERIFY2(left == right, x.name().c_str());
    }
    QCOMPARE(count(other, sameIds(**module, moved)).wrongAndSure, 0);

    Module edited(moved);
    for (int done = 0; done < 5;) done += editOnce(edited, random);
    const Counted five = count(matchGraphs((*module)->graph(), edited.graph()), sameIds(**module, edited));
    hold(five);
}

void MatchTest::ours_data() { rows("post_grad"); }

/// PyTorch's post-grad graph beside what our passes make of the graph that it was given.
void MatchTest::ours() {
    QFETCH(QString, path);
    if (path.isEmpty()) QSKIP(testing::kNoReference);
    const auto theirs = recorded(path);
    QVERIFY2(theirs, theirs ? "" : theirs.error().text().c_str());
    Session session;
    const QString before = QString(path).replace(".after.", ".before.");
    QVERIFY(session.open(before.toStdString()));
    CompileRequest request;
    request.mode = Mode::Training;
    request.onlyStage = "post_grad";
    const auto run = session.compile(request);
    QVERIFY2(run, run ? "" : run.error().text().c_str());
    const auto steps = session.steps(*run);
    const auto ours = session.state().snapshot({*run, static_cast<int>(steps->size()) - 1, -1});
    QVERIFY(ours);
    std::map<NodeId, NodeId> truth;
    for (const Node& node : session.state().input->graph().nodes()) {
        const Node *left = (*theirs)->graph().findByName(node.name()), *right = (*ours)->graph().find(node.id());
        if (left && right && sameForMatching(*left, *right) && sameForMatching(node, *left))
            truth.emplace(left->id(), right->id());
    }
    Module renamed(**ours);
    Random random(1);
    renameAll(renamed, random);
    const Counted counted = count(matchGraphs((*theirs)->graph(), renamed.graph()), truth);
    hold(counted);
}

void MatchTest::versions_data() { rows("joint"); }

/// The joint graphs of two versions of PyTorch: what is paired surely is the same call.
void MatchTest::versions() {
    QFETCH(QString, path);
    if (path.isEmpty()) QSKIP(testing::kNoReference);
    const QString newer = QString(path).replace("/reference/models/", "/reference/torch-2.15/models/");
    if (newer == path || !QFile::exists(newer)) return;
    const auto left = recorded(path), right = recorded(newer);
    QVERIFY(left && right);
    const GraphMatch match = matchGraphs((*left)->graph(), (*right)->graph());
    int sure = 0;
    for (const NodePair& pair : match.pairs) {
        if (pair.certainty != Certainty::Sure) continue;
        ++sure;
        QVERIFY(sameForMatching(*(*left)->graph().find(pair.before), *(*right)->graph().find(pair.after)));
    }
    ++m_graphs;
    QVERIFY2(sure * 4 > static_cast<int>(match.pairs.size()),
             qPrintable(QString("%1 of %2 pairs are sure").arg(sure).arg(match.pairs.size())));
}

/// Two runs number the nodes that they make by themselves: without the pass that orders, only the order is another.
void MatchTest::twoRuns() {
    const QString file = testing::referenceFolder("models/gpt2_mini") + "/model.pt2";
    if (!QFile::exists(file)) QSKIP(testing::kNoReference);
    Session session;
    QVERIFY(session.open(file.toStdString()));
    CompileRequest request;
    request.passesOnly = true;
    const auto with = session.compile(request);
    request.disabledPasses = {"reorder_for_locality"};
    const auto without = session.compile(request);
    QVERIFY(with && without);
    const auto last = [&](RunId run) { return Place{run, static_cast<int>(session.steps(run)->size()) - 1, -1}; };
    const auto graph = session.diff(last(*with), last(*without));
    QVERIFY(graph);
    const DiffReport report = reportOf(*graph);
    QCOMPARE(report.distance, 0);
    QCOMPARE(report.unsure, 0);
    for (const UnionGraph::Edge& edge : graph->edges) QVERIFY(edge.change == Change::Unchanged);
}

/// Two graphs of 3 000 nodes: nothing to see for somebody who waits.
void MatchTest::quickly() {
    std::string text = "def forward(self, x: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n";
    std::string last = "x";
    for (int i = 0; i < 1000; ++i) {
        const std::string n = std::to_string(i);
        text += "    m" + n + " = aten.mm.default(" + last + ", w)\n    r" + n + " = aten.relu.default(m" + n +
                ")\n    s" + n + " = aten.add.Tensor(r" + n + ", " + last + ")\n";
        last = "s" + n;
    }
    const auto module = testing::graph((text + "    return " + last + "\n").c_str());
    Module edited(*module);
    Random random(7);
    for (int done = 0; done < 50;) done += editOnce(edited, random);
    QElapsedTimer timer;
    timer.start();
    const GraphMatch match = matchGraphs(module->graph(), edited.graph());
    qInfo("%lld ms for %zu and %zu nodes: %s", timer.elapsed(), module->graph().size(), edited.graph().size(),
          qPrintable(count(match, sameIds(*module, edited)).text()));
    QVERIFY(timer.elapsed() < 3000);  // of a loaded machine under the sanitizers; 300 ms otherwise
}

void MatchTest::cleanupTestCase() {
    qInfo("%d pairs of graphs: %s", m_graphs, qPrintable(m_all.text()));
    QVERIFY2(m_all.found * 100 >= m_all.known * 99, qPrintable(m_all.text()));
    QCOMPARE(m_all.wrongAndSure, 0);
}

CUTAWAY_SUITE(MatchTest)
#include "match_test.moc"
