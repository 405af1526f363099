// Why a rule does not apply at a node, and the values whose types no rule touches.
#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

/// Bits that may be moved but not computed with.
bool movesBits(const Node& node) {
    for (const std::string_view op :
         {"aten.view.dtype", "aten.cat.default", "aten.clone.default", "aten._scaled_mm.default"})
        if (node.isCall(op)) return true;
    return node.is(Tag::View);
}
/// What is unsupported about a value that `node` reads or makes; empty if nothing is.
std::string_view unsupportedKind(const ValueType& type, const Node& node, bool made) {
    if (const TupleType* items = type.tuple()) {
        for (const ValueType& item : *items)
            if (const auto kind = unsupportedKind(item, node, made); !kind.empty()) return kind;
        return "";
    }
    const TensorType* tensor = type.tensor();
    if (tensor == nullptr) return "";
    const bool makesComplex =
        made && (node.isCall("aten.view.dtype") || node.isCall("prims.convert_element_type.default"));
    if (isComplex(tensor->dtype) && !makesComplex) return "complex";
    if (tensor->device.type == DeviceType::Meta) return "on the device meta";
    if (tensor->layout != Layout::Strided) return "sparse";
    return tensor->dtype == DType::F8E8M0FNU && !movesBits(node) ? "of dtype f8e8m0, which can be moved only" : "";
}

/// The value, and what is unsupported about it.
std::pair<const Node*, std::string_view> unsupportedValue(const Node& node) {
    if (node.isCall("aten.view_as_complex.default") || node.isCall("aten.lift_fresh_copy.default"))
        return {nullptr, ""};
    if (const auto kind = unsupportedKind(node.type(), node, true); !kind.empty()) return {&node, kind};
    for (const Node* input : node.inputs())
        if (const auto kind = unsupportedKind(input->type(), node, false); !kind.empty()) return {input, kind};
    return {nullptr, ""};
}

}  // namespace

bool hasUnsupportedType(const Node& node) { return unsupportedValue(node).first != nullptr; }

Explanation explainRule(const Rule& rule, Node& node, const PassContext& context) {
    Explanation out;
    const auto set = RuleSet::compile({&rule, 1});
    if (!set) {
        out.reason = "the rule is broken: " + set.error().text();
        return out;
    }
    if (const auto [value, kind] = unsupportedValue(node); value) {
        out.reason = "rules leave `" + node.name() + "` alone: " + (value == &node ? "it" : "`" + value->name() + "`") +
                     " is " + std::string(kind);
        out.nodes = {value->id()};
        return out;
    }
    const CompiledRule& compiled = set->at(0);
    Match match(compiled, context);
    MatchTrace trace;
    out.matched = matchRule(compiled, node, MutationRegions(node.graph()), match, &trace);
    if (out.matched) {
        for (const Node* matched : match.nodes()) out.nodes.push_back(matched->id());
    } else {
        out.reason = std::move(trace.reason);
        if (trace.node != NodeId::None) out.nodes = {trace.node};
    }
    return out;
}

}  // namespace cutaway
