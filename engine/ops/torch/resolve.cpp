// From a Python name to a function of ours, or to an ATen operator.
#include <map>

#include "engine/ops/torch/python_call.h"
#include "engine/support/checked.h"

namespace cutaway {
namespace torchcalls {
namespace {

struct Row {
    const PythonFunction* function;
    Schema signature;
};
using Functions = std::map<std::string, Row, std::less<>>;

const Functions& functions() {
    static const Functions all = [] {
        Functions found;
        for (auto table :
             {activationFunctions(), attentionFunctions(), layerFunctions(), lossFunctions(), tensorFunctions(),
              castFunctions(), operatorFunctions(), forwardAdFunctions(), vmapFunctions()})
            for (const PythonFunction& row : table) {
                auto signature = parseSchema(row.signature);
                if (!signature) throw InternalError(std::string(row.signature) + ": " + signature.error().text());
                const std::string name(row.signature.substr(0, row.signature.find('(')));
                const bool fresh = found.emplace(name, Row{&row, std::move(*signature)}).second;
                CT_CHECK(fresh, "each Python function has one row");
            }
        return found;
    }();
    return all;
}

struct Synonym {
    std::string_view name, packet;
};
/// Names of one operator; the second is the one with a row.
constexpr Synonym kSynonyms[] = {{"absolute", "abs"},
                                 {"multiply", "mul"},
                                 {"subtract", "sub"},
                                 {"divide", "div"},
                                 {"true_divide", "div"},
                                 {"negative", "neg"},
                                 {"clip", "clamp"},
                                 {"greater", "gt"},
                                 {"greater_equal", "ge"},
                                 {"less", "lt"},
                                 {"less_equal", "le"},
                                 {"not_equal", "ne"},
                                 {"arccos", "acos"},
                                 {"arcsin", "asin"},
                                 {"arctan", "atan"},
                                 {"arctan2", "atan2"},
                                 {"arccosh", "acosh"},
                                 {"arcsinh", "asinh"},
                                 {"arctanh", "atanh"},
                                 {"fix", "trunc"},
                                 {"ger", "outer"},
                                 {"moveaxis", "movedim"},
                                 {"concat", "cat"},
                                 {"concatenate", "cat"},
                                 {"special_expit", "sigmoid"},
                                 {"special_erf", "erf"},
                                 {"special_erfc", "erfc"},
                                 {"special_exp2", "exp2"},
                                 {"special_expm1", "expm1"},
                                 {"special_log1p", "log1p"},
                                 {"special_xlogy", "xlogy"},
                                 {"special_logit", "logit"},
                                 {"special_digamma", "digamma"},
                                 {"special_psi", "digamma"},
                                 {"special_gammaln", "lgamma"},
                                 {"special_sinc", "sinc"},
                                 {"special_round", "round"},
                                 {"linalg_matmul", "matmul"},
                                 {"bitwise_invert", "bitwise_not"},
                                 {"nonzero_static", "nonzero_static"}};

std::string synonym(std::string_view name) {
    const bool inplace = name.ends_with('_') && !name.ends_with("__");
    const std::string_view plain = inplace ? name.substr(0, name.size() - 1) : name;
    for (const Synonym& row : kSynonyms)
        if (row.name == plain) return std::string(row.packet) + (inplace ? "_" : "");
    return std::string(name);
}

/// "relu" of torch.relu, "special_expit" of torch.special.expit; empty for names outside.
std::string packetName(std::string_view name, Op::Style style) {
    if (style == Op::Style::Method) return synonym(name);
    struct Prefix {
        std::string_view text, packet;
    };
    constexpr Prefix kPrefixes[] = {{"torch.nn.functional.", ""},
                                    {"torch._C._nn.", ""},
                                    {"torch._C._special.", ""},
                                    {"torch._C._linalg.", ""},
                                    {"torch._C._fft.", ""},
                                    {"torch._VF.", ""},
                                    {"torch._C._VariableFunctions.", ""},
                                    {"torch.functional.", ""},
                                    {"torch.special.", "special_"},
                                    {"torch.linalg.", "linalg_"},
                                    {"torch.fft.", "fft_"},
                                    {"torch.Tensor.", ""},
                                    {"torch._tensor.Tensor.", ""},
                                    {"torch.", ""}};
    for (const Prefix& prefix : kPrefixes)
        if (name.starts_with(prefix.text) && name.find('.', prefix.text.size()) == std::string_view::npos)
            return synonym(std::string(prefix.packet) + std::string(name.substr(prefix.text.size())));
    return {};
}

const Row* findFunction(std::string_view name, Op::Style style, const std::string& packet) {
    const auto look = [](const std::string& key) -> const Row* {
        const auto found = functions().find(key);
        return found == functions().end() ? nullptr : &found->second;
    };
    if (style == Op::Style::Function)
        if (const Row* row = look(std::string(name))) return row;
    if (packet.empty()) return nullptr;
    if (const Row* row = look("Tensor." + packet)) return row;
    const bool functional = name.starts_with("torch.nn.functional.");
    return functional ? nullptr : look("torch." + packet);
}

/// x.__eq__(y) and y.__rsub__(x) as operators; a reflected one has its operands swapped.
const Row* findOperator(std::string_view method, std::vector<Argument>& args) {
    if (method.size() < 5 || !method.starts_with("__") || !method.ends_with("__")) return nullptr;
    std::string name(method.substr(2, method.size() - 4));
    const auto look = [&](const std::string& key) {
        auto found = functions().find("operator." + key);
        if (found == functions().end()) found = functions().find("operator." + key + "_");  // and_, or_
        return found == functions().end() ? nullptr : &found->second;
    };
    if (const Row* row = look(name)) return row;
    if (name.starts_with('r') && args.size() == 2)
        if (const Row* row = look(name.substr(1))) {
            std::swap(args[0], args[1]);
            return row;
        }
    return nullptr;
}

std::string callName(const Op& op) { return op.style() == Op::Style::Method ? "Tensor." + op.name() : op.name(); }

}  // namespace

const Op* effectOf(const Op& op, std::span<const Argument> args) {
    if (op.name() != "higher_order.with_effects" && op.name() != "higher_order.with_effects.default") return nullptr;
    const auto* reference = args.size() < 2 ? nullptr : args[1].get<OpRef>();
    return reference && reference->op && !reference->op->isOpaque() ? reference->op : nullptr;
}

}  // namespace torchcalls

const Op* effectOf(const Node& node) { return node.isCall() ? torchcalls::effectOf(node.op(), node.args()) : nullptr; }

using namespace torchcalls;

/// The tensor that a call is told to write its result to (`out=`), taken out of the keywords.
static std::optional<Argument> takeOut(NamedArguments& keywords) {
    const auto found = std::find_if(keywords.begin(), keywords.end(), [](const auto& each) {
        return each.first == "out" && tensorOf(each.second) != nullptr;
    });
    if (found == keywords.end()) return std::nullopt;
    const Argument out = found->second;
    keywords.erase(found);
    return out;
}
/// The result copied there. PyTorch gives a tensor without elements the result's size.
static Result<Argument> writtenTo(GraphBuilder& builder, const std::string& name, const Argument& out,
                                  const Argument& result) {
    const TensorType *to = tensorOf(out), *from = tensorOf(result);
    if (from == nullptr) return unsupported(name + ": out= for a result that is not one tensor");
    if (!(to->sizes == from->sizes))
        return unsupported(name + ": the tensor given as out= is " + to->text() + ", the result " + from->text(), {},
                           {"make it of the result's size"});
    return callPacket(builder, "copy_", {out, result}, {});
}

/// with_effects(token, operator, arguments…) = (token, results…). The operator stands in its place, so that effects
/// keep their order, and each token is the one before.
static Result<Argument> resolvedEffect(GraphBuilder& builder, const Op& effect, const std::vector<Argument>& args,
                                       NamedArguments keywords) {
    const Value value = builder.call(effect, {args.begin() + 2, args.end()}, std::move(keywords));
    ArgumentList results{{args[0]}, true};
    const size_t count = effect.schema()->returns.size();
    if (count == 0) results.items.emplace_back();
    else if (count == 1) results.items.push_back(value);
    else
        for (size_t i = 0; i < count; ++i) results.items.push_back(value[static_cast<int64_t>(i)]);
    if (builder.error()) return *builder.error();
    return Argument(std::move(results));
}

static Result<Argument> resolved(GraphBuilder& builder, const Op& op, std::vector<Argument> args,
                                 NamedArguments keywords, Module* module, const AutocastState* autocast) {
    for (Argument& arg : args) arg = knownValue(arg);
    for (auto& [key, value] : keywords) value = knownValue(value);
    if (const auto out = takeOut(keywords)) {
        CT_TRY(const Argument result, resolved(builder, op, std::move(args), std::move(keywords), module, autocast));
        return writtenTo(builder, callName(op), *out, result);
    }
    if (const Op* effect = torchcalls::effectOf(op, args))
        return resolvedEffect(builder, *effect, args, std::move(keywords));
    const std::string packet = packetName(op.name(), op.style());
    PythonCall call(builder, module, callName(op), autocast);
    const Row* row = findFunction(op.name(), op.style(), packet);
    if (row == nullptr && op.style() == Op::Style::Method) row = findOperator(op.name(), args);
    if (row) {
        std::string why;
        if (!call.bind(row->signature, args, keywords, why)) return invalidInput(call.name() + ": " + why);
        Argument result = row->function->run(call);
        if (builder.error()) return *builder.error();
        return result;
    }
    if (!packet.empty() && hasPacket(packet)) {
        auto result = callPacket(builder, packet, args, keywords, autocast);
        if (!result) {
            Error error = std::move(result).error();
            error.message = call.name() + ": " + error.message;
            return error;
        }
        return result;
    }
    Error error = unsupported(
        call.name() + ": Cutaway does not know this function", {},
        {"open the graph after AOTAutograd (aten operators) instead, or export the model with torch.export"});
    if (op.name().find("autocast") != std::string::npos)
        error.notes = {
            "regions with their own precision are not understood; open the graph after AOTAutograd, where they are conversions"};
    return error;
}
Result<Argument> resolveTorchCall(GraphBuilder& builder, const Op& op, std::vector<Argument> args,
                                  NamedArguments keywords, Module* module, const AutocastState* autocast) {
    return withCheckedSizes(callName(op), {}, [&] {
        return resolved(builder, op, std::move(args), std::move(keywords), module, autocast);
    });
}

bool torchCallTakes(const Op& op, std::string_view param) {
    const std::string packet = packetName(op.name(), op.style());
    if (const Row* row = findFunction(op.name(), op.style(), packet))
        return row->signature.find(param) >= 0 || (param == "input" && row->signature.find("self") == 0);
    return packetTakes(packet, param);
}

std::vector<TorchSignature> torchSignatures(const Op& op) {
    const std::string packet = packetName(op.name(), op.style());
    if (const Row* row = findFunction(op.name(), op.style(), packet)) return {{&row->signature, nullptr}};
    std::vector<TorchSignature> out;
    for (const Op* overload : packetOverloads(packet)) out.push_back({overload->schema(), overload});
    return out;
}

int torchParameter(const TorchSignature& signature, std::string_view keyword) {
    return signature.aten ? overloadParameter(*signature.schema, keyword) : parameterOf(*signature.schema, keyword);
}

std::optional<BoundTorchCall> bindTorchCall(const Op& op, const std::vector<Argument>& args,
                                            const NamedArguments& keywords) {
    const std::vector<TorchSignature> signatures = torchSignatures(op);
    for (const bool numbersAsTensors : {false, true})
        for (const TorchSignature& signature : signatures) {
            if (signature.aten) {
                if (auto bound = bindOverload(*signature.aten, args, keywords, numbersAsTensors))
                    return BoundTorchCall{signature.schema, std::move(*bound)};
                continue;
            }
            BoundTorchCall call{signature.schema, {}};
            std::string why;
            if (bindPython(*signature.schema, args, keywords, call.args, why)) return call;
        }
    return std::nullopt;
}

Result<ValueType> inferTorchCall(const Op& op, const std::vector<Argument>& args, const NamedArguments& keywords) {
    Graph scratch;
    std::map<NodeId, Node*> copies;
    const auto copy = [&](Node* node) -> Node* {
        Node*& twin = copies[node->id()];
        if (twin == nullptr) twin = &scratch.placeholder("x", node->type());
        return twin;
    };
    std::vector<Argument> positional;
    NamedArguments named;
    for (const Argument& arg : args) positional.push_back(arg.mapNodes(copy));
    for (const auto& [key, value] : keywords) named.emplace_back(key, value.mapNodes(copy));
    GraphBuilder builder(scratch);
    CT_TRY(const Argument result, resolveTorchCall(builder, op, std::move(positional), std::move(named)));
    const auto typeOf = [](const Argument& value) -> ValueType {
        if (const Node* node = value.node()) return node->type();
        if (value.get<bool>() == nullptr)
            if (const auto size = symIntOf(value)) return SymType{DType::I64, size->expr()};
        return OpaqueType{};
    };
    const auto* items = result.list();
    if (items == nullptr) return typeOf(result);
    TupleType tuple;
    for (const Argument& item : *items) tuple.push_back(typeOf(item));
    return ValueType(std::move(tuple));
}

}  // namespace cutaway
