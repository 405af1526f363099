// The graph before and after side by side: two panes, one view.
#include <QSignalSpy>
#include <QtTest>

#include "tests/ui/graphs.h"
#include "ui/graph/graph_canvas.h"
#include "ui/graph/graph_view.h"

using namespace cutaway;
using namespace cutaway::ui;

namespace {

/// Titles of the nodes of which a pane shows the whole box.
QStringList inView(const GraphCanvas& canvas) {
    QStringList names;
    const auto& nodes = canvas.scene()->picture.nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
        const QRectF& box = canvas.scene()->nodes[i];
        const QRectF seen(canvas.toWidget(box.topLeft()), canvas.toWidget(box.bottomRight()));
        if (shownIn(canvas.mode(), nodes[i].change) && QRectF(canvas.rect()).contains(seen)) names << nodes[i].title;
    }
    return names;
}

}  // namespace

class PanesTest : public QObject {
    Q_OBJECT

  private slots:
    void twoPanesShareOneView() {
        GraphView view;
        view.resize(900, 600);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.showGraph(std::make_shared<const UnionGraph>(testing::fusedBias(4)), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        view.setMode(GraphMode::SideBySide);
        QVERIFY(view.secondCanvas().isVisible());
        QCOMPARE(view.canvas().mode(), GraphMode::Before);
        QCOMPARE(view.secondCanvas().mode(), GraphMode::After);
        view.canvas().zoomBy(1.7, {50, 60});
        QCOMPARE(view.secondCanvas().scale(), view.canvas().scale());
        QCOMPARE(view.secondCanvas().toWidget({0, 0}), view.canvas().toWidget({0, 0}));
        view.setMode(GraphMode::Union);
        QVERIFY(!view.secondCanvas().isVisible());
    }

    /// Where the first change stands on one side only, what it is connected with is in both panes.
    void noPaneIsEmpty_data() {
        QTest::addColumn<Change>("change");
        QTest::addColumn<int>("changed");
        for (const int changed : {1, 3, 60}) {
            QTest::addRow("%d added", changed) << Change::Added << changed;
            QTest::addRow("%d removed", changed) << Change::Removed << changed;
        }
    }
    void noPaneIsEmpty() {
        QFETCH(Change, change);
        QFETCH(int, changed);
        testing::UnionBuilder build;
        NodeId last = build.add("x", "", {}, Change::Kept, NodeRole::Input);
        for (int i = 0; i < 40; ++i) last = build.add("before" + std::to_string(i), "aten.sin.default", {last});
        NodeId end = last;
        for (int i = 0; i < changed; ++i) end = build.add("changed" + std::to_string(i), "aten.cos.default", {end}, change);
        for (int i = 0; i < 40; ++i) last = build.add("after" + std::to_string(i), "aten.neg.default", {last});
        build.connect(end, build.add("sum", "aten.add.Tensor", {last}, Change::Edited), change);
        GraphView view;
        view.resize(900, 600);
        view.setFolding(false, 2);
        view.setMode(GraphMode::SideBySide);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.showGraph(std::make_shared<const UnionGraph>(build.graph()), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        const QStringList before = inView(view.canvas()), after = inView(view.secondCanvas());
        QVERIFY2(!before.isEmpty() && !after.isEmpty(), qPrintable(before.join(' ') + " / " + after.join(' ')));
        QCOMPARE((change == Change::Added ? after : before).contains("cos.default"), true);
        QVERIFY((change == Change::Added ? before : after).contains("sin.default"));
        QVERIFY(view.canvas().scale() > kTextZoom);
    }

    /// A chain that starts from nothing: what both graphs have stands at its end, further than the view reaches from its beginning.
    void whatIsKeptComesIntoView() {
        testing::UnionBuilder build;
        NodeId last = build.add("x", "", {}, Change::Kept, NodeRole::Input);
        NodeId made = build.add("constant", "aten.full.default", {}, Change::Added);
        for (int i = 0; i < 9; ++i) made = build.add("made" + std::to_string(i), "aten.cos.default", {made}, Change::Added);
        last = build.add("sum", "aten.add.Tensor", {last}, Change::Edited);
        build.connect(made, last, Change::Added);
        for (int i = 0; i < 60; ++i) last = build.add("after" + std::to_string(i), "aten.neg.default", {last});
        build.add("other", "aten.sin.default", {last}, Change::Added);
        GraphView view;
        view.resize(900, 600);
        view.setFolding(false, 2);
        view.setMode(GraphMode::SideBySide);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.showGraph(std::make_shared<const UnionGraph>(build.graph()), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        const QStringList before = inView(view.canvas()), after = inView(view.secondCanvas());
        QVERIFY2(!before.isEmpty(), qPrintable(after.join(' ')));
        QVERIFY(after.contains("full.default"));
    }

    void aHiddenPaneDoesNotMoveTheView() {
        GraphView view;
        view.resize(900, 600);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.showGraph(std::make_shared<const UnionGraph>(testing::bigGraph(400, 5)), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        const double scale = view.canvas().scale();
        const QPointF origin = view.canvas().toWidget({0, 0});
        // Grabbing a window sends hidden children the sizes that wait for them.
        view.secondCanvas().resize(200, 150);
        QResizeEvent event(QSize(200, 150), QSize(640, 480));
        QCoreApplication::sendEvent(&view.secondCanvas(), &event);
        QCOMPARE(view.canvas().scale(), scale);
        QCOMPARE(view.canvas().toWidget({0, 0}), origin);
    }
};

QTEST_MAIN(PanesTest)
#include "panes_test.moc"
