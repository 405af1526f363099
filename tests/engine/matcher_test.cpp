// Rules that could be tried in more ways than anybody waits for.
#include "engine/rewrite/matcher.h"

#include <QtTest>

#include "engine/rewrite/rewriter.h"
#include "engine/text/parse.h"
#include "tests/support/rule_texts.h"
#include "tests/support/suites.h"

using namespace cutaway;
using testing::loaded, testing::parsed, testing::rule;

class MatcherTest : public QObject {
    Q_OBJECT

  private slots:
    /// Both orders of equal operands are one: a chain of n such calls would take 2^n tries.
    void equalOperandsAreTriedOnce() {
        constexpr int kLength = 60;
        const auto chain = [](const QString& first) {
            QString text = "v0 = " + first;
            for (int i = 1; i <= kLength; ++i)
                text += QString("; v%1: shared = aten.add.Tensor(v%2, v%2)").arg(i).arg(i - 1);
            return text + QString("; return v%1").arg(kLength);
        };
        for (const auto& [first, applies] :
             {std::pair{"aten.relu.default(x)", true}, std::pair{"aten.neg.default(x)", false}}) {
            const LoadedRules rules = loaded(rule(chain(first), "n = aten.sin.default(x); return n"));
            const auto set = RuleSet::compile(rules.rules);
            QVERIFY2(set.has_value(), set ? "" : set.error().text().c_str());
            const auto module =
                parsed(chain("aten.relu.default(x)")
                           .remove(": shared")
                           .replace(QString("return v%1").arg(kLength), QString("return (v%1,)").arg(kLength)));
            const CompileRequest options;
            Rewriter rewriter("test", options);
            const auto changed = rewriter.applyRules(module->graph(), *set);
            QVERIFY(changed.has_value());
            QCOMPARE(*changed, applies);
        }
    }

    /// Thirty calls that commute have 2^30 orders, which a condition that always refuses would have tried one by one.
    void aRuleWithTooManyOrdersIsGivenUp() {
        std::string find, body, list;
        for (int i = 0; i < 30; ++i) {
            const std::string number = std::to_string(i);
            find += "p" + number + " = aten.add.Tensor(a" + number + ", b" + number + "); ";
            body += "p" + number + " = aten.add.Tensor(x, y); ";
            list += (i > 0 ? ", p" : "p") + number;
        }
        find += "r = aten.cat.default([" + list + "]); return r";
        Rule one;
        one.name = "r";
        one.find = find;
        one.replace = "return a0";
        one.unless = [](const Match&) -> std::string_view { return "it never does"; };
        const auto module = parsed(QString::fromStdString(body + "r = aten.cat.default([" + list + "]); return (r,)"));
        const Explanation why = explainRule(one, *module->graph().findByName("r"));
        QVERIFY(!why.matched);
        QCOMPARE(why.reason, std::string("it never does"));
    }
};

CUTAWAY_SUITE(MatcherTest)
#include "matcher_test.moc"
