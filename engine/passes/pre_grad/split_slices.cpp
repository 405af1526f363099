// Runs of neighbouring parts inside longer concatenations and stacks, read as one slice of what was cut. PyTorch's passes of
// these names permute with a single swap of two dims, which gives other numbers where a dim lies between them, or where the
// parts are items that are stacked along another dim or reshaped: there nothing is rewritten, except with parity.
// split_cat_to_slices_pass also trusts the dims of split and concatenation to agree; where they do not, its result has another
// shape, and nothing is rewritten, with or without parity.
#include "engine/passes/pre_grad/split_cat.h"
#include "engine/passes/pre_grad/split_parts.h"

namespace cutaway {
namespace {

using namespace pregrad;

/// How one of the passes works.
struct Family {
    std::string_view rule, join, cut;   // "torch.cat", "torch.unbind"
    bool unbind, reshaped = false;      // reshaped: each part goes through torch.reshape first
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

/// Neighbouring parts of one cut, or a single other operand (`cut` null).
struct Piece {
    Node* cut = nullptr;
    int64_t first = 0, last = 0;
    std::vector<Node*> operands;
};
std::vector<Piece> piecesOf(const std::vector<Argument>& tensors, const Family& family) {
    std::vector<Piece> pieces;
    for (const Argument& item : tensors) {
        Node* part = item.node();
        if (family.reshaped && part && isFunction(*part, {"torch.reshape"})) part = part->arg(0).node();
        else if (family.reshaped) part = nullptr;
        Node* cut = part && part->isCall("operator.getitem") ? part->arg(0).node() : nullptr;
        const auto number = cut && cutOf(*cut, family) ? partNumber(*part) : std::nullopt;
        Piece* last = pieces.empty() ? nullptr : &pieces.back();
        if (number && last && last->cut == cut && last->last + 1 == *number) {
            last->last = *number;
            last->operands.push_back(item.node());
        } else {
            pieces.push_back(number ? Piece{cut, *number, *number, {item.node()}} : Piece{nullptr, 0, 0, {item.node()}});
        }
    }
    return pieces;
}

class SliceRewrite {
  public:
    SliceRewrite(Node& join, const Family& family, Rewriter& rewriter) : m_join(join), m_family(family), m_rewriter(rewriter) {}

    bool run() {
        const Argument* tensors = argument(m_join, 0, "tensors");
        const TensorType* type = tensorType(&m_join);
        const auto dim = type ? wrappedDim(argument(m_join, 1, "dim"), type->rank()) : std::nullopt;
        if (!tensors || !tensors->list() || !dim || !knownSizes(&m_join)) return false;
        m_dim = *dim;
        m_pieces = piecesOf(*tensors->list(), m_family);
        const OptionalPass* settings = m_rewriter.options().enabled(std::string(m_family.rule));
        const auto threshold = static_cast<int64_t>(settings ? settings->number("threshold_to_cat", 10) : 10);
        bool gains = false;
        std::optional<int64_t> cutDim;
        for (const Piece& piece : m_pieces) {
            if (!piece.cut) continue;
            const Cut cut = *cutOf(*piece.cut, m_family);
            if (!fits(cut) || (cutDim && *cutDim != cut.dim)) return false;
            cutDim = cut.dim;
            gains |= isFused(piece, threshold);
        }
        const bool alone = m_pieces.size() == 1;
        if (!gains || (!alone && fusedCount(threshold) >= tensors->list()->size())) return false;
        if (!m_rewriter.begin(m_family.rule, m_join, "neighbouring parts are one slice of what was cut")) return false;
        m_cutDim = *cutDim;
        write(threshold);
        return true;
    }

  private:
    /// Where one swap of two dims puts things right.
    bool fits(const Cut& cut) const {
        const int64_t distance = std::abs(cut.dim - m_dim);
        const bool near = distance <= 1 || m_rewriter.options().parity;
        const bool equalSizes = std::all_of(cut.sizes.begin(), cut.sizes.end(), [&](int64_t size) { return size == cut.sizes[0]; });
        const bool alone = m_pieces.size() == 1 && m_dim < tensorType(cut.input)->rank();
        if (m_family.reshaped) return equalSizes && ((cut.dim == 0 && m_dim == 0) || (alone && m_rewriter.options().parity));
        if (m_family.join == "torch.cat") return m_family.unbind ? near : distance == 0;
        if (m_family.unbind) return (distance == 0 || m_rewriter.options().parity) && m_dim < tensorType(cut.input)->rank() - 1;
        return near && equalSizes;
    }
    bool isFused(const Piece& piece, int64_t threshold) const {
        const auto count = piece.last - piece.first + 1;
        return piece.cut && (count >= std::max<int64_t>(threshold, 2) || count == static_cast<int64_t>(cutOf(*piece.cut, m_family)->sizes.size()));
    }
    size_t fusedCount(int64_t threshold) const {
        size_t count = 0;
        for (const Piece& piece : m_pieces) count += isFused(piece, threshold) ? 1 : piece.operands.size();
        return count;
    }

    /// The run of parts as one tensor: the cut tensor, or a slice of it.
    Node& whole(TorchBuilder& builder, const Piece& piece) const {
        const Cut cut = *cutOf(*piece.cut, m_family);
        NormalSplit split{cut.input, cut.sizes, cut.dim, tensorType(cut.input)->rank()};
        if (piece.first == 0 && piece.last + 1 == static_cast<int64_t>(cut.sizes.size())) return *cut.input;
        return sliceOf(builder, split, piece.first, piece.last);
    }

    std::vector<Argument> swapped(int64_t rank) const {
        std::vector<Argument> dims;
        for (int64_t i = 0; i < rank; ++i) dims.emplace_back(i == m_dim ? m_cutDim : i == m_cutDim ? m_dim : i);
        return dims;
    }
    static Argument shape(const std::vector<int64_t>& sizes) { return Argument(ArgumentList{{sizes.begin(), sizes.end()}, true}); }

    /// The items of an unbind, side by side along m_dim.
    Node& flattened(TorchBuilder& builder, const Piece& piece) const {
        Node* out = &whole(builder, piece);
        std::vector<int64_t> sizes = *knownSizes(piece.operands[0]);
        sizes[static_cast<size_t>(m_dim)] *= piece.last - piece.first + 1;
        if (m_dim != m_cutDim) out = &builder.function("torch.permute", {Argument(out), Argument(swapped(static_cast<int64_t>(sizes.size()) + 1))});
        return builder.function("torch.reshape", {Argument(out), shape(sizes)});
    }

    /// The concatenated parts in the shape of the stack.
    Node& stacked(TorchBuilder& builder, Node& joined) const {
        const std::vector<int64_t> sizes = *knownSizes(&m_join);
        Node* out = &joined;
        if (m_dim != m_cutDim && m_family.reshaped) {
            out = &builder.function("torch.permute", {Argument(out), Argument(swapped(tensorType(out)->rank()))});
        } else if (m_dim != m_cutDim) {
            std::vector<int64_t> before = sizes;
            std::swap(before[static_cast<size_t>(m_dim)], before[static_cast<size_t>(m_cutDim)]);
            out = &builder.function("torch.reshape", {Argument(out), shape(before)});
            out = &builder.function("torch.permute", {Argument(out), Argument(swapped(static_cast<int64_t>(sizes.size())))});
        }
        std::vector<Argument> args = {Argument(out)};
        if (m_family.reshaped) args.push_back(shape(sizes));
        else args.insert(args.end(), sizes.begin(), sizes.end());
        return builder.function("torch_Tensor_view", std::move(args));
    }

    void write(int64_t threshold) {
        TorchBuilder builder(m_rewriter, m_join, m_join);
        std::vector<Argument> joined;
        std::vector<Node*> operands;
        for (const Piece& piece : m_pieces) {
            operands.insert(operands.end(), piece.operands.begin(), piece.operands.end());
            if (!isFused(piece, threshold)) joined.insert(joined.end(), piece.operands.begin(), piece.operands.end());
            else joined.emplace_back(m_family.unbind ? &flattened(builder, piece) : &whole(builder, piece));
        }
        Node* out = joined[0].node();
        const int64_t catDim = m_family.join == "torch.cat" || m_family.unbind ? m_dim : m_cutDim;
        if (joined.size() > 1) out = &builder.function("torch.cat", {Argument(std::move(joined))}, {{"dim", catDim}});
        if (m_family.join == "torch.stack") out = &stacked(builder, *out);
        Graph& graph = m_join.graph();
        m_rewriter.replace(m_join, *out);
        std::vector<Node*> parts;
        for (Node* operand : operands)
            if (m_family.reshaped && isFunction(*operand, {"torch.reshape"})) parts.push_back(operand->arg(0).node());
        eraseUnread(graph, operands);
        eraseUnread(graph, parts);
    }

    Node& m_join;
    const Family& m_family;
    Rewriter& m_rewriter;
    std::vector<Piece> m_pieces;
    int64_t m_dim = 0, m_cutDim = 0;
};

constexpr Family kCatToSlices{"split_cat_to_slices_pass", "torch.cat", "torch.functional.split", false};
constexpr Family kUnbindToView{"unbind_cat_to_view_pass", "torch.cat", "torch.unbind", true};
constexpr Family kStackToCats{"split_stack_to_cats_pass", "torch.stack", "torch.functional.split", false};
constexpr Family kUnbindToSlices{"unbind_stack_to_slices_pass", "torch.stack", "torch.unbind", true};
constexpr Family kReshapeOut{"move_reshape_out_of_split_stack_pass", "torch.stack", "torch.functional.split", false, true};

template <const Family& family>
Result<bool> sliceIn(Graph& graph, Rewriter& rewriter) {
    bool changed = false;
    std::vector<NodeId> order;
    for (const Node& node : graph.nodes()) order.push_back(node.id());
    for (auto at = order.rbegin(); at != order.rend(); ++at)
        if (Node* node = graph.find(*at); node && isFunction(*node, {family.join})) changed |= SliceRewrite(*node, family, rewriter).run();
    return changed;
}

}  // namespace

Result<bool> splitCatToSlices(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, sliceIn<kCatToSlices>); }
Result<bool> unbindCatToView(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, sliceIn<kUnbindToView>); }
Result<bool> splitStackToCats(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, sliceIn<kStackToCats>); }
Result<bool> unbindStackToSlices(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, sliceIn<kUnbindToSlices>); }
Result<bool> moveReshapeOutOfSplitStack(Module& module, Rewriter& rewriter) { return onEveryGraph(module, rewriter, sliceIn<kReshapeOut>); }

}  // namespace cutaway
