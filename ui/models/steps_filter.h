#pragma once
// Filters the tree of steps by a text: passes by name, and single rewrites by rule and node, even those without rows
// yet. Every word must be found.
#include <QSet>
#include <QSortFilterProxyModel>
#include <QStringList>

#include "cutaway/trace.h"

namespace cutaway::ui {

class StepsFilter : public QSortFilterProxyModel {
    Q_OBJECT

  public:
    using QSortFilterProxyModel::QSortFilterProxyModel;

    /// `rewrites` by step, of the run on show.
    void setText(const QString& text, const std::vector<std::vector<RewriteInfo>>& rewrites);
    bool isEmpty() const { return m_words.isEmpty(); }
    /// Rewrites that match, in all steps.
    int rewriteCount() const { return m_count; }
    /// Steps with at least one of them.
    const QSet<int>& steps() const { return m_steps; }
    bool matches(const QString& text) const;

  protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

  private:
    QStringList m_words;
    QSet<int> m_steps;
    int m_count = 0;
};

}  // namespace cutaway::ui
