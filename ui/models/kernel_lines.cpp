#include "ui/models/kernel_lines.h"

#include <QRegularExpression>
#include <QStringList>

namespace cutaway::ui {
namespace {

/// "st_f32(b0 + t17, n, t18)", "b0[t17] = t18".
const QRegularExpression& stores() {
    static const QRegularExpression kStores(QStringLiteral("\\bst_\\w+\\(b(\\d+)\\b|\\bb(\\d+)\\[[^=]*\\] [-+*|&]?= "));
    return kStores;
}
const QRegularExpression& mentions() {
    static const QRegularExpression kMentions(QStringLiteral("\\bb(\\d+)\\b"));
    return kMentions;
}
bool declares(const QString& line) { return line.contains(QStringLiteral("__restrict")); }

std::optional<size_t> writtenIn(const QString& line) {
    const QRegularExpressionMatch found = stores().match(line);
    if (!found.hasMatch()) return {};
    return (found.captured(1).isEmpty() ? found.captured(2) : found.captured(1)).toULong();
}

}  // namespace

std::optional<size_t> bufferOfLine(const QString& line) {
    if (const auto written = writtenIn(line)) return written;
    std::optional<size_t> read;
    for (auto each = mentions().globalMatch(line); each.hasNext();) read = each.next().captured(1).toULong();
    return read;
}

int lineOfBuffer(const QString& code, size_t buffer) {
    const QStringList lines = code.split(QChar('\n'));
    int read = -1;
    for (int i = 0; i < lines.size(); ++i) {
        if (declares(lines[i])) continue;
        if (writtenIn(lines[i]) == buffer) return i;
        for (auto each = mentions().globalMatch(lines[i]); read < 0 && each.hasNext();)
            if (each.next().captured(1).toULong() == buffer) read = i;
    }
    return read;
}

}  // namespace cutaway::ui
