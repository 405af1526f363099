// The Plugins window: what is installed is listed, switched off and on, checked, and says what went wrong with it.
#include "ui/windows/plugins_window.h"

#include <QAbstractItemModelTester>
#include <QLabel>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QTableView>

#include "cutaway/session.h"
#include "tests/support/plugins.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"

using namespace cutaway;
using namespace cutaway::ui;
using cutaway::testing::PluginsFolder;

class PluginsWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    PluginsFolder m_plugins;

    PluginsWindow& window() { return m_main->get<PluginsWindow>(); }
    QTableView& table() { return *window().findChild<QTableView*>(); }
    QModelIndex at(int row, int column) { return table().model()->index(row, column); }
    QString cell(int row, int column) { return at(row, column).data().toString(); }
    QString said() { return window().findChild<QLabel*>()->text(); }
    QString details() { return window().findChild<QPlainTextEdit*>()->toPlainText(); }
    int rows() { return table().model()->rowCount(); }
    void click(const QString& text) { QTest::mouseClick(buttonOf(window(), text), Qt::LeftButton); }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() {
        showWindow({1100, 800});
        m_main->raiseWindow(&window());
    }
    void cleanup() { m_main.reset(); }

    void emptyFolders() {
        QTRY_VERIFY_WITH_TIMEOUT(said().contains(m_plugins.path()), testing::kEnginePatience);
        QVERIFY(!buttonOf(window(), "Check")->isEnabled());
    }

    void fromInstalledToSwitchedOff() {
        QCOMPARE(m_plugins.build(PluginsFolder::sample("fuse_addcmul.c"), "fuse_addcmul.so"), QString());
        QCOMPARE(m_plugins.build(PluginsFolder::data("misbehaves.c"), "misbehaves.so"), QString());
        m_plugins.write("broken.so", "no library");
        new QAbstractItemModelTester(table().model(), QAbstractItemModelTester::FailureReportingMode::QtTest,
                                     &window());
        click("Refresh");
        QTRY_COMPARE_WITH_TIMEOUT(rows(), 3, testing::kEnginePatience);
        QCOMPARE(cell(0, PluginsModel::Plugin), "broken");
        QCOMPARE(cell(0, PluginsModel::Gives), "✗ cannot be used");
        QCOMPARE(cell(1, PluginsModel::Plugin), "fuse_addcmul");
        QCOMPARE(cell(1, PluginsModel::Version), "1.0");
        QCOMPARE(cell(1, PluginsModel::Gives), "pass fuse");
        QCOMPARE(cell(1, PluginsModel::From), "CUTAWAY_PLUGINS");
        table().selectRow(0);
        QVERIFY2(said().contains("it cannot be loaded"), qPrintable(said()));

        // What a crash costs is the plugin's: the window says so, and goes on.
        m_plugins.write("model.txt",
                        "def forward(x: \"f32[4]\"):\n    a: \"f32[4]\" = aten.relu.default(x)\n    return (a,)\n");
        Session session;
        QVERIFY(session.open(m_plugins.path("model.txt").toStdString()).has_value());
        static_cast<void>(session.compile(*parseRequest("--plugin misbehaves.crash")));
        click("Refresh");
        QTRY_VERIFY_WITH_TIMEOUT(rows() == 3 && cell(2, PluginsModel::Faults).toInt() > 0, testing::kEnginePatience);
        QVERIFY(cell(2, PluginsModel::Calls).toInt() > 0 && !cell(2, PluginsModel::Time).isEmpty());
        table().selectRow(2);
        QVERIFY2(said().contains("pass crash: its process was killed by signal 11"), qPrintable(said()));
        const QString now = QTime::currentTime().toString("HH:");
        QVERIFY2(QRegularExpression("faults: [1-9]\\d*\n" + now +
                                    "\\d\\d:\\d\\d  plugin misbehaves 1, pass crash: its process")
                     .match(details())
                     .hasMatch(),
                 qPrintable(details()));
        picture("plugins");

        table().selectRow(1);
        click("Check");
        QVERIFY(window().activity());
        QTRY_VERIFY_WITH_TIMEOUT(!window().activity(), testing::kEnginePatience);
        QVERIFY2(said().contains("fuse_addcmul keeps the contract"), qPrintable(said()));

        QVERIFY(!buttonOf(window(), "Colour the Graph")->isEnabled());
        QVERIFY(table().model()->setData(at(1, PluginsModel::Plugin), Qt::Unchecked, Qt::CheckStateRole));
        QTRY_VERIFY_WITH_TIMEOUT(!session.compile(*parseRequest("--plugin fuse_addcmul")).has_value(),
                                 testing::kEnginePatience);
        QVERIFY(table().model()->setData(at(1, PluginsModel::Plugin), Qt::Checked, Qt::CheckStateRole));
        QTRY_VERIFY_WITH_TIMEOUT(session.compile(*parseRequest("--plugin fuse_addcmul")).has_value(),
                                 testing::kEnginePatience);
    }

    /// Operators that it defines, by definitions in C's form and in rules'; what a worker's calls took counts, too.
    void whatItDefinesAndTakes() {
        QCOMPARE(m_plugins.build(PluginsFolder::data("libraries.c"), "libs.so", {"-lm"}), QString());
        m_plugins.write("defines.py", R"py(from cutaway_plugin import plugin
mine = plugin("defines", "1", "Defines two", operators="""def mylib.scale_add.default(x, y):
    return x * 2 + y
""", rules="""
operator mylib::half(Tensor x) -> Tensor
  why it is what the kernel computes
  computes
    return x * 0.5
""")
)py");
        const auto rowOf = [&](const QString& name) {
            for (int row = 0; row < rows(); ++row)
                if (cell(row, PluginsModel::Plugin) == name) return row;
            return -1;
        };
        click("Refresh");
        QTRY_VERIFY_WITH_TIMEOUT(rowOf("defines") >= 0, testing::kEnginePatience);
        table().selectRow(rowOf("defines"));
        for (const char* line : {"operator mylib.scale_add.default(x, y)", "operator mylib::half(Tensor x) -> Tensor"})
            QVERIFY2(details().contains(line), qPrintable(details()));

        Session session;
        QCOMPARE(
            testing::openText(
                session, "def forward(x: \"f32[4]\"):\n    a: \"f32[4]\" = aten.relu.default(x)\n    return (a,)\n"),
            QString());
        RunOptions options;
        options.backend = Backend::Cpu;
        for (const char* library : {"good", "crashes"}) {
            const auto run = session.compile(*parseRequest(std::string("--plugin libs.") + library));
            static_cast<void>(session.run(*run, options));
        }
        click("Refresh");
        const QString fault = "plugin libs 1, library crashes: its process was killed by signal 11";
        QTRY_VERIFY_WITH_TIMEOUT((table().selectRow(rowOf("libs")), details().contains(fault)),
                                 testing::kEnginePatience);
        QVERIFY(cell(rowOf("libs"), PluginsModel::Calls).toInt() >= 4);  // asked, asked in the worker, computed; twice
        QCOMPARE(cell(rowOf("libs"), PluginsModel::Faults), "1");
    }

    /// What a colouring says lies over the graph that is on show, and goes with another click.
    void colorsTheGraph() {
        QCOMPARE(m_plugins.build(PluginsFolder::sample("color_flop.c"), "color_flop.so"), QString());
        QVERIFY(controller().coloring().marks() == nullptr);
        m_main->open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2");
        QTRY_VERIFY_WITH_TIMEOUT(m_main->selection().hasPlace(), testing::kEnginePatience);
        click("Refresh");
        QTRY_VERIFY_WITH_TIMEOUT(rows() > 0 && cell(1, PluginsModel::Plugin) == "color_flop", testing::kEnginePatience);
        table().selectRow(1);
        QTRY_VERIFY_WITH_TIMEOUT(buttonOf(window(), "Colour the Graph")->isEnabled(), testing::kEnginePatience);
        click("Colour the Graph");
        QTRY_VERIFY_WITH_TIMEOUT(controller().coloring().marks() != nullptr, testing::kEnginePatience);
        QVERIFY2(said().contains("color_flop.flop says something of"), qPrintable(said()));
        picture("coloring", 1500);
        click("Colour the Graph");
        QVERIFY(controller().coloring().marks() == nullptr);
    }
};

CUTAWAY_SUITE(PluginsWindowTest)
#include "plugins_window_test.moc"
