// An importer in C++: ONNX, the format in which most models leave the frameworks that Cutaway does not read.
//
//     protoc --cpp_out=. onnx.proto && c++ -std=c++17 -O2 -shared -fPIC -o import_onnx.so import_onnx.cpp onnx.pb.cc
//     -lprotobuf cutaway-cli info MODEL.onnx
//
// It takes the operators of small vision models and transformers, weights included. An operator that it does not know
// is an error that names it; types are left out where Cutaway's own rules give them.
#include <cctype>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "cutaway_plugin.h"
#include "onnx.pb.h"

namespace {

using Strings = std::vector<std::string>;

std::string identifier(const std::string& name) {
    std::string out;
    for (const unsigned char c : name) out += std::isalnum(c) ? static_cast<char>(c) : '_';
    return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "v_" + out : out;
}

struct DType {
    int onnx;
    const char *text, *safetensors;
    size_t bytes;
};
const DType& dtypeOf(int onnx) {
    static const DType all[] = {{1, "f32", "F32", 4}, {6, "i32", "I32", 4},  {7, "i64", "I64", 8},
                                {9, "b8", "BOOL", 1}, {10, "f16", "F16", 2}, {11, "f64", "F64", 8}};
    for (const DType& dtype : all)
        if (dtype.onnx == onnx) return dtype;
    throw std::runtime_error("tensors of ONNX's type " + std::to_string(onnx) + " are not read");
}

template <class List>
std::string listOf(const List& items) {
    std::string out = "[";
    for (const auto& item : items) {
        if (out.size() > 1) out += ", ";
        if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::string>) out += item;
        else out += std::to_string(item);
    }
    return out + "]";
}

class Reader {
  public:
    explicit Reader(const onnx::GraphProto& graph) : m_graph(graph) {}

    std::string graph() {
        std::string head;
        int inputs = 0, outputs = 0;
        for (const auto& tensor : m_graph.initializer()) m_weights[tensor.name()] = &tensor;
        for (const auto& input : m_graph.input()) {
            if (m_weights.count(input.name())) continue;
            const auto& type = input.type().tensor_type();
            Strings sizes;
            for (const auto& dim : type.shape().dim())
                sizes.push_back(dim.dim_param().empty() ? std::to_string(dim.dim_value())
                                                        : identifier(dim.dim_param()));
            add(head, name(input.name()), std::string(dtypeOf(type.elem_type()).text) + listOf(sizes),
                "PlainAOTInput(idx=" + std::to_string(inputs++) + ")");
        }
        for (const auto& node : m_graph.node()) statement(node);
        std::string results;
        for (const auto& output : m_graph.output())
            results +=
                "        " + value(output.name()) + ",  # PlainAOTOutput(idx=" + std::to_string(outputs++) + ")\n";
        // Weights that something reads are parameters, before the inputs.
        std::string weights;
        for (const std::string& each : m_read) {
            const onnx::TensorProto& tensor = *m_weights.at(each);
            add(weights, name(each), std::string(dtypeOf(tensor.data_type()).text) + listOf(tensor.dims()),
                "ParamAOTInput(target='" + identifier(each) + "')");
        }
        return "def forward(\n" + weights + head + "):\n" + m_body + "    return (\n" + results + "    )\n";
    }

    /// The weights as safetensors.
    std::string tensors() const {
        std::string header, data;
        for (const std::string& each : m_read) {
            const onnx::TensorProto& tensor = *m_weights.at(each);
            const DType& dtype = dtypeOf(tensor.data_type());
            const size_t begin = data.size();
            if (!tensor.raw_data().empty()) data += tensor.raw_data();
            for (const float number : tensor.float_data()) data.append(reinterpret_cast<const char*>(&number), 4);
            for (const int64_t number : tensor.int64_data()) data.append(reinterpret_cast<const char*>(&number), 8);
            header += (header.empty() ? "" : ",") + ("\"" + identifier(each)) + "\":{\"dtype\":\"" + dtype.safetensors +
                      "\",\"shape\":" + listOf(tensor.dims()) + ",\"data_offsets\":[" + std::to_string(begin) + "," +
                      std::to_string(data.size()) + "]}";
        }
        header = "{" + header + "}";
        while (header.size() % 8 != 0) header += ' ';
        const uint64_t size = header.size();
        return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
    }

  private:
    static void add(std::string& head, const std::string& name, const std::string& type, const std::string& role) {
        head += "    " + name + ": \"" + type + "\",  # " + role + "\n";
    }
    std::string name(const std::string& onnx) {
        auto& known = m_names[onnx];
        if (!known.empty()) return known;
        known = identifier(onnx);
        while (!m_taken.insert(known).second) known += "_";
        return known;
    }
    /// A value as an operand; a weight that is read becomes a parameter.
    std::string value(const std::string& onnx) {
        if (m_weights.count(onnx) && m_seen.insert(onnx).second) m_read.push_back(onnx);
        return onnx.empty() ? "None" : name(onnx);
    }
    /// The numbers of a weight that is an argument in ATen, such as a shape.
    std::vector<int64_t> numbers(const std::string& onnx) const {
        const auto found = m_weights.find(onnx);
        if (found == m_weights.end()) throw std::runtime_error("'" + onnx + "' is computed, and has to be a constant");
        const onnx::TensorProto& tensor = *found->second;
        std::vector<int64_t> out(tensor.int64_data().begin(), tensor.int64_data().end());
        if (!tensor.raw_data().empty()) {
            out.resize(tensor.raw_data().size() / 8);
            std::memcpy(out.data(), tensor.raw_data().data(), out.size() * 8);
        }
        return out;
    }
    static const onnx::AttributeProto* attribute(const onnx::NodeProto& node, const char* name) {
        for (const auto& each : node.attribute())
            if (each.name() == name) return &each;
        return nullptr;
    }
    static int64_t integer(const onnx::NodeProto& node, const char* name, int64_t fallback) {
        const auto* found = attribute(node, name);
        return found ? found->i() : fallback;
    }
    static std::vector<int64_t> integers(const onnx::NodeProto& node, const char* name, std::vector<int64_t> fallback) {
        const auto* found = attribute(node, name);
        return found ? std::vector<int64_t>(found->ints().begin(), found->ints().end()) : fallback;
    }

    void say(const std::string& made, const std::string& expression) {
        m_body += "    " + made + " = " + expression + "\n";
    }
    std::string fresh(const std::string& expression) {
        const std::string made = name("t" + std::to_string(++m_made));
        say(made, expression);
        return made;
    }

    void statement(const onnx::NodeProto& node) {
        const std::string& op = node.op_type();
        const std::string out = name(node.output(0));
        const auto in = [&](int i) { return i < node.input_size() ? value(node.input(i)) : std::string("None"); };
        static const std::map<std::string, const char*> plain = {
            {"Relu", "relu.default"},     {"Sigmoid", "sigmoid.default"}, {"Tanh", "tanh.default"},
            {"Exp", "exp.default"},       {"Sqrt", "sqrt.default"},       {"Neg", "neg.default"},
            {"Abs", "abs.default"},       {"Erf", "erf.default"},         {"Add", "add.Tensor"},
            {"Sub", "sub.Tensor"},        {"Mul", "mul.Tensor"},          {"Div", "div.Tensor"},
            {"MatMul", "matmul.default"}, {"Pow", "pow.Tensor_Tensor"},   {"Log", "log.default"}};
        if (const auto found = plain.find(op); found != plain.end()) {
            std::string operands = in(0);
            for (int i = 1; i < node.input_size(); ++i) operands += ", " + in(i);
            return say(out, std::string("aten.") + found->second + "(" + operands + ")");
        }
        if (op == "Identity") return say(out, "aten.alias.default(" + in(0) + ")");
        if (op == "Gemm") {
            const auto turned = [&](int i, const char* flag) {
                return integer(node, flag, 0) ? fresh("aten.permute.default(" + in(i) + ", [1, 0])") : in(i);
            };
            const auto* alpha = attribute(node, "alpha");
            const auto* beta = attribute(node, "beta");
            if ((alpha && alpha->f() != 1) || (beta && beta->f() != 1))
                throw std::runtime_error("Gemm with alpha or beta");
            const std::string a = turned(0, "transA"), b = turned(1, "transB");
            if (node.input_size() < 3) return say(out, "aten.mm.default(" + a + ", " + b + ")");
            return say(out, "aten.addmm.default(" + in(2) + ", " + a + ", " + b + ")");
        }
        if (op == "Conv") {
            const auto pads = integers(node, "pads", {0, 0, 0, 0});
            if (pads.size() != 4 || pads[0] != pads[2] || pads[1] != pads[3])
                throw std::runtime_error("Conv with uneven or other than two-dimensional padding");
            return say(out, "aten.convolution.default(" + in(0) + ", " + in(1) + ", " + in(2) + ", " +
                                listOf(integers(node, "strides", {1, 1})) + ", " +
                                listOf(std::vector<int64_t>{pads[0], pads[1]}) + ", " +
                                listOf(integers(node, "dilations", {1, 1})) + ", False, [0, 0], " +
                                std::to_string(integer(node, "group", 1)) + ")");
        }
        if (op == "MaxPool") {
            const auto pads = integers(node, "pads", {0, 0, 0, 0});
            return say(out, "aten.max_pool2d.default(" + in(0) + ", " + listOf(integers(node, "kernel_shape", {})) +
                                ", " + listOf(integers(node, "strides", {1, 1})) + ", " +
                                listOf(std::vector<int64_t>{pads[0], pads[1]}) + ")");
        }
        if (op == "GlobalAveragePool") return say(out, "aten.mean.dim(" + in(0) + ", [2, 3], True)");
        if (op == "Softmax")
            return say(out, "aten.softmax.int(" + in(0) + ", " + std::to_string(integer(node, "axis", -1)) + ")");
        if (op == "Flatten")
            return say(out,
                       "aten.flatten.using_ints(" + in(0) + ", " + std::to_string(integer(node, "axis", 1)) + ", -1)");
        if (op == "Reshape")
            return say(out, "aten.reshape.default(" + in(0) + ", " + listOf(numbers(node.input(1))) + ")");
        if (op == "Transpose")
            return say(out, "aten.permute.default(" + in(0) + ", " + listOf(integers(node, "perm", {})) + ")");
        if (op == "Concat") {
            Strings operands;
            for (int i = 0; i < node.input_size(); ++i) operands.push_back(in(i));
            return say(out,
                       "aten.cat.default(" + listOf(operands) + ", " + std::to_string(integer(node, "axis", 0)) + ")");
        }
        if (op == "LayerNormalization") {
            const auto* epsilon = attribute(node, "epsilon");
            const auto found = m_weights.find(node.input(1));
            if (found == m_weights.end()) throw std::runtime_error("LayerNormalization with a computed scale");
            return say(out, "aten.layer_norm.default(" + in(0) + ", " + listOf(found->second->dims()) + ", " + in(1) +
                                ", " + in(2) + ", " + std::to_string(epsilon ? epsilon->f() : 1e-5f) + ")");
        }
        throw std::runtime_error("the operator '" + op + "' is not read");
    }

    const onnx::GraphProto& m_graph;
    std::map<std::string, const onnx::TensorProto*> m_weights;
    std::map<std::string, std::string> m_names;
    std::set<std::string> m_taken, m_seen;
    Strings m_read;
    std::string m_body;
    int m_made = 0;
};

// Nothing may be thrown through C.
int run(const ct_host* host, const char*, ct_text bytes) {
    try {
        onnx::ModelProto model;
        if (!model.ParseFromArray(bytes.data, static_cast<int>(bytes.size)) || model.graph().node_size() == 0)
            throw std::runtime_error("the file is not an ONNX model");
        Reader reader(model.graph());
        const std::string graph = reader.graph(), tensors = reader.tensors();
        host->emit(host, "main", {graph.data(), graph.size()});
        host->emit(host, "tensors", {tensors.data(), tensors.size()});
        return CT_OK;
    } catch (const std::exception& error) {
        host->fail(host, error.what());
        return CT_FAILED;
    }
}

const ct_importer importer = {sizeof(ct_importer), "onnx", "ONNX models with their weights", "*.onnx", run};
const ct_importer* const importers[] = {&importer, nullptr};
const ct_plugin plugin = {sizeof(ct_plugin), CT_ABI,  0,         "import_onnx", "1.0",  "Opens ONNX models",
                          nullptr,           nullptr, importers, nullptr,       nullptr};

}  // namespace

extern "C" const ct_plugin* cutaway_plugin(void) { return &plugin; }
