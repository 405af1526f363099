#include "engine/passes/post_grad/overlap_costs.h"

#include <algorithm>
#include <cmath>

#include "engine/interpret/specialize.h"
#include "engine/ir/graph.h"

namespace cutaway {
namespace {

/// GPUs by generation: memory bandwidth, arithmetic by dtype, and what the low-latency protocol reaches within one
/// machine, between two and between more (GB/s per channel, from NCCL's tuning tables; between machines the processor's
/// generation would count, which is taken to be the oldest).
struct Gpu {
    std::string_view name;
    double capability, dramGbps, tflopsHalf, tflopsF32, tflopsTf32, tflopsF64;
    double busGbps[3];
};
constexpr Gpu kGpus[] = {
    {"v100", 7, 900, 125, 15.7, 15.7, 7.8, {39.0, 39.0, 20.4}},
    {"a100", 8, 1555, 312, 19.5, 156, 9.7, {87.7, 22.5, 19.0}},
    {"h100", 9, 3352, 989.4, 66.9, 494.7, 33.5, {141.0, 45.0, 35.0}},
    {"b200", 10, 8000, 2250, 80, 1125, 40, {282.0, 90.0, 70.0}},
};
constexpr size_t kUnknownGpu = 1;  // as PyTorch assumes

/// Work whose floating-point operations are known by formula, by the operator without its overload.
enum class ProductShape { Matrix, Convolution, ConvolutionBackward, Attention, AttentionBackward };
struct ProductOp {
    std::string_view packet;
    ProductShape kind;
    std::string_view first, second;  // the factors
};
constexpr ProductOp kProducts[] = {
    {"aten.mm", ProductShape::Matrix, "self", "mat2"},
    {"aten.addmm", ProductShape::Matrix, "mat1", "mat2"},
    {"aten.bmm", ProductShape::Matrix, "self", "mat2"},
    {"aten.baddbmm", ProductShape::Matrix, "batch1", "batch2"},
    {"aten._scaled_mm", ProductShape::Matrix, "self", "mat2"},
    {"aten.convolution", ProductShape::Convolution, "input", "weight"},
    {"aten.convolution_backward", ProductShape::ConvolutionBackward, "input", "weight"},
    {"aten._scaled_dot_product_efficient_attention", ProductShape::Attention, "query", "key"},
    {"aten._scaled_dot_product_flash_attention", ProductShape::Attention, "query", "key"},
    {"aten._scaled_dot_product_cudnn_attention", ProductShape::Attention, "query", "key"},
    {"aten._scaled_dot_product_efficient_attention_backward", ProductShape::AttentionBackward, "query", "key"},
    {"aten._scaled_dot_product_flash_attention_backward", ProductShape::AttentionBackward, "query", "key"},
    {"aten._scaled_dot_product_cudnn_attention_backward", ProductShape::AttentionBackward, "query", "key"},
};
const ProductOp* productOp(const Node& node) {
    if (!node.isCall() || node.op().isOpaque()) return nullptr;
    const auto* found = std::find_if(std::begin(kProducts), std::end(kProducts),
                                     [&](const ProductOp& row) { return row.packet == node.op().packet(); });
    return found == std::end(kProducts) ? nullptr : found;
}

/// From the pass's settings, those of `device`, or the device itself.
std::optional<double> deviceFact(const OptionalPass& settings, const PassContext& context, const std::string& key) {
    for (const OptionalPass* given : {&settings, context.request().enabled("device")}) {
        if (given == nullptr) continue;
        for (const auto& [setting, value] : given->settings)
            if (setting == key)
                if (const double number = given->number(key, 0); number > 0) return number;
    }
    return context.deviceFact(key);
}
size_t generationOf(const OptionalPass& settings, const PassContext& context) {
    for (const auto& [key, value] : settings.settings)
        for (size_t i = 0; key == "gpu" && i < std::size(kGpus); ++i)
            if (kGpus[i].name == value) return i;
    const auto capability = deviceFact(settings, context, "capability");
    for (size_t i = std::size(kGpus); capability && i-- > 0;)
        if (*capability >= kGpus[i].capability) return i;
    return capability ? 0 : kUnknownGpu;
}

const TensorType* firstTensor(const ValueType& type) {
    if (const TensorType* tensor = type.tensor()) return tensor;
    if (const TupleType* items = type.tuple())
        for (const ValueType& item : *items)
            if (const TensorType* tensor = firstTensor(item)) return tensor;
    return nullptr;
}

}  // namespace

OverlapCosts::OverlapCosts(const Graph& graph, const OptionalPass& settings, const PassContext& context)
    : m_graph(&graph), m_settings(&settings), m_context(&context), m_generation(generationOf(settings, context)) {
    m_dramGbps = deviceFact(settings, context, "dram_gbps").value_or(kGpus[m_generation].dramGbps);
}

bool OverlapCosts::isProduct(const Node& node) { return productOp(node) != nullptr; }

// ---------------------------------------------------------------- sizes

std::optional<int64_t> OverlapCosts::number(const SymInt& size) const { return valueFor(size, m_context->sizeHints); }

double OverlapCosts::count(const SymDims& sizes, double unknown) const {
    double product = 1;
    for (const SymInt& size : sizes) {
        const auto known = number(size);
        if (!known) return unknown;
        product *= static_cast<double>(*known);
    }
    return product;
}

double OverlapCosts::movedBytes(const ValueType& value) const {
    if (const TupleType* items = value.tuple()) {
        double sum = 0;
        for (const ValueType& item : *items) sum += movedBytes(item);
        return sum;
    }
    const TensorType* type = value.tensor();
    if (type == nullptr) return 0;
    SymDims moved;
    for (size_t d = 0; d < type->sizes.size(); ++d) {
        if (!number(type->sizes[d]) || !number(type->strides[d])) return 0;
        if (!(type->strides[d] == SymInt(0))) moved.push_back(type->sizes[d]);
    }
    return count(moved, 0) * byteSize(type->dtype);
}

int64_t OverlapCosts::storageBytes(const TensorType& type) const {
    constexpr int64_t kUnknown = 8192;
    int64_t last = number(type.offset).value_or(0);
    for (size_t d = 0; d < type.sizes.size(); ++d) {
        const auto size = number(type.sizes[d]), stride = number(type.strides[d]);
        if (!size || !stride) return kUnknown * byteSize(type.dtype);
        if (*size == 0) return 0;
        last += (*size - 1) * *stride;
    }
    return (last + 1) * byteSize(type.dtype);
}

// ---------------------------------------------------------------- products

double OverlapCosts::flopsOf(const Node& product) const {
    const ProductOp& row = *productOp(product);
    const TensorType *a = product.arg(row.first).node()->type().tensor(),
                     *b = product.arg(row.second).node()->type().tensor();
    if (a == nullptr || b == nullptr) return 0;
    const auto dim = [&](const TensorType& type, int64_t d) {
        return static_cast<double>(number(type.sizes[static_cast<size_t>(d < 0 ? d + type.rank() : d)]).value_or(0));
    };
    const auto spatial = [&](const TensorType& type) { return count({type.sizes.begin() + 2, type.sizes.end()}, 0); };
    switch (row.kind) {
        case ProductShape::Matrix: return 2 * count(a->sizes, 0) * dim(*b, -1);
        case ProductShape::Attention:
        case ProductShape::AttentionBackward: {
            // Both products of attention; backward does five in place of two.
            const double one = 2 * count(a->sizes, 0) * dim(*b, -2);
            return one * (row.kind == ProductShape::Attention ? 2 : 5);
        }
        case ProductShape::Convolution:
        case ProductShape::ConvolutionBackward: {
            const bool backward = row.kind == ProductShape::ConvolutionBackward;
            const Node& outer = backward ? *product.arg("grad_output").node() : product;
            const bool transposed = product.arg("transposed").asInt().value_or(0) != 0;
            const TensorType* across = transposed ? a : outer.type().tensor();
            if (across == nullptr || across->rank() < 2) return 0;
            const double one = 2 * dim(*a, 0) * spatial(*across) * count(b->sizes, 0);
            if (!backward) return one;
            const auto* mask = product.arg("output_mask").list();
            const auto wanted = [&](size_t i) {
                return mask && i < mask->size() && (*mask)[i].asInt().value_or(0) != 0;
            };
            return one * (static_cast<int>(wanted(0)) + static_cast<int>(wanted(1)));
        }
    }
    return 0;
}

double OverlapCosts::productMs(const Node& product) const {
    constexpr double kReached = 0.75;  // of what the data sheet promises
    const Gpu& gpu = kGpus[m_generation];
    const TensorType* result = firstTensor(product.type());
    double bytes = movedBytes(product.type());
    for (const Node* input : product.inputs()) bytes += movedBytes(input->type());
    double tflops = gpu.tflopsF32;
    if (result) {
        const bool tf32 =
            result->dtype == DType::F32 && m_settings->flag("tf32", m_context->request().tf32 == Tf32::All);
        tflops = tf32                          ? gpu.tflopsTf32
                 : isHalf(result->dtype)       ? gpu.tflopsHalf
                 : result->dtype == DType::F64 ? gpu.tflopsF64
                                               : gpu.tflopsF32;
        const std::string key = tf32 ? "tflops_tf32" : "tflops_" + std::string(info(result->dtype).abbreviation);
        tflops = deviceFact(*m_settings, *m_context, key).value_or(tflops);
    }
    return std::max(memoryMs(bytes), flopsOf(product) / (kReached * tflops * 1e9));
}

// ---------------------------------------------------------------- collectives

int64_t OverlapCosts::groupSize(const Node& collective) const {
    const auto given = [](const Node& node) -> std::optional<int64_t> {
        if (node.op().schema()->find("group_size") < 0) return std::nullopt;
        return node.arg("group_size").asInt();
    };
    if (const auto size = given(collective)) return *size;
    // An all_reduce does not tell the size of its group, but other calls on the group may.
    for (const Node& node : m_graph->nodes())
        if (node.isCall() && !node.op().isOpaque() && node.op().schema()->find("group_name") >= 0 &&
            equal(node.arg("group_name"), collective.arg("group_name")))
            if (const auto size = given(node)) return *size;
    return std::max<int64_t>(1, static_cast<int64_t>(m_settings->number("group_size", 8)));
}

int64_t OverlapCosts::collectiveBytes(const Node& collective) const {
    constexpr double kUnknown = 4096.0 * 4096.0;  // elements
    double bytes = 0;
    bool any = false;
    const auto add = [&](const TensorType& type) { bytes += count(type.sizes, kUnknown) * byteSize(type.dtype); };
    collective.forEachInput([&](const Node* input) {
        if (const TensorType* type = input->type().tensor()) {
            add(*type);
            any = true;
        }
    });
    const TensorType* result = collective.type().tensor();
    if (!any || result == nullptr) return 0;
    add(*result);
    return static_cast<int64_t>(bytes);
}

double OverlapCosts::collectiveMs(const Node& collective, std::optional<double> bytes) const {
    constexpr double kPerMachine = 8, kChannels = 2;
    const double members = static_cast<double>(groupSize(collective));
    if (members <= 1) return 0;
    const std::string_view op = collective.op().name();
    const bool sum = op.find("all_reduce") != std::string_view::npos,
               exchange = op.find("all_to_all") != std::string_view::npos;
    const double machines = std::ceil(members / kPerMachine);
    const bool oneMachine = machines == 1;
    // A step takes as long as its slowest link.
    const double link = oneMachine ? m_settings->number("intra_node_bw", 300) : m_settings->number("inter_node_bw", 25);
    const Gpu& gpu = kGpus[oneMachine ? m_generation : 0];
    const double most = gpu.busGbps[machines <= 2 ? static_cast<size_t>(machines) - 1 : 2];
    const double bus = std::min(most, kChannels * link * (!oneMachine || sum ? 1.0 / 4.0 : 1.0 / 3.0));
    const double steps = (sum || exchange ? 2 : 1) * (members - 1);
    const double betweenMachines = sum ? (oneMachine ? 0 : 2 * machines) : machines - 1;
    // Microseconds: the start, then each step within a machine and between machines.
    constexpr double kStart = 6.6, kNear = 0.6, kFar = 2.7;
    const double latency =
        kStart + (steps - betweenMachines) * (oneMachine ? kNear : std::max(kNear, 1.0)) + betweenMachines * kFar;
    const double gigabytes = bytes.value_or(static_cast<double>(collectiveBytes(collective))) / 1024 / 1024 / 1024;
    return (gigabytes / (bus * (members / steps) / 1e9) + latency * 1e3) / 1e6;
}

}  // namespace cutaway
