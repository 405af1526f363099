// Functionalization against PyTorch (spec: autograd-and-partitioner A.7): recorded in-place programs keep their results
// and what they leave in their inputs, and mutate nothing but inputs, at the end.
#include "engine/autograd/functionalize.h"

#include <QFile>
#include <QtTest>

#include "engine/autograd/expand.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/rewrite/dead_code.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/bytes.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

class FunctionalizeTest : public QObject {
    Q_OBJECT

  private slots:
    void agreesWithPyTorch_data();
    void agreesWithPyTorch();
    void rewrites_data();
    void rewrites();
    void drawsInPlace_data();
    void drawsInPlace();
    void refuses_data();
    void refuses();
    void anyFuelGivesAGraph();
    void randomPrograms_data();
    void randomPrograms();
    void manyViews();
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
Tensor parsedTensor(const QString& line) {
    Dims sizes;
    for (const QString& size : line.mid(1, line.indexOf(']') - 1).split(", ", Qt::SkipEmptyParts))
        sizes.push_back(size.toLongLong());
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
    const CompileRequest options;
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
    for (const QString& line : inputs) given.push_back(parsedTensor(line));
    // What is copied into an input at the end is what PyTorch leaves there; other inputs stay.
    QStringList after = inputs;
    int copied = 0;
    InterpretOptions options;
    options.observe = [&](const Node& node, const TensorList& values) {
        if (!node.isCall("aten.copy_.default")) return;
        ++copied;
        const auto placeholders = module.graph().placeholders();
        after[std::find(placeholders.begin(), placeholders.end(), node.arg(0).node()) - placeholders.begin()] =
            shown(values.at(0));
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
    auto row = [](const char* name, const char* before, const char* after) {
        QTest::newRow(name) << QByteArray(before) << QByteArray(after);
    };
    row("input", "def forward(x: \"f32[3]\"):\n    a: \"f32[3]\" = aten.add_.Tensor(x, 1)\n    return (a,)\n",
        "def forward(x: \"f32[3]\"):\n    add: \"f32[3]\" = aten.add.Tensor(x, 1)\n    copy_: \"f32[3]\" = aten.copy_.default(x, add)\n    return (copy_,)\n");
    row("value",
        "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.neg.default(x)\n    a: \"f32[3]\" = aten.mul_.Tensor(y, x)\n    return (y,)\n",
        "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.neg.default(x)\n    mul: \"f32[3]\" = aten.mul.Tensor(y, x)\n    return (mul,)\n");
    row("metadata only",
        "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.clone.default(x)\n    d: \"f32[3]\" = aten.detach_.default(y)\n    return (d,)\n",
        "def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = aten.clone.default(x)\n    detach: \"f32[3]\" = aten.detach.default(y)\n    return (detach,)\n");
}
void FunctionalizeTest::rewrites() {
    QFETCH(QByteArray, before);
    QFETCH(QByteArray, after);
    const Functionalized done = functionalized(before.toStdString());
    QCOMPARE(done.error, QString());
    QCOMPARE(QByteArray::fromStdString(printText(*done.module).text), after);
}

/// The operators that PyTorch's compiler makes of in-place random calls, traced with its own decompositions (CPU).
void FunctionalizeTest::drawsInPlace_data() {
    QTest::addColumn<QString>("call");
    QTest::addColumn<QString>("ops");
    const auto row = [](const char* call, const char* ops) { QTest::newRow(call) << call << ops; };
    row("aten.uniform_.default(y, -1.0, 2.0)",
        "aten.rand.default aten.mul.Tensor aten.add.Tensor aten.as_strided.default");
    row("aten.normal_.default(y, 1.0, 2.0)",
        "aten.randn.default aten.mul.Tensor aten.add.Tensor aten.mul.Tensor aten.add.Tensor");
    row("aten.random_.default(y)", "aten.random.default");
    row("aten.random_.to(y, 7)", "aten.random.to");
    row("aten.random_.from(y, 2, 7)", "aten.random.from");
    row("aten.bernoulli_.Tensor(y, x)", "aten.bernoulli.Tensor");
    row("aten.bernoulli_.float(y, 0.3)", "aten.bernoulli.p");
    row("aten.dropout_.default(y, 0.5, True)",
        "aten.empty.memory_format aten.bernoulli.p aten.div.Scalar aten.mul.Tensor");
    row("aten.feature_dropout_.default(y, 0.5, True)",
        "aten.empty.memory_format aten.bernoulli.p aten.div.Scalar aten.mul.Tensor");
    row("aten.alpha_dropout_.default(y, 0.5, True)",
        "aten.empty.memory_format aten.bernoulli.p aten.add.Scalar aten.mul.Scalar aten.add.Scalar aten.mul.Scalar aten.mul.Tensor aten.add.Tensor");
    row("aten.rrelu_.default(y, 0.1, 0.3, True)",
        "aten.le.Scalar aten.rand.default aten.mul.Tensor aten.add.Tensor aten.as_strided.default aten.mul.Tensor aten.where.self");
    row("aten.dropout_.default(y, 0.5, False)", "");
}
void FunctionalizeTest::drawsInPlace() {
    QFETCH(QString, call);
    QFETCH(QString, ops);
    auto module = parseText(
        "def forward(x: \"f32[3, 4]\"):\n    y: \"f32[3, 4]\" = aten.add.Tensor(x, 0)\n    z: \"f32[3, 4]\" = " +
        call.toStdString() + "\n    return (y,)\n");
    QCOMPARE(failureOf(module), QString());
    const CompileRequest options;
    Rewriter rewriter("functionalize", options);
    for (Result<bool> (*pass)(Module&, Rewriter&) : {expandComposites, functionalize, decompose, eliminateDeadCode}) {
        const auto changed = pass(**module, rewriter);
        QCOMPARE(failureOf(changed), QString());
    }
    QStringList calls;
    for (const Node& node : (*module)->graph().nodes())
        if (node.isCall() && node.name() != "y") calls << QString::fromStdString(node.op().name());
    QCOMPARE(calls.join(' '), ops);
    QCOMPARE(failureOf(verify(**module)), QString());
    QCOMPARE(failureOf(interpret(**module, {Tensor::full(DType::F32, {3, 4}, 0.5)})), QString());
}

void FunctionalizeTest::refuses_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("failure");
    QTest::newRow("unknown")
        << QByteArray("def forward(x: \"f32[3]\"):\n    y: \"f32[3]\" = mylib.thing_.default(x)\n    return (y,)\n")
        << "y: mylib.thing_.default mutates and has no functional form here remove the op, or export the model with run_decompositions()";
    QTest::newRow("expanded")
        << QByteArray(
               "def forward(x: \"f32[1]\"):\n    e: \"f32[3]\" = aten.expand.default(x, [3])\n    y: \"f32[3]\" = aten.add_.Tensor(e, 1)\n    return (y,)\n")
        << "y: writes through aten.expand, whose elements overlap or have no inverse view clone the view before it is written to";
    // Also as the last call of the graph, where it looks like a copy that functionalization makes.
    QTest::newRow("copy into an expanded input")
        << QByteArray(
               "def forward(x: \"f32[2, 3][1, 0]\", y: \"f32[2, 3]\"):\n    z: \"f32[2, 3][1, 0]\" = "
               "aten.copy_.default(x, y)\n    return (z,)\n")
        << "z: aten.copy_.default: several elements of the tensor it is written to are one place in memory; clone it first";
}
void FunctionalizeTest::refuses() {
    QFETCH(QByteArray, text);
    QFETCH(QString, failure);
    QCOMPARE(functionalized(text.toStdString()).error, failure);
}

/// The pass may stop after any rewrite; what it leaves is still a graph.
void FunctionalizeTest::anyFuelGivesAGraph() {
    const std::string text =
        "def forward(x: \"f32[4]\"):\n    v: \"f32[2]\" = aten.slice.Tensor(x, 0, 0, 2)\n    a: \"f32[2]\" = aten.add_.Tensor(v, 1)\n"
        "    b: \"f32[4]\" = aten.mul_.Tensor(x, 2)\n    c: \"f32[2]\" = aten.neg_.default(v)\n    return (v, x)\n";
    for (int64_t fuel = 0; fuel <= 3; ++fuel) {
        const Functionalized done = functionalized(text, fuel);
        QCOMPARE(done.error, QString());
        QCOMPARE(failureOf(verify(*done.module)), QString());
        const auto results = interpret(*done.module, {parsedTensor("[4]: 1 2 3 4")});
        QCOMPARE(failureOf(results), QString());
        QCOMPARE(shown(results->at(0)) + " " + shown(results->at(1)), QString("[2]: -4 -6 [4]: -4 -6 6 8"));
    }
}

namespace {

/// Views of an input and of a value, views of views, writes through any of them, and reads in between.
class RandomProgram {
  public:
    explicit RandomProgram(uint64_t seed) : m_random(seed) {
        m_values = {{"x", {4, 6}}};
        line({4, 6}, "aten.exp.default(y)");
        for (int i = 0; i < static_cast<int>(4 + seed % 24); ++i) step();
        m_text += "    return (" + m_results.join(", ") + (m_results.isEmpty() ? "" : ", ") + "x)\n";
    }
    std::string text() const { return ("def forward(x: \"f32[4, 6]\", y: \"f32[4, 6]\"):\n" + m_text).toStdString(); }

  private:
    struct Variable {
        QString name;
        Dims sizes;
    };
    int64_t below(int64_t bound) { return static_cast<int64_t>(m_random.below(static_cast<uint64_t>(bound))); }
    QString line(Dims sizes, const QString& call) {
        const QString name = QString("v%1").arg(m_count++);
        m_text += "    " + name + " = " + call + "\n";
        if (!sizes.empty() || !call.contains("split")) m_values.push_back({name, std::move(sizes)});
        return name;
    }
    void step() {
        const Variable from = m_values[m_random.below(m_values.size())];
        const auto rank = static_cast<int64_t>(from.sizes.size());
        const int64_t dim = rank > 0 ? below(rank) : 0;
        Dims sizes = from.sizes;
        const auto at = static_cast<size_t>(dim);
        const auto with = [&](const QString& op, const QString& more) {
            return "aten." + op + "(" + from.name + more + ")";
        };
        switch (below(11)) {
            case 0:
                if (rank == 0) return;
                sizes.erase(sizes.begin() + dim);
                line(sizes, with("select.int", QString(", %1, %2").arg(dim).arg(below(from.sizes[at]))));
                return;
            case 1: {
                if (rank == 0 || from.sizes[at] < 2) return;
                const int64_t start = below(from.sizes[at] - 1);
                sizes[at] = from.sizes[at] - start;
                line(sizes, with("slice.Tensor", QString(", %1, %2, %3").arg(dim).arg(start).arg(from.sizes[at])));
                return;
            }
            case 2:
                if (rank < 2) return;
                std::swap(sizes[0], sizes[1]);
                line(sizes, with("transpose.int", ", 0, 1"));
                return;
            case 3:
                if (rank > 2) return;
                sizes.insert(sizes.begin(), 1);
                line(sizes, with("unsqueeze.default", ", 0"));
                return;
            case 4: {
                if (rank == 0 || from.sizes[at] % 2 != 0) return;
                sizes[at] /= 2;
                const QString tuple = QString("t%1").arg(m_count++);
                m_text +=
                    "    " + tuple + " = " + with("split.Tensor", QString(", %1, %2").arg(sizes[at]).arg(dim)) + "\n";
                for (int i = 0; i < 2; ++i) line(sizes, QString("%1[%2]").arg(tuple).arg(i));
                return;
            }
            case 5: line(sizes, with("detach.default", "")); return;
            case 6:
                m_text += QString("    v%1 = ").arg(m_count++) +
                          with("add_.Tensor", QString(", %1").arg(1 + below(5))) + "\n";
                return;
            case 7: line(sizes, with("mul_.Tensor", ", 0.5")); return;
            case 8: {
                const Variable other = m_values[m_random.below(m_values.size())];
                if (other.sizes == from.sizes) line(sizes, with("copy_.default", ", " + other.name));
                return;
            }
            default: m_results << line(sizes, with("neg.default", "")); return;
        }
    }

    Random m_random;
    std::vector<Variable> m_values;
    QStringList m_results;
    QString m_text;
    int m_count = 0;
};

}  // namespace

void FunctionalizeTest::randomPrograms_data() {
    QTest::addColumn<quint64>("seed");
    for (quint64 seed = 0; seed < 300; ++seed)
        QTest::addRow("seed %llu", static_cast<unsigned long long>(seed)) << seed;
}
/// Every number of rewrites leaves a program that gives what the mutating one gives.
void FunctionalizeTest::randomPrograms() {
    QFETCH(quint64, seed);
    const std::string text = RandomProgram(seed).text();
    auto program = parseText(text);
    QVERIFY2(program.has_value(), program ? "" : qPrintable(failureOf(program) + "\n" + QString::fromStdString(text)));
    const auto inputs = randomInputs(**program, seed);
    const auto expected = interpret(**program, *inputs);
    QVERIFY2(expected.has_value(),
             expected ? "" : qPrintable(failureOf(expected) + "\n" + QString::fromStdString(text)));
    for (const std::optional<int64_t> fuel :
         {std::optional<int64_t>(), std::optional<int64_t>(1), std::optional<int64_t>(3)}) {
        const Functionalized done = functionalized(text, fuel);
        QVERIFY2(done.error.isEmpty(), qPrintable(done.error + "\n" + QString::fromStdString(text)));
        QCOMPARE(failureOf(verify(*done.module, {.functional = !fuel, .types = true})), QString());
        const auto results = interpret(*done.module, *inputs);
        const QString shownProgram = QString::fromStdString(text + printText(*done.module, {.comments = false}).text);
        QVERIFY2(results.has_value(), results ? "" : qPrintable(failureOf(results) + "\n" + shownProgram));
        for (size_t i = 0; i < expected->size(); ++i)
            QVERIFY2(shown((*results)[i]) == shown((*expected)[i]),
                     qPrintable(QString("result %1, fuel %2\n").arg(i).arg(fuel.value_or(-1)) + shownProgram));
    }
}

/// Views are derived again where they are read, not wherever one of them is written.
void FunctionalizeTest::manyViews() {
    const int count = 200;
    QString text = QString("def forward(x: \"f32[%1, 2]\"):\n").arg(count);
    QStringList results;
    for (int i = 0; i < count; ++i) text += QString("    s%1 = aten.select.int(x, 0, %1)\n").arg(i);
    for (int i = 0; i < count; ++i) text += QString("    w%1 = aten.add_.Tensor(s%1, 1)\n").arg(i);
    for (int i = 0; i < count; ++i) {
        text += QString("    r%1 = aten.neg.default(s%1)\n").arg(i);
        results << QString("r%1").arg(i);
    }
    const Functionalized done = functionalized((text + "    return (" + results.join(", ") + ")\n").toStdString());
    QCOMPARE(done.error, QString());
    QVERIFY2(done.module->graph().size() < static_cast<size_t>(8 * count),
             qPrintable(QString::number(done.module->graph().size())));
}

CUTAWAY_SUITE(FunctionalizeTest)
#include "functionalize_test.moc"
