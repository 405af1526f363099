#include "engine/interpret/specialize.h"

#include <set>

#include "engine/expr/evaluate.h"
#include "engine/ir/unbacked_sizes.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace {

/// Calls visit(expr) for each expression of a type.
void forEachExpr(const ValueType& type, const auto& visit) {
    const auto size = [&](const SymInt& value) {
        if (!value.isInt()) visit(value.expr());
    };
    if (const TensorType* tensor = type.tensor()) {
        for (const SymInt& each : tensor->sizes) size(each);
        for (const SymInt& each : tensor->strides) size(each);
        size(tensor->offset);
    } else if (const SymType* symbol = type.sym()) {
        if (symbol->expr) visit(symbol->expr);
    } else if (const TupleType* tuple = type.tuple()) {
        for (const ValueType& item : *tuple) forEachExpr(item, visit);
    }
}
void forEachExpr(const Argument& argument, const auto& visit) {
    if (const auto* expr = argument.get<Expr>()) visit(*expr);
    else if (const auto* items = argument.list())
        for (const Argument& item : *items) forEachExpr(item, visit);
    else if (const auto* slice = argument.get<std::shared_ptr<const ArgumentSlice>>()) {
        for (const Argument* part : {&(*slice)->start, &(*slice)->stop, &(*slice)->step}) forEachExpr(*part, visit);
    } else if (const auto* dict = argument.get<std::shared_ptr<const ArgumentDict>>())
        for (const auto& [key, item] : (*dict)->items) forEachExpr(item, visit);
}

/// "s0 = 4, s1 = 2": the symbols of the expression that have values.
std::string valuesOf(const Expr& expr, const SymbolValues& values) {
    std::string all;
    for (const std::string& symbol : symbolsOf(expr))
        if (const auto found = values.find(symbol); found != values.end())
            all += (all.empty() ? "" : ", ") + symbol + " = " + text(symbolLiteral(symbol, found->second));
    return all;
}

class Specializer {
  public:
    explicit Specializer(const SymbolValues& values) : m_values(values) {}

    void run(Module& module) {
        Graph& graph = module.graph();
        // Types first: arguments read the numbers that their nodes' types have become.
        for (Node& node : graph.nodes()) {
            m_at = node.name();
            if (auto type = replaced(node.type())) graph.setType(node, std::move(*type));
        }
        for (Node* node : graph.nodeList()) {
            m_at = node->name();
            for (size_t i = 0; i < node->args().size(); ++i)
                if (auto argument = replaced(node->arg(i))) graph.setArg(*node, i, std::move(*argument));
        }
        for (auto& [name, body] : module.subgraphs) runOnBody(*body);
        for (const auto& [symbol, value] : m_values) module.symbols.erase(symbol);
    }

    /// Symbols that the body finds itself, such as a loop's position, have other values than in the graph around it.
    void runOnBody(Module& body) {
        SymbolValues values = m_values;
        for (const std::string& symbol : ownSizes(body.graph())) values.erase(symbol);
        Specializer inner(values);
        try {
            inner.run(body);
        } catch (const SizeError&) {
            m_at = inner.m_at;
            throw;
        }
    }

    Expr replaced(const Expr& expr) const {
        Expr value = withValues(expr, m_values);
        if (value && value->outOfRange) throw SizeError(text(expr) + given(expr) + " does not fit into 64 bits");
        return value;
    }
    /// The node whose sizes are being replaced.
    const std::string& at() const { return m_at; }

  private:
    std::string given(const Expr& expr) const {
        const std::string all = valuesOf(expr, m_values);
        return all.empty() ? all : " for " + all;
    }
    SymInt size(const SymInt& value) const {
        SymInt fresh = replaced(value);
        if (!value.isInt() && fresh.isInt() && fresh.value() < 0)
            throw SizeError("the size " + value.text() + given(value.expr()) + " is " + fresh.text() +
                            ", and sizes are not negative");
        return fresh;
    }
    SymInt replaced(const SymInt& value) const { return value.isInt() ? value : SymInt(replaced(value.expr())); }

    /// Nothing when no symbol of it has a value.
    std::optional<ValueType> replaced(const ValueType& type) const {
        bool touched = false;
        forEachExpr(type, [&](const Expr& expr) { touched = touched || !(replaced(expr) == expr); });
        if (!touched) return std::nullopt;
        if (const TensorType* tensor = type.tensor()) {
            TensorType out = *tensor;
            for (SymInt& each : out.sizes) each = size(each);
            if (allInts(out.sizes)) numel(out.sizes);  // throws where they are too many
            for (SymInt& each : out.strides) each = replaced(each);
            out.offset = replaced(out.offset);
            return out;
        }
        if (const SymType* symbol = type.sym()) return SymType{symbol->dtype, replaced(symbol->expr)};
        TupleType out;
        for (const ValueType& item : *type.tuple()) {
            auto fresh = replaced(item);
            out.push_back(fresh ? std::move(*fresh) : item);
        }
        return out;
    }

    static Argument literal(const Expr& expr) {
        if (const auto value = expr.asInt()) return *value;
        if (expr->kind == ExprKind::Bool) return expr->integer != 0;
        if (expr->kind == ExprKind::Float) return expr->real;
        return expr;
    }
    std::optional<Argument> replaced(const Argument& argument) const {
        if (const auto* expr = argument.get<Expr>()) {
            Expr fresh = replaced(*expr);
            return fresh == *expr ? std::nullopt : std::optional(literal(fresh));
        }
        if (const Node* node = argument.node()) {
            const SymType* type = node->type().sym();
            if (type == nullptr || !type->expr) return std::nullopt;
            Argument number = literal(type->expr);
            return number.get<Expr>() ? std::nullopt : std::optional(std::move(number));
        }
        if (const auto* list = argument.get<ArgumentList>()) {
            ArgumentList out = *list;
            if (!replaceAll(out.items)) return std::nullopt;
            return Argument(std::move(out));
        }
        if (const auto* slice = argument.get<std::shared_ptr<const ArgumentSlice>>()) {
            std::vector<Argument> parts = {(*slice)->start, (*slice)->stop, (*slice)->step};
            if (!replaceAll(parts)) return std::nullopt;
            return Argument(std::make_shared<const ArgumentSlice>(ArgumentSlice{parts[0], parts[1], parts[2]}));
        }
        if (const auto* dict = argument.get<std::shared_ptr<const ArgumentDict>>()) {
            ArgumentDict out = **dict;
            bool changed = false;
            for (auto& [key, item] : out.items)
                if (auto fresh = replaced(item)) {
                    item = std::move(*fresh);
                    changed = true;
                }
            if (!changed) return std::nullopt;
            return Argument(std::make_shared<const ArgumentDict>(std::move(out)));
        }
        return std::nullopt;
    }
    bool replaceAll(std::vector<Argument>& items) const {
        bool changed = false;
        for (Argument& item : items)
            if (auto fresh = replaced(item)) {
                item = std::move(*fresh);
                changed = true;
            }
        return changed;
    }

    const SymbolValues& m_values;
    std::string m_at;
};

/// The value of the one unknown symbol of an affine size that makes it `actual`.
std::optional<std::pair<std::string, int64_t>> solveOne(const Expr& size, int64_t actual, const SymbolValues& known) {
    const Expr partly = Specializer(known).replaced(size);
    const std::vector<std::string> unknown = symbolsOf(partly);
    if (unknown.size() != 1) return std::nullopt;
    const auto at = [&](int64_t value) { return Specializer({{unknown[0], value}}).replaced(partly).asInt(); };
    if (partly->kind == ExprKind::Symbol) return std::pair(unknown[0], actual);
    const auto zero = at(0), one = at(1);
    if (!zero || !one || *one == *zero) return std::nullopt;
    const int64_t step = checkedSub(*one, *zero), distance = checkedSub(actual, *zero);
    if (step == -1 ? distance == std::numeric_limits<int64_t>::min() : distance % step != 0) return std::nullopt;
    const int64_t value = distance / step;
    return at(value) == actual ? std::optional(std::pair(unknown[0], value)) : std::nullopt;
}

struct ObservedSize {
    Expr size;
    int64_t actual = 0;
    std::string where;
};

/// What the inputs say about sizes that are not plain numbers.
std::vector<ObservedSize> symbolicSizes(const Module& module, const std::vector<Tensor>& inputs) {
    std::vector<ObservedSize> seen;
    const auto placeholders = module.graph().placeholders();
    for (size_t i = 0; i < std::min(placeholders.size(), inputs.size()); ++i) {
        if (!inputs[i].defined()) continue;
        const std::string where = "input '" + placeholders[i]->name() + "'";
        const SymType* symbol = placeholders[i]->type().sym();
        if (symbol && symbol->expr && symbol->dtype == DType::I64 && inputs[i].numel() == 1)
            seen.push_back({symbol->expr, toInt(inputs[i].item()), where});
        const TensorType* type = placeholders[i]->type().tensor();
        if (type == nullptr || type->rank() != inputs[i].rank()) continue;
        for (size_t dim = 0; dim < type->sizes.size(); ++dim)
            if (!type->sizes[dim].isInt())
                seen.push_back({type->sizes[dim].expr(), inputs[i].size(static_cast<int64_t>(dim)),
                                where + ", dim " + std::to_string(dim)});
        // An input that was a view when it was traced has a storage offset, which may hold symbols, too.
        if (!type->offset.isInt())
            seen.push_back({type->offset.expr(), inputs[i].offset(), where + ", its first element"});
    }
    return seen;
}

}  // namespace

std::vector<std::string> freeSymbols(const Module& module) {
    std::set<std::string> found;
    const auto visit = [&](const Expr& expr) {
        for (std::string& symbol : symbolsOf(expr)) found.insert(std::move(symbol));
    };
    for (const Node& node : module.graph().nodes()) {
        forEachExpr(node.type(), visit);
        for (const Argument& argument : node.args()) forEachExpr(argument, visit);
    }
    for (const auto& [name, body] : module.subgraphs)
        for (std::string& symbol : freeSymbols(*body)) found.insert(std::move(symbol));
    return {found.begin(), found.end()};
}

static Result<SymbolValues> solve(const Module& module, const std::vector<Tensor>& inputs) {
    const std::vector<ObservedSize> sizes = symbolicSizes(module, inputs);
    SymbolValues values;
    std::map<std::string, std::string> source;
    // Each round solves what the ones before made solvable: s0 alone, then s0*s1.
    for (bool progress = true; progress;) {
        progress = false;
        for (const ObservedSize& each : sizes) {
            const auto solved = solveOne(each.size, each.actual, values);
            if (!solved) continue;
            values.insert(*solved);
            source.emplace(solved->first, each.where);
            progress = true;
        }
    }
    for (const ObservedSize& each : sizes) {
        const Expr value = Specializer(values).replaced(each.size);
        if (value.asInt() == each.actual) continue;
        std::string message =
            each.where + " is " + std::to_string(each.actual) + ", the graph wants " + text(each.size);
        for (const std::string& symbol : symbolsOf(each.size))
            if (const auto found = values.find(symbol); found != values.end())
                message += "; " + symbol + " = " + std::to_string(found->second) + " by " + source[symbol];
        return invalidInput(std::move(message));
    }
    return values;
}

Result<SymbolValues> solveSymbols(const Module& module, const std::vector<Tensor>& inputs) {
    return withCheckedSizes({}, {}, [&] { return solve(module, inputs); });
}

SymbolValues hintedSymbols(const Module& module) {
    SymbolValues values;
    for (const auto& [symbol, info] : module.symbols)
        if (info.hint) values.emplace(symbol, *info.hint);
    return values;
}

std::optional<int64_t> valueFor(const SymInt& size, const SymbolValues& values) {
    return size.isInt() ? size.asInt() : Specializer(values).replaced(size.expr()).asInt();
}

int64_t likelyValue(const SymInt& size, const SymbolValues& values) {
    constexpr int64_t kUnknown = 64;
    if (size.isInt()) return size.value();
    SymbolValues all = values;
    for (const std::string& symbol : symbolsOf(size.expr())) all.emplace(symbol, kUnknown);
    return valueFor(size, all).value_or(kUnknown);
}

Result<void> checkGuards(const std::vector<SizeGuard>& guards, const SymbolValues& values) {
    for (const SizeGuard& guard : guards)
        CT_TRY_VOID(withCheckedSizes(guard.op, guard.node, [&]() -> Result<void> {
            const Expr holds = Specializer(values).replaced(guard.condition);
            if (holds->kind != ExprKind::Bool || holds->integer != 0) return {};
            return invalidInput(
                valuesOf(guard.condition, values) + ": the graph wants " + text(guard.condition) + ", for " + guard.op,
                guard.node);
        }));
    return {};
}

Result<void> specialize(Module& module, const SymbolValues& values) {
    for (const auto& [symbol, value] : values) {
        const auto found = module.symbols.find(symbol);
        if (found == module.symbols.end()) continue;
        const SymbolInfo& info = found->second;
        const std::optional<int64_t> least = leastValue(symbol, info);
        if ((least && value < *least) || (info.upper && value > *info.upper))
            return invalidInput(symbol + " = " + std::to_string(value) + " is outside [" +
                                (least ? std::to_string(*least) : "-oo") + ", " +
                                (info.upper ? std::to_string(*info.upper) : "oo") +
                                "], the range that the program was made for");
    }
    if (!values.empty()) CT_TRY_VOID(checkGuards(sizeGuards(module), values));
    Specializer specializer(values);
    try {
        specializer.run(module);
    } catch (const SizeError& error) {
        return invalidInput(error.what(), specializer.at());
    }
    return {};
}

}  // namespace cutaway
