#pragma once
// The current place that all windows share: the two graphs that are compared, and the current node. Windows talk to
// each other only through it. Every change is remembered, so that Alt+Left goes back.
#include <QObject>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cutaway/session.h"

namespace cutaway::ui {

struct GraphLook;

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
    /// As part of what was done before, without a stop of the history.
    void moveNode(NodeKey node);
    /// The same place and node, looked at otherwise from now on.
    void addStop();
    /// How the place is looked at just now; null: nobody looks yet. Each stop of the history keeps it.
    void setLooker(std::function<std::shared_ptr<const GraphLook>()> looker) { m_looker = std::move(looker); }
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
    /// Back or forward to a stop that was looked at so; after placeChanged and nodeChanged.
    void returned(const std::shared_ptr<const cutaway::ui::GraphLook>& look);

  private:
    struct Stop {
        Comparison comparison;
        NodeKey node = NodeKey::None;
        std::shared_ptr<const GraphLook> look = {};
    };
    void remember();
    void returnTo(std::vector<Stop>& from, std::vector<Stop>& others);
    void moveTo(const Stop& stop);
    void marked();

    std::optional<Stop> m_current;
    std::vector<Stop> m_back, m_forward;
    std::function<std::shared_ptr<const GraphLook>()> m_looker;
    std::optional<Place> m_markA, m_markB;
};

}  // namespace cutaway::ui
