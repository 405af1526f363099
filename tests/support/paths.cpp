#include "tests/support/paths.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>

namespace cutaway::testing {

QString testFile(const QString& relative) {
    // A test program that has travelled has its files beside it.
    const QString given = qEnvironmentVariable("CUTAWAY_TEST_FILES");
    return (given.isEmpty() ? QStringLiteral(CUTAWAY_SOURCE_DIR "/tests") : given) + "/" + relative;
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QString sharedFolder() {
    const QString given = qEnvironmentVariable("CUTAWAY_SHARED");
    if (!given.isEmpty()) return QDir(given).exists() ? given : QString();
    const QString beside = QStringLiteral(CUTAWAY_SOURCE_DIR "/../shared");
    return QDir(beside).exists() ? QDir(beside).canonicalPath() : QString();
}

QString referenceFolder(const QString& relative) {
    const QString shared = sharedFolder();
    if (shared.isEmpty()) return {};
    const QString folder = shared + "/reference/" + relative;
    return QDir(folder).exists() ? folder : QString();
}

QString builtProgram(const QString& name) {
    return QDir(QCoreApplication::applicationDirPath() + "/../bin").absoluteFilePath(name);
}

Build build() {
    return {.folder = CUTAWAY_BUILD_DIR,
            .version = CUTAWAY_VERSION,
            .cmake = CUTAWAY_CMAKE,
            .windows = CUTAWAY_WITH_UI,
            .sharedEngine = CUTAWAY_SHARED};
}

}  // namespace cutaway::testing
