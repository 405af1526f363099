#include "engine/passes/post_grad/micro_pipeline_tp.h"

#include <algorithm>
#include <set>

#include "engine/ir/readers.h"
#include "engine/passes/post_grad/wait_tensor.h"
#include "engine/rewrite/graph_order.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

constexpr std::string_view kGather = "_c10d_functional.all_gather_into_tensor.default",
                           kScatter = "_c10d_functional.reduce_scatter_tensor.default";
constexpr std::string_view kMm = "aten.mm.default", kScaledMm = "aten._scaled_mm.default",
                           kReshape = "aten.reshape.default";
constexpr std::string_view kGatherRule = "fuse_all_gather_matmul", kScatterRule = "fuse_matmul_reduce_scatter";
constexpr int64_t kLeastColumns = 1024;  // of a share that is cut along the summed dim

bool isPipelinedProduct(const Node& node) { return node.isCall(kMm) || node.isCall(kScaledMm); }
std::optional<int64_t> gatheredDimOf(const Argument& dim, int64_t rank) {
    const auto given = dim.asInt();
    if (!given || *given < -rank || *given >= rank) return std::nullopt;
    return *given < 0 ? *given + rank : *given;
}

/// A product, with the reshapes to and from matrices around it.
struct PipelinedProduct {
    Node *before = nullptr, *mm = nullptr, *after = nullptr;
    Node& a() const { return before ? *before->arg(0).node() : *mm->arg(0).node(); }
    Node& b() const { return *mm->arg(1).node(); }
    Node& result() const { return after ? *after : *mm; }
    bool isScaled() const { return mm->isCall(kScaledMm); }
};

/// Whether the reshapes only join the leading dims for the product and take them apart again.
bool isBatched(const PipelinedProduct& product) {
    SymDims sizes = product.a().tensor().sizes;
    if (sizes.empty()) return false;
    sizes.back() = product.b().tensor().sizes.back();
    return product.after->tensor().sizes == sizes;
}

/// The strides of a tensor that lies one slice along `dim` after the other.
SymDims stridesFrom(const SymDims& sizes, int64_t dim) {
    SymDims strides(sizes.size());
    SymInt step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        if (i == static_cast<size_t>(dim)) continue;
        strides[i] = step;
        step = step * sizes[i];
    }
    strides[static_cast<size_t>(dim)] = step;
    return strides;
}
/// The type of such a tensor.
TensorType typeFrom(const SymDims& sizes, DType dtype, Device device, int64_t dim) {
    TensorType type = TensorType::contiguous(dtype, sizes, device);
    type.strides = stridesFrom(sizes, dim);
    return type;
}
Value laidOutFrom(GraphBuilder& builder, Node& node, int64_t dim) {
    return builder.call("prims.inductor_force_stride_order.default",
                        {Argument(&node), Argument(stridesFrom(node.tensor().sizes, dim))});
}

/// All pieces of a split, in order, joined along `joinDim`: the concatenation, and the nodes up to it. `split` is the
/// only reader of what it splits.
Node* joinedAgain(Node& split, const Argument& splitDim, int64_t pieces, std::vector<Node*>& between) {
    if (!split.isCall("aten.split.Tensor") || !equal(split.arg("dim"), splitDim) ||
        static_cast<int64_t>(split.users().size()) != pieces || pieces < 1)
        return nullptr;
    Node* cat = onlyUser(*split.users()[0]);
    if (cat == nullptr || !cat->isCall("aten.cat.default") || cat->arg(0).list() == nullptr ||
        static_cast<int64_t>(cat->arg(0).list()->size()) != pieces)
        return nullptr;
    std::vector<Node*> items = {&split};
    for (int64_t i = 0; i < pieces; ++i) {
        Node* item = (*cat->arg(0).list())[static_cast<size_t>(i)].node();
        if (item == nullptr || !item->isCall("operator.getitem") || item->arg(0).node() != &split ||
            item->arg(1).asInt() != i || item->users().size() != 1)
            return nullptr;
        items.push_back(item);
    }
    between.insert(between.end(), items.begin(), items.end());
    return cat;
}

void eraseUnread(Graph& graph, const std::vector<NodeId>& ids) {
    for (auto id = ids.rbegin(); id != ids.rend(); ++id)
        if (Node* node = graph.find(*id); node && !node->hasUsers()) graph.erase(*node);
}
std::vector<NodeId> idsOf(const std::vector<Node*>& nodes) {
    std::vector<NodeId> ids;
    for (const Node* node : nodes) ids.push_back(node->id());
    return ids;
}

// ---------------------------------------------------------------- collected, then multiplied

struct Gather {
    Node *gather = nullptr, *result = nullptr;
    int64_t dim = 0;
    std::vector<Node*> nodes;  // from the gather to what makes the result
    std::vector<PipelinedProduct> products;
    Node& shard() const { return *gather->arg(0).node(); }
    bool alongSum() const { return dim == shard().tensor().rank() - 1; }
};

std::optional<Gather> gatheredBy(Node& gather, const Refusing& no) {
    const auto waiting = std::find_if(gather.users().begin(), gather.users().end(),
                                      [](const Node* user) { return user->isCall(kWait); });
    Node* wait = waiting != gather.users().end() ? *waiting : nullptr;
    if (wait == nullptr || gather.users().size() != 1) {
        no("something else than one wait reads what is collected: ", OtherReader{gather, wait});
        return std::nullopt;
    }
    const auto members = gather.arg("group_size").asInt();
    if (gather.arg(0).node() == nullptr || gather.arg(0).node()->tensor().rank() == 0 || !members) {
        no("the shares have no dim to join");
        return std::nullopt;
    }
    Gather out{&gather, wait, 0, {&gather}, {}};
    Node* reader = onlyUser(*wait);
    if (reader && reader->isCall("aten.view.dtype")) {
        no.about(reader, "bytes are collected and read as another dtype");
        return std::nullopt;
    }
    std::vector<Node*> between = {wait};
    Node* cat = reader ? joinedAgain(*reader, Argument(0), *members, between) : nullptr;
    const auto dim = cat ? gatheredDimOf(cat->arg("dim"), cat->tensor().rank()) : std::nullopt;
    if (dim) {
        out.result = cat;
        out.dim = *dim;
        out.nodes.insert(out.nodes.end(), between.begin(), between.end());
    }
    return out;
}

std::vector<PipelinedProduct> productsOf(Node& a) {
    std::vector<PipelinedProduct> products;
    for (Node* user : a.users()) {
        if (isPipelinedProduct(*user) && user->arg(1).node()) products.push_back({nullptr, user, nullptr});
        if (!user->isCall(kReshape)) continue;
        for (Node* mm : user->users()) {
            if (!isPipelinedProduct(*mm) || mm->arg(1).node() == nullptr) continue;
            const auto after = std::find_if(mm->users().begin(), mm->users().end(), [&](Node* each) {
                return each->isCall(kReshape) && isBatched({user, mm, each});
            });
            if (after != mm->users().end()) products.push_back({user, mm, *after});
        }
    }
    return products;
}

std::set<NodeId> withDescendants(const Node& node) {
    std::set<NodeId> known = {node.id()};
    std::vector<const Node*> pending = {&node};
    while (!pending.empty()) {
        const Node* next = pending.back();
        pending.pop_back();
        for (const Node* user : next->users())
            if (known.insert(user->id()).second) pending.push_back(user);
    }
    return known;
}

/// Finds the products; says why not.
bool isFusible(Gather& found, const Refusing& no) {
    if (found.alongSum()) {
        const SymInt& columns = found.shard().tensor().sizes.back();
        if (!columns.isInt() || columns.value() < kLeastColumns)
            return no("the shares have ", columns, " columns, and pieces of products should have at least ",
                      kLeastColumns);
    }
    const std::set<NodeId> dependent = withDescendants(*found.result);
    for (const PipelinedProduct& product : productsOf(*found.result)) {
        const auto depends = [&](size_t position) {
            return product.mm->arg(position).node() && dependent.contains(product.mm->arg(position).node()->id());
        };
        if (!depends(1) && !(product.isScaled() && (depends(2) || depends(3)))) found.products.push_back(product);
    }
    if (found.products.empty())
        return no.about(found.result, "no product has ", *found.result,
                        ", what is collected, as its left operand and nowhere else");
    const PipelinedProduct& first = found.products[0];
    for (const PipelinedProduct& product : found.products) {
        if (product.isScaled() != first.isScaled()) return no.about(product.mm, "some of the products have scales");
        if (first.isScaled() && !equal(product.mm->arg("scale_a"), first.mm->arg("scale_a")))
            return no.about(product.mm, "the products scale their left operand differently");
    }
    if (!found.alongSum()) return true;
    if (found.result->users().size() > found.products.size())
        return no.about(found.result, "what is collected has to be stored for others");
    return !first.isScaled() || no.about(first.mm, "no product with scales takes shares of the summed dim");
}

std::vector<Argument> argumentsOf(const std::vector<PipelinedProduct>& products, std::string_view param) {
    std::vector<Argument> out;
    for (const PipelinedProduct& product : products) out.push_back(product.mm->arg(param));
    return out;
}

/// The call, without readers.
Node& makeFusedGather(Graph& graph, const GraphBuilder& builder, const Gather& found, const Value& shard,
                      bool returnsA) {
    const SymDims& shared = found.result->tensor().sizes;
    const int64_t layout = found.alongSum() ? 0 : found.dim;
    TupleType products;
    for (const PipelinedProduct& product : found.products) {
        const TensorType& result = product.result().tensor();
        products.emplace_back(typeFrom(result.sizes, result.dtype, result.device, layout));
    }
    const TensorType& a = found.result->tensor();
    ValueType whole = returnsA ? ValueType(typeFrom(shared, a.dtype, a.device, layout)) : ValueType();
    ValueType type(TupleType{std::move(whole), ValueType(std::move(products))});
    const bool scaled = found.products[0].isScaled();
    std::vector<Argument> args = {shard, Argument(argumentsOf(found.products, "mat2"))};
    if (scaled)
        args.insert(args.end(),
                    {found.products[0].mm->arg("scale_a"), Argument(argumentsOf(found.products, "scale_b"))});
    args.insert(args.end(), {Argument(found.dim), found.gather->arg("group_name")});
    if (scaled)
        for (const std::string_view param : {"bias", "scale_result", "out_dtype", "use_fast_accum"})
            args.emplace_back(argumentsOf(found.products, param));
    std::vector<std::pair<std::string, Argument>> keywords;
    if (!scaled) keywords.emplace_back("return_A", Argument(returnsA));
    const std::string name = scaled ? "fused_all_gather_scaled_matmul" : "fused_all_gather_matmul";
    Node& made = graph.call(findOrMakeOpaque("symm_mem." + name + ".default"), std::move(args), std::move(type),
                            found.gather, name, std::move(keywords));
    graph.setProvenance(made, builder.sharedProvenance());
    return made;
}

void replaceProduct(Graph& graph, Rewriter& rewriter, const PipelinedProduct& product, const Value& result) {
    if (product.after == nullptr) return rewriter.replace(*product.mm, *result.node());
    const std::vector<NodeId> ids = idsOf({product.before, product.mm});
    if (product.mm->users().size() > 1) {
        const Value matrix = result.builder().call(kReshape, {result, Argument(product.mm->tensor().sizes)});
        graph.replaceUses(*product.mm, *matrix.node(), [&](const Node& user) { return &user == product.after; });
    }
    rewriter.replace(*product.after, *result.node());
    eraseUnread(graph, ids);
}

Result<void> fuseGather(Graph& graph, Rewriter& rewriter, const Gather& found) {
    const std::vector<NodeId> old = idsOf(found.nodes);
    const NodeId result = found.result->id();
    std::set<NodeId> lasting;  // readers of the result that are not part of a product
    for (const Node* user : found.result->users()) lasting.insert(user->id());
    for (const PipelinedProduct& product : found.products)
        if (!product.before ||
            std::all_of(product.before->users().begin(), product.before->users().end(), [&](const Node* user) {
                return std::any_of(found.products.begin(), found.products.end(),
                                   [&](const PipelinedProduct& each) { return each.mm == user; });
            }))
            lasting.erase((product.before ? product.before : product.mm)->id());
    GraphBuilder builder = rewriter.builder(graph, found.gather, *found.gather);
    const Value shard =
        found.alongSum() ? builder.value(found.shard()) : laidOutFrom(builder, found.shard(), found.dim);
    if (builder.error()) return *builder.error();
    const Value fused =
        builder.value(makeFusedGather(graph, builder, found, shard, !lasting.empty() || found.products[0].isScaled()));
    const Value whole = lasting.empty() ? Value() : fused[0];
    const Value items = fused[1];
    for (size_t i = 0; i < found.products.size(); ++i)
        replaceProduct(graph, rewriter, found.products[i], items[static_cast<int64_t>(i)]);
    if (builder.error()) return *builder.error();
    if (whole) rewriter.replace(*graph.find(result), *whole.node());
    else graph.erase(*graph.find(result));
    eraseUnread(graph, old);
    sortTopologically(graph);  // a right operand may be made behind the gather
    return {};
}

// ---------------------------------------------------------------- multiplied, then shared out

struct Scatter {
    Node *scatter = nullptr, *wait = nullptr, *input = nullptr;
    int64_t dim = 0;
    std::vector<Node*> nodes;  // from what reads the input to the scatter
    PipelinedProduct product;
};

PipelinedProduct producerOf(Node& node) {
    if (isPipelinedProduct(node)) return {nullptr, &node, nullptr};
    Node* mm = node.isCall(kReshape) ? node.arg(0).node() : nullptr;
    Node* before = mm && isPipelinedProduct(*mm) ? mm->arg(0).node() : nullptr;
    if (before == nullptr || !before->isCall(kReshape)) return {};
    const PipelinedProduct product{before, mm, &node};
    return isBatched(product) ? product : PipelinedProduct{};
}

std::optional<Scatter> scatteredBy(Node& scatter, const Refusing& no) {
    Scatter out{&scatter, nullptr, scatter.arg(0).node(), 0, {}, {}};
    for (Node* user : scatter.users()) {
        if (user->isCall(kWait) && out.wait == nullptr) out.wait = user;
        else if (!user->isOutput()) {
            no.about(user, OtherReader{scatter, out.wait});
            return std::nullopt;
        }
    }
    if (out.wait == nullptr || out.input == nullptr) {
        no("the shares are not waited for");
        return std::nullopt;
    }
    const auto& operation = scatter.arg("reduce_op");
    if (const auto* text = operation.get<std::string>(); !text || (*text != "sum" && *text != "avg")) {
        no("the reduction is ", operation);
        return std::nullopt;
    }
    Node* split = out.input->isCall("aten.cat.default") && onlyUser(*out.input) && out.input->arg(0).list() &&
                          !out.input->arg(0).list()->empty()
                      ? (*out.input->arg(0).list())[0].node()
                      : nullptr;
    if (split && split->isCall("operator.getitem")) split = split->arg(0).node();
    const auto members = scatter.arg("group_size").asInt();
    if (split && split->isCall("aten.split.Tensor") && members && out.input->arg("dim").asInt() == 0) {
        std::vector<Node*> between;
        Node* cat = joinedAgain(*split, split->arg("dim"), *members, between);
        const auto dim = split->arg(0).node() ? gatheredDimOf(split->arg("dim"), split->arg(0).node()->tensor().rank())
                                              : std::nullopt;
        if (cat && dim) {
            out.nodes = std::move(between);
            out.nodes.push_back(cat);
            out.input = split->arg(0).node();
            out.dim = *dim;
        }
    }
    out.nodes.push_back(&scatter);
    return out;
}

bool isFusible(Scatter& found, const Refusing& no) {
    if (found.input->users().size() != 1) return no.about(found.input, OtherReader{*found.input, found.nodes[0]});
    found.product = producerOf(*found.input);
    if (found.product.mm == nullptr || found.product.mm->arg(1).node() == nullptr)
        return no.about(found.input, NodeWithKind{found.input}, " is not a product whose leading dims are kept");
    if (found.product.isScaled() && found.dim == found.input->tensor().rank() - 1)
        return no.about(found.product.mm, "no product with scales is shared out along its last dim");
    return true;
}

Result<void> fuseScatter(Graph& graph, Rewriter& rewriter, const Scatter& found) {
    const PipelinedProduct& product = found.product;
    const bool scaled = product.isScaled();
    std::vector<Node*> nodes = {product.before, product.mm, product.after};
    nodes.insert(nodes.end(), found.nodes.begin(), found.nodes.end());
    nodes.erase(std::remove(nodes.begin(), nodes.end(), nullptr), nodes.end());
    const std::vector<NodeId> old = idsOf(nodes);
    GraphBuilder builder = rewriter.builder(graph, found.wait, *found.scatter);
    // Products with scales take matrices, whose rows are the leading dims.
    const int64_t matrixDim = scaled && product.before ? 0 : found.dim;
    const Value a = laidOutFrom(builder, scaled ? *product.mm->arg(0).node() : product.a(), matrixDim);
    if (builder.error()) return *builder.error();
    std::vector<Argument> args = {a, product.mm->arg(1)};
    if (scaled) args.insert(args.end(), {product.mm->arg("scale_a"), product.mm->arg("scale_b")});
    args.insert(args.end(), {found.scatter->arg("reduce_op"), Argument(found.dim)});
    if (scaled) args.emplace_back(matrixDim);
    args.push_back(found.scatter->arg("group_name"));
    if (scaled) {
        args.emplace_back(found.input->tensor().sizes);
        for (const std::string_view param : {"bias", "scale_result", "out_dtype", "use_fast_accum"})
            args.push_back(product.mm->arg(param));
    }
    const std::string name = scaled ? "fused_scaled_matmul_reduce_scatter" : "fused_matmul_reduce_scatter";
    Node& fused = graph.call(findOrMakeOpaque("symm_mem." + name + ".default"), std::move(args), found.wait->type(),
                             found.wait, name);
    graph.setProvenance(fused, builder.sharedProvenance());
    rewriter.replace(*found.wait, fused);
    graph.replaceUses(*found.scatter, fused);  // what is kept for the backward
    eraseUnread(graph, old);
    return {};
}

/// Collectives that can run beside a product that neither needs them nor is needed by them; each product hides one.
std::set<NodeId> hiddenCollectives(const Graph& graph) {
    std::set<NodeId> hidden, used;
    for (const Node& collective : graph.nodes()) {
        if (!collective.isCall(kGather) && !collective.isCall(kScatter)) continue;
        const std::set<NodeId> behind = withDescendants(collective);
        for (const Node& mm : graph.nodes()) {
            if (!mm.isCall(kMm) || used.contains(mm.id()) || behind.contains(mm.id()) ||
                withDescendants(mm).contains(collective.id()))
                continue;
            hidden.insert(collective.id());
            used.insert(mm.id());
            break;
        }
    }
    return hidden;
}

template <class Match, class Find, class Fuse>
Result<bool> fuseProducts(Graph& graph, Rewriter& rewriter, const std::set<NodeId>& hidden, std::string_view op,
                          std::string_view rule, std::string_view why, Find find, Fuse fuse) {
    std::vector<NodeId> calls;
    for (const Node& node : graph.nodes())
        if (node.isCall(op)) calls.push_back(node.id());
    bool changed = false;
    for (const NodeId id : calls) {
        Node* node = graph.find(id);
        if (node == nullptr) continue;
        const Refusing no(rewriter, rule, *node);
        if (hidden.contains(id)) {
            no("it can run beside a product that does not need it");
            continue;
        }
        std::optional<Match> found = find(*node, no);
        if (!found || !isFusible(*found, no)) continue;
        const Go go = rewriter.begin(rule, *node, why);
        if (go == Go::Stop) return changed;
        if (go == Go::Skip) continue;
        CT_TRY_VOID(fuse(graph, rewriter, *found));
        changed = true;
    }
    return changed;
}

}  // namespace

Result<bool> microPipelineProducts(Module& module, Rewriter& rewriter) {
    bool changed = false;
    for (auto& [name, body] : module.subgraphs) {
        CT_TRY(const bool inner, microPipelineProducts(*body, rewriter));
        changed |= inner;
    }
    Graph& graph = module.graph();
    const OptionalPass* settings = rewriter.request().enabled("micro_pipeline_tp_pass");
    const bool overlaps = settings && settings->flag("reorder_for_compute_comm_overlap", false);
    const std::set<NodeId> hidden = overlaps ? hiddenCollectives(graph) : std::set<NodeId>();
    CT_TRY(const bool gathers,
           fuseProducts<Gather>(graph, rewriter, hidden, kGather, kGatherRule,
                                "one piece is multiplied while the next is collected", gatheredBy, fuseGather));
    CT_TRY(const bool scatters,
           fuseProducts<Scatter>(graph, rewriter, hidden, kScatter, kScatterRule,
                                 "one piece is sent while the next is multiplied", scatteredBy, fuseScatter));
    return changed || gathers || scatters;
}

}  // namespace cutaway
