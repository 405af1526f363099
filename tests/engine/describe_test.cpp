// Graphs as windows get them.
#include "engine/session/describe.h"

#include <QDirIterator>
#include <QtTest>

#include "engine/session/session_state.h"
#include "tests/support/graph_eval.h"
#include "tests/support/suites.h"

using namespace cutaway;

class DescribeTest : public QObject {
    Q_OBJECT

  private slots:
    /// A graph that is shown alone is made as what it is, not as the difference of two copies, and looks the same.
    void aGraphAlone_data() {
        QTest::addColumn<QString>("model");
        QDirIterator files(QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models"), {"*.pt2"}, QDir::Files);
        while (files.hasNext()) {
            const QString model = files.next();
            QTest::newRow(qPrintable(files.fileName())) << model;
        }
    }
    void aGraphAlone() {
        QFETCH(QString, model);
        Session session;
        QVERIFY(session.open(model.toStdString()).has_value());
        const Module& graph = *session.state().input;
        const UnionGraph alone = describeGraph(graph), copies = describeUnion(graph, Module(graph));
        QCOMPARE(alone.nodes.size(), copies.nodes.size());
        for (size_t i = 0; i < alone.nodes.size(); ++i) {
            QCOMPARE(alone.nodes[i].info.id, copies.nodes[i].info.id);
            QCOMPARE(alone.nodes[i].info.module, copies.nodes[i].info.module);
            QVERIFY(alone.nodes[i].change == Change::Unchanged && copies.nodes[i].change == Change::Unchanged);
        }
        QVERIFY(std::equal(alone.edges.begin(), alone.edges.end(), copies.edges.begin(), copies.edges.end(),
                           [](const UnionGraph::Edge& a, const UnionGraph::Edge& b) {
                               return a.from == b.from && a.to == b.to && a.change == b.change;
                           }));
        QVERIFY(std::all_of(alone.edges.begin(), alone.edges.end(),
                            [](const UnionGraph::Edge& edge) { return edge.change == Change::Unchanged; }));
    }

    /// As few nodes as possible are said to have moved.
    void movedNodes_data() {
        QTest::addColumn<QStringList>("before");
        QTest::addColumn<QStringList>("after");
        QTest::addColumn<QString>("moved");
        const QStringList calls{"a", "b", "c", "d", "e"};
        QTest::newRow("none") << calls << calls << "";
        QTest::newRow("the first to the end") << calls << QStringList{"b", "c", "d", "e", "a"} << "a";
        QTest::newRow("the last to the front") << calls << QStringList{"e", "a", "b", "c", "d"} << "e";
        QTest::newRow("two") << calls << QStringList{"c", "a", "b", "e", "d"} << "c e";
        QTest::newRow("beside one that is new") << QStringList{"a", "b"} << QStringList{"f", "b", "a"} << "b";
    }
    void movedNodes() {
        QFETCH(QStringList, before);
        QFETCH(QStringList, after);
        QFETCH(QString, moved);
        const auto graphOf = [](const QStringList& calls) {
            QString text = "def forward(x: \"f32[4]\"):\n";
            // The function differs by name, since it is what the nodes are paired by.
            const QMap<QString, QString> ops{{"a", "sin"}, {"b", "cos"}, {"c", "relu"},
                                             {"d", "neg"}, {"e", "exp"}, {"f", "abs"}};
            for (const QString& call : calls) text += "    " + call + " = aten." + ops[call] + ".default(x)\n";
            QStringList sorted = calls;
            sorted.removeAll("f");
            sorted.sort();
            return testing::moduleOf((text + "    return (" + sorted.join(", ") + ",)\n").toStdString());
        };
        const UnionGraph graph = describeMatched(*graphOf(before), *graphOf(after), nullptr);
        QStringList found;
        for (const UnionGraph::Node& node : graph.nodes)
            if (node.moved) found << QString::fromStdString(node.info.name);
        found.sort();
        QCOMPARE(found.size(), graph.moved);
        QCOMPARE(found.join(' '), moved);
    }
};

CUTAWAY_SUITE(DescribeTest)
#include "describe_test.moc"
