// Weights of exported programs: beside the library, in it, or left out; and other ones for a program that is open.
#include <dlfcn.h>

#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/export.h"
#include "engine/formats/safetensors.h"
#include "engine/runtime/exported/processor_needs.h"
#include "engine/runtime/exported/program.h"
#include "engine/runtime/exported/tensor_file.h"
#include "engine/support/files.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

/// A scalar, a short vector, a matrix that a library packs, and a buffer that is written to.
constexpr const char* kModel = R"(ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, p_scale: "f32[]", p_layer_bias: "f32[4]", p_layer_weight: "f32[32, 4]", b_count: "f32[]", x: "f32[64, 32]"):
            addmm: "f32[64, 4]" = torch.ops.aten.addmm.default(p_layer_bias, x, p_layer_weight)
            mul: "f32[64, 4]" = torch.ops.aten.mul.Tensor(addmm, p_scale)
            add: "f32[]" = torch.ops.aten.add.Tensor(b_count, 1)
            return (add, mul)

Graph signature:
    # inputs
    p_scale: PARAMETER target='scale'
    p_layer_bias: PARAMETER target='layer.bias'
    p_layer_weight: PARAMETER target='layer.weight'
    b_count: BUFFER target='count' persistent=True
    x: USER_INPUT

    # outputs
    add: BUFFER_MUTATION target='count'
    mul: USER_OUTPUT

Range constraints: {}
)";

/// The library of an exported folder, by the functions of its header.
class Opened {
  public:
    explicit Opened(const std::string& path) : m_library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!m_library) qFatal("%s", ::dlerror());
    }
    ~Opened() {
        if (m_context) call<void(CtContext*)>("release")(m_context);
        if (m_program) call<void(CtProgram*)>("close")(m_program);
        ::dlclose(m_library);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    template <class Function>
    Function* call(const char* name) const {
        return reinterpret_cast<Function*>(::dlsym(m_library, (std::string("model_") + name).c_str()));
    }
    bool open(const char* weights) {
        m_program = call<CtProgram*(const char*)>("open")(weights);
        if (m_program) m_context = call<CtContext*(CtProgram*, const CtParallel*)>("context")(m_program, nullptr);
        return m_program;
    }
    QString error() const { return call<const char*()>("error")(); }
    QString update(const std::vector<std::pair<std::string, CtTensor>>& weights, int how) {
        std::vector<const char*> names;
        std::vector<CtTensor> tensors;
        for (const auto& [name, tensor] : weights) {
            names.push_back(name.c_str());
            tensors.push_back(tensor);
        }
        const int status = call<int32_t(CtProgram*, const char* const*, const CtTensor*, int32_t, int32_t)>("update")(
            m_program, names.data(), tensors.data(), static_cast<int32_t>(names.size()), how);
        return status == 0 ? QString() : error();
    }
    QString swap() const { return call<int32_t(CtProgram*)>("swap")(m_program) == 0 ? QString() : error(); }
    CtTensor weight(const char* name) const {
        CtTensor tensor{};
        if (call<int32_t(CtProgram*, const char*, CtTensor*)>("weight")(m_program, name, &tensor) != 0)
            qFatal("%s", qPrintable(error()));
        return tensor;
    }
    /// The first row of the result for an input of ones; empty: the run failed.
    std::vector<float> run(QString* why = nullptr) {
        std::vector<float> x(64 * 32, 1.0f);
        const int64_t sizes[] = {64, 32}, strides[] = {32, 1};
        const CtTensor in{x.data(), CT_F32, 2, sizes, strides};
        CtTensor out[2] = {};
        if (call<int32_t(CtContext*, const CtTensor*, CtTensor*)>("run")(m_context, &in, out) != 0) {
            if (why) *why = call<const char*(const CtContext*)>("context_error")(m_context);
            return {};
        }
        const CtTensor& made = out[call<const CtProgramInfo*()>("info")()->outputCount - 1];
        const auto* const data = static_cast<const float*>(made.data);
        return {data, data + 4};
    }

  private:
    void* m_library;
    CtProgram* m_program = nullptr;
    CtContext* m_context = nullptr;
};

struct Given {
    std::vector<float> scale, bias, weight;
    std::vector<std::pair<std::string, CtTensor>> named(bool original) const {
        static const int64_t sizes[] = {32, 4}, strides[] = {4, 1}, one[] = {1}, four[] = {4};
        const auto data = [](const std::vector<float>& all) { return const_cast<float*>(all.data()); };
        std::vector<std::pair<std::string, CtTensor>> all;
        if (!scale.empty()) all.push_back({original ? "scale" : "p_scale", {data(scale), CT_F32, 0, nullptr, nullptr}});
        if (!bias.empty())
            all.push_back({original ? "layer.bias" : "p_layer_bias", {data(bias), CT_F32, 1, four, one}});
        if (!weight.empty())
            all.push_back({original ? "layer.weight" : "p_layer_weight", {data(weight), CT_F32, 2, sizes, strides}});
        return all;
    }
};

}  // namespace

class ExportedWeightsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    QString in(const QString& name) const { return m_folder.filePath(name); }
    std::string exported(const QString& to, const char* weights) {
        const std::string path = in("model.txt").toStdString();
        if (!cutaway::writeFile(path, kModel)) qFatal("cannot write");
        Session session;
        if (const auto opened = session.open(path); !opened) qFatal("%s", opened.error().text().c_str());
        ExportOptions options;
        options.folder = in(to).toStdString();
        options.name = "model";
        options.weights = weights;
        const auto report = exportProgram(session, *session.compile({}), options);
        if (!report) qFatal("%s", report.error().text().c_str());
        return report->library;
    }
    static std::vector<float> wanted(const Given& given) {
        std::vector<float> all(4);
        for (size_t j = 0; j < 4; ++j) {
            float sum = 0;
            for (size_t i = 0; i < 32; ++i) sum += given.weight[4 * i + j];
            all[j] = (sum + given.bias[j]) * given.scale[0];
        }
        return all;
    }
    static bool near(const std::vector<float>& a, const std::vector<float>& b) {
        bool same = a.size() == b.size();
        for (size_t i = 0; same && i < a.size(); ++i) same = std::fabs(a[i] - b[i]) < 1e-4f;
        return same;
    }

  private slots:
    void places_data() {
        QTest::addColumn<QString>("place");
        QTest::addColumn<bool>("named");  // the file is named, or none
        QTest::addColumn<QString>("file");
        QTest::newRow("beside") << "beside" << true << "weights.safetensors";
        QTest::newRow("embedded") << "embedded" << false << "src/weights.safetensors";
        QTest::newRow("embedded, and others named") << "embedded" << true << "src/weights.safetensors";
        QTest::newRow("none") << "none" << false << "";
        QTest::newRow("embedded by clang++") << "embedded" << false << "src/weights.safetensors";
    }
    /// The same weights give the same results wherever they are; all or some of them can be others from then on.
    void places() {
        QFETCH(QString, place);
        QFETCH(bool, named);
        QFETCH(QString, file);
        const bool clang = QString(QTest::currentDataTag()).contains("clang++");
        if (clang && QStandardPaths::findExecutable("clang++").isEmpty()) QSKIP("there is no clang++");
        const QByteArray kept = qgetenv("CXX");
        if (clang) qputenv("CXX", "clang++");
        const std::string library = exported(place, place.toUtf8().constData());
        kept.isNull() ? qunsetenv("CXX") : qputenv("CXX", kept);
        QCOMPARE(QFile::exists(in(place + "/weights.safetensors")), file == "weights.safetensors");
        QCOMPARE(QFile::exists(in(place + "/src/weights.safetensors")), file.startsWith("src/"));
        Opened model(library);
        const QByteArray path = in(place + "/" + file).toUtf8();
        QVERIFY2(model.open(named ? path.constData() : nullptr), qPrintable(model.error()));
        Given given{{0.5f}, {1, 2, 3, 4}, std::vector<float>(128, 0.25f)};
        if (file.isEmpty()) {
            QString why;
            QVERIFY(model.run(&why).empty());
            QCOMPARE(why, QString("weight 'p_scale' has not been given"));
            const float zero = 0;
            auto all = given.named(true);
            all.push_back({"count", {const_cast<float*>(&zero), CT_F32, 0, nullptr, nullptr}});
            QCOMPARE(model.update(all, CT_ALL), QString());
        } else {
            for (const auto& [name, values] : {std::pair("p_scale", &given.scale),
                                               {"p_layer_bias", &given.bias},
                                               {"p_layer_weight", &given.weight}}) {
                const CtTensor held = model.weight(name);
                values->assign(static_cast<const float*>(held.data),
                               static_cast<const float*>(held.data) + values->size());
            }
        }
        QVERIFY(near(model.run(), wanted(given)));
        // Some: a scalar, a short vector, a matrix that was packed.
        for (int which = 0; which < 3; ++which) {
            Given some{{7}, {4, 3, 2, 1}, std::vector<float>(128, -0.5f)};
            if (which != 0) some.scale.clear();
            else given.scale = some.scale;
            if (which != 1) some.bias.clear();
            else given.bias = some.bias;
            if (which != 2) some.weight.clear();
            else given.weight = some.weight;
            QCOMPARE(model.update(some.named(which == 1), 0), QString());
            QVERIFY(near(model.run(), wanted(given)));
        }
    }

    void updates_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("dtype");
        QTest::addColumn<int>("size");
        QTest::addColumn<int>("how");
        QTest::addColumn<QString>("says");
        QTest::newRow("good") << "layer.bias" << int(CT_F32) << 4 << 0 << "";
        QTest::newRow("lent") << "p_layer_bias" << int(CT_F32) << 4 << int(CT_LENT) << "";
        QTest::newRow("no such name") << "layer.bais" << int(CT_F32) << 4 << 0
                                      << "the program has no weight 'layer.bais'";
        QTest::newRow("other sizes") << "layer.bias" << int(CT_F32) << 5 << 0
                                     << "weight 'layer.bias' must be f32[4], not f32[5]";
        QTest::newRow("another dtype") << "layer.bias" << int(CT_F64) << 4 << 0
                                       << "weight 'layer.bias' must be f32[4], not f64[4]";
        QTest::newRow("not all") << "layer.bias" << int(CT_F32) << 4 << int(CT_ALL)
                                 << "all weights are to be given, and 'p_scale' is not";
    }
    /// What does not fit changes nothing.
    void updates() {
        QFETCH(QString, name);
        QFETCH(int, dtype);
        QFETCH(int, size);
        QFETCH(int, how);
        QFETCH(QString, says);
        static const std::string library = exported("updated", "embedded");
        Opened model(library);
        QVERIFY2(model.open(nullptr), qPrintable(model.error()));
        const std::vector<float> before = model.run();
        double memory[5] = {};
        const int64_t sizes[] = {size}, strides[] = {1};
        const CtTensor tensor{memory, dtype, 1, sizes, strides};
        QCOMPARE(model.update({{name.toStdString(), tensor}}, how), says);
        QCOMPARE(model.run() == before, !says.isEmpty());
        const bool lent = model.weight("layer.bias").data == memory;
        QCOMPARE(lent, says.isEmpty() && (how & CT_LENT) != 0);
    }

    /// Others are made ready beside those that run, and brought in at once; a swap brings the first back.
    void swaps() {
        Opened model(exported("swapped", "embedded"));
        QVERIFY(model.open(nullptr));
        QVERIFY2(model.swap().contains("give them with CT_NEXT first"), qPrintable(model.swap()));
        const std::vector<float> before = model.run();
        const Given given{{0}, {}, {}};
        QCOMPARE(model.update(given.named(false), CT_NEXT), QString());
        QVERIFY(model.run() == before);
        QCOMPARE(model.swap(), QString());
        QVERIFY(near(model.run(), {0, 0, 0, 0}));
        QCOMPARE(model.swap(), QString());
        QVERIFY(model.run() == before);
    }

    void forms_data() {
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("weights");
        QTest::addColumn<bool>("debug");
        QTest::addColumn<QString>("says");  // the manifest, or the refusal
        QTest::newRow("as it is") << ""
                                  << "" << false << "\"target\": \"native\"";
        QTest::newRow("debug") << ""
                               << "" << true << "\"processor\": \"a processor like the one that compiled it, with ";
#if defined(__x86_64__)
        for (const char* target : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
            QTest::newRow(target) << target << "" << false
                                  << "\"processor\": \"every processor of " + QString(target) + "\"";
#endif
        QTest::newRow("no target") << "x86-64-v9"
                                   << "" << false << "the target 'x86-64-v9' is not known";
        QTest::newRow("no place") << ""
                                  << "inside" << false << "the place of the weights 'inside' is not known";
    }
    void forms() {
        QFETCH(QString, target);
        QFETCH(QString, weights);
        QFETCH(bool, debug);
        QFETCH(QString, says);
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"));
        ExportOptions options;
        options.folder = in("form").toStdString();
        options.name = "model";
        options.target = target.toStdString();
        options.weights = weights.toStdString();
        options.debug = debug;
        const auto report = exportProgram(session, *session.compile({}), options);
        if (!report) {
            QVERIFY2(QString::fromStdString(report.error().text()).contains(says), report.error().text().c_str());
            return;
        }
        const std::string manifest = *cutaway::readFile(in("form/manifest.json").toStdString());
        QVERIFY2(manifest.find(says.toStdString()) != std::string::npos, manifest.c_str());
        // Files are where they lie now, for whoever steps through them.
        const std::string library = *cutaway::readFile(report->library);
        QCOMPARE(library.find(options.folder + "/src/kernels0.cpp") != std::string::npos, debug);
        // Where it runs, it runs; where not, it says what is missing.
        const std::string cmake = *cutaway::readFile(in("form/CMakeLists.txt").toStdString());
        QVERIFY(cmake.find("-march=" + (target.isEmpty() ? "native" : target.toStdString())) != std::string::npos);
        Opened model(report->library);
        const bool opened = model.open(in("form/weights.safetensors").toUtf8().constData());
        QVERIFY2(opened || model.error().contains("this processor has no avx512"), qPrintable(model.error()));
    }

    void processors_data() {
        QTest::addColumn<QByteArrayList>("needs");
        QTest::addColumn<QString>("lacking");
        QTest::newRow("nothing") << QByteArrayList{} << "";
        QTest::newRow("what no processor has") << QByteArrayList{"avx9"} << "avx9";
        QTest::newRow("several") << QByteArrayList{"avx9", "sse99"} << "avx9, sse99";
#if defined(__x86_64__)
        QTest::newRow("what each has") << QByteArrayList{"sse3"} << "";
#endif
    }
    void processors() {
        QFETCH(QByteArrayList, needs);
        QFETCH(QString, lacking);
        std::vector<const char*> all;
        for (const QByteArray& need : needs) all.push_back(need.constData());
        all.push_back(nullptr);
        QCOMPARE(QString::fromStdString(ct::lackingOf(all.data())), lacking);
    }
};

CUTAWAY_SUITE(ExportedWeightsTest)
#include "exported_weights_test.moc"
