#include "engine/codegen/cuda_neighbours.h"

#include <algorithm>
#include <map>
#include <set>

namespace cutaway {
namespace {

bool isApart(const Expr& step) {
    const int64_t count = step.asInt().value_or(0);
    return count == 2 || count == 4 || count == 8;
}

/// The one among `all` that the index is a neighbour of, and its place; else a new one, whose first it is.
std::pair<Neighbours*, int64_t> neighboursWith(const Neighbours& neighbours, std::vector<Neighbours>& all) {
    for (Neighbours& other : all) {
        if (other.buffer != neighbours.buffer || other.dtype != neighbours.dtype || other.count != neighbours.count)
            continue;
        const auto place = Expr::make(ExprKind::Sub, {neighbours.first, other.first}, neighbours.first->dtype).asInt();
        if (place && *place >= 0 && *place < neighbours.count) return {&other, *place};
    }
    all.push_back(neighbours);
    return {&all.back(), 0};
}

template <class Member>
bool hasAllPlaces(const std::vector<std::pair<int64_t, Member>>& members, int64_t count) {
    std::set<int64_t> places;
    for (const auto& [place, member] : members) places.insert(place);
    return static_cast<int64_t>(places.size()) == count;
}

}  // namespace

void loadsBeside(const Expr& expr, const LoopNest& nest, bool apart, std::vector<Expr>& loads) {
    const bool beside = expr->kind == ExprKind::Load && expr->operands.size() == 2 &&
                        (apart ? isApart(expr->operands[1]) : expr->operands[1].asInt() == 1);
    if (beside && std::find(loads.begin(), loads.end(), expr) == loads.end()) loads.push_back(expr);
    const bool chosen = expr->kind == ExprKind::Where && lanesOf(nest, expr->operands[0]) == 1;
    for (size_t i = 0; i < (chosen ? 1 : expr->operands.size()); ++i)
        loadsBeside(expr->operands[i], nest, apart, loads);
}

std::vector<Neighbours> neighboursIn(const For& loop, const LoopNest& nest) {
    const bool plain = std::all_of(loop.body.begin(), loop.body.end(), [](const Stmt& stmt) {
        return std::holds_alternative<Let>(stmt.node) || std::holds_alternative<Set>(stmt.node) ||
               std::holds_alternative<Store>(stmt.node);
    });
    if (!loop.whole || !plain) return {};
    std::map<int64_t, Expr> scalars;  // variables of the body, which are not known before it
    const auto outside = [&](const Expr& index) {
        return rewriteShared(index, [&](const Expr& e) {
            const auto found = e->kind == ExprKind::Var ? scalars.find(e->integer) : scalars.end();
            return found == scalars.end() ? Expr() : found->second;
        });
    };
    std::vector<Expr> loads;
    std::vector<Neighbours> read, written;
    for (const Stmt& own : loop.body) {
        Stmt copy = own;
        forEachValue(copy, [&](const Expr& value) { loadsBeside(value, nest, true, loads); });
        if (const auto* let = std::get_if<Let>(&own.node); let && lanesOf(nest, let->value) == 1)
            scalars.emplace(let->var, outside(let->value));
        const auto* store = std::get_if<Store>(&own.node);
        if (!store || store->how != StoreHow::Puts || !store->step || !isApart(store->step)) continue;
        const DType memory = nest.memoryOf(store->buffer);
        const auto [side, place] =
            neighboursWith({store->buffer, memory, *store->step.asInt(), outside(store->index), {}, {}}, written);
        side->stores.emplace_back(place, store);
    }
    for (const Expr& load : loads) {
        const auto [side, place] = neighboursWith(
            {bufferOf(load), load->dtype, *load->operands[1].asInt(), outside(load->operands[0]), {}, {}}, read);
        side->loads.emplace_back(place, load);
    }
    // Where some places are missing, memory may end before them.
    std::erase_if(read, [](const Neighbours& neighbours) { return !hasAllPlaces(neighbours.loads, neighbours.count); });
    std::erase_if(written, [](const Neighbours& own) { return !hasAllPlaces(own.stores, own.count); });
    read.insert(read.end(), written.begin(), written.end());
    return read;
}

}  // namespace cutaway
