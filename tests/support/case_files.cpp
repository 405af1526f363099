#include "tests/support/case_files.h"

#include <QDir>
#include <QDirIterator>
#include <QRegularExpression>

#include "engine/passes/pipeline.h"
#include "engine/text/parse.h"
#include "tests/support/paths.h"

namespace cutaway::testing {
namespace {

QString property(const QString& head, const QString& key) {
    const auto match = QRegularExpression("^# " + key + ": *(.*)$", QRegularExpression::MultilineOption).match(head);
    return match.hasMatch() ? match.captured(1).trimmed() : QString();
}

Case readCase(const QString& file, const QString& text) {
    Case out;
    out.file = file;
    const qsizetype before = text.indexOf("def before("), after = text.indexOf("def after(");
    out.head = text.left(before < 0 ? text.size() : before);
    out.name = property(out.head, "case");
    out.pass = property(out.head, "pass");
    out.numbers = property(out.head, "numbers");
    out.idle = property(out.head, "idle");
    out.fails = property(out.head, "fails");
    out.counts = property(out.head, "counts");
    out.options = readOptions(property(out.head, "options"), file);
    if (before < 0) return out;
    out.before = text.mid(before, after < 0 ? -1 : after - before).trimmed() + "\n";
    if (after >= 0) out.after = text.mid(after).trimmed() + "\n";
    return out;
}

CaseFile readFile(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(path));
    const QStringList parts = QString::fromUtf8(file.readAll())
                                  .split(QRegularExpression("^(?=# case:)", QRegularExpression::MultilineOption));
    CaseFile out{path, parts[0].startsWith("# case:") ? QString() : parts[0], {}};
    const QString name = QDir(testFile("cases")).relativeFilePath(path);
    for (const QString& part : parts)
        if (part.startsWith("# case:") && part.contains("\n# pass:")) out.cases.push_back(readCase(name, part));
    return out;
}

}  // namespace

std::vector<CaseFile> readCaseFiles() {
    QDirIterator files(testFile("cases"), {"*.txt"}, QDir::Files, QDirIterator::Subdirectories);
    QStringList paths;
    while (files.hasNext()) paths << files.next();
    paths.sort();
    std::vector<CaseFile> out;
    for (const QString& path : paths)
        if (CaseFile file = readFile(path); !file.cases.empty()) out.push_back(std::move(file));
    return out;
}

CompileRequest readOptions(const QString& line, const QString& file) {
    CompileRequest out;
    out.pytorch = kNewestRelease;
    const QStringList words = line.split(' ', Qt::SkipEmptyParts);
    for (const QString& word : words)
        if (const auto mode = modeOf(word.toStdString())) out.mode = *mode;
    if (words.contains("cuda")) out.target = Target::Cuda;
    out.parity = words.contains("parity");
    for (const QString& word : words) {
        if (!word.contains('=')) continue;
        if (const QString release = word.section('=', 1); word.startsWith("pytorch=")) {
            const auto known = releaseOf(release.toStdString());
            if (!known) qFatal("%s: '%s' is not a release", qPrintable(file), qPrintable(word));
            out.pytorch = *known;
            continue;
        }
        auto pass = parseOptionalPass(word.toStdString());
        if (!pass) qFatal("%s: '%s' is not a setting", qPrintable(file), qPrintable(word));
        for (auto& [key, value] : pass->settings)
            if (key == "decisions")
                value =
                    QFileInfo(testFile("cases/" + file)).dir().filePath(QString::fromStdString(value)).toStdString();
        out.enabledPasses.push_back(std::move(*pass));
    }
    return out;
}

Result<Snapshot> parseCase(QString text, const char* function) {
    text.replace(QString("def %1(").arg(function), "def forward(");
    CT_TRY(auto module, parseText(text.toStdString()));
    return Snapshot(std::move(module));
}

const Pass* findPass(const QString& name) {
    const std::string wanted = name.toStdString();
    for (const StagePass& one : pipeline())
        if (one.pass->name == wanted || std::string(one.stage->name) + "." + std::string(one.pass->name) == wanted)
            return one.pass;
    return nullptr;
}

}  // namespace cutaway::testing
