// The partition beside what PyTorch recorded of it (partition_golden_test): solvers against each other, halves against
// the whole, marks, errors, sentences. Budgets have a test of their own (partition_budgets_test).
#include "engine/partition/partition.h"

#include <QtTest>

#include "cutaway/bisect.h"
#include "cutaway/session.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/partition/explain_partition.h"
#include "engine/partition/join_graphs.h"
#include "engine/partition/op_sets.h"
#include "engine/passes/pipeline.h"
#include "engine/passes/whole_program.h"
#include "engine/session/session_state.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

Snapshot graphFrom(const std::string& text) {
    auto graph = parseText(text);
    if (!graph) qFatal("%s", graph.error().text().c_str());
    return std::move(*graph);
}
/// A joint graph: `calls` between inputs p1, p2, ... ("f32[4, 4]") with one tangent, and what is returned.
Snapshot joint(int primals, const std::string& calls, const std::string& returned) {
    std::string inputs, names;
    for (int i = 1; i <= primals; ++i) {
        inputs += "primals_" + std::to_string(i) + ": \"f32[4, 4]\"; ";
        names += "primals_" + std::to_string(i) + ", ";
    }
    return graphFrom("class joint(torch.nn.Module):\n    def forward(self, primals, tangents):\n        " + inputs +
                     "tangents_1: \"f32[4, 4]\"; \n\n        " + names +
                     "tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n" + calls +
                     "        return pytree.tree_unflatten([" + returned + "], self._out_spec)\n");
}
std::string line(const std::string& name, const std::string& call) {
    return "        " + name + ": \"f32[4, 4]\" = torch.ops.aten." + call + "\n";
}

CompileRequest training(std::vector<std::pair<std::string, std::string>> settings = {}) {
    CompileRequest request;
    request.mode = Mode::Training;
    if (!settings.empty()) request.enabledPasses = {{"partition", std::move(settings)}};
    return request;
}

Result<CompileTrace> split(const Snapshot& graph, CompileRequest request) {
    request.onlyStage = "partition";
    CT_TRY(CompileTrace trace, runPipeline(graph, request));
    if (trace.failed()) return Error{trace.steps.back().error.code, trace.steps.back().info.error, {}, {}};
    return trace;
}
QString saved(const CompileTrace& trace) {
    QStringList out;
    const Snapshot forward = trace.resultOf("forward");
    for (const OutputSpec& output : forward->outputs)
        if (output.kind == OutputSpec::Kind::Saved) out << QString::fromStdString(output.target);
    return out.join(' ');
}
QString calls(const Snapshot& graph) {
    QStringList out;
    for (const Node& node : graph->graph().nodes())
        if (node.isCall()) out << QString::fromStdString(node.name());
    return out.join(' ');
}

double totalOf(const std::vector<double>& values, const std::vector<int>& items) {
    double sum = 0;
    for (const int item : items) sum += values[static_cast<size_t>(item)];
    return sum;
}
/// The most that any set within the capacity is worth.
double best(const KnapsackItems& items, double capacity) {
    double most = 0;
    for (uint32_t set = 0; set < (uint32_t{1} << items.size()); ++set) {
        double memory = 0, worth = 0;
        for (size_t i = 0; i < items.size(); ++i)
            if (set >> i & 1) {
                memory += items.memory[i];
                worth += items.runtime[i];
            }
        if (memory <= capacity + 1e-12) most = std::max(most, worth);
    }
    return most;
}

/// sin, cos, a product and its gradient.
const char* const kForward = R"(def forward(x: "f32[4, 4]", w: "f32[4, 4]"):
    s = aten.sin.default(x)
    c = aten.cos.default(s)
    m = aten.mm.default(c, w)
    t = aten.tanh.default(m)
    return (t,)
)";

}  // namespace

class PartitionTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string file(const char* text) {
        QFile out(m_folder.filePath("graph.py"));
        if (!out.open(QIODevice::WriteOnly)) qFatal("cannot write");
        out.write(text);
        return out.fileName().toStdString();
    }

  private slots:
    /// Against all sets of up to twelve items. Memory of whole quanta, so that rounding plays no part.
    void solversFindTheBest_data() {
        QTest::addColumn<int>("seed");
        for (int seed = 0; seed < 40; ++seed) QTest::addRow("seed %d", seed) << seed;
    }
    void solversFindTheBest() {
        QFETCH(int, seed);
        Random random(static_cast<uint64_t>(seed));
        KnapsackItems items;
        const size_t count = random.below(13);
        for (size_t i = 0; i < count; ++i) {
            items.memory.push_back(static_cast<double>(random.below(5) ? 1 + random.below(4000) : 0) / 10000);
            items.runtime.push_back(static_cast<double>(1 + random.below(1000)));
        }
        const double capacity = static_cast<double>(random.below(10001)) / 10000, most = best(items, capacity);
        for (const Solver solver : {Solver::Dp, Solver::Ilp, Solver::Greedy, Solver::Hirschberg, Solver::DynamicDp}) {
            const auto knapsack = makeKnapsack(solver, items);
            const std::vector<int> chosen = knapsack->solve(capacity);
            QVERIFY(std::is_sorted(chosen.begin(), chosen.end()));
            const double worth = totalOf(items.runtime, chosen), memory = totalOf(items.memory, chosen);
            const bool exact = solver == Solver::Dp || solver == Solver::Ilp;
            // Halving gives one quantum too many at each of its splits, as PyTorch's does.
            const double slack = solver == Solver::Hirschberg ? 1e-4 * static_cast<double>(count) : 0;
            QVERIFY2(memory <= capacity + slack + 1e-9, qPrintable(QString::number(static_cast<int>(solver))));
            if (exact) QCOMPARE(worth, most);
            if (solver == Solver::Hirschberg) QVERIFY(worth >= most);
            if (solver == Solver::Greedy || solver == Solver::DynamicDp) QVERIFY(worth <= most);
            QCOMPARE(knapsack->solve(capacity), chosen);
        }
    }

    /// Both halves together compute what the joint graph does, whatever is saved.
    void halvesComputeTheWhole_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<double>("budget");
        QTest::addColumn<bool>("aggressive");
        for (const QString& name : QDir(testing::testFile("data/partition")).entryList({"*.py"}))
            for (const double budget : {1.0, 0.6, 0.3, 0.1, 0.0})
                for (const bool aggressive : {false, true})
                    if (!aggressive || budget == 1)
                        QTest::addRow("%s, %g%s", qPrintable(name), budget, aggressive ? ", aggressive" : "")
                            << name << budget << aggressive;
    }
    void halvesComputeTheWhole() {
        QFETCH(QString, graph);
        QFETCH(double, budget);
        QFETCH(bool, aggressive);
        QFile text(testing::testFile("data/partition/" + graph));
        QVERIFY(text.open(QIODevice::ReadOnly));
        const Snapshot whole = graphFrom(text.readAll().toStdString());
        CompileRequest request = training();
        if (aggressive) request = training({{"aggressive_recomputation", "true"}});
        request.memoryBudget = budget;
        const auto trace = split(whole, request);
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        const auto joined = joinGraphs(*trace->resultOf("forward"), *trace->resultOf("backward"));
        QVERIFY2(joined, joined ? "" : joined.error().text().c_str());
        const auto sound = verify(**joined, {.functional = true});
        QVERIFY2(sound, sound ? "" : sound.error().text().c_str());
        const auto inputs = randomInputs(*whole, 0);
        QVERIFY2(inputs, inputs ? "" : inputs.error().text().c_str());
        // Copies into inputs change what the next run reads.
        const auto copies = [&] {
            std::vector<Tensor> out;
            for (const Tensor& input : *inputs) out.push_back(input.clone());
            return out;
        };
        const auto expected = interpret(*whole, copies()), actual = interpret(**joined, copies());
        QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
        QVERIFY2(actual, actual ? "" : actual.error().text().c_str());
        QCOMPARE(actual->size(), expected->size());
        for (size_t i = 0; i < expected->size(); ++i) {
            QCOMPARE((*actual)[i].defined(), (*expected)[i].defined());
            if ((*expected)[i].defined()) QVERIFY(compare((*actual)[i], (*expected)[i], {}).within);
        }
    }

    /// Which reader can be part of the kernel that makes a value: what the ban rules and weights rest on.
    void fusible_data() {
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("reader");
        QTest::addColumn<bool>("fuses");
        const auto row = [](const char* value, const char* reader, bool fuses) {
            QTest::addRow("%s, %s", value, reader) << value << reader << fuses;
        };
        row("sin.default(primals_1)", "cos.default(a)", true);
        row("mm.default(primals_1, primals_1)", "cos.default(a)", false);
        row("sin.default(primals_1)", "mm.default(a, a)", false);
        row("mm.default(primals_1, primals_1)", "cat.default([a])", true);  // anything fuses into a concatenation
        row("cat.default([primals_1])", "cos.default(a)", false);           // and it into nothing
        row("rand.default([4, 4])", "cos.default(a)", false);
        row("rand_like.default(primals_1)", "cos.default(a)", true);
        row("permute.default(primals_1, [1, 0])", "cos.default(a)", true);
        row("cumsum.default(primals_1, 0)", "cos.default(a)", false);
    }
    void fusible() {
        QFETCH(QString, value);
        QFETCH(QString, reader);
        QFETCH(bool, fuses);
        const Snapshot graph = joint(
            1,
            line("a", value.toStdString()) + line("b", reader.toStdString()) + line("g", "mul.Tensor(tangents_1, b)"),
            "b, g");
        const auto facts = jointFacts(*graph, {});
        QVERIFY(facts);
        const Node &a = *graph->graph().findByName("a"), &b = *graph->graph().findByName("b");
        QCOMPARE(isFusible(a, b), fuses);
        QCOMPARE(facts->fusible(facts->at(a), facts->at(b)), fuses);
    }

    /// What the user marks; draws of random numbers are never repeated unless PyTorch's behaviour is asked for.
    void marks_data() {
        QTest::addColumn<QString>("calls");
        QTest::addColumn<bool>("aggressive");
        QTest::addColumn<QString>("expected");
        const std::string tail = line("y", "exp.default(a)") + line("g", "mul.Tensor(tangents_1, a)");
        const auto marked = [](const char* mark, const std::string& text) {
            return "        # " + std::string(mark) + "\n" + text +
                   "        # No stacktrace found for following nodes\n";
        };
        const auto row = [&](const char* name, const std::string& text, bool aggressive, const char* expected) {
            QTest::newRow(name) << QString::fromStdString(text + tail) << aggressive << expected;
        };
        const std::string sin = line("a", "sin.default(primals_1)"), mm = line("a", "mm.default(primals_1, primals_1)");
        row("nothing is marked", sin, false, "primals_1");
        row("saved", marked("recompute: MUST_SAVE", sin), false, "a");
        row("computed again", marked("recompute: MUST_RECOMPUTE", mm), false, "primals_1");
        row("a product is saved", mm, false, "a");
        row("preferred", marked("ac_graph_id: 3 - PREFER_RECOMPUTE", mm), false, "primals_1");
        const std::string draw = line("a", "rand.default([4, 4])");
        row("a draw", draw, false, "a");
        row("a draw, when all is computed again", draw, true, "a");
        row("a draw in a region", marked("ac_graph_id: 0 - PREFER_RECOMPUTE", draw), false, "a");
    }
    void marks() {
        QFETCH(QString, calls);
        QFETCH(bool, aggressive);
        QFETCH(QString, expected);
        const Snapshot graph = joint(1, calls.toStdString(), "y, g");
        CompileRequest request = aggressive ? training({{"aggressive_recomputation", "true"}}) : training();
        const auto trace = split(graph, request);
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        QCOMPARE(saved(*trace), expected);
        if (aggressive) {
            request.parity = true;
            const auto repeats = split(graph, request);
            QVERIFY(repeats);
            QCOMPARE(saved(*repeats), "");
        }
    }

    /// What is computed before the first tangent is read moves next to its reader.
    void recomputationIsLate() {
        const Snapshot graph = joint(2,
                                     line("a", "sin.default(primals_1)") + line("b", "cos.default(primals_2)") +
                                         line("y", "mul.Tensor(a, b)") + line("gb", "mul.Tensor(tangents_1, a)") +
                                         line("ga", "mul.Tensor(tangents_1, b)"),
                                     "y, ga, gb");
        const auto trace = split(graph, training());
        QVERIFY(trace);
        QCOMPARE(saved(*trace), "primals_1 primals_2");
        QCOMPARE(calls(trace->resultOf("backward")), "a gb b ga");
        QCOMPARE(calls(trace->resultOf("forward")), "a b y");
    }

    void refusals_data() {
        QTest::addColumn<QString>("options");
        QTest::addColumn<QString>("says");
        QTest::newRow("budget") << "--memory-budget 1.5"
                                << "memory-budget";
        QTest::newRow("negative budget") << "--memory-budget -0.1"
                                         << "memory-budget";
        QTest::newRow("solver") << "--solver x"
                                << "solver";
        QTest::newRow("estimator") << "--enable partition=activation_memory_budget_runtime_estimator:x"
                                   << "estimator";
        QTest::newRow("static inputs") << "--enable partition=static_lifetime_input_indices:a"
                                       << "static_lifetime";
        QTest::newRow("unknown setting") << "--enable partition=ban_recompute:true"
                                         << "ban_recompute";
        QTest::newRow("gradients without training") << "--mode inference --grad x"
                                                    << "--grad";
        QTest::newRow("gradient by nobody") << "--grad nobody"
                                            << "no input named 'nobody'";
    }
    void refusals() {
        QFETCH(QString, options);
        QFETCH(QString, says);
        const auto request = parseRequest(("--mode training " + options).toStdString());
        std::string message;
        if (!request) {
            message = request.error().text();
        } else {
            Session session;
            QVERIFY(session.open(file(kForward)));
            const auto run = session.compile(*request);
            message = !run ? run.error().text() : session.steps(*run)->back().error;
        }
        QVERIFY2(message.find(says.toStdString()) != std::string::npos, message.c_str());
    }

    /// A value that can be neither saved nor computed again: each edge of the way says why.
    void nothingCanCut() {
        const Snapshot graph = joint(1,
                                     line("a", "sin.default(primals_1)") + line("v", "permute.default(a, [1, 0])") +
                                         line("g", "mul.Tensor(tangents_1, v)"),
                                     "a, g");
        const auto facts = jointFacts(*graph, {});
        QVERIFY(facts);
        BannedNetwork made = banRecomputation(*facts, {}, {}, false);
        QVERIFY(made.network.minimumCut());
        const int a = facts->at(*graph->graph().findByName("a")), v = facts->at(*graph->graph().findByName("v"));
        for (const int node : {a, v}) {
            made.network[node].weight = FlowNetwork::kInfinite;
            made.network[node].unsaved = EdgeReason::NotATensor;
        }
        const auto cut = made.network.minimumCut();
        QVERIFY(!cut);
        QCOMPARE(cut.error().where, std::string("a"));
        QStringList notes;
        for (const std::string& note : cut.error().notes) notes << QString::fromStdString(note);
        QCOMPARE(notes.join("\n"),
                 "a: a reader outside of the forward cannot be fused with it, so it has to be in memory anyway\n"
                 "a: it is not a tensor, so it cannot be saved\n"
                 "v: it reads a\n"
                 "v: it is not a tensor, so it cannot be saved\n"
                 "g: it reads v\n"
                 "g: it depends on a tangent, so the backward computes it");
    }

    /// A size that is computed in the forward comes after the symbol that it is made of, which the backward reads
    /// nowhere else.
    void symbolsComeBeforeWhatIsMadeOfThem() {
        const auto trace = split(graphFrom(R"text(class joint(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "Sym(s0)"; primals_2: "f32[4*s0]"; tangents_1: "f32[]"; 

        primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        sum_1: "f32[]" = torch.ops.aten.sum.default(primals_2)
        mul: "Sym(4*s0)" = primals_1 * 4
        expand: "f32[4*s0]" = torch.ops.aten.expand.default(tangents_1, [mul])
        return pytree.tree_unflatten([sum_1, None, expand], self._out_spec)
)text"),
                                 training());
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        QCOMPARE(saved(*trace), "primals_1 mul");
    }

    void noJointGraph() {
        const auto trace = split(joint(3, line("a", "sin.default(primals_1)"), "a"), training());
        QVERIFY(!trace);
        QVERIFY2(trace.error().message.find("not a joint graph") != std::string::npos, trace.error().message.c_str());
    }

    /// Nothing wants a gradient: all is forward, and the backward is empty.
    void nothingToDifferentiate() {
        Session session;
        QVERIFY(session.open(file("def forward(x: \"i64[4]\"):\n    y = aten.neg.default(x)\n    return (y,)\n")));
        const auto run = session.compile(training());
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const CompileTrace& trace = session.state().runs[0].trace;
        QVERIFY2(!trace.failed(), trace.steps.back().info.error.c_str());
        QCOMPARE(calls(trace.resultOf("forward")), "y");
        QCOMPARE(calls(trace.resultOf("backward")), "");
    }

    void sentences_data() {
        QTest::addColumn<QString>("node");
        QTest::addColumn<QString>("says");
        QTest::newRow("input that is read") << "primals_1"
                                            << "saved for the backward: ";
        QTest::newRow("saved") << "t"
                               << "saved for the backward: ";
        QTest::newRow("product")
            << "m"
            << "in the forward: of what is computed from it the backward reads only `t`, which is saved";
        QTest::newRow("recomputed")
            << "s"
            << "computed again in the backward: from `primals_1`, which is cheaper than saving its 64 B";
        QTest::newRow("tangent") << "tangents_1"
                                 << "in the backward: it is the gradient of a result";
    }
    void sentences() {
        QFETCH(QString, node);
        QFETCH(QString, says);
        Session session;
        QVERIFY(session.open(file(kForward)));
        CompileRequest request = training();
        request.gradients = {"x", "w"};
        QVERIFY(session.compile(request));
        const Step* step = splitStepOf(session.state().runs[0].trace);
        QVERIFY(step);
        const Node* found = step->before->graph().findByName(node.toStdString());
        QVERIFY2(found, printText(*step->before).text.c_str());
        const auto sentence = session.explainPartition(0, nodeKey(0, found->id()));
        QVERIFY2(sentence, sentence ? "" : sentence.error().text().c_str());
        QVERIFY2(sentence->find(says.toStdString()) != std::string::npos, sentence->c_str());
        // `explain` says the same of the step's rule.
        const auto rule = session.explain({0, step->info.index, 0}, "partition", nodeKey(0, found->id()));
        QVERIFY2(rule, rule ? "" : rule.error().text().c_str());
        QCOMPARE(rule->reason, *sentence);
    }

    /// Every step of a training run keeps the numbers of the whole program, and a wrong rule is found in the backward.
    void stepsAndBisecting() {
        Session session;
        QVERIFY(session.open(file(kForward)));
        CompileRequest request = training();
        request.gradients = {"x", "w"};
        QVERIFY(session.compile(request));
        const auto numbers = session.checkNumbers(0);
        QVERIFY2(numbers, numbers ? "" : numbers.error().text().c_str());
        QVERIFY(numbers->kept);
        request.userRules = {{"wrong",
                              "rule wrong\n  why it shows what bisect finds\n  find\n    n = aten.neg.default(x)\n"
                              "    return n\n  replace\n    s = aten.sin.default(x)\n    return s\n"}};
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const auto found = bisect(session, *run, {});
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QVERIFY(found->found);
        QCOMPARE(found->rewrite.rule, std::string("wrong"));
    }
};

CUTAWAY_SUITE(PartitionTest)
#include "partition_test.moc"
