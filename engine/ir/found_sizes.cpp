#include "engine/ir/found_sizes.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/ir/data_dependent.h"

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

bool isNumber(const Node& node, const std::string& symbol) {
    const SymType* type = node.type().sym();
    return type && type->expr && type->expr->kind == ExprKind::Symbol && type->expr->name == symbol;
}

}  // namespace

std::vector<FoundSize> foundSizes(const Graph& graph) {
    std::set<std::string> given;
    std::map<std::string, const Node*> finders;
    std::vector<FoundSize> found;
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
            const auto known = finders.find(symbol);
            if (known == finders.end() ? dependsOnData || isNumber(node, symbol)
                                       : isNumber(node, symbol) && !isNumber(*known->second, symbol))
                finders[symbol] = &node;
        });
    }
    return found;
}

}  // namespace cutaway
