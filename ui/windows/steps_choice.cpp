// Steps that are chosen together by Ctrl+click: two are compared, more stand beside each other.
#include <QMouseEvent>
#include <QTreeView>
#include <algorithm>
#include <climits>

#include "ui/windows/filmstrip_window.h"
#include "ui/windows/steps_window.h"

namespace cutaway::ui {

bool StepsWindow::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::MouseButtonPress || watched != m_tree->viewport())
        return Window::eventFilter(watched, event);
    const auto* mouse = static_cast<QMouseEvent*>(event);
    if (mouse->button() != Qt::LeftButton || mouse->modifiers() != Qt::ControlModifier) return false;
    const QModelIndex at = m_tree->indexAt(mouse->position().toPoint());
    const auto place = m_model.placeOf(m_filtered->mapToSource(at));
    if (!place || m_model.run() == StepsModel::kUnderWay || !m_selection.hasPlace()) return false;
    choosePlace(*place);
    return true;
}

/// One more, or, if it is chosen already, one less.
void StepsWindow::choosePlace(const Place& place) {
    if (m_chosen.empty()) m_chosen.push_back(m_selection.place());
    const auto found = std::find(m_chosen.begin(), m_chosen.end(), place);
    if (found != m_chosen.end()) m_chosen.erase(found);
    else if (m_chosen.size() == FilmstripWindow::kMostStates)
        return emit message(tr("%1 states fit beside each other.").arg(FilmstripWindow::kMostStates));
    else m_chosen.push_back(place);
    std::stable_sort(m_chosen.begin(), m_chosen.end(), [](const Place& a, const Place& b) {
        const auto order = [](const Place& at) { return std::pair(at.step, at.rewrites < 0 ? INT_MAX : at.rewrites); };
        return order(a) < order(b);
    });
    if (m_chosen.empty()) return;
    const std::vector<Place> chosen = m_chosen;
    if (chosen.size() == 1) m_selection.setPlace(chosen.front());
    else m_selection.compare({chosen.front(), chosen.back()});
    m_chosen = chosen;
    selectChosen();
    if (chosen.size() > 2) return emit statesWanted(chosen);
    if (chosen.size() == 2)
        emit message(tr("Compares these two; Ctrl+click a third one to see all beside each other."));
}

std::span<const KeyHint> StepsWindow::keys() {
    static constexpr KeyHint kKeys[] = {
        {QT_TR_NOOP("Compare a step with the current one; with more, all beside each other"), QT_TR_NOOP("Ctrl+click")},
    };
    return kKeys;
}

void StepsWindow::selectChosen() {
    m_following = true;
    m_tree->selectionModel()->clearSelection();
    for (const Place& place : m_chosen)
        m_tree->selectionModel()->select(m_filtered->mapFromSource(m_model.indexOf(place)),
                                         QItemSelectionModel::Select | QItemSelectionModel::Rows);
    m_following = false;
}

}  // namespace cutaway::ui
