#include "ui/models/steps_filter.h"

#include <algorithm>

#include "ui/models/steps_model.h"

namespace cutaway::ui {

void StepsFilter::setText(const QString& text, const std::vector<std::vector<RewriteInfo>>& rewrites) {
    m_words = text.split(QChar(' '), Qt::SkipEmptyParts);
    m_steps.clear();
    m_count = 0;
    for (size_t step = 0; !m_words.isEmpty() && step < rewrites.size(); ++step)
        for (const RewriteInfo& rewrite : rewrites[step])
            if (matches(QString::fromStdString(rewrite.rule + " at " + rewrite.node))) {
                m_steps.insert(static_cast<int>(step));
                ++m_count;
            }
    invalidateFilter();
}

bool StepsFilter::matches(const QString& text) const {
    return std::all_of(m_words.begin(), m_words.end(),
                       [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

bool StepsFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
    if (m_words.isEmpty()) return true;
    const QModelIndex at = sourceModel()->index(row, 0, parent);
    using Kind = StepsModel::Kind;
    switch (static_cast<Kind>(at.data(StepsModel::KindRole).toInt())) {
        case Kind::Opened: return false;
        case Kind::Graph:
        case Kind::Stage:
        case Kind::Fold:
            for (int child = 0; child < sourceModel()->rowCount(at); ++child)
                if (filterAcceptsRow(child, at)) return true;
            return false;
        case Kind::Pass:
            return matches(at.data().toString()) || m_steps.contains(at.data(StepsModel::StepRole).toInt());
        case Kind::Rewrite: return matches(parent.data().toString()) || matches(at.data().toString());
    }
    return true;
}

}  // namespace cutaway::ui
