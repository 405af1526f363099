// Windows that share a place by tabs can be taken out of it, and the bars above them leave no empty strip.
#include <QLabel>
#include <QScrollBar>
#include <QTabBar>
#include <QTextBrowser>
#include <QToolBar>
#include <QTreeView>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "ui/windows/dock_tabs.h"
#include "ui/windows/keys_dialog.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/rewrite_bar.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class DocksTest : public QObject, testing::MainWindowFixture {
    Q_OBJECT

    /// The bar that has that tab, and where it is.
    std::pair<QTabBar*, QPoint> tabOf(const QString& title) {
        for (auto* bar : m_main->findChildren<QTabBar*>(Qt::FindDirectChildrenOnly))
            for (int i = 0; i < bar->count(); ++i)
                if (bar->tabText(i) == title) return {bar, bar->tabRect(i).center()};
        return {};
    }
    Window& text() { return *m_main->window("text"); }
    Window& graph() { return *m_main->window("graph"); }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() {
        showWindow();
        m_main->resize(1400, 900);
        openAndCompile();
        QTRY_VERIFY_WITH_TIMEOUT(tabOf("Text").first && tabOf("Text").first->property("dockTabs").toBool(), kPatience);
    }
    void cleanup() { closeWindow(); }

    void aDoubleClickDetaches() {
        const auto [bar, at] = tabOf("Text");
        QTest::mouseDClick(bar, Qt::LeftButton, {}, at);
        QTRY_VERIFY_WITH_TIMEOUT(text().isFloating() && text().isVisible(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!text().titleBarWidget(), kPatience);  // by which it can be put back
        QVERIFY(!graph().isFloating() && m_main->isOnScreen(&graph()));
    }

    void draggingOutDetaches() {
        const auto [bar, at] = tabOf("Text");
        QTest::mousePress(bar, Qt::LeftButton, {}, at);
        QTest::mouseMove(bar, at + QPoint(12, 0));
        QVERIFY(!text().isFloating());  // it is moved among the tabs
        QTest::mouseMove(bar, at + QPoint(40, 120));
        QTRY_VERIFY_WITH_TIMEOUT(text().isFloating(), kPatience);
        QTest::mouseMove(bar, at + QPoint(80, 160));
        QTest::mouseRelease(bar, Qt::LeftButton, {}, at + QPoint(80, 160));
        QVERIFY(text().isVisible() && !graph().isFloating());
    }

    void twoWindowsStandBesideEachOther_data() {
        QTest::addColumn<Qt::Orientation>("way");
        QTest::newRow("beside") << Qt::Horizontal;
        QTest::newRow("below") << Qt::Vertical;
    }
    void twoWindowsStandBesideEachOther() {
        QFETCH(Qt::Orientation, way);
        const qsizetype tabs = m_main->tabifiedDockWidgets(&text()).size();
        placeBeside(*m_main, text(), way);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(&graph()) && m_main->isOnScreen(&text()) && text().isVisible(),
                                 kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(way == Qt::Horizontal ? text().x() >= graph().geometry().right()
                                                       : text().y() >= graph().geometry().bottom(),
                                 kPatience);
        QVERIFY(text().width() > 150 && text().height() > 100);
        QCOMPARE(m_main->tabifiedDockWidgets(&graph()).size(), tabs - 1);
        m_main->arrangeWindows();
        QCOMPARE(m_main->tabifiedDockWidgets(&text()).size(), tabs);
    }

    /// A problem that was there when the window closed leaves nothing in the next one.
    void noEmptyStripIsLeft() {
        const int height = m_main->findChild<QToolBar*>("problems")->height();
        m_main->open("/models/bad");
        QTRY_VERIFY_WITH_TIMEOUT(m_main->findChild<ProblemBar*>()->isVisible(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->findChild<QToolBar*>("problems")->height() > height, kPatience);
        m_main->close();
        m_main = std::make_unique<MainWindow>(std::make_unique<testing::FakeSource>(m_control));
        m_main->show();
        QTRY_VERIFY(!m_main->findChild<QToolBar*>("problems")->isVisible());
        openAndCompile();
        QVERIFY(!m_main->findChild<ProblemBar*>()->isVisible());
        QTRY_COMPARE_WITH_TIMEOUT(m_main->findChild<QToolBar*>("problems")->height(), height, kPatience);
    }

    /// The reason of a rewrite is read in full, whatever the width.
    void theReasonIsReadInFull() {
        for (const int width : {1400, 1000}) {
            m_main->resize(width, 800);
            press(Qt::Key_F11);
            QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
            auto* sentence = m_main->findChild<QLabel*>("sentence");
            QCOMPARE(sentence->text(), m_main->findChild<RewriteBar*>()->text());
            QVERIFY(sentence->isVisible() && !sentence->text().isEmpty());
            QTRY_VERIFY_WITH_TIMEOUT(sentence->height() >= sentence->heightForWidth(sentence->width()), kPatience);
            QVERIFY(sentence->width() > m_main->width() / 2);
        }
    }

    /// A narrow window takes room from Steps, names last; a wide one gives it back.
    void stepsKeepTheirNames() {
        auto& steps = *m_main->window("steps");
        auto* tree = steps.findChild<QTreeView*>();
        const int letter = tree->fontMetrics().averageCharWidth();
        const int before = steps.width();
        QVERIFY(before > 200);
        m_main->raiseWindow(m_main->window("partition"));
        m_main->resize(600, 800);
        QTRY_VERIFY_WITH_TIMEOUT(steps.width() < before, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(tree->columnWidth(0) >= 13 * letter, kPatience);
        m_main->resize(1500, 800);
        QTRY_VERIFY_WITH_TIMEOUT(steps.width() >= before - 2, kPatience);
    }

    /// Nobody has to scroll sideways for a key.
    void keysAreInTheDialog() {
        KeysDialog dialog(*m_main->menuBar());
        dialog.show();
        QVERIFY(QTest::qWaitForWindowExposed(&dialog));
        QCOMPARE(dialog.findChild<QTextBrowser*>()->horizontalScrollBar()->maximum(), 0);
    }

    void theTitleTellsModelsApart() { QCOMPARE(m_main->windowTitle(), "models/a.pt2 – Cutaway"); }
};

CUTAWAY_SUITE(DocksTest)
#include "docks_test.moc"
