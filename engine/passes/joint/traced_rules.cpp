#include "engine/passes/joint/traced_rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/ir/infer.h"
#include "engine/support/check.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

/// The value given to number parameters while a pattern is traced; no formula has it as a constant (T-4a).
constexpr double kAnyNumber = 0.113377;

/// Calls whose second argument says the sizes of the result, which may be written in several ways.
bool givesSizes(const Node& node) {
    return node.isCall("aten.view.default") || node.isCall("aten.reshape.default") ||
           node.isCall("aten.expand.default");
}

/// A traced graph as the text of a pattern.
class PatternPrinter {
  public:
    /// `exact`: constants as they are; else integers, floats, lists, devices and dtypes are left open (T-5), and the
    /// number that stands for any is bound to `number`.
    PatternPrinter(const Graph& graph, bool exact, std::string number = {})
        : m_graph(graph), m_exact(exact), m_number(std::move(number)) {}

    std::string run() const {
        std::string out;
        for (const Node& node : m_graph.nodes()) {
            if (!node.isCall()) continue;
            out += node.name() + " = " + node.op().name() + "(";
            const auto& params = node.op().schema()->params;
            const bool positions =
                node.isCall("operator.getitem");  // which result is read is part of the pattern (T-4)
            for (size_t i = 0; i < params.size(); ++i)
                out += (i ? ", " : "") + (params[i].keywordOnly ? params[i].name + "=" : std::string()) +
                       (positions && i == 1          ? printArgument(node.arg(i))
                        : i == 1 && givesSizes(node) ? "_"
                                                     : item(node.arg(i)));
            out += ")\n";
        }
        out += "return ";
        bool first = true;
        for (const Argument& value : m_graph.outputs()) {
            if (value.node() == nullptr) continue;  // an input without a gradient
            out += (first ? "" : ", ") + value.node()->name();
            first = false;
        }
        return out;
    }

  private:
    /// Constants that a pattern leaves open (T-4): numbers, devices, dtypes and lists of these; not truth values.
    static bool isOpen(const Argument& value) {
        if (const auto* items = value.list())
            return !items->empty() && std::all_of(items->begin(), items->end(), isOpen);
        return value.get<int64_t>() || value.get<double>() || value.get<Device>() || value.get<DType>() ||
               value.get<Expr>();
    }
    std::string item(const Argument& value) const {
        if (const Node* node = value.node()) return node->name();
        const auto* items = value.list();
        if (const double* real = value.get<double>(); real && !m_number.empty() && *real == kAnyNumber)
            return "$" + m_number;
        if (!m_exact && isOpen(value)) return "_";
        // Compared by otherSizes; in a pattern a symbol's name would be a free name.
        const auto symbolic = [](const Argument& one) { return one.get<Expr>() != nullptr; };
        if (symbolic(value) || (items && std::any_of(items->begin(), items->end(), symbolic))) return "_";
        if (items) {
            std::string out = "[";
            for (const Argument& one : *items) out += (out.size() > 1 ? ", " : "") + item(one);
            return out + "]";
        }
        return printArgument(value);
    }

    const Graph& m_graph;
    bool m_exact;
    std::string m_number;
};

/// What the formula's parameters are for this rule, before any match: numbers as `number`.
Result<std::vector<FormulaInput>> inputsOf(const TracedRule& formula, double number) {
    CT_TRY(auto inputs, readFormulaInputs(formula.parameters));
    for (FormulaInput& input : inputs)
        if (input.number)
            input.constant = printArgument(formula.kind == TraceKind::Joint || input.scalar ? number : 0.0);
    return inputs;
}
/// Of the parameter that is a number, wherever the trace has it.
std::string numberName(const std::vector<FormulaInput>& inputs, TraceKind kind) {
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const FormulaInput& input) {
        return input.number && (kind == TraceKind::Joint || input.scalar);
    });
    return found == inputs.end() ? std::string() : found->name;
}

/// The parameters as the values that the pattern found.
std::vector<FormulaInput> realInputs(const TracedRule& formula, const Match& match) {
    auto inputs = inputsOf(formula, 0.0);
    CT_CHECK(inputs.has_value(), "a rule stands only for parameters that parse");
    for (FormulaInput& input : *inputs) {
        if (match.pattern().slotOf(input.name) < 0) continue;
        const Argument& value = match[input.name];
        if (value.node()) input.type = value.node()->type();
        else input.constant = printArgument(value);
    }
    return *inputs;
}

/// Whether the symbolic sizes in `traced` equal what is written or computed at the same place in `found`.
bool sameSizes(const Argument& traced, const Argument& found) {
    if (const auto size = symIntOf(traced)) return symIntOf(found) == size;
    const auto *left = traced.list(), *right = found.list();
    return !left || !right || std::equal(left->begin(), left->end(), right->begin(), right->end(), sameSizes);
}
/// The first found call that has other sizes than the trace; null if there is none.
const Node* otherSizes(const Graph& traced, const Match& found) {
    for (const Node& node : traced.nodes()) {
        if (!node.isCall()) continue;
        const Node& real = found.node(node.name());
        const bool same = givesSizes(node) ? node.tensor().sizes == real.tensor().sizes
                                           : std::equal(node.args().begin(), node.args().end(), real.args().begin(),
                                                        real.args().end(), sameSizes);
        if (!same) return &real;
    }
    return nullptr;
}

/// Traces the formula on the values that the pattern found and matches the result exactly.
std::string_view unlessTracedAgain(const Match& match) {
    const auto& formula = *static_cast<const TracedRule*>(match.rule().context);
    if (formula.unless)
        if (const std::string_view refusal = formula.unless(match); !refusal.empty()) return refusal;
    if (const auto made = traceFormula(formula.replace, realInputs(formula, match), formula.kind); !made) {
        match.note(made.error().message);
        return "the replacement does not fit the values found here";
    }
    if (match.parity()) return "";
    const auto module = traceFormula(formula.search, realInputs(formula, match), formula.kind);
    if (!module) {
        match.note(module.error().message);
        return "the formula does not fit the shapes found here";
    }
    Rule exact = match.rule();
    const std::string find = PatternPrinter((*module)->graph(), true).run();
    exact.find = find;
    exact.unless = nullptr;
    const auto set = RuleSet::compile({&exact, 1});
    if (!set) return "the formula's trace is not a pattern";
    Match found(set->at(0), match.context());
    MatchTrace trace;
    if (!matchRule(set->at(0), match.root(), MutationRegions(match.root().graph()), found, &trace))
        match.note(trace.reason);
    else if (const Node* other = otherSizes((*module)->graph(), found))
        match.note("the sizes of `" + other->name() + "` are others");
    else return "";
    return "constants or shapes are not those of the formula";
}

/// Traces the replacement and copies it to before the first result.
Values copyTraced(const Match& match, GraphBuilder& builder, std::string_view formula,
                  const std::vector<FormulaInput>& inputs, TraceKind kind) {
    const auto module = traceFormula(formula, inputs, kind);
    if (!module) {
        builder.fail(module.error());
        return Values::notHandled();
    }
    const Provenance origin = builder.provenance();
    std::map<NodeId, Node*> twins;
    for (const Node* placeholder : (*module)->graph().placeholders())
        twins[placeholder->id()] = match[placeholder->name()].node();
    for (const Node& node : (*module)->graph().nodes()) {
        if (!node.isCall()) continue;
        std::vector<Argument> args;
        for (const Argument& arg : node.args())
            args.push_back(arg.mapNodes([&](Node* input) { return twins.at(input->id()); }));
        Provenance provenance = origin;
        provenance.backward = node.provenance().backward;
        builder.setProvenance(std::move(provenance));
        twins[node.id()] = builder.callBound(node.op(), std::move(args)).node();
    }
    std::vector<Value> results;
    for (const Argument& value : (*module)->graph().outputs())
        if (value.node()) results.push_back(Value(builder, twins.at(value.node()->id())));
    if (results.size() == 1) return results[0];
    return results;
}

Values buildTraced(const Match& match, GraphBuilder& builder) {
    const auto& formula = *static_cast<const TracedRule*>(match.rule().context);
    return copyTraced(match, builder, formula.replace, realInputs(formula, match), formula.kind);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out(text);
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size()))
        out.replace(at, from.size(), to);
    return out;
}

/// The pattern of a formula for its parameters. That the replacement traces, too, shows when the rule first applies.
Result<std::string> tracePattern(const TracedRule& formula) {
    const auto located = [&](Error error) {
        error.where = "formula " + std::string(formula.name) + (error.where.empty() ? "" : ", " + error.where);
        return error;
    };
    auto inputs = inputsOf(formula, kAnyNumber);
    if (!inputs) return located(inputs.error());
    const auto found = traceFormula(formula.search, *inputs, formula.kind);
    if (!found) return located(found.error());
    return PatternPrinter((*found)->graph(), false, numberName(*inputs, formula.kind)).run();
}

void addRule(TracedRules& out, const TracedRule& source, std::string find, std::string name) {
    Rule rule;
    rule.name = out.texts.emplace_back(std::move(name));
    rule.find = out.texts.emplace_back(std::move(find));
    rule.build = buildTraced;
    rule.unless = unlessTracedAgain;
    rule.why = source.why;
    rule.releases = source.releases;
    rule.context = &out.sources.emplace_back(source);
    out.rules.push_back(rule);
}

/// Traces one side of a user's rule (`search` or `replace`) on its example types.
Result<std::unique_ptr<Module>> traceSide(const TracedRule& formula, std::string_view side) {
    CT_TRY(auto inputs, inputsOf(formula, kAnyNumber));
    return traceFormula(side, inputs, formula.kind);
}
size_t resultsOf(const Module& traced) {
    const auto& outputs = traced.graph().outputs();
    return static_cast<size_t>(
        std::count_if(outputs.begin(), outputs.end(), [](const Argument& value) { return value.node() != nullptr; }));
}

struct Variant {
    bool half, wideMask, oneBatch;

    std::string of(std::string_view parameters) const {
        std::string out =
            replaced(replaced(parameters, " T[", half ? " f16[" : " f32["), "[B, ", oneBatch ? "[1, " : "[2, ");
        return wideMask ? replaced(out, "mask f16[", "mask f32[") : out;
    }
    std::string suffix() const {
        return std::string(half ? "_half" : "") + (wideMask ? "_mask_fp32" : "") + (oneBatch ? "_bs1" : "");
    }
};

class RuleTracer {
  public:
    explicit RuleTracer(TracedForms forms) : m_forms(forms) {}

    void add(const TracedRule& formula, const Variant& variant) {
        if (m_forms.training) add(formula, variant, TraceKind::Joint);
        add(formula, variant, TraceKind::Forward);
    }
    TracedRules take() { return std::move(m_out); }

  private:
    void add(const TracedRule& formula, const Variant& variant, TraceKind kind) {
        TracedRule source = formula;
        const std::string parameters = variant.of(formula.parameters);
        source.parameters = parameters;
        source.kind = kind;
        auto find = tracePattern(source);
        bool& stands = m_stands[{formula.name, kind}];
        stands |= find.has_value();
        if (!find && !stands && variant.half) m_out.broken.push_back(find.error());
        if (!find || !isNew(*find)) return;
        source.parameters = m_out.texts.emplace_back(parameters);
        addRule(m_out, source, std::move(*find),
                std::string(formula.name) + variant.suffix() + (kind == TraceKind::Joint ? "_training" : "_inference"));
    }

    /// Whether no earlier pattern is the same up to names (SDP-4).
    bool isNew(const std::string& find) {
        const auto text = parsePatternText(find);
        const auto pattern = text ? compilePattern(*text) : Result<Pattern>(text.error());
        return !pattern || m_known.insert(pattern->normalized()).second;
    }

    TracedForms m_forms;
    TracedRules m_out;
    std::set<std::string> m_known;
    std::map<std::pair<std::string_view, TraceKind>, bool> m_stands;  // whether some variant of a formula traced
};

}  // namespace

TracedRules traceRules(std::span<const TracedRule> formulas, TracedForms forms) {
    RuleTracer tracer(forms);
    const auto takes = [](const TracedRule& formula, std::string_view variant) {
        return formula.variants.find(variant) != std::string_view::npos;
    };
    for (const bool half : {false, true})
        for (const TracedRule& formula : formulas) {
            if (half && !forms.half) break;
            tracer.add(formula, {half, false, false});
            if (takes(formula, "bs1")) tracer.add(formula, {half, false, true});
        }
    for (const TracedRule& formula : formulas) {
        if (!forms.half || !takes(formula, "mask_fp32")) continue;
        tracer.add(formula, {true, true, false});
        if (takes(formula, "bs1")) tracer.add(formula, {true, true, true});
    }
    return tracer.take();
}

Values replaceByExample(const Match& match, GraphBuilder& builder, std::string_view formula) {
    std::vector<FormulaInput> inputs;
    const Pattern& pattern = match.pattern();
    for (size_t slot = 0; slot < pattern.names.size(); ++slot) {
        if (pattern.callOfSlot[slot] >= 0) continue;
        FormulaInput input{pattern.names[slot], {}, {}};
        const Argument& value = match[input.name];
        bool holdsNodes = false;
        value.forEachNode([&](const Node*) { holdsNodes = true; });
        if (const Node* node = value.node()) input.type = node->type();
        else if (holdsNodes) continue;  // a list of values cannot be a parameter of a formula
        else input.constant = printArgument(value);
        inputs.push_back(std::move(input));
    }
    return copyTraced(match, builder, formula, inputs, TraceKind::Forward);
}

Result<TracedRules> traceUserRule(const TracedRule& formula, bool training) {
    TracedRules out;
    std::vector<TraceKind> kinds = {TraceKind::Forward};
    if (training) kinds.insert(kinds.begin(), TraceKind::Joint);
    for (const TraceKind kind : kinds) {
        TracedRule source = formula;
        source.kind = kind;
        CT_TRY(const auto searched, traceSide(source, source.search));
        for (const Node* placeholder : searched->graph().placeholders())
            if (kind == TraceKind::Forward && !placeholder->hasUsers())
                return invalidInput("'search' does not read '" + placeholder->name() +
                                    "', so nothing says what it stands for");
        CT_TRY(const auto made, traceSide(source, source.replace));
        if (resultsOf(*searched) != resultsOf(*made))
            return invalidInput("'search' and 'replace_by_example' return different numbers of results");
        CT_TRY(std::string find, tracePattern(source));
        addRule(out, source, std::move(find),
                std::string(formula.name) + (kind == TraceKind::Joint ? "_training" : ""));
    }
    return out;
}

Result<std::unique_ptr<Module>> traceSearch(const TracedRule& rule, double number, double dropout) {
    CT_TRY(auto inputs, inputsOf(rule, dropout));
    for (FormulaInput& input : inputs)
        if (input.type.tensor() && input.type.tensor()->rank() == 0) input.constant = printArgument(number);
    return traceFormula(rule.search, inputs, rule.kind);
}

}  // namespace cutaway
