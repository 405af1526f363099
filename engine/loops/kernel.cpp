#include "engine/loops/kernel.h"

#include <algorithm>

#include "engine/support/check.h"

namespace cutaway {

std::string bufferName(int buffer) { return buffer < 0 ? "c" + std::to_string(~buffer) : "b" + std::to_string(buffer); }

int bufferOf(const Expr& load) {
    const char letter = load->name.empty() ? ' ' : load->name[0];
    CT_CHECK(load->kind == ExprKind::Load && (letter == 'b' || letter == 'c'), "loads name their buffers by number");
    const int number = std::atoi(load->name.c_str() + 1);
    return letter == 'c' ? ~number : number;
}

std::vector<Loop> reduceLoops(const Expr& reduction) {
    std::vector<Loop> loops;
    for (size_t i = 1; i + 1 < reduction->operands.size(); i += 2)
        loops.push_back({static_cast<int>(reduction->operands[i]->integer), SymInt(reduction->operands[i + 1])});
    return loops;
}

Expr makeReduce(int reducerNumber, const std::vector<Loop>& loops, const Expr& body) {
    std::vector<Expr> operands = {body};
    for (const Loop& loop : loops) {
        operands.push_back(Expr::axis(loop.axis));
        operands.push_back(loop.size.expr());
    }
    return Expr::reduce(reducerNumber, std::move(operands), reducer(reducerNumber).resultType(body->dtype));
}

std::vector<Expr> reductionsOf(const Kernel& kernel) {
    std::vector<Expr> roots, found;
    for (const KernelStore& store : kernel.stores) roots.insert(roots.end(), {store.index, store.value});
    forEachExpr(roots, [&](const Expr& e) {
        if (isReduce(e) && std::find(found.begin(), found.end(), e) == found.end()) found.push_back(e);
    });
    return found;
}

namespace {

/// The nodes that a walk has met, numbered in their order. Walks are many and most are short, so each takes its table
/// from the one before it; a walk that begins within another takes another table.
class MetNodes {
  public:
    MetNodes() {
        if (spare().empty()) return;
        m_table = std::move(spare().back());
        spare().pop_back();
        if (++m_table.walk == 0) m_table = {};
    }
    ~MetNodes() {
        if (m_table.slots.size() <= kMostKept) spare().push_back(std::move(m_table));
    }
    MetNodes(const MetNodes&) = delete;
    MetNodes& operator=(const MetNodes&) = delete;

    /// Its number, and whether it is new.
    std::pair<size_t, bool> meet(const ExprNode* node) {
        if (2 * m_count >= m_table.slots.size()) grow();
        Slot& slot = slotOf(node);
        if (slot.walk == m_table.walk) return {slot.number, false};
        slot = {node, m_table.walk, static_cast<uint32_t>(m_count)};
        return {m_count++, true};
    }

  private:
    struct Slot {
        const ExprNode* node = nullptr;
        uint32_t walk = 0, number = 0;  // of the walk that it is of
    };
    struct Table {
        std::vector<Slot> slots;  // as many as a power of two
        uint32_t walk = 1;
    };
    static constexpr size_t kMostKept = size_t{1} << 16;
    static std::vector<Table>& spare() {
        thread_local std::vector<Table> tables;
        return tables;
    }

    Slot& slotOf(const ExprNode* node) {
        const size_t mask = m_table.slots.size() - 1;
        size_t at = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >> 20 & mask;
        while (m_table.slots[at].walk == m_table.walk && m_table.slots[at].node != node) at = (at + 1) & mask;
        return m_table.slots[at];
    }
    void grow() {
        std::vector<Slot> old(std::max<size_t>(64, 2 * m_table.slots.size()));
        old.swap(m_table.slots);
        for (const Slot& slot : old)
            if (slot.walk == m_table.walk) slotOf(slot.node) = slot;
    }

    Table m_table;
    size_t m_count = 0;
};

}  // namespace

void forEachExpr(const std::vector<Expr>& roots, const std::function<void(const Expr&)>& visit) {
    MetNodes met;
    auto walk = [&](auto&& self, const Expr& expr) -> void {
        if (!met.meet(&*expr).second) return;
        for (const Expr& operand : expr->operands) self(self, operand);
        visit(expr);
    };
    for (const Expr& root : roots) walk(walk, root);
}

Expr withOperands(const Expr& expr, std::vector<Expr> operands) {
    switch (expr->kind) {
        case ExprKind::Load:
            if (operands.size() == 2)
                return Expr::loadAlong(expr->name, std::move(operands[0]), std::move(operands[1]), expr->dtype);
            return Expr::load(expr->name, std::move(operands[0]), expr->dtype);
        case ExprKind::Call: return Expr::call(expr->name, std::move(operands), expr->dtype);
        case ExprKind::Cast: return Expr::cast(std::move(operands[0]), expr->dtype);
        case ExprKind::Reduce: return Expr::reduce(static_cast<int>(expr->integer), std::move(operands), expr->dtype);
        default: return Expr::make(expr->kind, std::move(operands), expr->dtype);
    }
}

Expr rewriteShared(const Expr& root, const std::function<Expr(const Expr&)>& replace) {
    MetNodes met;
    std::vector<Expr> done;  // by the numbers of nodes
    auto walk = [&](auto&& self, const Expr& expr) -> Expr {
        const auto [number, fresh] = met.meet(&*expr);
        if (!fresh) return done[number];
        done.emplace_back();
        Expr result = replace(expr);
        if (!result) {
            std::vector<Expr> operands;
            bool changed = false;
            for (const Expr& operand : expr->operands) {
                operands.push_back(self(self, operand));
                changed |= &*operands.back() != &*operand;
            }
            result = changed ? withOperands(expr, std::move(operands)) : expr;
        }
        done[number] = result;
        return result;
    };
    return walk(walk, root);
}

Expr replaceAxes(const Expr& root, const std::function<Expr(int)>& replace) {
    return rewriteShared(root, [&](const Expr& expr) {
        return expr->kind == ExprKind::Axis ? replace(static_cast<int>(expr->integer)) : Expr();
    });
}

bool isCheapCall(const Expr& expr) {
    const std::string& name = expr->name;
    return expr->kind == ExprKind::Call &&
           (name == "abs" || name == "floor" || name == "checked_index" || name.starts_with("round_"));
}

bool costsMuch(const Expr& value) {
    bool dear = false;
    forEachExpr({value}, [&](const Expr& e) {
        dear |= e->kind == ExprKind::Pow || (e->kind == ExprKind::Call && !isCheapCall(e));
    });
    return dear;
}

bool adds(const Kernel& kernel) {
    return std::any_of(kernel.stores.begin(), kernel.stores.end(), [](const KernelStore& store) { return store.adds; });
}

std::string structureKey(const Kernel& kernel) {
    // Expressions are named by their structural hashes: their text would grow with every shared use.
    Hasher hasher;
    auto addLoops = [&](const std::vector<Loop>& loops) {
        hasher.add(static_cast<uint64_t>(loops.size()));
        for (const Loop& loop : loops) hasher.add(loop.axis).add(loop.size.expr()->hash);
    };
    for (const KernelBuffer& buffer : kernel.buffers) hasher.add(static_cast<int>(buffer.dtype)).add(buffer.written);
    for (const std::string& size : kernel.sizes) hasher.add(std::string_view(size));
    addLoops(kernel.outer);
    for (const KernelStore& store : kernel.stores) {
        hasher.add(store.buffer).add(store.index->hash).add(store.value->hash).add(store.adds);
        addLoops(store.inner);
    }
    return hasher.finish().hex();
}

}  // namespace cutaway
