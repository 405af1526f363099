// The difference between a graph's text and what a plugin returned, as rewrites: how many, that each part of them
// leaves a graph that verifies, and that all of them give the text.
#include "engine/plugins/text_rewrites.h"

#include <QtTest>
#include <chrono>

#include "cutaway/guarded.h"
#include "engine/ir/verify.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kGraph = R"(def forward(x: "f32[4, 8]", y: "f32[4, 8]"):
    mul: "f32[4, 8]" = aten.mul.Tensor(x, y)
    add: "f32[4, 8]" = aten.add.Tensor(mul, y)
    relu: "f32[4, 8]" = aten.relu.default(add)
    mul_1: "f32[4, 8]" = aten.mul.Tensor(relu, y)
    add_1: "f32[4, 8]" = aten.add.Tensor(mul_1, x)
    sum_1: "f32[4]" = aten.sum.dim_IntList(add_1, [1])
    cat: "f32[8, 8]" = aten.cat.default([add_1, relu])
    return (sum_1, cat)
)";

QString edited(QString text, const QList<std::pair<QString, QString>>& edits) {
    for (const auto& [from, to] : edits) {
        if (!text.contains(from)) qFatal("the text has no %s", qPrintable(from));
        text.replace(from, to);
    }
    return text;
}

struct Made {
    std::unique_ptr<Module> module;
    int rewrites = 0;
    Error error;
    bool failed = false;
};
Made made(const QString& before, const QString& after, std::optional<int64_t> fuel, const CompileRequest& request) {
    Made out;
    out.module = std::move(*parseText(before.toStdString()));
    Rewriter rewriter("test", PassContext(request), fuel);
    const auto changed = rewriteByText(*out.module, pluginText(*out.module), after.toStdString(), rewriter, "test",
                                       "why", {{"add", "named", "because"}});
    out.rewrites = static_cast<int>(rewriter.done().size());
    out.failed = !changed;
    if (!changed) out.error = changed.error();
    return out;
}

}  // namespace

class TextRewritesTest : public QObject {
    Q_OBJECT

  private slots:
    void rewrites_data() {
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        QTest::addColumn<int>("count");
        const auto row = [](const char* name, int count, const QList<std::pair<QString, QString>>& edits) {
            QTest::newRow(name) << QString(kGraph) << edited(kGraph, edits) << count;
        };
        row("nothing", 0, {});
        row("blank lines and comments", 0, {{"    relu:", "\n    # here\n    relu:"}});
        row("written otherwise", 0, {{"aten.add.Tensor(mul, y)", "aten.add.Tensor(mul, y, alpha=1)"}});
        row("one call under its name", 1,
            {{"    mul: \"f32[4, 8]\" = aten.mul.Tensor(x, y)\n", ""},
             {"aten.add.Tensor(mul, y)", "aten.addcmul.default(y, x, y)"}});
        row("one call under another name", 1,
            {{"    mul: \"f32[4, 8]\" = aten.mul.Tensor(x, y)\n", ""},
             {"    add: \"f32[4, 8]\" = aten.add.Tensor(mul, y)",
              "    fused: \"f32[4, 8]\" = aten.addcmul.default(y, x, y)"},
             {"relu.default(add)", "relu.default(fused)"}});
        row("two that do not depend on each other", 2,
            {{"    mul: \"f32[4, 8]\" = aten.mul.Tensor(x, y)\n", ""},
             {"aten.add.Tensor(mul, y)", "aten.addcmul.default(y, x, y)"},
             {"    mul_1: \"f32[4, 8]\" = aten.mul.Tensor(relu, y)\n", ""},
             {"aten.add.Tensor(mul_1, x)", "aten.addcmul.default(x, relu, y)"}});
        row("a value without readers", 1, {{"    relu:", "    neg: \"f32[4, 8]\" = aten.neg.default(mul)\n    relu:"}});
        row("a reader of another value", 1, {{"aten.relu.default(add)", "aten.relu.default(mul)"}});
        row("one of two readings", 1, {{"aten.mul.Tensor(x, y)", "aten.mul.Tensor(y, y)"}});
        row("an item of a list", 1, {{"[add_1, relu]", "[relu, relu]"}});
        row("another literal", 1, {{"aten.add.Tensor(mul, y)", "aten.add.Tensor(mul, y, alpha = 2)"}});
        row("another operator", 1, {{"aten.relu.default(add)", "aten.tanh.default(add)"}});
        row("another value is returned", 1, {{"cat.default([add_1, relu])", "cat.default([relu, add_1])"}});
        row("the output reads another", 1,
            {{"    return (sum_1, cat)",
              "    sum_2: \"f32[4]\" = aten.sum.dim_IntList(relu, [1])\n    return (sum_2, cat)"}});
        row("another order", 1,
            {{"    sum_1: \"f32[4]\" = aten.sum.dim_IntList(add_1, [1])\n", ""},
             {"    return", "    sum_1: \"f32[4]\" = aten.sum.dim_IntList(add_1, [1])\n    return"}});
        row("a chain in place of a call", 1,
            {{"    relu: \"f32[4, 8]\" = aten.relu.default(add)",
              "    a: \"f32[4, 8]\" = aten.neg.default(add)\n    b: \"f32[4, 8]\" = aten.neg.default(a)\n"
              "    relu: \"f32[4, 8]\" = aten.tanh.default(b)"}});
        row("without types", 1,
            {{"    relu: \"f32[4, 8]\" = aten.relu.default(add)", "    relu = aten.tanh.default(add)"}});
        row("another dtype between", 1,
            {{"    mul_1: \"f32[4, 8]\" = aten.mul.Tensor(relu, y)",
              "    half: \"f16[4, 8]\" = aten._to_copy.default(relu, dtype = torch.float16)\n"
              "    mul_1: \"f32[4, 8]\" = aten.mul.Tensor(half, y)"}});
        row("a layout that its readers see", 1,
            {{"    relu: \"f32[4, 8]\" = aten.relu.default(add)",
              "    p: \"f32[8, 4][1, 8]\" = aten.permute.default(add, [1, 0])\n"
              "    c: \"f32[8, 4]\" = aten.clone.default(p, memory_format = torch.contiguous_format)\n"
              "    relu: \"f32[4, 8][1, 4]\" = aten.permute.default(c, [1, 0])"}});
    }
    /// Whatever part of the rewrites is made, the graph verifies; all of them give the text's meaning.
    void rewrites() {
        QFETCH(QString, before);
        QFETCH(QString, after);
        QFETCH(int, count);
        const CompileRequest request;
        const Made all = made(before, after, {}, request);
        QVERIFY2(!all.failed, all.error.text().c_str());
        QCOMPARE(all.rewrites, count);
        const auto wanted = parseText(after.toStdString());
        QVERIFY(wanted.has_value());
        QCOMPARE(QString::fromStdString(pluginText(*all.module)), QString::fromStdString(pluginText(**wanted)));
        for (int fuel = 0; fuel <= count; ++fuel) {
            const Made part = made(before, after, fuel, request);
            QVERIFY2(!part.failed, part.error.text().c_str());
            QCOMPARE(part.rewrites, fuel);
            const auto sound = verify(*part.module, {.types = true});
            QVERIFY2(sound.has_value(), sound ? "" : sound.error().text().c_str());
        }
        // What is left of the text when it comes back is nothing.
        const QString last = QString::fromStdString(pluginText(*all.module));
        QCOMPARE(made(last, last, {}, request).rewrites, 0);
    }

    /// Calls that stay keep their ids; what is made says what it came from; a rewrite that the plugin names can be
    /// switched off alone.
    void identity() {
        const QString after = edited(kGraph, {{"    mul: \"f32[4, 8]\" = aten.mul.Tensor(x, y)\n", ""},
                                              {"aten.add.Tensor(mul, y)", "aten.addcmul.default(y, x, y)"},
                                              {"aten.cat.default([add_1, relu])", "aten.cat.default([relu, add_1])"}});
        CompileRequest request;
        const auto before = parseText(kGraph);
        const Made all = made(kGraph, after, {}, request);
        QCOMPARE(all.rewrites, 2);
        for (const char* name : {"relu", "mul_1", "add_1", "sum_1", "cat"})
            QCOMPARE(all.module->graph().findByName(name)->id(), (*before)->graph().findByName(name)->id());
        const std::vector<NodeId>& origin = all.module->graph().findByName("add")->provenance().origin;
        QCOMPARE(static_cast<int>(origin.size()), 2);
        request.disabledPasses = {"test/named"};
        const Made rest = made(kGraph, after, {}, request);
        QCOMPARE(rest.rewrites, 1);
        QVERIFY(rest.module->graph().findByName("mul") != nullptr);
    }

    /// Over 3000 nodes: text, difference and rewrites, beside copying the graph.
    void cost() {
        QString before = "def forward(x: \"f32[4, 8]\", y: \"f32[4, 8]\"):\n", after = before, last = "x";
        for (int i = 0; i < 1500; ++i) {
            const QString next = "v" + QString::number(i);
            before +=
                QString(
                    "    m%1: \"f32[4, 8]\" = aten.mul.Tensor(%2, y)\n    %3: \"f32[4, 8]\" = aten.add.Tensor(m%1, y)\n")
                    .arg(i)
                    .arg(last, next);
            if (i % 2 == 0)
                after += QString("    %2: \"f32[4, 8]\" = aten.addcmul.default(y, %1, y)\n").arg(last, next);
            else
                after +=
                    QString(
                        "    m%1: \"f32[4, 8]\" = aten.mul.Tensor(%2, y)\n    %3: \"f32[4, 8]\" = aten.add.Tensor(m%1, y)\n")
                        .arg(i)
                        .arg(last, next);
            last = next;
        }
        for (QString* text : {&before, &after}) *text += "    return (" + last + ",)\n";
        const auto parsed = parseText(before.toStdString());
        const CompileRequest request;
        double text = 1e9, rewrites = 1e9;
        for (int i = 0; i < 15; ++i) {
            Module copy(**parsed);
            Rewriter rewriter("test", PassContext(request));
            const auto start = std::chrono::steady_clock::now();
            const std::string printed = pluginText(copy);
            const auto middle = std::chrono::steady_clock::now();
            QVERIFY(rewriteByText(copy, printed, after.toStdString(), rewriter, "test", "why", {}).has_value());
            const auto end = std::chrono::steady_clock::now();
            text = std::min(text, std::chrono::duration<double, std::milli>(middle - start).count());
            rewrites = std::min(rewrites, std::chrono::duration<double, std::milli>(end - middle).count());
            QCOMPARE(static_cast<int>(rewriter.done().size()), 750);
        }
        qInfo("3000 nodes: %.1f ms for the text, %.1f ms for 750 rewrites of it", text, rewrites);
    }

    /// A tensor of the model keeps its type.
    void tensors() {
        const QString before =
            "def forward(x: \"f32[4]\"):\n    w: \"f32[4]\" = self.w\n    mul: \"f32[4]\" = aten.mul.Tensor(x, w)\n"
            "    return (mul,)\n";
        for (const char* type : {"f16[4]", "f32[1]"}) {
            const Made one = made(before, edited(before, {{"w: \"f32[4]\"", "w: \"" + QString(type) + "\""}}), {}, {});
            QVERIFY(one.failed);
            QVERIFY2(one.error.text().find("and the model's tensor is f32[4]") != std::string::npos,
                     one.error.text().c_str());
        }
    }

    /// A tensor that the text reads anew has the model's type.
    void tensorsReadAnew() {
        const QString before =
            "def forward(x: \"f32[4]\"):\n    neg: \"f32[4]\" = aten.neg.default(x)\n    return (neg,)\n";
        const auto read = [&](const char* type) {
            Made one;
            one.module = std::move(*parseText(before.toStdString()));
            one.module->tensors["w"] = Tensor::zeros(DType::F32, {4});
            const CompileRequest request;
            Rewriter rewriter("test", PassContext(request), {});
            const auto changed =
                rewriteByText(*one.module, pluginText(*one.module),
                              "def forward(x: \"f32[4]\"):\n    w: \"" + std::string(type) +
                                  "\" = self.w\n    neg: \"f32[4]\" = aten.neg.default(w)\n    return (neg,)\n",
                              rewriter, "test", "why", {});
            one.failed = !changed;
            if (!changed) one.error = changed.error();
            return one;
        };
        QVERIFY(!read("f32[4]").failed);
        const Made wrong = read("f16[4]");
        QVERIFY(wrong.failed);
        QVERIFY2(wrong.error.text().find("the text says f16[4], and the model's tensor is f32[4]") != std::string::npos,
                 wrong.error.text().c_str());
    }

    void writes_data() {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("error");
        const QString copy = "    copy_: \"f32[4]\" = aten.copy_.default(x, add)\n";
        QTest::newRow("left out") << copy << ""
                                  << "nothing is written to 'x' any more, as 'copy_' did";
        QTest::newRow("to another input")
            << copy << QString(copy).replace("(x,", "(y,") << "nothing is written to 'x' any more";
        QTest::newRow("one more") << copy << copy + "    copy__1: \"f32[4]\" = aten.copy_.default(y, add)\n"
                                  << "it writes to 'y', which the graph does not";
        QTest::newRow("another value") << copy << QString(copy).replace("add)", "neg)") << "";
        QTest::newRow("under another name") << copy << QString(copy).replace("copy_:", "copied:") << "";
    }
    void writes() {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, error);
        const QString before =
            "def forward(x: \"f32[4]\", y: \"f32[4]\"):\n    neg: \"f32[4]\" = aten.neg.default(y)\n"
            "    add: \"f32[4]\" = aten.add.Tensor(x, neg)\n"
            "    copy_: \"f32[4]\" = aten.copy_.default(x, add)\n    return (neg,)\n";
        for (const std::optional<int64_t> fuel : {std::optional<int64_t>(), std::optional<int64_t>(1)}) {
            const Made one = made(before, edited(before, {{from, to}}), fuel, {});
            QCOMPARE(one.failed, !error.isEmpty());
            QVERIFY2(QString::fromStdString(one.error.text()).contains(error), one.error.text().c_str());
        }
    }

    /// Bodies are texts of their own.
    void bodies() {
        const QString before = R"(def forward(p: "b8[]", x: "f32[4]"):
    cond = higher_order.cond(p, yes, no, [x])
    getitem: "f32[4]" = cond[0]
    return (getitem,)

def yes(a: "f32[4]"):
    mul: "f32[4]" = aten.mul.Tensor(a, a)
    add: "f32[4]" = aten.add.Tensor(mul, a)
    return (add,)

def no(a: "f32[4]"):
    neg: "f32[4]" = aten.neg.default(a)
    return (neg,)
)";
        const QString text = QString::fromStdString(pluginText(**parseText(before.toStdString())));
        const QString after = edited(text, {{"    mul: \"f32[4]\" = aten.mul.Tensor(a, a)\n", ""},
                                            {"aten.add.Tensor(mul, a)", "aten.addcmul.default(a, a, a)"}});
        const Made all = made(before, after, {}, {});
        QVERIFY2(!all.failed, all.error.text().c_str());
        QCOMPARE(all.rewrites, 1);
        QCOMPARE(QString::fromStdString(pluginText(*all.module)), after);
        // One more, in place of another; without fuel it is not there.
        const QString other =
            "\ndef never(a: \"f32[4]\"):\n    cos: \"f32[4]\" = aten.cos.default(a)\n    return (cos,)\n";
        const QString calls = edited(text, {{"(p, yes, no, [x])", "(p, yes, never, [x])"}}) + other;
        const Made more = made(before, calls, {}, {});
        QVERIFY2(!more.failed, more.error.text().c_str());
        QCOMPARE(more.rewrites, 1);
        QVERIFY2(verify(*more.module).has_value(), qPrintable(calls));
        QVERIFY(more.module->subgraph("never") != nullptr);
        QVERIFY(pluginText(*more.module).find("cond(p, yes, never, [x])") != std::string::npos);
        const Made none = made(before, calls, 0, {});
        QVERIFY(!none.failed && none.module->subgraph("never") == nullptr);
        for (const auto& [from, to] : QList<std::pair<QString, QString>>{
                 {"return (cos,)", "return (cos, cos)"},
                 {"aten.cos.default(a)\n", "aten.cos.default(a)\n    sum: \"f32[]\" = aten.sum.default(cos)\n"}}) {
            QString wrong = edited(calls, {{from, to}});
            if (to.contains("sum")) wrong.replace("return (cos,)", "return (sum,)");
            const Made bad = made(before, wrong, {}, {});
            QVERIFY(bad.failed);
            QVERIFY2(
                bad.error.text().find("the graph 'never' takes or returns other types than 'no'") != std::string::npos,
                bad.error.text().c_str());
        }
        const Made fresh = made(before, edited(calls, {{"cond = ", "other = "}, {"cond[0]", "other[0]"}}), {}, {});
        QVERIFY2(!fresh.failed, fresh.error.text().c_str());
        QVERIFY(verify(*fresh.module).has_value() && fresh.module->subgraph("never") != nullptr);
        const Made unused = made(before, text + other, {}, {});
        QVERIFY(unused.failed);
        QVERIFY2(
            unused.error.text().find("it adds a graph, which no call of the main graph names") != std::string::npos,
            unused.error.text().c_str());
    }

    /// A call of graphs where there was none, of each operator that takes some: its results are what its graphs return,
    /// and graphs that do not fit are refused.
    void newCallOfGraphs_data() {
        QTest::addColumn<QString>("call");
        QTest::addColumn<QString>("type");  // of the one result
        QTest::addColumn<QString>("graphs");
        QTest::addColumn<QString>("problem");
        constexpr const char* kItem =
            "\ndef one(a: \"f32[3]\"):\n    c: \"f32[3]\" = aten.cos.default(a)\n    return (c,)\n";
        constexpr const char* kWhole =
            "\ndef one(a: \"f32[4, 3]\"):\n    c: \"f32[4, 3]\" = aten.cos.default(a)\n    return (c,)\n";
        constexpr const char* kTwo =
            "\ndef two(a: \"f32[4, 3]\"):\n    s: \"f32[4, 3]\" = aten.sin.default(a)\n    return (s,)\n";
        constexpr const char* kSums =
            "\ndef one(a: \"f32[3]\", b: \"f32[3]\"):\n    c: \"f32[3]\" = aten.add.Tensor(a, b)\n    return (c,)\n";
        constexpr const char* kCarries =
            "\ndef one(a: \"f32[3]\", b: \"f32[3]\"):\n    c: \"f32[3]\" = aten.add.Tensor(a, b)\n    return (c, c)\n";
        constexpr const char* kAgain =
            "\ndef again(a: \"f32[4, 3]\"):\n    s: \"f32[]\" = aten.sum.default(a)\n"
            "    l: \"b8[]\" = aten.lt.Scalar(s, 1)\n    return (l,)\n";
        const auto row = [](const char* name, const QString& call, const char* type, const QString& graphs,
                            const char* problem = "") { QTest::newRow(name) << call << type << graphs << problem; };
        const QString higher = "torch.ops.higher_order.";
        row("invoke_subgraph", higher + "invoke_subgraph(one, 'one', x)", "f32[4, 3]", kWhole);
        row("cond", higher + "cond(p, one, two, [x])", "f32[4, 3]", QString(kWhole) + kTwo);
        row("map", higher + "map_impl(one, [x], [])", "f32[4, 3]", kItem);
        row("scan", higher + "scan(one, [y], [x], [])", "f32[3]", kCarries);
        row("associative_scan", higher + "associative_scan(one, [x], [])", "f32[4, 3]", kSums);
        row("while_loop", higher + "while_loop(again, one, [x], [])", "f32[4, 3]", QString(kWhole) + kAgain);
        row("of other values", higher + "invoke_subgraph(one, 'one', y)", "f32[3]", kWhole,
            "the graph 'one' takes (f32[4, 3]) and is given (f32[3])");
        row("of too many values", higher + "invoke_subgraph(one, 'one', x, x)", "f32[4, 3]", kWhole,
            "and is given (f32[4, 3], f32[4, 3])");
        row("branches that return others", higher + "cond(p, one, two, [x])", "f32[4, 3]",
            QString(kWhole) + QString(kTwo).replace("return (s,)", "return (s, s)"), "the second graph returns");
        row("no truth", higher + "cond(x, one, two, [x])", "f32[4, 3]", QString(kWhole) + kTwo,
            "what cond asks is not one truth");
        row("a condition that is not a truth", higher + "while_loop(again, one, [x], [])", "f32[4, 3]",
            QString(kWhole) + QString(kAgain).replace("(l,)", "(a,)"), "what the condition returns is not one truth");
        row("a body that changes its types", higher + "while_loop(again, one, [x], [])", "f32[4, 3]",
            QString(kWhole).replace("(c,)", "(c, c)") + kAgain, "the body returns");
        row("what it cannot combine", higher + "associative_scan(one, [x], [])", "f32[4, 3]", kCarries,
            "the graph returns");
        row("another type for its reader", higher + "map_impl(one, [x], [])", "f32[3]", kItem, "the text says f32[3]");
        row("an operator of which nothing is known", higher + "nobody(one, x)", "f32[4, 3]", kWhole,
            "only cond, while_loop, map");
    }
    void newCallOfGraphs() {
        QFETCH(QString, call);
        QFETCH(QString, type);
        QFETCH(QString, graphs);
        QFETCH(QString, problem);
        const QString before =
            "def forward(x: \"f32[4, 3]\", y: \"f32[3]\", p: \"b8[]\"):\n    neg: \"f32[4, 3]\" = aten.neg.default(x)\n"
            "    sum_1: \"f32[]\" = aten.sum.default(neg)\n    return (sum_1,)\n";
        const QString after = edited(before, {{"neg: \"f32[4, 3]\" = aten.neg.default(x)",
                                               "called = " + call + "\n    item: \"" + type + "\" = called[0]"},
                                              {"sum.default(neg)", "sum.default(item)"}}) +
                              graphs;
        const Made all = made(before, after, {}, {});
        if (!problem.isEmpty()) {
            QVERIFY(all.failed);
            QVERIFY2(QString::fromStdString(all.error.text()).contains(problem), all.error.text().c_str());
            return;
        }
        QVERIFY2(!all.failed, all.error.text().c_str());
        QCOMPARE(all.rewrites, 1);
        const auto sound = verify(*all.module);
        QVERIFY2(sound.has_value(), sound ? "" : sound.error().text().c_str());
        QCOMPARE(QString::fromStdString(all.module->graph().findByName("item")->type().text()), type);
        QVERIFY(all.module->subgraph("one") != nullptr);
        const Made none = made(before, after, 0, {});
        QVERIFY(!none.failed && none.module->subgraphs.empty());
    }
};

CUTAWAY_SUITE(TextRewritesTest)
#include "text_rewrites_test.moc"
