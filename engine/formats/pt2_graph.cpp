#include "engine/formats/pt2_graph.h"

#include "engine/expr/expr_parse.h"
#include "engine/formats/pt2_arguments.h"
#include "engine/ir/infer.h"
#include "engine/ops/build.h"

namespace cutaway {
namespace {

/// "torch.ops.aten.add.Tensor" is aten.add.Tensor here, "_operator.add" operator.add; others keep their name.
std::string opName(std::string_view target) {
    for (const auto& [prefix, ours] :
         {std::pair<std::string_view, std::string_view>{"torch.ops.", ""}, {"_operator.", "operator."}})
        if (target.starts_with(prefix)) return std::string(ours) + std::string(target.substr(prefix.size()));
    return std::string(target);
}

InputSpec::Kind inputKind(std::string_view variant) {
    if (variant == "parameter") return InputSpec::Kind::Parameter;
    if (variant == "buffer") return InputSpec::Kind::Buffer;
    if (variant == "tensor_constant") return InputSpec::Kind::Constant;
    if (variant == "custom_obj") return InputSpec::Kind::CustomObject;
    if (variant == "token") return InputSpec::Kind::Token;
    if (variant == "constant_input") return InputSpec::Kind::ConstantInput;
    return InputSpec::Kind::UserInput;
}
std::optional<OutputSpec::Kind> outputKind(std::string_view variant) {
    if (variant == "user_output") return OutputSpec::Kind::UserOutput;
    if (variant == "loss_output") return OutputSpec::Kind::Loss;
    if (variant == "buffer_mutation") return OutputSpec::Kind::BufferMutation;
    if (variant == "parameter_mutation") return OutputSpec::Kind::ParameterMutation;
    if (variant == "user_input_mutation") return OutputSpec::Kind::InputMutation;
    if (variant == "gradient_to_parameter" || variant == "gradient_to_user_input") return OutputSpec::Kind::Gradient;
    if (variant == "token") return OutputSpec::Kind::Token;
    return std::nullopt;
}
/// What a spec refers to (a parameter, a buffer, an input): the first of these fields that is there.
std::string specTarget(const Json& spec) {
    for (const char* key :
         {"parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "user_input_name"})
        if (const auto field = spec.find(key))
            if (const auto text = field->text()) return std::string(*text);
    return {};
}

/// A name that text can hold as it is: what could not stand in a variable's name becomes '_'.
std::string identifierFrom(std::string_view name) {
    std::string out(name);
    for (char& c : out)
        if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')) c = '_';
    if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(out.begin(), '_');
    return out;
}

bool offsetReadsData(const ValueType& type) {
    if (const TupleType* items = type.tuple()) return std::any_of(items->begin(), items->end(), offsetReadsData);
    const TensorType* tensor = type.tensor();
    return tensor && !tensor->offset.isInt() && readsData(tensor->offset.expr());
}
void takeOffset(ValueType& type, const ValueType& inferred) {
    if (auto* items = std::get_if<TupleType>(&type.kind);
        items && inferred.tuple() && inferred.tuple()->size() == items->size())
        for (size_t i = 0; i < items->size(); ++i) takeOffset((*items)[i], (*inferred.tuple())[i]);
    if (type.tensor() && inferred.tensor()) type.tensor()->offset = inferred.tensor()->offset;
}

class GraphReader {
  public:
    GraphReader(const Json& graph, Module& module, Pt2Types& types, std::vector<std::string>& remarks,
                std::string where)
        : m_json(graph),
          m_module(module),
          m_types(types),
          m_remarks(remarks),
          m_where(std::move(where)),
          m_arguments(m_values, types,
                      [this](const Json& subgraph, const std::string& at) { return addSubgraph(subgraph, at); }) {}

    Result<void> read(const Json* signature) {
        CT_TRY_VOID(readTables());
        CT_TRY_VOID(readInputs(signature));
        CT_TRY(const Json nodes, m_json.arrayAt("nodes", m_where));
        for (size_t i = 0; const Json node : nodes.items()) CT_TRY_VOID(readNode(node, i++));
        return readOutputs(signature);
    }

  private:
    std::string at(std::string_view what, std::string_view name) const {
        return m_where + ": " + std::string(what) + " '" + std::string(name) + "'";
    }

    // -- the types of named values
    Result<void> readTables() {
        CT_TRY(const Json tensors, m_json.objectAt("tensor_values", m_where));
        for (const auto& [name, meta] : tensors.members()) m_tensors.emplace(name, Json(meta));
        for (auto [key, table] : {std::pair("sym_int_values", &m_symInts),
                                  {"sym_bool_values", &m_symBools},
                                  {"sym_float_values", &m_symFloats}})
            if (const auto values = m_json.find(key))
                for (const auto& [name, value] : values->members()) table->emplace(name, Json(value));
        return {};
    }
    Result<ValueType> tensorType(std::string_view name) {
        const auto found = m_tensors.find(name);
        if (found == m_tensors.end()) return invalidInput("tensor_values has no entry of this name", at("value", name));
        CT_TRY(TensorType type, m_types.tensor(found->second, at("value", name)));
        return ValueType(std::move(type));
    }
    Result<ValueType> symType(std::string_view name, DType dtype) {
        const auto& table = dtype == DType::I64 ? m_symInts : dtype == DType::Bool ? m_symBools : m_symFloats;
        const auto found = table.find(name);
        if (found == table.end())
            return invalidInput("the table of symbolic values has no entry of this name", at("value", name));
        CT_TRY(SymType type, m_types.symValue(found->second, dtype, at("value", name)));
        return ValueType(std::move(type));
    }

    /// What an Argument in an input or output position declares: a name with a type, a list of such, or no value.
    struct Declared {
        std::string name;  // empty: a literal or nothing
        ValueType type;
        std::vector<Declared> items;  // of a list
        bool list = false;
    };
    Result<Declared> declare(const Json& argument, const std::string& where) {
        const auto member = argument.onlyMember();
        if (!member) return invalidInput("malformed argument: expected a tagged union", where);
        const auto& [variant, value] = *member;
        Declared out;
        if (variant == "as_tensors" || variant == "as_optional_tensors" || variant == "as_nested_tensors") {
            out.list = true;
            TupleType types;
            for (const Json item : value.items()) {
                CT_TRY(Declared inner, variant == "as_tensors" ? declareTensor(item, where)
                                       : item.isArray()        ? declareList(item, where)
                                                               : declare(item, where));
                types.push_back(inner.type);
                out.items.push_back(std::move(inner));
            }
            out.type = std::move(types);
            return out;
        }
        if (variant == "as_tensor") return declareTensor(value, where);
        if (variant == "as_optional_tensor") return declare(value, where);
        if (variant == "as_custom_obj") {
            CT_TRY(const std::string_view name, value.textAt("name", where));
            out.name = std::string(name);
            const auto cls = value.find("class_fqn");
            out.type = OpaqueType{cls && cls->text() ? std::string(*cls->text()) : std::string()};
            return out;
        }
        static constexpr std::pair<std::string_view, DType> kSymbolic[] = {
            {"as_sym_int", DType::I64}, {"as_sym_bool", DType::Bool}, {"as_sym_float", DType::F64}};
        for (const auto& [key, dtype] : kSymbolic)
            if (variant == key) {
                if (const auto name = value.find("as_name"); name && name->text()) {
                    out.name = std::string(*name->text());
                    CT_TRY(out.type, symType(out.name, dtype));
                    return out;
                }
                CT_TRY(SymType type, m_types.symValue(value, dtype, where));
                out.type = std::move(type);
                return out;
            }
        if (variant == "as_int" && value.integer()) out.type = SymType{DType::I64, Expr::integer(*value.integer())};
        else if (variant == "as_bool" && value.flag()) out.type = SymType{DType::Bool, Expr::boolean(*value.flag())};
        else if (variant == "as_float" && value.real())
            out.type = SymType{DType::F64, Expr::real(*value.real(), DType::F64)};
        else if (variant != "as_none") out.type = OpaqueType{std::string(variant)};
        return out;
    }
    Result<Declared> declareTensor(const Json& value, const std::string& where) {
        CT_TRY(const std::string_view name, value.textAt("name", where));
        Declared out;
        out.name = std::string(name);
        CT_TRY(out.type, tensorType(name));
        return out;
    }
    Result<Declared> declareList(const Json& value, const std::string& where) {
        Declared out;
        out.list = true;
        TupleType types;
        for (const Json item : value.items()) {
            CT_TRY(Declared inner, declareTensor(item, where));
            types.push_back(inner.type);
            out.items.push_back(std::move(inner));
        }
        out.type = std::move(types);
        return out;
    }
    Result<void> define(const std::string& name, Node& node) {
        if (!m_values.emplace(name, &node).second) return invalidInput("the name is defined twice", at("value", name));
        return {};
    }

    // -- inputs and outputs
    Result<std::vector<Json>> specs(const Json* signature, const char* key, size_t count) const {
        std::vector<Json> all;
        if (signature == nullptr) return all;
        CT_TRY(const Json list, signature->arrayAt(key, m_where));
        for (const Json item : list.items()) all.push_back(item);
        if (all.size() != count)
            return invalidInput(
                std::to_string(all.size()) + " " + key + " for " + std::to_string(count) + " values of the graph",
                m_where);
        return all;
    }
    Result<void> readInputs(const Json* signature) {
        CT_TRY(const Json inputs, m_json.arrayAt("inputs", m_where));
        CT_TRY(const std::vector<Json> all, specs(signature, "input_specs", inputs.items().size()));
        for (size_t i = 0; const Json input : inputs.items()) {
            const std::string where = m_where + ": input " + std::to_string(i);
            CT_TRY(Declared declared, declare(input, where));
            InputSpec spec;
            if (i < all.size()) CT_TRY_VOID(readInputSpec(all[i], spec, declared, where));
            if (declared.name.empty()) declared.name = "arg" + std::to_string(i);
            // A buffer's type in the file may require gradients, left by what tracing wrote to it; no buffer does.
            if (spec.kind == InputSpec::Kind::Buffer && declared.type.tensor())
                declared.type.tensor()->requiresGrad = false;
            // None has no type to be checked; as in text, it is a value that nothing is known of.
            if (declared.type.isNone()) declared.type = OpaqueType{};
            Node& node = m_module.graph().placeholder(declared.name, std::move(declared.type));
            Provenance provenance;
            provenance.sourceName = declared.name;
            m_module.graph().setProvenance(node, std::move(provenance));
            CT_TRY_VOID(define(declared.name, node));
            m_module.inputs.push_back(std::move(spec));
            ++i;
        }
        return {};
    }
    Result<void> readInputSpec(const Json& json, InputSpec& spec, Declared& declared, const std::string& where) {
        const auto member = json.onlyMember();
        if (!member) return invalidInput("malformed input spec: expected a tagged union", where);
        spec.kind = inputKind(member->first);
        spec.target = specTarget(member->second);
        if (const auto persistent = member->second.find("persistent"))
            spec.persistent = persistent->flag().value_or(true);
        if (spec.kind == InputSpec::Kind::ConstantInput) {
            if (const auto value = member->second.find("value")) {
                CT_TRY(spec.constant, m_arguments.read(*value, where));
                CT_TRY_VOID(noUnknown(where));
            }
            if (const auto name = member->second.find("name"); name && name->text())
                declared.name = std::string(*name->text());
        }
        if (spec.kind == InputSpec::Kind::Token && declared.name.empty())
            if (const auto arg = member->second.find("arg"))
                if (const auto name = arg->find("name"); name && name->text())
                    declared.name = std::string(*name->text());
        return {};
    }
    /// Inputs and outputs are not calls that could be shown and left alone.
    Result<void> noUnknown(const std::string& where) {
        const std::vector<std::string> unknown = m_arguments.takeUnknown();
        if (unknown.empty()) return {};
        return unsupported("unknown kind of argument '" + unknown[0] + "'", where,
                           {"the file was written by a newer PyTorch; export it again with 2.11"});
    }
    Result<void> readOutputs(const Json* signature) {
        CT_TRY(const Json outputs, m_json.arrayAt("outputs", m_where));
        CT_TRY(const std::vector<Json> all, specs(signature, "output_specs", outputs.items().size()));
        ArgumentList values{{}, true};
        for (size_t i = 0; const Json output : outputs.items()) {
            const std::string where = m_where + ": output " + std::to_string(i);
            CT_TRY(Argument value, m_arguments.read(output, where));
            CT_TRY_VOID(noUnknown(where));
            values.items.push_back(std::move(value));
            OutputSpec spec;
            if (i < all.size()) {
                const auto member = all[i].onlyMember();
                const auto kind = member ? outputKind(member->first) : std::nullopt;
                if (!kind) return invalidInput("an output spec of an unknown kind", where);
                spec.kind = *kind;
                spec.target = specTarget(member->second);
            }
            m_module.outputs.push_back(std::move(spec));
            ++i;
        }
        const auto single = m_json.find("is_single_tensor_return");
        if (single && single->flag().value_or(false) && values.items.size() == 1)
            m_module.graph().output(values.items[0]);
        else m_module.graph().output(Argument(std::move(values)));
        return {};
    }

    // -- nodes
    Result<void> readNode(const Json& json, size_t position) {
        CT_TRY(const std::string_view target, json.textAt("target", m_where + ": node " + std::to_string(position)));
        const Op* op = &findOrMakeOpaque(opName(target));
        const auto nameField = json.find("name");
        std::string name = nameField && nameField->text() ? std::string(*nameField->text()) : std::string();
        const std::string where =
            name.empty() ? m_where + ": node " + std::to_string(position) + " (" + std::string(target) + ")"
                         : at("node", name);
        CT_TRY(const Json outputs, json.arrayAt("outputs", where));
        Declared result;
        CT_TRY_VOID(declareResult(json, outputs, result, where));

        std::vector<Argument> positional;
        NamedArguments keywords;
        CT_TRY(const Json inputs, json.arrayAt("inputs", where));
        CT_TRY_VOID(readArguments(*op, inputs, positional, keywords, where));
        if (const std::vector<std::string> unknown = m_arguments.takeUnknown(); !unknown.empty()) {
            // The rest of the graph is still good: this one call is shown under a name that nothing runs.
            m_remarks.push_back(where + ": unknown kind of argument '" + unknown[0] + "'; the call of " + op->name() +
                                " is shown, not run");
            op = &findOrMakeOpaque("unsupported." + op->name());
        }
        if (op->schema()) {
            auto bound = bindArguments(*op, std::move(positional), std::move(keywords));
            if (!bound) {
                Error error = std::move(bound).error();
                error.where = where;
                return error;
            }
            positional = std::move(*bound);
            keywords.clear();
        }
        // PyTorch gives the offset of a view at an index from data a symbol of its own, which nothing defines.
        if (offsetReadsData(result.type))
            if (const auto inferred = inferCall(*op, positional)) takeOffset(result.type, *inferred);
        if (!result.name.empty()) name = result.name;  // values are named by their outputs; PT2-16
        Node& node = m_module.graph().call(*op, std::move(positional), result.type, nullptr, name, std::move(keywords));
        Provenance provenance;
        if (const auto metadata = json.find("metadata")) provenance = m_types.provenance(*metadata);
        provenance.sourceName = name.empty() ? node.name() : name;
        m_module.graph().setProvenance(node, std::move(provenance));
        if (!result.name.empty()) CT_TRY_VOID(define(result.name, node));
        if (result.list) return addProjections(node, result, node.name());
        return {};
    }
    /// PT2-6, PT2-12: whether the node's value is the one output, or a tuple of all of them.
    Result<void> declareResult(const Json& node, const Json& outputs, Declared& result, const std::string& where) {
        std::vector<Declared> all;
        for (const Json output : outputs.items()) {
            CT_TRY(Declared one, declare(output, where));
            all.push_back(std::move(one));
        }
        const auto hopSingle = node.find("is_hop_single_tensor_return");
        const bool tupleOfOne = hopSingle && hopSingle->flag() == false;
        if (all.size() == 1 && !tupleOfOne) {
            result = std::move(all[0]);
        } else if (!all.empty()) {
            TupleType types;
            for (const Declared& one : all) types.push_back(one.type);
            result.list = true;
            result.type = std::move(types);
            result.items = std::move(all);
        }
        return {};
    }
    Result<void> addProjections(Node& tuple, const Declared& declared, const std::string& tupleName) {
        static const Op& kGetItem = requireOp("operator.getitem");
        for (size_t i = 0; i < declared.items.size(); ++i) {
            const Declared& item = declared.items[i];
            if (item.name.empty() && !item.list) continue;  // undefined, or a number that nobody can name
            if (!item.name.empty() && item.name == tupleName + "_unused_" + std::to_string(i)) continue;
            Node& node =
                m_module.graph().call(kGetItem, {Argument(&tuple), Argument(static_cast<int64_t>(i))},
                                      (*tuple.type().tuple())[i], nullptr, item.name.empty() ? "getitem" : item.name);
            Provenance provenance = tuple.provenance();
            provenance.sourceName = item.name;
            m_module.graph().setProvenance(node, std::move(provenance));
            if (!item.name.empty()) CT_TRY_VOID(define(item.name, node));
            if (item.list) CT_TRY_VOID(addProjections(node, item, node.name()));
        }
        return {};
    }
    Result<void> readArguments(const Op& op, const Json& inputs, std::vector<Argument>& positional,
                               NamedArguments& keywords, const std::string& where) {
        std::vector<std::pair<std::string, bool>> names;  // name, keyword
        std::vector<Argument> values;
        const Schema* schema = op.schema();
        bool allNamed = schema != nullptr;
        for (const Json input : inputs.items()) {
            const auto nameField = input.find("name");
            const std::string name = nameField && nameField->text() ? std::string(*nameField->text()) : std::string();
            CT_TRY(const Json argument, input.at("arg", where));
            CT_TRY(Argument value,
                   m_arguments.read(argument, name.empty() ? where : where + ": argument '" + name + "'"));
            const auto kindField = input.find("kind");
            const int64_t kind = kindField ? kindField->integer().value_or(0) : 0;
            allNamed = allNamed && schema->find(name) >= 0;
            const bool keyword = kind == 2 || (kind == 0 && !name.empty());
            if (keyword && !(allNamed && schema) && name != identifierFrom(name))
                return invalidInput("a keyword argument is named '" + name + "', which is not an identifier", where);
            names.emplace_back(name, keyword);
            values.push_back(std::move(value));
        }
        for (size_t i = 0; i < values.size(); ++i) {
            if (allNamed || names[i].second) keywords.emplace_back(std::move(names[i].first), std::move(values[i]));
            else positional.push_back(std::move(values[i]));
        }
        return {};
    }
    Result<std::string> addSubgraph(const Json& argument, const std::string& where) {
        CT_TRY(const std::string_view name, argument.textAt("name", where));
        CT_TRY(const Json graph, argument.objectAt("graph", where));
        const std::string plain = identifierFrom(name);
        std::string unique = plain;
        for (int n = 1; m_module.subgraph(unique); ++n) unique = plain + "_" + std::to_string(n);
        auto body = std::make_unique<Module>();
        body->name = unique;
        CT_TRY_VOID(readPt2Graph(graph, nullptr, *body, m_types, m_remarks, m_where + ": graph '" + unique + "'"));
        m_module.subgraphs.emplace_back(unique, std::move(body));
        return unique;
    }

    const Json& m_json;
    Module& m_module;
    Pt2Types& m_types;
    std::vector<std::string>& m_remarks;
    const std::string m_where;
    std::unordered_map<std::string_view, Json> m_tensors, m_symInts, m_symBools, m_symFloats;
    Pt2Values m_values;
    Pt2Arguments m_arguments;
};

}  // namespace

Result<void> readPt2Graph(const Json& graph, const Json* signature, Module& module, Pt2Types& types,
                          std::vector<std::string>& remarks, const std::string& where) {
    return GraphReader(graph, module, types, remarks, where).read(signature);
}

}  // namespace cutaway
