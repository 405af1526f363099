#include "engine/passes/freezing/quant_post_ops.h"

#include <algorithm>
#include <unordered_set>

#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

/// What a rule makes part of the product `c`.
struct PostOps {
    std::string_view unary = "none", algorithm = "";
    std::string_view binary = "none";  // with the operand `o`
    bool quantizes = false;            // by `q`
    bool plane = false;                // of convolutions, only those over two dims have this post-op
};

const PostOps& postOps(const Match& m) { return *static_cast<const PostOps*>(m.rule().context); }
bool isQuantizedConvolution(const Node& product) { return product.op().packet() == "onednn.qconv_pointwise"; }

// -- conditions

bool isByte(DType dtype) { return dtype == DType::U8 || dtype == DType::I8; }
/// The integers between the bounds are all that the dtype has: the product saturates at its ends.
bool isWholeRange(const Node& quantize) {
    const bool isSigned = quantize.tensor().dtype == DType::I8;
    return quantize.arg("quant_min").asInt() == (isSigned ? -128 : 0) &&
           quantize.arg("quant_max").asInt() == (isSigned ? 127 : 255);
}
std::string_view unlessOutputFits(const Match& m) {
    const Node& c = m.node("c");
    if (postOps(m).plane && isQuantizedConvolution(c) && c.tensor().rank() != 4)
        return "{c}, {c:type}, is not a convolution over two dims, the only one that knows this";
    if (postOps(m).quantizes) {
        if (!isByte(m.tensor("q").dtype)) return "{q}, {q:type}, is neither uint8 nor int8";
        if (!m.parity() && !isWholeRange(m.node("q")))
            return "{q} clamps to fewer numbers than {q:type} has, where the product saturates";
        return "";
    }
    if (postOps(m).binary != "none") return "";
    const auto* dtype = c.arg("output_dtype").get<DType>();
    return dtype && *dtype == m.root().tensor().dtype ? "" : "the result is of another dtype than {c}, {c:type}";
}

bool isAncestor(const Node& node, const Node& of) {
    std::vector<const Node*> open{&of};
    std::unordered_set<const Node*> seen;  // membership only
    while (!open.empty()) {
        const Node* at = open.back();
        open.pop_back();
        if (at == &node) return true;
        if (!seen.insert(at).second) continue;
        for (const Node* input : at->inputs()) open.push_back(input);
    }
    return false;
}
/// Whether a call besides the sum reads `operand` after the product: the sum is written into the operand's memory.
bool isReadLater(const Node& operand, const Node& product) {
    int64_t later = 0;
    for (const Node* user : operand.users()) later += !isAncestor(*user, product);
    return later > 1;
}
std::string_view unlessSumFits(const Match& m) {
    if (const auto why = unlessOutputFits(m); !why.empty()) return why;
    if (!m.isTensor("o")) return "what is added to {c} is not a tensor";
    const Node &c = m.node("c"), &other = m.node("o");
    const bool dequantizes = isQuantizedConvolution(c) && !postOps(m).quantizes;
    if (dequantizes && !other.isCall("quantized_decomposed.dequantize_per_tensor.default"))
        return "{o} is not dequantized";
    const bool fromBytes = isQuantizedConvolution(c) && postOps(m).quantizes;
    if (!(other.tensor().sizes == c.tensor().sizes)) return "{o}, {o:type}, has other sizes than {c}, {c:type}";
    if (isReadLater(other, c)) return "{o} is read later, so that the sum cannot take its place";
    if (c.arg(0).node() == &other) return "{o} is what {c} reads";
    if (fromBytes) {
        if (other.tensor().dtype != m.tensor("q").dtype) return "{o}, {o:type}, is not of the dtype of {q}, {q:type}";
        return "";
    }
    if (!isFloating(other.tensor().dtype) || other.tensor().dtype == DType::F64)
        return "{o}, {o:type}, is not float32 or narrower";
    const DType result = m.root().tensor().dtype;
    if (postOps(m).binary == "sum" && !isQuantizedConvolution(c) && other.tensor().dtype != result)
        return "{o}, {o:type}, is not of the result's dtype";
    if (!postOps(m).quantizes && result != DType::F32 && result != DType::BF16)
        return "the result is neither float32 nor bfloat16";
    return "";
}

// -- what is made

/// The product's arguments by name, and those given in place of or beside them.
std::vector<Argument> argumentsOf(const Op& op, const Node& product, const NamedArguments& given) {
    std::vector<Argument> args;
    for (const Param& param : op.schema()->params) {
        const auto found =
            std::find_if(given.begin(), given.end(), [&](const auto& one) { return one.first == param.name; });
        args.push_back(found != given.end() ? found->second : product.arg(param.name));
    }
    return args;
}
Argument scalarsOf(const Match& m) {
    std::vector<Argument> scalars;
    if (postOps(m).unary == "hardtanh") scalars = {m["low"], m["high"]};
    return Argument(std::move(scalars));
}
Values buildFused(const Match& m, GraphBuilder& builder) {
    const PostOps& ops = postOps(m);
    const Node& c = m.node("c");
    const bool adds = ops.binary != "none", convolves = isQuantizedConvolution(c);
    const std::string unary(ops.unary), algorithm(ops.algorithm);
    NamedArguments given{{"output_dtype", m.root().tensor().dtype}};
    if (ops.quantizes) {
        given.emplace_back("output_scale", m.node("q").arg("scale"));
        given.emplace_back("output_zero_point", m.node("q").arg("zero_point"));
    }
    const auto add = [&](std::initializer_list<const char*> names, const Argument& value) {
        for (const char* name : names) given.emplace_back(name, value);
    };
    if (!adds) {
        add({"attr", "post_op_name"}, unary);
        add({"scalars", "post_op_args"}, scalarsOf(m));
        add({"algorithm", "post_op_algorithm"}, algorithm);
        return builder.callBound(c.op(), argumentsOf(c.op(), c, given));
    }
    const bool fromBytes = convolves && ops.quantizes;
    add({"qaccum", "other"}, Argument(&m.node("o")));
    add({"accum_scale", "other_scale"}, fromBytes ? m["scale"] : Argument(1.0));
    add({"accum_zero_point", "other_zp"}, fromBytes ? m["zero"] : Argument(0));
    add({"binary_attr", "binary_post_op"}, std::string(ops.binary));
    add({"alpha", "binary_alpha"}, 1.0);
    add({"unary_attr", "unary_post_op"}, unary);
    add({"unary_scalars", "unary_post_op_args"}, Argument(std::vector<Argument>{}));
    add({"unary_algorithm", "unary_post_op_algorithm"}, algorithm);
    const bool tensors = c.op().name().ends_with(".tensor");
    const Op& op = requireOp(std::string(convolves ? "onednn.qconv2d_pointwise." : "onednn.qlinear_pointwise.") +
                             (tensors ? "binary_tensor" : "binary"));
    return builder.callBound(op, argumentsOf(op, c, given));
}

// -- forms. `c` is the product, `y` the value of the function; functions of bfloat16 are computed in float32 from `v`.

#define CUTAWAY_QCONV "onednn.qconv_pointwise.default(_, _, _, _, _, _, _, _, _, _, _, 1.0, 0, _, 'none', [], ''); "
#define CUTAWAY_QLINEAR "onednn.qlinear_pointwise.(default|tensor)(_, _, _, _, _, _, _, 1.0, 0, _, 'none', [], ''); "
#define CUTAWAY_WIDENED(readers) "v: " readers " = prims.convert_element_type.default(c, torch.float32); "
#define CUTAWAY_HARDTANH(v) "y = aten.clamp_max.default(aten.clamp_min.default(" v ", $low), $high); "
#define CUTAWAY_HARDSWISH(v)                                                                                      \
    "y = aten.div.Tensor(aten.mul.Tensor(" v ", aten.clamp_max.default(aten.clamp_min.default(aten.add.Tensor(" v \
    ", 3), 0), 6)), 6); "
#define CUTAWAY_SWISH(v) "y = aten.div.Tensor(" v ", aten.add.Tensor(aten.exp.default(aten.neg.default(" v ")), 1)); "
#define CUTAWAY_GELU(v)                                                                                    \
    "y = aten.mul.Tensor(aten.mul.Tensor(" v ", 0.5), aten.add.Tensor(aten.erf.default(aten.mul.Tensor(" v \
    ", 0.7071067811865476)), 1)); "
#define CUTAWAY_GELU_TANH(v)                                                                   \
    "y = aten.mul.Tensor(aten.mul.Tensor(" v                                                   \
    ", 0.5), aten.add.Tensor(aten.tanh.default(aten.mul.Tensor("                               \
    "aten.add.Tensor(" v ", aten.mul.Tensor(aten.mul.Tensor(aten.mul.Tensor(" v ", " v "), " v \
    "), 0.044715)), "                                                                          \
    "0.7978845608028654)), 1)); "
#define CUTAWAY_RELU(y) "y = aten.relu.default(" y "); "
#define CUTAWAY_ADDED "s = aten.add.Tensor(c, o); "
#define CUTAWAY_ADDED_BYTES \
    "s = aten.add.Tensor(c, quantized_decomposed.dequantize_per_tensor.default(o, $scale, $zero, _, _, _)); "
#define CUTAWAY_NARROWED(y) "n = prims.convert_element_type.default(" y ", _); "
#define CUTAWAY_QUANTIZED(y) \
    "q = quantized_decomposed.quantize_per_tensor.default(" y ", $output_scale, $output_zero, _, _, _); return q"

constexpr Rule row(std::string_view name, std::string_view find, const PostOps& ops) {
    return {.name = name,
            .find = find,
            .build = buildFused,
            .unless = ops.binary == "none" ? unlessOutputFits : unlessSumFits,
            .why = "it is computed while the product's sums are in registers",
            .eitherOrder = ops.binary != "none",
            .context = &ops};
}

constexpr PostOps kQuantize{.quantizes = true}, kRelu{.unary = "relu"},
    kReluQuantize{.unary = "relu", .quantizes = true}, kHardtanh{.unary = "hardtanh", .plane = true},
    kHardtanhQuantize{.unary = "hardtanh", .quantizes = true, .plane = true},
    kHardswish{.unary = "hardswish", .plane = true},
    kHardswishQuantize{.unary = "hardswish", .quantizes = true, .plane = true}, kSwish{.unary = "swish", .plane = true},
    kSwishQuantize{.unary = "swish", .quantizes = true, .plane = true}, kGelu{.unary = "gelu", .algorithm = "none"},
    kGeluQuantize{.unary = "gelu", .algorithm = "none", .quantizes = true},
    kGeluTanh{.unary = "gelu", .algorithm = "tanh"},
    kGeluTanhQuantize{.unary = "gelu", .algorithm = "tanh", .quantizes = true};
constexpr PostOps kSum{.binary = "sum", .plane = true}, kSumQuantize{.binary = "sum", .quantizes = true, .plane = true},
    kSumRelu{.unary = "relu", .binary = "sum", .plane = true},
    kSumReluQuantize{.unary = "relu", .binary = "sum", .quantizes = true, .plane = true}, kAdd{.binary = "add"},
    kAddQuantize{.binary = "add", .quantizes = true}, kAddRelu{.unary = "relu", .binary = "add"},
    kAddReluQuantize{.unary = "relu", .binary = "add", .quantizes = true};

constexpr Rule kQuantizedOutput[] = {
    row("qconv_quantize", "c = " CUTAWAY_QCONV CUTAWAY_QUANTIZED("c"), kQuantize),
    row("qconv_relu_quantize", "c = " CUTAWAY_QCONV CUTAWAY_RELU("c") CUTAWAY_QUANTIZED("y"), kReluQuantize),
    row("qconv_hardtanh_quantize", "c = " CUTAWAY_QCONV CUTAWAY_HARDTANH("c") CUTAWAY_QUANTIZED("y"),
        kHardtanhQuantize),
    row("qconv_hardswish_quantize", "c: 2 readers = " CUTAWAY_QCONV CUTAWAY_HARDSWISH("c") CUTAWAY_QUANTIZED("y"),
        kHardswishQuantize),
    row("qconv_swish_quantize", "c: 2 readers = " CUTAWAY_QCONV CUTAWAY_SWISH("c") CUTAWAY_QUANTIZED("y"),
        kSwishQuantize),
    row("qconv_hardtanh_bf16_quantize",
        "c = " CUTAWAY_QCONV "v = prims.convert_element_type.default(c, torch.float32); " CUTAWAY_HARDTANH("v")
            CUTAWAY_NARROWED("y") CUTAWAY_QUANTIZED("n"),
        kHardtanhQuantize),
    row("qconv_hardswish_bf16_quantize",
        "c = " CUTAWAY_QCONV CUTAWAY_WIDENED("2 readers") CUTAWAY_HARDSWISH("v") CUTAWAY_NARROWED("y")
            CUTAWAY_QUANTIZED("n"),
        kHardswishQuantize),
    row("qconv_swish_bf16_quantize",
        "c = " CUTAWAY_QCONV CUTAWAY_WIDENED("2 readers") CUTAWAY_SWISH("v") CUTAWAY_NARROWED("y")
            CUTAWAY_QUANTIZED("n"),
        kSwishQuantize),
    row("qconv_add_quantize", "c = " CUTAWAY_QCONV CUTAWAY_ADDED_BYTES CUTAWAY_QUANTIZED("s"), kSumQuantize),
    row("qconv_add_relu_quantize", "c = " CUTAWAY_QCONV CUTAWAY_ADDED_BYTES CUTAWAY_RELU("s") CUTAWAY_QUANTIZED("y"),
        kSumReluQuantize),
    row("qconv_add_bf16_quantize",
        "c = " CUTAWAY_QCONV CUTAWAY_ADDED_BYTES CUTAWAY_NARROWED("s") CUTAWAY_QUANTIZED("n"), kSumQuantize),
    row("qconv_add_relu_bf16_quantize",
        "c = " CUTAWAY_QCONV CUTAWAY_ADDED_BYTES CUTAWAY_NARROWED("s") CUTAWAY_RELU("n") CUTAWAY_QUANTIZED("y"),
        kSumReluQuantize),
    row("qconv_add_relu_bf16", "c = " CUTAWAY_QCONV CUTAWAY_ADDED CUTAWAY_NARROWED("s") CUTAWAY_RELU("n") "return y",
        kSumRelu),
    row("qlinear_quantize", "c = " CUTAWAY_QLINEAR CUTAWAY_QUANTIZED("c"), kQuantize),
    row("qlinear_relu_quantize", "c = " CUTAWAY_QLINEAR CUTAWAY_RELU("c") CUTAWAY_QUANTIZED("y"), kReluQuantize),
    row("qlinear_gelu_quantize", "c: 2 readers = " CUTAWAY_QLINEAR CUTAWAY_GELU("c") CUTAWAY_QUANTIZED("y"),
        kGeluQuantize),
    row("qlinear_gelu_tanh_quantize", "c: 4 readers = " CUTAWAY_QLINEAR CUTAWAY_GELU_TANH("c") CUTAWAY_QUANTIZED("y"),
        kGeluTanhQuantize),
    row("qlinear_gelu_bf16_quantize",
        "c = " CUTAWAY_QLINEAR CUTAWAY_WIDENED("2 readers") CUTAWAY_GELU("v") CUTAWAY_NARROWED("y")
            CUTAWAY_QUANTIZED("n"),
        kGeluQuantize),
    row("qlinear_gelu_tanh_bf16_quantize",
        "c = " CUTAWAY_QLINEAR CUTAWAY_WIDENED("4 readers") CUTAWAY_GELU_TANH("v") CUTAWAY_NARROWED("y")
            CUTAWAY_QUANTIZED("n"),
        kGeluTanhQuantize),
    row("qlinear_add_quantize", "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_QUANTIZED("s"), kAddQuantize),
    row("qlinear_add_relu_quantize", "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_RELU("s") CUTAWAY_QUANTIZED("y"),
        kAddReluQuantize),
    row("qlinear_add_bf16_quantize", "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_NARROWED("s") CUTAWAY_QUANTIZED("n"),
        kAddQuantize),
    row("qlinear_add_relu_bf16_quantize",
        "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_NARROWED("s") CUTAWAY_RELU("n") CUTAWAY_QUANTIZED("y"),
        kAddReluQuantize),
};

constexpr Rule kQuantizedFunction[] = {
    row("qconv_relu", "c = " CUTAWAY_QCONV CUTAWAY_RELU("c") "return y", kRelu),
    row("qconv_hardtanh", "c = " CUTAWAY_QCONV CUTAWAY_HARDTANH("c") "return y", kHardtanh),
    row("qconv_hardswish", "c: 2 readers = " CUTAWAY_QCONV CUTAWAY_HARDSWISH("c") "return y", kHardswish),
    row("qconv_swish", "c: 2 readers = " CUTAWAY_QCONV CUTAWAY_SWISH("c") "return y", kSwish),
    row("qconv_hardtanh_bf16",
        "c = " CUTAWAY_QCONV "v = prims.convert_element_type.default(c, torch.float32); " CUTAWAY_HARDTANH("v")
            CUTAWAY_NARROWED("y") "return n",
        kHardtanh),
    row("qconv_hardswish_bf16",
        "c = " CUTAWAY_QCONV CUTAWAY_WIDENED("2 readers") CUTAWAY_HARDSWISH("v") CUTAWAY_NARROWED("y") "return n",
        kHardswish),
    row("qconv_swish_bf16",
        "c = " CUTAWAY_QCONV CUTAWAY_WIDENED("2 readers") CUTAWAY_SWISH("v") CUTAWAY_NARROWED("y") "return n", kSwish),
    row("qconv_add_relu", "c = " CUTAWAY_QCONV CUTAWAY_ADDED CUTAWAY_RELU("s") "return y", kSumRelu),
    row("qconv_add_bf16", "c = " CUTAWAY_QCONV CUTAWAY_ADDED CUTAWAY_NARROWED("s") "return n", kSum),
    row("qlinear_relu", "c = " CUTAWAY_QLINEAR CUTAWAY_RELU("c") "return y", kRelu),
    row("qlinear_gelu", "c: 2 readers = " CUTAWAY_QLINEAR CUTAWAY_GELU("c") "return y", kGelu),
    row("qlinear_gelu_tanh", "c: 4 readers = " CUTAWAY_QLINEAR CUTAWAY_GELU_TANH("c") "return y", kGeluTanh),
    row("qlinear_gelu_bf16",
        "c = " CUTAWAY_QLINEAR CUTAWAY_WIDENED("2 readers") CUTAWAY_GELU("v") CUTAWAY_NARROWED("y") "return n", kGelu),
    row("qlinear_gelu_tanh_bf16",
        "c = " CUTAWAY_QLINEAR CUTAWAY_WIDENED("4 readers") CUTAWAY_GELU_TANH("v") CUTAWAY_NARROWED("y") "return n",
        kGeluTanh),
    row("qlinear_add_relu", "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_RELU("s") "return y", kSumRelu),
    row("qlinear_add_relu_bf16",
        "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_NARROWED("s") CUTAWAY_RELU("n") "return y", kAddRelu),
};

constexpr Rule kQuantizedSum[] = {
    row("qconv_add", "c = " CUTAWAY_QCONV CUTAWAY_ADDED "return s", kSum),
    row("qlinear_add", "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED "return s", kSum),
    row("qlinear_add_bf16", "c = " CUTAWAY_QLINEAR CUTAWAY_ADDED CUTAWAY_NARROWED("s") "return n", kAdd),
};

}  // namespace

std::span<const Rule> quantizedOutputRules() { return kQuantizedOutput; }
std::span<const Rule> quantizedFunctionRules() { return kQuantizedFunction; }
std::span<const Rule> quantizedSumRules() { return kQuantizedSum; }
Result<bool> fuseQuantizedOutput(Module& module, Rewriter& rewriter) {
    return rewriter.applyRules(module, kQuantizedOutput);
}
Result<bool> fuseQuantizedFunction(Module& module, Rewriter& rewriter) {
    return rewriter.applyRules(module, kQuantizedFunction);
}
Result<bool> fuseQuantizedSum(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kQuantizedSum); }

}  // namespace cutaway
