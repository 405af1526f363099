// What an export says of itself: it is loaded and run before it is put in place.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/export.h"
#include "engine/exporting/export_folder.h"
#include "engine/formats/safetensors.h"
#include "engine/support/fault_points.h"
#include "engine/support/files.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kTwice = R"py(
def forward(self, x: "f32[4, 6]"):
    relu: "f32[4, 6]" = torch.ops.aten.relu.default(x)
    rand: "f32[4, 6]" = torch.ops.aten.rand_like.default(relu)
    mul: "f32[4, 6]" = torch.ops.aten.mul.Tensor(relu, rand)
    return (mul, None, x, mul)
)py";
constexpr const char* kIndex = R"py(
def forward(self, x: "f32[4]", i: "i64[2]"):
    index: "f32[2]" = torch.ops.aten.index.Tensor(x, [i])
    return (index,)
)py";

}  // namespace

class ExportCheckTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string in(const char* name) const { return m_folder.filePath(name).toStdString(); }
    Result<ExportReport> exported(const std::string& model, ExportOptions options, const CompileRequest& request = {}) {
        Session session;
        CT_TRY_VOID(session.open(model));
        CT_TRY(const RunId id, session.compile(request));
        if (options.folder.empty()) options.folder = in("exported");
        options.check = true;
        return exportProgram(session, id, options);
    }
    static std::string bundled(const char* name) { return std::string(CUTAWAY_SOURCE_DIR "/resources/models/") + name; }

  private slots:
    void cleanup() {
        setFault("");
        qunsetenv("CXX");
    }

    void agrees_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("weights");
        QTest::addColumn<bool>("training");
        QTest::addColumn<QString>("to");
        QTest::addColumn<int>("results");
        QTest::addRow("sample inputs") << "mlp.pt2"
                                       << "" << false << "" << 1;
        QTest::addRow("archive") << "mlp.pt2"
                                 << "" << false << "mlp.zip" << 1;
        QTest::addRow("weights left out") << "tiny_resnet.pt2"
                                          << "none" << false << "" << 1;
        QTest::addRow("weights embedded") << "mlp.pt2"
                                          << "embedded" << false << "" << 1;
        QTest::addRow("training") << "mlp.pt2"
                                  << "" << true << "" << 7;
        QTest::addRow("one value twice, None, drawn") << ""
                                                      << "" << false << "" << 3;
    }
    void agrees() {
        QFETCH(QString, model);
        QFETCH(QString, weights);
        QFETCH(bool, training);
        QFETCH(QString, to);
        QFETCH(int, results);
        std::string path = bundled(qPrintable(model));
        if (model.isEmpty()) {
            path = in("twice.py");
            QVERIFY(writeFile(path, kTwice));
        }
        ExportOptions options;
        options.weights = weights.toStdString();
        if (!to.isEmpty()) options.folder = in(qPrintable(to));
        CompileRequest request;
        if (training) request.mode = Mode::Training;
        const auto report = exported(path, options, request);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY2(report->check.outcome == ExportCheck::Outcome::Agrees, sentenceOf(report->check).c_str());
        QCOMPARE(report->check.results, results);
        QVERIFY(report->check.isGood());
        // Nothing of the check is left in the folder.
        if (to.isEmpty())
            for (const char* file : {"main", "results.safetensors"})
                QVERIFY(!QFile::exists(QString::fromStdString(report->folder) + "/" + file));
    }

    /// The reference computes something else than the library.
    void differs() {
        setFault("op@after:aten.relu.default:nan");
        const auto report = exported(bundled("tiny_resnet.pt2"), {});
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY2(report->check.outcome == ExportCheck::Outcome::Differs, sentenceOf(report->check).c_str());
        QVERIFY2(report->check.why.starts_with("'linear' differs from the reference:"), report->check.why.c_str());
        QVERIFY(!report->check.isGood());
        QVERIFY(QFile::exists(QString::fromStdString(report->library)));  // whoever wants it can look
    }

    /// A compiler whose programs crash: what is wrong is an outcome, and the folder is there.
    void crashes() {
        const QString compiler = m_folder.filePath("compiler");
        QVERIFY(writeFile(compiler.toStdString(),
                          "#!/bin/sh\n"
                          "for last; do :; done\n"
                          "case \"$*\" in *'-x c '*) printf '#!/bin/sh\\necho why >&2\\nkill -SEGV $$\\n' > \"$last\"\n"
                          "chmod +x \"$last\";; *) exec c++ \"$@\";; esac\n"));
        QVERIFY(QFile::setPermissions(compiler, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
        qputenv("CXX", compiler.toUtf8());
        const auto report = exported(bundled("mlp.pt2"), {});
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY2(report->check.outcome == ExportCheck::Outcome::Failed, sentenceOf(report->check).c_str());
        QVERIFY2(report->check.why.find("signal 11") != std::string::npos, report->check.why.c_str());
        QVERIFY2(report->check.why.ends_with(": why"), report->check.why.c_str());
        QVERIFY(QFile::exists(QString::fromStdString(report->library)));
    }

    /// Indices that both sides refuse say nothing of the library.
    void neitherRuns() {
        QVERIFY(writeFile(in("index.py"), kIndex));
        Tensor x = Tensor::empty(DType::F32, {4}), i = Tensor::empty(DType::I64, {2});
        std::memset(x.data(), 0, 4 * sizeof(float));
        for (int at = 0; at < 2; ++at) static_cast<int64_t*>(i.data())[at] = 9;
        ExportOptions options;
        options.inputsFile = in("beyond.safetensors");
        QVERIFY(writeSafeTensors(options.inputsFile, {{{"x", x}, {"i", i}}, {}}));
        const auto report = exported(in("index.py"), options);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY2(report->check.outcome == ExportCheck::Outcome::Impossible, sentenceOf(report->check).c_str());
        QVERIFY2(report->check.why.find("reference does not run") != std::string::npos, report->check.why.c_str());
        QVERIFY(report->check.isGood());
    }

    /// A target is run here exactly if the processor has all that its level asks for, and that of those below.
    void targets() {
        QCOMPARE(lackingFor("native"), std::string());
        QCOMPARE(lackingFor("x86-64"), std::string());
        size_t before = 0;
        for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
            const std::string lacking = lackingFor(level);
            QVERIFY2(lacking.size() >= before, level);
            before = lacking.size();
        }
        const std::string lacking = lackingFor("x86-64-v4");
        ExportOptions options;
        options.target = exportTargets().size() > 1 ? "x86-64-v4" : "";
        const auto report = exported(bundled("mlp.pt2"), options);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        const bool runs = lacking.empty() || options.target.empty();
        QVERIFY2(report->check.outcome == (runs ? ExportCheck::Outcome::Agrees : ExportCheck::Outcome::Impossible),
                 sentenceOf(report->check).c_str());
        if (!runs) QVERIFY2(report->check.why.find(lacking) != std::string::npos, report->check.why.c_str());
    }
};

CUTAWAY_SUITE(ExportCheckTest)
#include "export_check_test.moc"
