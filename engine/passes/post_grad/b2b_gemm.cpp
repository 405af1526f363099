#include "engine/passes/post_grad/b2b_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kFused = "higher_order.b2b_gemm";

bool isGemm(const Node& node) { return node.isCall("aten.mm.default"); }

/// The two products and what stands between them.
struct BackToBack {
    Node *inner = nullptr, *outer = nullptr;
    Node* middle = nullptr;        // the operand of the outer product: the inner one or a pointwise function of it
    std::vector<Node*> pointwise;  // from the inner product to the middle, in order, the product left out
    bool left = false;             // f(A @ B) @ C
    Node *a = nullptr, *b = nullptr, *c = nullptr;
};

/// Every node that the inner product reaches, up to `middle`; nullopt if one of them is not pointwise or reads
/// something else.
std::optional<std::set<NodeId>> between(const Node& inner, const Node& middle, const Refusing& refuse) {
    std::set<NodeId> known;
    std::map<NodeId, size_t> unseen;  // of each reader, how many inputs the walk has not reached yet
    std::vector<const Node*> pending = {&inner}, readers;
    while (!pending.empty()) {
        const Node* node = pending.back();
        pending.pop_back();
        if (!known.insert(node->id()).second || node == &middle) continue;
        if (node != &inner && !node->is(Tag::Pointwise)) {
            refuse(NodeWithKind{node}, " stands between it and ", middle, ", and is not pointwise");
            return std::nullopt;
        }
        for (const Node* user : node->users()) {
            --unseen.try_emplace(user->id(), user->inputs().size()).first->second;
            pending.push_back(user);
            readers.push_back(user);
        }
    }
    for (const Node* reader : readers) {
        if (unseen.at(reader->id()) == 0) continue;
        for (const Node* input : reader->inputs())
            if (!known.contains(input->id())) refuse(reader, " reads ", input, ", too, which is not made of it");
        return std::nullopt;
    }
    return known;
}

std::optional<BackToBack> productsFrom(Node& inner, const Refusing& refuse) {
    const auto none = [](bool) { return std::nullopt; };
    if (!isGemm(inner)) return std::nullopt;
    if (inner.inputs().size() != 2) return none(refuse("both factors are ", inner.arg(0).node()));
    BackToBack out;
    out.inner = out.middle = &inner;
    for (Node* node = &inner; out.outer == nullptr;) {
        if (!node->hasUsers()) return none(refuse("nobody reads ", node));
        Node* user = node->users()[0];
        if (user->isOutput()) return none(refuse(node, " is returned before a second product reads it"));
        if (isGemm(*user)) {
            out.outer = user;
            out.middle = node;
        } else if (!user->is(Tag::Pointwise))
            return none(
                refuse(NodeWithKind{user}, " reads ", node, " before a second product does, and is not pointwise"));
        node = user;
    }
    if (out.middle->users().size() != 1)
        return none(refuse(OtherReader{*out.middle, out.outer}, ", beside the product ", out.outer));
    if (out.outer->inputs().size() != 2) return none(refuse(out.outer, " multiplies ", out.middle, " with itself"));
    const auto nodes = between(inner, *out.middle, refuse);
    if (!nodes) return std::nullopt;
    for (Node* node = inner.next(); node && node != out.outer; node = node->next())
        if (nodes->contains(node->id())) out.pointwise.push_back(node);
    out.left = out.outer->arg(0).node() == out.middle;
    out.a = (out.left ? inner : *out.outer).arg(0).node();
    out.b = inner.arg(out.left ? 1 : 0).node();
    out.c = (out.left ? *out.outer : inner).arg(1).node();
    return out;
}

/// A kernel computes a block of m x p, going through the other dims in blocks of n and o.
struct Blocks {
    int64_t m, n, o, p;
};
constexpr Blocks kBlocks[] = {{128, 16, 16, 16},  {128, 32, 32, 32},  {128, 64, 64, 64},  {128, 16, 128, 16},
                              {128, 32, 128, 32}, {128, 64, 128, 64}, {16, 16, 16, 128},  {32, 32, 32, 128},
                              {64, 64, 64, 128},  {16, 128, 16, 128}, {32, 128, 32, 128}, {64, 128, 64, 128}};

/// Loads of the two products over loads of the kernel. A is M x N, B is N x O, C is O x P.
double loadRatio(bool left, const Blocks& sizes, const Blocks& block) {
    const auto steps = [](int64_t size, int64_t by) { return static_cast<double>((size + by - 1) / by); };
    const auto area = [](int64_t rows, int64_t columns) {
        return static_cast<double>(rows) * static_cast<double>(columns);
    };
    const double m = steps(sizes.m, block.m), n = steps(sizes.n, block.n), o = steps(sizes.o, block.o),
                 p = steps(sizes.p, block.p);
    const double ab = area(block.m, block.n), bc = area(block.n, block.o), cd = area(block.o, block.p);
    const double matrices = area(sizes.m, sizes.n) + area(sizes.n, sizes.o) + area(sizes.o, sizes.p);
    const double apart = matrices + (left ? area(sizes.m, sizes.o) : area(sizes.n, sizes.p));
    const double fused = left ? m * p * o * (cd + n * (ab + bc)) : m * p * n * (ab + o * (bc + cd));
    return apart / fused;
}
/// Of the three best blocks, the mean.
double expectedRatio(bool left, const Blocks& sizes) {
    std::array<double, std::size(kBlocks)> ratios{};
    for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = loadRatio(left, sizes, kBlocks[i]);
    std::sort(ratios.rbegin(), ratios.rend());
    return std::cbrt(ratios[0] * ratios[1] * ratios[2]);
}

bool isWorthwhile(const BackToBack& found, bool parity, const Refusing& refuse) {
    for (const Node* node : {found.a, found.b, found.c}) {
        const TensorType* type = node ? node->type().tensor() : nullptr;
        if (type == nullptr || type->rank() != 2) return refuse("a factor is not a matrix of known type");
        if (type->device.type != DeviceType::Cuda) return refuse(node, ", ", *type, ", is not on a GPU");
        if (!allInts(type->sizes)) return refuse("the sizes of ", node, ", ", *type, ", are not known numbers");
        if (type->sizes[0] == SymInt(0) || type->sizes[1] == SymInt(0)) return refuse(node, ", ", *type, ", is empty");
        if (!parity && type->dtype != found.outer->tensor().dtype)
            return refuse(node, " is ", *type, ", what comes out ", found.outer->tensor(), ": the dtypes differ");
    }
    const SymDims &a = found.a->tensor().sizes, &b = found.b->tensor().sizes, &c = found.c->tensor().sizes;
    if (!(a[1] == b[0]) || !(b[1] == c[0]))
        return refuse("what stands between it and ", found.outer, " changes the shape");
    const double ratio = expectedRatio(found.left, {a[0].value(), a[1].value(), c[0].value(), c[1].value()});
    if (ratio > 1) return true;
    return refuse("one kernel would load more: two kernels load ", 100 * ratio, " % of what it loads, for ",
                  found.a->tensor(), ", ", found.b->tensor(), " and ", found.c->tensor());
}

/// graph(A, B, C): the products and what stands between them.
std::unique_ptr<Module> graphOf(const BackToBack& found) {
    auto module = std::make_unique<Module>();
    Graph& graph = module->graph();
    std::map<const Node*, Node*> twins;
    const std::array<std::pair<const char*, Node*>, 3> inputs = {{{"a", found.a}, {"b", found.b}, {"c", found.c}}};
    std::vector<Node*> placeholders;
    for (const auto& [name, node] : inputs) placeholders.push_back(&graph.placeholder(name, node->type()));
    module->inputs.resize(inputs.size());
    const auto copy = [&](const Node& node, auto&& operand) {
        std::vector<Argument> args;
        for (size_t i = 0; i < node.args().size(); ++i)
            args.push_back(node.arg(i).mapNodes([&](Node* input) { return operand(i, input); }));
        Node& made = graph.call(node.op(), std::move(args), node.type(), nullptr, node.name());
        graph.setProvenance(made, node.provenance());
        twins[&node] = &made;
    };
    const size_t first = found.left ? 0 : 1;  // the inner product's operands among A, B, C
    copy(*found.inner, [&](size_t position, Node*) { return placeholders[first + position]; });
    for (const Node* node : found.pointwise) copy(*node, [&](size_t, Node* input) { return twins.at(input); });
    copy(*found.outer, [&](size_t position, Node*) {
        const bool isMiddle = position == (found.left ? 0u : 1u);
        return isMiddle ? twins.at(found.middle) : placeholders[found.left ? 2 : 0];
    });
    graph.output(Argument(std::vector<Argument>{Argument(twins.at(found.outer))}));
    module->outputs.resize(1);
    return module;
}

std::string freshGemmName(const Module& module) {
    int number = 0;
    while (module.subgraph("b2b_gemm_graph_" + std::to_string(number))) ++number;
    return "b2b_gemm_graph_" + std::to_string(number);
}

Result<void> fuse(Module& module, Rewriter& rewriter, const BackToBack& found) {
    Graph& graph = module.graph();
    const std::string name = freshGemmName(module);
    module.subgraphs.emplace_back(name, graphOf(found));
    TensorType type = found.outer->tensor();
    type.dtype = found.a->tensor().dtype;
    const GraphBuilder builder = rewriter.builder(graph, found.outer, *found.outer);
    Node& made = graph.call(findOrMakeOpaque(kFused),
                            {Argument(SubgraphRef{name}), Argument(found.a), Argument(found.b), Argument(found.c)},
                            ValueType(std::move(type)), found.outer, "b2b_gemm");
    graph.setProvenance(made, builder.sharedProvenance());
    rewriter.replace(*found.outer, made);
    for (auto node = found.pointwise.rbegin(); node != found.pointwise.rend(); ++node) graph.erase(**node);
    graph.erase(*found.inner);
    return {};
}

/// Skips the graphs that an earlier run of the pass has made: they hold two products as well.
bool isFusedGraph(const Module& module, const std::string& name) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall(kFused))
            if (const auto* reference = node.arg(0).get<SubgraphRef>(); reference && reference->name == name)
                return true;
    return false;
}

}  // namespace

Result<bool> mergeProductsBackToBack(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        if (isFusedGraph(module, name)) continue;
        CT_TRY(const bool inner, mergeProductsBackToBack(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    std::vector<NodeId> products;
    for (const Node& node : graph.nodes())
        if (isGemm(node)) products.push_back(node.id());
    // Last first: of three products in a row the last two meet.
    for (auto id = products.rbegin(); id != products.rend(); ++id) {
        Node* inner = graph.find(*id);
        if (inner == nullptr) continue;
        const Refusing refuse(rewriter, "b2b_gemm", *inner);
        const auto found = productsFrom(*inner, refuse);
        if (!found || !isWorthwhile(*found, rewriter.request().parity, refuse)) continue;
        if (rewriter.begin("b2b_gemm", *inner,
                           "the first product need not be stored, and the kernel is expected to load less than two") !=
            Go::Yes)
            return changed;
        CT_TRY_VOID(fuse(module, rewriter, *found));
        changed = true;
    }
    return changed;
}

}  // namespace cutaway
