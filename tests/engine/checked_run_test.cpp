// Checked runs: every value of a graph beside the graph it came from, in its own dtypes and in f64.
#include <QDir>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "cutaway/numerics.h"
#include "engine/numerics/counterparts.h"
#include "engine/numerics/side_by_side.h"
#include "engine/numerics/tally.h"
#include "engine/ops/op_registry.h"
#include "engine/session/session_state.h"
#include "engine/support/fault_points.h"
#include "engine/text/parse.h"
#include "tests/support/bytes.h"
#include "tests/support/fake_worker.h"
#include "tests/support/frozen.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kMlp = CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2";

QString described(const CheckedRun& run) {
    QString out = QString::fromStdString(run.summary + "\n");
    for (const NodeNumbers& row : run.nodes)
        if (diverges(row.verdict)) out += QString::fromStdString(row.name + " " + row.op + ": " + row.why + "\n");
    return out;
}

/// The graph with one call of an op made another.
Snapshot withCall(const Module& module, std::string_view from, std::string_view to) {
    auto wrong = std::make_shared<Module>(module);
    Graph& graph = wrong->graph();
    for (Node& node : graph.nodes()) {
        if (!node.isCall(from)) continue;
        std::vector<Argument> args = node.args();
        args.resize(requireOp(std::string(to)).schema()->params.size(), Argument(1));
        graph.setOp(node, requireOp(std::string(to)), std::move(args), node.type());
        break;
    }
    return wrong;
}

/// Exchanges the graph after a changed step, and after all later ones.
void damage(Session& session, const std::string& name, std::string_view from, std::string_view to) {
    bool on = false;
    for (Step& step : session.state().runs[0].trace.steps) {
        on |= step.info.state == StepState::Changed && step.info.name == name;
        if (!on) continue;
        if (step.info.name != name) step.before = withCall(*step.before, from, to);
        step.after = withCall(*step.after, from, to);
    }
}

Snapshot parsedBody(const char* body) {
    auto module =
        parseText(std::string("class G(torch.nn.Module):\n    def forward(self, x: \"f32[2, 3]\"):\n") + body);
    if (!module) qFatal("%s", module.error().text().c_str());
    return std::move(*module);
}

}  // namespace

class CheckedRunTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    void open(Session& session, const QByteArray& text, const CompileRequest& request = {}) {
        const auto opened = session.open(testing::written(m_folder, "graph.py", text.toStdString()));
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
    }
    static Place last(Session& session) {
        return {0, static_cast<int>(session.state().runs[0].trace.steps.size()) - 1, -1};
    }

  private slots:
    void nothingDiverges_data() {
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
            for (const char* how : {"inference", "frozen", "training"})
                QTest::newRow(qPrintable(name + ", " + how)) << model << how;
        }
    }
    void nothingDiverges() {
        QFETCH(QString, path);
        QFETCH(QString, how);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        CompileRequest request;
        request.freeze = how == "frozen";
        request.mode = modeOf(how.toStdString()).value_or(Mode::Inference);
        QVERIFY(session.compile(request));
        CheckedRunOptions options;
        const QString inputs = QFileInfo(path).dir().filePath("inputs.safetensors");
        if (QFile::exists(inputs)) options.inputsFile = inputs.toStdString();
        int rows = 0;
        const auto run = checkedRun(session, last(session), options, [&](const NodeNumbers&) { ++rows; });
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        QVERIFY2(!run->firstDivergent && run->failed.empty(), qPrintable(described(*run)));
        QCOMPARE(static_cast<size_t>(rows), run->nodes.size());
        const auto matched = std::count_if(run->nodes.begin(), run->nodes.end(),
                                           [](const NodeNumbers& row) { return !row.reference.empty(); });
        QVERIFY2(matched > 1, qPrintable(described(*run)));
        QVERIFY(!run->inputsFrom.empty());
    }

    /// The graph as it was opened has no values (vmap, jvp), or its calls write to what they are given (batch norms).
    void whatWasOpenedNeedsAPass_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<int>("backend");
        for (const char* name :
             {"vmap-sum", "vmap-nested", "vmap-norm", "jvp", "associative-scan-generic", "batch-norm-train"})
            for (const Backend backend : {Backend::Reference, Backend::Cpu})
                QTest::addRow("%s, %s", name, backend == Backend::Cpu ? "compiled" : "interpreted")
                    << QStringLiteral(CUTAWAY_SOURCE_DIR "/tests/data/exports/%1/model.pt2").arg(name)
                    << static_cast<int>(backend);
    }
    void whatWasOpenedNeedsAPass() {
        QFETCH(QString, path);
        QFETCH(int, backend);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        QVERIFY(session.compile({}));
        CheckedRunOptions options;
        options.backend = static_cast<Backend>(backend);
        const auto run = checkedRun(session, last(session), options);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        QVERIFY2(!run->firstDivergent && run->failed.empty(), qPrintable(described(*run)));
        // The results are compared, not only looked at.
        QVERIFY2(run->nodes.back().verdict == NodeVerdict::Equal || run->nodes.back().verdict == NodeVerdict::Close,
                 qPrintable(described(*run)));
    }

    /// The node that is wrong, not what reads it, and the step that made it so.
    void theFirstWrongValueIsNamed_data() {
        QTest::addColumn<int>("judge");
        QTest::newRow("own") << static_cast<int>(Judge::F64Error);
        QTest::newRow("same") << static_cast<int>(Judge::Same);
        QTest::newRow("strict") << static_cast<int>(Judge::Strict);
    }
    void theFirstWrongValueIsNamed() {
        QFETCH(int, judge);
        Session session;
        open(session,
             "def forward(x: \"f32[4, 8]\"):\n"
             "    a = torch.ops.aten.sin.default(x)\n"
             "    b = torch.ops.aten.mul.Tensor(a, x)\n"
             "    d = torch.ops.aten.cos.default(b)\n"
             "    c = torch.ops.aten.gelu.default(d)\n"
             "    return (c,)\n");
        std::string changed;
        for (const Step& step : session.state().runs[0].trace.steps)
            if (step.info.state == StepState::Changed && changed.empty()) changed = step.info.name;
        QVERIFY(!changed.empty());
        damage(session, changed, "aten.mul.Tensor", "aten.add.Tensor");
        CheckedRunOptions options;
        options.judge.judge = static_cast<Judge>(judge);
        const auto run = checkedRun(session, last(session), options);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        QVERIFY2(run->firstDivergent.has_value(), qPrintable(described(*run)));
        const NodeNumbers& row = run->nodes[*run->firstDivergent];
        QCOMPARE(row.name, std::string("b"));
        QCOMPARE(row.verdict, NodeVerdict::Wrong);
        QVERIFY2(row.why.find("instead of") != std::string::npos, row.why.c_str());
        QVERIFY(row.node != NodeKey::None);
        const auto first = firstDivergence(session, 0, options);
        QVERIFY2(first, first ? "" : first.error().text().c_str());
        QVERIFY(first->found);
        QCOMPARE(first->step.name, changed);
        QVERIFY2(first->summary.find("'b'") != std::string::npos, first->summary.c_str());
    }

    /// An operator that goes wrong behind the passes: the call is named; and one that takes the worker with it leaves
    /// the rows before it.
    void operatorsThatGoWrongAreNamed_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("failed");
        QTest::newRow("wrong") << "wrong"
                               << "";
        QTest::newRow("NaN") << "nan"
                             << "";
        QTest::newRow("crash") << "crash"
                               << "was killed by signal 11";
        QTest::newRow("hang") << "hang"
                              << "ran longer than";
    }
    void operatorsThatGoWrongAreNamed() {
        QFETCH(QString, fault);
        QFETCH(QString, failed);
        Session session;
        open(session,
             "def forward(x: \"f32[4, 8]\"):\n"
             "    a = torch.ops.aten.sin.default(x)\n"
             "    b = torch.ops.aten.cos.default(a)\n"
             "    c = torch.ops.aten.gelu.default(b)\n"
             "    return (c,)\n");
        setFault(("op@after:aten.cos.default:" + fault).toStdString());
        CheckedRunOptions options;
        options.timeoutSeconds = failed.startsWith("ran") ? 1 : 60;
        const auto run = checkedRun(session, last(session), options);
        setFault({});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        if (!failed.isEmpty()) {
            QVERIFY2(QString::fromStdString(run->failed).contains(failed), run->failed.c_str());
            QVERIFY2(run->failed.starts_with("b: "), run->failed.c_str());
            QCOMPARE(run->nodes.size(), size_t{2});
            return;
        }
        QVERIFY2(run->firstDivergent.has_value(), qPrintable(described(*run)));
        QCOMPARE(run->nodes[*run->firstDivergent].name, std::string("b"));
        QCOMPARE(run->firstNonFinite.has_value(), fault == "nan");
    }

    /// A NaN that the reference does not have, at the call that makes it.
    void theFirstNanIsNamed() {
        Session session;
        open(session,
             "def forward(x: \"f32[16]\"):\n"
             "    d = torch.ops.aten.abs.default(x)\n"
             "    a = torch.ops.aten.neg.default(d)\n"
             "    b = torch.ops.aten.sin.default(a)\n"
             "    c = torch.ops.aten.gelu.default(b)\n"
             "    return (c,)\n");
        damage(session, "decompose", "aten.sin.default", "aten.log.default");
        const auto run = checkedRun(session, last(session));
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        QVERIFY2(run->firstNonFinite.has_value(), qPrintable(described(*run)));
        QCOMPARE(run->nodes[*run->firstNonFinite].name, std::string("b"));
        QVERIFY(run->nodes[*run->firstNonFinite].nans > 0);
    }

    /// Checked execution (DBG-5): what the graph says of a value, and what it is.
    void typesAreHeldAgainstValues_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<QString>("problem");
        QTest::newRow("right") << "f32[2, 3]"
                               << "";
        QTest::newRow("dtype") << "f64[2, 3]"
                               << "it is f32[2, 3], the graph says f64[2, 3]";
        QTest::newRow("sizes") << "f32[3, 2]"
                               << "it is f32[2, 3], the graph says f32[3, 2]";
        QTest::newRow("strides") << "f32[2, 3][1, 2]"
                                 << "it is f32[2, 3], the graph says f32[2, 3][1, 2]";
    }
    void typesAreHeldAgainstValues() {
        QFETCH(QString, type);
        QFETCH(QString, problem);
        const auto module = parseText("def forward(x: \"" + type.toStdString() + "\"):\n    return (x,)\n");
        QVERIFY(module);
        const ValueType& says = (*module)->graph().placeholders()[0]->type();
        QCOMPARE(QString::fromStdString(typeProblem(says, {Tensor::zeros(DType::F32, {2, 3})})), problem);
    }
    /// Strides count only where there is more than one element to step over.
    void stridesOfSmallDimsDoNotCount() {
        const auto module =
            parseText("def forward(x: \"f32[1, 3][7, 1]\", y: \"f32[0, 3][9, 9]\"):\n    return (x, y)\n");
        QVERIFY(module);
        const auto inputs = (*module)->graph().placeholders();
        QCOMPARE(typeProblem(inputs[0]->type(), {Tensor::zeros(DType::F32, {1, 3})}), std::string());
        QCOMPARE(typeProblem(inputs[1]->type(), {Tensor::zeros(DType::F32, {0, 3})}), std::string());
    }

    /// Wrong is what is farther from the f64 values than the reference's own rounding explains.
    void ownJudge_data() {
        QTest::addColumn<double>("value");
        QTest::addColumn<double>("reference");
        QTest::addColumn<double>("exact");
        QTest::addColumn<int>("verdict");
        const auto row = [](const char* name, double value, double reference, double exact, NodeVerdict verdict) {
            QTest::newRow(name) << value << reference << exact << static_cast<int>(verdict);
        };
        row("equal", 1.5, 1.5, 1.5, NodeVerdict::Equal);
        row("one rounding", 1 + 0x1p-23, 1, 1, NodeVerdict::Close);
        row("as far as the reference", 1.001, 0.999, 1, NodeVerdict::Close);
        row("nearer than the reference", 1, 1.1, 1, NodeVerdict::Close);
        row("much farther", 1.01, 1.001, 1, NodeVerdict::Wrong);
        row("where the reference is exact", 1.00001, 1, 1, NodeVerdict::Wrong);
        row("NaN", NAN, 1, 1, NodeVerdict::NonFinite);
        row("NaN in both", NAN, NAN, 1, NodeVerdict::Equal);
        row("infinite", INFINITY, 1e38, 1e38, NodeVerdict::NonFinite);
    }
    void ownJudge() {
        QFETCH(double, value);
        QFETCH(double, reference);
        QFETCH(double, exact);
        QFETCH(int, verdict);
        NodeNumbers row;
        measure(testing::rowOf(DType::F32, {value, 1}), testing::rowOf(DType::F32, {reference, 1}),
                testing::rowOf(DType::F64, {exact, 1}), {}, row);
        QCOMPARE(static_cast<int>(row.verdict), verdict);
    }
    void distancesAreMeasured() {
        NodeNumbers row;
        measure(testing::rowOf(DType::F32, {3, 1, NAN, -0.0}), testing::rowOf(DType::F32, {3, 2, NAN, 0.0}),
                testing::rowOf(DType::F64, {3, 2, NAN, 0}), {}, row);
        QCOMPARE(row.elements, int64_t{4});
        QCOMPARE(row.nans, int64_t{1});
        QCOMPARE(row.different, int64_t{1});
        QCOMPARE(row.maxAbsolute, 1.0);
        QCOMPARE(row.maxRelative, 0.5);
        QCOMPARE(row.maxUlp, double{1 << 23});
        QCOMPARE(row.worst, std::vector<int64_t>{1});
        QVERIFY(qFuzzyCompare(row.cosine, 11 / (std::sqrt(10) * std::sqrt(13))));
        QVERIFY(qFuzzyCompare(row.rmse, std::sqrt(1.0 / 3)));
        QCOMPARE(row.referenceRmse, 0.0);
    }
    void neighboursDifferByOne_data() {
        QTest::addColumn<int>("dtype");
        QTest::addColumn<double>("next");
        QTest::newRow("f64") << static_cast<int>(DType::F64) << 1 + 0x1p-52;
        QTest::newRow("f32") << static_cast<int>(DType::F32) << 1 + 0x1p-23;
        QTest::newRow("f16") << static_cast<int>(DType::F16) << 1 + 0x1p-10;
        QTest::newRow("bf16") << static_cast<int>(DType::BF16) << 1 + 0x1p-7;
    }
    void neighboursDifferByOne() {
        QFETCH(int, dtype);
        QFETCH(double, next);
        const auto of = static_cast<DType>(dtype);
        QCOMPARE(orderOf(of, next) - orderOf(of, 1), int64_t{1});
        QCOMPARE(orderOf(of, -next) - orderOf(of, -1), int64_t{-1});
        QCOMPARE(orderOf(of, -0.0), orderOf(of, 0.0));
    }

    /// Which node stands for which.
    void counterpartsAreFound() {
        const Snapshot before = parsedBody(
            "        a: \"f32[2, 3]\" = torch.ops.aten.sin.default(x)\n"
            "        b: \"f32[2, 3]\" = torch.ops.aten.mul.Tensor(a, x)\n"
            "        c: \"f32[2, 3]\" = torch.ops.aten.cos.default(b)\n"
            "        return (c,)\n");
        auto after = std::make_shared<Module>(*before);
        Graph& graph = after->graph();
        Node* old = graph.findByName("b");
        Node& fresh =
            graph.call(requireOp("aten.add.Tensor"), {old->arg(0), old->arg(1), Argument(1)}, old->type(), old);
        graph.replaceUses(*old, fresh);
        graph.erase(*old);
        const auto found = counterparts(*before, *after);
        for (const char* same : {"x", "a", "c"}) {
            const NodeId id = before->graph().findByName(same)->id();
            QVERIFY2(found.contains(id), same);
            QCOMPARE(found.at(id), id);
        }
        QCOMPARE(found.at(fresh.id()), before->graph().findByName("b")->id());
    }

    /// Values that wait in a file are the same when they are read again; views keep sharing.
    void littleMemoryGivesTheSame() {
        const auto module = parseText(
            "def forward(x: \"f32[64, 512]\"):\n"
            "    a: \"f32[64, 512]\" = torch.ops.aten.sin.default(x)\n"
            "    v: \"f32[512, 64]\" = torch.ops.aten.view.default(a, [512, 64])\n"
            "    b: \"f32[64, 512]\" = torch.ops.aten.exp.default(a)\n"
            "    c: \"f32[512, 64]\" = torch.ops.aten.cos.default(v)\n"
            "    d: \"f32[64, 64]\" = torch.ops.aten.mm.default(b, c)\n"
            "    e: \"f32[64, 512]\" = torch.ops.aten.mul.Tensor(a, b)\n"
            "    return (d, e)\n");
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        std::vector<double> values(64 * 512);
        for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
        const ReadyGraph graph{std::make_shared<Module>(**module),
                               {testing::rowOf(DType::F32, values).view({64, 512}, {512, 1}, 0)}};
        const std::vector<int> same = {0, 1, 2, 3, 4, 5, 6};
        std::vector<std::vector<double>> found;
        for (const double bytes : {0.0, 1.0}) {
            SideBySideOptions options;
            options.valueBytes = bytes;
            std::vector<double>& rows = found.emplace_back();
            const auto end = runSideBySide(graph, graph, same, options, [&](size_t, const NodeNumbers& row) {
                rows.push_back(row.rmse);
                QVERIFY2(!diverges(row.verdict), row.why.c_str());
            });
            QVERIFY2(end, end ? "" : end.error().text().c_str());
            QCOMPARE(end->spilled > 0, bytes > 0);
        }
        QCOMPARE(found[0].size(), size_t{7});
        QVERIFY(found[0] == found[1]);
    }

    /// Half floats are compared with the same graph in f64, where the dtypes that casts name become f64, too.
    void castsAreRaised() {
        Session session;
        open(session,
             "def forward(x: \"f32[64]\"):\n"
             "    h = torch.ops.aten.to.dtype(x, torch.float16)\n"
             "    e = torch.ops.aten.exp.default(h)\n"
             "    return (e,)\n");
        const auto run = checkedRun(session, {0, -1, -1});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        for (const NodeNumbers& row : run->nodes)
            if (row.name != "x") QVERIFY2(row.rmse > 1e-6 && row.rmse < 1e-1, row.name.c_str());
        QVERIFY(run->remarks.empty());
    }

    void valuesOfNodes() {
        Session session;
        open(session,
             "def forward(x: \"f32[2, 3, 4]\"):\n"
             "    a = torch.ops.aten.full_like.default(x, 3)\n"
             "    b = torch.ops.aten.cumsum.default(a, 2)\n"
             "    c = torch.ops.aten.cumsum.default(b, 1)\n"
             "    return (c,)\n");
        const auto& graph = session.state().input->graph();
        const NodeKey node = nodeKey(0, graph.findByName("c")->id());
        const auto value = valueAt(session, {0, -1, -1}, node);
        QVERIFY2(value, value ? "" : value.error().text().c_str());
        QCOMPARE((*value)->type(), std::string("f32[2, 3, 4]"));
        const ValueSlice slice = (*value)->slice({1}, 10, 10);
        QCOMPARE(slice.rows, int64_t{3});
        QCOMPARE(slice.columns, int64_t{4});
        QCOMPARE(slice.numbers[5], 12.0);
        QCOMPARE(slice.most, 36.0);
        const ValueSlice thin = (*value)->slice({7}, 2, 2);
        QCOMPARE(thin.rows * thin.columns, int64_t{4});
        QCOMPARE(thin.numbers[3], 36.0);
        const auto wide = valueAt(session, {0, -1, -1}, node, ValueSide::Reference64);
        QVERIFY2(wide, wide ? "" : wide.error().text().c_str());
        QCOMPARE((*wide)->type(), std::string("f64[2, 3, 4]"));
        const auto difference = valueAt(session, {0, -1, -1}, node, ValueSide::Difference);
        QVERIFY(difference && (*difference)->slice({}, 4, 4).most == 0);
        QVERIFY(!valueAt(session, {0, -1, -1}, nodeKey(0, static_cast<NodeId>(99))));
    }

    /// Compiled code has values at its results only, and says so.
    void compiledCodeIsComparedAtItsResults() {
        Session session;
        QVERIFY(session.open(kMlp));
        QVERIFY(session.compile({}));
        CheckedRunOptions options;
        options.backend = Backend::Cpu;
        const auto run = checkedRun(session, last(session), options);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        QCOMPARE(run->nodes.size(), size_t{1});
        QVERIFY(!run->firstDivergent);
        QVERIFY(run->remarks[0].find("fused") != std::string::npos);
    }

    /// A run that is stopped leaves nothing behind, one that takes too long says where it was.
    void stopsWhenToldTo() {
        Session session;
        QVERIFY(session.open(kMlp));
        QVERIFY(session.compile({}));
        Progress cancelled;
        cancelled.cancel->cancel();
        const auto run = checkedRun(session, last(session), {}, {}, cancelled);
        QVERIFY(!run && run.error().code == ErrorCode::Cancelled);
        CheckedRunOptions options;
        options.timeoutSeconds = 0.1;
        const cutaway::testing::FakeWorker neverBegins("exec sleep 600");
        const auto late = checkedRun(session, last(session), options);
        QVERIFY2(!late && late.error().code == ErrorCode::Limit, late ? "it ended" : late.error().text().c_str());
    }
};

CUTAWAY_SUITE(CheckedRunTest)
#include "checked_run_test.moc"
