#include "ui/models/breakpoints_model.h"

namespace cutaway::ui {

QString sentenceOf(const Breakpoint& breakpoint) {
    const QString what = QString::fromStdString(breakpoint.what);
    switch (breakpoint.kind) {
        case Breakpoint::Kind::Pass: return QObject::tr("pass %1 has run").arg(what);
        case Breakpoint::Kind::NodeBorn: return QObject::tr("node %1 is created").arg(what);
        case Breakpoint::Kind::NodeDies: return QObject::tr("node %1 is removed").arg(what);
        case Breakpoint::Kind::OpAppears: return QObject::tr("a node appears with %1").arg(what);
        case Breakpoint::Kind::OpDisappears: return QObject::tr("a node disappears with %1").arg(what);
        case Breakpoint::Kind::NonFinite: return QObject::tr("a result is NaN or infinite for the first time");
    }
    return {};
}

BreakpointsModel::BreakpointsModel(Breakpoints& breakpoints, QObject* parent)
    : QAbstractTableModel(parent), m_breakpoints(breakpoints) {
    connect(&breakpoints, &Breakpoints::changed, this, [this] {
        beginResetModel();
        endResetModel();
    });
    connect(&breakpoints, &Breakpoints::stopChanged, this, [this] {
        if (rowCount() > 0) emit dataChanged(index(0, Stopped), index(rowCount() - 1, Stopped));
    });
}

int BreakpointsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_breakpoints.all().size());
}
int BreakpointsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant BreakpointsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    switch (section) {
        case Condition: return tr("Stop when");
        case Hits: return tr("Stop at hit");
        case Stopped: return tr("Last stop");
        default: return {};
    }
}

Qt::ItemFlags BreakpointsModel::flags(const QModelIndex& at) const {
    Qt::ItemFlags flags = QAbstractTableModel::flags(at);
    if (at.column() == Condition) flags |= Qt::ItemIsUserCheckable | Qt::ItemIsEditable;
    if (at.column() == Hits) flags |= Qt::ItemIsEditable;
    return flags;
}

QVariant BreakpointsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= rowCount()) return {};
    const Breakpoint& one = m_breakpoints.all()[static_cast<size_t>(at.row())];
    const auto& stop = m_breakpoints.stop();
    const bool here = stop && m_breakpoints.stoppedRow() == at.row();
    if (at.column() == Condition) {
        if (role == Qt::DisplayRole) return sentenceOf(one);
        if (role == Qt::EditRole) {
            Breakpoint plain = one;
            plain.hits = 1;
            return QString::fromStdString(plain.text());
        }
        if (role == Qt::CheckStateRole) return one.enabled ? Qt::Checked : Qt::Unchecked;
        if (role == Qt::ToolTipRole && one.kind == Breakpoint::Kind::NonFinite)
            return tr("Runs every graph in the reference interpreter; slow");
    }
    if (at.column() == Hits && (role == Qt::DisplayRole || role == Qt::EditRole)) return one.hits;
    if (at.column() == Stopped && role == Qt::DisplayRole && here) return QString::fromStdString(stop->detail);
    return {};
}

bool BreakpointsModel::setData(const QModelIndex& at, const QVariant& value, int role) {
    if (!at.isValid() || at.row() >= rowCount()) return false;
    Breakpoint one = m_breakpoints.all()[static_cast<size_t>(at.row())];
    if (at.column() == Condition && role == Qt::CheckStateRole) one.enabled = value.toInt() == Qt::Checked;
    else if (at.column() == Hits && role == Qt::EditRole) {
        if (value.toInt() < 1) return false;
        one.hits = value.toInt();
    } else if (at.column() == Condition && role == Qt::EditRole) {
        const auto typed = parseBreakpoint(value.toString().trimmed().toStdString());
        if (!typed) {
            emit refused(QString::fromStdString(typed.error().message));
            return false;
        }
        one.kind = typed->kind;
        one.what = typed->what;
        if (typed->hits > 1) one.hits = typed->hits;
    } else return false;
    m_breakpoints.change(at.row(), one);
    return true;
}

}  // namespace cutaway::ui
