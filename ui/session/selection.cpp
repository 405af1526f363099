#include "ui/session/selection.h"

namespace cutaway::ui {
namespace {

constexpr size_t kRemembered = 200;

}  // namespace

Comparison comparisonAt(const Place& place) {
    if (place.step < 0) return {place, place};
    if (place.rewrites > 0) return {{place.run, place.step, place.rewrites - 1}, place};
    return {{place.run, place.step, 0}, place};
}

void Selection::remember() {
    if (!m_current) return;
    m_back.push_back(*m_current);
    if (m_looker) m_back.back().look = m_looker();
    if (m_back.size() > kRemembered) m_back.erase(m_back.begin());
    m_forward.clear();
    emit historyChanged();
}

void Selection::setPlace(const Place& place) { compare(comparisonAt(place)); }

void Selection::compare(const Comparison& comparison) {
    if (m_current && m_current->comparison == comparison) return;
    remember();
    const NodeKey kept = node();
    m_current = Stop{comparison, kept};
    emit placeChanged();
}

void Selection::setNode(NodeKey node) {
    if (!m_current || m_current->node == node) return;
    if (m_current->node != NodeKey::None) remember();
    moveNode(node);
}

void Selection::moveNode(NodeKey node) {
    if (!m_current || m_current->node == node) return;
    m_current->node = node;
    emit nodeChanged(node);
}

void Selection::addStop() { remember(); }

void Selection::go(const Comparison& comparison, NodeKey node) {
    if (m_current && m_current->comparison == comparison) return setNode(node);
    remember();
    moveTo({comparison, node});
}

void Selection::clear() {
    m_current.reset();
    m_back.clear();
    m_forward.clear();
    m_markA.reset();
    m_markB.reset();
    emit placeChanged();
    emit nodeChanged(NodeKey::None);
    emit marksChanged();
    emit historyChanged();
}

void Selection::setMarkA(std::optional<Place> place) {
    m_markA = place;
    marked();
}

void Selection::setMarkB(std::optional<Place> place) {
    m_markB = place;
    marked();
}

void Selection::marked() {
    emit marksChanged();
    if (m_markA && m_markB) compare({*m_markA, *m_markB});
}

void Selection::moveTo(const Stop& stop) {
    const bool place = !m_current || !(m_current->comparison == stop.comparison);
    const bool node = !m_current || m_current->node != stop.node;
    m_current = stop;
    if (place) emit placeChanged();
    if (node) emit nodeChanged(stop.node);
    emit historyChanged();
}

void Selection::returnTo(std::vector<Stop>& from, std::vector<Stop>& others) {
    if (from.empty() || !m_current) return;
    others.push_back(*m_current);
    if (m_looker) others.back().look = m_looker();
    const Stop stop = from.back();
    from.pop_back();
    moveTo(stop);
    if (stop.look) emit returned(stop.look);
}

void Selection::goBack() { returnTo(m_back, m_forward); }

void Selection::goForward() { returnTo(m_forward, m_back); }

}  // namespace cutaway::ui
