#include "engine/ir/fingerprint.h"

#include "engine/support/check.h"

namespace cutaway {
namespace {

void add(Hasher& hasher, const SymInt& value) {
    if (value.isInt()) hasher.add(value.value());
    else hasher.add(true).add(value.expr()->hash);
}

void add(Hasher& hasher, const ValueType& type) {
    hasher.add(static_cast<int>(type.kind.index()));
    if (const TensorType* tensor = type.tensor()) {
        hasher.add(static_cast<int>(tensor->dtype))
            .add(static_cast<int>(tensor->device.type))
            .add(static_cast<int>(tensor->device.index));
        hasher.add(static_cast<int>(tensor->layout)).add(static_cast<uint64_t>(tensor->sizes.size()));
        for (const SymInt& size : tensor->sizes) add(hasher, size);
        for (const SymInt& stride : tensor->strides) add(hasher, stride);
        add(hasher, tensor->offset);
    } else if (const SymType* symbol = type.sym()) {
        hasher.add(static_cast<int>(symbol->dtype)).add(symbol->expr ? symbol->expr->hash : 0);
    } else if (const TupleType* tuple = type.tuple()) {
        hasher.add(static_cast<uint64_t>(tuple->size()));
        for (const ValueType& item : *tuple) add(hasher, item);
    }
}

void add(Hasher& hasher, const Op& op) { hasher.add(std::string_view(op.name())).add(static_cast<int>(op.style())); }

void addId(Hasher& hasher, const Node& operand) { hasher.add(static_cast<uint64_t>(index(operand.id()))); }

/// `addNode`: what stands for an argument that is a node.
template <class AddNode>
void add(Hasher& hasher, const Argument& argument, const AddNode& addNode) {
    hasher.add(static_cast<int>(argument.kind().index()));
    std::visit(
        [&](const auto& held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, Node*>) addNode(hasher, *held);
            else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
                hasher.add(held);
            else if constexpr (std::is_same_v<T, std::complex<double>>) hasher.add(held.real()).add(held.imag());
            else if constexpr (std::is_same_v<T, std::string>) hasher.add(std::string_view(held));
            else if constexpr (std::is_enum_v<T>) hasher.add(static_cast<int>(held));
            else if constexpr (std::is_same_v<T, Device>)
                hasher.add(static_cast<int>(held.type)).add(static_cast<int>(held.index));
            else if constexpr (std::is_same_v<T, Expr>) hasher.add(held->hash);
            else if constexpr (std::is_same_v<T, SubgraphRef>) hasher.add(std::string_view(held.name));
            else if constexpr (std::is_same_v<T, OpRef>) {
                if (held.op) add(hasher, *held.op);
            } else if constexpr (std::is_same_v<T, LostTensor>) hasher.add(std::string_view(held.text));
            else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentSlice>>) {
                add(hasher, held->start, addNode);
                add(hasher, held->stop, addNode);
                add(hasher, held->step, addNode);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentDict>>) {
                hasher.add(static_cast<uint64_t>(held->items.size()));
                for (const auto& [key, item] : held->items) {
                    hasher.add(std::string_view(key));
                    add(hasher, item, addNode);
                }
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentList>>) {
                hasher.add(held->tuple).add(static_cast<uint64_t>(held->items.size()));
                for (const Argument& item : held->items) add(hasher, item, addNode);
            }
        },
        argument.kind());
}

template <class AddNode>
void addContent(Hasher& hasher, const Node& node, const AddNode& addNode) {
    hasher.add(static_cast<int>(node.kind())).add(std::string_view(node.target()));
    if (node.isCall()) add(hasher, node.op());
    hasher.add(static_cast<uint64_t>(node.args().size()));
    for (const Argument& arg : node.args()) add(hasher, arg, addNode);
    for (const auto& [key, arg] : node.kwargs()) {
        hasher.add(std::string_view(key));
        add(hasher, arg, addNode);
    }
    add(hasher, node.type());
}

void add(Hasher& hasher, const Tensor& tensor) {
    hasher.add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(tensor.storage().get())));
    hasher.add(static_cast<int>(tensor.dtype())).add(tensor.offset()).add(static_cast<uint64_t>(tensor.sizes().size()));
    hasher.add(static_cast<int>(tensor.device().type)).add(static_cast<int>(tensor.device().index));
    for (int64_t size : tensor.sizes()) hasher.add(size);
    for (int64_t stride : tensor.strides()) hasher.add(stride);
}

/// One lane and one multiplication for eight letters: names are most of what a fingerprint reads.
uint64_t quickHash(std::string_view text) {
    uint64_t hash = text.size();
    const auto take = [&](const char* letters, size_t count) {
        uint64_t word = 0;
        std::memcpy(&word, letters, count);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 29;
    };
    for (; text.size() >= 8; text.remove_prefix(8)) take(text.data(), 8);
    if (!text.empty()) take(text.data(), text.size());
    return hash;
}

void add(Hasher& hasher, const Module& module) {
    hasher.add(static_cast<uint64_t>(module.graph().size()));
    for (const Node& node : module.graph().nodes()) {
        const Hash128 content = contentFingerprint(node);
        hasher.add(content.high ^ quickHash(node.name())).add(content.low ^ (uint64_t{index(node.id())} << 16));
    }
    hasher.add(static_cast<uint64_t>(module.inputs.size()));
    for (const InputSpec& spec : module.inputs) {
        hasher.add(static_cast<int>(spec.kind)).add(std::string_view(spec.target)).add(spec.persistent);
        add(hasher, spec.constant, addId);
    }
    hasher.add(static_cast<uint64_t>(module.outputs.size()));
    for (const OutputSpec& spec : module.outputs)
        hasher.add(static_cast<int>(spec.kind)).add(std::string_view(spec.target));
    hasher.add(static_cast<uint64_t>(module.tensors.size()));
    for (const auto& [name, tensor] : module.tensors) {
        hasher.add(std::string_view(name));
        add(hasher, tensor);
    }
    hasher.add(static_cast<uint64_t>(module.recipes.size()));
    for (const auto& [name, recipe] : module.recipes)
        hasher.add(std::string_view(name)).add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(recipe.get())));
    for (const auto& [name, info] : module.symbols) {
        hasher.add(std::string_view(name));
        for (const auto& bound : {info.lower, info.upper, info.hint})
            hasher.add(bound.has_value()).add(bound.value_or(0));
    }
    hasher.add(static_cast<uint64_t>(module.subgraphs.size()));
    for (const auto& [name, body] : module.subgraphs) {
        hasher.add(std::string_view(name));
        add(hasher, *body);
    }
    hasher.add(module.plan != nullptr);
    if (module.plan) {
        const Hash128 planned = module.plan->fingerprint();
        hasher.add(planned.high).add(planned.low);
    }
}

}  // namespace

Hash128 fingerprint(const Module& module) {
    Hasher hasher;
    add(hasher, module);
    return hasher.finish();
}

Hash128 contentFingerprint(const Node& node) {
    const auto known = node.contentHash().get();
#ifdef NDEBUG
    if (known) return *known;
#endif
    Hasher hasher;
    addContent(hasher, node, addId);
    const Hash128 content = hasher.finish();
    CT_CHECK(!known || *known == content, "every edit of a node forgets its hash");
    node.contentHash().set(content);
    return content;
}

Hash128 contentFingerprint(const Node& node, const std::function<Hash128(const Node&)>& of) {
    Hasher hasher;
    addContent(hasher, node, [&](Hasher& into, const Node& operand) {
        const Hash128 key = of(operand);
        into.add(key.high).add(key.low);
    });
    return hasher.finish();
}

void addTo(Hasher& hasher, const ValueType& type) { add(hasher, type); }
void addTo(Hasher& hasher, const SymInt& value) { add(hasher, value); }

}  // namespace cutaway
