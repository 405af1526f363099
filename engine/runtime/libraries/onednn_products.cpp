// Products of matrices, and linear layers with what is computed of their results.
#include <array>
#include <cstring>

#include "engine/runtime/libraries/onednn_slices.h"

namespace cutaway {
namespace {

using Type = dnnl::memory::data_type;

/// The tensor as a matrix: all dims but the last as one. None where their elements do not lie at equal distances.
std::optional<DnnlLayout> matrixOf(const DnnlLayout& tensor) {
    const size_t rank = tensor.sizes.size();
    if (rank == 2) return tensor;
    if (rank == 0) throw LibraryRefusal("a tensor without dims is not a matrix");
    int64_t rows = 1, step = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
        if (tensor.sizes[d] == 1) continue;
        if (rows > 1 && step != tensor.strides[d] * tensor.sizes[d]) return std::nullopt;
        rows *= tensor.sizes[d];
        step = tensor.strides[d];
    }
    if (rows == 1) step = tensor.sizes.back() * std::max<int64_t>(tensor.strides.back(), 1);
    return tensor.with(tensor.type, {rows, tensor.sizes.back()}, {step, tensor.strides.back()});
}
/// The operand as a matrix, or the copy that is made of it where it is none.
DnnlLayout asMatrix(OneDnnPlan& plan, const CtTensor& tensor, int number) {
    const DnnlLayout layout(tensor);
    if (const auto matrix = matrixOf(layout)) return *matrix;
    return *matrixOf(plan.expand(number, layout.sizes));
}
DnnlLayout transposed(const DnnlLayout& matrix) {
    return matrix.with(matrix.type, {matrix.sizes[1], matrix.sizes[0]}, {matrix.strides[1], matrix.strides[0]});
}

/// Whether the library reads an operand of these sizes within its fast products: a whole one, one row, one number. Any
/// other makes it compute by plain loops.
bool isReadFast(const Dims& sizes, const Dims& out) {
    return sizes == out || std::all_of(sizes.begin(), sizes.end() - 1, [](int64_t size) { return size == 1; });
}
/// What is added to, or otherwise combined with, a result of these sizes: where elements repeat, one stands for all,
/// unless that is slow. `asRows`: both as matrices.
DnnlLayout besides(OneDnnPlan& plan, const CtTensor& tensor, int number, const Dims& out, bool asRows) {
    const size_t rank = out.size(), skipped = rank - static_cast<size_t>(tensor.rank);
    Dims sizes(rank, 1), strides(rank, 1);
    for (size_t d = skipped; d < rank; ++d)
        if (tensor.strides[d - skipped] != 0 && tensor.sizes[d - skipped] != 1) {
            sizes[d] = tensor.sizes[d - skipped];
            strides[d] = tensor.strides[d - skipped];
        }
    if (isReadFast(sizes, out)) {
        DnnlLayout layout = plan.layout(number, sizes, strides);
        if (!asRows) return layout;
        if (const auto matrix = matrixOf(layout)) return *matrix;
    }
    const DnnlLayout copy = plan.expand(number, out);
    return asRows ? *matrixOf(copy) : copy;
}
DnnlLayout dense(const DnnlLayout& layout) { return {layout.type, layout.sizes, contiguousStridesOf(layout.sizes)}; }
/// The layout as it is where rows or columns are dense, else a row-major copy's: others are read by plain loops.
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
    bool empty = false;  // a sum of nothing, which the library does not make: both operands are one column of zeros
};
/// Memory that each run fills with zeros.
OneDnnPlan::Place zeros(OneDnnPlan& plan, const dnnl::memory::desc& layout) {
    const OneDnnPlan::Place place = plan.scratch(layout);
    plan.add(
        [bytes = layout.get_size()](const std::vector<void*>& at, const LibraryRun&) { std::memset(at[0], 0, bytes); },
        {{DNNL_ARG_DST, place}});
    return place;
}

Product productOf(const CallReader& call, OneDnnPlan& plan) {
    const auto names = [&]() -> std::array<std::string_view, 3> {
        if (call.find("X")) return {"X", call.is("mkl._mkl_linear") ? "ORI_W" : "W", "B"};
        if (call.find("mat1")) return {"mat1", "mat2", "self"};
        if (call.find("batch1")) return {"batch1", "batch2", "self"};
        return {"self", "mat2", ""};
    }();
    Product p;
    p.first = call.operand(names[0]).value();
    p.second = call.operand(names[1]).value();
    const CtTensor &first = call.call().operands[p.first], &second = call.call().operands[p.second];
    p.out = DnnlLayout(call.call().results[0]);
    const bool layer = call.find("X") != nullptr;
    if (layer) {
        const auto out = matrixOf(p.out);
        if (!out) throw LibraryRefusal("the result's rows do not lie at equal distances");
        p.out = *out;
    }
    p.empty = elementsOf(first) == 0;
    if (p.empty) {
        const size_t last = p.out.sizes.size() - 1;
        p.a = p.b = p.out;
        p.a.sizes[last] = p.b.sizes[last - 1] = 1;
        p.a = dense(p.a);
        p.b = dense(p.b);
    } else {
        p.a = layer ? asMatrix(plan, first, p.first) : DnnlLayout(first);
        p.b = layer ? transposed(DnnlLayout(second)) : DnnlLayout(second);
    }
    if (const CtTensor* bias = call.tensor(names[2]); bias && call.real("beta").value_or(1) != 0) {
        p.added = call.operand(names[2]);
        p.addend = besides(plan, *bias, *p.added, sizesOf(call.call().results[0]), layer);
    }
    return p;
}

/// What follows a product (post-ops): an addend, and functions of each element.
class Finish {
  public:
    Finish(const CallReader& call, const Product& p, Type type, OneDnnPlan& plan)
        : m_call(&call), m_alpha(call.real("alpha").value_or(1)) {
        const DnnlLayout out = p.out.as(type);
        if (p.added) {
            // A row is added by the product itself, as a bias; anything else is an operand of a post-op.
            m_row = m_alpha == 1 && isRow(p.addend, out.sizes.back());
            m_added = dense(p.addend).as(type);
            if (!m_row && m_added->sizes == out.sizes) m_added = out;
        }
        if (const CtTensor* other = call.tensor("other")) {
            m_givenOther = besides(plan, *other, *call.operand("other"), sizesOf(call.call().results[0]), true);
            // The library reads an operand of the result's sizes in the result's layout, whatever layout it is told,
            // and any other row by row.
            const DnnlLayout read = m_givenOther.as(type);
            m_other = read.sizes == out.sizes ? DnnlLayout(read.type, out.sizes, out.strides) : dense(read);
        }
    }
    const std::optional<DnnlLayout>& added() const { return m_added; }
    const std::optional<DnnlLayout>& other() const { return m_other; }
    /// As it lies in memory.
    const DnnlLayout& givenOther() const { return m_givenOther; }
    bool addsRow() const { return m_row; }
    int addedArgument() const { return m_row ? DNNL_ARG_BIAS : operandArgument(m_alpha == 1 ? 0 : 1); }
    int otherArgument() const { return operandArgument((m_alpha == 1 ? 0 : 1) + (m_added && !m_row ? 1 : 0)); }
    /// The name of the last.
    std::string_view function() const { return m_call->text(m_other ? "unary_attr" : "attr"); }
    /// `cut` gives the layout of the part of an operand that goes with the part of the result to be computed.
    dnnl::primitive_attr attributes(const std::function<DnnlLayout(const DnnlLayout&)>& cut) const {
        dnnl::post_ops ops;
        if (m_alpha != 1) appendFunction(ops, dnnl::algorithm::eltwise_linear, static_cast<float>(m_alpha), 0);
        if (m_added && !m_row) ops.append_binary(dnnl::algorithm::binary_add, cut(*m_added).desc());
        const char* const name = m_call->find("binary_attr") ? "binary_attr" : "attr";
        if (m_other) ops.append_binary(binaryFunction(m_call->text(name)), cut(*m_other).desc());
        appendUnary(ops, *m_call, function());
        dnnl::primitive_attr made = callersScratch();
        made.set_post_ops(ops);
        return made;
    }

  private:
    static int operandArgument(int number) { return DNNL_ARG_ATTR_MULTIPLE_POST_OP(number) | DNNL_ARG_SRC_1; }

    const CallReader* m_call;
    double m_alpha;
    std::optional<DnnlLayout> m_added, m_other;
    DnnlLayout m_givenOther;
    bool m_row = false;
};

void planAs(const CallReader& call, OneDnnPlan& plan, const Product& p, Type type) {
    const Finish finish(call, p, type, plan);
    const DnnlLayout a = readable(p.a, type), b = readable(p.b, type), c = p.out.as(type);
    using Description = dnnl::matmul::primitive_desc;
    const auto describe = [&](const std::optional<ProductSlice>& slice,
                              const dnnl::memory::desc& weights) -> Description {
        const size_t rank = c.sizes.size();
        const auto cut = [&](const DnnlLayout& whole) { return slice ? SlicedArgument{whole}.slice(*slice) : whole; };
        const auto x = slice && slice->dim + 1 == rank ? a.desc() : cut(a).desc();
        const auto attributes = finish.attributes(cut);
        if (finish.addsRow())
            return describePrimitive<dnnl::matmul>(attributes, x, weights, cut(*finish.added()).desc(), cut(c).desc());
        return describePrimitive<dnnl::matmul>(attributes, x, weights, cut(c).desc());
    };
    const bool constant = call.call().constant[p.second] != 0 && !p.empty;
    const Description whole = describe({}, constant ? p.b.as(type).any() : b.desc());
    refuseSlow(type, whole.impl_info_str());
    const bool sliced = dependsOnThreads(whole.impl_info_str());
    const auto operand = [&](int number, const DnnlLayout& given, const dnnl::memory::desc& wanted) {
        return p.empty ? zeros(plan, wanted) : plan.operand(number, given, wanted);
    };
    const OneDnnPlan::Place made = plan.result(0, p.out, c.desc());
    OneDnnPlan::Arguments arguments = {
        {DNNL_ARG_SRC, operand(p.first, p.a, sliced ? a.desc() : whole.src_desc())},
        {DNNL_ARG_WEIGHTS, operand(p.second, p.b, sliced ? b.desc() : whole.weights_desc())},
        {DNNL_ARG_DST, made}};
    if (finish.added()) {
        const double beta = call.real("beta").value_or(1);
        const OneDnnPlan::Place place = plan.operand(*p.added, p.addend, finish.added()->desc());
        arguments.emplace_back(finish.addedArgument(),
                               beta == 1 ? place : plan.scaled(place, static_cast<float>(beta)));
    }
    if (finish.other())
        arguments.emplace_back(finish.otherArgument(),
                               plan.operand(*call.operand("other"), finish.givenOther(), finish.other()->desc()));
    if (!sliced) {
        plan.add(dnnl::matmul(whole), whole, std::move(arguments));
        return clampBehind(plan, call, finish.function(), made, c);
    }
    const ProductSlice slice = sliceOf(c.sizes);
    const size_t rank = c.sizes.size();
    const SlicedArgument weights{b, slice.dim + 2 != rank};
    std::vector<SlicedArgument> layouts = {{a, slice.dim + 1 != rank}, weights, {c}};
    if (finish.added()) layouts.push_back({*finish.added()});
    if (finish.other()) layouts.push_back({*finish.other()});
    const auto described = [&](const ProductSlice& part) { return describe(part, weights.slice(part).desc()); };
    addInSlices(plan, slice, c.sizes[slice.dim], described, arguments, layouts);
    clampBehind(plan, call, finish.function(), made, c);
}

}  // namespace

OneDnnPlan::Place planByteProduct(const CallReader& call, OneDnnPlan& plan, const dnnl::primitive_attr& attributes,
                                  OneDnnPlan::Arguments arguments) {
    const int first = call.operand("qx").value(), second = call.operand("qw").value();
    const DnnlLayout a = asMatrix(plan, call.call().operands[first], first), b(call.call().operands[second]);
    const DnnlLayout sums = dense({Type::s32, {a.sizes[0], b.sizes[1]}, {}});
    const auto description = describePrimitive<dnnl::matmul>(
        attributes, a.desc(), call.call().constant[second] != 0 ? b.any() : b.desc(), sums.desc());
    refuseSlow(a.type, description.impl_info_str());
    return addToScratch<dnnl::matmul>(plan, description, plan.operand(first, a, description.src_desc()),
                                      plan.operand(second, b, description.weights_desc()), sums.desc(),
                                      std::move(arguments));
}

void planProduct(const CallReader& call, OneDnnPlan& plan) {
    const DnnlLayout out(call.call().results[0]);
    plan.inOwnTypeOrF32(out.type, [&](Type type) { planAs(call, plan, productOf(call, plan), type); });
}

}  // namespace cutaway
