// Holds the folders to their order (engine/README.md): a folder includes only what stands left of it, the engine has
// no Qt, and the windows see nothing of the engine but its public API.
#include <QDirIterator>
#include <QRegularExpression>
#include <QtTest>

#include "tests/support/suites.h"

class LayeringTest : public QObject {
    Q_OBJECT

    static const QStringList& order() {
        static const QStringList folders = {
            "support", "tensor",   "expr",      "ir",     "ops",       "text",     "formats", "interpret", "numerics",
            "rewrite", "autograd", "partition", "loops",  "libraries", "schedule", "host",    "passes",    "cache",
            "codegen", "runtime",  "exporting", "minify", "plugins",   "session",  "trials",  "batch"};
        return folders;
    }

    /// (file, included path, angle brackets?) of every include line below a folder.
    struct Include {
        QString file, path;
        bool angle;
    };
    static QList<Include> includesBelow(const QString& folder) {
        static const QRegularExpression line("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]",
                                             QRegularExpression::MultilineOption);
        QList<Include> found;
        QDirIterator files(QStringLiteral(CUTAWAY_SOURCE_DIR "/") + folder, {"*.h", "*.cpp", "*.cu"}, QDir::Files,
                           QDirIterator::Subdirectories);
        while (files.hasNext()) {
            QFile file(files.next());
            if (!file.open(QIODevice::ReadOnly)) continue;
            const QString text = QString::fromUtf8(file.readAll());
            auto matches = line.globalMatch(text);
            while (matches.hasNext()) {
                const auto match = matches.next();
                found.append({QDir(CUTAWAY_SOURCE_DIR).relativeFilePath(file.fileName()), match.captured(2),
                              match.captured(1) == "<"});
            }
        }
        return found;
    }

  private slots:
    void engineFoldersIncludeOnlyLeftwards() {
        QStringList wrong;
        for (const Include& include : includesBelow("engine")) {
            const QString from = include.file.section('/', 1, 1);
            if (!include.path.startsWith("engine/") || !order().contains(from)) continue;
            const QString to = include.path.section('/', 1, 1);
            if (order().indexOf(to) > order().indexOf(from) || !order().contains(to))
                wrong << include.file + " includes " + include.path;
        }
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join("\n")));
        QVERIFY(!includesBelow("engine").isEmpty());
    }

    void engineHasNoQt() {
        QStringList wrong;
        for (const Include& include : includesBelow("engine"))
            if (include.angle && QRegularExpression("^(Q[A-Z]|Qt|qt)").match(include.path).hasMatch())
                wrong << include.file + " includes " + include.path;
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join("\n")));
    }

    void windowsSeeOnlyTheDoor() {
        QStringList wrong;
        for (const Include& include : includesBelow("ui"))
            if (include.path.startsWith("engine/")) wrong << include.file + " includes " + include.path;
        for (const Include& include : includesBelow("engine/include"))
            if (include.path.startsWith("engine/")) wrong << include.file + " includes " + include.path;
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join("\n")));
    }
};

CUTAWAY_SUITE(LayeringTest)
#include "layering_test.moc"
