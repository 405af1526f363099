// The strip on the Steps window: a search as marks on all rewrites, driven by pointer and keys.
#include "ui/windows/bisect_strip.h"

#include <QClipboard>
#include <QLineEdit>
#include <QMenu>
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "ui/windows/steps_window.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class BisectStripTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    BisectStrip& strip() { return *m_main->get<StepsWindow>().findChild<BisectStrip*>(); }
    void search() {
        openAndCompile();
        m_main->controller().bisect(1, {});
        QTRY_VERIFY_WITH_TIMEOUT(m_control->calls().contains("bisect") && m_main->isSettled(), kPatience);
        QTRY_VERIFY(strip().isVisible());
    }
    /// Chooses an action of the context menu that opens next, then closes it.
    static void inMenu(const QString& choose) {
        QTimer::singleShot(0, [choose] {
            auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
            QVERIFY(menu);
            for (QAction* action : menu->actions())
                if (action->text() == choose) action->trigger();
            menu->close();
        });
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void hiddenWithoutASearch() {
        openAndCompile();
        QVERIFY(!strip().isVisible());
    }

    void endsOnTheCulprit() {
        search();
        QCOMPARE(m_main->selection().comparison(), (Comparison{{1, 4, 1}, {1, 4, 2}}));
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(15));
        QCOMPARE(strip().sentence(),
                 "Rewrite 2 of fuse_bias_add, mm_add_to_addmm at y: out[0, 1] is 3.5 with it, 4 without");
        QCOMPARE(strip().accessibleDescription(), strip().sentence());
        QVERIFY(!strip().accessibleName().isEmpty());
    }

    void marksStandWhereTheTestsWere() {
        search();
        const QRectF last = strip().markOf(0), good = strip().markOf(1), culprit = strip().markOf(2);
        QVERIFY(good.center().x() < culprit.center().x() && culprit.center().x() < last.center().x());
        QVERIFY2(culprit.bottom() < good.top(), "bad ones stand above the bar, good ones below");
        const QRectF left = strip().rangeLeft();
        QVERIFY(std::abs(left.left() - good.center().x()) < 1 && std::abs(left.right() - culprit.center().x()) < 1);
    }

    void theRangeNarrows() {
        openAndCompile();
        auto report = std::make_shared<BisectReport>();
        report->searched = 8;
        report->sections = {{0, "main", "joint", "a#1", 4}, {1, "main", "joint", "b#1", 8}};
        double before = 1e9;
        for (const auto& [good, bad] : {std::pair(0, 8), std::pair(4, 8), std::pair(4, 6), std::pair(5, 6)}) {
            auto next = std::make_shared<BisectReport>(*report);
            next->good = good;
            next->bad = bad;
            next->probes.push_back({bad, {1, 4, 1}, true, "x", "cutaway-cli run x"});
            emit m_main->controller().bisecting(1, next);
            QVERIFY(strip().isVisible() && strip().rangeLeft().width() < before);
            before = strip().rangeLeft().width();
            QVERIFY2(strip().sentence().startsWith("One of "), qPrintable(strip().sentence()));
        }
        m_main->selection().setPlace({0, -1, -1});
        QVERIFY2(!strip().isVisible(), "it belongs to another run");
    }

    void aClickGoesThere() {
        search();
        QTest::mouseClick(&strip(), Qt::LeftButton, {}, strip().markOf(1).center().toPoint());
        QCOMPARE(m_main->selection().place(), (Place{1, 4, 1}));
        QTest::mouseClick(&strip(), Qt::LeftButton, {}, strip().markOf(2).center().toPoint());
        QCOMPARE(m_main->selection().place(), (Place{1, 4, 2}));
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(15));
    }

    void keysGoThrough() {
        search();
        strip().setFocus();
        const auto press = [this](Qt::Key key) { QTest::keyClick(&strip(), key); };
        press(Qt::Key_Home);
        QCOMPARE(strip().current(), 1);
        QCOMPARE(strip().accessibleDescription(), "Test 2, good after 1 rewrite: largest error 0");
        press(Qt::Key_Right);
        QCOMPARE(strip().current(), 2);
        press(Qt::Key_Right);
        press(Qt::Key_Right);
        QCOMPARE(strip().current(), 0);
        press(Qt::Key_Left);
        press(Qt::Key_Left);
        press(Qt::Key_Return);
        QCOMPARE(m_main->selection().place(), (Place{1, 4, 1}));
        press(Qt::Key_End);
        press(Qt::Key_Space);
        QCOMPARE(m_main->selection().place(), (Place{1, 5, 1}));
    }

    void theCommandIsCopied() {
        search();
        inMenu("Copy command of this test");
        QContextMenuEvent event(QContextMenuEvent::Mouse, strip().markOf(1).center().toPoint(),
                                strip().mapToGlobal(strip().markOf(1).center().toPoint()));
        QApplication::sendEvent(&strip(), &event);
        QCOMPARE(QApplication::clipboard()->text(), "cutaway-cli run /models/a.pt2 --fuel 1");
    }

    void inBothThemes() {
        search();
        for (const Theme theme : {Theme::Light, Theme::Dark}) {
            applyTheme(theme);
            QTest::qWait(100);
            // For a person to look at, with CUTAWAY_PICTURES=FOLDER.
            if (const QString folder = qEnvironmentVariable("CUTAWAY_PICTURES"); !folder.isEmpty())
                m_main->grab().save(folder + "/bisect_strip_" + nameOf(theme) + ".png");
            const QImage picture = strip().grab().toImage();
            const QPointF bad = strip().markOf(2).center(), good = strip().markOf(1).center();
            const auto colour = [&](QPointF at) {
                return picture.pixelColor((at * picture.devicePixelRatio()).toPoint());
            };
            QVERIFY2(colour(bad).red() > colour(bad).green(), "a red cross");
            bool green = false;
            for (int x = -4; x <= 4; ++x)
                for (int y = -4; y <= 4; ++y) {
                    const QColor there = colour(good + QPointF(x, y));
                    green |= there.green() > there.red() + 20;
                }
            QVERIFY2(green, "a green tick");
        }
        applyTheme(Theme::Light);
    }
};

CUTAWAY_SUITE(BisectStripTest)
#include "bisect_strip_test.moc"
