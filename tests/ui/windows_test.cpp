// The main window on a source of hand-made structs, driven by keys, clicks and selection.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTableView>
#include <QTextBrowser>
#include <QTreeView>
#include <QTreeWidget>
#include <QWheelEvent>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/windows/command_palette.h"
#include "ui/windows/export_graph.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/rewrite_bar.h"
#include "ui/windows/run_dialogs.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"
#include "ui/windows/window_table.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class WindowsTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void windowsAreFoundByName() {
        QCOMPARE(m_main->windows().size(), windowNames().size());
        for (const QString& name : windowNames()) QCOMPARE(m_main->window(name)->objectName(), name);
        QVERIFY(!m_main->window(QString()));
        QVERIFY(!m_main->window("nosuch"));
    }

    void emptyWindowsSayWhatTheyWillShow() {
        for (const QString& name : windowNames()) {
            QDockWidget* dock = m_main->window(name);
            QString said = name == "graph" ? QStringLiteral("canvas") : QString();
            for (const QLabel* label : dock->findChildren<QLabel*>()) said += label->text();
            QVERIFY2(said.size() > 5, qPrintable(name));
        }
    }

    void allWindowsFollowTheNode() {
        openAndCompile();
        auto* node = m_main->window("node");
        auto* tree = node->findChild<QTreeView*>();
        const NodeKey addmm = static_cast<NodeKey>(16);
        m_main->get<GraphWindow>().view().nodeChosen(addmm);
        QTRY_VERIFY_WITH_TIMEOUT(testing::treeText(*tree->model()).startsWith("Node | addmm\n"), kPatience);
        auto* text = m_main->window("text")->findChild<QTableView*>();
        QVERIFY(text->currentIndex().siblingAtColumn(3).data().toString().contains("addmm = "));
        // And back: a line of the text makes its node current everywhere.
        for (int row = 0; row < text->model()->rowCount(); ++row)
            if (text->model()->index(row, 3).data().toString().contains("r1 = ")) text->selectRow(row);
        QCOMPARE(m_main->get<GraphWindow>().view().canvas().currentId(), m_main->selection().node());
        QVERIFY(m_main->selection().node() != addmm);
    }

    void theExplainWindowAnswersWhenItIsLookedAt() {
        openAndCompile();
        m_main->get<GraphWindow>().view().nodeChosen(static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        QVERIFY2(!m_control->calls().contains("explain"), "nobody looks at it");
        QDockWidget* explain = m_main->window("explain");
        explain->raise();
        auto* rows = explain->findChild<QTreeView*>();
        QTRY_COMPARE_WITH_TIMEOUT(rows->model()->rowCount(), 3, kPatience);
        QVERIFY(explain->findChild<QTextBrowser*>()->toPlainText().contains("aten.addmm(b, m)"));
        // A reason's node is a link, by mouse and by keys.
        rows->setCurrentIndex(rows->model()->index(2, 0));
        auto* about = explain->findChild<QTextBrowser*>();
        QVERIFY2(about->toPlainText().contains("Needs x to be read only here, but m reads it too."),
                 qPrintable(about->toPlainText()));
        about->setFocus();
        QTest::keyClick(about, Qt::Key_Tab);
        QTest::keyClick(about, Qt::Key_Tab);
        QTest::keyClick(about, Qt::Key_Return);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(14));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        // The box of a rule switches it off.
        rows->model()->setData(rows->model()->index(0, 0), Qt::Unchecked, Qt::CheckStateRole);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 2 && m_main->isSettled(), kPatience);
        QCOMPARE(m_main->controller().runs()[1].options.disabledPasses.size(), size_t(1));
        QTRY_COMPARE_WITH_TIMEOUT(rows->model()->index(0, 1).data().toString() == "off" ||
                                      rows->model()->index(1, 1).data().toString() == "off" ||
                                      rows->model()->index(2, 1).data().toString() == "off",
                                  true, kPatience);
    }

    void searchFindsAndGoesOn() {
        openAndCompile();
        press(Qt::Key_F, Qt::ControlModifier);
        auto* field = m_main->window("search")->findChild<QLineEdit*>();
        QVERIFY(field->hasFocus());
        QTest::keyClicks(field, "op=mm");
        QCOMPARE(m_main->get<SearchWindow>().hitCount(), 2);
        press(Qt::Key_F3);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(14));
        press(Qt::Key_F3);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(16));
        press(Qt::Key_F3, Qt::ShiftModifier);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(14));
    }

    void thePaletteReachesEverything() {
        openAndCompile();
        press(Qt::Key_K, Qt::ControlModifier);
        auto* palette = m_main->findChild<CommandPalette*>();
        QVERIFY(palette);
        QTest::keyClicks(palette->findChild<QLineEdit*>(), "reinplace pass");
        QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(shownStep(), "reinplace", kPatience);
    }

    void paletteRanking() {
        const QVector<PaletteEntry> entries = {
            {"pass", "fuse_bias_add", {}}, {"node", "add_3", {}}, {"action", "Add mark", {}}};
        QCOMPARE(rankEntries(entries, "add", 9), (QVector<int>{1, 2, 0}));
        QCOMPARE(rankEntries(entries, "add pass", 9), QVector<int>{0});
        QCOMPARE(rankEntries(entries, "", 2), (QVector<int>{0, 1}));
    }

    void problemsAreShownAndLogged() {
        m_main->open("/models/bad.pt2");
        auto* bar = m_main->findChild<ProblemBar*>();
        QTRY_VERIFY_WITH_TIMEOUT(bar->isVisible(), kPatience);
        QVERIFY(bar->text().contains("the archive has no models/ folder"));
        QVERIFY(bar->text().contains("Where: /models/bad.pt2"));
        QVERIFY(bar->text().contains("Save the program with torch.export.save."));
        QVERIFY2(bar->height() < 6 * bar->fontMetrics().height(), qPrintable(QString::number(bar->height())));
        // All of it can be read, the first time too.
        for (const QLabel* label : bar->findChildren<QLabel*>())
            QTRY_VERIFY_WITH_TIMEOUT(label->height() >= label->heightForWidth(label->width()), kPatience);
        m_main->open("/models/a.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(!bar->isVisible(), kPatience);
    }

    /// A step that failed says what failed, where, and what to do next: after a pass nothing can be trusted, after the
    /// passes all can.
    void aFailedStepIsToldInASentence_data() {
        QTest::addColumn<QString>("step");
        QTest::addColumn<QString>("where");
        QTest::addColumn<QString>("next");
        QTest::newRow("pass") << "fuse_bias_add"
                              << "Where: step 5 of Run 1: inference, CPU"
                              << "Look at the step, or switch the pass off in the Steps window and compile again.";
        QTest::newRow("schedule")
            << "schedule"
            << "Where: step 7 of Run 1: inference, CPU"
            << "All passes are done: step through them, or run the graph in the reference interpreter (F5).";
    }
    void aFailedStepIsToldInASentence() {
        QFETCH(QString, step);
        QFETCH(QString, where);
        QFETCH(QString, next);
        const QByteArray name = step.toUtf8();
        m_control->failing = name.constData();
        openAndCompile();
        auto* bar = m_main->findChild<ProblemBar*>();
        QTRY_VERIFY_WITH_TIMEOUT(bar->isVisible(), kPatience);
        QCOMPARE(bar->text(),
                 QStringList({QStringLiteral("✗ %1 failed: y: no such shape").arg(step), where, next}).join('\n'));
        // The step is on show, and says so where steps are told.
        QCOMPARE(shownStep(), step);
        QCOMPARE(m_main->findChild<RewriteBar*>()->text(), "Failed: y: no such shape");
        QVERIFY(testing::treeText(*m_main->window("steps")->findChild<QTreeView*>()->model())
                    .contains(QStringLiteral("%1 | ✗ failed").arg(step)));
        m_control->failing = nullptr;
    }

    void theLogHasColumnsForWhatItSays() {
        auto& table = *m_main->window("log")->findChild<QTableView*>();
        openAndCompile();
        QVERIFY(!table.isColumnHidden(LogModel::What) && !table.isColumnHidden(LogModel::Where) &&
                table.isColumnHidden(LogModel::Next));
        m_main->open("/models/bad.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(!table.isColumnHidden(LogModel::Next), kPatience);
    }

    /// Side by side the texts scroll inside their columns.
    void longLinesCanBeReadSideBySide() {
        openAndCompile();
        QDockWidget& text = *m_main->window("text");
        text.raise();
        auto& table = *text.findChild<QTableView*>();
        QScrollBar* sides = nullptr;
        for (auto* bar : text.findChildren<QScrollBar*>())
            if (!bar->accessibleName().isEmpty()) sides = bar;
        QVERIFY(sides && !sides->isVisible());
        m_main->get<TextWindow>().setSideBySide(true);
        m_main->resize(620, 500);
        QTRY_VERIFY_WITH_TIMEOUT(sides->isVisible(), kPatience);
        const QImage before = table.viewport()->grab().toImage();
        QWheelEvent turn(QPointF(50, 50), table.viewport()->mapToGlobal(QPointF(50, 50)), {}, {-240, 0}, Qt::NoButton,
                         Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(table.viewport(), &turn);
        QCOMPARE(sides->value(), std::min(120, sides->maximum()));
        QVERIFY(table.viewport()->grab().toImage() != before);
    }

    void longWorkShowsProgressAndEscStopsIt() {
        openAndCompile();
        m_control->hold = true;
        m_main->controller().compile({});
        QVERIFY(!m_main->findChild<QProgressBar*>());
        QTRY_VERIFY_WITH_TIMEOUT(m_main->findChild<QProgressBar*>() && m_main->findChild<QProgressBar*>()->isVisible(),
                                 kPatience);
        press(Qt::Key_Escape);
        QVERIFY(!m_main->controller().isBusy());
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->findChild<QProgressBar*>(), kPatience);
    }

    void resultsAreShown() {
        openAndCompile();
        m_main->controller().run(1, {});
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().isBusy(), kPatience);
        QVERIFY(testing::treeText(*m_main->window("results")->findChild<QTableView*>()->model())
                    .contains("✓ within tolerance"));
        // Timing fills the kernels, and its outputs stay in front.
        auto* timed = m_main->window("kernels")->findChild<QTableView*>();
        press(Qt::Key_F6);
        QTRY_VERIFY_WITH_TIMEOUT(testing::treeText(*timed->model()).startsWith("fused_addmm_relu"), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().isBusy(), kPatience);
        QVERIFY(m_main->isOnScreen(m_main->window("results")->widget()));
        press(Qt::Key_F7);
        auto* kernels = m_main->window("kernels")->findChild<QTableView*>();
        QTRY_VERIFY_WITH_TIMEOUT(testing::treeText(*kernels->model()).startsWith("fused_addmm_relu"), kPatience);
        kernels->selectRow(0);
        QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(16));
    }

    void copiesRunnablePython() {
        openAndCompile();
        m_main->get<TextWindow>().copyRunnable();
        QTRY_VERIFY_WITH_TIMEOUT(QApplication::clipboard()->text().startsWith("import torch\n"), kPatience);
    }

    void layoutsAndRecentsAreRemembered() {
        openAndCompile();
        m_main->window("node")->hide();
        QSettings().setValue("layouts/mine", m_main->saveState());
        m_main->window("node")->show();
        QVERIFY(m_main->restoreState(QSettings().value("layouts/mine").toByteArray()));
        QVERIFY(!m_main->window("node")->isVisible());
        QCOMPARE(QSettings().value("recent").toStringList(), QStringList{"/models/a.pt2"});
    }

    void filesCanBeDropped() {
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile("/models/a.pt2")});
        QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(m_main.get(), &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(m_main.get(), &drop);
        QTRY_COMPARE_WITH_TIMEOUT(m_main->controller().path(), "/models/a.pt2", kPatience);
    }

    void picturesAreExported_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("start");
        QTest::newRow("svg") << "g.svg" << QByteArray("<?xml");
        QTest::newRow("png") << "g.png" << QByteArray("\x89PNG");
        QTest::newRow("dot") << "g.dot" << QByteArray("digraph step {");
    }
    void picturesAreExported() {
        QFETCH(QString, name);
        QTemporaryDir folder;
        openAndCompile();
        const GraphScene& scene = *m_main->get<GraphWindow>().view().canvas().scene();
        QVERIFY(
            exportGraph(scene, GraphMode::Union, {}, m_main->palette(), "a.pt2: fuse_bias_add", folder.filePath(name)));
        QFile file(folder.filePath(name));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QFETCH(QByteArray, start);
        const QByteArray written = file.readAll();
        QVERIFY(written.startsWith(start));
        // Whoever gets it can tell what it shows.
        if (name.endsWith("svg"))
            for (const char* word : {"<title>a.pt2: fuse_bias_add</title>", ">a.pt2: fuse_bias_add</text>",
                                     ">+ added</text>", ">− removed</text>"})
                QVERIFY2(written.contains(word), word);
        const auto unknown = exportGraph(scene, GraphMode::Union, {}, m_main->palette(), "a.pt2: fuse_bias_add",
                                         folder.filePath("g.bmp"));
        QVERIFY(!unknown);
        QCOMPARE(unknown.error().notes.at(0), std::string("Use a name that ends in .svg, .png or .dot."));
        QVERIFY(
            !exportGraph(scene, GraphMode::Union, {}, m_main->palette(), "a.pt2: fuse_bias_add", "/dev/null/" + name));
    }
};

CUTAWAY_SUITE(WindowsTest)
#include "windows_test.moc"
