// Programs that use forward mode themselves, held to what PyTorch answers: tests/data/forward_ad.json has, for each
// case by name, the value or the error that PyTorch 2.11 gave. A case without a program here is a failure.
#include "engine/autograd/forward_ad.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTest>
#include <map>

#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/jvp.h"
#include "engine/interpret/interpret.h"
#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/passes/torch_calls_to_aten.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// `fwAD.` stands for torch.autograd.forward_ad. Each returned value is held to what stands in `returns`: "None";
/// "f32[2]", its type; "memory of t", "memory of its own"; "all 4", its elements; "rows 0 2 0", those of each row. x
/// counts up from 1 and every other tensor is full of 2.
struct Program {
    std::string name, parameters, body, result;
    std::vector<std::string> returns;
    enum class How { AsWritten, Jvp, StrictJvp } how = How::AsWritten;
};

const std::string kXT = "x: \"f32[3, 4]\", t: \"f32[3, 4]\"";
const std::string kDual = "l = fwAD.enter_dual_level(); d = fwAD.make_dual(x, t); ";

using enum Program::How;
const std::vector<Program> kPrograms = {
    {"no_level", kXT, "d = fwAD.make_dual(x, t)", "d", {}},
    {"int_primal", "x: \"i64[3, 4]\", t: \"f32[3, 4]\"", kDual, "d", {}},
    {"int_tangent", "x: \"f32[3, 4]\", t: \"i64[3, 4]\"", kDual, "d", {}},
    {"size_mismatch", "x: \"f32[3, 4]\", t: \"f32[4, 3]\"", kDual, "d", {}},
    {"broadcast_size", "x: \"f32[3, 4]\", t: \"f32[1, 4]\"", kDual, "d", {}},
    {"dtype_mismatch",
     "x: \"f32[3, 4]\", t: \"f64[3, 4]\"",
     kDual + "u = fwAD.unpack_dual(d); q = u[1]",
     "q",
     {"f64[3, 4]"}},
    {"half_tangent",
     "x: \"f32[3, 4]\", t: \"f16[3, 4]\"",
     kDual + "u = fwAD.unpack_dual(d); q = u[1]",
     "q",
     {"f16[3, 4]"}},
    {"complex_tangent",
     "x: \"f32[3, 4]\", t: \"c64[3, 4]\"",
     kDual + "u = fwAD.unpack_dual(d); q = u[1]",
     "q",
     {"c64[3, 4]"}},
    {"twice", kXT, kDual + "e = fwAD.make_dual(d, t)", "e", {}},
    {"tangent_is_dual", kXT, kDual + "e = fwAD.make_dual(t, d)", "e", {}},
    {"nested_level", kXT, "a = fwAD.enter_dual_level(); b = fwAD.enter_dual_level()", "x", {}},
    {"same_layout_as_is", kXT, kDual + "u = fwAD.unpack_dual(d); q = u[1]", "q", {"memory of t"}},
    {"diff_stride_copied",
     "x: \"f32[3, 4]\", t: \"f32[3, 4][1, 3]\"",
     kDual + "u = fwAD.unpack_dual(d); q = u[1]",
     "q",
     {"f32[3, 4]; memory of its own"}},
    {"diff_offset_copied",
     "x: \"f32[3, 4]\", s: \"f32[4, 4]\"",
     "t = s[1:]; " + kDual + "u = fwAD.unpack_dual(d); q = u[1]",
     "q",
     {"memory of its own; all 2"}},
    {"primal_alias", kXT, kDual + "u = fwAD.unpack_dual(d); p = u[0]", "p", {"memory of x"}},
    {"x_unchanged", kXT, kDual + "u = fwAD.unpack_dual(x); q = u[1]", "q", {"None"}},
    {"primal_of_unpack_has_no_tangent",
     kXT,
     kDual + "u = fwAD.unpack_dual(d); p = u[0]; v = fwAD.unpack_dual(p); q = v[1]",
     "q",
     {"None"}},
    {"view_tangent_is_view",
     kXT,
     kDual + "v = d.view(4, 3); u = fwAD.unpack_dual(v); q = u[1]",
     "q",
     {"f32[4, 3]; memory of t; all 2"}},
    {"view_tan_base", kXT, kDual + "v = d[1:2]; u = fwAD.unpack_dual(v); q = u[1]", "q", {"f32[1, 4]; memory of t"}},
    {"case4_view_to_base",
     kXT,
     kDual + "b = x.clone(); v = b[1]; r = d[1]; c = v.copy_(r); u = fwAD.unpack_dual(b); q = u[1]",
     "q",
     {"rows 0 2 0"}},
    {"case5_base_to_view",
     kXT,
     kDual + "b = x.clone(); v = b[1]; c = b.copy_(d); u = fwAD.unpack_dual(v); q = u[1]",
     "q",
     {"f32[4]; all 2"}},
    {"inplace_same_tangent_storage",
     kXT,
     kDual + "u = fwAD.unpack_dual(d); q = u[1]; m = d.mul_(2); w = fwAD.unpack_dual(d); r = w[1]",
     "q, r",
     {"memory of t; all 4", "memory of t; all 4"}},
    {"detach_tangent", kXT, kDual + "e = d.detach(); u = fwAD.unpack_dual(e); q = u[1]", "q", {"None"}},
    {"resize_", kXT, kDual + "r: \"f32[2, 2]\" = aten.resize_.default(d, [2, 2])", "r", {}},
    {"copy_nondual_zero",
     kXT,
     kDual + "b = x.clone(); c = d.copy_(b); u = fwAD.unpack_dual(d); q = u[1]; s = q.sum()",
     "s",
     {"all 0"}},
    {"int_op", kXT, kDual + "i = d.to(torch.int64); u = fwAD.unpack_dual(i); q = u[1]", "q", {"None"}},
    {"argmax", kXT, kDual + "i = d.argmax(); u = fwAD.unpack_dual(i); q = u[1]", "q", {"None"}},
    {"mul_scalar", kXT, kDual + "y = d * 3; u = fwAD.unpack_dual(y); q = u[1]", "q", {"all 6"}},
    {"nd", kXT, kDual + "y = d + x; u = fwAD.unpack_dual(y); q = u[1]", "q", {"all 2"}},
    {"out_variant", kXT + ", o: \"f32[3, 4]\"", kDual + "r: \"f32[3, 4]\" = aten.add.out(d, x, out=o)", "r", {}},
    {"no_formula",
     "x: \"f32[1, 1, 4, 4]\", t: \"f32[1, 1, 4, 4]\"",
     kDual + "y = torch.nn.functional.max_pool2d(d, 2); u = fwAD.unpack_dual(y); p = u[0]; q = u[1]",
     "p, q",
     {"f32[1, 1, 2, 2]", "f32[1, 1, 2, 2]; all 2"}},
    {"sdpa",
     "x: \"f32[1, 2, 4, 8]\", t: \"f32[1, 2, 4, 8]\"",
     kDual + "y = torch.nn.functional.scaled_dot_product_attention(d, d, d)",
     "y",
     {}},
    {"embedding",
     "x: \"f32[3, 4]\", t: \"f32[3, 4]\", i: \"i64[2]\"",
     kDual + "y = torch.nn.functional.embedding(i, d); u = fwAD.unpack_dual(y); q = u[1]",
     "q",
     {"f32[2, 4]; all 2"}},
    {"inplace_int", kXT + ", i: \"i64[3]\"", kDual + "j = i.add_(0)", "j", {"all 2"}},
    {"after_exit", kXT, kDual + "e = fwAD.exit_dual_level(); u = fwAD.unpack_dual(d); q = u[1]", "q", {"None"}},
    {"exit_no_level", kXT, "e = fwAD.exit_dual_level()", "x", {}},
    {"exit_wrong", kXT, "l = fwAD.enter_dual_level(); e = fwAD.exit_dual_level(level=5)", "x", {}},
    {"unpack_outside", kXT, "u = fwAD.unpack_dual(x); p = u[0]; q = u[1]", "p, q", {"memory of x", "None"}},
    {"level1", kXT, "l = fwAD.enter_dual_level(); d = fwAD.make_dual(x, t, level=1)", "d", {}},
    {"unpack_level1",
     kXT,
     kDual + "u = fwAD.unpack_dual(d, level=1); p = u[0]; q = u[1]",
     "p, q",
     {"memory of x", "None"}},
    // torch.func.jvp of a function is --mode jvp of its graph.
    {"jvp_const", "x: \"f32[2]\"", "y = torch.ones(2)", "y", {"all 1", "all 0"}, Jvp},
    {"jvp_const_strict", "x: \"f32[2]\"", "y = torch.ones(2)", "y", {}, StrictJvp},
    {"jvp_nontensor", "x: \"f32[2]\"", "y = x + 1", "1.5", {}, Jvp},
    {"jvp_empty", "n: \"i64[2]\"", "y = n + 1", "y", {}, Jvp},
    // As Dynamo writes the derivative of a derivative.
    {"jvp_nested",
     kXT,
     "a = torch._C._functorch._jvp_increment_nesting(); b = torch._C._set_fwd_grad_enabled(True); "
     "c = torch._C._enter_dual_level(); e = torch.autograd.forward_ad._maybe_load_decompositions(); "
     "d = torch._make_dual(x, t, level=0); f = torch._C._functorch._jvp_increment_nesting(); "
     "i = torch._make_dual(d, t, level=0); s = i * i; k = s * i; u = torch._unpack_dual(k, level=0); "
     "p = u[0]; q = u[1]; v = torch._C._functorch._unwrap_for_grad(q, 2); "
     "g = torch._C._functorch._jvp_decrement_nesting(); "
     "w = torch._unpack_dual(v, level=0); r = w[1]; z = torch._C._functorch._unwrap_for_grad(r, 1); "
     "h = torch._C._exit_dual_level(0); m = torch._C._functorch._jvp_decrement_nesting(); n = z / x",
     "n",
     {"f32[3, 4]; all 24"}},
};

/// Cases about the arguments of the Python function torch.func.jvp, which no graph holds.
const std::map<std::string, const char*> kOnlyPython = {
    {"jvp_struct", "a tangent too many is an input that the graph does not have: jvp_test"},
    {"jvp_notuple", "a graph's inputs are its parameters, never anything but a tuple"},
    {"__jvp_graphs__", "the operators of PyTorch's traces; the numbers are checked by jvp_test"},
};

std::string textOf(const Program& program) {
    std::string out = "def forward(" + program.parameters + "):\n";
    for (const QString& line : QString::fromStdString(program.body).split("; ", Qt::SkipEmptyParts))
        out += "    " + line.trimmed().toStdString() + "\n";
    out += "    return (" + program.result + ",)\n";
    return QString::fromStdString(out).replace("fwAD.", "torch.autograd.forward_ad.").toStdString();
}

/// The graph after forward_ad, and the one that is then run.
struct Passed {
    std::unique_ptr<Module> duals, functional;
};

Result<Passed> pass(const Program& program) {
    Passed out;
    CT_TRY(out.duals, parseText(textOf(program)));
    CompileRequest request;
    request.parity = true;
    request.strict = program.how == StrictJvp;
    Rewriter rewriter("test", request);
    CT_TRY_VOID(torchCallsToAten(*out.duals, rewriter));
    CT_TRY_VOID(expandComposites(*out.duals, rewriter));
    CT_TRY_VOID(forwardAd(*out.duals, rewriter));
    CT_TRY_VOID(verify(*out.duals));
    out.functional = std::make_unique<Module>(*out.duals);
    CT_TRY_VOID(functionalize(*out.functional, rewriter));
    if (program.how != AsWritten) CT_TRY_VOID(jvp(*out.functional, rewriter));
    CT_TRY_VOID(verify(*out.functional));
    return out;
}

std::vector<Tensor> countedInputs(const Module& module) {
    std::vector<Tensor> inputs;
    for (const Node* placeholder : module.graph().placeholders()) {
        const TensorType& type = placeholder->tensor();
        Tensor tensor = Tensor::empty(type.dtype, toInts(type.sizes), toInts(type.strides));
        Tensor values = Tensor::empty(DType::F64, toInts(type.sizes));
        for (int64_t i = 0; i < values.numel(); ++i)
            values.as<double>()[i] = placeholder->name() == "x" ? static_cast<double>(i + 1) : 2;
        copyInto(tensor, values);
        inputs.push_back(tensor);
    }
    return inputs;
}

/// Whether each element is the number that its row has; the last number holds for all that follow.
bool hasRows(const Tensor& tensor, const QStringList& numbers) {
    const int64_t perRow = tensor.sizes().empty() ? 1 : tensor.numel() / std::max<int64_t>(tensor.sizes()[0], 1);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        const auto row =
            std::min<qsizetype>(static_cast<qsizetype>(i / std::max<int64_t>(perRow, 1)), numbers.size() - 1);
        if (std::abs(toDouble(tensor.item(i)) - numbers[row].toDouble()) > 1e-6) return false;
    }
    return true;
}

/// "" if the value is as one of the words of `Program::returns` says.
QString unlike(const QString& wanted, const Argument& value, const Tensor& number) {
    if (wanted == "None") return value.isNone() ? QString() : "it is not None";
    if (value.node() == nullptr) return "it is not a value of the graph";
    if (wanted.startsWith("all ")) return hasRows(number, {wanted.mid(4)}) ? QString() : "it has other elements";
    if (wanted.startsWith("rows "))
        return hasRows(number, wanted.mid(5).split(' ')) ? QString() : "it has other elements";
    if (wanted.startsWith("memory of ")) {
        const Node& root = storageRoot(*value.node());
        const QString owner = root.isPlaceholder() ? QString::fromStdString(root.name()) : "its own";
        return wanted.mid(10) == owner ? QString() : "its memory is that of " + owner;
    }
    const QString type = QString::fromStdString(value.node()->tensor().text());
    return wanted == type ? QString() : "its type is " + type;
}

}  // namespace

class ForwardAdTest : public QObject {
    Q_OBJECT

    static QJsonObject recorded() {
        QFile file(testing::testFile("data/forward_ad.json"));
        return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
    }

  private slots:
    void everyCaseHasAProgram();
    void asPyTorch_data();
    void asPyTorch();
};

void ForwardAdTest::everyCaseHasAProgram() {
    QStringList missing = recorded().keys();
    QVERIFY(!missing.isEmpty());
    for (const Program& program : kPrograms)
        QVERIFY2(missing.removeOne(QString::fromStdString(program.name)), program.name.c_str());
    for (const auto& [name, why] : kOnlyPython) QVERIFY2(missing.removeOne(QString::fromStdString(name)), name.c_str());
    QVERIFY2(missing.isEmpty(), qPrintable(missing.join(", ")));
}

void ForwardAdTest::asPyTorch_data() {
    QTest::addColumn<int>("at");
    for (size_t i = 0; i < kPrograms.size(); ++i) QTest::newRow(kPrograms[i].name.c_str()) << static_cast<int>(i);
}

void ForwardAdTest::asPyTorch() {
    QFETCH(int, at);
    const Program& program = kPrograms[static_cast<size_t>(at)];
    const QJsonArray answer = recorded().value(QString::fromStdString(program.name)).toArray();
    Result<Passed> passed = Error{};
    try {
        passed = pass(program);
    } catch (const InternalError& bug) {
        QFAIL(bug.what());
    }
    if (answer[0].toString() != "ok") {
        // PyTorch's sentence; where it goes on with how to report it, ours says what to do.
        const QString sentence = answer[1].toString().section('\n', 0, 0).remove(QRegularExpression("\\.$"));
        if (program.name == "out_variant") {  // here a call and a copy, which have tangents
            QVERIFY2(passed, passed ? "" : passed.error().text().c_str());
            return;
        }
        QVERIFY2(!passed, "PyTorch refuses it");
        if (program.name == "resize_") {  // here a view of the memory, which is what has no tangent
            QVERIFY(QString::fromStdString(passed.error().text()).contains("the tangent of as_strided"));
            return;
        }
        QVERIFY2(QString::fromStdString(passed.error().text()).contains(sentence),
                 qPrintable(QString::fromStdString(passed.error().text()) + "\nPyTorch: " + sentence));
        return;
    }
    QVERIFY2(passed, passed ? "" : passed.error().text().c_str());
    for (const Node& node : passed->duals->graph().nodes())
        QVERIFY2(!node.isCall() || node.op().name().find("dual") == std::string::npos, node.name().c_str());
    const std::vector<Argument> values =
        (program.how == AsWritten ? passed->duals : passed->functional)->graph().outputs();
    const auto numbers = interpret(*passed->functional, countedInputs(*passed->functional));
    QVERIFY2(numbers, numbers ? "" : numbers.error().text().c_str());
    QCOMPARE(values.size(), program.returns.size());
    for (size_t i = 0; i < values.size(); ++i)
        for (const QString& wanted : QString::fromStdString(program.returns[i]).split("; ")) {
            const QString how = unlike(wanted, values[i], (*numbers)[i]);
            QVERIFY2(how.isEmpty(),
                     qPrintable(wanted + ": " + how + "\n" + QString::fromStdString(printText(*passed->duals).text)));
        }
}

CUTAWAY_SUITE(ForwardAdTest)
#include "forward_ad_test.moc"
