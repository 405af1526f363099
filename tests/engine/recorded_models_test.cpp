// Whole models against PyTorch: results of both backends, and the graphs before and after each stage. Two models are in
// the checkout (tests/data/models); with the recorded results beside it, all of those.
#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/passes/pipeline.h"
#include "tests/support/paths.h"

using namespace cutaway;

namespace {

/// Folders of models, each name once.
QStringList modelFolders() {
    QStringList folders, names;
    for (const QString& all : {testing::testFile("data/models"), testing::referenceFolder("models")})
        if (!all.isEmpty())
            for (const QString& name : QDir(all).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
                if (!names.contains(name)) names << name, folders << all + "/" + name;
    return folders;
}

/// Operators and how many of each; placeholders are counted apart by PyTorch.
using Counts = std::map<std::string, int>;
Counts counts(Counts all) {
    all.erase("placeholder");
    return all;
}
QString difference(const Counts& ours, const Counts& theirs) {
    QStringList out;
    for (const auto& [op, count] : ours)
        if (const auto found = theirs.find(op); found == theirs.end() || found->second != count)
            out << QString("%1 %2, recorded %3")
                       .arg(QString::fromStdString(op))
                       .arg(count)
                       .arg(found == theirs.end() ? 0 : found->second);
    for (const auto& [op, count] : theirs)
        if (!ours.contains(op)) out << QString("no %1, recorded %2").arg(QString::fromStdString(op)).arg(count);
    return out.join("; ");
}

Result<Snapshot> graphIn(const QString& file) {
    CT_TRY(OpenedFile opened, openFile(file.toStdString(), {}));
    if (opened.graphs.empty()) return invalidInput("no graph");
    return Snapshot(std::move(opened.graphs[0].module));
}

}  // namespace

class RecordedModelsTest : public QObject {
    Q_OBJECT

  private slots:
    void theCheckoutHasSome() {
        const QStringList own = QDir(testing::testFile("data/models")).entryList(QDir::Dirs | QDir::NoDotAndDotDot);
        QCOMPARE(own.join(' '), "attention_manual mutation_bn");
    }

    void results_data() {
        QTest::addColumn<QString>("folder");
        for (const QString& folder : modelFolders())
            // It draws which rows it drops; session_test looks at it.
            if (!folder.endsWith("droppath_mini")) QTest::newRow(qPrintable(QFileInfo(folder).fileName())) << folder;
    }
    void results() {
        QFETCH(QString, folder);
        Session session;
        QVERIFY(session.open((folder + "/model.pt2").toStdString()));
        QVERIFY(session.compile({}));
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            RunOptions options;
            options.backend = backend;
            options.inputsFile = (folder + "/inputs.safetensors").toStdString();
            options.expectFile = (folder + "/expected.safetensors").toStdString();
            const auto report = session.run(0, options);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QVERIFY(report->compared && report->matches);
        }
    }

    /// One stage on the very graph that PyTorch gave it.
    void stages_data() {
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("stage");
        for (const QString& folder : modelFolders()) {
            QDirIterator files(folder, {"*_joint.before.py", "*_post_grad.before.py"}, QDir::Files,
                               QDirIterator::Subdirectories);
            while (files.hasNext()) {
                const QString file = files.next(), stage = file.contains("_joint.") ? "joint" : "post_grad";
                // Weights are not frozen yet.
                if (stage == "post_grad" && file.contains("freeze")) continue;
                QTest::newRow(qPrintable(QFileInfo(folder).fileName() + file.mid(folder.size()))) << file << stage;
            }
        }
    }
    void stages() {
        QFETCH(QString, before);
        QFETCH(QString, stage);
        const auto graph = graphIn(before), recorded = graphIn(QString(before).replace(".before.", ".after."));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        QVERIFY2(recorded, recorded ? "" : recorded.error().text().c_str());
        CompileRequest request;
        request.onlyStage = stage.toStdString();
        request.mode = before.contains("_train/") ? Mode::Training : Mode::Inference;
        request.target = before.contains("/cuda_") ? Target::Cuda : Target::Cpu;
        const auto trace = runPipeline(*graph, request);
        QVERIFY2(trace && !trace->failed(),
                 trace ? trace->steps.back().info.error.c_str() : trace.error().text().c_str());
        const QString differs = difference(counts(opHistogram(*trace->result())), counts(opHistogram(**recorded)));
        QVERIFY2(differs.isEmpty(), qPrintable(differs));
    }

    /// From the model on: the graph that reaches the joint stage, and what it makes of it.
    void wholeInference_data() {
        QTest::addColumn<QString>("folder");
        QTest::addColumn<QString>("device");
        for (const QString& folder : modelFolders())
            for (const QString device : {"cpu", "cuda"})
                if (QFile::exists(folder + "/" + device + "_infer_freeze/01_joint.before.py"))
                    QTest::newRow(qPrintable(QFileInfo(folder).fileName() + ", " + device)) << folder << device;
    }
    void wholeInference() {
        QFETCH(QString, folder);
        QFETCH(QString, device);
        Session session;
        QVERIFY(session.open((folder + "/model.pt2").toStdString()));
        CompileRequest request;
        request.target = device == "cuda" ? Target::Cuda : Target::Cpu;
        QVERIFY(session.compile(request));
        const auto stages = session.stages(0);
        const auto joint =
            std::find_if(stages->begin(), stages->end(), [](const StageInfo& stage) { return stage.stage == "joint"; });
        QVERIFY(joint != stages->end());
        for (const auto& [ours, side] : {std::pair{&joint->before, "before"}, std::pair{&joint->after, "after"}}) {
            const auto recorded = graphIn(folder + "/" + device + "_infer_freeze/01_joint." + side + ".py");
            QVERIFY2(recorded, recorded ? "" : recorded.error().text().c_str());
            const QString differs = difference(counts(*ours), counts(opHistogram(**recorded)));
            QVERIFY2(differs.isEmpty(), qPrintable(side + (": " + differs)));
        }
    }
};

QTEST_GUILESS_MAIN(RecordedModelsTest)
#include "recorded_models_test.moc"
