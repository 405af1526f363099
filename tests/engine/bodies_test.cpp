// Nodes inside the bodies of cond and its kin: found by name, explained, and with a history, as those of the main
// graph.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/node_names.h"
#include "cutaway/session.h"
#include "engine/session/session_state.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Both bodies number and name their first nodes alike. Of the twins, true_graph_0's alone are rewritten: its `t` is of
/// a vector, its `dead` has no reader, and the product that its `sum` adds to has no other reader.
constexpr char kCond[] = R"(def forward(p: "b8[]", x: "f32[4]", w: "f32[4, 4]"):
    cond = higher_order.cond(p, true_graph_0, false_graph_0, [x, w])
    getitem: "f32[4, 4]" = cond[0]
    return (getitem,)

def true_graph_0(x: "f32[4]", w: "f32[4, 4]"):
    t: "f32[4]" = aten.t.default(x)
    dead: "f32[4]" = aten.cos.default(x)
    m: "f32[4, 4]" = aten.mm.default(w, w)
    sum: "f32[4, 4]" = aten.add.Tensor(m, t)
    return (sum,)

def false_graph_0(x: "f32[4]", w: "f32[4, 4]"):
    t: "f32[4]" = aten.sin.default(x)
    dead: "f32[4]" = aten.cos.default(x)
    m: "f32[4, 4]" = aten.mm.default(w, w)
    sum: "f32[4, 4]" = aten.add.Tensor(m, t)
    product: "f32[4, 4]" = aten.mul.Tensor(m, sum)
    last: "f32[4, 4]" = aten.add.Tensor(product, dead)
    return (last,)
)";

constexpr char kMap[] = R"(def forward(xs: "f32[5, 4]"):
    map_impl = higher_order.map_impl(body_graph_0, [xs], [])
    getitem: "f32[5, 4]" = map_impl[0]
    return (getitem,)

def body_graph_0(x: "f32[4]"):
    sin: "f32[4]" = aten.sin.default(x)
    return (sin,)
)";

}  // namespace

class BodiesTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;
    Session m_session;

    std::vector<StepInfo> steps() {
        const auto steps = m_session.steps(0);
        return steps ? *steps : std::vector<StepInfo>();
    }
    /// The reader of texts gives every node an id of its own; those of other files, and passes, number each graph
    /// alone.
    void numberAlone(const char* text) {
        auto module = std::make_shared<Module>(*m_session.state().input);
        const QStringList graphs = QString(text).split("\n\n");
        QCOMPARE(graphs.size(), static_cast<qsizetype>(module->subgraphs.size()) + 1);
        for (size_t i = 0; i < module->subgraphs.size(); ++i) {
            auto body =
                parseText(QString(graphs[static_cast<qsizetype>(i) + 1])
                              .replace("def " + QString::fromStdString(module->subgraphs[i].first), "def forward")
                              .toStdString());
            QVERIFY2(body, body ? "" : body.error().text().c_str());
            module->subgraphs[i].second = std::move(*body);
        }
        m_session.state().input = std::move(module);
    }
    void open(const char* text) {
        const QString path = m_scratch.filePath("model.py");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
        file.close();
        const auto opened = m_session.open(path.toStdString());
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        numberAlone(text);
        const auto run = m_session.compile({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        // Kernels are not made of calls with bodies: the last step says so.
        for (const StepInfo& step : steps())
            QVERIFY2(step.state != StepState::Failed || step.stage == "schedule", step.error.c_str());
    }
    Place before(const std::string& pass) {
        for (const StepInfo& step : steps())
            if (step.name == pass) return {0, step.index - 1, -1};
        return {0, -1, -1};
    }
    Place last() { return {0, static_cast<int>(steps().size()) - 1, -1}; }
    /// "applies" or why not.
    QString explained(const std::string& rule, const std::string& name) {
        const Place place = before(rule.substr(0, rule.find('/')));
        const auto node = findNode(m_session, place, name);
        if (!node) return QString::fromStdString(node.error().text());
        const auto found = m_session.explain(place, rule, *node);
        if (!found) return QString::fromStdString(found.error().text());
        if (found->node != *node) return "of another node";
        return found->applies ? "applies" : QString::fromStdString(found->reason);
    }
    QStringList lifeOf(const Place& place, const std::string& name) {
        const auto node = findNode(m_session, place, name);
        if (!node) return {QString::fromStdString(node.error().text())};
        const auto details = m_session.node(place, *node);
        if (!details) return {QString::fromStdString(details.error().text())};
        QStringList life;
        for (const auto& each : details->history) life << QString::fromStdString(each.what);
        return life;
    }

  private slots:
    void nodesAreFoundByName_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("found");
        QTest::newRow("main graph first") << "x"
                                          << "x";
        QTest::newRow("with its body") << "false_graph_0/sum"
                                       << "false_graph_0/sum";
        QTest::newRow("in one body only") << "last"
                                          << "false_graph_0/last";
        QTest::newRow("in both")
            << "sum"
            << "several graphs have a node 'sum': say which one: true_graph_0/sum, false_graph_0/sum";
        QTest::newRow("nearly") << "true_graph_0/sumn"
                                << "did you mean true_graph_0/sum";
        QTest::newRow("no such graph") << "nowhere/x"
                                       << "no node named 'nowhere/x'";
    }
    void nodesAreFoundByName() {
        QFETCH(QString, name);
        QFETCH(QString, found);
        open(kCond);
        const auto node = findNode(m_session, {0, -1, -1}, name.toStdString());
        const QString answer =
            QString::fromStdString(node ? *nodeName(m_session, {0, -1, -1}, *node) : node.error().text());
        QVERIFY2(node ? answer == found : answer.contains(found), qPrintable(answer));
    }

    /// The rewrite of one body's node is not taken for one of its twin in the other body, which has its id and name.
    void rulesAreExplained_data() {
        QTest::addColumn<std::string>("rule");
        QTest::addColumn<std::string>("node");
        QTest::addColumn<QString>("answer");
        QTest::newRow("code") << std::string("eliminate_dead_code/dead node") << std::string("true_graph_0/dead")
                              << "applies";
        QTest::newRow("code, the twin") << std::string("eliminate_dead_code/dead node")
                                        << std::string("false_graph_0/dead") << "`last` reads it";
        QTest::newRow("pattern") << std::string("post_grad_pass_pattern_2/addmm") << std::string("true_graph_0/sum")
                                 << "applies";
        QTest::newRow("pattern, the twin")
            << std::string("post_grad_pass_pattern_2/addmm") << std::string("false_graph_0/sum")
            << "but 'other' of `sum` is `t` (aten.sin.default)";
        QTest::newRow("by its name alone")
            << std::string("post_grad_pass_pattern_2/addmm") << std::string("last") << "of `last` is `";
    }
    void rulesAreExplained() {
        QFETCH(std::string, rule);
        QFETCH(std::string, node);
        QFETCH(QString, answer);
        open(kCond);
        const QString said = explained(rule, node);
        QVERIFY2(answer == "applies" ? said == answer : said.contains(answer), qPrintable(said));
    }

    /// Nodes in an explanation are those of the body, as the windows number them, also if all rules are asked at once.
    void explanationsNameNodesOfTheBody() {
        open(kCond);
        const Place place = before("post_grad_pass_pattern_2");
        const auto node = findNode(m_session, place, "true_graph_0/sum");
        QVERIFY2(node, node ? "" : node.error().text().c_str());
        const auto all = m_session.explainAll(place, *node);
        QVERIFY2(all, all ? "" : all.error().text().c_str());
        const auto addmm =
            std::find_if(all->begin(), all->end(), [](const RuleExplanation& one) { return one.rule == "addmm"; });
        QVERIFY(addmm != all->end() && addmm->applies);
        QStringList names;
        for (const NodeKey id : addmm->nodes) names << QString::fromStdString(nodeName(m_session, place, id).value());
        QCOMPARE(names, QStringList({"true_graph_0/m", "true_graph_0/sum"}));
        // After the rewrite there is no such node.
        const auto gone = m_session.explainAll(last(), *node);
        QVERIFY(!gone && gone.error().code == ErrorCode::NotFound);
    }

    void nodesTellTheirLives_data() {
        QTest::addColumn<bool>("atEnd");
        QTest::addColumn<std::string>("node");
        QTest::addColumn<QStringList>("life");
        QTest::newRow("removed") << false << std::string("true_graph_0/dead")
                                 << QStringList{"read from the file", "removed by eliminate_dead_code"};
        QTest::newRow("its twin stays") << false << std::string("false_graph_0/dead")
                                        << QStringList{"read from the file"};
        QTest::newRow("replaced") << false << std::string("true_graph_0/sum")
                                  << QStringList{"read from the file", "replaced by addmm in post_grad_pass_pattern_2"};
        QTest::newRow("created") << true << std::string("true_graph_0/addmm")
                                 << QStringList{"created by post_grad_pass_pattern_2 from m, sum"};
    }
    void nodesTellTheirLives() {
        QFETCH(bool, atEnd);
        QFETCH(std::string, node);
        QFETCH(QStringList, life);
        open(kCond);
        QCOMPARE(lifeOf(atEnd ? last() : Place{0, -1, -1}, node), life);
    }
    /// The history of a body's node names nodes of the same body.
    void livesAreRelatedInTheBody() {
        open(kCond);
        const auto sum = findNode(m_session, {0, -1, -1}, "true_graph_0/sum"),
                   addmm = findNode(m_session, last(), "true_graph_0/addmm");
        QVERIFY(sum && addmm);
        const auto was = m_session.node({0, -1, -1}, *sum), now = m_session.node(last(), *addmm);
        QVERIFY(was && now);
        QCOMPARE(was->history.back().related, std::vector<NodeKey>{*addmm});
        QCOMPARE(now->history.front().related.back(), *sum);
    }
    void bodiesComeAndGo() {
        open(kMap);
        QCOMPARE(
            lifeOf({0, -1, -1}, "body_graph_0/sin"),
            QStringList({"read from the file", "removed by decompose_map_to_while_loop, with the graph body_graph_0"}));
        QCOMPARE(lifeOf(last(), "while_loop_body_graph_0/sin"),
                 QStringList({"created by decompose_map_to_while_loop, with the graph while_loop_body_graph_0"}));
    }
};

CUTAWAY_SUITE(BodiesTest)
#include "bodies_test.moc"
