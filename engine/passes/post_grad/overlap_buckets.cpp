#include "engine/passes/post_grad/overlap_buckets.h"

#include <algorithm>

#include "engine/support/check.h"

namespace cutaway {

OverlapBuckets::OverlapBuckets(const OverlapUnits& units, const OverlapPlan& plan, const std::vector<size_t>& order,
                               const OptionalPass& settings)
    : m_units(units),
      m_plan(plan),
      m_order(order),
      m_distance(static_cast<int64_t>(settings.number("max_coll_distance", 200))),
      m_exposedFirst(settings.flag("bucket_exposed_first", true)),
      m_place(order.size()),
      m_startOf(order.size(), kNone),
      m_waitOf(order.size(), kNone),
      m_hides(order.size(), false),
      m_before(order.size()),
      m_same(order.size()),
      m_eventOf(order.size(), kNone) {
    for (size_t i = 0; i < order.size(); ++i) m_place[order[i]] = i;
    for (size_t unit = 0; unit < order.size(); ++unit) m_same[unit] = std::make_shared<std::vector<size_t>>(1, unit);
    for (size_t i = 0; i < plan.collectives().size(); ++i)
        m_startOf[collective(i).start] = m_waitOf[collective(i).wait] = i;
    needAncestors();
    for (const OverlapCollective& each : plan.collectives())
        if (!m_heads.contains(each.group)) buildTimeline(each.group);
    keepHiding();
}

// ---------------------------------------------------------------- what has to stay in order

void OverlapBuckets::setBefore(size_t unit, size_t earlier) {
    std::vector<size_t>& list = m_before[unit];
    if (std::find(list.begin(), list.end(), earlier) == list.end()) list.push_back(earlier);
}

void OverlapBuckets::needAncestors() {
    std::vector<std::vector<size_t>> demanded(m_order.size());
    for (const OverlapCollective& each : m_plan.collectives()) {
        if (each.isExposed()) continue;
        for (const size_t hiding : each.hiding) {
            demanded[hiding].push_back(each.start);
            demanded[each.wait].push_back(hiding);
        }
    }
    m_words = (m_order.size() + 63) / 64;
    m_needs.assign(m_words * m_order.size(), 0);
    for (const size_t unit : m_order)
        for (const std::vector<size_t>* list :
             std::initializer_list<const std::vector<size_t>*>{&demanded[unit], &m_units.all()[unit].inputs})
            for (const size_t earlier : *list) {
                for (size_t word = 0; word < m_words; ++word)
                    m_needs[unit * m_words + word] |= m_needs[earlier * m_words + word];
                m_needs[unit * m_words + earlier / 64] |= uint64_t{1} << (earlier % 64);
            }
}

/// Links starts and waits of a group's collectives, and the units that run beside them, in their order.
void OverlapBuckets::buildTimeline(const std::string& group) {
    std::vector<bool> hiding(m_order.size(), false);
    size_t previous = kNone;
    m_heads[group] = m_events.size();
    for (const size_t unit : m_order) {
        const size_t started = m_startOf[unit], waited = m_waitOf[unit];
        Event event{unit, Kind::Work, 0, previous, kNone};
        if (started != kNone && collective(started).group == group) {
            event.kind = Kind::Start;
            for (const size_t each : collective(started).hiding) hiding[each] = true;
        } else if (waited != kNone) {
            if (collective(waited).group == group) event.kind = Kind::Wait;
            else if (!hiding[unit]) continue;
        } else if (!m_units.all()[unit].product && !hiding[unit]) {
            continue;
        }
        if (previous != kNone) {
            event.position = m_events[previous].position + 1;
            setBefore(unit, m_events[previous].unit);
            m_events[previous].next = m_events.size();
        }
        previous = m_events.size();
        m_events.push_back(event);
    }
}

void OverlapBuckets::keepHiding() {
    for (const OverlapCollective& each : m_plan.collectives()) {
        if (each.isExposed()) continue;
        for (const size_t hiding : each.hiding) {
            setBefore(hiding, each.start);
            setBefore(each.wait, hiding);
            m_hides[hiding] = true;
        }
    }
}

void OverlapBuckets::openTimeline(const std::string& group) {
    std::fill(m_eventOf.begin(), m_eventOf.end(), kNone);
    for (size_t event = m_heads.at(group); event != kNone; event = m_events[event].next)
        m_eventOf[m_events[event].unit] = event;
}

/// Takes a start or a wait out of its group's order.
OverlapBuckets::Place OverlapBuckets::unlink(size_t unit) {
    Event& event = m_events[m_eventOf[unit]];
    const Place place{event.previous, event.next};
    event.previous = event.next = kNone;
    if (place.previous != kNone) {
        m_events[place.previous].next = place.next;
        std::erase(m_before[unit], m_events[place.previous].unit);
    }
    if (place.next != kNone) {
        m_events[place.next].previous = place.previous;
        std::erase(m_before[m_events[place.next].unit], unit);
    }
    if (place.previous != kNone && place.next != kNone)
        setBefore(m_events[place.next].unit, m_events[place.previous].unit);
    return place;
}
/// Undoes unlink(). As in PyTorch, "unit before next" is put back only where nothing stands before the unit.
void OverlapBuckets::relink(size_t unit, Place place) {
    const size_t at = m_eventOf[unit];
    m_events[at].previous = place.previous;
    m_events[at].next = place.next;
    if (place.previous != kNone) {
        m_events[place.previous].next = at;
        setBefore(unit, m_events[place.previous].unit);
    }
    if (place.next != kNone) m_events[place.next].previous = at;
    if (place.next != kNone && place.previous == kNone) setBefore(m_events[place.next].unit, unit);
    if (place.next != kNone && place.previous != kNone)
        std::erase(m_before[m_events[place.next].unit], m_events[place.previous].unit);
}

bool OverlapBuckets::hasPath(size_t from, size_t to) const {
    const std::vector<size_t>& sources = *m_same[from];
    std::vector<bool> seen(m_order.size(), false);
    std::vector<size_t> pending = {to};
    seen[to] = true;
    while (!pending.empty()) {
        const size_t current = pending.back();
        pending.pop_back();
        for (const size_t same : *m_same[current])
            for (const auto* list : {&m_units.all()[same].inputs, &m_before[same]})
                for (const size_t earlier : *list) {
                    if (std::find(sources.begin(), sources.end(), earlier) != sources.end()) return true;
                    if (seen[earlier]) continue;
                    seen[earlier] = true;
                    // What the source itself needs cannot lead to it: that would be a cycle.
                    if (std::none_of(sources.begin(), sources.end(),
                                     [&](size_t source) { return needs(source, earlier); }))
                        pending.push_back(earlier);
                }
    }
    return false;
}

// ---------------------------------------------------------------- which go together

double OverlapBuckets::hiddenShare(size_t number) const {
    const OverlapCollective& each = collective(number);
    return each.ms <= 0 ? 0 : (each.ms - each.exposed) / each.ms;
}

std::vector<std::vector<size_t>> OverlapBuckets::find() {
    std::vector<std::string> groups;
    std::vector<std::pair<std::string, std::vector<size_t>>> alike;  // by bucket, in the order in which they are met
    for (const OverlapCollective& each : m_plan.collectives())
        if (std::find(groups.begin(), groups.end(), each.group) == groups.end()) groups.push_back(each.group);
    std::vector<std::vector<size_t>> buckets;
    for (const std::string& group : groups) {
        alike.clear();
        openTimeline(group);
        for (size_t number = 0; number < m_plan.collectives().size(); ++number) {
            const OverlapCollective& each = collective(number);
            if (each.group != group || each.kind.empty()) continue;
            auto found =
                std::find_if(alike.begin(), alike.end(), [&](const auto& known) { return known.first == each.bucket; });
            if (found == alike.end()) found = alike.insert(alike.end(), {each.bucket, {}});
            found->second.push_back(number);
        }
        for (const auto& [key, members] : alike)
            for (std::vector<size_t>& bucket : divide(members)) buckets.push_back(std::move(bucket));
    }
    return buckets;
}

/// Collectives that are hidden least have most to gain, so buckets begin with them.
std::vector<std::vector<size_t>> OverlapBuckets::divide(std::vector<size_t> alike) {
    constexpr int64_t kMostBytes = int64_t{2} << 30;
    constexpr int kMostFailures = 20;
    const auto rank = [&](size_t number) {
        return std::pair(m_exposedFirst ? hiddenShare(number) : 0.0, m_place[collective(number).start]);
    };
    const auto place = [&](size_t number) { return static_cast<int64_t>(m_place[collective(number).start]); };
    const auto hides = [&](size_t number) {
        return m_hides[collective(number).start] || m_hides[collective(number).wait];
    };
    std::stable_sort(alike.begin(), alike.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    std::vector<std::vector<size_t>> buckets;
    std::set<size_t> taken;
    for (size_t i = 0; i < alike.size(); ++i) {
        if (taken.contains(alike[i]) || hides(alike[i])) continue;
        std::vector<size_t> bucket = {alike[i]};
        int64_t bytes = collective(alike[i]).bytes;
        taken.insert(alike[i]);
        int failures = 0;
        for (size_t j = i + 1; j < alike.size() && static_cast<int64_t>(j - i) <= m_distance; ++j) {
            const size_t candidate = alike[j];
            if (bytes + collective(candidate).bytes > kMostBytes) break;
            if (taken.contains(candidate)) continue;
            if (m_exposedFirst && std::abs(place(candidate) - place(alike[i])) > kMostFailures) continue;
            // PyTorch's key is the same for all_reduce and reduce_scatter, and it fails once both are in one bucket.
            const bool sameKind = collective(candidate).kind == collective(alike[i]).kind;
            if (sameKind && !hides(candidate) && mayJoin(bucket, candidate)) {
                bucket.push_back(candidate);
                bytes += collective(candidate).bytes;
                taken.insert(candidate);
                failures = 0;
            } else if (++failures >= kMostFailures) {
                break;
            }
        }
        if (bucket.size() > 1) buckets.push_back(std::move(bucket));
    }
    return buckets;
}

bool OverlapBuckets::needEachOther(const std::vector<size_t>& bucket, size_t candidate) const {
    const OverlapCollective& fresh = collective(candidate);
    const auto either = [&](size_t a, size_t b) { return needs(a, b) || needs(b, a); };
    for (const size_t number : bucket) {
        const OverlapCollective& member = collective(number);
        if (either(member.start, fresh.start) || either(member.wait, fresh.wait)) return true;
        for (const size_t hiding : member.hiding)
            if (needs(hiding, fresh.wait)) return true;
        for (const size_t hiding : fresh.hiding)
            if (needs(hiding, member.wait)) return true;
    }
    return false;
}

bool OverlapBuckets::mayJoin(const std::vector<size_t>& bucket, size_t candidate) {
    if (needEachOther(bucket, candidate)) return false;
    const OverlapCollective &first = collective(bucket[0]), &fresh = collective(candidate);
    // An early start and a late wait work most often.
    return tryAt(bucket, candidate, first.start, fresh.wait) || tryAt(bucket, candidate, first.start, first.wait) ||
           tryAt(bucket, candidate, fresh.start, fresh.wait) || tryAt(bucket, candidate, fresh.start, first.wait);
}

bool OverlapBuckets::tryAt(const std::vector<size_t>& bucket, size_t candidate, size_t startAt, size_t waitAt) {
    if (!keepsHidden(bucket, candidate, startAt, waitAt)) return false;
    const OverlapCollective &first = collective(bucket[0]), &fresh = collective(candidate);
    const size_t movedStart = startAt == first.start ? fresh.start : first.start,
                 movedWait = waitAt == first.wait ? fresh.wait : first.wait;
    const auto merge = [&](size_t into, size_t unit) {
        m_same[into]->push_back(unit);
        m_same[unit] = m_same[into];
    };
    const Place start = unlink(movedStart);
    if (hasPath(first.start, fresh.start) || hasPath(fresh.start, first.start)) {
        relink(movedStart, start);
        return false;
    }
    merge(first.start, fresh.start);
    const Place wait = unlink(movedWait);
    if (hasPath(first.wait, fresh.wait) || hasPath(fresh.wait, first.wait)) {
        relink(movedWait, wait);
        std::erase(*m_same[first.start], fresh.start);
        m_same[fresh.start] = std::make_shared<std::vector<size_t>>(1, fresh.start);
        relink(movedStart, start);
        return false;
    }
    merge(first.wait, fresh.wait);
    m_eventOf[fresh.start] = m_eventOf[first.start] = m_eventOf[startAt];
    m_eventOf[fresh.wait] = m_eventOf[first.wait] = m_eventOf[waitAt];
    return true;
}

void OverlapBuckets::addIntervals(const Event& event, std::vector<Interval>& running,
                                  std::vector<Interval>& hiding) const {
    const size_t number = event.kind == Kind::Start  ? m_startOf[event.unit]
                          : event.kind == Kind::Wait ? m_waitOf[event.unit]
                                                     : kNone;
    if (number == kNone) return;
    const OverlapCollective& each = collective(number);
    running.emplace_back(positionOf(each.start), positionOf(each.wait));
    for (const size_t unit : each.hiding) hiding.emplace_back(positionOf(each.start), positionOf(unit));
}

/// Whether all that is hidden stays so: collectives of a group complete in the order in which they are started, so that
/// none may be started and waited for while another is being hidden.
bool OverlapBuckets::keepsHidden(const std::vector<size_t>& bucket, size_t candidate, size_t startAt,
                                 size_t waitAt) const {
    const OverlapCollective &first = collective(bucket[0]), &fresh = collective(candidate);
    const Interval whole{positionOf(startAt), positionOf(waitAt)};
    std::vector<Interval> running = {whole}, hiding;
    std::set<size_t> own = {candidate};
    own.insert(bucket.begin(), bucket.end());
    for (const size_t number : own)
        for (const size_t unit : collective(number).hiding) {
            const int64_t at = positionOf(unit);
            if (at <= whole.first || at >= whole.second) return false;
            hiding.emplace_back(whole.first, at);
        }
    const int64_t latestStart = std::max(positionOf(fresh.start), positionOf(first.start)),
                  earliestWait = std::min(positionOf(fresh.wait), positionOf(first.wait));
    const auto look = [&](const Event& event) {
        const size_t number = event.kind == Kind::Start  ? m_startOf[event.unit]
                              : event.kind == Kind::Wait ? m_waitOf[event.unit]
                                                         : kNone;
        if (number != kNone && !own.contains(number)) addIntervals(event, running, hiding);
    };
    for (size_t at = m_events[m_eventOf[startAt]].next; at != kNone && m_events[at].position < latestStart;
         at = m_events[at].next)
        look(m_events[at]);
    for (size_t at = m_events[m_eventOf[waitAt]].previous; at != kNone && m_events[at].position > earliestWait;
         at = m_events[at].previous)
        look(m_events[at]);
    for (const Interval& inner : hiding)
        for (const Interval& outer : running)
            if (outer.first < inner.first && inner.second < outer.second) return false;
    return true;
}

}  // namespace cutaway
