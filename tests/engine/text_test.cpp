// FX text: what parses, how it prints, what is refused and where.
#include <QDirIterator>
#include <QFile>
#include <QTest>
#include <random>

#include "engine/ir/verify.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/graph_text.h"
#include "tests/support/paths.h"
#include "tests/support/sections.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::roundTripProblem;

class TextTest : public QObject {
    Q_OBJECT

  private slots:
    void prints_data();
    void prints();
    void refuses_data();
    void refuses();
    void foreignDtypes();
    void remarks();
    void roles();
    void resultsAreKnownFromTheirItems();
    void lineNodes();
    void runnableReadsBack();
    void runnableMakesWhatIsMissing();
    void namesFoundSizes();
    void cases_data();
    void cases();
    void damagedTextsNeverCrash();
};

void TextTest::prints_data() {
    QTest::addColumn<QByteArray>("given");
    QTest::addColumn<QByteArray>("printed");
    const QByteArray one = "def forward(x: \"f32[2]\"):\n";
    auto body = [&](const char* name, const QByteArray& given, const QByteArray& printed) {
        QTest::newRow(name) << one + "    " + given + "\n    return (x,)\n"
                            << one + "    " + printed + "\n    return (x,)\n";
    };
    body("defaults go", "y = aten.add.Tensor(x, 1, alpha = 1)", "y: \"f32[2]\" = aten.add.Tensor(x, 1)");
    body("keyword order", "y: \"f32[2]\" = foo.bar.baz(x, b = 1, a = 'it\\'s')",
         "y: \"f32[2]\" = foo.bar.baz(x, b = 1, a = \"it's\")");
    body("method", "y: \"f32[2]\" = x.view(-1, 2)", "y: \"f32[2]\" = x.view(-1, 2)");
    body("module", "y: \"f32[2]\" = self.fc.act(x)", "y: \"f32[2]\" = self.fc.act(x)");
    body("quoted module", "y = getattr(self, \"0\")(x)", "y = getattr(self, '0')(x)");
    body("attribute of a value", "y = x.shape", "y = x.shape");
    body("get_attr", "w: \"f32[3, 2]\" = self.fc.weight", "w: \"f32[3, 2]\" = self.fc.weight");
    body("subscript", "y: \"f32[1]\" = x[1:, None, ...]", "y: \"f32[1]\" = x[(slice(1, None, None), None, Ellipsis)]");
    body("packet", "y: \"f32[2]\" = torch.ops.foo._linear(x)", "y: \"f32[2]\" = foo._linear(x)");
    body("keyword overload", "y = torch.ops.foo.random.from(x, 1)", "y = foo.random.from(x, 1)");
    body("update in place", "x += 1;  iadd: \"f32[2]\" = x", "iadd: \"f32[2]\" = operator.iadd(x, 1)");
    body("set item", "x[0] = 1.5;  setitem = x", "setitem = operator.setitem(x, 0, 1.5)");
    body("freed names", "y = foo.f(x);  y = None", "y = foo.f(x)");
    body("strides", "y: \"f32[2, 3][1, 2]cuda:1\" = foo.f(x)", "y: \"f32[2, 3][1, 2]cuda:1\" = foo.f(x)");
    body("the last device", "y: \"f32[2]cuda:99\" = foo.f(x)", "y: \"f32[2]cuda:99\" = foo.f(x)");
    body("symbols", "y: \"f32[s0*4, (s0 + 1)//2]\" = foo.f(x, [s0 + 1, -s0])",
         "y: \"f32[4*s0, ((s0 + 1)//2)]\" = foo.f(x, [s0 + 1, -s0])");
    body("own symbol", "y: \"f32[N]\" = foo.f(x, N)", "y: \"f32[N]\" = foo.f(x, N)");
    body("number type", "y: \"Sym(s0 < 5)\" = foo.f(x)", "y: \"Sym(s0 < 5)\" = foo.f(x)");
    body("infix", "y: \"f32[2]\" = -0.5 * x", "y: \"f32[2]\" = operator.mul(-0.5, x)");
    body("infix stays", "y: \"f32[2]\" = x // 2", "y: \"f32[2]\" = x // 2");
    body("floats", "y = foo.f(x, 1e-5, 5e-1, 1., 1e16, 123456789012345680.0, -inf, nan, float('inf'))",
         "y = foo.f(x, 1e-05, 0.5, 1.0, 1e+16, 1.2345678901234568e+17, -inf, nan, inf)");
    body("integers", "y = foo.f(x, 9223372036854775807, -9223372036854775808, 1_000)",
         "y = foo.f(x, 9223372036854775807, -9223372036854775808, 1000)");
    body("complex", "y = foo.f(x, (1+2j), 2j, (-0-1.5j), (nan+infj))",
         "y = foo.f(x, (1+2j), 2j, (-0-1.5j), (nan+infj))");
    body("texts", "y = foo.f(x, 'a\\n\\x01', \"it's\", 'both \\' \"', '\\u00e9')",
         "y = foo.f(x, 'a\\n\\x01', \"it's\", 'both \\' \"', '\xc3\xa9')");
    body(
        "numbers by their names",
        "y = foo.f(x, torch.inf, -math.inf, math.nan, torch.nan, float('-Infinity'), float(\"nan\"), float('2.5'), math.pi, numpy.inf)",
        "y = foo.f(x, inf, -inf, nan, nan, -inf, nan, 2.5, 3.141592653589793, inf)");
    body("numbers out of range",
         "y = foo.f(x, 1e-999, 1e999, -1e999, 1e-99999999999999999999, 1e99999999999999999999, 0." +
             QByteArray(400, '0') + "1, 1" + QByteArray(400, '0') + ".0e-5, 1" + QByteArray(400, '0') + ".0e-500)",
         "y = foo.f(x, 0.0, inf, -inf, 0.0, inf, 0.0, inf, 1e-100)");
    body(
        "names of any script",
        "\xc3\xa9t\xc3\xa9_1: \"f32[2]\" = aten.neg.default(x);  \xe5\xb1\x82 = aten.exp.default(\xc3\xa9t\xc3\xa9_1)",
        "\xc3\xa9t\xc3\xa9_1: \"f32[2]\" = aten.neg.default(x)\n    \xe5\xb1\x82: \"f32[2]\" = aten.exp.default(\xc3\xa9t\xc3\xa9_1)");
    body("attributes of any script", "w: \"f32[2]\" = self.couche_\xc3\xa9.weight",
         "w: \"f32[2]\" = self.couche_\xc3\xa9.weight");
    body(
        "torch values",
        "y = foo.f(x, torch.float32, torch.strided, torch.channels_last, device(type='cuda', index=0), torch.device('cpu'), torch.Size([2]))",
        "y = foo.f(x, torch.float32, torch.strided, torch.channels_last, device(type='cuda', index=0), device(type='cpu'), (2,))");
    body(
        "containers",
        "y = foo.f(x, {'a': [x, None], 'b': (1,)}, [], (), slice(1, None), torch.Tensor(size=[2], dtype=float32))",
        "y = foo.f(x, {'a': [x, None], 'b': (1,)}, [], (), slice(1, None, None), torch.Tensor(size=[2], dtype=float32))");
    body("operator as value", "y = foo.f(torch.ops.aten.mul.Tensor, Mode.FAST)",
         "y = foo.f(aten.mul.Tensor, Mode.FAST)");
    body("odd operator name", "y = getattr(torch.ops, '#ext:f')(x)", "y = getattr(torch.ops, '#ext:f')(x)");
    body(
        "comments",
        "# File: net.py:9 in forward, code: h = x\n    y = foo.f(x)\n    # No stacktrace found for following nodes\n    z = foo.f(y)",
        "# File: net.py:9 in forward, code: h = x\n    y = foo.f(x)\n    # No stacktrace found for following nodes\n    z = foo.f(y)");
    body("module comment", "# module: enc.0 torch.nn.Linear # File: net.py:9 in f\n    y = foo.f(x)",
         "# module: enc.0 torch.nn.Linear # File: net.py:9 in f\n    y = foo.f(x)");
    body("annotation against the rule", "y: \"f32[3]\" = aten.mul.Tensor(x, x)",
         "y: \"f32[3][1]cpu\" = aten.mul.Tensor(x, x)");
    QTest::newRow("byte order mark") << QByteArray(
                                            "\xEF\xBB\xBF"
                                            "def forward(x: \"f32[2]\"):\n    return (x,)\n")
                                     << QByteArray("def forward(x: \"f32[2]\"):\n    return (x,)\n");
    QTest::newRow("raw parameter") << QByteArray(
                                          "def forward(self, L_x_ : torch.Tensor):\n    l_x_ = L_x_\n    return l_x_\n")
                                   << QByteArray("def forward(L_x_):\n    l_x_ = L_x_\n    return l_x_\n");
    QTest::newRow("boxed")
        << QByteArray(
               "class G(torch.nn.Module):\n    def forward(self, args_list):\n        args_iter = iter(args_list)\n"
               "        x = next(args_iter)\n        y = next(args_iter)\n        args_list.clear()\n        return [x, y]\n")
        << QByteArray("def forward(x, y):\n    return [x, y]\n");
    QTest::newRow("symbol ranges")
        << QByteArray("# symbol s0: lower=2, upper=64, hint=8\ndef forward(x: \"f32[s0]\"):\n    return (x,)\n")
        << QByteArray("# symbol s0: lower=2, upper=64, hint=8\ndef forward(x: \"f32[s0]\"):\n    return (x,)\n");
    QTest::newRow("nested subgraphs")
        << QByteArray(
               "def forward(x):\n    y = foo.f(x, inner)\n    return (y,)\n\ndef inner(a):\n    return (a,)\n\n    def inner(b):\n        return (b,)\n")
        << QByteArray(
               "def forward(x):\n    y = foo.f(x, inner)\n    return (y,)\n\ndef inner(a):\n    return (a,)\n\n    def inner(b):\n        return (b,)\n");
}

void TextTest::prints() {
    QFETCH(QByteArray, given);
    QFETCH(QByteArray, printed);
    auto module = parseText(given.toStdString());
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    QCOMPARE(QByteArray::fromStdString(printText(**module).text), printed);
    auto valid = verify(**module);
    QVERIFY2(valid.has_value(), valid ? "" : valid.error().text().c_str());
    QCOMPARE(QString::fromStdString(roundTripProblem(**module)), QString());
}

void TextTest::refuses_data() {
    QTest::addColumn<QByteArray>("given");
    QTest::addColumn<QByteArray>("where");
    QTest::addColumn<QByteArray>("what");
    auto body = [](const char* name, const QByteArray& line, const char* where, const char* what) {
        QTest::newRow(name) << QByteArray("def forward(x: \"f32[2]\"):\n    ") + line + "\n    return (x,)\n"
                            << QByteArray(where) << QByteArray(what);
    };
    QTest::newRow("nothing") << QByteArray("hello\n") << QByteArray("1:1")
                             << QByteArray("no 'class NAME(torch.nn.Module):'");
    QTest::newRow("no return") << QByteArray("def forward(x):\n    y = foo.f(x)\n") << QByteArray("1:1")
                               << QByteArray("no return");
    QTest::newRow("no body") << QByteArray("def forward(x):\n") << QByteArray("2:1") << QByteArray("no body");
    body("undefined", "y = foo.f(z)", "2:15", "'z' is not defined");
    body("twice", "y = foo.f(x); y = foo.f(x)", "2:19", "'y' is defined twice");
    body("missing argument", "y = aten.mul.Tensor(x)", "2:5", "'other' is missing");
    body("unknown keyword", "y = aten.mul.Tensor(x, x, scale = 2)", "2:5", "no parameter named 'scale'");
    body("shapes", "z: \"f32[3]\" = foo.f(x); y = aten.mul.Tensor(x, z)", "2:29", "aten.mul.Tensor");
    body("bad dtype", "y: \"f33[2]\" = foo.f(x)", "2:8", "dtype abbreviation");
    body("bad sizes", "y: \"f32[2\" = foo.f(x)", "2:8", "']' is missing");
    body("huge sizes", "y: \"f32[4294967296, 4294967296]\" = foo.f(x)", "2:8", "64 bits");
    body("strides", "y: \"f32[2, 3][1]\" = foo.f(x)", "2:8", "one stride per size");
    body("device", "y: \"f32[2]tpu:0\" = foo.f(x)", "2:8", "'tpu:0'");
    body("open call", "y = foo.f(x", "3:5", "expected");
    body("nested call", "y = foo.f(foo.g(x))", "2:15", "calls do not nest");
    body("literal", "y = 5", "2:9", "not an operation");
    body("integer range", "y = foo.f(x, 9223372036854775808)", "2:18", "64 bits");
    body("open text", "y = foo.f(x, 'abc)", "2:18", "cannot be read");
    body("indentation", "y = foo.f(x)\n      z = foo.f(x)", "3:7", "indentation");
    body("no number of a device", "y: \"f32[2]cuda:\" = foo.f(x)", "2:8", "is not a device");
    body("a device too many", "y: \"f32[2]cuda:100\" = foo.f(x)", "2:8", "is not a device");
    body("after return", "return x", "3:5", "nothing follows");
    body("deep", "y = foo.f(" + QByteArray(300, '[') + QByteArray(300, ']') + ")", "2:269", "256");
    const int many = 100000;
    body("powers", "y = " + QByteArray("x ** ").repeated(many) + "x", "2:1284", "256");
    body("signs", "y = " + QByteArray(many, '-') + "x", "2:263", "256");
    body("calls in a row", "y = foo.f(x" + QByteArray(")(x").repeated(many) + ")", "2:783", "256");
    body("subscripts in a row", "y = x" + QByteArray("[0]").repeated(many), "2:781", "256");
    body("attributes in a row", "y = x" + QByteArray("(0).a").repeated(many), "2:651", "256");
    body("operators in a row", "y = x" + QByteArray(" + x").repeated(many), "2:1039", "256");
    body("comparisons in a row", "y = x" + QByteArray(" < x").repeated(many), "2:1039", "256");
    body("chains inside chains",
         "y = " + QByteArray("(").repeated(200) + "x" + (QByteArray(" + x").repeated(100) + ")").repeated(200),
         "2:1241", "256");
    body("sizes of many operations", "y: \"f32[s0" + QByteArray("//2").repeated(many) + "]\" = foo.f(x)", "2:8",
         "operations");
    body(
        "functions in functions",
        "y = foo.f(x)\n" +
            [&] {
                QByteArray nested;
                for (int i = 0; i < 300; ++i) nested += QByteArray(4 + i, ' ') + "def f():\n";
                return nested;
            }(),
        "258:260", "256");
    QTest::newRow("two parameters of one name")
        << QByteArray("def forward(x: \"f32[2]\", x: \"f32[2]\"):\n    return (x,)\n") << QByteArray("1:26")
        << QByteArray("'x' is defined twice");
    body("signs that no name has", "y = foo.f(\xf0\x9f\x98\x80)", "2:15", "'\xf0\x9f\x98\x80' cannot be read");
    body("bytes that are not text", "y = foo.f(\xff\x1b)", "2:15", "'\\xff' cannot be read");
    body("division", "y: \"f32[s0//0]\" = foo.f(x)", "2:8", "division by zero");
}

void TextTest::refuses() {
    QFETCH(QByteArray, given);
    QFETCH(QByteArray, where);
    QFETCH(QByteArray, what);
    auto module = parseText(given.toStdString());
    QVERIFY(!module.has_value());
    QCOMPARE(QByteArray::fromStdString(module.error().where), where);
    QVERIFY2(QByteArray::fromStdString(module.error().message).contains(what), module.error().text().c_str());
}

/// Tensors of dtypes without elements here are shown as they are written, and the file is read.
void TextTest::foreignDtypes() {
    const auto module = parseText(
        "def forward(x: \"bc32[3]\", b: \"b8x1[2]\", c: \"b2x4[2]\", d: \"b4x2[2]\", e: \"b16x1[2]\", f: \"b16[2]\"):\n"
        "    y: \"bc32[3]\" = aten.alias.default(x)\n"
        "    z: \"bc32[2]\" = aten._to_copy.default(f, dtype = torch.bcomplex32)\n    return (y, b, c, d, e, z)\n");
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    QCOMPARE((*module)->origin.remarks.size(), size_t{7});
    QVERIFY((*module)->origin.remarks[0].find("the type \"bc32[3]\" is not known") != std::string::npos);
    const Node& f = *(*module)->graph().placeholders()[5];
    QCOMPARE(f.tensor().dtype, DType::Bits16);
    const std::string text = printText(**module).text;
    for (const char* line : {"y: \"bc32[3]\" = aten.alias.default(x)", "f: \"b16x1[2]\"",
                             "z: \"bc32[2]\" = unsupported.aten._to_copy.default(f, dtype = torch.bcomplex32)"})
        QVERIFY2(text.find(line) != std::string::npos, text.c_str());
}

void TextTest::remarks() {
    auto module = parseText(
        "class G(torch.nn.Module):\n    def forward(self, x: \"DTensor(f32[2][1]cpu, S(0))\"):\n"
        "        y: \"f32[3]\" = torch.ops.aten.mul.Tensor(x, x);  x = None\n        z: \"f32[2]\" = foo.f(x)\n        return (y, z)\n");
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    const auto& remarks = (*module)->origin.remarks;
    QCOMPARE(remarks.size(), size_t{3});
    QVERIFY(remarks[0].find("2:26: 'x' is a DTensor") == 0);
    QVERIFY(remarks[1].find("kept as written") != std::string::npos);
    QVERIFY(remarks[2].find("used after it was freed") != std::string::npos);
}

void TextTest::roles() {
    const std::string text =
        "def forward(\n    w: \"f32[2]\",  # ParamAOTInput(target='fc.weight')\n    b: \"f32[2]\",  # BufferAOTInput(target='n', persistent=False)\n"
        "    x: \"f32[2]\",  # PlainAOTInput(idx=0)\n    t: \"f32[2]\",  # TangentAOTInput(output=PlainAOTOutput(idx=0))\n):\n"
        "    return (\n        b,  # InputMutationAOTOutput(mutated_input=BufferAOTInput(target='n', persistent=False))\n        x,  # PlainAOTOutput(idx=0)\n"
        "        w,  # GradAOTOutput(grad_of=ParamAOTInput(target='fc.weight'))\n        t,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))\n    )\n";
    auto module = parseText(text);
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    QCOMPARE((*module)->inputs[0].kind, InputSpec::Kind::Parameter);
    QCOMPARE((*module)->inputs[0].target, std::string("fc.weight"));
    QVERIFY(!(*module)->inputs[1].persistent);
    QCOMPARE((*module)->inputs[3].kind, InputSpec::Kind::Tangent);
    QCOMPARE((*module)->outputs[0].kind, OutputSpec::Kind::BufferMutation);
    QCOMPARE((*module)->outputs[2].kind, OutputSpec::Kind::Gradient);
    QCOMPARE((*module)->outputs[3].target, std::string("x"));
    QCOMPARE(printText(**module).text, text);
}

void TextTest::resultsAreKnownFromTheirItems() {
    auto module =
        parseText("def forward(x: \"f32[2]\"):\n    p = foo.pair(x)\n    a: \"f32[3]\" = p[1]\n    return (a,)\n");
    QVERIFY(module.has_value());
    const TupleType* items = (*module)->graph().findByName("p")->type().tuple();
    QVERIFY(items != nullptr);
    QCOMPARE(items->size(), size_t{2});
    QVERIFY((*items)[0].isOpaque());
    QCOMPARE((*items)[1].text(), std::string("f32[3]"));
}

void TextTest::lineNodes() {
    auto module = parseText(
        "def forward(x: \"f32[2]\"):\n    # File: a.py:1 in f\n    y: \"f32[2]\" = foo.f(x)\n    return (y,)\n");
    QVERIFY(module.has_value());
    const PrintedText printed = printText(**module);
    QCOMPARE(printed.lineNodes.size(), size_t{4});
    QCOMPARE(printed.lineNodes[2], (*module)->graph().findByName("y")->id());
    QCOMPARE(printed.lineNodes[3], (*module)->graph().outputNode()->id());
    QCOMPARE(printed.lineNodes[1], NodeId::None);
    QVERIFY(printText(**module, {.comments = false}).text.find("File") == std::string::npos);
}

/// The runnable form is FX text as well: its forward has the same nodes and types.
void TextTest::runnableReadsBack() {
    const char* text =
        "# symbol s0: lower=2, hint=4\ndef forward(x: \"f32[s0, 2]\", p: \"b8[]\"):\n    c: \"f32[2]\" = self.enc.scale\n    y: \"f32[s0, 2]\" = aten.mul.Tensor(x, c)\n"
        "    r = higher_order.cond(p, true_graph_0, true_graph_0, (y,))\n    z: \"f32[s0, 2]\" = r[0]\n    return (z,)\n\n"
        "def true_graph_0(a: \"f32[s0, 2]\"):\n    return (a,)\n";
    auto module = parseText(text);
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    const std::string runnable = printText(**module, {.runnable = true}).text;
    QVERIFY(runnable.find("s0 = 4") != std::string::npos);
    auto again = parseText(runnable);
    QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
    const std::string back = printText(**again).text;
    QCOMPARE("# symbol s0: lower=2, hint=4\n" + back, std::string(text));
}

/// Packed weights get a plain shape from their readers, child modules their constructor; what has no type is refused.
void TextTest::runnableMakesWhatIsMissing() {
    PrintOptions runnable;
    runnable.runnable = true;
    auto linear = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x: \"f32[8, 16]\"):\n        p = self.p\n        w = self.w\n"
        "        y: \"f32[8, 4]\" = torch.ops.mkl._mkl_linear(x, p, w, None, 8)\n        return (y,)\n");
    QVERIFY(linear.has_value() && checkRunnable(**linear));
    const std::string text = printText(**linear, runnable).text;
    QVERIFY2(
        text.find(
            "put(self, 'p', torch.ops.mkl._mkl_reorder_linear_weight(make([4, 16], [16, 1], torch.float32), 8))\n") !=
            std::string::npos,
        text.c_str());
    QVERIFY2(text.find("put(self, 'w', make([4, 16], [16, 1], torch.float32))\n") != std::string::npos, text.c_str());

    auto convolution = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x: \"f32[2, 6, 9, 8]\"):\n        w = self.w\n"
        "        y: \"f32[2, 4, 5, 4]\" = torch.ops.mkldnn._convolution_pointwise.default(x, w, None, [1, 0], [2, 2], [1, 1], 2, 'none', [], '')\n        return (y,)\n");
    QVERIFY(convolution.has_value() && checkRunnable(**convolution));
    const std::string shapes = printText(**convolution, runnable).text;
    QVERIFY2(shapes.find("put(self, 'w', make([4, 3, 3, 2], ") != std::string::npos, shapes.c_str());

    // The type of a packed weight is not trusted: a transposed convolution has its channels the other way round.
    auto transposed = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x: \"f32[1, 64, 8, 8]\"):\n        w: \"f32[32, 64, 2, 2][1, 0, 0, 0]cpu\" = self.w\n"
        "        y: \"f32[1, 32, 16, 16][8192, 1, 512, 32]cpu\" = torch.ops.mkldnn._convolution_transpose_pointwise.default(x, w, None, [0, 0], [0, 0], [2, 2], [1, 1], 1, 'none', [], '')\n        return (y,)\n");
    QVERIFY(transposed.has_value() && checkRunnable(**transposed));
    const std::string channels = printText(**transposed, runnable).text;
    QVERIFY2(channels.find("put(self, 'w', make([64, 32, 2, 2], ") != std::string::npos, channels.c_str());
    QCOMPARE((*transposed)->origin.remarks.size(), size_t{0});

    // Quantized weights: PyTorch's kernels take them packed, and only so.
    auto quantized = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x: \"u8[2, 3, 8, 8]\", y: \"u8[5, 6]\", s: \"f32[4]\"):\n"
        "        w = self.w\n"
        "        c: \"f32[2, 4, 8, 8][256, 1, 32, 4]cpu\" = torch.ops.onednn.qconv_pointwise.default(x, 0.05, 10, w, s, None, None, [1, 1], [1, 1], [1, 1], 1, 1.0, 0, torch.float32, 'none', [], '')\n"
        "        v: \"i8[6, 4][1, 0]cpu\" = self.v\n"
        "        m: \"f32[5, 4]\" = torch.ops.onednn.qlinear_pointwise.default(y, 0.05, 10, v, s, None, None, 1.0, 0, torch.float32, 'none', [], '')\n"
        "        return (c, m)\n");
    QVERIFY(quantized.has_value() && checkRunnable(**quantized));
    const std::string integers = printText(**quantized, runnable).text;
    QVERIFY2(integers.find("put(self, 'w', torch.ops.onednn.qconv_prepack(make([4, 3, 3, 3], ") != std::string::npos,
             integers.c_str());
    QVERIFY2(
        integers.find("put(self, 'v', torch.ops.onednn.qlinear_prepack(make([6, 4], [1, 6], ") != std::string::npos,
        integers.c_str());

    // Without the input's type nothing follows for the weight: the call opens as it is annotated.
    auto unknown = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x):\n        w = self.w\n"
        "        y: \"f32[1, 4, 5, 5]\" = torch.ops.mkldnn._convolution_pointwise.default(x, w, None, [0, 0], [1, 1], [1, 1], 1, 'none', [], '')\n        return (y,)\n");
    QVERIFY2(unknown.has_value(), unknown ? "" : unknown.error().text().c_str());
    QCOMPARE((*unknown)->graph().findByName("y")->type().text(), std::string("f32[1, 4, 5, 5]"));

    auto layers = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        a = getattr(self, \"0\")(x)\n        b = self.c(a)\n        return b\n");
    QVERIFY(layers.has_value());
    const auto setModuleType = [&](const char* node, const char* type) {
        Provenance provenance;
        provenance.moduleType = std::make_shared<const std::string>(type);
        (*layers)->graph().setProvenance(*(*layers)->graph().findByName(node), std::move(provenance));
    };
    setModuleType("a", "Linear(in_features=2, out_features=2, bias=True)");
    // A constructor that could be anything else never becomes part of a program.
    setModuleType("b", "Linear(in_features=print(1))");
    const std::string made = printText(**layers, runnable).text;
    QVERIFY2(made.find("self.add_module('0', torch.nn.Linear(in_features=2, out_features=2, bias=True))\n") !=
                 std::string::npos,
             made.c_str());
    QVERIFY2(made.find("print(1)") == std::string::npos, made.c_str());

    auto untyped = parseText(
        "class M(torch.nn.Module):\n    def forward(self, x):\n        y = torch.ops.foo.bar(x)\n        return (y,)\n");
    QVERIFY(untyped.has_value());
    const auto refused = checkRunnable(**untyped);
    QVERIFY(!refused && refused.error().message == "input 'x' has no type in the file, so no value can be made for it");
    const auto mangled =
        parseText("def forward(x: \"f32[2]\"):\n    y = torch__inductor_fx_passes_fn(x)\n    return (y,)\n");
    QVERIFY(mangled.has_value());
    const auto unnamed = checkRunnable(**mangled);
    QVERIFY(!unnamed && unnamed.error().message ==
                            "'torch__inductor_fx_passes_fn' is a function inside PyTorch that the file only names");
}

/// Where nothing says how much a call finds in data, it gets a symbol that the text does not have.
void TextTest::namesFoundSizes() {
    const auto module = parseText(R"(
def forward(x: "f32[6, 3]", i: "i64[6]", b: "b8[6]"):
    rows = torch.ops.aten.index.Tensor(x, [b])
    size = torch.ops.aten.sym_size.int(rows, 0)
    some = size >= 0
    mask = torch.ops.aten.gt.Scalar(x, 0)
    every = torch.ops.aten.index.Tensor(x, [mask])
    at = torch.ops.aten.nonzero.default(x)
    picked = torch.ops.aten.masked_select.default(x, mask)
    first = torch.ops.aten.select.int(i, 0, 0)
    number = torch.ops.aten._local_scalar_dense.default(first)
    any = torch.ops.aten.any.default(b)
    yes = torch.ops.aten.item.default(any)
    sum = torch.ops.aten.sum.default(x)
    real = torch.ops.aten.item.default(sum)
    named: "f32[u0, u2]" = foo.f(x)
    return (rows,)
)");
    QVERIFY2(module, module ? "" : module.error().text().c_str());
    QStringList types;
    for (const Node& node : (*module)->graph().nodes())
        if (node.isCall()) types << QString::fromStdString(node.name() + " " + node.type().text());
    QCOMPARE(
        types.join("; "),
        QString("rows f32[u1, 3]; size Sym(u1); some Sym(u1 >= 0); mask b8[6, 3]; every f32[u3]; at i64[u4, 2][1, u4]; "
                "picked f32[u5]; first i64[]; number Sym(u6); any b8[]; yes Sym(u7 == 1); sum f32[]; "
                "real Sym(zuf0); named f32[u0, u2]"));
}

void TextTest::cases_data() {
    QTest::addColumn<QString>("path");
    QDirIterator files(testing::testFile("cases/text"), {"*.txt"}, QDir::Files);
    while (files.hasNext()) {
        const QString path = files.next();
        if (!path.endsWith(".expected.txt")) QTest::newRow(qPrintable(QFileInfo(path).fileName())) << path;
    }
}

void TextTest::cases() {
    QFETCH(QString, path);
    auto module = parseText(testing::contentOf(path).toStdString());
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    const QByteArray printed = QByteArray::fromStdString(printText(**module).text);
    QString expected = path;
    expected.replace(".txt", ".expected.txt");
    if (testing::blesses()) {
        QFile file(expected);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(printed);
    }
    QCOMPARE(printed, testing::contentOf(expected));
    auto valid = verify(**module);
    QVERIFY2(valid.has_value(), valid ? "" : valid.error().text().c_str());
    QCOMPARE(QString::fromStdString(roundTripProblem(**module)), QString());
}

/// Cut, flipped and repeated bytes: an error or a module, which then prints and parses back to itself.
void TextTest::damagedTextsNeverCrash() {
    const quint32 seed = qEnvironmentVariableIntValue("CUTAWAY_SEED")
                             ? static_cast<quint32>(qEnvironmentVariableIntValue("CUTAWAY_SEED"))
                             : 20260101u;
    qInfo("seed %u", seed);
    std::mt19937 random(seed);
    QDirIterator files(testing::testFile("cases/text"), {"*.txt"}, QDir::Files);
    std::vector<std::string> texts;
    QStringList paths;
    while (files.hasNext()) paths << files.next();
    paths.sort();
    for (const QString& path : paths) texts.push_back(testing::contentOf(path).toStdString());
    QVERIFY(!texts.empty());
    static constexpr std::string_view kBytes = "()[]{}'\"\\,:;=.#\n -+*/%<>&|^~@!0e9jxs_\xff\t$";
    for (int round = 0; round < 4000; ++round) {
        std::string text = texts[random() % texts.size()];
        for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
            const size_t at = random() % text.size();
            switch (random() % 4) {
                case 0: text[at] = kBytes[random() % kBytes.size()]; break;
                case 1: text.insert(at, 1, kBytes[random() % kBytes.size()]); break;
                case 2: text.erase(at, 1 + random() % 8); break;
                default: text.insert(at, text.substr(random() % text.size(), random() % 30));
            }
            if (text.empty()) text = " ";
        }
        if (random() % 8 == 0) text.resize(random() % text.size() + 1);
        try {
            auto module = parseText(text);
            if (module) QCOMPARE(QString::fromStdString(roundTripProblem(**module)), QString());
        } catch (const InternalError& error) {
            QFAIL((std::string(error.what()) + "\n" + text).c_str());
        }
        if (QTest::currentTestFailed()) {
            qInfo("round %d:\n%s", round, text.c_str());
            return;
        }
    }
}

CUTAWAY_SUITE(TextTest)
#include "text_test.moc"
