// What a training run says of inputs and results, as PyTorch's ViewAndMutationMeta has it (tests/data/metadata.json),
// and gradients of results that share memory with inputs.
#include "cutaway/training_metadata.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include "engine/autograd/functionalize.h"
#include "engine/autograd/metadata.h"
#include "engine/formats/safetensors.h"
#include "engine/ops/build.h"
#include "engine/rewrite/rewriter.h"
#include "engine/session/session_state.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

QJsonObject recorded() {
    QFile file(testing::testFile("data/metadata.json"));
    if (!file.open(QIODevice::ReadOnly)) qFatal("no record");
    return QJsonDocument::fromJson(file.readAll()).object();
}

}  // namespace

class TrainingMetadataTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    Result<RunId> compile(Session& session, const QString& text, const std::vector<std::string>& gradients,
                          Mode mode = Mode::Training) const {
        QFile file(m_folder.filePath("graph.py"));
        if (!file.open(QIODevice::WriteOnly) || file.write(text.toUtf8()) < 0) qFatal("cannot write");
        file.close();
        CT_TRY_VOID(session.open(path("graph.py")));
        CompileRequest request;
        request.mode = mode;
        if (mode == Mode::Training) request.gradients = gradients;
        return session.compile(request);
    }

  private slots:
    void agreesWithPyTorch_data() {
        QTest::addColumn<QJsonObject>("expected");
        const QJsonObject all = recorded();
        for (const QString& name : all.keys()) QTest::newRow(qPrintable(name)) << all[name].toObject();
        QVERIFY(all.size() > 10);
    }
    void agreesWithPyTorch() {
        QFETCH(QJsonObject, expected);
        std::vector<std::string> gradients;
        for (const QJsonValue name : expected["gradients"].toArray())
            gradients.push_back(name.toString().toStdString());
        Session session;
        const auto run = compile(session, expected["forward"].toString(), gradients);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto metadata = trainingMetadata(session, *run);
        QVERIFY2(metadata, metadata ? "" : metadata.error().text().c_str());
        const QJsonArray inputs = expected["input_info"].toArray(), outputs = expected["output_info"].toArray();
        QCOMPARE(metadata->inputs.size(), size_t(inputs.size()));
        for (qsizetype i = 0; i < inputs.size(); ++i) {
            const auto& own = metadata->inputs[size_t(i)];
            QCOMPARE(own.requiresGrad, inputs[i]["requires_grad"].toBool());
            QCOMPARE(own.mutatesData, inputs[i]["mutates_data"].toBool());
            QCOMPARE(QString::fromStdString(own.mutationType), inputs[i]["mutation_type"].toString());
        }
        QCOMPARE(metadata->outputs.size(), size_t(outputs.size()));
        for (qsizetype i = 0; i < outputs.size(); ++i) {
            const auto& own = metadata->outputs[size_t(i)];
            QCOMPARE(QString::fromStdString(own.outputType), outputs[i]["output_type"].toString());
            QCOMPARE(own.baseIdx, outputs[i]["base_idx"].toInt());
            QCOMPARE(own.requiresGrad, outputs[i]["requires_grad"].toBool());
        }
        QCOMPARE(metadata->mutatedRuntimeInputs, expected["num_mutated_inp_runtime_indices"].toInt());
        QCOMPARE(metadata->forwardReturns, expected["num_forward_returns"].toInt());
        QCOMPARE(int(metadata->tracedTangents.size()), expected["num_tangents"].toInt());
    }

    /// loss = sum of the means of squares; w is 4 x 6, all 0.5; the views show elements once, twice, in part.
    void gradientsThroughViews_data() {
        QTest::addColumn<QString>("views");
        QTest::addColumn<QString>("returned");
        QTest::addColumn<QList<double>>("gradient");  // of the first three elements of w
        const double g = 2 * 0.5;
        QTest::newRow("view") << "    v = aten.view.default(w, [24])\n"
                              << "v" << QList<double>{g / 24, g / 24, g / 24};
        QTest::newRow("view of a view") << "    t = aten.t.default(w)\n    v = aten.slice.Tensor(t, 0, 0, 2)\n"
                                        << "v" << QList<double>{g / 8, g / 8, 0};
        QTest::newRow("repeated") << "    v = aten.expand.default(w, [3, 4, 6])\n"
                                  << "v" << QList<double>{g / 24, g / 24, g / 24};
        QTest::newRow("two views") << "    v = aten.view.default(w, [24])\n    u = aten.select.int(v, 0, 1)\n"
                                   << "v, u" << QList<double>{g / 24, g / 24 + g, g / 24};
        QTest::newRow("part") << "    s = aten.split.Tensor(w, 2, 1)\n    v = s[0]\n"
                              << "v" << QList<double>{g / 8, g / 8, 0};
        QTest::newRow("itself") << ""
                                << "w" << QList<double>{g / 24, g / 24, g / 24};
    }
    void gradientsThroughViews() {
        QFETCH(QString, views);
        QFETCH(QString, returned);
        QFETCH(QList<double>, gradient);
        Session session;
        const auto run = compile(session,
                                 "def forward(x: \"f32[4, 6]\", w: \"f32[4, 6]\"):\n" + views +
                                     "    y = aten.mul.Tensor(w, x)\n    return (y, " + returned + ")\n",
                                 {"w"});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            RunOptions options;
            options.backend = backend;
            options.inputsFile = path("in.safetensors");
            options.gradientsFile = path("out.safetensors");
            QVERIFY(writeSafeTensors(options.inputsFile, {{{"x", Tensor::full(DType::F32, {4, 6}, Scalar(0.0))},
                                                           {"w", Tensor::full(DType::F32, {4, 6}, Scalar(0.5))}},
                                                          {}}));
            const auto report = session.run(*run, options);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            const auto written = readSafeTensors(options.gradientsFile);
            QVERIFY(written);
            for (const auto& [name, tensor] : written->tensors)
                for (int i = 0; i < 3 && name == "w" && tensor.rank() == 2; ++i)
                    QVERIFY2(std::abs(testing::itemOf(tensor, i) - gradient[i]) < 1e-6,
                             qPrintable(QStringLiteral("element %1: %2, not %3")
                                            .arg(i)
                                            .arg(testing::itemOf(tensor, i))
                                            .arg(gradient[i])));
            QVERIFY(std::any_of(report->training->gradients.begin(), report->training->gradients.end(),
                                [](const OutputReport& one) { return one.name == "w"; }));
        }
    }

    /// x + w is x's new value and returned: what flows back from there reaches both.
    void gradientOfAReturnedNewValue() {
        Session session;
        const auto run = compile(session,
                                 "def forward(x: \"f32[2]\", w: \"f32[2]\"):\n    n = aten.add_.Tensor(x, w)\n"
                                 "    return (n,)\n",
                                 {"x", "w"});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        RunOptions options;
        options.inputsFile = path("in.safetensors");
        QVERIFY(writeSafeTensors(options.inputsFile, {{{"x", Tensor::full(DType::F32, {2}, Scalar(1.0))},
                                                       {"w", Tensor::full(DType::F32, {2}, Scalar(2.0))}},
                                                      {}}));
        const auto report = session.run(*run, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(report->training->gradients.size(), size_t(2));
        for (const OutputReport& gradient : report->training->gradients) QCOMPARE(gradient.mean, 3.0);  // 2 * 3 / 2
    }

    /// Values that nobody else holds are given away; what is returned, too, is not.
    void donatedValues() {
        Session session;
        const auto run = compile(session,
                                 "def forward(x: \"f32[4, 4]\", w: \"f32[4, 4]\"):\n    m = aten.mm.default(x, w)\n"
                                 "    t = aten.tanh.default(m)\n    e = aten.exp.default(m)\n"
                                 "    y = aten.mm.default(t, e)\n    return (y, e)\n",
                                 {"w"});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto metadata = trainingMetadata(session, *run);
        const auto choice = session.partition(*run);
        QVERIFY(metadata && choice);
        QCOMPARE(metadata->savedTensors, int(choice->saved.size()));
        for (size_t i = 0; i < choice->saved.size(); ++i) {
            const bool donated =
                std::find(metadata->donated.begin(), metadata->donated.end(), int(i)) != metadata->donated.end();
            const std::string& name = choice->saved[i].name;
            QVERIFY2(donated == (name == "tanh" || name == "t" || name == "m"), name.c_str());
        }
        QVERIFY(!metadata->donated.empty());
    }

    /// A functional graph cannot say what one tensor is after a write to another over the same memory.
    void inputsThatShareMemory() {
        auto module = std::make_unique<Module>();
        GraphBuilder builder(module->graph());
        Node& a = module->graph().placeholder("a", TensorType::contiguous(DType::F32, {SymInt(4)}));
        Node& b = module->graph().placeholder("b", TensorType::contiguous(DType::F32, {SymInt(4)}));
        const Value sum = builder.value(a) + builder.value(b);
        builder.call("aten.copy_.default", {Argument(&a), Argument(sum.node())});
        module->graph().output(Argument(ArgumentList{{Argument(sum.node())}, true}));
        module->inputs.resize(2);
        module->outputs.resize(1);
        QVERIFY(!builder.error());
        const Tensor whole = Tensor::zeros(DType::F32, {8});
        const Tensor low = whole.view({4}, {1}, 0), high = whole.view({4}, {1}, 4), middle = whole.view({4}, {1}, 3);
        QVERIFY(checkWrittenInputs(*module, {low, high}));
        QVERIFY(checkWrittenInputs(*module, {low, low.clone()}));
        const auto overlapping = checkWrittenInputs(*module, {low, middle});
        QVERIFY(!overlapping);
        QVERIFY(overlapping.error().message.find("writes to 'a', whose memory is also that of 'b'") !=
                std::string::npos);
        // What nothing reads may be the same memory: an export that lifted a cache has it twice.
        module->graph().placeholder("unread", b.type(), b.next());
        module->inputs.resize(3);
        QVERIFY(checkWrittenInputs(*module, {low, high, low}));
        QVERIFY(!checkWrittenInputs(*module, {low, middle, low}));
        module->inputs[0].kind = module->inputs[1].kind = InputSpec::Kind::Buffer;
        module->inputs[0].target = "one";
        module->inputs[1].target = "two";
        module->tensors = {{"one", low}, {"two", low}};
        QVERIFY(!checkWrittenInputs(*module));
        const CompileRequest request;
        Rewriter rewriter("functionalize", request);
        QVERIFY(!functionalize(*module, rewriter));  // refused wherever graphs become functional
    }
};

CUTAWAY_SUITE(TrainingMetadataTest)
#include "training_metadata_test.moc"
