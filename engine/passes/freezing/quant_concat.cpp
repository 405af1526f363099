#include "engine/passes/freezing/quant_concat.h"

#include <algorithm>

#include "engine/ir/module.h"
#include "engine/passes/freezing/options.h"
#include "engine/passes/freezing/quant_operands.h"

namespace cutaway {
namespace {

constexpr std::string_view kRule = "int8_woq_concat_linear";
constexpr size_t kProducts = 3;

/// mul(mm(x, convert(permute(w))), s)
struct WeightOnly {
    Node *product = nullptr, *result = nullptr;
    Node *x = nullptr, *weight = nullptr, *scale = nullptr;
};

bool isConstantPart(const Node* node) { return node && node->kind() == NodeKind::GetAttr && node->type().tensor(); }

bool readWeightOnly(Node& product, WeightOnly& found, const Refusing& no) {
    found.product = &product;
    found.x = product.arg(0).node();
    const Node* wide = product.arg(1).node();
    const Node* turned = wide->isCall("prims.convert_element_type.default") ? wide->arg(0).node() : nullptr;
    if (turned == nullptr || !turned->isCall("aten.permute.default"))
        return no("its weight, ", NodeWithKind{wide}, ", is not transposed and then widened");
    found.weight = turned->arg(0).node();
    const TensorType& weight = found.weight->tensor();
    if (!isConstantPart(found.weight) || weight.dtype != DType::I8 || weight.rank() != 2 ||
        weight.strides != contiguousStrides(weight.sizes))
        return no("its weight, ", NodeWithKind{found.weight}, ", is not a constant row-major matrix of int8");
    if (!(turned->tensor().sizes == SymDims{weight.sizes[1], weight.sizes[0]}) ||
        found.x->tensor().dtype != DType::BF16)
        return no("it is not a product of bfloat16 with the transposed weight");
    found.result = onlyUser(product);
    if (found.result == nullptr || !found.result->isCall("aten.mul.Tensor"))
        return no("it is not only multiplied by scales");
    found.scale = found.result->arg(found.result->arg(0).node() == &product ? 1 : 0).node();
    const bool fits = isConstantPart(found.scale) && found.scale->tensor().rank() == 1 &&
                      found.scale->tensor().dtype == DType::BF16 && found.scale->tensor().sizes[0] == weight.sizes[0];
    return fits || no.about(found.result, "the scales are not a constant vector of bfloat16, one for each column");
}

/// The product and the two before it that read the same tensor; empty if there are too few.
std::vector<WeightOnly> findThree(const Graph& graph, const WeightOnly& last, const Refusing& no) {
    std::vector<WeightOnly> found;
    for (Node* user : last.x->users()) {
        WeightOnly other;
        if (user == last.product || !user->isCall("aten.mm.default") || user->arg(0).node() != last.x ||
            !graph.isBefore(*user, *last.product) || !readWeightOnly(*user, other, {}))
            continue;
        const auto sharesWeight = [&](const WeightOnly& one) { return one.weight == other.weight; };
        if (!sharesWeight(last) && std::none_of(found.begin(), found.end(), sharesWeight)) found.push_back(other);
    }
    if (found.size() + 1 < kProducts) {
        no("no two other products of ", last.x, " before it have other weights");
        return {};
    }
    std::sort(found.begin(), found.end(),
              [&](const WeightOnly& a, const WeightOnly& b) { return graph.isBefore(*a.product, *b.product); });
    found.erase(found.begin(), found.end() - (kProducts - 1));
    found.push_back(last);
    return found;
}

Result<void> join(Graph& graph, Rewriter& rewriter, const std::vector<WeightOnly>& products) {
    Node& first = *products.front().product;
    std::vector<Argument> weights, scales, columns;
    for (const WeightOnly& one : products) {
        for (Node* constant : {one.weight, one.scale})
            if (!graph.isBefore(*constant, first)) graph.moveBefore(*constant, first);
        weights.emplace_back(one.weight);
        scales.emplace_back(one.scale);
        columns.emplace_back(one.weight->tensor().sizes[0]);
    }
    GraphBuilder builder = rewriter.builder(graph, &first, first);
    const Value weight = builder.call("aten.cat.default", {Argument(std::move(weights)), 0});
    const Value scale = builder.call("aten.cat.default", {Argument(std::move(scales)), 0});
    const Value y = builder.call("aten._weight_int8pack_mm.default", {Argument(products.front().x), weight, scale});
    const Value parts = builder.call("aten.split_with_sizes.default", {y, Argument(std::move(columns)), 1});
    std::vector<Value> results;
    for (size_t i = 0; i < products.size() && !builder.error(); ++i) results.push_back(parts[static_cast<int64_t>(i)]);
    if (builder.error()) return *builder.error();
    for (size_t i = 0; i < products.size(); ++i) replaceWhole(rewriter, *products[i].result, *results[i].node());
    return {};
}

}  // namespace

Result<bool> concatWeightOnlyProducts(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    const bool on = freezingOptions(rewriter.request()).concatLinear;
    std::vector<NodeId> ids;
    for (const Node& node : graph.nodes()) ids.push_back(node.id());
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
        Node* node = graph.find(*id);
        if (node == nullptr || !node->isCall("aten.mm.default")) continue;
        const Refusing no(rewriter, kRule, *node);
        WeightOnly last;
        if (!readWeightOnly(*node, last, no)) continue;
        if (!on || node->tensor().device.type != DeviceType::Cpu) {
            no("it is off (--enable freeze=enable_concat_linear:1), or not on the CPU");
            continue;
        }
        const std::vector<WeightOnly> products = findThree(graph, last, no);
        if (products.empty()) continue;
        const Go go = rewriter.begin(kRule, *node, "one product reads the tensor once");
        if (go == Go::Stop) break;
        if (go == Go::Yes) CT_TRY_VOID(join(graph, rewriter, products));
    }
    return rewriter.changed();
}

}  // namespace cutaway
