#include "engine/formats/package_source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "engine/tensor/dtype.h"

namespace cutaway {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr int kMostDims = 64, kMostConstants = 1'000'000;

bool isWord(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// What stands between two texts on a line; empty if it does not.
std::string_view between(std::string_view line, std::string_view before, std::string_view after) {
    const size_t begin = line.find(before);
    if (begin == kNone) return {};
    const size_t end = line.find(after, begin + before.size());
    return end == kNone ? std::string_view() : line.substr(begin + before.size(), end - begin - before.size());
}
std::string_view trimmedCode(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t");
    return begin == kNone ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t;") + 1 - begin);
}
/// The word that begins at a place.
std::string_view wordAt(std::string_view line, size_t at) {
    size_t end = at;
    while (end < line.size() && isWord(line[end])) ++end;
    return line.substr(at, end - at);
}
std::string_view cachedDtype(std::string_view line) {
    constexpr std::string_view kBefore = "].dtype = cached_torch_dtype_";
    const size_t at = line.find(kBefore);
    return at == kNone ? std::string_view() : wordAt(line, at + kBefore.size());
}
/// A list's parts; commas inside brackets are the parts' own.
std::vector<std::string> partsOf(std::string_view list) {
    std::vector<std::string> parts;
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= list.size(); ++i) {
        const char c = i < list.size() ? list[i] : ',';
        depth += c == '(' || c == '{' || c == '[';
        depth -= c == ')' || c == '}' || c == ']';
        if (c != ',' || (depth > 0 && i < list.size())) continue;
        if (const auto part = trimmedCode(list.substr(begin, i - begin)); !part.empty()) parts.emplace_back(part);
        begin = i + 1;
    }
    return parts;
}
/// "2L" as 2; a size expression stays.
std::string sizeText(std::string_view size) {
    const bool number = size.size() > 1 && size.back() == 'L' &&
                        std::all_of(size.begin(), size.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
    return std::string(number ? size.substr(0, size.size() - 1) : size);
}
std::string dtypeText(std::string_view torch) {
    const auto dtype = dtypeFromTorchName(torch);
    return dtype ? std::string(info(*dtype).abbreviation) : std::string(torch.empty() ? "?" : torch);
}
std::string typeText(const std::string& dtype, const std::vector<std::string>& sizes) {
    std::string all;
    for (const std::string& size : sizes) all += (all.empty() ? "" : ", ") + sizeText(size);
    return dtype + "[" + all + "]";
}

class WrapperReader {
  public:
    WrapperReader(const std::function<bool(std::string_view)>& isOperator, PackagedModel& model)
        : m_isOperator(isOperator), m_model(model) {}

    void read(std::string_view text) {
        for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find('\n', at), text.size());
            readLine(trimmedCode(text.substr(at, end - at)));
            at = end + 1;
        }
        for (const PackagedCall& call : m_model.calls) m_loaded.erase(call.name);
        for (const std::string& name : m_loaded) {
            PackagedCall& call = m_model.calls.emplace_back();
            call.name = name;
            call.kernel = true;
            call.ops = fusedOperators(name, m_isOperator);
        }
        for (auto& [index, constant] : m_constants) m_model.constants.push_back(std::move(constant));
        for (PackagedValue& input : m_model.inputs)
            if (const auto found = m_types.find(input.name); found != m_types.end()) input.type = found->second;
            else if (const auto port = m_ports.find(input.name); port != m_ports.end())
                input.type = port->second.text();
        for (size_t i = 0; i < m_model.outputs.size(); ++i)
            if (const auto name = m_results.find(i); name != m_results.end())
                m_model.outputs[i].type = typeOf(name->second);
        for (PackagedCall& call : m_model.calls)
            for (auto* values : {&call.reads, &call.writes})
                for (PackagedValue& value : *values)
                    if (value.type.empty()) value.type = typeOf(value.name);
    }

  private:
    /// What a wrapper's checks tell of an input.
    struct Port {
        std::string dtype = "?";
        std::map<int, std::string> sizes;
        std::string text() const {
            std::vector<std::string> all;
            for (const auto& [dim, size] : sizes) {
                while (static_cast<int>(all.size()) < dim) all.emplace_back("?");
                all.push_back(size);
            }
            return typeText(dtype, all);
        }
    };

    void readLine(std::string_view line) {
        if (line.find("_info_[") != kNone) return readInfo(line);
        if (line.starts_with("void AOTInductorModel::run_impl(")) m_running = true;
        if (line.starts_with("} // AOTInductorModel::run_impl")) m_running = false;
        if (line.starts_with("// g++ ") || line.starts_with("// clang++ ") || line.starts_with("// nvcc "))
            m_model.commands.emplace_back(line.substr(3));
        if (line.starts_with("in_spec_ = ")) m_model.inSpec = between(line, "R\"(", ")\"");
        if (line.starts_with("out_spec_ = ")) m_model.outSpec = between(line, "R\"(", ")\"");
        if (line.find("loadKernel(") != kNone)
            if (const auto name = between(line, "\"triton_", "\""); !name.empty())
                m_loaded.insert("triton_" + std::string(name));
        readPort(line);
        if (m_running) readStatement(line);
    }

    void readInfo(std::string_view line) {
        const std::string_view name = between(line, "].name = \"", "\"");
        if (line.find("constants_info_[") != kNone) return readConstant(line, name);
        if (name.empty()) return;
        if (line.find("inputs_info_[") != kNone) m_model.inputs.push_back({std::string(name), "?"});
        else if (line.find("outputs_info_[") != kNone) m_model.outputs.push_back({std::string(name), "?"});
    }
    /// False: one is not a number.
    static bool readNumbers(std::string_view list, std::vector<int64_t>& numbers) {
        numbers.clear();
        for (const std::string& part : partsOf(list)) {
            int64_t number = 0;
            const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
            if (read.ec != std::errc()) return false;
            numbers.push_back(number);
        }
        return true;
    }
    void readConstant(std::string_view line, std::string_view name) {
        const std::string_view number = between(line, "constants_info_[", "]");
        int index = -1;
        const auto read = std::from_chars(number.data(), number.data() + number.size(), index);
        if (read.ec != std::errc() || index < 0 || index >= kMostConstants) return;
        PackagedConstant& constant = m_constants[index];
        if (!name.empty()) constant.name = name;
        if (const auto v = between(line, "torch_dtype_", ")"); !v.empty()) m_dtypes[index] = dtypeText(v);
        if (const auto v = cachedDtype(line); !v.empty()) m_dtypes[index] = dtypeText(v);
        if (line.find("].shape = {") != kNone)
            constant.type = typeText(m_dtypes[index], partsOf(between(line, "].shape = {", "}")));
        if (const auto v = between(line, "ConstantType::", ")"); !v.empty()) constant.kind = v;
        if (const auto v = between(line, "].original_fqn = \"", "\""); !v.empty()) constant.original = v;
        if (const size_t at = line.find("].data_size = "); at != kNone) {
            const std::string_view v = line.substr(at + 14);
            std::from_chars(v.data(), v.data() + v.size(), constant.bytes);
        }
        if (line.find("].from_folded = true") != kNone) constant.folded = true;
        if (line.find("].shape = {") != kNone) readNumbers(between(line, "].shape = {", "}"), constant.sizes);
        if (line.find("].stride = {") != kNone)
            constant.laidOut = readNumbers(between(line, "].stride = {", "}"), constant.strides) &&
                               constant.strides.size() == constant.sizes.size();
        if (const size_t at = line.find("].offset = "); at != kNone) {
            const std::string_view v = line.substr(at + 11);
            std::from_chars(v.data(), v.data() + v.size(), constant.offset);
        }
        if (!constant.name.empty() && !constant.type.empty()) m_types[constant.name] = constant.type;
    }

    /// "if (2 != x_size[0])", "int64_t s0 = x_size[0];", "int32_t x_expected_dtype = aoti_torch_dtype_float32();",
    /// "assert_size_stride(x, {s0, 16L}, {16L, 1L}, "input")".
    void readPort(std::string_view line) {
        if (const size_t at = line.find("_size["); at != kNone) {
            size_t begin = at;
            while (begin > 0 && isWord(line[begin - 1])) --begin;
            int dim = -1;
            const std::string_view number = between(line.substr(at), "[", "]");
            std::from_chars(number.data(), number.data() + number.size(), dim);
            if (dim < 0 || dim >= kMostDims) return;
            std::string size;
            if (const auto v = between(line, "if (", " != "); !v.empty()) size = v;
            else if (const auto symbol = between(line, "int64_t ", " = "); !symbol.empty()) size = symbol;
            if (!size.empty()) m_ports[std::string(line.substr(begin, at - begin))].sizes.emplace(dim, size);
        } else if (const size_t mark = line.find("_expected_dtype = aoti_torch_dtype_"); mark != kNone) {
            size_t begin = mark;
            while (begin > 0 && isWord(line[begin - 1])) --begin;
            m_ports[std::string(line.substr(begin, mark - begin))].dtype =
                dtypeText(wordAt(line, mark + std::string_view("_expected_dtype = aoti_torch_dtype_").size()));
        } else if (const size_t check = line.find("assert_size_stride("); check != kNone) {
            const std::vector<std::string> parts = partsOf(between(line.substr(check), "(", ");"));
            if (parts.size() < 2 || !parts[1].starts_with('{')) return;
            Port& port = m_ports[parts[0]];
            const std::vector<std::string> sizes = partsOf(std::string_view(parts[1]).substr(1, parts[1].size() - 2));
            for (size_t i = 0; i < std::min<size_t>(sizes.size(), kMostDims); ++i)
                port.sizes[static_cast<int>(i)] = sizes[i];
            if (port.dtype == "?" && parts.size() > 4 && parts[4].starts_with("cached_torch_dtype_"))
                port.dtype = dtypeText(std::string_view(parts[4]).substr(19));
        }
    }

    void readStatement(std::string_view line) {
        if (line.find("int_array_") != kNone && line.find("[] = {") != kNone) {
            m_arrays[std::string(wordAt(line, line.find("int_array_")))] = partsOf(between(line, "{", "}"));
            return;
        }
        if (line.starts_with("// Topologically Sorted Source Nodes: ")) {
            m_sources = partsOf(between(line, "Nodes: [", "]"));
            m_ops.clear();
            for (const std::string& op : partsOf(between(line, "Original ATen: [", "]")))
                m_ops.push_back(op.starts_with("aten.") ? op.substr(5) : op);
            return;
        }
        if (line.starts_with("output_handles[")) {
            const std::string_view number = between(line, "[", "]");
            size_t index = 0;
            if (std::from_chars(number.data(), number.data() + number.size(), index).ec == std::errc())
                m_results[index] = std::string(wordAt(line, line.find("= ") + 2));
            return;
        }
        if (const size_t at = line.find("aoti_torch_empty_strided("); at != kNone) return readMemory(line.substr(at));
        if (line.starts_with("auto ") && line.find(" = std::move(") != kNone) {
            m_same[std::string(wordAt(line, 5))] = std::string(wordAt(line, line.find("std::move(") + 10));
            return;
        }
        if (const bool view = line.starts_with("RAIIAtenTensorHandle ") || line.starts_with("auto ");
            view && line.find("reinterpret_tensor_wrapper(") != kNone) {
            const std::string name(wordAt(line, line.find(' ') + 1));
            m_types[name] = viewType(line.substr(line.find("reinterpret_tensor_wrapper(")));
            return;
        }
        readCall(line);
    }
    void readMemory(std::string_view call) {
        const std::vector<std::string> parts =
            partsOf(call.substr(call.find('(') + 1, call.rfind("))") - call.find('(') - 1));
        if (parts.size() < 4) return;
        std::string name = parts.back();
        if (!name.starts_with('&') || !name.ends_with("_handle")) return;
        const size_t mark = parts[3].find("dtype_");
        m_types[name.substr(1, name.size() - 8)] =
            typeText(dtypeText(mark == kNone ? "" : parts[3].substr(mark + 6)), m_arrays[parts[1]]);
    }
    std::string viewType(std::string_view call) {
        const std::vector<std::string> parts = partsOf(call.substr(call.find('(') + 1));
        if (parts.size() < 3) return "?";
        const std::string under = typeOf(parts[0]);
        return typeText(under.substr(0, under.find('[')), m_arrays[parts[2]]);
    }

    void readCall(std::string_view line) {
        PackagedCall call;
        size_t open = kNone;
        if (const size_t function = line.find("aoti_torch_");
            line.find("ERROR_CODE_CHECK(") < function && function != kNone) {
            call.name = wordAt(line, function);
            open = function + call.name.size();
            // Those that ask for properties compute nothing.
            if (!call.name.starts_with("aoti_torch_cpu_") && !call.name.starts_with("aoti_torch_cuda_") &&
                !call.name.starts_with("aoti_torch_mkldnn_") &&
                !call.name.starts_with("aoti_torch_proxy_executor_call"))
                return;
        } else {
            const size_t start = line.starts_with("call_triton_") ? 5 : 0;
            const std::string_view word = wordAt(line, start);
            if (!word.starts_with("cpp_") && !word.starts_with("triton_")) return;
            call.name = word;
            call.kernel = true;
            open = start + word.size();
        }
        if (open >= line.size() || line[open] != '(') return;
        call.ops = call.kernel && m_ops.empty() ? fusedOperators(call.name, m_isOperator) : m_ops;
        call.sources = std::move(m_sources);
        m_sources.clear();
        m_ops.clear();
        readArguments(line.substr(open + 1), call);
        m_model.calls.push_back(std::move(call));
    }
    /// "(const float*)(buf0.data_ptr())" is read, "(float*)(buf1.data_ptr())" is written; of PyTorch's functions the
    /// first argument of one that ends in _out, and what is handed over by its address.
    void readArguments(std::string_view text, PackagedCall& call) {
        const std::vector<std::string> parts = partsOf(text);
        for (size_t i = 0; i < parts.size(); ++i) {
            const std::string& part = parts[i];
            const size_t cast = part.find("*)(");
            if (call.kernel && cast != kNone) {
                const std::string name(wordAt(part, cast + 3));
                (part.starts_with("(const ") ? call.reads : call.writes).push_back({name, typeOf(name)});
            } else if (part.starts_with('&') && part.find("_handle") != kNone) {
                call.writes.push_back({part.substr(1, part.find("_handle") - 1), ""});
            } else if (const size_t view = part.find("reinterpret_tensor_wrapper("); view != kNone) {
                call.reads.push_back(
                    {std::string(wordAt(part, view + 27)), viewType(std::string_view(part).substr(view))});
            } else if (const std::string name(wordAt(part, 0));
                       m_types.contains(name) || m_same.contains(name) || isInput(name)) {
                const bool result = i == 0 && call.name.ends_with("_out");
                (result ? call.writes : call.reads).push_back({name, typeOf(name)});
            }
        }
    }
    bool isInput(const std::string& name) const {
        return std::any_of(m_model.inputs.begin(), m_model.inputs.end(),
                           [&](const PackagedValue& input) { return input.name == name; });
    }

    std::string typeOf(std::string name) const {
        for (size_t steps = 0; steps <= m_same.size(); ++steps) {
            if (const auto found = m_types.find(name); found != m_types.end()) return found->second;
            const auto same = m_same.find(name);
            if (same == m_same.end() || same->second == "inputs") break;
            name = same->second;
        }
        const auto port = m_ports.find(name);
        return port == m_ports.end() ? "?" : port->second.text();
    }

    const std::function<bool(std::string_view)>& m_isOperator;
    PackagedModel& m_model;
    bool m_running = false;
    std::map<int, PackagedConstant> m_constants;
    std::map<int, std::string> m_dtypes;
    std::map<std::string, Port> m_ports;
    std::map<std::string, std::vector<std::string>> m_arrays;
    std::map<std::string, std::string> m_types, m_same;  // by value; its memory's earlier name
    std::map<size_t, std::string> m_results;
    std::set<std::string> m_loaded;  // kernels for GPUs, of which only some are called in this text
    std::vector<std::string> m_sources, m_ops;
};

}  // namespace

void readWrapperSource(std::string_view text, const std::function<bool(std::string_view)>& isOperator,
                       PackagedModel& model) {
    WrapperReader(isOperator, model).read(text);
}

std::vector<std::string> fusedOperators(std::string_view kernel,
                                        const std::function<bool(std::string_view)>& isOperator) {
    const size_t mark = kernel.find("fused_");
    if (mark == kNone) return {};
    std::string_view names = kernel.substr(mark + 6);
    names = names.substr(0, names.rfind('_') == kNone ? 0 : names.rfind('_'));  // less the kernel's number
    std::vector<std::string> ops;
    for (size_t at = 0; at < names.size();) {
        size_t taken = 0;
        for (size_t end = at + 1; end <= names.size(); ++end)
            if ((end == names.size() || names[end] == '_') && isOperator(names.substr(at, end - at))) taken = end;
        if (taken == 0) taken = std::min(names.find('_', at + 1), names.size());
        ops.emplace_back(names.substr(at, taken - at));
        at = taken + 1;
    }
    return ops;
}

std::vector<std::pair<std::string, std::string>> kernelSources(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> all;
    for (size_t at = text.find("extern \"C\""); at != kNone; at = text.find("extern \"C\"", at + 1)) {
        const size_t open = text.find('(', at), body = text.find_first_of("{;", at);
        if (open == kNone || body == kNone || text[body] == ';' || open > body) continue;
        size_t begin = open;
        while (begin > at && isWord(text[begin - 1])) --begin;
        const size_t end = text.find("\n}", body);
        if (end == kNone || begin == open) continue;
        const std::string_view name = text.substr(begin, open - begin);
        if (name.starts_with("cpp_")) all.emplace_back(name, std::string(text.substr(at, end + 2 - at)) + "\n");
    }
    constexpr std::string_view kTriton = "async_compile.triton('";
    for (size_t at = text.find(kTriton); at != kNone; at = text.find(kTriton, at + 1)) {
        const std::string_view name = wordAt(text, at + kTriton.size());
        const size_t begin = text.find("'''", at), end = begin == kNone ? kNone : text.find("'''", begin + 3);
        if (end != kNone) all.emplace_back(name, text.substr(begin + 3, end - begin - 3));
    }
    return all;
}

}  // namespace cutaway
