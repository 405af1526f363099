#include "ui/models/plugins_model.h"

#include <QDateTime>

#include "ui/models/units.h"

namespace cutaway::ui {
namespace {

bool isPluginNumber(int column) {
    return column == PluginsModel::Calls || column == PluginsModel::Time || column == PluginsModel::Faults;
}

QString pluginToolTip(const PluginInfo& plugin) {
    QStringList lines;
    if (!plugin.summary.empty()) lines << QString::fromStdString(plugin.summary);
    lines << QString::fromStdString(plugin.file);
    for (const PluginItem& item : plugin.items)
        lines << QString::fromStdString(item.kind + " " + item.name + ": " + item.summary +
                                        (item.place.empty() ? "" : " (" + item.place + ")"));
    if (!plugin.problem.empty()) lines << QString::fromStdString(plugin.problem);
    if (!plugin.lastFaults.empty()) lines << QString::fromStdString(plugin.lastFaults.back().sentence);
    return lines.join(QChar('\n'));
}

}  // namespace

QString pluginDetails(const PluginInfo& plugin) {
    QStringList lines{QString::fromStdString(plugin.file)};
    lines << PluginsModel::tr("calls: %1, time: %2, faults: %3")
                 .arg(plugin.calls)
                 .arg(durationText(plugin.milliseconds))
                 .arg(plugin.faults);
    for (auto fault = plugin.lastFaults.rbegin(); fault != plugin.lastFaults.rend(); ++fault)
        lines << QDateTime::fromMSecsSinceEpoch(fault->milliseconds).toString(QStringLiteral("HH:mm:ss  ")) +
                     QString::fromStdString(fault->sentence);
    for (const PluginItem& item : plugin.items) {
        lines << QString::fromStdString(item.kind + " " + item.name + ": " + item.summary);
        for (const std::string* more : {&item.place, &item.patterns, &item.unit, &item.operators})
            if (!more->empty()) lines << QStringLiteral("    ") + QString::fromStdString(*more);
    }
    for (const std::string& schema : plugin.defines)
        lines << PluginsModel::tr("operator %1").arg(QString::fromStdString(schema));
    if (plugin.startsProcesses) lines << PluginsModel::tr("It may start processes.");
    return lines.join(QChar('\n'));
}

QString givesText(const PluginInfo& plugin) {
    QStringList items;
    for (const PluginItem& item : plugin.items) items << QString::fromStdString(item.kind + " " + item.name);
    if (!plugin.rules.empty()) items << PluginsModel::tr("rules");
    return items.join(QStringLiteral(", "));
}

void PluginsModel::setPlugins(std::vector<PluginInfo> plugins) {
    beginResetModel();
    m_plugins = std::move(plugins);
    endResetModel();
}

int PluginsModel::rowOf(const std::string& file) const {
    for (size_t i = 0; i < m_plugins.size(); ++i)
        if (m_plugins[i].file == file) return static_cast<int>(i);
    return -1;
}

int PluginsModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_plugins.size());
}
int PluginsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant PluginsModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole && isPluginNumber(section)) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole) return {};
    switch (section) {
        case Plugin: return tr("Plugin");
        case Version: return tr("Version");
        case Gives: return tr("Gives");
        case From: return tr("From");
        case Calls: return tr("Calls");
        case Time: return tr("Time");
        case Faults: return tr("Faults");
        default: return {};
    }
}

Qt::ItemFlags PluginsModel::flags(const QModelIndex& at) const {
    return QAbstractTableModel::flags(at) | (at.column() == Plugin ? Qt::ItemIsUserCheckable : Qt::NoItemFlags);
}

bool PluginsModel::setData(const QModelIndex& at, const QVariant& value, int role) {
    if (role != Qt::CheckStateRole || at.column() != Plugin || at.row() >= rowCount()) return false;
    PluginInfo& plugin = m_plugins[static_cast<size_t>(at.row())];
    plugin.on = value.toInt() == Qt::Checked;
    emit dataChanged(at, at, {role});
    emit switched(QString::fromStdString(plugin.name), plugin.on);
    return true;
}

QVariant PluginsModel::data(const QModelIndex& at, int role) const {
    if (!at.isValid() || at.row() >= rowCount()) return {};
    const PluginInfo& plugin = m_plugins[static_cast<size_t>(at.row())];
    if (role == Qt::ToolTipRole) return pluginToolTip(plugin);
    if (role == Qt::CheckStateRole && at.column() == Plugin) return plugin.on ? Qt::Checked : Qt::Unchecked;
    if (role == Qt::TextAlignmentRole && isPluginNumber(at.column()))
        return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != SortRole) return {};
    const bool sorted = role == SortRole;
    switch (at.column()) {
        case Plugin: return QString::fromStdString(plugin.name);
        case Version: return QString::fromStdString(plugin.version);
        case Gives: return plugin.problem.empty() ? givesText(plugin) : tr("✗ cannot be used");
        case From: return QString::fromStdString(plugin.from);
        case Calls: return sorted ? QVariant(plugin.calls) : QString::number(plugin.calls);
        case Time: return sorted ? QVariant(plugin.milliseconds) : durationText(plugin.milliseconds);
        case Faults: return sorted ? QVariant(plugin.faults) : QString::number(plugin.faults);
        default: return {};
    }
}

}  // namespace cutaway::ui
