#pragma once
// Installed plugins as a table.
#include <QAbstractTableModel>

#include "cutaway/plugins.h"

namespace cutaway::ui {

class PluginsModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Plugin, Version, Gives, From, Calls, Time, Faults, ColumnCount };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setPlugins(std::vector<PluginInfo> plugins);
    const PluginInfo& at(int row) const { return m_plugins[static_cast<size_t>(row)]; }
    /// Of the plugin in that file; -1 if there is none.
    int rowOf(const std::string& file) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& at) const override;
    bool setData(const QModelIndex& at, const QVariant& value, int role) override;

  signals:
    /// Somebody has ticked or unticked the plugin.
    void switched(const QString& name, bool on);

  private:
    std::vector<PluginInfo> m_plugins;
};

/// "pass fuse, rules".
QString givesText(const PluginInfo& plugin);
/// All that is known of it, a line each: what its calls took, what went wrong, the latest first, what it gives, and the
/// operators that it defines.
QString pluginDetails(const PluginInfo& plugin);

}  // namespace cutaway::ui
