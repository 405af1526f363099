#include "tests/support/sections.h"

#include <QFile>
#include <QtGlobal>

namespace cutaway::testing {

Sections readSections(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return {};
    QStringList parts = QString::fromUtf8(file.readAll()).split("\n=== ");
    Sections sections{parts.takeFirst(), {}};
    for (const QString& part : parts) {
        const QString text = part.section('\n', 1);
        sections.all.push_back({part.section('\n', 0, 0), text.endsWith('\n') ? text : text + "\n"});
    }
    return sections;
}

bool writeSections(const QString& path, const Sections& sections) {
    QString all = sections.head;
    for (const Section& section : sections.all) all += "\n=== " + section.name + "\n" + section.text;
    QFile file(path);
    return file.open(QIODevice::WriteOnly) && file.write(all.toUtf8()) > 0;
}

bool blesses() { return !qEnvironmentVariableIsEmpty("CUTAWAY_BLESS"); }

}  // namespace cutaway::testing
