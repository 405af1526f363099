// Where plugins are looked for, and which files there are none.
#include <QtTest>

#include "cutaway/plugins.h"
#include "cutaway/session.h"
#include "tests/support/plugins.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::PluginsFolder;

class PluginFoldersTest : public QObject {
    Q_OBJECT

    PluginsFolder m_folder;

  private slots:
    void initTestCase() {
        QCOMPARE(m_folder.build(PluginsFolder::sample("fuse_addcmul.c"), "fuse_addcmul.so"), QString());
    }

    /// No file becomes a plugin because it lies beside a model, where the program was started, or where others may
    /// write.
    void notLoaded() {
        Session session;
        QTemporaryDir models, open_;
        const QString before = QDir::currentPath();
        QVERIFY(QFile::copy(m_folder.path("fuse_addcmul.so"), models.filePath("beside.so")));
        QVERIFY(QFile::copy(m_folder.path("fuse_addcmul.so"), open_.filePath("writable.so")));
        QVERIFY(QDir(models.path()).mkdir("plugins"));
        QFile model(models.filePath("model.py"));
        QVERIFY(model.open(QIODevice::WriteOnly));
        model.write("def forward(x: \"f32[4]\"):\n    y: \"f32[4]\" = aten.relu.default(x)\n    return (y,)\n");
        model.close();
        QVERIFY(QDir::setCurrent(models.path()));
        qputenv("CUTAWAY_PLUGINS", ".:plugins:" + open_.path().toUtf8());
        QFile::setPermissions(open_.filePath("writable.so"), QFile::ReadOwner | QFile::WriteOwner | QFile::WriteOther);
        const auto opened = session.open(model.fileName().toStdString());
        const std::vector<PluginInfo> all = installedPlugins();
        qputenv("CUTAWAY_PLUGINS", m_folder.path().toUtf8());
        QVERIFY(QDir::setCurrent(before));
        QVERIFY(opened.has_value());
        QCOMPARE(static_cast<int>(all.size()), 1);
        QCOMPARE(all[0].name, std::string("writable"));
        QVERIFY2(all[0].problem.find("every user may write to") != std::string::npos, all[0].problem.c_str());
    }

    /// What of CUTAWAY_PLUGINS is left out, and why.
    void folders() {
        m_folder.write("notes.txt", "no plugin");
        const QByteArray path = m_folder.path().toUtf8();
        qputenv("CUTAWAY_PLUGINS", "plugins:~/plugins:/nowhere/plugins:" + path + "/notes.txt:" + path);
        const std::vector<PluginFolder> all = pluginFolders();
        const auto plugins = installedPlugins();
        qputenv("CUTAWAY_PLUGINS", path);
        QVERIFY(all.size() >= 6);
        const char* const problems[] = {"it is not an absolute path", "it is not an absolute path",
                                        "it cannot be read: No such",
                                        "it is not a folder, and its name does not end with .so", ""};
        for (size_t i = 0; i < std::size(problems); ++i) {
            QVERIFY2(all[i].problem.starts_with(problems[i]), all[i].problem.c_str());
            QCOMPARE(all[i].problem.empty(), problems[i][0] == '\0');
        }
        QCOMPARE(all[5].problem, std::string());  // the user's need not be there
        QVERIFY(!plugins.empty());
        QVERIFY(QFile::remove(m_folder.path("notes.txt")));
    }
    /// A link is as safe as what it leads to, and a folder as what it lies in.
    void links() {
        QTemporaryDir other;
        const QString file = other.filePath("linked.so");
        QVERIFY(QFile::copy(m_folder.path("fuse_addcmul.so"), file));
        QVERIFY(QFile::link(file, m_folder.path("linked.so")));
        QVERIFY(pluginIn(m_folder.path("linked.so").toStdString())->problem.empty());
        QFile::setPermissions(other.path(), QFile::Permissions(0x7777));
        QVERIFY(QFile::copy(file, other.filePath("again.so")));
        QVERIFY(QFile::remove(file) && QFile::rename(other.filePath("again.so"), file));
        const auto info = pluginIn(m_folder.path("linked.so").toStdString());
        QVERIFY2(info->problem.find("every user may write to " + other.path().toStdString()) != std::string::npos,
                 info->problem.c_str());
        QVERIFY(QFile::remove(m_folder.path("linked.so")));
    }

    /// Of two plugins of one name the first counts, and the other says so.
    void hidden() {
        const QString user = m_folder.home("data/cutaway/plugins");
        QVERIFY(QDir().mkpath(user));
        QVERIFY(QFile::copy(m_folder.path("fuse_addcmul.so"), user + "/fuse_addcmul.so"));
        int found = 0;
        for (const PluginInfo& info : installedPlugins()) {
            if (info.name != "fuse_addcmul") continue;
            ++found;
            QCOMPARE(info.problem.empty(), info.from == "CUTAWAY_PLUGINS");
        }
        QCOMPARE(found, 2);
        QVERIFY(QFile::remove(user + "/fuse_addcmul.so"));
    }
};

CUTAWAY_SUITE(PluginFoldersTest)
#include "plugin_folders_test.moc"
