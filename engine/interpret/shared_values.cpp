#include "engine/interpret/shared_values.h"

#include <algorithm>

#include "engine/interpret/higher_order.h"
#include "engine/interpret/interpreter.h"
#include "engine/interpret/specialize.h"
#include "engine/ir/fingerprint.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/support/fault_points.h"

namespace cutaway {
namespace {

void addMeta(Hasher& hasher, const Tensor& tensor) {
    hasher.add(static_cast<int>(tensor.dtype())).add(static_cast<uint64_t>(tensor.sizes().size()));
    for (const int64_t size : tensor.sizes()) hasher.add(size);
    for (const int64_t stride : tensor.strides()) hasher.add(stride);
}

}  // namespace

class SharedValues::Run : public Interpreter {
  public:
    Run(SharedValues& shared, const Module& module, const InterpretOptions& options)
        : Interpreter(module, nullptr, options), m_shared(shared), m_keys(module.graph().idLimit()) {}

  protected:
    Tensor given(const Node& node, Tensor value) override {
        m_keys[index(node.id())] = m_shared.keyOf(value);
        return value;
    }

    Result<TensorList> compute(const Node& node) override {
        // A call of graphs is never shared: its bodies are not part of its key.
        const bool own = isHigherOrder(node.op().name());
        if (own || node.is(Tag::Random)) {
            Hasher hasher;
            const Hash128 content = keyOf(node);
            hasher.add(content.high).add(content.low).add(random().seed).add(random().draws);
            if (own) hasher.add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(this)));
            m_keys[index(node.id())] = hasher.finish();
            return Interpreter::compute(node);
        }
        const Hash128 key = keyOf(node);
        if (const auto found = m_shared.m_values.find(key); found != m_shared.m_values.end()) {
            ++m_shared.m_reused;
            return found->second;
        }
        CT_TRY(TensorList values, Interpreter::compute(node));
        m_shared.keep(key, values);
        return values;
    }

  private:
    /// Operands have run and have keys, but for symbolic numbers, which never get to compute() and get theirs here.
    Hash128 keyOf(const Node& node) {
        std::optional<Hash128>& key = m_keys[index(node.id())];
        if (!key) key = contentFingerprint(node, [this](const Node& operand) { return keyOf(operand); });
        return *key;
    }

    SharedValues& m_shared;
    std::vector<std::optional<Hash128>> m_keys;  // by id
};

Hash128 SharedValues::keyOf(const Tensor& given) {
    if (!given.defined()) return Hash128{};
    Hasher place;
    place.add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(given.storage().get()))).add(given.offset());
    addMeta(place, given);
    const Hash128 at = place.finish();
    if (const auto found = m_given.find(at); found != m_given.end()) return found->second;

    Hasher content;
    addMeta(content, given);
    const Tensor packed = given.contiguous();
    content.addBytes(packed.data(), static_cast<size_t>(packed.numel() * byteSize(packed.dtype())));
    const Hash128 key = content.finish();
    // Holding the tensor keeps its address from being reused for another one.
    const bool first =
        std::none_of(m_given.begin(), m_given.end(), [&](const auto& each) { return each.second == key; });
    if (first) {
        m_given.emplace(at, key);
        m_held.push_back(given);
    }
    return key;
}

void SharedValues::keep(const Hash128& key, const TensorList& values) {
    int64_t bytes = 0;
    for (const Tensor& value : values)
        if (value.defined() && !m_storages.contains(value.storage().get()))
            bytes += static_cast<int64_t>(value.storage()->size());
    if (bytes > m_bytesLeft) return;
    m_bytesLeft -= bytes;
    for (const Tensor& value : values)
        if (value.defined()) m_storages.insert(value.storage().get());
    m_values.emplace(key, values);
}

Result<std::vector<Tensor>> SharedValues::interpret(const Module& module, const std::vector<Tensor>& inputs,
                                                    const InterpretOptions& options) {
    const bool faulty = faultsAskedAt("op");
    const bool plain = inputs.size() == module.graph().placeholders().size() && freeSymbols(module).empty() &&
                       !hasTorchCalls(module) && !writesToMemory(module.graph());
    if (faulty || !plain) return cutaway::interpret(module, inputs, options);
    return Run(*this, module, options).run(inputs);
}

}  // namespace cutaway
