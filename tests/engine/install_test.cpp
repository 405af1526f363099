// What `cmake --install` puts into a folder runs from there, wherever it is moved, and finds its helpers.
#include <QDirIterator>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/paths.h"
#include "tests/support/suites.h"

class InstallTest : public QObject {
    Q_OBJECT

    struct Ended {
        int status = -1;
        QString out, err;
    };

    QTemporaryDir m_folder;
    QString m_tree;

    Ended run(const QString& program, const QStringList& arguments) const {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const char* helper : {"CUTAWAY_WORKER", "CUTAWAY_TRIALS", "CUTAWAY_LAYOUT"}) environment.remove(helper);
        environment.insert("HOME", m_folder.path());
        environment.remove("QT_QPA_PLATFORM");  // it finds out by itself that it needs no screen
        process.setProcessEnvironment(environment);
        process.setWorkingDirectory(m_folder.path());
        process.start(program, arguments);
        if (!process.waitForFinished(120'000)) qFatal("%s does not end", qPrintable(program));
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
                QString::fromUtf8(process.readAllStandardOutput()), QString::fromUtf8(process.readAllStandardError())};
    }
    QString manPage(const QString& name) const {
        return run("gzip", {"-dc", m_tree + "/share/man/man1/" + name + ".1.gz"}).out;
    }
    QString program(const QString& name) const { return m_tree + "/bin/" + name; }
    QString model() const { return m_tree + "/share/cutaway/models/mlp.pt2"; }

  private slots:
    void initTestCase() {
        const QString first = m_folder.filePath("first");
        const Ended ended =
            run(cutaway::testing::build().cmake, {"--install", cutaway::testing::build().folder, "--prefix", first});
        QVERIFY2(ended.status == 0, qPrintable(ended.out + ended.err));
        m_tree = m_folder.filePath("moved");
        QVERIFY(QDir().rename(first, m_tree));
    }

    void theTreeIsWhole() {
        QStringList files;
        for (QDirIterator at(m_tree, QDir::Files, QDirIterator::Subdirectories); at.hasNext();)
            files << at.next().mid(m_tree.size() + 1);
        QStringList wanted = {"bin/cutaway-cli",
                              "libexec/cutaway/cutaway-worker",
                              "libexec/cutaway/cutaway-trials",
                              "libexec/cutaway/libcutaway_carried.a",
                              "libexec/cutaway/cutaway-plugin-host",
                              "libexec/cutaway/libcutaway-plugin.so",
                              "libexec/cutaway/cutaway_plugin.py",
                              "include/cutaway_plugin.h",
                              "share/man/man3/cutaway_plugin.3.gz",
                              "share/man/man1/cutaway-cli.1.gz",
                              "share/doc/cutaway/LICENSE",
                              "share/doc/cutaway/README.md",
                              "share/doc/cutaway/CHANGELOG.md",
                              "share/cutaway/models/mlp.pt2",
                              "share/cutaway/models/samples.ini"};
        if (cutaway::testing::build().windows)
            wanted << "bin/cutaway"
                   << "libexec/cutaway/cutaway-layout"
                   << "share/applications/cutaway.desktop"
                   << "share/mime/packages/cutaway.xml"
                   << "share/metainfo/cutaway.metainfo.xml"
                   << "share/man/man1/cutaway.1.gz"
                   << "share/icons/hicolor/scalable/apps/cutaway.svg";
        for (const QString& file : wanted) QVERIFY2(files.contains(file), qPrintable(file + " is missing"));
        for (const QString& file : files)
            QVERIFY2(wanted.contains(file) || file.startsWith("share/cutaway/plugins/samples/") ||
                         !(file.startsWith("include/") || file.endsWith(".py") || file.endsWith(".a")),
                     qPrintable(file));
    }

    void manPagesListEverything() {
        // Of cutaway-cli each command is a section, whose name has its hyphens escaped.
        const Ended index = run(program("cutaway-cli"), {"manual", "--index"});
        QVERIFY(index.out.contains("- `export`"));
        QString page = manPage("cutaway-cli");
        for (auto at = QRegularExpression("^- `([^`]+)`", QRegularExpression::MultilineOption).globalMatch(index.out);
             at.hasNext();) {
            // A page of resources/manual is called by its title, with hyphens for spaces.
            const QString name = at.next().captured(1).toUpper(), title = QString(name).replace('-', ' ');
            QVERIFY2(page.contains("\n.SH " + QString(name).replace('-', "\\-") + "\n") ||
                         page.contains("\n.SH " + title + "\n"),
                     qPrintable(name));
        }
        if (!cutaway::testing::build().windows) return;
        const Ended help = run(program("cutaway"), {"--help"});
        QVERIFY(help.out.contains("--screenshot <"));
        page = manPage("cutaway").remove('\\');
        for (auto at =
                 QRegularExpression("(?<=[ ,])--?[a-z][-a-z]*(?=[ ,\n])").globalMatch(help.out.section("Options:", 1));
             at.hasNext();) {
            const QString option = at.next().captured();
            QVERIFY2(page.contains("fB" + option + "fR"), qPrintable(option + " is not in cutaway.1.in"));
        }
    }

    void saysItsVersion() {
        QStringList programs = {"cutaway-cli"};
        if (cutaway::testing::build().windows) programs << "cutaway";
        for (const QString& name : programs) {
            const Ended ended = run(program(name), {"--version"});
            QVERIFY2(ended.status == 0, qPrintable(ended.err));
            QCOMPARE(ended.out.section('\n', 0, 0), name + " " + cutaway::testing::build().version);
            QVERIFY2(ended.out.contains(QRegularExpression("\\n\\w+ build, (GCC|Clang) \\d")), qPrintable(ended.out));
            QVERIFY2(ended.out.contains("\noneDNN: ") && ended.out.contains("\nCUDA: "), qPrintable(ended.out));
        }
    }

    void compilesAndRuns() {
        const Ended compiled = run(program("cutaway-cli"), {"compile", model()});
        QVERIFY2(compiled.status == 0 && compiled.out.contains(" passes, "), qPrintable(compiled.err));
        for (const char* backend : {"reference", "cpu"}) {  // both in the worker
            const Ended ended = run(program("cutaway-cli"), {"run", model(), "--backend", backend});
            QVERIFY2(ended.status == 0 && ended.out.contains("inputs: "), qPrintable(ended.err));
        }
    }

    void exports() {
        const Ended ended = run(program("cutaway-cli"), {"export", model(), "-o", "exported"});
        QVERIFY2(ended.status == 0, qPrintable(ended.err));
        QVERIFY(QFileInfo::exists(m_folder.filePath("exported/libmlp.so")));
    }

    void drawsAPicture() {
        if (!cutaway::testing::build().windows) return;  // this build has no window
        const Ended ended = run(program("cutaway"), {model(), "--compile", "--screenshot", "picture.png"});
        QVERIFY2(ended.status == 0, qPrintable(ended.err));
        QVERIFY(QFileInfo(m_folder.filePath("picture.png")).size() > 10'000);
    }
};

CUTAWAY_SUITE(InstallTest)
#include "install_test.moc"
