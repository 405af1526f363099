// Where the keyboard leads in the main window: the focus, the keys of menus and windows, what Enter and a click do.
#include <QApplication>
#include <QFileDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QTableView>
#include <QTreeView>
#include <QTreeWidget>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/windows/activity_list.h"
#include "ui/windows/command_palette.h"
#include "ui/windows/export_graph.h"
#include "ui/windows/graph_dialog.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/search_window.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"
#include "ui/windows/window_table.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class WindowKeysTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    GraphCanvas& canvas() { return m_main->get<GraphWindow>().view().canvas(); }
    QString focusedDock() const {
        for (const QWidget* at = QApplication::focusWidget(); at; at = at->parentWidget())
            if (qobject_cast<const QDockWidget*>(at)) return at->objectName();
        return {};
    }
    NodeKey idAt(int box) { return canvas().scene()->picture.nodes[static_cast<size_t>(box)].id; }
    QPoint pointOf(int box) {
        return canvas().toWidget(canvas().scene()->nodes[static_cast<size_t>(box)].center()).toPoint();
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void tabGoesThroughWhatIsOnTheScreen_data() {
        QTest::addColumn<QString>("front");  // of the three places with tabs
        QTest::addColumn<QStringList>("met");
        QTest::newRow("graph, node, log") << "graph node log" << QStringList{"steps", "graph", "node", "log"};
        QTest::newRow("text, explain, search") << "text explain search" << QStringList{"steps", "text", "search"};
        QTest::newRow("graph, node, results")
            << "graph node results" << QStringList{"steps", "graph", "node", "results"};
    }
    void tabGoesThroughWhatIsOnTheScreen() {
        QFETCH(QString, front);
        QFETCH(QStringList, met);
        openAndCompile();
        m_main->selection().setNode(static_cast<NodeKey>(15));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        for (const QString& name : front.split(' ')) m_main->raiseWindow(m_main->window(name));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window(front.section(' ', 0, 0))->widget()), kPatience);
        QCoreApplication::processEvents();
        for (const Qt::Key key : {Qt::Key_Tab, Qt::Key_Backtab}) {
            QWidget* const start = QApplication::focusWidget();
            QSet<QString> docks;
            int stops = 0;
            do {
                QTest::keyClick(QApplication::focusWidget(), key);
                QWidget* now = QApplication::focusWidget();
                QVERIFY(now && m_main->isOnScreen(now) && now->isVisibleTo(m_main.get()));
                docks.insert(focusedDock());
                QVERIFY2(++stops < 80, "Tab comes round");
            } while (QApplication::focusWidget() != start);
            for (const QString& name : met)
                QVERIFY2(docks.contains(name),
                         qPrintable(name + " is not met, but " + QStringList(docks.values()).join(' ')));
            QCOMPARE(m_main->selection().node(), static_cast<NodeKey>(15));  // going through changes nothing
        }
    }

    void keysRaiseWindows() {
        press(Qt::Key_2, Qt::AltModifier);
        QVERIFY(!m_main->window("graph")->isVisible());  // there is nothing to show without a model
        openAndCompile();
        for (qsizetype i = m_main->windows().size(); i-- > 0;) {
            const Window& window = *m_main->windows()[i];
            if (!*window.row().key) continue;
            QTest::keySequence(m_main.get(), QKeySequence(window.row().key));
            QTRY_VERIFY2_WITH_TIMEOUT(m_main->isOnScreen(window.widget()), window.row().name, kPatience);
        }
        m_main->window("text")->hide();
        QTest::keySequence(m_main.get(), QKeySequence(m_main->window("text")->row().key));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->get<TextWindow>().widget()), kPatience);
        QCOMPARE(focusedDock(), "text");
    }

    /// Every window takes the keyboard, with and without something in it, and keeps it when it is filled or emptied.
    void raisedWindowsTakeTheKeyboard() {
        QVERIFY(!m_main->controller().model());
        int met = 0;
        for (const bool open : {false, true}) {
            if (open) openAndCompile();
            for (Window* window : m_main->windows()) {
                if (!window->toggleViewAction()->isEnabled()) continue;
                m_main->raiseWindow(window);
                QTRY_VERIFY2_WITH_TIMEOUT(focusedDock() == window->objectName(),
                                          qPrintable(window->objectName() + " leaves the focus in " + focusedDock()),
                                          kPatience);
                ++met;
            }
        }
        QVERIFY(met > m_main->windows().size());
    }
    void theLogTakesWhatItIsFilledWith() {
        m_main->raiseWindow(m_main->window("log"));
        QTRY_COMPARE_WITH_TIMEOUT(focusedDock(), "log", kPatience);
        m_main->controller().log().append(LogEntry::Level::Note, "one");
        QTRY_VERIFY_WITH_TIMEOUT(qobject_cast<QTableView*>(QApplication::focusWidget()), kPatience);
        QCOMPARE(focusedDock(), "log");
    }

    void thePaletteRaisesWindows_data() {
        QTest::addColumn<QString>("title");
        for (const char* title : {"Text", "Steps", "Search", "Explain"}) QTest::newRow(title) << QString(title);
    }
    void thePaletteRaisesWindows() {
        QFETCH(QString, title);
        openAndCompile();
        press(Qt::Key_K, Qt::ControlModifier);
        auto* palette = m_main->findChild<CommandPalette*>();
        QTest::keyClicks(palette->findChild<QLineEdit*>(), title + " action");
        QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Return);
        QDockWidget* dock = m_main->window(title.toLower());
        QTRY_VERIFY_WITH_TIMEOUT(dock->isVisible() && m_main->isOnScreen(dock->widget()), kPatience);
    }

    /// Where the menu bar has no room it keeps menus in one of its own, whose actions are the same ones.
    void thePaletteNamesEachActionOnce() {
        m_main->resize(200, 500);
        openAndCompile();
        press(Qt::Key_K, Qt::ControlModifier);
        auto* palette = m_main->findChild<CommandPalette*>();
        QTest::keyClicks(palette->findChild<QLineEdit*>(), "theme dark action");
        QCOMPARE(palette->findChild<QListWidget*>()->count(), 1);
    }

    void menuKeysWorkInFields() {
        openAndCompile();
        m_main->selection().setNode(static_cast<NodeKey>(15));
        press(Qt::Key_F, Qt::ControlModifier);
        auto* field = m_main->get<SearchWindow>().findChild<QLineEdit*>();
        QVERIFY(field->hasFocus());
        QTest::keyClicks(field, "mm");
        field->setCursorPosition(0);
        QTest::keyClick(field, Qt::Key_E, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window("explain")->widget()), kPatience);
        QCOMPARE(field->cursorPosition(), 0);
        // Keys for editing stay the field's.
        field->setFocus();
        QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
        QCOMPARE(field->selectedText(), "mm");
    }

    void enterAndDoubleClickDescribeTheNode() {
        openAndCompile();
        m_main->raiseWindow(m_main->window("explain"));
        canvas().setFocus();
        QTest::keyClick(&canvas(), Qt::Key_Home);
        QTest::keyClick(&canvas(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window("node")->widget()), kPatience);
        QCOMPARE(focusedDock(), "node");
        m_main->raiseWindow(m_main->window("explain"));
        const int last = static_cast<int>(canvas().scene()->nodes.size()) - 1;
        QTest::mouseDClick(&canvas(), Qt::LeftButton, {}, pointOf(last));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window("node")->widget()), kPatience);
        QCOMPARE(m_main->selection().node(), idAt(last));
    }

    void aClickBesideEverythingClearsTheNodeEverywhere() {
        openAndCompile();
        press(Qt::Key_F, Qt::ControlModifier);
        QTest::keyClicks(m_main->get<SearchWindow>().findChild<QLineEdit*>(), "op=mm");
        press(Qt::Key_F3);
        const NodeKey hit = m_main->selection().node();
        QVERIFY(hit != NodeKey::None);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        auto* facts = m_main->window("node")->findChild<QTreeView*>();
        auto* text = m_main->get<TextWindow>().findChild<QTableView*>();
        auto* hits = m_main->get<SearchWindow>().findChild<QTreeWidget*>();
        QVERIFY(text->selectionModel()->hasSelection() && hits->currentItem());
        QTest::mouseClick(&canvas(), Qt::LeftButton, {}, QPoint(2, canvas().height() - 2));
        QCOMPARE(m_main->selection().node(), NodeKey::None);
        QTRY_VERIFY_WITH_TIMEOUT(!facts->isVisible(), kPatience);
        QVERIFY(!text->selectionModel()->hasSelection());
        QVERIFY(!hits->currentItem());
        // And the same hit brings it back.
        press(Qt::Key_F3);
        QCOMPARE(m_main->selection().node(), hit);
    }

    void aHitInAFoldOpensIt() {
        m_control->tail = 400;
        openAndCompile();
        const auto& picture = canvas().scene()->picture;
        QVERIFY(picture.folded > 0);
        NodeKey inside = NodeKey::None;
        for (const auto& node : picture.nodes)
            if (node.isFold()) inside = node.members[node.members.size() / 2];
        const QString name = m_main->get<SearchWindow>().nameOf(inside);
        press(Qt::Key_F, Qt::ControlModifier);
        auto* field = m_main->get<SearchWindow>().findChild<QLineEdit*>();
        QTest::keyClicks(field, "name=" + name);
        press(Qt::Key_F3);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_main->isSettled() && canvas().currentIndex() >= 0 && idAt(canvas().currentIndex()) == inside, kPatience);
        QVERIFY(canvas().rect().contains(pointOf(canvas().currentIndex())));
        QCOMPARE(m_main->selection().node(), inside);
    }

    void anOpenedFoldHasItsFirstNodeCurrentEverywhere() {
        m_control->tail = 200;
        openAndCompile();
        const auto& nodes = canvas().scene()->picture.nodes;
        const auto fold = std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.isFold(); });
        QVERIFY(fold != nodes.end());
        const NodeKey first = fold->members.front();
        emit canvas().foldActivated(fold->members);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled() && canvas().currentId() == first, kPatience);
        QCOMPARE(m_main->selection().node(), first);
        auto* facts = m_main->window("node")->findChild<QTreeView*>();
        QTRY_VERIFY_WITH_TIMEOUT(
            testing::treeText(*facts->model()).startsWith("Node | " + m_main->get<SearchWindow>().nameOf(first)),
            kPatience);
    }

    void changesAreWalkedInGraphAndText() {
        openAndCompile();
        const auto changeOf = [&](NodeKey id) {
            for (const auto& node : m_main->get<GraphWindow>().view().graph()->nodes)
                if (node.info.id == id) return node.change;
            return Change::Unchanged;
        };
        for (const char* window : {"graph", "text"}) {
            m_main->raiseWindow(m_main->window(window));
            QTRY_VERIFY_WITH_TIMEOUT(m_main->isOnScreen(m_main->window(window)->widget()), kPatience);
            m_main->selection().setNode(NodeKey::None);
            press(Qt::Key_F8);
            const NodeKey first = m_main->selection().node();
            QVERIFY2(first != NodeKey::None && changeOf(first) != Change::Unchanged, window);
            press(Qt::Key_F8);
            const NodeKey second = m_main->selection().node();
            QVERIFY2(second != first && changeOf(second) != Change::Unchanged, window);
            press(Qt::Key_F8, Qt::ShiftModifier);
            QCOMPARE(m_main->selection().node(), first);
        }
    }

    void panesAreNamedAndShowTheChange() {
        m_control->tail = 300;
        openAndCompile();
        press(Qt::Key_4, Qt::ControlModifier);
        GraphCanvas& after = m_main->get<GraphWindow>().view().secondCanvas();
        QCOMPARE(canvas().title() + ' ' + after.title(), "Before After");
        const auto inView = [](GraphCanvas& pane) {
            const auto& nodes = pane.scene()->picture.nodes;
            for (size_t i = 0; i < nodes.size(); ++i)
                if (nodes[i].change != Change::Unchanged && shownIn(pane.mode(), nodes[i].change) &&
                    QRectF(pane.rect()).contains(pane.toWidget(pane.scene()->nodes[i].center())))
                    return true;
            return false;
        };
        QTRY_VERIFY_WITH_TIMEOUT(inView(canvas()) && inView(after), kPatience);
        press(Qt::Key_1, Qt::ControlModifier);
        QVERIFY(canvas().title().isEmpty());
    }

    void tabbedWindowsSayTheirNameOnce() {
        openAndCompile();
        QTRY_VERIFY_WITH_TIMEOUT(m_main->window("graph")->titleBarWidget(), kPatience);
        QVERIFY(!m_main->window("steps")->titleBarWidget());  // it has no tab
        for (const char* name : {"text", "kernels", "loops", "memory", "filmstrip", "package"}) {
            m_main->window(name)->setFloating(true);
            QTRY_VERIFY_WITH_TIMEOUT(!m_main->window(name)->titleBarWidget(), kPatience);
        }
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->window("graph")->titleBarWidget(), kPatience);
    }

    void aFileOfSeveralGraphsAsks() {
        m_main->open("/models/folder");
        QTRY_VERIFY_WITH_TIMEOUT(m_main->findChild<GraphDialog*>() && m_main->isSettled(), kPatience);
        auto* dialog = m_main->findChild<GraphDialog*>();
        auto* list = dialog->findChild<QTreeWidget*>();
        QCOMPARE(testing::treeText(*list->model()),
                 "one.py | 8 | 3 | 1 | 1 | 2 aten.mm.default, 1 aten.relu.default\ntwo.py | 1 | 0 | 1 | 1\n");
        QCOMPARE(dialog->graph(), "one.py");
        auto* filter = dialog->findChild<QLineEdit*>();
        QTRY_VERIFY_WITH_TIMEOUT(filter->hasFocus(), kPatience);
        QTest::keyClick(filter, Qt::Key_Down);
        QCOMPARE(dialog->graph(), "two.py");
        QTest::keyClick(filter, Qt::Key_Up);
        QCOMPARE(dialog->graph(), "one.py");
        QTest::keyClicks(filter, "two");
        QCOMPARE(dialog->graph(), "two.py");
        dialog->accept();
        QTRY_COMPARE_WITH_TIMEOUT(m_main->controller().graph(), "two.py", kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), kPatience);
        QVERIFY(!m_main->findChild<GraphDialog*>() || !m_main->findChild<GraphDialog*>()->isVisible());
    }

    void theEndingOfAFileIsAdded_data() {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<QString>("filter");
        QTest::addColumn<QString>("written");
        QTest::newRow("none") << "picture"
                              << "SVG (*.svg)"
                              << "picture.svg";
        QTest::newRow("of another filter") << "picture"
                                           << "PNG (*.png)"
                                           << "picture.png";
        QTest::newRow("given") << "picture.dot"
                               << "SVG (*.svg)"
                               << "picture.dot";
    }
    void theEndingOfAFileIsAdded() {
        QFETCH(QString, typed);
        QFETCH(QString, filter);
        QTemporaryDir folder;
        bool met = false;
        QTimer::singleShot(0, this, [&] {
            auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
            if (!dialog) return;
            met = true;
            dialog->setDirectory(folder.path());
            dialog->selectNameFilter(filter);
            emit dialog->filterSelected(filter);
            dialog->selectFile(typed);
            QMetaObject::invokeMethod(dialog, "accept");
            if (dialog->isVisible()) dialog->reject();
        });
        const QString path = askForFile(m_main.get(), "Export", "graph", {"SVG (*.svg)", "PNG (*.png)"});
        QVERIFY(met);
        QTEST(QFileInfo(path).fileName(), "written");
    }

    /// Two things go on: each has a line, Esc ends the later one.
    void whatGoesOnHasLines() {
        openAndCompile();
        m_control->held = "run";
        m_main->controller().run(1, {});
        auto* lines = m_main->findChild<ActivityList*>();
        QVERIFY(lines->texts().isEmpty());  // not at once
        QTRY_COMPARE_WITH_TIMEOUT(lines->texts(), QStringList{"Running in the reference interpreter: test 1 of 4"},
                                  kPatience);
        press(Qt::Key_F10);  // looking goes on
        QTRY_COMPARE_WITH_TIMEOUT(m_main->get<StepsWindow>()
                                      .model()
                                      .lineOf(m_main->get<StepsWindow>().findChild<QTreeView*>()->currentIndex())
                                      .section('\t', 0, 0)
                                      .isEmpty(),
                                  false, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->get<GraphWindow>().isSettled() && m_main->get<TextWindow>().isSettled(),
                                 kPatience);
        QCOMPARE(shownStep(), "reinplace");
        m_control->hold = true;
        press(Qt::Key_F10, Qt::ShiftModifier);
        QTRY_COMPARE_WITH_TIMEOUT(lines->texts().size(), 2, kPatience);
        press(Qt::Key_Escape);
        // The place is what the windows show, and the run goes on.
        QCOMPARE(shownStep(), "reinplace");
        QVERIFY(m_main->get<GraphWindow>().isSettled() && m_main->get<TextWindow>().isSettled());
        QTRY_COMPARE_WITH_TIMEOUT(lines->texts().size(), 1, kPatience);
        press(Qt::Key_Escape);
        QVERIFY(!m_main->controller().isBusy());
        QTRY_VERIFY_WITH_TIMEOUT(lines->texts().isEmpty(), kPatience);
        m_control->hold = false;
    }
};

CUTAWAY_SUITE(WindowKeysTest)
#include "window_keys_test.moc"
