#include "engine/loops/loop_plan.h"

#include <charconv>
#include <set>
#include <unordered_set>

#include "engine/loops/index.h"
#include "engine/loops/inner_lanes.h"

namespace cutaway {

bool LoopPlan::sameChoices(const LoopPlan& other) const {
    return order == other.order && vectors == other.vectors && lanes == other.lanes && unrollJam == other.unrollJam &&
           block == other.block && inner == other.inner && split == other.split && tiled == other.tiled &&
           tile == other.tile && inRegisters == other.inRegisters && atomic == other.atomic &&
           indexBits == other.indexBits && cached == other.cached && prefetch == other.prefetch;
}

std::vector<Loop> loopsOf(const InnerLoop& inner, const Kernel& kernel, const std::vector<Expr>& reductions) {
    if (!inner.stores.empty()) return kernel.stores[static_cast<size_t>(inner.stores[0])].inner;
    return reduceLoops(reductions[static_cast<size_t>(inner.reductions[0])]);
}

bool computesAgain(const LoopPlan& plan, size_t from, const Kernel& kernel, const std::vector<Expr>& reductions,
                   const Expr& reduction) {
    const Loop loop = reduceLoops(reduction)[0];
    for (size_t w = from; w < plan.inner.size(); ++w) {
        const std::vector<Loop> own = loopsOf(plan.inner[w], kernel, reductions);
        if (own.size() != 1 || !(own[0].size == loop.size)) continue;
        std::vector<Expr> values;
        for (const int r : plan.inner[w].reductions) values.push_back(reductions[static_cast<size_t>(r)]->operands[0]);
        for (const int s : plan.inner[w].stores) values.push_back(kernel.stores[static_cast<size_t>(s)].value);
        const Expr same = replaceAxes(reduction->operands[0],
                                      [&](int axis) { return axis == loop.axis ? Expr::axis(own[0].axis) : Expr(); });
        bool found = false;
        forEachExpr(values, [&](const Expr& e) { found |= e == same; });
        if (found) return true;
    }
    return false;
}

std::set<int> rowAxes(const LoopPlan& plan) {
    if (plan.vectors == VectorOver::Rows) return {plan.order.back()};
    return {plan.order.begin(), plan.order.end()};
}

namespace {

/// Widens `widest` to the bytes of what is computed for a value, beside indices; halves are computed as f32.
void widen(int& widest, const Expr& value, std::unordered_set<const ExprNode*>& seen) {
    if (!seen.insert(&*value).second) return;
    widest = std::max(widest, byteSize(computeTypeOf(value->dtype)));
    if (value->kind == ExprKind::Load) return;
    for (const Expr& operand : value->operands) widen(widest, operand, seen);
}

bool isPermutation(std::vector<int> order, const std::vector<Loop>& loops) {
    std::vector<int> axes;
    for (const Loop& loop : loops) axes.push_back(loop.axis);
    std::sort(axes.begin(), axes.end());
    std::sort(order.begin(), order.end());
    return axes == order;
}

}  // namespace

int mostLanes(const Kernel& kernel, const TargetInfo& target) {
    int widest = 1;
    std::unordered_set<const ExprNode*> seen;
    bool inner = kernel.outer.empty() || !reductionsOf(kernel).empty();
    for (const KernelStore& store : kernel.stores) {
        inner |= !store.inner.empty();
        widen(widest, store.value, seen);
    }
    const LoopTarget& loops = target.loops;
    if (loops.warp > 0) {
        int narrowest = 16;
        for (const KernelBuffer& buffer : kernel.buffers) narrowest = std::min(narrowest, byteSize(buffer.dtype));
        return inner ? loops.lanes : loops.lanes * std::clamp(kBytesOfThread / narrowest, 1, 8);
    }
    return inner || widest > 2 ? loops.lanes : std::max(loops.lanes, loops.narrowBytes / widest);
}

namespace {
/// Bytes in which lanes join a state: what each warp of several has.
int64_t bytesOfStates(int lanes, int bytes, int warp) {
    if (warp == 0 || lanes <= warp) return 0;
    return (int64_t{lanes} / warp * bytes + 15) / 16 * 16;
}
}  // namespace

int64_t sharedBytes(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target) {
    const std::vector<Expr> reductions = reductionsOf(kernel);
    int64_t bytes = 0;
    for (const int r : plan.cached) {
        const Expr& kept = reductions[static_cast<size_t>(r)];
        bytes +=
            reduceLoops(kept)[0].size.asInt().value_or(0) * byteSize(kept->operands[0]->dtype) * groupsOf(plan, target);
    }
    if (plan.vectors == VectorOver::Inner)
        for (const Expr& r : reductions)
            for (const DType state : reducerOf(r).stateTypes(r->operands[0]->dtype, target.sums))
                bytes += bytesOfStates(plan.lanes, byteSize(state), target.loops.warp);
    if (plan.tiled < 0 || plan.inRegisters) return bytes;
    std::vector<Expr> roots;
    for (const KernelStore& store : kernel.stores) roots.push_back(store.value);
    forEachExpr(roots, [&](const Expr& e) {
        if (e->kind != ExprKind::Load) return;
        const auto along = affineIn(e->operands[0], plan.tiled), across = affineIn(e->operands[0], plan.order.back());
        if (!along || along->coefficient.asInt() != 1 || !across || across->coefficient.asInt().value_or(2) < 2) return;
        bytes += int64_t{plan.tile} * (plan.tile + 1) * byteSize(e->dtype);
    });
    return bytes;
}

namespace {

class Checker {
  public:
    Checker(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target)
        : m_plan(&plan),
          m_kernel(&kernel),
          m_info(&target),
          m_target(target.loops),
          m_reductions(reductionsOf(kernel)) {}

    std::string problem() {
        if (!isPermutation(m_plan->order, m_kernel->outer)) return "order must name each outer loop of the kernel once";
        for (const auto& check : {&Checker::vectors, &Checker::inner, &Checker::unrollJam, &Checker::block,
                                  &Checker::needs, &Checker::split, &Checker::tiles, &Checker::cached, &Checker::shared,
                                  &Checker::additions, &Checker::indices, &Checker::prefetch})
            if (std::string found = (this->*check)(); !found.empty()) return found;
        return {};
    }

  private:
    std::string vectors() {
        if (m_plan->vectors == VectorOver::Nothing)
            return m_plan->lanes == 1 ? "" : "without vectors there is one lane";
        const int most = m_plan->vectors == VectorOver::Rows ? mostLanes(*m_kernel, *m_info) : m_target.lanes;
        const bool halved = m_target.warp > 0 ? m_plan->tiled < 0 && m_plan->lanes < most && most % m_plan->lanes == 0
                                              : m_plan->lanes * 2 == most;
        const bool more = m_plan->lanes > m_target.lanes && (m_plan->lanes == most || halved);
        if (m_plan->lanes != m_target.lanes && !more && !isPartOfWarp())
            return "vectors have " + std::to_string(m_target.lanes) + " lanes" +
                   (most > m_target.lanes ? " or " + std::to_string(most) : "");
        if (m_plan->vectors == VectorOver::Inner) return {};
        if (m_plan->order.empty()) return "there are no rows to make vectors of";
        for (const Expr& r : m_reductions)
            for (const Loop& loop : reduceLoops(r))
                if (reads(loop.size.expr(), m_plan->order.back()))
                    return "vectors over rows need reductions of one length";
        return {};
    }
    /// Whether a row has so few threads that they hand values to each other in registers.
    bool isPartOfWarp() const {
        const int lanes = m_plan->lanes;
        return m_plan->vectors == VectorOver::Inner && lanes > 1 && (lanes & (lanes - 1)) == 0 &&
               lanes <= std::min(m_target.warp, m_target.lanes);
    }
    std::string unrollJam() {
        if (m_plan->unrollJam < 1 || m_plan->unrollJam > m_target.maxUnrollJam)
            return "from 1 to " + std::to_string(m_target.maxUnrollJam) + " vectors are unrolled together";
        if (m_plan->unrollJam > 1 && (m_plan->vectors != VectorOver::Rows || m_plan->inner.empty()))
            return "unroll_jam needs vectors of rows and inner loops";
        return {};
    }
    std::string block() {
        if (m_plan->block == 0) return {};
        if (m_plan->vectors != VectorOver::Rows || !m_plan->inner.empty() || m_plan->tiled >= 0 ||
            m_plan->order.size() < 2)
            return "blocks are of the last of several loops over rows, without inner loops and tiles";
        return m_plan->block < 0 || m_plan->block % m_plan->lanes != 0 ? "a block is a multiple of the lanes" : "";
    }
    bool loopsAreEqual(const InnerLoop& inner) const {
        const std::vector<Loop> loops = loopsOf(inner, *m_kernel, m_reductions);
        bool equal = !loops.empty();
        for (const int r : inner.reductions) equal &= reduceLoops(m_reductions[static_cast<size_t>(r)]) == loops;
        for (const int s : inner.stores) equal &= m_kernel->stores[static_cast<size_t>(s)].inner == loops;
        return equal;
    }
    std::string inner() {
        std::set<int> stores;
        for (const InnerLoop& inner : m_plan->inner) {
            if (inner.reductions.empty() == inner.stores.empty()) return "an inner loop has reductions or stores";
            for (const int r : inner.reductions)
                if (r < 0 || static_cast<size_t>(r) >= m_reductions.size() || !m_inLoops.insert(r).second)
                    return "inner loops name each reduction of the kernel at most once";
            for (const int s : inner.stores)
                if (s < 0 || static_cast<size_t>(s) >= m_kernel->stores.size() || !stores.insert(s).second)
                    return "inner loops name each store with inner loops once";
            if (!loopsAreEqual(inner)) return "what shares an inner loop has equal loops";
            if (inner.accumulators < 1 || inner.accumulators > m_target.maxAccumulators)
                return "an inner loop has from 1 to " + std::to_string(m_target.maxAccumulators) + " accumulators";
            if (inner.accumulators > 1 &&
                ((inner.reductions.empty() && m_target.warp == 0) || m_plan->vectors != VectorOver::Inner))
                return "accumulators need a reduction whose inner loop is a vector loop";
        }
        for (size_t s = 0; s < m_kernel->stores.size(); ++s)
            if (m_kernel->stores[s].inner.empty() == stores.contains(static_cast<int>(s)))
                return "inner loops name each store with inner loops once";
        return {};
    }
    /// Why not, unless reductions in no inner loop are the same for all rows and those that an inner loop reads come
    /// before it.
    std::string needs() {
        const std::set<int> rows = rowAxes(*m_plan);
        for (size_t i = 0; i < m_reductions.size(); ++i) {
            if (m_inLoops.contains(static_cast<int>(i))) continue;
            const Expr& r = m_reductions[i];
            if (rows.empty() || std::any_of(rows.begin(), rows.end(), [&](int axis) { return reads(r, axis); }))
                return "reduction r" + std::to_string(i) + " is of every row, so an inner loop must compute it";
        }
        std::set<int> made;
        for (const InnerLoop& inner : m_plan->inner) {
            std::vector<Expr> roots;
            for (const int r : inner.reductions)
                for (const Expr& o : m_reductions[static_cast<size_t>(r)]->operands) roots.push_back(o);
            for (const int s : inner.stores) roots.push_back(m_kernel->stores[static_cast<size_t>(s)].value);
            std::string late;
            forEachExpr(roots, [&](const Expr& e) {
                if (!isReduce(e)) return;
                const auto at = std::find(m_reductions.begin(), m_reductions.end(), e) - m_reductions.begin();
                if (m_inLoops.contains(static_cast<int>(at)) && !made.contains(static_cast<int>(at)))
                    late = "reduction r" + std::to_string(at) + " is needed by an inner loop before it is computed";
            });
            if (!late.empty()) return late;
            made.insert(inner.reductions.begin(), inner.reductions.end());
        }
        return {};
    }
    std::string split() {
        if (m_plan->split < 1) return "split is at least 1";
        if (m_plan->split == 1) return {};
        return m_plan->inner.empty() ? "split needs inner loops, and there are none" : "";
    }
    std::string tiles() {
        if (m_plan->tiled < 0) return m_plan->inRegisters ? "in_registers needs a tile" : "";
        if (m_plan->tile < 1) return "a tile has at least one element";
        if (m_plan->inRegisters && m_target.warp > 0) return "only one thread transposes tiles in registers";
        const bool inner = m_plan->vectors == VectorOver::Rows && m_plan->inner.empty() && m_reductions.empty() &&
                           m_plan->tiled != m_plan->order.back() &&
                           std::find(m_plan->order.begin(), m_plan->order.end(), m_plan->tiled) != m_plan->order.end();
        return inner ? "" : "tiles are of an outer loop inside vectors over rows, without reductions";
    }

    std::string cached() {
        for (const int r : m_plan->cached) {
            if (!m_inLoops.contains(r)) return "cache names a reduction of an inner loop";
            const std::vector<Loop> loops = reduceLoops(m_reductions[static_cast<size_t>(r)]);
            if (loops.size() != 1 || loops[0].size.asInt().value_or(m_target.maxCached + 1) > m_target.maxCached)
                return "a cached reduction has one loop of at most " + std::to_string(m_target.maxCached) + " elements";
            if (m_plan->vectors == VectorOver::Rows || m_plan->split > 1)
                return "cache needs rows that are not vectors, and no split";
            for (const InnerLoop& inner : m_plan->inner)
                if (m_target.warp > 0 && inner.accumulators != m_plan->inner[0].accumulators)
                    return "each thread caches its own elements: inner loops have equally many accumulators";
        }
        return {};
    }

    std::string shared() {
        const int64_t most = m_info->sharedBytes, bytes = most > 0 ? sharedBytes(*m_plan, *m_kernel, *m_info) : 0;
        if (bytes <= most) return {};
        return "what lanes share takes " + std::to_string(bytes) + " bytes, and " + std::string(m_info->name.text) +
               " has " + std::to_string(most);
    }

    std::string additions() {
        if (m_plan->atomic && !m_target.atomics) return "threads add at once on GPUs only";
        if (!adds(*m_kernel)) return m_plan->atomic ? "only kernels that add are atomic" : "";
        if (m_plan->tiled >= 0) return "what adds is not tiled";
        return m_plan->split > 1 && !m_plan->atomic ? "a split kernel that adds is atomic" : "";
    }

    std::string indices() {
        if (m_plan->indexBits == 64) return {};
        if (m_plan->indexBits != 32) return "indices have 32 or 64 bits";
        return fitsNarrowIndices(*m_plan, *m_kernel) ? "" : "an index may need more than 32 bits";
    }

    std::string prefetch() {
        if (m_plan->prefetch < 0) return {};
        if (m_plan->vectors != VectorOver::Inner || m_plan->split > 1 || m_plan->order.empty())
            return "prefetch needs several rows, vectors inner, and no split";
        const bool later = m_plan->prefetch > 0 && static_cast<size_t>(m_plan->prefetch) < m_plan->inner.size();
        return later ? "" : "prefetch names an inner loop that is not the first";
    }

    const LoopPlan* m_plan;
    const Kernel* m_kernel;
    const TargetInfo* m_info;
    const LoopTarget& m_target;  // its loops
    std::vector<Expr> m_reductions;
    std::set<int> m_inLoops;
};

constexpr std::string_view kOver[] = {"nothing", "rows", "inner"};

std::string joined(const std::vector<int>& numbers, char letter) {
    std::string all;
    for (const int n : numbers) all += " " + std::string(1, letter) + std::to_string(n);
    return all;
}

std::optional<int> numberIn(std::string_view word) {
    int value = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), value);
    return end.ec == std::errc() && end.ptr == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

/// Words of plans that version 0.1 has written, and those of today.
constexpr std::pair<std::string_view, std::string_view> kOldWords[] = {
    {"walk", "loop"},  {"walks", "inner"},    {"jam", "unroll_jam"}, {"chains", "accumulators"},
    {"keep", "cache"}, {"ahead", "prefetch"}, {"parts", "split"},    {"direct", "in_registers"},
};
std::string_view today(std::string_view word) {
    const auto* const found =
        std::find_if(std::begin(kOldWords), std::end(kOldWords), [&](const auto& old) { return old.first == word; });
    return found == std::end(kOldWords) ? word : found->second;
}

/// One line of a plan's text into the plan; the sentence that says what is wrong, or nothing.
std::string readLine(const std::vector<std::string_view>& words, LoopPlan& plan) {
    auto lettered = [](std::string_view word, char letter) -> std::optional<int> {
        return word.size() > 1 && word[0] == letter ? numberIn(word.substr(1)) : std::nullopt;
    };
    const std::string_view key = words[0];
    auto number = [&](size_t at) { return at < words.size() ? numberIn(words[at]) : std::nullopt; };
    if (key == "order") {
        for (size_t i = 1; i < words.size(); ++i) {
            const auto axis = lettered(words[i], 'x');
            if (!axis) return "order lists axes: order x0 x1";
            plan.order.push_back(*axis);
        }
        return {};
    }
    if (key == "vectors") {
        for (size_t i = 0; i < std::size(kOver); ++i)
            if (words.size() >= 2 && words[1] == kOver[i]) {
                plan.vectors = static_cast<VectorOver>(i);
                plan.lanes = number(2).value_or(1);
                return {};
            }
        return "vectors are over nothing, rows or inner: vectors rows 16";
    }
    if (key == "unroll_jam") {
        if (!number(1)) return "unroll_jam is a number of vectors: unroll_jam 4";
        plan.unrollJam = *number(1);
        return {};
    }
    if (key == "block") {
        if (!number(1)) return "block is a number of elements: block 4096";
        plan.block = *number(1);
        return {};
    }
    if (key == "loop") {
        InnerLoop inner;
        for (size_t i = 1; i < words.size(); ++i) {
            const auto r = lettered(words[i], 'r'), s = lettered(words[i], 's');
            if (words[i] == "accumulators" && number(i + 1) && i + 2 == words.size()) {
                inner.accumulators = *number(i + 1);
                break;
            }
            if (!r && !s) return "an inner loop lists reductions or stores: loop r0 r1 accumulators 4";
            (r ? inner.reductions : inner.stores).push_back(r ? *r : *s);
        }
        plan.inner.push_back(std::move(inner));
        return {};
    }
    if (key == "cache") {
        const auto r = words.size() == 2 ? lettered(words[1], 'r') : std::nullopt;
        if (!r) return "cache names a reduction: cache r1";
        plan.cached.push_back(*r);
        return {};
    }
    if (key == "prefetch") {
        if (!number(1)) return "prefetch is the number of an inner loop, from 0 on: prefetch 1";
        plan.prefetch = *number(1);
        return {};
    }
    if (key == "split") {
        if (!number(1)) return "split is a number: split 8";
        plan.split = *number(1);
        return {};
    }
    if (key == "tile") {
        const auto axis = words.size() > 1 ? lettered(words[1], 'x') : std::nullopt;
        plan.inRegisters = words.size() == 4 && words[3] == "in_registers";
        if (!axis || !number(2) || (words.size() > 3 && !plan.inRegisters))
            return "a tile is an axis and a size: tile x0 16, or tile x0 16 in_registers";
        plan.tiled = *axis;
        plan.tile = *number(2);
        return {};
    }
    if (key == "indices") {
        if (!number(1)) return "indices are so many bits wide: indices 32";
        plan.indexBits = *number(1);
        return {};
    }
    if (key == "atomic") {
        plan.atomic = true;
        return {};
    }
    return "a plan has lines order, vectors, unroll_jam, block, loop, cache, prefetch, split, tile, indices and atomic";
}

}  // namespace

std::string problemOf(const LoopPlan& plan, const Kernel& kernel, const TargetInfo& target) {
    return Checker(plan, kernel, target).problem();
}

std::string text(const LoopPlan& plan) {
    std::string all = "order" + joined(plan.order, 'x') + "\n";
    all += "vectors " + std::string(kOver[static_cast<size_t>(plan.vectors)]);
    if (plan.lanes > 1) all += " " + std::to_string(plan.lanes);
    all += "\n";
    if (plan.unrollJam > 1) all += "unroll_jam " + std::to_string(plan.unrollJam) + "\n";
    if (plan.block > 0) all += "block " + std::to_string(plan.block) + "\n";
    for (const InnerLoop& inner : plan.inner)
        all += "loop" + joined(inner.reductions, 'r') + joined(inner.stores, 's') +
               (inner.accumulators > 1 ? " accumulators " + std::to_string(inner.accumulators) : "") + "\n";
    for (const int r : plan.cached) all += "cache r" + std::to_string(r) + "\n";
    if (plan.prefetch >= 0) all += "prefetch " + std::to_string(plan.prefetch) + "\n";
    if (plan.split > 1) all += "split " + std::to_string(plan.split) + "\n";
    if (plan.tiled >= 0)
        all += "tile x" + std::to_string(plan.tiled) + " " + std::to_string(plan.tile) +
               (plan.inRegisters ? " in_registers\n" : "\n");
    if (plan.indexBits != 64) all += "indices " + std::to_string(plan.indexBits) + "\n";
    if (plan.atomic) all += "atomic\n";
    for (const std::string& why : plan.why) all += "# " + why + "\n";
    return all;
}

Result<LoopPlan> parsePlan(std::string_view source) {
    LoopPlan plan;
    for (int line = 1; !source.empty(); ++line) {
        const size_t end = source.find('\n');
        std::string_view rest = source.substr(0, end);
        source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
        if (rest.starts_with("# ")) {
            plan.why.emplace_back(rest.substr(2));
            continue;
        }
        std::vector<std::string_view> words;
        while (!rest.empty()) {
            const size_t space = rest.find_first_of(" \t\r");
            if (space != 0) words.push_back(today(rest.substr(0, space)));
            rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
        }
        if (words.empty()) continue;
        if (const std::string wrong = readLine(words, plan); !wrong.empty())
            return invalidInput(wrong, "line " + std::to_string(line));
    }
    return plan;
}

}  // namespace cutaway
