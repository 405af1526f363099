#include "engine/interpret/interpret.h"

#include <array>
#include <numeric>
#include <set>

#include "engine/interpret/interpreter.h"
#include "engine/interpret/specialize.h"
#include "engine/ops/executorch.h"
#include "engine/ops/operator_definition.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/support/checked.h"
#include "engine/support/machine.h"
#include "engine/support/random.h"
#include "engine/tensor/fill.h"

namespace cutaway {
namespace {

constexpr uint64_t kStandInSeed = 0;

bool hasData(const Module& module, const std::string& name) {
    if (module.recipes.contains(name)) return true;
    const auto found = module.tensors.find(name);
    return found != module.tensors.end() && found->second.defined();
}

/// The module's tensor, or one made from its name where the file held the graph alone.
Result<Tensor> tensorOrSynthetic(const Module& module, const std::string& name, const Node& node) {
    if (const auto made = module.recipes.find(name); made != module.recipes.end()) return made->second->value();
    if (hasData(module, name)) {
        return module.tensors.at(name);  // read from its file by whoever needs the bytes here
    }
    const TensorType* type = node.type().tensor();
    if (isDelegate(node))
        return unsupported(name + ": a module of a backend cannot be run", node.name(),
                           {std::string(adviceOnUnknown(node.users()[0]->op()))});
    if (type == nullptr || !allInts(type->sizes))
        return Error{ErrorCode::NotFound,
                     "no data for '" + name + "'",
                     node.name(),
                     {"the file holds the graph without this value, and its type is not known"}};
    CT_TRY(const SymInt elements,
           withCheckedSizes({}, node.name(), [&]() -> Result<SymInt> { return numel(type->sizes); }));
    if (elements.value() < 0 || elements.value() > (int64_t{1} << 34))
        return Error{ErrorCode::Limit, "'" + name + "' is too large to be made up", node.name(), {}};
    const Tensor filled = filledTensor(name, kStandInSeed, type->dtype, toInts(type->sizes));
    return laidOutAs(filled, *type);
}

Result<void> checkCount(const Module& module, const std::vector<Tensor>& inputs) {
    const size_t expected = module.graph().placeholders().size();
    if (inputs.size() == expected) return {};
    return invalidInput("the graph takes " + std::to_string(expected) + " inputs, " + std::to_string(inputs.size()) +
                        " were given");
}

Result<void> makeReady(Module& module, const std::vector<Tensor>& inputs, bool symbolic, bool pythonCalls) {
    if (symbolic) {
        CT_TRY(const SymbolValues values, solveSymbols(module, inputs));
        CT_TRY_VOID(specialize(module, values));
    }
    if (pythonCalls) CT_TRY_VOID(lowerTorchCalls(module));
    return {};
}

}  // namespace

Tensor laidOutAs(const Tensor& values, const TensorType& type) {
    if (!allInts(type.strides) || values.strides() == toInts(type.strides)) return values;
    const Dims strides = toInts(type.strides);
    const int64_t reach = extent(values.sizes(), strides);
    if (reach < values.numel() || reach / 2 > values.numel()) return values;  // overlapping, or mostly gaps
    Tensor laidOut(Storage::allocate(static_cast<size_t>(reach * byteSize(type.dtype))), type.dtype, values.sizes(),
                   strides);
    copyInto(laidOut, values);
    return laidOut;
}

Result<Tensor> attributeOf(const Module& module, const Node& node) {
    return tensorOrSynthetic(module, node.target(), node);
}
Result<Tensor> constantNamed(const Module& module, const std::string& name, const Node& node) {
    return tensorOrSynthetic(module, name, node);
}

Result<std::vector<Tensor>> interpret(const Module& module, const std::vector<Tensor>& inputs,
                                      const InterpretOptions& options) {
    CT_TRY_VOID(checkCount(module, inputs));
    const bool symbolic = !freeSymbols(module).empty(), pythonCalls = hasTorchCalls(module);
    if (!symbolic && !pythonCalls) return Interpreter(module, nullptr, options).run(inputs);
    Module copy(module);
    CT_TRY_VOID(makeReady(copy, inputs, symbolic, pythonCalls));
    InterpretOptions inner = options;
    // Nodes keep their ids, so observers see them as they are.
    if (pythonCalls && options.observe)
        inner.observe = [&](const Node& node, const TensorList& values) {
            if (const Node* given = module.graph().find(node.id())) options.observe(*given, values);
        };
    return Interpreter(copy, symbolic ? &copy : nullptr, inner).run(inputs);
}

Result<Snapshot> readyToRun(const Module& module, const std::vector<Tensor>& inputs) {
    CT_TRY_VOID(checkCount(module, inputs));
    const bool symbolic = !freeSymbols(module).empty(), pythonCalls = hasTorchCalls(module);
    const bool defined = callsDefined(module);
    if (!symbolic && !pythonCalls && !defined) return Snapshot();
    auto copy = std::make_shared<Module>(module);
    if (symbolic || pythonCalls) CT_TRY_VOID(makeReady(*copy, inputs, symbolic, pythonCalls));
    if (defined) CT_TRY_VOID(writeOutDefined(*copy));
    return Snapshot(std::move(copy));
}

std::vector<std::string> tensorsWithoutData(const Module& module) {
    std::vector<std::string> missing;
    size_t position = 0;
    for (const Node& node : module.graph().nodes()) {
        if (node.kind() == NodeKind::GetAttr) {
            if (const auto made = module.recipes.find(node.target()); made != module.recipes.end()) {
                const auto inner = tensorsWithoutData(made->second->graph());
                missing.insert(missing.end(), inner.begin(), inner.end());
            } else if (!hasData(module, node.target()) && !isDelegate(node)) missing.push_back(node.target());
        }
        if (!node.isPlaceholder()) continue;
        const size_t at = position++;
        const InputSpec::Kind kind = at < module.inputs.size() ? module.inputs[at].kind : InputSpec::Kind::UserInput;
        const bool owned =
            kind == InputSpec::Kind::Parameter || kind == InputSpec::Kind::Buffer || kind == InputSpec::Kind::Constant;
        if (owned && !hasData(module, module.inputs[at].target)) missing.push_back(module.inputs[at].target);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
}

namespace {

/// Whether the value has another dtype or another size than the type says, or one outside of its symbol's range.
bool contradicts(const Module& module, const TensorType& type, const Tensor& value) {
    if (value.dtype() != type.dtype || value.rank() != type.rank()) return true;
    for (size_t dim = 0; dim < type.sizes.size(); ++dim) {
        const SymInt& size = type.sizes[dim];
        const int64_t actual = value.sizes()[dim];
        if (size.isInt() && size.value() != actual) return true;
        if (size.isInt() || size.expr()->kind != ExprKind::Symbol) continue;
        const auto found = module.symbols.find(size.expr()->name);
        if (found == module.symbols.end()) continue;
        if (actual < found->second.least() || (found->second.upper && actual > *found->second.upper)) return true;
    }
    return false;
}
/// " with s0 in [0, 9]" for the symbols of the sizes whose largest value the file says.
std::string rangesOf(const Module& module, const TensorType& type) {
    std::string text;
    std::set<std::string> symbols;
    for (const SymInt& size : type.sizes)
        if (!size.isInt())
            for (const std::string& symbol : symbolsOf(size.expr())) symbols.insert(symbol);
    for (const std::string& symbol : symbols)
        if (const auto found = module.symbols.find(symbol); found != module.symbols.end() && found->second.upper)
            text += (text.empty() ? " with " : ", ") + symbol + " in [" + std::to_string(found->second.least()) + ", " +
                    std::to_string(*found->second.upper) + "]";
    return text;
}

}  // namespace

Result<std::vector<Tensor>> bindInputs(const Module& module, const std::vector<Tensor>& user) {
    std::vector<Tensor> bound;
    size_t nextUser = 0;
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        const Node& node = *placeholders[i];
        const InputSpec spec = i < module.inputs.size() ? module.inputs[i] : InputSpec{};
        Tensor value;
        if (spec.isGiven()) {
            if (nextUser >= user.size()) return invalidInput("no value for input '" + node.name() + "'", node.name());
            value = user[nextUser++];
        } else if (spec.kind == InputSpec::Kind::ConstantInput) {
            const SymType* symbol = node.type().sym();
            const auto number = symbol && symbol->expr ? symbol->expr.asInt() : std::nullopt;
            bound.push_back(number ? Tensor::scalar(symbol->dtype, *number) : Tensor());
            continue;
        } else {
            CT_TRY(value, tensorOrSynthetic(module, spec.target, node));
        }
        if (const TensorType* type = node.type().tensor()) {
            if (!value.defined()) return invalidInput("no value for input '" + node.name() + "'", node.name());
            if (contradicts(module, *type, value)) {
                const TensorType got = TensorType::contiguous(value.dtype(), toSymDims(value.sizes()));
                return invalidInput("input '" + node.name() + "' is " + got.text() + ", the graph wants " +
                                        type->text() + rangesOf(module, *type),
                                    node.name());
            }
        }
        bound.push_back(std::move(value));
    }
    if (nextUser != user.size())
        return invalidInput(std::to_string(user.size()) + " inputs were given, the graph takes " +
                            std::to_string(nextUser));
    return bound;
}

namespace {
/// The number that a size has for the example values of the module's symbols.
Result<int64_t> exampleOf(const SymInt& size, const SymbolValues& hints, const Node& input) {
    CT_TRY(
        const std::optional<int64_t> number,
        withCheckedSizes({}, input.name(), [&]() -> Result<std::optional<int64_t>> { return valueFor(size, hints); }));
    if (number) return *number;
    std::vector<std::string> notes;
    for (const std::string& symbol : symbolsOf(size.expr()))
        if (!hints.contains(symbol)) notes.push_back("set it: --size " + symbol + "=8");
    return unsupported(
        "input '" + input.name() + "' has the symbolic size " + size.text() + ", and no example value is known",
        input.name(), std::move(notes));
}

/// What is to be drawn for one input.
struct DrawSpec {
    DType dtype = DType::F32;
    Dims sizes;
    std::optional<int64_t> number;  // of a size symbol
};

Result<std::vector<DrawSpec>> wantedInputs(const Module& module) {
    std::vector<DrawSpec> wanted;
    const SymbolValues hints = hintedSymbols(module);
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
        if (i < module.inputs.size() && !module.inputs[i].isGiven()) continue;
        const Node& input = *placeholders[i];
        if (const SymType* symbol = input.type().sym(); symbol && symbol->expr) {
            CT_TRY(const int64_t number, exampleOf(SymInt(symbol->expr), hints, input));
            wanted.push_back({symbol->dtype, {}, number});
            continue;
        }
        const TensorType* type = input.type().tensor();
        if (type == nullptr)
            return unsupported("input '" + input.name() + "' is not a tensor; give its value", input.name());
        wanted.push_back({type->dtype, {}, {}});
        for (const SymInt& size : type->sizes) {
            CT_TRY(const int64_t number, exampleOf(size, hints, input));
            wanted.back().sizes.push_back(number);
        }
        CT_TRY_VOID(withCheckedSizes({}, input.name(), [&]() -> Result<void> {
            static_cast<void>(numel(wanted.back().sizes));
            return {};
        }));
    }
    return wanted;
}

bool isReal(DType dtype) { return isFloating(dtype) || isComplex(dtype); }

void draw(DType dtype, std::span<std::byte> into, const Random& begun) {
    if (isReal(dtype))
        return storeDrawn(dtype, into, begun, Random::kPerNormal, [](Random& random) { return random.normal(); });
    // Integers 0 and 1 are valid indices into anything with two rows, and valid flags.
    storeDrawn(dtype, into, begun, 1, [](Random& random) { return static_cast<double>(random.below(2)); });
}

/// Drawn when it is read, so that a refused run has drawn nothing.
Tensor toBeDrawn(const DrawSpec& wanted, Random& random) {
    const auto count = static_cast<uint64_t>(numel(wanted.sizes));
    auto fetch = [dtype = wanted.dtype, random](std::span<std::byte> into) -> Result<void> {
        CT_TRY_VOID(checkMemory("a run on random inputs", {{"an input", static_cast<double>(into.size())}}));
        draw(dtype, into, random);
        return {};
    };
    random.skip(isReal(wanted.dtype) ? count * Random::kPerNormal : count);
    return Tensor(Storage::deferred(count * static_cast<size_t>(byteSize(wanted.dtype)), std::move(fetch)),
                  wanted.dtype, wanted.sizes, contiguousStrides(wanted.sizes));
}

}  // namespace

Result<std::vector<Tensor>> randomInputs(const Module& module, uint64_t seed) {
    CT_TRY(const std::vector<DrawSpec> wanted, wantedInputs(module));
    double bytes = 0;
    for (const DrawSpec& each : wanted)
        bytes += std::accumulate(each.sizes.begin(), each.sizes.end(), static_cast<double>(byteSize(each.dtype)),
                                 [](double all, int64_t size) { return all * static_cast<double>(size); });
    CT_TRY_VOID(checkMemory("a run on random inputs", {{"the inputs", bytes}}));
    std::vector<Tensor> values;
    Random random(seed);
    for (const DrawSpec& each : wanted)
        values.push_back(each.number ? Tensor::scalar(each.dtype, *each.number) : toBeDrawn(each, random));
    return values;
}

}  // namespace cutaway
