// The Numerics window on the engine itself: values beside their references, what diverges first, heat on the graph,
// and values as pictures.
#include "ui/windows/numerics_window.h"

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTableWidget>
#include <QtTest>
#include <cmath>

#include "engine/support/fault_points.h"
#include "tests/support/paths.h"
#include "tests/support/plugins.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "ui/session/source.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/theme.h"
#include "ui/windows/value_view.h"

using namespace cutaway;
using namespace cutaway::ui;

namespace {

NodeNumbers rowOf(const char* name, unsigned node, NodeVerdict verdict, double error, double ulp) {
    NodeNumbers row;
    row.name = name;
    row.node = static_cast<NodeKey>(node);
    row.verdict = verdict;
    row.maxAbsolute = error;
    row.maxUlp = ulp;
    row.different = error > 0;
    row.elements = 4;
    return row;
}

/// A slice with everything that a picture has to tell apart.
class Given : public NodeValue {
  public:
    const std::vector<int64_t>& sizes() const override { return m_sizes; }
    std::string type() const override { return "f32[3, 2, 2]"; }
    ValueSlice slice(const std::vector<int64_t>& leading, int64_t, int64_t) const override {
        ValueSlice out;
        out.rows = out.columns = 2;
        const double first = leading.empty() ? 0 : static_cast<double>(leading[0]);
        out.numbers = {-2, first, NAN, INFINITY};
        out.least = -2;
        out.most = first;
        out.nans = out.infinities = 1;
        return out;
    }

  private:
    std::vector<int64_t> m_sizes = {3, 2, 2};
};

}  // namespace

class NumericsWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    NumericsWindow& window() { return m_main->get<NumericsWindow>(); }
    QTableView* table() { return window().findChild<QTableView*>(); }
    QString summary() { return window().findChild<QLabel*>("numericsSummary")->text(); }
    QPushButton* button(const QString& start) { return buttonOf(window(), start); }
    GraphCanvas& canvas() { return m_main->get<GraphWindow>().view().canvas(); }
    void open(const QString& model, const CompileRequest& request = {}) {
        m_main->open(testing::testFile("../resources/models/" + model + ".pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        controller().compile(request);
        QTRY_VERIFY_WITH_TIMEOUT(!controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
        m_main->raiseWindow(&window());
    }
    void compare() {
        actionNamed(*m_main, "Ctrl+Shift+N")->trigger();
        QVERIFY(controller().checkedRuns().isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(!controller().checkedRuns().isRunning(), testing::kEnginePatience);
        QVERIFY2(controller().checkedRuns().result().has_value(), qPrintable(summary()));
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow({1400, 900}); }
    void cleanup() { m_main.reset(); }

    void theModelIsATable() {
        NumericsModel model;
        const QAbstractItemModelTester tester(&model);
        std::vector<NodeNumbers> rows = {rowOf("a", 1, NodeVerdict::Equal, 0, 0),
                                         rowOf("b", 2, NodeVerdict::Wrong, 0.5, 9)};
        model.setRows(rows);
        rows.push_back(rowOf("c", 3, NodeVerdict::Unmatched, 0, -1));
        model.appendRows(rows);
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(model.rowOf(static_cast<NodeKey>(2)), 1);
        QCOMPARE(model.rowOf(NodeKey::None), -1);
        QCOMPARE(model.index(1, NumericsModel::Verdict).data().toString(), QStringLiteral("✗ wrong"));
        QCOMPARE(model.index(1, NumericsModel::Absolute).data().toString(), QStringLiteral("0.5"));
        QCOMPARE(model.index(2, NumericsModel::Absolute).data().toString(), QString());
        // What diverges comes first when the verdicts are sorted.
        QVERIFY(model.index(1, 0).data(NumericsModel::SortRole).toInt() <
                model.index(0, 0).data(NumericsModel::SortRole).toInt());
    }

    void errorsHaveColoursAndSigns_data() {
        QTest::addColumn<int>("verdict");
        QTest::addColumn<double>("error");
        QTest::addColumn<double>("ulp");
        QTest::addColumn<int>("heat");
        QTest::addColumn<QString>("sign");
        const auto row = [](const char* name, NodeVerdict verdict, double error, double ulp, Heat heat,
                            const char* sign) {
            QTest::newRow(name) << static_cast<int>(verdict) << error << ulp << static_cast<int>(heat)
                                << QString::fromUtf8(sign);
        };
        row("equal", NodeVerdict::Equal, 0, 0, Heat::Equal, "=");
        row("a rounding", NodeVerdict::Close, 1e-7, 1, Heat::Slight, "1e-07");
        row("some", NodeVerdict::Close, 1e-5, 100, Heat::Some, "1e-05");
        row("much", NodeVerdict::Close, 1e-3, 1e6, Heat::Much, "0.001");
        row("wrong", NodeVerdict::Wrong, 0.5, 1, Heat::Wrong, "✗ 0.5");
        row("type", NodeVerdict::WrongType, 0, 0, Heat::Wrong, "✗ type");
        row("infinite", NodeVerdict::NonFinite, 0, 0, Heat::Wrong, "∞");
    }
    void errorsHaveColoursAndSigns() {
        QFETCH(int, verdict);
        QFETCH(double, error);
        QFETCH(double, ulp);
        QFETCH(int, heat);
        QFETCH(QString, sign);
        const HeatMarks marks({rowOf("a", 1, static_cast<NodeVerdict>(verdict), error, ulp)});
        const HeatMark* mark = marks.find(static_cast<NodeKey>(1));
        QVERIFY(mark);
        QCOMPARE(static_cast<int>(mark->heat), heat);
        QCOMPARE(mark->sign, sign);
        QVERIFY(!mark->words.isEmpty());
        QVERIFY(!marks.find(static_cast<NodeKey>(2)));
    }

    void valuesAreCompared() {
        QVERIFY(!button("Compare")->isEnabled());
        open("tiny_transformer");
        compare();
        QVERIFY2(summary().contains("no value diverges"), qPrintable(summary()));
        QVERIFY(!button("First Divergent")->isEnabled());
        QCOMPARE(static_cast<size_t>(table()->model()->rowCount()), controller().checkedRuns().rows().size());
        // On the graph, while it is wanted.
        QVERIFY(canvas().heat());
        picture("numerics-" + qEnvironmentVariable("CUTAWAY_THEME"));
        for (auto* box : window().findChildren<QCheckBox*>()) box->setChecked(false);
        QVERIFY(!canvas().heat());
        for (auto* box : window().findChildren<QCheckBox*>()) box->setChecked(true);
        QVERIFY(canvas().heat());
        m_main->stepper().step(true, true);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(!canvas().heat());
    }

    void rowsChooseNodesAndAreFiltered() {
        open("mlp");
        compare();
        const int all = table()->model()->rowCount();
        window().findChild<QLineEdit*>()->setText("unmatched");
        QVERIFY(table()->model()->rowCount() < all);
        window().findChild<QLineEdit*>()->clear();
        QCOMPARE(table()->model()->rowCount(), all);
        table()->selectRow(2);
        QCOMPARE(m_main->selection().node(), controller().checkedRuns().rows()[2].node);
        m_main->selection().setNode(controller().checkedRuns().rows()[0].node);
        QCOMPARE(table()->selectionModel()->selectedRows().value(0).row(), 0);
    }

    /// Enter runs up to the value and shows it, on the side that is chosen.
    void aValueIsShown() {
        open("mlp");
        compare();
        table()->setFocus();
        table()->selectRow(1);
        table()->setCurrentIndex(table()->model()->index(1, 0));
        QTest::keyClick(table(), Qt::Key_Return);
        auto* view = window().findChild<ValueView*>();
        QTRY_VERIFY_WITH_TIMEOUT(!view->picture().slice().numbers.empty(), testing::kEnginePatience);
        const QString name = QString::fromStdString(controller().checkedRuns().rows()[1].name);
        QVERIFY(view->findChild<QLabel*>("valueWords")->text().startsWith(name + ": f32["));
        QVERIFY(view->findChild<QTableWidget*>()->rowCount() > 0);
        picture("numerics-value-" + qEnvironmentVariable("CUTAWAY_THEME"));
        auto* side = view->findChild<QComboBox*>();
        side->setCurrentIndex(static_cast<int>(ValueSide::Difference));
        emit side->activated(side->currentIndex());
        QTRY_VERIFY_WITH_TIMEOUT(view->findChild<QLabel*>("valueWords")->text().contains("from 0 to 0"),
                                 testing::kEnginePatience);
    }

    void slicesHaveIndicesColoursAndSigns() {
        ValueView view;
        ShownValue shown;
        shown.value = std::make_shared<Given>();
        view.setValue(shown, "y");
        view.resize(500, 500);
        view.show();
        QCOMPARE(view.findChildren<QSpinBox*>().size(), 1);
        QVERIFY(view.findChild<QLabel*>("valueWords")->text().contains("1 NaN, 1 infinite"));
        view.findChild<QSpinBox*>()->setValue(2);
        QCOMPARE(view.picture().slice().numbers[1], 2.0);
        SlicePicture& picture = view.picture();
        QVERIFY(picture.colorOf(-2).blue() > picture.colorOf(-2).red());
        QVERIFY(picture.colorOf(2).red() > picture.colorOf(2).blue());
        QVERIFY(picture.colorOf(NAN) != picture.colorOf(INFINITY));
        QCOMPARE(view.findChild<QTableWidget*>()->item(1, 0)->text(), QStringLiteral("NaN"));
        QCOMPARE(view.findChild<QTableWidget*>()->item(1, 1)->text(), QStringLiteral("∞"));
        shown.value.reset();
        shown.problem = "the reference computes no such value";
        view.setValue(shown, "y");
        QCOMPARE(view.findChild<QLabel*>("valueWords")->text(), shown.problem);
        QVERIFY(view.findChildren<QSpinBox*>().isEmpty());
    }

    /// Training runs offer one check more: derivatives, right ones and a wrong one.
    void gradientsAreChecked() {
        open("mlp");
        QVERIFY(!button("Check Gradients")->isVisible());
        CompileRequest training;
        training.mode = Mode::Training;
        for (const char* fault : {"", "derive:aten.gelu.default:wrong"}) {
            setFault(fault);
            open("mlp", training);
            QVERIFY(button("Check Gradients")->isVisible());
            button("Check Gradients")->click();
            QVERIFY(controller().checkedRuns().isRunning());
            QVERIFY(!button("Check Gradients")->isEnabled());
            QTRY_VERIFY_WITH_TIMEOUT(!controller().checkedRuns().isRunning(), testing::kEnginePatience);
            setFault({});
            const auto& result = controller().checkedRuns().result();
            QVERIFY2(result.has_value(), qPrintable(summary()));
            const bool wrong = *fault != '\0';
            QCOMPARE(result->firstDivergent.has_value(), wrong);
            QCOMPARE(table()->model()->rowCount() > 0, wrong);
            QVERIFY2(summary().contains(wrong ? "aten.gelu.default" : "gradients"), qPrintable(summary()));
            if (!wrong) continue;
            button("First Divergent")->click();
            QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
            QCOMPARE(m_main->selection().place().step, result->place.step);
            QCOMPARE(m_main->selection().node(), result->nodes[*result->firstDivergent].node);
            QCOMPARE(result->nodes[*result->firstDivergent].op, std::string("aten.gelu.default"));
            picture("numerics-gradients-" + qEnvironmentVariable("CUTAWAY_THEME"));
        }
    }

    /// One button goes to what diverges first, in the graph and in the table.
    void whatDivergesFirstIsGoneTo() {
        open("tiny_transformer");
        setFault("op@after:aten.addmm.default:wrong");
        compare();
        setFault({});
        QVERIFY2(summary().contains("the first value that diverges is"), qPrintable(summary()));
        button("First Divergent")->click();
        const auto& result = *controller().checkedRuns().result();
        const NodeKey node = result.nodes[*result.firstDivergent].node;
        QCOMPARE(m_main->selection().node(), node);
        QCOMPARE(table()->selectionModel()->selectedRows().size(), 1);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        const HeatMark* mark = canvas().heat()->find(node);
        QVERIFY(mark && mark->heat == Heat::Wrong);
        picture("numerics-wrong-" + qEnvironmentVariable("CUTAWAY_THEME"));
    }

    /// Esc and the button stop it; what has come stays.
    void itStops() {
        open("tiny_transformer");
        actionNamed(*m_main, "Ctrl+Shift+N")->trigger();
        QVERIFY(controller().checkedRuns().isRunning());
        QVERIFY(window().activity());
        QVERIFY(button("Stop"));
        QTest::keyClick(m_main.get(), Qt::Key_Escape);
        QTRY_VERIFY(!controller().checkedRuns().isRunning());
        QVERIFY2(summary().contains("stopped after"), qPrintable(summary()));
        QVERIFY(!window().activity());
        QVERIFY(button("Compare")->isEnabled());
    }

    void theFirstStepIsLookedFor() {
        open("mlp");
        button("First Step")->click();
        QTRY_VERIFY_WITH_TIMEOUT(!controller().checkedRuns().isRunning(), testing::kEnginePatience);
        QVERIFY2(summary().contains("no value diverges after any of"), qPrintable(summary()));
    }

    /// A plugin's judge stands behind our own, and what it says is what the rows say.
    void judgeOfAPlugin() {
        testing::PluginsFolder plugins;
        plugins.write("picky.py", R"py(from cutaway_plugin import plugin
mine = plugin("picky", "1", "Takes nothing")
@mine.judge("never", "Takes no value")
def never(actual, expected, host):
    host.say("never " + actual.dtype)
    return False
)py");
        open("mlp");
        auto* judges = window().findChild<QComboBox*>();
        QTRY_COMPARE_WITH_TIMEOUT(judges->count(), 4, testing::kEnginePatience);
        QCOMPARE(judges->itemText(3), "Takes no value (picky)");
        judges->setFocus();
        QTest::keyClick(judges, Qt::Key_End);
        compare();
        QVERIFY2(summary().contains("the judge refuses it: never f32"), qPrintable(summary()));
        picture("judge");
        QTest::keyClick(judges, Qt::Key_Home);
        compare();
        QVERIFY2(summary().contains("no value diverges"), qPrintable(summary()));
    }
};

CUTAWAY_SUITE(NumericsWindowTest)
#include "numerics_window_test.moc"
