// What stands beside main.c in an export: AOTInductor's verbs, and the examples in C++ and Python.
#include <dlfcn.h>

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <thread>

#include "cutaway/export.h"
#include "engine/runtime/exported/program.h"
#include "engine/runtime/exported/tensor_file.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

struct CtContainer;

/// An exported mlp, by verbs.
class Verbs {
  public:
    explicit Verbs(const std::string& library) : m_library(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!m_library) qFatal("%s", ::dlerror());
    }
    ~Verbs() { ::dlclose(m_library); }
    Verbs(const Verbs&) = delete;
    Verbs& operator=(const Verbs&) = delete;
    template <class... Arguments>
    int32_t operator()(const char* verb, Arguments... arguments) const {
        return reinterpret_cast<int32_t (*)(Arguments...)>(at(std::string("ModelContainer") + verb))(arguments...);
    }
    void* at(const std::string& name) const {
        void* const found = ::dlsym(m_library, ("mlp_" + name).c_str());
        if (!found) qFatal("no %s", name.c_str());
        return found;
    }
    QString error() const { return reinterpret_cast<const char* (*)()>(at("error"))(); }

  private:
    void* m_library;
};

}  // namespace

class ExportedVerbsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string m_library;

    QString in(const QString& name) const { return m_folder.filePath(name); }

  private slots:
    void initTestCase() {
        Session session;
        QVERIFY(session.open(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2"));
        ExportOptions options;
        options.folder = in("mlp").toStdString();
        options.weights = "embedded";
        const auto report = exportProgram(session, *session.compile({}), options);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        m_library = report->library;
    }

    void containers_data() {
        QTest::addColumn<int>("count");
        QTest::addColumn<QString>("device");
        QTest::addColumn<QString>("says");
        QTest::newRow("one") << 1 << "cpu"
                             << "";
        QTest::newRow("several") << 3 << "cpu:0"
                                 << "";
        QTest::newRow("none") << 0 << "cpu"
                              << "a container of no models cannot run";
        QTest::newRow("elsewhere") << 1 << "cuda:1"
                                   << "the program runs on the CPU, not on cuda:1";
    }
    /// Ten threads at once give what one gives, whatever the number of models.
    void containers() {
        QFETCH(int, count);
        QFETCH(QString, device);
        QFETCH(QString, says);
        const Verbs verb(m_library);
        CtContainer* container = nullptr;
        const QByteArray where = device.toUtf8();
        const int32_t status = verb("CreateWithDevice", &container, static_cast<size_t>(count), where.constData(),
                                    static_cast<const char*>(nullptr));
        QCOMPARE(status != 0, !says.isEmpty());
        if (status != 0) {
            QCOMPARE(verb.error(), says);
            return;
        }
        const ct::TensorFile inputs(in("mlp/inputs.safetensors").toStdString());
        const CtTensor x = inputs.tensor(0);
        const auto drop = reinterpret_cast<void (*)(CtTensor*)>(verb.at("TensorDelete"));
        const auto run = [&](const char* how) {
            CtTensor out{};
            if (verb(how, container, &x, size_t{1}, &out, size_t{1}) != 0) return std::vector<float>{};
            const auto* const data = static_cast<const float*>(out.data);
            std::vector<float> all(data, data + out.sizes[0] * out.sizes[1]);
            drop(&out);
            return all;
        };
        const std::vector<float> wanted = run("Run");
        QVERIFY(!wanted.empty());
        QVERIFY(run("RunSingleThreaded") == wanted);
        std::atomic<int> wrong{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 10; ++i)
            threads.emplace_back([&] {
                for (int n = 0; n < 20; ++n) wrong += run("Run") != wanted;
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(wrong.load(), 0);
        CtTensor out{};
        QVERIFY(verb("Run", container, &x, size_t{2}, &out, size_t{1}) != 0);
        QCOMPARE(verb.error(), QString("the program takes 1 inputs and gives 1 outputs"));
        QCOMPARE(verb("Delete", container), 0);
    }

    /// Names, sizes, and other weights by the verbs.
    void constants() {
        const Verbs verb(m_library);
        CtContainer* container = nullptr;
        QCOMPARE(verb("Create", &container, size_t{1}, int32_t{1}, static_cast<const char*>(nullptr)), 0);
        size_t count = 0;
        QCOMPARE(verb("GetNumConstants", container, &count), 0);
        std::vector<CtTensor> held(count);
        QCOMPARE(verb("ExtractConstantsMap", container, held.data(), int32_t{0}), 0);
        uint64_t blob = 0, least = 0;
        std::vector<std::vector<float>> zeros;
        std::vector<const char*> names;
        std::vector<CtTensor> tensors;
        for (size_t i = 0; i < count; ++i) {
            const char *name = nullptr, *original = nullptr;
            size_t bytes = 0;
            int32_t folded = 1, dtype = -1;
            QCOMPARE(verb("GetConstantName", container, i, &name), 0);
            QCOMPARE(verb("GetConstantOriginalFQN", container, i, &original), 0);
            QCOMPARE(verb("GetConstantDataSize", container, i, &bytes), 0);
            QCOMPARE(verb("GetConstantFromFolded", container, i, &folded), 0);
            QCOMPARE(verb("GetConstantDtype", container, i, &dtype), 0);
            QCOMPARE(folded, 0);
            QCOMPARE(dtype, int32_t{CT_F32});
            QCOMPARE(QString(name), "p_" + QString(original).replace('.', '_'));
            least += bytes;
            zeros.emplace_back(bytes / 4);
            names.push_back(original);
            tensors.push_back(held[i]);
            tensors.back().data = zeros.back().data();
        }
        QCOMPARE(verb("GetConstantsBlobSize", container, &blob), 0);
        QVERIFY(blob >= least);
        const char* none = nullptr;
        QVERIFY(verb("GetConstantName", container, count, &none) != 0);
        const auto data = [&] {
            if (verb("ExtractConstantsMap", container, held.data(), int32_t{0}) != 0)
                qFatal("%s", qPrintable(verb.error()));
            return static_cast<const float*>(held[0].data)[0];
        };
        const float before = data();
        QVERIFY(verb("SwapConstantBuffer", container) != 0);
        QCOMPARE(verb("UpdateInactiveConstantBuffer", container, names.data(), tensors.data(), count), 0);
        QCOMPARE(data(), before);
        QCOMPARE(verb("SwapConstantBuffer", container), 0);
        QCOMPARE(data(), 0.0f);
        QCOMPARE(verb("SwapConstantBuffer", container), 0);
        QCOMPARE(data(), before);
        QCOMPARE(verb("FreeInactiveConstantBuffer", container), 0);
        QVERIFY(verb("UpdateConstantBuffer", container, names.data(), tensors.data(), size_t{1}, int32_t{0},
                     int32_t{1}) != 0);
        QCOMPARE(verb("UpdateUserManagedConstantBufferPairs", container, names.data(), tensors.data(), count,
                      int32_t{0}, int32_t{1}),
                 0);
        QCOMPARE(data(), 0.0f);
        QVERIFY(held[0].data == zeros[0].data());
        QCOMPARE(verb("RunConstantFolding", container, int32_t{0}), 0);
        QCOMPARE(verb("Delete", container), 0);
    }

    void examples_data() {
        QTest::addColumn<QStringList>("build");
        QTest::addColumn<QStringList>("run");
        QTest::newRow("C++") << QStringList{"c++",     "-std=c++17", "-Wall",
                                            "-Wextra", "-Werror",    "example.cpp",
                                            "-L.",     "-lmlp",      "-Wl,-rpath,$ORIGIN",
                                            "-o",      "example"}
                             << QStringList{"./example"};
        QTest::newRow("Python") << QStringList{"python3", "-c", "import numpy"} << QStringList{"python3", "example.py"};
    }
    void examples() {
        QFETCH(QStringList, build);
        QFETCH(QStringList, run);
        const auto done = [&](QStringList command, QString* out) {
            QProcess process;
            process.setWorkingDirectory(in("mlp"));
            process.start(command.takeFirst(), command);
            const bool ended = process.waitForFinished(120'000) && process.exitStatus() == QProcess::NormalExit;
            *out = QString::fromUtf8(process.readAllStandardOutput() + process.readAllStandardError());
            return ended && process.exitCode() == 0;
        };
        QString out;
        const bool built = done(build, &out);
        if (!built && build[0] == "python3") QSKIP("there is no Python with numpy");
        QVERIFY2(built, qPrintable(out));
        QVERIFY2(done(run, &out), qPrintable(out));
        QVERIFY2(out.contains("  first "), qPrintable(out));
    }
};

CUTAWAY_SUITE(ExportedVerbsTest)
#include "exported_verbs_test.moc"
