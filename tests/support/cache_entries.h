#pragma once
// What tests of caches have in common.
#include <QDirIterator>
#include <QtTest>
#include <string>
#include <vector>

#include "engine/cache/sealed_folder.h"

namespace cutaway::testing {

inline QString inWords(const std::vector<std::string>& texts) {
    QString joined;
    for (const std::string& text : texts) joined += (joined.isEmpty() ? "" : ", ") + QString::fromStdString(text);
    return joined;
}
inline void writeBytes(const QString& path, const QByteArray& bytes) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size()) qFatal("cannot write");
}
/// The whole entries of a folder; ends the test where there is half of one, and counts what is unfinished.
inline int wholeEntries(const QString& folder, int* unfinished = nullptr) {
    int whole = 0;
    if (unfinished) *unfinished = 0;
    QDirIterator each(folder, QDir::Dirs | QDir::Hidden | QDir::NoDotAndDotDot);
    while (each.hasNext()) {
        each.next();
        if (each.fileName().startsWith('.')) {
            if (unfinished) ++*unfinished;
            continue;
        }
        const auto seal = openSealed(each.filePath().toStdString());
        if (!seal) qFatal("%s", seal.error().text().c_str());
        ++whole;
    }
    return whole;
}

}  // namespace cutaway::testing
