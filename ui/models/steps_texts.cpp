// What the rows of the tree of steps say, and how.
#include <QBrush>
#include <QFont>
#include <QGuiApplication>
#include <QPalette>
#include <QStringList>

#include "cutaway/words.h"
#include "ui/graph/graph_colors.h"
#include "ui/models/number_cells.h"
#include "ui/models/step_kinds.h"
#include "ui/models/steps_item.h"
#include "ui/models/units.h"
#include "ui/models/words.h"

namespace cutaway::ui {

QString StepsModel::nameText(const Item& item) const {
    QString marks;  // in front: long names lose their end
    if (placeMatches(item, m_markA)) marks += tr("[A] ");
    if (placeMatches(item, m_markB)) marks += tr("[B] ");
    switch (item.kind) {
        case Kind::Opened: return marks + tr("As opened");
        case Kind::Graph: return item.graphName;
        case Kind::Stage: return item.stage;
        case Kind::Fold:
            return counted(static_cast<qsizetype>(item.children.size()), tr("unchanged pass"), tr("unchanged passes"));
        case Kind::Pass: return marks + QString::fromStdString(stepOf(item)->name);
        case Kind::Rewrite: {
            const QString node = QString::fromStdString(item.rewrite.node);
            return marks +
                   QStringLiteral("%1  %2%3")
                       .arg(item.row + 1)
                       .arg(QString::fromStdString(item.rewrite.rule), node.isEmpty() ? QString() : tr(" at ") + node);
        }
    }
    return {};
}

QString StepsModel::changesText(const Item& item) const {
    if (item.kind == Kind::Stage || item.kind == Kind::Graph) {
        int changed = 0, failed = 0;
        for (const StepInfo& step : m_steps)
            if (QString::fromStdString(step.graphName) == item.graphName &&
                (item.kind == Kind::Graph || QString::fromStdString(step.stage) == item.stage)) {
                changed += step.state == StepState::Changed;
                failed += step.state == StepState::Failed;
            }
        if (failed) return tr("%1 failed").arg(failed);
        return changed ? tr("%1 changed").arg(changed) : QString();
    }
    const StepInfo* step = stepOf(item);
    if (!step) return {};
    switch (step->state) {
        case StepState::Failed: return tr("✗ failed");
        case StepState::Disabled: return tr("off");
        case StepState::Unchanged: return QStringLiteral("·");
        case StepState::Changed: break;
    }
    const QString counts = changeCounts(step->added, step->removed, step->edited);
    const auto next = static_cast<size_t>(step->index) + 1;
    const bool splits =
        step->graphName == "joint" && next < m_steps.size() && m_steps[next].graphName != step->graphName;
    return splits              ? tr("split")
           : !counts.isEmpty() ? counts
           : isSchedule(*step) ? counted(step->rewrites, tr("decision"), tr("decisions"))
                               : tr("reordered");
}

QString StepsModel::toolTip(const Item& item) const {
    if (item.kind == Kind::Rewrite)
        return item.rewrite.why.empty() ? nameText(item)
                                        : nameText(item) + QChar('\n') + QString::fromStdString(item.rewrite.why);
    const StepInfo* step = stepOf(item);
    if (!step) return {};
    QStringList lines = {nameText(item),
                         QString::fromStdString(step->summary)};  // the name too: in a narrow window its end is cut
    if (step->nodesBefore != step->nodesAfter)
        lines << tr("%1 nodes before, %2 after").arg(step->nodesBefore).arg(step->nodesAfter);
    if (step->constantBytesBefore != step->constantBytesAfter)
        lines << tr("Constants: %1 before, %2 after")
                     .arg(sizeText(step->constantBytesBefore), sizeText(step->constantBytesAfter));
    if (step->rewrites)
        lines << (isSchedule(*step) ? counted(step->rewrites, tr("scheduling decision"), tr("scheduling decisions"))
                                    : counted(step->rewrites, tr("rewrite"), tr("rewrites")));
    if (!step->error.empty()) lines << QString::fromStdString(step->error);
    lines.removeAll(QString());
    return lines.join('\n');
}

QVariant StepsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid()) return {};
    const Item& item = *itemOf(at);
    const StepInfo* step = stepOf(item);
    switch (role) {
        case Qt::DisplayRole:
            if (at.column() == Name) return nameText(item);
            if (at.column() == Changes) return changesText(item);
            if (!step) return {};
            if (at.column() == Nodes) return QString::number(step->nodesAfter);
            return step->state == StepState::Disabled ? QString() : durationText(step->milliseconds);
        case Qt::CheckStateRole:
            if (at.column() != Name || !step) return {};
            return step->state == StepState::Disabled ? Qt::Unchecked : Qt::Checked;
        case Qt::TextAlignmentRole: return at.column() > Name ? numberCell(role) : QVariant();
        case Qt::FontRole: {
            QFont font = at.column() > Name ? numberFont() : QFont();
            font.setBold(item.kind == Kind::Stage || item.kind == Kind::Graph ||
                         (step && (step->state == StepState::Changed || step->state == StepState::Failed) &&
                          at.column() == Name));
            font.setItalic(item.kind == Kind::Fold);
            return font;
        }
        case Qt::ForegroundRole:
            if (step && step->state == StepState::Failed)
                return GraphColors::of(QGuiApplication::palette())[Change::Removed].line;
            if (item.kind == Kind::Fold || (step && step->state != StepState::Changed))
                return QGuiApplication::palette().brush(QPalette::PlaceholderText);
            return {};
        case Qt::ToolTipRole: return toolTip(item);
        case Qt::AccessibleTextRole: return at.column() == Name ? lineOf(at) : QVariant();
        case KindRole: return static_cast<int>(item.kind);
        case StepRole: return item.step;
        case RewriteRole: return item.kind == Kind::Rewrite ? item.row : -1;
        case StateRole: return step ? QVariant(static_cast<int>(step->state)) : QVariant();
        default: return {};
    }
}

QString StepsModel::lineOf(const QModelIndex& at) const {
    QStringList parts;
    for (int column = 0; column < ColumnCount; ++column) {
        const QString text = at.siblingAtColumn(column).data().toString();
        if (!text.isEmpty()) parts << text;
    }
    return parts.join(QStringLiteral("\t"));
}

QVariant StepsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role != Qt::DisplayRole) return section > Name ? numberHeader(role) : QVariant();
    const QString names[] = {tr("Step"), tr("Changes"), tr("Nodes"), tr("Time")};
    return section >= 0 && section < ColumnCount ? names[section] : QVariant();
}

QString changeCounts(int added, int removed, int edited) {
    QStringList parts;
    if (added) parts << QStringLiteral("+%1").arg(added);
    if (removed) parts << QStringLiteral("−%1").arg(removed);
    if (edited) parts << QStringLiteral("~%1").arg(edited);
    return parts.join(' ');
}

}  // namespace cutaway::ui
