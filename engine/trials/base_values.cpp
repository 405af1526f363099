#include "engine/trials/base_values.h"

#include <algorithm>
#include <set>

#include "engine/interpret/interpreter.h"
#include "engine/interpret/specialize.h"
#include "engine/minify/edits.h"
#include "engine/ops/build.h"
#include "engine/runtime/reference.h"
#include "engine/support/machine.h"
#include "engine/tensor/fill.h"

namespace cutaway {
namespace {

std::optional<Dims> numbersOf(const SymDims& sizes, const SymbolValues& symbols) {
    Dims out;
    for (const SymInt& size : sizes) {
        const auto number = valueFor(size, symbols);
        if (!number) return std::nullopt;
        out.push_back(*number);
    }
    return out;
}

}  // namespace

BaseValues::BaseValues(Snapshot base, std::function<Result<std::vector<Tensor>>()> user)
    : m_base(std::move(base)), m_fetch(std::move(user)) {
    const std::vector<Node*> inputs = m_base->graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
        const InputSpec& spec = m_base->inputs[i];
        if (spec.isGiven()) continue;
        if (const auto held = m_base->tensors.find(spec.target); held != m_base->tensors.end())
            m_known[inputs[i]->name()] = held->second;
    }
}

Result<void> BaseValues::fetch() {
    if (std::exchange(m_fetched, true)) return {};
    CT_TRY(m_user, m_fetch());
    const std::vector<Node*> inputs = m_base->graph().placeholders();
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
        if (m_base->inputs[i].isGiven() && next < m_user.size()) m_known[inputs[i]->name()] = m_user[next++];
    return {};
}

Result<std::vector<Tensor>> BaseValues::all() {
    CT_TRY_VOID(fetch());
    std::vector<Tensor> tensors = m_user;
    for (const auto& [name, tensor] : m_base->tensors) tensors.push_back(tensor);
    for (const auto& [name, tensor] : syntheticWeights()) tensors.push_back(tensor);
    return tensors;
}

const NamedValues& BaseValues::syntheticWeights() {
    constexpr size_t kLarge = size_t{1} << 20;
    if (m_syntheticWeights) return *m_syntheticWeights;
    m_syntheticWeights.emplace();
    const std::vector<Node*> inputs = m_base->graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
        const InputSpec& spec = m_base->inputs[i];
        const TensorType* type = inputs[i]->type().tensor();
        if (spec.isGiven() || !type || !allInts(type->sizes) || m_base->tensors.contains(spec.target)) continue;
        if (static_cast<size_t>(numel(toInts(type->sizes)) * byteSize(type->dtype)) < kLarge) continue;
        if (auto made = constantNamed(*m_base, spec.target, *inputs[i]))
            m_syntheticWeights->emplace(spec.target, *made);
    }
    return *m_syntheticWeights;
}

Tensor BaseValues::syntheticWeight(const std::string& name, const TensorType& type) {
    const auto found = syntheticWeights().find(name);
    if (found == syntheticWeights().end() || !allInts(type.sizes) || !allInts(type.strides)) return {};
    const Tensor& made = found->second;
    const bool same =
        made.dtype() == type.dtype && made.sizes() == toInts(type.sizes) && made.strides() == toInts(type.strides);
    return same ? made : Tensor();
}

Result<void> BaseValues::compute(const std::vector<std::string>& names, const Progress& progress) {
    CT_TRY_VOID(fetch());
    const auto module = std::make_shared<Module>(*m_base);
    const SymbolValues symbols = hintedSymbols(*m_base);
    double room = 1e18;
    if (const auto available = availableMemory()) room = static_cast<double>(available->bytes) / 4;
    const bool copies = writesToMemory(module->graph());
    std::vector<Argument> wanted;
    std::vector<std::string> asked;
    std::set<std::string> seen;
    int left = 0;
    for (const std::string& name : names) {
        Node* node = module->graph().findByName(name);
        if (!node || node->isOutput() || node->isPlaceholder() || m_known.contains(name) || !seen.insert(name).second)
            continue;
        const TensorType* type = node->type().tensor();
        if (!type) continue;
        double bytes = static_cast<double>(byteSize(type->dtype));
        if (const auto sizes = numbersOf(type->sizes, symbols))
            for (const int64_t size : *sizes) bytes *= static_cast<double>(size);
        if (bytes > room) {
            ++left;
            continue;
        }
        room -= bytes;
        asked.push_back(name);
        Node* value = node;
        if (copies && node->next()) {
            // Returns a copy made right behind the call, since later calls may write to the value.
            GraphBuilder builder(module->graph(), node->next());
            if (const Value copy = builder.call("aten.clone.default", {Argument(node)})) value = copy.node();
        }
        wanted.emplace_back(value);
    }
    if (left > 0)
        m_remarks.push_back("memory is too short for the values of " + std::to_string(left) +
                            " nodes, so inputs that stand for them are made up");
    if (wanted.empty()) return {};
    returnOnly(*module, wanted);
    if (!copies) dropDeadCalls(*module, false);
    auto inputs = bindInputs(*module, m_user);
    if (!inputs) {
        m_remarks.push_back("values of nodes are made up: " + inputs.error().message);
        return {};
    }
    const auto run = runReference(*module, *inputs, {}, progress);
    if (!run) {
        if (run.error().code == ErrorCode::Cancelled) return run.error();
        m_remarks.push_back("values of nodes are made up, since the graph does not run: " + run.error().message);
        return {};
    }
    for (size_t i = 0; i < asked.size() && i < run->outputs.size(); ++i)
        if (run->outputs[i].defined()) m_known[asked[i]] = run->outputs[i];
    return {};
}

Tensor BaseValues::of(const Node& input) {
    if (const auto fetched = fetch(); !fetched) m_remarks.push_back("inputs are made up: " + fetched.error().message);
    if (const auto found = m_known.find(input.name()); found != m_known.end()) return found->second;
    const TensorType* type = input.type().tensor();
    if (!type) return {};
    const auto sizes = numbersOf(type->sizes, hintedSymbols(*m_base));
    return sizes ? filledTensor(input.name(), 0, type->dtype, *sizes) : Tensor();
}

}  // namespace cutaway
