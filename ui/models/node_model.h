#pragma once
// Everything about one node as a tree of label and value: result, before -> after, arguments, inputs, users, source
// frames, history. Rows that name another node or a step carry it, so that a view can go there.
#include <QAbstractItemModel>
#include <memory>
#include <optional>
#include <vector>

#include "ui/graph/kernel_marks.h"
#include "ui/models/node_index.h"

namespace cutaway::ui {

struct NodeFacts {
    std::optional<NodeDetails> before, after;    // absent where the side has no such node
    std::shared_ptr<const NodeIndex> nodes;      // of the graph on show, to name those in lists
    std::vector<StepInfo> steps;                 // to name the steps of the history
    std::optional<ValueSummary> values;          // of a constant, a moment after the rest
    QString definition;                          // to begin with, of an operator that nothing or a file defines
    std::shared_ptr<const KernelMarks> kernels;  // of the run; null while they are not known
    QString partition;                           // of training: why it is saved, computed again, or on one side only
};

class NodeModel : public QAbstractItemModel {
    Q_OBJECT

  public:
    enum Role { NodeRole = Qt::UserRole, StepRole, KernelRole };

    explicit NodeModel(QObject* parent = nullptr);
    ~NodeModel() override;
    void setFacts(const NodeFacts& facts);
    void clear();

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& at) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    struct Item;
    Item* itemOf(const QModelIndex& at) const;
    void addConstant(const NodeDetails& now, const NodeDetails& was, const NodeFacts& facts);
    void addKernels(const NodeDetails& now, const NodeFacts& facts);
    void addNumbers(Item& item, const ValueSummary& values);
    std::unique_ptr<Item> m_root;
};

}  // namespace cutaway::ui
