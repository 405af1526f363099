#include "tests/support/recorded_case.h"

#include <QDir>
#include <QDirIterator>
#include <QRegularExpression>
#include <map>

#include "engine/text/parse.h"
#include "engine/text/print.h"
#include "tests/support/paths.h"

namespace cutaway::testing {
namespace {

QString property(const QString& text, const QString& key) {
    const auto match = QRegularExpression("^# " + key + ": *(.*)$", QRegularExpression::MultilineOption).match(text);
    return match.hasMatch() ? match.captured(1).trimmed() : QString();
}

class Shape {
  public:
    explicit Shape(const Module& module) {
        for (Node& node : module.graph().nodes())
            if (node.isPlaceholder()) number(node);
        for (const Argument& value : module.graph().outputs()) m_lines << "return " + text(value);
        for (Node& node : module.graph().nodes())
            if (node.isCall() && node.op().mutates()) m_lines << "mutation " + number(node);
    }
    QString text() const { return m_lines.join("\n"); }

  private:
    QString number(Node& node) {
        if (const auto found = m_numbers.find(&node); found != m_numbers.end()) return found->second;
        QString line;
        if (node.isCall()) {
            line = QString::fromStdString(node.op().name())
                       .replace("torch.nn.functional.linear", "torch._C._nn.linear")
                       .replace("torch.functional.split", "torch.split");
            if (node.op().style() == Op::Style::Method) line = "." + line;
            for (const Argument& arg : node.args()) line += " " + text(arg);
            QStringList keywords;
            for (const auto& [key, value] : node.kwargs())
                keywords << " " + QString::fromStdString(key) + "=" + text(value);
            keywords.sort();
            line += keywords.join("");
        } else {
            line = QString::fromStdString(node.target());
        }
        const QString name = "%" + QString::number(m_numbers.size());
        m_numbers.emplace(&node, name);
        m_lines << name + " = " + line;
        return name;
    }
    QString text(const Argument& value) {
        if (Node* node = value.node()) return number(*node);
        if (const auto* items = value.list()) {
            QString out = "[";
            for (const Argument& item : *items) out += " " + text(item);
            return out + " ]";
        }
        return QString::fromStdString(printArgument(value));
    }
    std::map<const Node*, QString> m_numbers;
    QStringList m_lines;
};

}  // namespace

QStringList recordedFiles(const QString& folder) {
    QDirIterator files(testFile("cases/" + folder), {"*.txt"}, QDir::Files);
    QStringList paths;
    while (files.hasNext()) paths << files.next();
    paths.sort();
    return paths;
}

RecordedCase readRecordedCase(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(path));
    const QString text = QString::fromUtf8(file.readAll());
    const qsizetype before = text.indexOf("# before\n"), after = text.indexOf("# after\n"),
                    same = text.indexOf("# same\n"), stops = text.indexOf("# stops\n");
    const QString head = text.left(before);
    RecordedCase out;
    out.name = QFileInfo(path).completeBaseName();
    out.idle = property(head, "idle");
    out.numbers = property(head, "numbers");
    out.ordered = head.contains("\n# ordered:");
    out.stops = stops >= 0;
    out.options.target = property(head, "options").contains("cuda") ? Target::Cuda : Target::Cpu;
    out.options.parity = property(head, "options").contains("parity");
    for (const QString& each : property(head, "pass").split(' ')) {
        const auto pass = parseOptionalPass(each.toStdString());
        if (!pass) qFatal("%s: '%s' is not a pass", qPrintable(path), qPrintable(each));
        out.passes << QString::fromStdString(pass->name);
        out.options.enabledPasses.push_back(*pass);
    }
    out.before = text.mid(before + 9, (after >= 0 ? after : same >= 0 ? same : stops) - before - 9);
    if (after >= 0) out.after = text.mid(after + 8);
    return out;
}

QString shapeOf(const Module& module) { return Shape(module).text(); }

Result<Snapshot> parsedGraph(const QString& text) {
    CT_TRY(auto module, parseText(text.toStdString()));
    return Snapshot(std::move(module));
}

}  // namespace cutaway::testing
