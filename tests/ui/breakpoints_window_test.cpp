// The Breakpoints window on the engine itself: adding, switching off, stopping, going on.
#include "ui/windows/breakpoints_window.h"

#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/tree_text.h"
#include "ui/session/source.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

class BreakpointsWindowTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    QString m_file;
    std::unique_ptr<MainWindow> m_main;

    SessionController& controller() { return m_main->controller(); }
    Breakpoints& breakpoints() { return controller().breakpoints(); }
    BreakpointsWindow& window() { return m_main->get<BreakpointsWindow>(); }
    QAbstractItemModel& model() { return *window().findChild<QTableView*>()->model(); }
    QPushButton* button(const QString& text) {
        for (auto* found : window().findChildren<QPushButton*>())
            if (found->text() == text) return found;
        return nullptr;
    }
    void type(int kind, const QString& what) {
        window().findChild<QComboBox*>()->setCurrentIndex(kind);
        auto* field = window().findChild<QLineEdit*>();
        field->setText(what);
        if (field->isEnabled()) QTest::keyClick(field, Qt::Key_Return);
        else QTest::mouseClick(button("Add"), Qt::LeftButton);
    }
    void settle(size_t runs) {
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().size() == runs && m_main->isSettled(), testing::kEnginePatience);
    }
    void setList(const QStringList& texts) {
        while (!breakpoints().all().empty()) breakpoints().remove(0);
        for (const QString& text : texts) {
            const bool off = text.startsWith("off ");
            Breakpoint one = *parseBreakpoint(text.mid(off ? 4 : 0).toStdString());
            one.enabled = !off;
            breakpoints().add(one);
        }
    }
    QString place() { return controller().placeName(m_main->selection().place()); }
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(m_main.get(), key, modifiers); }

  private slots:
    void initTestCase() {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_folder.path());
        QCoreApplication::setOrganizationName("cutaway-test");
        applyTheme(qEnvironmentVariable("CUTAWAY_THEME") == "dark" ? Theme::Dark : Theme::Light);
        QFile file(m_folder.filePath("graph.py"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(
            "def forward(x: \"f32[3, 4]\", w: \"f32[4, 4]\"):\n    a = aten.clone.default(x)\n"
            "    b = aten.mm.default(a, w)\n    c = aten.clone.default(b)\n    d = aten.silu.default(c)\n"
            "    return (d,)\n");
        m_file = file.fileName();
    }
    void init() {
        QSettings().clear();
        m_main = std::make_unique<MainWindow>(makeSessionSource());
        m_main->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_main.get()));
        m_main->activateWindow();
        m_main->open(m_file);
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        m_main->raiseWindow(&window());
    }
    void cleanup() { m_main.reset(); }

    void theModel() {
        new QAbstractItemModelTester(&model(), QAbstractItemModelTester::FailureReportingMode::QtTest, &model());
        type(0, "decompose");
        type(2, "a");
        type(3, "op=exp");
        type(5, "");
        QCOMPARE(model().rowCount(), 4);
        QCOMPARE(model().index(0, 0).data().toString(), "pass decompose has run");
        QCOMPARE(model().index(2, 0).data().toString(), "a node appears with op=exp");
        QVERIFY(model().setData(model().index(1, 0), Qt::Unchecked, Qt::CheckStateRole));
        QVERIFY(!breakpoints().all()[1].enabled);
        QVERIFY(model().setData(model().index(1, 1), 3));
        QCOMPARE(QString::fromStdString(breakpoints().all()[1].text()), "dies=a@3");
        for (const int role : {Qt::DisplayRole, Qt::EditRole}) QCOMPARE(model().index(1, 1).data(role).toInt(), 3);
        QVERIFY(!model().index(1, 1).data(Qt::ToolTipRole).isValid());
        QVERIFY(!model().setData(model().index(1, 1), 0));
        QSignalSpy said(&window(), &Window::message);
        QVERIFY(!model().setData(model().index(0, 0), "pass"));
        QVERIFY(said.size() == 1 && said[0][0].toString().contains("needs to know which"));
        QVERIFY(model().setData(model().index(0, 0), "born=neg"));
        QCOMPARE(model().index(0, 0).data().toString(), "node neg is created");
        type(3, "colour=red");
        QCOMPARE(model().rowCount(), 4);
        QVERIFY(window().findChild<QLabel*>()->text().contains("no field \"colour\""));
        window().findChild<QTableView*>()->selectRow(0);
        QTest::keyClick(window().findChild<QTableView*>(), Qt::Key_Delete);
        QCOMPARE(model().rowCount(), 3);
    }

    void aCompileStopsAndGoesOn() {
        type(1, "exp");
        type(2, "a");
        QVERIFY(!button("Continue")->isEnabled());
        press(Qt::Key_B, Qt::ControlModifier);
        settle(1);
        QCOMPARE(place(), "decompose");
        QVERIFY(controller().runs()[0].stopped);
        QVERIFY(m_main->selection().node() != NodeKey::None);
        QCOMPARE(model().index(0, 2).data().toString(), "`exp` is new");
        QVERIFY(button("Continue")->isEnabled());
        press(Qt::Key_F9, Qt::ControlModifier);
        settle(2);
        QCOMPARE(place(), "remove_noop_ops, rewrite 1 (run 2)");
        QCOMPARE(model().index(0, 2).data().toString(), "");
        QCOMPARE(model().index(1, 2).data().toString(), "`a` is removed");
        QTest::mouseClick(button("Continue"), Qt::LeftButton);
        settle(3);
        QVERIFY(!controller().runs()[2].stopped);
        QVERIFY(!button("Continue")->isEnabled());
    }

    /// It goes on from the place where it stopped, whatever has become of the list.
    void goesOnWithAnotherList_data() {
        QTest::addColumn<QStringList>("before");
        QTest::addColumn<QStringList>("after");
        QTest::addColumn<QString>("where");  // empty: to the end
        const QStringList both = {"pass=decompose", "dies=a"}, one = {"dies=a"};
        QTest::newRow("the same") << both << both << "remove_noop_ops, rewrite 1 (run 2)";
        QTest::newRow("without the one that stopped") << both << one << "remove_noop_ops, rewrite 1 (run 2)";
        QTest::newRow("the one that stopped is off")
            << both << QStringList({"off pass=decompose", "dies=a"}) << "remove_noop_ops, rewrite 1 (run 2)";
        QTest::newRow("one more that holds earlier") << one << both << "";
        QTest::newRow("one more that holds later")
            << one << QStringList({"dies=a", "dies=c"}) << "remove_noop_ops (run 2)";
        QTest::newRow("none") << both << QStringList() << "";
    }
    void goesOnWithAnotherList() {
        QFETCH(QStringList, before);
        QFETCH(QStringList, after);
        QFETCH(QString, where);
        setList(before);
        controller().compile({});
        settle(1);
        QVERIFY(controller().runs()[0].stopped);
        setList(after);
        QVERIFY(button("Continue")->isEnabled());
        controller().goOn();
        settle(2);
        QCOMPARE(controller().runs()[1].stopped, !where.isEmpty());
        if (!where.isEmpty()) QCOMPARE(place(), where);
    }

    /// What stopped a compile is of the list that it was given.
    void theListChangesMeanwhile() {
        setList({"pass=decompose", "dies=a"});
        QSignalSpy messages(&controller(), &SessionController::message);
        controller().compile({});
        breakpoints().remove(0);
        settle(1);
        QStringList said;
        for (const auto& message : messages) said << message[0].toString();
        QVERIFY2(said.contains("Stopped at pass=decompose: the pass has run"), qPrintable(said.join('\n')));
        QCOMPARE(model().index(0, 2).data().toString(), "");
        setList({"dies=c", "pass=decompose"});
        QCOMPARE(model().index(0, 2).data().toString(), "");
        QCOMPARE(model().index(1, 2).data().toString(), "the pass has run");
    }

    void anotherModelHasNoStop() {
        setList({"pass=decompose"});
        controller().compile({});
        settle(1);
        QVERIFY(button("Continue")->isEnabled());
        m_main->open(m_file);
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(!button("Continue")->isEnabled());
    }

    void f9OnAPass() {
        press(Qt::Key_B, Qt::ControlModifier);
        settle(1);
        press(Qt::Key_F9);
        QCOMPARE(breakpoints().all().size(), size_t(1));
        QCOMPARE(QString::fromStdString(breakpoints().all()[0].text()), "pass=main/capture/decompose#1");
        press(Qt::Key_B, Qt::ControlModifier);
        settle(2);
        QCOMPARE(place(), "decompose (run 2)");
        QCOMPARE(controller().runs()[1].steps.back().name, std::string("decompose"));
        press(Qt::Key_F9);
        QVERIFY(breakpoints().all().empty());
    }

    void aNodesDeath() {
        window().toggleDeath("c");
        QCOMPARE(QString::fromStdString(breakpoints().all()[0].text()), "dies=c");
        press(Qt::Key_B, Qt::ControlModifier);
        settle(1);
        QCOMPARE(place(), "remove_noop_ops");
        window().toggleDeath("c");
        QVERIFY(breakpoints().all().empty());
    }

    /// Breakpoints are there again when their model is opened again, for it alone; what they no longer mean is not.
    void theyAreKept() {
        type(0, "decompose");
        type(2, "a");
        QVERIFY(model().setData(model().index(0, 0), Qt::Unchecked, Qt::CheckStateRole));
        QVERIFY(model().setData(model().index(1, 1), 3));
        const std::vector<Breakpoint> before = breakpoints().all();
        const QString kept = "breakpoints/" + controller().modelKey();
        m_main.reset();
        QStringList stored = QSettings().value(kept).toStringList();
        QCOMPARE(stored, QStringList({"off pass=decompose", "dies=a@3"}));
        QSettings().setValue(kept, stored << "no such thing");
        m_main = std::make_unique<MainWindow>(makeSessionSource());
        const auto open = [this](const QString& path) {
            m_main->open(path);
            QTRY_VERIFY_WITH_TIMEOUT(controller().path() == path && m_main->isSettled(), testing::kEnginePatience);
        };
        QFile other(m_folder.filePath("other.py"));
        QVERIFY(other.open(QIODevice::WriteOnly));
        other.write("def forward(x: \"f32[3]\"):\n    a = aten.silu.default(x)\n    return (a,)\n");
        other.close();
        open(other.fileName());
        QVERIFY(breakpoints().all().empty());
        open(m_file);
        QVERIFY(breakpoints().all() == before);
        QCOMPARE(model().rowCount(), 2);
        breakpoints().remove(0);
        QCOMPARE(QSettings().value(kept).toStringList(), QStringList("dies=a@3"));
    }

    void switchedOffItIsPassed() {
        type(0, "decompose");
        QVERIFY(model().setData(model().index(0, 0), Qt::Unchecked, Qt::CheckStateRole));
        press(Qt::Key_B, Qt::ControlModifier);
        settle(1);
        QVERIFY(!controller().runs()[0].stopped);
    }

    /// For a person to look at, with CUTAWAY_PICTURES=FOLDER.
    void picture() {
        type(1, "exp");
        type(3, "op=exp & numel>1");
        type(5, "");
        press(Qt::Key_B, Qt::ControlModifier);
        settle(1);
        const QString folder = qEnvironmentVariable("CUTAWAY_PICTURES");
        if (folder.isEmpty()) return;
        QTest::qWait(200);
        QVERIFY(m_main->grab().save(folder + "/breakpoints_" + qEnvironmentVariable("CUTAWAY_THEME") + ".png"));
    }
};

CUTAWAY_SUITE(BreakpointsWindowTest)
#include "breakpoints_window_test.moc"
