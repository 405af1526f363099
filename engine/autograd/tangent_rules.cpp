#include "engine/autograd/tangent_rules.h"

#include <algorithm>

#include "engine/ops/alias.h"
#include "engine/ops/view_rules.h"
#include "engine/support/check.h"

namespace cutaway {

Value TangentCall::pullBack(size_t position, const Value& dy, size_t result) {
    std::vector<Value> gradients(m_results.size());
    gradients[result] = dy;
    Derivation derivation(node(), builder(), m_results, std::move(gradients));
    std::vector<bool> needed(count(), false);
    needed[position] = true;
    derivation.setNeeded(std::move(needed));
    op().def()->derive(derivation);
    const auto& made = derivation.inputGradients()[position];
    return made.empty() ? Value() : made[0];
}

bool isContinuous(const Value& value) {
    return value && value.node()->type().tensor() && (isFloating(value.dtype()) || isComplex(value.dtype()));
}

bool TangentCall::hasTangent(size_t position) const {
    bool found = false;
    arg(position).forEachNode([&](const Node* operand) { found = found || m_lookup(*operand) != nullptr; });
    return found;
}

namespace {

bool isComplexCall(const Node& call) {
    const auto complex = [](const ValueType& type) { return type.tensor() && isComplex(type.tensor()->dtype); };
    const std::vector<Node*> inputs = call.inputs();
    return complex(call.type()) ||
           std::any_of(inputs.begin(), inputs.end(), [&](const Node* input) { return complex(input->type()); });
}

/// a + b where either may be missing.
Value plus(const Value& a, const Value& b) { return a && b ? a + b : (a ? a : b); }

Value zerosLike(TangentCall& c, const Argument& value) { return c.call("aten.zeros_like.default", {value}); }

/// The op over tangents: linear in `operands` together, the other arguments as they are.
Tangents linear(TangentCall& c, std::initializer_list<std::string_view> operands) {
    std::vector<Argument> args = c.node().args();
    const auto replaced = [&](const Argument& value) -> Argument {
        const Value tangent = c.tangentOf(value);
        return tangent ? Argument(tangent) : Argument(zerosLike(c, value));
    };
    for (std::string_view operand : operands) {
        Argument& argument = args[static_cast<size_t>(c.position(operand))];
        if (const auto* items = argument.list()) {
            std::vector<Argument> tangents;
            for (const Argument& item : *items) tangents.push_back(replaced(item));
            argument = Argument(std::move(tangents));
        } else if (argument.node()) {
            argument = replaced(argument);
        }
    }
    const Value result = c.builder().callBound(c.op(), std::move(args));
    if (!c.outType().tuple()) return {result};
    Tangents items;
    for (size_t i = 0; i < c.outType().tuple()->size(); ++i)
        items.push_back(isContinuous(c.results()[i]) ? result[static_cast<int64_t>(i)] : Value());
    return items;
}

/// Linear in each of the operands: the op with one of them replaced by its tangent, added up over all.
Tangents multilinear(TangentCall& c, std::initializer_list<size_t> operands) {
    Value total;
    for (const size_t position : operands) {
        const Value tangent = c.tangent(position);
        if (!tangent) continue;
        std::vector<Argument> args = c.node().args();
        args[position] = tangent;
        total = plus(total, c.builder().callBound(c.op(), std::move(args)));
    }
    return {total};
}
Tangents inBoth(TangentCall& c) { return multilinear(c, {0, 1}); }

/// The op with one of the two factors replaced by its tangent, added up over both.
Value product(TangentCall& c, std::string_view op, size_t left, size_t right) {
    Value total;
    if (const Value tangent = c.tangent(left)) total = c.call(op, {tangent, c.in(right)});
    if (const Value tangent = c.tangent(right)) total = plus(total, c.call(op, {c.in(left), tangent}));
    return total;
}

Value scaled(const Value& x, const std::optional<Scalar>& factor) {
    const bool one = !factor || toDouble(*factor) == 1;
    return !x || one ? x : x.builder().call("aten.mul.Scalar", {x, Argument(*factor)});
}

/// alpha * (a' b + a b') + beta * c', in the shape of the result.
Tangents scaledProduct(TangentCall& c, std::string_view op) {
    const Value moved = scaled(product(c, op, 1, 2), c.scalar("alpha"));
    const Value bias = scaled(c.tangent(0), c.scalar("beta"));
    if (!bias) return {moved};
    return {plus(moved, bias.sizes() == c.out().sizes ? bias : expand(bias, c.out().sizes))};
}

Tangents convolution(TangentCall& c) {
    const auto with = [&](size_t position, const Value& tangent) {
        std::vector<Argument> args = c.node().args();
        args[position] = tangent;
        args[2] = Argument();
        return c.builder().callBound(c.op(), std::move(args));
    };
    Value total;
    if (const Value tangent = c.tangent(0)) total = with(0, tangent);
    if (const Value tangent = c.tangent(1)) total = plus(total, with(1, tangent));
    if (const Value tangent = c.tangent(2)) {
        SymDims sizes(static_cast<size_t>(c.out().rank()), SymInt(1));
        sizes[1] = tangent.size(0);
        const Value bias = view(tangent, sizes);
        total = total ? total + bias : expand(bias, c.out().sizes);
    }
    return {total};
}

/// Elementwise in each operand: the derivative's factor, with the operand's tangent in the place of the gradient.
Tangents elementwise(TangentCall& c) {
    Tangents tangents(c.results().size());
    const Value& y = c.results()[0];
    for (size_t i = 0; i < c.count(); ++i) {
        Value tangent = c.tangent(i);
        if (!tangent) continue;
        tangent = convert(tangent, y.dtype());
        if (tangent.sizes() != y.sizes()) tangent = expand(tangent, y.sizes());
        tangents[0] = plus(tangents[0], c.pullBack(i, tangent));
    }
    return tangents;
}

/// Every element of operand 0 goes into one element of each result: sum of the derivative's factor times the tangent.
Tangents reduction(TangentCall& c) {
    const Value tangent = c.tangent(0);
    Tangents tangents;
    for (size_t i = 0; i < c.results().size(); ++i) {
        const Value& y = c.results()[i];
        if (!isFloating(y.dtype())) {
            tangents.emplace_back();
            continue;
        }
        const Value factor = c.pullBack(0, c.call("aten.ones_like.default", {y}), i);
        const Value spread = convert(factor * tangent, y.dtype());
        if (c.op().schema()->find("dim") < 0) tangents.push_back(unary("aten.sum.default", spread));
        else tangents.push_back(sum(spread, c.dimsOf("dim", tangent.rank(), true), c.flag("keepdim")));
    }
    return tangents;
}

/// The results are elements of operand 0 chosen by the last result.
Tangents chosenAlong(TangentCall& c) {
    const Value tangent = c.tangent(0), indices = c.results()[1];
    const int64_t dim = c.dimOf("dim", tangent.rank());
    const bool dropped = indices.rank() < tangent.rank();
    const Value at = dropped ? unsqueeze(indices, dim) : indices;
    const Value chosen = c.call("aten.gather.default", {tangent, dim, at});
    return {dropped ? c.call("aten.squeeze.dim", {chosen, dim}) : chosen, Value()};
}

/// The results are elements of planes of the last `Dims` dims, by their number in the plane.
template <size_t Dims>
Tangents maxPool(TangentCall& c) {
    const Value tangent = c.tangent(0), indices = c.results()[1];
    const auto flat = [](const SymDims& sizes) {
        SymDims out(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(Dims));
        SymInt plane = 1;
        for (size_t dim = sizes.size() - Dims; dim < sizes.size(); ++dim) plane = plane * sizes[dim];
        out.push_back(plane);
        return out;
    };
    const Value chosen = c.call("aten.gather.default",
                                {reshape(tangent, flat(tangent.sizes())), -1, reshape(indices, flat(indices.sizes()))});
    return {view(chosen, indices.sizes()), Value()};
}

/// exp(-y) * the sums so far of exp(x) x', with the largest x taken out of both.
Tangents logCumsumExp(TangentCall& c) {
    const Value x = c.in(0), y = c.results()[0], tangent = convert(c.tangent(0), y.dtype());
    if (x.rank() == 0) return {tangent};
    const int64_t dim = c.dimOf("dim", x.rank());
    const Value sizes = isComplex(x.dtype()) ? unary("aten.real.default", x) : x;
    const Value most = c.call("aten.amax.default", {sizes, Argument(std::vector<int64_t>{dim}), true});
    const Value sums = c.call("aten.cumsum.default", {unary("aten.exp.default", x - most) * tangent, dim});
    return {unary("aten.exp.default", most - y) * sums};
}

/// Sums and means are linear in rows and in weights; a largest is one of the rows.
Tangents embeddingBag(TangentCall& c) {
    constexpr int64_t kMax = 2;
    Tangents tangents(c.results().size());
    if (c.integerOr("mode", 0) == kMax) {
        // Of an empty bag there is no row.
        const Value rows = c.call("aten.clamp_min.default", {c.results()[3], 0});
        const Value filled = c.call("aten.gt.Scalar", {unsqueeze(c.results()[2], 1), 0});
        const Value chosen = c.call("aten.gather.default", {c.tangent(0), 0, rows});
        tangents[0] = where(filled, chosen, unary("aten.zeros_like.default", chosen));
        return tangents;
    }
    const size_t weights = static_cast<size_t>(c.position("per_sample_weights"));
    for (const size_t position : {size_t{0}, weights}) {
        const Value tangent = c.tangent(position);
        if (!tangent) continue;
        std::vector<Argument> args = c.node().args();
        args[position] = tangent;
        tangents[0] = plus(tangents[0], c.builder().callBound(c.op(), std::move(args))[0]);
    }
    return tangents;
}

Tangents logSoftmax(TangentCall& c) {
    const Value y = c.results()[0], tangent = convert(c.tangent(0), y.dtype());
    return {tangent - sum(unary("aten.exp.default", y) * tangent, {c.dimOf("dim", y.rank())}, true)};
}

Tangents glu(TangentCall& c) {
    const Value x = c.in(0), tangent = c.tangent(0);
    const int64_t dim = c.dimOf("dim", x.rank());
    const SymInt half = floorDiv(x.size(dim), 2);
    const auto part = [&](const Value& of, bool second) {
        return c.call("aten.slice.Tensor",
                      {of, dim, Argument(second ? half : SymInt(0)), Argument(second ? x.size(dim) : half)});
    };
    const Value gate = unary("aten.sigmoid.default", part(x, true));
    const Value slope = c.call("aten.sigmoid_backward.default", {part(tangent, true), gate});
    return {part(tangent, false) * gate + part(x, false) * slope};
}

/// The view speaks of the operand's storage, so it is laid over the tangent of the value whose memory that is. What
/// lies between that value's elements does not move.
Tangents strided(TangentCall& c) {
    const TensorType in = c.in(0).type(), out = c.out();
    Node& owner = const_cast<Node&>(storageRoot(*c.in(0).node()));
    const TensorType memory = owner.type().tensor() ? owner.tensor() : in;
    const Value tangent = c.tangentOf(Argument(&owner));
    if (!tangent || mayOverlap(memory) || memory.dtype != in.dtype) {
        c.builder().fail(unsupported(std::string("the tangent of as_strided of ") +
                                         (mayOverlap(memory) ? "elements that overlap" : "memory of another dtype") +
                                         " is not known",
                                     c.node().name(), {"clone() what it reads first"}));
        return {tangent};
    }
    const SymInt shared = min(memory.offset, out.offset), begin = out.offset - shared;
    Value laid;
    if (memory.isContiguous() && memory.offset == shared)
        laid = c.call("aten.clone.default", {tangent}, {{"memory_format", MemoryFormat::Contiguous}});
    else {
        const SymInt size = max(extentOf(memory) + memory.offset - shared, extentOf(out) + begin);
        const Value storage = full(c.builder(), {size}, Scalar(int64_t{0}), memory.dtype, memory.device);
        laid = c.call("aten.as_strided_scatter.default", {storage, tangent, Argument(memory.sizes),
                                                          Argument(memory.strides), Argument(memory.offset - shared)});
    }
    return {c.call("aten.as_strided.default", {laid, Argument(out.sizes), Argument(out.strides), Argument(begin)})};
}

/// Padding is constant, so the tangent is padded with zero.
Tangents constantPad(TangentCall& c) {
    return {c.call("aten.constant_pad_nd.default", {c.tangent(0), c.arg("pad"), 0})};
}

/// tr(A^-1 A'), by which the logarithm of a determinant moves.
Value logDetTangent(TangentCall& c) {
    const Value inverse = c.call("aten.linalg_inv_ex.default", {c.in(0)})[0];
    return sum(c.call("aten.transpose.int", {inverse, -2, -1}) * c.tangent(0), {-2, -1}, false);
}
Tangents det(TangentCall& c) {
    Tangents tangents(c.results().size());
    tangents[0] = c.results()[0] * logDetTangent(c);
    return tangents;
}
Tangents slogdet(TangentCall& c) {
    Tangents tangents(c.results().size());
    const Value moved = logDetTangent(c);
    const bool complex = isComplex(moved.dtype());
    tangents[1] = complex ? unary("aten.real.default", moved) : moved;
    if (complex) tangents[0] = c.results()[0] * (moved - tangents[1]);
    return tangents;
}

/// P, L and U are parts of the matrix: L below the diagonal, where there are ones, U from it on.
Tangents luUnpack(TangentCall& c) {
    const Value tangent = c.tangent(0);
    const auto part = [&](int64_t dim, size_t result) {
        return c.call("aten.slice.Tensor", {tangent, dim, 0, Argument(c.results()[result].size(dim))});
    };
    Tangents tangents(c.results().size());
    if (isContinuous(c.results()[1])) tangents[1] = c.call("aten.tril.default", {part(-1, 1), -1});
    if (isContinuous(c.results()[2])) tangents[2] = c.call("aten.triu.default", {part(-2, 2)});
    return tangents;
}

/// Linear in the picture; how the places that it is sampled at move is not known.
Tangents gridSample(TangentCall& c) {
    if (c.hasTangent(1)) {
        c.builder().fail(noTangentRule(c.node()));
        return Tangents(1);
    }
    return linear(c, {"input"});
}

/// What stands outside of the mask is constant.
Tangents maskedIndex(TangentCall& c) {
    return {c.call("aten._unsafe_masked_index.default", {c.tangent(0), c.arg(1), c.arg(2), 0})};
}

Tangents filled(TangentCall& c) {
    const Value tangent = c.tangent(1);
    const TensorType& type = c.out();
    return {tangent ? expand(convert(tangent, type.dtype), type.sizes) : tangent};
}

Tangents linearInFirst(TangentCall& c) { return linear(c, {c.op().schema()->params[0].name}); }

/// Linear in these operands together.
struct LinearIn {
    std::string_view packet, first, second = {};
};
constexpr LinearIn kLinearIn[] = {
    {"aten.cat", "tensors"},
    {"aten.stack", "tensors"},
    {"aten.embedding", "weight"},
    {"aten.complex", "real", "imag"},
    {"aten.copy", "src"},
    {"aten.index_put", "self", "values"},
    {"aten._unsafe_index_put", "self", "values"},
    {"aten.index_add", "self", "source"},
    {"aten.index_copy", "self", "source"},
    {"aten.masked_scatter", "self", "source"},
    {"aten.scatter_add", "self", "src"},
    {"aten.select_scatter", "self", "src"},
    {"aten.slice_scatter", "self", "src"},
    {"aten.diagonal_scatter", "self", "src"},
    {"aten.as_strided_scatter", "self", "src"},
};
const LinearIn* linearIn(std::string_view packet) {
    const auto found = std::find_if(std::begin(kLinearIn), std::end(kLinearIn),
                                    [&](const LinearIn& row) { return row.packet == packet; });
    return found == std::end(kLinearIn) ? nullptr : found;
}
Tangents linearInTheirs(TangentCall& c) {
    const LinearIn& row = *linearIn(c.op().packet());
    return row.second.empty() ? linear(c, {row.first}) : linear(c, {row.first, row.second});
}

struct RuleOf {
    std::string_view packet;
    TangentRule rule;
    std::string_view overload = {};  // the end of the op's name; empty: any
};
template <size_t Count>
bool contains(const std::string_view (&names)[Count], std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr RuleOf kRules[] = {
    {"aten.mm", inBoth},
    {"aten.bmm", inBoth},
    {"aten.mv", inBoth},
    {"aten.dot", inBoth},
    {"transformers.grouped_mm_fallback", inBoth},
    {"aten.addmm", [](TangentCall& c) { return scaledProduct(c, "aten.mm.default"); }},
    {"aten.baddbmm", [](TangentCall& c) { return scaledProduct(c, "aten.bmm.default"); }},
    {"aten.convolution", convolution},
    {"aten.sort", chosenAlong},
    {"aten.topk", chosenAlong},
    {"aten.max_pool2d_with_indices", maxPool<2>},
    {"aten.max_pool3d_with_indices", maxPool<3>},
    {"aten.adaptive_max_pool2d", maxPool<2>},
    {"aten.adaptive_max_pool3d", maxPool<3>},
    {"aten._log_softmax", logSoftmax},
    {"aten.logcumsumexp", logCumsumExp},
    {"aten.glu", glu},
    {"aten.constant_pad_nd", constantPad},
    {"aten.as_strided", strided},
    {"aten.fill", filled, ".Tensor"},
    {"aten._unsafe_masked_index", maskedIndex},
    {"aten._embedding_bag", embeddingBag},
    {"aten._linalg_det", det},
    {"aten.lu_unpack", luUnpack},
    {"aten._linalg_slogdet", slogdet},
    {"aten.grid_sampler_3d", gridSample},
    {"aten.scatter",
     [](TangentCall& c) {
         return linear(c, {"self", "src"});
     },
     ".src"},
    {"aten.scatter",
     [](TangentCall& c) {
         return Tangents{c.call("aten.scatter.value", {c.tangent(0), c.arg(1), c.arg(2), 0})};
     },
     ".value"},
};
/// Linear in operand 0, which is their only tensor that carries a tangent. Views are linear too, by their tag.
constexpr std::string_view kLinear[] = {
    "aten.sum",
    "aten.mean",
    "aten.cumsum",
    "aten.clone",
    "aten._to_copy",
    "prims.convert_element_type",
    "aten.flip",
    "aten.roll",
    "aten.repeat",
    "aten.tril",
    "aten.triu",
    "aten.diag_embed",
    "aten.gather",
    "aten.index",
    "aten._unsafe_index",
    "aten.index_select",
    "aten.avg_pool2d",
    "aten._adaptive_avg_pool2d",
    "aten._adaptive_avg_pool3d",
    "aten.avg_pool3d",
    "aten._upsample_bilinear2d_aa",
    "aten._upsample_bicubic2d_aa",
    "aten._upsample_lanczos2d_aa",
    "aten._fft_r2c",
    "aten._fft_c2r",
    "aten._fft_c2c",
    "aten.pixel_shuffle",
    "aten.im2col",
    "aten.col2im",
    "prims.rev",
    "aten.lift_fresh_copy",
    "aten.unfold",
    "aten._unsafe_view",
    "aten.unsafe_split",
    "aten.unsafe_split_with_sizes",
    "aten.reflection_pad2d",
    "aten.replication_pad2d",
    "aten.select_backward",
    "aten.slice_backward",
    "aten.diagonal_backward",
    "aten.contiguous",
};
constexpr std::string_view kReductions[] = {
    "aten.amax",      "aten.amin", "aten.var", "aten.std", "aten.var_mean", "aten.prod", "aten.linalg_vector_norm",
    "aten.logsumexp",
};
/// Not elementwise by their tag, but with a symmetric derivative, so that pulling back and pushing forward are the
/// same.
constexpr std::string_view kSymmetric[] = {"aten._softmax",
                                           "aten._masked_softmax",
                                           "aten._safe_softmax",
                                           "aten.native_dropout",
                                           "aten.log_sigmoid_forward",
                                           "aten.fake_quantize_per_tensor_affine_cachemask",
                                           "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams"};

}  // namespace

bool isFusedAttention(const Op& op) {
    return op.packet().starts_with("aten._scaled_dot_product_") &&
           op.packet().find("_attention") != std::string::npos && op.packet().find("_backward") == std::string::npos;
}

TangentRule tangentRule(const Node& call) {
    if (isFusedAttention(call.op())) return attentionTangent;
    const std::string_view packet = call.op().packet();
    const Schema& schema = *call.op().schema();
    for (const RuleOf& rule : kRules)
        if (rule.packet == packet && (rule.overload.empty() || call.op().name().ends_with(rule.overload)))
            return rule.rule;
    if (linearIn(packet)) return linearInTheirs;
    const bool extreme = packet == "aten.max" || packet == "aten.min";
    if (extreme && schema.find("dim") >= 0) return chosenAlong;
    if (contains(kLinear, packet) || call.op().is(Tag::View)) return linearInFirst;
    if (!call.op().def()->derive || isComplexCall(call)) return nullptr;
    if ((extreme && schema.params.size() == 1) || contains(kReductions, packet)) return reduction;
    return call.op().is(Tag::Pointwise) || contains(kSymmetric, packet) ? elementwise : nullptr;
}

}  // namespace cutaway
