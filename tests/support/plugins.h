#pragma once
// Plugins that tests build, in folders of their own.
#include <QProcess>
#include <QTemporaryDir>
#include <QTemporaryFile>
#include <QtTest>

#include "cutaway/session.h"

namespace cutaway::testing {

/// Nothing of this user's own is installed while it lives: CUTAWAY_PLUGINS names its folder, user and settings are
/// empty.
class PluginsFolder {
  public:
    PluginsFolder() {
        qputenv("CUTAWAY_PLUGINS", m_folder.path().toUtf8());
        qputenv("XDG_DATA_HOME", m_home.filePath("data").toUtf8());
        qputenv("XDG_CONFIG_HOME", m_home.filePath("config").toUtf8());
    }
    ~PluginsFolder() {
        for (const char* name : {"CUTAWAY_PLUGINS", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}) qunsetenv(name);
    }
    QString path(const QString& name = {}) const { return m_folder.filePath(name); }
    QString home(const QString& name) const { return m_home.filePath(name); }
    static QString sample(const QString& name) { return QStringLiteral(CUTAWAY_SOURCE_DIR "/plugins/samples/") + name; }
    static QString data(const QString& name) {
        return QStringLiteral(CUTAWAY_SOURCE_DIR "/tests/data/plugins/") + name;
    }

    /// What the compiler says; empty: it has made the library.
    QString build(const QString& source, const QString& library, const QStringList& options = {},
                  const QString& compiler = QStringLiteral("gcc"),
                  const QString& header = QStringLiteral(CUTAWAY_SOURCE_DIR "/plugins")) const {
        QProcess process;
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.start(compiler,
                      QStringList{"-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Wno-missing-field-initializers",
                                  "-Werror", "-I" + header, "-o", path(library), source} +
                          options);
        if (!process.waitForStarted()) return compiler + " cannot be started";
        process.waitForFinished(-1);
        return process.exitCode() == 0 ? QString() : QString::fromUtf8(process.readAll());
    }
    bool copy(const QString& file, const QString& name) const { return QFile::copy(file, path(name)); }
    void write(const QString& name, const QByteArray& text) const {
        QFile file(path(name));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
            qFatal("cannot write %s", qPrintable(name));
    }

  private:
    QTemporaryDir m_folder, m_home;
};

/// Opens a graph's text in a session: what is wrong, or nothing.
inline QString openText(Session& session, const QByteArray& text) {
    QTemporaryFile file;
    if (!file.open() || file.write(text) != text.size()) return file.errorString();
    file.close();
    const auto opened = session.open(file.fileName().toStdString());
    return opened ? QString() : QString::fromStdString(opened.error().text());
}

}  // namespace cutaway::testing
