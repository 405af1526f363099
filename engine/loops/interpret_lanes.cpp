// Nests as a GPU runs them: lanes are threads of a block, each at a place of its own between barriers.
#include <algorithm>
#include <random>
#include <unordered_map>

#include "engine/expr/evaluate.h"
#include "engine/loops/interpret.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

enum class LaneStepKind : uint8_t {
    Do,       // the statement
    Enter,    // the loop, or on behind it
    Next,     // the loop's next step, or on
    Branch,   // into the If, or on behind it
    Block,    // waits for all lanes
    Warp,     // waits for the lanes of the warp, which hand each other what the statement asks for
    Publish,  // puts the lane's own of these vectors where all lanes read them
};
struct LaneStep {
    LaneStepKind kind;
    const Stmt* stmt = nullptr;
    size_t to = 0;
    const std::vector<int>* vectors = nullptr;
    std::vector<Expr> calls = {};  // what a warp's lanes hand each other
};

enum class LaneState : uint8_t { Ready, AtWarp, AtBlock, Done };
struct Lane {
    size_t at = 0;
    LaneState state = LaneState::Ready;
    int active = 0;
    std::vector<Cell> vars;
    std::unordered_map<int, int64_t> axes;
    std::vector<int64_t> ends;  // of loops, by step
    std::unordered_map<const ExprNode*, Cell> received;
};

class BlockInterpreter {
  public:
    BlockInterpreter(const LoopNest& nest, std::span<void* const> buffers, const std::map<std::string, int64_t>& sizes,
                     std::mt19937& random)
        : m_nest(&nest), m_buffers(buffers), m_sizes(&sizes), m_random(&random), m_before(sharedBefore(nest.body)) {
        m_warp = std::min(std::max(nest.warp, 1), nest.lanes);
        flatten(nest.body);
    }

    int64_t range() {
        Lane lane = fresh();
        return evaluate(lane, 0, m_nest->range.expr()).whole;
    }
    KernelFault run(int64_t end, int64_t block, int64_t blocks) {
        m_end = end;
        m_block = block;
        m_blocks = blocks;
        m_shared.assign(m_nest->vars.size(), {});
        m_scratch.clear();
        for (const Scratch& scratch : m_nest->scratch)
            m_scratch.emplace_back(static_cast<size_t>(scratch.count * byteSize(scratch.dtype)), char{-1});
        m_lanes.assign(static_cast<size_t>(m_nest->lanes), fresh());
        std::vector<int> ready(m_lanes.size());
        for (size_t k = 0; k < ready.size(); ++k) ready[k] = static_cast<int>(k);
        while (!ready.empty()) {
            std::swap(ready[(*m_random)() % ready.size()], ready.back());
            const int k = ready.back();
            ready.pop_back();
            go(k);
            release(k, ready);
        }
        for (const Lane& lane : m_lanes) CT_CHECK(lane.state == LaneState::Done, "all lanes come to the same barriers");
        return m_fault;
    }

  private:
    // ---- statements as steps
    bool handsInWarp(const ExprNode& e) const {
        if (e.kind != ExprKind::Call) return false;
        return e.name == "lanes_xor" || (m_nest->lanes <= m_warp && (e.name == "lane" || e.name == "lanes_from"));
    }
    void flatten(const Body& body) {
        for (const Stmt& stmt : body) {
            if (const auto shared = m_before.find(&stmt); shared != m_before.end() && m_nest->lanes > m_warp) {
                m_steps.push_back({LaneStepKind::Block});
                m_steps.push_back({LaneStepKind::Publish, nullptr, 0, &shared->second});
                m_steps.push_back({LaneStepKind::Block});
            }
            const size_t first = m_steps.size();
            if (const auto* loop = std::get_if<For>(&stmt.node)) {
                m_steps.push_back({LaneStepKind::Enter, &stmt});
                flatten(loop->body);
                m_steps.push_back({LaneStepKind::Next, &stmt, first});
                m_steps[first].to = m_steps.size();
            } else if (const auto* branch = std::get_if<If>(&stmt.node)) {
                m_steps.push_back({LaneStepKind::Branch, &stmt});
                flatten(branch->body);
                m_steps[first].to = m_steps.size();
            } else if (std::holds_alternative<Barrier>(stmt.node)) {
                m_steps.push_back({LaneStepKind::Block});
            } else {
                if (std::vector<Expr> calls = handed(stmt); !calls.empty())
                    m_steps.push_back({LaneStepKind::Warp, nullptr, 0, nullptr, std::move(calls)});
                m_steps.push_back({LaneStepKind::Do, &stmt});
            }
        }
    }
    std::vector<Expr> handed(Stmt stmt) const {
        std::vector<Expr> calls;
        forEachValue(stmt, [&](const Expr& value) {
            forEachExpr({value}, [&](const Expr& e) {
                if (handsInWarp(*e)) calls.push_back(e);
            });
        });
        return calls;
    }

    // ---- lanes
    Lane fresh() const {
        Lane lane;
        lane.active = m_nest->lanes;
        lane.vars.resize(m_nest->vars.size());
        lane.ends.resize(m_steps.size());
        return lane;
    }
    /// Lets the lane run until it waits, or is done.
    void go(int k) {
        Lane& lane = m_lanes[static_cast<size_t>(k)];
        while (lane.at < m_steps.size()) {
            const LaneStep& step = m_steps[lane.at];
            switch (step.kind) {
                case LaneStepKind::Block: lane.state = LaneState::AtBlock; return;
                case LaneStepKind::Warp: lane.state = LaneState::AtWarp; return;
                case LaneStepKind::Publish:
                    for (const int vector : *step.vectors) {
                        auto& shared = m_shared[static_cast<size_t>(vector)];
                        shared.resize(static_cast<size_t>(m_nest->lanes));
                        shared[static_cast<size_t>(k)] = lane.vars[static_cast<size_t>(vector)];
                    }
                    ++lane.at;
                    break;
                case LaneStepKind::Enter: enter(lane, k, step); break;
                case LaneStepKind::Next: next(lane, step); break;
                case LaneStepKind::Branch:
                    lane.at = evaluate(lane, k, std::get<If>(step.stmt->node).condition).whole ? lane.at + 1 : step.to;
                    break;
                case LaneStepKind::Do:
                    std::visit([&](const auto& own) { on(lane, k, own); }, step.stmt->node);
                    ++lane.at;
                    break;
            }
        }
        lane.state = LaneState::Done;
    }
    void enter(Lane& lane, int k, const LaneStep& step) {
        const For& loop = std::get<For>(step.stmt->node);
        int64_t from = evaluate(lane, k, loop.from).whole, to = evaluate(lane, k, loop.to).whole;
        if (loop.map == Map::Parallel) {
            from = std::max<int64_t>(from, 0) + m_block * loop.lanes;
            to = std::min(to, m_end);
        }
        lane.ends[lane.at] = to;
        begin(lane, loop, from, to, step.to);
    }
    void next(Lane& lane, const LaneStep& step) {
        const For& loop = std::get<For>(step.stmt->node);
        const int64_t by = loop.lanes * (loop.map == Map::Parallel ? m_blocks : 1);
        const int64_t to = lane.ends[step.to], behind = static_cast<int64_t>(lane.at) + 1;
        lane.at = step.to;
        begin(lane, loop, lane.axes.at(loop.axis) + by, to, static_cast<size_t>(behind));
    }
    void begin(Lane& lane, const For& loop, int64_t from, int64_t to, size_t behind) const {
        if (loop.lanes > 1) lane.active = m_nest->lanes;
        if (from >= to) {
            lane.at = behind;
            return;
        }
        lane.axes[loop.axis] = from;
        if (loop.lanes > 1) lane.active = static_cast<int>(std::min<int64_t>(loop.lanes, to - from));
        ++lane.at;
    }
    /// Those go on that have waited for lane k.
    void release(int k, std::vector<int>& ready) {
        const LaneState state = m_lanes[static_cast<size_t>(k)].state;
        if (state != LaneState::AtWarp && state != LaneState::AtBlock) return;
        const bool block = state == LaneState::AtBlock;
        const int first = block ? 0 : k / m_warp * m_warp, last = block ? m_nest->lanes : first + m_warp;
        const size_t at = m_lanes[static_cast<size_t>(k)].at;
        for (int i = first; i < last; ++i) {
            const Lane& lane = m_lanes[static_cast<size_t>(i)];
            if (lane.state != state || lane.at != at) return;
        }
        if (!block) hand(first, last, m_steps[at]);
        for (int i = first; i < last; ++i) {
            Lane& lane = m_lanes[static_cast<size_t>(i)];
            lane.state = LaneState::Ready;
            ++lane.at;
            ready.push_back(i);
        }
    }
    void hand(int first, int last, const LaneStep& step) {
        for (const Expr& e : step.calls)
            for (int k = first; k < last; ++k) {
                const auto argument =
                    static_cast<int>(evaluate(m_lanes[static_cast<size_t>(k)], k, e->operands[1]).whole);
                const int from = e->name == "lane"        ? argument
                                 : e->name == "lanes_xor" ? k ^ argument
                                                          : (k + argument) % m_nest->lanes;
                CT_CHECK(from >= first && from < last, "a warp's lanes hand values to each other");
                m_lanes[static_cast<size_t>(k)].received[&*e] =
                    m_lanes[static_cast<size_t>(from)].vars[static_cast<size_t>(e->operands[0]->integer)];
            }
    }

    // ---- what one lane does
    void on(Lane& lane, int, const Index& index) { lane.axes[index.axis] = evaluate(lane, 0, index.value).whole; }
    void on(Lane& lane, int k, const Let& let) { assign(lane, k, let.var, let.value); }
    void on(Lane& lane, int k, const Declare& declare) { assign(lane, k, declare.var, declare.value); }
    void on(Lane& lane, int k, const Set& set) { assign(lane, k, set.var, set.value); }
    void assign(Lane& lane, int k, int var, const Expr& value) {
        lane.vars[static_cast<size_t>(var)] = evaluate(lane, k, value);
    }
    void on(Lane& lane, int k, const Store& store) {
        const bool spread = store.step || isVector(store.index);
        if (spread ? k >= lane.active : k != 0) return;
        const int64_t at =
            evaluate(lane, k, store.index).whole + (store.step ? k * evaluate(lane, k, store.step).whole : 0);
        const auto write = store.how == StoreHow::Puts ? writeElement : addToElement;
        write(memory(store.buffer), m_nest->memoryOf(store.buffer), at, evaluate(lane, k, store.value));
    }
    void on(Lane&, int, const Prefetch&) {}
    void on(Lane& lane, int k, const Transpose& transpose) {
        const int64_t size = byteSize(m_nest->memoryOf(transpose.from.buffer));
        const auto number = [&](const Expr& e) { return evaluate(lane, k, e).whole; };
        const int64_t rows = number(transpose.rows), columns = number(transpose.columns);
        const int64_t fromStep = number(transpose.from.step), toStep = number(transpose.to.step);
        const char* const from =
            static_cast<char*>(memory(transpose.from.buffer)) + number(transpose.from.index) * size;
        char* const to = static_cast<char*>(memory(transpose.to.buffer)) + number(transpose.to.index) * size;
        for (int64_t e = k; e < rows * columns; e += m_nest->lanes) {
            const int64_t row = e / columns, column = e % columns;
            std::copy_n(from + (row * fromStep + column) * size, size, to + (column * toStep + row) * size);
        }
    }
    template <class S>
    void on(Lane&, int, const S&) {
        CT_CHECK(false, "reductions are lowered before nests are run");
    }

    void* memory(int buffer) {
        return buffer < 0 ? m_scratch[static_cast<size_t>(~buffer)].data() : m_buffers[static_cast<size_t>(buffer)];
    }
    bool isVector(const Expr& index) {
        const auto [known, made] = m_isVector.try_emplace(&*index);
        if (made) known->second = lanesOf(*m_nest, index) > 1;
        return known->second;
    }
    Cell evaluate(Lane& lane, int k, const Expr& e) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return literalCell(e);
            case ExprKind::Symbol: return literalCell(symbolLiteral(e->name, m_sizes->at(e->name)));
            case ExprKind::Axis: return {0, lane.axes.at(static_cast<int>(e->integer))};
            case ExprKind::Var: return lane.vars[static_cast<size_t>(e->integer)];
            case ExprKind::Load: return load(lane, k, e);
            case ExprKind::Call:
                if (e->name == "ramp") return {0, lane.axes.at(static_cast<int>(e->operands[0]->integer)) + k};
                if (e->name == "active") return {0, k < lane.active};
                if (handsInWarp(*e)) return lane.received.at(&*e);
                if (e->name == "lane" || e->name == "lanes_from") {
                    const int64_t other = evaluate(lane, k, e->operands[1]).whole;
                    const int64_t from = e->name == "lane" ? other : (k + other) % m_nest->lanes;
                    return m_shared[static_cast<size_t>(e->operands[0]->integer)].at(static_cast<size_t>(from));
                }
                break;
            default: break;
        }
        const size_t base = m_cells.size();
        for (const Expr& operand : e->operands) {
            const Cell cell = evaluate(lane, k, operand);
            m_cells.push_back(cell);
        }
        KernelFault fault = KernelFault::None;
        const Cell result = applyOperation(*e, std::span(m_cells).subspan(base), fault);
        m_cells.resize(base);
        if (fault != KernelFault::None && k < lane.active) m_fault = fault;
        return result;
    }
    Cell load(Lane& lane, int k, const Expr& e) {
        const bool along = e->operands.size() == 2;
        if ((along || isVector(e->operands[0])) && k >= lane.active) return {};
        const int64_t at =
            evaluate(lane, k, e->operands[0]).whole + (along ? k * evaluate(lane, k, e->operands[1]).whole : 0);
        return readElement(memory(bufferOf(e)), e->dtype, at);
    }

    const LoopNest* m_nest;
    std::span<void* const> m_buffers;
    const std::map<std::string, int64_t>* m_sizes;
    std::mt19937* m_random;
    std::map<const Stmt*, std::vector<int>> m_before;
    std::vector<LaneStep> m_steps;
    std::vector<Lane> m_lanes;
    std::vector<std::vector<Cell>> m_shared;  // by vector
    std::vector<std::vector<char>> m_scratch;
    std::unordered_map<const ExprNode*, bool> m_isVector;
    std::vector<Cell> m_cells;
    int m_warp = 1;
    int64_t m_end = 0, m_block = 0, m_blocks = 1;
    KernelFault m_fault = KernelFault::None;
};

}  // namespace

KernelFault interpretLanes(const LoweredKernel& kernel, std::span<void* const> buffers,
                           const std::map<std::string, int64_t>& sizes, uint32_t seed) {
    KernelFault fault = KernelFault::None;
    std::mt19937 random(seed);
    withWorkspace(kernel, buffers, sizes, [&](std::span<void* const> all) {
        for (const LoopNest& nest : kernel.nests) {
            BlockInterpreter interpreter(nest, all, sizes, random);
            const int64_t range = interpreter.range(), blocks = 1 + static_cast<int64_t>(random() % 3);
            for (int64_t block = 0; block < blocks; ++block)
                if (const KernelFault kernelFault = interpreter.run(range, block, blocks);
                    kernelFault != KernelFault::None)
                    fault = kernelFault;
        }
    });
    return fault;
}

}  // namespace cutaway
