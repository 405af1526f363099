// The same elementwise operator on every tensor of a list, as optimizers call it. They stay lists down to the schedule:
// PyTorch writes one kernel for a whole list, and writes its results in place.
#include "engine/ops/foreach.h"

#include <algorithm>
#include <array>

#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

/// An operator that does the same to every item of its lists.
struct ListOp {
    std::string_view schema;
    std::string_view item;  // the operator that it applies to each
    std::string_view samples;
    bool reinplaced = false;  // PyTorch writes the results into the list where nobody reads it any more
    bool stays = true;        // one call down to the schedule, with a form that writes into the list
};

constexpr std::string_view kListPairs =
    "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]]\n[f32[2, 3][1, 2]], [f32[3]]\n[bf16[4], i64[2]], [f32[4], i64[2]]";
constexpr std::string_view kScaledPairs = "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], alpha=2.5\n[i64[4]], [i64[4]]";
constexpr std::string_view kPositivePairs = "[f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0]\n[bf16[4]], [f32[4]>0]";
constexpr std::string_view kNumbers = "[f32[2], f32[3, 4][1, 3]], 2.5\n[i64[4], bf16[2]], 3";
constexpr std::string_view kNumberLists = "[f32[2], f32[3, 4][1, 3]], [2.5, 0.5]\n[i64[4], bf16[2]], [3, 2]";
constexpr std::string_view kOneTensor = "[f32[2], f32[3, 4]], f32[]";
constexpr std::string_view kSelf = "[f32[2], f32[3, 4][1, 3], bf16[4]]";
constexpr std::string_view kPositiveSelf = "[f32[2]>0, f32[3, 4][1, 3]>0, bf16[4]>0]";
constexpr std::string_view kTriples = "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], 0.5";
constexpr std::string_view kScaledTriples =
    "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], [0.5, 2.0]";
constexpr std::string_view kNumberedTriples =
    "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2]>0, f32[3, 4]>0], f32[2]";

constexpr ListOp kListOps[] = {
    {"aten._foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]", "aten.add.Tensor",
     kScaledPairs, true},
    {"aten._foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.add.Tensor", kNumbers, true},
    {"aten._foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]", "aten.add.Tensor",
     kOneTensor},
    {"aten._foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]", "aten.sub.Tensor",
     kScaledPairs},
    {"aten._foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.sub.Tensor", kNumbers},
    {"aten._foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]", "aten.mul.Tensor", kListPairs, true},
    {"aten._foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.mul.Tensor", kNumbers, true},
    {"aten._foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]", "aten.mul.Tensor", kOneTensor},
    {"aten._foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]", "aten.div.Tensor", kPositivePairs, true},
    {"aten._foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.div.Tensor", kNumbers, true},
    {"aten._foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]", "aten.div.Tensor",
     "[f32[2], f32[3, 4]], f32[]>0"},
    {"aten._foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]", "aten.maximum.default", kListPairs},
    {"aten._foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.clamp_min.default", kNumbers},
    {"aten._foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]", "aten.minimum.default", kListPairs},
    {"aten._foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.clamp_max.default", kNumbers},
    {"aten._foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]", "aten.maximum.default", kListPairs},
    {"aten._foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.clamp_min.default", kNumbers},
    {"aten._foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]", "aten.minimum.default", kListPairs},
    {"aten._foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "aten.clamp_max.default", kNumbers},
    {"aten._foreach_zero.default(Tensor[] self) -> Tensor[]", "aten.zeros_like.default", kSelf},
    {"aten._foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]", "aten.pow.Tensor_Tensor",
     "[f32[2]>0, f32[3, 4]>0], [f32[2]<2, f32[3, 4]<2]"},
    {"aten._foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]", "aten.pow.Tensor_Scalar",
     "[f32[2], f32[3, 4][1, 3]], 2"},
    {"aten._foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.add.Tensor", kNumberLists},
    {"aten._foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.sub.Tensor", kNumberLists},
    {"aten._foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.mul.Tensor", kNumberLists},
    {"aten._foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.div.Tensor", kNumberLists},
    {"aten._foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.clamp_min.default",
     kNumberLists},
    {"aten._foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.clamp_max.default",
     kNumberLists},
    {"aten._foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.clamp_min.default",
     kNumberLists},
    {"aten._foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "aten.clamp_max.default",
     kNumberLists},
    {"aten._foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]", "aten.pow.Tensor_Scalar",
     "[f32[2], f32[3, 4][1, 3]], [2, 3]"},
    {"aten._foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]", "aten.lerp.Tensor",
     "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [f32[2], f32[4]]"},
    {"aten._foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]", "aten.lerp.Scalar",
     "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], [0.25, 0.75]"},
    {"aten._foreach_neg.default(Tensor[] self) -> Tensor[]", "aten.neg.default", kSelf},
    {"aten._foreach_abs.default(Tensor[] self) -> Tensor[]", "aten.abs.default", kSelf},
    {"aten._foreach_sqrt.default(Tensor[] self) -> Tensor[]", "aten.sqrt.default", kPositiveSelf},
    {"aten._foreach_rsqrt.default(Tensor[] self) -> Tensor[]", "aten.rsqrt.default", kPositiveSelf},
    {"aten._foreach_reciprocal.default(Tensor[] self) -> Tensor[]", "aten.reciprocal.default", kPositiveSelf},
    {"aten._foreach_sign.default(Tensor[] self) -> Tensor[]", "aten.sign.default", kSelf},
    {"aten._foreach_exp.default(Tensor[] self) -> Tensor[]", "aten.exp.default", kSelf},
    {"aten._foreach_ceil.default(Tensor[] self) -> Tensor[]", "aten.ceil.default", kSelf},
    {"aten._foreach_cos.default(Tensor[] self) -> Tensor[]", "aten.cos.default", kSelf},
    {"aten._foreach_cosh.default(Tensor[] self) -> Tensor[]", "aten.cosh.default", kSelf},
    {"aten._foreach_erf.default(Tensor[] self) -> Tensor[]", "aten.erf.default", kSelf},
    {"aten._foreach_erfc.default(Tensor[] self) -> Tensor[]", "aten.erfc.default", kSelf},
    {"aten._foreach_expm1.default(Tensor[] self) -> Tensor[]", "aten.expm1.default", kSelf},
    {"aten._foreach_floor.default(Tensor[] self) -> Tensor[]", "aten.floor.default", kSelf},
    {"aten._foreach_frac.default(Tensor[] self) -> Tensor[]", "aten.frac.default", kSelf},
    {"aten._foreach_round.default(Tensor[] self) -> Tensor[]", "aten.round.default", kSelf},
    {"aten._foreach_sigmoid.default(Tensor[] self) -> Tensor[]", "aten.sigmoid.default", kSelf},
    {"aten._foreach_sin.default(Tensor[] self) -> Tensor[]", "aten.sin.default", kSelf},
    {"aten._foreach_sinh.default(Tensor[] self) -> Tensor[]", "aten.sinh.default", kSelf},
    {"aten._foreach_tanh.default(Tensor[] self) -> Tensor[]", "aten.tanh.default", kSelf},
    {"aten._foreach_trunc.default(Tensor[] self) -> Tensor[]", "aten.trunc.default", kSelf},
    {"aten._foreach_lgamma.default(Tensor[] self) -> Tensor[]", "aten.lgamma.default", kPositiveSelf},
    {"aten._foreach_log.default(Tensor[] self) -> Tensor[]", "aten.log.default", kPositiveSelf},
    {"aten._foreach_log10.default(Tensor[] self) -> Tensor[]", "aten.log10.default", kPositiveSelf},
    {"aten._foreach_log1p.default(Tensor[] self) -> Tensor[]", "aten.log1p.default", kPositiveSelf},
    {"aten._foreach_log2.default(Tensor[] self) -> Tensor[]", "aten.log2.default", kPositiveSelf},
    {"aten._foreach_acos.default(Tensor[] self) -> Tensor[]", "aten.acos.default", "[f32[2]<1, bf16[4]<1]"},
    {"aten._foreach_asin.default(Tensor[] self) -> Tensor[]", "aten.asin.default", "[f32[2]<1, bf16[4]<1]"},
    {"aten._foreach_atan.default(Tensor[] self) -> Tensor[]", "aten.atan.default", "[f32[2]<1, bf16[4]<1]"},
    {"aten._foreach_tan.default(Tensor[] self) -> Tensor[]", "aten.tan.default", "[f32[2]<1, bf16[4]<1]"},
    {"aten._foreach_copy.default(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[]",
     "aten.copy.default", "[f32[2], f32[3, 4][1, 3]], [f32[2], f32[3, 4]]\n[f32[2]], [i64[2]]", true},
    {"aten._foreach_clone.default(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]",
     "aten.clone.default", kSelf, false, false},
    {"aten._foreach_mm.default(Tensor[] self, Tensor[] mat2) -> Tensor[]", "aten.mm.default",
     "[f32[2, 3], f32[3, 4]], [f32[3, 2], f32[4, 2]]\n[bf16[2, 3]], [bf16[3, 2]]", false, false},
};
const ListOp* listOpOf(const Op& op) {
    const std::string_view name = op.name();
    for (const ListOp& row : kListOps)
        if (row.schema.size() > name.size() && row.schema.starts_with(name) && row.schema[name.size()] == '(')
            return &row;
    return nullptr;
}

bool isTensors(const Param& param) { return param.kind == ParamKind::Tensor && param.list; }
/// A number for each item.
bool isNumbers(const Param& param) { return param.kind == ParamKind::Number && param.list; }
/// What the item is given for the parameter.
Argument itemOf(const CallView& d, const Param& param, size_t item) {
    const Argument& value = d.arg(param.name);
    return isTensors(param) || isNumbers(param) ? (*value.list())[item] : value;
}

/// The call for one item: lists give their item, everything else is the same for all.
Value callOfItem(Decomposition& d, size_t item) {
    std::vector<Argument> positional;
    NamedArguments keywords;
    for (const Param& param : d.op().schema()->params) {
        const Argument value = itemOf(d, param, item);
        if (param.keywordOnly) keywords.emplace_back(param.name, value);
        else positional.push_back(value);
    }
    return d.call(listOpOf(d.op())->item, std::move(positional), std::move(keywords));
}
Values eachItem(Decomposition& d) {
    const std::vector<Value> self = d.list("self");
    const std::vector<Param>& params = d.op().schema()->params;
    if (self.empty()) return refuse(d, "there is no tensor in the list");
    for (const Param& param : params)
        if ((isTensors(param) && d.list(param.name).size() != self.size()) ||
            (isNumbers(param) && (!d.arg(param.name).list() || d.arg(param.name).list()->size() != self.size())))
            return refuse(d, "the lists differ in length");
    if (const int other = d.op().schema()->find("other"); other >= 0 && !isTensors(params[static_cast<size_t>(other)]))
        if (const Node* shared = d.arg("other").node(); shared && shared->tensor().rank() != 0)
            return refuse(d, "the tensor for all items is " + shared->tensor().text() +
                                 "; it has to be a single number, without dims");
    const bool scaled = d.op().schema()->find("alpha") >= 0 && d.arg("alpha").get<double>();
    std::vector<Value> results;
    for (size_t i = 0; i < self.size(); ++i) {
        results.push_back(callOfItem(d, i));
        if (scaled && results.back() && !isFloating(results.back().dtype()) && !isComplex(results.back().dtype()))
            return refuse(d, "integers take no factor that is none");
    }
    return results;
}
/// The item's operator knows its derivative; a tensor that all items share gets the sum of theirs.
void deriveEach(Derivation& d) {
    const std::vector<Param>& params = d.op().schema()->params;
    const size_t items = d.list("self").size();
    for (size_t i = 0; i < items; ++i) {
        if (!d.dy(i)) continue;
        const Value call = callOfItem(d, i);
        if (!call) return;
        if (call.node()->op().is(Tag::NoGradient)) continue;  // zeros, whatever the item was
        Derivation one(*call.node(), d.builder(), {d.out(i)}, {d.dy(i)});
        std::vector<bool> needed(call.node()->args().size(), false);
        for (size_t p = 0; p < std::min(params.size(), needed.size()); ++p) needed[p] = d.needs(p);
        one.setNeeded(std::move(needed));
        call.node()->op().def()->derive(one);
        for (size_t p = 0; p < params.size(); ++p) {
            const Value gradient = one.input(p);
            if (!gradient || !d.needs(p)) continue;
            if (isTensors(params[p])) d.input(p, i) = gradient;
            else
                d.input(p) =
                    d.input(p) ? d.input(p) + unary("aten.sum.default", gradient) : unary("aten.sum.default", gradient);
        }
    }
}

Argument listOf(const std::vector<Value>& items) { return Argument(std::vector<Argument>(items.begin(), items.end())); }
Value onLists(Decomposition& d, std::string_view op, const std::vector<Value>& a, const std::vector<Value>& b,
              NamedArguments keywords = {}) {
    return d.call(op, {listOf(a), listOf(b)}, std::move(keywords));
}
/// Kernels for integers take the whole part of a factor.
Argument wholePart(const Argument& factor, const Value& of) {
    return isIntegral(of.dtype()) && factor.asReal() ? Argument(static_cast<int64_t>(*factor.asReal())) : factor;
}
bool dividesIntegers(const Decomposition& d, std::string_view op) {
    const std::vector<Value> divided = d.list("tensor1");
    return op == "aten._foreach_div.List" && std::any_of(divided.begin(), divided.end(), [](const Value& each) {
               return !isFloating(each.dtype()) && !isComplex(each.dtype());
           });
}
/// self + value * (tensor1 op tensor2), list by list.
Values addProduct(Decomposition& d, std::string_view op) {
    if (dividesIntegers(d, op)) return refuse(d, "integers are not divided");
    const std::vector<Value> products = itemsOf(onLists(d, op, d.list("tensor1"), d.list("tensor2")));
    const Argument factor = products.empty() ? d.arg("value") : wholePart(d.arg("value"), products[0]);
    return itemsOf(onLists(d, "aten._foreach_add.List", d.list("self"), products, {{"alpha", factor}}));
}

/// self + number * (tensor1 op tensor2), each with a number of its own.
Values addScaledProduct(Decomposition& d, std::string_view op) {
    const std::vector<Value> self = d.list("self"), left = d.list("tensor1"), right = d.list("tensor2");
    const auto* scalars = d.arg("scalars").list();
    if (self.empty()) return refuse(d, "there is no tensor in the list");
    if (!scalars || scalars->size() != self.size() || left.size() != self.size() || right.size() != self.size())
        return refuse(d, "the lists differ in length");
    std::vector<Value> results;
    for (size_t i = 0; i < self.size(); ++i) {
        const bool whole = isIntegral(left[i].dtype()) && isIntegral(right[i].dtype());
        const Argument factor = whole ? wholePart((*scalars)[i], self[i]) : (*scalars)[i];
        results.push_back(d.call(op, {self[i], left[i], right[i]}, {{"value", factor}}));
    }
    return results;
}

/// The same with the numbers in a tensor.
Values addProducts(Decomposition& d, std::string_view op) {
    const std::vector<Value> self = d.list("self");
    const Value scalars = d.in("scalars");
    if (self.empty()) return refuse(d, "there is no tensor in the list");
    if (scalars.rank() != 1 || differ(scalars.size(0), SymInt(static_cast<int64_t>(self.size()))))
        return refuse(d, "needs one number for each tensor, in one dim");
    if (!scalars.type().isContiguous())
        return refuse(d, "needs numbers that lie side by side, not " + scalars.type().text() + "; clone them first");
    if (dividesIntegers(d, op)) return refuse(d, "integers are not divided");
    const std::vector<Value> products = itemsOf(onLists(d, op, d.list("tensor1"), d.list("tensor2")));
    std::vector<Value> results;
    for (size_t i = 0; i < std::min(self.size(), products.size()); ++i) {
        const Value number = d.call("aten.select.int", {scalars, 0, static_cast<int64_t>(i)});
        results.push_back(self[i] + products[i] * number);
    }
    return results;
}

constexpr OpDef writtenList(std::string_view schema, Fn<Values(Decomposition&)> rule, std::string_view samples) {
    return {.schema = schema,
            .tags = Tag::Inplace,
            .infer = inferExpanded,
            .eval = evalExpanded,
            .expand = Expand::Composite,
            .decompose = rule,
            .samples = samples};
}

/// One number of each item.
Values numberOfEach(Decomposition& d, Value (*of)(Decomposition& d, const Value& item)) {
    std::vector<Value> results;
    for (const Value& item : d.list("self")) results.push_back(of(d, item));
    if (results.empty()) return refuse(d, "there is no tensor in the list");
    return results;
}

constexpr OpDef kWritten[] = {
    shorthand(
        "aten._foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
        [](Decomposition& d) {
            return numberOfEach(d, [](Decomposition& each, const Value& item) {
                return each.call("aten.linalg_vector_norm.default", {item, each.arg("ord")},
                                 {{"dtype", each.arg("dtype")}});
            });
        },
        "[f32[2], f32[3, 4][1, 3], bf16[4]]\n[f32[2], f32[3, 4]], 1\n[f32[4]], inf\n[bf16[4]], 2, torch.float32"),
    shorthand(
        "aten._foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
        [](Decomposition& d) {
            return numberOfEach(d, [](Decomposition& each, const Value& item) {
                return each.call("aten.linalg__powsum.default", {item, each.arg("ord")},
                                 {{"dtype", each.arg("dtype")}});
            });
        },
        "[f32[2], f32[3, 4][1, 3], bf16[4]]\n[f32[2], f32[3, 4]], 1\n[bf16[4]], 2, torch.float32"),
    shorthand(
        "aten._foreach_max.default(Tensor[] self) -> Tensor[]",
        [](Decomposition& d) {
            return numberOfEach(d, [](Decomposition&, const Value& item) { return unary("aten.max.default", item); });
        },
        kSelf),
    writtenList(
        "aten._foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
        [](Decomposition& d) { return addProduct(d, "aten._foreach_mul.List"); }, kTriples),
    writtenList(
        "aten._foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
        [](Decomposition& d) { return addProduct(d, "aten._foreach_div.List"); }, kTriples),
    writtenList(
        "aten._foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
        [](Decomposition& d) { return addProducts(d, "aten._foreach_mul.List"); }, kNumberedTriples),
    writtenList(
        "aten._foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
        [](Decomposition& d) { return addProducts(d, "aten._foreach_div.List"); }, kNumberedTriples),
    shorthand(
        "aten._foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
        [](Decomposition& d) -> Values {
            std::vector<Value> powers;
            for (const Value& exponent : d.list("exponent"))
                powers.push_back(d.call("aten.pow.Scalar", {d.arg("self"), exponent}));
            if (powers.empty()) return refuse(d, "there is no tensor in the list");
            return powers;
        },
        "2.0, [f32[2], f32[3, 4]]"),
    writtenList(
        "aten._foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
        [](Decomposition& d) { return addScaledProduct(d, "aten.addcmul.default"); }, kScaledTriples),
    writtenList(
        "aten._foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
        [](Decomposition& d) { return addScaledProduct(d, "aten.addcdiv.default"); }, kScaledTriples),
    writtenList(
        "aten._foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
        [](Decomposition& d) -> Values {
            const std::vector<Value> start = d.list("self");
            const std::vector<Value> end = d.list("tensors1");
            for (size_t i = 0; i < std::min(start.size(), end.size()); ++i)
                if (start[i].dtype() != end[i].dtype()) return refuse(d, "start and end differ in dtype");
            const Value way = onLists(d, "aten._foreach_sub.List", end, start);
            const Value part = d.call("aten._foreach_mul.Scalar", {listOf(itemsOf(way)), d.arg("weight")});
            return itemsOf(onLists(d, "aten._foreach_add.List", start, itemsOf(part)));
        },
        "[f32[2], f32[3, 4]], [f32[2], f32[3, 4]], 0.25"),
};
constexpr auto kForeachOps = [] {
    std::array<OpDef, std::size(kListOps) + std::size(kWritten)> ops;
    size_t at = 0;
    for (const ListOp& row : kListOps)
        ops[at++] = {.schema = row.schema,
                     .tags = row.stays ? Tag::Inplace : Tag::None,
                     .infer = inferExpanded,
                     .eval = evalExpanded,
                     .expand = row.stays ? Expand::Never : Expand::Composite,
                     .decompose = eachItem,
                     .derive = deriveEach,
                     .samples = row.samples};
    for (const OpDef& def : kWritten) ops[at++] = def;
    return ops;
}();

}  // namespace

std::span<const OpDef> foreachOps() { return kForeachOps; }

const Op* reinplacedListOp(const Op& op) {
    const ListOp* row = listOpOf(op);
    if (row == nullptr || !row->reinplaced) return nullptr;
    std::string name = op.name();
    return &requireOp(name.insert(name.rfind('.'), "_"));
}

}  // namespace cutaway
