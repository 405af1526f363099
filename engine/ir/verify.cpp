#include "engine/ir/verify.h"

#include <array>
#include <bit>
#include <mutex>

#include "engine/ir/data_dependent.h"
#include "engine/ir/fingerprint.h"
#include "engine/ir/infer.h"
#include "engine/ir/unbacked_sizes.h"
#include "engine/support/hash.h"

namespace cutaway {
namespace {

/// Where the nodes of a graph stand, by address: an argument may lead to a node that no longer lives, so nothing is
/// read through a pointer that is not in here.
class Positions {
  public:
    explicit Positions(const Graph& graph) : m_entries(std::bit_ceil(graph.size() * 2 + 2)) {
        uint32_t position = 0;
        for (const Node& node : graph.nodes()) {
            Entry* entry = place(&node);
            *entry = {&node, position++};
        }
    }
    /// Nothing for a node that is not in the graph.
    std::optional<uint32_t> of(const Node* node) const {
        const Entry* entry = const_cast<Positions*>(this)->place(node);
        return entry->node ? std::optional(entry->position) : std::nullopt;
    }

  private:
    struct Entry {
        const Node* node = nullptr;
        uint32_t position = 0;
    };
    Entry* place(const Node* node) {
        size_t at = (reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15ull) >> 20;
        for (;; ++at) {
            Entry& entry = m_entries[at & (m_entries.size() - 1)];
            if (entry.node == nullptr || entry.node == node) return &entry;
        }
    }
    std::vector<Entry> m_entries;  // a power of two, at most half full
};

class Verifier {
  public:
    Verifier(const Module& module, const VerifyOptions& options, std::string path)
        : m_module(module),
          m_graph(module.graph()),
          m_options(options),
          m_path(std::move(path)),
          m_positions(module.graph()) {}

    Result<void> run() {
        CT_TRY_VOID(order());
        CT_TRY_VOID(users());
        for (const Node& node : m_graph.nodes()) {
            CT_TRY_VOID(name(node));
            CT_TRY_VOID(arguments(node));
            CT_TRY_VOID(subgraphs(node));
            CT_TRY_VOID(type(node));
        }
        if (m_options.functional) CT_TRY_VOID(functional());
        CT_TRY_VOID(specs());
        for (const auto& [key, body] : m_module.subgraphs)
            CT_TRY_VOID(Verifier(*body, m_options, m_path + key + "/").run());
        return {};
    }

  private:
    Error broken(const char* rule, const Node& node, std::string what) const {
        return Error{
            ErrorCode::Internal, std::string("verify (") + rule + "): " + std::move(what), m_path + node.name(), {}};
    }
    Error broken(const char* rule, std::string what) const {
        return Error{
            ErrorCode::Internal, std::string("verify (") + rule + "): " + std::move(what), m_path + m_module.name, {}};
    }
    bool usersAgree() const;

    Result<void> order();
    Result<void> users();
    Result<void> name(const Node& node);
    Result<void> arguments(const Node& node);
    Result<void> subgraphs(const Node& node);
    Result<void> subgraphsIn(const Node& node, const Argument& argument);
    Result<void> type(const Node& node);
    Result<void> functional();
    Result<void> specs();

    const Module& m_module;
    const Graph& m_graph;
    const VerifyOptions& m_options;
    std::string m_path;
    Positions m_positions;
};

Result<void> Verifier::order() {
    size_t outputs = 0;
    uint32_t position = 0;
    for (const Node& node : m_graph.nodes()) {
        const Node *late = nullptr, *gone = nullptr;
        node.forEachInput([&](const Node* input) {
            const auto stands = m_positions.of(input);
            if (!stands) gone = input;
            else if (*stands >= position) late = input;
        });
        if (gone) return broken("order", node, "reads a node that is not in the graph");
        if (late) return broken("order", node, "reads '" + late->name() + "', which stands after it");
        if (outputs > 0) return broken("order", node, "stands after the output");
        outputs += node.kind() == NodeKind::Output;
        ++position;
    }
    if (outputs == 0 || m_graph.outputNode() == nullptr) return broken("order", "there is no output");
    return {};
}

/// Whether arguments and user lists hold the same edges, by count and by the sum of a hash of each. Only a graph that
/// disagrees needs to be looked at edge by edge.
bool Verifier::usersAgree() const {
    const auto edge = [](const Node* value, const Node* reader) {
        return Hasher()
            .add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(value)))
            .add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(reader)))
            .finish();
    };
    uint64_t low = 0, high = 0;
    size_t read = 0, listed = 0;
    std::vector<const Node*> seen;
    for (const Node& node : m_graph.nodes()) {
        seen.clear();
        node.forEachInput([&](const Node* input) { seen.push_back(input); });
        if (seen.size() > 1) {
            std::sort(seen.begin(), seen.end());
            seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
        }
        for (const Node* input : seen) {
            const Hash128 hash = edge(input, &node);
            low += hash.low;
            high += hash.high;
            ++read;
        }
        for (const Node* user : node.users()) {
            const Hash128 hash = edge(&node, user);
            low -= hash.low;
            high -= hash.high;
            ++listed;
        }
    }
    return read == listed && low == 0 && high == 0;
}

Result<void> Verifier::users() {
    if (usersAgree()) return {};
    using Edge = std::pair<const Node*, const Node*>;  // value, reader
    std::vector<Edge> read, listed;
    for (const Node& node : m_graph.nodes()) {
        node.forEachInput([&](const Node* input) { read.emplace_back(input, &node); });
        for (const Node* user : node.users()) listed.emplace_back(&node, user);
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    std::sort(listed.begin(), listed.end());
    if (read == listed) return {};
    for (const Node& node : m_graph.nodes()) {
        for (const Node* user : node.users()) {
            if (!m_positions.of(user)) return broken("users", node, "lists a user that is not in the graph");
            if (!std::binary_search(read.begin(), read.end(), Edge(&node, user)))
                return broken("users", node, "lists '" + user->name() + "' as a user, which does not read it");
        }
        const Node* missing = nullptr;
        node.forEachInput([&](const Node* input) {
            if (!std::binary_search(listed.begin(), listed.end(), Edge(input, &node))) missing = input;
        });
        if (missing) return broken("users", *missing, "does not list its user '" + node.name() + "'");
    }
    return broken("users", "a user is listed twice");
}

Result<void> Verifier::name(const Node& node) {
    if (node.name().empty()) return broken("names", node, "a node has no name");
    if (m_graph.findByName(node.name()) != &node) return broken("names", node, "the name leads to another node");
    if (m_graph.find(node.id()) != &node)
        return broken("names", node, "the id " + std::to_string(index(node.id())) + " leads to another node");
    return {};
}

Result<void> Verifier::arguments(const Node& node) {
    if (!node.isCall() || node.op().schema() == nullptr) return {};
    const Schema& schema = *node.op().schema();
    if (node.args().size() != schema.params.size())
        return broken("arguments", node,
                      node.op().name() + " has " + std::to_string(schema.params.size()) + " parameters, the call " +
                          std::to_string(node.args().size()) + " arguments");
    if (!node.kwargs().empty()) return broken("arguments", node, "keywords of a known op are bound to its parameters");
    for (size_t i = 0; i < schema.params.size(); ++i)
        if (!accepts(schema.params[i], node.arg(i)))
            return broken("arguments", node,
                          node.op().name() + ": argument '" + schema.params[i].name + "' is of the wrong kind");
    return {};
}

Result<void> Verifier::subgraphsIn(const Node& node, const Argument& argument) {
    if (const auto* subgraph = argument.get<SubgraphRef>()) {
        if (m_module.subgraph(subgraph->name) == nullptr)
            return broken("subgraphs", node, "names the subgraph '" + subgraph->name + "', which does not exist");
    } else if (const auto* items = argument.list()) {
        for (const Argument& item : *items) CT_TRY_VOID(subgraphsIn(node, item));
    } else if (const auto* dict = argument.get<std::shared_ptr<const ArgumentDict>>()) {
        for (const auto& [key, item] : (*dict)->items) CT_TRY_VOID(subgraphsIn(node, item));
    }
    return {};
}
Result<void> Verifier::subgraphs(const Node& node) {
    for (const Argument& arg : node.args()) CT_TRY_VOID(subgraphsIn(node, arg));
    for (const auto& [key, arg] : node.kwargs()) CT_TRY_VOID(subgraphsIn(node, arg));
    return {};
}

std::string typeText(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) return tensor->fullText();
    if (const TupleType* tuple = type.tuple()) {
        std::string out = "(";
        for (const ValueType& item : *tuple) out += (out.size() > 1 ? ", " : "") + typeText(item);
        return out + ")";
    }
    return type.isNone() ? "None" : type.isOpaque() ? "opaque" : type.text();
}

/// Whether the recorded type says in other words what is inferred: PyTorch gives a size that follows from data a symbol
/// of its own (u1 rows of x[:u0]), and knows more conditions to hold.
bool namesInferred(const ValueType& recorded, const ValueType& inferred) {
    const TensorType *type = recorded.tensor(), *other = inferred.tensor();
    if (type && other)
        return type->dtype == other->dtype && type->device == other->device && type->strides == other->strides &&
               std::equal(type->sizes.begin(), type->sizes.end(), other->sizes.begin(), other->sizes.end(), namesSize);
    const SymType *number = recorded.sym(), *found = inferred.sym();
    if (!number || !found || !number->expr || !found->expr || number->dtype != found->dtype) return false;
    if (number->dtype == DType::Bool)
        return number->expr->kind == ExprKind::Bool && found->expr->kind != ExprKind::Bool;
    return namesSize(SymInt(number->expr), SymInt(found->expr));
}

Result<void> Verifier::type(const Node& node) {
    if (node.kind() == NodeKind::Output) return {};
    // A call that returns nothing (an assertion) has no type; values to be read have one.
    if (node.type().isNone() && (node.hasUsers() || !node.isCall())) return broken("types", node, "has no type");
    if (const TensorType* type = node.type().tensor(); type && type->strides.size() != type->sizes.size())
        return broken("types", node,
                      "has " + std::to_string(type->sizes.size()) + " sizes and " +
                          std::to_string(type->strides.size()) + " strides");
    if (!m_options.types || !node.isCall() || node.op().isOpaque()) return {};
    auto inferred = inferCall(node.op(), node.args());
    // Where values decide the size, the type that was written (with symbols of its own) stands.
    if (!inferred && sizeDependsOnData(node.op(), node.args())) return {};
    if (!inferred) return broken("types", node, inferred.error().message);
    const bool same = sameType(*inferred, node.type()), renamed = !same && namesInferred(node.type(), *inferred);
    if (!inferred->isOpaque() && !same && !renamed)
        return broken(
            "types", node,
            "is recorded as " + typeText(node.type()) + ", " + node.op().name() + " gives " + typeText(*inferred));
    if (renamed && node.type().tensor()) inferred->tensor()->sizes = node.type().tensor()->sizes;
    if (node.is(Tag::View) && !sameMemory(*inferred, node.type()))
        return broken("types", node,
                      "is recorded at another offset of its storage than " + node.op().name() + " gives");
    return {};
}

/// The value at the start of a chain of views.
const Node& viewedBy(const Node& node) {
    const Node* at = &node;
    while (at->isCall() && at->is(Tag::View) && !at->args().empty() && at->arg(0).node()) at = at->arg(0).node();
    return *at;
}

/// Copies back into inputs stand at the end: after one of them nobody reads that input, so that every reader of it
/// reads the value that the graph was called with. What reads other values may follow, as the views do that a capture
/// returns.
Result<void> Verifier::functional() {
    std::vector<std::pair<const Node*, const Node*>> written;  // input, the copy into it
    for (const Node& node : m_graph.nodes()) {
        if (node.isCall("aten.copy_.default") && node.arg(0).node() && node.arg(0).node()->isPlaceholder()) {
            written.emplace_back(node.arg(0).node(), &node);
            continue;
        }
        if (!node.isCall()) continue;
        if (node.op().mutates() && !writesForEffect(node.op()))
            return broken("functional", node, node.op().name() + " mutates its operand");
        if (written.empty()) continue;
        for (const Node* input : node.inputs()) {
            const Node& viewed = viewedBy(*input);
            for (const auto& [target, copy] : written)
                if (target == &viewed)
                    return broken("functional", node,
                                  "reads '" + target->name() + "' after '" + copy->name() + "' has written to it");
        }
    }
    return {};
}

Result<void> Verifier::specs() {
    const size_t placeholders = m_graph.placeholders().size(), outputs = m_graph.outputs().size();
    if (m_module.inputs.size() != placeholders)
        return broken("inputs", std::to_string(placeholders) + " placeholders, " +
                                    std::to_string(m_module.inputs.size()) + " input specs");
    if (m_module.outputs.size() != outputs)
        return broken("inputs", std::to_string(outputs) + " returned values, " +
                                    std::to_string(m_module.outputs.size()) + " output specs");
    return {};
}

}  // namespace

Result<void> verify(const Module& module, const VerifyOptions& options) { return Verifier(module, options, {}).run(); }

namespace {

/// "f32[2, 3]" twice where dtype or sizes differ; nothing where either is not known in numbers.
std::optional<std::pair<std::string, std::string>> disagreement(const ValueType& written, const ValueType& given) {
    const TupleType *items = written.tuple(), *others = given.tuple();
    for (size_t i = 0; items && others && i < std::min(items->size(), others->size()); ++i)
        if (auto found = disagreement((*items)[i], (*others)[i])) return found;
    const TensorType *type = written.tensor(), *other = given.tensor();
    if (!type || !other || !allInts(type->sizes) || !allInts(other->sizes)) return std::nullopt;
    if (type->dtype == other->dtype && type->sizes == other->sizes) return std::nullopt;
    return std::pair(type->text(), other->text());
}

/// Follows inputs of unknown type back to the first node whose own inputs all have known types.
const Node* unknownSource(const Node& value) {
    const Node* source = &value;
    for (const Node* next = source; next != nullptr;) {
        source = std::exchange(next, nullptr);
        source->forEachInput([&](const Node* input) {
            if (next == nullptr && !isKnown(input->type())) next = input;
        });
    }
    return source;
}

Result<void> checkCall(const Node& node, Calls wanted) {
    auto given = inferCall(node.op(), node.args());
    if (!given) {
        // Where values decide the size, the type that was written (with symbols of its own) stands.
        if (sizeDependsOnData(node.op(), node.args()) && isKnown(node.type())) return {};
        const Node* unknown = nullptr;
        node.forEachInput([&](const Node* input) { unknown = unknown || isKnown(input->type()) ? unknown : input; });
        if (wanted == Calls::Possible && (unknown || given.error().code == ErrorCode::Unsupported)) return {};
        if (const Node* source = unknown ? unknownSource(*unknown) : nullptr;
            source && source->kind() == NodeKind::GetAttr)
            return unsupported("depends on self." + source->target() + ", which the file names and does not hold",
                               node.name(), {"open the log or the trace of the run: it has the bodies of calls, too"});
        if (unknown && unknown->isCall() && unknown->op().isOpaque())
            return unsupported(
                "reads what " + unknown->op().name() + " gives, an operator that is not in Cutaway's tables",
                node.name(), {"it can be shown, not run"});
        Error error = std::move(given.error());
        error.where = node.name();
        return error;
    }
    const auto differ = wanted == Calls::Computable ? disagreement(node.type(), *given) : std::nullopt;
    if (differ)
        return invalidInput("is written as " + differ->first + ", and " + node.op().name() + " gives " + differ->second,
                            node.name());
    return {};
}

/// Whether a body is an autocast region: its calls may mix precisions until the pass that applies autocast casts them.
bool isUnderAutocast(const Module& module, const std::string& body) {
    const auto names = [&](const Argument& arg) {
        return arg.get<SubgraphRef>() && arg.get<SubgraphRef>()->name == body;
    };
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && node.op().name().starts_with("higher_order.wrap_with_autocast") &&
            std::any_of(node.args().begin(), node.args().end(), names))
            return true;
    return false;
}

Result<void> checkEach(const Module& module, Calls wanted) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && !node.op().isOpaque()) CT_TRY_VOID(checkCall(node, wanted));
    for (const auto& [name, body] : module.subgraphs)
        if (!isUnderAutocast(module, name)) CT_TRY_VOID(checkEach(*body, wanted));
    return {};
}

/// The last graphs that were accepted. One graph is compiled again and again, and asking all its operators takes longer
/// than many a pass.
class Accepted {
  public:
    bool has(const Hash128& graph) {
        const std::lock_guard lock(m_mutex);
        return std::find(m_last.begin(), m_last.end(), graph) != m_last.end();
    }
    void add(const Hash128& graph) {
        const std::lock_guard lock(m_mutex);
        m_last[m_next++ % m_last.size()] = graph;
    }

  private:
    std::mutex m_mutex;
    std::array<Hash128, 8> m_last{};
    size_t m_next = 0;
};

}  // namespace

Result<void> checkCalls(const Module& module, Calls wanted) {
    if (wanted != Calls::Possible) return checkEach(module, wanted);
    static Accepted accepted;
    const Hash128 graph = fingerprint(module);
    if (accepted.has(graph)) return {};
    CT_TRY_VOID(checkEach(module, wanted));
    accepted.add(graph);
    return {};
}

bool writesForEffect(const Op& op) {
    return op.mutates() && !op.isOpaque() && op.functional() == nullptr && op.schema()->returns.empty();
}

bool sameMemory(const ValueType& a, const ValueType& b) {
    if (!sameType(a, b)) return false;
    if (const TensorType* type = a.tensor()) return type->offset == b.tensor()->offset;
    const TupleType *one = a.tuple(), *other = b.tuple();
    for (size_t i = 0; one && i < one->size(); ++i)
        if (!sameMemory((*one)[i], (*other)[i])) return false;
    return true;
}

}  // namespace cutaway
