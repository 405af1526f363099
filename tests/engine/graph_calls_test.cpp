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
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"

using namespace cutaway;

namespace {

const std::string kCond = R"fx(def forward(p: "b8[]", x: "f64[3, 2]", w: "f64[2, 4]"):
    c = higher_order.cond(p, yes, no, [x, w])
    a: "f64[3, 4]" = c[0]
    b: "f64[2]" = c[1]
    s: "f64[3, 4]" = aten.sin.default(a)
    t: "f64[]" = aten.sum.default(b)
    r: "f64[3, 4]" = aten.mul.Tensor(s, t)
    return (r,)

def yes(x: "f64[3, 2]", w: "f64[2, 4]"):
    m: "f64[3, 4]" = aten.mm.default(x, w)
    e: "f64[3, 4]" = aten.tanh.default(m)
    o: "f64[2]" = aten.sum.dim_IntList(x, [0])
    return (e, o)

def no(x: "f64[3, 2]", w: "f64[2, 4]"):
    m: "f64[3, 4]" = aten.full.default([3, 4], 2.5, dtype=torch.float64)
    v: "f64[2, 4]" = aten.exp.default(w)
    u: "f64[4]" = aten.sum.dim_IntList(v, [0])
    n: "f64[3, 4]" = aten.mul.Tensor(m, u)
    o: "f64[2]" = aten.mean.dim(x, [0])
    return (n, o)
)fx";
const std::string kNested = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, outer, inner, [p, x])
    a: "f64[4]" = c[0]
    r: "f64[4]" = aten.mul.Tensor(a, x)
    return (r,)

def outer(p: "b8[]", x: "f64[4]"):
    q: "b8[]" = aten.logical_not.default(p)
    s: "f64[4]" = aten.sin.default(x)
    c = higher_order.cond(q, inner, inner, [q, s])
    a: "f64[4]" = c[0]
    return (a,)

    def inner(p: "b8[]", x: "f64[4]"):
        y: "f64[4]" = aten.mul.Tensor(x, x)
        return (y,)

def inner(p: "b8[]", x: "f64[4]"):
    y: "f64[4]" = aten.exp.default(x)
    return (y,)
)fx";
const std::string kMap = R"fx(def forward(p: "b8[]", x: "f64[3, 2]", w: "f64[2]"):
    c = higher_order.map_impl(body, [x], [w])
    a: "f64[3, 2]" = c[0]
    r: "f64[3, 2]" = aten.sin.default(a)
    return (r,)

def body(x: "f64[2]", w: "f64[2]"):
    y: "f64[2]" = aten.mul.Tensor(x, w)
    z: "f64[2]" = aten.mul.Tensor(y, x)
    return (z,)
)fx";
const std::string kWhile = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 0, dtype=torch.int64)
    z: "f64[3]" = aten.zeros_like.default(x)
    c = higher_order.while_loop(more, body, [n, x, z], [w])
    a: "f64[3]" = c[1]
    b: "f64[3]" = c[2]
    r: "f64[3]" = aten.mul.Tensor(a, b)
    return (r,)

def more(n: "i64[]", x: "f64[3]", z: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 4)
    return t

def body(n: "i64[]", x: "f64[3]", z: "f64[3]", w: "f64[3]"):
    m: "i64[]" = aten.add.Tensor(n, 1)
    y: "f64[3]" = aten.mul.Tensor(x, w)
    s: "f64[3]" = aten.sin.default(y)
    u: "f64[3]" = aten.add.Tensor(z, s)
    return (m, s, u)
)fx";
const std::string kScan = R"fx(def forward(p: "b8[]", x: "f64[4, 2]", w: "f64[2]"):
    h: "f64[2]" = aten.cos.default(w)
    c = higher_order.scan(body, [h], [x], [w])
    a: "f64[2]" = c[0]
    b: "f64[4, 2]" = c[1]
    r: "f64[4, 2]" = aten.mul.Tensor(b, a)
    return (r,)

def body(h: "f64[2]", x: "f64[2]", w: "f64[2]"):
    y: "f64[2]" = aten.mul.Tensor(h, w)
    z: "f64[2]" = aten.add.Tensor(y, x)
    t: "f64[2]" = aten.tanh.default(z)
    s: "f64[2]" = aten.sin.default(t)
    return (t, s)
)fx";
const std::string kWhileUnread = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 7, dtype=torch.int64)
    c = higher_order.while_loop(more, body, [n, x], [w])
    a: "f64[3]" = c[1]
    b: "f64[3]" = c[1]
    e: "f64[3]" = aten.exp.default(a)
    r: "f64[3]" = aten.mul.Tensor(e, b)
    return (r,)

def more(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 4)
    return t

def body(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    m: "i64[]" = aten.add.Tensor(n, 1)
    y: "f64[3]" = aten.mul.Tensor(x, w)
    return (m, y)
)fx";
// The number of steps depends on what is differentiated; what is carried changes places.
const std::string kWhileByValue = R"fx(def forward(p: "b8[]", x: "f64[2]", w: "f64[2, 2]"):
    z: "f64[2]" = aten.ones_like.default(x)
    c = higher_order.while_loop(more, body, [x, z], [w])
    a: "f64[2]" = c[0]
    b: "f64[2]" = c[1]
    s: "f64[2]" = aten.sub.Tensor(a, b)
    return (s,)

def more(x: "f64[2]", z: "f64[2]", w: "f64[2, 2]"):
    v: "f64[2]" = aten.abs.default(z)
    u: "f64[]" = aten.sum.default(v)
    t: "b8[]" = aten.lt.Scalar(u, 9.0)
    return t

def body(x: "f64[2]", z: "f64[2]", w: "f64[2, 2]"):
    y: "f64[2]" = aten.mv.default(w, x)
    s: "f64[2]" = aten.sin.default(y)
    q: "f64[2]" = aten.mul.Tensor(z, 2.0)
    o: "f64[2]" = aten.add.Tensor(q, s)
    return (s, o)
)fx";
const std::string kScanOfScans = R"fx(def forward(p: "b8[]", x: "f64[3, 2]", w: "f64[2]"):
    h: "f64[2]" = aten.zeros_like.default(w)
    k: "i64[]" = aten.full.default([], 1, dtype=torch.int64)
    c = higher_order.scan(outer, [h, k], [x, x], [w])
    b: "f64[3, 2]" = c[2]
    d: "f64[3, 2, 2]" = c[3]
    s: "f64[2]" = aten.sum.dim_IntList(d, [0, 1])
    r: "f64[3, 2]" = aten.mul.Tensor(b, s)
    return (r,)

def outer(h: "f64[2]", k: "i64[]", x: "f64[2]", y: "f64[2]", w: "f64[2]"):
    e: "f64[2, 2]" = aten.expand.default(x, [2, 2])
    c = higher_order.scan(inner, [h], [e], [w, k])
    a: "f64[2]" = c[0]
    b: "f64[2, 2]" = c[1]
    m: "i64[]" = aten.add.Tensor(k, 1)
    s: "f64[2]" = aten.mul.Tensor(a, y)
    return (a, m, s, b)

    def inner(h: "f64[2]", x: "f64[2]", w: "f64[2]", k: "i64[]"):
        y: "f64[2]" = aten.mul.Tensor(h, w)
        z: "f64[2]" = aten.add.Tensor(y, x)
        v: "f64[2]" = aten.mul.Tensor(z, k)
        t: "f64[2]" = aten.tanh.default(v)
        u: "f64[2]" = aten.sin.default(t)
        return (t, u)
)fx";
// Linear in what is carried and in the items: a step backwards reads nothing but gradients.
const std::string kScanSum = R"fx(def forward(p: "b8[]", x: "f64[4, 2]", w: "f64[2]"):
    c = higher_order.scan(body, [w], [x], [])
    a: "f64[2]" = c[0]
    r: "f64[2]" = aten.exp.default(a)
    return (r,)

def body(h: "f64[2]", x: "f64[2]"):
    t: "f64[2]" = aten.add.Tensor(h, x)
    s: "f64[2]" = aten.clone.default(x)
    return (t, s)
)fx";
const std::string kLoopInLoop = R"fx(def forward(p: "b8[]", x: "f64[3]", w: "f64[3]"):
    n: "i64[]" = aten.full.default([], 0, dtype=torch.int64)
    c = higher_order.while_loop(more, body, [n, x], [w])
    a: "f64[3]" = c[1]
    r: "f64[3]" = aten.sin.default(a)
    return (r,)

def more(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    t: "b8[]" = aten.lt.Scalar(n, 3)
    return t

def body(n: "i64[]", x: "f64[3]", w: "f64[3]"):
    c = higher_order.while_loop(more, step, [n, x], [w])
    y: "f64[3]" = c[1]
    m: "i64[]" = aten.add.Tensor(n, 1)
    return (m, y)

    def more(n: "i64[]", x: "f64[3]", w: "f64[3]"):
        t: "b8[]" = aten.lt.Scalar(n, 3)
        return t

    def step(n: "i64[]", x: "f64[3]", w: "f64[3]"):
        m: "i64[]" = aten.add.Tensor(n, 1)
        y: "f64[3]" = aten.mul.Tensor(x, w)
        s: "f64[3]" = aten.sin.default(y)
        return (m, s)
)fx";
const std::string kAssociative = R"fx(def forward(p: "b8[]", x: "f64[4, 2]", w: "f64[4, 2]"):
    v: "f64[2]" = aten.sum.dim_IntList(w, [0])
    c = higher_order.associative_scan(both, [x, w], [v])
    a: "f64[4, 2]" = c[0]
    b: "f64[4, 2]" = c[1]
    s: "f64[4, 2]" = aten.sin.default(a)
    r: "f64[4, 2]" = aten.mul.Tensor(s, b)
    return (r,)

def both(a: "f64[2]", b: "f64[2]", c: "f64[2]", d: "f64[2]", v: "f64[2]"):
    m: "f64[2]" = aten.mul.Tensor(a, c)
    n: "f64[2]" = aten.mul.Tensor(m, v)
    k: "f64[2]" = aten.mul.Tensor(b, c)
    o: "f64[2]" = aten.add.Tensor(k, d)
    return (n, o)
)fx";
const std::string kAssociativeOfOne = R"fx(def forward(p: "b8[]", x: "f64[1, 4]", w: "f64[4]"):
    c = higher_order.associative_scan(product, [x], [])
    a: "f64[1, 4]" = c[0]
    r: "f64[1, 4]" = aten.mul.Tensor(a, w)
    return (r,)

def product(a: "f64[4]", b: "f64[4]"):
    m: "f64[4]" = aten.mul.Tensor(a, b)
    return (m,)
)fx";
const std::string kRandom = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, yes, yes, [x])
    a: "f64[4]" = c[0]
    return (a,)

def yes(x: "f64[4]"):
    r: "f64[4]" = aten.rand_like.default(x)
    y: "f64[4]" = aten.mul.Tensor(x, r)
    return (y,)
)fx";

// What a branch draws is drawn once, and its derivative reads it.
const std::string kDraws = R"fx(def forward(p: "b8[]", x: "f64[4]", y: "f64[4]"):
    c = higher_order.cond(p, yes, no, [x, y])
    a: "f64[4]" = c[0]
    b: "f64[4]" = c[1]
    s: "f64[4]" = aten.sin.default(b)
    return (a, s)

def yes(x: "f64[4]", y: "f64[4]"):
    r: "f64[4]" = aten.rand_like.default(x)
    m: "f64[4]" = aten.mul.Tensor(x, r)
    z: "f64[4]" = aten.mul.Tensor(m, y)
    return (z, m)

def no(x: "f64[4]", y: "f64[4]"):
    r: "f64[2, 4]" = aten.randn.default([2, 4], dtype=torch.float64)
    i: "i64[4]" = aten.randint.low(1, 9, [4])
    m: "f64[2, 4]" = aten.mul.Tensor(x, r)
    e: "f64[2, 4]" = aten.exp.default(m)
    z: "f64[4]" = aten.sum.dim_IntList(e, [0])
    q: "f64[4]" = aten.mul.Tensor(y, i)
    return (z, q)
)fx";
const std::string kOneDraws = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, yes, no, [x])
    a: "f64[4]" = c[0]
    return (a,)

def yes(x: "f64[4]"):
    s: "f64[4]" = aten.sin.default(x)
    return (s,)

def no(x: "f64[4]"):
    d = aten.native_dropout.default(x, 0.5, True)
    y: "f64[4]" = d[0]
    k: "b8[4]" = d[1]
    s: "f64[4]" = aten.mul.Tensor(y, x)
    return (s,)
)fx";
// The branch draws in a branch of its own, which is not looked into.
const std::string kDrawsInside = R"fx(def forward(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, outer, outer, [p, x])
    a: "f64[4]" = c[0]
    return (a,)

def outer(p: "b8[]", x: "f64[4]"):
    c = higher_order.cond(p, yes, yes, [x])
    a: "f64[4]" = c[0]
    return (a,)

    def yes(x: "f64[4]"):
        r: "f64[4]" = aten.rand_like.default(x)
        y: "f64[4]" = aten.mul.Tensor(x, r)
        return (y,)
)fx";

Tensor number(bool value) {
    Tensor out = Tensor::empty(DType::Bool, {});
    *out.as<bool>() = value;
    return out;
}

std::vector<Tensor> inputsOf(const Module& module, bool taken) {
    Random random(7);
    std::vector<Tensor> inputs;
    for (const Node* input : module.graph().placeholders()) {
        const TensorType& type = input->tensor();
        if (type.dtype != DType::F64) {
            inputs.push_back(number(taken));
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
        std::vector<Tensor> inputs = inputsOf(**forward, taken);
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
        const std::vector<Tensor> inputs = inputsOf(**forward, taken);
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

QTEST_APPLESS_MAIN(GraphCallsTest)
#include "graph_calls_test.moc"
