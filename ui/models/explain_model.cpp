#include "ui/models/explain_model.h"

#include <QFont>
#include <QGuiApplication>
#include <algorithm>

#include "ui/models/number_cells.h"
#include "ui/models/syntax.h"
#include "ui/models/units.h"
#include "ui/models/words.h"

namespace cutaway::ui {
namespace {

constexpr const char* kCode = "(code)";
/// What stands between backticks as code, beginning large and with a full stop.
QString sentenceHtml(const QString& escaped) {
    QString html;
    const QStringList parts = escaped.split(QChar('`'));
    for (qsizetype i = 0; i < parts.size(); ++i)
        html += i % 2 == 0 || i + 1 == parts.size() ? parts[i] : QStringLiteral("<code>%1</code>").arg(parts[i]);
    if (html.isEmpty()) return html;
    html[0] = html[0].toUpper();
    return html.endsWith(QChar('.')) ? html : html + QChar('.');
}

bool isExplainNumber(int column) { return column >= ExplainModel::Tried && column <= ExplainModel::Time; }

}  // namespace

QString Explained::nameOf(NodeKey id) const { return nameIn(nodes, id); }

void ExplainModel::setExplained(Explained explained) {
    beginResetModel();
    m_explained = std::move(explained);
    m_rows.clear();
    // "#2" tells two runs of one pass apart; its rules are the same.
    const std::string pass = m_explained.pass.substr(0, m_explained.pass.find('#'));
    m_explained.pass = pass;
    for (const RuleExplanation& answer : m_explained.rules) m_rows.push_back({answer.pass, answer.rule, &answer});
    for (const RuleUse& use : m_explained.uses) {
        const auto found = std::find_if(m_rows.begin(), m_rows.end(),
                                        [&](const Row& row) { return row.pass == pass && row.rule == use.rule; });
        if (found != m_rows.end()) found->use = &use;
        else m_rows.push_back({pass, use.rule, nullptr, &use});
    }
    const auto& off = m_explained.disabled;
    for (Row& row : m_rows) {
        if (m_explained.infos)
            for (const RuleInfo& info : *m_explained.infos)
                if (info.name == row.rule && info.pass == row.pass) row.info = &info;
        for (const std::string& name : {row.rule, row.pass, row.pass + "/" + row.rule})
            row.off |= std::find(off.begin(), off.end(), name) != off.end();
        row.inactive =
            std::find(m_explained.inactive.begin(), m_explained.inactive.end(), row.pass) != m_explained.inactive.end();
        row.off |= row.inactive;
    }
    // What is off must stay in reach to be switched on again, whatever is on show.
    for (const std::string& name : off) {
        const size_t slash = name.find('/');
        if (slash == std::string::npos) continue;
        Row row{name.substr(0, slash), name.substr(slash + 1)};
        row.off = true;
        if (m_explained.infos)
            for (const RuleInfo& info : *m_explained.infos)
                if (info.name == row.rule && info.pass == row.pass) row.info = &info;
        if (std::none_of(m_rows.begin(), m_rows.end(),
                         [&](const Row& known) { return known.pass == row.pass && known.rule == row.rule; }))
            m_rows.push_back(row);
    }
    // The rule of the current rewrite first, then what applies, then the current step's, then as the passes run.
    const auto order = [&](const Row& row) {
        return (isCurrent(row) ? 0 : 8) + (row.answer && row.answer->applies && !row.off ? 0 : 4) +
               (row.pass == pass ? 0 : 2) + (row.answer ? 0 : 1);
    };
    std::stable_sort(m_rows.begin(), m_rows.end(), [&](const Row& a, const Row& b) { return order(a) < order(b); });
    endResetModel();
}

int ExplainModel::currentRow() const { return !m_rows.empty() && isCurrent(m_rows.front()) ? 0 : -1; }

QString ExplainModel::ruleName(int row) const {
    return row < 0 || row >= rowCount() ? QString() : QString::fromStdString(m_rows[static_cast<size_t>(row)].rule);
}

ExplainModel::RuleParts ExplainModel::partsOf(const RuleInfo& info) const {
    // "(code)" stands where the rule is a function.
    const bool made = info.replace == kCode;
    RuleParts parts{QString::fromStdString(info.why), {}, {}};
    if (info.find == kCode && made) parts.more = tr("This rule is implemented in code; there is no pattern to show.");
    else
        parts.code = tr("find\n%1\n\nreplace\n%2")
                         .arg(QString::fromStdString(info.find).trimmed(),
                              made ? tr("(built in code)") : QString::fromStdString(info.replace).trimmed());
    if (info.condition && parts.more.isEmpty()) parts.more = tr("The rule also checks a condition in code.");
    return parts;
}

QString ExplainModel::ruleText(int row) const {
    const RuleInfo* info = row < 0 || row >= rowCount() ? nullptr : m_rows[static_cast<size_t>(row)].info;
    if (!info) return {};
    const RuleParts parts = partsOf(*info);
    QStringList texts{parts.why, parts.code, parts.more};
    texts.removeAll(QString());
    return texts.join(QStringLiteral("\n\n"));
}

QString ExplainModel::details(int row) const {
    if (row < 0 || row >= rowCount()) return {};
    const Row& at = m_rows[static_cast<size_t>(row)];
    const auto escaped = [](const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); };
    const auto link = [&](NodeKey id, const QString& text) {
        return QStringLiteral("<a href=\"node:%1\">%2</a>").arg(cutaway::packed(id)).arg(text.toHtmlEscaped());
    };
    QString html = QStringLiteral("<p><b>%1</b> %2</p>")
                       .arg(escaped(at.rule), at.pass.empty() ? QString() : tr("of %1").arg(escaped(at.pass)));
    if (at.off)
        html +=
            QStringLiteral("<p>%1</p>")
                .arg(
                    at.inactive
                        ? tr("The pass did not run: it is optional, or for another mode. Tick the rule to compile with its pass.")
                        : tr("Switched off in this run."));
    if (at.answer) {
        html += QStringLiteral("<p>%1</p>")
                    .arg((at.answer->applies ? at.off ? tr("It would apply at %1.") : tr("✓ Applies at %1.")
                                             : tr("✗ Does not apply at %1."))
                             .arg(link(at.answer->node, m_explained.nameOf(at.answer->node))));
        QString reason = escaped(at.answer->reason);
        QStringList about;
        for (NodeKey id : at.answer->nodes) {
            const QString name = m_explained.nameOf(id), quoted = QStringLiteral("`%1`").arg(name.toHtmlEscaped());
            if (reason.contains(quoted)) reason.replace(quoted, link(id, name));
            else about << link(id, name);
        }
        if (!reason.isEmpty()) html += QStringLiteral("<p>%1</p>").arg(sentenceHtml(reason));
        if (!about.isEmpty())
            html += QStringLiteral("<p>%1 %2</p>")
                        .arg(at.answer->applies ? tr("It would replace") : tr("See"), about.join(QStringLiteral(", ")));
    } else if (const QString elsewhere = startsElsewhere(at); !elsewhere.isEmpty()) {
        html += QStringLiteral("<p>%1</p>").arg(elsewhere.toHtmlEscaped());
    }
    if (at.use) {
        const QString times = durationText(at.use->milliseconds);
        const QString applied = tr("applied %1").arg(counted(at.use->applied, tr("time"), tr("times")));
        html += QStringLiteral("<p>%1</p>")
                    .arg(at.use->tried < 0 ? tr("In this step: %1.").arg(applied)
                                           : tr("In this step: tried at %1, %2, %3.")
                                                 .arg(counted(at.use->tried, tr("node"), tr("nodes")), applied, times));
    }
    if (at.info) {
        const RuleParts parts = partsOf(*at.info);
        if (!parts.why.isEmpty()) html += QStringLiteral("<p>%1</p>").arg(parts.why.toHtmlEscaped());
        if (!parts.code.isEmpty())
            html += htmlOf(parts.code, Language::Rules, SyntaxColors::of(QGuiApplication::palette()));
        if (!parts.more.isEmpty()) html += QStringLiteral("<p>%1</p>").arg(parts.more.toHtmlEscaped());
    }
    return html;
}

QString ExplainModel::lineOf(int row) const {
    QStringList parts;
    for (int column = 0; column < ColumnCount; ++column)
        if (const QString text = index(row, column).data().toString(); !text.isEmpty()) parts << text;
    return parts.join(QStringLiteral("\t"));
}

int ExplainModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int ExplainModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

/// Of a rule of the step that does not begin at the node that was asked about.
QString ExplainModel::startsElsewhere(const Row& row) const {
    if (m_explained.node == NodeKey::None || m_explained.rules.empty() || row.answer || !row.info) return {};
    QStringList starts;
    for (const std::string& op : row.info->starts) starts << QString::fromStdString(op);
    return starts.isEmpty() ? QString() : tr("It starts at %1, not here.").arg(starts.join(QStringLiteral(", ")));
}

QVariant ExplainModel::cell(const Row& row, int column) const {
    switch (column) {
        case Rule: return QString::fromStdString(row.pass.empty() ? row.rule : row.rule + " (" + row.pass + ")");
        case Answer:
            return row.off                 ? tr("off")
                   : row.answer == nullptr ? startsElsewhere(row).isEmpty() ? QString() : tr("–")
                   : row.answer->applies ? tr("✓ yes")
                                           : tr("✗ no");
        case Tried:
            return row.use && row.use->tried >= 0 ? QVariant(static_cast<qlonglong>(row.use->tried)) : QVariant();
        case Applied: return row.use ? QVariant(static_cast<qlonglong>(row.use->applied)) : QVariant();
        case Time: return row.use && row.use->tried >= 0 ? QVariant(durationText(row.use->milliseconds)) : QVariant();
        case Reason: return row.answer == nullptr ? startsElsewhere(row) : QString::fromStdString(row.answer->reason);
        default: return {};
    }
}

QVariant ExplainModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= rowCount()) return {};
    const Row& row = m_rows[static_cast<size_t>(at.row())];
    switch (role) {
        case Qt::DisplayRole: return cell(row, at.column());
        case Qt::CheckStateRole:
            return at.column() == Rule && (row.info || row.off) ? QVariant(row.off ? Qt::Unchecked : Qt::Checked)
                                                                : QVariant();
        case Qt::FontRole: {
            QFont font = isExplainNumber(at.column()) ? numberFont() : QFont();
            font.setBold(isCurrent(row));
            return font;
        }
        case Qt::ToolTipRole:
            if (at.column() == Answer && !startsElsewhere(row).isEmpty()) return startsElsewhere(row);
            return at.column() == Rule && !ruleText(at.row()).isEmpty() ? QVariant(ruleText(at.row()))
                                                                        : cell(row, at.column());
        case Qt::AccessibleTextRole: return at.column() == Rule ? QVariant(lineOf(at.row())) : QVariant();
        case Qt::TextAlignmentRole: return isExplainNumber(at.column()) ? numberCell(role) : QVariant();
        case NodeRole:
            return row.answer && !row.answer->nodes.empty()
                       ? QVariant(static_cast<quint64>(cutaway::packed(row.answer->nodes.front())))
                       : QVariant();
        case SortRole: return at.column() == Time && row.use ? QVariant(row.use->milliseconds) : cell(row, at.column());
        default: return {};
    }
}

Qt::ItemFlags ExplainModel::flags(const QModelIndex& at) const {
    Qt::ItemFlags flags = QAbstractTableModel::flags(at);
    // Rewrites that are not a rule of their own can be switched off with their pass only.
    if (at.isValid() && at.column() == Rule && at.data(Qt::CheckStateRole).isValid()) flags |= Qt::ItemIsUserCheckable;
    return flags;
}

bool ExplainModel::setData(const QModelIndex& at, const QVariant& value, int role) {
    if (!at.isValid() || at.row() >= rowCount() || role != Qt::CheckStateRole) return false;
    const Row& row = m_rows[static_cast<size_t>(at.row())];
    const bool enabled = value.toInt() == Qt::Checked;
    if (enabled != row.off || !(row.info || row.off)) return false;
    emit ruleToggled(QString::fromStdString(row.pass.empty() ? row.rule : row.pass + "/" + row.rule), enabled);
    return false;
}

QVariant ExplainModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role != Qt::DisplayRole) return isExplainNumber(section) ? numberHeader(role) : QVariant();
    switch (section) {
        case Rule: return tr("Rule");
        case Answer: return tr("Applies");
        case Tried: return tr("Tried");
        case Applied: return tr("Applied");
        case Time: return tr("Time");
        case Reason: return tr("Why not");
        default: return {};
    }
}

}  // namespace cutaway::ui
