// Pictures of graphs before anybody sees them: chips, folds, order, and the geometry that painting stands on.
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/scenes.h"
#include "ui/graph/visible_path.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::idOf;
using testing::options;
using testing::sceneOf;

class PictureTest : public QObject {
    Q_OBJECT

    static QString printed(const Picture& picture) {
        QString text;
        for (size_t i = 0; i < picture.nodes.size(); ++i) {
            const Picture::Node& node = picture.nodes[i];
            QStringList users, chips;
            for (const auto& edge : picture.edges)
                if (edge.from == static_cast<int>(i))
                    users << signOf(edge.change) + QString::number(edge.to) + (edge.rewired ? "!" : "");
            for (const auto& chip : node.chips) chips << chip.text;
            text += QString("%1 %2%3%4 -> %5\n")
                        .arg(i)
                        .arg(signOf(node.change), node.title, chips.isEmpty() ? "" : " (" + chips.join(", ") + ")",
                             users.join(' '));
        }
        return text;
    }

    static NodeKey idNamed(const UnionGraph& graph, const std::string& name) {
        for (const auto& node : graph.nodes)
            if (node.info.name == name) return node.info.id;
        return NodeKey::None;
    }

  private slots:
    void parametersBecomeChips() {
        QCOMPARE(printed(makePicture(testing::fusedBias(2), options(false))),
                 "0 x -> −2 +4\n"
                 "1 permute.default (w) -> −2 +4\n"
                 "2 −mm.default -> −3\n"
                 "3 −add.Tensor (b) -> −5\n"
                 "4 +addmm.default (b) -> +5\n"
                 "5 relu.default -> 6\n"
                 "6 sin.default -> 7\n"
                 "7 return -> \n");
    }

    void keptRegionsFold() {
        const Picture picture = makePicture(testing::fusedBias(30), options());
        QCOMPARE(printed(picture),
                 "0 x -> −2 +4\n"
                 "1 permute.default (w) -> −2 +4\n"
                 "2 −mm.default -> −3\n"
                 "3 −add.Tensor (b) -> −5\n"
                 "4 +addmm.default (b) -> +5\n"
                 "5 relu.default -> 6\n"
                 "6 sin.default -> 7\n"
                 "7 29 unchanged -> \n");
        QCOMPARE(picture.folded, 29);
        QCOMPARE(picture.total, 38);
    }

    void revealedNodesStayVisible() {
        const UnionGraph graph = testing::fusedBias(30);
        PictureOptions how = options();
        how.revealed.insert(packed(graph.nodes[20].info.id));
        const Picture picture = makePicture(graph, how);
        QCOMPARE(picture.folded, 28);
        const int shown = picture.indexOf(graph.nodes[20].info.id);
        QVERIFY(!picture.nodes[shown].isFold());
        // The folds before and after it stay apart, or the picture would have a cycle.
        int folds = 0;
        for (const auto& node : picture.nodes) folds += node.isFold();
        QCOMPARE(folds, 2);
    }

    void hubsLeadNowhereAndOneNodeIsNoFold() {
        // A change whose neighbour is read by all of a wide graph: the width is not shown.
        testing::UnionBuilder build;
        const NodeKey x = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        const NodeKey hub = build.add("hub", "aten.relu.default", {x});
        std::vector<NodeKey> ends = {build.add("changed", "aten.sin.default", {hub}, Change::Edited)};
        for (int i = 0; i < 40; ++i) {
            const NodeKey first = build.add("first" + std::to_string(i), "aten.cos.default", {hub});
            ends.push_back(build.add("second" + std::to_string(i), "aten.cos.default", {first}));
        }
        PictureOptions how = options(true, 2);
        Picture picture = makePicture(build.graph(), how);
        QCOMPARE(picture.total, 83);
        QCOMPARE(printed(picture).count("unchanged"), 40);  // a fold for each branch, none of them opened
        how.hops = 0;
        picture = makePicture(testing::fusedBias(1), how);
        for (const auto& node : picture.nodes) QVERIFY(!node.isFold() || node.members.size() > 1);
    }

    void foldsNeverMakeACycle() {
        for (unsigned seed = 1; seed <= 20; ++seed)
            for (int every : {7, 23, 60}) {
                const Picture picture =
                    makePicture(testing::bigGraph(300, every, seed), options(true, static_cast<int>(seed % 3)));
                for (const auto& edge : picture.edges)
                    QVERIFY2(edge.from < edge.to, qPrintable(QString("seed %1, every %2").arg(seed).arg(every)));
            }
    }

    void closedModulesAreOneBoxEach() {
        const UnionGraph graph = testing::blocks(3);
        PictureOptions how = options(false);
        how.modules.above = 10;
        how.modules.level = 1;
        Picture picture = makePicture(graph, how);
        QCOMPARE(printed(picture),
                 "0 x -> 1\n1 layer.0 -> 2\n2 layer.1 -> 3\n3 layer.2 -> 4\n4 head -> 5\n5 return -> \n");
        QCOMPARE(picture.modules, 4);
        QCOMPARE(picture.nodes[1].detail, "6 nodes · 3.0 KiB · 3 equal");
        QCOMPARE(picture.nodes[4].equal, 1);
        for (const auto& node : graph.nodes) QVERIFY(picture.indexOf(node.info.id) >= 0);
        // The modules that they are in, closed themselves, tell their number.
        how.modules.level = 0;
        picture = makePicture(graph, how);
        QCOMPARE(picture.nodes[1].title, "layer × 3");
        QCOMPARE(picture.nodes[1].detail, "18 nodes · 9.0 KiB");
        // One that was opened by hand stands among closed ones.
        how.modules.level = 1;
        how.modules.open("layer.1");
        picture = makePicture(graph, how);
        QCOMPARE(picture.modules, 5);
        QVERIFY(picture.indexOfModule("layer.1.mlp") >= 0 && picture.indexOfModule("layer.1") < 0);
        QCOMPARE(picture.moduleToClose(picture.indexOfModule("layer.1.mlp")), "layer.1");
        // The current node is in no closed module.
        how.modules = {};
        how.modules.level = 0;
        how.current = idNamed(graph, "l2_a1");
        picture = makePicture(graph, how);
        QCOMPARE(picture.nodes[picture.indexOf(how.current)].id, how.current);
    }

    void modulesCloseInLargePicturesOnly() {
        const UnionGraph graph = testing::blocks(30);
        PictureOptions how = options(false);
        QCOMPARE(makePicture(testing::blocks(3), how).modules, 0);
        const Picture picture = makePicture(graph, how);
        QCOMPARE(picture.level, 1);
        QCOMPARE(picture.modules, 31);
        how.modules.level = ModuleFolding::kAll;
        QCOMPARE(makePicture(graph, how).modules, 0);
    }

    void closedModulesSayWhatChangedInThem() {
        UnionGraph graph = testing::blocks(3);
        graph.nodes[3].change = Change::Added;
        graph.nodes[4].change = Change::Removed;
        graph.added = graph.removed = 1;
        PictureOptions how = options(false);
        how.modules.level = 1;
        how.microseconds = std::make_shared<const QHash<quint64, double>>(
            QHash<quint64, double>{{packed(graph.nodes[3].info.id), 750.0}, {packed(graph.nodes[10].info.id), 250.0}});
        const Picture picture = makePicture(graph, how);
        QCOMPARE(picture.nodes[1].more, "+1 −1 · 750 µs, 75.0 %");
        QCOMPARE(picture.nodes[1].change, Change::Edited);
        QCOMPARE(picture.nodes[1].equal, 1);
        QCOMPARE(picture.nodes[2].equal, 2);
        // From fuse_nodes on the kernels in it, and of a new order what moved.
        for (const size_t node : {1, 2, 5}) graph.nodes[node].kernel = node == 5 ? 3 : 0;
        graph.nodes[5].moved = true;
        how.microseconds.reset();
        const Picture fused = makePicture(graph, how);
        QCOMPARE(fused.nodes[1].more, "+1 −1 ↕1 · 2 fused kernels");
        QVERIFY(fused.nodes[1].moved && !fused.nodes[2].moved);
        QCOMPARE(fused.nodes[2].more, "");
    }

    /// Modules whose calls take turns would make a cycle of two boxes.
    void closedModulesNeverMakeACycle() {
        for (unsigned seed = 1; seed <= 20; ++seed) {
            UnionGraph graph = testing::bigGraph(300, seed % 2 ? 0 : 23, seed);
            for (size_t i = 0; i < graph.nodes.size(); ++i)
                graph.nodes[i].info.module = "m" + std::to_string((i * seed / 3) % 5);
            PictureOptions how = options(true, 1);
            how.modules.level = 0;
            const Picture picture = makePicture(graph, how);
            QVERIFY(picture.modules > 0);
            for (const auto& edge : picture.edges) QVERIFY2(edge.from < edge.to, qPrintable(QString::number(seed)));
        }
    }

    void unusedInputsAreGathered() {
        testing::UnionBuilder build;
        for (int i = 0; i < 5; ++i)
            build.add("unused" + std::to_string(i), "", {}, Change::Unchanged, NodeRole::Buffer);
        const NodeKey x = build.add("x", "", {}, Change::Unchanged, NodeRole::Input);
        build.add("y", "aten.relu.default", {x});
        PictureOptions how = options(false);
        QCOMPARE(printed(makePicture(build.graph(), how)), "0 5 unused inputs -> \n1 x -> 2\n2 relu.default -> \n");
        // Those that were renamed are another box, which says so.
        for (int i = 0; i < 3; ++i) build.add("edited" + std::to_string(i), "", {}, Change::Edited, NodeRole::Buffer);
        const Picture both = makePicture(build.graph(), how);
        const auto edited = std::find_if(both.nodes.begin(), both.nodes.end(),
                                         [](const auto& node) { return node.title == "3 unused inputs"; });
        QVERIFY(edited != both.nodes.end() && edited->change == Change::Edited);
        how.current = build.graph().nodes[2].info.id;
        QCOMPARE(makePicture(build.graph(), how).nodes[0].members.size(), size_t(0));
    }

    void whatIsClosedIsKeptAsText() {
        ModuleFolding folding;
        QCOMPARE(folding.text(), "");
        folding.level = 2;
        folding.open("a.b.c");
        folding.close("layer (backward)");
        QCOMPARE(folding.text(), "level=2;open=a.b.c;closed=layer (backward)");
        QCOMPARE(ModuleFolding::fromText(folding.text()), folding);
        QCOMPARE(ModuleFolding::fromText("level=x;open=;closed;;other=1"), ModuleFolding());
        // What is in a module that closes closes with it; what is around one that opens opens.
        folding.close("a.b");
        QVERIFY(folding.opened.isEmpty());
        folding.open("a.b.d");
        QVERIFY(!folding.closed.contains("a.b"));
    }

    void everyNodeIsFoundSomewhere() {
        const UnionGraph graph = testing::fusedBias(30);
        const Picture picture = makePicture(graph, options());
        for (const auto& node : graph.nodes) QVERIFY(picture.indexOf(node.info.id) >= 0);
    }

    void rewiredEdgesAreDashed() {
        testing::UnionBuilder build;
        const NodeKey a = build.add("a", "", {}, Change::Unchanged, NodeRole::Input),
                      b = build.add("b", "", {}, Change::Unchanged, NodeRole::Input);
        const NodeKey c = build.add("c", "aten.relu.default");
        build.connect(a, c, Change::Removed);
        build.connect(b, c, Change::Added);
        QCOMPARE(printed(makePicture(build.graph(), options())), "0 a -> −2!\n1 b -> +2!\n2 relu.default -> \n");
    }

    void editedNodesShowBothSides() {
        testing::UnionBuilder build;
        const NodeKey a = build.add("a", "", {}, Change::Unchanged, NodeRole::Input);
        const NodeKey b = build.add("b", "aten.relu_.default", {a}, Change::Edited);
        build.node(b).beforeOp = "aten.relu.default";
        build.node(b).beforeType = "f32[8]";
        const Picture picture = makePicture(build.graph(), options());
        QCOMPARE(picture.nodes[1].title, "relu.default → relu_.default");
        QCOMPARE(picture.nodes[1].detail, "b · f32[8] → f32[8, 16]");
    }

    void theSpatialIndexFindsWhatALinearSearchFinds() {
        std::mt19937 random(5);
        std::vector<QRectF> boxes;
        for (int i = 0; i < 3000; ++i)
            boxes.emplace_back(random() % 5000, random() % 5000, random() % 60, i % 5 ? random() % 60 : 0);
        const SpatialIndex index(boxes);
        for (int i = 0; i < 50; ++i) {
            const QRectF area(random() % 5000, random() % 5000, random() % 900, random() % 900);
            std::vector<int> expected;
            for (size_t k = 0; k < boxes.size(); ++k)
                if (boxes[k].left() <= area.right() && area.left() <= boxes[k].right() &&
                    boxes[k].top() <= area.bottom() && area.top() <= boxes[k].bottom())
                    expected.push_back(static_cast<int>(k));
            QCOMPARE(index.touching(area), expected);
        }
        QVERIFY(SpatialIndex().touching(QRectF(0, 0, 9, 9)).empty());
    }

    void longCurvesAreCutToWhatIsSeen() {
        QPainterPath path(QPointF(0, 0));
        path.cubicTo(0, 40000, 300, 60000, 300, 100000);  // a thousand screens
        path.lineTo(300, 200000);
        for (const QRectF area :
             {QRectF(-50, 0, 500, 100), QRectF(-50, 50000, 500, 100), QRectF(0, 150000, 400, 100)}) {
            const QPainterPath seen = visiblePart(path, area);
            QVERIFY(!seen.isEmpty());
            QVERIFY2(seen.length() < 2000, qPrintable(QString::number(seen.length())));
            // Painted, the two are the same where they are seen.
            const auto paint = [&](const QPainterPath& what) {
                QImage image(500, 100, QImage::Format_Grayscale8);
                image.fill(0);
                QPainter painter(&image);
                painter.translate(-area.topLeft());
                painter.setPen(QPen(Qt::white, 3));
                painter.drawPath(what);
                return image;
            };
            const QImage whole = paint(path), part = paint(seen);
            int different = 0, lit = 0;
            for (int y = 0; y < 100; ++y)
                for (int x = 0; x < 500; ++x) {
                    lit += qGray(whole.pixel(x, y)) > 0;
                    different += qGray(whole.pixel(x, y)) != qGray(part.pixel(x, y));
                }
            QVERIFY(lit > 0);
            QVERIFY2(different <= lit / 20, qPrintable(QStringLiteral("%1 of %2").arg(different).arg(lit)));
        }
        QVERIFY(visiblePart(path, QRectF(5000, 0, 100, 100)).isEmpty());
        QPainterPath brief(QPointF(0, 0));
        brief.lineTo(50, 50);
        QCOMPARE(visiblePart(brief, QRectF(0, 0, 100, 100)), brief);
    }

    /// Where there are many edges they are painted as lines: on the curve, and all of it that is seen.
    void curvesBecomeLinesThatCoverThem() {
        QPainterPath path(QPointF(0, 0));
        path.cubicTo(0, 400, 900, -300, 700, 600);
        path.lineTo(700, 900);
        const QRectF all(-100, -400, 1200, 1400), part(200, 0, 300, 200);
        QList<QLineF> whole, seen;
        appendVisibleLines(path, all, 0.4, whole);
        appendVisibleLines(path, part, 0.4, seen);
        QCOMPARE(whole.front().p1(), QPointF(0, 0));
        QCOMPARE(whole.back().p2(), QPointF(700, 900));
        for (int i = 1; i < whole.size(); ++i) QCOMPARE(whole[i].p1(), whole[i - 1].p2());
        QVERIFY(whole.size() < 200 && seen.size() < whole.size());
        const auto distance = [&](QPointF at, const QList<QLineF>& lines) {
            double best = 1e9;
            for (const QLineF& line : lines) {
                const QPointF along = line.p2() - line.p1();
                const double t = std::clamp(
                    QPointF::dotProduct(at - line.p1(), along) / std::max(1e-9, QPointF::dotProduct(along, along)), 0.0,
                    1.0);
                best = std::min(best, QLineF(at, line.p1() + t * along).length());
            }
            return best;
        };
        int inside = 0;
        for (int i = 0; i <= 300; ++i) {
            const QPointF at = path.pointAtPercent(i / 300.0);
            QVERIFY2(distance(at, whole) <= 0.5, qPrintable(QString::number(distance(at, whole))));
            if (!part.contains(at)) continue;
            ++inside;
            QVERIFY(distance(at, seen) <= 0.5);
        }
        QVERIFY(inside > 0);
        QList<QLineF> none;
        appendVisibleLines(path, QRectF(5000, 0, 10, 10), 0.4, none);
        QVERIFY(none.isEmpty());
    }
};

CUTAWAY_SUITE(PictureTest)
#include "picture_test.moc"
