#pragma once
// The rules that may start at a node, each with its answer: it applies, or the first condition that failed. For the
// rules of the current step also what they tried and did in the whole graph. Check boxes switch rules off.
#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "ui/models/node_index.h"

namespace cutaway::ui {

/// What was asked and what came back.
struct Explained {
    Place before;      // the graph that the rules saw
    std::string pass;  // the current step; empty when no step is shown
    std::string rule;  // of the current rewrite; empty when none is shown
    NodeKey node = NodeKey::None;
    std::vector<RuleExplanation> rules;  // of all passes; empty without a node
    std::vector<RuleUse> uses;           // of the current step; `tried` is negative where nobody counted
    std::shared_ptr<const std::vector<RuleInfo>> infos;  // texts of all rules
    std::shared_ptr<const NodeIndex> nodes;              // of the graph on show, to name them
    std::vector<std::string> disabled;                   // of the run: passes, rules, "pass/rule"
    std::vector<std::string> inactive;  // passes that the run leaves out: optional ones, those of another mode
    bool stopped = false;               // before there was an answer

    QString nameOf(NodeKey id) const;
};

class ExplainModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { Rule, Answer, Tried, Applied, Time, Reason, ColumnCount };
    /// NodeRole: the node that the reason is about, as quint64; absent if none.
    enum Role { NodeRole = Qt::UserRole, SortRole };

    using QAbstractTableModel::QAbstractTableModel;

    void setExplained(Explained explained);
    const Explained& explained() const { return m_explained; }
    /// Find and replace as text, for the row's rule; empty if the rule has none on record.
    QString ruleText(int row) const;
    /// All that is known about the row, as rich text; nodes are links "node:ID".
    QString details(int row) const;
    QString ruleName(int row) const;
    /// Of the current rewrite; -1 if it has no row.
    int currentRow() const;
    /// One line for the clipboard or a screen reader.
    QString lineOf(int row) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& at, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& at) const override;
    bool setData(const QModelIndex& at, const QVariant& value, int role) override;

  signals:
    /// A check box was used; the model waits for the new run to show it. `name` is "pass/rule".
    void ruleToggled(const QString& name, bool enabled);

  private:
    struct Row {
        std::string pass, rule;
        const RuleExplanation* answer = nullptr;
        const RuleUse* use = nullptr;
        const RuleInfo* info = nullptr;
        bool off = false, inactive = false;
    };
    struct RuleParts {
        QString why, code, more;  // any may be empty
    };
    RuleParts partsOf(const RuleInfo& info) const;
    QVariant cell(const Row& row, int column) const;
    QString startsElsewhere(const Row& row) const;
    bool isCurrent(const Row& row) const {
        return !m_explained.rule.empty() && row.rule == m_explained.rule && row.pass == m_explained.pass;
    }

    Explained m_explained;
    std::vector<Row> m_rows;
};

}  // namespace cutaway::ui
