// The tables of windows and commands: each row is whole, and what is made of them says why it is grey.
#include "ui/windows/commands.h"

#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QTextBrowser>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "ui/windows/command_palette.h"
#include "ui/windows/keys_dialog.h"
#include "ui/windows/manual_dialog.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/operators_window.h"
#include "ui/windows/window_table.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class CommandsTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    static QVector<const Command*> all() {
        QVector<const Command*> found;
        for (auto* table : {fileCommands, editCommands, viewCommands, runCommands, debugCommands, helpCommands})
            for (const Command& command : table()) found << &command;
        return found;
    }
    void greyActionsSayWhy() {
        for (const MenuAction& each : menuActions(*m_main->menuBar()))
            if (!each.action->isEnabled() && !each.made)
                QVERIFY2(each.action->toolTip().contains('\n') && !each.action->statusTip().isEmpty(),
                         qPrintable(each.title));
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void everyRowIsWhole() {
        QSet<QString> names, keys;
        const auto isNew = [](QSet<QString>& known, const QString& one) {
            const bool fresh = one.isEmpty() || !known.contains(one);
            known.insert(one);
            return fresh;
        };
        for (const WindowRow& row : windowRows()) {
            QVERIFY2(isNew(names, row.name) && *row.name && *row.title && row.make, row.name);
            QVERIFY2(isNew(keys, row.key) && QKeySequence(row.key).toString() == row.key, row.key);
        }
        for (const Command* command : all()) {
            QVERIFY2((command->run != nullptr) != (command->fill != nullptr), command->text);
            QVERIFY2(isNew(keys, command->key) && QKeySequence(command->key).toString() == command->key, command->key);
            if (*command->icon)
                QVERIFY2(QFile::exists(QStringLiteral(":/cutaway/icons/%1.svg").arg(command->icon)), command->icon);
            QVERIFY2(command->bar.group == 0 || *command->icon, command->text);
        }
    }

    void whatIsGreySaysWhy() {
        greyActionsSayWhy();
        QVERIFY(!actionNamed(*m_main, "F10")->isEnabled());
        QCOMPARE(actionNamed(*m_main, "F10")->statusTip(), "Open a model first (Ctrl+O).");
        QCOMPARE(actionNamed(*m_main, "Alt+2")->statusTip(), "Open a model first (Ctrl+O).");
        QVERIFY(actionNamed(*m_main, "Alt+6")->isEnabled());  // the log needs none
        openAndCompile();
        greyActionsSayWhy();
        QVERIFY(actionNamed(*m_main, "F10")->isEnabled() && actionNamed(*m_main, "Alt+2")->isEnabled());
        QCOMPARE(actionNamed(*m_main, "Ctrl+Shift+G")->statusTip(), "This file holds one graph.");
        QCOMPARE(actionNamed(*m_main, "Alt+Right")->statusTip(), "There is nothing to go forward to.");
        press(Qt::Key_W, Qt::ControlModifier);
        greyActionsSayWhy();
        QVERIFY(!actionNamed(*m_main, "F10")->isEnabled());
    }

    void ticksFollow() {
        QAction* soFar = nullptr;
        for (const MenuAction& each : menuActions(*m_main->menuBar()))
            if (each.title == "Show Rewrites Cumulatively") soFar = each.action;
        QVERIFY(soFar && soFar->isCheckable() && !soFar->isChecked());
        soFar->trigger();
        QVERIFY(soFar->isChecked() && m_main->stepper().showsAllSoFar());
        m_main->stepper().setAllSoFar(false);
        QVERIFY(!soFar->isChecked());
        int ticked = 0;
        for (const MenuAction& each : menuActions(*m_main->menuBar()))
            if (each.title == "Theme: Dark") each.action->trigger();
        for (const MenuAction& each : menuActions(*m_main->menuBar()))
            if (each.title.startsWith("Theme: ")) ticked += each.action->isChecked();
        QCOMPARE(ticked, 1);
        applyTheme(Theme::Light);
    }

    /// Menus that are filled when they open offer files and layouts, which Go To lists by itself or not at all.
    void goToListsNothingTwice() {
        openAndCompile();
        QSettings().setValue("recent", QStringList{"/models/recent.pt2"});
        for (const MenuAction& each : menuActions(*m_main->menuBar()))
            if (each.title == "Open Recent") emit each.action->menu()->aboutToShow();
        press(Qt::Key_K, Qt::ControlModifier);
        auto* palette = m_main->findChild<CommandPalette*>();
        QTest::keyClicks(palette->findChild<QLineEdit*>(), "recent.pt2");
        QCOMPARE(palette->findChild<QListWidget*>()->count(), 1);
    }

    void pagesOfAManual() {
        const QVector<ManualPage> pages = manualPages("# a\n\ntext #1\n## b\n- `c`\n### d e\n#no\n");
        QCOMPARE(pages.size(), 3);
        QCOMPARE(pages[0].text, "# a\n\ntext #1\n");
        QCOMPARE(pages[1].title, "b");
        QCOMPARE(pages[2].title, "d e");
        QCOMPARE(pages[2].level, 3);
        // Headings within a page, and what looks like one in code.
        QCOMPARE(manualPages("# a\n#### b\n```bash\n# c\n```\n").size(), 1);
    }

    void helpShowsTheManual() {
        press(Qt::Key_F1, Qt::ShiftModifier);
        auto* manual = m_main->findChild<ManualDialog*>();
        QVERIFY(manual && manual->isVisible());
        auto* list = manual->findChild<QListWidget*>();
        QTRY_VERIFY_WITH_TIMEOUT(list->count() > 100, kPatience);
        auto* page = manual->findChild<QTextBrowser*>();
        QVERIFY2(page->toPlainText().startsWith("cutaway-cli"), qPrintable(page->toPlainText().left(200)));
        const int whole = list->count();
        QTest::keyClicks(manual->findChild<QLineEdit*>(), "min_fuse_set_size batch_tanh=");
        QVERIFY(list->count() > 0 && list->count() < whole);
        QVERIFY(page->toPlainText().contains("batch_tanh"));
        QVERIFY(!page->openLinks());  // a link chooses a page in the list
        emit page->anchorClicked(QUrl("kernels-window.md"));
        QVERIFY2(page->toPlainText().startsWith("Kernels window"), qPrintable(page->toPlainText().left(200)));
        QStringList titles;
        for (int i = 0; i < list->count(); ++i) titles << list->item(i)->text().trimmed();
        for (const WindowRow& row : windowRows()) {
            const QString title = QString::fromLatin1(row.name) + " window";
            QVERIFY2(titles.contains(title, Qt::CaseInsensitive), qPrintable(title));
        }
        press(Qt::Key_F1, Qt::ShiftModifier);
        QCOMPARE(m_main->findChildren<ManualDialog*>().size(), 1);
    }
    /// Also where the pages are not there yet.
    void helpBeginsAtTheFocusedWindow() {
        const auto shown = [&] {
            m_main->activateWindow();
            press(Qt::Key_F1, Qt::ShiftModifier);
            const auto* page = m_main->findChild<ManualDialog*>()->findChild<QTextBrowser*>();
            return page->toPlainText().section('\n', 0, 0);
        };
        m_main->raiseWindow(&m_main->get<OperatorsWindow>());
        QTRY_COMPARE_WITH_TIMEOUT(shown(), QString("Operators window"), kPatience);
        emit m_main->findChild<ManualDialog*>()->findChild<QTextBrowser*>()->anchorClicked(QUrl("log-window.md"));
        QCOMPARE(shown(), QString("Operators window"));
    }

    void aManualThatCannotBePrintedSaysWhy() {
        qputenv("CUTAWAY_CLI", "/nowhere/cutaway-cli");
        const ManualDialog manual;
        qunsetenv("CUTAWAY_CLI");
        QString said;
        for (const QLabel* label : manual.findChildren<QLabel*>()) said += label->text();
        QVERIFY2(said.contains("/nowhere/cutaway-cli"), qPrintable(said));
    }
};

CUTAWAY_SUITE(CommandsTest)
#include "commands_test.moc"
