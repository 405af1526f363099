#include "engine/passes/post_grad/mkldnn_fusion.h"

#include <deque>
#include <unordered_set>

#include "engine/ir/live_nodes.h"
#include "engine/ir/verify.h"
#include "engine/ops/alias.h"
#include "engine/passes/post_grad/inplace.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/refusing.h"

namespace cutaway {
namespace {

// ---------------------------------------------------------------- functions of one operand

/// A function that the library computes: `body` makes `z` of `x`.
struct Function {
    std::string_view rule, body, attr, algorithm;
    std::vector<std::string_view> numbers;  // names of `body`
    std::string_view (*unless)(const Match& match) = nullptr;
    bool alsoDirect = false;  // of halves, too, with no conversion around it
};

std::string_view unlessBoundsAreOrdered(const Match& m) {
    const auto least = m["least"].asReal(), most = m["most"].asReal();
    return least && most && *least <= *most ? "" : "the bounds {least} and {most} are not in order";
}

const Function kFunctions[] = {
    {"gelu_tanh",
     "z = aten.mul.Tensor(aten.mul.Tensor(x, 0.5), aten.add.Tensor(aten.tanh.default(aten.mul.Tensor(aten.add.Tensor("
     "x, aten.mul.Tensor(aten.mul.Tensor(aten.mul.Tensor(x, x), x), 0.044715)), 0.7978845608028654)), 1))",
     "gelu",
     "tanh",
     {}},
    {"gelu",
     "z = aten.mul.Tensor(aten.mul.Tensor(x, 0.5), aten.add.Tensor(aten.erf.default(aten.mul.Tensor(x, "
     "0.7071067811865476)), 1))",
     "gelu",
     "none",
     {}},
    {"hardswish",
     "z = aten.div.Tensor(aten.mul.Tensor(x, aten.clamp_max.default(aten.clamp_min.default(aten.add.Tensor(x, 3), 0), "
     "6)), 6)",
     "hardswish",
     "",
     {}},
    {"hardsigmoid",
     "z = aten.div.Tensor(aten.clamp_max.default(aten.clamp_min.default(aten.add.Tensor(x, 3), 0), 6), 6)",
     "hardsigmoid",
     "",
     {}},
    {"swish", "z = aten.div.Tensor(x, aten.add.Tensor(aten.exp.default(aten.neg.default(x)), 1))", "swish", "", {}},
    {"relu", "z = aten.relu.default(x)", "relu", "", {}, nullptr, true},
    {"sigmoid", "z = aten.sigmoid.default(x)", "sigmoid", "", {}, nullptr, true},
    {"tanh", "z = aten.tanh.default(x)", "tanh", "", {}, nullptr, true},
    {"leaky_relu",
     "z = aten.where.self(aten.gt.Scalar(x, 0), x, aten.mul.Tensor(x, $slope))",
     "leaky_relu",
     "",
     {"slope"}},
    {"hardtanh",
     "z = aten.clamp_max.default(aten.clamp_min.default(x, $least), $most)",
     "hardtanh",
     "",
     {"least", "most"},
     unlessBoundsAreOrdered},
};
const Function& functionOf(const Match& m) { return *static_cast<const Function*>(m.rule().context); }

std::string_view unlessFits(const Match& m) { return functionOf(m).unless ? functionOf(m).unless(m) : ""; }
/// Halves are widened before the function and rounded after it, which is what the library does, too.
std::string_view unlessRoundedBack(const Match& m) {
    const DType computed = m.tensor("c").dtype;
    const auto *wide = m["wide"].get<DType>(), *narrow = m["narrow"].get<DType>();
    if (!isHalf(computed)) return "{c}, {c:type}, is widened, but is of no half dtype";
    if (wide == nullptr || *wide != DType::F32) return "{c} is not widened to float32, but to {wide}";
    if (narrow == nullptr || *narrow != computed) return "the result is rounded to {narrow}, and {c} is {c:type}";
    return unlessFits(m);
}

/// The packed call with another function.
Value withFunction(GraphBuilder& builder, const Node& call, std::string_view attr, std::vector<Argument> numbers,
                   std::string_view algorithm) {
    std::vector<Argument> args = call.args();
    const auto set = [&](std::string_view param, Argument value) {
        args[static_cast<size_t>(call.op().schema()->find(param))] = std::move(value);
    };
    set("attr", std::string(attr));
    set("scalars", Argument(std::move(numbers)));
    set("algorithm", std::string(algorithm));
    return builder.callBound(call.op(), std::move(args));
}
Values buildUnary(const Match& m, GraphBuilder& builder) {
    const Function& function = functionOf(m);
    std::vector<Argument> numbers;
    for (const std::string_view name : function.numbers) numbers.push_back(m[name]);
    return withFunction(builder, m.node("c"), function.attr, std::move(numbers), function.algorithm);
}

constexpr std::string_view kPacked =
    "mkldnn.(_convolution_pointwise|_linear_pointwise|_convolution_transpose_pointwise).default(_, _, _, attr = 'none', ...)";

/// Each function as it stands in a graph of float32, and with conversions around it.
std::vector<Rule> unaryRules() {
    static std::deque<std::string> texts;
    const auto kept = [](std::string text) -> std::string_view { return texts.emplace_back(std::move(text)); };
    std::vector<Rule> rules;
    const auto replaced = [](std::string body, std::string_view name) {  // `x` as an operand
        for (size_t at = 0; (at = body.find('x', at)) != std::string::npos; ++at) {
            const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
            if (!isWord(body[at - 1]) && !isWord(body[at + 1])) body.replace(at, 1, name);
        }
        return body;
    };
    for (const bool halves : {true, false})
        for (const Function& function : kFunctions) {
            if (halves && function.alsoDirect) continue;
            std::string find = "c = " + std::string(kPacked) + "; ";
            if (halves) find += "f = prims.convert_element_type.default(c, $wide); ";
            find += replaced(std::string(function.body), halves ? "f" : "c");
            find += halves ? "; y = prims.convert_element_type.default(z, $narrow); return y" : "; return z";
            Rule rule{.name = kept("fuse_" + std::string(function.rule) + (halves ? "_of_halves" : "")),
                      .find = kept(std::move(find)),
                      .build = buildUnary,
                      .unless = halves ? unlessRoundedBack : unlessFits,
                      .why = "the library computes the function while the result is still in registers",
                      .countsRefused = function.unless != nullptr};
            rule.context = &function;
            rules.push_back(rule);
        }
    return rules;
}

// ---------------------------------------------------------------- sums and differences

bool isLinear(const Node& call) { return call.op().packet() == "mkldnn._linear_pointwise"; }

/// Sizes that the library broadcasts: one number for each channel, or for each channel of each item, or one for all; of
/// linear layers one for each column.
bool broadcasts(const SymDims& other, const SymDims& result, bool linear) {
    if (other == result) return true;
    if (other.size() != result.size() || other.size() < 2) return false;
    const auto one = [](const SymInt& size) { return size == SymInt(1); };
    if (linear) return std::all_of(other.begin(), other.end() - 1, one) && other.back() == result.back();
    if (!std::all_of(other.begin() + 2, other.end(), one)) return false;
    const bool channels = other[1] == result[1];
    return (channels && (other[0] == result[0] || one(other[0]))) || (one(other[0]) && one(other[1]));
}
std::string_view unlessOperandsFit(const Match& m) {
    if (!m.isTensor("o")) return "{o} is not a tensor";
    if (m["o"].node() == &m.node("c")) return "{c} is added to itself";
    const TensorType &c = m.tensor("c"), &o = m.tensor("o");
    if (o.dtype != c.dtype) return "{o}, {o:type}, has another dtype than {c}, {c:type}";
    if (!(o.device == c.device)) return "{o} and {c} are on different devices";
    return broadcasts(o.sizes, c.sizes, isLinear(m.node("c"))) ? ""
                                                               : "the library does not broadcast {o:type} to {c:type}";
}

/// Readers of `node` that `call` does not depend on.
size_t readersNotBefore(const Node& node, const Node& call) {
    std::unordered_set<const Node*> ancestors = {&call};  // membership only
    std::vector<const Node*> open = {&call};
    while (!open.empty()) {
        const Node* at = open.back();
        open.pop_back();
        at->forEachInput([&](const Node* input) {
            if (input->isCall() && ancestors.insert(input).second) open.push_back(input);
        });
    }
    return static_cast<size_t>(std::count_if(node.users().begin(), node.users().end(),
                                             [&](const Node* user) { return !ancestors.contains(user); }));
}
std::string_view unlessOverwritable(const Match& m) {
    if (const std::string_view why = unlessOperandsFit(m); !why.empty()) return why;
    const Node &other = m.node("o"), &call = m.node("c");
    if (!other.isCall()) return "{o} is not a call, whose result could be written to";
    if (call.arg("X").node() == &other) return "{o} is what is convolved";
    return readersNotBefore(other, call) <= 1 ? "" : "{o} is read later, too";
}

Values buildBinary(const Match& m, GraphBuilder& builder) {
    const Node& call = m.node("c");
    const Node* sum = m.root().isCall("aten.relu.default") ? m.root().arg(0).node() : &m.root();
    const std::string function(sum->isCall("aten.sub.Tensor") ? "sub" : "add");
    std::vector<Argument> args = {call.arg("X"), m["o"], call.arg("W"), call.arg("B")};
    if (isLinear(call)) {
        args.emplace_back(function);
        return builder.call("mkldnn._linear_pointwise.binary", std::move(args));
    }
    for (const std::string_view param : {"padding", "stride", "dilation", "groups"}) args.push_back(call.arg(param));
    const bool relu = sum != &m.root();
    for (Argument each : {Argument(function), Argument(1.0), relu ? Argument("relu") : Argument(),
                          Argument(std::vector<Argument>{}), relu ? Argument("") : Argument()})
        args.push_back(std::move(each));
    return builder.call("mkldnn._convolution_pointwise.binary", std::move(args));
}

#define CUTAWAY_CONVOLUTION "c = mkldnn._convolution_pointwise.default(_, _, _, attr = 'none', ...); "
#define CUTAWAY_LINEAR "c = mkldnn._linear_pointwise.default(_, _, _, attr = 'none', ...); "
constexpr std::string_view kWhyBinary = "the library adds the other tensor while the result is still in registers";
constexpr Rule kBinary[] = {
    // Tried first: of two added convolutions, the one whose sum can be written over the other's result takes the sum.
    {.name = "fuse_add_relu_over_other",
     .find = CUTAWAY_CONVOLUTION "s = aten.add.Tensor(o, c); y = aten.relu.default(s); return y",
     .build = buildBinary,
     .unless = unlessOverwritable,
     .why = kWhyBinary,
     .eitherOrder = true},
    {.name = "fuse_add_over_other",
     .find = CUTAWAY_CONVOLUTION "y = aten.add.Tensor(o, c); return y",
     .build = buildBinary,
     .unless = unlessOverwritable,
     .why = kWhyBinary,
     .eitherOrder = true},
    {.name = "fuse_binary_relu",
     .find = CUTAWAY_CONVOLUTION "s = aten.(add|sub).Tensor(c, o); y = aten.relu.default(s); return y",
     .build = buildBinary,
     .unless = unlessOperandsFit,
     .why = kWhyBinary,
     .eitherOrder = true},
    {.name = "fuse_binary",
     .find = CUTAWAY_CONVOLUTION "y = aten.(add|sub).Tensor(c, o); return y",
     .build = buildBinary,
     .unless = unlessOperandsFit,
     .why = kWhyBinary,
     .eitherOrder = true},
    {.name = "fuse_linear_binary",
     .find = CUTAWAY_LINEAR "y = aten.(add|sub).Tensor(c, o); return y",
     .build = buildBinary,
     .unless = unlessOperandsFit,
     .why = kWhyBinary,
     .eitherOrder = true},
};
#undef CUTAWAY_CONVOLUTION
#undef CUTAWAY_LINEAR

}  // namespace

std::span<const Rule> mkldnnFusionRules() {
    static const std::vector<Rule> kAll = [] {
        std::vector<Rule> rules = unaryRules();
        rules.insert(rules.end(), std::begin(kBinary), std::end(kBinary));
        return rules;
    }();
    return kAll;
}
Result<bool> fuseIntoPackedCalls(Module& module, Rewriter& rewriter) {
    return rewriter.applyRules(module, mkldnnFusionRules());
}

Result<bool> addConvolutionsInPlace(Module& module, Rewriter& rewriter) {
    constexpr std::string_view kRule = "mkldnn_inplace_fusion";
    Graph& graph = module.graph();
    const InplaceWrites writes(graph, rewriter.request().parity);
    for (Node* node : LiveNodes(graph)) {
        if (!node->isCall("mkldnn._convolution_pointwise.binary")) continue;
        const Refusing no(rewriter, kRule, *node);
        const auto* function = node->arg("binary_attr").get<std::string>();
        Node& other = *node->arg("other").node();
        if (function == nullptr || *function != "add") {
            no("it adds nothing");
            continue;
        }
        if (!other.isCall() || &storageRoot(other) != &other) {
            no(NodeWithKind{&other},
               other.isCall() ? " shares memory with another value" : " has memory that others see");
            continue;
        }
        if (!sameMemory(other.type(), node->type())) {
            no(other, ", ", other.tensor(), ", is not laid out as the sum");
            continue;
        }
        std::vector<const Node*> read;
        for (const std::string_view param : {"X", "W", "B"})
            if (const Node* operand = node->arg(param).node()) read.push_back(operand);
        if (const std::string why = writes.unlessWritable(*node, other, node, read); !why.empty()) {
            no(why);
            continue;
        }
        const Go go = rewriter.begin(kRule, *node, "nobody reads `" + other.name() + "` later");
        if (go == Go::Stop) break;
        if (go != Go::Yes) continue;
        std::vector<Argument> args = node->args();
        std::swap(args[0], args[1]);  // the schema has `other`, which is written to, before X
        GraphBuilder builder = rewriter.builder(graph, node, *node);
        const Value made = builder.callBound(requireOp("mkldnn._convolution_pointwise_.binary"), std::move(args));
        if (builder.error()) return *builder.error();
        rewriter.replace(*node, *made.node());
    }
    return rewriter.changed();
}

}  // namespace cutaway
