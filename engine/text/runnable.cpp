#include "engine/text/runnable.h"

#include <set>

#include "engine/text/literal.h"
#include "engine/text/packed_weights.h"
#include "engine/text/print_node.h"

namespace cutaway::fxtext {
namespace {

/// What the file brings along: how inputs are made where the values are not written.
constexpr std::string_view kMakers = R"(
Max, Min = max, min


def make(size, stride, dtype, place="cpu"):
    """Seeded random floats, or zeros where random numbers could be wrong indices."""
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex64 if dtype.is_complex else torch.float32
        values = torch.randn(span, dtype=wide).to(dtype)
    else:
        values = torch.zeros(span, dtype=dtype)
    return values.to(place).as_strided(size, stride)


def put(module, path, value):
    *parents, leaf = path.split(".")
    for name in parents:
        if name not in module._modules:
            module.add_module(name, torch.nn.Module())
        module = module._modules[name]
    module.register_buffer(leaf, value)
)";

/// Reads the inputs of a safetensors file with nothing but PyTorch.
constexpr std::string_view kStored = R"(

def stored_args():
    """The inputs of the file beside this one; made-up ones for those that it lacks."""
    import json
    import os

    args, names = load_args(), [@NAMES@]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inputs.safetensors")
    if not os.path.exists(path):
        return args
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    dtypes = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
              "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
              "BOOL": torch.bool, "C64": torch.complex64}
    for i, name in enumerate(names):
        entry = header.get(name)
        if entry is None or entry["dtype"] not in dtypes or not isinstance(args[i], torch.Tensor):
            continue
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=dtypes[entry["dtype"]]) if end > begin else None
        if values is not None:
            with torch.no_grad():
                args[i].copy_(values.reshape(entry["shape"]))
    return args
)";

constexpr int64_t kExactElements = 4;

std::string pythonDims(const SymDims& dims) {
    std::string out = "[";
    for (size_t i = 0; i < dims.size(); ++i) out += (i > 0 ? ", " : "") + dims[i].text();
    return out + "]";
}

std::string scalarText(const Scalar& scalar) {
    return std::visit(
        [](auto value) -> std::string {
            using T = decltype(value);
            if constexpr (std::is_same_v<T, bool>) return value ? "True" : "False";
            else if constexpr (std::is_same_v<T, int64_t>) return std::to_string(value);
            else if constexpr (std::is_same_v<T, double>) return realText(value);
            else return complexText(value);
        },
        scalar);
}

/// "Linear(in_features=2, out_features=2, bias=True)": a class of torch.nn with literal arguments. Text from a file
/// gets into a program that people run only if it can be nothing else.
bool isLayer(std::string_view text) {
    const size_t open = text.find('(');
    if (open == std::string_view::npos || !text.ends_with(")") || !isIdentifier(text.substr(0, open)) ||
        text[0] < 'A' || text[0] > 'Z')
        return false;
    for (size_t i = open + 1; i < text.size(); ++i) {
        const char c = text[i];
        const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                             std::string_view("_=., ()-+").find(c) != std::string_view::npos;
        // No second call: what stands before an inner parenthesis is never a name.
        if (!allowed || (c == '(' && std::string_view("=, (").find(text[i - 1]) == std::string_view::npos))
            return false;
    }
    return text.find("__") == std::string_view::npos;
}

class RunnablePrinter {
  public:
    RunnablePrinter(const Module& module, const PrintOptions& options) : m_module(module), m_options(options) {}

    /// As GraphModule.to_folder writes it: tensors come from a file, inputs from whoever calls.
    PrintedText printFolderModule() {
        imports();
        line(0, "from torch.nn import *");
        symbols();
        block(kMakers);
        line(0, "");
        line(0, "");
        moduleClass(m_module, "FxModule", 0);
        return std::move(m_printed);
    }

    PrintedText print() {
        imports();
        symbols();
        block(kMakers);
        line(0, "");
        line(0, "");
        moduleClass(m_module, "Repro", 0);
        line(0, "");
        line(0, "");
        inputs();
        if (m_options.storedInputs) storedInputs();
        block(
            "\n\nif __name__ == \"__main__\":\n    module = Repro()\n    with torch.no_grad():\n        results = module(*" +
            std::string(m_options.storedInputs ? "stored_args" : "load_args") +
            "())\n"
            "    for result in results if isinstance(results, (tuple, list)) else [results]:\n"
            "        print(getattr(result, \"shape\", result), getattr(result, \"dtype\", \"\"))\n");
        return std::move(m_printed);
    }

  private:
    void line(size_t indent, std::string_view content, NodeId node = NodeId::None) {
        if (!content.empty()) m_printed.text.append(indent, ' ').append(content);
        m_printed.text += '\n';
        m_printed.lineNodes.push_back(node);
    }
    void block(std::string_view lines) {
        while (!lines.empty()) {
            const size_t end = std::min(lines.find('\n'), lines.size());
            line(0, lines.substr(0, end));
            lines.remove_prefix(std::min(end + 1, lines.size()));
        }
    }
    void imports();
    void symbols();
    void inputs();
    void storedInputs();
    void moduleClass(const Module& module, const std::string& name, size_t indent);
    void constructor(const Module& module, size_t indent);
    static std::string emptyText(const Tensor& tensor);
    std::string tensorText(const std::string& target, const ValueType& type) const;

    const Module& m_module;
    PrintOptions m_options;
    PrintedText m_printed;
};

void forEachModule(const Module& module, const auto& visit) {
    visit(module);
    for (const auto& [name, body] : module.subgraphs) forEachModule(*body, visit);
}

void RunnablePrinter::imports() {
    block("import math\nimport operator\nfrom math import inf, nan\n\nimport torch\nfrom torch import device\n");
    // Operators that PyTorch registers only when their module is loaded.
    static constexpr std::pair<std::string_view, std::string_view> kRegistered[] = {
        {"prims.", "torch._inductor.inductor_prims"},
        {"quantized_decomposed.", "torch.ao.quantization.fx._decomposed"},
        {"higher_order.", "torch._higher_order_ops"}};
    for (const auto& each : kRegistered) {
        const std::string_view prefix = each.first;  // not structured bindings: the lambda below reads it (clang 14)
        bool used = false;
        forEachModule(m_module, [&](const Module& module) {
            for (const Node& node : module.graph().nodes())
                used |= node.isCall() && node.op().name().starts_with(prefix);
        });
        if (used) line(0, "import " + std::string(each.second));
    }
    // What PyTorch knows only as kernels, by what it computes.
    static constexpr std::pair<std::string_view, std::string_view> kKernels[] = {
        {"torch__inductor_fx_passes_post_grad_mm_plus_mm",
         "torch__inductor_fx_passes_post_grad_mm_plus_mm = lambda a, b, c, d: torch.mm(a, b) + torch.mm(c, d)"},
        {"torch__inductor_fx_passes_post_grad_cat_slice_cat",
         "torch__inductor_fx_passes_post_grad_cat_slice_cat = lambda x, size: torch.cat([*x, torch.cat(x, 1)[:, :size]], 1)"},
        {"torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace",
         "torch__inductor_fx_passes_post_grad_splitwithsizes_cat_replace = lambda x: torch.cat([x])"},
        {"torch__inductor_fx_passes_post_grad_cat_splitwithsizes_replace",
         "torch__inductor_fx_passes_post_grad_cat_splitwithsizes_replace = lambda x: [torch.clone(item) for item in x]"},
        {"higher_order.b2b_gemm", "torch.ops.higher_order.b2b_gemm = lambda graph, a, b, c: graph(a, b, c)[0]"}};
    for (const auto& each : kKernels) {
        const std::string_view name = each.first;
        bool used = false;
        forEachModule(m_module, [&](const Module& module) {
            for (const Node& node : module.graph().nodes()) used |= node.isCall(name);
        });
        if (used) block(each.second);
    }
}

void RunnablePrinter::symbols() {
    if (m_module.symbols.empty()) return;
    line(0, "");
    for (const auto& [name, info] : m_module.symbols) {
        if (!isIdentifier(name)) continue;
        const int64_t example = info.hint.value_or(
            std::clamp<int64_t>(8, info.lower.value_or(0), std::max(info.upper.value_or(8), info.lower.value_or(0))));
        line(0, name + " = " + std::to_string(example) + (info.hint ? "" : "  # no example value is known"));
    }
}

/// The expression that makes a tensor: exact when the module has it and it is small.
std::string RunnablePrinter::tensorText(const std::string& target, const ValueType& type) const {
    const auto held = m_module.tensors.find(target);
    if (held != m_module.tensors.end() && held->second.defined() && held->second.numel() <= kExactElements) {
        const Tensor& tensor = held->second;
        std::string values;
        for (int64_t i = 0; i < tensor.numel(); ++i) values += (i > 0 ? ", " : "") + scalarText(tensor.item(i));
        return "torch.tensor([" + values + "], dtype=torch." + std::string(info(tensor.dtype()).torchName) +
               ").reshape(" + pythonDims(toSymDims(tensor.sizes())) + ")" +
               (tensor.device().type == DeviceType::Cpu ? "" : ".to('" + tensor.device().text() + "')");
    }
    if (const TensorType* meta = type.tensor()) {
        std::string out = "make(" + pythonDims(meta->sizes) + ", " + pythonDims(meta->strides) + ", torch." +
                          std::string(info(meta->dtype).torchName);
        if (meta->device.type != DeviceType::Cpu) out += ", '" + meta->device.text() + "'";
        return out + ")";
    }
    if (const SymType* symbol = type.sym(); symbol && symbol->expr) return text(symbol->expr);
    return "None";
}

/// What a state dict is loaded into.
std::string RunnablePrinter::emptyText(const Tensor& tensor) {
    const std::string sizes = pythonDims(toSymDims(tensor.sizes()));
    const std::string dtype = ", dtype=torch." + std::string(info(tensor.dtype()).torchName) + ")";
    if (tensor.isContiguous()) return "torch.empty(" + sizes + dtype;
    return "torch.empty_strided(" + sizes + ", " + pythonDims(toSymDims(tensor.strides())) + dtype;
}

void RunnablePrinter::constructor(const Module& module, size_t indent) {
    line(indent, "def __init__(self):");
    line(indent + 4, "super().__init__()");
    line(indent + 4, "torch.manual_seed(1)");
    const bool saved = &module == &m_module && !m_options.stateDict.empty();
    std::set<std::string> made;
    const std::map<std::string, Packing> packed = packingsFor(module);
    for (const Node& node : module.graph().nodes()) {
        if (node.kind() == NodeKind::GetAttr && made.insert(node.target()).second) {
            std::string value = saved && module.tensors.contains(node.target())
                                    ? emptyText(module.tensors.at(node.target()))
                                    : tensorText(node.target(), node.type());
            if (const auto packing = packed.find(node.target()); packing != packed.end())
                value = packing->second.before + value + packing->second.after;
            line(indent + 4, "put(self, " + quoted(node.target()) + ", " + value + ")", node.id());
        }
        if (!node.isCall() || node.op().style() != Op::Style::Module || !made.insert(node.op().name()).second) continue;
        const auto& text = node.provenance().moduleType;
        if (text && isLayer(*text) && node.op().name().find('.') == std::string::npos)
            line(indent + 4, "self.add_module(" + quoted(node.op().name()) + ", torch.nn." + *text + ")", node.id());
        else
            line(indent + 4,
                 "# " + NodePrinter::attribute(node.op().name()) + " is a module that the graph does not describe",
                 node.id());
    }
    for (const auto& [name, body] : module.subgraphs)
        line(indent + 4, "self.__dict__[" + quoted(name) + "] = type(self)." + name + "()");
    if (saved) line(indent + 4, "self.load_state_dict(torch.load(" + quoted(m_options.stateDict) + "))");
}

void RunnablePrinter::moduleClass(const Module& module, const std::string& name, size_t indent) {
    const Graph& graph = module.graph();
    const NodePrinter nodes(&graph, true);
    line(indent, "class " + name + "(torch.nn.Module):");
    constructor(module, indent + 4);
    line(0, "");
    std::string head = "def forward(self";
    for (const Node* node : graph.placeholders()) {
        const std::string type = nodes.annotation(*node);
        head += ", " + nodes.name(*node) + (type.empty() ? "" : ": \"" + type + "\"");
    }
    line(indent + 4, head + "):");
    for (const Node& node : graph.nodes()) {
        if (node.isPlaceholder()) continue;
        if (node.kind() == NodeKind::Output) {
            line(indent + 8, "return " + nodes.expression(node), node.id());
            continue;
        }
        const std::string type = nodes.annotation(node);
        line(indent + 8, nodes.name(node) + (type.empty() ? "" : ": \"" + type + "\"") + " = " + nodes.expression(node),
             node.id());
    }
    if (graph.outputNode() == nullptr) line(indent + 8, "return None");
    for (const auto& [key, body] : module.subgraphs) {
        line(0, "");
        moduleClass(*body, key, indent + 4);
    }
}

void RunnablePrinter::storedInputs() {
    std::string names;
    for (const Node* node : m_module.graph().placeholders())
        names += (names.empty() ? "\"" : ", \"") + node->name() + "\"";
    std::string text(kStored);
    text.replace(text.find("@NAMES@"), std::string_view("@NAMES@").size(), names);
    block(text);
}

void RunnablePrinter::inputs() {
    line(0, "def load_args():");
    line(4, "torch.manual_seed(0)");
    line(4, "return [");
    size_t position = 0;
    for (const Node* node : m_module.graph().placeholders()) {
        const std::string target = position < m_module.inputs.size() ? m_module.inputs[position].target : std::string();
        ++position;
        line(8, tensorText(target, node->type()) + ",  # " + node->name(), node->id());
    }
    line(4, "]");
}

}  // namespace

}  // namespace cutaway::fxtext

namespace cutaway {

Result<void> checkRunnable(const Module& module) {
    for (const Node& node : module.graph().nodes()) {
        // FX writes a Python function that it has no path for as one mangled word, which nobody can import.
        if (node.isCall() && node.op().isOpaque() && node.op().style() == Op::Style::Function &&
            node.op().name().starts_with("torch_") && node.op().name().find('.') == std::string::npos)
            return unsupported(
                "'" + std::string(node.op().name()) + "' is a function inside PyTorch that the file only names",
                node.name(), {"take the graph from before the pass that put it there"});
        if (!node.hasUsers() || (!node.isPlaceholder() && node.kind() != NodeKind::GetAttr)) continue;
        const bool known = node.type().tensor() || (node.type().sym() && node.type().sym()->expr) ||
                           module.tensors.contains(node.target());
        const auto* opaque = std::get_if<OpaqueType>(&node.type().kind);
        if (known || (opaque && opaque->description == "None")) continue;
        return unsupported(std::string(node.isPlaceholder() ? "input '" : "attribute '") +
                               (node.isPlaceholder() ? node.name() : node.target()) +
                               "' has no type in the file, so no value can be made for it",
                           node.name(),
                           {"annotate it in the text, or take the graph from before the pass that dropped its type"});
    }
    return {};
}

}  // namespace cutaway

namespace cutaway::fxtext {

PrintedText printRunnable(const Module& module, const PrintOptions& options) {
    RunnablePrinter printer(module, options);
    return options.stateDict.empty() ? printer.print() : printer.printFolderModule();
}

}  // namespace cutaway::fxtext
