// The zip reader: well-formed archives, every broken field, and random damage.
#include <QtTest>
#include <random>

#include "engine/formats/zip_archive.h"
#include "tests/support/bytes.h"
#include "tests/support/suites.h"
#include "tests/support/zip_builder.h"

using namespace cutaway;
using namespace cutaway::testing;

class ZipTest : public QObject {
    Q_OBJECT

  private slots:
    void readsWhatWasWritten_data();
    void readsWhatWasWritten();
    void storedEntriesAreViews();
    void refuses_data();
    void refuses();
    void torchSaveMayLeaveChecksumsOut();
    void survivesEveryTruncation();
    void survivesDamage();
};

namespace {

std::vector<ZipFile> sampleFiles() {
    std::string binary;
    for (int i = 0; i < 3000; ++i) binary += static_cast<char>(i * 7);
    return {{.name = "m/archive_format", .content = "pt2"},
            {.name = "m/data/weights/weight_0", .content = binary, .localExtra = std::string("FB\x03\0ZZZ", 7)},
            {.name = "m/models/model.json", .content = std::string(5000, 'x'), .deflate = true},
            {.name = "m/empty", .content = ""}};
}

/// Opens and reads every entry: the path any damaged file may take.
QString readAll(const std::string& bytes) {
    const auto archive = ZipArchive::open(storageOf(bytes), "t.zip");
    if (!archive) return failureOf(archive);
    for (const ZipEntry& entry : archive->entries())
        if (const auto content = archive->read(entry); !content) return failureOf(content);
    return {};
}

}  // namespace

void ZipTest::readsWhatWasWritten_data() {
    QTest::addColumn<bool>("zip64");
    QTest::addColumn<bool>("plainSizes");
    QTest::addColumn<QString>("comment");
    QTest::newRow("plain") << false << false << "";
    QTest::newRow("zip64") << true << false << "";
    QTest::newRow("zip64 offsets") << true << true << "";
    QTest::newRow("comment") << false << false << "a comment after the end record";
}
void ZipTest::readsWhatWasWritten() {
    QFETCH(bool, zip64);
    QFETCH(bool, plainSizes);
    QFETCH(QString, comment);
    auto files = sampleFiles();
    for (ZipFile& file : files) file.plainSizes = plainSizes;
    const auto archive = ZipArchive::open(storageOf(buildZip(files, zip64, comment.toStdString())), "t.zip");
    QCOMPARE(failureOf(archive), QString());
    QCOMPARE(archive->root(), std::string("m"));
    QCOMPARE(archive->entries().size(), files.size());
    for (const ZipFile& file : files) {
        const auto text = archive->readText(file.name.substr(2));
        QCOMPARE(failureOf(text), QString());
        QVERIFY(*text == file.content);
    }
    QVERIFY(archive->hasFolder("data/weights/"));
    QVERIFY(!archive->find("no such entry"));
}

void ZipTest::storedEntriesAreViews() {
    const std::string bytes = buildZip(sampleFiles());
    const auto storage = storageOf(bytes);
    const auto archive = ZipArchive::open(storage, "t.zip");
    QVERIFY(archive.has_value());
    const auto stored = archive->read(*archive->find("data/weights/weight_0"));
    QVERIFY(stored && (*stored)->readOnly());
    QVERIFY((*stored)->data() > storage->data() && (*stored)->data() < storage->data() + storage->size());
}

void ZipTest::refuses_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<QString>("message");
    auto row = [](const char* name, const std::string& bytes, const char* message) {
        QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << message;
    };
    row("empty", "", "t.zip: no end-of-directory record; the file is not a zip archive or is cut short");
    row("encrypted", buildZip({{.name = "a", .content = "x", .flags = 1}}), "t.zip: a: encrypted entries are not read");
    row("method", buildZip({{.name = "a", .content = "x", .method = 12}}),
        "t.zip: a: compression method 12 is not read (0 stored, 8 deflated)");
    row("huge size", buildZip({{.name = "a", .content = "x", .claimedSize = 0x7FFFFFFF}}),
        "t.zip: a: 2147483647 bytes at 31 reach past the end of the file");
    row("huge size, zip64", buildZip({{.name = "a", .content = "x", .claimedSize = 0x7FFFFFFFFFFFFFFF}}, true),
        "t.zip: a: 9223372036854775807 bytes at 31 reach past the end of the file");
    row("inflated lie", buildZip({{.name = "a", .content = "x", .deflate = true, .claimedSize = 0x7FFFFFFF}}),
        "t.zip: a: 3 bytes cannot inflate to 2147483647");
    row("offset past the end", buildZip({{.name = "a", .content = "x", .claimedOffset = 1 << 20}}),
        "t.zip: a: its header would lie at byte 1048576, past the end");
    row("offset past the end, zip64",
        buildZip({{.name = "a", .content = "x", .claimedOffset = 0x7FFFFFFFFFFFFFFF}}, true),
        "t.zip: a: its header would lie at byte 9223372036854775807, past the end");
    row("offset not at a header", buildZip({{.name = "a", .content = "x", .claimedOffset = 3}}),
        "t.zip: a: no local header at byte 3");
    row("named twice", buildZip({{.name = "a", .content = "x"}, {.name = "a", .content = "y"}}),
        "t.zip: a: the directory names this entry twice");
    std::string damaged = buildZip({{.name = "a", .content = "hello"}});
    damaged[damaged.find("hello")] = 'j';
    row("checksum", damaged, "t.zip: a: wrong checksum; the entry is damaged");
    std::string unsummed =
        buildZip({{.name = "a", .content = "hello", .withCrc = false}, {.name = "b", .content = "x"}});
    row("a checksum of 0 among others", unsummed, "t.zip: a: wrong checksum; the entry is damaged");
    std::string many = buildZip({{.name = "a", .content = "x"}});
    many[many.size() - 12] = 9;
    row("entry count", many, "t.zip: 9 entries do not fit a directory of 47 bytes");
}
void ZipTest::refuses() {
    QFETCH(QByteArray, bytes);
    QFETCH(QString, message);
    QCOMPARE(readAll(bytes.toStdString()), message);
}

/// torch.save can be told to write no checksums; then they are 0, of all entries or of the storages.
void ZipTest::torchSaveMayLeaveChecksumsOut() {
    QCOMPARE(readAll(buildZip({{.name = "a", .content = "hello", .withCrc = false},
                               {.name = "b", .content = "x", .withCrc = false}})),
             QString());
    QCOMPARE(readAll(buildZip(
                 {{.name = "m/data.pkl", .content = "hello"}, {.name = "m/data/0", .content = "x", .withCrc = false}})),
             QString());
}

void ZipTest::survivesEveryTruncation() {
    for (const bool zip64 : {false, true}) {
        const std::string whole = buildZip(sampleFiles(), zip64);
        QCOMPARE(readAll(whole), QString());
        for (size_t length = 0; length < whole.size(); ++length)
            QVERIFY2(!readAll(whole.substr(0, length)).isEmpty(), qPrintable(QString::number(length)));
    }
}

void ZipTest::survivesDamage() {
    const uint32_t seed = 20260101;
    qInfo("seed %u", seed);
    std::mt19937 random(seed);
    for (int trial = 0; trial < 4000; ++trial) {
        std::string bytes = buildZip(sampleFiles(), trial % 2 == 1);
        // Most damage goes to the directory, which is what decides where the reader looks.
        const size_t from = trial % 4 < 3 ? bytes.size() - 500 : 0;
        for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
            bytes[from + random() % (bytes.size() - from)] ^= static_cast<char>(1u << random() % 8);
        readAll(bytes);
    }
}

CUTAWAY_SUITE(ZipTest)
#include "zip_test.moc"
