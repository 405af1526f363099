#include "engine/text/function_builder.h"

#include "engine/ir/names.h"
#include "engine/text/annotation.h"

namespace cutaway::fxtext {
namespace {

struct OperatorSymbol {
    uint32_t symbol;
    std::string_view name;
};
constexpr OperatorSymbol kBinary[] = {
    {sym("+"), "operator.add"},     {sym("-"), "operator.sub"},       {sym("*"), "operator.mul"},
    {sym("/"), "operator.truediv"}, {sym("//"), "operator.floordiv"}, {sym("%"), "operator.mod"},
    {sym("**"), "operator.pow"},    {sym("<<"), "operator.lshift"},   {sym(">>"), "operator.rshift"},
    {sym("&"), "operator.and_"},    {sym("|"), "operator.or_"},       {sym("^"), "operator.xor"},
    {sym("@"), "operator.matmul"},  {sym("=="), "operator.eq"},       {sym("!="), "operator.ne"},
    {sym("<"), "operator.lt"},      {sym("<="), "operator.le"},       {sym(">"), "operator.gt"},
    {sym(">="), "operator.ge"}};
constexpr OperatorSymbol kUnary[] = {
    {sym("-"), "operator.neg"}, {sym("~"), "operator.invert"}, {sym("+"), "operator.pos"}};
constexpr OperatorSymbol kAugmented[] = {
    {sym("+="), "operator.iadd"},     {sym("-="), "operator.isub"},       {sym("*="), "operator.imul"},
    {sym("/="), "operator.itruediv"}, {sym("//="), "operator.ifloordiv"}, {sym("%="), "operator.imod"},
    {sym("**="), "operator.ipow"},    {sym("<<="), "operator.ilshift"},   {sym(">>="), "operator.irshift"},
    {sym("&="), "operator.iand"},     {sym("|="), "operator.ior"},        {sym("^="), "operator.ixor"},
    {sym("@="), "operator.imatmul"}};

template <size_t N>
std::string_view lookUp(const OperatorSymbol (&table)[N], uint32_t symbol) {
    for (const OperatorSymbol& row : table)
        if (row.symbol == symbol) return row.name;
    return {};
}

}  // namespace

std::unique_ptr<Module> FunctionBuilder::build() {
    m_module->graph().reserveIds(m_state.nextId);
    findConvention();
    if (!m_flattened && m_boxedList.empty()) parameters();
    for (const Statement& each : m_function.statements) {
        if (m_state.error) return nullptr;
        ++m_scope.statement;
        if (!std::exchange(m_skipNext, false)) statement(each);
    }
    if (!m_state.error && !m_finished)
        m_state.fail(m_function.begin, "function '" + std::string(m_function.name) + "' has no return statement");
    if (m_state.error) return nullptr;
    refineTuples();
    m_state.nextId = m_module->graph().idLimit();
    buildSubgraphs();
    return m_state.error ? nullptr : std::move(m_module);
}

void FunctionBuilder::buildSubgraphs() {
    for (const auto& child : m_function.children) {
        if (m_module->subgraph(child->name))
            return m_state.fail(child->begin, "subgraph '" + std::string(child->name) + "' is defined twice");
        std::unique_ptr<Module> body = FunctionBuilder(m_state, *child).build();
        if (!body) return;
        body->name = std::string(child->name);
        m_module->subgraphs.emplace_back(body->name, std::move(body));
    }
}

// ---------------------------------------------------------------- inputs

/// The calling conventions of §4.5: plain parameters, a flattened tree, or a list that is emptied (boxed).
void FunctionBuilder::findConvention() {
    for (const Statement& each : m_function.statements) {
        if (each.kind == StatementKind::Declare) m_declared.emplace(each.target, &each);
        if (each.value == kNoSyntax) continue;
        const SyntaxNode& value = m_state.at(each.value);
        if (value.kind != SyntaxKind::Call || m_state.at(value.first).kind != SyntaxKind::Name) continue;
        const std::string_view callee = m_state.at(value.first).text;
        if (each.kind == StatementKind::Unpack && callee == "fx_pytree.tree_flatten_spec") m_flattened = true;
        if (each.kind == StatementKind::Assign && callee == "iter" && m_function.parameters.size() == 1) {
            m_boxedList = m_function.parameters[0].name;
            m_boxedIterator = each.target;
        }
    }
    for (const Parameter& parameter : m_function.parameters) m_joint |= parameter.name == "tangents";
}

void FunctionBuilder::parameters() {
    for (const Parameter& parameter : m_function.parameters) {
        if (m_state.error) return;
        if (parameter.fallback != kNoSyntax)
            m_state.remark(parameter.begin, "the default value of a parameter is left out");
        placeholder(parameter.name, parameter.stars, parameter.annotation, parameter.comment, parameter.begin);
    }
}

void FunctionBuilder::placeholder(std::string_view raw, int stars, SyntaxId annotation, std::string_view comment,
                                  uint32_t begin) {
    if (m_scope.names.contains(raw))
        return m_state.fail(begin, "the parameter '" + std::string(raw) + "' is defined twice");
    const std::string target = std::string(static_cast<size_t>(stars), '*') + std::string(raw);
    Annotation written = annotationOf(annotation, raw);
    if (m_state.error) return;
    // In our own form omitted strides are row-major by definition; PyTorch's text may just not show them (TXT-6).
    if (TensorType* type = written.type.tensor()) type->assumed = m_function.classForm && !written.hasStrides;
    if (TensorType* type = written.type.tensor(); type && type->assumed)
        if (const auto found = m_state.strides.find(target);
            found != m_state.strides.end() && found->second.size() == type->sizes.size()) {
            type->strides = found->second;
            m_state.remark(
                begin, "'" + target +
                           "' is taken to lie in memory as a view that reads it needs: its strides are not written");
        }
    if (written.type.isNone()) written.type = OpaqueType{};
    InputSpec spec = readInputRole(comment);
    // Parameters get gradients unless they say that they do not. Dynamo names its inputs after where they come from.
    const bool parameter = spec.kind == InputSpec::Kind::Parameter
                               ? comment.find("requires_grad=False") == std::string_view::npos
                               : raw.starts_with("L_") && raw.find("_parameters_") != std::string_view::npos;
    if (TensorType* tensor = written.type.tensor();
        tensor && parameter && (isFloating(tensor->dtype) || isComplex(tensor->dtype)))
        tensor->requiresGrad = true;
    Node& node = m_scope.graph().placeholder(target, std::move(written.type));
    const std::string name = nameFor(raw, begin);
    if (node.name() != name) m_scope.graph().rename(node, name);
    define(raw, node, begin);
    m_scope.names[raw].rawParameter = true;
    if (m_joint && m_flattened && spec.kind == InputSpec::Kind::UserInput && raw.starts_with("tangents_"))
        spec.kind = InputSpec::Kind::Tangent;
    m_module->inputs.push_back(std::move(spec));
}

void FunctionBuilder::flattenedInputs(const Statement& statement) {
    for (SyntaxId id = statement.names; id != kNoSyntax && !m_state.error; id = m_state.at(id).next) {
        const SyntaxNode& name = m_state.at(id);
        if (!isPlainName(name)) return m_state.fail(name.begin, "a name is expected");
        const auto declared = m_declared.find(name.text);
        const Statement* with = declared == m_declared.end() ? nullptr : declared->second;
        placeholder(name.text, 0, with ? with->annotation : kNoSyntax, with ? with->comment : std::string_view(),
                    name.begin);
    }
}

// ---------------------------------------------------------------- statements

void FunctionBuilder::statement(const Statement& statement) {
    if (m_finished && statement.kind != StatementKind::Comment)
        return m_state.fail(statement.begin, "nothing follows the return statement");
    switch (statement.kind) {
        case StatementKind::Comment: readComment(statement.comment, m_comment); return;
        case StatementKind::Declare:
            if (!m_flattened)
                m_state.fail(statement.begin, "'" + std::string(statement.target) + "' has a type but no value");
            return;
        case StatementKind::Unpack: {
            const SyntaxNode& value = m_state.at(statement.value);
            if (value.kind == SyntaxKind::Call && m_state.at(value.first).text == "fx_pytree.tree_flatten_spec")
                return flattenedInputs(statement);
            return m_state.fail(statement.begin,
                                "only fx_pytree.tree_flatten_spec gives several values at once; read items with x[0]");
        }
        case StatementKind::Assign: return assign(statement);
        case StatementKind::Augmented:
        case StatementKind::SetItem: return inplace(statement);
        case StatementKind::Free: return free(statement);
        case StatementKind::Return: return finish(statement);
        case StatementKind::Expression: {
            const SyntaxNode& value = m_state.at(statement.value);
            if (value.kind != SyntaxKind::Call)
                return m_state.fail(statement.begin, "a value on a line of its own must be a call");
            m_written = {};
            const SyntaxNode& callee = m_state.at(value.first);
            // args_list.clear() of the boxed form and the profiler's records compute nothing.
            if (callee.text.ends_with(".__exit__") || callee.text.ends_with(".__enter__")) return;
            if (!m_boxedList.empty() && callee.text == std::string(m_boxedList) + ".clear") return;
            return assignCall(statement);
        }
    }
}

void FunctionBuilder::assign(const Statement& statement) {
    // Before the value, which may use the size symbols that the type names.
    m_written = annotationOf(statement.annotation, statement.target);
    const SyntaxNode& value = m_state.at(statement.value);
    switch (value.kind) {
        case SyntaxKind::Name: return assignName(statement, value);
        case SyntaxKind::Call: return assignCall(statement);
        case SyntaxKind::Subscript: {
            Argument object = m_values.read(value.first);
            Argument index = m_values.read(m_state.at(value.first).next);
            return call(statement, m_state.op("operator.getitem"), {std::move(object), std::move(index)});
        }
        case SyntaxKind::Binary: {
            Argument left = m_values.read(value.first);
            Argument right = m_values.read(m_state.at(value.first).next);
            return call(statement, m_state.op(lookUp(kBinary, value.symbol)), {std::move(left), std::move(right)});
        }
        case SyntaxKind::Unary: {
            const std::string_view name = lookUp(kUnary, value.symbol);
            return call(statement, m_state.op(name), {m_values.read(value.first)});
        }
        case SyntaxKind::Attribute:
            if (auto path = m_values.attributePath(statement.value)) return assignAttribute(statement, *path);
            return call(statement, m_state.op("builtins.getattr"),
                        {m_values.read(value.first), Argument(std::string(value.text))});
        default: m_state.fail(value.begin, "a literal is not an operation; write it where it is used");
    }
}

/// name = self.path: a subgraph gets one more name, anything else is a GetAttr node.
void FunctionBuilder::assignAttribute(const Statement& statement, const std::string& path) {
    const Argument found = m_values.attribute(path, m_state.at(statement.value));
    if (m_state.error) return;
    if (const auto* subgraph = found.get<SubgraphRef>()) {
        m_scope.names[statement.target] = {.subgraph = m_scope.findSubgraph(subgraph->name),
                                           .lastUse = m_scope.statement};
        return;
    }
    Node& node = *found.node();
    Annotation written = std::exchange(m_written, {});
    if (TensorType* type = written.type.tensor()) type->assumed = m_function.classForm && !written.hasStrides;
    if (!written.type.isNone()) m_scope.graph().setType(node, std::move(written.type));
    const std::string name = nameFor(statement.target, statement.begin);
    if (node.name() != name) m_scope.graph().rename(node, name);
    define(statement.target, node, statement.begin);
}

void FunctionBuilder::assignName(const Statement& statement, const SyntaxNode& value) {
    if (value.text.starts_with("self.")) return assignAttribute(statement, std::string(value.text.substr(5)));
    const size_t dot = value.text.find('.');
    if (dot != std::string_view::npos) {
        // a.shape, or a.b.c one by one
        Binding* object = m_values.use(value.text.substr(0, dot), value);
        if (object == nullptr || object->node == nullptr || value.text.find('.', dot + 1) != std::string_view::npos)
            return m_state.fail(value.begin,
                                "'" + std::string(value.text) + "' is not an attribute of a value or of self");
        return call(statement, m_state.op("builtins.getattr"),
                    {Argument(object->node), Argument(std::string(value.text.substr(dot + 1)))});
    }
    Binding* binding = m_values.use(value.text, value);
    if (binding == nullptr) {
        if (const auto subgraph = m_scope.findSubgraph(value.text); !subgraph.empty()) {
            m_scope.names[statement.target] = {.subgraph = subgraph, .lastUse = m_scope.statement};
            return;
        }
        return m_state.fail(value.begin, "'" + std::string(value.text) + "' is not defined");
    }
    Binding copy = *binding;
    if (binding->rawParameter && !copy.node->hasUsers()) {
        m_scope.names.erase(value.text);
        const std::string name = nameFor(statement.target, statement.begin);
        if (copy.node->name() != name) m_scope.graph().rename(*copy.node, name);
    }
    copy.rawParameter = false;
    m_scope.names[statement.target] = copy;
}

void FunctionBuilder::assignCall(const Statement& statement) {
    const SyntaxNode& value = m_state.at(statement.value);
    const SyntaxNode& callee = m_state.at(value.first);
    std::vector<Argument> positional;
    NamedArguments keywords;
    if (!m_boxedList.empty() && callee.kind == SyntaxKind::Name) {
        if (callee.text == "iter" && statement.target == m_boxedIterator) return;
        if (callee.text == "next")
            return placeholder(statement.target, 0, statement.annotation, statement.comment, statement.begin);
    }
    if (callee.text == "torch._C._profiler._RecordFunctionFast") return;
    if (auto path = m_values.attributePath(value.first)) {
        // Only the attribute itself, not a call of it: getattr(self, "0")
        m_values.readArguments(statement.value, positional, keywords);
        return addCall(statement, findOrMakeOpaque(*path, Op::Style::Module), std::move(positional),
                       std::move(keywords));
    }
    if (auto path = m_values.attributePath(statement.value)) return assignAttribute(statement, *path);
    if (callee.kind == SyntaxKind::Call && m_state.at(callee.first).text == "getattr") {
        // getattr(torch.ops, "odd name")(...) and getattr([1], "method")(...): names and objects that need quoting.
        const SyntaxId object = m_state.at(callee.first).next;
        const SyntaxId name = object == kNoSyntax ? kNoSyntax : m_state.at(object).next;
        if (name == kNoSyntax || m_state.at(name).kind != SyntaxKind::String)
            return m_state.fail(callee.begin, "getattr takes an object and a quoted name");
        const std::string method = unquote(m_state.at(name).text);
        if (m_state.at(object).text == "torch.ops") {
            m_values.readArguments(statement.value, positional, keywords);
            return call(statement, findOrMakeOpaque(method), std::move(positional), std::move(keywords));
        }
        positional.push_back(m_values.read(object));
        if (positional[0].get<OpRef>()) return m_state.fail(callee.begin, "this cannot be called");
        m_values.readArguments(statement.value, positional, keywords);
        return addCall(statement, findOrMakeOpaque(method, Op::Style::Method), std::move(positional),
                       std::move(keywords));
    }
    if (callee.kind == SyntaxKind::Attribute) {
        positional.push_back(m_values.read(callee.first));
        if (positional[0].get<OpRef>()) return m_state.fail(callee.begin, "this cannot be called");
        m_values.readArguments(statement.value, positional, keywords);
        return addCall(statement, findOrMakeOpaque(callee.text, Op::Style::Method), std::move(positional),
                       std::move(keywords));
    }
    if (callee.kind != SyntaxKind::Name) return m_state.fail(callee.begin, "this cannot be called");
    const size_t dot = callee.text.find('.');
    if (dot != std::string_view::npos && callee.text.find('.', dot + 1) == std::string_view::npos) {
        if (Binding* object = m_values.use(callee.text.substr(0, dot), callee); object && object->node) {
            positional.emplace_back(object->node);
            m_values.readArguments(statement.value, positional, keywords);
            return addCall(statement, findOrMakeOpaque(callee.text.substr(dot + 1), Op::Style::Method),
                           std::move(positional), std::move(keywords));
        }
    }
    if (callee.text == "device" || callee.text == "slice")
        return m_state.fail(callee.begin, "a literal is not an operation; write it where it is used");
    m_values.readArguments(statement.value, positional, keywords);
    call(statement, m_state.op(callee.text == "getattr" ? "builtins.getattr" : callee.text), std::move(positional),
         std::move(keywords));
}

/// x += y and x[i] = y; the statement after it, `name = x`, names the result.
void FunctionBuilder::inplace(const Statement& statement) {
    Binding* object = m_values.use(statement.target, m_state.at(statement.value));
    if (object == nullptr || object->node == nullptr)
        return m_state.fail(statement.begin, "'" + std::string(statement.target) + "' is not defined");
    Statement named = statement;
    named.annotation = kNoSyntax;
    const Statement* following =
        &statement + 1 < m_function.statements.data() + m_function.statements.size() ? &statement + 1 : nullptr;
    named.target = {};
    if (following && following->kind == StatementKind::Assign &&
        m_state.at(following->value).kind == SyntaxKind::Name &&
        m_state.at(following->value).text == statement.target) {
        named.target = following->target;
        named.annotation = following->annotation;
        m_skipNext = true;
    }
    m_written = annotationOf(named.annotation, named.target);
    std::vector<Argument> args = {Argument(object->node)};
    if (statement.kind == StatementKind::SetItem) args.push_back(m_values.read(statement.index));
    args.push_back(m_values.read(statement.value));
    const std::string_view name =
        statement.kind == StatementKind::SetItem ? "operator.setitem" : lookUp(kAugmented, statement.symbol);
    call(named, m_state.op(name), std::move(args));
}

/// x = y = None is redundant; it is checked, since a mismatch means that the text was edited or cut (TXT-4).
void FunctionBuilder::free(const Statement& statement) {
    for (SyntaxId id = statement.names; id != kNoSyntax; id = m_state.at(id).next) {
        const SyntaxNode& name = m_state.at(id);
        auto found = m_scope.names.find(name.text);
        if (found == m_scope.names.end()) {
            m_state.remark(name.begin, "'" + std::string(name.text) + "' is freed but not defined");
            continue;
        }
        found->second.freed = true;
    }
}

void FunctionBuilder::finish(const Statement& statement) {
    m_finished = true;
    SyntaxId id = statement.value;
    if (id != kNoSyntax) {
        const SyntaxNode& value = m_state.at(id);
        if (value.kind == SyntaxKind::Call && m_state.at(value.first).text == "pytree.tree_unflatten")
            id = m_state.at(value.first).next;
        if (id == kNoSyntax) return m_state.fail(value.begin, "tree_unflatten has no values");
    }
    Argument returned = id == kNoSyntax ? Argument() : m_values.read(id);
    if (m_state.error) return;
    m_scope.graph().output(std::move(returned));
    InputNames names{m_module->inputs, {}};
    size_t position = 0;
    for (Node& node : m_scope.graph().nodes())
        if (node.isPlaceholder() && m_module->inputs[position++].kind == InputSpec::Kind::UserInput)
            names.userNames.push_back(node.name());
    const size_t count = m_scope.graph().outputs().size();
    m_module->outputs.resize(count);
    if (id == kNoSyntax || count == 0) return;
    const SyntaxNode& whole = m_state.at(id);
    const bool list = m_scope.graph().outputNode()->arg(0).list() != nullptr;
    if (!list) m_module->outputs[0] = readOutputRole(whole.comment.empty() ? statement.comment : whole.comment, names);
    else if (whole.kind == SyntaxKind::List || whole.kind == SyntaxKind::Tuple) {
        size_t item = 0;
        for (SyntaxId each = whole.first; each != kNoSyntax && item < count; each = m_state.at(each).next)
            m_module->outputs[item++] = readOutputRole(m_state.at(each).comment, names);
    }
}

// ---------------------------------------------------------------- nodes

std::string FunctionBuilder::nameFor(std::string_view wanted, uint32_t begin) {
    if (wanted.find('$') != std::string_view::npos)
        m_state.fail(begin, "'" + std::string(wanted) + "' is not a name; '$' is for rules");
    for (std::string_view literal : {"None", "True", "False", "NoneType", "Ellipsis", "inf", "nan", "..."})
        if (wanted == literal) m_state.fail(begin, "'" + std::string(wanted) + "' is a value, not a name");
    if (!isReservedName(wanted)) return std::string(wanted);
    m_state.remark(begin, "'" + std::string(wanted) + "' has a meaning in the text and is renamed");
    return std::string(wanted) + "_1";
}

void FunctionBuilder::setProvenance(Node& node, std::string_view name) {
    Provenance provenance;
    m_comment.applyTo(provenance);
    provenance.sourceName = std::string(name);
    node.graph().setProvenance(node, std::move(provenance));
}

void FunctionBuilder::define(std::string_view name, Node& node, uint32_t begin) {
    auto [place, fresh] = m_scope.names.try_emplace(name);
    if (!fresh && !place->second.rawParameter && place->second.subgraph.empty())
        return m_state.fail(begin, "'" + std::string(name) + "' is defined twice");
    place->second = {.node = &node, .lastUse = m_scope.statement};
    setProvenance(node, name);
}

/// The name of a dtype without elements here among the arguments; empty if there is none.
static std::string foreignDtypeIn(const std::vector<Argument>& positional, const NamedArguments& keywords) {
    const auto nameOf = [](const Argument& argument) {
        const auto* named = argument.get<OpRef>();
        return named && isForeignDtype(named->op->name()) ? named->op->name() : std::string();
    };
    for (const Argument& argument : positional)
        if (std::string name = nameOf(argument); !name.empty()) return name;
    for (const auto& [key, argument] : keywords)
        if (std::string name = nameOf(argument); !name.empty()) return name;
    return {};
}

void FunctionBuilder::call(const Statement& statement, const Op& op, std::vector<Argument> positional,
                           NamedArguments keywords) {
    if (m_state.error) return;
    if (op.schema() != nullptr) {
        if (const std::string dtype = foreignDtypeIn(positional, keywords); !dtype.empty()) {
            m_state.remark(statement.begin, "Cutaway does not compute in " + dtype + "; the call of " + op.name() +
                                                " is shown, not run");
            return addCall(statement, findOrMakeOpaque("unsupported." + op.name()), std::move(positional),
                           std::move(keywords));
        }
        auto bound = bindArguments(op, std::move(positional), std::move(keywords));
        if (!bound) return m_state.fail(statement.begin, bound.error());
        positional = std::move(*bound);
        keywords.clear();
    }
    addCall(statement, op, std::move(positional), std::move(keywords));
}

void FunctionBuilder::addCall(const Statement& statement, const Op& op, std::vector<Argument> args,
                              NamedArguments keywords) {
    if (m_state.error) return;
    ValueType type = callType(statement, op, args, keywords);
    if (m_state.error) return;
    const std::string name = statement.target.empty() ? std::string() : nameFor(statement.target, statement.begin);
    Node& node = m_scope.graph().call(op, std::move(args), std::move(type), nullptr, name, std::move(keywords));
    if (statement.target.empty()) setProvenance(node, {});
    else define(statement.target, node, statement.begin);
}

}  // namespace cutaway::fxtext
