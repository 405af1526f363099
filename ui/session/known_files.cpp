#include "ui/session/known_files.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QSettings>
#include <QStandardPaths>

namespace cutaway::ui {
namespace {

constexpr int kRecentFiles = 10;
constexpr int kFoldersAbove = 4;  // from a test or program in a build folder to the source tree

QString recentKey() { return QStringLiteral("recent"); }
QString detailsKey() { return QStringLiteral("recentDetails"); }

QString problemOf(const QString& path) {
    const QFileInfo file(path);
    if (!file.exists())
        return file.dir().exists() ? QCoreApplication::translate("cutaway::ui", "The file was moved or deleted.")
                                   : QCoreApplication::translate("cutaway::ui", "Its folder is not there.");
    return file.isReadable() ? QString() : QCoreApplication::translate("cutaway::ui", "You may not read it.");
}

QString sampleFolder() {
    QDir above(QCoreApplication::applicationDirPath());
    for (int i = 0; i <= kFoldersAbove; ++i, above.cdUp())
        for (const char* name : {"resources/models", "share/cutaway/models"})
            if (above.exists(QString::fromLatin1(name))) return above.filePath(QString::fromLatin1(name));
    return QStandardPaths::locate(QStandardPaths::GenericDataLocation, QStringLiteral("cutaway/models"),
                                  QStandardPaths::LocateDirectory);
}

}  // namespace

QVector<RecentFile> recentFiles() {
    const QSettings settings;
    const QVariantMap details = settings.value(detailsKey()).toMap();
    QVector<RecentFile> files;
    for (const QString& path : settings.value(recentKey()).toStringList()) {
        const QStringList known = details.value(path).toStringList();
        files.append({path, known.value(0), QDateTime::fromString(known.value(1), Qt::ISODate), problemOf(path)});
    }
    return files;
}

void rememberFile(const QString& path, const QString& format) {
    QSettings settings;
    QStringList recent = settings.value(recentKey()).toStringList();
    recent.removeAll(path);
    recent.prepend(path);
    recent = recent.mid(0, kRecentFiles);
    QVariantMap details = settings.value(detailsKey()).toMap();
    details[path] = QStringList{format, QDateTime::currentDateTime().toString(Qt::ISODate)};
    for (const QString& known : details.keys())
        if (!recent.contains(known)) details.remove(known);
    settings.setValue(recentKey(), recent);
    settings.setValue(detailsKey(), details);
}

void forgetFile(const QString& path) {
    QSettings settings;
    QStringList recent = settings.value(recentKey()).toStringList();
    recent.removeAll(path);
    settings.setValue(recentKey(), recent);
    QVariantMap details = settings.value(detailsKey()).toMap();
    details.remove(path);
    settings.setValue(detailsKey(), details);
}

QVector<SampleModel> sampleModels() {
    const QDir folder(sampleFolder());
    const QSettings about(folder.filePath(QStringLiteral("samples.ini")), QSettings::IniFormat);
    QVector<SampleModel> models;
    for (const QFileInfo& file : folder.entryInfoList({QStringLiteral("*.pt2")}, QDir::Files, QDir::Name)) {
        const QString name = file.completeBaseName();
        models.append({file.absoluteFilePath(), about.value(name + QStringLiteral("/title"), name).toString(),
                       about.value(name + QStringLiteral("/about")).toStringList().join(QStringLiteral(", "))});
    }
    return models;
}

}  // namespace cutaway::ui
