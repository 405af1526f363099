#include "engine/text/provenance_text.h"

#include <charconv>

namespace cutaway::fxtext {
namespace {

constexpr std::string_view kNoTrace = "No stacktrace found for following nodes";

std::string_view trimmedLine(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

std::shared_ptr<const std::string> shared(std::string_view text) { return std::make_shared<const std::string>(text); }

constexpr std::pair<std::string_view, int8_t> kRecompute[] = {
    {"MUST_SAVE", -1}, {"PREFER_RECOMPUTE", 1}, {"MUST_RECOMPUTE", 2}};

/// Where `wanted` begins a word outside quotes, or npos.
size_t findWord(std::string_view description, std::string_view wanted) {
    char quote = 0;
    for (size_t i = 0; i < description.size(); ++i) {
        const char c = description[i];
        if (quote) {
            if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') quote = c;
        else if (description.substr(i).starts_with(wanted) &&
                 (i == 0 || std::string_view("( ,").find(description[i - 1]) != std::string_view::npos))
            return i;
    }
    return std::string_view::npos;
}

/// What stands after `key=` up to the ',' or ')' of its own level; empty if that never comes to an end.
std::string_view valueOf(std::string_view description, std::string_view key) {
    const size_t at = findWord(description, std::string(key) + "=");
    if (at == std::string_view::npos) return {};
    const size_t begin = at + key.size() + 1;
    int depth = 0;
    char quote = 0;
    size_t end = begin;
    for (; end < description.size(); ++end) {
        const char c = description[end];
        if (quote) {
            if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') quote = c;
        else if (c == '(' || c == '[') ++depth;
        else if ((c == ')' || c == ']') && depth-- == 0) break;
        else if (c == ',' && depth == 0) break;
    }
    return depth > 0 || quote ? std::string_view() : description.substr(begin, end - begin);
}

/// Descriptions know no escapes: a quote inside a target cannot be written, so it is not read either.
std::string unquoted(std::string_view text) {
    if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"')) text = text.substr(1, text.size() - 2);
    std::string out(text);
    std::erase(out, '\'');
    return out;
}

/// A target inside single quotes; a quote in it would end it early, so that it is dropped.
std::string quotedTarget(const std::string& target) {
    std::string out = "'";
    for (char c : target)
        if (c != '\'' && c != '\n') out += c;
    return out + "'";
}

std::optional<int64_t> integer(std::string_view text) {
    int64_t value = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

namespace {

/// "recompute: MUST_SAVE", "ac_graph_id: 3 - PREFER_RECOMPUTE", "ac_graph_id: 3".
void readRecompute(std::string_view words, CommentState& state) {
    std::string_view policy;
    if (const size_t at = words.find("recompute: "); at != std::string_view::npos) policy = words.substr(at + 11);
    if (const size_t at = words.find("ac_graph_id: "); at != std::string_view::npos) {
        const std::string_view rest = words.substr(at + 13);
        const std::string_view number = rest.substr(0, rest.find_first_not_of("0123456789"));
        if (const auto id = integer(number); id && *id < (1 << 30)) state.region = static_cast<int32_t>(*id) + 1;
        if (rest.substr(number.size()).starts_with(" - ")) policy = rest.substr(number.size() + 3);
    }
    for (const auto& [name, value] : kRecompute)
        if (policy.starts_with(name)) state.recompute = value;
}

std::string recomputeText(const Provenance& provenance) {
    std::string policy;
    for (const auto& [name, value] : kRecompute)
        if (provenance.recompute == value) policy = name;
    if (provenance.region == 0) return policy.empty() ? policy : "recompute: " + policy;
    return "ac_graph_id: " + std::to_string(provenance.region - 1) + (policy.empty() ? "" : " - " + policy);
}

}  // namespace

void CommentState::applyTo(Provenance& provenance) const {
    provenance.stackTrace = stackTrace;
    provenance.modulePath = modulePath;
    provenance.moduleType = moduleType;
    provenance.recompute = recompute;
    provenance.region = region;
}

void readComment(std::string_view comment, CommentState& state) {
    comment = trimmedLine(comment);
    if (comment == kNoTrace) {
        state = {};
        return;
    }
    const bool isModule = comment.starts_with("module: ");
    const size_t file = comment.starts_with("File: ") ? 0 : comment.find(" File: ");
    if (file == std::string_view::npos && !isModule && !comment.starts_with("recompute: ") &&
        !comment.starts_with("ac_graph_id: "))
        return;
    state = {};
    if (isModule) {
        std::string_view words = comment.substr(8);
        words = trimmedLine(words.substr(0, words.find(" #")));
        const size_t blank = words.find(' ');
        state.modulePath = shared(words.substr(0, blank));
        if (blank != std::string_view::npos) state.moduleType = shared(trimmedLine(words.substr(blank)));
    }
    readRecompute(comment.substr(0, file), state);
    if (file == std::string_view::npos) return;
    // File: PATH:LINE in FN, code: TEXT
    std::string_view place = comment.substr(comment.find("File: ", file) + 6);
    if (place.ends_with(", code:")) place.remove_suffix(7);
    const size_t code = place.find(", code: ");
    const std::string_view head = place.substr(0, code);
    const size_t in = head.rfind(" in ");
    const std::string_view position = head.substr(0, in);
    const size_t colon = position.rfind(':');
    if (colon == std::string_view::npos) return;
    std::string trace = "File \"" + std::string(position.substr(0, colon)) + "\", line " +
                        std::string(position.substr(colon + 1)) + ", in " +
                        std::string(in == std::string_view::npos ? "?" : head.substr(in + 4));
    if (code != std::string_view::npos) trace += "\n    " + std::string(trimmedLine(place.substr(code + 8)));
    state.stackTrace = shared(trace);
}

std::string commentOf(const Provenance& provenance) {
    std::string out;
    if (provenance.modulePath && !provenance.modulePath->empty()) {
        out = "module: " + *provenance.modulePath;
        if (provenance.moduleType && !provenance.moduleType->empty()) out += " " + *provenance.moduleType;
    }
    if (const std::string said = recomputeText(provenance); !said.empty()) out += (out.empty() ? "" : " # ") + said;
    const std::string_view trace =
        provenance.stackTrace ? std::string_view(*provenance.stackTrace) : std::string_view();
    const size_t frame = trace.rfind("File \"");
    if (frame != std::string_view::npos) {
        const std::string_view lines = trace.substr(frame + 6);
        const size_t pathEnd = lines.find("\", line ");
        const std::string_view head = lines.substr(0, lines.find('\n'));
        if (pathEnd < head.size()) {
            // A trace may be any text: of the line only digits, of the function one word, so that it reads back the
            // same.
            const std::string_view after = head.substr(pathEnd + 8);
            const std::string_view line =
                after.substr(0, std::min(after.find_first_not_of("0123456789"), after.size()));
            const size_t comma = after.find(", in ");
            std::string_view function =
                comma == std::string_view::npos ? std::string_view() : trimmedLine(after.substr(comma + 5));
            function = function.substr(0, function.find(' '));
            if (!out.empty()) out += " # ";
            out += "File: " + std::string(lines.substr(0, pathEnd)) + ":" + std::string(line);
            out += " in " + std::string(function.empty() ? "?" : function);
            if (head.size() < lines.size()) {
                const std::string_view rest = lines.substr(head.size() + 1);
                const std::string_view code = trimmedLine(rest.substr(0, rest.find('\n')));
                if (!code.empty()) out += ", code: " + std::string(code);
            }
        }
    }
    for (char& c : out)  // one line, and no character that a reader drops
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    return out.empty() ? std::string(kNoTrace) : out;
}

// ---------------------------------------------------------------- roles of inputs and outputs

InputSpec readInputRole(std::string_view description) {
    description = trimmedLine(description);
    const std::string_view head = description.substr(0, description.find('('));
    InputSpec spec;
    auto with = [&](InputSpec::Kind kind) {
        spec.kind = kind;
        spec.target = unquoted(valueOf(description, "target"));
        return spec;
    };
    if (head == "ParamAOTInput") return with(InputSpec::Kind::Parameter);
    if (head == "BufferAOTInput") {
        spec.persistent = valueOf(description, "persistent") != "False";
        return with(InputSpec::Kind::Buffer);
    }
    if (head == "ConstantAOTInput") return with(InputSpec::Kind::Constant);
    if (head == "CustomObjectAOTInput") return with(InputSpec::Kind::CustomObject);
    if (head == "ConstantInputAOTInput") return with(InputSpec::Kind::ConstantInput);
    if (head == "TokenAOTInput") return with(InputSpec::Kind::Token);
    if (head == "SavedForBackwardsAOTInput") spec.kind = InputSpec::Kind::Saved;
    if (head == "ForwardTangentInput") {
        spec.kind = InputSpec::Kind::ForwardTangent;
        spec.target = unquoted(valueOf(description, "of"));
    }
    if (head == "TangentAOTInput") {
        spec.kind = InputSpec::Kind::Tangent;
        spec.target = std::string(valueOf(description, "output"));
    }
    return spec;
}

std::string inputRole(const InputSpec& spec, size_t userIndex) {
    const std::string target = "target=" + quotedTarget(spec.target);
    switch (spec.kind) {
        case InputSpec::Kind::Parameter: return "ParamAOTInput(" + target + ")";
        case InputSpec::Kind::Buffer:
            return "BufferAOTInput(" + target + (spec.persistent ? ")" : ", persistent=False)");
        case InputSpec::Kind::Constant: return "ConstantAOTInput(" + target + ")";
        case InputSpec::Kind::CustomObject: return "CustomObjectAOTInput(" + target + ")";
        case InputSpec::Kind::ConstantInput: return "ConstantInputAOTInput(" + target + ")";
        case InputSpec::Kind::Token: return "TokenAOTInput(" + target + ")";
        case InputSpec::Kind::Tangent:
            return spec.target.empty() ? "TangentAOTInput()" : "TangentAOTInput(output=" + spec.target + ")";
        case InputSpec::Kind::Saved: return "SavedForBackwardsAOTInput()";
        case InputSpec::Kind::ForwardTangent: return "ForwardTangentInput(of=" + quotedTarget(spec.target) + ")";
        case InputSpec::Kind::UserInput: break;
    }
    return "PlainAOTInput(idx=" + std::to_string(userIndex) + ")";
}

OutputSpec readOutputRole(std::string_view description, const InputNames& inputs) {
    description = trimmedLine(description);
    const std::string_view head = description.substr(0, description.find('('));
    OutputSpec spec;
    auto refer = [&](std::string_view input, OutputSpec::Kind ofUser, OutputSpec::Kind ofParameter,
                     OutputSpec::Kind ofBuffer) {
        const InputSpec role = readInputRole(input);
        spec.target = role.target;
        spec.kind = role.kind == InputSpec::Kind::Parameter ? ofParameter
                    : role.kind == InputSpec::Kind::Buffer  ? ofBuffer
                                                            : ofUser;
        if (role.kind != InputSpec::Kind::UserInput) return spec;
        const auto number = integer(valueOf(input, "idx"));
        if (number && *number >= 0 && *number < static_cast<int64_t>(inputs.userNames.size()))
            spec.target = inputs.userNames[static_cast<size_t>(*number)];
        else spec.target = unquoted(valueOf(input, "target"));
        return spec;
    };
    using Kind = OutputSpec::Kind;
    if (head == "GradAOTOutput")
        return refer(valueOf(description, "grad_of"), Kind::Gradient, Kind::Gradient, Kind::Gradient);
    if (head == "InputMutationAOTOutput")
        return refer(valueOf(description, "mutated_input"), Kind::InputMutation, Kind::ParameterMutation,
                     Kind::BufferMutation);
    if (head == "LossAOTOutput") spec.kind = Kind::Loss;
    if (head == "TokenAOTOutput") spec.kind = Kind::Token;
    if (head == "SavedForBackwardsAOTOutput" || head == "SavedForBackwardsNoVcCheckAOTOutput") spec.kind = Kind::Saved;
    if (head == "ForwardTangentOutput") {
        spec.kind = Kind::ForwardTangent;
        spec.target = std::string(valueOf(description, "of"));
    }
    return spec;
}

std::string outputRole(const OutputSpec& spec, size_t userIndex, const InputNames& inputs) {
    auto input = [&]() -> std::string {
        size_t user = 0;
        for (const InputSpec& candidate : inputs.specs) {
            if (candidate.kind == InputSpec::Kind::UserInput) {
                if (user < inputs.userNames.size() && inputs.userNames[user] == spec.target)
                    return inputRole(candidate, user);
                ++user;
            } else if (candidate.target == spec.target) return inputRole(candidate, 0);
        }
        // Names no input: kept by name.
        if (spec.kind == OutputSpec::Kind::BufferMutation)
            return "BufferAOTInput(target=" + quotedTarget(spec.target) + ")";
        if (spec.kind == OutputSpec::Kind::ParameterMutation)
            return "ParamAOTInput(target=" + quotedTarget(spec.target) + ")";
        return "PlainAOTInput(target=" + quotedTarget(spec.target) + ")";
    };
    using Kind = OutputSpec::Kind;
    switch (spec.kind) {
        case Kind::Gradient: return "GradAOTOutput(grad_of=" + input() + ")";
        case Kind::ForwardTangent: return "ForwardTangentOutput(of=" + spec.target + ")";
        case Kind::BufferMutation:
        case Kind::ParameterMutation:
        case Kind::InputMutation: return "InputMutationAOTOutput(mutated_input=" + input() + ")";
        case Kind::Loss: return "LossAOTOutput()";
        case Kind::Token: return "TokenAOTOutput()";
        case Kind::Saved: return "SavedForBackwardsAOTOutput(idx=" + std::to_string(userIndex) + ")";
        case Kind::UserOutput: break;
    }
    return "PlainAOTOutput(idx=" + std::to_string(userIndex) + ")";
}

// ---------------------------------------------------------------- symbols and the printed signature

std::string symbolComment(const std::string& name, const SymbolInfo& info) {
    std::string out;
    auto add = [&](const char* key, const std::optional<int64_t>& value) {
        if (value) out += (out.empty() ? "" : ", ") + std::string(key) + "=" + std::to_string(*value);
    };
    add("lower", info.lower);
    add("upper", info.upper);
    add("hint", info.hint);
    return out.empty() ? out : "symbol " + name + ": " + out;
}

bool readSymbolComment(std::string_view comment, std::map<std::string, SymbolInfo>& symbols) {
    comment = trimmedLine(comment);
    if (!comment.starts_with("symbol ")) return false;
    const size_t colon = comment.find(": ");
    if (colon == std::string_view::npos) return false;
    SymbolInfo& info = symbols[std::string(comment.substr(7, colon - 7))];
    const std::string_view values = comment.substr(colon + 1);
    info.lower = integer(valueOf(values, "lower"));
    info.upper = integer(valueOf(values, "upper"));
    info.hint = integer(valueOf(values, "hint"));
    return true;
}

namespace {

void readRanges(std::string_view text, Module& module) {
    // {s77: VR[2, 64], u0: VR[0, int_oo]}
    for (size_t at = text.find(": VR["); at != std::string_view::npos; at = text.find(": VR[", at + 1)) {
        size_t begin = at;
        while (begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '_'))
            --begin;
        const size_t comma = text.find(", ", at), close = text.find(']', at);
        if (comma == std::string_view::npos || close == std::string_view::npos || comma > close) return;
        SymbolInfo& info = module.symbols[std::string(text.substr(begin, at - begin))];
        info.lower = integer(text.substr(at + 5, comma - at - 5));
        info.upper = integer(text.substr(comma + 2, close - comma - 2));
    }
}

/// 'l.weight' of "PARAMETER target='l.weight' persistent=True".
std::string targetOf(std::string_view line) {
    const size_t at = line.find("target=");
    if (at == std::string_view::npos) return {};
    line.remove_prefix(at + 7);
    return unquoted(line.substr(0, line.find(' ')));
}

void readInputKind(std::string_view kind, std::string_view line, InputSpec& spec) {
    static constexpr std::pair<std::string_view, InputSpec::Kind> kKinds[] = {
        {"PARAMETER", InputSpec::Kind::Parameter},
        {"BUFFER", InputSpec::Kind::Buffer},
        {"CONSTANT_TENSOR", InputSpec::Kind::Constant},
        {"CUSTOM_OBJ", InputSpec::Kind::CustomObject},
        {"TOKEN", InputSpec::Kind::Token}};
    for (const auto& [name, value] : kKinds)
        if (kind == name) {
            spec.kind = value;
            spec.target = targetOf(line);
            spec.persistent = line.find("persistent=False") == std::string_view::npos;
        }
}

void requireGradient(Module& module, size_t input) {
    Node& placeholder = *module.graph().placeholders().at(input);
    ValueType type = placeholder.type();
    if (TensorType* tensor = type.tensor(); tensor && (isFloating(tensor->dtype) || isComplex(tensor->dtype)))
        tensor->requiresGrad = true;
    module.graph().setType(placeholder, std::move(type));
}

void readOutputKind(std::string_view kind, std::string_view line, OutputSpec& spec) {
    static constexpr std::pair<std::string_view, OutputSpec::Kind> kKinds[] = {
        {"LOSS_OUTPUT", OutputSpec::Kind::Loss},
        {"BUFFER_MUTATION", OutputSpec::Kind::BufferMutation},
        {"PARAMETER_MUTATION", OutputSpec::Kind::ParameterMutation},
        {"USER_INPUT_MUTATION", OutputSpec::Kind::InputMutation},
        {"GRADIENT_TO_PARAMETER", OutputSpec::Kind::Gradient},
        {"GRADIENT_TO_USER_INPUT", OutputSpec::Kind::Gradient},
        {"TOKEN", OutputSpec::Kind::Token}};
    for (const auto& [name, value] : kKinds)
        if (kind == name) {
            spec.kind = value;
            spec.target = targetOf(line);
        }
}

}  // namespace

void readSignature(std::string_view tail, Module& module) {
    const size_t signature = tail.find("Graph signature:");
    if (signature == std::string_view::npos) return;
    tail = tail.substr(signature);
    bool outputs = false;
    size_t next = 0;
    while (!tail.empty()) {
        const std::string_view line = trimmedLine(tail.substr(0, tail.find('\n')));
        tail = tail.find('\n') == std::string_view::npos ? std::string_view() : tail.substr(tail.find('\n') + 1);
        if (line.starts_with("Range constraints:")) return readRanges(line, module);
        if (line == "# inputs" || line == "# outputs") {
            outputs = line == "# outputs";
            next = 0;
            continue;
        }
        const size_t colon = line.find(": ");
        if (colon == std::string_view::npos) continue;
        const std::string_view rest = line.substr(colon + 2);
        const std::string_view kind = rest.substr(0, rest.find(' '));
        if (!outputs && next < module.inputs.size() && rest.find("target=") != std::string_view::npos) {
            readInputKind(kind, rest, module.inputs[next]);
            if (module.inputs[next].kind == InputSpec::Kind::Parameter) requireGradient(module, next);
        }
        if (outputs && next < module.outputs.size()) readOutputKind(kind, rest, module.outputs[next]);
        ++next;
    }
}

}  // namespace cutaway::fxtext
