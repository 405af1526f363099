#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/loops/index.h"
#include "engine/loops/inner_lanes.h"

namespace cutaway {
namespace {

std::vector<Expr> loadsUnder(const Expr& value) {
    std::vector<Expr> found;
    forEachExpr({value}, [&](const Expr& e) {
        if (e->kind == ExprKind::Load) found.push_back(e->operands[0]);
    });
    return found;
}
std::string axisText(int axis) { return text(Expr::axis(axis)); }

/// Whether a reduction has a length that follows from data at this axis, so that lanes along it would differ in it.
bool lengthVaries(const Expr& reduction, int axis) {
    for (const Loop& loop : reduceLoops(reduction))
        if (reads(loop.size.expr(), axis)) return true;
    return false;
}

class Planner {
  public:
    Planner(const Kernel& kernel, const TargetInfo& target)
        : m_kernel(&kernel), m_info(&target), m_target(target.loops), m_reductions(reductionsOf(kernel)) {}

    LoopPlan choose() {
        for (const Loop& loop : m_kernel->outer) m_plan.order.push_back(loop.axis);
        chooseVectors();
        chooseInner();
        limitStates();
        chooseUnrollJam();
        chooseAtomic();
        chooseSplit();
        limitUnrollJam();
        chooseAccumulators();
        chooseCached();
        alignAccumulators();
        chooseTile();
        chooseFlat();
        chooseLanes();
        chooseBlock();
        chooseIndices();
        choosePrefetch();
        return std::move(m_plan);
    }

  private:
    // ---- vectors
    /// Instructions of one vector load or store, by the step between lanes; nullopt: each lane has an index of its own.
    double costOfStride(std::optional<int64_t> stride) const {
        if (!stride) return m_target.gatheredCost;
        if (*stride == 1) return m_target.adjacentCost;
        return *stride == 0 ? m_target.sameCost : m_target.stridedCost;
    }
    /// The cost, in instructions, of reading or writing a vector of elements along an axis at these indices.
    double accessCost(const std::vector<Expr>& indices, int axis) const {
        double cost = 0;
        for (const Expr& index : indices) cost += costOfStride(strideOf(index, axis));
        return cost;
    }
    /// The share of a vector's lanes that a loop fills: in a short loop most lanes are idle.
    double filled(const Loop& loop, int64_t lanes) const {
        return static_cast<double>(std::clamp<int64_t>(loop.size.asInt().value_or(lanes), 1, lanes)) /
               static_cast<double>(lanes);
    }
    double allOperations() const {
        double count = 0;
        for (const KernelStore& store : m_kernel->stores)
            forEachExpr({store.value},
                        [&](const Expr& e) { count += !e->operands.empty() && e->kind != ExprKind::Load; });
        return count;
    }
    /// The indices of all stores, and of the loads in their values.
    std::vector<Expr> allIndices() const {
        std::vector<Expr> indices;
        for (const KernelStore& store : m_kernel->stores) {
            indices.push_back(store.index);
            for (const Expr& load : loadsUnder(store.value)) indices.push_back(load);
        }
        return indices;
    }
    void chooseVectors() {
        std::vector<std::pair<Loop, std::vector<Expr>>> innermost;  // with the indices of what is read and written
        const double operations = allOperations();
        for (const KernelStore& store : m_kernel->stores) {
            if (store.inner.empty()) continue;
            innermost.emplace_back(store.inner.back(), loadsUnder(store.value));
            innermost.back().second.push_back(store.index);
        }
        for (const Expr& r : m_reductions) innermost.emplace_back(reduceLoops(r).back(), loadsUnder(r->operands[0]));
        const bool hasRows = !m_kernel->outer.empty();
        if (innermost.empty()) {
            if (hasRows) chooseLast();
            return;
        }
        if (!hasRows) return vectors(VectorOver::Inner, "there is one row");
        const Loop& last = m_kernel->outer.back();
        for (const Expr& r : m_reductions)
            for (const Loop& loop : m_kernel->outer)
                if ((loop == last || m_target.warp > 0) && lengthVaries(r, loop.axis))
                    return chooseAlone("the length of a reduction differs from row to row");
        int64_t longest = 1;
        for (const auto& inner : innermost) longest = std::max(longest, inner.first.size.asInt().value_or(INT32_MAX));
        if (areShort(*m_kernel, longest, *m_info)) return chooseAlone("rows are short and many");
        const int lanes = lanesOfRows(*m_kernel, longest, *m_info);
        double along = 0, across = 0;
        for (const auto& [loop, accesses] : innermost) {
            along += (operations + accessCost(accesses, loop.axis)) / filled(loop, lanes);
            across += (operations + accessCost(accesses, last.axis)) / filled(last, m_target.lanes);
        }
        const auto figures = [&](double a, double b) {
            return std::to_string(static_cast<int64_t>(a)) + " instructions a vector, " +
                   std::to_string(static_cast<int64_t>(b)) + " the other way";
        };
        if (across < along) vectors(VectorOver::Rows, "several rows at a time: " + figures(across, along));
        else {
            const std::string threads = lanes < m_target.lanes ? " by " + std::to_string(lanes) + " threads" : "";
            vectors(VectorOver::Inner, "along each row" + threads + ": " + figures(along, across));
            m_plan.lanes = lanes;
        }
    }
    /// Where rows are short, as those are whose lengths come from data, a thread of a GPU has one.
    void chooseAlone(const std::string& why) {
        if (m_target.warp == 0) return vectors(VectorOver::Inner, why);
        m_plan.why.push_back("vectors: none, a thread has a row: " + why);
    }
    /// Chooses the vector loop of rows that have no inner loop: the last or, if shorter than a vector, the cheapest.
    void chooseLast() {
        const std::vector<Expr> accesses = allIndices();
        const double operations = allOperations();
        const auto cost = [&](const Loop& loop) {
            return (operations + accessCost(accesses, loop.axis)) / filled(loop, m_target.lanes);
        };
        const Loop last = m_kernel->outer.back();
        Loop best = last;
        if (last.size.asInt().value_or(m_target.lanes) <= m_target.lanes / 2)
            for (const Loop& loop : m_kernel->outer)
                if (loop.size.isInt() && 2 * cost(loop) < cost(best)) best = loop;
        if (best == last)
            return vectors(VectorOver::Rows, "the last loop, " + axisText(last.axis) + ", is all there is");
        std::erase(m_plan.order, best.axis);
        m_plan.order.push_back(best.axis);
        vectors(VectorOver::Rows, "the last loop, " + axisText(last.axis) + ", is short; " + axisText(best.axis) +
                                      " fills them, at " + std::to_string(static_cast<int64_t>(cost(best))) +
                                      " instructions a vector, not " +
                                      std::to_string(static_cast<int64_t>(cost(last))));
    }
    void vectors(VectorOver over, const std::string& why) {
        m_plan.vectors = over;
        m_plan.lanes = m_target.lanes;
        m_plan.why.push_back("vectors: " + why);
    }

    // ---- inner loops
    void chooseInner() {
        const std::set<int> rows = rowAxes(m_plan);
        struct Task {
            int stage;
            std::vector<Loop> loops;
            InnerLoop inner;
        };
        std::vector<Task> tasks;
        std::unordered_map<const ExprNode*, int> heights;
        auto heightOf = [&](const Expr& expr) {
            int height = 0;
            forEachExpr({expr}, [&](const Expr& e) {
                if (!isReduce(e)) return;
                const auto at = std::find(m_reductions.begin(), m_reductions.end(), e);
                if (auto found = heights.find(&**at); found != heights.end()) height = std::max(height, found->second);
            });
            return height;
        };
        for (size_t i = 0; i < m_reductions.size(); ++i) {
            const Expr& r = m_reductions[i];
            const bool ofRow =
                rows.empty() || std::any_of(rows.begin(), rows.end(), [&](int a) { return reads(r, a); });
            if (!ofRow) continue;
            int height = 1;
            for (const Expr& operand : r->operands) height = std::max(height, heightOf(operand) + 1);
            heights.emplace(&*r, height);
            tasks.push_back({height, reduceLoops(r), {{static_cast<int>(i)}, {}}});
        }
        for (size_t i = 0; i < m_kernel->stores.size(); ++i) {
            const KernelStore& store = m_kernel->stores[i];
            if (!store.inner.empty())
                tasks.push_back({heightOf(store.value) + 1, store.inner, {{}, {static_cast<int>(i)}}});
        }
        std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.stage < b.stage; });
        std::vector<bool> done(tasks.size());
        for (size_t i = 0; i < tasks.size(); ++i) {
            if (done[i]) continue;
            InnerLoop inner = tasks[i].inner;
            for (size_t j = i + 1; j < tasks.size(); ++j) {
                if (done[j] || tasks[j].stage != tasks[i].stage || !(tasks[j].loops == tasks[i].loops) ||
                    tasks[j].inner.stores.empty() != inner.stores.empty())
                    continue;
                done[j] = true;
                inner.reductions.insert(inner.reductions.end(), tasks[j].inner.reductions.begin(),
                                        tasks[j].inner.reductions.end());
                inner.stores.insert(inner.stores.end(), tasks[j].inner.stores.begin(), tasks[j].inner.stores.end());
            }
            m_plan.inner.push_back(std::move(inner));
        }
    }

    // ---- split
    std::optional<int64_t> elementsOf(const InnerLoop& inner) const {
        double all = 1;
        for (const Loop& loop : loopsOf(inner, *m_kernel, m_reductions)) {
            if (!loop.size.isInt()) return std::nullopt;
            all *= static_cast<double>(loop.size.value());
        }
        return all < 1e15 ? static_cast<int64_t>(all) : int64_t{1000000000000000};
    }
    /// What threads can take without parts: rows, or blocks of as many of them as go through loops together; nullopt:
    /// unknown.
    std::optional<double> blocksOfRows() const {
        double rows = 1;
        for (const Loop& loop : m_kernel->outer) {
            if (!loop.size.isInt()) return std::nullopt;
            const bool vector = m_plan.vectors == VectorOver::Rows && loop == m_kernel->outer.back();
            const int64_t together = vector ? int64_t{m_plan.lanes} * m_plan.unrollJam : 1;
            rows *= std::ceil(static_cast<double>(loop.size.value()) / static_cast<double>(together));
        }
        return rows;
    }
    void chooseAtomic() {
        m_plan.atomic = adds(*m_kernel) && m_target.atomics;
        if (m_plan.atomic) m_plan.why.push_back("atomic: several rows may add to one element");
    }
    /// What adds in order is one part.
    bool addsInOrder() const { return adds(*m_kernel) && !m_plan.atomic; }
    void chooseSplit() {
        if (addsInOrder()) return;
        const auto rows = blocksOfRows();
        if (m_plan.inner.empty() || !rows || *rows < 1 || *rows * 2 > m_target.maxSplit) return;
        int64_t longest = 0;
        for (const InnerLoop& inner : m_plan.inner) {
            const auto own = elementsOf(inner);
            if (!own) return;
            longest = std::max(longest, *own);
        }
        const bool vector = m_plan.vectors == VectorOver::Rows;
        const int64_t together =
            vector ? std::min(int64_t{m_plan.lanes} * m_plan.unrollJam, m_kernel->outer.back().size.value()) : 1;
        int64_t split = std::min(longest / std::max<int64_t>(m_target.elementsPerPart / together, 1),
                                 static_cast<int64_t>(m_target.maxSplit / *rows));
        // A thread that has a row joins all its parts, one after the other: as many as elements of one.
        if (vector && m_target.warp > 0)
            split = std::min(split, static_cast<int64_t>(std::sqrt(static_cast<double>(longest))));
        if (split < 2) return;
        m_plan.split = static_cast<int>(split);
        m_plan.why.push_back("split: " + std::to_string(static_cast<int64_t>(*rows)) +
                             (vector ? " blocks of rows" : " rows") + " of up to " + std::to_string(longest) +
                             " elements are too few for all cores");
    }

    /// Blocks that threads find too few are made smaller where the inner loops are not cut instead.
    void limitUnrollJam() {
        while (m_plan.unrollJam > 1 && m_plan.split == 1 &&
               blocksOfRows().value_or(m_target.maxSplit) * 4 < m_target.maxSplit)
            m_plan.unrollJam /= 2;
        if (m_plan.unrollJam > 1)
            m_plan.why.push_back("unroll_jam: neighbouring rows lie side by side, the next element of each does not");
    }

    // ---- unroll_jam
    /// Where rows are vectors, an inner loop reads a cache line a step, far from the next: several are read as streams.
    void chooseUnrollJam() {
        if (m_plan.vectors != VectorOver::Rows || m_plan.inner.empty()) return;
        const Loop& last = m_kernel->outer.back();
        int registers = 1;
        bool dear = false;
        std::vector<Expr> values;
        for (const InnerLoop& inner : m_plan.inner) {
            registers = std::max(registers, registersOf(inner, m_reductions, *m_info));
            for (const int r : inner.reductions) values.push_back(m_reductions[static_cast<size_t>(r)]->operands[0]);
            for (const int s : inner.stores) values.push_back(m_kernel->stores[static_cast<size_t>(s)].value);
        }
        bool contiguous = false, guarded = false;
        for (const Expr& value : values) dear |= costsMuch(value);
        forEachExpr(values, [&](const Expr& e) {
            if (e->kind != ExprKind::Load) return;
            contiguous |= strideOf(e->operands[0], last.axis) == 1;
            guarded |= e->operands[0]->kind == ExprKind::Where && reads(e->operands[0], last.axis);
        });
        if (!contiguous || guarded) return;  // blocks are not cut where conditions change
        int count = std::min(m_target.unrollJam, m_target.stateRegisters / registers);
        if (dear) count = std::min(count, 4);  // more does not pay for its instructions
        const auto elements = last.size.asInt();
        if (!elements) count = std::min(count, 2);  // there may be few
        const auto fits = [&] {
            return (count & (count - 1)) == 0 && elements.value_or(1 << 20) >= int64_t{count} * m_plan.lanes &&
                   count * allOperations() <= m_info->fusion.unrollJamOperations;
        };
        while (count > 1 && !fits()) --count;
        m_plan.unrollJam = std::max(count, 1);
    }

    // ---- accumulators
    bool computesLong(const InnerLoop& inner) const {
        return std::any_of(inner.reductions.begin(), inner.reductions.end(),
                           [&](int r) { return costsMuch(m_reductions[static_cast<size_t>(r)]->operands[0]); });
    }
    void chooseAccumulators() {
        if (m_plan.vectors != VectorOver::Inner || m_target.accumulators < 2) return;
        for (InnerLoop& inner : m_plan.inner) {
            if (m_target.warp > 0) inner.accumulators = neighboursOf(inner, m_plan, *m_kernel, *m_info);
            if (m_target.warp > 0 || inner.reductions.empty()) continue;
            bool waits = false;
            for (const int r : inner.reductions) waits |= reducerOf(m_reductions[static_cast<size_t>(r)]).waits;
            const int64_t length = loopsOf(inner, *m_kernel, m_reductions).back().size.asInt().value_or(1 << 20);
            const bool few = length / m_plan.split < 2 * m_target.accumulators * m_plan.lanes;
            const int accumulators =
                std::min(m_target.accumulators, m_target.stateRegisters / registersOf(inner, m_reductions, *m_info));
            if (!waits || computesLong(inner) || few || accumulators < 2) continue;
            inner.accumulators = accumulators;
            m_plan.why.push_back("accumulators: a step of r" + std::to_string(inner.reductions[0]) +
                                 " waits for the one before: the reduction is latency-bound");
        }
    }

    // ---- what lanes share
    bool fitsShared() const {
        return m_info->sharedBytes == 0 || sharedBytes(m_plan, *m_kernel, *m_info) <= m_info->sharedBytes;
    }
    /// Lanes join their states there.
    void limitStates() {
        if (fitsShared()) return;
        m_plan.vectors = VectorOver::Nothing;
        m_plan.lanes = 1;
        m_plan.why.push_back("vectors: none, the states of all lanes have no room in what they share");
    }

    void chooseCached() {
        if (m_plan.vectors != VectorOver::Inner || m_plan.split > 1) return;
        for (size_t w = 0; w < m_plan.inner.size(); ++w)
            for (const int r : m_plan.inner[w].reductions) {
                const Expr& reduction = m_reductions[static_cast<size_t>(r)];
                const std::vector<Loop> loops = reduceLoops(reduction);
                if (!costsMuch(reduction->operands[0]) || loops.size() != 1 ||
                    loops[0].size.asInt().value_or(m_target.maxCached + 1) > m_target.maxCached)
                    continue;
                if (!computesAgain(m_plan, w + 1, *m_kernel, m_reductions, reduction)) continue;
                m_plan.cached.push_back(r);
                if (!fitsShared()) {
                    m_plan.cached.pop_back();
                    continue;
                }
                m_plan.why.push_back("cache: the elements of r" + std::to_string(r) +
                                     " are read again in the row and expensive to recompute");
            }
    }
    /// A thread reads what it has cached itself, so that inner loops have their elements in one order.
    void alignAccumulators() {
        if (m_plan.cached.empty() || m_target.warp == 0) return;
        const auto fewer = [](const InnerLoop& a, const InnerLoop& b) { return a.accumulators < b.accumulators; };
        const int least = std::min_element(m_plan.inner.begin(), m_plan.inner.end(), fewer)->accumulators;
        for (InnerLoop& inner : m_plan.inner) inner.accumulators = least;
    }

    // ---- tiles
    void chooseTile() {
        if (m_plan.vectors != VectorOver::Rows || !m_plan.inner.empty() || m_plan.order.size() < 2 ||
            !m_reductions.empty() || adds(*m_kernel) || m_plan.order.back() != m_kernel->outer.back().axis)
            return;
        const Loop& last = m_kernel->outer.back();
        const std::vector<Expr> indices = allIndices();
        for (size_t i = 0; i + 1 < m_kernel->outer.size(); ++i) {
            const Loop& loop = m_kernel->outer[i];
            const int64_t least =
                m_target.inRegisters ? m_target.lanes : m_target.tile;  // else lanes take several rows
            const bool large = loop.size.asInt().value_or(0) >= least && last.size.asInt().value_or(0) >= least;
            const bool crossed = std::any_of(indices.begin(), indices.end(), [&](const Expr& index) {
                const auto along = strideOf(index, last.axis), other = strideOf(index, loop.axis);
                return other == 1 && along && *along > 1;
            });
            if (!large || !crossed) continue;
            m_plan.tiled = loop.axis;
            m_plan.tile = m_target.tile;
            m_plan.inRegisters = m_target.inRegisters;
            while (!fitsShared() && m_plan.tile > 1) m_plan.tile /= 2;
            m_plan.why.push_back("tile: memory is read along " + axisText(loop.axis) + " and written along " +
                                 axisText(last.axis) + ", so tiles are turned in " +
                                 (m_plan.inRegisters ? "registers" : "memory that threads share"));
            return;
        }
    }

    void chooseFlat() {
        const std::string why = addsInOrder() ? std::string() : whyFlat(m_plan, *m_kernel, *m_info);
        if (why.empty()) return;
        m_plan.vectors = VectorOver::Nothing;
        m_plan.lanes = 1;
        m_plan.order.clear();
        for (const Loop& loop : m_kernel->outer) m_plan.order.push_back(loop.axis);
        m_plan.why.push_back("vectors: none, a thread has one element: " + why);
    }

    // ---- lanes
    /// More where they fill a register with neighbours in memory.
    void chooseLanes() {
        if (m_plan.vectors != VectorOver::Rows || m_plan.tiled >= 0) return;
        const auto last = std::find_if(m_kernel->outer.begin(), m_kernel->outer.end(),
                                       [&](const Loop& loop) { return loop.axis == m_plan.order.back(); });
        for (const Expr& index : allIndices()) {
            const auto stride = strideOf(index, last->axis);
            if (!stride || *stride < 0 || *stride > 1) return;
        }
        // A thread has as many neighbours as it reads at once, while all threads have some and few have none.
        const bool threads = m_target.warp > 0;
        if (threads && adds(*m_kernel)) return;
        int& lanes = m_plan.lanes = mostLanes(*m_kernel, *m_info);
        const int64_t length = last->size.asInt().value_or(threads ? 0 : lanes);
        const auto fits = [&] {
            const bool full = threads ? length % lanes == 0 || length >= 8 * lanes : length >= lanes;
            return full && (!threads || blocksOfRows().value_or(0) * 2 >= m_target.maxSplit);
        };
        while (lanes > m_target.lanes && !fits()) lanes /= 2;
        const std::string more = std::to_string(threads ? lanes / m_target.lanes : lanes);
        if (lanes > m_target.lanes)
            m_plan.why.push_back(threads ? "lanes: a thread has " + more + " that lie side by side"
                                         : "lanes: elements are narrow, so that " + more + " fill a register");
    }

    // ---- blocks
    /// Few long rows are cut, so that all cores have some.
    void chooseBlock() {
        if (m_plan.vectors != VectorOver::Rows || !m_plan.inner.empty() || m_plan.tiled >= 0 ||
            m_plan.order.size() < 2 || addsInOrder())
            return;
        int64_t rows = 1, length = 0;
        for (const Loop& loop : m_kernel->outer) {
            const auto size = loop.size.asInt();
            if (!size || *size < 1) return;
            if (loop.axis == m_plan.order.back()) length = *size;
            else if (*size > m_target.maxSplit / rows) return;
            else rows *= *size;
        }
        const int64_t blocks = std::min(length / m_target.elementsPerPart, m_target.maxSplit / rows);
        if (blocks < 2) return;
        const int64_t vectors = (length + blocks * m_plan.lanes - 1) / (blocks * m_plan.lanes);
        m_plan.block = vectors * m_plan.lanes;
        m_plan.why.push_back("block: " + std::to_string(rows) + " rows of " + std::to_string(length) +
                             " elements are too few for all cores");
    }

    // ---- indices
    void chooseIndices() {
        if (m_target.indexBits == m_plan.indexBits || !fitsNarrowIndices(m_plan, *m_kernel)) return;
        m_plan.indexBits = m_target.indexBits;
        m_plan.why.push_back("indices: " + std::to_string(m_plan.indexBits) + " bits hold all of them");
    }

    // ---- ahead
    /// Bytes of a row that the first inner loop reads; 0 where it reduces nothing, or sizes are not known.
    int64_t rowBytes() const {
        int64_t bytes = 0;
        for (const int r : m_plan.inner[0].reductions) {
            const Expr& reduction = m_reductions[static_cast<size_t>(r)];
            for (const Loop& loop : reduceLoops(reduction))
                bytes += loop.size.asInt().value_or(0) * byteSize(reduction->operands[0]->dtype);
        }
        return bytes;
    }
    /// While a row is in the cache and computed, the memory waits.
    void choosePrefetch() {
        if (m_plan.vectors != VectorOver::Inner || m_plan.split > 1 || m_plan.order.empty() ||
            m_plan.inner.size() < 2 || computesLong(m_plan.inner[0]))
            return;
        const int64_t bytes = rowBytes();
        if (bytes < m_target.minPrefetch || bytes > m_target.maxPrefetch) return;
        const auto dear = std::find_if(m_plan.inner.begin() + 1, m_plan.inner.end(),
                                       [&](const InnerLoop& inner) { return computesLong(inner); });
        if (dear == m_plan.inner.end()) return;
        m_plan.prefetch = static_cast<int>(dear - m_plan.inner.begin());
        m_plan.why.push_back("prefetch: inner loop " + std::to_string(m_plan.prefetch) +
                             " is compute-bound, so the next row is prefetched meanwhile");
    }

    const Kernel* m_kernel;
    const TargetInfo* m_info;
    const LoopTarget& m_target;  // its loops
    std::vector<Expr> m_reductions;
    LoopPlan m_plan;
};

}  // namespace

LoopPlan choosePlan(const Kernel& kernel, const TargetInfo& target) { return Planner(kernel, target).choose(); }

}  // namespace cutaway
