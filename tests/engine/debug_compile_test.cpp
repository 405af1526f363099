// debug_compile: bundles that are the graph again when they are read back, the files that PyTorch's loader takes, and
// the nine slots of ts_compile.
#include "cutaway/debug_compile.h"

#include <QTemporaryDir>
#include <QtTest>

#include "engine/formats/torch_save.h"
#include "engine/formats/torch_save_writer.h"
#include "engine/session/graph_bundle.h"
#include "engine/session/sequential_backend.h"
#include "engine/text/parse.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

std::shared_ptr<Module> parsedModule(const char* text) {
    auto module = parseText(text);
    if (!module) qFatal("%s", module.error().text().c_str());
    return std::make_shared<Module>(**module);
}

Tensor counting(DType dtype, Dims sizes) {
    Tensor tensor = Tensor::zeros(dtype, std::move(sizes));
    for (int64_t i = 0; i < tensor.numel(); ++i) {
        const auto value = static_cast<double>(i % 2);
        storeElements(dtype, static_cast<std::byte*>(tensor.data()) + i * byteSize(dtype), 1, 1, &value);
    }
    return tensor;
}

QString stepOf(const std::vector<SequentialStep>& steps, const char* name) {
    for (const SequentialStep& step : steps)
        if (step.name == name) return QString::fromStdString(step.what);
    return {};
}

}  // namespace

class DebugCompileTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string in(const QString& name) const { return m_folder.filePath(name).toStdString(); }

  private slots:
    void stateDictsAreReadBack_data() {
        QTest::addColumn<int>("dtype");
        for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8,
                                  DType::Bool, DType::C64})
            QTest::newRow(std::string(info(dtype).torchName).c_str()) << static_cast<int>(dtype);
    }
    void stateDictsAreReadBack() {
        QFETCH(int, dtype);
        const Tensor whole = counting(static_cast<DType>(dtype), {3, 4});
        const Tensor turned = whole.view({4, 2}, {1, 4}, 4);
        QVERIFY(
            writeStateDict(in("state.pt"), {{"a.weight", whole}, {"b", turned}, {"none", whole.view({0}, {1}, 0)}}));
        const auto source = ByteSource::open(in("state.pt"));
        QVERIFY(source);
        const auto read = readTorchSave(*source, "state.pt");
        QVERIFY2(read, read ? "" : read.error().text().c_str());
        const auto tensors = tensorsOf(*read);
        QCOMPARE(tensors.size(), size_t{3});
        QCOMPARE(tensors[0].first, std::string("a.weight"));
        QVERIFY(compare(tensors[0].second, whole, {}).within);
        QCOMPARE(tensors[1].second.strides(), (Dims{1, 4}));
        QVERIFY(compare(tensors[1].second, turned, {}).within);
        QVERIFY(tensors[0].second.storage() == tensors[1].second.storage());
    }

    void bundlesAreTheGraphAgain_data() {
        QTest::addColumn<QString>("model");
        for (const char* name : {"mlp", "tiny_resnet", "tiny_transformer"}) QTest::newRow(name) << QString(name);
    }
    void bundlesAreTheGraphAgain() {
        QFETCH(QString, model);
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/" + model.toStdString() + ".pt2"));
        DebugCompileOptions options;
        options.folder = in(model);
        const auto report = debugCompile(session, options);
        QVERIFY2(report, report ? "" : report.error().text().c_str());
        QVERIFY2(report->reloaded, report->difference.c_str());
        QVERIFY2(report->runs, report->ran.c_str());
        QCOMPARE(report->steps.size(), size_t{9});
        QCOMPARE(report->command, "cutaway-cli minify " + in(model) + " --check crash --inputs " + in(model) +
                                      "/inputs.safetensors -o " + in(model) + "/minified");
        for (const std::string& file : report->files)
            QVERIFY2(QFile::exists(m_folder.filePath(model) + "/" + file.c_str()), file.c_str());
        // Opened like any model, it computes what the model does.
        Session bundle;
        const auto opened = bundle.open(options.folder);
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        QVERIFY(session.compile({}) && bundle.compile({}));
        RunOptions how;
        const auto expected = session.run(0, how);
        how.inputsFile = options.folder + "/inputs.safetensors";
        const auto got = bundle.run(0, how);
        QVERIFY2(got, got ? "" : got.error().text().c_str());
        QCOMPARE(got->outputs[0].mean, expected->outputs[0].mean);
        // Written once more in its place, and never over something else.
        QVERIFY(debugCompile(session, options));
        options.folder = CUTAWAY_SOURCE_DIR "/resources/models";
        const auto refused = debugCompile(session, options);
        QVERIFY(!refused && refused.error().message == "the folder holds something else");
    }

    void differencesAreNamed() {
        const char* text = "def forward(x: \"f32[4]\"):\n    a = torch.ops.aten.%1.default(x)\n    return (a,)\n";
        const auto graph = [&](const char* op) { return parsedModule(QString(text).arg(op).toUtf8().constData()); };
        QCOMPARE(structuralDifference(*graph("sin"), *graph("sin")), std::string());
        const std::string difference = structuralDifference(*graph("sin"), *graph("cos"));
        QVERIFY2(difference.find("aten.sin.default") != std::string::npos, difference.c_str());
    }

    /// Only the form with one positional argument and dtype becomes `to`.
    void toCopyIsRewrittenInOneForm_data() {
        QTest::addColumn<QString>("arguments");
        QTest::addColumn<QString>("what");
        QTest::newRow("dtype") << "x, dtype = torch.float16"
                               << "1 of 1 call";
        QTest::newRow("dtype and device") << "x, dtype = torch.float16, device = device('cpu')"
                                          << "0 of 1 call";
        QTest::newRow("device") << "x, device = device('cpu')"
                                << "0 of 1 call";
        QTest::newRow("memory format") << "x, dtype = torch.float16, memory_format = torch.contiguous_format"
                                       << "0 of 1 call";
        QTest::newRow("none") << "x"
                              << "0 of 1 call";
    }
    void toCopyIsRewrittenInOneForm() {
        QFETCH(QString, arguments);
        QFETCH(QString, what);
        const auto module = parsedModule(("def forward(x: \"f32[4]\"):\n    a = torch.ops.aten._to_copy.default(" +
                                          arguments + ")\n    return (a,)\n")
                                             .toUtf8()
                                             .constData());
        const auto compiled = compileSequentially(*module, SequentialBackend::Ts, false);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        QCOMPARE(stepOf(compiled->steps, "_to_copy becomes to"), what);
        for (const SequentialStep& step : compiled->steps)
            if (step.name == "_to_copy becomes to")
                QCOMPARE(step.text.find("aten.to.dtype") != std::string::npos, step.changed);
    }

    /// PyTorch's loses the number of the device; ours does with `parity`, and says so either way.
    void devicesLoseTheirIndexForParity_data() {
        QTest::addColumn<bool>("parity");
        QTest::newRow("own") << false;
        QTest::newRow("parity") << true;
    }
    void devicesLoseTheirIndexForParity() {
        QFETCH(bool, parity);
        const auto module = parsedModule(
            "def forward(x: \"f32[4]\"):\n"
            "    a = torch.ops.aten.zeros.default([4], dtype = torch.float32, device = device('cuda:1'))\n"
            "    return (a,)\n");
        const auto compiled = compileSequentially(*module, SequentialBackend::Ts, parity);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        const QString what = stepOf(compiled->steps, "devices");
        QVERIFY2(what.contains(parity ? "cuda:1 loses its index" : "cuda:1 keeps its index"), qPrintable(what));
    }

    void passesAreInTheirSlots() {
        const auto module = parsedModule(
            "def forward(w: \"f32[4, 4]\", x: \"f32[4, 4]\"):\n"
            "    t = torch.ops.aten.permute.default(w, [1, 0])\n"
            "    n = torch.ops.aten.mul.Tensor(x, t)\n"
            "    m = torch.ops.aten.mm.default(n, x)\n"
            "    a = torch.ops.aten.add.Tensor(m, n)\n"
            "    return (a,)\n");
        const auto compiled = compileSequentially(*module, SequentialBackend::Ts, false);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        QCOMPARE(stepOf(compiled->steps, "linear program"), "4 instructions over 3 registers");
        QCOMPARE(stepOf(compiled->steps, "constants frozen"), "nothing to do");
        QCOMPARE(stepOf(compiled->steps, "inference rewrites"), "post_grad_pass_pattern_2");
    }

    void siblingsTakeFewerSlots_data() {
        QTest::addColumn<int>("backend");
        QTest::addColumn<int>("count");
        QTest::newRow("ts") << static_cast<int>(SequentialBackend::Ts) << 8;
        QTest::newRow("simple") << static_cast<int>(SequentialBackend::SimpleTs) << 5;
        QTest::newRow("nop") << static_cast<int>(SequentialBackend::Nop) << 0;
        QTest::newRow("print") << static_cast<int>(SequentialBackend::Print) << 0;
    }
    void siblingsTakeFewerSlots() {
        QFETCH(int, backend);
        QFETCH(int, count);
        const auto module =
            parsedModule("def forward(x: \"f32[4]\"):\n    a = torch.ops.aten.sin.default(x)\n    return (a,)\n");
        const auto compiled = compileSequentially(*module, static_cast<SequentialBackend>(backend), false);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        QCOMPARE(static_cast<int>(compiled->steps.size()), count);
        if (count == 0) QCOMPARE(structuralDifference(*module, *compiled->graph), std::string());
    }

    void drawingsQuoteNames() {
        const auto module =
            parsedModule("def forward(x: \"f32[4]\"):\n    a = torch.ops.aten.sin.default(x)\n    return (a,)\n");
        const std::string dot = drawn(*module);
        QVERIFY2(dot.find("label=\"a\\naten.sin.default\\nf32[4]\"") != std::string::npos, dot.c_str());
        QVERIFY(dot.find("->") != std::string::npos);
    }
};

CUTAWAY_SUITE(DebugCompileTest)
#include "debug_compile_test.moc"
