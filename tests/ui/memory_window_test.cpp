// The Memory window: its chart and table on plans made by hand, and on the engine with mouse and keys.
#include "ui/windows/memory_window.h"

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QTableView>
#include <QWheelEvent>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/windows/memory_view.h"

using namespace cutaway;
using namespace cutaway::ui;

namespace {

using Place = MemoryValue::Place;

NodeKey key(int node) { return static_cast<NodeKey>(node); }

/// a lives at calls 0 and 1, b above it at 1 and 2, c at a's place at 2, own beside the arena at 1.
std::shared_ptr<const MemoryPlan> madeByHand() {
    auto plan = std::make_shared<MemoryPlan>();
    plan->calls = {{"kernel0", MemoryMaker::Kernel, "pointwise", {key(1), key(2)}, {"x", "a"}},
                   {"b", MemoryMaker::Library, "library: mm (oneDNN)", {key(3)}, {"b"}},
                   {"kernel1", MemoryMaker::Kernel, "reduction", {key(4)}, {"c"}}};
    plan->values = {{key(2), "a", "f32[32]", 128, 0, Place::Arena, 0, 1, false, false},
                    {key(3), "b", "f32[64]", 256, 128, Place::Arena, 1, 2, false, false},
                    {key(3), "own", "f32[16]", 64, 0, Place::Heap, 1, 1, false, false},
                    {key(4), "c", "f32[16]", 64, 0, Place::Arena, 2, 2, true, false}};
    plan->arena = 384;
    plan->own = 64;
    plan->live = {128, 448, 320};
    plan->peak = 1;
    return plan;
}

/// So many calls, each with a value that lives for a while.
std::shared_ptr<const MemoryPlan> large(int calls) {
    auto plan = std::make_shared<MemoryPlan>();
    plan->arena = 64 * 64;
    for (int i = 0; i < calls; ++i) {
        const std::string name = "node_" + std::to_string(i);
        plan->calls.push_back({name, static_cast<MemoryMaker>(i % 3), "pointwise", {key(i + 1)}, {name}});
        plan->values.push_back(
            {key(i + 1), name, "f32[16]", 64, i % 64 * 64, Place::Arena, i, std::min(calls - 1, i + 63), false, false});
        plan->live.push_back(64 * std::min(i + 1, 64));
    }
    plan->peak = 63;
    return plan;
}

}  // namespace

class MemoryWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    MemoryQuery& query() { return controller().memoryQuery(); }
    MemoryWindow& window() { return m_main->get<MemoryWindow>(); }
    MemoryView& view() { return *window().findChild<MemoryView*>(); }
    QTableView* table() { return window().findChild<QTableView*>(); }
    QComboBox* graphs() { return window().findChild<QComboBox*>(); }
    QString label(const char* name) { return window().findChild<QLabel*>(name)->text(); }
    const MemoryPlan& plan(size_t index = 0) { return (*query().plans())[index]; }
    void open(const QString& model, const CompileRequest& request = {}) {
        m_main->open(testing::testFile("../resources/models/" + model + ".pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        controller().compile(request);
        QTRY_VERIFY_WITH_TIMEOUT(!controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
        m_main->raiseWindow(&window());
        QTRY_VERIFY_WITH_TIMEOUT(query().plans() != nullptr, testing::kEnginePatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow({1400, 900}); }
    void cleanup() { m_main.reset(); }

    void theChartFindsValues() {
        const MemoryChart chart(madeByHand());
        QCOMPARE(chart.height(), int64_t{448});
        QCOMPARE(chart.bottomOf(2), int64_t{384});
        QCOMPARE(chart.valueAt(0, 0), 0);
        QCOMPARE(chart.valueAt(0, 128), -1);
        QCOMPARE(chart.valueAt(2, 10), 3);
        QCOMPARE(chart.valueAt(1, 400), 2);
        QCOMPARE(chart.valueOf(key(2)), 0);
        QCOMPARE(chart.valueOf(key(3)), 1);  // the larger of two
        QCOMPARE(chart.valueOf(key(1)), 0);  // computed on the way to it
        QCOMPARE(chart.valueOf(key(9)), -1);
        QCOMPARE(chart.valueOf(NodeKey::None), -1);
        QCOMPARE(chart.neighbour(0, 1, true), 1);
        QCOMPARE(chart.neighbour(1, 1, true), 2);
        QCOMPARE(chart.neighbour(1, 2, true), 1);
        QCOMPARE(chart.neighbour(1, 2, false), 3);
        QCOMPARE(chart.said(0), QStringLiteral("a · f32[32] · 128 B · calls 1 to 2 · kernel0 (pointwise)"));
        QCOMPARE(chart.said(3), QStringLiteral("c · f32[16] · 64 B · call 3 · kernel1 (reduction) · returned"));
        QVERIFY(MemoryChart().isEmpty());
    }
    void theModelIsATable() {
        MemoryModel model;
        const QAbstractItemModelTester tester(&model);
        model.show(MemoryChart(madeByHand()), 1);
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(model.valueAt(0), 1);
        QCOMPARE(model.rowOf(2), 2);
        QCOMPARE(model.rowOf(3), -1);
        QStringList cells;
        for (int column = 0; column < model.columnCount(); ++column) cells << model.index(2, column).data().toString();
        QCOMPARE(cells.join('|'), QStringLiteral("own|64 B|14.3 %|f32[16]|2|2|library, own memory"));
        model.show(MemoryChart(), -1);
        QCOMPARE(model.rowCount(), 0);
    }

    void mouseAndKeysGoFromBarToBar() {
        MemoryView alone;
        alone.resize(600, 300);
        alone.setChart(MemoryChart(madeByHand()));
        alone.show();
        QVERIFY(QTest::qWaitForWindowExposed(&alone));
        QSignalSpy chosen(&alone, &MemoryView::chosen);
        const QPointF middle = alone.rectOf(1).center();
        QMouseEvent move(QEvent::MouseMove, middle, alone.mapToGlobal(middle), Qt::NoButton, {}, {});
        QCoreApplication::sendEvent(&alone, &move);
        QCOMPARE(alone.hovered(), 1);
        QVERIFY(alone.accessibleDescription().startsWith("b · "));
        QTest::mouseClick(&alone, Qt::LeftButton, {}, alone.rectOf(1).center().toPoint() + QPoint(60, 0));
        QCOMPARE(chosen.takeLast(), (QVariantList{1, 2}));
        // Where nothing lives a click means the call.
        QTest::mouseClick(&alone, Qt::LeftButton, {}, QPoint(100, static_cast<int>(alone.rectOf(1).center().y())));
        QCOMPARE(chosen.takeLast(), (QVariantList{-1, 0}));
        alone.setCall(1);
        struct Press {
            Qt::Key key;
            int hovered;
        };
        for (const auto& [pressed, hovered] :
             {Press{Qt::Key_Home, 0}, Press{Qt::Key_Right, 1}, Press{Qt::Key_Up, 2}, Press{Qt::Key_Down, 1},
              Press{Qt::Key_Down, 0}, Press{Qt::Key_Left, 0}, Press{Qt::Key_End, 3}, Press{Qt::Key_Right, 3}}) {
            QTest::keyClick(&alone, pressed);
            QCOMPARE(alone.hovered(), hovered);
        }
        QTest::keyClick(&alone, Qt::Key_Return);
        QCOMPARE(chosen.takeLast(), (QVariantList{3, 2}));
        alone.setChart({});
        QTest::keyClick(&alone, Qt::Key_Right);
        QTest::mouseClick(&alone, Qt::LeftButton, {}, QPoint(100, 100));
        QVERIFY(chosen.isEmpty());
    }
    void theWheelZooms() {
        MemoryView alone;
        alone.resize(600, 300);
        alone.setChart(MemoryChart(large(400)));
        QCOMPARE(alone.callsShown(), 400.0);
        const auto turn = [&](int by, Qt::KeyboardModifiers held = {}) {
            QWheelEvent event(QPointF(300, 100), alone.mapToGlobal(QPointF(300, 100)), {}, {0, by}, Qt::NoButton, held,
                              Qt::NoScrollPhase, false);
            QCoreApplication::sendEvent(&alone, &event);
        };
        const double before = alone.rectOf(200).left();
        for (int i = 0; i < 5; ++i) turn(120);
        QVERIFY(alone.callsShown() < 140);
        QVERIFY(std::abs(alone.rectOf(200).left() - before) < 12);  // what is under the pointer stays there
        const double shown = alone.callsShown(), left = alone.rectOf(200).left();
        turn(120, Qt::ShiftModifier);
        QCOMPARE(alone.callsShown(), shown);
        QVERIFY(alone.rectOf(200).left() > left);
        for (int i = 0; i < 60; ++i) turn(120);
        QVERIFY(alone.callsShown() >= 4);
        // What is marked elsewhere comes into sight.
        alone.setCurrent(390);
        QVERIFY(QRectF(alone.rect()).intersects(alone.rectOf(390)));
        for (int i = 0; i < 60; ++i) turn(-120);
        QCOMPARE(alone.callsShown(), 400.0);
        for (const Qt::Key key : {Qt::Key_Plus, Qt::Key_Plus}) QTest::keyClick(&alone, key);
        QVERIFY(alone.callsShown() < 300);
        QTest::keyClick(&alone, Qt::Key_0);
        QCOMPARE(alone.callsShown(), 400.0);
    }
    void largePlansArePaintedInAFrame() {
        MemoryView alone;
        alone.resize(1600, 900);
        alone.setChart(MemoryChart(large(3000)));
        QPixmap page(alone.size());
        alone.render(&page);
        double best = 1e9;
        for (int i = 0; i < 5; ++i) {
            QElapsedTimer timer;
            timer.start();
            alone.render(&page);
            best = std::min(best, static_cast<double>(timer.nsecsElapsed()) / 1e6);
        }
        qInfo("3000 bars in %.2f ms", best);
#ifdef NDEBUG
        QVERIFY2(best < 16, qPrintable(QString::number(best)));
#endif
    }

    void thePeakIsListed() {
        QVERIFY(label("memorySummary").contains("Compile the model first"));
        QVERIFY(!buttonOf(window(), "Peak")->isEnabled());
        open("tiny_transformer");
        QVERIFY(!graphs()->isVisible());
        QVERIFY2(label("memorySummary").contains("arena "), qPrintable(label("memorySummary")));
        QVERIFY2(label("memoryLiving").contains(QStringLiteral("call %1 of").arg(plan().peak + 1)) &&
                     label("memoryLiving").contains("the peak"),
                 qPrintable(label("memoryLiving")));
        QCOMPARE(static_cast<size_t>(table()->model()->rowCount()), livingAt(plan(), plan().peak).size());
        picture("memory", 300);
    }
    void barsAndNodesFollowEachOther() {
        open("tiny_transformer");
        const int last = static_cast<int>(plan().values.size()) - 1;
        const QRectF bar = view().rectOf(last);
        QTest::mouseClick(&view(), Qt::LeftButton, {}, bar.center().toPoint());
        QCOMPARE(view().current(), last);
        QCOMPARE(m_main->selection().node(), plan().values.back().node);
        QVERIFY(!label("memoryLiving").contains("the peak"));
        QVERIFY(table()->selectionModel()->hasSelection());
        buttonOf(window(), "Peak")->click();
        QVERIFY(label("memoryLiving").contains("the peak"));
        // From the table,
        table()->setFocus();
        table()->selectRow(0);
        const size_t largest = livingAt(plan(), plan().peak).front();
        QCOMPARE(view().current(), static_cast<int>(largest));
        QCOMPARE(m_main->selection().node(), plan().values[largest].node);
        // and from elsewhere.
        m_main->selection().setNode(plan().values.back().node);
        QCOMPARE(plan().values[static_cast<size_t>(view().current())].node, plan().values.back().node);
        view().setFocus();
        QTest::keyClick(&view(), Qt::Key_Home);
        QTest::keyClick(&view(), Qt::Key_Return);
        QCOMPARE(m_main->selection().node(), plan().values.front().node);
        picture("memory-chosen", 300);
    }
    void trainingHasBothHalves() {
        CompileRequest request;
        request.mode = Mode::Training;
        open("tiny_transformer", request);
        QVERIFY(graphs()->isVisible());
        QCOMPARE(graphs()->count(), 2);
        const auto choose = [&](const char* name) {
            const Run& run = controller().runs().back();
            m_main->selection().setPlace({run.id, *run.lastStepOf(name), 0});
            QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        };
        choose("backward");
        QCOMPARE(graphs()->currentText(), QStringLiteral("backward"));
        QVERIFY(label("memorySummary").contains(QStringLiteral("%1 calls").arg(plan(1).calls.size())));
        picture("memory-backward", 300);
        choose("forward");
        QCOMPARE(graphs()->currentText(), QStringLiteral("forward"));
        picture("memory-forward", 300);
        controller().close();
        QTRY_VERIFY(!query().plans());
        QCOMPARE(table()->model()->rowCount(), 0);
        QVERIFY(label("memorySummary").contains("Compile the model first"));
    }
};

CUTAWAY_SUITE(MemoryWindowTest)
#include "memory_window_test.moc"
