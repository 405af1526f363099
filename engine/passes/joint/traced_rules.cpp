#include "engine/passes/joint/traced_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/autograd/expand.h"
#include "engine/passes/dead_code.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/support/check.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

/// What a parameter is when the formula is traced: a tensor, or a number that is written into the text.
struct TraceInput {
    std::string name;
    ValueType type;
    std::string constant;
};

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \n");
    return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \n") - begin + 1);
}

Result<std::vector<TraceInput>> readParameters(std::string text) {
    std::vector<TraceInput> inputs;
    std::string function = "def forward(";
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(';', begin), text.size());
        const std::string_view one = trimmed(std::string_view(text).substr(begin, end - begin));
        const size_t space = one.find(' ');
        inputs.push_back({std::string(one.substr(0, space)), {}, {}});
        function += (inputs.size() > 1 ? ", " : "") + inputs.back().name + ": \"" + std::string(one.substr(space + 1)) + "\"";
        begin = end + 1;
    }
    CT_TRY(const auto module, parseText(function + "):\n    return (" + inputs[0].name + ",)\n"));
    const auto placeholders = module->graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].type = placeholders[i]->type();
    return inputs;
}

bool isWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

double lowestOf(DType dtype) {
    switch (dtype) {
        case DType::F16: return -65504.0;
        case DType::BF16: return -3.3895313892515355e38;
        case DType::F64: return std::numeric_limits<double>::lowest();
        default: return static_cast<double>(std::numeric_limits<float>::lowest());
    }
}

/// The formula with sizes and numbers written in.
class FormulaText {
  public:
    FormulaText(std::string_view text, const std::vector<TraceInput>& inputs) : m_text(text), m_inputs(inputs) {}

    std::string run() {
        std::string out;
        for (size_t at = 0; at < m_text.size();) {
            if (!isWordCharacter(m_text[at]) || (at > 0 && (isWordCharacter(m_text[at - 1]) || m_text[at - 1] == '.'))) {
                out += m_text[at++];
                continue;
            }
            size_t end = at;
            while (end < m_text.size() && isWordCharacter(m_text[end])) ++end;
            const std::string_view word = m_text.substr(at, end - at);
            at = end;
            if (end < m_text.size() && m_text[end] == '(' && isFunction(word)) out += callText(word, at);
            else out += constantOf(word);
        }
        return out;
    }

  private:
    const TraceInput* find(std::string_view name) const {
        const auto found = std::find_if(m_inputs.begin(), m_inputs.end(), [&](const TraceInput& input) { return input.name == name; });
        return found == m_inputs.end() ? nullptr : &*found;
    }
    std::string constantOf(std::string_view word) const {
        const TraceInput* input = find(word);
        return input && !input->constant.empty() ? input->constant : std::string(word);
    }
    static bool isFunction(std::string_view word) {
        return word == "size" || word == "sqrt_size" || word == "dtype_of" || word == "device_of" || word == "lowest" || word == "inverse";
    }
    /// What "(x)" or "(x, d)" at `at` stands for; `at` moves behind it.
    std::string callText(std::string_view function, size_t& at) const {
        if (function == "inverse" && m_text.substr(at + 1).starts_with("sqrt_size")) {
            at += 1 + std::string_view("sqrt_size").size();
            const std::string inner = callText("sqrt_size", at);
            ++at;
            return printArgument(1.0 / std::stod(inner));
        }
        const size_t close = m_text.find(')', at), comma = std::min(m_text.find(',', at), close);
        const TraceInput* input = find(trimmed(m_text.substr(at + 1, comma - at - 1)));
        CT_CHECK(input != nullptr && close != std::string_view::npos, "a formula's function is of one of its parameters");
        const std::string rest(comma < close ? trimmed(m_text.substr(comma + 1, close - comma - 1)) : std::string_view("0"));
        at = close + 1;
        if (function == "inverse") return input->constant.empty() ? "1.0" : printArgument(1.0 / std::stod(input->constant));
        const TensorType* type = input->type.tensor();
        CT_CHECK(type != nullptr, "only tensors have sizes and dtypes");
        if (function == "dtype_of") return printArgument(type->dtype);
        if (function == "device_of") return printArgument(type->device);
        if (function == "lowest") return printArgument(lowestOf(type->dtype));
        SymInt count = 1;
        for (size_t begin = 0; begin < rest.size(); begin = std::min(rest.find(',', begin), rest.size() - 1) + 1) {
            const int dim = std::stoi(rest.substr(begin));
            count = count * type->sizes[static_cast<size_t>(dim < 0 ? dim + static_cast<int>(type->rank()) : dim)];
        }
        if (function == "size") return count.text();
        return printArgument(count.isInt() ? std::sqrt(static_cast<double>(count.value())) : 0.0);
    }

    std::string_view m_text;
    const std::vector<TraceInput>& m_inputs;
};

Result<std::unique_ptr<Module>> trace(std::string_view formula, const std::vector<TraceInput>& inputs) {
    std::string text = "def forward(";
    ParseOptions options;
    for (const TraceInput& input : inputs) {
        if (!input.constant.empty()) continue;
        text += (text.back() == '(' ? "" : ", ") + input.name;
        options.types[input.name] = input.type;
    }
    text += "):\n";
    const std::string body = FormulaText(formula, inputs).run();
    for (size_t begin = 0; begin < body.size();) {
        const size_t end = std::min(body.find_first_of(";\n", begin), body.size());
        const std::string_view line = trimmed(std::string_view(body).substr(begin, end - begin));
        if (!line.empty()) text += "    " + std::string(line) + "\n";
        begin = end + 1;
    }
    CT_TRY(auto module, parseText(text, options));
    static const CompileOptions kOptions;
    Rewriter rewriter("trace", kOptions);
    CT_TRY_VOID(expandComposites(*module, rewriter));
    CT_TRY_VOID(decompose(*module, rewriter));
    CT_TRY_VOID(removeNoopOps(*module, rewriter));
    CT_TRY_VOID(eliminateDeadCode(*module, rewriter));
    for (const Node& node : module->graph().nodes())
        if (node.isCall() && node.op().isOpaque()) return unsupported("no operator '" + node.op().name() + "'");
    return module;
}

/// A traced graph as the text of a pattern.
class PatternPrinter {
  public:
    /// `exact`: constants as they are; else integers, floats, lists, devices and dtypes are left open (T-5).
    PatternPrinter(const Graph& graph, bool exact) : m_graph(graph), m_exact(exact) {}

    std::string run() const {
        std::string out;
        for (const Node& node : m_graph.nodes()) {
            if (!node.isCall()) continue;
            out += node.name() + " = " + node.op().name() + "(";
            const auto& params = node.op().schema()->params;
            for (size_t i = 0; i < params.size(); ++i)
                out += (i ? ", " : "") + (params[i].keywordOnly ? params[i].name + "=" : std::string()) + item(node.arg(i));
            out += ")\n";
        }
        out += "return ";
        bool first = true;
        for (const Argument& value : m_graph.outputs()) {
            out += (first ? "" : ", ") + value.node()->name();
            first = false;
        }
        return out;
    }

  private:
    std::string item(const Argument& value) const {
        if (const Node* node = value.node()) return node->name();
        const auto* items = value.list();
        bool hasNodes = false;
        value.forEachNode([&](const Node*) { hasNodes = true; });
        const bool open = value.get<int64_t>() || value.get<double>() || value.get<Device>() || value.get<DType>() || value.get<Expr>() || (items && !hasNodes);
        if (open && !m_exact) return "_";
        if (items) {
            std::string out = "[";
            for (const Argument& one : *items) out += (out.size() > 1 ? ", " : "") + item(one);
            return out + "]";
        }
        return printArgument(value);
    }

    const Graph& m_graph;
    bool m_exact;
};

std::vector<TraceInput> realInputs(const TracedRule& formula, const Match& match) {
    auto inputs = readParameters(std::string(formula.parameters));
    for (TraceInput& input : *inputs) {
        const Argument& value = match[input.name];
        if (value.node()) input.type = value.node()->type();
        else input.constant = printArgument(value);
    }
    return *inputs;
}

/// Traces the formula on the values that the pattern found and matches the result exactly.
std::string_view unlessTracedAgain(const Match& match) {
    const auto& formula = *static_cast<const TracedRule*>(match.rule().context);
    if (formula.unless)
        if (const std::string_view refusal = formula.unless(match); !refusal.empty()) return refusal;
    if (match.parity()) return "";
    const auto module = trace(formula.search, realInputs(formula, match));
    if (!module) return "the formula does not fit the shapes found here";
    Rule exact = match.rule();
    const std::string find = PatternPrinter((*module)->graph(), true).run();
    exact.find = find;
    exact.unless = nullptr;
    return explainRule(exact, match.root(), match.options()).matched ? "" : "constants or shapes are not those of the formula";
}

/// Copies the traced replacement to before the first result.
Values buildTraced(const Match& match, GraphBuilder& builder) {
    const auto& formula = *static_cast<const TracedRule*>(match.rule().context);
    const auto inputs = realInputs(formula, match);
    const auto module = trace(formula.replace, inputs);
    if (!module) {
        builder.fail(module.error());
        return Values::notHandled();
    }
    std::map<NodeId, Node*> twins;
    for (const Node* placeholder : (*module)->graph().placeholders()) twins[placeholder->id()] = match[placeholder->name()].node();
    for (const Node& node : (*module)->graph().nodes()) {
        if (!node.isCall()) continue;
        std::vector<Argument> positional;
        NamedArguments keywords;
        const auto& params = node.op().schema()->params;
        for (size_t i = 0; i < params.size(); ++i) {
            Argument value = node.arg(i).mapNodes([&](Node* input) { return twins.at(input->id()); });
            if (params[i].keywordOnly) keywords.emplace_back(params[i].name, std::move(value));
            else positional.push_back(std::move(value));
        }
        twins[node.id()] = builder.call(node.op(), std::move(positional), std::move(keywords)).node();
    }
    std::vector<Value> results;
    for (const Argument& value : (*module)->graph().outputs()) results.push_back(Value(builder, twins.at(value.node()->id())));
    if (results.size() == 1) return results[0];
    return results;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string out(text);
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size())) out.replace(at, from.size(), to);
    return out;
}

/// The pattern of a formula for these parameters; both sides must trace.
Result<std::string> tracePattern(const TracedRule& formula, const std::string& parameters) {
    const auto located = [&](Error error) {
        error.where = "formula " + std::string(formula.name) + (error.where.empty() ? "" : ", " + error.where);
        return error;
    };
    auto inputs = readParameters(parameters);
    if (!inputs) return located(inputs.error());
    const auto found = trace(formula.search, *inputs);
    if (!found) return located(found.error());
    // In `replace` a parameter of no dims is a number.
    for (TraceInput& input : *inputs)
        if (input.type.tensor() && input.type.tensor()->rank() == 0) input.constant = "1.0";
    if (const auto made = trace(formula.replace, *inputs); !made) return located(made.error());
    return PatternPrinter((*found)->graph(), false).run();
}

struct Variant {
    bool half, wideMask, oneBatch;

    std::string of(std::string_view parameters) const {
        std::string out = replaced(replaced(parameters, " T[", half ? " f16[" : " f32["), "[B, ", oneBatch ? "[1, " : "[2, ");
        return wideMask ? replaced(out, "mask f16[", "mask f32[") : out;
    }
    std::string suffix() const { return std::string(half ? "_half" : "") + (wideMask ? "_mask_fp32" : "") + (oneBatch ? "_bs1" : ""); }
};

}  // namespace

TracedRules traceRules(std::span<const TracedRule> formulas) {
    TracedRules out;
    std::set<std::string> known;
    std::map<std::string_view, bool> stands;   // whether some variant of a formula traced
    const auto add = [&](const TracedRule& formula, const Variant& variant) {
        const std::string parameters = variant.of(formula.parameters);
        auto find = tracePattern(formula, parameters);
        stands[formula.name] |= find.has_value();
        if (!find && !stands[formula.name] && variant.half) out.broken.push_back(find.error());
        if (!find || !known.insert(*find).second) return;
        TracedRule& source = out.sources.emplace_back(formula);
        source.parameters = out.texts.emplace_back(parameters);
        Rule rule;
        rule.name = out.texts.emplace_back(std::string(formula.name) + variant.suffix() + "_inference");
        rule.find = out.texts.emplace_back(std::move(*find));
        rule.build = buildTraced;
        rule.unless = unlessTracedAgain;
        rule.why = formula.why;
        rule.context = &source;
        out.rules.push_back(rule);
    };
    const auto takes = [](const TracedRule& formula, std::string_view variant) { return formula.variants.find(variant) != std::string_view::npos; };
    for (const bool half : {false, true})
        for (const TracedRule& formula : formulas) {
            add(formula, {half, false, false});
            if (takes(formula, "bs1")) add(formula, {half, false, true});
        }
    for (const TracedRule& formula : formulas) {
        if (!takes(formula, "mask_fp32")) continue;
        add(formula, {true, true, false});
        if (takes(formula, "bs1")) add(formula, {true, true, true});
    }
    return out;
}

Result<std::unique_ptr<Module>> traceFormula(const TracedRule& formula, double number) {
    CT_TRY(auto inputs, readParameters(std::string(formula.parameters)));
    for (TraceInput& input : inputs)
        if (input.type.tensor() && input.type.tensor()->rank() == 0) input.constant = printArgument(number);
    return trace(formula.search, inputs);
}

}  // namespace cutaway
