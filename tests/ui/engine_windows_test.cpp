// The main window on the engine itself: bundled models and small texts, driven as a user would.
#include <QElapsedTimer>
#include <QFile>
#include <QFileInfo>
#include <QScrollBar>
#include <QSpinBox>
#include <QTableView>
#include <QTextBrowser>
#include <QTreeView>
#include <QtTest>

#include "engine/support/fault_points.h"
#include "tests/support/paths.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "tests/ui/session_window_fixture.h"
#include "tests/ui/tree_text.h"
#include "ui/models/text_model.h"
#include "ui/session/kept_requests.h"
#include "ui/session/source.h"
#include "ui/session/stepper.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/explain_window.h"
#include "ui/windows/graph_window.h"
#include "ui/windows/main_window.h"
#include "ui/windows/menu_actions.h"
#include "ui/windows/node_window.h"
#include "ui/windows/problem_bar.h"
#include "ui/windows/rewrite_bar.h"
#include "ui/windows/steps_window.h"
#include "ui/windows/text_window.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;

class EngineWindowsTest : public QObject, testing::SessionWindowFixture {
    Q_OBJECT

    QString write(const QString& name, const QByteArray& text) {
        QFile file(m_folder.filePath(name));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) return {};
        return file.fileName();
    }
    void open(const QString& path, const CompileRequest& options = {}) {
        m_main->open(path);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), testing::kEnginePatience);
        const size_t runs = m_main->controller().runs().size();
        m_main->controller().compile(options);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() > runs && m_main->isSettled(),
                                 testing::kEnginePatience);
    }
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(m_main.get(), key, modifiers); }
    QString place() { return m_main->controller().placeName(m_main->selection().place()); }
    QString problem() { return m_main->findChild<ProblemBar*>()->text(); }
    NodeKey idOf(const QString& name) {
        for (const auto& node : m_main->get<GraphWindow>().view().graph()->nodes)
            if (QString::fromStdString(node.info.name) == name) return node.info.id;
        return NodeKey::None;
    }

  private slots:
    void initTestCase() { prepareSettings(); }
    void init() { showWindow(); }
    void cleanup() { m_main.reset(); }

    /// By its content: a copy of the file is the same model.
    void closedModulesAreRememberedByModel() {
        const auto modules = [this] { return m_main->get<GraphWindow>().view().modules(); };
        const auto openOnly = [this](const QString& path) {
            m_main->open(path);
            QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().path() == path && m_main->isSettled(),
                                     testing::kEnginePatience);
        };
        const QString model = testing::testFile("../resources/models/tiny_transformer.pt2");
        const QString copy = m_folder.filePath("elsewhere.pt2");
        QVERIFY(QFile::copy(model, copy));
        openOnly(QFileInfo(model).absoluteFilePath());
        QVERIFY(modules() == ModuleFolding());
        press(Qt::Key_BracketLeft, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_main->isSettled() && m_main->get<GraphWindow>().view().canvas().scene()->picture.modules > 0,
            testing::kEnginePatience);
        const ModuleFolding closed = modules();
        openOnly(QFileInfo(testing::testFile("../resources/models/mlp.pt2")).absoluteFilePath());
        QVERIFY(modules() == ModuleFolding());
        openOnly(copy);
        QVERIFY(modules() == closed);
        QVERIFY(m_main->get<GraphWindow>().view().canvas().scene()->picture.modules > 0);
        press(Qt::Key_BracketLeft, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(modules() == ModuleFolding());
    }

    /// An exception, whatever it is and wherever it is thrown, is a line in the log; the window goes on.
    void exceptionsLeaveTheWindow_data() {
        QTest::addColumn<QString>("fault");
        for (const char* place : {"reader:*", "pass:decompose", "job:*"})
            for (const char* kind : {"internal", "logic_error", "bad_alloc", "system_error", "int"})
                QTest::newRow(qPrintable(QString("%1, %2").arg(place, kind))) << QString("%1:%2").arg(place, kind);
    }
    void exceptionsLeaveTheWindow() {
        QFETCH(QString, fault);
        const QString model = testing::testFile("../resources/models/mlp.pt2");
        const auto end = qScopeGuard([] { setFault(""); });
        LogModel& log = m_main->controller().log();
        if (!fault.startsWith("reader")) {
            m_main->open(model);
            QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), testing::kEnginePatience);
        }
        const int lines = log.rowCount();
        setFault(fault.toStdString());
        if (fault.startsWith("reader")) m_main->open(model);
        else m_main->controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(log.rowCount() > lines && m_main->isSettled(), testing::kEnginePatience);
        setFault("");
        m_main->open(model);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), testing::kEnginePatience);
        m_main->controller().compile({});
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY(m_main->isVisible());
    }

    void everyRewriteIsShownOnTheWayThereAndBack_data() {
        QTest::addColumn<QString>("model");
        for (const char* name : {"mlp", "tiny_transformer"})
            QTest::newRow(name) << QString("resources/models/%1.pt2").arg(name);
    }
    void everyRewriteIsShownOnTheWayThereAndBack() {
        QFETCH(QString, model);
        open(testing::testFile("../" + model));
        const QString first = place();
        QStringList there, back;
        for (;;) {
            const QString now = place();
            there << now;
            press(Qt::Key_F11);
            QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
            QVERIFY2(problem().isEmpty(), qPrintable(problem()));
            const auto& graph = *m_main->get<GraphWindow>().view().graph();
            if (m_main->selection().place().rewrites > 0) {
                const bool rewired = std::any_of(graph.edges.begin(), graph.edges.end(),
                                                 [](const auto& edge) { return edge.change != Change::Unchanged; });
                const bool moved =
                    place().startsWith("reorder_for_locality") || place().startsWith("stable");  // edges show no order
                // The schedule decides about nodes and edits none.
                const auto& run = m_main->controller().runs()[0];
                const bool decided =
                    run.steps[static_cast<size_t>(m_main->selection().place().step)].stage == "schedule";
                QVERIFY2(graph.added + graph.removed + graph.edited > 0 || rewired || moved || decided,
                         qPrintable(place() + " shows nothing"));
            }
            if (place() == now) break;
        }
        QVERIFY2(there.size() > 10, qPrintable(there.join('\n')));
        while (place() != first) {
            back.prepend(place());
            press(Qt::Key_F11, Qt::ShiftModifier);
            QVERIFY(back.size() <= there.size());
        }
        back.prepend(first);
        QCOMPARE(back, there);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
    }

    /// However many they are: those on the screen have all the room.
    void rewritesAreNotCut() {
        QByteArray body, last = "x";
        constexpr int kClones = 620;
        for (int i = 0; i < kClones; ++i) {
            const QByteArray name = "c" + QByteArray::number(i);
            body += "    " + name + " = torch.ops.aten.clone.default(" + last + ")\n";
            last = name;
        }
        open(write("clones.py", "def forward(x: \"f32[2]\"):\n" + body + "    return (" + last + ",)\n"));
        auto& steps = m_main->get<StepsWindow>();
        auto* tree = steps.findChild<QTreeView*>();
        const auto& all = m_main->controller().runs()[0].steps;
        const auto many =
            std::find_if(all.begin(), all.end(), [](const StepInfo& step) { return step.rewrites > kClones - 10; });
        QVERIFY(many != all.end());
        m_main->selection().setPlace({m_main->controller().runs()[0].id, many->index, many->rewrites - 1});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        const QModelIndex row = tree->currentIndex();
        QVERIFY(row.row() > 500);
        QTRY_VERIFY_WITH_TIMEOUT(tree->isFirstColumnSpanned(row.row(), row.parent()), testing::kPatience);
        tree->scrollTo(row.parent());
        QTRY_VERIFY_WITH_TIMEOUT(tree->isFirstColumnSpanned(0, row.parent()), testing::kPatience);
    }

    void whatIsClosedIsGone() {
        const auto source = makeSessionSource();
        QVERIFY(source->open(testing::testFile("../resources/models/mlp.pt2").toStdString(), {}, {}));
        QVERIFY(source->text({}, false, {}));
        source->close();
        const auto text = source->text({}, false, {});
        QVERIFY(!text);
        QCOMPARE(text.error().message, std::string("no model is open"));
    }

    /// Nothing is offered that cannot be done, and the tips say why.
    void aJointGraphAloneIsNotRun() {
        CompileRequest training;
        training.mode = Mode::Training;
        training.onlyStage = "capture";
        open(testing::testFile("../resources/models/mlp.pt2"), training);
        for (const char* key : {"F5", "F6"}) {
            const QAction* action = actionNamed(*m_main, key);
            QVERIFY2(!action->isEnabled() && action->statusTip().contains("this run did not split it"),
                     qPrintable(action->statusTip()));
        }
    }

    /// From fuse_nodes on the picture outlines nodes that share a kernel, and the Node window says which ones and why.
    void sharedKernelsAreOutlined() {
        open(testing::testFile("../resources/models/tiny_transformer.pt2"), {});
        const Run& run = m_main->controller().runs().back();
        const auto fusing = std::find_if(run.steps.begin(), run.steps.end(),
                                         [](const StepInfo& step) { return step.name == "fuse_nodes"; });
        QVERIFY(fusing != run.steps.end());
        m_main->selection().setPlace({run.id, fusing->index, -1});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        auto& graph = m_main->get<GraphWindow>();
        QVERIFY2(graph.pictureTitle().contains("outlined"), qPrintable(graph.pictureTitle()));
        const auto& nodes = graph.view().canvas().scene()->picture.nodes;
        const auto outlined =
            std::find_if(nodes.begin(), nodes.end(), [](const Picture::Node& node) { return node.kernel >= 0; });
        QVERIFY(outlined != nodes.end());
        m_main->selection().setNode(outlined->id);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        const QAbstractItemModel& said = *m_main->get<NodeWindow>().findChild<QTreeView*>()->model();
        const QModelIndexList rows = said.match(said.index(0, 0), Qt::DisplayRole, "Kernel", 1, Qt::MatchExactly);
        QCOMPARE(rows.size(), 1);
        QVERIFY(rows[0].siblingAtColumn(1).data().toString().startsWith("shared with"));
        QVERIFY(said.rowCount(rows[0]) > 1);
        picture("shared-kernels");
    }

    void kernelsOfTrainingAreListed() {
        CompileRequest training;
        training.mode = Mode::Training;
        open(testing::testFile("../resources/models/mlp.pt2"), training);
        press(Qt::Key_F7);
        QTRY_VERIFY_WITH_TIMEOUT(!m_main->controller().isBusy(), testing::kEnginePatience);
        QVERIFY2(problem().isEmpty(), qPrintable(problem()));
        QVERIFY(m_main->window("kernels")->findChild<QAbstractItemView*>()->model()->rowCount() > 0);
    }

    /// Weights are read when they are used; by then somebody may have begun to export the model anew.
    void aModelCutShortWhileOpenIsSaid() {
        const std::string bytes = testing::largeWeightArchive();
        const QString path = write("large.pt2", QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())));
        open(path);
        QVERIFY(QFile::resize(path, 100));
        press(Qt::Key_F6);
        QTRY_VERIFY_WITH_TIMEOUT(!problem().isEmpty() && m_main->isSettled(), testing::kEnginePatience);
        QVERIFY2(problem().contains("the file has changed since it was opened") &&
                     problem().contains(path + ": data/weights/weight_0"),
                 qPrintable(problem()));
        write("large.pt2", QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())));
        open(path);  // the window lives on
        press(Qt::Key_F6);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        QVERIFY2(problem().isEmpty(), qPrintable(problem()));
    }

    /// The part of a long line that the step changed is on the screen.
    void theChangedWordIsInView_data() {
        QTest::addColumn<bool>("sides");
        QTest::newRow("unified") << false;
        QTest::newRow("side by side") << true;
    }
    void theChangedWordIsInView() {
        QFETCH(bool, sides);
        QByteArray list;
        for (int i = 0; i < 60; ++i) list += "x, ";
        m_main->resize(900, 600);
        open(write(
            "long.py",
            "def forward(x: \"f32[2]\"):\n    y = torch.ops.aten.neg.default(x)\n    n = torch.ops.aten.view.default(y, [2])\n    c = torch.ops.aten.cat.default([" +
                list + "n])\n    return (c,)\n"));
        m_main->raiseWindow(m_main->window("text"));
        m_main->get<TextWindow>().setSideBySide(sides);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled() && m_main->isOnScreen(m_main->get<TextWindow>().widget()),
                                 testing::kEnginePatience);
        auto& table = *m_main->get<TextWindow>().findChild<QTableView*>();
        QScrollBar* bar = table.horizontalScrollBar();
        if (sides)
            for (auto* each : m_main->get<TextWindow>().findChildren<QScrollBar*>())
                if (!each->accessibleName().isEmpty()) bar = each;
        QTRY_VERIFY_WITH_TIMEOUT(bar->maximum() > 0, testing::kEnginePatience);
        const auto changed = [&] {
            const QModelIndex line = table.model()->index(table.currentIndex().row(), TextModel::Fourth);
            return line.data().toString().contains("cat") ? line : QModelIndex();
        };
        bar->setValue(0);
        do press(Qt::Key_F8);
        while (!changed().isValid());
        const auto marks = changed().data(TextModel::MarksRole).value<QVector<MarkedRange>>();
        QVERIFY(!marks.isEmpty());
        QVERIFY(bar->value() > 0);
        const int column = table.columnViewportPosition(TextModel::Fourth);
        const int at =
            column - (sides ? bar->value() : 0) +
            QFontMetrics(table.font()).horizontalAdvance(changed().data().toString().left(marks.front().start));
        QVERIFY2(
            at > std::max(column, 0) && at < table.viewport()->width(),
            qPrintable(QStringLiteral("%1 of %2, column at %3").arg(at).arg(table.viewport()->width()).arg(column)));
    }

    /// The option --compile does the same whatever somebody chose last in the window.
    void compilingWhenOpenedTakesTheDefaults() {
        CompileRequest chosen;
        chosen.mode = Mode::Training;
        const QString mlp = testing::testFile("../resources/models/mlp.pt2");
        m_main->open(mlp);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), testing::kEnginePatience);
        const QString key = m_main->controller().modelKey();
        rememberRequest(key, chosen);
        m_main->compileWhenOpened();
        m_main->open(mlp);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 1 && m_main->isSettled(),
                                 testing::kEnginePatience);
        QVERIFY(m_main->controller().runs()[0].options.mode == Mode::Inference);
        QVERIFY(rememberedRequest(key).mode == Mode::Training);  // which it leaves alone
        // It was asked for this model, not for those that are opened later.
        m_main->open(mlp);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().empty() && m_main->isSettled(), testing::kEnginePatience);
        QTest::qWait(1);
        QVERIFY(m_main->isSettled() && m_main->controller().runs().empty());
    }

    void aRuleOfTheUserIsExplainedAndSwitchedOff() {
        const QString path = write(
            "silu.py",
            "def forward(x: \"f32[2, 3]\"):\n    s = torch.ops.aten.sigmoid.default(x)\n    r = torch.ops.aten.mul.Tensor(x, s)\n    return (r,)\n");
        CompileRequest options;
        options.userRules.push_back(
            {"mine",
             "rule silu_to_relu\n  place joint_custom_post_pass\n  why the model was trained for it\n  find\n    s = aten.sigmoid.default(x)\n    r = aten.mul.Tensor(x, s)\n    return r\n  replace\n    r = aten.relu.default(x)\n    return r\n"});
        open(path, options);
        QCOMPARE(m_main->controller().runs()[0].title(), "Run 1: inference, CPU, with mine");
        press(Qt::Key_F11);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        const QString bar = m_main->findChild<RewriteBar*>()->text();
        QVERIFY2(bar.contains("silu_to_relu") && bar.contains("the model was trained for it"), qPrintable(bar));
        press(Qt::Key_E, Qt::ControlModifier);
        auto* explain = m_main->window("explain");
        auto* about = explain->findChild<QTextBrowser*>();
        QTRY_VERIFY_WITH_TIMEOUT(about->toPlainText().contains("Applies at"), testing::kEnginePatience);
        QVERIFY2(about->toPlainText().contains("aten.relu.default(x)"), qPrintable(about->toPlainText()));
        picture("explain-own-rule", 100);
        auto* rows = explain->findChild<QTreeView*>();
        QVERIFY(rows->model()->index(0, 0).data().toString().startsWith("silu_to_relu"));
        rows->model()->setData(rows->model()->index(0, 0), Qt::Unchecked, Qt::CheckStateRole);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 2 && m_main->isSettled(),
                                 testing::kEnginePatience);
        QVERIFY2(problem().isEmpty(), qPrintable(problem()));
        const auto& graph = *m_main->get<GraphWindow>().view().graph();
        QCOMPARE(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                               [](const auto& node) {
                                   return node.change == Change::Added && node.info.op == "aten.sigmoid.default";
                               }),
                 1);
        QTRY_COMPARE_WITH_TIMEOUT(m_main->controller().runs()[1].title(),
                                  "Run 2: inference, CPU, with mine, 1 rule off", testing::kEnginePatience);
        // It stays in reach: another click brings it back.
        QTRY_COMPARE_WITH_TIMEOUT(
            testing::treeText(*rows->model()).contains("silu_to_relu (joint_custom_post_pass.mine) | off"), true,
            testing::kEnginePatience);
        picture("rule-off", 100);
        for (int row = 0; row < rows->model()->rowCount(); ++row)
            if (rows->model()->index(row, 1).data().toString() == "off")
                rows->model()->setData(rows->model()->index(row, 0), Qt::Checked, Qt::CheckStateRole);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().runs().size() == 3 && m_main->isSettled(),
                                 testing::kEnginePatience);
        QCOMPARE(m_main->controller().runs()[2].title(), "Run 3: inference, CPU, with mine");
    }

    void bodiesOfSubgraphsAreShown() {
        open(write("cond.py", R"(def forward(p: "b8[]", x: "f32[4]"):
    cond = higher_order.cond(p, true_graph_0, false_graph_0, [x])
    getitem: "f32[4]" = cond[0]
    return (getitem,)

def true_graph_0(x: "f32[4]"):
    sin: "f32[4]" = aten.sin.default(x)
    return (sin,)

def false_graph_0(x: "f32[4]"):
    y: "f32[4]" = aten.t.default(x)
    neg: "f32[4]" = aten.neg.default(y)
    sum: "f32[4]" = aten.add.Tensor(neg, x)
    return (sum,)
)"));
        m_main->selection().setPlace({0, -1, -1});
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        const auto& graph = *m_main->get<GraphWindow>().view().graph();
        QCOMPARE(graph.nodes.size(), size_t(5 + 3 + 5));
        QSet<quint64> ids;
        for (const auto& node : graph.nodes) ids.insert(packed(node.info.id));
        QCOMPARE(ids.size(), 13);
        const NodeKey neg = idOf("neg"), y = idOf("y");
        QVERIFY(std::any_of(graph.edges.begin(), graph.edges.end(),
                            [&](const auto& edge) { return edge.from == y && edge.to == neg; }));
        // Its line of the text, its box and what the Node window tells are one node.
        auto* text = m_main->window("text")->findChild<QTableView*>();
        for (int row = 0; row < text->model()->rowCount(); ++row)
            if (text->model()->index(row, 3).data().toString().contains("neg: ")) text->selectRow(row);
        QCOMPARE(m_main->selection().node(), neg);
        auto* node = m_main->window("node")->findChild<QTreeView*>();
        QTRY_VERIFY_WITH_TIMEOUT(testing::treeText(*node->model()).contains("Module | false_graph_0"),
                                 testing::kEnginePatience);
        QVERIFY2(testing::treeText(*node->model()).contains("aten.neg.default"),
                 qPrintable(testing::treeText(*node->model())));
        QVERIFY2(testing::treeText(*node->model()).contains("read from the file"),
                 qPrintable(testing::treeText(*node->model())));
        m_main->get<GraphWindow>().setMode(GraphMode::Union);
        picture("bodies", 100);
        // Rules are explained there too.
        m_main->selection().setNode(idOf("sum"));
        press(Qt::Key_E, Qt::ControlModifier);
        auto* about = m_main->window("explain")->findChild<QTextBrowser*>();
        QTRY_VERIFY_WITH_TIMEOUT(about->toPlainText().contains("Does not apply at sum"), testing::kEnginePatience);
        m_main->selection().setNode(neg);
        // A rewrite inside a body leads to the body's node.
        const auto& run = m_main->controller().runs()[0];
        bool any = false;
        for (size_t step = 0; step < run.steps.size(); ++step)
            for (size_t i = 0; i < run.rewrites[step].size(); ++i) {
                if (run.rewrites[step][i].node != "y") continue;
                any = true;
                m_main->stepper().show({run.id, static_cast<int>(step), static_cast<int>(i) + 1});
                QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
                QCOMPARE(m_main->selection().node(), y);
            }
        QVERIFY2(any, "no pass rewrote the body");
    }

    void whatCannotBeOpenedOrCompiledIsSaid_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("rules");
        QTest::addColumn<QString>("said");
        const QByteArray good = "def forward(x: \"f32[2]\"):\n    y = torch.ops.aten.neg.default(x)\n    return (y,)\n";
        QTest::newRow("unknown file") << "a.bin" << QByteArray("\x01\x02 nothing that is known") << QByteArray()
                                      << "Opening a.bin";
        QTest::newRow("no call") << "b.py" << QByteArray("def forward(x: \"f32[2]\"):\n    y = +\n    return (y,)\n")
                                 << QByteArray() << "Opening b.py";
        QTest::newRow("bad rule")
            << "c.py" << good
            << QByteArray(
                   "rule broken\n  place joint_custom_post_pass\n  find\n    y = aten.nosuch.default(x)\n    return y\n  replace\n    return x\n")
            << "Compiling";
    }
    void whatCannotBeOpenedOrCompiledIsSaid() {
        QFETCH(QString, file);
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, rules);
        QFETCH(QString, said);
        m_main->open(write(file, text));
        if (!rules.isEmpty()) {
            QTRY_VERIFY_WITH_TIMEOUT(m_main->controller().model() && m_main->isSettled(), testing::kEnginePatience);
            CompileRequest options;
            options.userRules.push_back({"mine", rules.toStdString()});
            m_main->controller().compile(options);
        }
        QTRY_VERIFY_WITH_TIMEOUT(problem().contains(said), testing::kEnginePatience);
        QTRY_VERIFY_WITH_TIMEOUT(m_main->isSettled(), testing::kEnginePatience);
        picture("problem-" + file);
    }
};

CUTAWAY_SUITE(EngineWindowsTest)
#include "engine_windows_test.moc"
