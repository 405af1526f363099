#include "engine/passes/defined_operators.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "cutaway/words.h"
#include "engine/ops/operator_definition.h"
#include "engine/ops/torch/torch_calls.h"
#include "engine/passes/joint/formula.h"
#include "engine/passes/operator_conditions.h"
#include "engine/rewrite/operator_text.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

constexpr int kDeepest = 16;  // definitions within definitions

std::string lineWord(int line) { return "line " + std::to_string(line); }

/// Of the error of a parser that counts the statements from 2 on, the line of the file.
int lineInFile(const OperatorCase& one, const std::string& where) {
    int line = 0;
    std::from_chars(where.data(), where.data() + where.size(), line);
    const auto last = static_cast<int>(one.lines.size());
    return line < 2 ? one.line : one.lines[static_cast<size_t>(std::min(line - 2, last - 1))];
}

// -- expansion

/// A definition, and the file that it stands in.
struct Defined {
    OperatorText text;
    std::string file;
    std::vector<std::vector<CaseCondition>> conditions;  // by case

    std::string place(int line) const { return file + ", " + lineWord(line); }
};

/// The operands of a call as parameters of the statements: tensors by name, everything else written in.
class OperandNames {
  public:
    OperandNames(const Schema& schema, std::span<const Argument> args) {
        for (size_t i = 0; i < schema.params.size(); ++i) add(schema.params[i].name, args[i]);
    }
    const std::vector<FormulaInput>& inputs() const { return m_inputs; }
    Node* operand(std::string_view name) const {
        const auto found = m_operands.find(name);
        return found == m_operands.end() ? nullptr : found->second;
    }

  private:
    void add(const std::string& name, const Argument& value) {
        if (Node* node = value.node()) return addNode(name, node);
        int count = 0;
        const Argument named = value.mapNodes([&](Node* node) -> Node* {
            const std::string item = name + "_" + std::to_string(count++);
            addNode(item, node);
            return &m_names.placeholder(item, node->type());
        });
        m_inputs.push_back({name, {}, printArgument(named)});
    }
    void addNode(const std::string& name, Node* node) {
        m_inputs.push_back({name, node->type(), {}});
        m_operands[name] = node;
    }
    Graph m_names;  // for nodes within lists to be printed
    std::vector<FormulaInput> m_inputs;
    std::map<std::string, Node*, std::less<>> m_operands;
};

std::string statementTexts(const OperatorCase& one) {
    std::string out;
    for (const std::string& statement : one.statements) out += statement + "\n";
    return out;
}

/// Copies the calls of the statements to the builder's place.
Values copyDefined(const Module& module, const OperandNames& parameters, const Schema& schema, Decomposition& d) {
    std::map<NodeId, Node*> twins;
    GraphBuilder& builder = d.builder();
    for (const Node& node : module.graph().nodes()) {
        if (node.isPlaceholder()) twins[node.id()] = parameters.operand(node.name());
        else if (node.kind() == NodeKind::GetAttr)
            return refuse(d, "its definition makes a tensor of literals: use torch.full or torch.arange");
        if (!node.isCall()) continue;
        if (node.op().isOpaque())
            return refuse(
                d, "its definition calls '" + node.op().name() + "', which is not an operator that Cutaway knows");
        std::vector<Argument> args;
        for (const Argument& arg : node.args())
            args.push_back(arg.mapNodes([&](Node* input) { return twins.at(input->id()); }));
        twins[node.id()] = builder.callBound(node.op(), std::move(args)).node();
        if (builder.error()) return Value(builder, nullptr);
    }
    std::vector<Value> results;
    for (const Argument& value : module.graph().outputs()) {
        if (value.node() == nullptr) return refuse(d, "its definition returns what is not a tensor");
        Node* twin = twins.at(value.node()->id());
        if (!schema.returns.front().list || twin->type().tensor()) results.push_back(builder.value(*twin));
        else results = itemsOf(builder.value(*twin));
    }
    if (schema.returns.size() == 1 && schema.returns[0].list) return results;
    if (results.size() != schema.returns.size())
        return refuse(d, "its definition returns " + std::to_string(results.size()) + " values, the schema " +
                             std::to_string(schema.returns.size()));
    if (results.size() == 1) return results[0];
    return results;
}

Values expandCase(const Defined& defined, const OperatorCase& one, Decomposition& d) {
    const auto fail = [&](Error error, int line) {
        error.message = d.op().name() + ": " + error.message;
        error.notes.push_back("it is defined in " + defined.place(line));
        d.builder().fail(std::move(error));
        return Value(d.builder(), nullptr);
    };
    std::vector<Argument> args;
    for (size_t i = 0; i < d.count(); ++i) args.push_back(d.arg(i));
    const OperandNames parameters(defined.text.schema, args);
    auto module = parseFormula(statementTexts(one), parameters.inputs(), TraceKind::Forward);
    if (!module)
        return fail({ErrorCode::InvalidInput, module.error().message, {}, module.error().notes},
                    lineInFile(one, module.error().where));
    if (auto lowered = lowerTorchCalls(**module); !lowered) return fail(lowered.error(), one.line);
    return copyDefined(**module, parameters, defined.text.schema, d);
}

Values expandDefined(const Defined& defined, Decomposition& d) {
    static thread_local int depth = 0;
    struct Deeper {
        Deeper() { ++depth; }
        ~Deeper() { --depth; }
    } const deeper;
    if (depth > kDeepest) return refuse(d, "its definition leads back to itself");
    for (size_t i = 0; i < defined.text.cases.size(); ++i) {
        const auto& conditions = defined.conditions[i];
        if (std::all_of(conditions.begin(), conditions.end(),
                        [&](const CaseCondition& one) { return conditionHolds(one, d); }))
            return expandCase(defined, defined.text.cases[i], d);
    }
    return refuse(d, "no 'computes when' of its definition in " + defined.place(defined.text.line) +
                         " holds for this call: add one, or a 'computes' without a condition");
}

// -- what is checked before anything calls it

/// A value of the parameter's kind, as text.
std::string sampleTextOf(const Param& param) {
    if (param.list) return "[]";
    switch (param.kind) {
        case ParamKind::Bool: return "True";
        case ParamKind::Float: return "1.0";
        case ParamKind::String: return "'none'";
        case ParamKind::DType: return "torch.float32";
        case ParamKind::Device: return "device(type='cpu')";
        case ParamKind::Layout: return "torch.strided";
        case ParamKind::MemoryFormat: return "torch.contiguous_format";
        case ParamKind::Int:
        case ParamKind::Number: return "1";
        default: return "None";
    }
}

class DefinitionChecks {
  public:
    DefinitionChecks(const std::vector<OperatorText>& all, const std::string& file) : m_all(all), m_file(file) {}

    Result<void> run() {
        for (const OperatorText& one : m_all) CT_TRY_VOID(check(one));
        for (const OperatorText& one : m_all) {
            std::set<std::string> seen;
            if (leadsTo(one.schema.name, one.schema.name, seen))
                return fail("its definition leads back to itself", one, one.line);
        }
        return {};
    }

  private:
    Error fail(std::string what, const OperatorText& one, int line, std::vector<std::string> notes = {}) const {
        return {ErrorCode::InvalidInput, std::move(what),
                m_file + ", operator " + one.schema.name + ", " + lineWord(line), std::move(notes)};
    }
    Result<void> check(const OperatorText& one) {
        for (const OperatorCase& each : one.cases) {
            const auto conditions = readConditions(each.when);
            if (!conditions) return fail(conditions.error().message, one, each.line);
            for (const CaseCondition& condition : *conditions)
                if (one.schema.find(condition.name) < 0)
                    return fail("'" + condition.name + "' is not a parameter of the schema", one, each.line,
                                {"it has: " + parametersOf(one.schema)});
            CT_TRY_VOID(checkStatements(one, each));
        }
        return {};
    }
    static std::string parametersOf(const Schema& schema) {
        std::string out;
        for (const Param& param : schema.params) out += (out.empty() ? "" : ", ") + param.name;
        return out;
    }
    Result<void> checkStatements(const OperatorText& one, const OperatorCase& each) {
        std::vector<FormulaInput> inputs;
        for (const Param& param : one.schema.params) {
            FormulaInput input{param.name, {}, {}};
            if (param.kind == ParamKind::Tensor && !param.list) input.type = OpaqueType{};
            else input.constant = sampleTextOf(param);
            inputs.push_back(std::move(input));
        }
        // Sizes and dtypes are asked of a call's own operands, so what asks for them is left for then.
        std::string statements = statementTexts(each);
        for (const std::string_view of : {"size(", "sqrt_size(", "dtype_of(", "device_of(", "lowest(", "inverse("})
            if (statements.find(of) != std::string::npos && !isMethod(statements, of)) return {};
        const auto module = parseFormula(statements, inputs, TraceKind::Forward);
        if (!module)
            return fail(module.error().message, one, lineInFile(each, module.error().where), module.error().notes);
        for (const Node& node : (*module)->graph().nodes()) {
            if (!node.isCall()) continue;
            const Op& op = node.op();
            m_calls[one.schema.name].insert(op.name());
            if (!op.isOpaque() || op.style() != Op::Style::Function || isDefinedHere(op.name())) continue;
            if (isTorchCall(node) && !torchSignatures(op).empty()) continue;
            if (isTorchCall(node) && !op.name().starts_with("torch.")) continue;
            return fail("it calls '" + op.name() + "', which is not an operator that Cutaway knows", one, each.line,
                        {"write it with operators of ATen or functions of torch, or define that one, too"});
        }
        return {};
    }
    static bool isMethod(const std::string& text, std::string_view of) {
        for (size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1))
            if (at == 0 || (text[at - 1] != '.' && text[at - 1] != '_')) return false;
        return true;
    }
    bool isDefinedHere(std::string_view name) const {
        return std::any_of(m_all.begin(), m_all.end(),
                           [&](const OperatorText& one) { return one.schema.name == name; });
    }
    bool leadsTo(const std::string& from, const std::string& to, std::set<std::string>& seen) const {
        const auto found = m_calls.find(from);
        if (found == m_calls.end()) return false;
        for (const std::string& called : found->second)
            if (called == to || (seen.insert(called).second && leadsTo(called, to, seen))) return true;
        return false;
    }

    const std::vector<OperatorText>& m_all;
    const std::string& m_file;
    std::map<std::string, std::set<std::string>> m_calls;
};

// -- graphs

/// The operator that a call's name means: the request's, else what it is bound to, else what files define.
const Op* meantBy(const Op& op, const std::map<std::string, const Op*, std::less<>>& requested) {
    if (op.style() != Op::Style::Function) return nullptr;
    const bool defined = definitionOf(op) != nullptr;
    if (!op.isOpaque() && !defined) return nullptr;
    if (const auto found = requested.find(op.name()); found != requested.end()) return found->second;
    return defined ? &op : findOp(op.name());
}

bool needsBinding(const Module& module, const std::map<std::string, const Op*, std::less<>>& requested) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall())
            if (const Op* meant = meantBy(node.op(), requested); meant != nullptr && meant != &node.op()) return true;
    return std::any_of(module.subgraphs.begin(), module.subgraphs.end(),
                       [&](const auto& each) { return needsBinding(*each.second, requested); });
}

/// Whether the definition's type is another one than the file's, strides aside.
bool contradictsFile(const ValueType& said, const ValueType& made) {
    if (said.tensor() && made.tensor())
        return said.tensor()->dtype != made.tensor()->dtype || said.tensor()->rank() != made.tensor()->rank() ||
               differ(said.tensor()->sizes, made.tensor()->sizes);
    if (!said.tuple() || !made.tuple()) return said.tensor() != nullptr || (said.tuple() && made.tensor());
    if (said.tuple()->size() != made.tuple()->size()) return true;
    for (size_t i = 0; i < said.tuple()->size(); ++i)
        if (contradictsFile((*said.tuple())[i], (*made.tuple())[i])) return true;
    return false;
}
std::string definedTypeText(const ValueType& type) {
    if (!type.tuple()) return type.isNone() ? "nothing" : type.text();
    std::string out;
    for (const ValueType& one : *type.tuple()) out += (out.empty() ? "(" : ", ") + definedTypeText(one);
    return out + ")";
}

Result<void> bindCalls(Module& module, const std::map<std::string, const Op*, std::less<>>& requested) {
    for (auto& [name, body] : module.subgraphs) CT_TRY_VOID(bindCalls(*body, requested));
    Graph& graph = module.graph();
    bool changed = false;
    for (Node& node : graph.nodes()) {
        if (!node.isCall()) continue;
        const Op* meant = meantBy(node.op(), requested);
        const auto fail = [&](Error error) {
            error.where = "node " + node.name();
            return error;
        };
        if (meant != nullptr && meant != &node.op()) {
            NamedArguments keywords(node.kwargs().begin(), node.kwargs().end());
            auto bound = bindArguments(*meant, node.args(), std::move(keywords));
            if (!bound) return fail(bound.error());
            auto made = inferCall(*meant, *bound);
            if (!made) return fail(made.error());
            if (contradictsFile(node.type(), *made))
                return fail({ErrorCode::InvalidInput,
                             meant->name() + ": its definition gives " + definedTypeText(*made) + ", the file says " +
                                 definedTypeText(node.type()),
                             {},
                             {"correct the definition"}});
            graph.setOp(node, *meant, std::move(*bound), std::move(*made));
            changed = true;
        } else if (changed && !node.op().isOpaque()) {
            if (auto made = inferCall(node.op(), node.args());
                made && isKnown(*made) && !made->isNone() && !sameType(*made, node.type()))
                graph.setType(node, std::move(*made));
        } else if (changed && !isKnown(node.type())) {
            if (auto made = inferTorchCall(node.op(), node.args(), node.kwargs()); made && isKnown(*made))
                graph.setType(node, std::move(*made));
        }
    }
    return {};
}

using OpsByName = std::map<std::string, const Op*, std::less<>>;
Result<OpsByName> requestedOperators(const CompileRequest& request) {
    OpsByName out;
    for (const UserRules& rules : request.userRules) {
        CT_TRY(const auto ops, operatorsOf(rules.text, rules.name));
        for (const Op* op : ops)
            if (!out.emplace(op->name(), op).second)
                return Error{ErrorCode::InvalidInput,
                             op->name() + " is defined by two files of rules; the second is " + rules.name,
                             rules.path,
                             {"leave one of the two out"}};
    }
    return out;
}

void calledBy(const Module& module, OpsByName& out) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && definitionOf(node.op())) out.emplace(node.op().name(), &node.op());
    for (const auto& [name, body] : module.subgraphs) calledBy(*body, out);
}

}  // namespace

Result<std::vector<const Op*>> operatorsOf(std::string_view rules, const std::string& file,
                                           std::vector<std::string>* known) {
    if (rules.find("operator ") == std::string_view::npos) return std::vector<const Op*>();
    auto read = readOperators(rules);
    if (!read) {
        Error error = read.error();
        error.where = file + ", " + error.where;
        return error;
    }
    std::vector<OperatorText> all;
    for (OperatorText& one : *read) {
        if (!isInTables(one.schema.name)) {
            all.push_back(std::move(one));
            continue;
        }
        if (known == nullptr)
            return Error{
                ErrorCode::InvalidInput,
                one.schema.name + " is an operator that Cutaway knows, and no definition changes what it computes",
                file + ", " + lineWord(one.line),
                {"leave the definition out; a rule can replace its calls"}};
        known->push_back(one.schema.name);
    }
    CT_TRY_VOID(DefinitionChecks(all, file).run());
    std::vector<const Op*> ops;
    for (OperatorText& one : all) {
        auto defined = std::make_shared<Defined>();
        defined->file = file;
        for (const OperatorCase& each : one.cases) defined->conditions.push_back(*readConditions(each.when));
        OperatorDefinition definition;
        definition.schema = one.schema;
        definition.text = one.text();
        defined->text = std::move(one);
        definition.expand = [defined](Decomposition& d) { return expandDefined(*defined, d); };
        ops.push_back(&defineOperator(std::move(definition)));
    }
    return ops;
}

Result<void> defineOperators(const CompileRequest& request) {
    CT_TRY(const OpsByName requested, requestedOperators(request));
    std::vector<const Op*> ops;
    for (const auto& [name, op] : requested) ops.push_back(op);
    setDefinedOperators(DefinedBy::Request, ops);
    return {};
}

Result<Snapshot> withDefinedOperators(const Snapshot& input, const CompileRequest& request) {
    CT_TRY_VOID(defineOperators(request));
    CT_TRY(const OpsByName requested, requestedOperators(request));
    if (!needsBinding(*input, requested)) return input;
    auto module = std::make_shared<Module>(*input);
    CT_TRY_VOID(bindCalls(*module, requested));
    return Snapshot(std::move(module));
}

/// The definitions of these operators and of those that they lead to, without what is defined in `own`.
static std::string definitionsOf(std::vector<const Op*> open, const OpsByName& own) {
    std::string text;
    std::set<std::string> added;
    while (!open.empty()) {
        const Op* op = open.back();
        open.pop_back();
        if (own.contains(op->name()) || !added.insert(op->name()).second) continue;
        const std::string& definition = definitionOf(*op)->text;
        text += (text.empty() ? "" : "\n") + definition;
        // A definition's own words say what its statements call.
        for (const Op* other : definedOperators(DefinedBy::Files))
            if (definition.find(other->packet()) != std::string::npos) open.push_back(other);
    }
    return text;
}

std::string definitionsText(const Op& op) { return definitionOf(op) ? definitionsOf({&op}, {}) : std::string(); }

void addDefinitionsOf(const Module& module, CompileRequest& request) {
    OpsByName called;
    calledBy(module, called);
    if (called.empty()) return;
    const auto own = requestedOperators(request);
    if (!own) return;  // the run says what is wrong
    std::vector<const Op*> open;
    for (const auto& [name, op] : called) open.push_back(op);
    const std::string text = definitionsOf(std::move(open), *own);
    if (!text.empty()) request.userRules.push_back({"operators", text});
}

}  // namespace cutaway
