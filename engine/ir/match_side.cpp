#include "engine/ir/match_side.h"

#include <unordered_map>

#include "engine/support/hash.h"

namespace cutaway {
namespace {

MatchKey mixed(MatchKey a, MatchKey b) {
    MatchKey z = (a ^ (b * 0x9E3779B97F4A7C15ull)) + 0xC2B2AE3D27D4EB4Full;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/// Symbols have other names in other files, so a size that is not known counts as such.
void addSize(Hasher& hasher, const SymInt& size) {
    if (size.isInt()) hasher.add(size.value());
    else hasher.add(std::string_view("symbol"));
}

void addSizes(Hasher& hasher, const ValueType& type) {
    hasher.add(static_cast<int>(type.kind.index()));
    if (const TensorType* tensor = type.tensor()) {
        hasher.add(static_cast<int>(tensor->dtype)).add(static_cast<uint64_t>(tensor->sizes.size()));
        for (const SymInt& size : tensor->sizes) addSize(hasher, size);
    } else if (const SymType* symbol = type.sym()) {
        hasher.add(static_cast<int>(symbol->dtype));
    } else if (const TupleType* tuple = type.tuple()) {
        for (const ValueType& item : *tuple) addSizes(hasher, item);
    }
}

/// Literals and how operands are nested among them.
void addLiterals(Hasher& hasher, const Argument& argument) {
    hasher.add(static_cast<int>(argument.kind().index()));
    std::visit(
        [&](const auto& held) {
            using T = std::decay_t<decltype(held)>;
            if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
                hasher.add(held);
            else if constexpr (std::is_same_v<T, std::complex<double>>) hasher.add(held.real()).add(held.imag());
            else if constexpr (std::is_same_v<T, std::string>) hasher.add(std::string_view(held));
            else if constexpr (std::is_enum_v<T>) hasher.add(static_cast<int>(held));
            else if constexpr (std::is_same_v<T, OpRef>)
                hasher.add(std::string_view(held.op ? held.op->name() : std::string()));
            else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentSlice>>) {
                for (const Argument* part : {&held->start, &held->stop, &held->step}) addLiterals(hasher, *part);
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentDict>>) {
                for (const auto& [key, item] : held->items) {
                    hasher.add(std::string_view(key));
                    addLiterals(hasher, item);
                }
            } else if constexpr (std::is_same_v<T, std::shared_ptr<const ArgumentList>>) {
                hasher.add(static_cast<uint64_t>(held->items.size()));
                for (const Argument& item : held->items) addLiterals(hasher, item);
            }
        },
        argument.kind());
}

std::vector<bool> several(const std::vector<MatchKey>& keys) {
    std::unordered_map<MatchKey, int> counts;
    for (const MatchKey key : keys) ++counts[key];
    std::vector<bool> out;
    for (const MatchKey key : keys) out.push_back(counts[key] > 1);
    return out;
}

}  // namespace

MatchKeys matchKeys(const Node& node) {
    Hasher hasher;
    hasher.add(static_cast<int>(node.kind()));
    if (node.isCall()) hasher.add(std::string_view(node.op().name()));
    MatchKeys keys{};
    keys.op = keys.call = keys.label = hasher.finish().low;
    // What the output returns is what it reads, so its literals say nothing of which node it is.
    if (node.isOutput()) return keys;
    for (const Argument& argument : node.args()) addLiterals(hasher, argument);
    for (const auto& [key, argument] : node.kwargs()) {
        hasher.add(std::string_view(key));
        addLiterals(hasher, argument);
    }
    keys.call = hasher.finish().low;
    addSizes(hasher, node.type());
    keys.label = hasher.finish().low;
    return keys;
}

MatchSide::MatchSide(const Graph& graph) {
    std::unordered_map<const Node*, int> numbers;
    for (const Node& node : graph.nodes()) {
        numbers.emplace(&node, static_cast<int>(nodes.size()));
        nodes.push_back(&node);
        const MatchKeys keys = matchKeys(node);
        op.push_back(keys.op);
        call.push_back(keys.call);
        label.push_back(keys.label);
    }
    operands.resize(size());
    readers.resize(size());
    for (size_t i = 0; i < size(); ++i)
        nodes[i]->forEachInput([&](const Node* input) {
            const int read = numbers.at(input);
            readers[static_cast<size_t>(read)].push_back({static_cast<int>(i), static_cast<int>(operands[i].size())});
            operands[i].push_back(read);
        });
    addSurroundings();
}

void MatchSide::addSurroundings() {
    from = to = near = label;
    for (size_t i = 0; i < size(); ++i)
        for (const int read : operands[i]) from[i] = mixed(from[i], from[static_cast<size_t>(read)]);
    const auto addReaders = [&](MatchKey key, size_t node, const std::vector<MatchKey>& of) {
        MatchKey sum = 0;  // their order says nothing
        for (const Reader& reader : readers[node])
            sum += mixed(of[static_cast<size_t>(reader.node)], static_cast<MatchKey>(reader.slot));
        return mixed(key, sum);
    };
    for (size_t i = size(); i-- > 0;) to[i] = addReaders(to[i], i, to);
    constexpr int kSteps = 3;
    constexpr size_t kFew = 8;
    for (int step = 0; step < kSteps; ++step) {
        const std::vector<MatchKey> was = near;
        for (size_t i = 0; i < size(); ++i) {
            for (const int read : operands[i]) near[i] = mixed(near[i], was[static_cast<size_t>(read)]);
            // What all read, such as a mask, is near to all of them, and makes none of them near to another.
            if (readers[i].size() <= kFew) near[i] = addReaders(near[i], i, was);
        }
    }
    std::vector<MatchKey> placed = near;
    for (size_t i = 0; i < size(); ++i) {
        whole.push_back(mixed(from[i], to[i]));
        if (const auto& path = nodes[i]->provenance().modulePath)
            placed[i] = mixed(placed[i], std::hash<std::string>()(*path));
    }
    twin = several(whole);
    alikeNear = several(placed);
}

}  // namespace cutaway
