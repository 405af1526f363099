// Gradients beside central differences: right ones pass, wrong ones are named with the operator and the call, and what
// has no derivative is told apart from an error.
#include <QDir>
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>

#include "cutaway/bisect.h"
#include "cutaway/gradients.h"
#include "cutaway/minify.h"
#include "cutaway/reproducer.h"
#include "engine/session/session_state.h"
#include "engine/support/fault_points.h"
#include "tests/support/frozen.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

QString described(const GradientCheck& check) {
    QString out = QString::fromStdString(check.summary + "\n");
    for (const GradientRow& row : check.each) out += QString::fromStdString(row.input + ": " + row.why + "\n");
    for (const DerivativeRow& row : check.calls)
        out += QString::fromStdString(row.op + " by " + row.operand + " at " + row.name + ": " + wordOf(row.verdict) +
                                      ", " + row.why + "\n");
    for (const std::string& remark : check.remarks) out += QString::fromStdString(remark + "\n");
    return out;
}

}  // namespace

class GradientCheckTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    void open(Session& session, const QByteArray& text, const std::vector<std::string>& gradients) {
        const auto opened = session.open(testing::written(m_folder, "graph.py", text.toStdString()));
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        CompileRequest request;
        request.mode = Mode::Training;
        request.gradients = gradients;
        const auto run = session.compile(request);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
    }

  private slots:
    void cleanup() { setFault({}); }

    void recordedModelsAreRight_data() {
        QTest::addColumn<QString>("path");
        const QString models = QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models");
        for (const QString& name : QDir(models).entryList({"*.pt2"}))
            QTest::newRow(qPrintable(name)) << models + "/" + name;
        if (const QString recorded = testing::referenceFolder("models"); !recorded.isEmpty())
            for (const QString& name : QDir(recorded).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
                QTest::newRow(qPrintable(name)) << recorded + "/" + name + "/model.pt2";
    }
    void recordedModelsAreRight() {
        QFETCH(QString, path);
        Session session;
        QVERIFY(session.open(path.toStdString()));
        CompileRequest request;
        request.mode = Mode::Training;
        QVERIFY(session.compile(request));
        GradientCheckOptions options;
        options.everyCall = true;
        const auto check = checkGradients(session, 0, options);
        QVERIFY2(check, check ? "" : check.error().text().c_str());
        QVERIFY2(check->all.verdict == GradientVerdict::Right && !check->wrong(), qPrintable(described(*check)));
        QVERIFY2(check->callsChecked > 0 && check->runs <= 5, qPrintable(described(*check)));
    }

    void wrongDerivativesAreNamed_data() {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QString>("call");     // the guilty one
        QTest::addColumn<QString>("operand");  // of it
        const auto row = [](const char* name, const char* fault, const char* graph, const char* call,
                            const char* operand) { QTest::newRow(name) << fault << graph << call << operand; };
        row("of one call", "aten.sin.default",
            "    a = torch.ops.aten.exp.default(x)\n"
            "    b = torch.ops.aten.sin.default(a)\n"
            "    return (b,)\n",
            "b", "self");
        row("by one of two operands that flow", "aten.mul.Tensor",
            "    a = torch.ops.aten.mul.Tensor(x, w)\n"
            "    return (a,)\n",
            "a", "self");
        row("the first that runs", "aten.tanh.default",
            "    a = torch.ops.aten.tanh.default(x)\n"
            "    b = torch.ops.aten.tanh.default(a)\n"
            "    return (b,)\n",
            "a", "self");
        row("behind a view", "aten.view.default",
            "    a = torch.ops.aten.view.default(x, [12])\n"
            "    b = torch.ops.aten.exp.default(a)\n"
            "    return (b,)\n",
            "a", "self");
        row("of several results", "aten.split.Tensor",
            "    s = torch.ops.aten.split.Tensor(x, 2)\n"
            "    a = s[0]\n"
            "    b = s[1]\n"
            "    c = torch.ops.aten.mul.Tensor(a, b)\n"
            "    return (c,)\n",
            "s", "self");
        row("of a list", "aten.cat.default",
            "    a = torch.ops.aten.cat.default([x, w])\n"
            "    return (a,)\n",
            "a", "tensors");
    }
    void wrongDerivativesAreNamed() {
        QFETCH(QString, fault);
        QFETCH(QString, graph);
        QFETCH(QString, call);
        QFETCH(QString, operand);
        for (const char* kind : {"wrong", "nan"}) {
            setFault("derive:" + fault.toStdString() + ":" + kind);
            Session session;
            open(session, "def forward(x: \"f32[4, 3]\", w: \"f32[4, 3]\"):\n" + graph.toUtf8(), {"x", "w"});
            const auto check = checkGradients(session, 0);
            QVERIFY2(check, check ? "" : check.error().text().c_str());
            const DerivativeRow* guilty = check->guilty();
            QVERIFY2(guilty != nullptr, qPrintable(described(*check)));
            QCOMPARE(QString::fromStdString(guilty->name), call);
            QCOMPARE(QString::fromStdString(guilty->op), fault);
            QCOMPARE(QString::fromStdString(guilty->operand), operand);
            QVERIFY(guilty->node != NodeKey::None);
            QVERIFY2(!check->each.empty(), qPrintable(described(*check)));

            const auto found = bisect(session, 0, {});
            QVERIFY2(found, found ? "" : found.error().text().c_str());
            QVERIFY(found->found);
            QCOMPARE(found->step.name, std::string("differentiate"));
            QCOMPARE(QString::fromStdString(found->rewrite.node), call);
            QCOMPARE(QString::fromStdString(found->rewrite.rule), "derivative of " + fault);
            QCOMPARE(found->culprit.rewrites, found->rewrite.index + 1);
        }
    }

    /// Where only one of two gradients is wrong, that one is named.
    void theGradientIsNamed() {
        setFault("derive:aten.sin.default:wrong");
        Session session;
        open(session,
             "def forward(x: \"f32[4, 3]\", w: \"f32[4, 3]\"):\n"
             "    a = torch.ops.aten.sin.default(w)\n"
             "    b = torch.ops.aten.mul.Tensor(a, x)\n"
             "    return (b,)\n",
             {"x", "w"});
        const auto check = checkGradients(session, 0);
        QVERIFY2(check, check ? "" : check.error().text().c_str());
        QCOMPARE(check->each.size(), size_t{1});
        QCOMPARE(check->each[0].input, std::string("w"));
        QCOMPARE(check->each[0].verdict, GradientVerdict::Wrong);
        QVERIFY(std::abs(check->each[0].gradient - 3 * check->each[0].difference) <
                1e-3 * std::abs(check->each[0].gradient));
    }

    /// What is not an error.
    void nothingIsWrong_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<int>("verdict");
        const auto row = [](const char* name, const char* graph, GradientVerdict verdict = GradientVerdict::Right) {
            QTest::newRow(name) << graph << static_cast<int>(verdict);
        };
        row("the larger of two that are alike",
            "    y = torch.ops.aten.mul.Scalar(x, 1)\n"
            "    z = torch.ops.aten.mul.Scalar(x, 2)\n"
            "    v = torch.ops.aten.sub.Tensor(z, x)\n"
            "    m = torch.ops.aten.maximum.default(y, v)\n"
            "    return (m,)\n");
        row("a kink at zero",
            "    d = torch.ops.aten.detach.default(x)\n"
            "    y = torch.ops.aten.sub.Tensor(x, d)\n"
            "    a = torch.ops.aten.relu.default(y)\n"
            "    return (a,)\n",
            GradientVerdict::Undecided);
        row("a gradient that stops",
            "    a = torch.ops.aten.exp.default(x)\n"
            "    d = torch.ops.aten.detach.default(a)\n"
            "    b = torch.ops.aten.mul.Tensor(d, x)\n"
            "    return (b,)\n");
        row("random draws",
            "    u = torch.ops.aten.rand.default([4, 3])\n"
            "    a = torch.ops.aten.mul.Tensor(u, x)\n"
            "    d = torch.ops.aten.dropout.default(a, 0.5, True)\n"
            "    b = torch.ops.aten.exp.default(d)\n"
            "    return (b,)\n");
        row("an index",
            "    i = torch.ops.aten.argsort.default(x)\n"
            "    a = torch.ops.aten.gather.default(x, 1, i)\n"
            "    return (a,)\n");
        row("an input beside",
            "    a = torch.ops.aten.exp.default(x)\n"
            "    return (a, w)\n");
        row("halves",
            "    h = torch.ops.aten.to.dtype(x, torch.float16)\n"
            "    a = torch.ops.aten.exp.default(h)\n"
            "    return (a,)\n");
        row("complex numbers",
            "    c = torch.ops.aten.complex.default(x, w)\n"
            "    e = torch.ops.aten.exp.default(c)\n"
            "    r = torch.ops.aten.abs.default(e)\n"
            "    return (r,)\n");
        row("what is rounded on purpose",
            "    q = torch.ops.aten.fake_quantize_per_tensor_affine.default(x, 0.1, 0, -128, 127)\n"
            "    return (q,)\n",
            GradientVerdict::Undecided);
    }
    void nothingIsWrong() {
        QFETCH(QString, graph);
        QFETCH(int, verdict);
        Session session;
        open(session, "def forward(x: \"f32[4, 3]\", w: \"f32[4, 3]\"):\n" + graph.toUtf8(), {"x"});
        GradientCheckOptions options;
        options.everyCall = true;
        const auto check = checkGradients(session, 0, options);
        QVERIFY2(check, check ? "" : check.error().text().c_str());
        QVERIFY2(static_cast<int>(check->all.verdict) == verdict && !check->wrong(), qPrintable(described(*check)));
    }

    /// A relu has no derivative at zero, and has one at a point beside.
    void kinksAreTold() {
        const QString path = m_folder.filePath("zeros.safetensors");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        const QByteArray header = R"({"x":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]}})";
        const auto length = static_cast<uint64_t>(header.size());
        file.write(reinterpret_cast<const char*>(&length), 8);
        file.write(header + QByteArray(48, '\0'));
        file.close();
        Session session;
        open(session,
             "def forward(x: \"f32[4, 3]\"):\n"
             "    a = torch.ops.aten.relu.default(x)\n"
             "    return (a,)\n",
             {"x"});
        GradientCheckOptions options;
        options.inputsFile = path.toStdString();
        const auto check = checkGradients(session, 0, options);
        QVERIFY2(check, check ? "" : check.error().text().c_str());
        QVERIFY2(check->all.verdict == GradientVerdict::Kink && !check->wrong(), qPrintable(described(*check)));
    }

    /// Wrong rewrites before differentiation are found by comparing with the graph as opened.
    void rewritesBeforeItAreFound() {
        setFault("rule:expand_composites/aten.linear.default:wrong");
        Session session;
        open(session,
             "def forward(x: \"f32[4, 3]\", w: \"f32[5, 3]\"):\n"
             "    a = torch.ops.aten.sin.default(x)\n"
             "    b = torch.ops.aten.linear.default(a, w)\n"
             "    return (b,)\n",
             {"x", "w"});
        const auto found = bisect(session, 0, {});
        QVERIFY2(found, found ? "" : found.error().text().c_str());
        QVERIFY(found->found);
        QCOMPARE(found->step.name, std::string("expand_composites"));
        QCOMPARE(found->rewrite.node, std::string("b"));
    }

    /// A wrong derivative is a failure that minifies, and repeats from the folder that the search was given.
    void wrongDerivativesMinify() {
        setFault("derive:aten.tanh.default:wrong");
        const QString path = m_folder.filePath("chain.py");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        QByteArray text = "def forward(x: \"f32[4, 3]\", w: \"f32[4, 3]\"):\n";
        QByteArray value = "x";
        for (int i = 0; i < 20; ++i) {
            const QByteArray next = "v" + QByteArray::number(i);
            text += "    " + next + " = aten." + (i == 11 ? "tanh" : "sin") + ".default(" + value + ")\n";
            value = next;
        }
        file.write(text + "    y = aten.mul.Tensor(" + value + ", w)\n    return (y,)\n");
        file.close();
        Session session;
        QVERIFY(session.open(path.toStdString()));
        MinifyOptions options;
        options.check = MinifyCheck::Numbers;
        options.request.mode = Mode::Training;
        options.request.gradients = {"x", "w"};
        options.folder = m_folder.filePath("minified").toStdString();
        const auto report = minify(session, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QCOMPARE(report->nodes, 3);
        QCOMPARE(report->signature.pass, std::string("capture/differentiate"));
        QCOMPARE(report->signature.op, std::string("aten.tanh.default"));
        const auto again = runReproducer(options.folder);
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        QVERIFY(again->repeated);
    }

    /// The same seed gives the same numbers, another one others.
    void seedsRepeat() {
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"));
        CompileRequest request;
        request.mode = Mode::Training;
        QVERIFY(session.compile(request));
        std::vector<double> found;
        for (const uint64_t seed : {uint64_t{1}, uint64_t{1}, uint64_t{2}}) {
            GradientCheckOptions options;
            options.seed = seed;
            const auto check = checkGradients(session, 0, options);
            QVERIFY2(check, check ? "" : check.error().text().c_str());
            QVERIFY(check->summary.find("(seed " + std::to_string(seed) + ")") != std::string::npos);
            found.push_back(check->all.gradient);
        }
        QCOMPARE(found[0], found[1]);
        QVERIFY(found[0] != found[2]);
    }

    void withoutGradientsThereIsNothingToCheck() {
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"));
        QVERIFY(session.compile({}));
        const auto check = checkGradients(session, 0);
        QVERIFY(!check);
        QCOMPARE(check.error().code, ErrorCode::Unsupported);
    }
};

CUTAWAY_SUITE(GradientCheckTest)
#include "gradient_check_test.moc"
