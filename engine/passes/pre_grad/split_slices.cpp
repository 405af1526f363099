// Runs of neighbouring parts inside longer concatenations and stacks, read as one slice of what was cut. PyTorch's
// passes of these names permute with a single swap of two dims, which gives other numbers where a dim lies between
// them, or where the parts are items that are stacked along another dim or reshaped: there nothing is rewritten, except
// with parity. The list of operands is written anew as PyTorch writes it (Collector); where that loses an operand,
// takes one twice or from another cut, or where the dims of split and concatenation differ, the result would have
// another shape, and nothing is rewritten at all. Nor do slices stay that PyTorch makes before it finds that a list
// does not get shorter.
#include "engine/passes/pre_grad/split_cat.h"
#include "engine/passes/pre_grad/split_parts.h"

namespace cutaway {
namespace {

using namespace pregrad;

/// How one of the passes works.
struct Family {
    std::string_view rule, join, cut;  // "torch.cat", "torch.unbind"
    bool unbind, reshaped = false;     // reshaped: each part goes through torch.reshape first
};

/// A split or unbind, as far as these passes care.
struct Cut {
    Node* input = nullptr;
    std::vector<int64_t> sizes;
    int64_t dim = 0;
};
std::optional<Cut> cutOf(const Node& node, const Family& family) {
    if (!family.unbind) {
        const auto split = normalSplit(node);
        return split ? std::optional(Cut{split->input, split->sizes, split->dim}) : std::nullopt;
    }
    const auto* items = node.type().tuple();
    Cut cut{operand(node, 0, "input"), {}, 0};
    if (!isFunction(node, {"torch.unbind"}) || !items || !tensorType(cut.input)) return std::nullopt;
    const auto dim = wrappedDim(argument(node, 1, "dim"), tensorType(cut.input)->rank());
    if (!dim) return std::nullopt;
    cut.sizes.assign(items->size(), 1);
    cut.dim = *dim;
    return cut;
}

/// What an operand is: a part of a cut of the family, or some other value (`cut` null).
struct Source {
    Node* cut = nullptr;
    int64_t number = 0;
    Node* node = nullptr;  // of other values only
    auto operator<=>(const Source&) const = default;
};
Source sourceOf(Node* operand, const Family& family) {
    Node* cut = operand->isCall("operator.getitem") ? operand->arg(0).node() : nullptr;
    const bool ofFamily = cut && (family.unbind ? isFunction(*cut, {"torch.unbind"})
                                                : isFunction(*cut, {"torch.functional.split", "torch.split"}));
    const auto number = ofFamily ? partNumber(*operand) : std::nullopt;
    return number ? Source{cut, *number, nullptr} : Source{nullptr, 0, operand};
}

/// Neighbouring parts of one cut read at once, or a single operand as it is (`cut` null).
struct Piece {
    Node* cut = nullptr;
    int64_t first = 0, last = 0;
    Node* operand = nullptr;
    bool whole = false;  // all of the cut, which needs no slice
};

/// Writes a list of operands anew, in PyTorch's steps: parts are held back until an operand of another kind, a part of
/// another cut or the last operand is met. These steps may reorder or lose operands (Collector::Fate).
class Collector {
  public:
    Collector(const Family& family, int64_t threshold) : m_family(family), m_threshold(threshold) {}

    /// Nothing if a cut is not written in its normal form.
    std::optional<std::vector<Piece>> collect(const std::vector<Node*>& operands, const Refusing& no) {
        for (Node* operand : operands) {
            const Source source = sourceOf(operand, m_family);
            const bool last = operand == operands.back();
            if (source.cut == nullptr) {
                if (m_seen && !operand->isCall("operator.getitem")) flush();
                m_pieces.push_back({nullptr, 0, 0, operand});
                if (!operand->isCall("operator.getitem")) m_waiting.clear();
                continue;
            }
            if (!cutOf(*source.cut, m_family)) {
                no.about(source.cut, *source.cut, ", of which it joins parts, is not written in the normal form");
                return std::nullopt;
            }
            if (m_seen == nullptr) {
                m_seen = source.cut;
                m_waiting = {{source.number, operand}};
                if (last) m_pieces.push_back({nullptr, 0, 0, operand});
                continue;
            }
            if (source.cut != m_seen || last) {
                if (last) m_waiting.emplace_back(source.number, operand);
                flush();
                m_seen = source.cut;
                m_waiting.clear();
            }
            m_waiting.emplace_back(source.number, operand);
        }
        return std::move(m_pieces);
    }

    /// What became of the operands: all present in order, all in another order, or not all.
    enum class Fate { InPlace, Reordered, Lost };
    static Fate fateOf(const std::vector<Node*>& operands, const std::vector<Piece>& pieces, const Family& family) {
        std::vector<Source> before, after;
        for (Node* operand : operands) before.push_back(sourceOf(operand, family));
        for (const Piece& piece : pieces) {
            if (piece.cut == nullptr) after.push_back(sourceOf(piece.operand, family));
            for (int64_t number = piece.first; piece.cut && number <= piece.last; ++number)
                after.push_back({piece.cut, number, nullptr});
        }
        if (before == after) return Fate::InPlace;
        return before.size() == after.size() && std::is_permutation(before.begin(), before.end(), after.begin())
                   ? Fate::Reordered
                   : Fate::Lost;
    }

  private:
    void flush() {
        const auto count = static_cast<int64_t>(cutOf(*m_seen, m_family)->sizes.size()),
                   waiting = static_cast<int64_t>(m_waiting.size());
        if (waiting == 0) return;
        if (waiting == count && (m_family.unbind || runFrom(0) == m_waiting.size())) {
            m_pieces.push_back({m_seen, 0, count - 1, nullptr, true});
            return;
        }
        for (size_t begin = 0; begin < m_waiting.size();) {
            // Parts of a split are read in several runs, items of an unbind only in one.
            const size_t end = m_family.unbind && runFrom(begin) != m_waiting.size() ? begin + 1 : runFrom(begin);
            const bool fused = static_cast<int64_t>(end - begin) >= m_threshold &&
                               (!m_family.unbind || end - begin == m_waiting.size());
            if (fused) m_pieces.push_back({m_seen, m_waiting[begin].first, m_waiting[end - 1].first, nullptr});
            for (size_t i = begin; !fused && i < end; ++i) m_pieces.push_back({nullptr, 0, 0, m_waiting[i].second});
            begin = end;
        }
    }
    /// Where the run of neighbours that begins here ends.
    size_t runFrom(size_t begin) const {
        size_t end = begin + 1;
        while (end < m_waiting.size() && m_waiting[end].first == m_waiting[end - 1].first + 1) ++end;
        return end;
    }

    const Family& m_family;
    int64_t m_threshold;
    Node* m_seen = nullptr;
    std::vector<std::pair<int64_t, Node*>> m_waiting;
    std::vector<Piece> m_pieces;
};

class SliceRewrite {
  public:
    SliceRewrite(Node& join, const Family& family, Rewriter& rewriter)
        : m_join(join), m_family(family), m_rewriter(rewriter), m_no(rewriter, family.rule, join) {}

    bool run() {
        const auto* tensors = m_join.args().size() == 1 && m_join.kwargs().size() == 1 ? m_join.arg(0).list() : nullptr;
        const auto dim = integer(argument(m_join, 1, "dim"));
        if (!tensors || !dim || *dim < 0)
            return m_no("it is not written in the normal form (normalization_pass writes ", m_family.join,
                        "([a, b], dim=d))");
        if (!knownSizes(&m_join)) return m_no("its sizes are not all numbers");
        m_dim = *dim;
        std::vector<Node*> operands;  // before they are reshaped
        for (const Argument& item : *tensors) {
            if (!item.node()) return m_no("it joins ", item, ", which is not a tensor");
            const bool reshaped = m_family.reshaped && isFunction(*item.node(), {"torch.reshape"});
            if (!reshaped) m_direct.insert(item.node());
            operands.push_back(reshaped ? item.node()->arg(0).node() : item.node());
        }
        if (!findCutDim(*tensors))
            return m_no(m_family.reshaped ? "it joins no reshaped parts of a " : "it joins no parts of a ",
                        m_family.cut, " that is written in the normal form");
        const OptionalPass* settings = m_rewriter.request().enabled(std::string(m_family.rule));
        const auto threshold = static_cast<int64_t>(settings ? settings->number("threshold_to_cat", 10) : 10);
        auto pieces = Collector(m_family, threshold).collect(operands, m_no);
        if (!pieces) return false;
        if (pieces->size() > 1 && pieces->size() >= operands.size())
            return m_no("no run of its ", operands.size(), " tensors is all of a ", m_family.cut, " or ", threshold,
                        " parts long (threshold_to_cat), so slices would leave ", pieces->size(), " to join");
        m_pieces = std::move(*pieces);
        const auto fate = Collector::fateOf(operands, m_pieces, m_family);
        if (m_pieces.empty() || fate == Collector::Fate::Lost)
            return m_no("written anew in PyTorch's steps, its list would lose an operand or take one twice");
        if (fate == Collector::Fate::Reordered && !m_rewriter.request().parity)
            return m_no(
                "written anew in PyTorch's steps, its list would be in another order, which is accepted only with parity");
        if (!fits()) return refuseDims();
        const bool fuses =
            std::any_of(m_pieces.begin(), m_pieces.end(), [](const Piece& piece) { return piece.cut != nullptr; });
        if (m_rewriter.begin(
                m_family.rule, m_join,
                fuses ? "neighbouring parts are one slice of what was cut" : "one operand needs no joining") != Go::Yes)
            return false;
        write(operands);
        return true;
    }

  private:
    /// The dim of the first cut, which is what PyTorch's pattern finds; false if no operand is a part of one in normal
    /// form.
    bool findCutDim(const std::vector<Argument>& tensors) {
        for (const Argument& item : tensors) {
            Node* part = item.node();
            if (m_family.reshaped) part = isFunction(*part, {"torch.reshape"}) ? part->arg(0).node() : nullptr;
            Node* cut = part ? sourceOf(part, m_family).cut : nullptr;
            if (cut == nullptr || cut->kwargs().size() != 1) continue;
            if (const auto facts = cutOf(*cut, m_family)) {
                m_cutDim = facts->dim;
                return true;
            }
        }
        return false;
    }

    bool refuseDims() const {
        if (m_family.reshaped)
            return m_no(
                "reshaped parts are put in place only where all of what is cut along dim 0 is stacked along dim 0; it is cut along dim ",
                m_cutDim, " and stacked along dim ", m_dim);
        if (m_cutDim != m_dim)
            return m_no("what is cut along dim ", m_cutDim, " is joined along dim ", m_dim,
                        ", where one exchange of two dims does not put it right");
        return m_no("its parts come from cuts along different dims, or are stacked behind all others");
    }
    /// Whether the pieces can be put together so that the result has the right shape, and, but for parity, the right
    /// elements.
    bool fits() const {
        const bool parity = m_rewriter.request().parity, alone = m_pieces.size() == 1;
        const bool near = std::abs(m_cutDim - m_dim) <= 1;
        const bool joins = m_family.join == "torch.cat";
        if (alone && m_pieces[0].cut == nullptr)
            return joins || (m_family.reshaped ? m_cutDim == m_dim && tensorType(m_pieces[0].operand)->isContiguous()
                                               : near || parity);
        if (!alone && !m_family.unbind && joins && m_cutDim != m_dim) return false;
        if (!alone && m_family.unbind && !joins && m_cutDim != m_dim && !parity) return false;
        for (const Piece& piece : m_pieces)
            if (piece.cut ? !fitsCut(piece, alone) : m_family.reshaped && !m_direct.contains(piece.operand))
                return false;
        return m_family.unbind || joins || m_family.reshaped || near || parity;
    }
    bool fitsCut(const Piece& piece, bool alone) const {
        const Cut cut = *cutOf(*piece.cut, m_family);
        const bool parity = m_rewriter.request().parity;
        const int64_t distance = std::abs(cut.dim - m_dim), rank = tensorType(cut.input)->rank();
        if (m_family.reshaped) {
            // PyTorch takes the parts' shape from a split that is read as a whole, or is the only piece.
            return (alone || piece.whole) && cut.dim == m_cutDim &&
                   ((cut.dim == 0 && m_dim == 0) || (alone && parity && m_dim < rank));
        }
        if (!m_family.unbind) return m_family.join == "torch.cat" ? distance == 0 : cut.dim == m_cutDim;
        if (m_family.join == "torch.cat") return distance <= 1 || parity;
        return (distance == 0 || parity) && m_dim < rank - 1;
    }

    /// The run of parts as one tensor: the cut tensor, or a slice of it.
    Node& whole(TorchBuilder& builder, const Piece& piece) const {
        const Cut cut = *cutOf(*piece.cut, m_family);
        if (piece.whole) return *cut.input;
        const NormalSplit split{cut.input, cut.sizes, cut.dim, tensorType(cut.input)->rank()};
        return sliceOf(builder, split, piece.first, piece.last);
    }

    /// A permutation that swaps the dim of the join with another.
    std::vector<Argument> swapped(int64_t rank, int64_t other) const {
        std::vector<Argument> dims;
        for (int64_t i = 0; i < rank; ++i) dims.emplace_back(i == m_dim ? other : i == other ? m_dim : i);
        return dims;
    }
    static Argument shape(const std::vector<int64_t>& sizes) {
        return Argument(ArgumentList{{sizes.begin(), sizes.end()}, true});
    }

    /// The items of an unbind, side by side along m_dim.
    Node& flattened(TorchBuilder& builder, const Piece& piece) const {
        Node* out = &whole(builder, piece);
        const Cut cut = *cutOf(*piece.cut, m_family);
        std::vector<int64_t> sizes = *knownSizes(cut.input);
        const auto rank = static_cast<int64_t>(sizes.size());
        sizes.erase(sizes.begin() + cut.dim);
        sizes[static_cast<size_t>(m_dim)] *= piece.last - piece.first + 1;
        if (m_dim != cut.dim)
            out = &builder.function("torch.permute", {Argument(out), Argument(swapped(rank, cut.dim))});
        return builder.function("torch.reshape", {Argument(out), shape(sizes)});
    }

    /// The concatenated parts in the shape of the stack.
    Node& stacked(TorchBuilder& builder, Node& joined) const {
        const std::vector<int64_t> sizes = *knownSizes(&m_join);
        Node* out = &joined;
        if (m_dim != m_cutDim && m_family.reshaped) {
            out = &builder.function("torch.permute",
                                    {Argument(out), Argument(swapped(tensorType(out)->rank(), m_cutDim))});
        } else if (m_dim != m_cutDim) {
            std::vector<int64_t> before = sizes;
            std::swap(before[static_cast<size_t>(m_dim)], before[static_cast<size_t>(m_cutDim)]);
            out = &builder.function("torch.reshape", {Argument(out), shape(before)});
            out = &builder.function("torch.permute",
                                    {Argument(out), Argument(swapped(static_cast<int64_t>(sizes.size()), m_cutDim))});
        }
        std::vector<Argument> args = {Argument(out)};
        if (m_family.reshaped) args.push_back(shape(sizes));
        else args.insert(args.end(), sizes.begin(), sizes.end());
        return builder.function("torch_Tensor_view", std::move(args));
    }

    void write(const std::vector<Node*>& operands) {
        TorchBuilder builder(m_rewriter, m_join, m_join);
        Node* out = m_family.reshaped && m_pieces.size() > 1 ? &stackedInRuns(builder) : nullptr;
        if (out == nullptr) {
            std::vector<Argument> joined;
            for (const Piece& piece : m_pieces)
                joined.emplace_back(piece.cut == nullptr ? piece.operand
                                    : m_family.unbind    ? &flattened(builder, piece)
                                                         : &whole(builder, piece));
            out = joined[0].node();
            const int64_t dim = m_family.join == "torch.cat" || m_family.unbind ? m_dim : m_cutDim;
            if (joined.size() > 1) out = &builder.function("torch.cat", {Argument(std::move(joined))}, {{"dim", dim}});
            if (m_family.join == "torch.stack") out = &stacked(builder, *out);
        }
        Graph& graph = m_join.graph();
        std::vector<Node*> inputs;
        for (const Argument& item : *m_join.arg(0).list()) inputs.push_back(item.node());
        m_rewriter.replace(m_join, *out);
        eraseUnread(graph, inputs);
        std::vector<Node*> parts;
        for (Node* operand : operands)
            if (m_family.reshaped && !m_direct.contains(operand)) parts.push_back(operand);
        eraseUnread(graph, parts);
    }

    /// Of reshaped parts: what is cut in the shape of the stack, between stacks of the other operands.
    Node& stackedInRuns(TorchBuilder& builder) const {
        std::vector<Argument> joined, others;
        const auto flush = [&] {
            if (!others.empty())
                joined.emplace_back(
                    &builder.function("torch.stack", {Argument(std::exchange(others, {}))}, {{"dim", m_dim}}));
        };
        std::vector<int64_t> sizes = *knownSizes(&m_join);
        for (const Piece& piece : m_pieces) {
            if (piece.cut == nullptr) {
                others.emplace_back(piece.operand);
                continue;
            }
            flush();
            sizes[static_cast<size_t>(m_dim)] = piece.last - piece.first + 1;
            joined.emplace_back(
                &builder.function("torch_Tensor_view", {Argument(&whole(builder, piece)), shape(sizes)}));
        }
        flush();
        return builder.function("torch.cat", {Argument(std::move(joined))}, {{"dim", m_dim}});
    }

    Node& m_join;
    const Family& m_family;
    Rewriter& m_rewriter;
    Refusing m_no;
    std::vector<Piece> m_pieces;
    std::set<const Node*> m_direct;  // operands that are not reshapes
    int64_t m_dim = 0, m_cutDim = 0;
};

constexpr Family kCatToSlices{"split_cat_to_slices_pass", "torch.cat", "torch.functional.split", false};
constexpr Family kUnbindToView{"unbind_cat_to_view_pass", "torch.cat", "torch.unbind", true};
constexpr Family kStackToCats{"split_stack_to_cats_pass", "torch.stack", "torch.functional.split", false};
constexpr Family kUnbindToSlices{"unbind_stack_to_slices_pass", "torch.stack", "torch.unbind", true};
constexpr Family kReshapeOut{"move_reshape_out_of_split_stack_pass", "torch.stack", "torch.functional.split", false,
                             true};

template <const Family& family>
Result<bool> sliceIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<NodeId> order;
    for (const Node& node : graph.nodes()) order.push_back(node.id());
    for (auto at = order.rbegin(); at != order.rend(); ++at)
        if (Node* node = graph.find(*at); node && isFunction(*node, {family.join}))
            changed |= SliceRewrite(*node, family, rewriter).run();
    return changed;
}

}  // namespace

Result<bool> splitCatToSlices(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, sliceIn<kCatToSlices>);
}
Result<bool> unbindCatToView(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, sliceIn<kUnbindToView>);
}
Result<bool> splitStackToCats(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, sliceIn<kStackToCats>);
}
Result<bool> unbindStackToSlices(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, sliceIn<kUnbindToSlices>);
}
Result<bool> moveReshapeOutOfSplitStack(Module& module, Rewriter& rewriter) {
    return onEveryGraph(module, rewriter, sliceIn<kReshapeOut>);
}

}  // namespace cutaway
