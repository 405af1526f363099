#include "engine/ir/unbacked_sizes.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/expr/expr_parse.h"
#include "engine/ir/data_dependent.h"
#include "engine/ir/infer.h"

namespace cutaway {
namespace {

template <class Visit>
void forEachSymbol(const SymInt& size, Visit&& visit) {
    if (size.isInt()) return;
    for (const std::string& symbol : symbolsOf(size.expr())) visit(symbol);
}
template <class Visit>
void forEachSymbol(const ValueType& type, Visit&& visit) {
    if (const TensorType* tensor = type.tensor())
        for (const SymInt& size : tensor->sizes) forEachSymbol(size, visit);
    if (const SymType* number = type.sym(); number && number->expr) forEachSymbol(SymInt(number->expr), visit);
    if (const TupleType* items = type.tuple())
        for (const ValueType& item : *items) forEachSymbol(item, visit);
}
template <class Visit>
void forEachSymbol(const Argument& argument, Visit&& visit) {
    if (const auto* expr = argument.get<Expr>()) forEachSymbol(SymInt(*expr), visit);
    if (const auto* items = argument.list())
        for (const Argument& item : *items) forEachSymbol(item, visit);
}

bool isNumber(const Node& node, const std::string& symbol) { return unbackedNumber(node) == symbol; }

}  // namespace

std::string unbackedNumber(const Node& call) {
    const SymType* type = call.type().sym();
    if (!type || !type->expr) return {};
    if (type->expr->kind == ExprKind::Symbol) return type->expr->name;
    if (type->expr->kind != ExprKind::Eq || !call.isCall() || !sizeDependsOnData(call.op(), call.args())) return {};
    const auto& sides = type->expr->operands;
    for (const size_t side : {0, 1})
        if (sides[side]->kind == ExprKind::Symbol && sides[1 - side].asInt() == 1) return sides[side]->name;
    return {};
}

bool namesSize(const SymInt& recorded, const SymInt& inferred) {
    if (recorded == inferred) return true;
    return !recorded.isInt() && recorded.expr()->kind == ExprKind::Symbol && isUnbacked(recorded.expr()->name);
}

std::vector<std::pair<std::string, Expr>> followingSizes(const Graph& graph) {
    std::set<std::string> known;
    std::vector<std::pair<std::string, Expr>> following;
    const auto isNew = [&](const Expr& expr) {
        return expr && expr->kind == ExprKind::Symbol && !known.contains(expr->name);
    };
    const auto follows = [&](const Expr& declared, const Expr& inferred) {
        if (!isNew(declared) || !inferred) return;
        for (const std::string& symbol : symbolsOf(inferred))
            if (!known.contains(symbol)) return;
        known.insert(declared->name);
        following.emplace_back(declared->name, inferred);
    };
    for (const Node& node : graph.nodes()) {
        const auto know = [&](const std::string& symbol) { known.insert(symbol); };
        const TensorType* tensor = node.type().tensor();
        const SymType* number = node.type().sym();
        if (node.isPlaceholder() || (node.isCall() && sizeDependsOnData(node.op(), node.args())))
            forEachSymbol(node.type(), know);
        else if (node.isCall() &&
                 (tensor ? std::any_of(tensor->sizes.begin(), tensor->sizes.end(),
                                       [&](const SymInt& size) { return !size.isInt() && isNew(size.expr()); })
                         : number && isNew(number->expr))) {
            const auto inferred = inferCall(node.op(), node.args());
            if (!inferred) continue;
            if (const SymType* found = inferred->sym(); found && number) follows(number->expr, found->expr);
            if (const TensorType* found = inferred->tensor(); found && tensor && found->rank() == tensor->rank())
                for (size_t d = 0; d < tensor->sizes.size(); ++d)
                    follows(tensor->sizes[d].expr(), found->sizes[d].expr());
        }
    }
    return following;
}

std::set<std::string> ownSizes(const Graph& graph) {
    std::set<std::string> given, own;
    for (const Node& node : graph.nodes()) {
        if (node.isPlaceholder()) forEachSymbol(node.type(), [&](const std::string& name) { given.insert(name); });
        if (!node.isCall() || !sizeDependsOnData(node.op(), node.args())) continue;
        forEachSymbol(node.type(), [&](const std::string& name) {
            if (!given.contains(name)) own.insert(name);
        });
    }
    return own;
}

std::vector<UnbackedSize> foundSizes(const Graph& graph) {
    std::set<std::string> given;
    std::map<std::string, const Node*> finders;
    std::vector<UnbackedSize> found;
    for (const Node& node : graph.nodes()) {
        if (node.isPlaceholder()) forEachSymbol(node.type(), [&](const std::string& name) { given.insert(name); });
        if (!node.isCall()) continue;
        if (!finders.empty()) {
            std::set<const Node*> read;
            for (const Node* input : node.inputs()) read.insert(input);
            for (const Argument& argument : node.args())
                forEachSymbol(argument, [&](const std::string& symbol) {
                    const auto finder = finders.find(symbol);
                    if (finder != finders.end() && read.insert(finder->second).second)
                        found.push_back({finder->second, &node});
                });
        }
        const bool dependsOnData = sizeDependsOnData(node.op(), node.args());
        if (!dependsOnData && !node.type().sym()) continue;
        forEachSymbol(node.type(), [&](const std::string& symbol) {
            if (given.contains(symbol)) return;
            const auto it = finders.find(symbol);
            if (it == finders.end() ? dependsOnData || isNumber(node, symbol)
                                    : isNumber(node, symbol) && !isNumber(*it->second, symbol))
                finders[symbol] = &node;
        });
    }
    return found;
}

}  // namespace cutaway
