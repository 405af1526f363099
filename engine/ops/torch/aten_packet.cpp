// Which overload of an ATen operator a Python call means.
#include <map>

#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

/// Overloads that Python never calls: the Tensor overload takes numbers too.
bool isHidden(const Op& op) {
    const std::string_view packet = op.packet();
    for (std::string_view name : {"aten.add", "aten.sub", "aten.mul", "aten.div", "aten.floor_divide"}) {
        if (packet != name && !(packet.ends_with('_') && packet.substr(0, packet.size() - 1) == name)) continue;
        const std::string_view overload = std::string_view(op.name()).substr(packet.size() + 1);
        return overload.starts_with("Scalar");
    }
    return false;
}

using Packets = std::map<std::string, std::vector<const Op*>, std::less<>>;
const Packets& packets() {
    static const Packets all = [] {
        Packets found;
        for (const Op* op : allOps())
            if (op->name().starts_with("aten.") && !isHidden(*op))
                found[std::string(op->packet().substr(5))].push_back(op);
        // The plain overload is the first that Python tries; of resampling, the one that takes sizes or factors.
        const auto turn = [](const Op* op) {
            return op->name().ends_with(".vec") ? 0 : op->name().ends_with(".default") ? 1 : 2;
        };
        for (auto& [name, overloads] : found)
            std::stable_sort(overloads.begin(), overloads.end(),
                             [&](const Op* a, const Op* b) { return turn(a) < turn(b); });
        return found;
    }();
    return all;
}

struct KeywordAlias {
    std::string_view given, known;
};
constexpr KeywordAlias kAliases[] = {{"axis", "dim"},
                                     {"axis", "dims"},
                                     {"dim", "dims"},
                                     {"dims", "dim"},
                                     {"keepdims", "keepdim"},
                                     {"input", "self"},
                                     {"x", "self"},
                                     {"a", "self"},
                                     {"x1", "self"},
                                     {"x2", "other"},
                                     {"split_size_or_sections", "split_size"},
                                     {"shape", "size"},
                                     {"size", "shape"},
                                     {"size", "repeats"},
                                     {"tensor", "self"},
                                     {"value", "fill_value"},
                                     {"mat1", "self"},
                                     {"vec", "mat2"}};

NamedArguments fittedKeywords(const Schema& schema, const NamedArguments& keywords) {
    NamedArguments fitted;
    for (const auto& [key, value] : keywords) {
        const int at = overloadParameter(schema, key);
        const bool harmless = value.isNone() || (key == "requires_grad" && value.asInt() == 0);
        if (at >= 0) fitted.emplace_back(schema.params[static_cast<size_t>(at)].name, value);
        else if (!harmless) fitted.emplace_back(key, value);
    }
    return fitted;
}

/// Devices may be written as text.
void readDevices(const Schema& schema, std::vector<Argument>& args, NamedArguments& keywords) {
    const auto read = [](Argument& value) {
        if (const auto* text = value.get<std::string>())
            if (auto device = deviceFromText(*text)) value = Argument(*device);
    };
    for (size_t i = 0; i < args.size() && i < schema.params.size(); ++i)
        if (schema.params[i].kind == ParamKind::Device) read(args[i]);
    for (auto& [key, value] : keywords)
        if (const int at = schema.find(key);
            at >= 0 && schema.params[static_cast<size_t>(at)].kind == ParamKind::Device)
            read(value);
}

bool isTensorNode(const Argument& value) { return tensorOf(value) != nullptr; }

/// How PyTorch's argument parser tells overloads apart.
bool fits(const Param& param, const Argument& value, bool numbersAsTensors) {
    if (value.isNone()) return true;
    if (const auto* items = value.list(); items && param.list) {
        Param item = param;
        item.list = false;
        return std::all_of(items->begin(), items->end(),
                           [&](const Argument& each) { return fits(item, each, numbersAsTensors); });
    }
    switch (param.kind) {
        case ParamKind::Tensor:
            if (param.list) return value.node() != nullptr && !isTensorNode(value);
            return value.node() ? !value.node()->type().tuple() : numbersAsTensors && isPythonNumber(value);
        case ParamKind::Bool: return value.get<bool>() != nullptr;
        case ParamKind::Int: return !value.get<bool>() && !value.get<double>() && !isTensorNode(value);
        case ParamKind::Float:
        case ParamKind::Number: return !isTensorNode(value);
        default: return true;
    }
}

/// x.view(2, 3): the only positional parameter besides self is a list of integers.
bool takesLooseNumbers(const Schema& schema, const std::vector<Argument>& args) {
    size_t first = 0, positional = 0;
    for (const Param& param : schema.params) positional += param.keywordOnly ? 0 : 1;
    if (positional > 0 && schema.params[0].kind == ParamKind::Tensor && !schema.params[0].list) first = 1;
    if (positional != first + 1 || args.size() <= first) return false;
    const Param& list = schema.params[first];
    if (!list.list || list.kind != ParamKind::Int) return false;
    return std::all_of(args.begin() + static_cast<ptrdiff_t>(first), args.end(), isPythonNumber);
}

Result<std::vector<Argument>> bindTo(const Op& op, std::vector<Argument> args, NamedArguments keywords) {
    const Schema& schema = *op.schema();
    keywords = fittedKeywords(schema, keywords);
    readDevices(schema, args, keywords);
    if (takesLooseNumbers(schema, args)) {
        const size_t first = schema.params[0].kind == ParamKind::Tensor ? 1 : 0;
        std::vector<Argument> loose(args.begin() + static_cast<ptrdiff_t>(first), args.end());
        args.resize(first);
        args.emplace_back(std::move(loose));
    }
    return bindArguments(op, std::move(args), std::move(keywords));
}

std::string kindOf(const Argument& value) {
    if (const TensorType* type = tensorOf(value)) return type->text();
    if (value.node()) return value.node()->type().isOpaque() ? "a value of unknown type" : "a value";
    if (value.isNone()) return "None";
    if (value.get<bool>()) return "bool";
    if (value.get<int64_t>() || value.get<Expr>()) return "int";
    if (value.get<double>()) return "float";
    if (value.get<std::string>()) return "text";
    if (value.get<DType>()) return "dtype";
    if (value.list()) return "list";
    return "something else";
}

bool fitsAll(const Op& op, const std::vector<Argument>& bound, bool numbersAsTensors) {
    for (size_t i = 0; i < bound.size(); ++i) {
        const Param& param = op.schema()->params[i];
        const bool isDefault = param.hasDefault && equal(bound[i], param.defaultValue);
        if (!isDefault && !fits(param, bound[i], numbersAsTensors)) return false;
    }
    return true;
}

}  // namespace

int overloadParameter(const Schema& schema, std::string_view keyword) {
    if (const int at = schema.find(keyword); at >= 0) return at;
    for (const KeywordAlias& alias : kAliases)
        if (alias.given == keyword && schema.find(alias.known) >= 0) return schema.find(alias.known);
    return -1;
}

bool hasPacket(std::string_view packet) { return packets().contains(packet); }

std::span<const Op* const> packetOverloads(std::string_view packet) {
    const auto found = packets().find(packet);
    return found == packets().end() ? std::span<const Op* const>() : std::span<const Op* const>(found->second);
}

std::optional<std::vector<Argument>> bindOverload(const Op& op, const std::vector<Argument>& args,
                                                  const NamedArguments& keywords, bool numbersAsTensors) {
    auto bound = bindTo(op, args, keywords);
    if (!bound || !fitsAll(op, *bound, numbersAsTensors)) return std::nullopt;
    return std::move(*bound);
}

bool packetTakes(std::string_view packet, std::string_view param) {
    const auto found = packets().find(packet);
    if (found == packets().end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Op* op) {
        return op->schema()->find(param) >= 0 || (param == "input" && op->schema()->find("self") == 0);
    });
}

Result<Argument> callPacket(GraphBuilder& builder, std::string_view packet, const std::vector<Argument>& args,
                            const NamedArguments& keywords, const AutocastState* autocast) {
    const auto found = packets().find(packet);
    if (found == packets().end())
        return unsupported(
            "no row for an operator aten." + std::string(packet), {},
            {"export the model with torch.export, which writes the operators it is made of, or add a row (CONTRIBUTING.md)"});
    std::optional<Error> why;
    for (const bool numbersAsTensors : {false, true})
        for (const Op* op : found->second) {
            auto bound = bindTo(*op, args, keywords);
            if (!bound) {
                if (!why) why = std::move(bound).error();
                continue;
            }
            if (!fitsAll(*op, *bound, numbersAsTensors)) continue;
            if (autocast) *bound = autocastArguments(builder, *op, std::move(*bound), *autocast);
            NamedArguments named;
            std::vector<Argument> positional;
            for (size_t i = 0; i < bound->size(); ++i) {
                if (op->schema()->params[i].keywordOnly)
                    named.emplace_back(op->schema()->params[i].name, std::move((*bound)[i]));
                else positional.push_back(std::move((*bound)[i]));
            }
            const Value value = builder.call(*op, std::move(positional), std::move(named));
            if (builder.error()) return *builder.error();
            return Argument(value.node());
        }
    if (why && found->second.size() == 1) return *why;
    std::string kinds;
    for (const Argument& value : args) kinds += (kinds.empty() ? "" : ", ") + kindOf(value);
    for (const auto& [key, value] : keywords) kinds += (kinds.empty() ? "" : ", ") + key + "=" + kindOf(value);
    return invalidInput("no overload of aten." + std::string(packet) + " takes (" + kinds + ")");
}

}  // namespace cutaway::torchcalls
