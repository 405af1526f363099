#include "engine/loops/build_tiles.h"

#include "engine/loops/index.h"
#include "engine/loops/index_exprs.h"
#include "engine/loops/unique_exprs.h"

namespace cutaway {
namespace {

class TileBuilder {
  public:
    TileBuilder(const Kernel& kernel, const LoopPlan& plan, LoopNest& nest, const Tile& tile)
        : m_kernel(&kernel), m_plan(&plan), m_nest(&nest), m_tile(&tile) {}

    Body build() {
        stageLoads();
        if (!m_plan->inRegisters) {
            byLanes();
            return std::move(m_body);
        }
        if (storesAreCopies()) {
            for (const KernelStore& store : m_kernel->stores)
                transpose(*stagedFor(store.value), {store.buffer, atFirst(store.index), rowStep(store.index)});
            return std::move(m_body);
        }
        std::vector<int> turned;
        for (size_t i = 0; i < m_staged.size(); ++i) turned.push_back(scratch(m_staged[i]));
        for (size_t i = 0; i < m_staged.size(); ++i)
            transpose(m_staged[i], {turned[i], number(0), number(m_tile->columns.count)});
        storeAll(turned);
        return std::move(m_body);
    }

  private:
    /// A load that is contiguous along the rows, and how far memory goes on from column to column.
    struct Staged {
        Expr load, step;
    };
    void stageLoads() {
        std::vector<Expr> roots;
        for (const KernelStore& store : m_kernel->stores) roots.push_back(store.value);
        forEachExpr(roots, [&](const Expr& e) {
            if (e->kind != ExprKind::Load) return;
            const auto along = affineIn(e->operands[0], m_tile->columns.axis);
            const bool turned = along && along->coefficient.asInt().value_or(2) >= 2;
            if (turned && rowStep(e->operands[0]).asInt() == 1) m_staged.push_back({e, along->coefficient});
        });
    }
    const Staged* stagedFor(const Expr& value) const {
        const auto found =
            std::find_if(m_staged.begin(), m_staged.end(), [&](const Staged& s) { return s.load == value; });
        return found == m_staged.end() ? nullptr : &*found;
    }
    /// How far memory goes on from row to row; 0 if that is not the same everywhere.
    Expr rowStep(const Expr& index) const {
        const auto affine = affineIn(index, m_tile->rows.axis);
        return affine ? affine->coefficient : number(0);
    }
    bool storesAreCopies() const {
        return std::all_of(m_kernel->stores.begin(), m_kernel->stores.end(), [&](const KernelStore& store) {
            const Staged* const own = stagedFor(store.value);
            const auto along = affineIn(store.index, m_tile->columns.axis);
            return own && along && along->coefficient.asInt() == 1 && !(rowStep(store.index).asInt() == 0) &&
                   m_nest->memoryOf(own->load) == m_nest->memoryOf(store.buffer);
        });
    }
    /// The index at the tile's first row and column.
    Expr atFirst(const Expr& index) const {
        return replaceAxes(index, [&](int axis) {
            if (axis == m_tile->rows.axis) return m_tile->rows.first;
            return axis == m_tile->columns.axis ? m_tile->columns.first : Expr();
        });
    }
    int scratch(const Staged& staged) {
        m_nest->scratch.push_back({staged.load->dtype, m_tile->rows.count * m_tile->columns.count});
        return ~static_cast<int>(m_nest->scratch.size() - 1);
    }
    template <class S>
    static void append(Body& body, S stmt) {
        body.push_back({std::move(stmt)});
    }

    void transpose(const Staged& staged, Transpose::Side to) {
        const Transpose::Side from{bufferOf(staged.load), atFirst(staged.load->operands[0]), staged.step};
        append(m_body, Transpose{std::move(to), from, m_tile->columns.extent, m_tile->rows.extent});
    }
    /// By all lanes of a block, which follow what lies side by side: along the columns of memory into scratch memory,
    /// and from there along the rows.
    void byLanes() {
        const Expr lane = Expr::axis(m_tile->lane);
        const int64_t pitch = m_tile->rows.count + 1;  // so that neighbours of a row lie in different banks
        std::vector<int> staged;
        for (const Staged& own : m_staged) {
            m_nest->scratch.push_back({own.load->dtype, m_tile->columns.count * pitch});
            staged.push_back(~static_cast<int>(m_nest->scratch.size() - 1));
        }
        const auto at = [&](const Place& place) { return sum(times(place.column, pitch), place.row); };
        if (!m_staged.empty()) {
            append(m_body, Barrier{});
            forAll([&](Body& body, const Expr& rowCount, const Expr&) {
                const Place place{remainder(lane, rowCount), quotient(lane, rowCount)};
                for (size_t i = 0; i < m_staged.size(); ++i)
                    append(body, Store{staged[i], at(place), Expr(), inTile(m_staged[i].load, place)});
            });
            append(m_body, Barrier{});
        }
        forAll([&](Body& body, const Expr&, const Expr& columnCount) {
            const Place place{quotient(lane, columnCount), remainder(lane, columnCount)};
            for (const KernelStore& store : m_kernel->stores) {
                const Expr value = rewriteShared(store.value, [&](const Expr& e) {
                    const Staged* const own = stagedFor(e);
                    return own ? Expr::load(bufferName(staged[static_cast<size_t>(own - m_staged.data())]), at(place),
                                            e->dtype)
                               : Expr();
                });
                append(body, Store{store.buffer, inTile(store.index, place), Expr(), inTile(value, place)});
            }
        });
    }
    /// An element of the tile, counted from its first row and column.
    struct Place {
        Expr row, column;
    };
    Expr inTile(const Expr& expr, const Place& place) const {
        const TileSide &rows = m_tile->rows, &columns = m_tile->columns;
        return replaceAxes(expr, [&](int axis) {
            if (axis == rows.axis) return sum(rows.first, place.row);
            return axis == columns.axis ? sum(columns.first, place.column) : Expr();
        });
    }
    /// Appends a loop of all elements of the tile, in vectors. `inside` appends its body; it is handed how many rows
    /// and columns there are: numbers where the tile is whole, which most are, since divisions by others take long.
    template <class Inside>
    void forAll(const Inside& inside) {
        const Expr rows = m_tile->rows.extent, columns = m_tile->columns.extent;
        const auto loop = [&](const Expr& rowCount, const Expr& columnCount) {
            For all{m_tile->lane, number(0), times(rowCount, columnCount), m_plan->lanes, Map::Serial, {}};
            inside(all.body, rowCount, columnCount);
            return Stmt{std::move(all)};
        };
        const int64_t count = m_tile->rows.count * m_tile->columns.count;
        Stmt whole = loop(number(m_tile->rows.count), number(m_tile->columns.count));
        if (times(rows, columns).asInt() == count) {
            m_body.push_back(std::move(whole));
            return;
        }
        If isWhole{Expr::make(ExprKind::Eq, {times(rows, columns), number(count)}), {}},
            isCut{Expr::make(ExprKind::Ne, {times(rows, columns), number(count)}), {}};
        isWhole.body.push_back(std::move(whole));
        isCut.body.push_back(loop(rows, columns));
        append(m_body, std::move(isWhole));
        append(m_body, std::move(isCut));
    }
    void storeAll(const std::vector<int>& turned) {
        const TileSide &rows = m_tile->rows, &columns = m_tile->columns;
        const Expr row = difference(Expr::axis(rows.axis), rows.first);
        const Expr column = difference(Expr::axis(columns.axis), columns.first);
        const Expr index = sum(times(row, columns.count), column);
        For inner{columns.axis, columns.first, columns.last, m_plan->lanes, Map::Serial, {}};
        for (const KernelStore& store : m_kernel->stores) {
            const Expr value = rewriteShared(store.value, [&](const Expr& e) {
                const Staged* const own = stagedFor(e);
                return own ? Expr::load(bufferName(turned[static_cast<size_t>(own - m_staged.data())]), index, e->dtype)
                           : Expr();
            });
            append(inner.body, Store{store.buffer, store.index, Expr(), value});
        }
        For outer{rows.axis, rows.first, rows.last, 1, Map::Serial, {}};
        append(outer.body, std::move(inner));
        append(m_body, std::move(outer));
    }

    const Kernel* m_kernel;
    const LoopPlan* m_plan;
    LoopNest* m_nest;
    const Tile* m_tile;
    std::vector<Staged> m_staged;
    Body m_body;
};

}  // namespace

TileSide::TileSide(const Loop& loop, const Expr& block, int64_t elements)
    : axis(loop.axis),
      count(elements),
      first(times(block, elements)),
      last(endOfBlock(first, elements, loop.size)),
      extent(loop.size.asInt().value_or(1) % elements == 0 ? number(elements) : difference(last, first)) {}

Body bodyOfTile(const Kernel& kernel, const LoopPlan& plan, LoopNest& nest, const Tile& tile) {
    return TileBuilder(kernel, plan, nest, tile).build();
}

}  // namespace cutaway
