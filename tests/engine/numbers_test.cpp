// Every step of the pipeline keeps the numbers: on the bundled models and on every recorded one, for inference, frozen
// and for training. Inputs are the file's samples, gradients and what is drawn at random come from seeds.
#include <QDir>
#include <QtTest>

#include "cutaway/session.h"
#include "engine/ops/op_registry.h"
#include "engine/session/session_state.h"
#include "tests/support/lost_numbers.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// The graph with every multiplication of the module turned into an addition.
Snapshot withSums(const Module& module) {
    auto wrong = std::make_shared<Module>(module);
    for (Node& node : wrong->graph().nodes())
        if (node.isCall("aten.mul.Tensor"))
            wrong->graph().setOp(node, requireOp("aten.add.Tensor"), {node.arg(0), node.arg(1), Argument(1)},
                                 node.type());
    return wrong;
}

}  // namespace

class NumbersTest : public QObject {
    Q_OBJECT

  private slots:
    void stepsKeepTheNumbers_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("how");
        QStringList models;
        for (const QString& name : QDir(QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models")).entryList({"*.pt2"}))
            models << QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models/") + name;
        QVERIFY(!models.isEmpty());
        if (const QString recorded = testing::referenceFolder("models"); !recorded.isEmpty())
            for (const QString& name : QDir(recorded).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
                models << recorded + "/" + name + "/model.pt2";
        for (const QString& model : models) {
            const QFileInfo file(model);
            const QString name = file.baseName() == "model" ? file.dir().dirName() : file.baseName();
            for (const char* how : {"inference", "frozen", "training", "jvp"})
                QTest::newRow(qPrintable(name + ", " + how)) << model << how;
        }
    }
    void stepsKeepTheNumbers() {
        QFETCH(QString, path);
        QFETCH(QString, how);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        CompileRequest options;
        options.freeze = how == "frozen";
        options.mode = modeOf(how.toStdString()).value_or(Mode::Inference);
        const auto run = session.compile(options);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        NumbersOptions check;
        const QString inputs = QFileInfo(path).dir().filePath("inputs.safetensors");
        if (QFile::exists(inputs)) check.inputsFile = inputs.toStdString();
        const auto report = session.checkNumbers(*run, check);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(!report->steps.empty());
        QVERIFY2(report->kept, qPrintable(testing::lostNumbers(*report)));
    }

    /// A step that computes something else is found, and nothing after it is looked at.
    void aWrongStepIsFound() {
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"));
        QVERIFY(session.compile({}));
        auto& steps = session.state().runs[0].trace.steps;
        size_t wrong = 0;
        for (size_t i = 0; i < steps.size(); ++i)
            if (steps[i].info.state == StepState::Changed && steps[i].info.name == "decompose") wrong = i;
        QVERIFY(wrong > 0);
        const Snapshot right = steps[wrong].after;
        steps[wrong].after = withSums(*right);
        QVERIFY(session.state().runs[0].trace.steps[wrong].after != right);
        const auto report = session.checkNumbers(0);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(!report->kept);
        QCOMPARE(report->steps.back().step.name, std::string("decompose"));
        QVERIFY2(report->steps.back().detail.find("output 1") != std::string::npos,
                 report->steps.back().detail.c_str());
    }

    /// Values drawn at random are the same on both sides of the step that gives them seeds.
    void drawsSurviveTheirReplacement() {
        QTemporaryDir folder;
        const QString path = folder.filePath("drawn.py");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(
            "def forward(x: \"f32[4, 8]\"):\n"
            "    d = torch.nn.functional.dropout(x, 0.5, True)\n"
            "    r = torch.rand_like(x)\n"
            "    m = d * r\n"
            "    return (m,)\n");
        file.close();
        Session session;
        const auto opened = session.open(path.toStdString());
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        const auto run = session.compile({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto report = session.checkNumbers(*run);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY2(report->kept, qPrintable(testing::lostNumbers(*report)));
        QVERIFY(std::any_of(report->steps.begin(), report->steps.end(),
                            [](const StepNumbers& one) { return one.step.name == "replace_random_passes"; }));
    }
};

CUTAWAY_SUITE(NumbersTest)
#include "numbers_test.moc"
