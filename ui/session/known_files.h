#pragma once
// Files that can be opened without looking for them: those that were open before, and the samples that come with the
// program.
#include <QDateTime>
#include <QString>
#include <QVector>

namespace cutaway::ui {

struct RecentFile {
    QString path, format;  // the format as the reader names it; empty if it was remembered by an earlier version
    QDateTime opened;
    QString problem;  // why it cannot be opened now; empty if it can
};

/// Newest first.
QVector<RecentFile> recentFiles();
void rememberFile(const QString& path, const QString& format);
void forgetFile(const QString& path);

struct SampleModel {
    QString path, title, about;
};

/// From the source tree that the program was built in, or from where it is installed.
QVector<SampleModel> sampleModels();

}  // namespace cutaway::ui
