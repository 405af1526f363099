#pragma once
// Decides which collectives of a planned order become one without losing the work that runs beside them (PyTorch's
// overlap_preserving_bucketer). overlap_scheduling.cpp joins them.
#include <memory>

#include "engine/passes/post_grad/overlap_plan.h"

namespace cutaway {

class OverlapBuckets {
  public:
    /// `order`: of the plan.
    OverlapBuckets(const OverlapUnits& units, const OverlapPlan& plan, const std::vector<size_t>& order,
                   const OptionalPass& settings);

    /// Numbers of collectives that become one, two and more each.
    std::vector<std::vector<size_t>> find();
    /// By unit: the units that must come before it besides its operands, so that each group's starts and waits, and the
    /// work that hides them, keep their order.
    const std::vector<std::vector<size_t>>& before() const { return m_before; }

  private:
    static constexpr size_t kNone = ~size_t{0};
    enum class Kind { Start, Wait, Work };
    /// A unit in the order of one group's starts, waits and the work that hides them.
    struct Event {
        size_t unit = 0;
        Kind kind = Kind::Work;
        int64_t position = 0;
        size_t previous = kNone, next = kNone;  // events
    };
    using Interval = std::pair<int64_t, int64_t>;
    struct Place {
        size_t previous, next;
    };

    void needAncestors();
    void buildTimeline(const std::string& group);
    void keepHiding();
    void openTimeline(const std::string& group);
    std::vector<std::vector<size_t>> divide(std::vector<size_t> alike);
    bool mayJoin(const std::vector<size_t>& bucket, size_t candidate);
    bool needEachOther(const std::vector<size_t>& bucket, size_t candidate) const;
    bool tryAt(const std::vector<size_t>& bucket, size_t candidate, size_t startAt, size_t waitAt);
    bool keepsHidden(const std::vector<size_t>& bucket, size_t candidate, size_t startAt, size_t waitAt) const;
    void addIntervals(const Event& event, std::vector<Interval>& running, std::vector<Interval>& hiding) const;
    Place unlink(size_t unit);
    void relink(size_t unit, Place place);
    bool hasPath(size_t from, size_t to) const;
    void setBefore(size_t unit, size_t earlier);
    bool needs(size_t later, size_t earlier) const {
        return m_needs[later * m_words + earlier / 64] >> (earlier % 64) & 1;
    }
    int64_t positionOf(size_t unit) const { return m_events[m_eventOf[unit]].position; }
    const OverlapCollective& collective(size_t number) const { return m_plan.collectives()[number]; }
    double hiddenShare(size_t number) const;

    const OverlapUnits& m_units;
    const OverlapPlan& m_plan;
    const std::vector<size_t>& m_order;
    int64_t m_distance;
    bool m_exposedFirst;
    std::vector<size_t> m_place;              // by unit, in the order
    std::vector<size_t> m_startOf, m_waitOf;  // by unit: the collective
    std::vector<bool> m_hides;                // units that run beside a hidden collective
    std::vector<uint64_t> m_needs;            // operands, and what hiding demands
    size_t m_words = 0;
    std::vector<std::vector<size_t>> m_before;
    std::vector<std::shared_ptr<std::vector<size_t>>> m_same;  // by unit: those that are joined with it, and itself
    std::vector<Event> m_events;
    std::map<std::string, size_t> m_heads;  // first event, by group
    std::vector<size_t> m_eventOf;          // by unit, of the group at hand
};

}  // namespace cutaway
