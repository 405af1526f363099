// Passes on graphs in text form: tests/cases/**/*.txt. A case is
//
//   # case: name
//   # pass: name of a pass of the pipeline, or stage.name
//   # options: cuda training parity pytorch=2.11 NAME=key:value   (optional; the last as --enable has it, with paths
//                                                                  beside the case file)
//   # fails: text                          (optional: the pass stops with an error that has this text)
//   # counts: RULE counted 1, applied 0    (optional: what the step's statistics say of a rule)
//   # says: RULE at NODE: sentence         (optional, any number: why the pass leaves the node alone)
//   # numbers: not compared, because ...   (optional)
//   # idle: not checked, because ...       (optional: a second run may change more)
//   def before(x: "f32[2, 3]"): ...
//   def after(x: "f32[2, 3]"): ...         (left out: the pass changes nothing)
//
// and is held to six things: both texts print back as written; the pass keeps the runner's contract; what it makes is
// `after`; before and after compute equal numbers; the graph verifies after every rewrite; a second run changes
// nothing. Every rule of every table must fire in some case. `CUTAWAY_BLESS=1` writes what the passes make into the
// files: read the difference before you commit it.
#include <QtTest>
#include <set>

#include "engine/interpret/higher_order.h"
#include "engine/interpret/interpret.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/verify.h"
#include "engine/passes/joint/attention.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/rule_tables.h"
#include "engine/rewrite/matcher.h"
#include "engine/text/print.h"
#include "tests/support/case_files.h"
#include "tests/support/sections.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

QString printedAs(const Module& module, const char* function) {
    QString text = QString::fromStdString(printText(module, {.comments = false}).text).trimmed() + "\n";
    return text.replace("def forward(", QString("def %1(").arg(function));
}

}  // namespace

/// Rules of operators that no table has a row for yet never match; they are not a fault of the rule.
constexpr const char* kNoOperator = "no operator '";
bool missesOperator(const RuleTable& table, const Rule& rule) {
    const RuleSet set = RuleSet::compileWorking(table.rules);
    for (const Error& error : set.broken())
        if (error.where.starts_with("rule " + std::string(rule.name) + ",") &&
            error.text().find(kNoOperator) != std::string::npos)
            return true;
    return false;
}

class CasesTest : public QObject {
    Q_OBJECT

    /// What the pass says of the nodes that the case's lines "# says:" name.
    static void checkSentences(Case& one, const Pass& pass, const Snapshot& before) {
        static const QRegularExpression lines("^# says: (\\S+) at (\\S+): (.*)$", QRegularExpression::MultilineOption);
        QString head = one.head;
        for (auto at = lines.globalMatch(one.head); at.hasNext();) {
            const auto line = at.next();
            const Node* node = before->graph().findByName(line.captured(2).toStdString());
            QVERIFY2(node != nullptr, qPrintable("no node " + line.captured(2)));
            WatchedNode watched{"", node->id(), {}};
            const Step step = runPass(pass, before, one.options, {}, nullptr, nullptr, &watched);
            QStringList said;
            for (const Refusal& refusal : watched.refusals)
                if (refusal.rule == line.captured(1).toStdString()) said << QString::fromStdString(refusal.why);
            if (blesses())
                head.replace(line.captured(),
                             QString("# says: %1 at %2: %3").arg(line.captured(1), line.captured(2), said.join("; ")));
            else QCOMPARE(said.join("; "), line.captured(3));
        }
        one.head = head;
    }

    std::vector<CaseFile> m_files = readCaseFiles();
    std::set<std::string> m_fired;

    void checkNumbers(const Snapshot& before, const Snapshot& after) {
        Module sized(*before);
        for (const std::string& symbol : freeSymbols(sized))
            if (SymbolInfo& info = sized.symbols[symbol]; !info.hint) info.hint = 3;
        const auto inputs = randomInputs(sized, 1);
        QVERIFY2(inputs.has_value(), inputs ? "" : inputs.error().text().c_str());
        const auto run = [&](const Module& module) -> Result<std::vector<Tensor>> {
            CT_TRY(const std::vector<Tensor> bound, bindInputs(module, *inputs));
            return interpret(module, bound);
        };
        const auto expected = run(*before), actual = run(*after);
        QVERIFY2(expected.has_value(), expected ? "" : ("before: " + expected.error().text()).c_str());
        QVERIFY2(actual.has_value(), actual ? "" : ("after: " + actual.error().text()).c_str());
        QCOMPARE(actual->size(), expected->size());
        for (size_t i = 0; i < expected->size(); ++i) {
            if (!(*expected)[i].defined()) continue;
            const double tolerance = isHalf((*expected)[i].dtype()) ? 1e-2 : 1e-4;
            const Comparison comparison = compare((*actual)[i], (*expected)[i], Tolerance{tolerance, tolerance});
            QVERIFY2(comparison.sameType && comparison.within, qPrintable(QString("result %1 differs").arg(i)));
        }
    }

  private slots:
    void cases_data() {
        QTest::addColumn<size_t>("file");
        QTest::addColumn<size_t>("number");
        for (size_t file = 0; file < m_files.size(); ++file)
            for (size_t number = 0; number < m_files[file].cases.size(); ++number) {
                const Case& one = m_files[file].cases[number];
                QTest::newRow(qPrintable(one.file + ": " + one.name)) << file << number;
            }
    }
    void cases() {
        QFETCH(size_t, file);
        QFETCH(size_t, number);
        Case& one = m_files[file].cases[number];
        const Pass* pass = findPass(one.pass);
        QVERIFY2(pass != nullptr, qPrintable("no pass '" + one.pass + "'"));
        const auto before = parseCase(one.before, "before");
        QVERIFY2(before.has_value(), before ? "" : before.error().text().c_str());
        const Step step = runPass(*pass, *before, one.options);
        if (!one.fails.isEmpty()) {
            QCOMPARE(step.info.state, StepState::Failed);
            QVERIFY2(QString::fromStdString(step.info.error).contains(one.fails), step.info.error.c_str());
            return;
        }
        QVERIFY2(step.info.state != StepState::Failed, step.info.error.c_str());
        if (!one.counts.isEmpty()) {
            QStringList counts;
            for (const RuleUse& use : step.rules)
                if (use.counted > 0)
                    counts << QString("%1 counted %2, applied %3")
                                  .arg(QString::fromStdString(use.rule))
                                  .arg(use.counted)
                                  .arg(use.applied);
            QCOMPARE(counts.join("; "), one.counts);
        }
        for (const RewriteInfo& rewrite : step.rewrites) m_fired.insert(std::string(pass->name) + "/" + rewrite.rule);
        const bool changed = step.info.state == StepState::Changed;
        if (blesses()) {
            one.before = printedAs(**before, "before");
            one.after = changed ? printedAs(*step.after, "after") : QString();
        }
        checkSentences(one, *pass, *before);
        if (QTest::currentTestFailed()) return;
        QCOMPARE(printedAs(**before, "before"), one.before);
        QCOMPARE(changed ? printedAs(*step.after, "after") : QString(), one.after);
        for (int64_t fuel = 0; fuel < static_cast<int64_t>(step.rewrites.size()); ++fuel) {
            const Step part = runPass(*pass, *before, one.options, fuel);
            QVERIFY2(part.info.state != StepState::Failed,
                     qPrintable(QString("after %1 rewrites: ").arg(fuel) + part.info.error.c_str()));
            QCOMPARE(static_cast<int64_t>(part.rewrites.size()), fuel);
        }
        if (changed) {
            const auto after = parseCase(one.after, "after");
            QVERIFY2(after.has_value(), after ? "" : after.error().text().c_str());
            QCOMPARE(printedAs(**after, "after"), one.after);
            const Step again = runPass(*pass, step.after, one.options);
            if (one.idle.isEmpty())
                QVERIFY2(again.info.state == StepState::Unchanged,
                         qPrintable(QString("a second run is not idle: ") + again.info.error.c_str()));
            if (one.numbers.isEmpty()) checkNumbers(*before, step.after);
        }
    }

    void writesBlessedFiles() {
        if (!blesses()) QSKIP("only with CUTAWAY_BLESS=1");
        for (const CaseFile& file : m_files) {
            QString text = file.head;
            for (const Case& one : file.cases) {
                text += one.head.trimmed() + "\n" + one.before + (one.after.isEmpty() ? "" : "\n" + one.after) + "\n";
            }
            QFile out(file.path);
            QVERIFY(out.open(QIODevice::WriteOnly));
            out.write(text.trimmed().toUtf8() + "\n");
        }
    }

    /// Formulas are cases for themselves: traced, rewritten, and computed both ways. Forms with dropout are computed
    /// with a probability of 0, which keeps everything: drawn numbers differ from run to run.
    void tracedRules_data() {
        QTest::addColumn<size_t>("position");
        const TracedRules& formulas = attentionFormulas();
        for (size_t i = 0; i < formulas.rules.size(); ++i) QTest::newRow(formulas.rules[i].name.data()) << i;
    }
    void tracedRules() {
        QFETCH(size_t, position);
        const TracedRules& formulas = attentionFormulas();
        auto module = traceSearch(formulas.sources[position], 1.25, 1e-30);
        QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
        const Snapshot before = std::move(*module);
        // The table alone: in the pass, conversions that the backward of some half forms has are merged first, as in
        // PyTorch.
        auto after = std::make_shared<Module>(*before);
        CompileRequest options;
        options.pytorch = kNewestRelease;  // which has all of them
        Rewriter rewriter("attention", options);
        const auto changed = rewriter.applyRules(*after, formulas.rules);
        QVERIFY2(changed.has_value(), changed ? "" : changed.error().text().c_str());
        QStringList rewrites;
        for (const RewriteInfo& rewrite : rewriter.done()) rewrites << QString::fromStdString(rewrite.rule);
        QCOMPARE(rewrites.join(", "), QString(formulas.rules[position].name.data()));
        m_fired.insert("pass_pattern_0/" + rewriter.done()[0].rule);
        const auto verified = verify(*after);
        QVERIFY2(verified.has_value(), verified ? "" : verified.error().text().c_str());
        checkNumbers(before, after);
    }

    /// Every rewrite is by a rule that can be switched off, or by a pass whose rewrites belong together.
    void everyRewriteHasAName() {
        QStringList unknown;
        std::set<std::string> names;
        for (const RuleTable& table : ruleTables())
            for (const Rule& rule : table.rules) names.insert(std::string(table.pass) + "/" + std::string(rule.name));
        for (const Rule& rule : attentionFormulas().rules) names.insert("pass_pattern_0/" + std::string(rule.name));
        for (const CodeRule& rule : codeRules()) names.insert(std::string(rule.pass) + "/" + std::string(rule.name));
        for (const std::string& fired : m_fired) {
            const std::string pass = fired.substr(0, fired.find('/'));
            const bool together = !findPass(QString::fromStdString(pass))->undivided.empty();
            if (!together && !names.contains(fired)) unknown << QString::fromStdString(fired);
        }
        QVERIFY2(unknown.isEmpty(), qPrintable("not in codeRules(): " + unknown.join(", ")));
    }

    void everyRuleFires() {
        QStringList idle;
        for (const RuleTable& table : ruleTables())
            for (const Rule& rule : table.rules) {
                if (missesOperator(table, rule)) continue;
                const std::string name = std::string(table.pass) + "/" + std::string(rule.name);
                if (!m_fired.contains(name)) idle << QString::fromStdString(name);
            }
        QVERIFY2(idle.isEmpty(), qPrintable("no case for: " + idle.join(", ")));
    }

    void tablesAreSound() {
        for (const Error& error : attentionFormulas().broken)
            if (error.text().find(kNoOperator) == std::string::npos) QFAIL(error.text().c_str());
        for (const RuleTable& table : ruleTables()) {
            const RuleSet set = RuleSet::compileWorking(table.rules);
            QStringList broken;
            for (const Error& error : set.broken())
                if (error.text().find(kNoOperator) == std::string::npos) broken << QString::fromStdString(error.text());
            QVERIFY2(broken.isEmpty(),
                     qPrintable(QString::fromStdString(std::string(table.pass)) + ": " + broken.join("; ")));
            QVERIFY2(findPass(QString::fromStdString(std::string(table.pass))) != nullptr, table.pass.data());
        }
    }

    void tablesPrintAndLoad() {
        for (const RuleTable& table : ruleTables()) {
            const std::string text = printRules(table.rules);
            const auto loaded = loadRules(text, table.rules);
            QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
            QVERIFY(text.starts_with("rule "));
            const auto apart = QString::fromStdString(text).count("\n\nrule ");
            QCOMPARE(static_cast<size_t>(apart) + 1, table.rules.size());
            QCOMPARE(loaded->rules.size(), table.rules.size());
            QCOMPARE(printRules(loaded->rules), text);
            const RuleSet set = RuleSet::compileWorking(loaded->rules);
            const RuleSet original = RuleSet::compileWorking(table.rules);
            QCOMPARE(set.size(), original.size());
            for (size_t i = 0; i < set.size(); ++i)
                QCOMPARE(set.at(i).pattern.normalized(), original.at(i).pattern.normalized());
        }
    }
};

CUTAWAY_SUITE(CasesTest)
#include "cases_test.moc"
