#pragma once
// One run as a tree: the graph as opened, then stage -> pass -> single rewrite; of training runs track -> stage.
// Neighbouring passes that changed nothing are folded into one row with their count. Rewrites are asked for when a pass
// is opened (rewritesWanted).
#include <QAbstractItemModel>
#include <memory>
#include <optional>
#include <vector>

#include "cutaway/session.h"

namespace cutaway::ui {

class StepsModel : public QAbstractItemModel {
    Q_OBJECT

  public:
    enum Column { Name, Changes, Nodes, Time, ColumnCount };
    enum class Kind { Opened, Graph, Stage, Pass, Fold, Rewrite };
    enum Role { KindRole = Qt::UserRole, StepRole, RewriteRole, StateRole };

    explicit StepsModel(QObject* parent = nullptr);
    ~StepsModel() override;

    /// Steps of a run. An empty list shows nothing.
    void setRun(RunId run, std::vector<StepInfo> steps);
    /// Further steps of a run under way: adds rows, and removes none but those of neighbours that fold.
    void addSteps(const std::vector<StepInfo>& steps);
    /// A run under way has no id: its rows stand for no place, and its passes cannot be switched.
    static constexpr RunId kUnderWay = -1;
    void clear();
    void setRewrites(int step, std::vector<RewriteInfo> rewrites);
    void setMarks(std::optional<Place> a, std::optional<Place> b);
    RunId run() const { return m_run; }
    const std::vector<StepInfo>& steps() const { return m_steps; }

    /// What the row stands for; none for stages and folds.
    std::optional<Place> placeOf(const QModelIndex& at) const;
    /// The row of a place; of its pass where the rewrite is not loaded.
    QModelIndex indexOf(const Place& place) const;
    /// Name, state and summary of a row, for a screen reader or the clipboard.
    QString lineOf(const QModelIndex& at) const;

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& at) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    bool setData(const QModelIndex& at, const QVariant& value, int role = Qt::EditRole) override;
    Qt::ItemFlags flags(const QModelIndex& at) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    bool hasChildren(const QModelIndex& parent = {}) const override;
    bool canFetchMore(const QModelIndex& parent) const override;
    void fetchMore(const QModelIndex& parent) override;

  signals:
    void rewritesWanted(cutaway::RunId run, int step);
    /// The check box of a pass was used; the model waits for the new run to show it.
    void passToggled(const QString& pass, bool enabled);

  private:
    struct Item;
    Item* itemOf(const QModelIndex& at) const;
    QModelIndex indexOf(const Item* item, int column = 0) const;
    void append(int step);
    Item* insert(Item* above, std::unique_ptr<Item> item);
    QString nameText(const Item& item) const;
    QString changesText(const Item& item) const;
    QString toolTip(const Item& item) const;
    const StepInfo* stepOf(const Item& item) const;
    bool placeMatches(const Item& item, const std::optional<Place>& mark) const;

    RunId m_run = 0;
    std::vector<StepInfo> m_steps;
    std::unique_ptr<Item> m_root;
    bool m_resetting = false;        // nobody is told of single rows
    std::vector<Item*> m_passItems;  // by step index
    std::optional<Place> m_markA, m_markB;
};

/// "+2 −1 ~3"; empty for none.
QString changeCounts(int added, int removed, int edited);

}  // namespace cutaway::ui
