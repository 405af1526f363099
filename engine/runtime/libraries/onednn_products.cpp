// Products of matrices, and linear layers with what is computed of their results.
#include <array>

#include "engine/runtime/libraries/onednn_plan.h"

namespace cutaway {
namespace {

using Type = dnnl::memory::data_type;

/// The tensor as a matrix: all dims but the last as one.
DnnlLayout asMatrix(const DnnlLayout& tensor) {
    const size_t rank = tensor.sizes.size();
    if (rank == 2) return tensor;
    if (rank == 0) throw LibraryRefusal("a tensor without dims is no matrix");
    int64_t rows = 1, step = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
        if (tensor.sizes[d] == 1) continue;
        if (rows > 1 && step != tensor.strides[d] * tensor.sizes[d])
            throw LibraryRefusal("rows do not lie at equal distances");
        rows *= tensor.sizes[d];
        step = tensor.strides[d];
    }
    if (rows == 1) step = tensor.sizes.back() * std::max<int64_t>(tensor.strides.back(), 1);
    return tensor.with(tensor.type, {rows, tensor.sizes.back()}, {step, tensor.strides.back()});
}
DnnlLayout transposed(const DnnlLayout& matrix) {
    return matrix.with(matrix.type, {matrix.sizes[1], matrix.sizes[0]}, {matrix.strides[1], matrix.strides[0]});
}

/// What is added to a product, as many dims as that: where elements repeat, one stands for all.
DnnlLayout addend(const CtTensor& tensor, size_t rank) {
    Dims sizes(rank, 1), strides(rank, 1);
    const size_t skipped = rank - static_cast<size_t>(tensor.rank);
    for (size_t d = skipped; d < rank; ++d)
        if (tensor.strides[d - skipped] != 0) {
            sizes[d] = tensor.sizes[d - skipped];
            strides[d] = tensor.strides[d - skipped];
        }
    CtTensor shaped = tensor;
    shaped.rank = static_cast<int32_t>(rank);
    shaped.sizes = sizes.data();
    shaped.strides = strides.data();
    return DnnlLayout(shaped);
}
DnnlLayout dense(const DnnlLayout& layout) { return {layout.type, layout.sizes, contiguousStridesOf(layout.sizes)}; }
/// Where rows or columns lie without gaps between elements, as it lies; others, the library reads by its plain loops.
DnnlLayout readable(const DnnlLayout& matrix, Type type) {
    const size_t rank = matrix.sizes.size();
    const auto dense = [&](size_t d) { return matrix.strides[d] == 1 || matrix.sizes[d] == 1; };
    if (dense(rank - 1) || dense(rank - 2)) return matrix.as(type);
    return {type, matrix.sizes, contiguousStridesOf(matrix.sizes)};
}
/// One number per column.
bool isRow(const DnnlLayout& layout, int64_t columns) {
    for (size_t d = 0; d + 1 < layout.sizes.size(); ++d)
        if (layout.sizes[d] != 1) return false;
    return layout.sizes.back() == columns;
}

/// A product's operands by number, and how it sees them.
struct Product {
    int first = 0, second = 0;
    DnnlLayout a, b, out;
    std::optional<int> added;
    DnnlLayout addend;
};

Product productOf(const CallReader& call) {
    const auto names = [&]() -> std::array<std::string_view, 3> {
        if (call.find("X")) return {"X", call.is("mkl._mkl_linear") ? "ORI_W" : "W", "B"};
        if (call.find("mat1")) return {"mat1", "mat2", "self"};
        if (call.find("batch1")) return {"batch1", "batch2", "self"};
        return {"self", "mat2", ""};
    }();
    Product p;
    p.first = call.operand(names[0]).value();
    p.second = call.operand(names[1]).value();
    p.a = DnnlLayout(call.call().operands[p.first]);
    p.b = DnnlLayout(call.call().operands[p.second]);
    p.out = DnnlLayout(call.call().results[0]);
    if (call.find("X")) {
        p.a = asMatrix(p.a);
        p.b = transposed(p.b);
        p.out = asMatrix(p.out);
    }
    if (const CtTensor* bias = call.tensor(names[2]); bias && call.real("beta").value_or(1) != 0) {
        p.added = call.operand(names[2]);
        p.addend = addend(*bias, p.out.sizes.size());
    }
    return p;
}

/// The function of each element that a packed call's arguments name, and what it adds of another operand.
struct Epilogue {
    dnnl::post_ops ops;
    std::optional<int> other;  // operand number
    DnnlLayout wanted;
    int argument = 0;
};
/// `out` is the result as the product sees it.
Epilogue epilogueOf(const CallReader& call, const DnnlLayout& out, const std::optional<DnnlLayout>& other) {
    Epilogue made;
    const std::string_view function = call.text(call.find("binary_attr") ? "binary_attr" : "attr");
    if (other) {
        if (other->sizes.size() != out.sizes.size())
            throw LibraryRefusal("the other operand has another number of dims than the result");
        made.other = call.operand("other");
        // The library reads an operand of the result's sizes in the result's layout, whatever layout it is told.
        made.wanted = other->sizes == out.sizes ? DnnlLayout(other->type, out.sizes, out.strides) : *other;
        made.ops.append_binary(binaryFunction(function), made.wanted.desc());
        made.argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    }
    appendUnary(made.ops, call, other ? call.text("unary_attr") : function);
    return made;
}

void planAs(const CallReader& call, OneDnnPlan& plan, const Product& p, Type type) {
    std::optional<DnnlLayout> other;
    if (const CtTensor* tensor = call.tensor("other")) other = asMatrix(DnnlLayout(*tensor)).as(type);
    const DnnlLayout out = p.out.as(type);
    dnnl::post_ops ops;
    const double alpha = call.real("alpha").value_or(1);
    if (alpha != 1) appendFunction(ops, dnnl::algorithm::eltwise_linear, static_cast<float>(alpha), 0);
    // The library adds a row to a product; anything else is one more operand of what it computes of the result.
    const bool row = p.added && alpha == 1 && isRow(p.addend, out.sizes.back());
    int addendArgument = 0;
    DnnlLayout added;
    if (p.added) {
        added = dense(p.addend).as(type);
        if (!row && added.sizes == out.sizes) added = out;
        if (!row) {
            addendArgument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len()) | DNNL_ARG_SRC_1;
            ops.append_binary(dnnl::algorithm::binary_add, added.desc());
        }
    }
    Epilogue epilogue;
    if (!p.added || row) epilogue = epilogueOf(call, out, other);
    dnnl::primitive_attr attributes = callersScratch();
    attributes.set_post_ops(ops.len() > 0 ? ops : epilogue.ops);
    const bool constant = call.call().constant[p.second] != 0;
    const auto a = readable(p.a, type).desc(), b = constant ? p.b.as(type).any() : readable(p.b, type).desc(),
               c = out.desc();
    const auto description = row ? describePrimitive<dnnl::matmul>(attributes, a, b, added.desc(), c)
                                 : describePrimitive<dnnl::matmul>(attributes, a, b, c);
    refuseSlow(type, description.impl_info_str());
    OneDnnPlan::Arguments arguments = {{DNNL_ARG_SRC, plan.operand(p.first, p.a, description.src_desc())},
                                       {DNNL_ARG_WEIGHTS, plan.operand(p.second, p.b, description.weights_desc())},
                                       {DNNL_ARG_DST, plan.result(0, p.out, description.dst_desc())}};
    if (p.added) {
        const double beta = call.real("beta").value_or(1);
        const OneDnnPlan::Place place = plan.operand(*p.added, p.addend, added.desc());
        arguments.emplace_back(row ? DNNL_ARG_BIAS : addendArgument,
                               beta == 1 ? place : plan.scaled(place, static_cast<float>(beta)));
    }
    if (epilogue.other)
        arguments.emplace_back(
            epilogue.argument,
            plan.operand(*epilogue.other, asMatrix(DnnlLayout(*call.tensor("other"))), epilogue.wanted.desc()));
    plan.add(dnnl::matmul(description), description, std::move(arguments));
}

}  // namespace

OneDnnPlan::Place planByteProduct(const CallReader& call, OneDnnPlan& plan, const dnnl::primitive_attr& attributes,
                                  OneDnnPlan::Arguments arguments) {
    const int first = call.operand("qx").value(), second = call.operand("qw").value();
    const DnnlLayout a = asMatrix(DnnlLayout(call.call().operands[first])), b(call.call().operands[second]);
    const DnnlLayout sums = dense({Type::s32, {a.sizes[0], b.sizes[1]}, {}});
    const auto description = describePrimitive<dnnl::matmul>(
        attributes, a.desc(), call.call().constant[second] != 0 ? b.any() : b.desc(), sums.desc());
    refuseSlow(a.type, description.impl_info_str());
    return addToScratch<dnnl::matmul>(plan, description, plan.operand(first, a, description.src_desc()),
                                      plan.operand(second, b, description.weights_desc()), sums.desc(),
                                      std::move(arguments));
}

void planProduct(const CallReader& call, OneDnnPlan& plan) {
    const Product product = productOf(call);
    plan.inOwnTypeOrF32(product.out.type, [&](Type type) { planAs(call, plan, product, type); });
}

}  // namespace cutaway
