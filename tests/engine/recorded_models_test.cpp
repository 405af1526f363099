// Whole models against PyTorch: results of both backends, and the graphs before and after each stage. Two models are in
// the checkout (tests/data/models); with the recorded results beside it, all of those.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/formats/safetensors.h"
#include "engine/passes/pipeline.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// Folders of models, each name once.
QStringList modelFolders() {
    QStringList folders, names;
    for (const QString& all : {testing::testFile("data/models"), testing::referenceFolder("models")})
        if (!all.isEmpty())
            for (const QString& name : QDir(all).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
                if (!names.contains(name)) {
                    names << name;
                    folders << all + "/" + name;
                }
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

/// What PyTorch fuses into a packed call is a function of its own in its text, which takes the call's arguments.
Counts fusedCounts(const Module& module) {
    Counts all = opHistogram(module);
    for (const Node& node : module.graph().nodes()) {
        if (!node.isCall()) continue;
        const std::string& name = node.op().name();
        const bool binary = std::any_of(node.kwargs().begin(), node.kwargs().end(),
                                        [](const auto& one) { return one.first == "other"; });
        const char* op = name.starts_with("torch__inductor_fx_passes_quantization_qconv")
                             ? "onednn.qconv_pointwise.default"
                         : !name.starts_with("torch__inductor_fx_passes_mkldnn_fusion_fn") ? nullptr
                         : binary ? "mkldnn._convolution_pointwise.binary"
                                  : "mkldnn._convolution_pointwise.default";
        if (op == nullptr) continue;
        if (--all[name] == 0) all.erase(name);
        ++all[op];
    }
    return all;
}

Result<Snapshot> graphIn(const QString& file) {
    CT_TRY(OpenedFile opened, openFile(file.toStdString(), {}));
    if (opened.graphs.empty()) return invalidInput("no graph");
    return Snapshot(std::move(opened.graphs[0].module));
}

/// Text does not say which inputs are parameters: all but those of the types of the model's inputs.
std::string parametersOf(const Module& joint, const QString& folder) {
    const auto file = readSafeTensors((folder + "/../inputs.safetensors").toStdString());
    if (!file) qFatal("%s", file.error().text().c_str());
    std::vector<std::pair<DType, Dims>> inputs;
    for (const auto& [name, tensor] : file->tensors) inputs.emplace_back(tensor.dtype(), tensor.sizes());
    std::string out;
    int number = 0;
    for (const Node* placeholder : joint.graph().placeholders()) {
        const TensorType* type = placeholder->type().tensor();
        const auto input =
            type ? std::find(inputs.begin(), inputs.end(), std::pair(type->dtype, toInts(type->sizes))) : inputs.end();
        if (input != inputs.end()) inputs.erase(input);
        else out += std::to_string(number) + " ";
        ++number;
    }
    return out;
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
            // It draws which rows it drops; engine_session_test looks at it.
            if (!folder.endsWith("droppath_mini")) QTest::newRow(qPrintable(QFileInfo(folder).fileName())) << folder;
    }
    void results() {
        QFETCH(QString, folder);
        Session session;
        QVERIFY(session.open((folder + "/model.pt2").toStdString()));
        for (const bool freeze : {false, true}) {
            CompileRequest request;
            request.pytorch = Release::V2_11;  // which recorded the models
            request.freeze = freeze;
            const auto run = session.compile(request);
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
                RunOptions options;
                options.backend = backend;
                options.inputsFile = (folder + "/inputs.safetensors").toStdString();
                options.expectFile = (folder + "/expected.safetensors").toStdString();
                const auto report = session.run(*run, options);
                QVERIFY2(report, report ? "" : report.error().text().c_str());
                QVERIFY(report->compared && report->matches);
                QVERIFY2(report->refused.empty(), report->refused.empty() ? "" : report->refused[0].c_str());
            }
        }
    }

    /// Loss and gradients of eager mode, from both backends.
    void gradients_data() {
        QTest::addColumn<QString>("folder");
        for (const QString& folder : modelFolders())
            if (QFile::exists(folder + "/gradients.safetensors"))
                QTest::newRow(qPrintable(QFileInfo(folder).fileName())) << folder;
    }
    void gradients() {
        QFETCH(QString, folder);
        Session session;
        QVERIFY(session.open((folder + "/model.pt2").toStdString()));
        CompileRequest request;
        request.pytorch = Release::V2_11;  // which recorded the models
        request.mode = Mode::Training;
        for (const double budget : {1.0, 0.3, 0.0}) {
            request.memoryBudget = budget;
            const auto run = session.compile(request);
            QVERIFY2(run, run ? "" : run.error().text().c_str());
            for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
                RunOptions options;
                options.backend = backend;
                options.inputsFile = (folder + "/inputs.safetensors").toStdString();
                options.expectGradientsFile = (folder + "/gradients.safetensors").toStdString();
                const auto report = session.run(*run, options);
                QVERIFY2(report, report ? "" : report.error().text().c_str());
                QVERIFY(report->compared && report->training && !report->training->gradients.empty());
                QVERIFY2(report->refused.empty(), report->refused.empty() ? "" : report->refused[0].c_str());
                for (const OutputReport& row : report->training->gradients)
                    QVERIFY2(row.compared && row.maxAbsoluteError <= 1e-4 * std::max(row.maxExpected, 1e-3),
                             (row.name + ": " + row.problem).c_str());
            }
        }
    }

    /// What is saved of the very joint graph that PyTorch split, at every recorded budget.
    void partitions_data() {
        QTest::addColumn<QString>("joint");
        for (const QString& folder : modelFolders()) {
            QDirIterator files(folder, {"partition.json"}, QDir::Files, QDirIterator::Subdirectories);
            while (files.hasNext()) {
                const QString at = QFileInfo(files.next()).path();
                QTest::newRow(qPrintable(QFileInfo(folder).fileName() + at.mid(folder.size())))
                    << at + "/01_joint.after.py";
            }
        }
    }
    void partitions() {
        QFETCH(QString, joint);
        const auto graph = graphIn(joint);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        QFile file(QFileInfo(joint).path() + "/partition.json");
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonObject budgets = QJsonDocument::fromJson(file.readAll()).object()["budgets"].toObject();
        QVERIFY(!budgets.isEmpty());
        CompileRequest request;
        request.pytorch = Release::V2_11;  // which recorded the models
        request.mode = Mode::Training;
        request.onlyStage = "partition";
        request.parity = true;  // PyTorch draws random numbers again where a small budget asks for it
        request.enabledPasses = {
            {"partition", {{"static_lifetime_input_indices", parametersOf(**graph, QFileInfo(joint).path())}}}};
        for (auto budget = budgets.begin(); budget != budgets.end(); ++budget) {
            request.memoryBudget = budget.key().toDouble();
            const auto trace = runPipeline(*graph, request);
            QVERIFY2(trace && !trace->failed(),
                     trace ? trace->steps.back().info.error.c_str() : trace.error().text().c_str());
            QStringList ours, theirs;
            const Snapshot forward = trace->resultOf("forward");
            for (const OutputSpec& output : forward->outputs)
                if (output.kind == OutputSpec::Kind::Saved) ours << QString::fromStdString(output.target);
            for (const QJsonValue& value : budget.value().toObject()["saved"].toArray())
                theirs << value.toArray()[0].toString();
            QVERIFY2(ours == theirs, qPrintable(QString("budget ") + budget.key() + ": saved " + ours.join(' ') +
                                                ", recorded " + theirs.join(' ')));
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
        request.pytorch = Release::V2_11;  // which recorded the models
        request.onlyStage = stage.toStdString();
        request.mode = before.contains("_train/") ? Mode::Training : Mode::Inference;
        request.target = before.contains("/cuda_") ? Target::Cuda : Target::Cpu;
        request.parity = true;  // what eager mode computes otherwise is kept without
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
        request.pytorch = Release::V2_11;  // which recorded the models
        request.target = device == "cuda" ? Target::Cuda : Target::Cpu;
        request.parity = true;
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

    /// From the model on: the frozen graph, and what post-grad makes of it.
    void wholeFreezing_data() {
        QTest::addColumn<QString>("folder");
        QTest::addColumn<QString>("device");
        for (const QString& folder : modelFolders())
            for (const QString device : {"cpu", "cuda"})
                if (QFile::exists(folder + "/" + device + "_infer_freeze/02_freeze.after.py"))
                    QTest::newRow(qPrintable(QFileInfo(folder).fileName() + ", " + device)) << folder << device;
    }
    void wholeFreezing() {
        QFETCH(QString, folder);
        QFETCH(QString, device);
        Session session;
        QVERIFY(session.open((folder + "/model.pt2").toStdString()));
        CompileRequest request;
        request.pytorch = Release::V2_11;  // which recorded the models
        request.freeze = true;
        request.target = device == "cuda" ? Target::Cuda : Target::Cpu;
        request.parity = true;
        QVERIFY(session.compile(request));
        const auto stages = session.stages(0);
        for (const auto& [name, file] : {std::pair{"freeze", "02_freeze"}, std::pair{"post_grad", "03_post_grad"}}) {
            const std::string wanted = name;  // clang 14 does not capture bindings
            const auto stage = std::find_if(stages->begin(), stages->end(),
                                            [&](const StageInfo& each) { return each.stage == wanted; });
            QVERIFY(stage != stages->end());
            const auto recorded = graphIn(folder + "/" + device + "_infer_freeze/" + file + ".after.py");
            QVERIFY2(recorded, recorded ? "" : recorded.error().text().c_str());
            Counts ours = counts(stage->after);
            // Whether the sum is written over its operand PyTorch decides while it lowers the fused call.
            if (const auto inPlace = ours.extract("mkldnn._convolution_pointwise_.binary"))
                ours["mkldnn._convolution_pointwise.binary"] += inPlace.mapped();
            const QString differs = difference(ours, counts(fusedCounts(**recorded)));
            QVERIFY2(differs.isEmpty(), qPrintable(QString(name) + ": " + differs));
        }
    }
};

CUTAWAY_SUITE(RecordedModelsTest)
#include "recorded_models_test.moc"
