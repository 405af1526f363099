// Derivatives of calls that run graphs: gradients against differences of the program's results in f64, tangents against
// the same, and what is refused.
#include "engine/autograd/graph_calls.h"

#include <QtTest>
#include <cmath>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/autograd/jvp.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/passes/pipeline.h"
#include "engine/runtime/cpu/cpu_backend.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/engine/graph_calls_graphs.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

Tensor truth(bool value) {
    Tensor out = Tensor::empty(DType::Bool, {});
    *out.as<bool>() = value;
    return out;
}

std::vector<Tensor> randomInputsOf(const Module& module, bool taken) {
    Random random(7);
    std::vector<Tensor> inputs;
    for (const Node* input : module.graph().placeholders()) {
        const TensorType& type = input->tensor();
        if (type.dtype != DType::F64) {
            inputs.push_back(truth(taken));
            continue;
        }
        Tensor value = Tensor::empty(DType::F64, toInts(type.sizes));
        for (int64_t i = 0; i < value.numel(); ++i) value.as<double>()[i] = 0.3 + 0.4 * random.normal();
        inputs.push_back(value);
    }
    return inputs;
}

double element(const Tensor& tensor, int64_t i) { return tensor.contiguous().as<double>()[i]; }

/// The sum of all results.
double total(const Module& module, const std::vector<Tensor>& inputs) {
    const auto results = interpret(module, inputs);
    if (!results) qFatal("%s", results.error().text().c_str());
    double sum = 0;
    for (const Tensor& result : *results)
        for (int64_t i = 0; i < result.numel(); ++i) sum += element(result, i);
    return sum;
}

double difference(const Module& module, std::vector<Tensor> inputs, size_t input, int64_t i) {
    constexpr double kStep = 1e-6;
    double ends[2];
    for (const int side : {0, 1}) {
        Tensor moved = inputs[input].clone();
        moved.as<double>()[i] += side ? kStep : -kStep;
        std::vector<Tensor> all = inputs;
        all[input] = moved;
        ends[side] = total(module, all);
    }
    return (ends[1] - ends[0]) / (2 * kStep);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); }

}  // namespace

class GraphCallsTest : public QObject {
    Q_OBJECT

    static void rows() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("taken");
        const auto row = [](const char* name, const std::string& text, bool taken) {
            QTest::newRow(name) << QString::fromStdString(text) << taken;
        };
        row("cond, first branch", kCond, true);
        row("cond, second branch", kCond, false);
        row("cond in a branch", kNested, true);
        row("cond beside one in a branch", kNested, false);
        row("map", kMap, true);
        row("while_loop", kWhile, true);
        row("while_loop without a step", kWhileUnread, true);
        row("while_loop as long as its values say", kWhileByValue, true);
        row("while_loop in a while_loop", kLoopInLoop, true);
        row("scan", kScan, true);
        row("scan in a scan", kScanOfScans, true);
        row("scan that adds up", kScanSum, true);
        row("map of products", kMapOfProducts, true);
        row("scan of what was scanned", kScanOfScanned, true);
        row("associative_scan", kAssociative, true);
        row("associative_scan of one item", kAssociativeOfOne, true);
    }

  private slots:
    void gradientsAreDifferences_data() {
        rows();
        const auto row = [](const char* name, const std::string& text, bool taken) {
            QTest::newRow(name) << QString::fromStdString(text) << taken;
        };
        row("cond that draws, first branch", kDraws, true);
        row("cond that draws, second branch", kDraws, false);
        row("cond with a branch that draws", kOneDraws, false);
        row("cond beside a branch that draws", kOneDraws, true);
        row("cond with the same branch twice, which draws", kRandom, true);
        row("while_loop that draws", kDrawsInSteps, true);
        row("while_loop that would draw, without a step", kDrawsInNoStep, true);
    }
    void gradientsAreDifferences() {
        QFETCH(QString, text);
        QFETCH(bool, taken);
        const auto forward = parseText(text.toStdString());
        QVERIFY2(forward, forward ? "" : forward.error().text().c_str());
        JointOptions options;
        options.allInputs = true;
        const auto joint = makeJointGraph(**forward, options);
        QVERIFY2(joint, joint ? "" : joint.error().text().c_str());
        const auto sound = verify(**joint);
        QVERIFY2(sound, sound ? "" : sound.error().text().c_str());
        const auto again = parseText(printText(**joint).text);
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        std::vector<Tensor> inputs = randomInputsOf(**forward, taken);
        const size_t count = inputs.size();
        const auto ahead = interpret(**forward, inputs);
        QVERIFY(ahead);
        std::vector<Tensor> all = inputs;
        for (const Tensor& result : *ahead) {
            Tensor ones = Tensor::empty(DType::F64, result.sizes());
            for (int64_t i = 0; i < ones.numel(); ++i) ones.as<double>()[i] = 1;
            all.push_back(ones);
        }
        const auto results = interpret(**joint, all);
        QVERIFY2(results, results ? "" : results.error().text().c_str());
        int compared = 0;
        for (size_t k = 0; k < count; ++k) {
            if (inputs[k].dtype() != DType::F64) continue;
            const Tensor& gradient = (*results)[ahead->size() + k];
            QVERIFY(gradient.defined());
            for (int64_t i = 0; i < inputs[k].numel(); ++i, ++compared) {
                const double expected = difference(**forward, inputs, k, i);
                QVERIFY2(close(element(gradient, i), expected),
                         qPrintable(QStringLiteral("input %1, element %2: %3, differences say %4")
                                        .arg(k)
                                        .arg(i)
                                        .arg(element(gradient, i))
                                        .arg(expected)));
            }
        }
        QVERIFY(compared > 3);
    }

    void compiledAsInterpreted_data() { rows(); }
    void compiledAsInterpreted() {
        QFETCH(QString, text);
        QFETCH(bool, taken);
        const auto forward = parseText(text.toStdString());
        QVERIFY2(forward, forward ? "" : forward.error().text().c_str());
        JointOptions options;
        options.allInputs = true;
        auto joint = makeJointGraph(**forward, options);
        QVERIFY2(joint, joint ? "" : joint.error().text().c_str());
        const std::vector<Tensor> all = randomInputsOf(**joint, taken);
        const auto expected = interpret(**joint, all);
        QVERIFY2(expected, expected ? "" : expected.error().text().c_str());
        const Snapshot input = std::move(*joint);
        const auto trace = runPipeline(input, CompileRequest(), {.cacheFile = "off"}, {});
        QVERIFY2(trace && !trace->failed(), trace ? trace->steps.back().info.error.c_str() : "");
        const auto program = buildCpu(trace->result());
        QVERIFY2(program, program ? "" : program.error().text().c_str());
        const auto run = runCpu(*program, all, {.repeat = 0, .threads = 1});
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        for (size_t i = 0; i < expected->size(); ++i) {
            if (!(*expected)[i].defined()) continue;
            for (int64_t e = 0; e < (*expected)[i].numel(); ++e)
                QVERIFY2(close(element(run->outputs[i], e), element((*expected)[i], e)),
                         qPrintable(QString("result %1, element %2: %3 instead of %4")
                                        .arg(i)
                                        .arg(e)
                                        .arg(element(run->outputs[i], e))
                                        .arg(element((*expected)[i], e))));
        }
    }

    void tangentsAreDifferences_data() { rows(); }
    void tangentsAreDifferences() {
        QFETCH(QString, text);
        QFETCH(bool, taken);
        const auto forward = parseText(text.toStdString());
        QVERIFY2(forward, forward ? "" : forward.error().text().c_str());
        Module moved(**forward);
        CompileRequest request;
        request.mode = Mode::Jvp;
        Rewriter rewriter("test", request);
        const auto done = jvp(moved, rewriter);
        QVERIFY2(done, done ? "" : done.error().text().c_str());
        const auto sound = verify(moved);
        QVERIFY2(sound, sound ? "" : sound.error().text().c_str());
        const std::vector<Tensor> inputs = randomInputsOf(**forward, taken);
        for (size_t k = 0, floating = 0; k < inputs.size(); ++k) {
            if (inputs[k].dtype() != DType::F64) continue;
            for (int64_t i = 0; i < inputs[k].numel(); ++i) {
                std::vector<Tensor> all = inputs;
                for (size_t other = 0; other < inputs.size(); ++other) {
                    if (inputs[other].dtype() != DType::F64) continue;
                    Tensor direction = Tensor::zeros(DType::F64, inputs[other].sizes()).clone();
                    if (other == k) direction.as<double>()[i] = 1;
                    all.push_back(direction);
                }
                const auto results = interpret(moved, all);
                QVERIFY2(results, results ? "" : results.error().text().c_str());
                double found = 0;
                const Tensor& tangent = results->back();
                for (int64_t e = 0; e < tangent.numel(); ++e) found += element(tangent, e);
                const double expected = difference(**forward, inputs, k, i);
                QVERIFY2(close(found, expected),
                         qPrintable(QStringLiteral("input %1, element %2: %3, differences say %4")
                                        .arg(k)
                                        .arg(i)
                                        .arg(found)
                                        .arg(expected)));
            }
            ++floating;
        }
    }

    void whatCannotBeDifferentiated_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("forward");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const std::string& text, bool forward, const char* says) {
            QTest::newRow(name) << QString::fromStdString(text) << forward << QString::fromLatin1(says);
        };
        row("draws in a branch of a branch, backwards", kDrawsInside, false, "outer draws random numbers");
        row("draws in an associative scan, backwards", kAssociativeDraws, false, "both draws random numbers");
        row("draws forwards", kRandom, true, "yes draws random numbers");
    }
    void whatCannotBeDifferentiated() {
        QFETCH(QString, text);
        QFETCH(bool, forward);
        QFETCH(QString, says);
        const auto module = parseText(text.toStdString());
        QVERIFY2(module, module ? "" : module.error().text().c_str());
        CompileRequest request;
        Rewriter rewriter("test", request);
        JointOptions options;
        options.allInputs = true;
        QString error;
        if (forward) {
            const auto done = jvp(**module, rewriter);
            QVERIFY(!done);
            error = QString::fromStdString(done.error().text());
        } else {
            const auto done = makeJointGraph(**module, options);
            QVERIFY(!done);
            error = QString::fromStdString(done.error().text());
        }
        QVERIFY2(error.contains(says), qPrintable(error));
    }
};

CUTAWAY_SUITE(GraphCallsTest)
#include "graph_calls_test.moc"
