#include "engine/loops/build_nest.h"

#include <map>
#include <set>
#include <unordered_map>

#include "engine/loops/build_tiles.h"
#include "engine/loops/index.h"
#include "engine/loops/index_exprs.h"
#include "engine/loops/reduction_axes.h"
#include "engine/loops/unique_exprs.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

/// The body of a loop that is still being built. Statements appended to it stand before the loops inside that are open.
struct BuildingScope {
    Body body;
    std::set<int> axes;                              // bound by the loop
    std::unordered_map<const ExprNode*, Expr> done;  // reductions computed here, and the variables with their results
};

/// One nest, statement by statement.
class NestBuilder {
  public:
    NestBuilder(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target,
                const std::vector<Expr>& reductions, int firstAxis)
        : m_kernel(&kernel), m_plan(&plan), m_target(&target), m_reductions(&reductions), m_nextAxis(firstAxis) {
        m_nest.buffers = kernel.buffers;
        m_nest.sizes = kernel.sizes;
        open({});
    }
    int newAxis() { return m_nextAxis++; }
    LoopNest& nest() { return m_nest; }

    void open(std::set<int> axes) { m_scopes.push_back({{}, std::move(axes), {}}); }
    /// Ends the scope of the last open(): what was appended since is the body of `loop`, which is appended outside.
    void closeInto(For loop) {
        loop.body = std::move(m_scopes.back().body);
        m_scopes.pop_back();
        append(std::move(loop));
    }
    LoopNest finish(std::string name, SymInt range) {
        CT_CHECK(m_scopes.size() == 1, "every loop is closed");
        m_nest.body = std::move(m_scopes[0].body);
        m_nest.name = std::move(name);
        m_nest.range = std::move(range);
        return std::move(m_nest);
    }
    template <class S>
    void append(S stmt) {
        m_scopes.back().body.push_back({std::move(stmt)});
    }
    void append(Stmt stmt) { m_scopes.back().body.push_back(std::move(stmt)); }
    void bind(int axis, const Expr& value) {
        append(Index{axis, value});
        m_scopes.back().axes.insert(axis);
    }

    /// The expression with variables for its reductions; emits those that are not computed yet.
    Expr ready(const Expr& expr) {
        return rewriteShared(expr, [&](const Expr& e) -> Expr {
            for (const auto& [element, load] : m_kept)
                if (e == element) return load;
            return isReduce(e) ? resultOf(e) : Expr();
        });
    }
    void computeInner(const InnerLoop& inner) {
        const std::vector<Expr> reductions = reductionsOfInner(inner);
        const std::vector<States> states =
            accumulate(reductions, std::nullopt, inner.accumulators, prefetchesIn(inner));
        for (size_t i = 0; i < reductions.size(); ++i) conclude(reductions[i], states[i]);
    }
    std::vector<Expr> reductionsOfInner(const InnerLoop& inner) const {
        std::vector<Expr> reductions;
        for (const int r : inner.reductions) reductions.push_back((*m_reductions)[static_cast<size_t>(r)]);
        return reductions;
    }
    void storeInner(const InnerLoop& inner, const std::optional<std::pair<Expr, Expr>>& range) {
        // Called for its effect: computes, before the loops, reductions that are in no inner loop and so do not vary in
        // them.
        for (const int s : inner.stores) ready(m_kernel->stores[static_cast<size_t>(s)].value);
        loops(m_kernel->stores[static_cast<size_t>(inner.stores[0])].inner, range, inner.accumulators,
              prefetchesIn(inner), [&] {
                  for (const int s : inner.stores) store(m_kernel->stores[static_cast<size_t>(s)]);
              });
    }
    void store(const KernelStore& kernelStore) {
        const StoreHow adding = m_plan->atomic ? StoreHow::Atomic : StoreHow::Adds;
        append(Store{kernelStore.buffer, ready(kernelStore.index), Expr(), ready(kernelStore.value),
                     kernelStore.adds ? adding : StoreHow::Puts});
    }

    using States = std::vector<int>;  // the variables of one reduction
    /// Emits the loops (equal for all) that compute these reductions, over `range` of the first. Returns their states.
    std::vector<States> accumulate(const std::vector<Expr>& reductions,
                                   const std::optional<std::pair<Expr, Expr>>& range, int accumulators,
                                   bool prefetch = false) {
        for (const Expr& r : reductions)
            for (const Expr& operand : r->operands) ready(operand);
        std::vector<States> states;
        for (const Expr& r : reductions) states.push_back(allocate(r));
        const std::vector<Loop> own = reduceLoops(reductions[0]);
        loops(own, range, accumulators, prefetch, [&] {
            for (size_t i = 0; i < reductions.size(); ++i) {
                const Expr& r = reductions[i];
                const Expr element = ready(r->operands[0]);
                if (const int scratch = cacheOf(r); scratch < 0)
                    append(Store{scratch, Expr::axis(own[0].axis), Expr(), element});
                append(Accumulate{static_cast<int>(r->integer), states[i], element,
                                  reducerOf(r).position ? position(own) : Expr(), Expr()});
            }
        });
        return states;
    }
    /// The scratch array (~number) that caches the elements of this reduction, or 0.
    int cacheOf(const Expr& reduction) {
        for (const int r : m_plan->cached) {
            if (&*(*m_reductions)[static_cast<size_t>(r)] != &*reduction) continue;
            const int scratch = ~static_cast<int>(m_nest.scratch.size());
            m_nest.scratch.push_back({reduction->operands[0]->dtype, reduceLoops(reduction)[0].size.value()});
            m_cached.emplace_back(reduction, scratch);
            return scratch;
        }
        return 0;
    }
    States allocate(const Expr& reduction) {
        States states;
        const DType body = reduction->operands[0]->dtype;
        for (const DType type : reducerOf(reduction).stateTypes(body, m_target->sums))
            states.push_back(m_nest.newVar(type, 1, true));
        append(Alloc{static_cast<int>(reduction->integer), body, states});
        return states;
    }
    /// Emits the result of a reduction from its states as a variable; ready() uses that from here on.
    void conclude(const Expr& reduction, const States& states) {
        std::vector<Expr> values;
        for (const int state : states) values.push_back(m_nest.var(state));
        const int var = m_nest.newVar(reduction->dtype);
        append(Let{var, reducerOf(reduction).finish(values, reduction->operands[0]->dtype)});
        m_scopes.back().done[&*reduction] = m_nest.var(var);
    }

  private:
    bool prefetchesIn(const InnerLoop& inner) const {
        return m_plan->prefetch >= 0 && &inner == &m_plan->inner[static_cast<size_t>(m_plan->prefetch)];
    }
    static Expr position(const std::vector<Loop>& loops) {
        Expr at = number(0);
        for (const Loop& loop : loops) at = sum(times(at, loop.size.expr()), Expr::axis(loop.axis));
        return at;
    }
    template <class Inside>
    void loops(const std::vector<Loop>& own, const std::optional<std::pair<Expr, Expr>>& range, int accumulators,
               bool prefetch, Inside&& inside) {
        std::vector<For> fors;
        for (size_t i = 0; i < own.size(); ++i) {
            const bool vector = m_plan->vectors == VectorOver::Inner && i + 1 == own.size();
            const bool ranged = i == 0 && range;
            fors.push_back({own[i].axis,
                            ranged ? range->first : number(0),
                            ranged ? range->second : ready(own[i].size.expr()),
                            vector ? m_plan->lanes : 1,
                            Map::Serial,
                            {},
                            vector ? accumulators : 1});
        }
        for (const For& loop : fors) open({loop.axis});
        const auto outside = m_kept;
        if (own.size() == 1) readCached(own[0]);
        if (prefetch && own.size() == 1) prefetchNext(own[0]);
        inside();
        m_kept = outside;
        for (size_t i = fors.size(); i-- > 0;) closeInto(std::move(fors[i]));
    }
    /// Along an inner loop: what the first inner loop reads of the next row, and where inner loops behind this one
    /// store.
    void prefetchNext(const Loop& loop) {
        const int row = m_plan->order.back();
        const auto along = [&](const std::vector<Loop>& loops, const Expr& index) {
            if (loops.size() != 1 || !(loops[0].size == loop.size)) return Expr();
            const auto affine = affineIn(index, loops[0].axis);
            if (!affine || affine->coefficient.asInt() != 1) return Expr();
            return sum(affine->rest, Expr::axis(loop.axis));
        };
        std::set<std::pair<int, uint64_t>> seen;
        const auto prefetch = [&](int buffer, const Expr& index, bool toWrite) {
            if (!index || !reads(index, row) || !affineIn(index, row) || hasLoad(index)) return;
            if (!seen.emplace(buffer, index->hash).second) return;
            const int64_t line = m_target->loops.lineBytes / byteSize(m_nest.memoryOf(buffer));
            for (int64_t k = 0; k < m_plan->lanes; k += line) append(Prefetch{buffer, sum(index, number(k)), toWrite});
        };
        const std::vector<Loop> first = loopsOf(m_plan->inner[0], *m_kernel, *m_reductions);
        const Expr next = sum(Expr::axis(row), number(1));
        for (const int r : m_plan->inner[0].reductions)
            forEachExpr({(*m_reductions)[static_cast<size_t>(r)]->operands[0]}, [&](const Expr& e) {
                if (e->kind != ExprKind::Load) return;
                if (const Expr index = along(first, e->operands[0]))
                    prefetch(bufferOf(e), replaceAxes(index, [&](int axis) { return axis == row ? next : Expr(); }),
                             false);
            });
        for (size_t w = static_cast<size_t>(m_plan->prefetch) + 1; w < m_plan->inner.size(); ++w)
            for (const int s : m_plan->inner[w].stores) {
                const KernelStore& store = m_kernel->stores[static_cast<size_t>(s)];
                prefetch(store.buffer, along(store.inner, store.index), true);
            }
    }
    static bool hasLoad(const Expr& index) {
        bool found = false;
        forEachExpr({index}, [&](const Expr& e) { found |= e->kind == ExprKind::Load || isReduce(e); });
        return found;
    }
    /// Makes ready() read the elements that earlier inner loops have cached in scratch memory, at the axis of this
    /// inner loop.
    void readCached(const Loop& own) {
        for (const auto& [reduction, scratch] : m_cached) {
            const Loop loop = reduceLoops(reduction)[0];
            if (!(loop.size == own.size)) continue;
            const Expr& body = reduction->operands[0];
            const Expr element = replaceAxes(
                body, [&, from = loop.axis](int axis) { return axis == from ? Expr::axis(own.axis) : Expr(); });
            m_kept.emplace_back(element, Expr::load(bufferName(scratch), Expr::axis(own.axis), body->dtype));
        }
    }
    Expr resultOf(const Expr& reduction) {
        for (auto scope = m_scopes.rbegin(); scope != m_scopes.rend(); ++scope)
            if (auto found = scope->done.find(&*reduction); found != scope->done.end()) return found->second;
        // Not in an inner loop: it is the same for all rows, and computed where the last axis that it reads is bound.
        std::set<int> free;
        forEachExpr({reduction}, [&](const Expr& e) {
            if (e->kind == ExprKind::Axis) free.insert(static_cast<int>(e->integer));
        });
        size_t home = m_scopes.size() - 1;
        auto binds = [&](const BuildingScope& scope) {
            return std::any_of(free.begin(), free.end(), [&](int axis) { return scope.axes.contains(axis); });
        };
        while (home > 0 && !binds(m_scopes[home])) --home;
        std::vector<BuildingScope> inner(
            std::make_move_iterator(m_scopes.begin() + static_cast<std::ptrdiff_t>(home) + 1),
            std::make_move_iterator(m_scopes.end()));
        m_scopes.resize(home + 1);
        conclude(reduction, accumulate({reduction}, std::nullopt, 1)[0]);
        Expr result = m_scopes.back().done.at(&*reduction);
        m_scopes.insert(m_scopes.end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
        return result;
    }

    const Kernel* m_kernel;
    const LoopPlan* m_plan;
    const TargetInfo* m_target;
    const std::vector<Expr>* m_reductions;
    LoopNest m_nest;
    std::vector<std::pair<Expr, int>> m_cached;  // reductions, and the scratch arrays of their elements
    std::vector<std::pair<Expr, Expr>> m_kept;   // elements, and where to read them in the loop that is open
    std::vector<BuildingScope> m_scopes;
    int m_nextAxis;
};

/// Makes equal expressions one address, by which the builder knows reductions.
Kernel withUnique(Kernel kernel, UniqueExprs& exprs) {
    for (KernelStore& store : kernel.stores) {
        store.index = exprs.unique(store.index);
        store.value = exprs.unique(store.value);
    }
    return kernel;
}

class KernelBuilder {
  public:
    KernelBuilder(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target)
        : m_kernel(withUnique(kernel, m_exprs)),
          m_reductions(reductionsOf(m_kernel)),
          m_plan(&plan),
          m_target(&target) {
        for (const int axis : plan.order) m_rows.push_back(loopOf(axis));
    }

    LoweredKernel build() {
        if (m_plan->split > 1) buildSplit();
        else buildRows();
        return std::move(m_lowered);
    }

  private:
    Loop loopOf(int axis) const {
        for (const Loop& loop : m_kernel.outer)
            if (loop.axis == axis) return loop;
        CT_CHECK(false, "a plan orders the kernel's own loops");
    }
    NestBuilder begin() { return NestBuilder(m_kernel, *m_plan, *m_target, m_reductions, firstFreeAxis(m_kernel)); }
    std::string nextName() const {
        return m_kernel.name + (m_lowered.nests.empty() ? "" : "_" + std::to_string(m_lowered.nests.size()));
    }

    void plainStores(NestBuilder& builder) {
        for (const KernelStore& store : m_kernel.stores)
            if (store.inner.empty()) builder.store(store);
    }
    void row(NestBuilder& builder) {
        for (const InnerLoop& inner : m_plan->inner) {
            if (!inner.reductions.empty()) builder.computeInner(inner);
            else builder.storeInner(inner, std::nullopt);
        }
        plainStores(builder);
    }

    /// Opens the parallel loop: `flat` counts them, the axes of `loops` follow from it.
    void openFlat(NestBuilder& builder, int flat, const std::vector<Loop>& loops) {
        builder.open({flat});
        Expr rest = Expr::axis(flat);
        for (size_t i = loops.size(); i-- > 0;) {
            const Expr size = loops[i].size.expr();
            builder.bind(loops[i].axis, i == 0 ? rest : remainder(rest, size));
            rest = quotient(rest, size);
        }
    }
    static SymInt product(const std::vector<Loop>& loops) {
        SymInt all = 1;
        for (const Loop& loop : loops) all = all * loop.size;
        return all;
    }

    void buildRows() {
        NestBuilder builder = begin();
        if (m_plan->tiled < 0) return overRows(builder, m_plan->unrollJam, [&] { row(builder); });
        std::vector<Loop> flat = m_rows;
        // Tiles: `tile` rows by as many columns, or by a vector of them if one thread has them. The axes of both count
        // blocks from here on.
        Loop& rows = *std::find_if(flat.begin(), flat.end(), [&](const Loop& l) { return l.axis == m_plan->tiled; });
        const auto blocked = [&](Loop& loop, int64_t count) {
            const Loop own = std::exchange(loop, {builder.newAxis(), blocks(loop.size, count)});
            return TileSide(own, Expr::axis(loop.axis), count);
        };
        const TileSide side = blocked(rows, m_plan->tile);
        const Tile tile{
            side, blocked(flat.back(), m_plan->inRegisters ? std::max(m_plan->tile, m_plan->lanes) : m_plan->tile),
            builder.newAxis()};
        const int parallel = builder.newAxis();
        openFlat(builder, parallel, flat);
        for (Stmt& stmt : bodyOfTile(m_kernel, *m_plan, builder.nest(), tile)) builder.append(std::move(stmt));
        const SymInt range = product(flat);
        builder.closeInto({parallel, number(0), range.expr(), 1, Map::Parallel, {}});
        add(builder, range);
    }
    bool rowsAreVectors() const { return m_plan->vectors == VectorOver::Rows; }
    /// Ends a nest that does `inside` for all rows, of whose vectors `unrollJam` go together.
    template <class Inside>
    void overRows(NestBuilder& builder, int unrollJam, Inside&& inside) {
        std::vector<Loop> flat = m_rows;
        if (rowsAreVectors()) flat.pop_back();
        const bool serial = adds(m_kernel) && !m_plan->atomic;                             // one part has all
        const bool alone = rowsAreVectors() && flat.empty() && unrollJam == 1 && !serial;  // threads take vectors then
        const int parallel = alone ? -1 : builder.newAxis(), once = serial ? builder.newAxis() : -1;
        if (serial) builder.open({once});
        For vectors = vectorsOfRows(builder, flat, unrollJam);
        if (!alone) openFlat(builder, parallel, flat);
        if (rowsAreVectors()) builder.open({vectors.axis});
        inside();
        if (alone) vectors.map = Map::Parallel;
        if (rowsAreVectors()) builder.closeInto(std::move(vectors));
        const SymInt range = alone ? m_rows.back().size : product(flat);
        if (!alone) builder.closeInto({parallel, number(0), range.expr(), 1, serial ? Map::Serial : Map::Parallel, {}});
        if (serial) builder.closeInto({once, number(0), number(1), 1, Map::Parallel, {}});
        add(builder, serial ? SymInt(1) : range);
    }
    /// The loop of vectors over rows. Those that are unrolled together, or of one part, are a block each, whose axis is
    /// added to `flat`.
    For vectorsOfRows(NestBuilder& builder, std::vector<Loop>& flat, int unrollJam) const {
        if (!rowsAreVectors()) return {};
        const Loop& vector = m_rows.back();
        For loop{vector.axis, number(0), vector.size.expr(), m_plan->lanes, Map::Serial, {}};
        if (unrollJam == 1 && m_plan->block == 0) return loop;
        const int64_t elements = m_plan->block > 0 ? m_plan->block : int64_t{unrollJam} * m_plan->lanes;
        flat.push_back({builder.newAxis(), blocks(vector.size, elements)});
        loop.from = times(Expr::axis(flat.back().axis), elements);
        // What is cut where conditions change has to see where all of it ends.
        loop.to = m_plan->block > 0 ? minimum(sum(loop.from, number(elements)), vector.size.expr())
                                    : endOfBlock(loop.from, elements, vector.size);
        loop.unrollJam = unrollJam;
        return loop;
    }
    void add(NestBuilder& builder, const SymInt& range) {
        const std::string name = nextName();
        for (const Workspace& space : m_lowered.workspace) builder.nest().buffers.push_back({space.dtype, true});
        m_lowered.nests.push_back(builder.finish(name, range));
    }

    // ---- parts: a nest for each inner loop, which leaves its states in memory, and one for what is stored once a row
    void buildSplit() {
        for (const InnerLoop& inner : m_plan->inner) {
            NestBuilder builder = begin();
            const int flat = builder.newAxis(), part = builder.newAxis();
            const bool rows = rowsAreVectors();
            std::vector<Loop> loops = m_rows;
            if (rows) loops.pop_back();
            const For vector = vectorsOfRows(builder, loops, m_plan->unrollJam);
            loops.push_back({part, SymInt(int64_t{m_plan->split})});
            openFlat(builder, flat, loops);
            if (rows) builder.open({vector.axis});
            joinStates(builder);
            const auto range = rangeOf(loopsOf(inner, m_kernel, m_reductions), part);
            if (inner.reductions.empty()) builder.storeInner(inner, range);
            else statesOfPart(builder, inner, part, range);
            if (rows) builder.closeInto(vector);
            builder.closeInto({flat, number(0), product(loops).expr(), 1, Map::Parallel, {}});
            add(builder, product(loops));
        }
        const bool plain = std::any_of(m_kernel.stores.begin(), m_kernel.stores.end(),
                                       [](const KernelStore& store) { return store.inner.empty(); });
        if (!plain) return;
        NestBuilder builder = begin();
        overRows(builder, 1, [&] {
            joinStates(builder);
            plainStores(builder);
        });
    }
    /// Where a part's state of a row stands in workspace: [outer rows][parts][vector rows], so that vectors of rows are
    /// contiguous; without vectors of rows [rows][parts].
    Expr placeOf(const Expr& part) const {
        const bool rows = rowsAreVectors();
        Expr at = number(0);
        for (size_t i = 0; i + (rows ? 1 : 0) < m_rows.size(); ++i)
            at = sum(times(at, m_rows[i].size.expr()), Expr::axis(m_rows[i].axis));
        at = sum(times(at, m_plan->split), part);
        return rows ? sum(times(at, m_rows.back().size.expr()), Expr::axis(m_rows.back().axis)) : at;
    }
    /// The range of the first loop that a part covers; a multiple of the lanes where that is the vector loop.
    std::pair<Expr, Expr> rangeOf(const std::vector<Loop>& loops, int part) const {
        const int64_t unit = loops.size() == 1 && m_plan->vectors == VectorOver::Inner ? m_plan->lanes : 1;
        const SymInt length = blocks(loops[0].size, m_plan->split * unit) * SymInt(unit);
        const Expr from = times(Expr::axis(part), length.expr());
        return {from, minimum(sum(from, length.expr()), loops[0].size.expr())};
    }
    void statesOfPart(NestBuilder& builder, const InnerLoop& inner, int part, const std::pair<Expr, Expr>& range) {
        const std::vector<Expr> reductions = builder.reductionsOfInner(inner);
        const auto states = builder.accumulate(reductions, range, inner.accumulators);
        for (size_t i = 0; i < reductions.size(); ++i) {
            std::vector<int> buffers;
            for (const int state : states[i]) {
                const DType dtype = builder.nest().vars[static_cast<size_t>(state)].dtype;
                buffers.push_back(static_cast<int>(m_kernel.buffers.size() + m_lowered.workspace.size()));
                m_lowered.workspace.push_back({dtype, product(m_rows) * SymInt(int64_t{m_plan->split})});
                builder.append(Store{buffers.back(), placeOf(Expr::axis(part)), Expr(), builder.nest().var(state)});
            }
            m_stored.emplace_back(reductions[i], std::move(buffers));
        }
    }
    /// Reductions of earlier nests, joined part by part.
    void joinStates(NestBuilder& builder) {
        for (const auto& [reduction, buffers] : m_stored) {
            const auto states = builder.allocate(reduction);
            const int part = builder.newAxis();
            Combine combine{static_cast<int>(reduction->integer), states, {}};
            const Expr at = placeOf(Expr::axis(part));
            for (size_t i = 0; i < buffers.size(); ++i)
                combine.with.push_back(
                    Expr::load(bufferName(buffers[i]), at, builder.nest().vars[static_cast<size_t>(states[i])].dtype));
            builder.open({part});
            builder.append(std::move(combine));
            const bool spread = m_target->loops.warp > 0 && m_plan->vectors == VectorOver::Inner;
            builder.closeInto({part, number(0), number(m_plan->split), spread ? m_plan->lanes : 1, Map::Serial, {}});
            builder.conclude(reduction, states);
        }
    }

    UniqueExprs m_exprs;
    Kernel m_kernel;
    std::vector<Expr> m_reductions;
    const LoopPlan* m_plan;
    const TargetInfo* m_target;
    std::vector<Loop> m_rows;
    LoweredKernel m_lowered;
    std::vector<std::pair<Expr, std::vector<int>>> m_stored;
};

}  // namespace

LoweredKernel buildNests(const Kernel& kernel, const LoopPlan& plan, const TargetInfo& target) {
    return KernelBuilder(kernel, plan, target).build();
}

}  // namespace cutaway
