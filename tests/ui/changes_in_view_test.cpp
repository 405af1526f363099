// What a change looks like where it is small: chips, order alone, two places far from each other.
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/scenes.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::options;
using testing::sceneOf;

class ChangesInViewTest : public QObject {
    Q_OBJECT

    static bool sees(const GraphCanvas& canvas, NodeKey id) {
        const QRectF box = canvas.scene()->nodes[static_cast<size_t>(canvas.scene()->picture.indexOf(id))];
        return canvas.view().contains(box.center());
    }
    /// A chain in which the third call is new and the call number `far` is gone.
    static UnionGraph twoPlaces(int far) {
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        for (int i = 0; i < far + 20; ++i)
            last = build.add("c" + std::to_string(i), "aten.sin.default", {last},
                             i == 3     ? Change::Added
                             : i == far ? Change::Removed
                                        : Change::Unchanged);
        return build.graph();
    }

  private slots:
    /// The constant that came instead of a call is a chip on the call that reads it.
    void aChangedChipIsPartOfTheChange() {
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        const NodeKey gone = build.add("full", "aten.full.default", {}, Change::Removed);
        const NodeKey now = build.add("folded", "", {}, Change::Added, NodeRole::Constant);
        std::vector<NodeKey> readers;
        for (int i = 0; i < 40; ++i) {
            last = build.add("c" + std::to_string(i), "aten.sin.default", {last});
            if (i == 20) {
                build.connect(gone, last, Change::Removed);
                build.connect(now, last, Change::Added);
                readers.push_back(last);
            }
        }
        const auto scene = sceneOf(build.graph(), options(false));
        const int reader = scene->picture.indexOf(now);
        QCOMPARE(reader, scene->picture.indexOf(readers.front()));
        QCOMPARE(scene->picture.changedChip(reader), now);
        QVERIFY(scene->isChanged(reader));
        QVERIFY(scene->changedArea().contains(scene->nodes[static_cast<size_t>(reader)]));
        GraphCanvas canvas;
        canvas.resize(600, 500);
        canvas.show();
        canvas.setScene(scene);
        QVERIFY(sees(canvas, now) && sees(canvas, gone));
        // F8 stops at both.
        GraphView view;
        view.resize(600, 500);
        view.setFolding(false, 1);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.showGraph(std::make_shared<const UnionGraph>(build.graph()), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        QSet<quint64> met;
        for (int i = 0; i < 4; ++i) {
            const NodeKey next = view.nextChange(true);
            met.insert(packed(next));
            view.setCurrent(next, true);
        }
        QVERIFY(met.contains(packed(gone)));
        QVERIFY(met.contains(packed(now)) || met.contains(packed(readers.front())));
    }

    /// Both halves of a rewrite come into view while boxes can be told from each other.
    void twoPlacesOfOneChange_data() {
        QTest::addColumn<int>("far");
        QTest::addColumn<bool>("both");
        QTest::newRow("beside each other") << 6 << true;
        QTest::newRow("far from each other") << 20 << true;
        QTest::newRow("farther than a picture can show") << 300 << false;
    }
    void twoPlacesOfOneChange() {
        QFETCH(int, far);
        QFETCH(bool, both);
        const UnionGraph graph = twoPlaces(far);
        GraphCanvas canvas;
        canvas.resize(600, 500);
        canvas.show();
        canvas.setScene(sceneOf(graph, options(false)));
        const NodeKey first = graph.nodes[4].info.id, second = graph.nodes[static_cast<size_t>(far) + 1].info.id;
        QVERIFY(sees(canvas, first));
        QCOMPARE(sees(canvas, second), both);
        QVERIFY(canvas.scale() >= kNameZoom);
    }

    void whatOnlyMovedIsMarked() {
        testing::UnionBuilder build;
        NodeKey last = build.add("x", "", {}, Change::Unchanged, NodeRole::Input), moved = NodeKey::None;
        for (int i = 0; i < 80; ++i) {
            last = build.add("c" + std::to_string(i), "aten.sin.default", {last});
            if (i == 50) build.node(moved = last).moved = true;
        }
        GraphView view;
        view.resize(600, 500);
        view.show();
        QSignalSpy shown(&view, &GraphView::sceneShown);
        view.showGraph(std::make_shared<const UnionGraph>(build.graph()), "a step");
        QTRY_COMPARE_WITH_TIMEOUT(shown.size(), 1, 30000);
        QVERIFY(sees(view.canvas(), moved));
        const Picture& picture = view.canvas().scene()->picture;
        QCOMPARE(signOf(picture.nodes[static_cast<size_t>(picture.indexOf(moved))]), "↕");
        QVERIFY(view.canvas().spoken(picture.indexOf(moved)).contains(", moved"));
        QCOMPARE(view.nextChange(true), moved);
    }
};

CUTAWAY_SUITE(ChangesInViewTest)
#include "changes_in_view_test.moc"
