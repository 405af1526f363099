// The files of an export: names, checksums that whoever opens it checks, archives, weights, and what a kill leaves.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "cutaway/export.h"
#include "engine/exporting/export_folder.h"
#include "engine/formats/open.h"
#include "engine/formats/safetensors.h"
#include "engine/runtime/exported/manifest.h"
#include "engine/runtime/exported/tensor_file.h"
#include "engine/support/files.h"
#include "engine/support/sha256.h"
#include "tests/support/paths.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {

constexpr const char* kMlp = CUTAWAY_SOURCE_DIR "/resources/models/mlp.pt2";

}  // namespace

class ExportedFilesTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    QString in(const QString& name) const { return m_folder.filePath(name); }
    Result<ExportReport> exported(const QString& to, const QString& name = {}) const {
        Session session;
        CT_TRY_VOID(session.open(kMlp));
        CT_TRY(const RunId id, session.compile({}));
        ExportOptions options;
        options.folder = in(to).toStdString();
        options.name = name.toStdString();
        return exportProgram(session, id, options);
    }
    void write(const QString& name, const std::string& text) const {
        if (!cutaway::writeFile(in(name).toStdString(), text)) qFatal("cannot write");
    }

  private slots:
    void sums_data() {
        QTest::addColumn<int>("letters");
        QTest::addColumn<QString>("sum");
        QTest::newRow("none") << 0 << "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        QTest::newRow("one") << 1 << "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        QTest::newRow("a block but for its length")
            << 55 << "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318";
        QTest::newRow("a block and its length")
            << 56 << "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a";
        QTest::newRow("a block") << 64 << "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb";
        QTest::newRow("a million") << 1'000'000 << "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    }
    /// As sha256sum has them, whatever parts the bytes come in.
    void sums() {
        QFETCH(int, letters);
        QFETCH(QString, sum);
        const std::string text(static_cast<size_t>(letters), 'a');
        QCOMPARE(QString::fromStdString(sha256(text.data(), text.size())), sum);
        Sha256 parts;
        for (size_t at = 0, part = 1; at < text.size(); at += part, part = part % 131 + 7)
            parts.add(text.data() + at, std::min(part, text.size() - at));
        QCOMPARE(QString::fromStdString(parts.hex()), sum);
    }

    void damages_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("by");  // "-": it goes
        QTest::addColumn<QString>("says");
        QTest::newRow("as it was made") << ""
                                        << ""
                                        << "";
        QTest::newRow("weights") << "weights.safetensors"
                                 << "?"
                                 << "weights.safetensors was changed";
        QTest::newRow("a source") << "src/host.cpp"
                                  << "?"
                                  << "src/host.cpp was changed";
        QTest::newRow("no library") << "libmlp.so"
                                    << "-"
                                    << "libmlp.so is missing";
        QTest::newRow("a file of somebody's own") << "notes.txt"
                                                  << "mine"
                                                  << "";
    }
    /// Whoever opens the folder, or the archive, learns what is other than it was made.
    void damages() {
        QFETCH(QString, file);
        QFETCH(QString, by);
        QFETCH(QString, says);
        const auto report = exported("damaged");
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        if (by == "-") QVERIFY(QFile::remove(in("damaged/" + file)));
        else if (!file.isEmpty()) write("damaged/" + file, by.toStdString());
        const auto opened = openFile(in("damaged").toStdString());
        if (says.isEmpty()) {
            QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
            QVERIFY(opened->format == FileFormat::Exported);
            QVERIFY2(opened->description.find("exported program 'mlp' of mlp.pt2") == 0, opened->description.c_str());
        } else {
            QVERIFY(!opened);
            QVERIFY2(QString::fromStdString(opened.error().text()).contains(says), opened.error().text().c_str());
        }
        QVERIFY(QDir(in("damaged")).removeRecursively());
    }

    void checked_data() {
        QTest::addColumn<QString>("manifest");
        QTest::addColumn<QString>("says");
        const QString sum = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        QTest::newRow("none") << ""
                              << "";
        QTest::newRow("right") << "{\"files\": [1, \"a\", {}], \"x\": -1.5e3, \"checksums\": {\"w\": \"" + sum + "\"}}"
                               << "";
        QTest::newRow("wrong") << "{\"checksums\": {\"w\": \"00\"}}"
                               << "copy the folder again";
        QTest::newRow("of others") << "{\"checksums\": {\"v\": \"00\"}}"
                                   << "";
        QTest::newRow("without") << "{\"a\": [[], {\"b\": null}], \"c\": true}"
                                 << "";
        QTest::newRow("cut off") << "{\"checksums\": {\"w\": \"00\""
                                 << "manifest.json: it holds no JSON";
        QTest::newRow("another kind") << "{\"checksums\": [1]}"
                                      << "manifest.json: it holds no JSON";
    }
    /// What a program that is opened reads of the manifest beside its weights.
    void checked() {
        QFETCH(QString, manifest);
        QFETCH(QString, says);
        QFile::remove(in("manifest.json"));
        if (!manifest.isEmpty()) write("manifest.json", manifest.toStdString());
        QString said;
        try {
            ct::checkBytes(in("w").toStdString(), "a", 1);
        } catch (const std::exception& error) {
            said = error.what();
        }
        QVERIFY2(says.isEmpty() ? said.isEmpty() : said.contains(says), qPrintable(said));
    }

    /// One file, opened as what it is; it replaces an earlier one, and nothing else.
    void archives() {
        for (int time = 0; time < 2; ++time) {
            const auto report = exported("model.zip");
            QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
            QCOMPARE(report->library, std::string("mlp/libmlp.so"));
            const auto opened = openFile(in("model.zip").toStdString());
            QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
            QVERIFY(opened->format == FileFormat::Exported);
            QCOMPARE(QDir(m_folder.path()).entryList({"model.zip*"}), QStringList{"model.zip"});
        }
        write("mine.zip", "a letter");
        const auto refused = exported("mine.zip");
        QVERIFY(!refused);
        QVERIFY2(refused.error().text().find("the file is not an export") != std::string::npos,
                 refused.error().text().c_str());
        QCOMPARE(*cutaway::readFile(in("mine.zip").toStdString()), std::string("a letter"));
        // A byte of the weights.
        QFile file(in("model.zip"));
        QVERIFY(file.open(QIODevice::ReadWrite));
        const qint64 at = file.readAll().lastIndexOf("data_offsets") + 200;
        QVERIFY(file.seek(at) && file.putChar('?'));
        file.close();
        QVERIFY(!openFile(in("model.zip").toStdString()));
    }

    void kills_data() {
        QTest::addColumn<QString>("to");
        QTest::newRow("a new folder") << "killed";
        QTest::newRow("an earlier export") << "replaced";
        QTest::newRow("an archive") << "killed.zip";
    }
    /// Whenever an export is killed, there is nothing under its name, or all of it. CUTAWAY_KILLS: how often.
    void kills() {
        QFETCH(QString, to);
        const int kills = std::max(8, qEnvironmentVariableIntValue("CUTAWAY_KILLS"));
        const auto begin = [&](QProcess& process) {
            process.start(testing::builtProgram("cutaway-cli"),
                          {"export", kMlp, "-o", in(to), "--json", in("report.json")});
        };
        QElapsedTimer timer;
        timer.start();
        QProcess whole;
        begin(whole);
        QVERIFY(whole.waitForFinished(120'000));
        QVERIFY2(whole.exitCode() == 0, whole.readAllStandardError().constData());
        const qint64 lasts = timer.elapsed();
        int killed = 0;
        for (int i = 0; i < kills; ++i) {
            if (to == "killed") QDir(in(to)).removeRecursively();
            QProcess process;
            begin(process);
            // Most of them near the end, when files are put in place.
            const qint64 wait = i % 2 == 0 ? lasts * i / kills : lasts * (80 + 25 * i / kills) / 100;
            if (!process.waitForFinished(static_cast<int>(wait))) {
                process.kill();
                process.waitForFinished();
                ++killed;
            }
            if (!QFileInfo::exists(in(to))) continue;
            const auto opened = openFile(in(to).toStdString());
            QVERIFY2(opened.has_value(), opened ? "" : opened.error().text().c_str());
        }
        QVERIFY(killed > 0);
        const auto report = exported(to);
        QVERIFY2(report.has_value(), report ? "" : report.error().text().c_str());
        // Nothing of the killed ones is left beside it.
        const QStringList left =
            QDir(m_folder.path()).entryList({"." + to + "*", to + ".*"}, QDir::AllEntries | QDir::Hidden);
        QCOMPARE(left.filter("cutaway-export"), QStringList{});
    }

    /// A folder that cannot be filled is as it was: another export may go there.
    void aFullFolderIsLeft() {
        QVERIFY(QDir().mkpath(in("half/model.h/in the way")));  // no file can take its place
        write("half/manifest.json", "{}");
        const auto report = exported("half", "model");
        QVERIFY(!report);
        QVERIFY2(QString::fromStdString(report.error().text()).contains("half/model.h: cannot write"),
                 report.error().text().c_str());
        QCOMPARE(QDir(in("half")).entryList(QDir::AllEntries | QDir::NoDotAndDotDot),
                 (QStringList{"manifest.json", "model.h"}));
        QVERIFY(QDir(in("half/model.h")).removeRecursively());
        QVERIFY(exported("half", "model"));
    }

    void systemNames_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"m", "c", "M", "pthread", "dnnl"}) QTest::newRow(name) << name;
    }
    void systemNames() {
        QFETCH(QString, name);
        const auto refused = exported("named", name);
        QVERIFY(!refused);
        QVERIFY2(QString::fromStdString(refused.error().text()).contains("is a library of the system"),
                 refused.error().text().c_str());
        QVERIFY(!QFile::exists(in("named")));
    }

    void names_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("name");
        QTest::newRow("plain") << "/a/resnet50.pt2"
                               << "resnet50";
        QTest::newRow("letters") << "ResNet-50 (final).pt2"
                                 << "resnet_50_final";
        QTest::newRow("each end") << "Az09.pt2"
                                  << "az09";
        QTest::newRow("zero first") << "0shot.pt2"
                                    << "model_0shot";
        QTest::newRow("digits first") << "2d.pt2"
                                      << "model_2d";
        QTest::newRow("nothing left") << "…"
                                      << "model";
        QTest::newRow("quotes") << "a\"; int x; #.pt2"
                                << "a_int_x";
    }
    void names() {
        QFETCH(QString, file);
        QFETCH(QString, name);
        QCOMPARE(QString::fromStdString(exportNameOf(file.toStdString())), name);
    }

    /// The reader of weights in an exported program meets files of anybody.
    void damagedFiles_data() {
        QTest::addColumn<QByteArray>("header");
        QTest::addColumn<qint64>("claimed");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const QByteArray& header, const char* says, qint64 claimed = -1) {
            QTest::newRow(name) << header << (claimed < 0 ? header.size() : claimed) << says;
        };
        row("no JSON", "{\"a\":", "no JSON of safetensors");
        row("a longer header", "{}", "longer than the file", 1'000'000);
        row("a huge header", "{}", "longer than the file", std::numeric_limits<qint64>::max());
        row("other offsets", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "does not lie where");
        row("behind the end", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "does not lie where");
        row("a product that overflows", R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
            "does not lie where");
        row("a number that overflows", R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})",
            "no JSON of safetensors");
        row("another dtype", R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", "which no program reads");
        row("good", R"({"__metadata__":{"a":"\u00e9\n"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "");
    }
    void damagedFiles() {
        QFETCH(QByteArray, header);
        QFETCH(qint64, claimed);
        QFETCH(QString, says);
        QByteArray bytes(8, 0);
        std::memcpy(bytes.data(), &claimed, 8);
        bytes += header + QByteArray(8, 1);
        QVERIFY(cutaway::writeFile(in("damaged.safetensors").toStdString(), bytes.toStdString()));
        QString said;
        try {
            const ct::TensorFile file(in("damaged.safetensors").toStdString());
            QCOMPARE(file.count(), size_t{1});
            QCOMPARE(file.find("a")->sizes[0], int64_t{2});
            QVERIFY(file.find("b") == nullptr);
        } catch (const std::exception& error) {
            said = error.what();
        }
        QVERIFY2(says.isEmpty() ? said.isEmpty() : said.contains(says), qPrintable(said));
    }
};

CUTAWAY_SUITE(ExportedFilesTest)
#include "exported_files_test.moc"
