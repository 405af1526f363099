#include <limits>
#include <unordered_map>

#include "engine/expr/evaluate.h"
#include "engine/loops/interpret.h"
#include "engine/support/check.h"

namespace cutaway {
namespace {

using Lanes = std::vector<Cell>;  // one, or as many as the nest's vector loop has

class NestInterpreter {
  public:
    NestInterpreter(const LoopNest& nest, std::span<void* const> buffers, const std::map<std::string, int64_t>& sizes)
        : m_nest(&nest), m_buffers(buffers), m_sizes(&sizes), m_vars(nest.vars.size()) {
        for (const Scratch& scratch : nest.scratch)
            m_scratch.emplace_back(static_cast<size_t>(scratch.count * byteSize(scratch.dtype)), char{-1});
    }

    int64_t range() { return one(m_nest->range.expr()).whole; }
    KernelFault run(int64_t begin, int64_t end) {
        m_begin = begin;
        m_end = end;
        body(m_nest->body);
        return m_fault;
    }

  private:
    void body(const Body& statements) {
        for (const Stmt& stmt : statements) std::visit([&](const auto& own) { on(own); }, stmt.node);
    }
    void on(const For& loop) {
        const bool parallel = loop.map == Map::Parallel;
        int64_t from = one(loop.from).whole, to = one(loop.to).whole;
        if (parallel) {
            from = std::max(from, m_begin);
            to = std::min(to, m_end);
        }
        const int active = m_active;
        for (int64_t i = from; i < to; i += loop.lanes) {
            m_axes[loop.axis] = i;
            if (loop.lanes > 1) m_active = static_cast<int>(std::min<int64_t>(loop.lanes, to - i));
            body(loop.body);
        }
        m_active = active;
    }
    void on(const If& branch) {
        if (one(branch.condition).whole) body(branch.body);
    }
    void on(const Index& index) { m_axes[index.axis] = one(index.value).whole; }
    void on(const Let& let) { set(let.var, let.value); }
    void on(const Declare& declare) { set(declare.var, declare.value); }
    void on(const Set& own) { set(own.var, own.value); }
    void set(int var, const Expr& expr) {
        Lanes value = evaluate(expr);
        const auto lanes = static_cast<size_t>(m_nest->vars[static_cast<size_t>(var)].lanes);
        CT_CHECK(value.size() <= lanes, "a variable has the lanes of its value");
        if (value.size() < lanes) value.assign(lanes, value[0]);
        m_vars[static_cast<size_t>(var)] = std::move(value);
    }
    void on(const Store& store) {
        const Lanes value = evaluate(store.value), index = evaluate(store.index);
        void* const buffer = memory(store.buffer);
        const DType dtype = m_nest->memoryOf(store.buffer);
        const auto write = store.how == StoreHow::Puts ? writeElement : addToElement;
        if (!store.step && index.size() == 1) {
            CT_CHECK(value.size() == 1, "one element is stored at one index");
            return write(buffer, dtype, index[0].whole, value[0]);
        }
        const int64_t step = store.step ? one(store.step).whole : 0;
        for (int64_t k = 0; k < m_active; ++k)
            write(buffer, dtype, store.step ? index[0].whole + k * step : lane(index, k).whole, lane(value, k));
    }
    void on(const Barrier&) {}  // lanes go together
    void on(const Prefetch&) {}
    void on(const Transpose& transpose) {
        const int64_t size = byteSize(m_nest->memoryOf(transpose.from.buffer));
        const int64_t rows = one(transpose.rows).whole, columns = one(transpose.columns).whole;
        const int64_t fromStep = one(transpose.from.step).whole * size, toStep = one(transpose.to.step).whole * size;
        const char* const from =
            static_cast<char*>(memory(transpose.from.buffer)) + one(transpose.from.index).whole * size;
        char* const to = static_cast<char*>(memory(transpose.to.buffer)) + one(transpose.to.index).whole * size;
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = 0; column < columns; ++column)
                std::copy_n(from + row * fromStep + column * size, size, to + column * toStep + row * size);
    }
    template <class S>
    void on(const S&) {
        CT_CHECK(false, "reductions are lowered before nests are run");
    }

    void* memory(int buffer) {
        return buffer < 0 ? m_scratch[static_cast<size_t>(~buffer)].data() : m_buffers[static_cast<size_t>(buffer)];
    }
    static const Cell& lane(const Lanes& value, int64_t k) {
        return value.size() == 1 ? value[0] : value[static_cast<size_t>(k)];
    }
    Cell one(const Expr& e) {
        const Lanes value = evaluate(e);
        CT_CHECK(value.size() == 1, "bounds and steps have one lane");
        return value[0];
    }
    Lanes evaluate(const Expr& e) {
        switch (e->kind) {
            case ExprKind::Int:
            case ExprKind::Float:
            case ExprKind::Bool: return {literalCell(e)};
            case ExprKind::Symbol: return {literalCell(symbolLiteral(e->name, m_sizes->at(e->name)))};
            case ExprKind::Axis: return {{0, m_axes.at(static_cast<int>(e->integer))}};
            case ExprKind::Var: return m_vars[static_cast<size_t>(e->integer)];
            case ExprKind::Load: return load(e);
            case ExprKind::Call:
                if (e->name == "ramp") return ramp(m_axes.at(static_cast<int>(e->operands[0]->integer)));
                if (e->name == "active") {
                    Lanes all = ramp(0);
                    for (Cell& cell : all) cell.whole = cell.whole < m_active;
                    return all;
                }
                if (e->name == "lanes_from") {
                    const Lanes lanes = evaluate(e->operands[0]);
                    const auto first = static_cast<size_t>(one(e->operands[1]).whole);
                    Lanes moved = lanes;
                    for (size_t k = 0; k < lanes.size(); ++k) moved[k] = lanes[(k + first) % lanes.size()];
                    return moved;
                }
                if (e->name == "lanes_xor") {
                    const Lanes own = evaluate(e->operands[0]);
                    const auto apart = static_cast<size_t>(one(e->operands[1]).whole);
                    Lanes other = own;
                    for (size_t k = 0; k < own.size(); ++k) other[k] = own[k ^ apart];
                    return other;
                }
                if (e->name == "lane") return {lane(evaluate(e->operands[0]), one(e->operands[1]).whole)};
                break;
            default: break;
        }
        return operation(e);
    }
    Lanes ramp(int64_t from) const {
        Lanes all(static_cast<size_t>(m_nest->lanes));
        for (Cell& cell : all) cell.whole = from++;
        return all;
    }
    Lanes load(const Expr& e) {
        const void* const buffer = memory(bufferOf(e));
        const Lanes index = evaluate(e->operands[0]);
        if (e->operands.size() == 1 && index.size() == 1) return {readElement(buffer, e->dtype, index[0].whole)};
        const int64_t step = e->operands.size() == 2 ? one(e->operands[1]).whole : 0;
        Lanes all(static_cast<size_t>(m_nest->lanes));
        for (int64_t k = 0; k < m_active; ++k)
            all[static_cast<size_t>(k)] = readElement(
                buffer, e->dtype, e->operands.size() == 2 ? index[0].whole + k * step : lane(index, k).whole);
        return all;
    }
    Lanes operation(const Expr& e) {
        std::vector<Lanes> in;
        size_t lanes = 1;
        for (const Expr& operand : e->operands) {
            in.push_back(evaluate(operand));
            lanes = std::max(lanes, in.back().size());
        }
        Lanes result(lanes);
        std::vector<Cell> cells(in.size());
        for (size_t k = 0; k < lanes; ++k) {
            for (size_t i = 0; i < in.size(); ++i) cells[i] = lane(in[i], static_cast<int64_t>(k));
            KernelFault fault = KernelFault::None;
            result[k] = applyOperation(*e, cells, fault);
            if (fault != KernelFault::None && (lanes == 1 || static_cast<int>(k) < m_active)) m_fault = fault;
        }
        return result;
    }

    const LoopNest* m_nest;
    std::span<void* const> m_buffers;
    const std::map<std::string, int64_t>* m_sizes;
    std::vector<Lanes> m_vars;
    std::vector<std::vector<char>> m_scratch;
    std::map<int, int64_t> m_axes;
    int64_t m_begin = 0, m_end = 0;
    int m_active = 1;
    KernelFault m_fault = KernelFault::None;
};

}  // namespace

void withWorkspace(const LoweredKernel& kernel, std::span<void* const> buffers,
                   const std::map<std::string, int64_t>& sizes,
                   const std::function<void(std::span<void* const>)>& run) {
    std::vector<void*> all(buffers.begin(), buffers.end());
    std::vector<std::vector<double>> memory;
    for (const Workspace& space : kernel.workspace) {
        const Expr count =
            substitute(space.count.expr(), [&](const std::string& name) { return Expr::integer(sizes.at(name)); });
        memory.emplace_back(static_cast<size_t>(std::max<int64_t>(count.asInt().value_or(1), 1)),
                            std::numeric_limits<double>::quiet_NaN());
        all.push_back(memory.back().data());
    }
    run(all);
}

KernelFault interpretNests(const LoweredKernel& kernel, std::span<void* const> buffers,
                           const std::map<std::string, int64_t>& sizes, int64_t chunk) {
    KernelFault fault = KernelFault::None;
    withWorkspace(kernel, buffers, sizes, [&](std::span<void* const> all) {
        for (const LoopNest& nest : kernel.nests) {
            NestInterpreter interpreter(nest, all, sizes);
            const int64_t range = interpreter.range(), step = chunk > 0 ? chunk : std::max<int64_t>(range, 1);
            for (int64_t begin = 0; begin < range; begin += step)
                if (const KernelFault kernelFault = interpreter.run(begin, std::min(range, begin + step));
                    kernelFault != KernelFault::None)
                    fault = kernelFault;
        }
    });
    return fault;
}

}  // namespace cutaway
