// The tree of stages, passes and rewrites: the model tester watches every change, printed trees are compared.
#include "ui/models/steps_model.h"

#include <QSignalSpy>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/fake_source.h"
#include "tests/ui/tree_text.h"
#include "ui/session/session_controller.h"

using namespace cutaway;
using namespace cutaway::ui;
using cutaway::testing::sampleSteps;
using cutaway::testing::treeText;

class StepsModelTest : public QObject {
    Q_OBJECT

  private slots:
    void stepsFoldUnchangedPasses() {
        StepsModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setRun(1, sampleSteps());
        QCOMPARE(treeText(model),
                 "As opened\n"
                 "pre_grad\n"
                 "  3 unchanged passes\n"
                 "    normalize | · | 8 | 1.5 ms\n"
                 "    split_cat | · | 8 | 1.5 ms\n"
                 "    fuse_conv | · | 8 | 1.5 ms\n"
                 "post_grad | 2 changed\n"
                 "  remove_noop_ops | · | 8 | 1.5 ms\n"
                 "  fuse_bias_add | +1 −2 | 7 | 1.5 ms\n"
                 "  reinplace | +1 −2 | 7 | 1.5 ms\n");
    }

    /// Steps that come in parts make the tree that they make at once.
    void stepsMayComeInParts_data() {
        QTest::addColumn<QString>("states");
        for (const char* states :
             {"u", "uu", "uuu", "ucu", "cuuc", "uuduuu", "fuu", "uu|u", "uu|uuu|c|u", "c|cu|uu|uf"})
            QTest::newRow(states) << states;
    }
    void stepsMayComeInParts() {
        QFETCH(QString, states);
        std::vector<StepInfo> steps;
        int stage = 0;
        for (const QChar state : std::as_const(states)) {
            if (state == '|') ++stage;
            if (state == '|') continue;
            StepInfo& step = steps.emplace_back();
            step.index = static_cast<int>(steps.size()) - 1;
            step.name = "pass" + std::to_string(step.index);
            step.stage = "stage" + std::to_string(stage);
            step.state = state == 'u'   ? StepState::Unchanged
                         : state == 'c' ? StepState::Changed
                         : state == 'f' ? StepState::Failed
                                        : StepState::Disabled;
        }
        StepsModel whole;
        whole.setRun(1, steps);
        for (size_t first = 0; first <= steps.size(); ++first)
            for (size_t part : {1, 2}) {
                StepsModel model;
                QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
                model.setRun(1, {steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(first)});
                for (size_t i = first; i < steps.size(); i += part)
                    model.addSteps({steps.begin() + static_cast<std::ptrdiff_t>(i),
                                    steps.begin() + static_cast<std::ptrdiff_t>(std::min(i + part, steps.size()))});
                QCOMPARE(treeText(model), treeText(whole));
                for (const StepInfo& step : steps)
                    QCOMPARE(model.indexOf(Place{1, step.index, -1}).data().toString(),
                             QString::fromStdString(step.name));
            }
    }

    /// The stages of forward and backward take turns; each side is one row with its stages.
    void graphsAreRowsOfTheirOwn() {
        std::vector<StepInfo> steps;
        const auto add = [&](const char* graphName, const char* stage, const char* name, StepState state) {
            StepInfo& step = steps.emplace_back();
            step.index = static_cast<int>(steps.size()) - 1;
            step.graphName = graphName;
            step.stage = stage;
            step.name = name;
            step.state = state;
        };
        add("joint", "capture", "differentiate", StepState::Changed);
        add("joint", "partition", "min_cut", StepState::Changed);
        add("forward", "post_grad", "view_to_reshape", StepState::Changed);
        add("backward", "post_grad", "view_to_reshape", StepState::Unchanged);
        add("forward", "schedule", "schedule", StepState::Unchanged);
        add("backward", "schedule", "schedule", StepState::Failed);
        const QString told =
            "As opened\njoint | 2 changed\n  capture | 1 changed\n    differentiate | reordered | 0 | 0 µs\n"
            "  partition | 1 changed\n    min_cut | split | 0 | 0 µs\n"
            "forward | 1 changed\n  post_grad | 1 changed\n    view_to_reshape | reordered | 0 | 0 µs\n"
            "  schedule\n    schedule | · | 0 | 0 µs\n"
            "backward | 1 failed\n  post_grad\n    view_to_reshape | · | 0 | 0 µs\n"
            "  schedule | 1 failed\n    schedule | ✗ failed | 0 | 0 µs\n";
        StepsModel whole, growing;
        QAbstractItemModelTester first(&whole, cutaway::testing::kFatal), second(&growing, cutaway::testing::kFatal);
        whole.setRun(1, steps);
        QCOMPARE(treeText(whole), told);
        growing.setRun(1, {});
        for (const StepInfo& step : steps) growing.addSteps({step});
        QCOMPARE(treeText(growing), told);
        for (const StepInfo& step : steps)
            QCOMPARE(whole.placeOf(whole.indexOf(Place{1, step.index, -1})), std::optional(Place{1, step.index, -1}));
    }

    /// The schedule is made of passes like any other stage.
    void theScheduleIsAStage() {
        std::vector<StepInfo> steps;
        for (const char* name : {"lowering_calls", "choose_libraries", "fuse_nodes"}) {
            StepInfo& step = steps.emplace_back();
            step.index = static_cast<int>(steps.size()) - 1;
            step.stage = step.index < 1 ? "lowering" : "schedule";
            step.name = name;
            step.state = step.index == 2 ? StepState::Changed : StepState::Unchanged;
            step.rewrites = step.index == 2 ? 2 : 0;
        }
        StepsModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setRun(1, steps);
        QCOMPARE(
            treeText(model),
            "As opened\nlowering\n  lowering_calls | · | 0 | 0 µs\nschedule | 1 changed\n  choose_libraries | · | 0 | 0 µs\n  "
            "fuse_nodes | 2 decisions | 0 | 0 µs\n");
        QCOMPARE(model.indexOf(Place{1, 2, -1}).data(Qt::CheckStateRole).toInt(), int(Qt::Checked));
    }

    void aRunUnderWayCannotBeSteppedOrSwitched() {
        StepsModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setRun(StepsModel::kUnderWay, sampleSteps());
        const QModelIndex pass = model.indexOf(Place{StepsModel::kUnderWay, 4, -1});
        QCOMPARE(pass.data().toString(), "fuse_bias_add");
        QVERIFY(!model.placeOf(pass) && !model.hasChildren(pass) && !model.canFetchMore(pass));
        QVERIFY(!(model.flags(pass) & Qt::ItemIsUserCheckable));
    }

    void rewritesComeWhenAPassIsOpened() {
        StepsModel model;
        model.setRun(1, sampleSteps());
        QSignalSpy wanted(&model, &StepsModel::rewritesWanted);
        const QModelIndex pass = model.indexOf(Place{1, 4, -1});
        QVERIFY(model.hasChildren(pass));
        QVERIFY(model.canFetchMore(pass));
        model.fetchMore(pass);
        QCOMPARE(wanted.size(), 1);
        QVERIFY(!model.canFetchMore(pass));
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);  // not earlier: it fetches everything itself
        model.setRewrites(4, {{.rule = "mm_add_to_addmm", .why = "why", .node = "y", .key = static_cast<NodeKey>(3)},
                              {.index = 1, .rule = "dead node"}});
        QCOMPARE(treeText(model, pass), "1  mm_add_to_addmm at y\n2  dead node\n");
        QCOMPARE(*model.placeOf(model.indexOf(Place{1, 4, 2})), (Place{1, 4, 2}));
        model.setRewrites(4, {});
        QCOMPARE(model.rowCount(model.indexOf(Place{1, 4, -1})), 0);
    }

    void failedAndDisabledStepsSaySo() {
        auto steps = sampleSteps();
        steps[4].state = StepState::Failed;
        steps[4].error = "node 3 has no users";
        steps[5].state = StepState::Disabled;
        StepsModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setRun(2, steps);
        const QModelIndex failed = model.indexOf(Place{2, 4, -1}), disabled = model.indexOf(Place{2, 5, -1});
        QCOMPARE(failed.siblingAtColumn(StepsModel::Changes).data().toString(), "✗ failed");
        QVERIFY(failed.data(Qt::ToolTipRole).toString().contains("node 3 has no users"));
        QCOMPARE(disabled.siblingAtColumn(StepsModel::Changes).data().toString(), "off");
        QCOMPARE(disabled.data(Qt::CheckStateRole).toInt(), int(Qt::Unchecked));
        QSignalSpy toggled(&model, &StepsModel::passToggled);
        QVERIFY(!model.setData(disabled, Qt::Checked, Qt::CheckStateRole));  // shown only when the new run is there
        QCOMPARE(toggled.size(), 1);
        QCOMPARE(toggled[0][0].toString(), "reinplace");
        QCOMPARE(toggled[0][1].toBool(), true);
    }

    void marksAreShown() {
        StepsModel model;
        QAbstractItemModelTester tester(&model, cutaway::testing::kFatal);
        model.setRun(1, sampleSteps());
        model.setMarks(Place{1, 4, -1}, Place{1, 5, -1});
        QCOMPARE(model.indexOf(Place{1, 4, -1}).data().toString(), "[A] fuse_bias_add");
        QCOMPARE(model.indexOf(Place{1, 5, -1}).data().toString(), "[B] reinplace");
    }
};

CUTAWAY_SUITE(StepsModelTest)
#include "steps_model_test.moc"
