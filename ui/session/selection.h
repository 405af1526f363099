#pragma once
// The current place that all windows share: the two graphs that are compared, and the current node. Windows talk to
// each other only through it. Every change is remembered, so that Alt+Left goes back.
#include <QObject>
#include <optional>
#include <vector>

#include "cutaway/session.h"

namespace cutaway::ui {

/// Two places whose difference is on show. Equal places show one graph.
struct Comparison {
    Place before, after;
    bool operator==(const Comparison&) const = default;
};

/// The difference that a step (or one rewrite of it) made.
Comparison comparisonAt(const Place& place);

class Selection : public QObject {
    Q_OBJECT

  public:
    using QObject::QObject;

    bool hasPlace() const { return m_current.has_value(); }
    const Comparison& comparison() const { return m_current->comparison; }
    Place place() const { return m_current ? m_current->comparison.after : Place{}; }
    NodeKey node() const { return m_current ? m_current->node : NodeKey::None; }

    /// Shows what happened at `place`. The node stays.
    void setPlace(const Place& place);
    /// Shows the difference of any two places.
    void compare(const Comparison& comparison);
    void setNode(NodeKey node);
    /// Both at once, as one stop of the history.
    void go(const Comparison& comparison, NodeKey node);
    void clear();

    std::optional<Place> markA() const { return m_markA; }
    std::optional<Place> markB() const { return m_markB; }
    /// Once both marks are set, their comparison is shown.
    void setMarkA(std::optional<Place> place);
    void setMarkB(std::optional<Place> place);

    bool canGoBack() const { return !m_back.empty(); }
    bool canGoForward() const { return !m_forward.empty(); }
    void goBack();
    void goForward();

  signals:
    void placeChanged();
    void nodeChanged(cutaway::NodeKey node);
    void marksChanged();
    void historyChanged();

  private:
    struct Stop {
        Comparison comparison;
        NodeKey node = NodeKey::None;
    };
    void remember();
    void moveTo(const Stop& stop);
    void marked();

    std::optional<Stop> m_current;
    std::vector<Stop> m_back, m_forward;
    std::optional<Place> m_markA, m_markB;
};

}  // namespace cutaway::ui
