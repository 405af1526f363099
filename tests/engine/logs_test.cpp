// Files and folders of many graphs: logs, structured traces, debug folders, and the checksum that traces state.
#include <QCryptographicHash>
#include <QDir>
#include <QtTest>

#include "engine/formats/folder.h"
#include "engine/formats/structured_trace.h"
#include "engine/formats/text_file.h"
#include "engine/passes/pipeline.h"
#include "engine/support/md5.h"
#include "tests/support/bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class LogsTest : public QObject {
    Q_OBJECT

  private slots:
    void sums_data();
    void sums();
    void splitsLogs();
    void keepsPlaces();
    void readsTraces();
    void namesStay();
    void tellsStages_data();
    void tellsStages();
    void compilesFromItsStage_data();
    void compilesFromItsStage();
    void flagsDamagedTraces();
    void readsFolders();
    void readsModuleFolders();
    void opensReferenceFiles_data();
    void opensReferenceFiles();
};

namespace {

std::string graph(const std::string& op, const std::string& cls = "GraphModule") {
    return "class " + cls + "(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        " + op +
           ": \"f32[2]\" = torch.ops.aten." + op + ".default(x);  x = None\n        return (" + op + ",)";
}
std::string logged(const std::string& text, const std::string& source) {
    std::string out;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        out +=
            "V0303 12:00:00.123456 4711 torch/" + source + "] [0/1] [__aot_graphs] " + text.substr(at, end - at) + "\n";
        at = end + 1;
    }
    return out;
}
QStringList names(const OpenedFile& file) {
    QStringList out;
    for (const OpenedGraph& each : file.graphs) out << QString::fromStdString(each.name);
    return out;
}
QStringList lines(const std::vector<std::string>& all) {
    QStringList out;
    for (const std::string& line : all) out << QString::fromStdString(line);
    return out;
}
/// A record of a trace, with the right checksum unless one is given.
std::string record(const std::string& json, const std::string& payload = {}, const std::string& sum = {}) {
    std::string text = "V0303 12:00:00.123456 4711 torch/x.py:12] {" + json;
    if (!payload.empty()) text += ", \"has_payload\": \"" + (sum.empty() ? md5Hex(payload) : sum) + "\"";
    text += "}\n";
    for (size_t at = 0; !payload.empty() && at <= payload.size();) {
        const size_t end = std::min(payload.find('\n', at), payload.size());
        text += "\t" + payload.substr(at, end - at) + "\n";
        at = end + 1;
    }
    return text;
}
const std::string kFrame = R"("frame_id": 0, "frame_compile_id": 1, "attempt": 0)";

FileTree tree(const std::map<std::string, std::string>& files) {
    FileTree out;
    for (const auto& [name, content] : files) out.files.push_back(name);
    out.read = [files](const std::string& name) -> Result<ByteSource> { return ByteSource(storageOf(files.at(name))); };
    return out;
}

}  // namespace

void LogsTest::sums_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("sum");
    // RFC 1321's own test suite, and lengths around the block.
    QTest::newRow("empty") << QByteArray("") << "d41d8cd98f00b204e9800998ecf8427e";
    QTest::newRow("a") << QByteArray("a") << "0cc175b9c0f1b6a831c399e269772661";
    QTest::newRow("abc") << QByteArray("abc") << "900150983cd24fb0d6963f7d28e17f72";
    QTest::newRow("letters") << QByteArray("abcdefghijklmnopqrstuvwxyz") << "c3fcd3d76192e4007dfb496cca67e13b";
    QTest::newRow("digits") << QByteArray(
                                   "12345678901234567890123456789012345678901234567890123456789012345678901234567890")
                            << "57edf4a22be3c955ac49da2e2107b67a";
    for (int length : {55, 56, 63, 64, 65, 1000})
        QTest::newRow(qPrintable(QString("%1 bytes").arg(length)))
            << QByteArray(length, 'x')
            << QString::fromLatin1(QCryptographicHash::hash(QByteArray(length, 'x'), QCryptographicHash::Md5).toHex());
}
void LogsTest::sums() {
    QFETCH(QByteArray, text);
    QFETCH(QString, sum);
    QCOMPARE(QString::fromStdString(md5Hex(text.toStdString())), sum);
}

void LogsTest::splitsLogs() {
    const std::string text = logged("TRACED GRAPH\n ===== Forward graph 0 =====\n a/b.py " + graph("relu"), "a.py:10") +
                             logged("aot_config id: 0", "a.py:12") +
                             logged("TRACED GRAPH\n ===== Backward graph 0 =====\n a/b.py " + graph("neg"), "a.py:20") +
                             "between\n" + logged(graph("sin"), "b.py:1");
    const auto file = openTextFile(text, "t.log", {});
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(names(*file), (QStringList{"0/1 Forward graph 0", "0/1 Backward graph 0", "0/1 aot_graphs"}));
    QCOMPARE(QString::fromStdString(graphText(*file->graphs[1].module)),
             QString("%x: f32[2]\n%neg: f32[2] = aten.neg.default(%x)\nreturn (%neg)\n"));
    QVERIFY(file->remarks.empty());
    // Cut out of one joint graph, both have been through the joint passes.
    QCOMPARE(file->graphs[0].module->origin.stage, std::string("post_grad"));
    QCOMPARE(file->graphs[1].module->origin.stage, std::string("post_grad"));
    const auto one = openTextFile(text, "t.log", {.graph = "0/1 aot_graphs"});
    QCOMPARE(failureOf(one), QString());
    QCOMPARE(names(*one), QStringList{"0/1 aot_graphs"});
    QCOMPARE(failureOf(openTextFile(text, "t.log", {.graph = "nothing"})), QString("t.log: no graph named 'nothing'"));
    // Without any prefix, classes side by side are graphs of their own; nested ones are not.
    const auto plain = openTextFile(
        graph("relu") +
            "\n\n    class inner(torch.nn.Module):\n        def forward(self, y: \"f32[2]\"):\n            return (y,)\n\n" +
            graph("cos"),
        "t.txt", {});
    QCOMPARE(failureOf(plain), QString());
    QCOMPARE(names(*plain), (QStringList{"GraphModule", "GraphModule #2"}));
    QCOMPARE(plain->graphs[0].module->subgraphs.size(), size_t{1});
}

void LogsTest::keepsPlaces() {
    const auto file = openTextFile(
        logged(graph("relu"), "a.py:10") + "\n" +
            logged("class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return (y,)", "a.py:20"),
        "t.log", {});
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(lines(file->remarks),
             QStringList{"graph '0/1 aot_graphs #2' cannot be read: 8:17: 'y' is not defined, in: return (y,)"});
}

void LogsTest::readsTraces() {
    const std::string text =
        record(R"("create_symbol": {"symbol": "s7", "val": "5", "vr": "[2, int_oo]"}, )" + kFrame) +
        record("\"aot_forward_graph\": {}, " + kFrame, graph("relu")) +
        record(
            R"("artifact": {"name": "before_post_grad_graph", "encoding": "string"}, )" + kFrame,
            "class M(torch.nn.Module):\n    def forward(self, x: \"f32[s7]\"):\n        return (x,)\n\n\n # graph id: 3") +
        record(R"("artifact": {"name": "recompile_reasons", "encoding": "json"}, "rank": 1, )" + kFrame, "[]");
    const auto file = readStructuredTrace(text, "t.log", {});
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(names(*file), (QStringList{"0/1 aot_forward_graph", "0/1 before_post_grad_graph"}));
    QCOMPARE(lines(file->contents), (QStringList{"aot_forward_graph × 1", "before_post_grad_graph × 1",
                                                 "create_symbol × 1", "recompile_reasons × 1"}));
    QVERIFY(file->remarks.empty());
    const SymbolInfo symbol = file->graphs[1].module->symbols.at("s7");
    QVERIFY(symbol.hint == 5 && symbol.lower == 2 && !symbol.upper);
}

void LogsTest::namesStay() {
    const std::string text = record("\"aot_forward_graph\": {}, " + kFrame, graph("relu")) +
                             record("\"aot_forward_graph\": {}, " + kFrame, graph("sin"));
    const auto all = readStructuredTrace(text, "t.log", {});
    QCOMPARE(failureOf(all), QString());
    QCOMPARE(names(*all), (QStringList{"0/1 aot_forward_graph", "0/1 aot_forward_graph #2"}));
    const auto second = readStructuredTrace(text, "t.log", {.graph = "0/1 aot_forward_graph #2"});
    QCOMPARE(failureOf(second), QString());
    QCOMPARE(names(*second), QStringList{"0/1 aot_forward_graph #2"});
    QVERIFY(graphText(*second->graphs[0].module).find("aten.sin.default") != std::string::npos);
}

void LogsTest::tellsStages_data() {
    QTest::addColumn<QString>("kind");  // of file: the record's title in a log, event in a trace, or file
    QTest::addColumn<QString>("record");
    QTest::addColumn<QString>("stage");  // that comes next
    for (const auto& [record, stage] : {std::pair{"dynamo_output_graph", ""},
                                        {"before_pre_grad_graph", ""},
                                        {"after_pre_grad_graph", "capture"},
                                        {"aot_joint_graph", "joint"},
                                        {"aot_inference_graph", "joint"},
                                        {"before_joint_graph", "joint"},
                                        {"after_joint_graph", "post_grad"},
                                        {"aot_forward_graph", "post_grad"},
                                        {"aot_backward_graph", "post_grad"},
                                        {"before_post_grad_graph", "post_grad"},
                                        {"inductor_post_grad_graph", "lowering"}})
        QTest::newRow(record) << "trace" << record << stage;
    for (const auto& [record, stage] : {std::pair{"__compiled_fn_1", ""},
                                        {"BEFORE PRE GRAD", ""},
                                        {"Joint graph 0", "joint"},
                                        {"Forward graph 3", "joint"},
                                        {"Backward graph 3", "post_grad"},
                                        {"AFTER POST GRAD", "lowering"}})
        QTest::newRow(record) << "log" << record << stage;
    for (const auto& [record, stage] :
         {std::pair{"graph.py", ""}, {"fx_graph_readable.py", "post_grad"}, {"fx_graph_transformed.py", "lowering"}})
        QTest::newRow(record) << "file" << record << stage;
}
void LogsTest::tellsStages() {
    QFETCH(QString, kind);
    QFETCH(QString, record);
    QFETCH(QString, stage);
    const std::string name = record.toStdString(),
                      other = logged(" ===== other =====\n a/b.py " + graph("sin"), "b.py:1");
    const bool artifact = record.startsWith("before_") || record.startsWith("after_");
    const std::string event =
        artifact ? "\"artifact\": {\"name\": \"" + name + "\", \"encoding\": \"string\"}, " : "\"" + name + "\": {}, ";
    const auto file =
        kind == "trace" ? readStructuredTrace(::record(event + kFrame, graph("relu")), "t.log", {})
        : kind == "log"
            ? openTextFile(logged(" ===== " + name + " =====\n a/b.py " + graph("relu"), "a.py:1") + other, "t.log", {})
            : openTextFile(graph("relu"), "debug/" + name, {});
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(QString::fromStdString(file->graphs[0].module->origin.stage), stage);
}

void LogsTest::compilesFromItsStage_data() {
    QTest::addColumn<QString>("recorded");
    QTest::addColumn<bool>("all");
    QTest::addColumn<QString>("first");  // stage that runs
    QTest::newRow("as written") << "" << false << "pre_grad";
    QTest::newRow("before the joint passes") << "joint" << false << "joint";
    QTest::newRow("after them") << "post_grad" << false << "post_grad";
    QTest::newRow("after all of them") << "lowering" << false << "lowering";
    QTest::newRow("all stages") << "post_grad" << true << "pre_grad";
}
void LogsTest::compilesFromItsStage() {
    QFETCH(QString, recorded);
    QFETCH(bool, all);
    QFETCH(QString, first);
    auto file = openTextFile(graph("relu"), "t.txt", {});
    QCOMPARE(failureOf(file), QString());
    file->graphs[0].module->origin.stage = recorded.toStdString();
    CompileRequest options;
    options.allStages = all;
    const auto trace = runPipeline(Snapshot(std::move(file->graphs[0].module)), options);
    QCOMPARE(failureOf(trace), QString());
    QCOMPARE(QString::fromStdString(trace->steps.front().info.stage), first);
    QVERIFY(!trace->failed());
}

void LogsTest::flagsDamagedTraces() {
    const std::string good = record("\"aot_forward_graph\": {}, " + kFrame, graph("relu")),
                      after = record("\"dynamo_start\": {}");
    const auto wrong = readStructuredTrace(
        record("\"aot_joint_graph\": {}", graph("neg"), std::string(32, '0')) + good + after, "t.log", {});
    QCOMPARE(failureOf(wrong), QString());
    QCOMPARE(lines(wrong->remarks), QStringList{"t.log:1: the payload of aot_joint_graph does not match its checksum"});
    QCOMPARE(wrong->graphs.size(), size_t{2});
    // Cut in the middle of the last record's header.
    const auto cut = readStructuredTrace(good + after.substr(0, after.size() - 8), "t.log", {});
    QCOMPARE(failureOf(cut), QString());
    QCOMPARE(lines(cut->remarks), QStringList{"the last record is cut off and is left out"});
    QVERIFY(failureOf(readStructuredTrace("V0303 12:00:00.1 4711 torch/x.py:12] {broken\n" + good, "t.log", {}))
                .startsWith("t.log:1: "));
}

void LogsTest::readsFolders() {
    const auto file =
        readFolder(tree({{"run/m__1/fx_graph_readable.py", graph("relu")},
                         {"run/m__1/ir_pre_fusion.txt", "op0: SchedulerNode\n"},
                         {"run/m__1/output_code.py", "x = 1\n"},
                         {"run/m__2/a.log", graph("sin") + "\n" + graph("cos")},
                         {"run/m__2/fx_graph_transformed.py",
                          "class M(torch.nn.Module):\n    def forward(self, x):\n        return (z,)\n"}}),
                   "d", {});
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(names(*file), (QStringList{"run/m__1/fx_graph_readable.py", "run/m__2/a.log: GraphModule",
                                        "run/m__2/a.log: GraphModule #2"}));
    QCOMPARE(lines(file->contents), (QStringList{"run/m__1/ir_pre_fusion.txt", "run/m__1/output_code.py"}));
    QCOMPARE(
        lines(file->remarks),
        QStringList{
            "graph 'run/m__2/fx_graph_transformed.py' cannot be read: d/run/m__2/fx_graph_transformed.py:3:17: 'z' is not defined, in: return (z,)"});
    const auto one = readFolder(tree({{"a.py", graph("relu")}, {"b.py", graph("neg")}}), "d", {.graph = "b.py"});
    QCOMPARE(failureOf(one), QString());
    QCOMPARE(names(*one), QStringList{"b.py"});
    QCOMPARE(failureOf(readFolder(tree({{"a.md", "hello"}}), "d", {})), QString("d: it holds no graph"));
    QVERIFY(!listFolder("/nowhere/at/all"));
}

void LogsTest::readsModuleFolders() {
    const std::string module =
        "class FxModule(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        setattr(self, '0', Linear(in_features=2, out_features=2, bias=True))\n"
        "        self.load_state_dict(torch.load(r'folder/state_dict.pt'))\n\n"
        "    def forward(self, input):\n        input_1 = input\n        _0 = getattr(self, \"0\")(input_1);  input_1 = None\n        return _0\n";
    const auto file = readFolder(
        tree({{"module.py", module}, {"__init__.py", "from .module import *\n"}, {"state_dict.pt", "damaged"}}), "d",
        {});
    QCOMPARE(failureOf(file), QString());
    QVERIFY(file->format == FileFormat::ModuleFolder);
    const Node* call = file->graphs.at(0).module->graph().findByName("_0");
    QCOMPARE(QString::fromStdString(*call->provenance().moduleType),
             QString("Linear(in_features=2, out_features=2, bias=True)"));
    QVERIFY(lines(file->graphs[0].module->origin.remarks).join("").startsWith("the tensors cannot be read: "));
}

void LogsTest::opensReferenceFiles_data() {
    QTest::addColumn<QString>("path");
    QTest::addColumn<int>("graphs");
    const QString root = referenceFolder("formats");
    QTest::newRow("log") << root + "/torch_logs_output.txt" << 9;
    QTest::newRow("trace") << root + "/trace" << 21;
    QTest::newRow("debug folder") << root + "/torch_compile_debug" << 9;
    QTest::newRow("minifier") << root + "/minifier" << 6;
    QTest::newRow("module folder") << root + "/folder" << 1;
}
void LogsTest::opensReferenceFiles() {
    QFETCH(QString, path);
    QFETCH(int, graphs);
    if (referenceFolder("formats").isEmpty()) QSKIP(kNoReference);
    const auto file = openFile(path.toStdString());
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(static_cast<int>(file->graphs.size()), graphs);
    // Nothing damaged, nothing unread: every payload has its checksum.
    QCOMPARE(lines(file->remarks), QStringList());
}

CUTAWAY_SUITE(LogsTest)
#include "logs_test.moc"
