// The store of measured values: what is kept is found again by this and other processes, a damaged store costs a remark
// and nothing else, and what is not a store is refused and stays as it is.
#include "engine/cache/value_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/suites.h"

using namespace cutaway;

namespace {

QString found(ValueStore& store, const char* space, const char* key) {
    const auto value = store.find(space, key);
    if (!value) return "error: " + QString::fromStdString(value.error().text());
    return *value ? QString::fromStdString(**value) : QString("nothing");
}
void write(const QString& path, const QByteArray& bytes) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(bytes);
}

}  // namespace

class ValueStoreTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

  private slots:
    /// Changes see what is there, put something in its place or take it away; a namespace is listed by key.
    void changes() {
        QTemporaryDir folder;
        const auto store = ValueStore::open(folder.filePath("changes.sqlite").toStdString());
        QVERIFY(store.has_value());
        const auto longer = [](const std::optional<std::string>& before) {
            return std::optional(before.value_or("") + "x");
        };
        for (const char* key : {"b", "a", "b"}) QVERIFY((*store)->change("one", key, longer));
        QVERIFY((*store)->keep("two", "c", "y"));
        using Rows = std::vector<std::pair<std::string, std::string>>;
        QCOMPARE(*(*store)->all("one"), (Rows{{"a", "x"}, {"b", "xx"}}));
        QVERIFY((*store)->change("one", "a", [](const auto&) { return std::nullopt; }));
        QVERIFY((*store)->change("one", "never there", [](const auto&) { return std::nullopt; }));
        QCOMPARE(*(*store)->all("one"), (Rows{{"b", "xx"}}));
        QCOMPARE(*(*store)->all("two"), (Rows{{"c", "y"}}));
        QCOMPARE(*(*store)->all("three"), Rows());
    }

    void keepsAndFinds() {
        const auto store = ValueStore::open(path("deep/er/store.sqlite"));
        QVERIFY2(store.has_value(), store ? "" : store.error().text().c_str());
        QCOMPARE(found(**store, "a", "key"), "nothing");
        QVERIFY((*store)->keep("a", "key", "1").has_value());
        QVERIFY((*store)->keep("b", "key", std::string("two\0 'words'", 12)).has_value());
        QVERIFY((*store)->keep("a", "", "").has_value());
        QCOMPARE(found(**store, "a", "key"), "1");
        QCOMPARE(*(*store)->find("b", "key"), std::optional(std::string("two\0 'words'", 12)));
        QCOMPARE(found(**store, "a", ""), "");
        QVERIFY((*store)->keep("a", "key", "3").has_value());
        QCOMPARE(found(**store, "a", "key"), "3");
        QVERIFY((*store)->remark().empty());
        const auto again = ValueStore::open((*store)->path());  // both at once
        QVERIFY(again.has_value());
        QCOMPARE(found(**again, "a", "key"), "3");
    }

    void processesShareIt() {
        const std::string file = path("shared.sqlite");
        constexpr int kProcesses = 4, kKeys = 25;
        std::vector<pid_t> children;
        for (int p = 0; p < kProcesses; ++p) {
            const pid_t child = fork();
            QVERIFY(child >= 0);
            if (child > 0) {
                children.push_back(child);
                continue;
            }
            bool good = false;
            if (const auto store = ValueStore::open(file)) {
                good = true;
                for (int k = 0; k < kKeys; ++k) {
                    good = good && (*store)->keep("own", std::to_string(p) + "/" + std::to_string(k), "x").has_value();
                    good = good && (*store)->keep("common", std::to_string(k), std::to_string(k * k)).has_value();
                }
            }
            _exit(good ? 0 : 1);
        }
        for (const pid_t child : children) {
            int status = -1;
            QCOMPARE(waitpid(child, &status, 0), child);
            QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        const auto store = ValueStore::open(file);
        QVERIFY(store.has_value());
        QVERIFY((*store)->remark().empty());
        for (int k = 0; k < kKeys; ++k) {
            QCOMPARE(found(**store, "common", std::to_string(k).c_str()), QString::number(k * k));
            for (int p = 0; p < kProcesses; ++p)
                QCOMPARE(found(**store, "own", (std::to_string(p) + "/" + std::to_string(k)).c_str()), "x");
        }
    }

    void damagedFiles_data() {
        QTest::addColumn<QByteArray>("bytes");
        // The first page of a database that goes on, and nothing behind it.
        const std::string whole = path("whole.sqlite");
        {
            const auto store = ValueStore::open(whole);
            QVERIFY(store.has_value());
            for (int i = 0; i < 400; ++i)
                QVERIFY((*store)->keep("space", std::to_string(i), std::string(100, 'x')).has_value());
        }
        QFile file(QString::fromStdString(whole));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray bytes = file.readAll();
        QVERIFY(bytes.size() > 3 * 4096);
        QTest::newRow("cut off") << bytes.left(4096);
        QByteArray scribbled = bytes;
        scribbled.replace(4096, bytes.size() - 4096, QByteArray(bytes.size() - 4096, '\x5a'));
        QTest::newRow("written over") << scribbled;
        QByteArray newer = bytes;
        newer[63] = 9;  // user_version, in the header
        QTest::newRow("of a later version") << newer;
    }
    void damagedFiles() {
        QFETCH(QByteArray, bytes);
        QTemporaryDir folder;
        const QString file = folder.filePath("store.sqlite");
        write(file, bytes);
        const auto store = ValueStore::open(file.toStdString());
        QVERIFY2(store.has_value(), store ? "" : store.error().text().c_str());
        QCOMPARE(found(**store, "space", "200"), "nothing");
        QVERIFY((*store)->keep("space", "200", "new").has_value());
        QCOMPARE(found(**store, "space", "200"), "new");
        const QString remark = QString::fromStdString((*store)->remark());
        QVERIFY2(remark.contains(file) && remark.contains("a new one was begun"), qPrintable(remark));
        QFile aside(file + ".damaged");
        QVERIFY(aside.open(QIODevice::ReadOnly));
        QCOMPARE(aside.readAll(), bytes);
    }

    void earlierDamagedOnesStay() {
        const std::string whole = path("again.sqlite");
        QVERIFY(ValueStore::open(whole)->get()->keep("space", "key", "value").has_value());
        QFile file(QString::fromStdString(whole));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray cut = file.read(100);
        for (const char* kept : {"again.sqlite.damaged", "again.sqlite.damaged.2", "again.sqlite.damaged.3"}) {
            write(QString::fromStdString(whole), cut);
            const auto store = ValueStore::open(whole);
            QVERIFY2(store.has_value(), store ? "" : store.error().text().c_str());
            QVERIFY2((*store)->remark().find(path(kept) + ",") != std::string::npos, (*store)->remark().c_str());
            QCOMPARE(QFileInfo(QString::fromStdString(path(kept))).size(), cut.size());
        }
    }

    void damagedWhileOpen() {
        const std::string file = path("live.sqlite");
        const auto store = ValueStore::open(file);
        QVERIFY(store.has_value());
        for (int i = 0; i < 400; ++i)
            QVERIFY((*store)->keep("space", std::to_string(i), std::string(100, 'x')).has_value());
        QFile bytes(QString::fromStdString(file));
        QVERIFY(bytes.open(QIODevice::ReadWrite));
        bytes.seek(24);
        bytes.write("\1\2\3\4");  // SQLite's count of changes: what it remembers of the file is old
        bytes.seek(4096);
        bytes.write(QByteArray(bytes.size() - 4096, '\x5a'));
        bytes.close();
        QCOMPARE(found(**store, "space", "7"), "nothing");
        QVERIFY((*store)->keep("space", "7", "new").has_value());
        QCOMPARE(found(**store, "space", "7"), "new");
        QVERIFY(!(*store)->remark().empty());
    }

    /// Whatever is not a store of ours is refused by its name and stays as it is.
    void othersAreLeftAlone_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("says");
        QTest::newRow("text")
            << QByteArray("this is not a database at all, but long enough to be taken for one if nobody looked\n")
                   .repeated(40)
            << "it is a file of another kind";
        QTest::newRow("zeros") << QByteArray(8192, '\0') << "it is a file of another kind";
        const std::string whole = path("ours.sqlite");
        QVERIFY(ValueStore::open(whole)->get()->keep("space", "key", "value").has_value());
        QFile file(QString::fromStdString(whole));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QByteArray foreign = file.readAll();
        foreign.replace(68, 4, QByteArray(4, '\0'));  // application_id
        QTest::newRow("another program's database") << foreign << "it is another program's database";
        QTest::newRow("another program's damaged database") << foreign.left(200) << "it is another program's database";
    }
    void othersAreLeftAlone() {
        QFETCH(QByteArray, bytes);
        QFETCH(QString, says);
        QTemporaryDir folder;
        const QString path = folder.filePath("precious");
        write(path, bytes);
        const auto store = ValueStore::open(path.toStdString());
        QVERIFY(!store.has_value());
        const QString text = QString::fromStdString(store.error().text());
        QVERIFY2(text.contains(path) && text.contains(says), qPrintable(text));
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files), QStringList("precious"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll(), bytes);
    }
    void devicesAndPipesAreRefused() {
        const std::string pipe = path("pipe");
        QCOMPARE(mkfifo(pipe.c_str(), 0600), 0);
        for (const std::string& place : {pipe, std::string("/dev/zero"), std::string("/dev/null")}) {
            const auto store = ValueStore::open(place);
            QVERIFY(!store.has_value());
            QVERIFY2(store.error().text().find("not a regular file") != std::string::npos,
                     store.error().text().c_str());
        }
    }
    void emptyFilesAreTaken() {
        write(m_folder.filePath("empty"), "");
        const auto store = ValueStore::open(path("empty"));
        QVERIFY2(store.has_value(), store ? "" : store.error().text().c_str());
        QVERIFY((*store)->remark().empty());
    }

    void placesThatCannotBe() {
        write(m_folder.filePath("file"), "x");
        const auto below = ValueStore::open(path("file/store.sqlite"));
        QVERIFY(!below);
        QVERIFY2(below.error().text().find("--cache off") != std::string::npos, below.error().text().c_str());
        QVERIFY(QDir().mkpath(m_folder.filePath("folder")));
        QVERIFY(!ValueStore::open(path("folder")));
        QVERIFY(QDir(m_folder.filePath("folder")).exists());
    }

    void defaultPlace() {
        qputenv("HOME", "/home/somebody");
        qputenv("XDG_CACHE_HOME", "/var/caches");
        QCOMPARE(ValueStore::defaultPath(), std::string("/var/caches/cutaway/store.sqlite"));
        qputenv("XDG_CACHE_HOME", "not/absolute");
        QCOMPARE(ValueStore::defaultPath(), std::string("/home/somebody/.cache/cutaway/store.sqlite"));
        qunsetenv("XDG_CACHE_HOME");
        qunsetenv("HOME");
        QCOMPARE(ValueStore::defaultPath(), std::string());
    }
};

CUTAWAY_SUITE(ValueStoreTest)
#include "value_store_test.moc"
