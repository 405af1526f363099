#include "tests/engine/random_kernels.h"

#include <cmath>
#include <set>

#include "engine/ops/build.h"
#include "engine/support/check.h"
#include "engine/support/random.h"
#include "tests/engine/lowering_samples.h"
#include "tests/support/op_samples.h"

namespace cutaway::testing {
namespace {

constexpr int64_t kMostElements = 6000;
/// The largest magnitude of rounded values: beyond it, later steps make too much of a rounding error.
constexpr double kLargestRounded = 8;

/// Operators that may have rounded operands: their slopes are small and they do not jump.
const std::set<std::string_view> kSmooth = {
    "add",         "sub",       "rsub",       "mul",     "neg",       "abs",
    "sigmoid",     "tanh",      "relu",       "maximum", "minimum",   "fmax",
    "fmin",        "sin",       "cos",        "atan",    "erf",       "hardtanh",
    "clamp",       "where",     "clone",      "addcmul", "elu",       "softplus",
    "silu",        "gelu",      "leaky_relu", "sinh",    "asinh",     "expm1",
    "hardsigmoid", "logaddexp", "lerp",       "mish",    "hardswish", "log_sigmoid_forward",
    "square"};
/// Operators whose results are bits of an operand, for half floats as well.
const std::set<std::string_view> kMoves = {"where", "clone",   "maximum", "minimum", "neg", "abs",
                                           "relu",  "permute", "amax",    "amin",    "max", "min"};
const std::set<std::string_view> kSums = {"sum", "mean", "var_mean", "_softmax", "prod", "cumsum"};
constexpr DType kDtypes[] = {DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16, DType::F16,
                             DType::I64, DType::I32, DType::I16, DType::I8,  DType::U8,   DType::Bool};

std::vector<const Op*> pointwiseOps() {
    std::vector<const Op*> ops;
    for (const Op* op : loweredOps())
        if (op->is(Tag::Pointwise)) ops.push_back(op);
    return ops;
}

class RandomKernels {
  public:
    RandomKernels(uint64_t seed, Undefined undefined) : m_random(seed), m_undefined(undefined) {
        const Dims base = {pick<int64_t>({2, 3, 5}), pick<int64_t>({1, 4, 16}), pick<int64_t>({1, 7, 17, 33})};
        for (int i = 0; i < 5; ++i) {
            TensorSpec spec;
            spec.dtype = kDtypes[below(std::size(kDtypes))];
            spec.sizes.assign(base.begin() + static_cast<int64_t>(below(3)), base.end());
            for (int64_t& size : spec.sizes)
                if (below(6) == 0) size = 1;
            spec.strides = contiguousStrides(spec.sizes);
            if (spec.sizes.size() > 1 && below(3) == 0) {
                std::swap(spec.strides.front(), spec.strides.back());
                spec.strides = denseOrder(spec.sizes, spec.strides);
            }
            if (below(3) == 0) spec.draw = TensorSpec::Draw::Positive;
            TensorType type = TensorType::contiguous(spec.dtype, toSymDims(spec.sizes));
            type.strides = toSymDims(spec.strides);
            Node& node = m_graph.placeholder("x", ValueType(type));
            m_inputs.push_back(makeInput(spec, below(1000)));
            m_values.set(node, {m_inputs.back()});
            m_held.push_back({&node, true});
        }
    }

    LoweringCase grown(int calls) {
        static constexpr void (RandomKernels::*kSteps[])(GraphBuilder&) = {
            &RandomKernels::pointwise, &RandomKernels::pointwise, &RandomKernels::pointwise, &RandomKernels::pointwise,
            &RandomKernels::reduced,   &RandomKernels::reduced,   &RandomKernels::viewed,    &RandomKernels::viewed,
            &RandomKernels::padded,    &RandomKernels::joined,    &RandomKernels::gathered,  &RandomKernels::cast};
        const size_t inputs = m_held.size();
        for (int tries = 0; m_held.size() < inputs + static_cast<size_t>(calls) && tries < 40 * calls; ++tries) {
            GraphBuilder builder(m_graph);
            (this->*kSteps[below(std::size(kSteps))])(builder);
        }
        LoweringCase out;
        std::vector<Argument> results;
        for (size_t i = inputs; i < m_held.size(); ++i) {
            if (i + 1 < m_held.size() && below(3) > 0) continue;
            const Held& held = m_held[i];
            const DType dtype = held.node->tensor().dtype;
            results.emplace_back(held.node);
            out.bounds.push_back(held.exact ? Bound{} : Bound{isHalf(dtype) ? 8.0 : 64.0, true});
        }
        m_graph.output(Argument(std::move(results)));
        m_module->inputs.resize(inputs);
        m_module->outputs.resize(m_graph.outputs().size());
        out.module = m_module;
        out.inputs = m_inputs;
        return out;
    }

  private:
    struct Held {
        Node* node;
        bool exact;
    };

    uint64_t below(uint64_t bound) { return m_random.below(bound); }
    template <class T>
    T pick(std::initializer_list<T> from) {
        return std::data(from)[below(from.size())];
    }
    static Dims denseOrder(const Dims& sizes, const Dims& strides) {
        Dims dense(sizes.size());
        std::vector<size_t> order;
        for (size_t d = 0; d < sizes.size(); ++d) order.push_back(d);
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
        int64_t next = 1;
        for (const size_t d : order) {
            dense[d] = next;
            next *= sizes[d];
        }
        return dense;
    }
    const Held& any() { return m_held[m_held.size() - 1 - std::min(below(m_held.size()), below(m_held.size()))]; }
    const Tensor& valueOf(const Node& node) const { return m_values.valueOf(node)[0]; }

    /// Keeps the value if the call can be made and what it gives is of use.
    void keep(GraphBuilder& b, const Value& value, const std::vector<const Held*>& operands) {
        if (b.error() || !value || b.created().empty()) return;
        for (Node* node : b.created()) {
            auto computed = evaluateNode(*node, m_values);
            if (!computed) return;
            m_values.set(*node, std::move(*computed));
        }
        Node& node = *value.node();
        if (!node.type().tensor() || isComplex(node.tensor().dtype)) return;
        const Tensor& result = valueOf(node);
        if (result.numel() > kMostElements) return;
        const bool exact = isExact(node, operands);
        for (int64_t i = 0; !exact && i < result.numel(); ++i)
            if (const double number = std::fabs(toDouble(result.item(i))); !(number <= kLargestRounded)) return;
        m_held.push_back({&node, exact});
    }
    bool isExact(const Node& node, const std::vector<const Held*>& operands) const {
        for (const Held* operand : operands)
            if (!operand->exact) return false;
        const DType dtype = node.tensor().dtype;
        if (!isFloating(dtype)) return true;
        const Node* maker = node.isCall("operator.getitem") ? node.arg(size_t{0}).node() : &node;
        const Op& op = maker->op();
        const Bound bound = boundOf(op);
        const bool sums = kSums.contains(op.baseName());
        const bool moves = kMoves.contains(op.baseName()) || op.is(Tag::View) || !op.is(Tag::Pointwise);
        return bound.ulps == 0 && !sums && (!isHalf(dtype) || moves);
    }
    static bool rounded(const std::vector<const Held*>& operands) {
        for (const Held* operand : operands)
            if (!operand->exact) return true;
        return false;
    }
    bool holdsZero(const Node& node) const {
        const Tensor& value = valueOf(node);
        for (int64_t i = 0; i < value.numel(); ++i)
            if (toDouble(value.item(i)) == 0) return true;
        return false;
    }

    void pointwise(GraphBuilder& b) {
        static const std::vector<const Op*> ops = pointwiseOps();
        const Op& op = *ops[below(ops.size())];
        std::vector<Argument> args;
        std::vector<const Held*> operands;
        for (const Param& param : op.schema()->params) {
            if (param.list || param.hasDefault || param.keywordOnly) break;
            if (param.kind == ParamKind::Tensor) {
                operands.push_back(&any());
                args.emplace_back(operands.back()->node);
            } else if (param.kind == ParamKind::Number || param.kind == ParamKind::Float) {
                args.emplace_back(pick({0.5, 2.0, -1.0, 0.25, 3.0}));
            } else if (param.kind == ParamKind::Int) {
                args.emplace_back(static_cast<int64_t>(below(3)) + 1);
            } else if (param.kind == ParamKind::Bool) {
                args.emplace_back(below(2) == 0);
            } else {
                return;
            }
        }
        if (rounded(operands) && !kSmooth.contains(op.baseName())) return;
        for (const Held* operand : operands)
            if (!isDefined(*operand->node, op)) return;
        // Where the condition was rounded a result jumps.
        if (op.baseName() == "where" && !operands.empty() && !operands[0]->exact) return;
        for (size_t i = 1; i < operands.size(); ++i)
            if (!isFloating(operands[i]->node->tensor().dtype) && holdsZero(*operands[i]->node) &&
                (op.name().find("div") != std::string::npos || op.name().find("mod") != std::string::npos ||
                 op.name().find("remainder") != std::string::npos))
                return;
        const std::vector<const Held*> own = operands;
        keep(b, b.call(op, std::move(args)), own);
    }

    std::vector<int64_t> someDims(int64_t rank) {
        std::vector<int64_t> dims;
        for (int64_t d = 0; d < rank; ++d)
            if (below(2)) dims.push_back(d);
        if (dims.empty()) dims.push_back(static_cast<int64_t>(below(static_cast<uint64_t>(rank))));
        return dims;
    }
    void reduced(GraphBuilder& b) {
        const Held& x = any();
        const int64_t rank = x.node->tensor().rank();
        if (rank == 0 || valueOf(*x.node).numel() == 0) return;
        const Argument dims(someDims(rank)), keepDim(below(2) == 0);
        const auto dim = static_cast<int64_t>(below(static_cast<uint64_t>(rank)));
        const std::vector<const Held*> operands = {&x};
        switch (below(12)) {
            case 0:
            case 1: return keep(b, b.call("aten.sum.dim_IntList", {x.node, dims, keepDim}), operands);
            case 2: return keep(b, b.call("aten.mean.dim", {x.node, dims, keepDim}), operands);
            case 3: return keep(b, b.call("aten.amax.default", {x.node, dims, keepDim}), operands);
            case 4: return keep(b, b.call("aten.amin.default", {x.node, dims, keepDim}), operands);
            case 5:
                return keep(b, b.call("aten.var_mean.correction", {x.node, dims}, {{"keepdim", true}})[0], operands);
            case 6: return keep(b, b.call("aten._softmax.default", {x.node, dim, false}), operands);
            case 7: return keep(b, b.call("aten.prod.dim_int", {x.node, dim, keepDim}), operands);
            case 8: return keep(b, b.call("aten.cumsum.default", {x.node, dim}), operands);
            default: break;
        }
        if (!x.exact) return;  // a rounding can move the position
        const char* const ops[] = {"aten.argmax.default", "aten.argmin.default", "aten.any.dim", "aten.all.dim"};
        keep(b, b.call(ops[below(4)], {x.node, dim, keepDim}), operands);
    }

    void viewed(GraphBuilder& b) {
        const Held& x = any();
        const Value value = b.value(*x.node);
        const int64_t rank = value.rank();
        const auto dim = static_cast<int64_t>(below(static_cast<uint64_t>(std::max<int64_t>(rank, 1))));
        const int64_t size = rank ? value.sizes()[static_cast<size_t>(dim)].value() : 1;
        const std::vector<const Held*> operands = {&x};
        switch (below(8)) {
            case 0: {
                std::vector<int64_t> order(static_cast<size_t>(rank));
                for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
                for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
                return keep(b, permute(value, order), operands);
            }
            case 1: return keep(b, reshape(value, SymDims{numel(value.sizes())}), operands);
            case 2: return keep(b, unsqueeze(value, dim), operands);
            case 3: {
                const auto start = static_cast<int64_t>(below(static_cast<uint64_t>(size) + 1));
                return keep(b, b.call("aten.slice.Tensor", {value, dim, start, size, pick<int64_t>({1, 2, 3})}),
                            operands);
            }
            case 4:
                if (size == 0) return;
                return keep(
                    b,
                    b.call("aten.select.int", {value, dim, static_cast<int64_t>(below(static_cast<uint64_t>(size)))}),
                    operands);
            case 5: {
                SymDims sizes = value.sizes();
                for (SymInt& one : sizes)
                    if (one == SymInt(1)) one = SymInt(pick<int64_t>({1, 2, 5}));
                return keep(b, expand(value, sizes), operands);
            }
            case 6: return keep(b, b.call("aten.flip.default", {value, Argument(std::vector<int64_t>{dim})}), operands);
            default: {
                // Two dims become one, or one two.
                SymDims sizes = value.sizes();
                if (rank < 2) return;
                const size_t at = below(static_cast<uint64_t>(rank - 1));
                sizes[at] = sizes[at] * sizes[at + 1];
                sizes.erase(sizes.begin() + static_cast<int64_t>(at) + 1);
                return keep(b, reshape(value, sizes), operands);
            }
        }
    }

    void padded(GraphBuilder& b) {
        const Held& x = any();
        const int64_t rank = x.node->tensor().rank();
        if (rank == 0) return;
        std::vector<int64_t> pads;
        for (int64_t i = 0; i < 2 * std::min<int64_t>(rank, 2); ++i) pads.push_back(pick<int64_t>({0, 1, 2, -1}));
        keep(b, b.call("aten.constant_pad_nd.default", {x.node, Argument(pads), pick({0.0, 1.0})}), {&x});
    }

    void joined(GraphBuilder& b) {
        const Held& x = any();
        const int64_t rank = x.node->tensor().rank();
        if (rank == 0) return;
        const auto dim = static_cast<int64_t>(below(static_cast<uint64_t>(rank)));
        std::vector<const Held*> operands = {&x};
        std::vector<Argument> items = {x.node};
        for (int i = 0; i < 6 && items.size() < 4; ++i) {
            const Held& other = any();
            SymDims a = x.node->tensor().sizes, c = other.node->tensor().sizes;
            if (a.size() != c.size()) continue;
            a[static_cast<size_t>(dim)] = c[static_cast<size_t>(dim)] = SymInt(1);
            if (!(a == c)) continue;
            operands.push_back(&other);
            items.emplace_back(other.node);
        }
        keep(b, b.call("aten.cat.default", {Argument(std::move(items)), dim}), operands);
    }

    void gathered(GraphBuilder& b) {
        const Held &x = any(), &from = any();
        const DType dtype = from.node->tensor().dtype;
        const int64_t rank = x.node->tensor().rank();
        if (rank == 0 || !from.exact || !isIntegral(dtype, false)) return;
        const auto dim = static_cast<int64_t>(below(static_cast<uint64_t>(rank)));
        const int64_t size = valueOf(*x.node).size(dim);
        if (size == 0) return;
        const Value wide = convert(b.value(*from.node), DType::I64);
        const Value index = b.call("aten.remainder.Scalar", {wide, size});
        const std::vector<const Held*> operands = {&x, &from};
        switch (below(3)) {
            case 0: {
                std::vector<Argument> indices(static_cast<size_t>(dim));
                indices.emplace_back(index);
                return keep(b, b.call("aten.index.Tensor", {x.node, Argument(std::move(indices))}), operands);
            }
            case 1: {
                const Value flat = reshape(index, SymDims{numel(index.sizes())});
                return keep(b, b.call("aten.index_select.default", {x.node, dim, flat}), operands);
            }
            default: return keep(b, b.call("aten.gather.default", {x.node, dim, index}), operands);
        }
    }

    void cast(GraphBuilder& b) {
        const Held& x = any();
        const DType to = kDtypes[below(std::size(kDtypes))];
        if ((!x.exact && !isFloating(to)) || !isDefined(*x.node, to)) return;
        keep(b, convert(b.value(*x.node), to), {&x});
    }

    /// Whether every processor answers the same for it.
    bool isDefined(const Node& x, const Op& op) const {
        if (m_undefined == Undefined::Included || !(op.baseName() == "signbit" || op.baseName() == "copysign"))
            return true;
        const Tensor& value = valueOf(x);
        for (int64_t i = 0; i < value.numel(); ++i)
            if (std::isnan(toDouble(value.item(i)))) return false;
        return true;
    }
    bool isDefined(const Node& x, DType to) const {
        if (m_undefined == Undefined::Included || !isIntegral(to, false) || !isFloating(x.tensor().dtype)) return true;
        const double most = isUnsigned(to) ? 0x1p8 : std::ldexp(1, byteSize(to) * 8 - 1);
        const Tensor& value = valueOf(x);
        for (int64_t i = 0; i < value.numel(); ++i)
            if (const double number = toDouble(value.item(i));
                !(number < most && (isUnsigned(to) ? number > -1 : number >= -most)))
                return false;
        return true;
    }

    Random m_random;
    Undefined m_undefined;
    std::shared_ptr<Module> m_module = std::make_shared<Module>();
    Graph& m_graph = m_module->graph();
    NodeValues m_values;
    std::vector<Tensor> m_inputs;
    std::vector<Held> m_held;
};

}  // namespace

LoweringCase randomKernels(uint64_t seed, Undefined undefined) {
    LoweringCase one = RandomKernels(seed, undefined).grown(16);
    one.name = "seed " + std::to_string(seed);
    const auto judged = judge(one);
    CT_CHECK(judged.has_value(), "each value was computed while the graph grew");
    return one;
}

}  // namespace cutaway::testing
