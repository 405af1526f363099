#include "engine/passes/joint/formula.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "engine/autograd/expand.h"
#include "engine/autograd/joint_graph.h"
#include "engine/passes/joint/early_patterns.h"
#include "engine/passes/remove_noop_ops.h"
#include "engine/passes/torch_calls_to_aten.h"
#include "engine/rewrite/dead_code.h"
#include "engine/rewrite/rewrite_watch.h"
#include "engine/support/trimmed.h"
#include "engine/text/parse.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

std::string_view trimmed(std::string_view text) { return cutaway::trimmed(text, " \n"); }

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
    FormulaText(std::string_view text, const std::vector<FormulaInput>& inputs) : m_text(text), m_inputs(inputs) {}

    Result<std::string> run() {
        std::string out;
        for (size_t at = 0; at < m_text.size();) {
            if (!isWordCharacter(m_text[at]) ||
                (at > 0 && (isWordCharacter(m_text[at - 1]) || m_text[at - 1] == '.'))) {
                out += m_text[at++];
                continue;
            }
            size_t end = at;
            while (end < m_text.size() && isWordCharacter(m_text[end])) ++end;
            const std::string_view word = m_text.substr(at, end - at);
            at = end;
            const char next = end < m_text.size() ? m_text[end] : ' ';
            if (next == '(' && isFunction(word)) out += callText(word, at);
            else if (next == '=') out += word;  // a keyword of a call
            else out += constantOf(word);
        }
        if (m_error) return *m_error;
        return out;
    }

  private:
    const FormulaInput* find(std::string_view name) const {
        const auto found = std::find_if(m_inputs.begin(), m_inputs.end(),
                                        [&](const FormulaInput& input) { return input.name == name; });
        return found == m_inputs.end() ? nullptr : &*found;
    }
    std::string constantOf(std::string_view word) const {
        const FormulaInput* input = find(word);
        return input && !input->constant.empty() ? input->constant : std::string(word);
    }
    static bool isFunction(std::string_view word) {
        return word == "size" || word == "sqrt_size" || word == "dtype_of" || word == "device_of" || word == "lowest" ||
               word == "inverse" || word == "square";
    }
    std::string fail(std::string what) {
        if (!m_error) m_error = invalidInput(std::move(what));
        return {};
    }
    static std::optional<double> numberOf(std::string_view text) {
        double number = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
        return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::optional(number) : std::nullopt;
    }
    /// Reads "(x)" or "(x, d)" at `at` and moves `at` behind it.
    std::string callText(std::string_view function, size_t& at) {
        constexpr std::string_view kRoot = "sqrt_size";
        if (function == "inverse" && m_text.substr(at + 1).starts_with(kRoot) &&
            m_text.substr(at + 1 + kRoot.size()).starts_with("(")) {
            at += 1 + kRoot.size();
            const std::string inner = callText(kRoot, at);
            if (at < m_text.size() && m_text[at] == ')') ++at;
            const auto root = numberOf(inner);
            return root ? printArgument(1.0 / *root) : fail("inverse is of a number");
        }
        const size_t close = m_text.find(')', at), comma = std::min(m_text.find(',', at), close);
        const FormulaInput* input =
            close == std::string_view::npos ? nullptr : find(trimmed(m_text.substr(at + 1, comma - at - 1)));
        at = std::min(close, m_text.size() - 1) + 1;
        if (input == nullptr) return fail(std::string(function) + " is of one of the parameters");
        const std::string_view rest =
            comma < close ? trimmed(m_text.substr(comma + 1, close - comma - 1)) : std::string_view("0");
        if (function == "inverse") return inverseText(*input);
        if (function == "square") {
            const auto number = numberOf(input->constant);
            return number ? printArgument(*number * *number) : fail("square is of a number");
        }
        const TensorType* type = input->type.tensor();
        if (type == nullptr) return fail(std::string(function) + " is of a tensor, and " + input->name + " is none");
        if (function == "dtype_of") return printArgument(type->dtype);
        if (function == "device_of") return printArgument(type->device);
        if (function == "lowest") return printArgument(lowestOf(type->dtype));
        const std::optional<SymInt> count = elements(*type, rest);
        if (!count) return fail(std::string(function) + " of " + input->name + " has no dims " + std::string(rest));
        if (function == "size") return count->text();
        return printArgument(count->isInt() ? std::sqrt(static_cast<double>(count->value())) : 0.0);
    }
    /// A parameter that is not known to be a number yet counts as 1.
    std::string inverseText(const FormulaInput& input) {
        if (input.constant.empty()) return "1.0";
        const auto number = numberOf(input.constant);
        return number ? printArgument(1.0 / *number)
                      : fail("inverse is of a number, and " + input.name + " is " + input.constant);
    }
    /// The number of elements along "d, ..." together.
    static std::optional<SymInt> elements(const TensorType& type, std::string_view dims) {
        SymInt count = 1;
        for (size_t begin = 0; begin < dims.size();) {
            const size_t end = std::min(dims.find(',', begin), dims.size());
            const auto dim = numberOf(trimmed(dims.substr(begin, end - begin)));
            const auto rank = static_cast<double>(type.rank());
            if (!dim || *dim < -rank || *dim >= rank || *dim != std::floor(*dim)) return std::nullopt;
            count = count * type.sizes[static_cast<size_t>(*dim < 0 ? *dim + rank : *dim)];
            begin = end + 1;
        }
        return count;
    }

    std::optional<Error> m_error;
    std::string_view m_text;
    const std::vector<FormulaInput>& m_inputs;
};

/// The joint graph in place of the forward one; its primals keep their names.
Result<void> addBackward(Module& module, Rewriter& rewriter) {
    Graph& graph = module.graph();
    std::vector<std::string> names;
    for (const Node* placeholder : graph.placeholders()) names.push_back(placeholder->name());
    CT_TRY(const bool changed, differentiate(module, rewriter));
    if (!changed) return invalidInput("no value of the formula has a gradient");
    const std::vector<Node*> placeholders = graph.placeholders();
    for (size_t i = 0; i < names.size(); ++i) graph.renameParameter(*placeholders[i], names[i]);
    return {};
}

}  // namespace

Result<std::unique_ptr<Module>> parseFormula(std::string_view formula, const std::vector<FormulaInput>& inputs,
                                             TraceKind kind) {
    std::string text = "def forward(";
    ParseOptions options;
    for (const FormulaInput& input : inputs) {
        if (!input.constant.empty()) continue;
        text += (text.back() == '(' ? "" : ", ") + input.name;
        ValueType type = input.type;
        if (TensorType* tensor = type.tensor()) tensor->requiresGrad = input.gradient && kind == TraceKind::Joint;
        options.types[input.name] = std::move(type);
    }
    text += "):\n";
    CT_TRY(const std::string body, FormulaText(formula, inputs).run());
    for (size_t begin = 0; begin < body.size();) {
        const size_t end = std::min(body.find_first_of(";\n", begin), body.size());
        const std::string_view line = trimmed(std::string_view(body).substr(begin, end - begin));
        // A pattern's "return a, b" is a tuple here.
        const bool plain = line.starts_with("return ") && line.find('(') == std::string_view::npos;
        if (plain) text += "    return (" + std::string(trimmed(line.substr(7))) + ",)\n";
        else if (!line.empty()) text += "    " + std::string(line) + "\n";
        begin = end + 1;
    }
    return parseText(text, options);
}

Result<std::vector<FormulaInput>> readFormulaInputs(std::string_view text) {
    std::vector<FormulaInput> inputs;
    std::string function = "def forward(";
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(';', begin), text.size());
        const std::string_view one = trimmed(text.substr(begin, end - begin));
        const size_t space = one.find(' ');
        if (space == std::string_view::npos)
            return invalidInput("a parameter is a name and a type, as in 'x f32[2, 3]'", std::string(one));
        std::string_view type = trimmed(one.substr(space));
        const bool gradient = type.ends_with(" grad");
        if (gradient) type = trimmed(type.substr(0, type.size() - 5));
        const std::string_view name = one.substr(0, space);
        if (std::any_of(inputs.begin(), inputs.end(), [&](const FormulaInput& input) { return input.name == name; }))
            return invalidInput("two parameters have this name", std::string(name));
        const bool number = type == "number" || type == "scalar";
        inputs.push_back({std::string(name), {}, {}, number, gradient, type == "scalar"});
        if (!number)
            function += (function.back() == '(' ? "" : ", ") + inputs.back().name + ": \"" + std::string(type) + "\"";
        begin = end + 1;
    }
    if (inputs.empty() || inputs[0].number) return invalidInput("the first parameter is a tensor");
    CT_TRY(const auto module, parseText(function + "):\n    return (" + inputs[0].name + ",)\n"));
    const auto placeholders = module->graph().placeholders();
    for (size_t i = 0, tensor = 0; i < inputs.size(); ++i)
        if (!inputs[i].number) inputs[i].type = placeholders[tensor++]->type();
    return inputs;
}

Result<std::unique_ptr<Module>> traceFormula(std::string_view formula, const std::vector<FormulaInput>& inputs,
                                             TraceKind kind) {
    CT_TRY(auto module, parseFormula(formula, inputs, kind));
    static const CompileRequest kRequest;
    const RewriteWatch unheard([](std::string_view, const RewriteInfo&) {});  // these are none of the run's
    Rewriter rewriter("trace", kRequest);
    CT_TRY_VOID(torchCallsToAten(*module, rewriter));
    CT_TRY_VOID(expandComposites(*module, rewriter));
    if (kind == TraceKind::Joint) CT_TRY_VOID(addBackward(*module, rewriter));
    CT_TRY_VOID(decompose(*module, rewriter));
    CT_TRY_VOID(removeNoopOps(*module, rewriter));
    if (kind == TraceKind::Joint) CT_TRY_VOID(earlyPatterns(*module, rewriter));
    CT_TRY_VOID(eliminateDeadCode(*module, rewriter));
    for (const Node& node : module->graph().nodes())
        if (node.isCall() && node.op().isOpaque()) return unsupported("no operator '" + node.op().name() + "'");
    return module;
}

}  // namespace cutaway
