// Exported folders: they build and run without us, compute what the interpreter does, keep what is somebody else's, and
// say by name what they cannot do.
#include "cutaway/export.h"

#include <dlfcn.h>

#include <QDirIterator>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "engine/exporting/export_folder.h"
#include "engine/formats/safetensors.h"
#include "engine/runtime/exported/program.h"
#include "engine/runtime/exported/tensor_file.h"
#include "engine/support/files.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct Ended {
    int status = -1;
    QString out, err;
};
Ended run(const QString& program, const QStringList& arguments, const QString& folder) {
    QProcess process;
    process.setWorkingDirectory(folder);
    process.start(program, arguments);
    if (!process.waitForFinished(280'000)) qFatal("%s does not end", qPrintable(program));
    return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : 128,
            QString::fromUtf8(process.readAllStandardOutput()), QString::fromUtf8(process.readAllStandardError())};
}
/// main.c with the library beside it.
Ended buildMain(const QString& folder, const QString& name) {
    return run("cc",
               {"-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "main.c", "-L.", "-l" + name,
                "-Wl,-rpath," + folder, "-lm", "-o", "program"},
               folder);
}

/// All that a folder holds: bytes of files by their paths, nothing of folders.
QMap<QString, QByteArray> contents(const QString& folder) {
    QMap<QString, QByteArray> all;
    QDirIterator each(folder, QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot, QDirIterator::Subdirectories);
    while (each.hasNext()) {
        QFile file(each.next());
        all[QDir(folder).relativeFilePath(file.fileName())] =
            file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    return all;
}

NamedTensors readAll(const QString& path) {
    auto file = readSafeTensors(path.toStdString());
    if (!file) qFatal("%s", file.error().text().c_str());
    return std::move(file->tensors);
}

constexpr const char* kShapes = R"py(
# symbol s0: lower=1, upper=64, hint=4
def forward(self, x: "f32[s0, 6]", i: "i64[3]", w: "f32[6, 5]"):
    mm: "f32[s0, 5]" = torch.ops.aten.mm.default(x, w)
    relu: "f32[s0, 5]" = torch.ops.aten.relu.default(mm)
    index: "f32[s0, 3]" = torch.ops.aten.index.Tensor(relu, [None, i])
    cumsum: "f32[s0, 3]" = torch.ops.aten.cumsum.default(index, 0)
    sort = torch.ops.aten.sort.default(cumsum)
    values: "f32[s0, 3]" = sort[0]
    order: "i64[s0, 3]" = sort[1]
    t: "f32[5, s0]" = torch.ops.aten.permute.default(relu, [1, 0])
    return (values, order, None, t, x)
)py";
constexpr const char* kChecked = R"py(
def forward(self, x: "f32[4]", i: "i64[2]"):
    index: "f32[2]" = torch.ops.aten.index.Tensor(x, [i])
    return (index,)
)py";

}  // namespace

class ExportTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    QString in(const QString& name) const { return m_folder.filePath(name); }
    QString written(const QString& name, const char* text) const {
        if (!cutaway::writeFile(in(name).toStdString(), text)) qFatal("cannot write");
        return in(name);
    }
    Result<ExportReport> exported(const QString& model, const QString& to, const CompileRequest& request = {},
                                  const ExportOptions& given = {}) const {
        Session session;
        CT_TRY_VOID(session.open(model.toStdString()));
        CT_TRY(const RunId id, session.compile(request));
        ExportOptions options = given;
        options.folder = in(to).toStdString();
        if (options.name.empty()) options.name = "model";
        return exportProgram(session, id, options);
    }

  private slots:
    void runs_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<bool>("freeze");
        for (const char* name : {"mlp", "tiny_resnet", "tiny_transformer"})
            for (const bool freeze : {false, true})
                QTest::addRow("%s%s", name, freeze ? " frozen" : "")
                    << QString(CUTAWAY_SOURCE_DIR "/resources/models/%1").arg(name) << freeze;
    }
    /// The bundled models: main.c, on the sample inputs and against PyTorch's results.
    void runs() {
        QFETCH(QString, model);
        QFETCH(bool, freeze);
        CompileRequest request;
        request.freeze = freeze;
        const QString to = QString("bundled%1%2").arg(QFileInfo(model).baseName()).arg(freeze);
        const auto report = exported(model + ".pt2", to, request);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QCOMPARE(QString::fromStdString(report->fixedSizes), QString());
        for (const char* file : {"main.c", "CMakeLists.txt", "model.h", "libmodel.so", "weights.safetensors",
                                 "manifest.json", "inputs.safetensors"})
            QVERIFY2(std::find(report->files.begin(), report->files.end(), file) != report->files.end(), file);
        for (const std::string& file : report->files)
            QVERIFY2(QFile::exists(in(to + "/") + file.c_str()), file.c_str());
        const QJsonDocument manifest = QJsonDocument::fromJson(
            QByteArray::fromStdString(*cutaway::readFile(in(to + "/manifest.json").toStdString())));
        QVERIFY(!manifest.isNull());
        QCOMPARE(manifest["outputs"].toArray().size(), 1);
        const Ended built = buildMain(in(to), "model");
        QVERIFY2(built.status == 0, qPrintable(built.err));
        const QStringList expect = {"--expect", model + ".expected.safetensors"};
        const Ended ended = run(in(to + "/program"), expect + QStringList{"--repeat", "3"}, in(to));
        QVERIFY2(ended.status == 0, qPrintable(ended.out + ended.err));
        QVERIFY2(ended.out.contains(" ok: max abs error"), qPrintable(ended.out));
        QVERIFY2(ended.out.contains("median"), qPrintable(ended.out));
        // What is wrong is seen: a weight other than the model's.
        SafeTensors weights{readAll(in(to + "/weights.safetensors")), {}};
        for (auto& [name, tensor] : weights.tensors)
            if (tensor.dtype() == DType::F32 && tensor.numel() > 0) {
                tensor = tensor.contiguous();
                auto other = Tensor::empty(DType::F32, tensor.sizes());
                for (int64_t i = 0; i < tensor.numel(); ++i)
                    static_cast<float*>(other.data())[i] = static_cast<const float*>(tensor.data())[i] + 1.0f;
                tensor = other;
            }
        QVERIFY(writeSafeTensors(in("other.safetensors").toStdString(), weights));
        const Ended wrong =
            run(in(to + "/program"), expect + QStringList{"--weights", in("other.safetensors")}, in(to));
        QCOMPARE(wrong.status, 1);
        QVERIFY2(wrong.out.contains("DIFFERS"), qPrintable(wrong.out));
    }

    void trainingSteps_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("gradient");
        for (const char* name : {"mlp", "tiny_resnet", "tiny_transformer"})
            QTest::addRow("%s", name) << QString(CUTAWAY_SOURCE_DIR "/resources/models/%1.pt2").arg(name) << QString();
        QTest::newRow("of any size") << written("grown.py",
                                                "# symbol s0: lower=1, upper=64, hint=5\n"
                                                "def forward(x: \"f32[s0, 6]\", w: \"f32[6, 3]\"):\n"
                                                "    m = aten.mm.default(x, w)\n    t = aten.tanh.default(m)\n"
                                                "    s = aten.sum.dim_IntList(t, [0])\n    return (t, s)\n")
                                     << "w";
    }
    /// Forward and backward in one call: the gradients are those of a training run whose loss has these tangents.
    void trainingSteps() {
        QFETCH(QString, model);
        QFETCH(QString, gradient);
        CompileRequest request;
        request.mode = Mode::Training;
        if (!gradient.isEmpty()) request.gradients = {gradient.toStdString()};
        const QString to = "step_" + QFileInfo(model).baseName();
        const auto report = exported(model, to, request);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QCOMPARE(QString::fromStdString(report->fixedSizes), QString());
        const Ended built = buildMain(in(to), "model");
        QVERIFY2(built.status == 0, qPrintable(built.err));
        const QString inputsFile = in("step.safetensors"), outputsFile = in("stepped.safetensors");
        NamedTensors inputs = readAll(in(to + "/inputs.safetensors"));
        const auto step = [&] {
            QVERIFY(writeSafeTensors(inputsFile.toStdString(), SafeTensors{inputs, {}}));
            const Ended ended = run(in(to + "/program"), {"--inputs", inputsFile, "--outputs", outputsFile}, in(to));
            QVERIFY2(ended.status == 0, qPrintable(ended.out + ended.err));
        };
        step();
        // The loss of a run here is the mean of squares of each result, so the tangents are 2 y / n.
        std::vector<Tensor> results;
        NamedTensors gradients;
        for (const auto& [name, tensor] : readAll(outputsFile))
            if (!QString::fromStdString(name).endsWith(".grad")) results.push_back(tensor);
        for (auto& [name, tensor] : inputs) {
            if (!name.starts_with("tangents_")) continue;
            const auto of = std::find_if(results.begin(), results.end(),
                                         [&](const Tensor& result) { return result.sizes() == tensor.sizes(); });
            QVERIFY(of != results.end());
            tensor = Tensor::empty(DType::F32, of->sizes());
            for (int64_t i = 0; i < tensor.numel(); ++i)
                tensor.as<float>()[i] = 2.0f * of->as<float>()[i] / static_cast<float>(of->numel());
        }
        step();
        for (const auto& [name, tensor] : readAll(outputsFile))
            if (name.ends_with(".grad")) gradients.emplace_back(name.substr(0, name.size() - 5), tensor);
        QVERIFY(!gradients.empty());
        std::erase_if(inputs, [](const auto& one) { return one.first.starts_with("tangents_"); });
        QVERIFY(writeSafeTensors(inputsFile.toStdString(), SafeTensors{inputs, {}}));
        QVERIFY(writeSafeTensors(in("gradients.safetensors").toStdString(), SafeTensors{gradients, {}}));
        Session session;
        QVERIFY(session.open(model.toStdString()));
        const auto id = session.compile(request);
        QVERIFY(id.has_value());
        RunOptions options;
        options.inputsFile = inputsFile.toStdString();
        options.expectGradientsFile = in("gradients.safetensors").toStdString();
        const auto compared = session.run(*id, options);
        QVERIFY2(compared.has_value(), compared ? "" : compared.error().text().c_str());
        QVERIFY(compared->matches);
    }

    /// One build for all sizes; inputs of any strides; results that are views and inputs, and a None.
    void sizes() {
        const QString model = written("shapes.py", kShapes);
        const auto report = exported(model, "shapes");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QCOMPARE(QString::fromStdString(report->fixedSizes), QString());
        const Ended built = buildMain(in("shapes"), "model");
        QVERIFY2(built.status == 0, qPrintable(built.err));
        for (const int64_t rows : {1, 5, 17, 64}) {
            std::vector<float> x(static_cast<size_t>(rows * 6)), w(30);
            for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 1.3f);
            for (size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<float>(i) * 0.7f);
            const int64_t order[] = {4, -5, 2};
            const auto of = [](DType dtype, const Dims& sizes, const void* data) {
                Tensor tensor = Tensor::empty(dtype, sizes);
                std::memcpy(tensor.data(), data, tensor.bytes());
                return tensor;
            };
            const std::string inputs = in("inputs.safetensors").toStdString();
            QVERIFY(writeSafeTensors(inputs, {{{"x", of(DType::F32, {rows, 6}, x.data())},
                                               {"i", of(DType::I64, {3}, order)},
                                               {"w", of(DType::F32, {6, 5}, w.data())}},
                                              {}}));
            const Ended ended =
                run(in("shapes/program"), {"--inputs", in("inputs.safetensors"), "--outputs", in("got.safetensors")},
                    in("shapes"));
            QVERIFY2(ended.status == 0, qPrintable(ended.out + ended.err));
            Session session;
            QVERIFY(session.open(model.toStdString()));
            const auto id = session.compile({});
            RunOptions options;
            options.inputsFile = inputs;
            options.expectFile = in("got.safetensors").toStdString();
            const auto compared = session.run(*id, options);
            QVERIFY2(compared.has_value(), compared ? "" : compared.error().text().c_str());
            QVERIFY(compared->matches);
            QCOMPARE(compared->outputs.size(), size_t{5});
        }
        const auto onZeros = [&](const Dims& sizes) {
            const SafeTensors inputs{{{"x", Tensor::zeros(DType::F32, sizes)},
                                      {"i", Tensor::zeros(DType::I64, {3})},
                                      {"w", Tensor::zeros(DType::F32, {6, 5})}},
                                     {}};
            if (!writeSafeTensors(in("zeros.safetensors").toStdString(), inputs)) qFatal("cannot write");
            return run(in("shapes/program"), {"--inputs", in("zeros.safetensors")}, in("shapes"));
        };
        const Ended tooMany = onZeros({65, 6});
        QCOMPARE(tooMany.status, 1);
        QVERIFY2(tooMany.err.contains("the size is outside the range of the program"), qPrintable(tooMany.err));
        const Ended others = onZeros({4, 7});
        QCOMPARE(others.status, 1);
        QVERIFY2(others.err.contains("input 'x': must be f32[4, 6], not f32[4, 7]"), qPrintable(others.err));
    }

    void wrongIndices() {
        const auto report = exported(written("checked.py", kChecked), "checked");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(buildMain(in("checked"), "model").status == 0);
        Tensor index = Tensor::zeros(DType::I64, {2});
        static_cast<int64_t*>(index.data())[1] = 4;
        QVERIFY(writeSafeTensors(in("index.safetensors").toStdString(),
                                 {{{"x", Tensor::zeros(DType::F32, {4})}, {"i", index}}, {}}));
        const Ended ended = run(in("checked/program"), {"--inputs", in("index.safetensors")}, in("checked"));
        QCOMPARE(ended.status, 1);
        QVERIFY2(ended.err.contains("index (kernel0): an index that comes from data is out of range"),
                 qPrintable(ended.err));
        const Ended missing = run(in("checked/program"), {"--inputs", in("nothing.safetensors")}, in("checked"));
        QCOMPARE(missing.status, 1);
        QVERIFY2(missing.err.contains("nothing.safetensors: No such file"), qPrintable(missing.err));
        QCOMPARE(run(in("checked/program"), {"--unknown", "1"}, in("checked")).status, 2);
    }

    /// A buffer that the graph writes to is each context's own, and begins as the file has it.
    void buffersAreAContexts() {
        const auto report = exported(CUTAWAY_SOURCE_DIR "/tests/data/counter.pt2", "counting");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        void* const library = ::dlopen(report->library.c_str(), RTLD_NOW | RTLD_LOCAL);
        QVERIFY2(library, library ? "" : ::dlerror());
        const auto call = [&](const char* name) { return ::dlsym(library, name); };
        const auto& info = *reinterpret_cast<const CtProgramInfo* (*)()>(call("model_info"))();
        int states = 0;
        for (int32_t i = 0; i < info.constantCount; ++i) states += info.constants[i].state;
        QCOMPARE(states, 1);
        QCOMPARE(info.inputCount, 1);
        const auto open = reinterpret_cast<CtProgram* (*)(const char*)>(call("model_open"));
        const auto error = reinterpret_cast<const char* (*)()>(call("model_error"));
        QVERIFY(open("/nowhere/weights.safetensors") == nullptr);
        QVERIFY(QString(error()).contains("/nowhere/weights.safetensors"));
        CtProgram* const program = open(in("counting/weights.safetensors").toUtf8().constData());
        QVERIFY2(program, program ? "" : error());
        const auto context = reinterpret_cast<CtContext* (*)(CtProgram*, const CtParallel*)>(call("model_context"));
        const auto runOnce = reinterpret_cast<int32_t (*)(CtContext*, const CtTensor*, CtTensor*)>(call("model_run"));
        const auto release = reinterpret_cast<void (*)(CtContext*)>(call("model_release"));
        CtContext *const first = context(program, nullptr), *const second = context(program, nullptr);
        const ct::TensorFile inputs(in("counting/inputs.safetensors").toStdString());
        QCOMPARE(inputs.count(), size_t{1});
        const CtTensor x = inputs.tensor(0);
        std::vector<CtTensor> out(static_cast<size_t>(info.outputCount));
        const auto results = [&](CtContext* of) {
            if (runOnce(of, &x, out.data()) != 0) qFatal("the run failed");
            return *static_cast<const float*>(out[0].data);
        };
        QCOMPARE(results(first), 1.0f);
        QCOMPARE(results(first), 2.0f);
        QCOMPARE(results(second), 1.0f);
        QCOMPARE(results(first), 3.0f);
        release(first);
        release(second);
        reinterpret_cast<void (*)(CtProgram*)>(call("model_close"))(program);
        ::dlclose(library);
    }

    /// All that the library is made of is in the folder: CMake builds it from nothing else (Ninja: a bare root has no
    /// make).
    void buildsFromItsSources() {
        const auto report =
            exported(CUTAWAY_SOURCE_DIR "/resources/models/tiny_transformer.pt2", "alone", {}, {{}, "test", {}});
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(QFile::remove(in("alone/libtest.so")));
        const Ended configured = run("cmake", {"-G", "Ninja", "-S", in("alone"), "-B", in("build")}, in(""));
        QVERIFY2(configured.status == 0, qPrintable(configured.out + configured.err));
        const Ended built = run("cmake", {"--build", in("build"), "-j2"}, in(""));
        QVERIFY2(built.status == 0, qPrintable((built.out + built.err).right(900)));
        const Ended ended =
            run(in("build/test_main"),
                {"--expect", CUTAWAY_SOURCE_DIR "/resources/models/tiny_transformer.expected.safetensors"}, in(""));
        QVERIFY2(ended.status == 0, qPrintable(ended.out + ended.err));
        QVERIFY2(ended.out.contains(" ok: max abs error"), qPrintable(ended.out));
        // It shows the functions of its header and nothing else.
        const Ended symbols = run("nm", {"-D", "--defined-only", in("build/libtest.so")}, in(""));
        for (const QString& line : symbols.out.split('\n', Qt::SkipEmptyParts))
            QVERIFY2(line.section(' ', 2).startsWith("test_") || !line.contains(" T "), qPrintable(line));
    }

    /// Factorisations stand on LAPACK: manifest and build name it, and only where a program calls them.
    void linksLapack() {
        const QString model =
            written("factors.py",
                    "def forward(x: \"f32[2, 5, 5]\"):\n    s = aten._linalg_svd.default(x)\n"
                    "    u = s[0]\n    q = aten.linalg_qr.default(x)\n    r = q[1]\n    return (u, r)\n");
        const auto report = exported(model, "factors");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(cutaway::readFile(in("factors/manifest.json").toStdString())->find("{\"name\": \"LAPACK\"}") !=
                std::string::npos);
        QVERIFY(QFile::exists(in("factors/src/engine/support/dense_matrix.cpp")));
        const Ended built = buildMain(in("factors"), "model");
        QVERIFY2(built.status == 0, qPrintable(built.err));
        const Ended ended = run(in("factors/program"), {}, in("factors"));
        QVERIFY2(ended.status == 0, qPrintable(ended.out + ended.err));
        QVERIFY(cutaway::readFile(in("factors/CMakeLists.txt").toStdString())->find("LAPACK") != std::string::npos);
        const QString other = written("sums.py",
                                      "def forward(x: \"f32[4]\"):\n    a = aten.cumsum.default(x, 0)\n"
                                      "    return (a,)\n");
        QVERIFY(exported(other, "sums"));
        QVERIFY(cutaway::readFile(in("sums/CMakeLists.txt").toStdString())->find("LAPACK") == std::string::npos);
        QVERIFY(!QFile::exists(in("sums/src/engine/support/dense_matrix.cpp")));
        QVERIFY(!QFile::exists(in("sums/src/engine/runtime/libraries/lapack_functions.cpp")));
    }

    void refusals_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("to");
        QTest::addColumn<bool>("training");
        QTest::addColumn<QString>("says");
        const char* const plain = "def forward(x: \"f32[4]\"):\n    a = aten.relu.default(x)\n    return (a,)\n";
        QTest::newRow("training") << plain << "a" << true << "nothing of the graph is differentiated";
        QTest::newRow("training, a result that is a view of an input")
            << "def forward(x: \"f32[4]\"):\n    a = aten.relu.default(x)\n    v = aten.view.default(x, [2, 2])\n    return (a, v)\n"
            << "a" << true << "is an input or a view of one, so its gradient is not part of the training step";
        QTest::newRow("a folder of somebody else")
            << plain << "taken" << false << "the folder holds what is not an export";
        QTest::newRow("a file") << plain << "taken/letter.txt" << false << "the output path is a file; give a folder";
        QTest::newRow("a package") << plain << "a.pt2" << false
                                   << "The output path for aot_compile shouldn't have an extension with .pt2";
        QTest::newRow("an object among the inputs")
            << "def forward(x: \"f32[4]\", o: \"torch.ScriptObject\"):\n    a = aten.relu.default(x)\n    return (a,)\n"
            << "b" << false << "TorchBind objects found in inputs.";
        QTest::newRow("no tuple, with parity")
            << QString(plain).replace("(a,)", "a") << "parity" << false << "Graph output must be a tuple().";
        QTest::newRow("an operator that only the engine has")
            << "def forward(x: \"c64[4]\"):\n    y = aten.mul.Scalar(x, 2j)\n    return (y,)\n"
            << "b" << false << "y: aten.mul.Scalar is computed by the engine";
        QTest::newRow("a number that is returned")
            << "def forward(x: \"f32[4]\"):\n    y = aten.neg.default(x)\n    return (y, 7)\n"
            << "b" << false << "the graph returns a number, and exported programs return tensors";
    }
    void refusals() {
        QFETCH(QString, text);
        QFETCH(QString, to);
        QFETCH(bool, training);
        QFETCH(QString, says);
        QDir().mkpath(in("taken"));
        written("taken/letter.txt", "dear");
        CompileRequest request;
        if (training) request.mode = Mode::Training;
        if (training && text.contains("view")) request.gradients = {"x"};
        request.parity = to == "parity";
        const auto report = exported(written("refused.py", text.toUtf8().constData()), to, request);
        QVERIFY(!report);
        QVERIFY2(QString::fromStdString(report.error().text()).contains(says), report.error().text().c_str());
        QCOMPARE(*cutaway::readFile(in("taken/letter.txt").toStdString()), std::string("dear"));
        QVERIFY(!QFile::exists(in("a")) && !QFile::exists(in("b")));
    }

    /// Without a folder it goes to the user's cache, named after the code; the same code goes to the same place.
    void namedAfterItsCode() {
        const QByteArray kept = qgetenv("XDG_CACHE_HOME");
        qputenv("XDG_CACHE_HOME", in("cache").toUtf8());
        std::vector<std::string> folders;
        for (const char* op : {"relu", "relu", "neg"}) {
            Session session;
            const QString text = "def forward(x: \"f32[4]\"):\n    a = aten.%1.default(x)\n    return (a,)\n";
            QVERIFY(session.open(written("coded.py", text.arg(op).toUtf8().constData()).toStdString()));
            const auto report = exportProgram(session, *session.compile({}), {});
            QVERIFY(report && report->folder.starts_with(m_folder.path().toStdString() + "/cache/cutaway/exports/c"));
            folders.push_back(report->folder);
        }
        kept.isNull() ? qunsetenv("XDG_CACHE_HOME") : qputenv("XDG_CACHE_HOME", kept);
        QVERIFY(folders[0] == folders[1] && folders[1] != folders[2]);
    }

    /// An earlier export that cannot be replaced is as it was, whichever file cannot be written.
    void aFailureLeavesTheEarlierExport() {
        const QString other = written("other.py",
                                      "def forward(x: \"f32[4]\"):\n    a = aten.cumsum.default(x, 0)\n"
                                      "    return (a,)\n");
        QVERIFY(QDir().mkpath(in("earlier/.cutaway-export/made")));  // of one that was killed
        QVERIFY(exported(
            written("earlier.py", "def forward(x: \"f32[4]\"):\n    a = aten.relu.default(x)\n    return (a,)\n"),
            "earlier"));
        for (const QString file : {"CMakeLists.txt", "weights.safetensors"}) {
            QVERIFY(QFile::rename(in("earlier/" + file), in("kept")));
            QVERIFY(QDir().mkpath(in("earlier/" + file + "/in the way")));
            const QMap<QString, QByteArray> before = contents(in("earlier"));
            const auto report = exported(other, "earlier");
            QVERIFY(!report);
            QVERIFY2(QString::fromStdString(report.error().text()).contains("earlier/" + file + ": cannot write"),
                     report.error().text().c_str());
            const QMap<QString, QByteArray> after = contents(in("earlier"));
            QCOMPARE(after.keys(), before.keys());
            QVERIFY(after == before);
            QVERIFY(QDir(in("earlier/" + file)).removeRecursively());
            QVERIFY(QFile::rename(in("kept"), in("earlier/" + file)));
        }
        QVERIFY(exported(other, "earlier"));
        const QMap<QString, QByteArray> replaced = contents(in("earlier"));
        QVERIFY(replaced.contains("src/engine/runtime/portable/scan.cpp"));
        QVERIFY(!replaced.contains("src/engine/runtime/libraries/onednn.cpp"));
        QVERIFY(!replaced.contains(".cutaway-export"));
    }

    /// An earlier export is replaced, sources that are no longer its own go.
    void replaces() {
        const QString model =
            written("replaced.py", "def forward(x: \"f32[4]\"):\n    a = aten.relu.default(x)\n    return (a,)\n");
        QVERIFY(exported(CUTAWAY_SOURCE_DIR "/resources/models/tiny_resnet.pt2", "twice"));
        QVERIFY(QFile::exists(in("twice/src/engine/runtime/libraries/onednn.cpp")));
        const auto report = exported(model, "twice");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        QVERIFY(!QFile::exists(in("twice/src/engine/runtime/libraries/onednn.cpp")));
        const QByteArray cmake =
            QByteArray::fromStdString(*cutaway::readFile(in("twice/CMakeLists.txt").toStdString()));
        QVERIFY2(!cmake.contains("dnnl"), cmake.constData());
        // What makes exports is not part of one.
        QVERIFY(QFile::exists(in("twice/src/engine/runtime/exported")));
        QVERIFY(!QFile::exists(in("twice/src/engine/exporting")));
    }
};

CUTAWAY_SUITE(ExportTest)
#include "export_test.moc"
