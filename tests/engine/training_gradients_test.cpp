// Whole training runs against differences of the loss: programs that write to what the backward reads, that find sizes
// in data, and that loop, at every memory budget, interpreted and compiled.
#include <QtTest>
#include <cmath>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

const char* const kWrittenThroughView = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]", y: "f64[3, 4]"):
    x1 = aten.mul_.Tensor(x, 2)
    a = aten.select.int(y, 1, 1)
    b = aten.select.int(x1, 1, 0)
    c = aten.mul.Tensor(b, 3)
    a1 = aten.add_.Tensor(a, c)
    d = aten.mul.Tensor(x1, w)
    e = aten.sum.dim_IntList(d, [1])
    f = aten.mul.Tensor(y, w)
    g = aten.tanh.default(f)
    return (e, g)
)fx";
// The derivative reads the input as it was and as it is.
const char* const kReadBeforeAndAfter = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]", i: "f64[3, 4]"):
    a = aten.mul.Tensor(i, w)
    b = aten.sin.default(a)
    c = aten.select.int(i, 0, 1)
    d = aten.select.int(x, 0, 0)
    c1 = aten.copy_.default(c, d)
    e = aten.slice.Tensor(i, 1, 2, 4)
    e1 = aten.mul_.Tensor(e, 0.5)
    f = aten.mul.Tensor(i, w)
    g = aten.cos.default(f)
    return (b, g)
)fx";
const char* const kMasked = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    a = aten.mul.Tensor(x, w)
    s = aten.sum.dim_IntList(x, [1])
    m = aten.gt.Scalar(s, 0)
    b: "f64[u0, 4]" = aten.index.Tensor(a, [m])
    n: "Sym(u0)" = aten.sym_size.int(b, 0)
    c: "f64[u0, 4]" = aten.sin.default(b)
    d = aten.sum.dim_IntList(c, [0])
    return (d,)
)fx";
// The backward reads how many rows there were, and nothing that has as many.
const char* const kCounted = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    a = aten.mul.Tensor(x, w)
    s = aten.sum.dim_IntList(x, [1])
    m = aten.gt.Scalar(s, 0)
    b: "f64[u0, 4]" = aten.index.Tensor(a, [m])
    n: "Sym(u0)" = aten.sym_size.int(b, 0)
    d = aten.sum.dim_IntList(b, [0])
    return (d,)
)fx";
const char* const kUncounted = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    a = aten.mul.Tensor(x, w)
    s = aten.sum.dim_IntList(x, [1])
    m = aten.gt.Scalar(s, 0)
    b: "f64[u0, 4]" = aten.index.Tensor(a, [m])
    d = aten.sum.dim_IntList(b, [0])
    return (d,)
)fx";
const char* const kRouted = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    s = aten.sum.dim_IntList(x, [1])
    m = aten.gt.Scalar(s, 0)
    t: "i64[u0, 1]" = aten.nonzero.default(m)
    i: "i64[u0]" = aten.squeeze.dim(t, 1)
    n: "Sym(u0)" = aten.sym_size.int(i, 0)
    a: "f64[u0, 4]" = aten.index.Tensor(x, [i])
    b: "f64[u0, 4]" = aten.mul.Tensor(a, w)
    c: "f64[u0, 4]" = aten.exp.default(b)
    z = aten.zeros_like.default(x)
    y: "f64[3, 4]" = aten.index_add.default(z, 0, i, c)
    return (y,)
)fx";
const char* const kComplex = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    s = aten.select.int(x, 0, 0)
    z = aten.complex.default(w, s)
    a = aten.mul.Tensor(z, 2j)
    b = aten.div.Tensor(z, (1-2j))
    c = aten.add.Tensor(a, b, alpha=(1+2j))
    d = aten.sub.Tensor(c, z, alpha=1j)
    e = aten.mul.Scalar(d, (2-1j))
    f = aten.outer.default(z, e)
    g = aten.mv.default(f, b)
    h = aten.addmv.default(z, f, e, beta=1j, alpha=(1+1j))
    i = aten.addr.default(f, g, h, beta=1j, alpha=(1+1j))
    j = aten.cumprod.default(z, 0)
    k = aten.prod.dim_int(f, 1)
    l = aten.dot.default(z, e)
    m = aten.vdot.default(z, e)
    n = aten.add.Tensor(l, m)
    o = aten.mul.Tensor(n, j)
    p = aten.mul.Tensor(o, k)
    q = aten.view_as_real.default(p)
    r = aten.view_as_real.default(h)
    t = aten.view_as_real.default(i)
    u = aten.tanh.default(q)
    v = aten.tanh.default(r)
    y = aten.tanh.default(t)
    return (u, v, y)
)fx";
const char* const kTrainedScan = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    h = aten.cos.default(w)
    c = higher_order.scan(body, [h], [x], [w])
    a: "f64[4]" = c[0]
    b: "f64[3, 4]" = c[1]
    return (a, b)

def body(h: "f64[4]", x: "f64[4]", w: "f64[4]"):
    y: "f64[4]" = aten.mul.Tensor(h, w)
    z: "f64[4]" = aten.add.Tensor(y, x)
    t: "f64[4]" = aten.tanh.default(z)
    s: "f64[4]" = aten.sin.default(t)
    return (t, s)
)fx";
const char* const kTrainedWhile = R"fx(def forward(w: "f64[4]", x: "f64[3, 4]"):
    s = aten.exp.default(x)
    c = higher_order.while_loop(more, body, [s], [w])
    a: "f64[3, 4]" = c[0]
    return (a,)

def more(x: "f64[3, 4]", w: "f64[4]"):
    u: "f64[]" = aten.sum.default(x)
    t: "b8[]" = aten.lt.Scalar(u, 400.0)
    return t

def body(x: "f64[3, 4]", w: "f64[4]"):
    y: "f64[3, 4]" = aten.mul.Tensor(x, w)
    z: "f64[3, 4]" = aten.sin.default(y)
    q: "f64[3, 4]" = aten.mul.Tensor(x, 1.7)
    o: "f64[3, 4]" = aten.add.Tensor(q, z)
    return (o,)
)fx";

// Random numbers are the same in the backward, which is computed from them again. Each result is proportional to w.
const std::pair<const char*, const char*> kTrainedDraws[] = {
    {"dropout", "    y = aten.dropout.default(a, 0.5, True)\n"},
    {"native_dropout", "    d = aten.native_dropout.default(a, 0.5, True)\n    y = d[0]\n"},
    {"bernoulli", "    m = aten.bernoulli.p(a, 0.5)\n    y = aten.mul.Tensor(a, m)\n"},
    {"rand_like", "    m = aten.rand_like.default(a)\n    y = aten.mul.Tensor(a, m)\n"},
    {"randint_like", "    m = aten.randint_like.default(a, 3)\n    y = aten.mul.Tensor(a, m)\n"},
    {"randn", "    m = aten.randn.default([3, 4], dtype=torch.float64)\n    y = aten.mul.Tensor(a, m)\n"},
    {"two of them",
     "    m = aten.randn_like.default(a)\n    b = aten.mul.Tensor(a, m)\n"
     "    y = aten.dropout.default(b, 0.3, True)\n"},
    {"exponential", "    m = aten.exponential.default(a)\n    y = aten.mul.Tensor(a, m)\n"},
    {"uniform in place",
     "    z = aten.mul.Tensor(a, 1)\n    m = aten.uniform_.default(z)\n    y = aten.mul.Tensor(a, m)\n"},
    {"bernoulli in place",
     "    z = aten.mul.Tensor(a, 1)\n    m = aten.bernoulli_.float(z)\n    y = aten.mul.Tensor(a, m)\n"},
    {"a chain",
     "    m = aten.rand_like.default(a)\n    e = aten.exp.default(m)\n    s = aten.sin.default(e)\n"
     "    y = aten.mul.Tensor(a, s)\n"},
};

const char* const kScanThatDraws = R"fx(def forward(w: "f64[3, 4]", x: "f64[3, 4]"):
    h = aten.zeros_like.default(x)
    n = aten.rand_like.default(x)
    q = aten.mul.Tensor(x, n)
    s = aten.unsqueeze.default(q, 0)
    e = aten.expand.default(s, [5, 3, 4])
    c = higher_order.scan(body, [h], [e], [w])
    a: "f64[3, 4]" = c[0]
    return (a,)

def body(h: "f64[3, 4]", x: "f64[3, 4]", w: "f64[3, 4]"):
    m: "f64[3, 4]" = aten.mul.Tensor(x, w)
    d = aten.native_dropout.default(m, 0.5, True)
    y: "f64[3, 4]" = d[0]
    r: "f64[3, 4]" = aten.rand_like.default(y)
    z: "f64[3, 4]" = aten.mul.Tensor(y, r)
    t: "f64[3, 4]" = aten.add.Tensor(h, z)
    return (t,)
)fx";
const char* const kMapThatDraws = R"fx(def forward(w: "f64[3, 4]", x: "f64[3, 4]"):
    n = aten.rand_like.default(x)
    q = aten.mul.Tensor(x, n)
    c = higher_order.map_impl(body, [w], [q])
    a: "f64[3, 4]" = c[0]
    return (a,)

def body(w: "f64[4]", x: "f64[3, 4]"):
    s: "f64[4]" = aten.sum.dim_IntList(x, [0])
    m: "f64[4]" = aten.mul.Tensor(s, w)
    d = aten.native_dropout.default(m, 0.5, True)
    y: "f64[4]" = d[0]
    r: "f64[4]" = aten.rand_like.default(y)
    z: "f64[4]" = aten.mul.Tensor(y, r)
    return (z,)
)fx";

NamedTensors namedInputs(const Module& module) {
    Random random(5);
    NamedTensors inputs;
    for (const Node* input : module.graph().placeholders()) {
        Tensor value = Tensor::empty(DType::F64, toInts(input->tensor().sizes));
        for (int64_t i = 0; i < value.numel(); ++i) value.as<double>()[i] = 0.3 + random.normal();
        inputs.emplace_back(input->name(), value);
    }
    return inputs;
}

/// The sum of the means of squares, with one element of `w` moved.
double lossAt(const Module& forward, const NamedTensors& inputs, int64_t element, double step) {
    std::vector<Tensor> given;
    for (const auto& [name, tensor] : inputs) given.push_back(tensor.clone());
    given[0].as<double>()[element] += step;
    const auto results = interpret(forward, given);
    if (!results) qFatal("%s", results.error().text().c_str());
    double loss = 0;
    for (const Tensor& result : *results) {
        const Tensor dense = result.contiguous();
        double sum = 0;
        for (int64_t i = 0; i < dense.numel(); ++i) sum += dense.as<double>()[i] * dense.as<double>()[i];
        loss += sum / static_cast<double>(dense.numel());
    }
    return loss;
}

}  // namespace

class TrainingGradientsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    struct Written {
        QString problem;
        std::map<std::string, Tensor> tensors;
    };
    /// Runs the program in training; returns what it writes, of the gradients only that of `w`.
    Written run(const QString& text, const NamedTensors& inputs, double budget, bool compiled) const {
        QFile file(m_folder.filePath("graph.py"));
        if (!file.open(QIODevice::WriteOnly) || file.write(text.toUtf8()) < 0) return {"cannot write", {}};
        file.close();
        if (!writeSafeTensors(path("in.safetensors"), {inputs, {}})) return {"cannot write", {}};
        const auto failed = [](const Error& error) { return Written{QString::fromStdString(error.text()), {}}; };
        Session session;
        if (const auto opened = session.open(path("graph.py")); !opened) return failed(opened.error());
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = {"w"};
        request.memoryBudget = budget;
        const auto compiledRun = session.compile(request);
        if (!compiledRun) return failed(compiledRun.error());
        RunOptions options;
        options.backend = compiled ? Backend::Cpu : Backend::Reference;
        options.inputsFile = path("in.safetensors");
        options.gradientsFile = path("out.safetensors");
        if (const auto report = session.run(*compiledRun, options); !report) return failed(report.error());
        const auto found = readSafeTensors(options.gradientsFile);
        if (!found) return failed(found.error());
        Written written;
        for (const auto& [name, tensor] : found->tensors) written.tensors.emplace(name, tensor.clone());
        if (!written.tensors.contains("w")) written.problem = "there is no gradient by w";
        return written;
    }

  private slots:
    void areDifferences_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("compiled");
        const std::pair<const char*, const char*> rows[] = {{"written through a view", kWrittenThroughView},
                                                            {"read before and after", kReadBeforeAndAfter},
                                                            {"masked rows", kMasked},
                                                            {"rows that are only counted", kCounted},
                                                            {"rows that nobody counts", kUncounted},
                                                            {"routed rows", kRouted},
                                                            {"complex factors", kComplex},
                                                            {"scan", kTrainedScan},
                                                            {"while_loop", kTrainedWhile}};
        for (const auto& [name, text] : rows)
            for (const bool compiled : {false, true})
                QTest::newRow((std::string(name) + (compiled ? ", compiled" : "")).c_str())
                    << QString::fromLatin1(text) << compiled;
    }
    void areDifferences() {
        QFETCH(QString, text);
        QFETCH(bool, compiled);
        const auto forward = parseText(text.toStdString());
        QVERIFY2(forward, forward ? "" : forward.error().text().c_str());
        const NamedTensors inputs = namedInputs(**forward);
        for (const double budget : {0.0, 0.5, 1.0}) {
            const Written written = run(text, inputs, budget, compiled);
            QVERIFY2(written.problem.isEmpty(), qPrintable(written.problem));
            const Tensor gradient = written.tensors.at("w").contiguous();
            for (int64_t i = 0; i < gradient.numel(); ++i) {
                constexpr double kStep = 1e-6;
                const double expected =
                    (lossAt(**forward, inputs, i, kStep) - lossAt(**forward, inputs, i, -kStep)) / (2 * kStep);
                QVERIFY2(std::abs(gradient.as<double>()[i] - expected) <= 1e-6 * std::max(1.0, std::abs(expected)),
                         qPrintable(QStringLiteral("budget %1, element %2: %3, differences say %4")
                                        .arg(budget)
                                        .arg(i)
                                        .arg(gradient.as<double>()[i])
                                        .arg(expected)));
            }
        }
    }

    void drawTheSameAgain_data() {
        QTest::addColumn<QString>("text");
        const std::pair<const char*, const char*> graphs[] = {{"in the steps of a scan", kScanThatDraws},
                                                              {"in each item of a map", kMapThatDraws}};
        for (const auto& [name, all] : graphs) QTest::newRow(name) << QString::fromLatin1(all);
        for (const auto& [name, calls] : kTrainedDraws)
            QTest::newRow(name) << QStringLiteral(
                                       "def forward(w: \"f64[3, 4]\", x: \"f64[3, 4]\"):\n"
                                       "    a = aten.mul.Tensor(x, w)\n%1    return (y,)\n")
                                       .arg(QLatin1String(calls));
    }
    /// Of y = w k and the loss mean(y^2), w times the gradient is 2 y^2 / n, whatever k is.
    void drawTheSameAgain() {
        QFETCH(QString, text);
        const auto forward = parseText(text.toStdString());
        QVERIFY2(forward, forward ? "" : forward.error().text().c_str());
        const NamedTensors inputs = namedInputs(**forward);
        for (const bool compiled : {false, true})
            for (const double budget : {0.0, 0.5, 1.0}) {
                Written written = run(text, inputs, budget, compiled);
                QVERIFY2(written.problem.isEmpty(), qPrintable(written.problem));
                const Tensor gradient = written.tensors.at("w").contiguous();
                written.tensors.erase("w");
                written.tensors.erase("loss");
                QCOMPARE(written.tensors.size(), size_t{1});
                const Tensor y = written.tensors.begin()->second.contiguous();
                for (int64_t i = 0; i < y.numel(); ++i) {
                    const double found = gradient.as<double>()[i] * inputs[0].second.as<double>()[i],
                                 expected = 2 * y.as<double>()[i] * y.as<double>()[i] / static_cast<double>(y.numel());
                    QVERIFY2(std::abs(found - expected) < 1e-9 * std::max(1.0, std::abs(expected)),
                             qPrintable(QStringLiteral("budget %1, compiled %2").arg(budget).arg(compiled)));
                }
            }
    }
};

CUTAWAY_SUITE(TrainingGradientsTest)
#include "training_gradients_test.moc"
