#include "ui/models/text_diff.h"

#include <QHash>
#include <algorithm>

namespace cutaway::ui {
namespace {

/// Above this product of word counts a line's marks would take longer than they help; the whole line is marked.
constexpr qsizetype kMaxWordCells = 250000;

struct Line {
    QString text;
    QString key;  // equal keys are the same line
    NodeKey node = NodeKey::None;
};

/// Each line with the node that it defines.
QVector<std::pair<QString, NodeKey>> plainLines(const GraphText& text) {
    QStringList split = QString::fromStdString(text.text).split('\n');
    if (split.last().isEmpty()) split.removeLast();
    QVector<std::pair<QString, NodeKey>> lines;
    lines.reserve(split.size());
    for (const QString& line : split) {
        const auto at = static_cast<size_t>(lines.size());
        lines.append({line, at < text.lineNodes.size() ? text.lineNodes[at] : NodeKey::None});
    }
    return lines;
}

QVector<Line> keyedLines(const GraphText& text) {
    QVector<Line> lines;
    QHash<QString, int> seen;
    for (const auto& [words, node] : plainLines(text)) {
        Line line{words, {}, node};
        if (line.node != NodeKey::None) {
            line.key = QStringLiteral("#%1").arg(packed(line.node));
        } else {
            // The signature and the return change with the graph and are still the same line.
            const QString word = line.text.trimmed().section(QChar('('), 0, 0).section(QChar(' '), 0, 1);
            const bool fixed = word.startsWith(QLatin1String("def ")) || word.startsWith(QLatin1String("return"));
            line.key = fixed ? word.section(' ', 0, word.startsWith(QLatin1String("def ")) ? 1 : 0)
                             : QStringLiteral("=") + line.text;
        }
        const int repeat = seen[line.key]++;
        if (repeat > 0) line.key += QStringLiteral("@%1").arg(repeat);
        lines.append(line);
    }
    return lines;
}

/// Longest chain of lines that stand in the same order on both sides; keys are unique, so this is the longest
/// increasing subsequence. Answers for each `after` line its `before` line or -1.
QVector<int> matchLines(const QVector<Line>& before, const QVector<Line>& after) {
    QHash<QString, int> place;
    for (int i = 0; i < before.size(); ++i) place.insert(before[i].key, i);
    QVector<int> target(after.size(), -1), previous(after.size(), -1), tails;
    for (int i = 0; i < after.size(); ++i) {
        target[i] = place.value(after[i].key, -1);
        if (target[i] < 0) continue;
        const auto at =
            std::lower_bound(tails.begin(), tails.end(), i, [&](int a, int b) { return target[a] < target[b]; });
        if (at != tails.begin()) previous[i] = *(at - 1);
        if (at == tails.end()) tails.append(i);
        else *at = i;
    }
    QVector<int> matched(after.size(), -1);
    for (int i = tails.isEmpty() ? -1 : tails.last(); i >= 0; i = previous[i]) matched[i] = target[i];
    return matched;
}

struct Word {
    int start, length;
};
QVector<Word> wordsOf(const QString& text) {
    QVector<Word> words;
    for (int i = 0; i < text.size();) {
        if (text[i].isSpace()) {
            ++i;
            continue;
        }
        int end = i + 1;
        const auto inWord = [](QChar c) { return c.isLetterOrNumber() || c == '_'; };
        if (inWord(text[i]))
            while (end < text.size() && inWord(text[end])) ++end;
        words.append({i, end - i});
        i = end;
    }
    return words;
}

void appendMark(QVector<MarkedRange>& marks, const QString& text, Word word) {
    // Marks with only blanks between them read better as one.
    if (!marks.isEmpty()) {
        MarkedRange& last = marks.last();
        const int end = last.start + last.length;
        if (text.mid(end, word.start - end).trimmed().isEmpty()) {
            last.length = word.start + word.length - last.start;
            return;
        }
    }
    marks.append({word.start, word.length});
}

}  // namespace

void markWords(const QString& before, const QString& after, QVector<MarkedRange>& beforeMarks,
               QVector<MarkedRange>& afterMarks) {
    const QVector<Word> a = wordsOf(before), b = wordsOf(after);
    if (a.size() * b.size() > kMaxWordCells) {
        beforeMarks = {{0, static_cast<int>(before.size())}};
        afterMarks = {{0, static_cast<int>(after.size())}};
        return;
    }
    const auto equal = [&](qsizetype i, qsizetype j) {
        return QStringView(before).mid(a[i].start, a[i].length) == QStringView(after).mid(b[j].start, b[j].length);
    };
    const qsizetype columns = b.size() + 1;
    QVector<int> best((a.size() + 1) * columns, 0);
    for (qsizetype i = a.size(); i-- > 0;)
        for (qsizetype j = b.size(); j-- > 0;)
            best[i * columns + j] = equal(i, j) ? best[(i + 1) * columns + j + 1] + 1
                                                : std::max(best[(i + 1) * columns + j], best[i * columns + j + 1]);
    qsizetype i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (i < a.size() && j < b.size() && equal(i, j)) {
            ++i;
            ++j;
        } else if (j == b.size() || (i < a.size() && best[(i + 1) * columns + j] >= best[i * columns + j + 1])) {
            appendMark(beforeMarks, before, a[i++]);
        } else {
            appendMark(afterMarks, after, b[j++]);
        }
    }
}

QVector<DiffLine> diffTexts(const GraphText& beforeText, const GraphText& afterText) {
    const QVector<Line> before = keyedLines(beforeText), after = keyedLines(afterText);
    const QVector<int> matched = matchLines(before, after);
    QVector<DiffLine> lines;
    int next = 0;
    const auto removeUntil = [&](int end) {
        for (; next < end; ++next)
            lines.append({DiffLine::Kind::Removed, next + 1, 0, before[next].text, {}, {}, {}, before[next].node});
    };
    for (int i = 0; i < after.size(); ++i) {
        if (matched[i] < 0) {
            // Removed lines of a hunk stand before the added ones.
            int upcoming = i;
            while (upcoming < after.size() && matched[upcoming] < 0) ++upcoming;
            removeUntil(upcoming < after.size() ? matched[upcoming] : static_cast<int>(before.size()));
            lines.append({DiffLine::Kind::Added, 0, i + 1, {}, after[i].text, {}, {}, after[i].node});
            continue;
        }
        removeUntil(matched[i]);
        next = matched[i] + 1;
        DiffLine line{DiffLine::Kind::Same, matched[i] + 1, i + 1, before[matched[i]].text, after[i].text, {}, {},
                      after[i].node};
        if (line.before != line.after) {
            line.kind = DiffLine::Kind::Edited;
            markWords(line.before, line.after, line.beforeMarks, line.afterMarks);
        }
        lines.append(line);
    }
    removeUntil(static_cast<int>(before.size()));
    return lines;
}

QVector<DiffLine> linesOf(const GraphText& text) {
    QVector<DiffLine> lines;
    for (const auto& [line, node] : plainLines(text)) {
        const auto number = static_cast<int>(lines.size()) + 1;
        lines.append({DiffLine::Kind::Same, number, number, line, line, {}, {}, node});
    }
    return lines;
}

}  // namespace cutaway::ui
