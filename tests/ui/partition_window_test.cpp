// The Partition window on the engine itself: what is saved, the slider, the pictures of the graph, and runs of
// training.
#include "ui/windows/partition_window.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QTableView>
#include <QTreeView>
#include <QtTest>
#include <set>

#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/models/partition_model.h"
#include "ui/models/steps_model.h"
#include "ui/session/kept_requests.h"
#include "ui/session/source.h"
#include "ui/windows/export_graph.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/plot_view.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

class PartitionWindowTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    PartitionWindow& window() { return m_main->get<PartitionWindow>(); }
    QSlider* slider() { return window().findChild<QSlider*>(); }
    QTableView* table() { return window().findChild<QTableView*>(); }
    QString totals() { return window().findChild<QLabel*>("totals")->text(); }
    QString empty() { return window().findChild<QLabel*>("noPartition")->text(); }
    PlotView* plot(const QString& name) {
        for (auto* found : window().findChildren<PlotView*>())
            if (found->accessibleName() == name) return found;
        return nullptr;
    }
    QPushButton* button(const QString& start) { return buttonOf(window(), start); }
    GraphView& graph() { return m_main->get<GraphWindow>().view(); }
    void settle() { QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience); }
    void open(const QString& model, const CompileRequest& options) {
        m_main->open(testing::testFile("../resources/models/" + model + ".pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(controller().model() && m_main->isSettled(), testing::kEnginePatience);
        controller().compile(options);
        QTRY_VERIFY_WITH_TIMEOUT(!controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
    }
    void openForTraining(const QString& model, double budget = 1) {
        CompileRequest options;
        options.mode = Mode::Training;
        options.memoryBudget = budget;
        open(model, options);
        m_main->raiseWindow(&window());
        QTRY_VERIFY_WITH_TIMEOUT(controller().partition() && m_main->isSettled(), testing::kEnginePatience);
    }
    static std::set<NodeKey> nodesOf(const PartitionChoice& choice) {
        std::set<NodeKey> nodes;
        for (const SavedTensor& value : choice.saved) nodes.insert(value.node);
        return nodes;
    }
    std::set<NodeKey> listed() {
        std::set<NodeKey> nodes;
        auto* model = window().findChild<PartitionModel*>();
        for (int row = 0; row < model->rowCount(); ++row) nodes.insert(model->at(row).node);
        return nodes;
    }
    std::set<NodeKey> ringed() {
        std::set<NodeKey> nodes;
        const SideMarks* marks = graph().canvas().marks();
        for (const auto& node : graph().graph()->nodes)
            if (const SideMark* mark = marks ? marks->find(node.info.id) : nullptr; mark && mark->saved)
                nodes.insert(node.info.id);
        return nodes;
    }

    /// What is written to a file says the sides, too, and what their colours mean.
    void picturesCarryTheMarks() {
        const GraphCanvas& canvas = graph().canvas();
        const PictureMarks marks{canvas.marks(), canvas.heat()};
        QTemporaryDir folder;
        const QString path = folder.filePath("sides.svg");
        QVERIFY(exportGraph(*canvas.scene(), GraphMode::Union, marks, m_main->palette(), "joint", path));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString svg = QString::fromUtf8(file.readAll());
        for (const char* word :
             {">→ forward</text>", ">← backward</text>", ">↻ computed again</text>", ">saved</text>"})
            QVERIFY2(svg.contains(word), word);
        qsizetype saved = 0, backward = 0;
        for (const auto& node : canvas.scene()->picture.nodes)
            if (const SideMark* mark = node.isFold() ? nullptr : marks.sides->find(node.id)) {
                saved += mark->saved;
                backward += mark->side == Side::Backward;
            }
        const QString dot = dotText(*canvas.scene(), GraphMode::Union, marks);
        QVERIFY(saved > 0 && backward > 0);
        QCOMPARE(dot.count("peripheries=2"), saved);
        QCOMPARE(dot.count("label=\"← "), backward);
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { m_main.reset(); }

    /// One sentence says why there is none, the next what to do.
    void withoutAPartitionItSaysWhy_data() {
        QTest::addColumn<int>("mode");
        QTest::addColumn<QString>("stage");
        QTest::addColumn<QString>("why");
        QTest::addColumn<QString>("advice");
        QTest::newRow("inference") << 0 << ""
                                   << "Only a run for training is split into forward and backward."
                                   << "Compile With (Ctrl+Shift+B)";
        QTest::newRow("one stage") << 1 << "capture"
                                   << "The stages of this run do not split the graph."
                                   << "with all stages";
    }
    void withoutAPartitionItSaysWhy() {
        QFETCH(int, mode);
        QFETCH(QString, stage);
        QFETCH(QString, why);
        QFETCH(QString, advice);
        CompileRequest options;
        options.mode = static_cast<Mode>(mode);
        options.onlyStage = stage.toStdString();
        open("mlp", options);
        m_main->raiseWindow(&window());
        settle();
        QVERIFY2(empty().startsWith(why) && empty().contains(advice), qPrintable(empty()));
        QVERIFY(window().findChild<QLabel*>("noPartition")->isVisible() && !slider()->isVisible());
        for (const char* key : {"Ctrl+J", "Ctrl+Shift+J"}) {
            const QAction* action = actionNamed(*m_main, key);
            QVERIFY2(!action->isEnabled() && action->statusTip().contains("not split into forward and backward"), key);
        }
        picture("no-partition-" + QString::number(mode));
    }

    void whatIsSavedIsListed_data() {
        QTest::addColumn<QString>("model");
        for (const char* name : {"mlp", "tiny_transformer", "tiny_resnet"}) QTest::newRow(name) << QString(name);
    }
    void whatIsSavedIsListed() {
        QFETCH(QString, model);
        openForTraining(model);
        const PartitionChoice& choice = controller().partition()->own;
        QVERIFY(!choice.saved.empty());
        QCOMPARE(listed(), nodesOf(choice));
        QVERIFY2(totals().startsWith(QString("%1 saved value").arg(choice.saved.size())), qPrintable(totals()));
        const QAbstractItemModel& rows = *table()->model();
        for (int row = 0; row < rows.rowCount(); ++row) {
            QVERIFY(rows.index(row, PartitionModel::Bytes).data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight);
            QVERIFY(!rows.index(row, PartitionModel::Why).data().toString().isEmpty());
            QVERIFY(rows.index(row, 0)
                        .data(Qt::ToolTipRole)
                        .toString()
                        .contains(rows.index(row, PartitionModel::Why).data().toString()));
        }
        // The largest of what is held over time has the peak's mark.
        const auto& held = controller().partition()->held;
        auto* time = plot("Bytes held over time");
        QCOMPARE(time->plot().points.size(), held.size());
        QCOMPARE(time->marks().size(), size_t(1));
        const auto peak =
            std::max_element(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
        QCOMPARE(time->marks()[0].y, static_cast<double>(peak->bytes));
        QTRY_VERIFY_WITH_TIMEOUT(!plot("Memory against recomputation")->plot().points.empty(),
                                 testing::kEnginePatience);
        // The joint graph shows the sides.
        button("Show in Graph")->click();
        settle();
        QVERIFY(graph().canvas().marks());
        QCOMPARE(ringed(), nodesOf(choice));
        picture("joint-" + model);
        picturesCarryTheMarks();
    }

    void theSliderTriesAndLettingGoCompiles() {
        openForTraining("tiny_transformer");
        button("Show in Graph")->click();
        settle();
        const PartitionChoice choice = controller().partition()->own;
        const Place before = m_main->selection().place();
        slider()->setSliderDown(true);
        for (const int tick : {900, 700, 500, 350, 200}) slider()->setValue(tick);
        settle();
        QCOMPARE(controller().runs().size(), size_t(1));
        const auto tried = controller().candidate();
        QVERIFY(tried);
        QCOMPARE(tried->budget, 0.2);
        QVERIFY(tried->activationBytes < choice.activationBytes);
        QCOMPARE(listed(), nodesOf(*tried));
        QCOMPARE(ringed(), nodesOf(*tried));
        QVERIFY2(totals().contains("(this run: "), qPrintable(totals()));
        QCOMPARE(window().findChild<QDoubleSpinBox*>()->value(), 0.2);
        QTRY_COMPARE_WITH_TIMEOUT(plot("Memory against recomputation")->marks().size(), size_t(2),
                                  testing::kEnginePatience);
        picture("slider");
        slider()->setSliderDown(false);
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().size() == 2 && m_main->isSettled(), testing::kEnginePatience);
        const Run& run = controller().runs()[1];
        QCOMPARE(run.options.memoryBudget, 0.2);
        QCOMPARE(rememberedRequest(controller().modelKey()).memoryBudget, 0.2);
        QVERIFY(rememberedRequest("of another model") == CompileRequest());
        QVERIFY2(run.title().contains("memory budget 0.2"), qPrintable(run.title()));
        QCOMPARE(m_main->selection().place(), (Place{run.id, before.step, -1}));
        QCOMPARE(controller().partition()->run, run.id);
        QVERIFY(!controller().candidate());
        QCOMPARE(listed(), nodesOf(*tried));
        QCOMPARE(ringed(), nodesOf(*tried));
        // The curve is one for both; now the other budget is the run's own.
        QCOMPARE(plot("Memory against recomputation")->marks().size(), size_t(1));
        QVERIFY(!plot("Memory against recomputation")->plot().points.empty());
        picture("derived");
    }

    void keysMoveCompileAndReturn() {
        openForTraining("mlp");
        QVERIFY(slider()->hasFocus());
        const PartitionChoice choice = controller().partition()->own;
        QTest::keyClick(slider(), Qt::Key_Home);
        settle();
        QVERIFY(controller().candidate());
        QCOMPARE(controller().candidate()->budget, 0.0);
        QVERIFY(button("Compile with 0.000")->isEnabled());
        QTest::keyClick(slider(), Qt::Key_Escape);
        settle();
        QVERIFY(!controller().candidate());
        QCOMPARE(slider()->value(), slider()->maximum());
        QCOMPARE(listed(), nodesOf(choice));
        QVERIFY(!button("Compile with")->isEnabled() && !button("Back to")->isEnabled());
        auto* number = window().findChild<QDoubleSpinBox*>();
        number->setFocus();
        number->selectAll();
        QTest::keyClicks(number, "0.25");
        QTest::keyClick(number, Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(controller().runs().size() == 2 && m_main->isSettled(), testing::kEnginePatience);
        QCOMPARE(controller().runs()[1].options.memoryBudget, 0.25);
        QCOMPARE(number->value(), 0.25);
    }

    /// Parameters have the model's names, and what the forward makes comes first.
    void activationsComeFirst() {
        openForTraining("mlp");
        auto* model = window().findChild<PartitionModel*>();
        bool inputs = false, named = false;
        for (int row = 0; row < model->rowCount(); ++row) {
            const SavedTensor& saved = model->at(row);
            QVERIFY2(saved.input || !inputs, qPrintable(model->index(row, 0).data().toString()));
            inputs |= saved.input;
            if (saved.tensor.empty()) continue;
            named = true;
            QCOMPARE(model->index(row, PartitionModel::Name).data().toString(),
                     QString::fromStdString(saved.tensor + " (" + saved.name + ")"));
        }
        QVERIFY(inputs && named);
    }

    void aPointOfTheCurveIsABudget() {
        openForTraining("tiny_transformer");
        auto* curve = plot("Memory against recomputation");
        QTRY_VERIFY_WITH_TIMEOUT(curve->plot().points.size() > 2, testing::kEnginePatience);
        QTest::mouseMove(curve, curve->positionOf(1).toPoint());
        QTest::mouseClick(curve, Qt::LeftButton, {}, curve->positionOf(1).toPoint());
        settle();
        QVERIFY(controller().candidate());
        const QString said = curve->plot().points[1].said;
        QVERIFY2(said.contains(QString::number(controller().candidate()->budget, 'f', 3)), qPrintable(said));
        // The keys do the same.
        curve->setFocus();
        QTest::keyClick(curve, Qt::Key_End);
        QTest::keyClick(curve, Qt::Key_Return);
        settle();
        QCOMPARE(controller().candidate()->budget, 0.0);
    }

    void windowsFollowTheSelection() {
        openForTraining("mlp");
        button("Show in Graph")->click();
        settle();
        auto* model = window().findChild<PartitionModel*>();
        for (int row = 0; row < model->rowCount(); ++row) {
            table()->selectRow(row);
            QCOMPARE(m_main->selection().node(), model->at(row).node);
            QCOMPARE(graph().canvas().currentId(), model->at(row).node);
            settle();
            const QString told = testing::treeText(*m_main->window("node")->findChild<QTreeView*>()->model());
            QVERIFY2(told.contains("Partition | "), qPrintable(told));
        }
        const NodeKey first = model->at(0).node;
        graph().nodeChosen(first);
        settle();
        QCOMPARE(table()->selectionModel()->selectedRows().value(0).row(), 0);
        QVERIFY(window().findChild<QLabel*>("why")->text().startsWith(QString::fromStdString(model->at(0).name)));
        // A click into the plot of bytes goes to the call.
        auto* time = plot("Bytes held over time");
        const int last = static_cast<int>(time->plot().points.size()) - 1;
        QTest::mouseClick(time, Qt::LeftButton, {}, time->positionOf(last).toPoint());
        QCOMPARE(m_main->selection().node(), controller().partition()->held.back().node);
        QCOMPARE(time->current(), last);
    }

    void forwardStandsBesideBackward_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<double>("budget");
        QTest::newRow("mlp") << "mlp" << 1.0;
        QTest::newRow("tiny_transformer, little memory") << "tiny_transformer" << 0.2;
    }
    void forwardStandsBesideBackward() {
        QFETCH(QString, model);
        QFETCH(double, budget);
        openForTraining(model, budget);
        QTest::keyClick(m_main.get(), Qt::Key_J, Qt::ControlModifier | Qt::ShiftModifier);
        settle();
        QVERIFY(controller().isForwardBesideBackward(m_main->selection().comparison()));
        QCOMPARE(graph().canvas().title(), "Forward");
        QCOMPARE(graph().secondCanvas().title(), "Backward");
        QVERIFY(graph().secondCanvas().isVisible() && graph().canvas().marks());
        const UnionGraph& both = *graph().graph();
        QVERIFY(both.added > 0 && both.removed > 0);
        QHash<quint64, int> at;
        for (size_t i = 0; i < both.nodes.size(); ++i) {
            QVERIFY(!at.contains(packed(both.nodes[i].info.id)));
            at.insert(packed(both.nodes[i].info.id), static_cast<int>(i));
        }
        for (const auto& edge : both.edges) QVERIFY(at.value(packed(edge.from)) < at.value(packed(edge.to)));
        QVERIFY(!ringed().empty());
        picture("beside-" + model);
        // Every node of either side can be described.
        for (const auto& node : both.nodes) {
            m_main->selection().setNode(node.info.id);
            settle();
            const QString told = testing::treeText(*m_main->window("node")->findChild<QTreeView*>()->model());
            QVERIFY2(told.startsWith("Node | " + QString::fromStdString(node.info.name)), qPrintable(told));
        }
        auto* modules = m_main->window("graph")->findChildren<QComboBox*>().first();
        QCOMPARE(modules->accessibleName(), "Module");
        if (modules->count() > 1) {
            modules->setCurrentIndex(1);
            emit modules->activated(1);
            settle();
            QVERIFY(graph().graph()->nodes.size() < both.nodes.size());
            bool forward = false, backward = false;  // both sides of it
            for (const auto& node : graph().graph()->nodes) {
                forward |= node.change == Change::Removed;
                backward |= node.change == Change::Added;
            }
            QVERIFY(forward && backward);
            // Each pane is filled by its own side, and readable.
            for (const GraphCanvas* pane : {&graph().canvas(), &graph().secondCanvas()}) {
                QRectF rect;
                for (size_t i = 0; i < pane->scene()->nodes.size(); ++i)
                    if (shownIn(pane->mode(), pane->scene()->picture.nodes[i].change)) rect |= pane->scene()->nodes[i];
                const QRectF view = pane->view();
                QVERIFY(pane->scale() >= kTextZoom);
                QVERIFY(view.intersects(rect));
                QVERIFY(pane->scale() >= 1 || rect.width() > 0.6 * view.width() || rect.height() > 0.6 * view.height());
            }
            picture("beside-module-" + model);
        }
        QTest::keyClick(m_main.get(), Qt::Key_J, Qt::ControlModifier);
        settle();
        QCOMPARE(graph().canvas().title(), QString());
        QVERIFY(!graph().secondCanvas().isVisible());
    }

    /// Both backends run forward and backward; the Results window has the loss, the gradients, times and bytes.
    void trainingRuns_data() {
        QTest::addColumn<int>("key");
        QTest::newRow("reference") << 0;
        QTest::newRow("timed on the CPU") << int(Qt::Key_F6);
    }
    void trainingRuns() {
        QFETCH(int, key);
        openForTraining("mlp");
        for (const char* each : {"F5", "F6", "F7"}) QVERIFY2(actionNamed(*m_main, each)->isEnabled(), each);
        std::shared_ptr<const RunReport> report;
        connect(&controller(), &SessionController::ran, this,
                [&](RunId, const std::shared_ptr<const RunReport>& what) { report = what; });
        if (key) QTest::keyClick(m_main.get(), static_cast<Qt::Key>(key));
        else controller().run(controller().runs()[0].id, {});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled() && (report || !m_main->findChild<ProblemBar*>()->text().isEmpty()),
                                 testing::kEnginePatience);
        QVERIFY2(report, qPrintable(m_main->findChild<ProblemBar*>()->text()));
        QVERIFY(report->training);
        auto* results = m_main->window("results");
        QString said;
        for (const QLabel* label : results->findChildren<QLabel*>()) said += label->text() + QChar('\n');
        for (const char* part : {"loss ", "forward ", "backward ", "measured ", "estimated "})
            QVERIFY2(said.contains(part), qPrintable(said));
        const QString rows = testing::treeText(*results->findChild<QTableView*>()->model());
        for (const OutputReport& gradient : report->training->gradients)
            QVERIFY2(rows.contains(QString::fromStdString(gradient.name) + ".grad |"), qPrintable(rows));
        QCOMPARE(rows.count(".grad |"), static_cast<qsizetype>(report->training->gradients.size()));
        m_main->raiseWindow(results);
        picture("results-" + QString::number(key));
    }

    void stepsAreGroupedByGraph() {
        openForTraining("mlp");
        auto* tree = m_main->window("steps")->findChild<QTreeView*>();
        QStringList top;
        for (int row = 0; row < tree->model()->rowCount(); ++row) {
            const QModelIndex at = tree->model()->index(row, 0);
            top << at.data().toString();
            if (row > 0) QVERIFY(tree->isExpanded(at) && tree->isExpanded(tree->model()->index(0, 0, at)));
        }
        QCOMPARE(top, (QStringList{"As opened", "joint", "forward", "backward"}));
        picture("steps");
    }
};

CUTAWAY_SUITE(PartitionWindowTest)
#include "partition_window_test.moc"
