// The canvas, driven by keys and mouse.
#include <QAccessible>
#include <QSignalSpy>
#include <QtTest>
#include <ctime>

#include "tests/support/suites.h"
#include "tests/ui/scenes.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::idOf;
using testing::options;
using testing::sceneOf;

Q_DECLARE_METATYPE(std::vector<cutaway::NodeKey>)

class CanvasTest : public QObject {
    Q_OBJECT

    static QPoint at(const GraphCanvas& canvas, NodeKey id) {
        return canvas.toWidget(canvas.scene()->nodes[canvas.scene()->picture.indexOf(id)].center()).toPoint();
    }

  private slots:
    void keptNodesDoNotMoveBetweenModes() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(4), options(false)));
        canvas.show();
        const NodeKey kept = idOf(*canvas.scene(), "r1 ");
        const QPoint before = at(canvas, kept);
        const QImage all = canvas.grab().toImage();
        canvas.setMode(GraphMode::Before);
        QCOMPARE(at(canvas, kept), before);
        const QImage old = canvas.grab().toImage();
        canvas.setMode(GraphMode::After);
        const QImage now = canvas.grab().toImage();
        QVERIFY(all != old && old != now);
        QCOMPARE(canvas.lastWork().nodes, 8);  // ten boxes less two removed
        canvas.setMode(GraphMode::Before);
        canvas.grab();
        QCOMPARE(canvas.lastWork().nodes, 9);
    }

    void clicksChooseNodesAndChips() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(4), options(false)));
        canvas.show();
        QSignalSpy chosen(&canvas, &GraphCanvas::nodeChosen);
        const NodeKey node = idOf(*canvas.scene(), "addmm");
        QTest::mouseClick(
            &canvas, Qt::LeftButton, {},
            canvas.toWidget(canvas.scene()->nodes[canvas.scene()->picture.indexOf(node)].topLeft() + QPointF(20, 8))
                .toPoint());
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].value<NodeKey>(), node);
        const int box = canvas.scene()->picture.indexOf(node);
        QTest::mouseClick(&canvas, Qt::LeftButton, {},
                          canvas.toWidget(canvas.scene()->chipRect(box, 0).center()).toPoint());
        QCOMPARE(chosen.size(), 2);
        QCOMPARE(chosen[1][0].value<NodeKey>(), canvas.scene()->picture.nodes[box].chips[0].id);
        QTest::mouseClick(&canvas, Qt::LeftButton, {}, QPoint(2, 2));  // nothing there: no node is the current one
        QCOMPARE(chosen.size(), 3);
        QCOMPARE(chosen[2][0].value<NodeKey>(), NodeKey::None);
        QCOMPARE(canvas.currentIndex(), -1);
    }

    void theWheelZoomsAtThePointer() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(4), options(false)));
        canvas.show();
        const QPointF pointer(200, 300);
        const QPointF under = canvas.toScene(pointer);
        const double scale = canvas.scale();
        QWheelEvent wheel(pointer, canvas.mapToGlobal(pointer), {}, QPoint(0, 120), Qt::NoButton, Qt::NoModifier,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(&canvas, &wheel);
        QVERIFY(canvas.scale() > scale);
        QVERIFY(QLineF(canvas.toScene(pointer), under).length() < 1e-6);
    }

    void dragsPan() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(4), options(false)));
        canvas.show();
        const QPointF before = canvas.toWidget({0, 0});
        QTest::mousePress(&canvas, Qt::LeftButton, {}, QPoint(100, 100));
        QTest::mouseMove(&canvas, QPoint(130, 90));
        QMouseEvent move(QEvent::MouseMove, QPointF(130, 90), canvas.mapToGlobal(QPointF(130, 90)), Qt::NoButton,
                         Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&canvas, &move);
        QTest::mouseRelease(&canvas, Qt::LeftButton, {}, QPoint(130, 90));
        QCOMPARE(canvas.toWidget({0, 0}), before + QPointF(30, -10));
    }

    void arrowsWalkEdges() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(4), options(false)));
        canvas.show();
        QSignalSpy chosen(&canvas, &GraphCanvas::nodeChosen);
        canvas.setCurrent(idOf(*canvas.scene(), "addmm"), false);
        const auto press = [&](Qt::Key key) {
            QTest::keyClick(&canvas, key);
            return canvas.scene()->picture.nodes[canvas.currentIndex()].detail.section(' ', 0, 0);
        };
        QCOMPARE(press(Qt::Key_Down), "r0");
        QCOMPARE(press(Qt::Key_Down), "r1");
        QCOMPARE(press(Qt::Key_Up), "r0");
        QCOMPARE(press(Qt::Key_Home), "f32[8,");  // the input x
        QCOMPARE(press(Qt::Key_Right), "t");      // beside it, no edge between
        QCOMPARE(press(Qt::Key_Left), "f32[8,");
        QCOMPARE(chosen.size(), 6);
        canvas.setMode(GraphMode::Before);  // added nodes cannot be reached
        canvas.setCurrent(idOf(*canvas.scene(), "t "), false);
        QCOMPARE(press(Qt::Key_Down), "m");
        QSignalSpy activated(&canvas, &GraphCanvas::nodeActivated);
        QTest::keyClick(&canvas, Qt::Key_Return);
        QCOMPARE(activated.size(), 1);
    }

    void theCurrentNodeStaysInOtherScenes() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(4), options(false)));
        canvas.setCurrent(idOf(*canvas.scene(), "addmm"), false);
        const NodeKey chosen = canvas.currentId();
        canvas.setScene(sceneOf(testing::fusedBias(6), options(false)));
        QVERIFY(canvas.currentIndex() >= 0);
        QCOMPARE(canvas.scene()->picture.nodes[canvas.currentIndex()].id, chosen);
        canvas.setScene(sceneOf(testing::bigGraph(1, 0), options(false)));
        QCOMPARE(canvas.currentIndex(), canvas.scene()->picture.indexOf(chosen));
        canvas.setScene(nullptr);
        QCOMPARE(canvas.currentIndex(), -1);
    }

    void controlZeroFits() {
        GraphCanvas canvas;
        canvas.resize(400, 300);
        canvas.setScene(sceneOf(testing::bigGraph(200, 0), options(false)));
        canvas.show();
        canvas.zoomBy(3, {10, 10});
        QTest::keyClick(&canvas, Qt::Key_0, Qt::ControlModifier);
        const QRectF all(canvas.toWidget(canvas.scene()->bounds.topLeft()),
                         canvas.toWidget(canvas.scene()->bounds.bottomRight()));
        QVERIFY(QRectF(canvas.rect()).adjusted(-1, -1, 1, 1).contains(all));
    }

    void enterOpensAFold() {
        GraphView view;
        view.resize(700, 700);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        const auto graph = std::make_shared<const UnionGraph>(testing::fusedBias(80));
        view.showGraph(graph, "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        const int folded = view.canvas().scene()->picture.folded;
        QVERIFY(folded > 50);
        QTest::keyClick(&view.canvas(), Qt::Key_End);
        QVERIFY(view.canvas().scene()->picture.nodes[view.canvas().currentIndex()].isFold());
        QTest::keyClick(&view.canvas(), Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 2, 30000);
        QCOMPARE(view.canvas().scene()->picture.folded, 0);
        view.showGraph(graph, "another step");  // opened folds belong to the step
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 3, 30000);
        QCOMPARE(view.canvas().scene()->picture.folded, folded);
    }

    void modulesOpenAndCloseByKeysAndMouse() {
        GraphView view;
        view.resize(900, 900);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown), changed(&view, &GraphView::modulesChanged);
        view.showGraph(std::make_shared<const UnionGraph>(testing::blocks(30)), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        const auto picture = [&]() -> const Picture& { return view.canvas().scene()->picture; };
        const auto box = [&](const char* key) { return picture().indexOfModule(key); };
        QCOMPARE(picture().modules, 31);
        // Right opens what is current, one level; its first box is current then, and all of it in view.
        view.canvas().setCurrentBox(box("layer.3"));
        QTest::keyClick(&view.canvas(), Qt::Key_Right);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 2, 30000);
        QCOMPARE(changed.size(), 1);
        QVERIFY(box("layer.3") < 0 && box("layer.3.attn") >= 0 && box("layer.3.mlp") >= 0);
        QCOMPARE(view.canvas().currentIndex(), box("layer.3.attn"));
        for (const char* key : {"layer.3.attn", "layer.3.mlp"}) {
            const auto& nodes = view.canvas().scene()->nodes;
            QVERIFY(view.canvas().rect().contains(
                view.canvas().toWidget(nodes[static_cast<size_t>(box(key))].center()).toPoint()));
        }
        // Left closes it again, and its box is current.
        QTest::keyClick(&view.canvas(), Qt::Key_Left);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 3, 30000);
        QVERIFY(box("layer.3") >= 0);
        QCOMPARE(view.canvas().currentIndex(), box("layer.3"));
        // With Ctrl all equal ones open.
        QTest::keyClick(&view.canvas(), Qt::Key_Right, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 4, 30000);
        QVERIFY(box("layer.0.attn") >= 0 && box("layer.29.mlp") >= 0 && box("head") >= 0);
        view.foldModulesBack();
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 5, 30000);
        QCOMPARE(picture().modules, 31);
        // A double click opens, too.
        view.canvas().setCurrentBox(box("head"));
        QTest::mouseDClick(
            &view.canvas(), Qt::LeftButton, {},
            view.canvas().toWidget(view.canvas().scene()->nodes[static_cast<size_t>(box("head"))].center()).toPoint());
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 6, 30000);
        QVERIFY(box("head") < 0);
        // Level by level to the end and back.
        view.openLevel(false);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 7, 30000);
        QCOMPARE(picture().modules, 2);
        view.openLevel(true);
        view.openLevel(true);
        QTRY_COMPARE_WITH_TIMEOUT(view.builder().isBusy(), false, 30000);
        view.openAllModules();
        QTRY_VERIFY_WITH_TIMEOUT(!view.builder().isBusy() && picture().modules == 0, 30000);
    }

    void changesInClosedModulesAndOfEdgesAreWalked() {
        UnionGraph graph = testing::blocks(30);
        graph.nodes[40].change = graph.nodes[41].change = Change::Edited;
        graph.edited = 2;
        // Far behind them a kept call reads another value than before.
        for (auto& edge : graph.edges)
            if (edge.to == graph.nodes[90].info.id) edge.change = Change::Removed;
        graph.edges.push_back({graph.nodes[80].info.id, graph.nodes[90].info.id, Change::Added});
        GraphView view;
        view.resize(900, 900);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.setFolding(false, 0);
        ModuleFolding closed;
        closed.level = 1;
        view.startAnew(closed);
        view.showGraph(std::make_shared<const UnionGraph>(graph), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        NodeKey next = view.nextChange(true);
        QCOMPARE(next, graph.nodes[40].info.id);
        view.goTo(next);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 2, 30000);
        next = view.nextChange(true);
        QCOMPARE(next, graph.nodes[41].info.id);
        view.openAllModules();
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 3, 30000);
        view.setCurrent(next, true);
        QCOMPARE(view.nextChange(true), graph.nodes[90].info.id);
    }

    /// What is current and in view stays where it is, unless another step changes something else.
    void anotherStepShowsItsChange() {
        const UnionGraph plain = testing::bigGraph(300, 0);
        UnionGraph changed = plain;
        changed.nodes[250].change = Change::Edited;
        changed.edited = 1;
        GraphCanvas canvas;
        canvas.resize(700, 600);
        canvas.show();
        canvas.setScene(sceneOf(plain, options(false)));
        const NodeKey current = plain.nodes[5].info.id;
        canvas.setCurrent(current, false);
        canvas.centreOn(canvas.currentIndex());
        canvas.setScene(sceneOf(changed, options(false)), false);
        QVERIFY(canvas.rect().contains(at(canvas, current)));
        canvas.setScene(sceneOf(changed, options(false)), true);
        QVERIFY(canvas.rect().contains(at(canvas, changed.nodes[250].info.id)));
    }

    void theMinimapLiesOverNoBox() {
        GraphCanvas canvas;
        canvas.resize(800, 600);
        canvas.setScene(sceneOf(testing::bigGraph(200, 0), options(false)));
        canvas.show();
        int seen = 0, corners = 0;
        for (int i = 0; i < 60; ++i) {
            canvas.setView(0.8, QPointF(400 - i * 17, 300 - i * 90));
            if (!canvas.minimapShown()) continue;
            ++seen;
            const QRectF map = canvas.minimapRect();
            corners += map.left() < 20 || map.top() > 20;
            QVERIFY(canvas.scene()
                        ->nodeIndex.touching(QRectF(canvas.toScene(map.topLeft()), map.size() / canvas.scale()))
                        .empty());
        }
        QVERIFY2(seen > 0, qPrintable(QString::number(corners)));
    }

    void aNodeInAClosedModuleIsShownWhenItIsWanted() {
        GraphView view;
        view.resize(900, 900);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        const auto graph = std::make_shared<const UnionGraph>(testing::blocks(30));
        const NodeKey wanted = graph->nodes[40].info.id;
        view.showGraph(graph, "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        QVERIFY(view.canvas()
                    .scene()
                    ->picture.nodes[static_cast<size_t>(view.canvas().scene()->picture.indexOf(wanted))]
                    .isModule());
        view.goTo(wanted);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 2, 30000);
        QCOMPARE(view.canvas().currentId(), wanted);
        QCOMPARE(view.canvas().scene()->picture.nodes[static_cast<size_t>(view.canvas().currentIndex())].id, wanted);
        // And the next picture does not hide it.
        view.showGraph(graph, "another step", wanted);
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 3, 30000);
        QCOMPARE(view.canvas().scene()->picture.nodes[static_cast<size_t>(view.canvas().currentIndex())].id, wanted);
    }

    /// Graphviz would take long for more at once.
    void aHugeFoldOpensInParts() {
        GraphView view;
        view.resize(700, 700);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        for (int i = 0; i < 600; ++i) last = build.add("s" + std::to_string(i), "aten.sin.default", {last});
        build.add("added", "aten.cos.default", {last}, Change::Added);
        view.showGraph(std::make_shared<const UnionGraph>(build.graph()), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        const Picture& picture = view.canvas().scene()->picture;
        const int folded = picture.folded;
        const auto huge =
            std::max_element(picture.nodes.begin(), picture.nodes.end(),
                             [](const auto& a, const auto& b) { return a.members.size() < b.members.size(); });
        QVERIFY(huge->members.size() > 260);
        view.goTo(huge->members.front());
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 2, 60000);
        QCOMPARE(folded - view.canvas().scene()->picture.folded, 250);
    }

    void stubsJumpToTheOtherEnd() {
        testing::UnionBuilder build;
        const NodeKey first = build.add("first", "", {}, Change::Unchanged, NodeRole::Input);
        NodeKey last = build.add("s0", "aten.sin.default", {first});
        for (int i = 1; i < 30; ++i) last = build.add("s" + std::to_string(i), "aten.sin.default", {last});
        const NodeKey sum = build.add("sum", "aten.add.Tensor", {last, first});
        GraphCanvas canvas;
        canvas.resize(500, 500);
        canvas.setScene(sceneOf(build.graph(), options(false)));
        canvas.show();
        QCOMPARE(canvas.scene()->stubs.size(), size_t(2));
        canvas.setCurrent(first, true);
        QSignalSpy chosen(&canvas, &GraphCanvas::nodeChosen);
        QTest::mouseClick(&canvas, Qt::LeftButton, {},
                          canvas.toWidget(canvas.scene()->stubs[0].box.center()).toPoint());
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].value<NodeKey>(), sum);
        QVERIFY(canvas.rect().contains(at(canvas, sum)));
    }

    void manyFarEdgesAreNamedUnderTheirNode() {
        testing::UnionBuilder build;
        const NodeKey first = build.add("first", "", {}, Change::Unchanged, NodeRole::Input);
        NodeKey last = build.add("s0", "aten.sin.default", {first});
        for (int i = 1; i < 30; ++i) last = build.add("s" + std::to_string(i), "aten.sin.default", {last});
        for (int i = 0; i < 6; ++i) last = build.add("far_" + std::to_string(i), "aten.add.Tensor", {last, first});
        const auto scene = sceneOf(build.graph(), options(false));
        const int box = scene->picture.indexOf(first);
        const QRectF node = scene->nodes[static_cast<size_t>(box)];
        size_t ends = 0;
        QStringList texts;
        double right = node.left();
        for (const auto& stub : scene->stubs) {
            if (stub.node != box || !stub.outgoing) continue;
            ends += stub.ends.size();
            texts << stub.text;
            QVERIFY2(
                stub.box.left() >= right - 0.5 && stub.box.right() <= std::max(node.right(), node.left() + 70) + 0.5,
                qPrintable(stub.text));
            right = stub.box.right();
        }
        QCOMPARE(ends, size_t(6));
        QVERIFY2(texts.first().contains("far_0"), qPrintable(texts.join(' ')));
        QVERIFY2(texts.last() == QString("+%1").arg(7 - texts.size()), qPrintable(texts.join(' ')));
    }

    void aFarEdgeIntoAFoldIsNamedByItsNode() {
        testing::UnionBuilder build;
        const NodeKey first = build.add("first", "aten.sin.default", {}, Change::Added);
        NodeKey last = build.add("s0", "aten.sin.default", {first});
        for (int i = 1; i < 200; ++i)
            last = build.add("s" + std::to_string(i), "aten.sin.default",
                             i == 150 ? std::vector{last, first} : std::vector{last});
        const auto scene = sceneOf(build.graph(), options(true));
        for (const auto& stub : scene->stubs) QVERIFY2(!stub.text.contains("unchanged"), qPrintable(stub.text));
    }

    void theMinimapStandsBesideTheChange() {
        UnionGraph graph = testing::bigGraph(300, 0);
        const size_t middle = graph.nodes.size() / 2;
        graph.nodes[middle].change = Change::Edited;
        graph.edited = 1;
        GraphCanvas canvas;
        canvas.resize(700, 500);
        canvas.show();
        canvas.setScene(sceneOf(graph, options(false)));
        QVERIFY(canvas.minimapShown());
        const int box = canvas.scene()->picture.indexOf(graph.nodes[middle].info.id);
        const double right = canvas.toWidget(canvas.scene()->nodes[static_cast<size_t>(box)].topRight()).x();
        QVERIFY2(right > 0 && right < 700 - 180, qPrintable(QString::number(right)));
    }

    void theMinimapComesWithLargeGraphs() {
        GraphCanvas canvas;
        canvas.resize(700, 500);
        canvas.setScene(sceneOf(testing::bigGraph(300, 0), options(false)));
        canvas.show();
        canvas.setView(1, {0, 0});
        QVERIFY(canvas.minimapShown());
        const QPointF before = canvas.toWidget({0, 0});
        QSignalSpy moved(&canvas, &GraphCanvas::viewChanged);
        QTest::mouseClick(&canvas, Qt::LeftButton, {}, QPoint(canvas.width() - 14, canvas.height() / 4));
        QVERIFY(canvas.toWidget({0, 0}) != before);
        QCOMPARE(moved.count(), 1);
        QVERIFY(moved[0][0].toBool());  // by hand: the other pane follows
        canvas.setScene(sceneOf(testing::bigGraph(20, 0), options(false)));
        canvas.setView(3, {0, 0});
        QVERIFY(!canvas.minimapShown());
    }

    void paintingLeavesOutWhatCannotBeSeen() {
        GraphCanvas canvas;
        canvas.resize(1200, 800);
        canvas.setScene(sceneOf(testing::bigGraph(10000, 50), options(false)));
        canvas.show();
        canvas.centreOn(5000);
        canvas.setView(0.9, canvas.toWidget({0, 0}));
        canvas.centreOn(5000);
        canvas.grab();
        QVERIFY(canvas.lastWork().nodes > 0);
        QVERIFY2(canvas.lastWork().nodes < 400, qPrintable(QString::number(canvas.lastWork().nodes)));
        QVERIFY(canvas.lastWork().texts > 0);
        canvas.fit();
        canvas.grab();
        QCOMPARE(canvas.lastWork().nodes, 10000);
        QCOMPARE(canvas.lastWork().texts, 0);
        // Printed for whoever tunes painting; not checked, since it depends on the machine.
        for (double scale : {canvas.scale(), 0.12, 0.3, 1.0}) {
            canvas.setView(scale, {0, 0});
            canvas.centreOn(5000);
            canvas.setView(scale, QPointF(600, 400) - canvas.scene()->nodes[5000].center() * scale);
            QImage image(canvas.size(), QImage::Format_ARGB32_Premultiplied);
            std::vector<qint64> times;
            for (int i = 0; i < 7; ++i) {
                const std::clock_t start = std::clock();  // processor time: other programs must not count
                canvas.render(&image);
                times.push_back((std::clock() - start) * 1000000 / CLOCKS_PER_SEC);
            }
            std::sort(times.begin(), times.end());
            qInfo("zoom %.3f: %d nodes, %d edges, median paint %.1f ms", scale, canvas.lastWork().nodes,
                  canvas.lastWork().edges, times[3] / 1000.0);
        }
    }

    void nodesAreAccessible() {
        GraphCanvas canvas;
        canvas.resize(600, 800);
        canvas.setScene(sceneOf(testing::fusedBias(2), options(false)));
        canvas.show();
        QAccessibleInterface* outer = QAccessible::queryAccessibleInterface(&canvas);
        QVERIFY(outer);
        QCOMPARE(outer->role(), QAccessible::List);
        QCOMPARE(outer->childCount(), 8);
        QAccessibleInterface* node = outer->child(4);
        QCOMPARE(node->role(), QAccessible::ListItem);
        QCOMPARE(node->text(QAccessible::Name),
                 "added: addmm, aten.addmm.default, f32[8, 16]; reads b, x, t; read by r0");
        QCOMPARE(outer->indexOfChild(node), 4);
        QCOMPARE(node->parent(), outer);
        QVERIFY(!node->state().focused);
        canvas.setCurrent(canvas.scene()->picture.nodes[4].id, false);
        QVERIFY(node->state().focused);
        QCOMPARE(outer->focusChild(), node);
        canvas.setScene(nullptr);
        QCOMPARE(outer->childCount(), 0);
    }
};

CUTAWAY_SUITE(CanvasTest)
#include "canvas_test.moc"
