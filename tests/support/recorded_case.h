#pragma once
// Cases recorded from PyTorch: passes, a graph, and the graph behind the passes (tests/scripts/record_pre_grad.py and
// record_post_grad.py write them, one file each).
#include <QString>
#include <QStringList>

#include "cutaway/request.h"
#include "engine/ir/module.h"

namespace cutaway::testing {

struct RecordedCase {
    QString name;
    QString idle, numbers;   // why a second run, or the numbers, are not checked
    QString before, after;   // empty `after`: nothing changes
    bool ordered = false;    // the order of independent calls counts, too
    bool stops = false;      // PyTorch raises; what ours does is our own
    QStringList passes;      // names, in running order
    CompileRequest options;  // with these passes and their settings
};

/// Files of a folder under tests/cases, sorted.
QStringList recordedFiles(const QString& folder);
/// It is fatal if the file cannot be read or names something that is not a pass.
RecordedCase readRecordedCase(const QString& path);

Result<Snapshot> parsedGraph(const QString& text);
/// The graph as its outputs see it: each value numbered when it is first read, so that names and the order of
/// independent calls do not count. Mutations are listed at the end, in order.
QString shapeOf(const Module& module);

}  // namespace cutaway::testing
