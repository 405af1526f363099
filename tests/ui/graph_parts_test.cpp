// Parts of the graph that are shown alone, what is marked in it, and how the history looks at it again.
#include <QInputDialog>
#include <QSignalSpy>
#include <QSpinBox>
#include <QToolButton>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "tests/ui/scenes.h"
#include "ui/windows/elided_label.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/kernels_window.h"
#include "ui/windows/menu_actions.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

namespace {

/// a reads x and w, b reads a, c reads x, d reads b and c, e reads d; u stands alone.
UnionGraph diamond() {
    testing::UnionBuilder build;
    const NodeKey x = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
    const NodeKey w = build.add("w", "", {}, Change::Unchanged, NodeRole::Parameter);
    const NodeKey a = build.add("a", "aten.mm.default", {x, w});
    const NodeKey b = build.add("b", "aten.relu.default", {a});
    const NodeKey c = build.add("c", "aten.relu.default", {x});
    const NodeKey d = build.add("d", "aten.add.Tensor", {b, c});
    build.add("e", "aten.sin.default", {d});
    build.add("u", "aten.relu.default");
    return build.graph();
}

NodeKey named(const UnionGraph& graph, const std::string& name) {
    for (const auto& node : graph.nodes)
        if (node.info.name == name) return node.info.id;
    return NodeKey::None;
}

QString names(const UnionGraph& graph) {
    QStringList all;
    for (const auto& node : graph.nodes) all << QString::fromStdString(node.info.name);
    return all.join(' ');
}

}  // namespace

class GraphPartsTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    GraphView& view() { return m_main->get<GraphWindow>().view(); }
    GraphCanvas& canvas() { return view().canvas(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience); }
    NodeKey node(const std::string& name) { return named(*view().graph(), name); }
    void choose(const std::string& name) {
        m_main->selection().setNode(node(name));
        settle();
    }
    QWidget& bar() { return *m_main->findChild<QWidget*>("partBar"); }
    QString barText() {
        for (const QLabel* label : bar().findChildren<QLabel*>())
            if (!label->text().isEmpty()) return label->text();
        return {};
    }
    QPointF middle() { return canvas().view().center(); }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void partsAreFound_data() {
        using Kind = GraphPart::Kind;
        QTest::addColumn<int>("kind");
        QTest::addColumn<QString>("node");
        QTest::addColumn<QString>("other");
        QTest::addColumn<int>("hops");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, Kind kind, const char* node, const char* other, int hops,
                            const char* expected) {
            QTest::newRow(name) << static_cast<int>(kind) << node << other << hops << expected;
        };
        row("what a node is made of", Kind::Inputs, "b", "", 1, "x w a b");
        row("what uses it, with the weights that are read there", Kind::Users, "a", "", 1, "w a b d e");
        row("one edge away", Kind::Around, "d", "", 1, "b c d e");
        row("two edges away", Kind::Around, "d", "", 2, "x w a b c d e");
        row("a path", Kind::Path, "a", "d", 1, "w a b d");
        row("a path from its end", Kind::Path, "d", "a", 1, "w a b d");
        row("all paths", Kind::Path, "x", "d", 1, "x w a b c d");
        row("no path", Kind::Path, "b", "c", 1, "");
        row("no such node", Kind::Inputs, "z", "", 1, "");
    }
    void partsAreFound() {
        QFETCH(int, kind);
        QFETCH(QString, node);
        QFETCH(QString, other);
        QFETCH(int, hops);
        QFETCH(QString, expected);
        const UnionGraph graph = diamond();
        const auto part = partOf(graph, {static_cast<GraphPart::Kind>(kind), named(graph, node.toStdString()),
                                         named(graph, other.toStdString()), hops});
        QCOMPARE(part ? names(*part) : QString(), expected);
    }

    /// By digits; the strip says it, changes it and ends it, and the history goes back to it.
    void neighboursAreShownAlone() {
        m_control->tail = 80;
        openAndCompile();
        choose("r40");
        canvas().setFocus();
        QTest::keyClick(&canvas(), Qt::Key_2);
        settle();
        QCOMPARE(names(*canvas().scene()->picture.graph), "r38 r39 r40 r41 r42");
        QVERIFY(bar().isVisible());
        QCOMPARE(barText(), "Around r40, up to 2 edges away: 5 of 88 nodes");
        bar().findChild<QSpinBox*>()->setValue(3);
        settle();
        QCOMPARE(canvas().scene()->picture.total, 7);
        // A node that is not part of it brings the graph back.
        choose("r70");
        QVERIFY(!canvas().scene()->picture.partly && !bar().isVisible());
        press(Qt::Key_Left, Qt::AltModifier);
        settle();
        QCOMPARE(canvas().scene()->picture.total, 7);
        bar().findChild<QToolButton*>()->click();
        settle();
        QCOMPARE(canvas().scene()->picture.total, 88);
        press(Qt::Key_Left, Qt::AltModifier);
        settle();
        QCOMPARE(canvas().scene()->picture.total, 7);
        press(Qt::Key_Right, Qt::AltModifier);
        settle();
        QCOMPARE(canvas().scene()->picture.total, 88);
    }

    void conesHaveKeys() {
        m_control->tail = 80;
        openAndCompile();
        choose("r70");
        press(Qt::Key_U, Qt::ControlModifier | Qt::ShiftModifier);
        settle();
        QCOMPARE(names(*canvas().scene()->picture.graph), "r70 r71 r72 r73 r74 r75 r76 r77 r78 r79 output");
        press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
        settle();
        choose("addmm");
        press(Qt::Key_I, Qt::ControlModifier | Qt::ShiftModifier);
        settle();
        QCOMPARE(names(*canvas().scene()->picture.graph), "x w b t addmm");
        QCOMPARE(barText(), "What addmm is made of: 5 of 88 nodes");
    }

    void controlClickShowsThePath() {
        m_control->tail = 8;
        openAndCompile();
        choose("t");
        const QPoint at = canvas()
                              .toWidget(canvas().scene()->nodes[canvas().scene()->picture.indexOf(node("r2"))].center())
                              .toPoint();
        QTest::mouseClick(&canvas(), Qt::LeftButton, Qt::ControlModifier, at);
        settle();
        QCOMPARE(names(*canvas().scene()->picture.graph), "w b t m y addmm r0 r1 r2");
        QCOMPARE(m_main->selection().node(), node("t"));
        QVERIFY(barText().startsWith("Between t and r2: "));
    }

    void aPathIsAskedForByName() {
        openAndCompile();
        choose("t");
        QTimer::singleShot(0, this, [this] {
            auto* dialog = m_main->findChild<QInputDialog*>();
            QVERIFY(dialog);
            dialog->setTextValue("r1");
            dialog->accept();
        });
        press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        settle();
        QCOMPARE(names(*canvas().scene()->picture.graph), "w b t m y addmm r0 r1");
    }

    /// Another model has other nodes.
    void aPartDoesNotOutliveItsModel() {
        openAndCompile();
        choose("t");
        QTest::keyClick(&canvas(), Qt::Key_1);
        settle();
        QVERIFY(view().part().has_value());
        openAndCompile();
        QVERIFY(!view().part().has_value());
    }

    void theHistoryRestoresZoomAndPlace() {
        m_control->tail = 80;
        openAndCompile();
        choose("r0");
        canvas().zoomBy(1.3, {40, 50});
        const double scale = canvas().scale();
        const QPointF place = middle();
        press(Qt::Key_F10);
        settle();
        const QString other = shownStep();
        canvas().zoomBy(0.5, {0, 0});
        const double otherScale = canvas().scale();
        const QPointF otherPlace = middle();
        press(Qt::Key_Left, Qt::AltModifier);
        settle();
        QVERIFY(shownStep() != other);
        QCOMPARE(canvas().scale(), scale);
        QVERIFY(QLineF(middle(), place).length() < 1);
        press(Qt::Key_Right, Qt::AltModifier);
        settle();
        QCOMPARE(shownStep(), other);
        QCOMPARE(canvas().scale(), otherScale);
        QVERIFY(QLineF(middle(), otherPlace).length() < 1);
    }

    /// A module that was opened is closed again, and the view stands where it stood.
    void theHistoryRestoresOpenModules() {
        GraphView alone;
        alone.resize(900, 700);
        alone.show();
        Selection selection;
        selection.setPlace({1, 0, -1});
        QSignalSpy shown(&alone, &GraphView::sceneShown);
        selection.setLooker([&] { return std::make_shared<const GraphLook>(alone.look()); });
        connect(&alone, &GraphView::aboutToOpen, &selection, &Selection::addStop);
        connect(&selection, &Selection::returned, &alone, &GraphView::lookAgain);
        alone.showGraph(std::make_shared<const UnionGraph>(testing::blocks(40)), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, kPatience);
        const int closed = alone.canvas().scene()->picture.modules;
        QVERIFY(closed > 0);
        alone.canvas().zoomBy(1.5, {100, 100});
        const double scale = alone.canvas().scale();
        const QString key = alone.canvas().scene()->picture.nodes[2].key;
        QVERIFY(!key.isEmpty());
        alone.openModule(key, false);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 2, kPatience);
        QVERIFY(alone.canvas().scene()->picture.indexOfModule(key) < 0);
        selection.goBack();
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 3, kPatience);
        QVERIFY(alone.canvas().scene()->picture.indexOfModule(key) >= 0);
        QCOMPARE(alone.canvas().scale(), scale);
        selection.goForward();
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 4, kPatience);
        QVERIFY(alone.canvas().scene()->picture.indexOfModule(key) < 0);
    }

    /// Not at an input far off, as the first box of the graph may be one.
    void arrowsBeginInView() {
        GraphCanvas lone;
        lone.resize(400, 300);
        lone.setScene(testing::sceneOf(testing::bigGraph(200, 0), testing::options(false)));
        lone.show();
        lone.centreOn(150);
        lone.setCurrent(NodeKey::None, false);
        QTest::keyClick(&lone, Qt::Key_Down);
        QVERIFY(lone.currentIndex() >= 0);
        QVERIFY(lone.view().contains(lone.scene()->nodes[static_cast<size_t>(lone.currentIndex())].center()));
        QTest::keyClick(&lone, Qt::Key_Home);
        QCOMPARE(lone.currentIndex(), 0);
    }

    void callsOfOneOperatorAreMarked() {
        GraphCanvas lone;
        lone.resize(500, 700);
        lone.setScene(testing::sceneOf(diamond(), testing::options(false)));
        lone.show();
        lone.fit();
        const auto centre = [&](const char* name) {
            const int box = lone.scene()->picture.indexOf(named(*lone.scene()->picture.graph, name));
            return lone.toWidget(lone.scene()->nodes[static_cast<size_t>(box)].topLeft()).toPoint();
        };
        // The outlines of the other calls of relu are drawn while the pointer is on one of them, and no others.
        const auto around = [&](const QImage& all, const char* name) {
            return all.copy(QRect(centre(name) - QPoint(6, 6), QSize(12, 12)));
        };
        const QImage before = lone.grab().toImage();
        const auto point = [&](QPointF at) {
            QMouseEvent move(QEvent::MouseMove, at, lone.mapToGlobal(at), Qt::NoButton, Qt::NoButton, {});
            QApplication::sendEvent(&lone, &move);
        };
        point(centre("b") + QPoint(12, 12));
        QVERIFY(around(lone.grab().toImage(), "c") != around(before, "c"));
        QCOMPARE(around(lone.grab().toImage(), "d"), around(before, "d"));
        point({1, 1});
        QCOMPARE(lone.grab().toImage(), before);
        lone.setMarkedOp("aten.sin.default");
        QVERIFY(around(lone.grab().toImage(), "e") != around(before, "e"));
        QCOMPARE(around(lone.grab().toImage(), "c"), around(before, "c"));
    }

    void theOperatorIsMarkedByAKey() {
        openAndCompile();
        choose("r0");
        press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(canvas().markedOp(), "aten.relu.default");
        choose("r1");
        press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(canvas().markedOp(), "aten.sin.default");
        press(Qt::Key_L, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(canvas().markedOp(), "");
    }

    /// By keys, too; without a node they say what is missing.
    void theKernelAndTheValueHaveKeys() {
        openAndCompile();
        QAction* run = actionNamed(*m_main, "Ctrl+Shift+R");
        QVERIFY(run && !run->isEnabled() && run->toolTip().contains("Choose a node first"));
        choose("r0");
        QVERIFY(run->isEnabled());
        press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window("numerics")->widget()), kPatience);
        press(Qt::Key_K, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window("loops")->widget()), kPatience);
        // Once code was generated, the window that has its source and its time.
        press(Qt::Key_F7);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->get<KernelsWindow>().computes(static_cast<NodeKey>(16)), kPatience);
        settle();
        choose("addmm");
        m_main->raiseWindow(m_main->window("graph"));
        press(Qt::Key_K, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window("kernels")->widget()), kPatience);
    }

    void theNodeMenuHasItAll() {
        openAndCompile();
        choose("r0");
        QStringList lines;
        QTimer::singleShot(0, this, [&] {
            auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
            QVERIFY(menu);
            for (const QAction* action : menu->actions()) lines << action->text();
            menu->close();
        });
        emit m_main->get<GraphWindow>().menuWanted(m_main->selection().node(), QPoint(50, 50));
        for (const char* line : {"Show only", "Mark all calls of its operator", "Show its kernel", "Run up to here"})
            QVERIFY2(lines.contains(QLatin1String(line)), qPrintable(lines.join('\n')));
    }
};

CUTAWAY_SUITE(GraphPartsTest)
#include "graph_parts_test.moc"
