// Rules and passes of the user's own: where they run, rules that are traced, what does not load; switching off and
// moving passes. Passes of plugins that make graphs or fail stand in plugin_passes_test.cpp.
#include "engine/passes/user_passes.h"

#include <QtTest>

#include "engine/interpret/interpret.h"
#include "engine/text/print.h"
#include "tests/support/compiles.h"
#include "tests/support/rule_texts.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

/// "find: a; b" becomes a block with a statement a line, "why: text" a property.
std::string rulesText(const QString& text) {
    QString out;
    for (const QString& line : text.split('\n', Qt::SkipEmptyParts)) {
        const QString key = line.section(": ", 0, 0), rest = line.section(": ", 1);
        const bool block = key == "find" || key == "replace" || key == "search" || key == "replace_by_example";
        if (key == "rule") out += "rule " + rest + "\n";
        else if (block) out += "  " + key + "\n    " + QString(rest).replace("; ", "\n    ") + "\n";
        else out += "  " + key + (rest.isEmpty() ? "" : " " + rest) + "\n";
    }
    return out.toStdString();
}
CompileRequest withRules(const QString& rules) {
    CompileRequest options;
    options.userRules.push_back({"mine", rulesText(rules)});
    return options;
}
const Step* stepOf(const CompileTrace& trace, const QString& name) {
    for (const Step& step : trace.steps)
        if (step.info.name == name.toStdString()) return &step;
    return nullptr;
}

constexpr const char* kSinToCos =
    "rule: sin_to_cos\nfind: r = aten.sin.default(a); return r\nreplace: r = aten.cos.default(a); return r\n";
const QString kSilu =
    "rule: silu\nplace: joint_custom_pre_pass\nfind: s = aten.sigmoid.default(a); r = aten.mul.Tensor(a, s); return r\n";

}  // namespace

class UserPassesTest : public QObject {
    Q_OBJECT
  private slots:
    void places_data() {
        QTest::addColumn<QString>("neighbour");
        QTest::addColumn<int>("offset");
        // As PyTorch has them: behind or before which pass.
        QTest::newRow("pre_grad_custom_pass") << "apply_gumbel_max_trick_pass" << 1;
        QTest::newRow("joint_custom_pre_pass") << "remove_noop_ops" << -1;
        QTest::newRow("joint_custom_post_pass") << "replace_random_passes" << 1;
        QTest::newRow("post_grad_custom_pre_pass") << "remove_profiler_ops" << -1;
        QTest::newRow("post_grad_custom_post_pass") << "stable_sort" << -1;
    }
    void places() {
        QFETCH(QString, neighbour);
        QFETCH(int, offset);
        const QString place = QTest::currentDataTag();
        CompileRequest options = withRules(QString(kSinToCos) + "place: " + place + "\n");
        int ran = 0;
        const CompileHooks lent = lend(options, {place.toStdString(), "hook", "1", ""},
                                       [&](Module&, Rewriter&) -> Result<bool> { return ++ran < 0; });
        const CompileTrace trace = compiled(parsed("p = aten.sin.default(x); return (p,)"), options, lent);
        QVERIFY(!trace.failed());
        const QStringList names = stepNames(trace);
        const qsizetype own = names.indexOf(place + ".mine"), anchor = names.indexOf(neighbour);
        QVERIFY(anchor >= 0);
        QVERIFY(own >= 0);
        QCOMPARE(names.indexOf(place + ".hook"), own + 1);
        QCOMPARE(offset < 0 ? own + 2 : own, offset < 0 ? anchor : anchor + 1);
        QCOMPARE(ran, 1);
        const Step& step = trace.steps[static_cast<size_t>(own)];
        QCOMPARE(step.info.state, StepState::Changed);
        QCOMPARE(step.rewrites[0].rule, std::string("sin_to_cos"));
        QCOMPARE(calls(*step.after), QString("aten.cos.default"));
        const auto unspent = replayRewrites(step, trace, 0);
        QCOMPARE(calls(**unspent), QString("aten.sin.default"));
    }

    void applies_data() {
        QTest::addColumn<QString>("rules");
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        QTest::addColumn<bool>("parity");
        const QString graph = "s = aten.sigmoid.default(x); p = aten.mul.Tensor(x, s); return (p,)";
        QTest::newRow("replaced by a text") << kSilu + "replace: r = aten.relu.default(a); return r\n"
                                            << graph << "aten.relu.default" << false;
        QTest::newRow("replaced by what an example becomes")
            << kSilu + "replace_by_example: r = aten.softmax.int(a, -1); return r\n"
            << graph << "aten.amax.default, aten.sub.Tensor, aten.exp.default, aten.sum.dim_IntList, aten.div.Tensor"
            << false;
        QTest::newRow("an example with Python's functions")
            << kSilu + "replace_by_example: m = torch.nn.functional.relu(a); r = m * 2; return r\n"
            << graph << "aten.relu.default, aten.mul.Tensor" << false;
        const QString scaled =
            "rule: softmax\nparameters: a f32[2, 3]; k f32[]\nsearch: m = aten.mul.Tensor(a, k); r = aten.softmax.int(m, -1); return r\n"
            "replace_by_example: r = aten.mul.Tensor(a, k); return r\n";
        const auto softmax = [](const char* dim) {
            return QString(
                       "m = aten.mul.Tensor(x, 3); a = aten.amax.default(m, [%1], True); d = aten.sub.Tensor(m, a); e = aten.exp.default(d); "
                       "s = aten.sum.dim_IntList(e, [%1], True); p = aten.div.Tensor(e, s); return (p,)")
                .arg(dim);
        };
        QTest::newRow("found by what a formula becomes") << scaled << softmax("-1") << "aten.mul.Tensor" << false;
        QTest::newRow("what the formula says is held to")
            << scaled << softmax("-2")
            << "aten.mul.Tensor, aten.amax.default, aten.sub.Tensor, aten.exp.default, aten.sum.dim_IntList, aten.div.Tensor"
            << false;
        QTest::newRow("but for parity") << scaled << softmax("-2") << "aten.mul.Tensor" << true;
    }
    void applies() {
        QFETCH(QString, rules);
        QFETCH(QString, before);
        QFETCH(QString, after);
        QFETCH(bool, parity);
        CompileRequest options = withRules(rules);
        options.parity = parity;
        options.onlyStage = "joint";
        const CompileTrace trace = compiled(parsed(before), options);
        const Step* step = stepOf(trace, "joint_custom_pre_pass.mine");
        QVERIFY2(step && step->info.error.empty(), step ? step->info.error.c_str() : "no step");
        QCOMPARE(calls(*step->after), after);
    }

    /// Calls as Python writes them, before capture.
    void matchesPythonCalls_data() {
        QTest::addColumn<QString>("rules");
        QTest::addColumn<QString>("before");
        QTest::addColumn<QString>("after");
        const QString rule = "rule: mine\nplace: pre_grad_custom_pass\n";
        const QString graph =
            "h = torch.nn.functional.relu(x, inplace=False); v = h.view(2, 8); p = v + 1; return (p,)";
        QTest::newRow("a function")
            << rule +
                   "find: r = torch.nn.functional.relu(a); return r\nreplace: r = torch.nn.functional.gelu(a, approximate='tanh'); return r\n"
            << graph << "torch.nn.functional.gelu, view, operator.add";
        QTest::newRow("a method and an operator")
            << rule + "find: r = a.view($m, $n) + 1; return r\nreplace: b = a + 1; r = b.view($m, $n); return r\n"
            << graph << "torch.nn.functional.relu, operator.add, view";
        QTest::newRow("another value")
            << rule + "find: r = a.view($m, $n) + 2; return r\nreplace: b = a + 2; r = b.view($m, $n); return r\n"
            << graph << "torch.nn.functional.relu, view, operator.add";
        QTest::newRow("in ATen's operators")
            << rule +
                   "find: r = torch.nn.functional.relu(a); return r\nreplace_by_example: r = torch.nn.functional.leaky_relu(a); return r\n"
            << graph << "aten.gt.Scalar, aten.mul.Tensor, aten.where.self, view, operator.add";
        QTest::newRow("operators of an exported graph")
            << rule + "find: r = aten.relu.default(a); return r\nreplace: r = torch.sigmoid(a); return r\n"
            << "p = aten.relu.default(x); return (p,)"
            << "torch.sigmoid";
    }
    void matchesPythonCalls() {
        QFETCH(QString, rules);
        QFETCH(QString, before);
        QFETCH(QString, after);
        const CompileTrace trace = compiled(parsed(before), withRules(rules));
        QVERIFY2(!trace.failed(), trace.steps.back().info.error.c_str());
        const Step* step = stepOf(trace, "pre_grad_custom_pass.mine");
        QVERIFY(step != nullptr);
        QCOMPARE(calls(*step->after), after);
        for (const Node& node : trace.result()->graph().nodes()) QVERIFY2(!node.type().isOpaque(), node.name().c_str());
    }

    /// A rule of training finds forward and backward together.
    void findsGradients() {
        const QString rule =
            "rule: tanh_twice\nparameters: a f32[2, 3] grad\ntraining\nsearch: t = aten.tanh.default(a); r = aten.tanh.default(t); return r\n"
            "replace_by_example: r = aten.tanh.default(a); return r\n";
        CompileRequest options = withRules(rule);
        options.mode = Mode::Training;
        const auto own = UserPasses::make(options);
        QVERIFY2(own.has_value(), own ? "" : own.error().text().c_str());
        const auto tables = (*own)->tables();
        QCOMPARE(tables[0].rules.size(), size_t{2});
        auto joint = traceFormula("t = aten.tanh.default(x); r = aten.tanh.default(t); return r",
                                  *readFormulaInputs("x f32[4, 4] grad"), TraceKind::Joint);
        QVERIFY2(joint.has_value(), joint ? "" : joint.error().text().c_str());
        options.onlyStage = "joint";
        const CompileTrace trace = compiled(std::move(*joint), options);
        const Step* step = stepOf(trace, "joint_custom_pre_pass.mine");
        QCOMPARE(step->rewrites.size(), size_t{1});
        QCOMPARE(step->rewrites[0].rule, std::string("tanh_twice_training"));
        QCOMPARE(calls(*step->after).count("aten.tanh.default"), 1);
    }

    void refuses_data() {
        QTest::addColumn<QString>("rules");
        QTest::addColumn<QString>("error");
        const QString find = "find: r = aten.sin.default(a); return r\n",
                      replace = "replace: r = aten.cos.default(a); return r\n";
        const QString rule = "rule: r\n" + find + replace;
        QTest::newRow("no such place") << rule + "place: nowhere\n"
                                       << "no place named 'nowhere'";
        QTest::newRow("two of one name") << rule +
                                                "rule: r\nfind: r = aten.cos.default(a); return r\nreplace: return a\n"
                                         << "two rules have this name";
        QTest::newRow("two of one pattern")
            << rule + "rule: other\nfind: q = aten.sin.default(b); return q\nreplace: return b\n"
            << "has the same pattern and comes first";
        QTest::newRow("no find") << "rule: r\n" + replace << "rule r has no 'find'";
        QTest::newRow("nothing to find with")
            << "rule: r\nsearch: r = aten.sin.default(a); return r\nreplace_by_example: return a\n"
            << "without 'parameters'";
        QTest::newRow("both ways to find") << rule + "search: r = aten.sin.default(a); return r\n"
                                           << "give one of the two";
        QTest::newRow("Python's calls where there are none")
            << "rule: r\nfind: r = torch.relu(a); return r\n" + replace << "'torch.relu' is called as in Python";
        QTest::newRow("Python's calls to be made where there are none")
            << "rule: r\nplace: post_grad_custom_post_pass\n" + find + "replace: r = a.cos(); return r\n"
            << "'cos' is called as in Python";
        QTest::newRow("no operator") << "rule: r\nfind: r = aten.nothing.default(a); return r\n" + replace
                                     << "no operator 'aten.nothing.default'";
        QTest::newRow("a property that is none") << rule + "when: noon\n"
                                                 << "no property 'when noon'";
        QTest::newRow("a condition in C++ without one") << rule + "unless: (code)\n"
                                                        << "no built-in rule of that name has one";
        QTest::newRow("a formula that does not fit")
            << "rule: r\nparameters: a f32[2, 3]\nsearch: r = aten.mm.default(a, a); return r\nreplace_by_example: return a\n"
            << "mm";
        const auto sized = [](const char* call) {
            return QString(
                       "rule: r\nparameters: a f32[2, 3]; k f32[]\nsearch: r = aten.mul.Tensor(a, k); return r\nreplace_by_example: r = aten.mul.Tensor(a, %1); return r\n")
                .arg(call);
        };
        QTest::newRow("the size of nothing") << sized("size(b, 0)") << "size is of one of the parameters";
        QTest::newRow("a dim that is none") << sized("size(a, 2)") << "size of a has no dims 2";
        QTest::newRow("a dim that is not a number") << sized("sqrt_size(a, x)") << "sqrt_size of a has no dims x";
        QTest::newRow("a call without end") << sized("dtype_of(a") << "";
        QTest::newRow("parameters without a type")
            << "rule: r\nparameters: a\nsearch: return a\nreplace_by_example: return a\n"
            << "a parameter is a name and a type";
        QTest::newRow("two parameters of one name")
            << "rule: r\nparameters: a f32[2]; a f32[3]\nsearch: r = aten.sin.default(a); return r\nreplace_by_example: return a\n"
            << "two parameters have this name";
        QTest::newRow("a number first")
            << "rule: r\nparameters: a number\nsearch: return a\nreplace_by_example: return a\n"
            << "the first parameter is a tensor";
        QTest::newRow("nothing is found")
            << "rule: r\nparameters: a f32[2]\nsearch: return a\nreplace_by_example: return a\n"
            << "";
        QTest::newRow("a parameter that is not found")
            << "rule: r\nparameters: a f32[2, 3]; b f32[2, 3]\nsearch: r = aten.sin.default(a); return r\nreplace_by_example: r = aten.add.Tensor(a, b); return r\n"
            << "'search' does not read 'b'";
        QTest::newRow("another number of results")
            << "rule: r\nparameters: a f32[2, 3]\nsearch: r = aten.sin.default(a); return r\nreplace_by_example: r = aten.sin.default(a); s = aten.cos.default(a); return r, s\n"
            << "different numbers of results";
    }
    void refuses() {
        QFETCH(QString, rules);
        QFETCH(QString, error);
        const auto trace = runPipeline(parsed("p = aten.sin.default(x); return (p,)"), withRules(rules));
        QVERIFY(!trace.has_value());
        QVERIFY2(QString::fromStdString(trace.error().text()).contains(error), trace.error().text().c_str());
        QVERIFY2(trace.error().text().find("mine") != std::string::npos, trace.error().text().c_str());
    }

    void printsAndLoads() {
        const QString text =
            QString(kSinToCos) + kSilu + "replace_by_example: r = aten.softmax.int(a, -1); return r\n" +
            "rule: traced\nplace: post_grad_custom_post_pass\nwhy: because\nparameters: a f32[2, 3] grad; k f32[]\ntraining\n"
            "search: m = aten.mul.Tensor(a, k); r = aten.tanh.default(m); return r\nreplace_by_example: r = aten.tanh.default(a); return r\n";
        const auto own = UserPasses::make(withRules(text));
        QVERIFY2(own.has_value(), own ? "" : own.error().text().c_str());
        CompileRequest again;
        again.userRules.push_back({"mine", (*own)->text()});
        const auto reloaded = UserPasses::make(again);
        QVERIFY2(reloaded.has_value(), reloaded ? "" : reloaded.error().text().c_str());
        QCOMPARE((*reloaded)->text(), (*own)->text());
        const std::vector<RuleTable> tables = (*own)->tables(), loaded = (*reloaded)->tables();
        QCOMPARE(loaded.size(), tables.size());
        for (size_t i = 0; i < tables.size(); ++i) {
            const auto &a = tables[i].rules, &b = loaded[i].rules;
            QCOMPARE(a.size(), b.size());
            for (size_t k = 0; k < a.size(); ++k) QCOMPARE(b[k].name, a[k].name);
        }
    }

    void disables_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("after");
        QTest::newRow("a rule by name") << "pointless_view"
                                        << "aten.view.default, aten.cos.default";
        QTest::newRow("a rule by pass and name") << "early_patterns/pointless_view"
                                                 << "aten.view.default, aten.cos.default";
        QTest::newRow("a rule of the user's own") << "sin_to_cos"
                                                  << "aten.sin.default";
        QTest::newRow("a pass of the user's own") << "joint_custom_pre_pass.mine"
                                                  << "aten.sin.default";
        QTest::newRow("a pass") << "early_patterns"
                                << "aten.view.default, aten.cos.default";
        QTest::newRow("another pass's rule") << "pass_pattern_0/pointless_convert"
                                             << "aten.cos.default";
    }
    void disables() {
        QFETCH(QString, name);
        QFETCH(QString, after);
        CompileRequest options = withRules(kSinToCos);
        options.onlyStage = "joint";
        options.disabledPasses = {name.toStdString(), "remove_noop_ops"};
        const CompileTrace trace =
            compiled(parsed("v = aten.view.default(x, [4, 4]); p = aten.sin.default(v); return (p,)"), options);
        QVERIFY(!trace.failed());
        QCOMPARE(calls(*trace.result()), after);
    }
    /// Rules of passes that are written as functions, one by one: the others of the pass go on.
    void disablesCode_data() {
        QTest::addColumn<QString>("stage");
        QTest::addColumn<QString>("body");
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("after");
        const QString noops =
            "v = aten.view.default(x, [4, 4]); c = aten.clone.default(v); p = aten.sin.default(c); return (p,)";
        QTest::newRow("nothing") << "joint" << noops << "fuse_seed_creation"
                                 << "aten.sin.default";
        QTest::newRow("one operator that does nothing") << "joint" << noops << "remove_noop_ops/aten.clone.default"
                                                        << "aten.clone.default, aten.sin.default";
        QTest::newRow("in every pass") << "joint" << noops << "aten.clone.default"
                                       << "aten.clone.default, aten.sin.default";
        const QString folds =
            "z = aten.full.default([4, 4], 0); u = aten.exp.default(z); a = aten.add.Tensor(x, z); m = aten.mul.Tensor(u, a); n = aten.mul.Tensor(m, 0); return (m, n)";
        QTest::newRow("zeros are not added") << "joint" << folds << "fuse_seed_creation"
                                             << "aten.full.default, aten.full.default, aten.full.default";
        QTest::newRow("zeros are added")
            << "joint" << folds << "neutral_operand"
            << "aten.full.default, aten.full.default, aten.add.Tensor, aten.mul.Tensor, aten.full.default";
        QTest::newRow("products with 0 are computed") << "joint" << folds << "constant_fold_uniform_value/zero_product"
                                                      << "aten.full.default, aten.full.default, aten.mul.Tensor";
        QTest::newRow("an expansion")
            << "capture"
            << "l = aten.linear.default(x, y); g = aten.silu.default(l); return (g,)"
            << "expand_composites/aten.linear.default"
            << "aten.permute.default, aten.mm.default, aten.neg.default, aten.exp.default, aten.add.Tensor, aten.div.Tensor";
        QTest::newRow("an expansion in every pass")
            << "capture"
            << "l = aten.linear.default(x, y); g = aten.silu.default(l); return (g,)"
            << "aten.linear.default"
            << "aten.linear.default, aten.neg.default, aten.exp.default, aten.add.Tensor, aten.div.Tensor";
    }
    void disablesCode() {
        QFETCH(QString, stage);
        QFETCH(QString, body);
        QFETCH(QString, name);
        QFETCH(QString, after);
        CompileRequest options;
        options.onlyStage = stage.toStdString();
        options.disabledPasses = {name.toStdString()};
        options.parity = true;             // only then do real numbers go through every rule about zeros,
        options.pytorch = kOldestRelease;  // and no more in newer releases
        const CompileTrace trace = compiled(parsed(body), options);
        QVERIFY2(!trace.failed(), trace.steps.back().info.error.c_str());
        QCOMPARE(calls(*trace.result()), after);
    }
    void suggestsNames_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("note");
        QTest::newRow("a rule") << "pointless_veiw"
                                << "did you mean pointless_view?";
        QTest::newRow("a pass") << "early_pattern"
                                << "did you mean early_patterns?";
        QTest::newRow("behind its pass")
            << "early_patterns/pointles_view"
            << "did you mean early_patterns/pointless_view or early_patterns/pointless_view_pair?";
        QTest::newRow("a rule that is a function") << "zero_products"
                                                   << "did you mean zero_product?";
        QTest::newRow("nothing near") << "qqqqqqqqqqq"
                                      << "`cutaway-cli steps` lists the passes, `cutaway-cli rules` the rules";
    }
    void suggestsNames() {
        QFETCH(QString, name);
        QFETCH(QString, note);
        CompileRequest options;
        options.disabledPasses = {name.toStdString()};
        const auto trace = runPipeline(parsed("return (x,)"), options);
        QVERIFY(!trace.has_value());
        QCOMPARE(QString::fromStdString(trace.error().notes.at(0)), note);
    }
    void disablesOnlyWhatThereIs() {
        CompileRequest options;
        for (const char* name : {"nothing", "early_patterns/sin_to_cos", "nothing/pointless_view"}) {
            options.disabledPasses = {name};
            const auto trace = runPipeline(parsed("return (x,)"), options);
            QVERIFY(!trace.has_value());
            QCOMPARE(trace.error().message, "no pass or rule named '" + std::string(name) + "'");
        }
    }

    void moves_data() {
        QTest::addColumn<QString>("move");
        QTest::addColumn<QString>("error");
        QTest::newRow("before another") << "early_patterns=before:constant_fold_uniform_value"
                                        << "";
        QTest::newRow("behind another") << "remove_assert_ops=after:post_grad_pass_pattern_2"
                                        << "";
        QTest::newRow("one of the user's own") << "joint_custom_pre_pass.mine=after:early_patterns"
                                               << "";
        QTest::newRow("before what it depends on")
            << "pass_pattern_1=before:pass_pattern_0"
            << "'pass_pattern_1' cannot run before 'pass_pattern_0': attention is recognised by its softmax, which pass_pattern_1 rewrites";
        QTest::newRow("before a pass in between")
            << "pass_pattern_1=before:remove_noop_ops"
            << "'pass_pattern_1' cannot run before 'pass_pattern_0': attention is recognised by its softmax, which pass_pattern_1 rewrites";
        QTest::newRow("out of its stage")
            << "early_patterns=before:functionalize"
            << "'early_patterns' cannot run before 'decompose': the rules of the joint stage are written for expanded operators";
        QTest::newRow("behind reinplacing")
            << "stable_sort=after:reinplace_inplaceable_ops"
            << "'reinplace_inplaceable_ops' cannot run before 'stable_sort': after it the graph is no longer functional";
        QTest::newRow("no such pass") << "nothing=before:early_patterns"
                                      << "no pass named 'nothing' runs";
        QTest::newRow("no such anchor") << "early_patterns=before:nothing"
                                        << "no pass named 'nothing' runs";
        QTest::newRow("beside itself") << "early_patterns=before:early_patterns"
                                       << "'early_patterns' cannot be moved beside itself";
    }
    void moves() {
        QFETCH(QString, move);
        QFETCH(QString, error);
        CompileRequest options = withRules(kSinToCos);
        const auto read = parsePassMove(move.toStdString());
        QVERIFY(read.has_value());
        options.moves = {*read};
        const auto trace = runPipeline(parsed("p = aten.sin.default(x); return (p,)"), options);
        QCOMPARE(trace ? QString() : QString::fromStdString(trace.error().message), error);
        if (!trace) return;
        const QStringList names = stepNames(*trace);
        const qsizetype pass = names.indexOf(QString::fromStdString(read->pass)),
                        anchor = names.indexOf(QString::fromStdString(read->anchor));
        QVERIFY(pass >= 0 && anchor >= 0);
        QCOMPARE(pass, read->before ? anchor - 1 : anchor + 1);
        QCOMPARE(names.size(),
                 stepNames(compiled(parsed("p = aten.sin.default(x); return (p,)"), withRules(kSinToCos))).size());
    }
    /// The order of the table itself breaks none of its dependencies, with every optional pass on as well.
    void pipelineIsInOrder() {
        for (const Mode mode : {Mode::Inference, Mode::Training}) {
            CompileRequest options;
            options.mode = mode;
            for (const std::string_view name : passNames(true))
                options.enabledPasses.push_back({std::string(name), {}});
            options.moves = {*parsePassMove("early_patterns=before:pass_pattern_0")};
            const auto trace = runPipeline(parsed("return (x,)"), options);
            QVERIFY2(trace.has_value(), trace ? "" : trace.error().text().c_str());
        }
    }
    void readsMoves() {
        for (const char* text : {"", "a", "a=b", "a=beside:b", "a=before:", "=before:b"})
            QVERIFY2(!parsePassMove(text).has_value(), text);
    }

    /// PRE-12: in PyTorch's list for graphs before dispatch only the fusion of like calls does anything.
    void predispatch() {
        CompileRequest options;
        options.onlyStage = "pre_grad";
        options.enabledPasses = {
            {"is_predispatch", {}}, {"normalization_pass", {}}, {"batch_tanh", {}}, {"split_cat_pass", {}}};
        QCOMPARE(stepNames(compiled(parsed("return (x,)"), options)).join(", "),
                 QString("batch_tanh, stable_topological_sort, quant_lift_up"));
    }
};

CUTAWAY_SUITE(UserPassesTest)
#include "user_passes_test.moc"
