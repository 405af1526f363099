#pragma once
// Files of cases that a test writes anew itself: text above the first, then "=== NAME" and a text for each.
#include <QList>
#include <QString>

namespace cutaway::testing {

struct Section {
    QString name, text;  // ends with a line end
};
struct Sections {
    QString head;
    QList<Section> all;
};
/// Nothing if there is no such file.
Sections readSections(const QString& path);
/// Whether it could be written.
bool writeSections(const QString& path, const Sections& sections);
/// Whether the test is asked to write its files anew (CUTAWAY_BLESS=1).
bool blesses();

}  // namespace cutaway::testing
