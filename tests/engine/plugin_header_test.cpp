// Plugins built with this header, an older one, a newer one and none; and what the manual says of the header.
#include <QtTest>

#include "cutaway/plugins.h"
#include "tests/support/plugins.h"
#include "tests/support/suites.h"

using namespace cutaway;
using cutaway::testing::PluginsFolder;

class PluginHeaderTest : public QObject {
    Q_OBJECT

    PluginsFolder m_folder;

  private slots:
    void headers_data() {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("problem");
        const auto row = [](const char* kind, const char* problem) { QTest::newRow(kind) << kind << problem; };
        row("OLD", "");
        row("NEWER", "");
        row("OTHER", "it is built for version 2 of cutaway_plugin.h, and this is version 1");
        row("NONE", "cutaway_plugin() returned no plugin");
        row("NAMELESS", "its name, 'No Name', is not made of a-z");
        row("PLACELESS", "names no place for passes ('somewhere'); there are: pre_grad_custom_pass");
        row("PROCESSES", "");
    }
    void headers() {
        QFETCH(QString, kind);
        QFETCH(QString, problem);
        QCOMPARE(m_folder.build(PluginsFolder::data("abi.c"), "abi_" + kind + ".so", {"-DKIND=" + kind}), QString());
        const auto info = pluginIn(m_folder.path("abi_" + kind + ".so").toStdString());
        QVERIFY(info.has_value());
        QVERIFY2(QString::fromStdString(info->problem).contains(problem), info->problem.c_str());
        QCOMPARE(info->problem.empty(), problem.isEmpty());
        if (info->problem.empty()) QCOMPARE(static_cast<int>(info->items.size()), 1);
        QCOMPARE(info->startsProcesses, kind == "PROCESSES");
        QVERIFY(QFile::remove(m_folder.path("abi_" + kind + ".so")));
    }
    /// What was built with the first header runs: it is kept as it was, whatever becomes of the header.
    void firstHeader() {
        const QString library = "first_header.so";
        QCOMPARE(m_folder.build(PluginsFolder::sample("fuse_addcmul.c"), library, {}, "gcc",
                                PluginsFolder::data("header_1")),
                 QString());
        const auto trials = checkPlugin(m_folder.path(library).toStdString());
        QVERIFY(trials.has_value());
        for (const PluginTrial& trial : *trials) QVERIFY2(trial.problem.empty(), (trial.what + trial.problem).c_str());
        QVERIFY(QFile::remove(m_folder.path(library)));
    }

    /// The page of the manual says every member of the header, and the header that is kept is a beginning of the
    /// present one.
    void manual() {
        const auto read = [](const QString& path) {
            QFile file(path);
            return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
        };
        const QString header = read(CUTAWAY_SOURCE_DIR "/plugins/cutaway_plugin.h");
        const QString page = read(CUTAWAY_SOURCE_DIR "/plugins/cutaway_plugin.3.in");
        static const QRegularExpression member("^    .*?(?:\\(\\*(\\w+)\\)\\(|[ *](\\w+);)",
                                               QRegularExpression::MultilineOption);
        int members = 0;
        for (auto found = member.globalMatch(header); found.hasNext(); ++members) {
            const auto match = found.next();
            const QString name = match.captured(1) + match.captured(2);
            QVERIFY2(page.contains(QRegularExpression("\\b" + name + "\\b")), qPrintable(name));
        }
        QVERIFY(members > 20);
        const QString first = read(PluginsFolder::data("header_1/cutaway_plugin.h"));
        for (auto found = member.globalMatch(first); found.hasNext();) {
            const QString line = found.next().captured(0);
            QVERIFY2(header.contains(line), qPrintable(line));
        }
    }
};

CUTAWAY_SUITE(PluginHeaderTest)
#include "plugin_header_test.moc"
