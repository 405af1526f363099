// What windows and files show of a compiled run is what runs: functions of kernels are named after the hash of their
// text, and a program is loaded by these names.
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QtTest>
#include <set>

#include "cutaway/host.h"
#include "cutaway/loops.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kSizes = R"py(
def forward(x: "f32[s0, 8]", w: "f32[8, 4]", i: "i64[s0]"):
    mm: "f32[s0, 4]" = aten.mm.default(x, w)
    relu: "f32[s0, 4]" = aten.relu.default(mm)
    index: "f32[s0, 4]" = aten.index.Tensor(relu, [i])
    softmax: "f32[s0, 4]" = aten._softmax.default(index, 1, False)
    cumsum: "f32[s0, 4]" = aten.cumsum.default(softmax, 0)
    return (cumsum, relu)
)py";

using Names = std::set<QString>;
Names functionsIn(const std::string& text) {
    static const QRegularExpression name("\\bk[0-9a-f]{32}(_[0-9]+)?\\b");
    Names found;
    for (auto at = name.globalMatch(QString::fromStdString(text)); at.hasNext();) found.insert(at.next().captured());
    return found;
}
QString textOf(const Names& names) { return QStringList(names.begin(), names.end()).join(" "); }

}  // namespace

class ShownAndRunTest : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;

  private slots:
    void theSameFunctions_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<bool>("training");
        QTest::addColumn<bool>("freeze");
        const QString sizes = m_folder.filePath("sizes.py");
        QFile out(sizes);
        QVERIFY(out.open(QIODevice::WriteOnly) && out.write(kSizes) > 0);
        out.close();
        QTest::newRow("all sizes") << sizes << false << false;
        for (const char* name : {"mlp", "tiny_resnet", "tiny_transformer"}) {
            const QString model = QStringLiteral(CUTAWAY_SOURCE_DIR "/resources/models/") + name + ".pt2";
            QTest::addRow("%s", name) << model << false << false;
            QTest::addRow("%s, frozen", name) << model << false << true;
            QTest::addRow("%s, training", name) << model << true << false;
        }
    }
    void theSameFunctions() {
        QFETCH(QString, model);
        QFETCH(bool, training);
        QFETCH(bool, freeze);
        Session session;
        QVERIFY(session.open(model.toStdString()));
        CompileRequest request;
        request.mode = training ? Mode::Training : Mode::Inference;
        request.freeze = freeze;
        const auto id = session.compile(request);
        QVERIFY2(bool(id), id ? "" : id.error().text().c_str());

        // The Loops window and `loops`.
        const auto kernels = loopKernels(session, *id);
        QVERIFY(bool(kernels) && !kernels->empty());
        std::string all;
        for (const LoopKernel& kernel : *kernels) {
            const auto forms = kernelLoops(session, *id, kernel.name);
            QVERIFY2(bool(forms), forms ? "" : forms.error().text().c_str());
            QVERIFY(!functionsIn(forms->source).empty());
            all += forms->source;
        }
        const Names shown = functionsIn(all);

        // What is loaded, in `host.txt` and as C++.
        const auto host = hostTexts(session, *id);
        QVERIFY2(bool(host), host ? "" : host.error().text().c_str());
        QCOMPARE(textOf(functionsIn(host->program)), textOf(shown));
        if (!training) QCOMPARE(textOf(functionsIn(host->source)), textOf(shown));

        // What the compiler got: the Kernels window and `kernels.cpp`.
        const auto build = session.build(*id, Target::Cpu);
        QVERIFY2(bool(build), build ? "" : build.error().text().c_str());
        QCOMPARE(textOf(functionsIn(build->source)), textOf(shown));
        for (const KernelInfo& kernel : build->kernels)
            if (!kernel.source.empty()) QVERIFY(QString::fromStdString(all).contains(kernel.source.c_str()));
    }
};

CUTAWAY_SUITE(ShownAndRunTest)
#include "shown_and_run_test.moc"
