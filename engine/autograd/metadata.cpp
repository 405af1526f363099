#include "engine/autograd/metadata.h"

#include <algorithm>
#include <map>

#include "engine/autograd/functionalize.h"

namespace cutaway {
namespace {

/// The value's memory, up to the node that owns it, and whether a view of several results lies between.
struct Chain {
    const Node* base = nullptr;
    std::vector<const Node*> views;  // outermost first
    bool severalResults = false;
};
Chain chainOf(const Node& value) {
    Chain chain{&value, {}, false};
    for (;;) {
        const Node& node = *chain.base;
        const bool item = node.isCall("operator.getitem");
        const Node* const up = node.isCall() && !node.args().empty() ? node.arg(0).node() : nullptr;
        const bool part = item && up && up->is(Tag::View) && up->type().tuple();
        if (up == nullptr || !(part || node.is(Tag::View))) return chain;
        chain.severalResults |= part;
        chain.views.push_back(&node);
        chain.base = up;
    }
}

bool isProgramResult(const OutputSpec& spec) {
    return spec.kind == OutputSpec::Kind::UserOutput || spec.kind == OutputSpec::Kind::Loss;
}
OutputSpec specAt(const Module& module, size_t position) {
    return position < module.outputs.size() ? module.outputs[position] : OutputSpec{};
}

}  // namespace

std::string_view nameOf(OutputAlias alias) {
    switch (alias) {
        case OutputAlias::NonAlias: return "non_alias";
        case OutputAlias::AliasOfInput: return "alias_of_input";
        case OutputAlias::IsInput: return "is_input";
        case OutputAlias::UnsafeViewAlias: return "unsafe_view_alias";
    }
    return {};
}

std::vector<OutputMemory> outputMemory(const Module& module, const std::vector<bool>& flow) {
    const std::vector<Argument> values = module.graph().outputs();
    std::vector<Chain> chains(values.size());
    std::map<const Node*, bool> oneResult;  // inputs of which a view by an operator of one result is returned
    for (size_t i = 0; i < values.size(); ++i) {
        if (values[i].node() == nullptr || values[i].node()->type().tensor() == nullptr) continue;
        if (!isProgramResult(specAt(module, i))) continue;
        chains[i] = chainOf(*values[i].node());
        if (isFinalCopy(*chains[i].base)) chains[i].base = chains[i].base->arg(0).node();
        if (!chains[i].severalResults) oneResult[chains[i].base] = true;
    }
    std::vector<OutputMemory> found(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        const Chain& chain = chains[i];
        if (chain.base == nullptr) continue;
        OutputMemory& out = found[i];
        out.views.assign(chain.views.rbegin(), chain.views.rend());
        const bool flows = flow[index(values[i].node()->id())];
        if (chain.base->isPlaceholder()) {
            out.input = chain.base;
            // PyTorch differentiates parts of an input like any other value if nothing else of it is returned.
            if (flows && chain.severalResults && !oneResult.contains(chain.base)) out.alias = OutputAlias::NonAlias;
            else out.alias = chain.views.empty() ? OutputAlias::IsInput : OutputAlias::AliasOfInput;
        } else if (!chain.views.empty() && flows) {
            out.alias = OutputAlias::UnsafeViewAlias;
        }
    }
    return found;
}

bool isNewValueOfInput(const OutputSpec& spec) {
    return spec.kind == OutputSpec::Kind::InputMutation || spec.kind == OutputSpec::Kind::ParameterMutation;
}

bool getsTangent(const Argument& value, const OutputSpec& spec, const OutputMemory& memory,
                 const std::vector<bool>& flow) {
    const Node* node = value.node();
    if (node == nullptr || node->type().tensor() == nullptr || !flow[index(node->id())]) return false;
    switch (spec.kind) {
        case OutputSpec::Kind::UserOutput:
        case OutputSpec::Kind::Loss:
            return memory.alias == OutputAlias::NonAlias || memory.alias == OutputAlias::UnsafeViewAlias;
        case OutputSpec::Kind::ParameterMutation:
        case OutputSpec::Kind::InputMutation: return true;
        case OutputSpec::Kind::BufferMutation:
        case OutputSpec::Kind::Gradient:
        case OutputSpec::Kind::Saved:
        case OutputSpec::Kind::ForwardTangent:
        case OutputSpec::Kind::Token: return false;
    }
    return false;
}

namespace {

/// Bytes from the start of the storage to behind the last element that a tensor reaches.
std::pair<int64_t, int64_t> bytesOf(const Tensor& tensor) {
    const int64_t item = byteSize(tensor.dtype());
    return {tensor.offset() * item, extent(tensor.sizes(), tensor.strides(), tensor.offset()) * item};
}
bool overlap(const Tensor& a, const Tensor& b) {
    if (a.storage() != b.storage() || a.numel() == 0 || b.numel() == 0) return false;
    const auto [beginA, endA] = bytesOf(a);
    const auto [beginB, endB] = bytesOf(b);
    return beginA < endB && beginB < endA;
}

}  // namespace

Result<void> checkWrittenInputs(const Module& module, const std::vector<Tensor>& bound) {
    const std::vector<Node*> placeholders = module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size() && i < bound.size(); ++i) {
        if (!bound[i].defined() || !isWrittenAtEnd(*placeholders[i])) continue;
        for (size_t other = 0; other < placeholders.size() && other < bound.size(); ++other)
            if (other != i && bound[other].defined() && placeholders[other]->hasUsers() &&
                overlap(bound[i], bound[other]))
                return Error{ErrorCode::Unsupported,
                             "the graph writes to '" + placeholders[i]->name() + "', whose memory is also that of '" +
                                 placeholders[other]->name() +
                                 "': a graph without writes in between cannot say what the other one is then",
                             placeholders[i]->name(),
                             {"give each of them memory of its own (clone() one of them)"}};
    }
    return {};
}

Result<void> checkWrittenInputs(const Module& module) {
    std::vector<Tensor> bound(module.graph().placeholders().size());
    for (size_t i = 0; i < bound.size() && i < module.inputs.size(); ++i)
        if (const auto found = module.tensors.find(module.inputs[i].target); found != module.tensors.end())
            bound[i] = found->second;
    return checkWrittenInputs(module, bound);
}

}  // namespace cutaway
