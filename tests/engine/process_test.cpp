// Child processes: how they end is told truly, limits hold, whole groups die, and neither side waits for the other.
#include "engine/support/process.h"

#include <sys/types.h>

#include <QtTest>
#include <csignal>
#include <filesystem>

#include "cutaway/program.h"
#include "engine/support/files.h"
#include "engine/support/sanitized.h"
#include "engine/support/temp_dir.h"
#include "tests/support/suites.h"

using namespace cutaway;

namespace {
ProcessOptions shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }
}  // namespace

class ProcessTest : public QObject {
    Q_OBJECT

  private slots:
    void endings_data() {
        QTest::addColumn<QString>("script");
        QTest::addColumn<double>("seconds");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("output");
        QTest::newRow("success") << "echo hello" << 20.0 << "exited with status 0"
                                 << "hello\n";
        QTest::newRow("status") << "echo half; exit 3" << 20.0 << "exited with status 3"
                                << "half\n";
        QTest::newRow("signal") << "kill -SEGV $$" << 20.0 << "was killed by signal 11 (Segmentation fault)"
                                << "";
        QTest::newRow("hang") << "echo begun; sleep 60" << 0.5 << "ran longer than 0.5 s and was killed"
                              << "begun\n";
        QTest::newRow("hanging grandchild")
            << "echo begun; sleep 60 & wait" << 0.5 << "ran longer than 0.5 s and was killed"
            << "begun\n";
        QTest::newRow("closes its output, then hangs")
            << "exec >&- 2>&-; sleep 60" << 0.5 << "ran longer than 0.5 s and was killed"
            << "";
        QTest::newRow("grandchild keeps the pipe") << "sleep 60 & echo done" << 20.0 << "exited with status 0"
                                                   << "done\n";
    }
    void endings() {
        QFETCH(QString, script);
        QFETCH(double, seconds);
        QFETCH(QString, text);
        QFETCH(QString, output);
        ProcessOptions options = shell(script.toStdString());
        options.wallSeconds = seconds;
        const auto end = runProcess(options);
        QVERIFY2(end.has_value(), end ? "" : end.error().text().c_str());
        QCOMPARE(QString::fromStdString(end->text()), text);
        QCOMPARE(QString::fromStdString(end->output), output);
        QVERIFY(end->seconds < 15);
    }

    void missingProgram() {
        const auto end = runProcess({.argv = {"no-such-program-anywhere"}});
        QVERIFY(!end.has_value());
        QCOMPARE(end.error().code, ErrorCode::NotFound);
        QVERIFY(end.error().message.find("no-such-program-anywhere") != std::string::npos);
    }
    void missingFolder() {
        ProcessOptions options = shell("true");
        options.workingDirectory = "/no/such/folder";
        const auto end = runProcess(options);
        QVERIFY(!end.has_value());
        QCOMPARE(end.error().code, ErrorCode::ToolFailed);
    }

    void bigInputAndOutput() {
        // More than any pipe holds, in both directions at once.
        std::string input(3 << 20, 'x');
        const auto end = runProcess({.argv = {"cat"}}, input);
        QVERIFY(end && end->ok());
        QVERIFY(end->output == input);
    }
    void inputNobodyReads() {
        const auto end = runProcess({.argv = {"true"}}, std::string(3 << 20, 'x'));
        QVERIFY(end && end->ok());
    }
    void outputLimit() {
        ProcessOptions options = shell("head -c 1000000 /dev/zero; echo end >&2");
        options.outputLimit = 1000;
        const auto end = runProcess(options);
        QVERIFY(end && end->ok());
        QCOMPARE(end->output.size(), size_t{1000});
        QCOMPARE(end->errors, std::string("end\n"));
    }

    void environmentAndFolder() {
        auto folder = TempDir::create();
        QVERIFY(folder.has_value());
        ProcessOptions options = shell("echo $CUTAWAY_TEST_VALUE; pwd -P");
        options.environment = {{"CUTAWAY_TEST_VALUE", "a b"}};
        options.workingDirectory = folder->path().string();
        const auto end = runProcess(options);
        QVERIFY(end && end->ok());
        QCOMPARE(end->output, "a b\n" + std::filesystem::canonical(folder->path()).string() + "\n");
    }
    void memoryLimit() {
        if (kSanitized) QSKIP("sanitizers' builds set no limit of address space");
        ProcessOptions options = shell("x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}");
        options.addressSpaceBytes = 100 << 20;
        const auto end = runProcess(options);
        QVERIFY(end.has_value());
        QVERIFY(!end->ok());
    }
    void cpuLimit() {
        ProcessOptions options = shell("while :; do :; done");
        options.cpuSeconds = 1;
        options.wallSeconds = 30;
        const auto end = runProcess(options);
        QVERIFY(end.has_value());
        QCOMPARE(end->how, ProcessEnd::How::Signalled);
    }

    void conversation() {
        auto child = ChildProcess::start({.argv = {"cat"}});
        QVERIFY(child.has_value());
        for (const char* word : {"one", "two"}) {
            QVERIFY(child->write(std::string(word) + "\n").has_value());
            const auto line = child->readLine(10);
            QVERIFY(line.has_value());
            QCOMPARE(*line, std::string(word));
        }
        const auto late = child->readLine(0.05);
        QVERIFY(!late.has_value());
        QCOMPARE(late.error().code, ErrorCode::Limit);
        QVERIFY(child->wait().ok());
        QVERIFY(!child->running());
    }
    void writeIsStopped() {
        auto child = ChildProcess::start({.argv = {"sleep", "1000"}});
        QVERIFY(child.has_value());
        int asked = 0;
        const auto written = child->write(std::string(size_t{4} << 20, 'x'), 1000, [&] { return ++asked > 2; });
        QVERIFY(!written.has_value());
        QCOMPARE(written.error().code, ErrorCode::Cancelled);
    }
    void errorLimit() {
        ProcessOptions options = shell("head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2");
        options.errorLimit = 1000;
        const auto end = runProcess(options);
        QVERIFY(end.has_value() && end->ok());
        QCOMPARE(end->output.size(), size_t{100000});
        QCOMPARE(end->errors.size(), size_t{1000});
    }
    void answerThatNeverComes() {
        auto child = ChildProcess::start({.argv = {"true"}});
        QVERIFY(child.has_value());
        const auto line = child->readLine(10);
        QVERIFY(!line.has_value());
        QCOMPARE(line.error().code, ErrorCode::ToolFailed);
    }
    void destroyedMeansKilled() {
        int pid = 0;
        {
            auto child = ChildProcess::start({.argv = {"sleep", "60"}});
            QVERIFY(child.has_value());
            pid = child->pid();
            QCOMPARE(::kill(pid, 0), 0);
        }
        QVERIFY(::kill(pid, 0) != 0);
    }
    void cancelled() {
        Progress progress;
        progress.cancel->cancel();
        const auto end = runProcess({.argv = {"sleep", "60"}}, {}, progress);
        QVERIFY(end.has_value());
        QCOMPARE(QString::fromStdString(end->text()), QString("was cancelled"));
    }

    void tempDirIsRemoved() {
        std::filesystem::path path;
        {
            auto folder = TempDir::create();
            QVERIFY(folder.has_value());
            path = folder->path();
            QVERIFY(writeFile(folder->file("a.txt"), std::string("x\0y", 3)).has_value());
            const auto back = readFile(folder->file("a.txt"));
            QVERIFY(back.has_value());
            QCOMPARE(*back, std::string("x\0y", 3));
            TempDir moved = std::move(*folder);
            QVERIFY(std::filesystem::exists(path));
        }
        QVERIFY(!std::filesystem::exists(path));
        QVERIFY(!readFile((path / "a.txt").string()).has_value());
    }
    void childrenHaveAPath() {
        const QByteArray path = qgetenv("PATH");
        qunsetenv("PATH");
        const auto end = runProcess({.argv = {"sh", "-c", "echo $PATH"}});
        qputenv("PATH", path);
        QVERIFY(end.has_value());
        QCOMPARE(end->output, std::string("/usr/local/bin:/usr/bin:/bin\n"));
    }
    void foldersAreNoPrograms() { QCOMPARE(findProgram("/usr/bin"), std::string()); }
    void aHelperThatIsNamedMustBeThere() {
        qputenv("CUTAWAY_NO_SUCH_HELPER", "/nowhere/helper");
        const auto found = findHelper("true", "CUTAWAY_NO_SUCH_HELPER");
        qunsetenv("CUTAWAY_NO_SUCH_HELPER");
        QVERIFY(!found.has_value());
        QVERIFY(found.error().message == "CUTAWAY_NO_SUCH_HELPER names no program that can be run: /nowhere/helper");
    }
    /// What a killed program left goes; what a living one holds, and what only looks alike, stays.
    void foldersLeftBehindAreRemoved() {
        QTemporaryDir scratch;
        const QByteArray before = qgetenv("TMPDIR");
        qputenv("TMPDIR", scratch.path().toLocal8Bit());
        auto held = TempDir::create("run");
        QVERIFY(held.has_value());
        const QString left = scratch.filePath("cutaway-run-4711-abcdefghijkl"),
                      open = scratch.filePath("cutaway-run-4712-abcdefghijkl");
        for (const QString& folder :
             {left, open, scratch.filePath("cutaway-notes"), scratch.filePath("cutaway-run-x-abcdefghijkl")})
            QVERIFY(QDir().mkpath(folder + "/deep"));
        QVERIFY(QFile::setPermissions(left, QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
        removeLeftFolders();
        qputenv("TMPDIR", before);
        if (before.isEmpty()) qunsetenv("TMPDIR");
        QVERIFY(!QFile::exists(left));
        QVERIFY(QFile::exists(open));  // others may look into it: not made by us
        QVERIFY(QFile::exists(scratch.filePath("cutaway-notes")));
        QVERIFY(QFile::exists(scratch.filePath("cutaway-run-x-abcdefghijkl")));
        QVERIFY(std::filesystem::exists(held->path()));
    }
    void helperNotFoundNamesPlaces() {
        const auto found = findHelper("cutaway-no-such-helper", "CUTAWAY_NO_SUCH_HELPER");
        QVERIFY(!found.has_value());
        QVERIFY(found.error().text().find("CUTAWAY_NO_SUCH_HELPER") != std::string::npos);
    }
};

CUTAWAY_SUITE(ProcessTest)
#include "process_test.moc"
