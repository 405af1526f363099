// What a run says of its results beside whether they match.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "engine/session/tied_names.h"
#include "engine/support/files.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// A line of numbers as a tensor; "nan" and "inf" too.
Tensor lineOf(const QString& numbers, DType dtype) {
    const QStringList words = numbers.split(' ', Qt::SkipEmptyParts);
    Tensor tensor = Tensor::zeros(dtype, {words.size()});
    for (int64_t i = 0; i < words.size(); ++i) {
        const QString& word = words[static_cast<int>(i)];
        const double value = word == "nan" ? std::numeric_limits<double>::quiet_NaN() : word.toDouble();
        storeElements(dtype, static_cast<std::byte*>(tensor.data()) + i * byteSize(dtype), 1, 1, &value);
    }
    return tensor;
}

}  // namespace

class RunReportsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string in(const char* name) const { return m_folder.filePath(name).toStdString(); }

    /// Runs the graph on `x` and compares its result with `expected`.
    Result<RunReport> runGraph(const QString& graph, const Tensor& x, const Tensor& expected, Backend backend) {
        SafeTensors inputs, results;
        inputs.tensors.emplace_back("0", x);
        results.tensors.emplace_back("0", expected);
        CT_TRY_VOID(writeSafeTensors(in("in.safetensors"), inputs));
        CT_TRY_VOID(writeSafeTensors(in("out.safetensors"), results));
        CT_TRY_VOID(writeFile(in("graph.txt"), graph.toStdString()));
        Session session;
        CT_TRY_VOID(session.open(in("graph.txt")));
        CT_TRY_VOID(session.compile({}));
        RunOptions options;
        options.backend = backend;
        options.inputsFile = in("in.safetensors");
        options.expectFile = in("out.safetensors");
        return session.run(0, options);
    }

  private slots:
    void saysWhatItTakesForGranted_data() {
        QTest::addColumn<QString>("calls");
        QTest::addColumn<QString>("dtype");
        QTest::addColumn<double>("expected");
        QTest::addColumn<int>("backend");
        QTest::addColumn<QString>("note");  // its beginning; empty: none
        const int reference = static_cast<int>(Backend::Reference), cpu = static_cast<int>(Backend::Cpu);
        const QString floored = "    a = aten.mul.Tensor(x, 3)\n    b = aten.floor.default(a)\n    return (b,)\n";
        const QString alone = "collectives run in this process alone", halves = "kernels keep values of half precision";
        QTest::newRow("halves that differ, compiled") << floored << "bf16" << 9.0 << cpu << halves;
        QTest::newRow("halves that match") << floored << "bf16" << 6.0 << cpu << "";
        QTest::newRow("halves that differ, interpreted") << floored << "bf16" << 9.0 << reference << "";
        QTest::newRow("floats that differ") << floored << "f32" << 9.0 << cpu << "";
        for (const int backend : {reference, cpu}) {
            QTest::addRow("all_reduce %d", backend)
                << "    a = _c10d_functional.all_reduce.default(x, 'sum', '0')\n"
                   "    b = _c10d_functional.wait_tensor.default(a)\n    return (b,)\n"
                << "f32" << 2.0 << backend << alone;
            QTest::addRow("reduce_scatter %d", backend)
                << "    a = _c10d_functional.reduce_scatter_tensor.default(x, 'sum', 2, '0')\n"
                   "    b = _c10d_functional.wait_tensor.default(a)\n    return (b,)\n"
                << "f32" << 2.0 << backend << alone;
        }
    }
    /// Of a group of two all_reduce and reduce_scatter follow one rule.
    void saysWhatItTakesForGranted() {
        QFETCH(QString, calls);
        QFETCH(QString, dtype);
        QFETCH(double, expected);
        QFETCH(int, backend);
        QFETCH(QString, note);
        const DType type = dtype == "bf16" ? DType::BF16 : DType::F32;
        const int64_t rows = calls.contains("scatter") ? 1 : 2;
        const auto report = runGraph(QString("def forward(x: \"%1[2]\"):\n%2").arg(dtype, calls), lineOf("2 2", type),
                                     lineOf(QString("%1 ").arg(expected).repeated(static_cast<int>(rows)), type),
                                     static_cast<Backend>(backend));
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        const QString said = report->notes.empty() ? QString() : QString::fromStdString(report->notes[0]);
        QVERIFY2(note.isEmpty() ? said.isEmpty() : said.startsWith(note), qPrintable(said));
        if (calls.contains("c10d")) QVERIFY(report->matches);
    }

    void indicesOfEqualKeysAreTies_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QString>("keys");
        QTest::addColumn<QString>("expected");
        QTest::addColumn<QString>("said");  // of the result: the remark of a match, else what differs
        const auto row = [](const char* name, const char* calls, const char* keys, const char* expected,
                            const char* said) {
            QTest::newRow(name) << QString("def forward(x: \"f32[5]\"):\n%1").arg(calls) << keys << expected << said;
        };
        const char* const sorted = "    s = aten.sort.default(x)\n    i = s[1]\n    return (i,)\n";
        const char* const stable = "    s = aten.sort.stable(x, stable=True)\n    i = s[1]\n    return (i,)\n";
        const char* const top = "    s = aten.topk.default(x, 2)\n    i = s[1]\n    return (i,)\n";
        const char* const moved =
            "    s = aten.sort.default(x)\n    i = s[1]\n    f = aten.flip.default(i, [0])\n"
            "    l = aten.slice.Tensor(f, 0, 0, 2)\n    return (l,)\n";
        const char* const most =
            "    i = aten.argmax.default(x)\n    r = aten.reshape.default(i, [1])\n    return (r,)\n";
        row("sort", sorted, "2 1 2 1 2", "3 1 4 0 2", "5 of 5 indices differ, all of them ties");
        row("another key", sorted, "2 1 2 1 3", "3 1 4 0 2", "DIFFERS");
        row("named twice", sorted, "2 1 2 1 2", "3 1 0 0 7", "DIFFERS");
        row("a stable sort", stable, "2 1 2 1 2", "3 1 4 0 2", "DIFFERS");
        row("topk beside a NaN", top, "1 nan 3 -2 3", "1 4", "1 of 2 indices differ, all of them ties");
        row("NaN are equal", top, "1 nan 3 nan 3", "3 1", "2 of 2 indices differ, all of them ties");
        row("topk of another", top, "1 nan 3 -2 3", "1 0", "DIFFERS");
        row("moved on the way", moved, "2 1 2 1 2", "0 4", "2 of 2 indices differ, all of them ties");
        row("moved, another key", moved, "2 1 2 1 2", "0 1", "DIFFERS");
        row("argmax", most, "1 3 2 3 0", "3", "1 of 1 indices differ, all of them ties");
    }
    void indicesOfEqualKeysAreTies() {
        QFETCH(QString, graph);
        QFETCH(QString, keys);
        QFETCH(QString, expected);
        QFETCH(QString, said);
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            const auto report = runGraph(graph, lineOf(keys, DType::F32), lineOf(expected, DType::I64), backend);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            const OutputReport& output = report->outputs.front();
            QCOMPARE(output.within, said != "DIFFERS");
            QCOMPARE(report->matches, output.within);
            const QString text = QString::fromStdString(output.remark);
            QVERIFY2(output.within ? text.startsWith(said) : text.isEmpty(), qPrintable(text));
        }
    }

    void numbersCompareByTheirKind_data() {
        QTest::addColumn<QString>("returned");
        QTest::addColumn<QString>("expected");
        QTest::addColumn<int>("dtype");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* name, const char* returned, const char* expected, DType dtype,
                            const char* problem) {
            QTest::newRow(name) << QString(returned) << QString(expected) << static_cast<int>(dtype)
                                << QString(problem);
        };
        row("True", "True", "1", DType::Bool, "");
        row("False", "False", "0", DType::Bool, "");
        row("another bool", "True", "0", DType::Bool, "1 of 1 elements differ; its value is true instead of false");
        row("a bool is not an int", "True", "1", DType::I64, "expected i64[]");
        row("an int", "3", "3", DType::I64, "");
        row("a narrow int", "3", "3", DType::I32, "");
        row("an int is not a bool", "1", "1", DType::Bool, "expected b8[]");
        row("a float", "0.1", "0.1", DType::F64, "");
        row("a narrow float", "0.1", "0.1", DType::F32, "");
        row("a float is not an int", "2.0", "2", DType::I64, "expected i64[]");
    }
    void numbersCompareByTheirKind() {
        QFETCH(QString, returned);
        QFETCH(QString, expected);
        QFETCH(int, dtype);
        QFETCH(QString, problem);
        const QString graph = QString("def forward(x: \"f32[2]\"):\n    return (None, 'text', %1)\n").arg(returned);
        const Tensor number = lineOf(expected, static_cast<DType>(dtype)).view({}, {}, 0);
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            const auto report = runGraph(graph, lineOf("1 2", DType::F32), number, backend);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QCOMPARE(report->outputs.size(), size_t{3});
            QCOMPARE(report->outputs[1].type, std::string("str"));
            QCOMPARE(QString::fromStdString(report->outputs[2].problem), problem);
            QCOMPARE(report->matches, problem.isEmpty());
        }
    }

    void tiedTensorsHaveTheNameOfTheFirst() {
        Module module;
        const Tensor weight = Tensor::zeros(DType::F32, {4, 4});
        module.tensors = {{"a.weight", weight},
                          {"e.weight", weight},
                          {"rows", weight.view({2, 4}, {4, 1}, 0)},
                          {"equal", Tensor::zeros(DType::F32, {4, 4})}};
        for (const char* name : {"rows", "e.weight", "a.weight", "equal"}) {
            module.inputs.emplace_back();
            module.inputs.back().kind = InputSpec::Kind::Parameter;
            module.inputs.back().target = name;
        }
        QCOMPARE(tiedNames(module, "a.weight"), (std::vector<std::string>{"e.weight", "a.weight"}));
        QCOMPARE(tiedNames(module, "e.weight"), (std::vector<std::string>{"e.weight", "a.weight"}));
        QCOMPARE(tiedNames(module, "rows"), (std::vector<std::string>{"rows"}));
        QCOMPARE(tiedNames(module, "none"), (std::vector<std::string>{"none"}));
        const std::map<std::string, int> file = {{"a.weight", 1}, {"equal", 2}};
        QCOMPARE(findTied(file, module, "e.weight")->second, 1);
        QVERIFY(findTied(file, module, "rows") == file.end());
    }

    /// Which gradients a run for training lists.
    void gradientsAreOfWhatRequiresThem_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QString>("gradients");
        const auto row = [](const char* name, const char* inputs, const char* calls, const char* gradients) {
            QTest::newRow(name) << QString("class G(torch.nn.Module):\n    def forward(\n        self,\n%1    ):\n%2")
                                       .arg(inputs, calls)
                                << QString(gradients);
        };
        const char* const product = "        y: \"f32[3]\" = torch.ops.aten.mul.Tensor(a, b)\n        return (y,)\n";
        row("both",
            "        a: \"f32[3]\",  # ParamAOTInput(target='a')\n"
            "        b: \"f32[3]\",  # ParamAOTInput(target='b')\n",
            product, "a b");
        row("one is frozen",
            "        a: \"f32[3]\",  # ParamAOTInput(target='a', requires_grad=False)\n"
            "        b: \"f32[3]\",  # ParamAOTInput(target='b')\n",
            product, "b");
        row("the sign of copysign",
            "        a: \"f32[3]\",  # ParamAOTInput(target='a')\n"
            "        b: \"f32[3]\",  # ParamAOTInput(target='b')\n",
            "        y: \"f32[3]\" = torch.ops.aten.copysign.Tensor(a, b)\n        return (y,)\n", "a b");
        row("the direction of nextafter",
            "        a: \"f32[3]\",  # ParamAOTInput(target='a')\n"
            "        b: \"f32[3]\",  # ParamAOTInput(target='b')\n",
            "        y: \"f32[3]\" = torch.ops.aten.nextafter.default(a, b)\n        return (y,)\n", "a b");
    }
    void gradientsAreOfWhatRequiresThem() {
        QFETCH(QString, graph);
        QFETCH(QString, gradients);
        QVERIFY(writeFile(in("graph.txt"), graph.toStdString()));
        Session session;
        QVERIFY(session.open(in("graph.txt")));
        CompileRequest request;
        request.mode = Mode::Training;
        QVERIFY(session.compile(request));
        const auto report = session.run(0, {});
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QStringList names;
        for (const OutputReport& gradient : report->training->gradients) names << QString::fromStdString(gradient.name);
        QCOMPARE(names.join(' '), gradients);
        const auto module = parseText(graph.toStdString());  // what is printed says so, too
        QVERIFY(module);
        QCOMPARE(printText(**module).text.find("requires_grad=False") != std::string::npos, gradients == "b");
    }

    /// A file's joint graph takes the gradients of its results as inputs, whole and split.
    void jointGraphs_data() {
        QTest::addColumn<bool>("split");
        QTest::addColumn<int>("backend");
        for (const bool split : {false, true})
            for (const Backend backend : {Backend::Reference, Backend::Cpu})
                QTest::addRow("%s, %s", split ? "split" : "whole", backend == Backend::Cpu ? "cpu" : "reference")
                    << split << static_cast<int>(backend);
    }
    void jointGraphs() {
        QFETCH(bool, split);
        QFETCH(int, backend);
        QVERIFY(writeFile(in("joint.txt"), R"(
def forward(
    primals_1: "f32[3]",  # PlainAOTInput(idx=0)
    primals_2: "f32[3]",  # PlainAOTInput(idx=1)
    tangents_1: "f32[3]",  # TangentAOTInput()
):
    mul: "f32[3]" = torch.ops.aten.mul.Tensor(primals_1, primals_2)
    mul_1: "f32[3]" = torch.ops.aten.mul.Tensor(tangents_1, primals_2)
    mul_2: "f32[3]" = torch.ops.aten.mul.Tensor(tangents_1, primals_1)
    return [mul, mul_1, mul_2]
)"));
        SafeTensors inputs;
        inputs.tensors.emplace_back("primals_1", lineOf("1 2 3", DType::F32));
        inputs.tensors.emplace_back("primals_2", lineOf("4 5 6", DType::F32));
        inputs.tensors.emplace_back("tangents_1", lineOf("1 0 2", DType::F32));
        QVERIFY(writeSafeTensors(in("in.safetensors"), inputs));
        SafeTensors results, gradients;
        results.tensors.emplace_back("0", lineOf("4 10 18", DType::F32));
        const Tensor ofFirst = lineOf("4 0 12", DType::F32), ofSecond = lineOf("1 0 6", DType::F32);
        gradients.tensors.emplace_back("primals_1", ofFirst);
        gradients.tensors.emplace_back("primals_2", ofSecond);
        if (!split) {
            results.tensors.emplace_back("1", ofFirst);
            results.tensors.emplace_back("2", ofSecond);
        }
        QVERIFY(writeSafeTensors(in("out.safetensors"), results));
        QVERIFY(writeSafeTensors(in("gradients.safetensors"), gradients));
        Session session;
        QVERIFY(session.open(in("joint.txt")));
        CompileRequest request;
        if (split) request.mode = Mode::Training;
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        RunOptions options;
        options.backend = static_cast<Backend>(backend);
        options.inputsFile = in("in.safetensors");
        options.expectFile = in("out.safetensors");
        if (split) options.expectGradientsFile = in("gradients.safetensors");
        const auto report = session.run(0, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY(report->matches && report->outputs.front().compared);
        QCOMPARE(report->training.has_value(), split);
        if (!split) return;
        QCOMPARE(report->training->loss, 40.0);
        QCOMPARE(report->training->gradients.size(), size_t{2});
    }

    /// What info says of calls: that they cannot be run, only where nothing runs them.
    void callsThatRunAreNoProblems_data() {
        QTest::addColumn<QString>("calls");
        QTest::addColumn<QString>("problem");  // of the first operator that has one
        const auto row = [](const char* name, const char* calls, const char* problem) {
            QTest::newRow(name) << QString(calls) << QString(problem);
        };
        row("an ATen operator", "    y = torch.ops.aten.relu.default(x)", "");
        row("a function of Python", "    y = torch._C._nn.linear(x, w)", "");
        row("another", "    y = torch.nn.functional.layer_norm(x, (3,))", "");
        row("a method", "    y = x.add(1)", "");
        row("autocast",
            "    e = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n"
            "    y = torch._C._nn.linear(x, w)\n    o = torch.amp.autocast_mode._exit_autocast(e)",
            "");
        row("an unknown function", "    y = torch.nothing_of_it(x)",
            "not in Cutaway's operator tables: shown, not run");
        row("a lowering that says its operator",
            "    y = torch__inductor_fx_passes_pre_grad_linear_transpose(x, w, None)", "");
        row("a lowering that does not", "    y = torch__inductor_fx_passes_mkldnn_fusion_fn(x, w, 'none', [], '')",
            "a lowering that PyTorch's compiler registered; its operator is not in the text: shown, not run");
        row("a custom operator", "    y = torch.ops.mine.f.default(x)",
            "custom operator of 'mine': shown, not run, until a file of rules says what it computes");
        row("a module of a backend",
            "    lowered = self.lowered_module_0\n"
            "    y = torch.ops.higher_order.executorch_call_delegate(lowered, x)",
            "a part that executorch gave to a backend, whose graph is elsewhere: shown, not run");
        row("nobody reads it",
            "    p = torch.ops.aten.promote_types.default(torch.float32, torch.float64)\n"
            "    y = torch.ops.aten.relu.default(x)",
            "");
    }
    void callsThatRunAreNoProblems() {
        QFETCH(QString, calls);
        QFETCH(QString, problem);
        const QString graph = QString("def forward(x: \"f32[3, 3]\", w: \"f32[3, 3]\"):\n%1\n    return (y,)\n");
        QVERIFY(writeFile(in("graph.txt"), graph.arg(calls).toStdString()));
        const auto info = inspectFile(in("graph.txt"), {});
        QVERIFY2(info, info ? "" : info.error().text().c_str());
        QString found;
        for (const OpSummary& op : info->graphs.front().ops)
            if (found.isEmpty()) found = QString::fromStdString(op.problem);
        QCOMPARE(found, problem);
    }

    void bodiesOpenByTheNamesThatAreListed() {
        QVERIFY(writeFile(in("graph.txt"), R"(def forward(p: "b8[]", x: "f32[4]"):
    cond = higher_order.cond(p, true_graph_0, false_graph_0, [x])
    y: "f32[4]" = cond[0]
    return (y,)

def true_graph_0(x: "f32[4]"):
    s: "f32[4]" = aten.sin.default(x)
    return (s,)

def false_graph_0(x: "f32[4]"):
    c: "f32[4]" = aten.cos.default(x)
    return (c,)
)"));
        const auto info = inspectFile(in("graph.txt"), {});
        QVERIFY(info);
        QCOMPARE(info->graphs.size(), size_t{3});
        for (const GraphSummary& graph : info->graphs) {
            Session session;
            const auto opened = session.open(in("graph.txt"), OpenSettings{.graph = graph.name});
            QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
            QVERIFY(session.compile({}));
            const auto report = session.run(0, {});
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            QCOMPARE(report->outputs.size(), size_t{1});
        }
        Session session;
        const auto unknown = session.open(in("graph.txt"), OpenSettings{.graph = "true_graph_1"});
        QVERIFY(!unknown);
        QVERIFY(QString::fromStdString(unknown.error().text()).contains("true_graph_0"));
    }
};

CUTAWAY_SUITE(RunReportsTest)
#include "run_reports_test.moc"
