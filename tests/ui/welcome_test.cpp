// The first impression: the welcome page, icons, tool tips and keys, columns.
#include <QAbstractButton>
#include <QDockWidget>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QScrollBar>
#include <QTableView>
#include <QToolBar>
#include <QToolButton>
#include <QTreeView>
#include <QWidgetAction>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/main_window_fixture.h"
#include "ui/models/kernels_model.h"
#include "ui/models/steps_model.h"
#include "ui/session/known_files.h"
#include "ui/windows/columns.h"
#include "ui/windows/icons.h"
#include "ui/windows/keys_dialog.h"
#include "ui/windows/link_button.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/welcome_page.h"
#include "ui/windows/window_table.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::kPatience;

class WelcomeTest : public QObject, private testing::MainWindowFixture {
    Q_OBJECT

    WelcomePage& page() { return *m_main->findChild<WelcomePage*>(); }
    LinkButton* linkTo(const QString& path) {
        for (auto* button : page().findChildren<LinkButton*>())
            if (button->property("path").toString() == path) return button;
        return nullptr;
    }
    static int inkIn(const QPixmap& picture) {
        const QImage image = picture.toImage();
        int ink = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) ink += image.pixelColor(x, y).alpha() > 128;
        return ink;
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { closeWindow(); }

    void anEmptyWindowWelcomes() {
        QVERIFY(page().isVisible());
        for (const QString& name : windowNames()) QVERIFY2(!m_main->window(name)->isVisible(), qPrintable(name));
        QVERIFY(!actionNamed(*m_main, "Ctrl+B")->isEnabled());
        QVERIFY(!actionNamed(*m_main, "Ctrl+W")->isEnabled());
        QVERIFY(actionNamed(*m_main, "Ctrl+O")->isEnabled());
        openAndCompile();
        QVERIFY(!page().isVisible());
        QVERIFY(actionNamed(*m_main, "Ctrl+B")->isEnabled());
        for (const char* name : {"steps", "graph", "node", "log"}) QVERIFY2(m_main->window(name)->isVisible(), name);
        QVERIFY(m_main->findChild<QToolBar*>("stepping")->isVisible());
        press(Qt::Key_W, Qt::ControlModifier);
        QVERIFY(page().isVisible());
        QVERIFY(!m_main->controller().model());
        QVERIFY(!m_main->window("graph")->isVisible());
        QCOMPARE(m_main->windowTitle(), "Cutaway");
        QTRY_VERIFY_WITH_TIMEOUT(m_control->calls().contains("close"), kPatience);  // the engine has let go of it, too
        // And it opens again like the first time.
        openAndCompile();
        QVERIFY(m_main->window("graph")->isVisible() && !page().isVisible());
    }

    void windowsComeBackAsTheyWere() {
        openAndCompile();
        m_main->window("node")->hide();
        press(Qt::Key_W, Qt::ControlModifier);
        openAndCompile();
        QVERIFY(!m_main->window("node")->isVisible() && m_main->window("steps")->isVisible());
        // Also where the program ends on the welcome page.
        press(Qt::Key_W, Qt::ControlModifier);
        m_main->close();
        m_main = std::make_unique<MainWindow>(std::make_unique<testing::FakeSource>(m_control));
        m_main->show();
        openAndCompile();
        QVERIFY(!m_main->window("node")->isVisible() && m_main->window("steps")->isVisible());
    }

    /// Lines wrap: nobody has to scroll sideways to read.
    void itFitsIntoNarrowWindows_data() {
        QTest::addColumn<int>("width");
        for (const int width : {1200, 760, 690, 640, 560, 440}) QTest::addRow("%d pixels", width) << width;
    }
    void itFitsIntoNarrowWindows() {
        QFETCH(int, width);
        WelcomePage narrow;
        narrow.resize(width, 500);
        narrow.show();
        QVERIFY(QTest::qWaitForWindowExposed(&narrow));
        QCOMPARE(narrow.width(), width);
        QCOMPARE(narrow.horizontalScrollBar()->maximum(), 0);
        for (const auto* label : narrow.findChildren<QLabel*>())
            QVERIFY2(label->height() >= label->heightForWidth(label->width()), qPrintable(label->text()));
    }

    void aSampleIsOneClickAway() {
        const auto samples = sampleModels();
        QCOMPARE(samples.size(), 3);
        for (const SampleModel& sample : samples) {
            QVERIFY2(!sample.about.isEmpty() && sample.title != QFileInfo(sample.path).completeBaseName(),
                     qPrintable(sample.path + " has no words in samples.ini"));
            QVERIFY(linkTo(sample.path));
        }
        QTest::mouseClick(linkTo(samples[1].path), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), kPatience);
        QCOMPARE(m_main->controller().path(), samples[1].path);
    }

    void theKeyboardReachesAndOpens() {
        LinkButton* link = linkTo(sampleModels().at(0).path);
        m_main->setFocus();
        for (int i = 0; i < 30 && QApplication::focusWidget() != link; ++i)
            QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : m_main.get(), Qt::Key_Tab);
        QCOMPARE(QApplication::focusWidget(), link);
        QTest::keyClick(link, Qt::Key_Space);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), kPatience);
    }

    void recentFilesAreListed() {
        QTemporaryDir folder;
        const QString there = folder.filePath("there.pt2"), gone = folder.filePath("gone.pt2");
        QFile file(there);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        rememberFile(gone, "pt2");
        rememberFile(there, ".pt2 (PyTorch 2.11)");
        page().refresh();
        LinkButton *open = linkTo(there), *missing = linkTo(gone);
        QVERIFY(open && missing);
        QCOMPARE(open->text(), QFileInfo(folder.path()).fileName() + "/there.pt2");
        QVERIFY2(open->more().startsWith(folder.path() + " · .pt2 (PyTorch 2.11) · today "), qPrintable(open->more()));
        QVERIFY(open->isEnabled() && !missing->isEnabled());
        QVERIFY2(missing->more().contains("moved or deleted"), qPrintable(missing->more()));
        QVERIFY(open->accessibleDescription().contains(folder.path()));
        auto* remove = missing->parentWidget()->findChild<QToolButton*>();
        QCOMPARE(remove->accessibleName(), "Remove gone.pt2 from the list");
        QTest::mouseClick(remove, Qt::LeftButton);
        QTRY_VERIFY(!linkTo(gone));
        QCOMPARE(recentFiles().size(), 1);
        // What was remembered by an earlier version has a path only.
        QSettings().remove("recentDetails");
        page().refresh();
        QCOMPARE(linkTo(there)->more(), folder.path());
    }

    void nothingIsCutOffInASmallWindow_data() {
        QTest::addColumn<QSize>("size");
        QTest::newRow("small") << QSize(720, 320);
        QTest::newRow("usual") << QSize(1440, 900);
    }
    void nothingIsCutOffInASmallWindow() {
        QFETCH(QSize, size);
        WelcomePage alone;
        alone.resize(size);
        alone.show();
        QVERIFY(QTest::qWaitForWindowExposed(&alone));
        QVERIFY2(
            alone.widget()->width() <= alone.viewport()->width(),
            qPrintable(QString("needs %1 of %2 pixels").arg(alone.widget()->width()).arg(alone.viewport()->width())));
        for (const QWidget* widget : alone.findChildren<QWidget*>()) {
            if (!widget->isVisible() ||
                !(qobject_cast<const QAbstractButton*>(widget) || qobject_cast<const QLabel*>(widget)))
                continue;
            const auto* label = qobject_cast<const QLabel*>(widget);
            const int needed =
                label && label->wordWrap() ? label->heightForWidth(label->width()) : widget->minimumSizeHint().height();
            QVERIFY2(
                widget->height() >= needed && widget->width() >= widget->minimumSizeHint().width(),
                qPrintable(QString("%1 %2: %3x%4")
                               .arg(widget->metaObject()->className(), label ? label->text() : widget->accessibleName())
                               .arg(widget->width())
                               .arg(widget->height())));
        }
    }

    void everyIconShowsInBothThemes() {
        for (Theme theme : {Theme::Light, Theme::Dark}) {
            applyTheme(theme);
            const QColor ground = QApplication::palette().color(QPalette::Button);
            const auto actions = m_main->findChild<QToolBar*>("actions")->actions();
            QVERIFY(actions.size() > 8);
            for (const QAction* action : actions) {
                if (action->isSeparator() || qobject_cast<const QWidgetAction*>(action)) continue;
                QVERIFY2(!action->icon().isNull(), qPrintable(action->text()));
                for (int side : {16, 24, 32})
                    QVERIFY2(inkIn(action->icon().pixmap(QSize(side, side), 1.0)) > side, qPrintable(action->text()));
                const QPixmap normal = action->icon().pixmap(QSize(32, 32), 1.0),
                              off = action->icon().pixmap(QSize(32, 32), 1.0, QIcon::Disabled);
                QVERIFY2(normal.toImage() != off.toImage(),
                         qPrintable(action->text() + " looks the same when it is disabled"));
            }
            for (const auto* button : m_main->findChild<QWidget*>("rewriteBar")->findChildren<QToolButton*>())
                QVERIFY2(!button->icon().isNull(), qPrintable(button->toolTip()));
            for (const QString& name : QDir(QStringLiteral(":/cutaway/icons")).entryList()) {
                const QImage image = iconNamed(QFileInfo(name).completeBaseName()).pixmap(QSize(32, 32), 1.0).toImage();
                int apart = 0;
                for (int y = 0; y < image.height(); ++y)
                    for (int x = 0; x < image.width(); ++x)
                        if (image.pixelColor(x, y).alpha() > 200)
                            apart = std::max(apart, std::abs(image.pixelColor(x, y).lightness() - ground.lightness()));
                QVERIFY2(apart > 90, qPrintable(name + " cannot be told from its ground"));
            }
        }
        applyTheme(Theme::Light);
        QVERIFY(inkIn(programIcon().pixmap(64, 64)) > 1000);
    }

    void toolTipsNameTheirKeys() {
        for (const MenuAction& each : menuActions(*m_main->menuBar())) {
            const QString key = each.action->shortcut().toString(QKeySequence::NativeText);
            QVERIFY2(each.action->toolTip().contains(key), qPrintable(each.action->toolTip()));
        }
    }

    void theKeySheetIsComplete() {
        const QString page = keysPage(*m_main->menuBar());
        for (const QAction* action : m_main->findChildren<QAction*>()) {
            const QString key = action->shortcut().toString(QKeySequence::NativeText);
            if (!key.isEmpty())
                QVERIFY2(page.contains("<b>" + key.toHtmlEscaped() + "</b>"), qPrintable(action->text() + " " + key));
        }
        for (const char* group : {"File", "Edit", "View", "Run", "Debug", "In the Graph window"})
            QVERIFY2(page.contains(QString("<h4>%1</h4>").arg(group)), group);
    }

    void columnsStayAsTheUserWantsThem() {
        openAndCompile();
        auto* tree = m_main->window("steps")->findChild<QTreeView*>();
        auto* columns = tree->header()->findChild<Columns*>();
        m_main->window("steps")->setFloating(true);
        m_main->window("steps")->resize(90 * tree->fontMetrics().averageCharWidth(), 400);
        const std::unique_ptr<QMenu> menu(columns->makeMenu(nullptr));
        for (QAction* action : menu->actions())
            if (action->text() == "Nodes") action->trigger();
        QVERIFY(tree->isColumnHidden(StepsModel::Nodes) && !tree->isColumnHidden(StepsModel::Time));
        // What has no room comes back when there is room again; what the user hid does not.
        m_main->window("steps")->resize(30 * tree->fontMetrics().averageCharWidth(), 400);
        m_main->window("steps")->resize(90 * tree->fontMetrics().averageCharWidth(), 400);
        QVERIFY(tree->isColumnHidden(StepsModel::Nodes) && !tree->isColumnHidden(StepsModel::Time));
        tree->header()->moveSection(tree->header()->visualIndex(StepsModel::Time), 1);
        m_main = std::make_unique<MainWindow>(std::make_unique<testing::FakeSource>(m_control));
        m_main->show();
        tree = m_main->window("steps")->findChild<QTreeView*>();
        QVERIFY(tree->isColumnHidden(StepsModel::Nodes));
        QCOMPARE(tree->header()->visualIndex(StepsModel::Time), 1);
    }

    void kernelsSortAndShowTheirTimes() {
        m_main->resize(1440, 900);
        openAndCompile();
        press(Qt::Key_F7);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->window("kernels")->isVisible() && m_main->isSettled(), kPatience);
        auto* table = m_main->window("kernels")->findChild<QTableView*>();
        QTRY_VERIFY(table->model()->rowCount() > 0);
        for (int column : {KernelsModel::Time, KernelsModel::Share}) {
            const int left = table->columnViewportPosition(column);
            QVERIFY2(left >= 0 && left + table->columnWidth(column) <= table->viewport()->width(),
                     qPrintable(QString::number(left)));
        }
        table->sortByColumn(KernelsModel::Time, Qt::DescendingOrder);
        const auto time = [&](int row) {
            return table->model()->index(row, KernelsModel::Time).data(KernelsModel::SortRole).toDouble();
        };
        for (int row = 1; row < table->model()->rowCount(); ++row) QVERIFY(time(row - 1) >= time(row));
    }
};

CUTAWAY_SUITE(WelcomeTest)
#include "welcome_test.moc"
