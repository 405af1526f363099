// Freezing as a whole: what becomes a constant, that folded constants are recipes, and that frozen graphs compute what
// they did before. CUTAWAY_SEED starts the random graphs elsewhere, CUTAWAY_SEEDS makes more of them,
// CUTAWAY_FREEZING_DUMP=FOLDER writes each as text (tests/scripts/check_freezing.py compares those with PyTorch).
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <numeric>
#include <thread>

#include "cutaway/session.h"
#include "engine/interpret/constants.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/passes/freezing/freeze_parameters.h"
#include "engine/passes/pipeline.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/frozen.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

Snapshot parsed(const QString& text) {
    auto module = parseText(text.toStdString());
    if (!module) qFatal("%s\n%s", module.error().text().c_str(), qPrintable(text));
    return std::move(*module);
}

CompileTrace frozen(const Snapshot& input, CompileRequest request = {}) {
    request.freeze = true;
    auto trace = runPipeline(input, request);
    if (!trace) qFatal("%s", trace.error().text().c_str());
    for (const Step& step : trace->steps)
        if (step.info.state == StepState::Failed)
            qFatal("%s: %s\n%s", step.info.name.c_str(), step.info.error.c_str(), printText(*input, {}).text.c_str());
    return std::move(*trace);
}

std::vector<Tensor> resultsOf(const Module& module, const std::vector<Tensor>& given) {
    const auto bound = bindInputs(module, given);
    if (!bound) qFatal("%s", bound.error().text().c_str());
    auto values = interpret(module, *bound);
    if (!values) qFatal("%s", values.error().text().c_str());
    return std::move(*values);
}

size_t inputCount(const Module& module) { return module.graph().placeholders().size(); }

constexpr const char* kWider = R"(def forward(
    w: "f16[3, 4]",  # ParamAOTInput(target='w')
    k: "f16[4]",  # BufferAOTInput(target='k')
    l: "f32[4]",  # BufferAOTInput(target='l')
    x: "f16[2, 3]",  # PlainAOTInput(idx=0)
):
    m: "f16[2, 4]" = aten.mm.default(x, w)
    a: "f16[2, 4]" = aten.add.Tensor(m, k)
    s: "f32[2, 4]" = aten.sub.Tensor(a, l)
    y: "f16[2, 4]" = prims.convert_element_type.default(s, torch.float16)
    return (y,)
)";

/// A layer and a chain of arithmetic on constants behind it, as FX text.
class RandomLayer {
  public:
    RandomLayer(uint64_t seed, const char* dtype) : m_random(seed), m_dtype(dtype) {}

    QString text() {
        const int kind = below(5);
        if (kind < 3) convolution(kind + 1);
        else product(kind == 4);
        for (int i = 0, count = 1 + below(5); i < count; ++i) follow();
        if (below(4) == 0) call("relu", "aten.relu.default(" + m_value + ")", m_sizes, m_now);
        if (m_now != m_dtype && below(4) != 0)
            call("back", "prims.convert_element_type.default(" + m_value + ", torch." + torchName(m_dtype) + ")",
                 m_sizes, m_dtype);
        return "def forward(\n" + m_parameters + "    x: \"" + typeOf(m_dtype, m_input) +
               "\",  # PlainAOTInput(idx=0)\n):\n" + m_body + "    return (" + m_value + ",)\n";
    }

  private:
    int below(int bound) { return static_cast<int>(m_random.below(static_cast<uint64_t>(bound))); }
    static QString torchName(const QString& dtype) {
        return dtype == "f32" ? "float32" : dtype == "f64" ? "float64" : "bfloat16";
    }
    static QString listed(const Dims& dims) {
        QStringList out;
        for (const int64_t dim : dims) out << QString::number(dim);
        return "[" + out.join(", ") + "]";
    }
    static QString typeOf(const QString& dtype, const Dims& sizes) { return dtype + listed(sizes); }
    QString parameter(const QString& dtype, const Dims& sizes) {
        const QString name = "p" + QString::number(m_names++);
        m_parameters += "    " + name + ": \"" + typeOf(dtype, sizes) + "\",  # ParamAOTInput(target='" + name + "')\n";
        return name;
    }
    void call(const QString& stem, const QString& expression, const Dims& sizes, const QString& dtype) {
        m_value = stem + QString::number(m_names++);
        m_sizes = sizes;
        m_now = dtype;
        m_body += "    " + m_value + ": \"" + typeOf(dtype, sizes) + "\" = " + expression + "\n";
    }

    void convolution(int dims) {
        const bool transposed = below(3) == 0;
        const int64_t groups = below(3) == 0 ? 2 : 1, in = groups * (1 + below(3)), out = groups * (1 + below(3));
        Dims stride, padding, dilation, extra, image, made{2, out}, kernel;
        for (int i = 0; i < dims; ++i) {
            stride.push_back(1 + below(2));
            padding.push_back(below(2));
            dilation.push_back(1 + below(2));
            extra.push_back(0);
            kernel.push_back(1 + below(3));
            image.push_back(5 + below(3));
            const int64_t reach = dilation.back() * (kernel.back() - 1) + 1;
            made.push_back(transposed ? (image.back() - 1) * stride.back() - 2 * padding.back() + reach
                                      : (image.back() + 2 * padding.back() - reach) / stride.back() + 1);
        }
        Dims weight = transposed ? Dims{in, out / groups} : Dims{out, in / groups};
        weight.insert(weight.end(), kernel.begin(), kernel.end());
        m_input = {2, in};
        m_input.insert(m_input.end(), image.begin(), image.end());
        m_channels = out;
        m_channelDim = 1;
        const QString w = parameter(m_dtype, weight), b = below(2) ? parameter(m_dtype, {out}) : "None";
        call("conv",
             "aten.convolution.default(x, " + w + ", " + b + ", " + listed(stride) + ", " + listed(padding) + ", " +
                 listed(dilation) + ", " + (transposed ? "True" : "False") + ", " + listed(extra) + ", " +
                 QString::number(groups) + ")",
             made, m_dtype);
    }
    void product(bool reshaped) {
        const int64_t rows = 6, inner = 1 + below(5), columns = 1 + below(6);
        m_input = {rows, inner};
        m_channels = columns;
        const QString w = parameter(m_dtype, {inner, columns});
        if (below(2)) {
            const Dims bias = below(3) ? Dims{columns} : Dims{1, columns};
            const QString factors = below(4) == 0 ? ", beta = 2" : below(4) == 0 ? ", alpha = 3" : "";
            call("addmm", "aten.addmm.default(" + parameter(m_dtype, bias) + ", x, " + w + factors + ")",
                 {rows, columns}, m_dtype);
        } else call("mm", "aten.mm.default(x, " + w + ")", {rows, columns}, m_dtype);
        if (!reshaped) return void(m_channelDim = 1);
        const bool split = columns % 2 == 0 && below(3) == 0;
        const Dims sizes = split ? Dims{rows, 2, columns / 2} : Dims{2, rows / 2, columns};
        call("view", "aten.reshape.default(" + m_value + ", " + listed(sizes) + ")", sizes, m_dtype);
        m_channelDim = 2;
    }

    /// A constant of any shape that broadcasts, most often one number a channel.
    Dims constantSizes() {
        Dims sizes(m_sizes.size(), 1);
        const int kind = below(8);
        if (kind < 4) sizes[m_channelDim] = m_sizes[m_channelDim];
        else if (kind < 6)
            for (size_t i = 0; i < sizes.size(); ++i)
                if (below(2)) sizes[i] = m_sizes[i];
        const int drop = below(static_cast<int>(sizes.size()) + 1);
        for (int i = 0; i < drop && !sizes.empty() && (sizes[0] == 1 || kind >= 6); ++i) sizes.erase(sizes.begin());
        return sizes;
    }
    void follow() {
        static constexpr const char* kOps[] = {"add", "sub", "mul", "div"};
        const QString op = kOps[below(4)];
        if (below(8) == 0) return call("neg", "aten.neg.default(" + m_value + ")", m_sizes, m_now);
        QString other, dtype = m_now;
        if (below(4) == 0) other = below(3) ? "1.5" : "2";
        else {
            const Dims sizes = constantSizes();
            const QString own = m_now == "bf16" && below(2) ? QString("f32") : m_now;
            other = parameter(own, sizes);
            if (!sizes.empty() && own == "f32" && m_now == "bf16") dtype = "f32";
            // Nothing near 0 may be divided by.
            if (op == "div") {
                m_body += "    a" + other + ": \"" + typeOf(own, sizes) + "\" = aten.abs.default(" + other + ")\n";
                m_body += "    d" + other + ": \"" + typeOf(own, sizes) + "\" = aten.add.Tensor(a" + other + ", 0.5)\n";
                other = "d" + other;
            }
        }
        const bool swapped = other.at(0) != '1' && other.at(0) != '2' && below(6) == 0;
        if (swapped) call(op, "aten." + op + ".Tensor(" + other + ", " + positive(m_value, op) + ")", m_sizes, dtype);
        else
            call(op,
                 "aten." + op + ".Tensor(" + m_value + ", " + other +
                     ((op == "add" || op == "sub") && below(5) == 0 ? ", alpha = 2)" : ")"),
                 m_sizes, dtype);
    }
    /// A value that may be divided by.
    QString positive(const QString& value, const QString& op) {
        if (op != "div") return value;
        const Dims sizes = m_sizes;
        const QString dtype = m_now;
        call("abs", "aten.abs.default(" + value + ")", sizes, dtype);
        call("plus", "aten.add.Tensor(" + m_value + ", 0.5)", sizes, dtype);
        return m_value;
    }

    Random m_random;
    QString m_dtype, m_now, m_parameters, m_body, m_value;
    Dims m_input, m_sizes;
    int64_t m_channels = 0;
    size_t m_channelDim = 1;
    int m_names = 0;
};

double distance(const Tensor& a, const Tensor& b) {
    double most = 0;
    const Tensor one = a.to(DType::F64).contiguous(), other = b.to(DType::F64).contiguous();
    for (int64_t i = 0; i < one.numel(); ++i) {
        const double difference = std::abs(one.as<double>()[i] - other.as<double>()[i]);
        if (!(difference <= most)) most = difference;
    }
    return most;
}

}  // namespace

class FreezingTest : public QObject {
    Q_OBJECT

    static Snapshot graphOf(int seed, const char* dtype) {
        return parsed(RandomLayer(static_cast<uint64_t>(seed), dtype).text());
    }

  private slots:
    void parametersBecomeConstants() {
        const Snapshot before = parsed(kNormed);
        QCOMPARE(inputCount(*before), 6u);
        const CompileTrace trace = frozen(before, [] {
            CompileRequest request;
            request.enabledPasses = {{"freeze", {{"weight_prepack", "false"}}}};
            return request;
        }());
        const Module& after = *trace.resultOf("main");
        QCOMPARE(inputCount(after), 1u);
        QCOMPARE(after.inputs.size(), 1u);
        std::map<std::string, int> folds;
        for (const Step& step : trace.steps) folds[step.info.name] += step.info.rewrites;
        QCOMPARE(folds["replace_params_with_constants"], 5);
        QCOMPARE(folds["binary_folding"], 4);  // the mean, 1 / sqrt(var + eps), gamma, beta
        const std::vector<Tensor> given = *randomInputs(*before, 3);
        const Tensor expected = resultsOf(*before, given)[0];
        QVERIFY(distance(resultsOf(after, given)[0], expected) < 1e-5 * largestMagnitude(expected));
    }

    /// What was folded is a recipe over the program's own tensors, from any step on.
    void constantsAreRecipes() {
        const CompileTrace trace = frozen(parsed(kNormed));
        const Module& after = *trace.resultOf("main");
        QVERIFY(after.tensors.empty());
        QVERIFY(!after.recipes.empty());
        for (const auto& [name, recipe] : after.recipes) {
            QVERIFY2(verify(recipe->graph()).has_value(), name.c_str());
            QVERIFY(recipe->graph().recipes.empty());
            for (const Node& node : recipe->graph().graph().nodes())
                if (node.kind() == NodeKind::GetAttr)
                    QVERIFY2(node.target().starts_with("conv.") || node.target().starts_with("bn."),
                             node.target().c_str());
        }
    }

    void aComputedConstantIsKeptWhileThereIsRoom() {
        const CompileTrace trace = frozen(parsed(kNormed));
        const Recipe* folded = nullptr;
        for (const auto& [name, recipe] : trace.resultOf("main")->recipes)
            if (!recipe->isView()) folded = recipe.get();
        QVERIFY(folded != nullptr);
        const void* first = folded->value()->storage().get();
        QCOMPARE(static_cast<const void*>(folded->value()->storage().get()), first);
        const int64_t limit = limitKeptConstants(0);
        {
            // Nobody kept it, so it is computed again, and shared by those that have it at once.
            const Tensor one = *folded->value(), other = *folded->value();
            QCOMPARE(one.storage().get(), other.storage().get());
        }
        limitKeptConstants(limit);
        std::atomic<int> failures{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                for (const auto& [name, recipe] : trace.resultOf("main")->recipes)
                    if (!recipe->value()) ++failures;
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(failures.load(), 0);
    }

    /// Only of texts is it guessed which inputs are weights: a program says it, even if it has none.
    void aProgramWithoutWeightsHasNone() {
        Module module(*parsed(
            "def forward(p: \"b8[]\", x: \"f32[4]\"):\n    y: \"f32[4]\" = aten.sin.default(x)\n    return (y,)\n"));
        QCOMPARE(parametersAmongInputs(module, -1), (std::vector<bool>{true, false}));
        module.origin.format = ".pt2 (PyTorch 2.11, schema 8.17)";
        QCOMPARE(parametersAmongInputs(module, -1), (std::vector<bool>{false, false}));
    }

    /// A packed weight and the weight itself, transposed, are views of one value.
    void viewsOfOneComputedValueShareIt() {
        const CompileTrace trace = frozen(parsed(R"(def forward(
    w: "f32[3, 4]",  # ParamAOTInput(target='w')
    x: "f32[2, 4]",  # PlainAOTInput(idx=0)
):
    d: "f32[3, 4]" = aten.mul.Tensor(w, 2.0)
    t: "f32[4, 3][1, 4]" = aten.permute.default(d, [1, 0])
    y: "f32[2, 3]" = aten.mm.default(x, t)
    return (y,)
)"));
        const Module& after = *trace.resultOf("main");
        QCOMPARE(after.recipes.size(), 2u);  // of mkl._mkl_linear
        const Recipe &one = *after.recipes.begin()->second, &other = *after.recipes.rbegin()->second;
        QCOMPARE(one.value()->storage().get(), other.value()->storage().get());
        QCOMPARE(constantBytes(after), 3 * 4 * 4);
    }

    /// PyTorch folds an f32 constant into a product of halves only if it is the first one behind the product.
    void aWiderConstantBehindANarrowOne() {
        const Snapshot graph = parsed(QString::fromLatin1(kWider));
        for (const bool parity : {false, true}) {
            CompileRequest request;
            request.parity = parity;
            request.enabledPasses = {{"freeze", {{"enable_linear_binary_folding", "1"}}}};
            const CompileTrace trace = frozen(graph, request);
            const std::string text = printText(*trace.resultOf("main"), {}).text;
            QCOMPARE(text.find("aten.sub.Tensor") != std::string::npos, parity);
            QVERIFY2(text.find("aten.add.Tensor") == std::string::npos, text.c_str());
        }
    }

    /// What the Node window asks of a session.
    void aConstantSaysWhatItIsMadeFrom() {
        QTemporaryDir folder;
        QFile file(folder.filePath("normed.py"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(kNormed);
        file.close();
        Session session;
        QVERIFY(session.open(file.fileName().toStdString()));
        CompileRequest request;
        request.freeze = true;
        QVERIFY(session.compile(request));
        const auto steps = session.steps(0);
        const auto fold = std::find_if(steps->rbegin(), steps->rend(), [](const StepInfo& step) {
            return step.name == "constant_fold" && step.occurrence == 5;
        });
        QCOMPARE(fold->constantBytesAfter, 4 * (4 * 3 * 3 * 3 + 4));  // weight and bias of the convolution
        const auto first =
            std::find_if(steps->begin(), steps->end(), [](const StepInfo& step) { return step.stage == "freeze"; });
        QCOMPARE(first->constantBytesBefore, 4 * (4 * 3 * 3 * 3 + 4 * 4));  // with four vectors of the batch norm
        const Place place{0, fold->index, -1};
        const auto graph = session.diff(place, place);
        int folded = 0;
        for (const UnionGraph::Node& node : graph->nodes) {
            const auto details = session.node(place, node.info.id);
            const auto values = session.values(place, node.info.id);
            QCOMPARE(values.has_value(), details->constant.has_value());
            if (!details->constant) continue;
            QVERIFY(!details->constant->sources.empty());
            QVERIFY(values->elements > 0 && values->least < values->most && values->madeUp);
            QCOMPARE(std::accumulate(values->histogram.begin(), values->histogram.end(), int64_t{0}), values->elements);
            folded += details->constant->recipe.empty() ? 0 : 1;
        }
        QCOMPARE(folded, 2);  // the weight and the bias of the convolution
    }

    void computingConstantsCanBeCancelled() {
        const CompileTrace trace = frozen(parsed(kNormed));
        Progress progress;
        progress.cancel->cancel();
        const auto values = withConstants(*trace.resultOf("main"), progress);
        QVERIFY(!values);
        QCOMPARE(values.error().code, ErrorCode::Cancelled);
        const auto complete = withConstants(*trace.resultOf("main"));
        QVERIFY(complete && *complete);
        QVERIFY((*complete)->recipes.empty());
    }

    /// After every single rewrite of the frozen stages the graph verifies and computes the same.
    void everyRewriteKeepsTheNumbers() {
        const Snapshot before = parsed(kNormed);
        const CompileTrace trace = frozen(before);
        const std::vector<Tensor> given = *randomInputs(*before, 3);
        const Tensor expected = resultsOf(*before, given)[0];
        int checked = 0;
        for (const Step& step : trace.steps)
            for (int rewrite = 1; rewrite <= step.info.rewrites; ++rewrite) {
                const auto graph = replayRewrites(step, trace, rewrite);
                QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
                QVERIFY2(verify(**graph).has_value(), step.info.name.c_str());
                QVERIFY2(distance(resultsOf(**graph, given)[0], expected) < 1e-5 * largestMagnitude(expected),
                         step.info.name.c_str());
                ++checked;
            }
        QVERIFY(checked > 15);
    }

    void theFrozenTextReadsBack() {
        const CompileTrace trace = frozen(parsed(kNormed));
        const std::string text = printText(*trace.resultOf("main"), {}).text;
        const auto again = parseText(text);
        QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
        QCOMPARE(printText(**again, {}).text, text);
    }

    void layers_data() {
        QTest::addColumn<int>("seed");
        QTest::addColumn<QString>("dtype");
        const int first = qEnvironmentVariableIntValue("CUTAWAY_SEED");
        const int count = std::max(300, qEnvironmentVariableIntValue("CUTAWAY_SEEDS"));
        for (int seed = first; seed < first + count; ++seed)
            for (const char* dtype : {"f32", "f64", "bf16"})
                if (seed % 3 != 0 || dtype != std::string("bf16"))
                    QTest::newRow(qPrintable(QString("seed %1, %2").arg(seed).arg(dtype))) << seed << QString(dtype);
    }
    void layers() {
        QFETCH(int, seed);
        QFETCH(QString, dtype);
        const QString text = RandomLayer(static_cast<uint64_t>(seed), qPrintable(dtype)).text();
        if (const QString folder = qEnvironmentVariable("CUTAWAY_FREEZING_DUMP"); !folder.isEmpty()) {
            QFile file(folder + "/" + dtype + "_" + QString::number(seed) + ".py");
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(text.toUtf8());
        }
        const Snapshot before = parsed(text);
        CompileRequest request;
        if (seed % 2) request.enabledPasses = {{"freeze", {{"enable_linear_binary_folding", "true"}}}};
        const CompileTrace trace = frozen(before, request);
        const std::vector<Tensor> given = *randomInputs(*before, static_cast<uint64_t>(seed));
        const Tensor expected = resultsOf(*before, given)[0], actual = resultsOf(*trace.resultOf("main"), given)[0];
        QCOMPARE(actual.dtype(), expected.dtype());
        QCOMPARE(actual.sizes(), expected.sizes());
        QCOMPARE(actual.strides(), expected.strides());
        const double scale = std::max(1.0, largestMagnitude(expected));
        if (dtype != "bf16") {
            const double tolerance = dtype == "f64" ? 1e-12 : 1e-5;
            QVERIFY2(distance(actual, expected) <= tolerance * scale, qPrintable(text));
            return;
        }
        // Halves are rounded elsewhere: what counts is how far both are from the result in f64.
        QString exact = text;
        exact.replace("bf16[", "f64[").replace("f32[", "f64[").replace("torch.bfloat16", "torch.float64");
        const Snapshot judge = parsed(exact);
        std::vector<Tensor> bound = *bindInputs(*before, given);
        for (Tensor& value : bound) value = value.to(DType::F64);
        const Tensor truth = interpret(*judge, bound)->at(0);
        const double theirs = distance(expected, truth), ours = distance(actual, truth);
        QVERIFY2(ours <= 3 * theirs + scale / 64,
                 qPrintable(QString("%1 against %2 at %3\n").arg(ours).arg(theirs).arg(scale) + text));
    }
};

CUTAWAY_SUITE(FreezingTest)
#include "freezing_test.moc"
