// Functionalization against PyTorch (spec: autograd-and-partitioner A.7): recorded in-place programs keep their results
// and what they leave in their inputs, and mutate nothing but inputs, at the end.
#include <QFile>
#include <QtTest>

#include "engine/autograd/functionalize.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"

using namespace cutaway;
using namespace cutaway::testing;

class FunctionalizeTest : public QObject {
    Q_OBJECT

  private slots:
    void agreesWithPyTorch_data();
    void agreesWithPyTorch();
    void rewrites_data();
    void rewrites();
    void refuses_data();
    void refuses();
    void anyFuelGivesAGraph();
};

namespace {

/// "[2, 3]: 1 2 3 4 5 6"
QString shown(const Tensor& tensor) {
    QStringList sizes, numbers;
    for (int64_t size : tensor.sizes()) sizes << QString::number(size);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        char text[32];
        std::snprintf(text, sizeof text, "%.9g", toDouble(tensor.item(i)));  // Qt drops the sign of -0
        numbers << text;
    }
    return "[" + sizes.join(", ") + "]: " + numbers.join(" ");
}
Tensor parsed(const QString& line) {
    Dims sizes;
    for (const QString& size : line.mid(1, line.indexOf(']') - 1).split(", ", Qt::SkipEmptyParts)) sizes.push_back(size.toLongLong());
    Tensor tensor = Tensor::empty(DType::F32, sizes);
    const QStringList numbers = line.mid(line.indexOf(':') + 1).split(' ', Qt::SkipEmptyParts);
    for (qsizetype i = 0; i < numbers.size(); ++i) tensor.as<float>()[i] = numbers[i].toFloat();
    return tensor;
}

struct Functionalized {
    std::unique_ptr<Module> module;
    QString error;
};
Functionalized functionalized(const std::string& text, std::optional<int64_t> fuel = std::nullopt) {
    auto module = parseText(text);
    if (!module) return {nullptr, failureOf(module)};
    const CompileOptions options;
    Rewriter rewriter("functionalize", options, fuel);
    const auto changed = functionalize(**module, rewriter);
    if (!changed) return {nullptr, failureOf(changed)};
    return {std::move(*module), {}};
}

}  // namespace

void FunctionalizeTest::agreesWithPyTorch_data() {
    QTest::addColumn<QString>("program");
    QTest::addColumn<QStringList>("inputs");
    QTest::addColumn<QStringList>("left");
    QTest::addColumn<QStringList>("results");
    QTest::addColumn<int>("copies");
    QFile file(testFile("cases/functionalize.txt"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    for (const QString& part : QString::fromUtf8(file.readAll()).split("# case: ").mid(1)) {
        QStringList inputs, left, results, program;
        int copies = 0;
        const QStringList lines = part.split('\n');
        for (const QString& line : lines.mid(1)) {
            if (line.startsWith("# input ")) inputs << line.mid(8);
            else if (line.startsWith("# left ")) left << line.mid(7);
            else if (line.startsWith("# result ")) results << line.mid(9);
            else if (line.startsWith("# copies: ")) copies = line.mid(10).toInt();
            else program << line;
        }
        QTest::newRow(qPrintable(lines[0])) << program.join('\n') << inputs << left << results << copies;
    }
}
void FunctionalizeTest::agreesWithPyTorch() {
    QFETCH(QString, program);
    QFETCH(QStringList, inputs);
    QFETCH(QStringList, left);
    QFETCH(QStringList, results);
    QFETCH(int, copies);
    const Functionalized done = functionalized(program.toStdString());
    QCOMPARE(done.error, QString());
    const Module& module = *done.module;
    QCOMPARE(failureOf(verify(module, {.functional = true, .types = true})), QString());

    std::vector<Tensor> given;
    for (const QString& line : inputs) given.push_back(parsed(line));
    // What is copied into an input at the end is what PyTorch leaves there; other inputs stay.
    QStringList after = inputs;
    int copied = 0;
    InterpretOptions options;
    options.observe = [&](const Node& node, const TensorList& values) {
        if (!node.isCall("aten.copy_.default")) return;
        ++copied;
        const auto placeholders = module.graph().placeholders();
        after[std::find(placeholders.begin(), placeholders.end(), node.arg(0).node()) - placeholders.begin()] = shown(values.at(0));
    };
    const auto outputs = interpret(module, given, options);
    QCOMPARE(failureOf(outputs), QString());
    QStringList shownOutputs;
    for (const Tensor& output : *outputs) shownOutputs << shown(output);
    QCOMPARE(shownOutputs, results);
    QCOMPARE(after, left);
    QCOMPARE(copied, copies);

    // The program as it stands gives the same.
    const auto mutating = parseText(program.toStdString());
    const auto direct = interpret(**mutating, given);
    QCOMPARE(failureOf(direct), QString());
    QStringList shownDirect;
    for (const Tensor& output : *direct) shownDirect << shown(output);
    QCOMPARE(shownDirect, results);
}

void FunctionalizeTest::rewrites_data() {
    QTest::addColumn<QByteArray>("before");
    QTest::addColumn<QByteArray>("after");
    auto row = [](const char* name, const char* before, const char* after) { QTest::newRow(name) << QByteArray(before) << QByteArray(after); };
    row("input", "def forward(x: \"f32[3]\"):\n    a: \"f32[3]\" = aten.add_.Tensor(x, 1)\n    return (a,)\n",
        "def forward(x: \"f32[3]\"):\n    add: \"f32[3]\" = aten.add.Tensor(x, 1)\n    copy_: \"f32[3]\" = aten.copy_.default(x, add)\n    return (copy_,)\n");
    row("value", "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.neg.default(x)\n    a: \"f32[3]\" = aten.mul_.Tensor(y, x)\n    return (y,)\n",
        "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.neg.default(x)\n    mul: \"f32[3]\" = aten.mul.Tensor(y, x)\n    return (mul,)\n");
    row("metadata only", "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.clone.default(x)\n    d: \"f32[3]\" = aten.detach_.default(y)\n    return (d,)\n",
        "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.clone.default(x)\n    detach: \"f32[3]\" = aten.detach.default(y)\n    return (detach,)\n");
}
void FunctionalizeTest::rewrites() {
    QFETCH(QByteArray, before);
    QFETCH(QByteArray, after);
    const Functionalized done = functionalized(before.toStdString());
    QCOMPARE(done.error, QString());
    QCOMPARE(QByteArray::fromStdString(printText(*done.module).text), after);
}

void FunctionalizeTest::refuses_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("failure");
    QTest::newRow("unknown") << QByteArray("def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = mylib.thing_.default(x)\n    return (y,)\n")
                             << "y: mylib.thing_.default mutates and has no functional form here remove the op, or export the model with run_decompositions()";
    QTest::newRow("expanded") << QByteArray("def forward(x: \"f32[1]\"):\n    e: \"f32[3]\" = aten.expand.default(x, [3])\n    y: \"f32[3]\" = aten.add_.Tensor(e, 1)\n    return (y,)\n")
                              << "y: writes through aten.expand, whose elements overlap or have no inverse view clone the view before it is written to";
}
void FunctionalizeTest::refuses() {
    QFETCH(QByteArray, text);
    QFETCH(QString, failure);
    QCOMPARE(functionalized(text.toStdString()).error, failure);
}

/// The pass may stop after any rewrite; what it leaves is still a graph.
void FunctionalizeTest::anyFuelGivesAGraph() {
    const std::string text = "def forward(x: \"f32[4]\"):\n    v: \"f32[2]\" = aten.slice.Tensor(x, 0, 0, 2)\n    a: \"f32[2]\" = aten.add_.Tensor(v, 1)\n"
                             "    b: \"f32[4]\" = aten.mul_.Tensor(x, 2)\n    c: \"f32[2]\" = aten.neg_.default(v)\n    return (v, x)\n";
    for (int64_t fuel = 0; fuel <= 3; ++fuel) {
        const Functionalized done = functionalized(text, fuel);
        QCOMPARE(done.error, QString());
        QCOMPARE(failureOf(verify(*done.module)), QString());
        const auto results = interpret(*done.module, {parsed("[4]: 1 2 3 4")});
        QCOMPARE(failureOf(results), QString());
        QCOMPARE(shown(results->at(0)) + " " + shown(results->at(1)), QString("[2]: -4 -6 [4]: -4 -6 6 8"));
    }
}

QTEST_GUILESS_MAIN(FunctionalizeTest)
#include "functionalize_test.moc"
