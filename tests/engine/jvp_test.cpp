// Forward mode: of every op against reverse mode, on the samples of its row in f64. The tangent y' that a direction x'
// gives and the gradient that u gives belong together: <y', u> = <x', vjp(u)>. Reverse mode itself is held to
// differences by ops_test.
#include "engine/autograd/jvp.h"

#include <QtTest>
#include <cmath>
#include <complex>
#include <map>

#include "cutaway/session.h"
#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/formats/safetensors.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/ops/op_registry.h"
#include "engine/support/check.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/op_samples.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;
using namespace cutaway::testing;

namespace {

QByteArray message(const Error& error) { return QByteArray::fromStdString(error.text()); }

bool isContinuous(const ValueType& type) {
    return type.tensor() && (type.tensor()->dtype == DType::F64 || type.tensor()->dtype == DType::C128);
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

/// A direction, laid out as the graph's input is.
Tensor randomTensor(const TensorType& type, Random& random) {
    Tensor out = Tensor::empty(type.dtype == DType::C128 ? DType::C128 : DType::F64, toInts(type.sizes));
    for (int64_t i = 0; i < out.numel(); ++i) {
        if (type.dtype == DType::C128) out.as<std::complex<double>>()[i] = {random.normal(), random.normal()};
        else out.as<double>()[i] = random.normal();
    }
    Tensor laidOut = Tensor::empty(type.dtype, toInts(type.sizes), toInts(type.strides));
    copyInto(laidOut, out);
    return laidOut;
}

void fillZero(Tensor& tensor) { copyInto(tensor, Tensor::zeros(tensor.dtype(), tensor.sizes())); }

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
std::vector<Tensor> shiftedInputs(const SampleCall& sample) {
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

/// Operators that forward mode refuses, in these samples: the calls that their derivative is made of have no
/// derivative themselves. PyTorch has no formula for them either.
struct Open {
    std::string_view op;
    std::vector<int> samples;
    std::string named;  // by the error
};
const std::vector<Open> kOpen = {
    {"aten.grid_sampler_2d.default", {6, 7, 8}, "grid_sampler_2d"},  // bicubic
    {"aten.grid_sampler_3d.default", {0, 1, 2, 3}, "grid_sampler_3d"},
    {"aten.grid_sampler.default", {2}, "grid_sampler_3d"},
    {"aten._cdist_forward.default", {0, 1, 2, 3, 4, 5}, "_cdist_forward"},
    {"aten.cdist.default", {0, 1, 2}, "_cdist_forward"},
    {"torchvision.ps_roi_align.default", {0, 1}, "torchvision.ps_roi_align"},
    {"torchvision.ps_roi_pool.default", {0, 1}, "torchvision.ps_roi_pool"},
    {"aten.linalg_polar.default", {3}, "_linalg_svd"},  // of complex matrices
    {"aten._ctc_loss.default", {0, 1, 2, 3}, "_ctc_loss"},
    {"aten._ctc_loss.Tensor", {0, 1}, "_ctc_loss"},
    {"aten.ctc_loss.IntList", {0, 1, 2, 3, 4}, "_ctc_loss"},
    {"aten.ctc_loss.Tensor", {0, 1, 2, 3}, "_ctc_loss"},
    {"aten._fake_quantize_learnable_per_tensor_affine.default",
     {0, 1, 2},
     "_fake_quantize_learnable_per_tensor_affine"},
};
const Open* openIn(const QString& op, const QString& tag) {
    const int sample = tag.section('#', 1).toInt();
    for (const Open& one : kOpen)
        if (op.toStdString() == one.op &&
            std::find(one.samples.begin(), one.samples.end(), sample) != one.samples.end())
            return &one;
    return nullptr;
}

}  // namespace

class JvpTest : public QObject {
    Q_OBJECT

  private slots:
    void transposesReverseMode_data();
    void transposesReverseMode();
    void stridedViewsAreDifferences_data();
    void stridedViewsAreDifferences();
    void modelAsPyTorch_data();
    void modelAsPyTorch();
    void namesTheTangents();
    void aTangentTooManyIsRefused();
    void alongSomeInputs_data();
    void alongSomeInputs();
    void verifiesAfterAnyFuel();
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
    for (const Tensor& input : sample.inputs)
        if (input.defined() && input.numel() == 0) return;
    static const std::map<std::string, const char*> kOtherwise = {
        {"aten.embedding.default#1", "the padding row gets no gradient by definition"},
        {"aten.embedding_dense_backward.default#1", "PyTorch's derivative leaves the scale by frequency out"},
        {"aten.cross_entropy_loss.default#15", "weights of classes get a gradient only where they are smoothed"},
        {"aten.cross_entropy_loss.default#16", "weights of classes get a gradient only where they are smoothed"},
        {"torchao.dequantize_affine_float8_non_decomposed.default#0", "8-bit floats have tangents of their own"},
        {"torchao.dequantize_affine_float8_non_decomposed.default#1", "8-bit floats have tangents of their own"},
        {"onnx.Attention.opset23#6", "its softmax rounds to float16"},
        {"aten._embedding_bag.default#5", "gradients scaled by frequency are not the derivative by definition"},
        {"aten.embedding_bag.default#5", "gradients scaled by frequency are not the derivative by definition"},
    };
    if (const auto found = kOtherwise.find(QTest::currentDataTag()); found != kOtherwise.end()) QSKIP(found->second);
    auto forward = functionOf(sample);
    QVERIFY2(forward, forward ? "" : message(forward.error()));
    // Samples through which no gradient flows are not tested.
    Result<std::unique_ptr<Module>> joint = Error{}, pushed = Error{};
    try {
        joint = passed(**forward, Mode::Training, differentiate);
        if (!joint || (*joint)->graph().placeholders().size() == (*forward)->graph().placeholders().size()) return;
        pushed = passed(**forward, Mode::Jvp, jvp);
    } catch (const InternalError& error) {
        QFAIL(error.what());
    }
    if (const Open* open = openIn(op, QTest::currentDataTag())) {
        QVERIFY2(!pushed, "it has a tangent now: take it off the list");
        QVERIFY2(pushed.error().message.find("Trying to use forward AD with " + open->named) == 0,
                 message(pushed.error()));
        return;
    }
    QVERIFY2(pushed, pushed ? "" : message(pushed.error()));
    const std::vector<Tensor> inputs = shiftedInputs(sample);
    Random random(1);
    std::vector<Tensor> along = inputs, against = inputs, directions(inputs.size());
    const auto moving = (*pushed)->graph().placeholders(), placeholders = (*joint)->graph().placeholders();
    for (size_t i = 0, next = inputs.size(); i < inputs.size(); ++i)
        if (isContinuous(sample.placeholders[i]->type()))
            directions[i] = randomTensor(moving[next++]->tensor(), random);
    for (size_t i = inputs.size(); i < placeholders.size(); ++i) {
        if (!isContinuous(placeholders[i]->type())) return;  // of half floats the test knows no tolerance
        against.push_back(randomTensor(placeholders[i]->tensor(), random));
    }
    const auto pulled = interpret(**joint, against);
    QVERIFY2(pulled, pulled ? "" : message(pulled.error()));
    const size_t firstGradient = pulled->size() - inputs.size();
    double backward = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const Tensor& gradient = (*pulled)[firstGradient + i];
        if (!directions[i].defined()) continue;
        if (gradient.defined()) backward += dot(gradient, directions[i]);
        else fillZero(directions[i]);  // no gradient reaches it by definition, so its tangent is 0
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

/// as_strided of views reads the memory that they are views of, also what lies outside of them.
void JvpTest::stridedViewsAreDifferences_data() {
    QTest::addColumn<QString>("text");
    const auto row = [](const char* name, const char* input, const char* calls) {
        QTest::newRow(name) << QStringLiteral(
                                   "def forward(x: \"%1\"):\n%2    r: \"f64[2, 2]\" = aten.sin.default(s)\n"
                                   "    return (r,)\n")
                                   .arg(QLatin1String(input), QLatin1String(calls));
    };
    row("of the input", "f64[4, 4]", "    s = aten.as_strided.default(x, [2, 2], [1, 2], 3)\n");
    row("that overlaps itself", "f64[4, 4]", "    s = aten.as_strided.default(x, [2, 2], [1, 1])\n");
    row("of a transpose", "f64[4, 4]",
        "    e = aten.exp.default(x)\n    t = aten.permute.default(e, [1, 0])\n"
        "    s = aten.as_strided.default(t, [2, 2], [1, 2], 1)\n");
    row("of a slice, in front of it", "f64[4, 4]",
        "    e = aten.exp.default(x)\n    t = aten.slice.Tensor(e, 0, 1, 4)\n"
        "    s = aten.as_strided.default(t, [2, 2], [1, 2], 0)\n");
    row("of a slice, where it begins", "f64[4, 4]",
        "    e = aten.exp.default(x)\n    t = aten.slice.Tensor(e, 0, 1, 4)\n"
        "    s = aten.as_strided.default(t, [2, 2], [1, 2])\n");
    row("of repeated rows", "f64[1, 4]",
        "    t = aten.expand.default(x, [3, 4])\n    s = aten.as_strided.default(t, [2, 2], [1, 2], 0)\n");
    row("of an input with gaps", "f64[3, 2][4, 1]", "    s = aten.as_strided.default(x, [2, 2], [4, 1], 4)\n");
    row("of what lies column by column", "f64[4, 4][1, 4]",
        "    e = aten.exp.default(x)\n    t = aten.select.int(e, 0, 1)\n"
        "    s = aten.as_strided.default(t, [2, 2], [1, 5], 2)\n");
}
void JvpTest::stridedViewsAreDifferences() {
    QFETCH(QString, text);
    const auto forward = parseText(text.toStdString());
    QVERIFY2(forward, forward ? "" : message(forward.error()));
    const auto pushed = passed(**forward, Mode::Jvp, jvp);
    QVERIFY2(pushed, pushed ? "" : message(pushed.error()));
    Random random(3);
    const TensorType type = (*forward)->graph().placeholders()[0]->tensor();
    const Tensor x = randomTensor(type, random), direction = randomTensor(type, random);
    const auto moved = interpret(**pushed, {x, direction});
    QVERIFY2(moved, moved ? "" : message(moved.error()));
    constexpr double kStep = 1e-6;
    Tensor ends[2];
    for (const int side : {0, 1}) {
        Tensor at = Tensor::empty(DType::F64, x.sizes(), x.strides());
        copyInto(at, x);
        for (int64_t i = 0; i < x.size(0); ++i)
            for (int64_t j = 0; j < x.size(1); ++j) {
                const int64_t place = i * at.stride(0) + j * at.stride(1),
                              along = i * direction.stride(0) + j * direction.stride(1);
                at.as<double>()[place] += (side ? kStep : -kStep) * direction.as<double>()[along];
            }
        const auto result = interpret(**forward, {at});
        QVERIFY2(result, result ? "" : message(result.error()));
        ends[side] = (*result)[0].contiguous();
    }
    const Tensor tangent = (*moved)[1].contiguous();
    for (int64_t i = 0; i < tangent.numel(); ++i) {
        const double expected = (ends[1].as<double>()[i] - ends[0].as<double>()[i]) / (2 * kStep);
        QVERIFY2(std::abs(tangent.as<double>()[i] - expected) < 1e-7 * std::max(1.0, std::abs(expected)),
                 printText(**pushed).text.c_str());
    }
}

/// A convolution, a norm, attention and a softmax as torch.func.jvp moves them (tests/scripts/record_jvp.py).
void JvpTest::modelAsPyTorch_data() {
    QTest::addColumn<Backend>("backend");
    QTest::newRow("reference") << Backend::Reference;
    QTest::newRow("cpu") << Backend::Cpu;
}
void JvpTest::modelAsPyTorch() {
    QFETCH(Backend, backend);
    Session session;
    QVERIFY(session.open(testFile("data/jvp/model.pt2").toStdString()));
    CompileRequest request;
    request.mode = Mode::Jvp;
    const auto run = session.compile(request);
    QVERIFY2(run, run ? "" : message(run.error()));
    RunOptions options;
    options.backend = backend;
    options.inputsFile = testFile("data/jvp/inputs.safetensors").toStdString();
    options.expectFile = testFile("data/jvp/expected.safetensors").toStdString();
    const auto report = session.run(*run, options);
    QVERIFY2(report, report ? "" : message(report.error()));
    QCOMPARE(report->outputs.size(), size_t{6});
    for (const OutputReport& output : report->outputs)
        QVERIFY2(output.within, (output.name + ": " + output.problem).c_str());
    QVERIFY(report->matches);
}

void JvpTest::namesTheTangents() {
    Session session;
    QVERIFY(session.open(testFile("data/jvp/model.pt2").toStdString()));
    CompileRequest request;
    request.mode = Mode::Jvp;
    const auto run = session.compile(request);
    QVERIFY2(run, run ? "" : message(run.error()));
    const auto report = session.run(*run, {});
    QVERIFY2(report, report ? "" : message(report.error()));
    for (size_t i = 0; i < 3; ++i) QCOMPARE(report->outputs[i + 3].name, report->outputs[i].name + ".tangent");
    QVERIFY2(report->inputsFrom.find("tangents random, seed 0") != std::string::npos, report->inputsFrom.c_str());
}

/// x * y for forward mode, run with the tensors of a file.
Result<RunReport> productRun(const std::vector<std::pair<std::string, Tensor>>& tensors,
                             const std::vector<std::string>& wanted = {}) {
    QTemporaryDir folder;
    const std::string path = folder.filePath("f.txt").toStdString(),
                      inputs = folder.filePath("in.safetensors").toStdString();
    QFile file(QString::fromStdString(path));
    if (!file.open(QIODevice::WriteOnly)) return Error{};
    file.write(
        "def forward(x: \"f32[2]\", y: \"f32[2]\"):\n    z: \"f32[2]\" = aten.mul.Tensor(x, y)\n    return (z,)\n");
    file.close();
    CT_TRY_VOID(writeSafeTensors(inputs, {tensors, {}}));
    Session session;
    CT_TRY_VOID(session.open(path));
    CompileRequest request;
    request.mode = Mode::Jvp;
    request.gradients = wanted;
    CT_TRY(const RunId run, session.compile(request));
    RunOptions options;
    options.inputsFile = inputs;
    return session.run(run, options);
}
Tensor two(double value) { return Tensor::full(DType::F32, {2}, Scalar(value)); }

/// As torch.func.jvp wants one tangent for each primal.
void JvpTest::aTangentTooManyIsRefused() {
    const auto report = productRun({{"x", two(3)}, {"y", two(5)}, {"x.tangent", two(1)}, {"z.tangent", two(1)}});
    QVERIFY(!report);
    QVERIFY2(report.error().message.find("no input 'z.tangent'") != std::string::npos, message(report.error()));
}

void JvpTest::alongSomeInputs_data() {
    QTest::addColumn<QStringList>("given");
    QTest::addColumn<QStringList>("wanted");
    QTest::addColumn<double>("expected");
    QTest::newRow("both") << QStringList{"x.tangent", "y.tangent"} << QStringList() << 8.0;
    QTest::newRow("in the order of the inputs") << QStringList{"tangent_in_1", "tangent_in_2"} << QStringList() << 8.0;
    QTest::newRow("the first, the other stands still") << QStringList{"x.tangent"} << QStringList() << 5.0;
    QTest::newRow("the second") << QStringList{"tangent_in_2"} << QStringList() << 3.0;
    QTest::newRow("only y is differentiated") << QStringList{"tangent_in_1"} << QStringList{"y"} << 3.0;
}
void JvpTest::alongSomeInputs() {
    QFETCH(QStringList, given);
    QFETCH(QStringList, wanted);
    QFETCH(double, expected);
    std::vector<std::pair<std::string, Tensor>> tensors = {{"x", two(3)}, {"y", two(5)}};
    for (const QString& name : given) tensors.emplace_back(name.toStdString(), two(1));
    std::vector<std::string> names;
    for (const QString& name : wanted) names.push_back(name.toStdString());
    const auto report = productRun(tensors, names);
    QVERIFY2(report, report ? "" : message(report.error()));
    QCOMPARE(report->outputs.at(1).minimum, expected);
    QCOMPARE(report->outputs.at(1).maximum, expected);
    const bool lacks = given.size() == 1 && wanted.isEmpty();
    QCOMPARE(report->inputsFrom.find("1 tangent that it lacks zero") != std::string::npos, lacks);
}

void JvpTest::verifiesAfterAnyFuel() {
    const auto forward = parseText(
        "def forward(x: \"f32[2, 3]\", w: \"f32[3, 3]\"):\n    y = aten.mm.default(x, w)\n"
        "    z = aten.gelu.default(y)\n"
        "    m = aten.native_layer_norm.default(z, [3], None, None, 1e-5)\n    r = m[0]\n    return (r, y)\n");
    QVERIFY2(forward, forward ? "" : message(forward.error()));
    CompileRequest request;
    request.mode = Mode::Jvp;
    size_t nodes = 0;
    for (int64_t fuel = 0;; ++fuel) {
        Module module(**forward);
        Rewriter rewriter("jvp", request, fuel);
        const auto changed = jvp(module, rewriter);
        QVERIFY2(changed, changed ? "" : message(changed.error()));
        QCOMPARE(*changed, fuel > 0);
        const auto valid = verify(module);
        QVERIFY2(valid, valid ? "" : message(valid.error()));
        QCOMPARE(module.graph().outputs().size(), fuel > 0 ? size_t{4} : size_t{2});
        if (static_cast<int64_t>(rewriter.done().size()) < fuel) break;
        nodes = module.graph().size();
    }
    QVERIFY(nodes > 20);
}

CUTAWAY_SUITE(JvpTest)
#include "jvp_test.moc"
