#include "tests/support/shell.h"

#include <QProcess>

#include "tests/support/paths.h"

namespace cutaway::testing {

Ended runShell(const QString& folder, QString line) {
    QProcess process;
    process.setWorkingDirectory(folder);
    process.start("/bin/sh", {"-c", line.replace("cutaway-cli", "'" + builtProgram("cutaway-cli") + "'")});
    if (!process.waitForFinished(120'000)) qFatal("'%s' does not end", qPrintable(line));
    const int status = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : 128 + process.exitCode();
    return {status, process.readAllStandardOutput(), process.readAllStandardError()};
}

QStringList ownMounts() {
    for (const char* flags : {"-m", "-rm"})
        if (QProcess::execute("unshare", {flags, "mount", "-t", "tmpfs", "none", "/tmp"}) == 0)
            return {"unshare", flags};
    return {};
}

}  // namespace cutaway::testing
