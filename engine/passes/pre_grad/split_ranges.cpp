// split_cat_pass and unbind_stack_pass: neighbouring parts that are joined again.
#include "engine/passes/pre_grad/split_cat.h"
#include "engine/passes/pre_grad/split_parts.h"

namespace cutaway {
namespace {

using namespace pregrad;

struct Range {
    int64_t first = 0, last = 0;  // part numbers, both included
    bool operator==(const Range&) const = default;
};
/// One operand of a reader: a run of parts, or some other value.
struct Input {
    Node* other = nullptr;
    Range range;
};
struct Reader {
    Node* node = nullptr;
    bool cat = false, stack = false;
    int64_t dim = 0;            // of the joined tensor
    std::vector<Input> inputs;  // operands of cat or stack; of other readers, each part that they read
};

bool isJoin(const Node& node) { return isFunction(node, {"torch.cat", "torch.stack"}); }

/// Who reads the parts, in the order in which they are met.
std::vector<Node*> readersOf(const Node& split) {
    std::vector<Node*> readers;
    for (const Node* part : split.users())
        for (Node* reader : part->users())
            if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
    return readers;
}

std::optional<Reader> describe(Node& node, const Node& split) {
    Reader reader{&node, isFunction(node, {"torch.cat"}), isFunction(node, {"torch.stack"}), 0, {}};
    const auto ownPart = [&](Node* input) {
        return input && input->isCall("operator.getitem") && input->arg(0).node() == &split ? partNumber(*input)
                                                                                            : std::nullopt;
    };
    if (!isJoin(node)) {
        for (Node* input : node.inputs())
            if (const auto number = ownPart(input)) reader.inputs.push_back({nullptr, {*number, *number}});
        return reader;
    }
    const Argument* tensors = argument(node, 0, "tensors");
    const TensorType* type = tensorType(&node);
    const auto dim = type ? wrappedDim(argument(node, 1, "dim"), type->rank()) : std::nullopt;
    if (!tensors || !tensors->list() || !dim) return std::nullopt;
    reader.dim = *dim;
    for (const Argument& item : *tensors->list()) {
        const auto number = ownPart(item.node());
        if (!item.node()) return std::nullopt;
        Input* last = reader.inputs.empty() ? nullptr : &reader.inputs.back();
        if (number && last && !last->other && last->range.last + 1 == *number) last->range.last = *number;
        else reader.inputs.push_back(number ? Input{nullptr, {*number, *number}} : Input{item.node(), {}});
    }
    return reader;
}

/// The runs that stay apart, with the gaps between them; nothing if runs overlap or nothing is gained.
std::optional<std::vector<Range>> mergedRanges(const std::vector<Reader>& readers, int64_t parts, const Refusing& no) {
    std::vector<Range> ranges;
    for (const Reader& reader : readers)
        for (const Input& input : reader.inputs)
            if (!input.other && std::find(ranges.begin(), ranges.end(), input.range) == ranges.end())
                ranges.push_back(input.range);
    if (ranges.empty()) {
        no("nobody reads its parts");
        return std::nullopt;
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    std::vector<Range> filled;
    int64_t next = 0;
    for (const Range& range : ranges) {
        if (range.first < next) {
            no("its readers need runs that overlap: up to part ", next - 1, ", and from part ", range.first,
               " to part ", range.last);
            return std::nullopt;
        }
        if (range.first > next) filled.push_back({next, range.first - 1});
        filled.push_back(range);
        next = range.last + 1;
    }
    if (next < parts) filled.push_back({next, parts - 1});
    if (static_cast<int64_t>(filled.size()) == parts) {
        no("no two neighbouring ones of its ", parts, " parts are always joined");
        return std::nullopt;
    }
    return filled;
}

/// Writes one joined tensor anew. `whole` has the value of each run.
class Joiner {
  public:
    Joiner(Rewriter& rewriter, const Reader& reader, const NormalSplit& split, bool unbind)
        : m_builder(rewriter, *reader.node, *reader.node), m_reader(reader), m_split(split), m_unbind(unbind) {}

    template <class Whole>
    Node& join(Whole&& whole) {
        for (const Input& input : m_reader.inputs) {
            if (input.other && raises()) {
                m_toStack.emplace_back(input.other);
                continue;
            }
            flush();
            m_joined.emplace_back(input.other ? input.other : &moved(*whole(input.range), input.range));
        }
        flush();
        Node* out = m_joined.back().node();
        if (m_joined.size() > 1) out = &m_builder.function("torch.cat", {Argument(m_joined)}, {{"dim", m_reader.dim}});
        if (m_reader.cat && !m_unbind && m_split.dim != m_reader.dim)
            out = &m_builder.function("torch.flatten", {Argument(out), m_reader.dim, m_reader.dim + 1});
        return *out;
    }

  private:
    /// Other operands get the dim along which the parts are stacked.
    bool raises() const { return m_reader.stack || (!m_unbind && m_split.dim != m_reader.dim); }
    void flush() {
        if (m_toStack.empty()) return;
        m_joined.emplace_back(
            &m_builder.function("torch.stack", {Argument(std::exchange(m_toStack, {}))}, {{"dim", m_reader.dim}}));
    }
    Node& moved(Node& whole, const Range& range) {
        Node* out = &whole;
        if (!m_unbind && m_reader.cat && m_split.dim == m_reader.dim) return *out;
        if (!m_unbind) {
            ArgumentList shape{{Argument(range.last - range.first + 1), Argument(-1)}, true};
            out = &m_builder.function("torch.unflatten", {Argument(out), m_split.dim, Argument(std::move(shape))});
        }
        if (m_split.dim != m_reader.dim)
            out = &m_builder.function("torch.movedim", {Argument(out), m_split.dim, m_reader.dim});
        if (m_unbind && m_reader.cat)
            out = &m_builder.function("torch.flatten", {Argument(out), m_reader.dim, m_reader.dim + 1});
        return *out;
    }

    TorchBuilder m_builder;
    const Reader& m_reader;
    const NormalSplit& m_split;
    bool m_unbind;
    std::vector<Argument> m_joined, m_toStack;
};

/// Whether the joined tensors can be written with whole runs.
bool canJoin(const std::vector<Reader>& readers, const NormalSplit& split, const Node& node, bool unbind,
             const Refusing& no) {
    for (const Reader& reader : readers) {
        if (!reader.cat && !reader.stack) continue;
        const bool moves = reader.stack || split.dim != reader.dim;
        for (const Input& input : reader.inputs) {
            if (!input.other && moves && !unbind)
                for (int64_t part = input.range.first; part <= input.range.last; ++part)
                    if (const int64_t first = split.sizes[static_cast<size_t>(input.range.first)],
                        size = split.sizes[static_cast<size_t>(part)];
                        size != first)
                        return no.about(reader.node, *reader.node, " joins parts of sizes ", first, " and ", size,
                                        " along another dim than they are split along");
            // Operands that are stacked with the parts have their sizes.
            const TensorType *other = tensorType(input.other), *part = tensorType(node.users()[0]);
            if (input.other && moves && !unbind && (!other || !part || !(other->sizes == part->sizes)))
                return no.about(input.other, *reader.node, " joins parts with ", NodeWithKind{input.other},
                                ", whose sizes are not theirs, along another dim than they are split along");
        }
    }
    return true;
}

bool simplify(Node& node, const NormalSplit& split, bool unbind, std::string_view rule, Rewriter& rewriter) {
    const Refusing no(rewriter, rule, node);
    std::vector<Reader> readers;
    for (Node* each : readersOf(node)) {
        auto reader = describe(*each, node);
        if (!reader)
            return no.about(each, *each, " joins its parts, but what it joins, or along which dim, is not known");
        readers.push_back(std::move(*reader));
    }
    const auto ranges = mergedRanges(readers, static_cast<int64_t>(split.sizes.size()), no);
    if (!ranges) return false;
    if (unbind && ranges->size() != 1)
        return no("its readers need ", ranges->size(), " runs of its items, not all of them together");
    if (!canJoin(readers, split, node, unbind, no)) return false;
    if (rewriter.begin(rule, node, "neighbouring parts are joined again, and nothing else splits them") != Go::Yes)
        return false;

    Graph& graph = node.graph();
    const std::vector<Node*> parts = node.users();
    TorchBuilder builder(rewriter, node, node);
    std::vector<Node*> wholes = {split.input};
    if (ranges->size() > 1) {
        std::vector<Argument> sizes;
        for (const Range& range : *ranges) sizes.emplace_back(split.begin(range.last + 1) - split.begin(range.first));
        Node& fewer = builder.function("torch.functional.split", {Argument(split.input), Argument(std::move(sizes))},
                                       {{"dim", split.dim}});
        wholes.clear();
        for (size_t i = 0; i < ranges->size(); ++i) wholes.push_back(&builder.item(fewer, static_cast<int64_t>(i)));
    }
    const auto whole = [&](const Range& range) {
        return wholes[static_cast<size_t>(std::find(ranges->begin(), ranges->end(), range) - ranges->begin())];
    };
    std::vector<Node*> joins;
    for (const Reader& reader : readers) {
        if (reader.cat || reader.stack) {
            graph.replaceUses(*reader.node, Joiner(rewriter, reader, split, unbind).join(whole));
            joins.push_back(reader.node);
            continue;
        }
        for (Node* part : parts)
            if (std::find(part->users().begin(), part->users().end(), reader.node) != part->users().end())
                graph.replaceInput(*reader.node, *part, *whole({*partNumber(*part), *partNumber(*part)}));
    }
    for (Node* join : joins)
        if (!join->hasUsers()) graph.erase(*join);
    eraseUnread(graph, parts);  // the new split keeps an item for every run, read or not, as in PyTorch
    return true;
}

/// The first split whose part a concatenation reads.
Node* splitBehind(const Node& join, std::string_view function) {
    const Argument* tensors = argument(join, 0, "tensors");
    if (!tensors || !tensors->list()) return nullptr;
    for (const Argument& item : *tensors->list()) {
        Node* part = item.node();
        Node* split = part && part->isCall("operator.getitem") ? part->arg(0).node() : nullptr;
        if (split && (function.empty() ? normalSplit(*split).has_value() : isFunction(*split, {function})))
            return split;
    }
    return nullptr;
}

/// squeeze of every part of size one is an item of unbind.
bool unbindSqueezed(Node& split, Rewriter& rewriter) {
    const Refusing no(rewriter, "split_cat_pass", split);
    const auto facts = normalSplit(split, no);
    if (!facts) return false;
    if (!split.hasUsers()) return no("nobody reads it");
    for (const int64_t size : facts->sizes)
        if (size != 1)
            return no("its parts are joined by no torch.cat or torch.stack, and are not squeezed either: one has size ",
                      size, " along dim ", facts->dim);
    std::vector<std::pair<int64_t, Node*>> squeezes;
    for (const Node* part : split.users()) {
        Node* squeeze = onlyUser(*part);
        if (!squeeze || !isFunction(*squeeze, {"torch.squeeze"}) || integer(argument(*squeeze, 1, "dim")) != facts->dim)
            return no.about(part, "its part ", *part,
                            " is neither joined by a torch.cat or torch.stack nor read just by a torch.squeeze of dim ",
                            facts->dim);
        squeezes.emplace_back(*partNumber(*part), squeeze);
    }
    if (rewriter.begin("split_cat_pass", split, "parts of size one whose dim is squeezed away") != Go::Yes)
        return false;
    Graph& graph = split.graph();
    const std::vector<Node*> parts = split.users();
    TorchBuilder builder(rewriter, split, split);
    Node& unbind = builder.function("torch.unbind", {Argument(facts->input)}, {{"dim", facts->dim}});
    std::sort(squeezes.begin(), squeezes.end());
    for (const auto& [number, squeeze] : squeezes) rewriter.replace(*squeeze, builder.item(unbind, number));
    eraseUnread(graph, parts);
    return true;
}

Result<bool> splitCatIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<NodeId> order;
    for (const Node& node : graph.nodes()) order.push_back(node.id());
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        Node* node = graph.find(*at);
        if (node == nullptr) continue;
        if (isJoin(*node)) {
            Node* split = splitBehind(*node, {});
            if (split) changed |= simplify(*split, *normalSplit(*split), false, "split_cat_pass", rewriter);
        } else if (isFunction(*node, {"torch.functional.split", "torch.split"})) {
            changed |= unbindSqueezed(*node, rewriter);
        }
    }
    return changed;
}

constexpr std::string_view kUnbind = "unbind_stack_pass";

/// An unbind all of whose items are read, in order.
std::optional<NormalSplit> normalRangeUnbind(const Node& node, const Refusing& no) {
    const TupleType* items = node.type().tuple();
    NormalSplit out;
    out.input = operand(node, 0, "input");
    if (!items || !tensorType(out.input)) {
        no("how many items it has is not known");
        return std::nullopt;
    }
    if (node.users().size() != items->size()) {
        no("it has ", items->size(), " items, but ", node.users().size(), " readers");
        return std::nullopt;
    }
    const auto dim = wrappedDim(argument(node, 1, "dim"), tensorType(out.input)->rank());
    int64_t next = 0;
    for (const Node* user : node.users())
        if (partNumber(*user) != next++) {
            no.about(user, "its items are not all read once and in order: ", *user, " is not item ", next - 1);
            return std::nullopt;
        }
    if (!dim) {
        no("its dim is not a number in range");
        return std::nullopt;
    }
    out.dim = *dim;
    out.rank = tensorType(out.input)->rank();
    out.sizes.assign(items->size(), 1);
    return out;
}

Result<bool> unbindStackIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<NodeId> order;
    for (const Node& node : graph.nodes()) order.push_back(node.id());
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        Node* node = graph.find(*at);
        if (node == nullptr) continue;
        if (isFunction(*node, {"torch.unbind"}))
            rewriter.refuse(kUnbind, *node, "no torch.cat or torch.stack joins its items, first of all that it joins");
        if (!isJoin(*node)) continue;
        Node* unbind = splitBehind(*node, "torch.unbind");
        const auto facts = unbind ? normalRangeUnbind(*unbind, {rewriter, kUnbind, *unbind}) : std::nullopt;
        if (facts) changed |= simplify(*unbind, *facts, true, kUnbind, rewriter);
    }
    return changed;
}

}  // namespace

Result<bool> splitCatPass(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, splitCatIn); }
Result<bool> unbindStackPass(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, unbindStackIn);
}

}  // namespace cutaway
