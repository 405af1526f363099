#include "engine/cache/operator_records.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "engine/formats/json.h"
#include "engine/text/literal.h"

namespace cutaway {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
    using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;  // clang 14 does not find it by itself

/// Dense, autograd's and autocast's keys of a plain tensor: c10/core/DispatchKey.h of 2.11 and of 2.15, where two keys
/// less stand before them.
constexpr std::array<uint64_t, 2> kCpuKeys = {0x12800010001, 0x9400010001};
constexpr std::array<uint64_t, 2> kCudaKeys = {0x1002800010002, 0x801400010002};

bool isPlain(const TensorRecord& tensor) {
    const auto& known = tensor.device == "cuda" ? kCudaKeys : kCpuKeys;
    return std::find(known.begin(), known.end(), tensor.keys) != known.end();
}

bool same(const TensorRecord& a, const TensorRecord& b) {
    return a.device == b.device && a.deviceIndex == b.deviceIndex && a.dtype == b.dtype && a.sizes == b.sizes &&
           a.strides == b.strides && a.requiresGrad == b.requiresGrad &&
           (a.keys == b.keys || (isPlain(a) && isPlain(b)));
}
bool same(const ScalarRecord& a, const ScalarRecord& b) {
    const double *x = std::get_if<double>(&a.value), *y = std::get_if<double>(&b.value);
    if (x && y) return (std::isnan(*x) && std::isnan(*y)) || std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y);
    return a.value == b.value;
}

std::string dimsText(const std::vector<int64_t>& dims) {
    std::string text = "[";
    for (const int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
    return text + "]";
}
std::string textOf(const TensorRecord& tensor) {
    const auto dtype = dtypeFromTorchName(tensor.dtype);
    int64_t expected = 1;
    bool rowMajor = tensor.sizes.size() == tensor.strides.size();
    for (size_t d = tensor.sizes.size(); rowMajor && d-- > 0; expected *= std::max<int64_t>(tensor.sizes[d], 1))
        rowMajor = tensor.strides[d] == expected;
    return (dtype ? std::string(info(*dtype).abbreviation) : tensor.dtype) + dimsText(tensor.sizes) +
           (rowMajor ? "" : dimsText(tensor.strides)) + (tensor.device == "cpu" ? "" : tensor.device);
}

// -- reading

/// PyTorch's JSON has numbers that JSON has not, as Python writes them; our reader takes them as strings.
std::string withQuotedNumbers(std::string_view text) {
    std::string out;
    bool inString = false;
    for (size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (inString && c == '\\' && at + 1 < text.size()) out += c, out += text[++at];
        else if (c == '"') inString = !inString, out += c;
        else if (inString) out += c;
        else {
            std::string_view word;
            for (const std::string_view odd : {"-Infinity", "Infinity", "NaN"})
                if (word.empty() && text.substr(at).starts_with(odd)) word = odd;
            if (word.empty()) out += c;
            else out += '"' + std::string(word) + '"', at += word.size() - 1;
        }
    }
    return out;
}

/// The texts of the objects of a list that are whole; `ended` says whether the list is.
std::vector<std::string_view> objectsOf(std::string_view text, bool& ended) {
    std::vector<std::string_view> objects;
    ended = false;
    size_t at = text.find_first_not_of(" \t\r\n");
    if (at == std::string_view::npos || text[at] != '[') return objects;
    size_t depth = 0, start = 0;
    bool inString = false;
    for (; at < text.size() && !ended; ++at) {
        const char c = text[at];
        if (inString) {
            if (c == '\\') ++at;
            else inString = c != '"';
        } else if (c == '"') {
            inString = true;
        } else if (c == '{' || c == '[') {
            if (depth++ == 1) start = at;
        } else if (c == '}' || c == ']') {
            if (--depth == 1) objects.push_back(text.substr(start, at + 1 - start));
            ended = depth == 0;
        }
    }
    return objects;
}

Result<std::vector<int64_t>> integersAt(const Json& json, std::string_view key, const std::string& where) {
    CT_TRY(const Json list, json.arrayAt(key, where));
    std::vector<int64_t> integers;
    for (const auto item : list.items()) {
        const auto integer = Json(item).integer();
        if (!integer) return invalidInput("'" + std::string(key) + "' holds what is not an integer", where);
        integers.push_back(*integer);
    }
    return integers;
}
Result<bool> flagAt(const Json& json, std::string_view key, const std::string& where) {
    CT_TRY(const Json value, json.at(key, where));
    if (const auto flag = value.flag()) return *flag;
    return invalidInput("'" + std::string(key) + "' is neither true nor false", where);
}

Result<TensorRecord> tensorOf(const Json& json, const std::string& where) {
    TensorRecord tensor;
    CT_TRY(tensor.dynamic, flagAt(json, "is_dynamic", where));
    if (tensor.dynamic) return unsupported("Only support static shape for now", where);
    CT_TRY(tensor.device, json.textAt("device_type", where));
    CT_TRY(tensor.deviceIndex, json.integerAt("device_index", where));
    if (tensor.device == "cpu") tensor.deviceIndex = -1;
    CT_TRY(tensor.dtype, json.textAt("dtype", where));
    CT_TRY(tensor.sizes, integersAt(json, "sizes", where));
    CT_TRY(tensor.strides, integersAt(json, "strides", where));
    CT_TRY(tensor.requiresGrad, flagAt(json, "requires_grad", where));
    CT_TRY(const Json keys, json.at("dispatch_key_set", where));
    if (keys.raw().get(tensor.keys) != simdjson::SUCCESS)
        return invalidInput("'dispatch_key_set' is not a number of 64 bits", where);
    return tensor;
}

Result<ScalarRecord> scalarOf(const Json& json, const std::string& where) {
    ScalarRecord scalar;
    CT_TRY(scalar.device, json.textAt("device_type", where));
    CT_TRY(scalar.deviceIndex, json.integerAt("device_index", where));
    if (scalar.device == "cpu") scalar.deviceIndex = -1;
    CT_TRY(const std::string_view dtype, json.textAt("dtype", where));
    CT_TRY(const Json value, json.at("scalar_value", where));
    if (const auto flag = value.flag()) scalar.value = *flag;
    else if (const auto integer = value.integer(); integer && dtype != "torch.float32") scalar.value = *integer;
    else if (const auto real = value.real()) scalar.value = *real;
    else return invalidInput("'scalar_value' is not a number", where);
    return scalar;
}

Result<InputRecord> inputOf(const Json& json, const std::string& where) {
    InputRecord input;
    CT_TRY(input.order, json.integerAt("arg_order", where));
    if (const auto list = json.find("tensor_list")) {
        std::vector<TensorRecord> tensors;
        for (const auto item : list->items()) {
            CT_TRY(TensorRecord tensor, tensorOf(Json(item), where));
            tensors.push_back(std::move(tensor));
        }
        input.kind = std::move(tensors);
    } else if (json.find("scalar_value")) {
        CT_TRY(input.kind, scalarOf(json, where));
    } else if (const auto text = json.find("string_value"); text && text->text()) {
        input.kind = TextRecord{std::string(*text->text())};
    } else if (const auto dtype = json.find("dtype_value"); dtype && dtype->text()) {
        input.kind = DTypeRecord{std::string(*dtype->text())};
    } else if (const auto device = json.find("device_type_value"); device && device->text()) {
        DeviceRecord record{std::string(*device->text()), {}};
        if (const auto index = json.find("device_index_value")) record.index = index->integer();
        input.kind = std::move(record);
    } else if (const auto layout = json.find("layout_value"); layout && layout->text()) {
        input.kind = LayoutRecord{std::string(*layout->text())};
    } else {
        CT_TRY(input.kind, tensorOf(json, where));
    }
    return input;
}

Result<OperatorRecord> recordOf(std::string_view raw, const std::string& where) {
    CT_TRY(const auto document, parseJson(withQuotedNumbers(raw), where));
    OperatorRecord record;
    record.raw = raw;
    CT_TRY(record.library, document->root.textAt("kernel_path", where));
    if (record.library.empty()) return invalidInput("'kernel_path' is empty", where);
    CT_TRY(const Json inputs, document->root.arrayAt("meta_info", where));
    for (const auto item : inputs.items()) {
        auto input = inputOf(Json(item), where);
        if (input) {
            record.inputs.push_back(std::move(*input));
        } else {
            record.problem = input.error().message;
            record.inputs.clear();
            break;
        }
    }
    return record;
}

// -- writing, as Python's json.dump with indent=4

class Writer {
  public:
    explicit Writer(int depth) : m_depth(depth) {}
    template <class Body>
    void block(char open, char close, Body&& body) {
        m_text += open;
        ++m_depth;
        m_first = true;
        body();
        --m_depth;
        if (!m_first) line();
        m_text += close;
        m_first = false;
    }
    void item() {
        if (!m_first) m_text += ',';
        m_first = false;
        line();
    }
    void member(std::string_view key, const std::string& value) {
        item();
        m_text += jsonString(key) + ": " + value;
    }
    template <class Body>
    void member(std::string_view key, char open, char close, Body&& body) {
        item();
        m_text += jsonString(key) + ": ";
        block(open, close, body);
    }
    void integers(std::string_view key, const std::vector<int64_t>& values) {
        member(key, '[', ']', [&] {
            for (const int64_t value : values) item(), m_text += std::to_string(value);
        });
    }
    std::string take() { return std::move(m_text); }

  private:
    void line() { m_text += "\n" + std::string(static_cast<size_t>(m_depth) * 4, ' '); }
    std::string m_text;
    int m_depth;
    bool m_first = true;
};

std::string flagText(bool flag) { return flag ? "true" : "false"; }
std::string realJson(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return fxtext::realText(value);
}

void write(Writer& out, const TensorRecord& tensor) {
    out.member("is_dynamic", flagText(tensor.dynamic));
    out.member("device_type", jsonString(tensor.device));
    out.member("device_index", std::to_string(tensor.deviceIndex));
    out.member("dtype", jsonString(tensor.dtype));
    out.integers("sizes", tensor.sizes);
    out.integers("strides", tensor.strides);
    out.member("requires_grad", flagText(tensor.requiresGrad));
    out.member("dispatch_key_set", std::to_string(tensor.keys));
}
void write(Writer& out, const ScalarRecord& scalar) {
    const char* const dtypes[] = {"torch.bool", "torch.int32", "torch.float32"};
    out.member("is_dynamic", "false");
    out.member("device_type", jsonString(scalar.device));
    out.member("device_index", std::to_string(scalar.deviceIndex));
    out.member("dtype", jsonString(dtypes[scalar.value.index()]));
    out.member("scalar_value",
               std::visit(Overloaded{[](bool v) { return flagText(v); }, [](int64_t v) { return std::to_string(v); },
                                     [](double v) { return realJson(v); }},
                          scalar.value));
}

void write(Writer& out, const InputRecord& input) {
    std::visit(Overloaded{[&](const TensorRecord& one) { write(out, one); },
                          [&](const std::vector<TensorRecord>& list) {
                              out.member("tensor_list", '[', ']', [&] {
                                  for (const TensorRecord& one : list) {
                                      out.item();
                                      out.block('{', '}', [&] { write(out, one); });
                                  }
                              });
                          },
                          [&](const ScalarRecord& scalar) { write(out, scalar); },
                          [&](const TextRecord& text) { out.member("string_value", jsonString(text.value)); },
                          [&](const DTypeRecord& dtype) { out.member("dtype_value", jsonString(dtype.name)); },
                          [&](const DeviceRecord& device) {
                              out.member("device_type_value", jsonString(device.type));
                              out.member("device_index_value", device.index ? std::to_string(*device.index) : "null");
                          },
                          [&](const LayoutRecord& layout) { out.member("layout_value", jsonString(layout.name)); }},
               input.kind);
    out.member("arg_order", std::to_string(input.order));
}

std::string textOf(const OperatorRecord& record) {
    if (!record.raw.empty()) return record.raw;
    Writer out(1);
    out.block('{', '}', [&] {
        out.member("meta_info", '[', ']', [&] {
            for (const InputRecord& input : record.inputs) {
                out.item();
                out.block('{', '}', [&] { write(out, input); });
            }
        });
        out.member("kernel_path", jsonString(record.library));
    });
    return out.take();
}

}  // namespace

uint64_t plainKeys(DeviceType device) { return device == DeviceType::Cuda ? kCudaKeys[0] : kCpuKeys[0]; }

std::string InputRecord::text() const {
    return std::visit(Overloaded{[](const TensorRecord& tensor) { return textOf(tensor); },
                                 [](const std::vector<TensorRecord>& list) {
                                     std::string all;
                                     for (const TensorRecord& one : list)
                                         all += (all.empty() ? "" : ", ") + textOf(one);
                                     return "[" + all + "]";
                                 },
                                 [](const ScalarRecord& scalar) {
                                     return std::visit(
                                         Overloaded{[](bool v) { return std::string(v ? "True" : "False"); },
                                                    [](int64_t v) { return std::to_string(v); },
                                                    [](double v) { return fxtext::realText(v); }},
                                         scalar.value);
                                 },
                                 [](const TextRecord& text) { return fxtext::quoted(text.value); },
                                 [](const DTypeRecord& dtype) { return dtype.name; },
                                 [](const DeviceRecord& device) {
                                     return "device('" + device.type +
                                            (device.index ? ":" + std::to_string(*device.index) : "") + "')";
                                 },
                                 [](const LayoutRecord& layout) { return layout.name; }},
                      kind);
}

bool sameInputs(const std::vector<InputRecord>& a, const std::vector<InputRecord>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const InputRecord& x, const InputRecord& y) {
        if (x.order != y.order || x.kind.index() != y.kind.index()) return false;
        return std::visit(
            Overloaded{[&](const TensorRecord& one) { return same(one, std::get<TensorRecord>(y.kind)); },
                       [&](const std::vector<TensorRecord>& list) {
                           const auto& other = std::get<std::vector<TensorRecord>>(y.kind);
                           return std::equal(list.begin(), list.end(), other.begin(), other.end(),
                                             [](const TensorRecord& p, const TensorRecord& q) { return same(p, q); });
                       },
                       [&](const ScalarRecord& one) { return same(one, std::get<ScalarRecord>(y.kind)); },
                       [&](const TextRecord& one) { return one.value == std::get<TextRecord>(y.kind).value; },
                       [&](const DTypeRecord& one) { return one.name == std::get<DTypeRecord>(y.kind).name; },
                       [&](const DeviceRecord& one) {
                           const auto& other = std::get<DeviceRecord>(y.kind);
                           return one.type == other.type && one.index == other.index;
                       },
                       [&](const LayoutRecord& one) { return one.name == std::get<LayoutRecord>(y.kind).name; }},
            x.kind);
    });
}

std::vector<OperatorRecord> parseOperatorRecords(std::string_view text, const std::string& where,
                                                 std::vector<std::string>& remarks) {
    std::vector<OperatorRecord> records;
    bool ended = false;
    const std::vector<std::string_view> objects = objectsOf(text, ended);
    for (size_t i = 0; i < objects.size(); ++i) {
        auto record = recordOf(objects[i], where);
        if (record) records.push_back(std::move(*record));
        else
            remarks.push_back(where + ": entry " + std::to_string(i + 1) +
                              " is damaged and left out: " + record.error().message);
    }
    if (!ended && !text.empty())
        remarks.push_back(where + (objects.empty() ? ": the file is not a list of entries, and counts as empty"
                                                   : ": the file ends early; the entries before its end remain"));
    return records;
}

std::string operatorRecordsText(const std::vector<OperatorRecord>& records) {
    std::string text = "[";
    for (size_t i = 0; i < records.size(); ++i) text += (i > 0 ? ",\n    " : "\n    ") + textOf(records[i]);
    return text + (records.empty() ? "]" : "\n]");
}

}  // namespace cutaway
