// What openFile makes of a file's content: the right reader, or a sentence that says what to do instead.
#include "engine/formats/open.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <QtTest>

#include "cutaway/session.h"
#include "engine/formats/safetensors.h"
#include "tests/support/bytes.h"
#include "tests/support/graph_text.h"
#include "tests/support/paths.h"
#include "tests/support/pickle_builder.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"
#include "tests/support/zip_builder.h"

using namespace cutaway;
using namespace cutaway::testing;

class OpenTest : public QObject {
    Q_OBJECT

  private slots:
    void initTestCase() { QVERIFY(m_folder.isValid()); }
    void detects_data();
    void detects();
    void longMarkersAreRefused();
    void opensFilesOnce_data();
    void opensFilesOnce();
    void opensText();
    void opensTensors();
    void opensReferenceTexts_data();
    void opensReferenceTexts();

  private:
    std::string write(const std::string& bytes) {
        QFile file(m_folder.filePath("file"));
        if (!file.open(QIODevice::WriteOnly)) return {};
        file.write(bytes.data(), static_cast<qint64>(bytes.size()));
        return file.fileName().toStdString();
    }
    QTemporaryDir m_folder;
};

namespace {
const std::string kRelu =
    "def forward(x: \"f32[2]\"):\n    relu: \"f32[2]\" = aten.relu.default(x)\n    return (relu,)\n";
}

void OpenTest::detects_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("format");
    QTest::addColumn<QString>("failure");  // without the path; empty = opens
    auto row = [](const char* name, const std::string& bytes, FileFormat format, const char* failure = "") {
        QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size()))
                            << QString::fromStdString(std::string(cutaway::name(format))) << failure;
    };
    row("DET-1", pt2Archive(reluProgram().json()), FileFormat::Pt2);
    row("DET-1, compiled only", pt2Archive("", {{"data/aotinductor/model/x.so", "ELF"}}), FileFormat::CompiledPackage);
    row("DET-1, not finished", pt2Archive("", {{"data/weights/model_weights_config.json", "{}"}}), FileFormat::Pt2,
        "an export that was not finished: models/*.json, the graph, is missing torch.export.save failed after it had "
        "begun to write: look at its error, export again");
    row("DET-2",
        buildZip({{.name = "version", .content = "8.1"},
                  {.name = "serialized_exported_program.json", .content = reluProgram().json()}}),
        FileFormat::Pt2Flat);
    row("DET-3", pickle::archive(pickle::whole("N")), FileFormat::TorchSave);
    row("DET-4, constants", pickle::archive(pickle::whole("N"), {}, {{"constants.pkl", ""}}), FileFormat::TorchScript,
        "a TorchScript archive export the model with torch.export.export and torch.export.save");
    row("DET-4, code", pickle::archive(pickle::whole("N"), {}, {{"code/x.py", ""}}), FileFormat::TorchScript,
        "a TorchScript archive export the model with torch.export.export and torch.export.save");
    row("other zip", buildZip({{.name = "a.txt", .content = "hi"}}), FileFormat::Unknown,
        "a zip archive of an unknown kind Cutaway opens what torch.export.save and torch.save write");
    row("DET-5", std::string("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E.", 16),
        FileFormat::LegacyTorchSave, "a torch.save file from before PyTorch 1.6 load it in PyTorch and save it again");
    row("DET-6", *formatSafeTensors({{{"x", Tensor::zeros(DType::F32, {2})}}, {}}), FileFormat::SafeTensors);
    row("short form", kRelu, FileFormat::FxText);
    row("class",
        "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        relu: \"f32[2]\" = torch.ops.aten.relu.default(x);  x = None\n        return (relu,)\n",
        FileFormat::FxText);
    row("empty", "", FileFormat::Unknown,
        "the content is of no format that Cutaway knows it opens .pt2, torch.save, safetensors, FX text, logs, repro scripts, structured traces and debug folders");
    row("prose", "hello", FileFormat::Unknown,
        "the content is of no format that Cutaway knows it opens .pt2, torch.save, safetensors, FX text, logs, repro scripts, structured traces and debug folders");
}
void OpenTest::detects() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, format);
    QFETCH(QString, failure);
    const std::string path = write(bytes.toStdString());
    const auto known = RecognisedFile::at(path);
    QCOMPARE(failureOf(known), QString());
    QCOMPARE(QString::fromStdString(std::string(name(known->format()))), format);
    const auto file = openFile(path);
    QCOMPARE(failureOf(file), failure.isEmpty() ? QString() : QString::fromStdString(path) + ": " + failure);
    if (file) QVERIFY(file->format == known->format() && file->path == path);
}

/// The words that say what an archive is are few; one that inflates without end is not inflated.
void OpenTest::longMarkersAreRefused() {
    const std::string path =
        write(buildZip({{.name = "m/archive_format", .content = std::string(5000, 'p'), .deflate = true}}));
    const QString failure =
        QString::fromStdString(path) + ": archive_format: 5000 bytes where at most 4096 are expected";
    QCOMPARE(failureOf(RecognisedFile::at(path)), failure);
    QCOMPARE(failureOf(openFile(path)), failure);
}

/// Counts how often files of a folder are opened, as long as it lives.
class Watch {
  public:
    explicit Watch(const QString& folder) : m_queue(::inotify_init1(IN_NONBLOCK)) {
        if (::inotify_add_watch(m_queue, qPrintable(folder), IN_OPEN) < 0)
            qFatal("cannot watch %s", qPrintable(folder));
    }
    ~Watch() { ::close(m_queue); }
    /// By file name; the folder itself has none and is left out.
    QMap<QString, int> opened() const {
        QMap<QString, int> counts;
        alignas(inotify_event) char events[1 << 16];
        for (ssize_t size; (size = ::read(m_queue, events, sizeof events)) > 0;)
            for (ssize_t at = 0; at < size;) {
                const auto* event = reinterpret_cast<const inotify_event*>(events + at);
                if (event->len > 0 && !(event->mask & IN_ISDIR)) ++counts[QString::fromUtf8(event->name)];
                at += static_cast<ssize_t>(sizeof *event + event->len);
            }
        return counts;
    }

  private:
    int m_queue;
};

void OpenTest::opensFilesOnce_data() {
    QTest::addColumn<QString>("graph");
    QTest::addColumn<QString>("what");
    for (const char* what : {"model.pt2", "graph.py", "", "module"}) {
        QTest::addRow("%s: all", what) << "" << what;
        QTest::addRow("%s: a name that is not there", what) << "nosuch" << what;
    }
    QTest::newRow("one of a folder") << "graph.py"
                                     << "";
}
void OpenTest::opensFilesOnce() {
    QFETCH(QString, graph);
    QFETCH(QString, what);
    QTemporaryDir place;
    const auto put = [&](const QString& name, const std::string& text) {
        QFile file(place.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text.data(), qint64(text.size())) > 0);
    };
    QVERIFY(QDir(place.path()).mkdir("module"));
    QVERIFY(QFile::copy(CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2", place.filePath("model.pt2")));
    put("graph.py", kRelu);
    put("notes.txt", "nothing to open");
    put("module/module.py",
        "class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        relu = "
        "torch.ops.aten.relu.default(x)\n        return (relu,)\n");
    const Watch watch(what == "module" ? place.filePath(what) : place.path());
    Session session;
    OpenSettings settings;
    settings.graph = graph.toStdString();
    const auto opened = session.open(place.filePath(what).toStdString(), settings);
    QCOMPARE(opened.has_value(), graph != "nosuch");
    const QMap<QString, int> counts = watch.opened();
    QVERIFY(!counts.isEmpty() || (what.isEmpty() && graph == "nosuch"));
    for (auto at = counts.begin(); at != counts.end(); ++at)
        QVERIFY2(at.value() == 1, qPrintable(QString("%1 is opened %2 times").arg(at.key()).arg(at.value())));
}

void OpenTest::opensText() {
    const auto file = openFile(write(kRelu));
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->graphs.size(), size_t{1});
    QCOMPARE(QString::fromStdString(graphText(*file->graphs[0].module)),
             QString("%x: f32[2]\n%relu: f32[2] = aten.relu.default(%x)\nreturn (%relu)\n"));
    QVERIFY(!openFile(write("def forward(x):\n    return (nothing,)\n")));
}

void OpenTest::opensTensors() {
    const auto file = openFile(write(*formatSafeTensors({{{"x", Tensor::full(DType::I64, {2}, int64_t{7})}}, {}})));
    QCOMPARE(failureOf(file), QString());
    QCOMPARE(file->tensors.at(0).first, std::string("x"));
    QCOMPARE(toInt(file->tensors.at(0).second.item(1)), int64_t{7});
    QVERIFY(failureOf(openFile(m_folder.filePath("none").toStdString()))
                .endsWith("cannot read: No such file or directory"));
}

void OpenTest::opensReferenceTexts_data() {
    QTest::addColumn<QString>("path");
    const QString root = referenceFolder("models");
    if (root.isEmpty()) QTest::newRow("none") << QString();
    for (const QString& model :
         root.isEmpty() ? QStringList() : QDir(root).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
        QTest::newRow(qPrintable(model)) << root + "/" + model + "/export.py";
}
/// The printed text of a program and its archive are the same graph.
void OpenTest::opensReferenceTexts() {
    QFETCH(QString, path);
    if (path.isEmpty()) QSKIP(kNoReference);
    const auto text = openFile(path.toStdString());
    QCOMPARE(failureOf(text), QString());
    QString archivePath = path;
    const auto archive = openFile(archivePath.replace("export.py", "model.pt2").toStdString());
    QCOMPARE(failureOf(archive), QString());
    const Module &fromText = *text->graphs[0].module, &fromArchive = *archive->graphs[0].module;
    QStringList ofText, ofArchive;
    for (auto [module, out] : {std::pair(&fromText, &ofText), std::pair(&fromArchive, &ofArchive)})
        for (const Node& node : module->graph().nodes()) {
            QString line = node.isCall() ? QString::fromStdString(node.op().name()) : QString();
            if (const TensorType* type = node.type().tensor())  // the text leaves strides out (TXT-6)
                line += " " + QString::fromStdString(TensorType::contiguous(type->dtype, type->sizes).text());
            *out << line;
        }
    QCOMPARE(ofText.join('\n'), ofArchive.join('\n'));
}

CUTAWAY_SUITE(OpenTest)
#include "open_test.moc"
