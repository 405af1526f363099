#include "engine/session/operator_call.h"

#include <algorithm>
#include <cctype>

#include "cutaway/operator_files.h"
#include "engine/ir/module.h"
#include "engine/ops/op_registry.h"
#include "engine/support/near_names.h"
#include "engine/text/literal.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

std::string typeText(const Tensor& tensor) {
    std::string text(info(tensor.dtype()).abbreviation);
    text += '[';
    for (size_t d = 0; d < tensor.sizes().size(); ++d) text += (d > 0 ? ", " : "") + std::to_string(tensor.sizes()[d]);
    return text + ']';
}

/// Arguments as they are written, which become names of inputs where they are types.
class CallText {
  public:
    explicit CallText(const Op& op) : m_op(&op) {}

    Result<void> add(const std::string& given) {
        size_t name = 0;
        while (name < given.size() && isWord(given[name])) ++name;
        const bool named = name > 0 && name < given.size() && given[name] == '=' && given.substr(name, 2) != "==";
        const auto& params = m_op->schema()->params;
        if (!named && m_next >= params.size())
            return invalidInput("it has " + std::to_string(params.size()) + " parameters, and more values were given",
                                m_op->name());
        const std::string param = named ? given.substr(0, name) : params[m_next++].name;
        return add(param, named ? given.substr(name + 1) : given);
    }
    Result<void> addTensors(const NamedTensors& tensors) {
        // Those of a list stand together, in their order.
        std::vector<std::pair<std::string, std::string>> values;
        for (const auto& [name, tensor] : tensors) {
            const std::string param = name.substr(0, name.rfind('_'));
            m_parameters += (m_parameters.empty() ? "" : ", ") + name + ": \"" + typeText(tensor) + "\"";
            auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == param; });
            if (found == values.end()) found = values.insert(values.end(), {param, {}});
            found->second += (found->second.empty() ? "" : ", ") + name;
        }
        for (auto& [param, value] : values) {
            const Param& own = m_op->schema()->params[static_cast<size_t>(m_op->schema()->find(param))];
            CT_TRY_VOID(take(own.name, own.list ? "[" + value + "]" : value));
        }
        return {};
    }

    std::string graph() const {
        std::string call = "torch.ops." + m_op->name() + "(" + m_arguments + ")";
        std::string text = "def forward(" + m_parameters + "):\n    result = " + call + "\n";
        const size_t results = m_op->schema()->returns.size();
        if (results == 1) return text + "    return (result,)\n";
        std::string returned;
        for (size_t i = 0; i < results; ++i) {
            const std::string own = "result_" + std::to_string(i);
            text += "    " + own + " = result[" + std::to_string(i) + "]\n";
            returned += (i > 0 ? ", " : "") + own;
        }
        return text + "    return (" + returned + ")\n";
    }

  private:
    Result<void> take(const std::string& param, const std::string& value) {
        if (m_op->schema()->find(param) < 0) return invalidInput("it has no parameter '" + param + "'", m_op->name());
        if (std::find(m_given.begin(), m_given.end(), param) != m_given.end())
            return invalidInput("parameter '" + param + "' is given twice", m_op->name());
        m_given.push_back(param);
        m_arguments += (m_arguments.empty() ? "" : ", ") + param + "=" + value;
        return {};
    }
    /// A value with names in place of types. It must be one value: brackets close, and no comma stands outside of them.
    Result<void> add(const std::string& param, const std::string& value) {
        const auto wrong = [&](const std::string& what) {
            return Error{ErrorCode::InvalidInput,
                         what + ": '" + value + "'",
                         m_op->name() + ", parameter " + param,
                         {"a tensor is written as its type, f32[2, 3]; a list as [f32[2], f32[3]]; a literal as in "
                          "Python"}};
        };
        std::string out;
        int depth = 0, tensors = 0;
        for (size_t at = 0; at < value.size();) {
            const char c = value[at];
            if (c == '\n' || c == '\r' || c == '#' || c == ';') return wrong("this is not a value");
            if (c == '\'' || c == '"') {
                const size_t end = value.find(c, at + 1);
                if (end == std::string::npos) return wrong("the string does not end");
                out += value.substr(at, end + 1 - at);
                at = end + 1;
                continue;
            }
            if (!isWord(c)) {
                depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
                if (depth < 0 || (depth == 0 && (c == ',' || c == '='))) return wrong("this is not a value");
                out += c;
                ++at;
                continue;
            }
            size_t end = at;
            while (end < value.size() && isWord(value[end])) ++end;
            const std::string word = value.substr(at, end - at);
            at = end;
            auto dtype = dtypeFromAbbreviation(word);
            if (!dtype) dtype = dtypeFromTorchName(word);
            if (at >= value.size() || value[at] != '[' || !dtype) {
                out += word;
                continue;
            }
            std::string type(info(*dtype).abbreviation);
            const size_t sizes = type.size();
            for (int part = 0; part < 2 && at < value.size() && value[at] == '['; ++part) {
                const size_t close = value.find(']', at);
                if (close == std::string::npos) return wrong("the type does not end");
                type += value.substr(at, close + 1 - at);
                at = close + 1;
            }
            if (std::any_of(type.begin() + static_cast<long>(sizes), type.end(),
                            [](char t) { return std::isalpha(static_cast<unsigned char>(t)) != 0; }))
                return Error{ErrorCode::Unsupported, "Only support static shape for now", type, {"name numbers"}};
            const std::string name = param + "_" + std::to_string(++tensors);
            m_parameters += (m_parameters.empty() ? "" : ", ") + name + ": \"" + type + "\"";
            out += name;
        }
        if (depth != 0 || out.empty()) return wrong("this is not a value");
        return take(param, out);
    }

    const Op* m_op;
    std::string m_parameters, m_arguments;
    std::vector<std::string> m_given;
    size_t m_next = 0;
};

// -- what PyTorch notes

std::string kindText(const Argument& argument) {
    if (const Node* node = argument.node()) return node->tensor().text();
    if (const auto* items = argument.list()) {
        std::string all;
        for (const Argument& item : *items) all += (all.empty() ? "" : ", ") + kindText(item);
        return "[" + all + "]";
    }
    if (argument.isNone()) return "None";
    if (const auto* flag = argument.get<bool>()) return *flag ? "True" : "False";
    if (const auto integer = argument.asInt()) return std::to_string(*integer);
    if (const auto real = argument.asReal()) return fxtext::realText(*real);
    if (const auto* text = argument.get<std::string>()) return fxtext::quoted(*text);
    if (const auto* dtype = argument.get<DType>()) return "torch." + std::string(info(*dtype).torchName);
    if (const auto* device = argument.get<Device>()) return "device(type='" + device->text() + "')";
    if (const auto* layout = argument.get<Layout>()) return "torch." + std::string(name(*layout));
    if (const auto* format = argument.get<MemoryFormat>()) return "torch." + std::string(name(*format));
    if (const auto* complex = argument.get<std::complex<double>>()) return fxtext::complexText(*complex);
    return "...";
}

struct BoundArgument {
    const Param* param = nullptr;
    const Argument* value = nullptr;
};

/// AOT-2 and 3.
Result<void> checkKinds(const std::vector<BoundArgument>& given) {
    std::string all;
    for (const BoundArgument& one : given) all += (all.empty() ? "" : ", ") + kindText(*one.value);
    all = "[" + all + "]";
    const auto isTaken = [](const Argument& value) {
        return value.node() || value.list() || value.get<bool>() || value.get<int64_t>() || value.get<double>() ||
               value.get<std::string>() || value.get<DType>() || value.get<Device>() || value.get<Layout>();
    };
    for (const BoundArgument& one : given)
        if (!isTaken(*one.value)) return unsupported("Unsupported input types: " + all);
    for (const BoundArgument& one : given)
        if (const auto* items = one.value->list())
            for (const Argument& item : *items)
                if (!item.node())
                    return unsupported("_impl_with_aoti_compile encounters unsupported input types: " + all);
    return {};
}

TensorRecord tensorRecord(const TensorType& type, const Device& device) {
    TensorRecord record;
    record.device = device.type == DeviceType::Cuda ? "cuda" : "cpu";
    record.deviceIndex = device.type == DeviceType::Cuda ? std::max<int64_t>(device.index, 0) : -1;
    record.dtype = "torch." + std::string(info(type.dtype).torchName);
    for (const SymInt& size : type.sizes) record.sizes.push_back(size.value());
    for (const SymInt& stride : type.strides) record.strides.push_back(stride.value());
    record.keys = plainKeys(device.type);
    return record;
}

InputRecord inputRecord(const BoundArgument& given, const Device& device, int64_t order) {
    const Argument& value = *given.value;
    InputRecord input;
    input.order = order;
    const auto scalar = [&](auto number) {
        input.kind = ScalarRecord{device.type == DeviceType::Cuda ? "cuda" : "cpu",
                                  device.type == DeviceType::Cuda ? 0 : -1, number};
    };
    if (const Node* node = value.node()) {
        input.kind = tensorRecord(node->tensor(), device);
    } else if (const auto* items = value.list()) {
        std::vector<TensorRecord> list;
        for (const Argument& item : *items) list.push_back(tensorRecord(item.node()->tensor(), device));
        input.kind = std::move(list);
    } else if (const auto* flag = value.get<bool>()) {
        scalar(*flag);
    } else if (const auto* integer = value.get<int64_t>()) {
        // What the schema calls a float PyTorch hands on as one.
        if (given.param->kind == ParamKind::Float) scalar(static_cast<double>(*integer));
        else scalar(*integer);
    } else if (const auto* real = value.get<double>()) {
        scalar(*real);
    } else if (const auto* text = value.get<std::string>()) {
        input.kind = TextRecord{*text};
    } else if (const auto* dtype = value.get<DType>()) {
        input.kind = DTypeRecord{"torch." + std::string(info(*dtype).torchName)};
    } else if (const auto* named = value.get<Device>()) {
        DeviceRecord record{named->type == DeviceType::Cuda   ? "cuda"
                            : named->type == DeviceType::Meta ? "meta"
                                                              : "cpu",
                            {}};
        if (named->index >= 0) record.index = named->index;
        input.kind = record;
    } else if (const auto* layout = value.get<Layout>()) {
        input.kind = LayoutRecord{"torch." + std::string(name(*layout))};
    }
    return input;
}

}  // namespace

Result<OperatorName> operatorNamed(const std::string& text) {
    std::string full = text;
    if (const size_t colons = full.find("::"); colons != std::string::npos) full.replace(colons, 2, ".");
    const Op* op = findOp(full);
    if (!op) op = findOp(full + ".default");
    const size_t dot = full.find('.');
    if (!op || !op->schema() || dot == std::string::npos) {
        std::vector<std::string_view> names;
        for (const Op* each : allOps()) names.push_back(each->name());
        const std::string near = suggestion(full, names);
        Error error{ErrorCode::NotFound, "there is no operator '" + text + "'", {}, {}};
        error.notes.push_back(near.empty() ? "an operator is named like aten::add.Tensor" : near);
        return error;
    }
    OperatorName name;
    name.known = op;
    name.space = op->name().substr(0, op->name().find('.'));
    name.op = op->name().substr(name.space.size() + 1);
    constexpr std::string_view kDefault = ".default";
    if (name.op.ends_with(kDefault)) name.op.resize(name.op.size() - kDefault.size());
    const auto& returns = op->schema()->returns;
    if (returns.empty()) return unsupported("Not implemented for operations that return no value.", name.text());
    for (const Return& one : returns)
        if (one.list || one.kind != ParamKind::Tensor)
            return unsupported("Not implemented for operations that return a non-Tensor value.", name.text());
    return name;
}

Result<NamedTensors> operatorInputs(const Op& op, const std::string& path) {
    CT_TRY(SafeTensors file, readSafeTensors(path));
    NamedTensors tensors;
    std::vector<std::pair<std::pair<int, int>, std::pair<std::string, Tensor>>> ordered;
    for (auto& [name, tensor] : file.tensors) {
        const size_t dot = name.rfind('.');
        const std::string param = name.substr(0, dot);
        const int position = op.schema()->find(param);
        const std::string number = dot == std::string::npos ? "0" : name.substr(dot + 1);
        const bool isNumber = !number.empty() && number.size() < 5 &&
                              std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (position < 0 || !isNumber) {
            std::string names;
            for (const Param& each : op.schema()->params)
                if (each.kind == ParamKind::Tensor)
                    names += (names.empty() ? "" : ", ") + each.name + (each.list ? ".0" : "");
            return Error{ErrorCode::InvalidInput,
                         "the operator has no tensor '" + name + "'",
                         path,
                         {"its tensors are: " + names}};
        }
        const int place = std::stoi(number);
        ordered.push_back({{position, place}, {param + "_" + std::to_string(place + 1), std::move(tensor)}});
    }
    std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [place, tensor] : ordered) tensors.push_back(std::move(tensor));
    return tensors;
}

Result<OperatorCall> operatorCall(const OperatorOptions& options) {
    OperatorCall call;
    loadDefinedOperators();
    CT_TRY(call.name, operatorNamed(options.op));
    const Op& op = *call.name.known;
    CallText text(op);
    if (!options.inputsFile.empty()) {
        CT_TRY(call.inputs, operatorInputs(op, options.inputsFile));
        CT_TRY_VOID(text.addTensors(call.inputs));
    }
    for (const std::string& argument : options.arguments) CT_TRY_VOID(text.add(argument));
    call.graph = text.graph();
    CT_TRY(const auto module, parseText(call.graph));
    const Node* found = nullptr;
    for (const Node* node = module->graph().first(); node; node = node->next())
        if (node->isCall(op.name())) found = node;
    if (!found || found->args().size() != op.schema()->params.size())
        return invalidInput("the arguments are not the operator's", call.name.text());
    std::vector<BoundArgument> given;
    std::vector<int64_t> orders;
    for (size_t i = 0; i < found->args().size(); ++i) {
        const Param& param = op.schema()->params[i];
        if (param.hasDefault && equal(found->arg(i), param.defaultValue)) continue;
        given.push_back({&param, &found->arg(i)});
    }
    CT_TRY_VOID(checkKinds(given));
    if (found->type().isOpaque())
        return invalidInput(module->origin.remarks.empty() ? "the operator's type rule refuses these arguments"
                                                           : module->origin.remarks.front(),
                            call.name.text());
    const Device device{options.device == Target::Cuda ? DeviceType::Cuda : DeviceType::Cpu, -1};
    for (size_t i = 0; i < given.size(); ++i)
        call.record.push_back(inputRecord(given[i], device, static_cast<int64_t>(i)));
    return call;
}

}  // namespace cutaway
