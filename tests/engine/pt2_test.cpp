// .pt2 programs: what becomes of each rule of the format, broken ones, and PyTorch's own files. Archives with weights
// stand in pt2_archive_test.cpp.
#include "engine/formats/pt2.h"

#include <QtTest>

#include "engine/formats/open.h"
#include "engine/formats/safetensors.h"
#include "engine/ops/op_registry.h"
#include "tests/support/bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/paths.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class Pt2Test : public QObject {
    Q_OBJECT

  private slots:
    void importsPrograms_data();
    void importsPrograms();
    void readsArgumentKinds_data();
    void readsArgumentKinds();
    void marksUnknownArguments();
    void keepsProvenance();
    void comparesConversions();
    void comparesDeclaredTypes();
    void keepsHistory();
    void readsSymbols();
    void offsetsOfIndicesFromData();
    void refusesPrograms_data();
    void refusesPrograms();
    void opensBundledModels_data();
    void opensBundledModels();
    void opensReferenceFiles_data();
    void opensReferenceFiles();
};

namespace {

const std::string kUnknownOp = "torch.ops.mylib.thing.default";

QString imported(const std::string& json) {
    const auto module = readPt2Program(json, "t");
    return module ? QString::fromStdString(graphText(**module)) : failureOf(module);
}
/// x: f32[2] through one node with the given outputs; what is returned is x.
Pt2Program oneNode(const std::string& node, const std::string& moreTensors = {}) {
    Pt2Program program = reluProgram();
    program.tensors = tensorValue("x", {"2"}, {"1"}) + (moreTensors.empty() ? "" : ", " + moreTensors);
    program.nodes = node;
    program.outputs = tensorArgument("x");
    program.outputSpecs = userOutput("x");
    return program;
}
std::string nodeWith(const std::string& target, const std::string& inputs, const std::string& outputs,
                     const std::string& more = R"(, "name": "n")") {
    return "{\"target\": \"" + target + "\", \"inputs\": [" + inputs + "], \"outputs\": [" + outputs +
           "], \"metadata\": {}" + more + "}";
}
std::string f32(const std::string& name) { return tensorValue(name, {"2"}, {"1"}); }

}  // namespace

void Pt2Test::importsPrograms_data() {
    QTest::addColumn<QString>("json");
    QTest::addColumn<QString>("expected");
    auto row = [](const char* name, const Pt2Program& program, const char* expected) {
        QTest::newRow(name) << QString::fromStdString(program.json()) << expected;
    };
    row("one op", reluProgram(), "%x: f32[2]\n%relu: f32[2] = aten.relu.default(%x)\nreturn (%relu)\n");
    Pt2Program single = reluProgram();
    single.graphExtra = R"(, "is_single_tensor_return": true)";
    row("bare value", single, "%x: f32[2]\n%relu: f32[2] = aten.relu.default(%x)\nreturn %relu\n");
    const std::string x = argument("", tensorArgument("x"));
    row("unknown op keeps keywords",
        oneNode(nodeWith(kUnknownOp,
                         argument("self", tensorArgument("x")) + ", " + argument("p", R"({"as_float": 0.5})", 2),
                         tensorArgument("y")),
                f32("y")),
        "%x: f32[2]\n%y: f32[2] = mylib.thing.default(%x, p=f0.5)\nreturn (%x)\n");
    row("several results",
        oneNode(nodeWith(kUnknownOp, x, tensorArgument("a") + ", " + tensorArgument("b")), f32("a") + ", " + f32("b")),
        "%x: f32[2]\n%n: (f32[2], f32[2]) = mylib.thing.default(%x)\n%a: f32[2] = operator.getitem(%n, 0)\n%b: f32[2] = operator.getitem(%n, 1)\nreturn (%x)\n");
    row("unused result",
        oneNode(nodeWith(kUnknownOp, x, tensorArgument("n_unused_0") + ", " + tensorArgument("b")),
                f32("n_unused_0") + ", " + f32("b")),
        "%x: f32[2]\n%n: (f32[2], f32[2]) = mylib.thing.default(%x)\n%b: f32[2] = operator.getitem(%n, 1)\nreturn (%x)\n");
    row("undefined result", oneNode(nodeWith(kUnknownOp, x, R"({"as_none": true}, )" + tensorArgument("b")), f32("b")),
        "%x: f32[2]\n%n: (None, f32[2]) = mylib.thing.default(%x)\n%b: f32[2] = operator.getitem(%n, 1)\nreturn (%x)\n");
    row("list result",
        oneNode(nodeWith(kUnknownOp, x, R"({"as_tensors": [{"name": "a"}, {"name": "b"}]})"),
                f32("a") + ", " + f32("b")),
        "%x: f32[2]\n%n: (f32[2], f32[2]) = mylib.thing.default(%x)\n%a: f32[2] = operator.getitem(%n, 0)\n%b: f32[2] = operator.getitem(%n, 1)\nreturn (%x)\n");
    row("list among results",
        oneNode(nodeWith(kUnknownOp, x, tensorArgument("a") + R"(, {"as_tensors": [{"name": "b"}]})"),
                f32("a") + ", " + f32("b")),
        "%x: f32[2]\n%n: (f32[2], (f32[2])) = mylib.thing.default(%x)\n%a: f32[2] = operator.getitem(%n, 0)\n"
        "%getitem: (f32[2]) = operator.getitem(%n, 1)\n%b: f32[2] = operator.getitem(%getitem, 0)\nreturn (%x)\n");
    row("no result", oneNode(nodeWith(kUnknownOp, x, "")),
        "%x: f32[2]\n%n: None = mylib.thing.default(%x)\nreturn (%x)\n");
    row("no node name", oneNode(nodeWith(kUnknownOp, x, tensorArgument("y"), ""), f32("y")),
        "%x: f32[2]\n%y: f32[2] = mylib.thing.default(%x)\nreturn (%x)\n");
    row("no node name, several results",
        oneNode(nodeWith(kUnknownOp, x, tensorArgument("a") + ", " + tensorArgument("b"), ""),
                f32("a") + ", " + f32("b")),
        "%x: f32[2]\n%thing: (f32[2], f32[2]) = mylib.thing.default(%x)\n%a: f32[2] = operator.getitem(%thing, 0)\n%b: f32[2] = operator.getitem(%thing, 1)\nreturn (%x)\n");
    const std::string graph = R"({"as_graph": {"name": "body", "graph": {"inputs": [)" + tensorArgument("i") +
                              R"(], "outputs": [)" + tensorArgument("o") + R"(], "nodes": [)" +
                              call("o", "torch.ops.aten.relu.default", {argument("self", tensorArgument("i"))}) +
                              R"(], "tensor_values": {)" + f32("i") + ", " + f32("o") +
                              R"(}, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": true}}})";
    row("nested graph, tuple of one",
        oneNode(nodeWith("torch.ops.higher_order.thing",
                         argument("", graph) + ", " + argument("", R"({"as_tensors": [{"name": "x"}]})"),
                         tensorArgument("g"), R"(, "name": "n", "is_hop_single_tensor_return": false)"),
                f32("g")),
        "%x: f32[2]\n%n: (f32[2]) = higher_order.thing(@body, [%x])\n%g: f32[2] = operator.getitem(%n, 0)\nreturn (%x)\n"
        "@body:\n  %i: f32[2]\n  %o: f32[2] = aten.relu.default(%i)\n  return %o\n");
    row("nested graph, bare value",
        oneNode(nodeWith("torch.ops.higher_order.thing", argument("", graph), tensorArgument("g"),
                         R"(, "name": "n", "is_hop_single_tensor_return": true)"),
                f32("g")),
        "%x: f32[2]\n%g: f32[2] = higher_order.thing(@body)\nreturn (%x)\n@body:\n  %i: f32[2]\n  %o: f32[2] = aten.relu.default(%i)\n  return %o\n");
    Pt2Program literal = reluProgram();
    literal.inputs += R"(, {"as_int": 3})";
    literal.inputSpecs += R"(, {"constant_input": {"name": "k", "value": {"as_int": 3}}})";
    row("constant input", literal, "%x: f32[2]\n%k: Sym(3)\n%relu: f32[2] = aten.relu.default(%x)\nreturn (%relu)\n");
    Pt2Program none = reluProgram();
    none.inputs += R"(, {"as_none": true})";
    none.inputSpecs += R"(, {"constant_input": {"name": "k", "value": {"as_none": true}}})";
    row("an input that is None", none,
        "%x: f32[2]\n%k: opaque \n%relu: f32[2] = aten.relu.default(%x)\nreturn (%relu)\n");
}
void Pt2Test::importsPrograms() {
    QFETCH(QString, json);
    QFETCH(QString, expected);
    QCOMPARE(imported(json.toStdString()), expected);
}

void Pt2Test::readsArgumentKinds_data() {
    QTest::addColumn<QString>("argument");
    QTest::addColumn<QString>("expected");
    auto row = [](const char* given, const char* expected) { QTest::newRow(given) << given << expected; };
    row(R"({"as_none": true})", "None");
    row(R"({"as_none": []})", "None");
    row(R"({"as_tensor": {"name": "x"}})", "%x");
    row(R"({"as_tensors": []})", "[]");
    row(R"({"as_tensors": [{"name": "x"}, {"name": "x"}]})", "[%x, %x]");
    row(R"({"as_int": -9223372036854775808})", "-9223372036854775808");
    row(R"({"as_ints": [1, 2]})", "[1, 2]");
    row(R"({"as_float": 1})", "f1");
    row(R"({"as_float": "-Infinity"})", "f-inf");
    row(R"({"as_float": "NaN"})", "fnan");
    row(R"({"as_floats": [0.5, "Infinity"]})", "[f0.5, finf]");
    row(R"({"as_string": "none"})", "'none'");
    row(R"({"as_strings": ["a", "b"]})", "['a', 'b']");
    row(R"({"as_sym_int": {"as_int": 4}})", "4");
    row(R"({"as_sym_ints": [{"as_int": 4}]})", "[4]");
    row(R"({"as_scalar_type": 13})", "bfloat16");
    row(R"({"as_memory_format": 2})", "channels_last");
    row(R"({"as_layout": 7})", "strided");
    row(R"({"as_device": {"type": "cuda", "index": 1}})", "device cuda:1");
    row(R"({"as_bool": true})", "True");
    row(R"({"as_bools": [true, false]})", "[True, False]");
    row(R"({"as_sym_bool": {"as_bool": true}})", "True");
    row(R"({"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "x"}}]})", "[None, %x]");
    row(R"({"as_operator": "torch.ops.aten.relu.default"})", "op aten.relu.default");
    row(R"({"as_sym_float": {"as_float": 2.5}})", "f2.5");
    row(R"({"as_optional_tensor": {"as_tensor": {"name": "x"}}})", "%x");
    row(R"({"as_optional_tensor": {"as_none": true}})", "None");
    row(R"({"as_complex": {"real": 1, "imag": -2}})", "f1+jf-2");
    row(R"({"as_nested_tensors": [[{"name": "x"}], []]})", "[[%x], []]");
    row(R"({"as_int_lists": [[1], [2, 3]]})", "[[1], [2, 3]]");
    row(R"({"as_float_lists": [[0.5], []]})", "[[f0.5], []]");
    row(R"({"as_string_to_argument": {"k": {"as_int": 1}, "l": {"as_ints": [2]}}})", "{k: 1, l: [2]}");
}
void Pt2Test::readsArgumentKinds() {
    QFETCH(QString, argument);
    QFETCH(QString, expected);
    const auto node = nodeWith(kUnknownOp, cutaway::testing::argument("", argument.toStdString()), "");
    QCOMPARE(imported(oneNode(node).json()),
             "%x: f32[2]\n%n: None = mylib.thing.default(" + expected + ")\nreturn (%x)\n");
}

void Pt2Test::keepsProvenance() {
    Pt2Program program = reluProgram();
    program.nodes = call(
        "relu", "torch.ops.aten.relu.default", {argument("self", tensorArgument("x"))},
        R"J("stack_trace": "File \"net.py\", line 3, in forward\n    y = x.relu()", "nn_module_stack": "L__self__,,__main__.Net;L__self___a,L['self'].a['k'],pkg.Act[int, int]", "torch_fn": "relu_1;f")J");
    const auto module = readPt2Program(program.json(), "t");
    QCOMPARE(failureOf(module), QString());
    const Provenance& found = (*module)->graph().findByName("relu")->provenance();
    QCOMPARE(*found.stackTrace, std::string("File \"net.py\", line 3, in forward\n    y = x.relu()"));
    QCOMPARE(*found.modulePath, std::string("a['k']"));
    QCOMPARE(*found.moduleType, std::string("pkg.Act[int, int]"));
    QCOMPARE(found.sourceName, std::string("relu"));
}

/// One call cannot be understood, the rest of the program can.
void Pt2Test::marksUnknownArguments() {
    Pt2Program program = reluProgram();
    program.tensors += ", " + f32("z");
    program.nodes = call("z", "torch.ops.aten.clamp.default",
                         {argument("self", tensorArgument("x")), argument("min", R"({"as_rocket": 1})")}) +
                    ", " + call("relu", "torch.ops.aten.relu.default", {argument("self", tensorArgument("z"))});
    const auto module = readPt2Program(program.json(), "t");
    QCOMPARE(failureOf(module), QString());
    QCOMPARE(
        QString::fromStdString(graphText(**module)),
        QString(
            "%x: f32[2]\n%z: f32[2] = unsupported.aten.clamp.default(self=%x, min='as_rocket')\n%relu: f32[2] = aten.relu.default(%z)\nreturn (%relu)\n"));
    QCOMPARE(
        QString::fromStdString((*module)->origin.remarks.at(0)),
        QString("t: node 'z': unknown kind of argument 'as_rocket'; the call of aten.clamp.default is shown, not run"));
}

/// Conversions to float8_e4m3fn had other results before PyTorch 2.13.
void Pt2Test::comparesConversions() {
    Pt2Program program = reluProgram();
    program.tensors = tensorValue("x", {"2"}, {"1"}) + ", " + tensorValue("relu", {"2"}, {"1"}, 29);
    program.nodes = call("relu", "torch.ops.aten.to.dtype",
                         {argument("self", tensorArgument("x")), argument("dtype", R"({"as_scalar_type": 29})")});
    const auto remarks = [](std::string json, const std::string& version) {
        json.replace(json.find("2.11.0"), 6, version);
        const auto module = readPt2Program(json, "t");
        return failureOf(module) + (module && !(*module)->origin.remarks.empty()
                                        ? QString::fromStdString((*module)->origin.remarks[0])
                                        : QString());
    };
    const QString said =
        "'relu' converts to float8_e4m3fn: what is too large becomes 448 here, as in PyTorch 2.13 and later; PyTorch "
        "2.12.1, which wrote the file, makes it NaN";
    QCOMPARE(remarks(program.json(), "2.12.1"), said);
    QCOMPARE(remarks(program.json(), "2.13.0+cpu"), QString());
    QCOMPARE(remarks(program.json(), "3.0.0"), QString());
    QCOMPARE(remarks(reluProgram().json(), "2.12.1"), QString());
}

/// torch.export under autocast declares what autocast would make, without its casts.
void Pt2Test::comparesDeclaredTypes() {
    Pt2Program program = reluProgram();
    program.tensors = tensorValue("x", {"2"}, {"1"}) + ", " + tensorValue("z", {"2"}, {"1"}, 13) + ", " +
                      tensorValue("relu", {"2"}, {"1"}, 13);
    program.nodes = call("z", "torch.ops.aten.sin.default", {argument("self", tensorArgument("x"))}) + ", " +
                    call("relu", "torch.ops.aten.relu.default", {argument("self", tensorArgument("z"))});
    const auto module = readPt2Program(program.json(), "t");
    QCOMPARE(failureOf(module), QString());
    QCOMPARE(QString::fromStdString(graphText(**module)),
             QString("%x: f32[2]\n%z: f32[2] = aten.sin.default(%x)\n%relu: f32[2] = aten.relu.default(%z)\n"
                     "return (%relu)\n"));
    QCOMPARE(QString::fromStdString((*module)->origin.remarks.at(0)),
             QString("'z' is declared as bf16[2], and its operands make it f32[2]: the operands count, as when PyTorch "
                     "runs the file; so do they for 1 more"));
}

void Pt2Test::keepsHistory() {
    Pt2Program program = reluProgram();
    program.nodes = call(
        "relu", "torch.ops.aten.relu.default", {argument("self", tensorArgument("x"))},
        R"("from_node": "[{\"name\": \"b\", \"pass_name\": \"second\", \"action\": \"replace\", \"from_node\": [{\"name\": \"a\", \"pass_name\": \"first\", \"action\": \"create\", \"from_node\": []}]}]")");
    const auto module = readPt2Program(program.json(), "t");
    QCOMPARE(failureOf(module), QString());
    const auto& history = (*module)->graph().findByName("relu")->provenance().history;
    QVERIFY(history && history->size() == 2);
    QVERIFY(history->at(0).name == "b" && history->at(0).pass == "second" && history->at(0).action == "replace" &&
            history->at(1).name == "a");
}

void Pt2Test::readsSymbols() {
    const std::string s =
        R"J({"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 8}}})J";
    const std::string more =
        R"J({"as_expr": {"expr_str": "Add(Symbol('s77', integer=True, positive=True), Integer(1))", "hint": null}})J";
    Pt2Program program = reluProgram();
    program.inputs += R"(, {"as_sym_int": {"as_name": "n"}})";
    program.inputSpecs += R"(, {"user_input": {"arg": {"as_sym_int": {"as_name": "n"}}}})";
    program.symInts = "\"n\": " + s + ", \"add\": " + more;
    program.tensors = tensorValue("x", {s, "4"}, {"4", "1"}) + ", " + tensorValue("y", {more, "4"}, {"4", "1"}, 6);
    program.nodes =
        nodeWith("_operator.add",
                 argument("a", R"({"as_sym_int": {"as_name": "n"}})") + ", " + argument("b", R"({"as_int": 1})"),
                 R"({"as_sym_int": {"as_name": "add"}})", R"(, "name": "add")") +
        ", " +
        call("y", kUnknownOp,
             {argument("", tensorArgument("x")),
              argument("", R"({"as_sym_ints": [{"as_name": "add"}, {"as_int": 4}]})")});
    program.outputs = tensorArgument("y") + R"(, {"as_sym_int": {"as_name": "add"}})";
    program.outputSpecs = userOutput("y") + R"(, {"user_output": {"arg": {"as_sym_int": {"as_name": "add"}}}})";
    program.ranges = R"("s77": {"min_val": 2, "max_val": 64})";
    const auto module = readPt2Program(program.json(), "t");
    QCOMPARE(failureOf(module), QString());
    QCOMPARE(
        QString::fromStdString(graphText(**module)),
        QString(
            "%x: f32[s77, 4]\n%n: Sym(s77)\n%add: Sym(s77 + 1) = operator.add(%n, 1)\n%y: f16[s77 + 1, 4] = mylib.thing.default(%x, [%add, 4])\nreturn (%y, %add)\n"));
    const SymbolInfo& symbol = (*module)->symbols.at("s77");
    QVERIFY(symbol.lower == 2 && symbol.upper == 64 && symbol.hint == 8);
}

/// PyTorch names the offset of such a view, and nothing in the file says what it is.
void Pt2Test::offsetsOfIndicesFromData() {
    const auto symbol = [](const std::string& name) {
        return R"J({"as_expr": {"expr_str": "Symbol(')J" + name + R"J(', integer=True)", "hint": null}})J";
    };
    Pt2Program program;
    program.inputs = tensorArgument("x") + ", " + tensorArgument("i");
    program.inputSpecs = userInput("x") + ", " + userInput("i");
    program.outputs = tensorArgument("r");
    program.outputSpecs = userOutput("r");
    program.tensors = tensorValue("x", {"3", "4"}, {"4", "1"}) + ", " + tensorValue("i", {}, {}, 5) +
                      R"J(, "r": {"dtype": 7, "sizes": [{"as_int": 4}], "strides": [{"as_int": 1}], "layout": 7, )J"
                      R"J("requires_grad": false, "device": {"type": "cpu", "index": null}, "storage_offset": )J" +
                      symbol("u1") + "}";
    program.symInts = R"J("item": )J" + symbol("u0");
    program.ranges = R"J("u0": {"min_val": null, "max_val": null}, "u1": {"min_val": null, "max_val": null})J";
    const std::string item = R"J({"as_sym_int": {"as_name": "item"}})J";
    program.nodes = nodeWith("torch.ops.aten.item.default", argument("self", tensorArgument("i")), item, "") + ", " +
                    nodeWith("torch.ops.aten.select.int",
                             argument("self", tensorArgument("x")) + ", " + argument("dim", R"J({"as_int": 0})J") +
                                 ", " + argument("index", item),
                             tensorArgument("r"), "");
    const auto module = readPt2Program(program.json(), "t");
    QVERIFY2(module, module ? "" : module.error().text().c_str());
    const TensorType* type = (*module)->graph().outputs()[0].node()->type().tensor();
    QCOMPARE(QString::fromStdString(type->text()), "f32[4]");
    QCOMPARE(QString::fromStdString(type->offset.text()), "4*Where(u0 < 0, u0 + 3, u0)");
}

void Pt2Test::refusesPrograms_data() {
    QTest::addColumn<QString>("json");
    QTest::addColumn<QString>("message");
    auto raw = [](const char* name, const std::string& json, const char* message) {
        QTest::newRow(name) << QString::fromStdString(json) << message;
    };
    auto row = [&](const char* name, const Pt2Program& program, const char* message) {
        raw(name, program.json(), message);
    };
    auto changed = [](auto change) {
        Pt2Program program = reluProgram();
        change(program);
        return program;
    };
    auto withArgument = [](const char* value) { return oneNode(nodeWith(kUnknownOp, argument("p", value), "")); };
    raw("no JSON", "{", "t: not valid JSON: commas, colons, braces or brackets do not fit");
    raw("empty", "", "t: not valid JSON: it is empty");
    raw("deep", std::string(3000, '[') + std::string(3000, ']'),
        "t: not valid JSON: nested more than 1024 levels deep");
    raw("no object", "[]", "t: 'schema_version' is missing");
    row("schema 7", changed([](auto& p) { p.version = R"("major": 7, "minor": 1)"; }),
        "t: schema version 7.1, this reader knows 8.x export the program again with PyTorch 2.2 to 2.11");
    row("unnamed type", changed([](auto& p) { p.tensors = f32("x"); }),
        "t: value 'relu': tensor_values has no entry of this name");
    row("dtype code", changed([](auto& p) { p.tensors = tensorValue("x", {"2"}, {"1"}, 99); }),
        "t: value 'x': unknown dtype code 99");
    row("dtype code, huge", changed([](auto& p) { p.tensors = tensorValue("x", {"2"}, {"1"}, 2147483647); }),
        "t: value 'x': the dtype is not code");
    row("negative size", changed([](auto& p) { p.tensors = tensorValue("x", {"-2"}, {"1"}); }),
        "t: value 'x': negative size or stride -2");
    row("strides", changed([](auto& p) { p.tensors = tensorValue("x", {"2"}, {}); }),
        "t: value 'x': 1 sizes but 0 strides");
    row("size kind", changed([](auto& p) { p.tensors = tensorValue("x", {R"({"as_float": 2.0})"}, {"1"}); }),
        "t: value 'x': an integer is expected, not '2.0'");
    row("spec count", changed([](auto& p) { p.inputSpecs = ""; }), "t: 0 input_specs for 1 values of the graph");
    row("defined twice", changed([](auto& p) { p.nodes += ", " + p.nodes; }),
        "t: value 'relu': the name is defined twice");
    row("keyword without a name", changed([](auto& p) {
            p.nodes =
                R"({"target": "torch.ops.mylib.thing.default", "name": "relu", "inputs": [{"name": "", "arg": {"as_tensor": {"name": "x"}}, "kind": 2}], )"
                R"("outputs": [{"as_tensor": {"name": "relu"}}], "metadata": {}})";
        }),
        "t: node 'relu': a keyword argument is named '', which is not an identifier");
    row("not defined", changed([](auto& p) {
            p.nodes = call("relu", "torch.ops.aten.relu.default", {argument("self", tensorArgument("z"))});
        }),
        "t: node 'relu': argument 'self': value 'z' is read before it is defined");
    row("output not defined", changed([](auto& p) { p.outputs = tensorArgument("z"); }),
        "t: output 0: value 'z' is read before it is defined");
    row("missing argument", changed([](auto& p) { p.nodes = call("relu", "torch.ops.aten.relu.default", {}); }),
        "t: node 'relu': aten.relu.default: argument 'self' is missing");
    row("union of two", withArgument(R"({"as_int": 1, "as_bool": true})"),
        "t: node 'n': argument 'p': malformed argument: expected a tagged union");
    row("unknown variant returned", changed([](auto& p) { p.outputs = R"({"as_rocket": 1})"; }),
        "t: output 0: unknown kind of argument 'as_rocket' the file was written by a newer PyTorch; export it again with 2.11");
    row("wrong kind", withArgument(R"({"as_int": "1"})"),
        "t: node 'n': argument 'p': 'as_int' with a value of another kind");
    row("integer too large", withArgument(R"({"as_int": 9223372036854775808})"),
        "t: node 'n': argument 'p': 'as_int' with a value of another kind");
    row("layout code", withArgument(R"({"as_layout": 8})"), "t: node 'n': argument 'p': unknown layout code 8");
    row("device", withArgument(R"({"as_device": {"type": "xpu"}})"),
        "t: node 'n': argument 'p': device 'xpu' export the model on cpu or cuda");
    row("range", changed([](auto& p) { p.ranges = R"("s0": {"min_val": 9, "max_val": 2})"; }),
        "t: symbol 's0' has an empty range");
}
void Pt2Test::refusesPrograms() {
    QFETCH(QString, json);
    QFETCH(QString, message);
    QCOMPARE(imported(json.toStdString()), message);
}

void Pt2Test::opensBundledModels_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"mlp", "tiny_transformer", "tiny_resnet"}) QTest::newRow(name) << name;
}
void Pt2Test::opensBundledModels() {
    QFETCH(QString, name);
    const std::string base = testFile("../resources/models/" + name).toStdString();
    const auto file = openFile(base + ".pt2");
    QCOMPARE(failureOf(file), QString());
    const OpenedGraph& graph = file->graphs.at(0);
    QCOMPARE(graph.module->origin.remarks, std::vector<std::string>());
    QVERIFY2(file->description.ends_with(", exported for training)"), file->description.c_str());
    for (const InputSpec& spec : graph.module->inputs)
        QVERIFY(spec.target.empty() || graph.module->tensors.contains(spec.target));
    QCOMPARE(differencesFromInference(*graph.module), std::vector<std::string>());

    const auto inputs = readSafeTensors(base + ".inputs.safetensors"),
               expected = readSafeTensors(base + ".expected.safetensors");
    QVERIFY(inputs && expected);
    QCOMPARE(inputs->tensors.size(), graph.sampleInputs.size());
    for (size_t i = 0; i < graph.sampleInputs.size(); ++i) {
        const Tensor* sample = graph.sampleInputs[i].tensor();
        QVERIFY(sample != nullptr);
        QVERIFY(compare(*sample, inputs->tensors[i].second, {}).within);
    }
    const std::vector<Argument> outputs = graph.module->graph().outputs();
    QCOMPARE(outputs.size(), expected->tensors.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
        QCOMPARE(outputs[i].node()->tensor().sizes, toSymDims(expected->tensors[i].second.sizes()));
        QCOMPARE(outputs[i].node()->tensor().dtype, expected->tensors[i].second.dtype());
    }
}

void Pt2Test::opensReferenceFiles_data() {
    QTest::addColumn<QString>("path");
    if (referenceFolder("models").isEmpty()) QTest::newRow("none") << QString();
    for (const char* folder : {"models", "scale", "formats"}) {
        const QString root = referenceFolder(folder);
        QDirIterator files(root, {"*.pt2"}, QDir::Files,
                           root.isEmpty() ? QDirIterator::NoIteratorFlags : QDirIterator::Subdirectories);
        while (!root.isEmpty() && files.hasNext()) {
            const QString path = files.next();
            QTest::newRow(qPrintable(folder + ("/" + QDir(root).relativeFilePath(path)))) << path;
        }
    }
}
/// Every file of PyTorch's opens, and wherever we have a shape rule it gives the type that PyTorch recorded.
void Pt2Test::opensReferenceFiles() {
    QFETCH(QString, path);
    if (path.isEmpty()) QSKIP(kNoReference);
    const auto file = openFile(path.toStdString());
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->graphs.size(), size_t{1});
    const Module& module = *file->graphs[0].module;
    const auto users = std::count_if(module.inputs.begin(), module.inputs.end(),
                                     [](const InputSpec& spec) { return spec.kind == InputSpec::Kind::UserInput; });
    if (path.contains("/models/")) {
        QCOMPARE(static_cast<qsizetype>(file->graphs[0].sampleInputs.size()), static_cast<qsizetype>(users));
        QCOMPARE(module.origin.remarks, std::vector<std::string>());
    }
    QStringList differences;
    // The shape rule of PyTorch's CPU kernel for LSTMs gives the final states, (layers, batch, hidden), one dim too
    // many.
    for (const std::string& line : differencesFromInference(module))
        if (line.find("(aten.lstm.input)") == std::string::npos) differences << QString::fromStdString(line);
    QCOMPARE(differences.join('\n'), QString());
}

CUTAWAY_SUITE(Pt2Test)
#include "pt2_test.moc"
