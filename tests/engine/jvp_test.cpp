// Forward mode: of every op against reverse mode, on the samples of its row in f64. The tangent y' that a direction x'
// gives and the gradient that u gives belong together: <y', u> = <x', vjp(u)>. Reverse mode itself is held to
// differences by ops_test.
#include "engine/autograd/jvp.h"

#include <QtTest>
#include <cmath>
#include <complex>
#include <map>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/autograd/tangent_rules.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "engine/support/check.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/op_samples.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

QByteArray message(const Error& error) { return QByteArray::fromStdString(error.text()); }

bool isContinuous(const ValueType& type) {
    return type.tensor() && (type.tensor()->dtype == DType::F64 || isComplex(type.tensor()->dtype));
}

/// Whether gradients reach more results than the first: those of the same kind.
bool severalMove(const Op& op) { return op.schema()->returns[0].list || op.name() == "aten.var_mean.correction"; }

/// With numbers of double precision only.
std::string widened(const std::string& text) {
    return QString::fromStdString(widenedSample(text)).replace("c64[", "c128[").toStdString();
}

/// A function of the sample's tensors: its call, of copies of them, so that no result is an input's memory.
Result<std::unique_ptr<Module>> functionOf(const SampleCall& sample) {
    auto module = std::make_unique<Module>();
    CT_TRY(const std::vector<Node*> results, appendSample(sample, *module));
    GraphBuilder builder(module->graph());
    ArgumentList outputs{{}, true};
    for (Node* result : results)
        if (result && isContinuous(result->type()) && (outputs.items.empty() || severalMove(sample.call->op())))
            outputs.items.push_back(builder.call("aten.clone.default", {Argument(result)}));
    if (builder.error()) return *builder.error();
    module->graph().output(Argument(std::move(outputs)));
    const CompileRequest request;
    Rewriter rewriter("test", request);
    CT_TRY_VOID(expandComposites(*module, rewriter));
    CT_TRY_VOID(functionalize(*module, rewriter));
    return module;
}

template <class Pass>
Result<std::unique_ptr<Module>> passed(const Module& forward, Mode mode, Pass pass) {
    auto module = std::make_unique<Module>(forward);
    CompileRequest request;
    request.mode = mode;
    Rewriter rewriter("test", request);
    CT_TRY_VOID(pass(*module, rewriter));
    CT_TRY_VOID(verify(*module));
    return module;
}

Tensor randomTensor(DType dtype, const Dims& sizes, Random& random) {
    Tensor out = Tensor::empty(dtype, sizes);
    for (int64_t i = 0; i < out.numel(); ++i) {
        if (dtype == DType::C128) out.as<std::complex<double>>()[i] = {random.normal(), random.normal()};
        else if (dtype == DType::C64)
            out.as<std::complex<float>>()[i] = {static_cast<float>(random.normal()),
                                                static_cast<float>(random.normal())};
        else out.as<double>()[i] = random.normal();
    }
    return out;
}

/// The real part of <a, b>.
double dot(const Tensor& first, const Tensor& second) {
    const Tensor a = first.contiguous(), b = second.contiguous();
    double total = 0;
    for (int64_t i = 0; i < a.numel(); ++i) {
        const auto number = [i](const Tensor& of) {
            const Scalar item = of.item(i);
            return isComplex(of.dtype()) ? std::get<std::complex<double>>(item) : std::complex<double>(toDouble(item));
        };
        total += (std::conj(number(a)) * number(b)).real();
    }
    return total;
}

bool overlaps(const Tensor& tensor) {
    for (size_t d = 0; d < tensor.sizes().size(); ++d)
        if (tensor.strides()[d] == 0 && tensor.sizes()[d] > 1) return true;
    return false;
}

/// Inputs off the grid that samples lie on, so that no element sits on a kink or ties with another.
std::vector<Tensor> inputsOf(const SampleCall& sample) {
    std::vector<Tensor> inputs;
    for (size_t t = 0; t < sample.inputs.size(); ++t) {
        const Tensor& given = sample.inputs[t];
        if (given.dtype() != DType::F64 || overlaps(given)) {
            inputs.push_back(given);
            continue;
        }
        const Tensor elements = given.contiguous();
        Tensor shifted = Tensor::empty(DType::F64, given.sizes());
        for (int64_t i = 0; i < given.numel(); ++i)
            shifted.as<double>()[i] = toDouble(elements.item(i)) + 0.0031 +
                                      0.00003 * static_cast<double>((i * 7 + static_cast<int64_t>(t) * 3) % 97);
        Tensor laidOut = Tensor::empty(DType::F64, given.sizes(), given.strides());
        copyInto(laidOut, shifted);
        inputs.push_back(laidOut);
    }
    return inputs;
}

}  // namespace

class JvpTest : public QObject {
    Q_OBJECT

  private slots:
    void transposesReverseMode_data();
    void transposesReverseMode();
};

void JvpTest::transposesReverseMode_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<QString>("text");
    for (const Op* op : allOps()) {
        const OpDef* def = op->def();
        if (!def || op->functional() || op->mutates() || op->is(Tag::Random) || !(def->derive || def->decompose))
            continue;
        for (const OpSample& sample : samplesOf(*op))
            QTest::newRow((op->name() + "#" + std::to_string(sample.number)).c_str())
                << QString::fromStdString(op->name()) << QString::fromStdString(sample.text);
    }
}

void JvpTest::transposesReverseMode() {
    QFETCH(QString, op);
    QFETCH(QString, text);
    auto built = buildSample(requireOp(op.toStdString()), widened(text.toStdString()));
    if (!built) return;  // the call exists for half floats only
    const SampleCall& sample = **built;
    auto forward = functionOf(sample);
    QVERIFY2(forward, forward ? "" : message(forward.error()));
    // Who has no derivative is no question of forward mode.
    Result<std::unique_ptr<Module>> joint = Error{}, pushed = Error{};
    try {
        joint = passed(**forward, Mode::Training, differentiate);
        if (!joint || (*joint)->graph().placeholders().size() == (*forward)->graph().placeholders().size()) return;
        pushed = passed(**forward, Mode::Jvp, jvp);
    } catch (const InternalError& error) {
        QFAIL(error.what());
    }
    if (!pushed && pushed.error().message.find("Trying to use forward AD") != std::string::npos)
        QFAIL(message(pushed.error()));
    QVERIFY2(pushed, pushed ? "" : message(pushed.error()));
    const std::vector<Tensor> inputs = inputsOf(sample);
    Random random(1);
    std::vector<Tensor> along = inputs, against = inputs, directions(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!isContinuous(sample.placeholders[i]->type())) continue;
        directions[i] = randomTensor(inputs[i].dtype(), inputs[i].sizes(), random);
    }
    const auto placeholders = (*joint)->graph().placeholders();
    for (size_t i = inputs.size(); i < placeholders.size(); ++i)
        against.push_back(
            randomTensor(placeholders[i]->tensor().dtype, toInts(placeholders[i]->tensor().sizes), random));
    const auto pulled = interpret(**joint, against);
    QVERIFY2(pulled, pulled ? "" : message(pulled.error()));
    const size_t firstGradient = pulled->size() - inputs.size();
    double backward = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Tensor& gradient = (*pulled)[firstGradient + i];
        if (!directions[i].defined()) continue;
        if (gradient.defined()) backward += dot(gradient, directions[i]);
        else directions[i] = Tensor::zeros(inputs[i].dtype(), inputs[i].sizes());
        along.push_back(directions[i]);
    }
    const auto moved = interpret(**pushed, along);
    QVERIFY2(moved, moved ? "" : message(moved.error()));
    double ahead = 0;
    size_t weight = inputs.size();
    const std::vector<Argument> outputs = (*forward)->graph().outputs();
    for (size_t i = 0; i < outputs.size(); ++i) {
        // Reverse mode has no gradient for what depends on nothing.
        if (weight >= against.size() || against[weight].sizes() != (*moved)[i].sizes()) continue;
        ahead += dot((*moved)[outputs.size() + i], against[weight++]);
    }
    if (std::isnan(backward) && std::isnan(ahead)) return;
    QVERIFY2(
        std::abs(ahead - backward) <= 1e-8 * std::max({1.0, std::abs(ahead), std::abs(backward)}),
        (std::to_string(ahead) + " against " + std::to_string(backward) + "\n" + printText(**pushed).text).c_str());
}

QTEST_GUILESS_MAIN(JvpTest)
#include "jvp_test.moc"
