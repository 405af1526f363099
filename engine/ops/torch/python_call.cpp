#include "engine/ops/torch/python_call.h"

#include "engine/support/check.h"

namespace cutaway::torchcalls {

const TensorType* tensorOf(const Argument& argument) {
    return argument.node() ? argument.node()->type().tensor() : nullptr;
}

bool isPythonNumber(const Argument& argument) {
    return argument.isNumber() || (argument.node() && argument.node()->type().sym());
}

Argument knownValue(const Argument& argument) {
    if (const Node* node = argument.node()) {
        if (const SymType* type = node->type().sym(); type && type->expr && type->dtype == DType::I64)
            return Argument(SymInt(type->expr));
        const TupleType* items = node->type().tuple();
        if (items == nullptr || items->empty()) return argument;
        ArgumentList list{{}, true};
        for (const ValueType& item : *items) {
            if (!item.sym() || !item.sym()->expr) return argument;
            list.items.emplace_back(SymInt(item.sym()->expr));
        }
        return Argument(std::move(list));
    }
    if (const auto* list = argument.get<ArgumentList>()) {
        ArgumentList out{{}, list->tuple};
        for (const Argument& item : list->items) out.items.push_back(knownValue(item));
        return Argument(std::move(out));
    }
    if (const auto* slice = argument.get<std::shared_ptr<const ArgumentSlice>>()) {
        const ArgumentSlice& parts = **slice;
        return Argument(std::make_shared<const ArgumentSlice>(
            ArgumentSlice{knownValue(parts.start), knownValue(parts.stop), knownValue(parts.step)}));
    }
    return argument;
}

int parameterOf(const Schema& signature, std::string_view keyword) {
    if (const int at = signature.find(keyword); at >= 0) return at;
    if (keyword == "axis") return signature.find("dim");
    if (keyword == "keepdims") return signature.find("keepdim");
    return keyword == "input" || keyword == "x" || keyword == "tensor" ? signature.find("self") : -1;
}

bool bindPython(const Schema& signature, const std::vector<Argument>& args, const NamedArguments& keywords,
                std::vector<Argument>& bound, std::string& why) {
    const auto& params = signature.params;
    bound.assign(params.size(), Argument());
    std::vector<bool> given(params.size(), false);
    size_t position = 0;
    for (size_t i = 0; i < args.size(); ++i) {
        if (position >= params.size() || params[position].keywordOnly) {
            why = "takes " + std::to_string(position) + " positional arguments, " + std::to_string(args.size()) +
                  " are given";
            return false;
        }
        const bool rest = params[position].list && args[i].list() == nullptr && !args[i].isNone();
        if (rest) {
            bound[position] = Argument(std::vector<Argument>(args.begin() + static_cast<ptrdiff_t>(i), args.end()));
            i = args.size();
        } else {
            bound[position] = args[i];
        }
        given[position++] = true;
    }
    for (const auto& [key, value] : keywords) {
        const int at = parameterOf(signature, key);
        if (at < 0) {
            if (value.isNone()) continue;
            why = "has no parameter named '" + key + "'";
            return false;
        }
        if (given[static_cast<size_t>(at)]) {
            why = "'" + key + "' is given twice";
            return false;
        }
        bound[static_cast<size_t>(at)] = value;
        given[static_cast<size_t>(at)] = true;
    }
    for (size_t i = 0; i < params.size(); ++i) {
        if (given[i]) continue;
        if (!params[i].hasDefault && !params[i].optional) {
            why = "argument '" + params[i].name + "' is missing";
            return false;
        }
        bound[i] = params[i].defaultValue;
    }
    return true;
}

bool PythonCall::bind(const Schema& signature, const std::vector<Argument>& args, const NamedArguments& keywords,
                      std::string& why) {
    m_signature = &signature;
    return bindPython(signature, args, keywords, m_bound, why);
}

const Argument& PythonCall::operator[](std::string_view param) const {
    const int at = m_signature->find(param);
    CT_CHECK(at >= 0, "a function asks only for parameters of its own signature");
    return m_bound[static_cast<size_t>(at)];
}
std::string PythonCall::text(std::string_view param) const {
    const auto* value = (*this)[param].get<std::string>();
    return value ? *value : std::string();
}
TensorType PythonCall::tensor(std::string_view param) {
    if (const TensorType* type = tensorOf((*this)[param])) return *type;
    fail("'" + std::string(param) + "' is not a tensor, or its type is not known",
         {"annotate the value in the text: x: \"f32[2, 3]\" = ..."});
    return TensorType::contiguous(DType::F32, {});
}

Argument PythonCall::aten(std::string_view packet, std::vector<Argument> args, NamedArguments keywords) {
    if (failed()) return {};
    auto result = callPacket(*m_builder, packet, args, keywords, m_autocast);
    if (result) return std::move(*result);
    m_builder->fail(std::move(result).error());
    return {};
}
Argument PythonCall::atenInplace(std::string_view packet, std::vector<Argument> args) {
    return aten(std::string(packet) + (flag("inplace") ? "_" : ""), std::move(args));
}
Argument PythonCall::fail(std::string what, std::vector<std::string> notes) {
    Error error = unsupported(m_name + ": " + std::move(what), {}, std::move(notes));
    m_builder->fail(std::move(error));
    return {};
}

namespace {
/// Flattens nested lists of numbers; false if they are ragged or hold something else.
bool flatten(const Argument& data, Dims& sizes, size_t depth, std::vector<double>& values,
             std::optional<DType>& dtype) {
    const auto* items = data.list();
    if (items == nullptr) {
        const auto number = data.asReal();
        if (!number || depth != sizes.size()) return false;
        const DType own = data.get<bool>() ? DType::Bool : data.get<int64_t>() ? DType::I64 : DType::F32;
        dtype = dtype ? promote(*dtype, own) : own;
        values.push_back(*number);
        return true;
    }
    const auto count = static_cast<int64_t>(items->size());
    if (depth == sizes.size()) {
        if (!values.empty()) return false;
        sizes.push_back(count);
    }
    if (sizes[depth] != count) return false;
    return std::all_of(items->begin(), items->end(),
                       [&](const Argument& item) { return flatten(item, sizes, depth + 1, values, dtype); });
}
}  // namespace

Argument PythonCall::constant(const Argument& data, std::optional<DType> wanted) {
    if (failed()) return {};
    if (isPythonNumber(data)) {
        NamedArguments keywords;
        const DType own = data.get<bool>() ? DType::Bool : data.get<double>() ? DType::F32 : DType::I64;
        keywords.emplace_back("dtype", Argument(wanted.value_or(own)));
        return aten("scalar_tensor", {data}, keywords);
    }
    Dims sizes;
    std::vector<double> values;
    std::optional<DType> found;
    if (!flatten(data, sizes, 0, values, found))
        return fail("the data of a tensor is nested lists of numbers, equally long");
    const DType dtype = wanted.value_or(found.value_or(DType::F32));
    Graph& graph = m_builder->graph();
    if (m_module == nullptr) {
        Node& constant =
            graph.placeholder("constant", TensorType::contiguous(dtype, toSymDims(sizes)), m_builder->before());
        return Argument(&constant);
    }
    Tensor tensor = Tensor::empty(dtype, sizes);
    storeElements(dtype, tensor.data(), 1, static_cast<int64_t>(values.size()), values.data());
    std::string name;
    for (int number = 0; name.empty() || m_module->tensors.contains(name); ++number)
        name = "_tensor_constant" + std::to_string(number);
    m_module->tensors.emplace(name, std::move(tensor));
    Node& node = graph.getAttr(name, TensorType::contiguous(dtype, toSymDims(sizes)), m_builder->before());
    node.graph().setProvenance(node, m_builder->sharedProvenance());
    return aten("lift_fresh_copy", {Argument(&node)});
}

}  // namespace cutaway::torchcalls
