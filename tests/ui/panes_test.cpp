// The graph before and after side by side: two panes, one view.
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/suites.h"
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

    std::unique_ptr<GraphView> m_view;

    /// The panes side by side on a graph without folds.
    bool show(const UnionGraph& graph) {
        m_view = std::make_unique<GraphView>();
        m_view->resize(900, 600);
        m_view->setFolding(false, 2);
        m_view->setMode(GraphMode::SideBySide);
        m_view->show();
        QSignalSpy shown(m_view.get(), &GraphView::sceneShown);
        m_view->showGraph(std::make_shared<const UnionGraph>(graph), "a step");
        return QTest::qWaitFor([&] { return shown.size() == 1; }, 30000);
    }
    bool together() const {
        return m_view->canvas().scale() == m_view->secondCanvas().scale() &&
               m_view->canvas().view().topLeft() == m_view->secondCanvas().view().topLeft();
    }

    static UnionGraph chainFromNothing(Change change, int length) {
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        NodeKey made = build.add("constant", "aten.full.default", {}, change);
        for (int i = 0; i < length; ++i)
            made = build.add("made" + std::to_string(i), "aten.cos.default", {made}, change);
        last = build.add("sum", "aten.add.Tensor", {last}, Change::Edited);
        build.connect(made, last, change);
        for (int i = 0; i < 60; ++i) last = build.add("after" + std::to_string(i), "aten.neg.default", {last});
        build.add("other", "aten.sin.default", {last}, change);
        return build.graph();
    }

  private slots:
    void cleanup() { m_view.reset(); }

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

    /// An input that is read late stands low, though it comes first.
    void anUnchangedGraphIsReadFromItsTop() {
        testing::UnionBuilder build;
        const NodeKey late = build.add("late", "", {}, Change::Unchanged, NodeRole::Input);
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        for (int i = 0; i < 60; ++i) last = build.add("n" + std::to_string(i), "aten.sin.default", {last});
        build.add("sum", "aten.add.Tensor", {last, late});
        QVERIFY(show(build.graph()));
        m_view->setMode(GraphMode::Union);
        QVERIFY2(inView(m_view->canvas()).contains("x"), qPrintable(inView(m_view->canvas()).join(' ')));
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
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        for (int i = 0; i < 40; ++i) last = build.add("before" + std::to_string(i), "aten.sin.default", {last});
        NodeKey end = last;
        for (int i = 0; i < changed; ++i)
            end = build.add("changed" + std::to_string(i), "aten.cos.default", {end}, change);
        for (int i = 0; i < 40; ++i) last = build.add("after" + std::to_string(i), "aten.neg.default", {last});
        build.connect(end, build.add("sum", "aten.add.Tensor", {last}, Change::Edited), change);
        QVERIFY(show(build.graph()));
        const QStringList before = inView(m_view->canvas()), after = inView(m_view->secondCanvas());
        QVERIFY2(!before.isEmpty() && !after.isEmpty(), qPrintable(before.join(' ') + " / " + after.join(' ')));
        QCOMPARE((change == Change::Added ? after : before).contains("cos.default"), true);
        QVERIFY((change == Change::Added ? before : after).contains("sin.default"));
        QVERIFY(m_view->canvas().scale() > kTextZoom);
        QVERIFY(together());
    }

    /// What goes and what comes in its place are on show together.
    void bothSidesOfAChangeComeIntoView() {
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        for (int i = 0; i < 30; ++i) last = build.add("before" + std::to_string(i), "aten.sin.default", {last});
        const NodeKey old = build.add("old", "aten.native_layer_norm.default", {last}, Change::Removed);
        NodeKey made = last;
        for (int i = 0; i < 3; ++i)
            made = build.add("made" + std::to_string(i), "aten.mul.Tensor", {made}, Change::Added);
        NodeKey next = build.add("next", "aten.clone.default");
        build.connect(old, next, Change::Removed);
        build.connect(made, next, Change::Added);
        for (int i = 0; i < 60; ++i) next = build.add("after" + std::to_string(i), "aten.neg.default", {next});
        build.add("far", "aten.cos.default", {next}, Change::Added);
        QVERIFY(show(build.graph()));
        QVERIFY2(inView(m_view->canvas()).contains("native_layer_norm.default"),
                 qPrintable(inView(m_view->canvas()).join(' ')));
        QCOMPARE(inView(m_view->secondCanvas()).count("mul.Tensor"), 3);
        QVERIFY(together());
    }

    /// A chain that starts from nothing: what both graphs have stands at its end, near enough for one view or further
    /// than it reaches.
    void whatIsKeptComesIntoView_data() {
        QTest::addColumn<Change>("change");
        QTest::addColumn<int>("length");
        QTest::addColumn<bool>("fits");
        for (const Change change : {Change::Added, Change::Removed})
            for (const int length : {9, 60})
                QTest::addRow("%d %s", length, change == Change::Added ? "added" : "removed")
                    << change << length << (length == 9);
    }
    void whatIsKeptComesIntoView() {
        QFETCH(Change, change);
        QFETCH(int, length);
        QFETCH(bool, fits);
        QVERIFY(show(chainFromNothing(change, length)));
        GraphCanvas &there = change == Change::Added ? m_view->secondCanvas() : m_view->canvas(),
                    &beside = change == Change::Added ? m_view->canvas() : m_view->secondCanvas();
        QVERIFY(inView(there).contains("full.default"));
        QVERIFY2(!inView(beside).isEmpty(), qPrintable(inView(there).join(' ')));
        QCOMPARE(together(), fits);
        QVERIFY(!there.isApart());
        QCOMPARE(beside.isApart(), !fits);
        QCOMPARE(beside.accessibleDescription().isEmpty(), fits);
        if (!fits)
            QVERIFY2(inView(beside).contains("add.Tensor"),
                     qPrintable(inView(beside).join(' ')));  // where the chain leads to
    }

    /// Going to a node of one side, the pane of the other shows where it is connected.
    void aNodeOfOneSideLeavesNoPaneEmpty_data() {
        QTest::addColumn<Change>("change");
        QTest::newRow("added") << Change::Added;
        QTest::newRow("removed") << Change::Removed;
    }
    void aNodeOfOneSideLeavesNoPaneEmpty() {
        QFETCH(Change, change);
        const UnionGraph graph = chainFromNothing(change, 60);
        QVERIFY(show(graph));
        GraphCanvas &there = change == Change::Added ? m_view->secondCanvas() : m_view->canvas(),
                    &beside = change == Change::Added ? m_view->canvas() : m_view->secondCanvas();
        for (const auto& node : graph.nodes) {
            m_view->setCurrent(node.info.id, true);
            QVERIFY2(!inView(there).isEmpty() && !inView(beside).isEmpty(), node.info.name.c_str());
            const GraphScene& scene = *there.scene();
            const bool one = node.change == Change::Added || node.change == Change::Removed;
            const GraphCanvas& shows =
                one ? node.change == Change::Added ? m_view->secondCanvas() : m_view->canvas() : m_view->canvas();
            QVERIFY2(shows.view().contains(scene.nodes[static_cast<size_t>(scene.picture.indexOf(node.info.id))]),
                     node.info.name.c_str());
        }
    }

    /// The pane under the hand goes where the hand moves it; the other keeps something in view, and both do when the
    /// hand rests.
    void panesMoveApartAndTogetherAgain() {
        QVERIFY(show(chainFromNothing(Change::Added, 60)));
        GraphCanvas &before = m_view->canvas(), &after = m_view->secondCanvas();
        QVERIFY(before.isApart());
        // Along the chain to its end: there the panes meet.
        QTest::mouseMove(&after, QPoint(200, 200));
        bool met = false;
        for (int i = 0; i < 200 && !met; ++i) {
            QTest::keyClick(&after, Qt::Key_Down, Qt::ShiftModifier);
            QVERIFY(!inView(before).isEmpty() || inView(after).isEmpty());
            met = together();
        }
        QVERIFY(met && !before.isApart());
        // Back up in the other pane: nothing of it stands there, so it stays with what it had when the hand rests.
        for (int i = 0; i < 40; ++i) QTest::keyClick(&before, Qt::Key_Up, Qt::ShiftModifier);
        QVERIFY(!inView(after).isEmpty());
        QTRY_VERIFY_WITH_TIMEOUT(before.isApart() && !inView(before).isEmpty(), 30000);
        m_view->fit();
        QVERIFY(together());
        m_view->setMode(GraphMode::Union);
        QVERIFY(!before.isApart());
    }

    /// What somebody has chosen to look at stays on show when the window grows, in both panes.
    void aNewSizeKeepsTheView() {
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input), chosen = NodeKey::None;
        for (int i = 0; i < 90; ++i) {
            last = build.add("n" + std::to_string(i), "aten.sin.default", {last},
                             i == 3 || i == 80 ? Change::Edited : Change::Unchanged);
            if (i == 50) chosen = last;
        }
        QVERIFY(show(build.graph()));
        m_view->setCurrent(chosen, true);
        const QRectF box = m_view->canvas().scene()->nodes[static_cast<size_t>(m_view->canvas().currentIndex())];
        for (const QSize size : {QSize(1100, 700), QSize(800, 500)}) {
            m_view->resize(size);
            QTRY_VERIFY_WITH_TIMEOUT(together(), 30000);
            for (const GraphCanvas* canvas : {&m_view->canvas(), &m_view->secondCanvas()}) {
                const QPointF off = (canvas->view().center() - box.center()) * canvas->scale();
                QVERIFY2(off.manhattanLength() < 40, qPrintable(QString("%1 %2").arg(off.x()).arg(off.y())));
            }
        }
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

CUTAWAY_SUITE(PanesTest)
#include "panes_test.moc"
