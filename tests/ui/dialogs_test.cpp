// Dialogs on the engine itself: what they offer is there, and what is answered is done.
#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTreeWidget>
#include <QtTest>
#include <set>

#include "cutaway/settings.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"
#include "tests/ui/patience.h"
#include "ui/models/explain_model.h"
#include "ui/session/kept_requests.h"
#include "ui/session/session_controller.h"
#include "ui/windows/compile_dialog.h"
#include "ui/windows/graph_dialog.h"
#include "ui/windows/run_dialogs.h"

using namespace cutaway;
using namespace cutaway::ui;

class DialogsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_settings;
    std::unique_ptr<Selection> m_selection;
    std::unique_ptr<SessionController> m_controller;

    CompileDialog::Passes passes() {
        return [this](const CompileRequest& kind) { return m_controller->passes(kind); };
    }
    static QListWidget* passList(const CompileDialog& dialog) {
        for (auto* found : dialog.findChildren<QListWidget*>())
            if (found->accessibleName() == "Passes in running order") return found;
        return nullptr;
    }
    static QListWidgetItem* item(const CompileDialog& dialog, const QString& pass) {
        return passList(dialog)->findItems(pass, Qt::MatchExactly).value(0);
    }
    void openMlp() {
        m_controller->open(testing::testFile("../resources/models/mlp.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->model() && !m_controller->isBusy(), testing::kEnginePatience);
    }
    void compile(const CompileRequest& options) {
        const size_t runs = m_controller->runs().size();
        m_controller->compile(options);
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->runs().size() > runs && !m_controller->isBusy(),
                                 testing::kEnginePatience);
    }

  private slots:
    void initTestCase() {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, m_settings.path());
        QCoreApplication::setOrganizationName("cutaway-test");
    }
    void init() {
        QSettings().clear();
        m_selection = std::make_unique<Selection>();
        m_controller = std::make_unique<SessionController>(makeSessionSource(), *m_selection);
    }
    void cleanup() {
        m_controller.reset();
        m_selection.reset();
    }

    void tickedPassesAreThoseThatRun_data() {
        QTest::addColumn<int>("mode");
        QTest::addColumn<bool>("freeze");
        QTest::newRow("inference") << 0 << false;
        QTest::newRow("frozen") << 0 << true;
        QTest::newRow("training") << 1 << false;
    }
    void tickedPassesAreThoseThatRun() {
        QFETCH(int, mode);
        QFETCH(bool, freeze);
        openMlp();
        CompileDialog dialog(passes(), {});
        dialog.findChild<QComboBox*>("mode")->setCurrentIndex(mode);
        dialog.findChild<QCheckBox*>("freeze")->setChecked(freeze);
        std::set<QString> ticked, ran;
        for (int row = 0; row < passList(dialog)->count(); ++row)
            if (passList(dialog)->item(row)->checkState() == Qt::Checked)
                ticked.insert(passList(dialog)->item(row)->text());
        dialog.accept();
        QCOMPARE(dialog.options().disabledPasses, std::vector<std::string>());
        QVERIFY(dialog.options().enabledPasses.empty());
        QCOMPARE(dialog.options().freeze, freeze);
        compile(dialog.options());
        for (const StepInfo& step : m_controller->runs()[0].steps) {
            QVERIFY2(step.state != StepState::Failed, step.error.c_str());
            ran.insert(QString::fromStdString(step.name).section('#', 0, 0).trimmed());
        }
        QStringList differences;
        for (const QString& name : ticked)
            if (!ran.contains(name)) differences << "ticked and not run: " + name;
        for (const QString& name : ran)
            if (!ticked.contains(name)) differences << "run and not ticked: " + name;
        QVERIFY2(differences.isEmpty(), qPrintable(differences.join('\n')));
    }

    /// The list of releases says which one wrote the file; what is asked for stays what it was until somebody chooses.
    void theReleaseOfTheFileIsNamed() {
        openMlp();
        CompileDialog dialog(passes(), {});
        dialog.markRelease(Release::V2_13);
        auto* releases = dialog.findChild<QComboBox*>("pytorch");
        QCOMPARE(releases->currentText(), QString("2.15"));
        releases->setCurrentText("2.13 (this file's)");
        dialog.accept();
        QVERIFY(dialog.options().pytorch == Release::V2_13);
        CompileDialog again(passes(), dialog.options());
        QCOMPARE(again.findChild<QComboBox*>("pytorch")->currentText(), QString("2.13"));
    }

    /// Decimals begin with a point or a comma, whatever the locale writes.
    void numbersAreTypedEitherWay_data() {
        QTest::addColumn<QLocale>("locale");
        QTest::addColumn<QString>("typed");
        QTest::newRow("a point in German") << QLocale(QLocale::German) << "0.25";
        QTest::newRow("a comma in German") << QLocale(QLocale::German) << "0,25";
        QTest::newRow("a comma in English") << QLocale(QLocale::English) << "0,25";
    }
    void numbersAreTypedEitherWay() {
        QFETCH(QLocale, locale);
        QFETCH(QString, typed);
        CompileRequest from;
        from.mode = Mode::Training;
        CompileDialog dialog(passes(), from);
        dialog.show();
        auto* budget = dialog.findChild<QDoubleSpinBox*>("memory-budget");
        budget->setLocale(locale);
        budget->selectAll();
        QTest::keyClicks(budget, typed);
        QTest::keyClick(budget, Qt::Key_Tab);
        QCOMPARE(budget->value(), 0.25);
    }

    /// What training alone is asked goes into its request only, and comes back from a run's.
    void trainingIsAskedWhatItSaves() {
        CompileRequest from;
        from.mode = Mode::Training;
        CompileDialog dialog(passes(), from);
        dialog.show();
        auto* budget = dialog.findChild<QDoubleSpinBox*>("memory-budget");
        auto* solver = dialog.findChild<QComboBox*>("solver");
        auto* gradients = dialog.findChild<QLineEdit*>("grad");
        for (const QWidget* field : std::initializer_list<QWidget*>{budget, solver, gradients})
            QVERIFY(field->isVisible() && !field->toolTip().isEmpty());
        QCOMPARE(solver->currentText(), "dp");
        budget->setValue(0.4);
        solver->setCurrentText("greedy");
        gradients->setText("x  y");
        dialog.accept();
        QCOMPARE(dialog.options().memoryBudget, 0.4);
        QCOMPARE(dialog.options().solver, std::string("greedy"));
        QCOMPARE(dialog.options().gradients, (std::vector<std::string>{"x", "y"}));
        CompileDialog again(passes(), dialog.options());
        again.show();
        again.accept();
        QVERIFY(again.options() == dialog.options());
        CompileDialog inference(passes(), dialog.options());
        inference.show();
        inference.findChild<QComboBox*>("mode")->setCurrentIndex(0);
        QVERIFY(!inference.findChild<QDoubleSpinBox*>("memory-budget")->isVisible());
        inference.accept();
        QVERIFY(inference.options().gradients.empty() && inference.options().memoryBudget == 1);
    }

    /// Every option of the table that has a label has a field, which says what the option does, and comes back.
    void optionsOfTheTableHaveFields_data() {
        QTest::addColumn<QString>("request");
        for (const char* request :
             {"--mode jvp --strict", "--freeze", "--parity", "--only capture", "--all-stages", "--passes-only",
              "--mode training --grad x --grad y", "--mode training --memory-budget 0.25 --solver greedy", "--fuel 12"})
            QTest::newRow(request) << QString(request);
    }
    void optionsOfTheTableHaveFields() {
        QFETCH(QString, request);
        openMlp();
        const auto from = parseRequest(request.toStdString());
        QVERIFY(from);
        CompileDialog dialog(passes(), *from);
        dialog.show();
        for (const Setting& setting : settings()) {
            if (!setting.belongsTo(kRequest) || setting.label.empty()) continue;
            const auto* field = dialog.findChild<QWidget*>(QString::fromUtf8(setting.key.data(), setting.key.size()));
            QVERIFY2(field && !field->toolTip().isEmpty(), setting.key.data());
            QCOMPARE(field->isVisible(),
                     setting.isFor(from->mode) && (!setting.ofGpus || from->target == Target::Cuda));
        }
        dialog.accept();
        QCOMPARE(dialog.result(), int(QDialog::Accepted));
        QCOMPARE(QString::fromStdString(dialog.options().text()), request);
    }

    /// What is not about one compile comes back, the memory budget among it, for this model alone.
    void answersAreRemembered() {
        const auto asked =
            parseRequest("--mode training --parity --grad x --memory-budget 0.25 --solver greedy --fuel 3");
        QVERIFY(asked);
        CompileDialog dialog(passes(), *asked);
        dialog.accept();
        rememberRequest("a", dialog.options());
        QVERIFY(rememberedRequest("b") == CompileRequest());
        QCOMPARE(QString::fromStdString(rememberedRequest("a").text()),
                 "--mode training --parity --memory-budget 0.25 --solver greedy");
        QSettings().setValue("compile/options/a", "--mode trainin");  // of another version
        QVERIFY(rememberedRequest("a") == CompileRequest());
    }

    /// Gradients are asked for where there are some.
    void executingTrainingAsksForGradients() {
        ExecuteDialog plain("/models/a.pt2"), training("/models/a.pt2", {}, true);
        QVERIFY(!plain.findChild<QLineEdit*>("gradients"));
        training.findChild<QLineEdit*>("gradients")->setText("/tmp/g.safetensors");
        training.findChild<QLineEdit*>("expectGradients")->setText(" /tmp/e.safetensors ");
        QCOMPARE(training.options().gradientsFile, std::string("/tmp/g.safetensors"));
        QCOMPARE(training.options().expectGradientsFile, std::string("/tmp/e.safetensors"));
    }

    void modesHavePassesOfTheirOwn_data() {
        QTest::addColumn<Mode>("mode");
        QTest::newRow("training") << Mode::Training;
        QTest::newRow("forward mode") << Mode::Jvp;
    }
    void modesHavePassesOfTheirOwn() {
        QFETCH(Mode, mode);
        CompileDialog dialog(passes(), {});
        std::set<std::string> inference, own;
        for (const PassInfo& pass : m_controller->passes({})) inference.insert(pass.name);
        CompileRequest kind;
        kind.mode = mode;
        for (const PassInfo& pass : m_controller->passes(kind))
            if (!inference.contains(pass.name)) own.insert(pass.name);
        QVERIFY(!own.empty());
        for (const std::string& name : own) QVERIFY2(!item(dialog, QString::fromStdString(name)), name.c_str());
        dialog.findChild<QComboBox*>("mode")->setCurrentIndex(static_cast<int>(mode));
        for (const std::string& name : own) QVERIFY2(item(dialog, QString::fromStdString(name)), name.c_str());
        dialog.accept();
        QCOMPARE(dialog.options().mode, mode);
    }

    void anOptionalPassRunsWhenItIsTicked() {
        openMlp();
        CompileDialog dialog(passes(), {});
        QListWidgetItem* optional = item(dialog, "batch_tanh");
        QVERIFY(optional && optional->checkState() == Qt::Unchecked);
        optional->setCheckState(Qt::Checked);
        dialog.accept();
        QVERIFY(dialog.options().enabled("batch_tanh"));
        compile(dialog.options());
        const auto& steps = m_controller->runs()[0].steps;
        QVERIFY(
            std::any_of(steps.begin(), steps.end(), [](const StepInfo& step) { return step.name == "batch_tanh"; }));
        // The next time the dialog knows.
        CompileDialog again(passes(), m_controller->runs()[0].options);
        QCOMPARE(item(again, "batch_tanh")->checkState(), Qt::Checked);
    }

    /// What a compile would refuse is refused while it can still be mended.
    void settingsThatMeanNothingAreRefused_data() {
        QTest::addColumn<QString>("settings");
        QTest::addColumn<QString>("problem");
        QTest::newRow("key") << "batch_tanh=min_fuse_set_siz:2"
                             << "did you mean min_fuse_set_size";
        QTest::newRow("value") << "batch_tanh=min_fuse_set_size:few"
                               << "a whole number from 2";
        QTest::newRow("fine") << "batch_tanh=min_fuse_set_size:2"
                              << "";
    }
    void settingsThatMeanNothingAreRefused() {
        QFETCH(QString, settings);
        QFETCH(QString, problem);
        CompileDialog dialog(passes(), {});
        item(dialog, "batch_tanh")->setCheckState(Qt::Checked);
        for (auto* field : dialog.findChildren<QLineEdit*>())
            if (field->accessibleName() == "Settings of optional passes") field->setText(settings);
        dialog.accept();
        QCOMPARE(dialog.result() == QDialog::Accepted, problem.isEmpty());
        const QString said = dialog.findChild<QLabel*>("problem")->text();
        QVERIFY2(said.contains(problem), qPrintable(said));
    }

    /// Optional passes of both modes, none of which anybody has asked for.
    void optionalPassesStandUnticked_data() {
        QTest::addColumn<int>("mode");
        QTest::newRow("inference") << 0;
        QTest::newRow("training") << 1;
    }
    void optionalPassesStandUnticked() {
        QFETCH(int, mode);
        CompileDialog dialog(passes(), {});
        dialog.findChild<QComboBox*>("mode")->setCurrentIndex(mode);
        int optional = 0;
        CompileRequest kind;
        kind.mode = static_cast<Mode>(mode);
        for (const PassInfo& pass : m_controller->passes(kind)) {
            const QListWidgetItem* row = item(dialog, QString::fromStdString(pass.name));
            QVERIFY2(row, pass.name.c_str());
            QCOMPARE(row->checkState() == Qt::Unchecked, pass.optional);
            optional += pass.optional;
        }
        QVERIFY(optional > 0);
    }

    void settingsOfAPassThatIsNotTickedAreRefused() {
        CompileDialog dialog(passes(), {});
        for (auto* field : dialog.findChildren<QLineEdit*>())
            if (field->accessibleName() == "Settings of optional passes")
                field->setText("batch_tanh=min_fuse_set_size:2");
        dialog.accept();
        QCOMPARE(dialog.result(), int(QDialog::Rejected));
        item(dialog, "batch_tanh")->setCheckState(Qt::Checked);
        dialog.accept();
        QCOMPARE(dialog.result(), int(QDialog::Accepted));
        QCOMPARE(dialog.options().enabledPasses.size(), size_t(1));
        QCOMPARE(dialog.options().enabledPasses[0].settings.size(), size_t(1));
    }

    void rulesOfPassesThatDidNotRunAreNotTicked() {
        openMlp();
        compile({});
        std::shared_ptr<const Explained> explained;
        connect(m_controller.get(), &SessionController::explained, this,
                [&](const std::shared_ptr<const Explained>& what) { explained = what; });
        NodeKey product = NodeKey::None;
        connect(m_controller.get(), &SessionController::shown, this, [&](const std::shared_ptr<const Shown>& what) {
            for (const auto& node : what->graph->nodes)
                if (node.info.op == "aten.addmm.default" || node.info.op == "aten.mm.default" ||
                    node.info.op == "aten.linear.default")
                    product = node.info.id;
        });
        // Rules are asked about the graph before the step that is shown: the one that decompose has left.
        const Run& run = m_controller->runs()[0];
        const auto decompose = std::find_if(run.steps.begin(), run.steps.end(),
                                            [](const StepInfo& step) { return step.name == "decompose"; });
        QVERIFY(decompose != run.steps.end());
        m_selection->setPlace({run.id, decompose->index + 1, -1});
        QTRY_VERIFY_WITH_TIMEOUT(product != NodeKey::None && !m_controller->isBusy(), testing::kEnginePatience);
        m_selection->setNode(product);
        m_controller->explain();
        QTRY_VERIFY_WITH_TIMEOUT(explained && !m_controller->isBusy(), testing::kEnginePatience);
        std::set<std::string> ran;
        for (const PassInfo& pass : m_controller->passes({}))
            if (!pass.optional) ran.insert(pass.name);
        ExplainModel model;
        model.setExplained(*explained);
        int met = 0;
        for (const RuleExplanation& rule : explained->rules)
            for (int row = 0; row < model.rowCount(); ++row) {
                const QModelIndex at = model.index(row, ExplainModel::Rule);
                if (at.data().toString() != QString::fromStdString(rule.rule + " (" + rule.pass + ")")) continue;
                const bool off = !ran.contains(rule.pass);  // optional, or of frozen runs
                met += off;
                QCOMPARE(at.data(Qt::CheckStateRole).toInt(), static_cast<int>(off ? Qt::Unchecked : Qt::Checked));
                if (off) QCOMPARE(model.index(row, ExplainModel::Answer).data().toString(), "off");
            }
        QVERIFY2(met > 0, "no rule of an optional pass starts there");
    }

    void inputsBesideTheModelAreOffered() {
        openMlp();
        compile({});
        ExecuteDialog dialog(m_controller->path());
        QVERIFY(QString::fromStdString(dialog.options().inputsFile).endsWith("mlp.inputs.safetensors"));
        QVERIFY(QString::fromStdString(dialog.options().expectFile).endsWith("mlp.expected.safetensors"));
        dialog.findChild<QComboBox*>()->setCurrentIndex(0);
        dialog.accept();
        std::shared_ptr<const RunReport> report;
        connect(m_controller.get(), &SessionController::ran, this,
                [&](RunId, const std::shared_ptr<const RunReport>& what) { report = what; });
        m_controller->run(m_controller->runs()[0].id, dialog.options());
        QTRY_VERIFY_WITH_TIMEOUT(report && !m_controller->isBusy(), testing::kEnginePatience);
        QVERIFY(report->compared && report->matches);
    }

    void theAnswersOfLastTimeComeBack() {
        QTemporaryDir folder;
        const QString model = folder.filePath("a.pt2");
        ExecuteDialog first(model);
        QCOMPARE(QString::fromStdString(first.options().inputsFile), QString());
        QCOMPARE(first.findChild<QComboBox*>()->count(), 2);  // no device that is not there
        first.findChild<QComboBox*>()->setCurrentIndex(1);
        first.findChildren<QLineEdit*>()[0]->setText("/data/x.safetensors");
        first.accept();
        ExecuteDialog again(model), other(folder.filePath("b.pt2"));
        QVERIFY(again.options().backend == Backend::Cpu && other.options().backend == Backend::Cpu);
        QCOMPARE(again.options().inputsFile, std::string("/data/x.safetensors"));
        QCOMPARE(other.options().inputsFile, std::string());  // those were another model's
    }

    /// What chooses between graphs is compiled, too; where something is not, the interpreter alone is offered.
    void onlyWhatTheRunAllowsIsOffered() {
        m_controller->open(testing::testFile("cases/text/sample_b.txt"));
        QTRY_VERIFY_WITH_TIMEOUT(m_controller->model() && !m_controller->isBusy(), testing::kEnginePatience);
        compile({});
        const Run& run = m_controller->runs()[0];
        QVERIFY2(run.notExecuted.isEmpty() && run.notTimed.isEmpty(), qPrintable(run.notTimed));
        ExecuteDialog whole(m_controller->path());
        whole.findChild<QComboBox*>()->setCurrentIndex(1);
        whole.accept();
        const QString why = "aten.x has no kernel";
        ExecuteDialog dialog(m_controller->path(), why);
        QCOMPARE(dialog.findChild<QComboBox*>()->count(), 1);
        QVERIFY(dialog.findChild<QLabel*>("notCompiled")->text().contains(why));
        QVERIFY(dialog.options().backend == Backend::Reference);
        std::shared_ptr<const RunReport> report;
        connect(m_controller.get(), &SessionController::ran, this,
                [&](RunId, const std::shared_ptr<const RunReport>& what) { report = what; });
        m_controller->run(run.id, dialog.options());
        QTRY_VERIFY_WITH_TIMEOUT(report && !m_controller->isBusy(), testing::kEnginePatience);
        QVERIFY(report->matches);
    }

    /// What the chosen check does not ask for is not there; what is missing is said.
    void theSearchAsksForWhatItNeeds_data() {
        QTest::addColumn<int>("check");
        QTest::addColumn<QString>("rows");
        QTest::addColumn<QString>("problem");
        QTest::newRow("numbers") << 0 << "Tolerance Inputs"
                                 << "";
        QTest::newRow("NaN") << 1 << "Inputs"
                             << "";
        QTest::newRow("command") << 2 << "Command"
                                 << "Enter a command that fails on a bad graph.";
    }
    void theSearchAsksForWhatItNeeds() {
        QFETCH(int, check);
        BisectDialog dialog;
        dialog.show();
        dialog.findChild<QComboBox*>()->setCurrentIndex(check);
        QStringList rows;
        for (const QLabel* label : dialog.findChildren<QLabel*>())
            if (label->isVisible() && label->buddy() && label->buddy() != dialog.findChild<QComboBox*>())
                rows << label->text().remove('&');
        QTEST(rows.join(' '), "rows");
        QTEST(dialog.findChild<QLabel*>("problem")->text(), "problem");
        const auto* find = dialog.findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
        QCOMPARE(find->isEnabled(), dialog.findChild<QLabel*>("problem")->text().isEmpty());
        for (auto* field : dialog.findChildren<QLineEdit*>())
            if (field->isVisible()) field->setText(field->text().isEmpty() ? "true" : "1e-3");
        QVERIFY(find->isEnabled());
        QCOMPARE(dialog.options().command, std::string(check == 2 ? "true" : ""));
        QCOMPARE(dialog.options().inputsFile, std::string(check == 2 ? "" : "true"));
    }

    void theSearchForABadRewriteSearches() {
        openMlp();
        compile({});
        BisectDialog dialog;
        dialog.accept();
        std::shared_ptr<const BisectReport> report;
        connect(m_controller.get(), &SessionController::bisected, this,
                [&](const std::shared_ptr<const BisectReport>& what) { report = what; });
        QSignalSpy said(m_controller.get(), &SessionController::message);
        m_controller->bisect(m_controller->runs()[0].id, dialog.options());
        QTRY_VERIFY_WITH_TIMEOUT(report && !m_controller->isBusy(), testing::kEnginePatience);
        QVERIFY(!report->found);
        QCOMPARE(said.last()[0].toString(),
                 QString("No rewrite broke the graph: it is good after all %1 rewrites").arg(report->searched));
    }

    void aFolderOfGraphsIsListedWithItsCounts() {
        QTemporaryDir folder;
        for (const char* name : {"one.py", "two.py"}) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(
                name[0] == 'o'
                    ? "def forward(x: \"f32[2]\"):\n    y = torch.ops.aten.neg.default(x)\n    return (y,)\n"
                    : "def forward(x: \"f32[2]\"):\n    y = torch.ops.aten.sin.default(x)\n    z = torch.ops.aten.cos.default(y)\n    return (z,)\n");
        }
        QSignalSpy asked(m_controller.get(), &SessionController::severalGraphs);
        m_controller->open(folder.path());
        QTRY_COMPARE_WITH_TIMEOUT(asked.size(), 1, testing::kEnginePatience);
        GraphDialog dialog(m_controller->graphs(), folder.path(), m_controller->graph());
        auto* list = dialog.findChild<QTreeWidget*>();
        QCOMPARE(list->topLevelItemCount(), 2);
        QVERIFY(list->topLevelItem(1)->text(5).contains("aten.cos.default"));
        // Names of graphs in one file are whole: "0/" is not a folder.
        GraphDialog trace({{"0/0 dynamo", 1, 1, 1, {}}, {"0/1 dynamo", 1, 1, 1, {}}}, "sample.log", {});
        QCOMPARE(trace.findChild<QTreeWidget*>()->topLevelItem(1)->text(0), "0/1 dynamo");
        QVERIFY(list->topLevelItem(0)->text(1).toInt() < list->topLevelItem(1)->text(1).toInt());
        list->setCurrentItem(list->topLevelItem(1));
        m_controller->open(folder.path(), dialog.graph());
        QTRY_VERIFY_WITH_TIMEOUT(!m_controller->isBusy(), testing::kEnginePatience);
        QVERIFY(m_controller->graph().endsWith("two.py"));
        QCOMPARE(asked.size(), 1);  // who named a graph is not asked
    }
};

Q_DECLARE_METATYPE(std::shared_ptr<const cutaway::ui::Shown>)

CUTAWAY_SUITE(DialogsTest)
#include "dialogs_test.moc"
