#include "engine/passes/post_grad/overlap_plan.h"

#include <algorithm>
#include <limits>

#include "engine/passes/post_grad/wait_tensor.h"

namespace cutaway {
namespace {

constexpr double kGigabyte = 1024.0 * 1024.0 * 1024.0;

std::string textOf(const Argument& argument) {
    const auto* text = argument.get<std::string>();
    return text ? *text : std::string();
}
bool isCollectiveName(std::string_view op) {
    for (const std::string_view name : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "alltoall"})
        if (op.find(name) != std::string_view::npos) return true;
    return false;
}
/// The collective that the unit waits for, if its time can be estimated.
const Node* waitedFor(const OverlapUnit& unit) {
    const Node* wait = unit.call();
    const Node* start = wait && wait->isCall(kWait) ? wait->arg(0).node() : nullptr;
    return start && start->isCall() && !start->op().isOpaque() && start->op().name() != "operator.getitem" &&
                   isCollectiveName(start->op().name())
               ? start
               : nullptr;
}
/// Kind and bucket of collectives that could be joined: same group, reduction and dtype; what is gathered may differ in
/// dtype.
void setBucket(OverlapCollective& collective, const Node& start) {
    const auto dtype = [&] {
        return start.type().tensor() ? std::string(info(start.tensor().dtype).abbreviation) : std::string();
    };
    if (start.isCall("_c10d_functional.all_gather_into_tensor.default")) {
        collective.kind = "all_gather";
        collective.bucket = collective.group;
    } else if (start.isCall("_c10d_functional.reduce_scatter_tensor.default")) collective.kind = "reduce_scatter";
    else if (start.isCall("_c10d_functional.all_reduce.default")) collective.kind = "all_reduce";
    // PyTorch's key does not tell reduce_scatter from all_reduce.
    if (!collective.kind.empty() && collective.bucket.empty())
        collective.bucket = collective.group + " " + textOf(start.arg("reduce_op")) + " " + dtype();
}
bool isCheap(const OverlapUnit& unit) {
    const Node* call = unit.call();
    return call && (call->is(Tag::View) || call->is(Tag::Pointwise));
}

}  // namespace

OverlapLimits::OverlapLimits(const OptionalPass& settings)
    : inFlightBytes(static_cast<int64_t>(settings.number("max_in_flight_gb", 5) * kGigabyte)),
      memoryIncrease(static_cast<int64_t>(settings.number("max_memory_increase_gb", 1) * kGigabyte)),
      memoryIncreaseRatio(settings.number("max_memory_increase_ratio", 0.05)),
      computeMultiplier(settings.number("compute_overlap_multipler", 1)),
      computePrefetch(static_cast<int64_t>(settings.number("max_compute_pre_fetch", 200))),
      collectiveDistance(static_cast<int64_t>(settings.number("max_coll_distance", 200))),
      bucketsFirst(settings.flag("prioritize_bucketing_during_scheduling", true)),
      assumeBuckets(settings.flag("assume_bucketing_reduces_latency", true)) {}

// ---------------------------------------------------------------- what there is

OverlapPlan::OverlapPlan(const OverlapUnits& units, const OverlapCosts& costs, const OverlapLimits& limits)
    : m_units(units),
      m_costs(costs),
      m_limits(limits),
      m_starts(units.all().size(), kNever),
      m_waits(units.all().size(), kNever),
      m_memory(units),
      m_missing(units.all().size()),
      m_done(units.all().size(), false) {
    findCollectives(costs);
    simulateOriginal();
    m_productAfter = firstNeeding([](const OverlapUnit& unit) { return unit.product; });
    m_scatterAfter = firstNeeding([](const OverlapUnit& unit) {
        return unit.call() && unit.call()->isCall("_c10d_functional.reduce_scatter_tensor.default");
    });
    for (size_t unit = 0; unit < units.all().size(); ++unit) m_missing[unit] = units.all()[unit].inputs.size();
    for (size_t unit = 0; unit < units.all().size(); ++unit)
        if (m_missing[unit] == 0) addReady(unit);
}

void OverlapPlan::findCollectives(const OverlapCosts& costs) {
    for (size_t unit = 0; unit < m_units.all().size(); ++unit) {
        const Node* start = waitedFor(m_units.all()[unit]);
        const auto at = start ? m_units.unitOf(*start) : std::nullopt;
        if (!at) continue;
        if (m_starts[*at] != kNever) {
            m_failure = "'" + start->name() + "' is waited for twice";
            continue;
        }
        OverlapCollective collective;
        collective.start = *at;
        collective.wait = unit;
        collective.group =
            start->op().schema()->find("group_name") >= 0 ? textOf(start->arg("group_name")) : std::string();
        const int64_t bytes = costs.collectiveBytes(*start);
        collective.bytes =
            start->isCall("_c10d_functional.all_reduce.default") ? bytes / 2 : bytes;  // it may be done in place
        collective.ms = collective.exposed = costs.collectiveMs(*start);
        setBucket(collective, *start);
        m_starts[*at] = m_waits[unit] = m_collectives.size();
        m_unstarted.push_back(m_collectives.size());
        m_collectives.push_back(std::move(collective));
    }
}

void OverlapPlan::simulateOriginal() {
    OverlapMemory memory(m_units);
    int64_t most = 0, peak = 0;
    for (const OverlapUnit& unit : m_units.all()) {
        memory.compute(unit);
        most = std::max(most, memory.bytes());
        peak = std::max(peak, memory.bytes());
        if (!unit.product) continue;
        m_originalBytes.push_back(most);
        most = memory.bytes();
    }
    m_prefetched.assign(m_originalBytes.size(), 0);
    m_allowedBytes = peak + std::max(m_limits.memoryIncrease,
                                     static_cast<int64_t>(static_cast<double>(peak) * m_limits.memoryIncreaseRatio));
}

std::vector<size_t> OverlapPlan::firstNeeding(const std::function<bool(const OverlapUnit&)>& isTarget) const {
    const auto& units = m_units.all();
    std::vector<size_t> first(units.size(), kNever);
    auto targets = static_cast<size_t>(std::count_if(units.begin(), units.end(), isTarget));
    for (size_t unit = units.size(); unit-- > 0;) {
        if (isTarget(units[unit])) first[unit] = --targets;
        else
            for (const size_t user : units[unit].users) first[unit] = std::min(first[unit], first[user]);
    }
    return first;
}

// ---------------------------------------------------------------- what is next

/// Whether only cheap calls of one operand stand between the unit and a collective that has not been started.
bool OverlapPlan::leadsToCollective(size_t unit) const {
    for (;;) {
        const auto& users = m_units.all()[unit].users;
        if (users.size() != 1 || m_units.all()[users[0]].inputs.size() != 1) return false;
        unit = users[0];
        if (m_starts[unit] != kNever && !m_done[unit]) return true;
        if (!isCheap(m_units.all()[unit])) return false;
    }
}
/// Smaller comes first: 0 for what leads to a collective, 2 for waits whose collective is not hidden yet, 1 for others.
size_t OverlapPlan::localPriority(size_t unit) const {
    if (const OverlapCollective* waited = waitedBy(unit)) return waited->isExposed() ? 2 : 1;
    return leadsToCollective(unit) ? 0 : 1;
}
void OverlapPlan::addReady(size_t unit) {
    if (offPath(unit)) m_beside.insert({{m_scatterAfter[unit] == kNever ? size_t{1} : size_t{0}, unit, 0}, unit});
    else m_onPath.insert({{m_productAfter[unit], localPriority(unit), unit}, unit});
}

/// The next ready unit. Units that no product needs come only near their old place, or once their time is hidden.
size_t OverlapPlan::nextUnit() {
    const auto pop = [](std::set<Ready>& queue) {
        const size_t unit = queue.begin()->unit;
        queue.erase(queue.begin());
        return unit;
    };
    if (m_beside.empty()) return pop(m_onPath);
    const size_t unit = m_beside.begin()->unit;
    bool now = m_onPath.empty() || m_done[unit];
    if (!now) {
        if (const OverlapCollective* waited = waitedBy(unit))
            now = !waited->isExposed() || m_memory.bytes() > m_allowedBytes;
        else if (m_scatterAfter[unit] != kNever) now = m_anyOnPath && unit <= m_lastOnPath;
    }
    return pop(now ? m_beside : m_onPath);
}

Result<std::vector<size_t>> OverlapPlan::order() {
    while (m_failure.empty() && (!m_onPath.empty() || !m_beside.empty())) {
        if (!m_inFlight.empty() && m_inFlightBytes >= m_limits.inFlightBytes) {
            waitForOldest();
            continue;
        }
        const size_t unit = nextUnit();
        if (m_done[unit]) continue;
        if (m_starts[unit] != kNever) start(m_starts[unit]);
        else if (m_waits[unit] != kNever) wait(m_waits[unit]);
        else computeWithOverlap(unit);
        if (!offPath(unit)) {
            m_lastOnPath = std::max(m_lastOnPath, unit);
            m_anyOnPath = true;
        }
    }
    if (!m_failure.empty()) return unsupported(m_failure, {}, {"leave the pass off for this graph"});
    return m_order;
}

// ---------------------------------------------------------------- one unit

void OverlapPlan::compute(size_t unit) {
    m_done[unit] = true;
    m_order.push_back(unit);
    m_memory.compute(m_units.all()[unit]);
    for (const size_t user : m_units.all()[unit].users)
        if (--m_missing[user] == 0) addReady(user);
}

void OverlapPlan::computeWithOverlap(size_t unit) {
    const OverlapUnit& what = m_units.all()[unit];
    if (what.ms) startBeside(unit, hideInFlight(unit, *what.ms * m_limits.computeMultiplier, nullptr), nullptr);
    compute(unit);
    if (what.product) ++m_product;
}

void OverlapPlan::start(size_t number) {
    OverlapCollective& collective = m_collectives[number];
    const auto joins = [&](size_t running) { return m_collectives[running].bucket == collective.bucket; };
    // Where it could be joined with a collective in flight, its own latency is not counted.
    if (m_limits.assumeBuckets && !collective.bucket.empty() &&
        std::any_of(m_inFlight.begin(), m_inFlight.end(), joins))
        collective.exposed =
            std::max(0.0, collective.exposed - m_costs.collectiveMs(*m_units.all()[collective.start].call(), 0.0));
    m_inFlight.push_back(number);
    m_inFlightBytes += collective.bytes;
    std::erase(m_unstarted, number);
    compute(collective.start);
}

void OverlapPlan::wait(size_t number) {
    // Collectives of a group complete in the order in which they were started.
    std::vector<size_t> earlier;
    for (const size_t running : m_inFlight) {
        if (running == number) break;
        if (m_collectives[running].group == m_collectives[number].group) earlier.push_back(running);
    }
    for (const size_t running : earlier)
        if (!m_done[m_collectives[running].wait]) wait(running);
    // While this one is waited for, those of other groups go on.
    const OverlapCollective& collective = m_collectives[number];
    if (collective.exposed > 0)
        startBeside(collective.wait, hideInFlight(collective.wait, collective.exposed, &collective.group),
                    &collective.group);
    if (m_done[collective.wait]) return;
    m_inFlightBytes -= collective.bytes;
    std::erase(m_inFlight, number);
    compute(collective.wait);
}

// ---------------------------------------------------------------- hiding

OverlapPlan::Times OverlapPlan::hideInFlight(size_t unit, double ms, const std::string* except) {
    Times left;
    for (const OverlapCollective& collective : m_collectives)
        if (except == nullptr || collective.group != *except) left.emplace(collective.group, ms);
    for (const size_t running : m_inFlight) {
        OverlapCollective& collective = m_collectives[running];
        if (collective.exposed == 0 || (except && collective.group == *except)) continue;
        double& time = left.at(collective.group);
        if (time <= 0) continue;
        const double hidden = std::min(collective.exposed, time);
        collective.exposed -= hidden;
        time -= hidden;
        collective.hiding.push_back(unit);
    }
    return left;
}

/// Collectives that may be started now, the most urgent first.
std::vector<size_t> OverlapPlan::candidates(const std::string* except) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < m_unstarted.size() && static_cast<int64_t>(i) <= m_limits.collectiveDistance; ++i) {
        const OverlapCollective& collective = m_collectives[m_unstarted[i]];
        if (except && collective.group == *except) continue;
        const size_t product = m_productAfter[collective.start];
        if (product != kNever &&
            static_cast<int64_t>(product) - static_cast<int64_t>(m_product) > m_limits.computePrefetch)
            continue;
        found.push_back(m_unstarted[i]);
    }
    const auto urgency = [&](size_t number) {
        const size_t unit = m_collectives[number].start;
        if (m_productAfter[unit] == m_product + 1) return 0;
        if (!offPath(unit)) return 2;
        return m_scatterAfter[unit] != kNever ? 1 : 3;
    };
    const auto place = [&](size_t number) {
        return std::pair(m_productAfter[m_collectives[number].start], m_collectives[number].start);
    };
    std::stable_sort(found.begin(), found.end(), [&](size_t a, size_t b) {
        return std::pair(urgency(a), place(a)) < std::pair(urgency(b), place(b));
    });
    if (!m_limits.bucketsFirst) return found;
    // Those that could be joined stand together.
    struct Group {
        std::string key;
        size_t first = kNever;
        std::vector<size_t> members;
    };
    std::vector<Group> groups;
    for (const size_t number : found) {
        const std::string key = m_collectives[number].kind + " " + m_collectives[number].bucket;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) { return each.key == key; });
        if (group == groups.end()) group = groups.insert(groups.end(), Group{key, kNever, {}});
        group->first = std::min(group->first, m_productAfter[m_collectives[number].start]);
        group->members.push_back(number);
    }
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
        return a.first != b.first ? a.first < b.first : a.members.size() > b.members.size();
    });
    found.clear();
    for (Group& group : groups) {
        std::stable_sort(group.members.begin(), group.members.end(),
                         [&](size_t a, size_t b) { return place(a) < place(b); });
        found.insert(found.end(), group.members.begin(), group.members.end());
    }
    return found;
}

void OverlapPlan::startBeside(size_t unit, Times left, const std::string* except) {
    const auto spent = [](const auto& time) { return time.second <= 0; };
    if (std::all_of(left.begin(), left.end(), spent)) return;
    for (const size_t number : candidates(except)) {
        OverlapCollective& collective = m_collectives[number];
        const double time = left.at(collective.group);
        if (time <= 0 || m_done[collective.start] || !tryStart(number, unit)) continue;
        const double hidden = std::min(time, collective.exposed);
        collective.exposed -= hidden;
        collective.hiding.push_back(unit);
        left.at(collective.group) -= hidden;
        double sum = 0;
        for (const auto& [group, rest] : left) sum += rest;
        if (sum == 0) break;
    }
}

bool OverlapPlan::tryStart(size_t number, size_t unit) {
    OverlapCollective& collective = m_collectives[number];
    const auto blocked = [&](std::string_view what) {
        collective.problem = {what, unit, std::nullopt};
        return false;
    };
    if (m_units.needs(unit, collective.start)) return blocked("that needs its result");
    if (m_units.needs(collective.start, unit)) return blocked("it sends what that computes");
    if (exceedsMemory(collective))
        return blocked(
            "what it receives would not fit into the memory that is allowed (max_memory_increase_gb, max_in_flight_gb)");
    const auto room = [&] { return m_limits.inFlightBytes - m_inFlightBytes; };
    while (!m_inFlight.empty() && room() < collective.bytes && isHidden(m_collectives[m_inFlight.front()], unit))
        waitForOldest();
    if (room() < collective.bytes) return blocked("too many bytes would be under way at once (max_in_flight_gb)");
    const auto path = pathTo(collective, unit);
    if (!path) return false;
    for (const size_t step : *path) {
        if (m_done[step]) continue;  // done meanwhile by a wait that had to come before
        if (m_waits[step] != kNever) wait(m_waits[step]);
        else compute(step);
    }
    if (m_done[collective.start]) return false;
    start(number);
    const size_t product = m_productAfter[collective.start];
    for (size_t i = m_product; product != kNever && i < product; ++i) m_prefetched[i] += collective.bytes;
    return true;
}

bool OverlapPlan::exceedsMemory(const OverlapCollective& collective) const {
    const size_t product = m_productAfter[collective.start];
    if (product == kNever) return false;
    if (m_memory.bytes() + collective.bytes > m_allowedBytes) return true;
    for (size_t i = m_product; i < product; ++i) {
        const int64_t ahead = m_prefetched[i] + collective.bytes;
        if (ahead > m_limits.inFlightBytes || m_originalBytes[i] + ahead > m_allowedBytes) return true;
    }
    return false;
}

bool OverlapPlan::isHidden(const OverlapCollective& collective, size_t beside) const {
    return !collective.isExposed() &&
           std::find(collective.hiding.begin(), collective.hiding.end(), beside) == collective.hiding.end();
}

/// What has to be computed before the collective can start, in order; none if that is work of its own.
std::optional<std::vector<size_t>> OverlapPlan::pathTo(OverlapCollective& collective, size_t unit) {
    std::vector<size_t> path;
    std::optional<size_t> obstacle;
    std::string_view what;
    m_units.forEachNeeded(collective.start, [&](size_t step) {
        if (m_done[step] || obstacle) return;
        const Node* call = m_units.all()[step].call();
        if (m_units.all()[step].product) {
            what = "it has to wait for a product";
            obstacle = step;
        } else if (m_starts[step] != kNever) {
            what = "it has to wait for another collective";
            obstacle = step;
        } else if (m_waits[step] != kNever && !isHidden(m_collectives[m_waits[step]], unit)) {
            what = "it has to wait for the result of a collective that is not hidden";
            obstacle = step;
        } else if (m_waits[step] == kNever && call && call->op().name().find("c10") != std::string::npos) {
            what = "it has to wait for another call on a group";
            obstacle = step;
        }
        path.push_back(step);
    });
    if (!obstacle) return path;
    collective.problem = {what, unit, obstacle};
    return std::nullopt;
}

}  // namespace cutaway
