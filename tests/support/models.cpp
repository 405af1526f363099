#include "tests/support/models.h"

#include <QDir>

#include "tests/support/paths.h"

namespace cutaway::testing {

QStringList modelFiles() {
    QStringList files, names;
    const auto add = [&](const QString& name, const QString& file) {
        if (names.contains(name)) return;
        names << name;
        files << file;
    };
    for (const QString& all : {testFile("data/models"), referenceFolder("models")})
        if (!all.isEmpty())
            for (const QString& name : QDir(all).entryList(QDir::Dirs | QDir::NoDotAndDotDot))
                add(name, all + "/" + name + "/model.pt2");
    for (const QFileInfo& file : QDir(CUTAWAY_SOURCE_DIR "/resources/models").entryInfoList({"*.pt2"}))
        add(file.baseName(), file.filePath());
    return files;
}

QString modelName(const QString& file) {
    const QFileInfo info(file);
    return info.fileName() == "model.pt2" ? info.dir().dirName() : info.baseName();
}

}  // namespace cutaway::testing
