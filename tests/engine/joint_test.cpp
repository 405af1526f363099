// Joint graphs: node for node what PyTorch traces (tests/cases/joint, recorded by tests/scripts/record_joint.py), and
// gradients that agree with differences of the forward and with forward mode.
#include <QDir>
#include <QFile>
#include <QTest>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/autograd/jvp.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/rewrite/dead_code.h"
#include "engine/support/check.h"
#include "engine/support/random.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/graph_text.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// A recorded case: the exported function, PyTorch's joint graph, and what the comment lines say.
struct Case {
    std::string forward, joint;
    std::vector<std::string> gradients;
    std::map<std::string, std::pair<double, double>> ranges;
    Release release = kNewestRelease;  // whose graph it is
};

std::vector<std::string> words(const QByteArray& text, char separator) {
    std::vector<std::string> all;
    for (const QByteArray& part : text.split(separator))
        if (!part.trimmed().isEmpty()) all.push_back(part.trimmed().toStdString());
    return all;
}

Case readCase(const QString& path) {
    Case result;
    QFile file(path);
    if (const auto older = releaseOf(QFileInfo(path).dir().dirName().toStdString())) result.release = *older;
    if (!file.open(QIODevice::ReadOnly)) return result;
    bool joint = false;
    for (const QByteArray& line : file.readAll().split('\n')) {
        if (line.startsWith("# gradients:")) result.gradients = words(line.mid(12), ',');
        else if (line.startsWith("# ranges:"))
            for (const std::string& entry : words(line.mid(9), ',')) {
                const std::vector<std::string> parts = words(QByteArray::fromStdString(entry), ' ');
                result.ranges[parts.at(0)] = {std::stod(parts.at(1)), std::stod(parts.at(2))};
            }
        else if (line.startsWith("# joint")) joint = true;
        else (joint ? result.joint : result.forward) += line.toStdString() + "\n";
    }
    return result;
}

Result<std::unique_ptr<Module>> prepared(const Case& test) {
    CT_TRY(std::unique_ptr<Module> module, parseText(test.forward));
    CompileRequest options;
    options.pytorch = test.release;
    Rewriter rewriter("test", options);
    CT_TRY_VOID(expandComposites(*module, rewriter));
    CT_TRY_VOID(functionalize(*module, rewriter));
    return module;
}

/// A bug found by a CT_CHECK is a failed case, not the end of the test.
template <class Action>
auto guarded(Action action) -> decltype(action()) {
    try {
        return action();
    } catch (const InternalError& bug) {
        return Error{ErrorCode::Internal, bug.what(), {}, {}};
    }
}

/// What training hands on: the joint graph, expanded, without dead code.
Result<std::unique_ptr<Module>> jointOf(const Case& test) {
    CT_TRY(std::unique_ptr<Module> forward, prepared(test));
    CT_TRY(std::unique_ptr<Module> joint,
           makeJointGraph(*forward, {.inputs = test.gradients, .release = test.release}));
    CompileRequest options;
    options.pytorch = test.release;
    Rewriter rewriter("test", options);
    CT_TRY_VOID(decompose(*joint, rewriter));
    CT_TRY_VOID(eliminateDeadCode(*joint, rewriter));
    return joint;
}

Tensor makeTensor(const TensorType& type, Random& random, std::optional<std::pair<double, double>> range) {
    Tensor tensor = Tensor::empty(type.dtype, toInts(type.sizes));
    std::vector<double> values(static_cast<size_t>(tensor.numel()));
    for (double& value : values) {
        if (!range) value = isFloating(type.dtype) ? random.normal() : static_cast<double>(random.below(2));
        else if (isFloating(type.dtype)) value = range->first + (range->second - range->first) * random.uniform();
        else
            value =
                range->first + static_cast<double>(random.below(static_cast<uint64_t>(range->second - range->first)));
    }
    storeElements(type.dtype, tensor.data(), 1, tensor.numel(), values.data());
    return tensor;
}

double dot(const Tensor& a, const Tensor& b) {
    double total = 0;
    for (int64_t i = 0; i < a.numel(); ++i) total += toDouble(a.item(i)) * toDouble(b.item(i));
    return total;
}

Tensor moved(const Tensor& x, const Tensor& direction, double step) {
    Tensor out = Tensor::empty(x.dtype(), x.sizes());
    for (int64_t i = 0; i < x.numel(); ++i)
        out.as<double>()[i] = toDouble(x.item(i)) + step * toDouble(direction.item(i));
    return out;
}

/// Values for a case: the forward's inputs, and a tangent per output that has one.
struct Values64 {
    std::vector<std::string> names;
    std::vector<Tensor> inputs, tangents;
};

Values64 valuesFor(const Case& test, const Module& forward, const Module& joint, Random& random) {
    Values64 values;
    for (Node* input : forward.graph().placeholders()) {
        const auto range = test.ranges.find(input->name());
        values.inputs.push_back(makeTensor(input->tensor(), random,
                                           range == test.ranges.end() ? std::nullopt : std::optional(range->second)));
        values.names.push_back(input->name());
    }
    const std::vector<Node*> all = joint.graph().placeholders();
    for (size_t i = values.inputs.size(); i < all.size(); ++i)
        values.tangents.push_back(makeTensor(all[i]->tensor(), random, std::nullopt));
    return values;
}

/// Why a case has no numbers to compare; empty if it has.
std::string withoutNumbers(const Case& test, const Module& joint) {
    if (test.forward.find("aten.detach") != std::string::npos)
        return "the function's derivative is not what detach() makes of it";
    for (const Node& node : joint.graph().nodes()) {
        if (node.is(Tag::Random)) return "draws random numbers";
        if (const TensorType* type = node.type().tensor(); type && isFloating(type->dtype) && type->dtype != DType::F64)
            return "differences need float64";
    }
    return {};
}

/// The function and its tangents along these inputs.
Result<std::unique_ptr<Module>> forwardModeOf(const Module& forward, const std::vector<std::string>& inputs) {
    auto module = std::make_unique<Module>(forward);
    CT_TRY_VOID(requireGradients(*module, {.inputs = inputs}));
    CompileRequest request;
    request.mode = Mode::Jvp;
    Rewriter rewriter("jvp", request);
    CT_TRY_VOID(jvp(*module, rewriter));
    return module;
}

std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// The tangents belong, in order, to the floating outputs of their shape.
double weighted(const std::vector<Tensor>& outputs, const std::vector<Tensor>& tangents) {
    double total = 0;
    size_t next = 0;
    for (const Tensor& value : outputs)
        if (next < tangents.size() && value.defined() && isFloating(value.dtype()) &&
            value.sizes() == tangents[next].sizes())
            total += dot(value, tangents[next++]);
    return total;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max({1.0, std::abs(a), std::abs(b)}); }
std::string against(double a, double b) { return std::to_string(a) + " against " + std::to_string(b); }

bool wanted(const Case& test, const std::string& name) {
    return std::find(test.gradients.begin(), test.gradients.end(), name) != test.gradients.end();
}

}  // namespace

/// Cases whose graph differs from PyTorch's and why, though their gradients do not.
const std::map<std::string, const char*> kDiffer = {
    {"cosine_similarity",
     "PyTorch's clamp of the norms lets the gradient through everywhere; ours is that of clamp_min"},
    {"group_norm", "PyTorch keeps aliases of the saved mean and rstd, which change no number"},
    {"group_norm_permuted", "PyTorch keeps aliases of the saved mean and rstd, which change no number"},
    {"group_norm, 2.11", "PyTorch keeps aliases of the saved mean and rstd, which change no number"},
    {"group_norm_permuted, 2.11", "PyTorch keeps aliases of the saved mean and rstd, which change no number"},
    {"unfold, 2.11", "PyTorch makes the zeros behind the positions, which changes no number"},
    {"inplace_view",
     "a write through a view is functionalized before it is differentiated, so PyTorch's copies of slices do not appear"},
    {"var_std", "PyTorch functionalizes a derivative that fills in place, which moves a view behind two other nodes"},
    {"cosine_similarity",
     "PyTorch clamps the norms in place and under no_grad, so their bound has no gradient; ours passes through clamp_min"},
    {"group_norm", "open: the saved mean and deviation are not saved as aliases"}};

class JointTest : public QObject {
    Q_OBJECT

    static void addCases() {
        QTest::addColumn<QString>("path");
        const QDir folder(testing::testFile("cases/joint"));
        for (const QString& file : folder.entryList({"*.txt"}, QDir::Files, QDir::Name))
            QTest::newRow(qPrintable(file.chopped(4))) << folder.filePath(file);
        const QDir older(folder.filePath("2.11"));  // what that release does otherwise
        for (const QString& file : older.entryList({"*.txt"}, QDir::Files, QDir::Name))
            QTest::newRow(qPrintable(file.chopped(4) + ", 2.11")) << older.filePath(file);
        QVERIFY2(!folder.entryList({"*.txt"}).isEmpty(), "no cases found");
    }

  private slots:
    void matchesPyTorch_data() { addCases(); }
    void matchesPyTorch();
    void agreesWithDifferences_data() { addCases(); }
    void agreesWithDifferences();
    void forwardModeIsTheTranspose_data() { addCases(); }
    void forwardModeIsTheTranspose();
    void verifiesAfterAnyFuel();
    void tellsForwardFromBackward();
    void tangentsLieAsOutputs_data();
    void tangentsLieAsOutputs();
    void boundsShareGradients_data();
    void boundsShareGradients();
    void refuses_data();
    void refuses();
};

void JointTest::matchesPyTorch() {
    QFETCH(QString, path);
    const Case test = readCase(path);
    auto joint = guarded([&] { return jointOf(test); });
    QVERIFY2(joint.has_value(), joint ? "" : joint.error().text().c_str());
    auto expected = parseText(test.joint);
    QVERIFY2(expected.has_value(), expected ? "" : expected.error().text().c_str());
    const QByteArray got = QByteArray::fromStdString(testing::listing(**joint)),
                     want = QByteArray::fromStdString(testing::listing(**expected));
    if (const auto differs = kDiffer.find(QTest::currentDataTag()); differs != kDiffer.end()) {
        QVERIFY2(got != want, "the graph is PyTorch's now: take the case off the list");
        QSKIP(differs->second);
    }
    if (got != want) QFAIL("PyTorch:\n" + want + "\nCutaway:\n" + got);
}

void JointTest::agreesWithDifferences() {
    QFETCH(QString, path);
    const Case test = readCase(path);
    auto forward = guarded([&] { return parseText(test.forward); });
    QVERIFY2(forward.has_value(), forward ? "" : forward.error().text().c_str());
    auto joint = guarded([&] { return jointOf(test); });
    QVERIFY2(joint.has_value(), joint ? "" : joint.error().text().c_str());
    if (const std::string reason = withoutNumbers(test, **joint); !reason.empty()) QSKIP(reason.c_str());
    Random random(1);
    const Values64 values = valuesFor(test, **forward, **joint, random);
    const auto results = guarded([&] { return interpret(**joint, joined(values.inputs, values.tangents)); });
    QVERIFY2(results.has_value(), results ? "" : results.error().text().c_str());
    const size_t firstGradient = results->size() - values.inputs.size();
    for (size_t i = 0; i < values.inputs.size(); ++i) {
        const Tensor& gradient = (*results)[firstGradient + i];
        QVERIFY2(wanted(test, values.names[i]) || !gradient.defined(), ("a gradient for " + values.names[i]).c_str());
        if (!wanted(test, values.names[i])) continue;
        const Tensor direction =
            makeTensor(TensorType::contiguous(DType::F64, toSymDims(values.inputs[i].sizes())), random, std::nullopt);
        const double step = 1e-6;
        double sides[2];
        for (int side = 0; side < 2; ++side) {
            std::vector<Tensor> at = values.inputs;
            at[i] = moved(values.inputs[i], direction, side == 0 ? step : -step);
            const auto outputs = guarded([&] { return interpret(**forward, at); });
            QVERIFY2(outputs.has_value(), outputs ? "" : outputs.error().text().c_str());
            sides[side] = weighted(*outputs, values.tangents);
        }
        const double difference = (sides[0] - sides[1]) / (2 * step),
                     derivative = gradient.defined() ? dot(gradient, direction) : 0;
        QVERIFY2(near(difference, derivative),
                 ("gradient of " + values.names[i] + ": " + against(derivative, difference)).c_str());
    }
}

void JointTest::forwardModeIsTheTranspose() {
    QFETCH(QString, path);
    const Case test = readCase(path);
    auto forward = guarded([&] { return prepared(test); });
    QVERIFY2(forward.has_value(), forward ? "" : forward.error().text().c_str());
    auto joint = guarded([&] { return jointOf(test); });
    QVERIFY2(joint.has_value(), joint ? "" : joint.error().text().c_str());
    if (const std::string reason = withoutNumbers(test, **joint); !reason.empty()) QSKIP(reason.c_str());
    auto pushed = guarded([&] { return forwardModeOf(**forward, test.gradients); });
    if (!pushed && pushed.error().code == ErrorCode::Unsupported &&
        test.forward.find("scaled_dot_product") != std::string::npos)
        QSKIP("fused attention has no forward mode, in PyTorch neither");
    if (!pushed && pushed.error().code == ErrorCode::Unsupported &&
        test.forward.find("scatter_reduce") != std::string::npos)
        QSKIP("scatter_reduce has no forward mode yet");
    QVERIFY2(pushed.has_value(), pushed ? "" : pushed.error().text().c_str());
    QVERIFY2(verify(**pushed), verify(**pushed) ? "" : verify(**pushed).error().text().c_str());
    Random random(2);
    const Values64 values = valuesFor(test, **forward, **joint, random);
    std::vector<Tensor> directions;
    for (size_t i = 0; i < values.inputs.size(); ++i)
        if (wanted(test, values.names[i]))
            directions.push_back(makeTensor(TensorType::contiguous(DType::F64, toSymDims(values.inputs[i].sizes())),
                                            random, std::nullopt));
    const auto pulled = guarded([&] { return interpret(**joint, joined(values.inputs, values.tangents)); });
    QVERIFY2(pulled.has_value(), pulled ? "" : pulled.error().text().c_str());
    const auto moving = guarded([&] { return interpret(**pushed, joined(values.inputs, directions)); });
    QVERIFY2(moving.has_value(), moving ? "" : moving.error().text().c_str());
    const std::vector<Tensor> velocities(moving->begin() + static_cast<std::ptrdiff_t>(moving->size() / 2),
                                         moving->end());
    double backward = 0;
    size_t direction = 0;
    for (size_t i = 0; i < values.inputs.size(); ++i) {
        const Tensor& gradient = (*pulled)[pulled->size() - values.inputs.size() + i];
        if (!wanted(test, values.names[i])) continue;
        if (gradient.defined()) backward += dot(gradient, directions[direction]);
        ++direction;
    }
    const double ahead = weighted(velocities, values.tangents);
    QVERIFY2(near(ahead, backward), against(ahead, backward).c_str());
}

void JointTest::verifiesAfterAnyFuel() {
    const Case test = readCase(testing::testFile("cases/joint/unrolled.txt"));
    const CompileRequest options;
    size_t previous = 0;
    for (int64_t fuel = 0;; ++fuel) {
        auto module = prepared(test);
        QVERIFY(module.has_value());
        QVERIFY(requireGradients(**module, {.inputs = test.gradients}));
        Rewriter rewriter("differentiate", options, fuel);
        const auto changed = differentiate(**module, rewriter);
        QVERIFY2(changed.has_value(), changed ? "" : changed.error().text().c_str());
        QCOMPARE(*changed, fuel > 0);
        QCOMPARE(static_cast<int64_t>(rewriter.done().size()), fuel);
        const auto valid = verify(**module);
        QVERIFY2(valid.has_value(), valid ? "" : valid.error().text().c_str());
        QVERIFY((*module)->graph().size() >= previous);
        previous = (*module)->graph().size();
        if (fuel > 0) QCOMPARE((*module)->outputs.size(), size_t{3});
        // One rewrite opens the joint graph; a step of the loop has three ops to differentiate.
        if (fuel == 10) break;
    }
}

void JointTest::tellsForwardFromBackward() {
    const Case test = readCase(testing::testFile("cases/joint/mlp.txt"));
    auto joint = jointOf(test);
    QVERIFY(joint.has_value());
    bool backward = false;
    for (const Node& node : (*joint)->graph().nodes()) {
        if (!node.isCall()) continue;
        backward |= node.provenance().backward;
        QCOMPARE(node.provenance().backward, backward);
        QVERIFY(!backward || !node.provenance().origin.empty());
    }
    QVERIFY(backward);
    QCOMPARE((*joint)->inputs.back().kind, InputSpec::Kind::Tangent);
    QCOMPARE((*joint)->graph().placeholders().front()->provenance().sourceName, std::string("x"));
}

/// With the output's strides where these are numbers and hold each element apart; else, and before 2.12, as
/// torch._prims_common.suggest_memory_format says of the output. Strides along dims of one element do not matter.
void JointTest::tangentsLieAsOutputs_data() {
    QTest::addColumn<QString>("output");
    QTest::addColumn<QString>("tangent");
    QTest::addColumn<QString>("before");  // 2.12
    const auto row = [](const char* name, const char* output, const char* tangent, const char* before = nullptr) {
        QTest::newRow(name) << QString::fromLatin1(output) << QString::fromLatin1(tangent)
                            << QString::fromLatin1(before ? before : tangent);
    };
    row("row by row", "f32[2, 3, 4, 5]", "f32[2, 3, 4, 5]");
    row("channels last", "f32[2, 3, 4, 5][60, 1, 15, 3]", "f32[2, 3, 4, 5][60, 1, 15, 3]");
    row("channels last, in more memory", "f32[2, 3, 4, 5][120, 1, 30, 6]", "f32[2, 3, 4, 5][120, 1, 30, 6]",
        "f32[2, 3, 4, 5][60, 1, 15, 3]");
    row("channels last of planes of planes", "f32[2, 3, 2, 4, 5][120, 1, 60, 15, 3]",
        "f32[2, 3, 2, 4, 5][120, 1, 60, 15, 3]");
    row("planes of planes row by row", "f32[2, 3, 2, 4, 5]", "f32[2, 3, 2, 4, 5]");
    row("one channel", "f32[2, 1, 4, 5]", "f32[2, 1, 4, 5]");
    row("transposed planes", "f32[2, 3, 4, 5][60, 20, 1, 4]", "f32[2, 3, 4, 5][60, 20, 1, 4]", "f32[2, 3, 4, 5]");
    row("one picture for all", "f32[2, 3, 4, 5][0, 1, 15, 3]", "f32[2, 3, 4, 5]");
    row("three dims", "f32[2, 3, 4][12, 1, 3]", "f32[2, 3, 4][12, 1, 3]", "f32[2, 3, 4]");
    row("elements that share memory", "f32[2, 3][1, 1]", "f32[2, 3]");
    row("a size that is not a number", "f32[s1, 3][1, s1]", "f32[s1, 3]");
}
void JointTest::tangentsLieAsOutputs() {
    QFETCH(QString, output);
    QFETCH(QString, tangent);
    const std::string type = output.toStdString();
    const auto forward = parseText("def forward(x: \"" + type + "\"):\n    y: \"" + type +
                                   "\" = aten.exp.default(x)\n    return (y,)\n");
    QVERIFY2(forward, forward ? "" : forward.error().text().c_str());
    (*forward)->graph().setType(*(*forward)->graph().outputs()[0].node(),
                                (*forward)->graph().placeholders()[0]->type());
    QFETCH(QString, before);
    for (const Release release : {kNewestRelease, kOldestRelease}) {
        const auto joint = makeJointGraph(**forward, {.allInputs = true, .release = release});
        QVERIFY2(joint, joint ? "" : joint.error().text().c_str());
        const std::vector<Node*> placeholders = (*joint)->graph().placeholders();
        QCOMPARE(QString::fromStdString(placeholders.at(1)->tensor().text()),
                 release == kNewestRelease ? tangent : before);
    }
}

/// Gradients of clamp by its operand and its bounds, as PyTorch 2.15 gives them.
void JointTest::boundsShareGradients_data() {
    QTest::addColumn<QList<double>>("values");  // the operand, min, max
    QTest::addColumn<QList<double>>("gradients");
    const double none = std::nan("");
    const auto row = [](const char* name, const QList<double>& values, const QList<double>& gradients) {
        QTest::newRow(name) << values << gradients;
    };
    row("on min", {0, 0, 1}, {0.5, 0.5, 0});
    row("on max", {1, 0, 1}, {0.5, 0, 0.5});
    row("all equal", {0, 0, 0}, {1, 0, 0});
    row("above bounds that cross", {2, 1, 0}, {0, 0, 1});
    row("between bounds that cross", {0.5, 1, 0}, {0, 0, 1});
    row("on min of bounds that cross", {1, 1, 0}, {0, 0, 1});
    row("below equal bounds", {0, 1, 1}, {0, 1, 0});
    row("above equal bounds", {2, 1, 1}, {0, 0, 1});
    row("NaN", {none, 0, 1}, {1, 0, 0});
    row("min is NaN", {0, none, 1}, {1, 0, 0});
    row("max is NaN", {0, 0, none}, {1, 0, 0});
}
void JointTest::boundsShareGradients() {
    QFETCH(QList<double>, values);
    QFETCH(QList<double>, gradients);
    const Case test{.forward =
                        "def forward(x: \"f64[1]\", low: \"f64[1]\", high: \"f64[1]\"):\n"
                        "    y = aten.clamp.Tensor(x, low, high)\n    return (y,)\n",
                    .joint = {},
                    .gradients = {"x", "low", "high"},
                    .ranges = {}};
    const auto joint = jointOf(test);
    QVERIFY2(joint, joint ? "" : joint.error().text().c_str());
    std::vector<Tensor> inputs;
    for (const double value : {values[0], values[1], values[2], 1.0}) {
        inputs.push_back(Tensor::empty(DType::F64, {1}));
        inputs.back().as<double>()[0] = value;
    }
    const auto results = interpret(**joint, inputs);
    QVERIFY2(results, results ? "" : results.error().text().c_str());
    QList<double> found;
    for (size_t i = 1; i < results->size(); ++i) found << toDouble((*results)[i].item(0));
    QCOMPARE(found, gradients);
}

void JointTest::refuses_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("input");
    QTest::addColumn<QString>("message");
    QTest::newRow("unknown input") << "def forward(x: \"f32[2]\"):\n    return (x,)\n"
                                   << "y"
                                   << "no input named 'y'";
    QTest::newRow("integer input") << "def forward(x: \"i64[2]\"):\n    return (x,)\n"
                                   << "x"
                                   << "not a floating tensor";
    QTest::newRow("returns its input") << "def forward(x: \"f32[2]\"):\n    return (x,)\n"
                                       << "x"
                                       << "no returned value depends";
    QTest::newRow("integer result") << "def forward(x: \"f32[2]\"):\n    y = aten.argmax.default(x)\n    return (y,)\n"
                                    << "x"
                                    << "no returned value depends";
    QTest::newRow("detached")
        << "def forward(x: \"f32[2]\"):\n    y = aten.detach.default(x)\n    z = aten.exp.default(y)\n    return (z,)\n"
        << "x"
        << "no returned value depends";
    QTest::newRow("no derivative")
        << "def forward(x: \"f32[2]\"):\n    y = aten.hardsigmoid_backward.default(x, x)\n    return (y,)\n"
        << "x"
        << "aten.hardsigmoid_backward.default has no derivative";
    QTest::newRow("unknown op")
        << "def forward(x: \"f32[2]\"):\n    y: \"f32[2]\" = mylib.twist.default(x)\n    return (y,)\n"
        << "x"
        << "mylib.twist.default is not known";
}

void JointTest::refuses() {
    QFETCH(QString, text);
    QFETCH(QString, input);
    QFETCH(QString, message);
    auto forward = parseText(text.toStdString());
    QVERIFY2(forward.has_value(), forward ? "" : forward.error().text().c_str());
    auto joint = makeJointGraph(**forward, {.inputs = {input.toStdString()}});
    QVERIFY(!joint.has_value());
    QVERIFY2(QString::fromStdString(joint.error().text()).contains(message), joint.error().text().c_str());
}

CUTAWAY_SUITE(JointTest)
#include "joint_test.moc"
