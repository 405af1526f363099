#pragma once
// The rules that may start at a node, each with its answer: it applies, or the first condition that failed. For the
// rules of the current step also what they tried and did in the whole graph.
#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "cutaway/session.h"

namespace cutaway::ui {

/// What was asked and what came back.
struct Explained {
    Place before;                // the graph that the rules saw
    std::string pass;            // the current step; empty when no step is shown
    NodeId node = NodeId::None;
    std::vector<RuleExplanation> rules;  // of all passes; empty without a node
    std::vector<RuleUse> uses;           // of the current step
    std::shared_ptr<const std::vector<RuleInfo>> infos;  // texts of all rules
    std::vector<std::pair<NodeId, std::string>> names;
};

class ExplainModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Rule, Answer, Reason, Tried, Applied, Time, ColumnCount };
    /// NodeRole: the node that the reason is about, as quint32; absent if none.
    enum Role { NodeRole = Qt::UserRole, SortRole };

    using QAbstractTableModel::QAbstractTableModel;

    void setExplained(Explained explained);
    const Explained& explained() const { return m_explained; }
    /// Find and replace as text, for the row's rule; empty if the rule has none on record.
    QString ruleText(int row) const;
    /// One line for the clipboard or a screen reader.
    QString lineOf(int row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  private:
    struct Row {
        std::string pass, rule;
        const RuleExplanation* answer = nullptr;
        const RuleUse* use = nullptr;
    };
    QVariant cell(const Row& row, int column) const;

    Explained m_explained;
    std::vector<Row> m_rows;
};

}  // namespace cutaway::ui
