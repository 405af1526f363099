// What passes that are written as functions say of the nodes that they leave alone. The sentences are those of
// tests/cases/explain/*.txt:
//
//   # explain: RULE at NODE
//   # says: why the rule leaves the node alone
//   def forward(x: "f32[2, 3]"): ...
//
// where several such pairs may stand over one graph. Other graphs, those of all cases and models, must get some
// sentence everywhere.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/node_names.h"
#include "cutaway/session.h"
#include "engine/formats/open.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/rule_tables.h"
#include "engine/text/parse.h"
#include "tests/support/case_files.h"
#include "tests/support/paths.h"
#include "tests/support/recorded_case.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// Every node of the module and of its bodies, with the path of the body.
template <class Visit>
void forEachNode(const Module& module, const std::string& path, Visit&& visit) {
    for (const Node& node : module.graph().nodes()) visit(path, node);
    for (const auto& [name, body] : module.subgraphs)
        forEachNode(*body, path.empty() ? name : path + "/" + name, visit);
}

std::vector<CodeRule> rulesOf(std::string_view pass) {
    std::vector<CodeRule> rules;
    for (const CodeRule& rule : codeRules())
        if (rule.pass == pass) rules.push_back(rule);
    for (const CodeRule& rule : undividedRules())
        if (rule.pass == pass) rules.push_back(rule);
    return rules;
}

}  // namespace

class ExplainTest : public QObject {
    Q_OBJECT

    QStringList m_silent;  // "pass/rule at node": nothing is said there

    /// Asks the pass about every node that one of its rules starts at.
    void askAll(const Pass& pass, const Snapshot& before, const CompileRequest& options, const QString& where) {
        const std::vector<CodeRule> rules = rulesOf(pass.name);
        if (rules.empty()) return;
        forEachNode(*before, "", [&](const std::string& path, const Node& node) {
            std::vector<const CodeRule*> asked;
            for (const CodeRule& rule : rules)
                if (startsAt(rule, node)) asked.push_back(&rule);
            if (asked.empty()) return;
            WatchedNode watched{path, node.id(), {}};
            const Step step = runPass(pass, before, options, {}, nullptr, nullptr, &watched);
            if (step.info.state == StepState::Failed) return;
            for (const CodeRule* rule : asked) hear(*rule, node, step, watched, where);
        });
        // What a rule rewrites, it starts at.
        const Step step = runPass(pass, before, options);
        for (const RewriteInfo& rewrite : step.rewrites) {
            const Module* body = before->body(rewrite.body);
            const Node* node = body ? body->graph().find(rewrite.nodeId) : nullptr;
            const auto rule =
                std::find_if(rules.begin(), rules.end(), [&](const CodeRule& one) { return one.name == rewrite.rule; });
            if (node && rule != rules.end())
                QVERIFY2(startsAt(*rule, *node), (rewrite.rule + " starts at " + node->name()).c_str());
        }
    }
    void hear(const CodeRule& rule, const Node& node, const Step& step, const WatchedNode& watched,
              const QString& where) {
        const QString name = QString::fromStdString(std::string(rule.pass) + "/" + std::string(rule.name));
        for (const RewriteInfo& rewrite : step.rewrites)
            if (rewrite.nodeId == node.id() && rewrite.body == watched.body) return;
        // A node that goes with the rewrite of another one needs no sentence.
        const Module* after = step.after->body(watched.body);
        const bool applied = std::any_of(step.rewrites.begin(), step.rewrites.end(), [&](const RewriteInfo& rewrite) {
            return rule.whole || rewrite.rule == rule.name;
        });
        if (applied && after && !after->graph().find(node.id())) return;
        const auto said = refusalOf(watched.refusals, rule);
        if (said == watched.refusals.end()) {
            m_silent << name + " at " + QString::fromStdString(node.name()) + " of " + where;
            return;
        }
        const QString why = QString::fromStdString(said->why);
        QVERIFY2(!why.isEmpty() && !why.endsWith('.') && !why.contains("  ") &&
                     !why.startsWith("the operator stays as it is") && !why.contains("``"),
                 qPrintable(name + ": " + why));
    }

    void checkSilence() {
        const QStringList silent = std::exchange(m_silent, {});
        QVERIFY2(silent.isEmpty(),
                 qPrintable(QString::number(silent.size()) + " without a reason: " + silent.mid(0, 12).join("; ")));
    }

  private slots:
    /// Rules that are code are listed with their pass, and with no other.
    void rulesOfAPassAreItsOwn() {
        for (const CodeRule& rule : codeRules()) {
            const auto text = ruleTexts({}, std::string(rule.pass));
            QVERIFY2(text.has_value(), text ? "" : text.error().text().c_str());
            const auto own = std::count_if(codeRules().begin(), codeRules().end(),
                                           [&](const CodeRule& other) { return other.pass == rule.pass; });
            QCOMPARE(QString::fromStdString(*text).count(" (code): "), own);
            QVERIFY(text->find("# " + std::string(rule.name) + " (code): ") != std::string::npos);
        }
    }

    void everyCaseIsExplained_data() {
        QTest::addColumn<size_t>("file");
        const auto files = readCaseFiles();
        for (size_t i = 0; i < files.size(); ++i) QTest::newRow(qPrintable(files[i].cases[0].file)) << i;
    }
    void everyCaseIsExplained() {
        QFETCH(size_t, file);
        static const std::vector<CaseFile> kFiles = readCaseFiles();
        for (const Case& one : kFiles[file].cases) {
            const Pass* pass = findPass(one.pass);
            const auto before = parseCase(one.before, "before");
            QVERIFY2(pass && before, qPrintable(one.name));
            askAll(*pass, *before, one.options, one.name);
        }
        checkSilence();
    }

    /// The graphs that PyTorch's own results were recorded for.
    void everyRecordIsExplained_data() {
        QTest::addColumn<QString>("path");
        for (const char* folder : {"pre_grad", "post_grad_recorded"})
            for (const QString& path : recordedFiles(folder))
                QTest::newRow(qPrintable(QFileInfo(path).completeBaseName())) << path;
    }
    void everyRecordIsExplained() {
        QFETCH(QString, path);
        RecordedCase one = readRecordedCase(path);
        one.options.target = Target::Cuda;  // permute fusions are for GPUs
        auto graph = parseCase(one.before, "forward");
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        for (const QString& name : one.passes)
            if (const Pass* pass = findPass(name)) {
                askAll(*pass, *graph, one.options, one.name);
                graph = runPass(*pass, *graph, one.options).after;
            }
        checkSilence();
    }

    /// Every pass on every graph that a compile makes of the bundled models, optional ones where their stage begins.
    void everyModelIsExplained_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<Mode>("mode");
        for (const QString& model : QDir(CUTAWAY_SOURCE_DIR "/resources/models").entryList({"*.pt2"}))
            for (const Mode mode : kModes)
                QTest::newRow(qPrintable(model + ", " + modeName(mode).data())) << model << mode;
    }
    void everyModelIsExplained() {
        QFETCH(QString, model);
        QFETCH(Mode, mode);
        auto opened = openFile((CUTAWAY_SOURCE_DIR "/resources/models/" + model).toStdString());
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        const Snapshot input = std::move(opened->graphs.at(0).module);
        CompileRequest options;
        options.mode = mode;
        const auto trace = runPipeline(input, options, {});
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        for (const StagePass& one : pipeline()) {
            const Pass& pass = *one.pass;
            if (pass.compare) continue;  // it only looks
            const auto isStage = [&](const Step& step) { return step.info.stage == one.stage->name; };
            const auto isStep = [&](const Step& step) { return step.info.name == pass.name && isStage(step); };
            auto step = std::find_if(trace->steps.begin(), trace->steps.end(), isStep);
            if (step == trace->steps.end()) step = std::find_if(trace->steps.begin(), trace->steps.end(), isStage);
            if (step != trace->steps.end())
                askAll(pass, step->before, options, QString::fromStdString(step->info.name));
        }
        checkSilence();
    }

    /// tests/cases/explain/*.txt.
    void refusals_data() {
        QTest::addColumn<std::string>("rule");
        QTest::addColumn<std::string>("node");
        QTest::addColumn<QString>("sentence");
        QTest::addColumn<QString>("options");
        QTest::addColumn<QString>("code");
        const QDir folder(testFile("cases/explain"));
        for (const QString& name : folder.entryList({"*.txt"}, QDir::Files, QDir::Name)) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QString text = QString::fromUtf8(file.readAll());
            const QRegularExpression question("^# explain: (\\S.*) at (\\S+)\n(?:# options: (.+)\n)?# says: (.+)\n",
                                              QRegularExpression::MultilineOption);
            for (auto each = question.globalMatch(text); each.hasNext();) {
                const auto match = each.next();
                // Several questions may stand over one graph, which ends where the next ones begin.
                const qsizetype begin = text.indexOf("\ndef ", match.capturedEnd() - 1),
                                end = text.indexOf("\n# ", begin);
                const QString row =
                    QString("%1 at %2: %3").arg(match.captured(1), match.captured(2), match.captured(4));
                QTest::newRow(qPrintable(row))
                    << match.captured(1).toStdString() << match.captured(2).toStdString() << match.captured(4)
                    << match.captured(3) << text.mid(begin + 1, end < 0 ? -1 : end - begin).trimmed() + "\n";
            }
        }
    }
    void refusals() {
        QFETCH(std::string, rule);
        QFETCH(std::string, node);
        QFETCH(QString, code);
        QFETCH(QString, options);
        QFETCH(QString, sentence);
        QTemporaryDir scratch;
        const QString path = scratch.filePath("model.py");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(code.toUtf8());
        file.close();
        Session session;
        const auto opened = session.open(path.toStdString());
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        const Place input{0, -1, -1};
        CompileRequest wanted = readOptions(options, "explain");
        wanted.onlyStage = "pre_grad";  // the graph is asked about as it is
        const auto run = session.compile(wanted);
        // Some of the graphs cannot be compiled; they are asked about under no request.
        QVERIFY2(run || options.isEmpty(), run ? "" : run.error().text().c_str());
        const auto id = findNode(session, input, node);
        QVERIFY2(id, id ? "" : id.error().text().c_str());
        const auto found = session.explain(input, rule, *id);
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QVERIFY(!found->applies);
        QCOMPARE(QString::fromStdString(found->reason), sentence);
        m_tested.insert(QString::fromStdString(found->pass + "/" + found->rule));
    }
    void everyRuleHasARow() {
        // These apply at every call that they start at.
        static const QStringList kNeverDecline = {"view_to_reshape/view_to_reshape",
                                                  "decompose_auto_functionalized/decompose_auto_functionalized",
                                                  "begin_schedule/begin_schedule", "flex_attention/flex_attention"};
        // Two passes may be one function.
        QSet<QString> names;
        for (const QString& tested : m_tested) names.insert(tested.section('/', 1));
        // Cases of passes hold sentences, too.
        const QRegularExpression says("^# says: (\\S.*) at \\S+: ", QRegularExpression::MultilineOption);
        for (const CaseFile& file : readCaseFiles())
            for (const Case& one : file.cases)
                for (auto each = says.globalMatch(one.head); each.hasNext();) names.insert(each.next().captured(1));
        QStringList missing;
        std::vector<CodeRule> rules = codeRules();
        rules.insert(rules.end(), undividedRules().begin(), undividedRules().end());
        for (const CodeRule& rule : rules) {
            const QString name = QString::fromStdString(std::string(rule.pass) + "/" + std::string(rule.name));
            const bool oneOfMany =
                rule.pass == "expand_composites" || rule.pass == "decompose";  // whose operators decline alike
            if (!oneOfMany && !kNeverDecline.contains(name) && !names.contains(name.section('/', 1))) missing << name;
        }
        QVERIFY2(missing.isEmpty(), qPrintable("no sentence is tested of: " + missing.join(", ")));
    }

  private:
    QSet<QString> m_tested;
};

CUTAWAY_SUITE(ExplainTest)
#include "explain_test.moc"
