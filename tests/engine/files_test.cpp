// What a user's path may lead to, and what may happen to a file while it is open.
#include "engine/support/files.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>

#include "engine/formats/open.h"
#include "engine/formats/safetensors.h"
#include "tests/support/bytes.h"
#include "tests/support/pt2_builder.h"
#include "tests/support/suites.h"
#include "tests/support/zip_builder.h"

using namespace cutaway;
using namespace cutaway::testing;

class FilesTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }
    static void makeSocket(const std::string& path) {
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        QVERIFY(path.size() < sizeof address.sun_path);
        path.copy(address.sun_path, path.size());
        QCOMPARE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ::close(socket);
    }
    /// Large enough not to be read when its archive is opened.
    static std::string weightBytes() { return std::string(size_t{2} << 20, 'w'); }

  private slots:
    void whatIsNoFile_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("says");
        const std::string pipe = path("pipe"), socket = path("socket"), toPipe = path("link");
        QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
        QCOMPARE(::symlink(pipe.c_str(), toPipe.c_str()), 0);
        makeSocket(socket);
        QTest::newRow("nothing") << m_folder.filePath("none") << "cannot read: No such file or directory";
        QTest::newRow("a folder") << m_folder.path() << "cannot read: Is a directory";
        QTest::newRow("a pipe") << QString::fromStdString(pipe) << "not a regular file: this is a pipe";
        QTest::newRow("a link to a pipe") << QString::fromStdString(toPipe) << "not a regular file: this is a pipe";
        QTest::newRow("a socket") << QString::fromStdString(socket) << "not a regular file: this is a socket";
        QTest::newRow("an endless device") << "/dev/zero"
                                           << "not a regular file: this is a device";
    }
    /// Nobody waits, and nobody reads without end: each way into the engine says it in words.
    void whatIsNoFile() {
        QFETCH(QString, path);
        QFETCH(QString, says);
        const std::string file = path.toStdString();
        const QString message = path + ": " + says;
        QCOMPARE(failureOf(readTextFile(file, 1000)), message);
        QCOMPARE(failureOf(readSafeTensors(file)), message);
        QCOMPARE(failureOf(ByteSource::open(file)), message);
        if (!QFileInfo(path).isDir()) QCOMPARE(failureOf(openFile(file)), message);
    }

    void textsHaveALimit() {
        const std::string file = path("text");
        QVERIFY(writeFile(file, "1234567890").has_value());
        QCOMPARE(*readTextFile(file, 10), std::string("1234567890"));
        QCOMPARE(failureOf(readTextFile(file, 9)),
                 m_folder.filePath("text") + ": 10 bytes are too many: at most 9 are read");
    }

    void changesAreSeen_data() {
        QTest::addColumn<QString>("change");
        QTest::addColumn<QString>("says");
        QTest::newRow("cut short") << "truncate"
                                   << "the file has changed since it was opened: it had 10 bytes and has 3 now";
        QTest::newRow("longer") << "append"
                                << "the file has changed since it was opened: it had 10 bytes and has 11 now";
        QTest::newRow("written over") << "touch"
                                      << "the file has changed since it was opened";
    }
    void changesAreSeen() {
        QFETCH(QString, change);
        QFETCH(QString, says);
        const std::string name = path("changing");
        QVERIFY(writeFile(name, "1234567890").has_value());
        const auto file = InputFile::open(name);
        QVERIFY(file.has_value());
        QCOMPARE(*(*file)->readAll(10), std::string("1234567890"));
        if (change == "truncate") QCOMPARE(::truncate(name.c_str(), 3), 0);
        else if (change == "append") QVERIFY(writeFile(name, "12345678901").has_value());
        else {
            const timespec times[2] = {{1, 0}, {1, 0}};
            QCOMPARE(::utimensat(AT_FDCWD, name.c_str(), times, 0), 0);
        }
        const QString failure = failureOf((*file)->readAll(10));
        QVERIFY2(failure.startsWith(m_folder.filePath("changing") + ": " + says + " open it again"),
                 qPrintable(failure));
    }

    void aReplacedFileIsStillTheOldOne() {
        const std::string name = path("replaced"), other = path("other");
        QVERIFY(writeFile(name, "old").has_value() && writeFile(other, "new").has_value());
        const auto file = InputFile::open(name);
        QVERIFY(file.has_value());
        QCOMPARE(::rename(other.c_str(), name.c_str()), 0);
        QCOMPARE(*(*file)->readAll(10), std::string("old"));
    }

    /// Weights are read when they are used; by then somebody may have cut the file short.
    void weightsOfAFileCutShort() {
        const std::string archive = path("model.zip"), tensors = path("x.safetensors");
        QVERIFY(
            writeFile(archive, buildZip({{.name = "m/data/weights/weight_0", .content = weightBytes()}})).has_value());
        const Tensor ones = Tensor::full(DType::F32, {1000}, 1.0);
        QVERIFY(writeSafeTensors(tensors, {{{"a", ones}, {"b", ones}}, {}}).has_value());

        const auto source = ByteSource::open(archive);
        QVERIFY(source.has_value());
        const auto zip = ZipArchive::open(*source, archive);
        QVERIFY(zip.has_value());
        const auto early = zip->readLater(zip->entries()[0]), late = zip->readLater(zip->entries()[0]);
        QVERIFY(early.has_value() && late.has_value());
        QCOMPARE(failureOf((*early)->load()), QString());
        const auto file = readSafeTensors(tensors);
        QVERIFY(file.has_value());
        QCOMPARE(toDouble(file->tensors[0].second.item(999)), 1.0);

        QCOMPARE(::truncate(archive.c_str(), 100), 0);
        QCOMPARE(::truncate(tensors.c_str(), 100), 0);
        QCOMPARE((*early)->data()[weightBytes().size() - 1], std::byte{'w'});  // what was read stays
        QCOMPARE(toDouble(file->tensors[0].second.item(999)), 1.0);
        const QString failure = failureOf((*late)->load());
        QVERIFY2(failure.startsWith(m_folder.filePath("model.zip") +
                                    ": data/weights/weight_0: the file has changed since it was opened"),
                 qPrintable(failure));
        const QString second = failureOf(file->tensors[1].second.storage()->load());
        QVERIFY2(
            second.startsWith(m_folder.filePath("x.safetensors") + ": b: the file has changed since it was opened"),
            qPrintable(second));
        bool thrown = false;
        try {
            file->tensors[1].second.item(0);
        } catch (const UnreadableData&) {
            thrown = true;
        }
        QVERIFY(thrown);
    }

    void largeDamagedEntriesAreFound() {
        std::string bytes = buildZip({{.name = "m/weight_0", .content = weightBytes()},
                                      {.name = "m/weight_1", .content = weightBytes(), .deflate = true}});
        bytes[bytes.find("www") + 1000] = 'x';
        const std::string name = path("damaged.zip");
        QVERIFY(writeFile(name, bytes).has_value());
        const auto source = ByteSource::open(name);
        QVERIFY(source.has_value());
        const auto zip = ZipArchive::open(*source, "t.zip");
        QVERIFY(zip.has_value());
        const auto damaged = zip->readLater(zip->entries()[0]), whole = zip->readLater(zip->entries()[1]);
        QVERIFY(damaged.has_value() && whole.has_value());
        QCOMPARE(failureOf((*damaged)->load()), "t.zip: weight_0: wrong checksum; the entry is damaged");
        QCOMPARE(failureOf((*whole)->load()), QString());
        QCOMPARE((*whole)->data()[5], std::byte{'w'});
    }
};

CUTAWAY_SUITE(FilesTest)
#include "files_test.moc"
