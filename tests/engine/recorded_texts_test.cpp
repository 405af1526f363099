// FX text of the recorded graphs: each reads back, and has the types that shape inference gives it.
#include <QDirIterator>
#include <QFile>
#include <QTest>

#include "engine/formats/pt2.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "tests/support/graph_text.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

class RecordedTextsTest : public QObject {
    Q_OBJECT

  private slots:
    void referenceDumps_data();
    void referenceDumps();
    void referenceTypes_data() { referenceDumps_data(); }
    void referenceTypes();
};

void RecordedTextsTest::referenceDumps_data() {
    QTest::addColumn<QString>("path");
    const QString root = testing::referenceFolder(".");
    if (root.isEmpty()) return;
    QDirIterator files(root, {"*.py"}, QDir::Files, QDirIterator::Subdirectories);
    QStringList paths;
    while (files.hasNext()) paths << files.next();
    paths.sort();
    for (const QString& path : paths) {
        const QByteArray text = testing::contentOf(path);
        if (text.contains("(torch.nn.Module):") && text.contains("def forward(self") && !path.endsWith("export.py"))
            QTest::newRow(qPrintable(path.mid(root.size()))) << path;
    }
}

void RecordedTextsTest::referenceDumps() {
    if (testing::referenceFolder(".").isEmpty()) QSKIP(testing::kNoReference);
    QFETCH(QString, path);
    Result<std::unique_ptr<Module>> module = Error{};
    try {
        module = parseText(testing::contentOf(path).toStdString());
    } catch (const InternalError& error) {
        QFAIL(error.what());
    }
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    if (qEnvironmentVariableIsSet("CUTAWAY_SHOW_REMARKS"))
        for (const std::string& remark : (*module)->origin.remarks) qInfo("%s", remark.c_str());
    QCOMPARE(QString::fromStdString(testing::roundTripProblem(**module)), QString());
}

namespace {

/// Values whose recorded type is not what the operator gives, because PyTorch printed the graph between a change and
/// the next typing of it. In the graph before freezing, layouts have just been changed.
struct Stale {
    const char *file, *op;
};
constexpr Stale kStale[] = {
    {"02_freeze.before.py", "aten.convolution.default"},
    {"attention_manual/cpu_infer_freeze/01_joint.after.py", "aten.permute.default"},
    {"attention_manual/cpu_infer_freeze/02_freeze.before.py", "aten.permute.default"},
    {"cuda_infer_freeze/02_freeze.after.py", "aten.reshape.default"},
    {"cuda_infer_freeze/03_post_grad.before.py", "aten.reshape.default"},
    // PyTorch types it without looking at the layout that its kernel gives, and what reads it after that.
    {"unet_mini/cpu_infer_freeze/03_post_grad", "mkldnn._convolution_transpose_pointwise.default"},
};
bool isStale(const QString& path, const std::string& line) {
    return std::any_of(std::begin(kStale), std::end(kStale), [&](const Stale& each) {
        return path.contains(each.file) && line.find("(" + std::string(each.op) + ")") != std::string::npos;
    });
}

}  // namespace

/// Every value of every recorded graph has the type that shape inference gives it.
void RecordedTextsTest::referenceTypes() {
    if (testing::referenceFolder(".").isEmpty()) QSKIP(testing::kNoReference);
    QFETCH(QString, path);
    auto module = parseText(testing::contentOf(path).toStdString());
    QVERIFY2(module.has_value(), module ? "" : module.error().text().c_str());
    QStringList wrong;
    for (const std::string& line : differencesFromInference(**module))
        if (!isStale(path, line)) wrong << QString::fromStdString(line);
    if (!wrong.isEmpty()) QFAIL(qPrintable(QString::number(wrong.size()) + " values:\n" + wrong.mid(0, 12).join("\n")));
}

CUTAWAY_SUITE(RecordedTextsTest)
#include "recorded_texts_test.moc"
