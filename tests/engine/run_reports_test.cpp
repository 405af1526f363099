// What a run says of its results beside whether they match.
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "engine/support/files.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// A line of numbers as a tensor; "nan" and "inf" too.
Tensor lineOf(const QString& numbers, DType dtype) {
    const QStringList words = numbers.split(' ', Qt::SkipEmptyParts);
    Tensor tensor = Tensor::zeros(dtype, {words.size()});
    for (int64_t i = 0; i < words.size(); ++i) {
        const QString& word = words[static_cast<int>(i)];
        const double value = word == "nan" ? std::numeric_limits<double>::quiet_NaN() : word.toDouble();
        storeElements(dtype, static_cast<std::byte*>(tensor.data()) + i * byteSize(dtype), 1, 1, &value);
    }
    return tensor;
}

}  // namespace

class RunReportsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string in(const char* name) const { return m_folder.filePath(name).toStdString(); }

    /// Runs the graph on `x` and compares its result with `expected`.
    Result<RunReport> runGraph(const QString& graph, const Tensor& x, const Tensor& expected, Backend backend) {
        SafeTensors inputs, results;
        inputs.tensors.emplace_back("0", x);
        results.tensors.emplace_back("0", expected);
        CT_TRY_VOID(writeSafeTensors(in("in.safetensors"), inputs));
        CT_TRY_VOID(writeSafeTensors(in("out.safetensors"), results));
        CT_TRY_VOID(writeFile(in("graph.txt"), graph.toStdString()));
        Session session;
        CT_TRY_VOID(session.open(in("graph.txt")));
        CT_TRY_VOID(session.compile({}));
        RunOptions options;
        options.backend = backend;
        options.inputsFile = in("in.safetensors");
        options.expectFile = in("out.safetensors");
        return session.run(0, options);
    }

  private slots:
    void indicesOfEqualKeysAreTies_data() {
        QTest::addColumn<QString>("graph");
        QTest::addColumn<QString>("keys");
        QTest::addColumn<QString>("expected");
        QTest::addColumn<QString>("said");  // of the result: the remark of a match, else what differs
        const auto row = [](const char* name, const char* calls, const char* keys, const char* expected,
                            const char* said) {
            QTest::newRow(name) << QString("def forward(x: \"f32[5]\"):\n%1").arg(calls) << keys << expected << said;
        };
        const char* const sorted = "    s = aten.sort.default(x)\n    i = s[1]\n    return (i,)\n";
        const char* const stable = "    s = aten.sort.stable(x, stable=True)\n    i = s[1]\n    return (i,)\n";
        const char* const top = "    s = aten.topk.default(x, 2)\n    i = s[1]\n    return (i,)\n";
        const char* const moved =
            "    s = aten.sort.default(x)\n    i = s[1]\n    f = aten.flip.default(i, [0])\n"
            "    l = aten.slice.Tensor(f, 0, 0, 2)\n    return (l,)\n";
        const char* const most =
            "    i = aten.argmax.default(x)\n    r = aten.reshape.default(i, [1])\n    return (r,)\n";
        row("sort", sorted, "2 1 2 1 2", "3 1 4 0 2", "5 of 5 indices differ, all of them ties");
        row("another key", sorted, "2 1 2 1 3", "3 1 4 0 2", "DIFFERS");
        row("named twice", sorted, "2 1 2 1 2", "3 1 0 0 7", "DIFFERS");
        row("a stable sort", stable, "2 1 2 1 2", "3 1 4 0 2", "DIFFERS");
        row("topk beside a NaN", top, "1 nan 3 -2 3", "1 4", "1 of 2 indices differ, all of them ties");
        row("NaN are equal", top, "1 nan 3 nan 3", "3 1", "2 of 2 indices differ, all of them ties");
        row("topk of another", top, "1 nan 3 -2 3", "1 0", "DIFFERS");
        row("moved on the way", moved, "2 1 2 1 2", "0 4", "2 of 2 indices differ, all of them ties");
        row("moved, another key", moved, "2 1 2 1 2", "0 1", "DIFFERS");
        row("argmax", most, "1 3 2 3 0", "3", "1 of 1 indices differ, all of them ties");
    }
    void indicesOfEqualKeysAreTies() {
        QFETCH(QString, graph);
        QFETCH(QString, keys);
        QFETCH(QString, expected);
        QFETCH(QString, said);
        for (const Backend backend : {Backend::Reference, Backend::Cpu}) {
            const auto report = runGraph(graph, lineOf(keys, DType::F32), lineOf(expected, DType::I64), backend);
            QVERIFY2(report, report ? "" : report.error().text().c_str());
            const OutputReport& output = report->outputs.front();
            QCOMPARE(output.within, said != "DIFFERS");
            QCOMPARE(report->matches, output.within);
            const QString text = QString::fromStdString(output.remark);
            QVERIFY2(output.within ? text.startsWith(said) : text.isEmpty(), qPrintable(text));
        }
    }
};

CUTAWAY_SUITE(RunReportsTest)
#include "run_reports_test.moc"
