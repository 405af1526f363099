#pragma once
// Decides the order of a graph's units so that collectives run beside other work: PyTorch's list scheduling (its
// overlap_scheduling.py) with analytic estimates. overlap_scheduling.cpp moves the nodes.
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/passes/post_grad/overlap_memory.h"

namespace cutaway {

/// PyTorch's aten_distributed_optimizations.
struct OverlapLimits {
    explicit OverlapLimits(const OptionalPass& settings);
    int64_t inFlightBytes, memoryIncrease;
    double memoryIncreaseRatio, computeMultiplier;
    int64_t computePrefetch, collectiveDistance;
    bool bucketsFirst, assumeBuckets;
};

struct OverlapCollective {
    size_t start = 0, wait = 0;
    std::string group;
    std::string bucket;  // equal for collectives that could be joined; empty: cannot be joined
    std::string kind;    // "all_gather", ...; empty: one that is never joined
    int64_t bytes = 0;
    double ms = 0, exposed = 0;
    std::vector<size_t> hiding;  // units that are computed while it runs
    /// Why it could not start beside the last unit that was tried, and the unit in the way; empty if none was tried.
    struct Problem {
        std::string_view what;
        size_t beside = 0;
        std::optional<size_t> because;
    };
    Problem problem;

    bool isExposed() const { return exposed != 0; }
};

class OverlapPlan {
  public:
    OverlapPlan(const OverlapUnits& units, const OverlapCosts& costs, const OverlapLimits& limits);

    const std::vector<OverlapCollective>& collectives() const { return m_collectives; }
    /// Units in the new order. Error: collectives that are waited for in a way that cannot be planned.
    Result<std::vector<size_t>> order();

  private:
    static constexpr size_t kNever = ~size_t{0};
    using Score = std::array<size_t, 3>;
    struct Ready {
        Score score;
        size_t unit;
        bool operator<(const Ready& other) const { return std::tie(score, unit) < std::tie(other.score, other.unit); }
    };
    using Times = std::map<std::string, double>;  // milliseconds of work left to hide behind, by group

    void findCollectives(const OverlapCosts& costs);
    void simulateOriginal();
    std::vector<size_t> firstNeeding(const std::function<bool(const OverlapUnit&)>& isTarget) const;

    void addReady(size_t unit);
    size_t localPriority(size_t unit) const;
    bool leadsToCollective(size_t unit) const;
    size_t nextUnit();
    void compute(size_t unit);
    void computeWithOverlap(size_t unit);
    void start(size_t collective);
    void wait(size_t collective);
    void waitForOldest() { wait(m_inFlight.front()); }
    Times hideInFlight(size_t unit, double ms, const std::string* except);
    void startBeside(size_t unit, Times left, const std::string* except);
    std::vector<size_t> candidates(const std::string* except) const;
    bool tryStart(size_t collective, size_t unit);
    bool exceedsMemory(const OverlapCollective& collective) const;
    std::optional<std::vector<size_t>> pathTo(OverlapCollective& collective, size_t unit);
    bool isHidden(const OverlapCollective& collective, size_t beside) const;
    bool offPath(size_t unit) const { return m_productAfter[unit] == kNever; }
    const OverlapCollective* waitedBy(size_t unit) const {
        return m_waits[unit] == kNever ? nullptr : &m_collectives[m_waits[unit]];
    }

    const OverlapUnits& m_units;
    const OverlapCosts& m_costs;
    const OverlapLimits m_limits;
    std::vector<OverlapCollective> m_collectives;
    std::vector<size_t> m_starts, m_waits;               // by unit: the collective that it starts or waits for
    std::vector<size_t> m_productAfter, m_scatterAfter;  // by unit: the first product, or reduce_scatter, that needs it
    std::vector<int64_t> m_originalBytes,
        m_prefetched;  // by product: peak memory before it in the old order; bytes of collectives started ahead
    int64_t m_allowedBytes = 0;

    OverlapMemory m_memory;
    std::set<Ready> m_onPath, m_beside;
    std::vector<size_t> m_missing;  // operands not computed yet
    std::vector<bool> m_done;
    std::vector<size_t> m_order;
    std::vector<size_t> m_unstarted, m_inFlight;
    int64_t m_inFlightBytes = 0;
    size_t m_product = 0;  // the next
    size_t m_lastOnPath = 0;
    bool m_anyOnPath = false;
    std::string m_failure;
};

}  // namespace cutaway
