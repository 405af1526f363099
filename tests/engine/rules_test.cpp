// Rules in text form on graphs in text form: what they match and what they make. The sentence when they do not stands
// in rules_refused_test.cpp.
#include <QtTest>

#include "engine/ops/op_registry.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/rewriter.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/rule_texts.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::loaded, testing::parsed, testing::rule;

namespace {

/// The statements of the printed graph, without annotations.
QString statements(const Module& module) {
    const QString text = QString::fromStdString(printText(module, {.comments = false}).text);
    QStringList lines = text.trimmed().split('\n').mid(1);
    for (QString& line : lines) line = line.trimmed().remove(QRegularExpression(": \"[^\"]*\""));
    return lines.join("; ");
}

}  // namespace

class RulesTest : public QObject {
    Q_OBJECT

    bool m_parity = false;

  private slots:
    void rewrites_data() {
        QTest::addColumn<QString>("find");
        QTest::addColumn<QString>("replace");
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        const QString addSelf = "r = aten.add.Tensor(a, a); return r", twice = "r = aten.mul.Tensor(a, 2); return r";
        QTest::newRow("a name that stands twice is one value")
            << addSelf << twice << "p = aten.add.Tensor(x, x); return (p,)"
            << "mul = aten.mul.Tensor(x, 2); return (mul,)";
        QTest::newRow("two values are not one") << addSelf << twice << "p = aten.add.Tensor(x, y); return (p,)"
                                                << "p = aten.add.Tensor(x, y); return (p,)";
        for (const char* one : {"1", "1.0"})
            QTest::newRow(qPrintable("1 equals " + QString(one)))
                << "r = aten.mul.Tensor(a, 1); return r"
                << "return a"
                << "n = aten.neg.default(x); p = aten.mul.Tensor(n, " + QString(one) +
                       "); q = aten.exp.default(p); return (q,)"
                << "n = aten.neg.default(x); q = aten.exp.default(n); return (q,)";
        QTest::newRow("defaults that are written out are defaults")
            << "r = aten.addmm.default(c, a, b); return r"
            << "r = aten.mm.default(a, b); return r"
            << "p = aten.addmm.default(x, x, y, beta=1, alpha=1.0); return (p,)"
            << "mm = aten.mm.default(x, y); return (mm,)";
        QTest::newRow("what is left out must be the default")
            << "r = aten.addmm.default(c, a, b); return r"
            << "r = aten.mm.default(a, b); return r"
            << "p = aten.addmm.default(x, x, y, beta=2); return (p,)"
            << "p = aten.addmm.default(x, x, y, beta = 2); return (p,)";
        QTest::newRow("dots leave arguments open") << "r = aten.addmm.default(c, a, b, ...); return r"
                                                   << "r = aten.mm.default(a, b); return r"
                                                   << "p = aten.addmm.default(x, x, y, beta=2); return (p,)"
                                                   << "mm = aten.mm.default(x, y); return (mm,)";
        QTest::newRow("a constant is bound by $")
            << "r = aten.mul.Tensor(a, $s); return r"
            << "r = aten.div.Tensor(a, $s); return r"
            << "p = aten.mul.Tensor(x, 0.5); q = aten.mul.Tensor(x, y); return (p, q)"
            << "div = aten.div.Tensor(x, 0.5); q = aten.mul.Tensor(x, y); return (div, q)";
        QTest::newRow("operands in the other order")
            << "m = aten.exp.default(a); r = aten.mul.Tensor(m, b); return r"
            << "n = aten.neg.default(a); r = aten.sub.Tensor(n, b); return r"
            << "e = aten.exp.default(x); p = aten.mul.Tensor(y, e); return (p,)"
            << "neg = aten.neg.default(x); sub = aten.sub.Tensor(neg, y); return (sub,)";
        QTest::newRow("an order chosen inside is tried again when something later fails")
            << "s = aten.add.Tensor(a, b); r = aten.sub.Tensor(s, a); return r"
            << "return b"
            << "s = aten.add.Tensor(x, y); r = aten.sub.Tensor(s, y); q = aten.exp.default(r); return (q,)"
            << "q = aten.exp.default(x); return (q,)";
        QTest::newRow("a factor on one operand keeps the order")
            << "m = aten.exp.default(a); r = aten.add.Tensor(m, b, alpha=$f); return r"
            << "r = aten.sub.Tensor(a, b); return r"
            << "e = aten.exp.default(x); p = aten.add.Tensor(y, e, alpha=2); return (p,)"
            << "e = aten.exp.default(x); p = aten.add.Tensor(y, e, alpha = 2); return (p,)";
        QTest::newRow("an inner value with another reader")
            << "m = aten.exp.default(a); r = aten.neg.default(m); return r"
            << "r = aten.sin.default(a); return r"
            << "e = aten.exp.default(x); p = aten.neg.default(e); return (p, e)"
            << "e = aten.exp.default(x); p = aten.neg.default(e); return (p, e)";
        QTest::newRow("a shared value may have other readers")
            << "m: shared = aten.exp.default(a); r = aten.neg.default(m); return r"
            << "r = aten.sin.default(a); return r"
            << "e = aten.exp.default(x); p = aten.neg.default(e); return (p, e)"
            << "e = aten.exp.default(x); sin = aten.sin.default(x); return (sin, e)";
        QTest::newRow("a choice of operators")
            << "r = aten.(sin|cos).default(a); return r"
            << "r = aten.exp.default(a); return r"
            << "p = aten.sin.default(x); q = aten.cos.default(y); t = aten.tan.default(y); return (p, q, t)"
            << "exp_1 = aten.exp.default(x); exp = aten.exp.default(y); t = aten.tan.default(y); return (exp_1, exp, t)";
        QTest::newRow("a list with others") << "r = aten.cat.default([a, *rest], $d); return r"
                                            << "r = aten.cat.default([*rest, a], $d); return r"
                                            << "c = aten.cat.default([x, y, y], 1); return (c,)"
                                            << "cat = aten.cat.default([y, y, x], 1); return (cat,)";
        QTest::newRow("several results through a shared value")
            << "p = aten.sin.default(a); q = aten.cos.default(a); return p, q"
            << "p = aten.exp.default(a); q = aten.neg.default(a); return p, q"
            << "c = aten.cos.default(x); e = aten.tan.default(c); s = aten.sin.default(x); return (e, s)"
            << "exp = aten.exp.default(x); neg = aten.neg.default(x); e = aten.tan.default(neg); return (e, exp)";
        QTest::newRow("new operands that stand behind the first result")
            << "p = aten.sin.default(a); q = aten.mul.Tensor(p, b); return q, p"
            << "q = aten.mul.Tensor(a, b); p = aten.neg.default(b); return q, p"
            << "s = aten.sin.default(x); c = aten.cos.default(y); m = aten.mul.Tensor(s, c); return (s, m)"
            << "c = aten.cos.default(y); mul = aten.mul.Tensor(x, c); neg = aten.neg.default(c); return (neg, mul)";
        QTest::newRow("calls nest")
            << "r = aten.neg.default(aten.neg.default(a)); return r"
            << "return a"
            << "p = aten.neg.default(x); q = aten.neg.default(p); r = aten.exp.default(q); return (r,)"
            << "r = aten.exp.default(x); return (r,)";
        QTest::newRow("last first, and what is new is not visited")
            << "m = aten.neg.default(a); r = aten.neg.default(m); return r"
            << "r = aten.neg.default(a); return r"
            << "p = aten.neg.default(x); q = aten.neg.default(p); r = aten.neg.default(q); return (r,)"
            << "p = aten.neg.default(x); neg = aten.neg.default(p); return (neg,)";
        QTest::newRow("an output keeps memory of its own") << "r = aten.mul.Tensor(a, 1); return r"
                                                           << "return a"
                                                           << "p = aten.mul.Tensor(x, 1); return (p,)"
                                                           << "p = aten.mul.Tensor(x, 1); return (p,)";
    }
    void rewrites() {
        QFETCH(QString, find);
        QFETCH(QString, replace);
        QFETCH(QString, before);
        QFETCH(QString, after);
        const LoadedRules rules = loaded(rule(find, replace));
        const auto set = RuleSet::compile(rules.rules);
        QVERIFY2(set.has_value(), set ? "" : set.error().text().c_str());
        const auto module = parsed(before);
        const QString asRead = statements(*module);
        CompileRequest options;
        options.parity = m_parity;
        Rewriter rewriter("test", options);
        const auto changed = rewriter.applyRules(module->graph(), *set);
        QVERIFY2(changed.has_value(), changed ? "" : changed.error().text().c_str());
        QCOMPARE(statements(*module), after);
        QCOMPARE(*changed, asRead != after);
        QCOMPARE(rewriter.changed(), asRead != after);
    }

    /// The notation for lists of calls, numbers of readers and different values.
    void lists_data() {
        QTest::addColumn<QString>("find");
        QTest::addColumn<QString>("replace");
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        const QString
            pieces =
                "s = aten.split_with_sizes.default(a, $sizes, $d); p: each = s[_]; r = aten.cat.default([*p], $d); return r",
            whole = "r = aten.neg.default(a); return r";
        const QString split = "s = aten.split_with_sizes.default(x, [1, 3], 1); g = s[0]; h = s[1]; ";
        const QString unchanged = split + "c = aten.cat.default([h, y], 1); return (c,)";
        QTest::newRow("every item is such a call")
            << pieces << whole << split + "c = aten.cat.default([g, h], 1); return (c,)"
            << "neg = aten.neg.default(x); return (neg,)";
        QTest::newRow("an item is not") << pieces << whole << unchanged << unchanged;
        // The rule does not say what the other items are: it finds the calls and leaves the list to a function. Here
        // the list is made of what it has found.
        QTest::newRow("some items are")
            << "n: some = aten.neg.default(_); r = aten.cat.default([*n], $d); return r"
            << "i = aten.cat.default([*n], $d); r = aten.cat.default([i, i], $d); return r"
            << "n = aten.neg.default(x); m = aten.neg.default(y); c = aten.cat.default([x, n, y, m], 1); d = aten.cat.default([x, y]); return (c, d)"
            << "n = aten.neg.default(x); m = aten.neg.default(y); cat = aten.cat.default([n, m], 1); cat_1 = aten.cat.default([cat, cat], 1); d = aten.cat.default([x, y]); return (cat_1, d)";
        QTest::newRow("names inside mean one value for all items")
            << "p: each = aten.mul.Tensor(_, k); r = aten.cat.default([*p], 0); return r"
            << "r = aten.cat.default([*p], 0); q = aten.mul.Tensor(r, k); return q"
            << "a = aten.mul.Tensor(x, 2); b = aten.mul.Tensor(y, 3); c = aten.cat.default([a, b], 0); return (c,)"
            << "a = aten.mul.Tensor(x, 2); b = aten.mul.Tensor(y, 3); c = aten.cat.default([a, b]); return (c,)";
        QTest::newRow("calls nested in an item are the item's own")
            << "p: each = aten.neg.default(aten.exp.default(a)); r = aten.cat.default([*p], $d); return r"
            << "n = aten.neg.default(aten.exp.default(a)); r = aten.cat.default([n, n], $d); return r"
            << "e = aten.exp.default(x); n = aten.neg.default(e); f = aten.exp.default(x); m = aten.neg.default(f); c = aten.cat.default([n, m], 1); return (c,)"
            << "exp = aten.exp.default(x); neg = aten.neg.default(exp); cat = aten.cat.default([neg, neg], 1); return (cat,)";
        QTest::newRow("beside other items")
            << "p: each = aten.neg.default(_); r = aten.cat.default([a, *p], $d); return r"
            << "r = aten.cat.default([*p, a], $d); return r"
            << "n = aten.neg.default(x); m = aten.neg.default(y); c = aten.cat.default([x, n, m], 1); return (c,)"
            << "n = aten.neg.default(x); m = aten.neg.default(y); cat = aten.cat.default([n, m, x], 1); return (cat,)";
        const QString twice = "r: repeated = aten.mul.Tensor(a, 2); return r",
                      sum = "r = aten.add.Tensor(a, a); return r",
                      apart = "m = aten.mul.Tensor(x, 2); n = aten.mul.Tensor(x, 3); return (m, n)";
        QTest::newRow("siblings become one value")
            << twice << sum
            << "m = aten.mul.Tensor(x, 2); e = aten.exp.default(m); n = aten.mul.Tensor(x, 2); o = aten.mul.Tensor(y, 3); return (e, n, o)"
            << "add = aten.add.Tensor(x, x); e = aten.exp.default(add); o = aten.mul.Tensor(y, 3); return (e, add, o)";
        QTest::newRow("a call without siblings") << twice << sum << "m = aten.mul.Tensor(x, 2); return (m,)"
                                                 << "add = aten.add.Tensor(x, x); return (add,)";
        QTest::newRow("one sibling does not match") << twice << sum << apart << apart;
        QTest::newRow("siblings disagree about a name") << "r: repeated = aten.mul.Tensor(a, $k); return r"
                                                        << "r = aten.div.Tensor(a, $k); return r" << apart << apart;
        QTest::newRow("calls nested in siblings are their own")
            << "e = aten.exp.default(a); r: repeated = aten.sub.Tensor(e, aten.neg.default(a)); return r"
            << "r = aten.sin.default(a); return r"
            << "e = aten.exp.default(x); m = aten.neg.default(x); p = aten.sub.Tensor(e, m); n = aten.neg.default(x); q = aten.sub.Tensor(e, n); return (p, q)"
            << "sin = aten.sin.default(x); return (sin, sin)";
        const QString others =
            "e = aten.exp.default(x); p = aten.sin.default(e); q = aten.cos.default(e); return (p, q)";
        QTest::newRow("what siblings share is read only by them")
            << "e = aten.exp.default(a); r: repeated = aten.sin.default(e); return r"
            << "r = aten.neg.default(a); return r" << others << others;
        QTest::newRow("the list of siblings")
            << "e = aten.exp.default(a); r: repeated = aten.mul.Tensor(e, 2); return r"
            << "s = aten.stack.default([*r], 0); t = aten.select.int(s, 0, 0); u = aten.add.Tensor(t, e); return u"
            << "e = aten.exp.default(x); m = aten.mul.Tensor(e, 2); n = aten.mul.Tensor(e, 2); return (n, m)"
            << "e = aten.exp.default(x); m = aten.mul.Tensor(e, 2); n = aten.mul.Tensor(e, 2); stack = aten.stack.default([m, n]); select = aten.select.int(stack, 0, 0); add = aten.add.Tensor(select, e); return (add, add)";
        QTest::newRow("a number of readers, wherever they are")
            << "m: 2 readers = aten.exp.default(a); r = aten.neg.default(m); return r"
            << "r = aten.sin.default(a); return r"
            << "e = aten.exp.default(x); p = aten.neg.default(e); return (p, e)"
            << "e = aten.exp.default(x); sin = aten.sin.default(x); return (sin, e)";
        QTest::newRow("different values") << "a != b; r = aten.add.Tensor(a, b); return r"
                                          << "r = aten.sub.Tensor(a, b); return r"
                                          << "p = aten.add.Tensor(x, x); q = aten.add.Tensor(x, y); return (p, q)"
                                          << "p = aten.add.Tensor(x, x); sub = aten.sub.Tensor(x, y); return (p, sub)";
        QTest::newRow("all overloads of an operator")
            << "r = aten.sub(a, b); return r"
            << "r = aten.add.Tensor(a, b); return r"
            << "p = aten.sub.Tensor(x, y); q = aten.sub.Scalar(x, 2); return (p, q)"
            << "add_1 = aten.add.Tensor(x, y); add = aten.add.Tensor(x, 2); return (add_1, add)";
    }
    void lists() { rewrites(); }

    /// Calls as Python writes them. With parity, arguments are compared as PyTorch's matcher does.
    void pythonCalls_data() {
        QTest::addColumn<bool>("parity");
        QTest::addColumn<QString>("find");
        QTest::addColumn<QString>("replace");
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        const QString relu = "r = torch.nn.functional.relu(a); return r",
                      gelu = "r = torch.nn.functional.gelu(a); return r";
        const auto row = [](const char* name, const QString& find, const QString& replace, const QString& before,
                            const QString& after, bool parity = false) {
            QTest::newRow(name) << parity << find << replace << before << after;
        };
        row("a function", relu, gelu, "p = torch.nn.functional.relu(x); return (p,)",
            "gelu = torch.nn.functional.gelu(x); return (gelu,)");
        row("the same by another name is another function", relu, gelu, "p = torch.relu(x); return (p,)",
            "p = torch.relu(x); return (p,)");
        row("defaults that are written out", relu, gelu, "p = torch.nn.functional.relu(x, inplace=False); return (p,)",
            "gelu = torch.nn.functional.gelu(x); return (gelu,)");
        row("what is left out must be the default", relu, gelu,
            "p = torch.nn.functional.relu(x, inplace=True); return (p,)",
            "p = torch.nn.functional.relu(x, inplace = True); return (p,)");
        row("parity drops keywords that the pattern does not name", relu, gelu,
            "p = torch.nn.functional.relu(x, inplace=True); return (p,)",
            "gelu = torch.nn.functional.gelu(x); return (gelu,)", true);
        const QString byName = "r = torch.softmax(a, dim=$d); return r",
                      logs = "r = torch.log_softmax(a, dim=$d); return r";
        row("by position or by name", byName, logs,
            "p = torch.softmax(x, 1); q = torch.softmax(y, dim=0); return (p, q)",
            "log_softmax_1 = torch.log_softmax(x, dim = 1); log_softmax = torch.log_softmax(y, dim = 0); return (log_softmax_1, log_softmax)");
        row("parity counts the positional ones", byName, logs,
            "p = torch.softmax(x, 1); q = torch.softmax(y, dim=0); return (p, q)",
            "p = torch.softmax(x, 1); log_softmax = torch.log_softmax(y, dim = 0); return (p, log_softmax)", true);
        const QString converted = "r = torch.nn.functional.softmax(a, dtype=$t, dim=$d); return r",
                      plain = "r = torch.nn.functional.log_softmax(a, $d); return r";
        row("keywords in another order", converted, plain, "p = torch.nn.functional.softmax(x, dim=1); return (p,)",
            "log_softmax = torch.nn.functional.log_softmax(x, 1); return (log_softmax,)");
        row("parity looks at their order", converted, plain, "p = torch.nn.functional.softmax(x, dim=1); return (p,)",
            "p = torch.nn.functional.softmax(x, dim = 1); return (p,)", true);
        row("parity fills in what is left out", "r = torch.nn.functional.softmax(a, dim=$d, dtype=None); return r",
            plain, "p = torch.nn.functional.softmax(x, dim=1); return (p,)",
            "log_softmax = torch.nn.functional.log_softmax(x, 1); return (log_softmax,)", true);
        row("names of numpy", "r = torch.sum(a, dim=$d, keepdim=True); return r",
            "r = torch.amax(a, $d, True); return r", "p = torch.sum(x, axis=1, keepdims=True); return (p,)",
            "amax = torch.amax(x, [1], True); return (amax,)");
        row("a method", "r = a.view(2, 8); return r", "r = a.reshape(2, 8); return r",
            "p = x.view(2, 8); q = y.view((2, 8)); s = y.view(8, 2); return (p, q, s)",
            "reshape_1 = x.reshape(2, 8); reshape = y.reshape(2, 8); s = y.view(8, 2); return (reshape_1, reshape, s)");
        row("parity tells a tuple from numbers", "r = a.view(2, 8); return r", "r = a.reshape(2, 8); return r",
            "p = x.view(2, 8); q = y.view((2, 8)); return (p, q)",
            "reshape = x.reshape(2, 8); q = y.view((2, 8)); return (reshape, q)", true);
        row("a method of a call", "r = torch.exp(a).view(-1, $n); return r", "r = a.view(-1, $n).exp(); return r",
            "e = torch.exp(x); p = e.view(-1, 2); return (p,)",
            "view = x.view(-1, 2); exp = view.exp(); return (exp,)");
        row("an operator", "r = a + b * 2; return r", "r = torch.add(a, b, alpha=2); return r",
            "m = y * 2; p = x + m; return (p,)", "add = torch.add(x, y, alpha = 2); return (add,)");
        row("in the other order", "r = a + b * 2; return r", "r = torch.add(a, b, alpha=2); return r",
            "m = y * 2; p = m + x; return (p,)", "add = torch.add(x, y, alpha = 2); return (add,)");
        row("parity takes the order as written", "r = a + b * 2; return r", "r = torch.add(a, b, alpha=2); return r",
            "m = y * 2; p = m + x; return (p,)", "m = y * 2; p = m + x; return (p,)", true);
        row("operators bind as in Python", "r = -a ** 2 @ (b - a); return r", "r = a @ b; return r",
            "q = x ** 2; n = -q; d = y - x; p = n @ d; return (p,)", "matmul = x @ y; return (matmul,)");
        row("a subscript", "r = a[:, 1:3]; return r", "r = a[:, 0:2]; return r",
            "p = x[:, 1:3]; q = x[:, 0]; return (p, q)",
            "getitem = x[(slice(None, None, None), slice(0, 2, None))]; q = x[(slice(None, None, None), 0)]; return (getitem, q)");
        row("a choice of functions", "r = (torch.relu|torch.nn.functional.relu)(a); return r", "r = a.relu(); return r",
            "p = torch.relu(x); q = torch.nn.functional.relu(y); return (p, q)",
            "relu_1 = x.relu(); relu = y.relu(); return (relu_1, relu)");
        row("a function that nobody knows", "r = mine.ops.scale(a, by=$k); return r", "r = a * $k; return r",
            "p = mine.ops.scale(x, by=3); return (p,)", "mul = x * 3; return (mul,)");
        row("with arguments left open", "r = mine.ops.scale(a, ...); return r", "r = torch.relu(a); return r",
            "p = mine.ops.scale(x, 1, by=3); return (p,)", "relu = torch.relu(x); return (relu,)");
        row("not across a mutation", "r = torch.neg(torch.exp(a)); return r", "r = torch.sin(a); return r",
            "e = torch.exp(x); w = y.add_(1); p = torch.neg(e); return (p, w)",
            "e = torch.exp(x); w = y.add_(1); p = torch.neg(e); return (p, w)");
        row("nor across `out`", "r = torch.neg(torch.exp(a)); return r", "r = torch.sin(a); return r",
            "e = torch.exp(x); w = torch.sin(x, out=y); p = torch.neg(e); return (p, w)",
            "e = torch.exp(x); w = torch.sin(x, out = y); p = torch.neg(e); return (p, w)");
    }
    void pythonCalls() {
        QFETCH(bool, parity);
        m_parity = parity;
        rewrites();
        m_parity = false;
    }

    void fuelStopsBetweenRewrites() {
        const LoadedRules rules =
            loaded(rule("r = aten.sin.default(a); return r", "r = aten.cos.default(a); return r"));
        const auto set = RuleSet::compile(rules.rules);
        QVERIFY(set.has_value());
        for (int fuel = 0; fuel <= 3; ++fuel) {
            const auto module =
                parsed("a = aten.sin.default(x); b = aten.sin.default(a); c = aten.sin.default(b); return (c,)");
            const CompileRequest options;
            Rewriter rewriter("test", options, fuel);
            const auto changed = rewriter.applyRules(module->graph(), *set);
            QVERIFY(changed.has_value());
            QCOMPARE(statements(*module).count("aten.cos"), fuel);
            QCOMPARE(int(rewriter.done().size()), fuel);
        }
    }

    /// The order that PyTorch's stable_topological_sort arrives at (matcher 10).
    void sortsAsPyTorch() {
        const auto module =
            parsed("a = aten.sin.default(x); b = aten.neg.default(a); c = aten.relu.default(x); return (b, c)");
        Graph& graph = module->graph();
        graph.moveBefore(*graph.findByName("c"), *graph.findByName("a"));
        graph.moveBefore(*graph.findByName("b"), *graph.findByName("c"));
        sortTopologically(graph);
        QCOMPARE(statements(*module),
                 QString("c = aten.relu.default(x); a = aten.sin.default(x); b = aten.neg.default(a); return (b, c)"));
    }

    /// What must be recomputed stays so when it is replaced; what it was computed from is not touched (matcher R-4).
    void whatIsMadeIsRecomputedLikeWhatItReplaces() {
        const LoadedRules rules = loaded(rule("m = aten.exp.default(a); r = aten.neg.default(m); return r",
                                              "s = aten.sin.default(a); r = aten.cos.default(s); return r"));
        const auto set = RuleSet::compile(rules.rules);
        const auto module =
            parsed("d = aten.tan.default(x); e = aten.exp.default(d); p = aten.neg.default(e); return (p,)");
        Graph& graph = module->graph();
        for (const char* name : {"e", "p"}) {
            Provenance provenance = graph.findByName(name)->provenance();
            provenance.recompute = 2;
            graph.setProvenance(*graph.findByName(name), std::make_shared<const Provenance>(std::move(provenance)));
        }
        const CompileRequest options;
        Rewriter rewriter("test", options);
        QVERIFY(rewriter.applyRules(graph, *set).has_value());
        QCOMPARE(int(graph.findByName("sin")->provenance().recompute), 2);
        QCOMPARE(int(graph.findByName("cos")->provenance().recompute), 2);
        QCOMPARE(int(graph.findByName("d")->provenance().recompute), 0);
    }

    /// PyTorch counts what matches, also where the rule then finds nothing to build.
    void countsWhatMatches() {
        Rule one;
        one.name = "r";
        one.find = "r = aten.sin.default(a); return r";
        one.build = [](const Match&, GraphBuilder&) { return Values::notHandled(); };
        const auto set = RuleSet::compile({&one, 1});
        const auto module = parsed("s = aten.sin.default(x); return (s,)");
        const CompileRequest options;
        Rewriter rewriter("test", options);
        QCOMPARE(*rewriter.applyRules(module->graph(), *set), false);
        QCOMPARE(rewriter.ruleStats()[0].counted, int64_t(1));
        QCOMPARE(rewriter.ruleStats()[0].applied, int64_t(0));
    }

    void whatIsMadeSaysWhereItCameFrom() {
        const LoadedRules rules = loaded(
            rule("m = aten.exp.default(a); r = aten.neg.default(m); return r", "r = aten.sin.default(a); return r"));
        const auto set = RuleSet::compile(rules.rules);
        const auto module = parsed("e = aten.exp.default(x); p = aten.neg.default(e); return (p,)");
        const NodeId e = module->graph().findByName("e")->id(), p = module->graph().findByName("p")->id();
        const CompileRequest options;
        Rewriter rewriter("test", options);
        QVERIFY(rewriter.applyRules(module->graph(), *set).has_value());
        const Provenance& from = module->graph().findByName("sin")->provenance();
        QCOMPARE(from.createdBy, std::string("r"));
        QVERIFY((from.origin == std::vector<NodeId>{e, p}));
        QCOMPARE(rewriter.ruleStats().size(), size_t(1));
        QCOMPARE(rewriter.ruleStats()[0].tried, int64_t(1));
        QCOMPARE(rewriter.ruleStats()[0].applied, int64_t(1));
    }
};

CUTAWAY_SUITE(RulesTest)
#include "rules_test.moc"
