// The Minify window on the engine itself: a failure that tests ask for becomes a small graph, shown as it shrinks.
#include "ui/windows/minify_window.h"

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QToolButton>
#include <QtTest>

#include "engine/support/fault_points.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/graph/graph_view.h"
#include "ui/session/kept_requests.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/minify_settings.h"
#include "ui/windows/plot_view.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

class MinifyWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    MinifySearch& search() { return controller().minifySearch(); }
    MinifyWindow& window() { return m_main->get<MinifyWindow>(); }
    QString summary() { return window().findChild<QLabel*>("minifySummary")->text(); }
    QPushButton* button(const QString& start) { return buttonOf(window(), start); }
    QLineEdit* field(const QString& placeholder) {
        for (auto* found : window().findChildren<QLineEdit*>())
            if (found->placeholderText().startsWith(placeholder)) return found;
        return nullptr;
    }
    QString text() {
        for (auto* found : window().findChildren<QPlainTextEdit*>())
            if (found->accessibleName() == "Smallest graph so far") return found->toPlainText();
        return {};
    }
    void end() { QTRY_VERIFY_WITH_TIMEOUT(!search().isRunning(), testing::kEnginePatience); }

  private slots:
    void initTestCase() { prepareSettings(); }
    void stoppingNoSearchChangesNothing() {
        search().stop();
        QVERIFY(!search().isRunning() && !search().isStopping());
    }
    void init() {
        showWindow({1400, 900});
        m_main->open(testing::testFile("../resources/models/tiny_transformer.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        actionNamed(*m_main, "Ctrl+Shift+M")->trigger();
        const auto fields = window().findChildren<QLineEdit*>();
        for (QLineEdit* each : fields)
            if (each->text().endsWith(".minified"))
                each->setText(m_folder.filePath(QString::fromLatin1(QTest::currentTestFunction())));
    }
    void cleanup() {
        setFault({});
        m_main.reset();
    }

    void shrinksAFailureAndOpensTheResult() {
        setFault("pass:remove_noop_ops:logic_error");
        QVERIFY(!button("Open Result")->isEnabled());
        button("Start")->click();
        QVERIFY(search().isRunning());
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        QVERIFY(search().report()->nodes <= 3);
        QVERIFY2(summary().contains("joint/remove_noop_ops"), qPrintable(summary()));
        QVERIFY2(summary().contains("in a fresh process"), qPrintable(summary()));
        QVERIFY(text().startsWith("def forward("));
        QVERIFY(window().findChild<PlotView*>()->plot().points.size() >= 2);
        QTRY_VERIFY(window().findChild<GraphView*>()->graph() != nullptr);
        picture("minified", 500);
        const QString before = controller().path();
        button("Open Result")->click();
        QTRY_VERIFY_WITH_TIMEOUT(controller().path() != before && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(controller().path().endsWith("graph.py"));
    }

    /// The result compiles as it fails, has a folder of its own to minify into, and the model is one click away.
    void theResultHasItsOptionsAndAWayBack() {
        CompileRequest asked;
        asked.mode = Mode::Training;
        controller().compile(asked);
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().size() == 1 && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(!button("Back to"));
        const QString before = controller().path(), key = controller().modelKey();
        const QString folder = m_folder.filePath("theResultHasItsOptionsAndAWayBack");
        setFault("pass:min_cut_rematerialization_partition:logic_error");
        button("Start")->click();
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        const CompileRequest needed = search().report()->request;
        QCOMPARE(needed.mode, Mode::Training);
        button("Open Result")->click();
        QTRY_VERIFY_WITH_TIMEOUT(controller().path() != before && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(rememberedRequest(controller().modelKey()) == needed);
        QVERIFY(rememberedRequest(key) == CompileRequest());
        for (const auto* each : window().findChildren<QLineEdit*>()) QVERIFY(each->text() != folder);
        QVERIFY(button("Back to")->isVisibleTo(&window()));
        button("Back to")->click();
        QTRY_VERIFY_WITH_TIMEOUT(controller().path() == before && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(!button("Back to")->isVisibleTo(&window()));
    }

    void saysThatNothingFails() {
        button("Start")->click();
        end();
        QVERIFY2(summary().contains("does not fail"), qPrintable(summary()));
        QVERIFY(!button("Open Result")->isEnabled());
    }

    void stopsAndGoesOn() {
        auto* check = window().findChildren<QComboBox*>().front();
        check->setCurrentIndex(check->findData(static_cast<int>(MinifyCheck::Command)));
        QVERIFY(field("Shell command")->isEnabled());
        field("Shell command")->setText("sleep 0.05; ! grep -q aten.gelu {}");
        button("Start")->click();
        QTRY_VERIFY_WITH_TIMEOUT(search().state().steps.size() >= 2, testing::kEnginePatience);
        const auto activity = window().activity();
        QVERIFY(activity && activity->doing == "Minifying");
        window().stopActivity();
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        if (search().report()->stopped) {
            QVERIFY(button("Go On") != nullptr);
            button("Go On")->click();
            end();
        }
        QVERIFY(search().report().has_value());
        QVERIFY(!search().report()->stopped);
        QVERIFY(search().report()->nodes <= 3);
    }

    /// What the command's output says decides, and strategies that are left out are not tried.
    void moreSettings() {
        auto* check = window().findChildren<QComboBox*>().front();
        auto* settings = window().findChild<MinifySettings*>();
        auto* strategies = settings->findChild<QListWidget*>();
        QVERIFY(!strategies->isVisible());
        settings->findChild<QToolButton*>()->click();
        QVERIFY(strategies->isVisible());
        QCOMPARE(strategies->count(), static_cast<int>(minifyStrategies().size()));
        QVERIFY(!field("Its exit status")->isEnabled());
        check->setCurrentIndex(check->findData(static_cast<int>(MinifyCheck::Numbers)));
        field("0.0001")->setText("small");
        button("Start")->click();
        QVERIFY(!search().isRunning());
        QVERIFY2(summary().contains("not 'small'"), qPrintable(summary()));
        field("0.0001")->setText("1e-3");
        check->setCurrentIndex(check->findData(static_cast<int>(MinifyCheck::Command)));
        QVERIFY(!field("0.0001")->isEnabled());
        field("Its exit status")->setText("GELU IS THERE");
        field("Shell command")->setText("grep -q aten.gelu {} && echo GELU IS THERE; true");
        for (int i = 0; i < strategies->count(); ++i) strategies->item(i)->setCheckState(Qt::Unchecked);
        picture("minify-settings", 500);
        button("Start")->click();
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        QCOMPARE(search().report()->nodes, search().report()->nodesBefore);
        for (int i = 0; i < strategies->count(); ++i) strategies->item(i)->setCheckState(Qt::Checked);
        button("Start Afresh")->click();
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        QVERIFY(search().report()->nodes <= 3);
    }

    /// The graph of the step on show, in place of the one that was opened.
    void theGraphOfTheStepOnShow() {
        actionNamed(*m_main, "Ctrl+B")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().size() == 1 && m_main->isSettled(), testing::kEnginePatience);
        const Run& run = controller().runs().front();
        const auto decomposed = std::find_if(run.steps.begin(), run.steps.end(),
                                             [](const StepInfo& step) { return step.name == "decompose"; });
        QVERIFY(decomposed != run.steps.end());
        m_main->selection().go(comparisonAt({run.id, decomposed->index, -1}), NodeKey::None);
        auto* settings = window().findChild<MinifySettings*>();
        settings->findChild<QToolButton*>()->click();
        settings->findChild<QComboBox*>()->setCurrentIndex(1);
        setFault("pass:reinplace_inplaceable_ops:logic_error");
        button("Start")->click();
        end();
        QVERIFY2(search().report().has_value(), qPrintable(summary()));
        QCOMPARE(search().report()->nodesBefore, decomposed->nodesAfter);
        QVERIFY(search().report()->nodes <= 3);
    }

    void anotherModelEndsTheSearch() {
        setFault("pass:remove_noop_ops:hang");
        button("Start")->click();
        QVERIFY(search().isRunning());
        controller().close();
        QTRY_VERIFY(!search().isRunning());
        QVERIFY(text().isEmpty());
    }
};

CUTAWAY_SUITE(MinifyWindowTest)
#include "minify_window_test.moc"
