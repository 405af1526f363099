// What is said of rules that do not match, and of texts that are not rules.
#include <QRandomGenerator>
#include <QtTest>
#include <span>

#include "engine/rewrite/matcher.h"
#include "engine/rewrite/rewriter.h"
#include "tests/support/rule_texts.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::loaded, testing::parsed, testing::rule;

class RulesRefusedTest : public QObject {
    Q_OBJECT

  private slots:
    void explains_data() {
        QTest::addColumn<QString>("find");
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QString>("reason");
        const QString expNeg = "m = aten.exp.default(a); r = aten.neg.default(m); return r";
        QTest::newRow("matches") << expNeg << "e = aten.exp.default(x); p = aten.neg.default(e); return (p,)"
                                 << "";
        QTest::newRow("other root") << expNeg << "p = aten.exp.default(x); return (p,)"
                                    << "needs 'r' to be aten.neg.default, but finds `p` (aten.exp.default)";
        QTest::newRow("other operand")
            << expNeg << "e = aten.sin.default(x); p = aten.neg.default(e); return (p,)"
            << "needs 'm' to be aten.exp.default, but 'self' of `p` is `e` (aten.sin.default)";
        QTest::newRow("input for an operand")
            << expNeg << "p = aten.neg.default(x); return (p,)"
            << "needs 'm' to be aten.exp.default, but 'self' of `p` is `x` (an input)";
        QTest::newRow("also an output") << expNeg << "e = aten.exp.default(x); p = aten.neg.default(e); return (p, e)"
                                        << "needs 'm' (`e`) to be read only here, but it is an output, too";
        QTest::newRow("a choice")
            << "r = aten.(sin|cos).default(a); return r"
            << "p = aten.tan.default(x); return (p,)"
            << "needs 'r' to be aten.sin.default or aten.cos.default, but finds `p` (aten.tan.default)";
        QTest::newRow("another number of readers")
            << "m: 2 readers = aten.exp.default(a); r = aten.neg.default(m); return r"
            << "e = aten.exp.default(x); p = aten.neg.default(e); return (p,)"
            << "needs 'm' (`e`) to have 2 readers, but it has 1";
        QTest::newRow("one value for two names") << "a != b; r = aten.mul.Tensor(a, b); return r"
                                                 << "p = aten.mul.Tensor(x, x); return (p,)"
                                                 << "needs 'a' and 'b' to differ, but both are `x`";
        QTest::newRow("an item that does not fit")
            << "n: each = aten.exp.default(_); r = aten.cat.default([*n], 0); return r"
            << "e = aten.exp.default(x); p = aten.cat.default([e, y], 0); return (p,)"
            << "needs 'n' to be aten.exp.default, but an item of 'tensors' of `p` is `y` (an input)";
        QTest::newRow("a sibling that does not match")
            << "r: repeated = aten.mul.Tensor(a, 2); return r"
            << "m = aten.mul.Tensor(x, 3); p = aten.mul.Tensor(x, 2); return (p, m)"
            << "`m`, which reads what `p` reads, does not match: needs 'other' of `m` to be 2, but it is 3";
        QTest::newRow("the second sibling does not match")
            << "r: repeated = aten.mul.Tensor(a, 2); return r"
            << "m = aten.mul.Tensor(x, 2); n = aten.mul.Tensor(x, 3); p = aten.mul.Tensor(x, 2); return (p, m, n)"
            << "`n`, which reads what `p` reads, does not match: needs 'other' of `n` to be 2, but it is 3";
        QTest::newRow("siblings that match") << "r: repeated = aten.mul.Tensor(a, 2); return r"
                                             << "m = aten.mul.Tensor(x, 2); p = aten.mul.Tensor(x, 2); return (p, m)"
                                             << "";
        QTest::newRow("a method for a function") << "r = torch.relu(a); return r"
                                                 << "p = x.relu(); return (p,)"
                                                 << "needs 'r' to be torch.relu, but finds `p` (the method relu)";
        QTest::newRow("another overload") << "r = torch.sum(a, 1); return r"
                                          << "p = torch.sum(x); return (p,)"
                                          << "`p` calls another overload of torch.sum";
        QTest::newRow("a keyword nobody knows") << "r = torch.mine(a, size=2); return r"
                                                << "p = torch.mine(x); return (p,)"
                                                << "needs the keyword `size`, which `p` does not have";
        QTest::newRow("other reader")
            << expNeg << "e = aten.exp.default(x); p = aten.neg.default(e); s = aten.sin.default(e); return (p, s)"
            << "needs 'm' (`e`) to be read only here, but `s` reads it too";
        QTest::newRow("other constant") << "r = aten.mul.Tensor(a, 2); return r"
                                        << "p = aten.mul.Tensor(x, 3); return (p,)"
                                        << "needs 'other' of `p` to be 2, but it is 3";
        QTest::newRow("other item of a list") << "r = aten.permute.default(a, [$d, 0]); return r"
                                              << "p = aten.permute.default(x, [0, 1]); return (p,)"
                                              << "needs an item of 'dims' of `p` to be 0, but it is 1";
        QTest::newRow("neither operand")
            << "m = aten.mm.default(a, b); r = aten.add.Tensor(m, c); return r"
            << "p = aten.add.Tensor(x, y); return (p,)"
            << "needs 'm' to be aten.mm.default, but 'self' of `p` is `x` (an input); with the operands exchanged, it needs 'm' to be aten.mm.default, but 'other' of `p` is `y` (an input)";
        QTest::newRow("a call inside another")
            << "r = aten.neg.default(aten.exp.default(a)); return r"
            << "p = aten.neg.default(x); return (p,)"
            << "needs an operand to be aten.exp.default, but 'self' of `p` is `x` (an input)";
        QTest::newRow("complex numbers") << expNeg
                                         << "c = aten.complex.default(x, y); p = aten.neg.default(c); return (p,)"
                                         << "rules leave `p` alone: it is complex";
        QTest::newRow("two values for a name") << "r = aten.sub.Tensor(a, a); return r"
                                               << "p = aten.sub.Tensor(x, y); return (p,)"
                                               << "needs 'a' to be the same value everywhere, but finds `x` and `y`";
        QTest::newRow("a value for a constant") << "r = aten.mul.Tensor(a, $s); return r"
                                                << "p = aten.mul.Tensor(x, y); return (p,)"
                                                << "needs 's' to be a constant, but finds `y`";
        QTest::newRow("no second result") << "p = aten.sin.default(a); q = aten.cos.default(a); return p, q"
                                          << "p = aten.sin.default(x); return (p,)"
                                          << "finds no 'q' beside `p`";
        QTest::newRow("short list") << "r = aten.cat.default([a, b, *c], 0); return r"
                                    << "p = aten.cat.default([x], 0); return (p,)"
                                    << "needs 'tensors' of `p` to be a list of 2 or more items, but it is [x]";
        QTest::newRow("mutation between")
            << expNeg << "e = aten.exp.default(x); c = aten.copy_.default(y, x); p = aten.neg.default(e); return (p, c)"
            << "`e` and `p` lie on two sides of a mutation";
    }
    void explains() {
        QFETCH(QString, find);
        QFETCH(QString, graph);
        QFETCH(QString, reason);
        const LoadedRules rules = loaded(rule(find, "return " + find.section("return ", 1))
                                             .replace("  replace\n    return", "  replace\n    return"));
        const auto module = parsed(graph);
        Rule built = rules.rules[0];
        built.replace = {};
        built.build = [](const Match&, GraphBuilder&) { return Values::notHandled(); };
        const Explanation explanation = explainRule(built, *module->graph().findByName("p"));
        QCOMPARE(QString::fromStdString(explanation.reason), reason);
        QCOMPARE(explanation.matched, reason.isEmpty());
    }

    void brokenRules_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("no return") << rule("r = aten.neg.default(a)", "return a") << "without 'return'";
        QTest::newRow("unknown op") << rule("r = aten.nagg.default(a); return r", "return a")
                                    << "no operator 'aten.nagg.default'";
        QTest::newRow("unknown parameter")
            << rule("r = aten.neg.default(a, b=1); return r", "return a") << "no parameter named 'b'";
        QTest::newRow("missing argument")
            << rule("r = aten.mm.default(a); return r", "return a") << "argument 'mat2' is missing";
        QTest::newRow("unbound name") << rule("r = aten.neg.default(a); return r", "return b")
                                      << "'b' is not bound by 'find'";
        QTest::newRow("unread call") << rule("s = aten.exp.default(a); r = aten.neg.default(a); return r", "return a")
                                     << "'s' is neither read nor returned";
        QTest::newRow("results differ") << rule("r = aten.neg.default(a); return r", "return a, a")
                                        << "different numbers of results";
        QTest::newRow("assigned twice") << rule("r = aten.neg.default(a); r = aten.neg.default(r); return r",
                                                "return a")
                                        << "'r' is assigned twice";
        QTest::newRow("result is free") << rule("r = aten.neg.default(a); return a", "return a")
                                        << "must be the name of a call";
        QTest::newRow("string left open")
            << rule("r = aten.gelu.default(a, approximate='tanh); return r", "return a") << "a string is not closed";
        QTest::newRow("a mark that is none")
            << rule("r: often = aten.neg.default(a); return r", "return a") << "after ':' stand 'shared'";
        QTest::newRow("a repeated call that is read")
            << rule("m: repeated = aten.exp.default(a); r = aten.neg.default(m); return r", "return a")
            << "'m' is repeated, so it must be the only result";
        QTest::newRow("repeated beside another result")
            << rule("p: repeated = aten.exp.default(a); r = aten.neg.default(a); return p, r", "return a, a")
            << "'p' is repeated, so it must be the only result";
        QTest::newRow("readers of a result") << rule("r: 2 readers = aten.neg.default(a); return r", "return a")
                                             << "'r' is a result, which anybody may read";
        QTest::newRow("one call for a list's items")
            << rule("n: each = aten.neg.default(a); r = aten.exp.default(n); return r", "return a")
            << "'n' stands for the items of a list, as in [*n]";
        QTest::newRow("a list of no such calls")
            << rule("n = aten.neg.default(a); r = aten.cat.default([*n]); return r", "return a")
            << "'n' must be marked 'each' or 'some'";
        QTest::newRow("items within items")
            << rule(
                   "n: each = aten.neg.default(_); c: each = aten.cat.default([*n]); r = aten.cat.default([*c]); return r",
                   "return a")
            << "items within items";
        QTest::newRow("a device without its text")
            << rule("r = aten.neg.default(device(type, 'x')); return r", "return a") << "'=' is missing";
        QTest::newRow("an overload is to be built")
            << rule("r = aten.neg.default(a); return r", "r = aten.sub(a, a); return r")
            << "'aten.sub' has overloads; name one";
        QTest::newRow("no overload takes that")
            << rule("r = aten.neg(a, a, a); return r", "return a") << "no overload of aten.neg takes these arguments";
        QTest::newRow("a keyword no function has")
            << rule("r = torch.relu(a, speed=2); return r", "return a") << "no parameter named 'speed'";
        QTest::newRow("differs from nothing")
            << rule("a != b; r = aten.neg.default(a); return r", "return a") << "'b' stands nowhere else";
        QTest::newRow("a slice of values")
            << rule("r = a[b:]; return r", "return a") << "the bounds of a slice are constants";
        QTest::newRow("two rules of one pattern")
            << rule("r = aten.neg.default(a); return r", "return a") +
                   rule("q = aten.neg.default(b); return q", "return b").replace("rule r", "rule s")
            << "rule s, find: rule r has the same pattern and comes first";
        QTest::newRow("two rules of one name") << rule("r = aten.neg.default(a); return r", "return a") +
                                                      rule("r = aten.exp.default(a); return r", "return a")
                                               << "two rules have this name";
    }
    void brokenRules() {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const LoadedRules rules = loaded(text);
        const auto set = RuleSet::compile(rules.rules);
        QVERIFY(!set.has_value());
        QVERIFY2(QString::fromStdString(set.error().text()).contains(message), set.error().text().c_str());
        QVERIFY2(!set.error().where.empty(), "the rule is named");
    }

    void brokenFiles_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("statement before a rule") << "    r = aten.neg.default(a)\n"
                                                 << "line 1: statements belong below 'find' or 'replace'";
        QTest::newRow("unknown property") << "rule r\n  because of this\n"
                                          << "line 2: no property 'because of this'";
        QTest::newRow("no find") << "rule r\n  replace\n    return a\n"
                                 << "rule r has no 'find'";
        QTest::newRow("code without a built-in rule")
            << "rule r\n  find\n    r = aten.neg.default(a)\n    return r\n  build (code)\n"
            << "line 5: rule r has a 'build' in C++, and no built-in rule of that name has one";
    }
    void brokenFiles() {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const auto rules = loadRules(text.toStdString());
        QVERIFY(!rules.has_value());
        QVERIFY2(QString::fromStdString(rules.error().text()).contains(message), rules.error().text().c_str());
    }

    /// Rules are written by hand: whatever stands in them is a rule or an error, never a crash.
    void survivesAnyText() {
        const std::string texts[] = {
            "s = aten.split_with_sizes.default(a, $sizes, $d); p: each = s[_]; r = aten.cat.default([*p], $d); return r",
            "s = aten.exp.default(a); p: repeated, shared = aten.add.Tensor(s, $k); return p",
            "a != b; m: 2 readers, shared = (torch.relu|torch.tanh)(a); r = (m + b * -2 ** 3) @ a.T; return r",
            "r = torch.softmax(a[:, 1:3, ..., None], dim=-1, dtype=torch.float32).view(-1, $n).(relu|tanh)(); return r",
            "r = aten.(add|sub)(device(type='cuda', index=0), [a, *xs], -inf, 'x', ...); return r"};
        for (const std::string& text :
             std::span(texts).first(4)) {  // the last is none: no operator takes all kinds of arguments
            Rule one;
            one.name = "r";
            one.find = text;
            one.replace = "return a";
            const auto set = RuleSet::compile({&one, 1});
            QVERIFY2(set.has_value(), set ? "" : set.error().text().c_str());
        }
        const quint32 seed = QRandomGenerator::global()->generate();
        qInfo("seed %u", seed);
        QRandomGenerator random(seed);
        const std::string symbols = "()[]{},.:;=!*$_-+/<>|&@~'\"\n 0a1.x%";
        int parsedOnes = 0;
        for (int round = 0; round < 4000; ++round) {
            std::string text = texts[random.bounded(5)];
            for (int edit = random.bounded(4); edit >= 0 && !text.empty(); --edit) {
                const size_t at = static_cast<size_t>(random.bounded(static_cast<int>(text.size())));
                switch (random.bounded(4)) {
                    case 0: text.erase(at, 1 + static_cast<size_t>(random.bounded(6))); break;
                    case 1:
                        text.insert(at, 1,
                                    symbols[static_cast<size_t>(random.bounded(static_cast<int>(symbols.size())))]);
                        break;
                    case 2:
                        text.insert(at,
                                    text.substr(static_cast<size_t>(random.bounded(static_cast<int>(text.size()))), 8));
                        break;
                    default: text[at] = symbols[static_cast<size_t>(random.bounded(static_cast<int>(symbols.size())))];
                }
            }
            Rule one;
            one.name = "r";
            one.find = text;
            one.replace = random.bounded(2) ? std::string_view(text) : "return a";
            const auto set = RuleSet::compile({&one, 1});
            parsedOnes += set.has_value();
            if (!set) {
                QVERIFY2(!set.error().message.empty() && !set.error().where.empty(), text.c_str());
                continue;
            }
            const auto module = parsed(
                "s = aten.split_with_sizes.default(x, [1, 3], 1); g = s[0]; h = s[1]; c = aten.cat.default([g, h], 1); t = torch.relu(x); m = t * -2; "
                "e = torch.tanh(y); k = e.view(-1, 2); z = torch.softmax(k, dim=-1); w = z.relu(); return (c, m, w)");
            const CompileRequest options;
            Rewriter rewriter("test", options);
            const auto changed = rewriter.applyRules(module->graph(), *set);
            if (!changed) QVERIFY2(!changed.error().message.empty(), text.c_str());
        }
        qInfo("%d of 4000 are rules", parsedOnes);
        QVERIFY(parsedOnes > 10);
    }
};

CUTAWAY_SUITE(RulesRefusedTest)
#include "rules_refused_test.moc"
