#include "engine/passes/joint/padding_decision.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "engine/formats/json.h"
#include "engine/text/print.h"

namespace cutaway {

int64_t alignmentOf(DType dtype) {
    if (dtype == DType::F16 || dtype == DType::BF16) return 8;
    return dtype == DType::F32 ? 4 : 0;
}
int64_t paddedLength(const SymInt& size, int64_t alignment) {
    if (!size.isInt() || alignment == 0 || size.value() == 1) return 0;
    const int64_t rest = size.value() % alignment;
    return rest == 0 ? 0 : alignment - rest;
}
Padding paddingOf(ProductKind kind, const TensorType& mat1, const TensorType& mat2) {
    const size_t row = kind == ProductKind::Bmm ? 1 : 0;
    const int64_t first = alignmentOf(mat1.dtype), second = alignmentOf(mat2.dtype);
    return {paddedLength(mat1.sizes[row], first), paddedLength(mat1.sizes[row + 1], first), paddedLength(mat2.sizes[row + 1], second)};
}

// ---------------------------------------------------------------- PAD-7

namespace {

Value padded(const Value& x, int64_t last, int64_t beforeLast, bool batched) {
    if (last == 0 && beforeLast == 0) return x;
    std::vector<Argument> amounts = {0, last, 0, beforeLast};
    if (batched) amounts.insert(amounts.end(), {0, 0});
    return x.builder().call("aten.constant_pad_nd.default", {x, Argument(std::move(amounts))});
}
/// Zeros behind the last line of the dim.
Value lengthened(const Value& x, int64_t by, int64_t dim) {
    SymDims sizes = x.sizes();
    sizes[static_cast<size_t>(dim)] = by;
    const Value zeros = full(x.builder(), sizes, Scalar(int64_t{0}), x.dtype(), x.type().device);
    return x.builder().call("aten.cat.default", {Argument(std::vector<Argument>{x, zeros}), dim});
}
Value paddedBias(Value bias, const Padding& padding) {
    const auto isOne = [&](size_t dim) { return bias.sizes()[dim] == SymInt(1); };
    const int64_t rank = bias.rank();
    if (padding.n != 0 && rank == 2 && !isOne(1)) bias = lengthened(bias, padding.n, 1);
    else if (padding.n != 0 && rank == 1 && !isOne(0)) bias = lengthened(bias, padding.n, 0);
    if (padding.m != 0 && rank == 2 && !isOne(0)) bias = lengthened(bias, padding.m, 0);
    return bias;
}

}  // namespace

Value buildPadded(GraphBuilder& builder, ProductKind kind, const PaddedOperands& operands, const Padding& padding) {
    const bool batched = kind == ProductKind::Bmm;
    const Value mat1 = operands.mat1Ready ? operands.mat1 : padded(operands.mat1, padding.k, padding.m, batched);
    const Value mat2 = operands.mat2Ready ? operands.mat2 : padded(operands.mat2, padding.n, padding.k, batched);
    Value result;
    if (kind == ProductKind::Addmm) {
        const Value bias = paddedBias(operands.bias, padding);
        result = builder.call("aten.addmm.default", {bias, mat1, mat2}, {{"beta", operands.beta}, {"alpha", operands.alpha}});
    } else {
        result = builder.call(batched ? "aten.bmm.default" : "aten.mm.default", {mat1, mat2});
    }
    const int64_t row = batched ? 1 : 0;
    if (padding.m != 0) result = builder.call("aten.slice.Tensor", {result, row, 0, -padding.m});
    if (padding.n != 0) result = builder.call("aten.slice.Tensor", {result, row + 1, 0, -padding.n});
    return result;
}

// ---------------------------------------------------------------- PAD-5, PAD-6

namespace {

/// What a view is a view of. PyTorch's search means to look through getitem too, but compares the node's kind with the function,
/// so it never does (H-10): the pieces of a split count as computed, even those of an input.
const Node& producerOf(const Node& value) {
    const Node* node = &value;
    while (node->isCall() && (node->is(Tag::View) || node->isCall("aten.reshape.default")) && !node->isCall("operator.getitem") && !node->inputs().empty())
        node = node->inputs()[0];
    return *node;
}
/// The operand can be made with its padding at no cost: by whoever makes it.
bool isPrePadded(const Match& match, std::string_view name) {
    if (!match.tensor(name).isContiguous()) return false;
    const Node& producer = producerOf(match.node(name));
    for (const std::string_view op : {"aten.mm.default", "aten.convolution.default", "aten.convolution_backward.default", "aten.bmm.default", "aten.addmm.default",
                                      "aten._scaled_dot_product_flash_attention.default", "aten._scaled_dot_product_efficient_attention.default"})
        if (producer.isCall(op)) return false;
    constexpr size_t kMaxPointwiseCatInputs = 8;
    if (producer.isCall("aten.cat.default") && producer.inputs().size() > kMaxPointwiseCatInputs) return false;
    return !producer.isPlaceholder();
}

std::string sizesText(const SymDims& sizes) {
    std::string out;
    for (const SymInt& size : sizes) out += (out.empty() ? "" : ", ") + printArgument(Argument(size));
    return out;
}
std::string tensorKey(const TensorType& type) {
    const std::string strides = sizesText(type.strides) + (type.strides.size() == 1 ? "," : "");
    return "(torch.Size([" + sizesText(type.sizes) + "]), (" + strides + "), " + printArgument(Argument(type.dtype)) + ")";
}
std::string_view packetOf(ProductKind kind) {
    return kind == ProductKind::Mm ? "aten.mm" : kind == ProductKind::Bmm ? "aten.bmm" : "aten.addmm";
}

/// What is known of the device, from the settings of pad_mm or else those of `device`.
double deviceFact(const Match& match, const std::string& key, double fallback) {
    for (const char* name : {"pad_mm", "device"})
        if (const OptionalPass* given = match.options().enabled(name))
            for (const auto& [setting, value] : given->settings)
                if (setting == key) return given->number(key, fallback);
    return fallback;
}

const OptionalPass& settingsOf(const Match& match) {
    static const OptionalPass kDefaults;
    const OptionalPass* given = match.options().enabled("pad_mm");
    return given ? *given : kDefaults;
}

}  // namespace

std::string paddingKey(const Match& match, ProductKind kind, bool base) {
    const auto exclusion = [&](std::string_view name) -> std::string {
        return base ? "None" : std::string("'exclude_pad:") + (isPrePadded(match, name) ? "True" : "False") + "'";
    };
    const TensorType& mat1 = match.tensor("mat1");
    const std::string tf32 = mat1.dtype != DType::F32 ? "None" : settingsOf(match).flag("tf32", false) ? "True" : "False";
    return std::string(base ? "base mm time: " : "") + "(" + tensorKey(mat1) + ", " + tensorKey(match.tensor("mat2")) + ", " + exclusion("mat1") + ", " +
           exclusion("mat2") + ", <OpOverloadPacket(op='" + std::string(packetOf(kind)) + "')>, " +
           (kind == ProductKind::Addmm ? tensorKey(match.tensor("bias")) : "None") + ", " + tf32 + ")";
}

// ---------------------------------------------------------------- PAD-3, PAD-4

namespace {

/// Decisions and times that were measured; for all sessions of the program.
class Measured {
  public:
    std::optional<double> find(const std::string& key) {
        const std::lock_guard lock(m_mutex);
        const auto found = m_values.find(key);
        return found == m_values.end() ? std::nullopt : std::optional(found->second);
    }
    void keep(const std::string& key, double value) {
        const std::lock_guard lock(m_mutex);
        m_values[key] = value;
    }

  private:
    std::mutex m_mutex;
    std::map<std::string, double> m_values;   // decisions as 0 and 1, times in milliseconds
};
Measured& measured() {
    static Measured values;
    return values;
}

/// The decision of a file; nothing if it does not have one or cannot be read, which `problem` then says.
std::optional<bool> decisionOfFile(const std::string& path, const std::string& key, std::string& problem) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
        problem = "the file of decisions '" + path + "' cannot be read";
        return std::nullopt;
    }
    const auto document = parseJson(text.str(), path);
    const auto cache = document ? (*document)->root.find("cache") : std::nullopt;
    if (!cache || !cache->isObject()) {
        problem = "'" + path + "' is no file of decisions";
        return std::nullopt;
    }
    const auto value = cache->find(key);
    return value ? value->flag() : std::nullopt;
}

double dimOf(const SymInt& size) { return static_cast<double>(size.value()); }

/// The sizes of one product, without its batch.
struct ProductSizes {
    double m, k, n;
};
ProductSizes sizesOf(const Match& match, ProductKind kind) {
    const size_t row = kind == ProductKind::Bmm ? 1 : 0;
    const SymDims &first = match.tensor("mat1").sizes, &second = match.tensor("mat2").sizes;
    return {dimOf(first[row]), dimOf(first[row + 1]), dimOf(second[row + 1])};
}

bool isComputeBound(const Match& match, DType dtype, const ProductSizes& size) {
    const double moved = size.m * size.k + size.n * size.k + size.m * size.n;
    if (moved == 0) return false;
    if (dtype == DType::BF16 && size.k > size.m && size.k > size.n && deviceFact(match, "capability", 9.0) < 9.0) return true;
    const double tflops = deviceFact(match, "tflops", 0), bandwidth = deviceFact(match, "dram_gbps", 0);
    if (tflops <= 0 || bandwidth <= 0) return true;
    const double balance = 0.5 * 1000 * tflops / bandwidth;
    return size.m * size.n * size.k / moved > balance;
}

/// Why padding is out of the question (PAD-3).
std::string_view unlessPossible(const Match& match, ProductKind kind, const OptionalPass& settings) {
    if (!settings.flag("shape_padding", true)) return "padding is switched off (shape_padding)";
    if (!match.isTensor("mat1") || !match.isTensor("mat2")) return "the operands are not tensors";
    const TensorType &mat1 = match.tensor("mat1"), &mat2 = match.tensor("mat2");
    const bool onGpu = mat1.device.type == DeviceType::Cuda && mat2.device.type == DeviceType::Cuda;
    if (!onGpu && !settings.flag("any_device", false)) return "products are padded on the GPU only";
    if (!isFloating(mat1.dtype) || !isFloating(mat2.dtype)) return "the operands do not hold floating-point numbers";
    for (const std::string_view name : {"mat1", "mat2", "bias"}) {
        if (name == "bias" && kind != ProductKind::Addmm) continue;
        if (!match.isTensor(name)) return "an operand is not a tensor";
        const SymDims& sizes = match.tensor(name).sizes;
        if (std::none_of(sizes.begin(), sizes.end(), [](const SymInt& size) { return size.isInt(); })) return "all sizes of an operand are symbolic, or it has none";
        if (name != "bias" && std::any_of(sizes.begin(), sizes.end(), [](const SymInt& size) { return size == SymInt(0); })) return "an operand is empty";
    }
    const Padding padding = paddingOf(kind, mat1, mat2);
    if (padding.m == 0 && padding.k == 0 && padding.n == 0) return "every size is a multiple of the alignment, symbolic, or 1";
    if (settings.flag("deterministic", false) && !settings.flag("force_shape_pad", false)) return "what would have to be measured is not done (deterministic)";
    return "";
}

/// The text of a graph of this one product, to be timed. Operands that are made with their padding come padded.
std::optional<std::string> timedGraph(const Match& match, ProductKind kind, const Padding& padding) {
    Module module;
    GraphBuilder builder(module.graph());
    PaddedOperands operands;
    const bool pads = padding.m != 0 || padding.k != 0 || padding.n != 0;
    const int64_t row = kind == ProductKind::Bmm ? 1 : 0;
    const auto operand = [&](std::string_view name, int64_t first, int64_t second, bool ready) {
        TensorType type = match.tensor(name);
        if (ready) {
            SymDims sizes = type.sizes;
            sizes[static_cast<size_t>(row)] = sizes[static_cast<size_t>(row)] + first;
            sizes[static_cast<size_t>(row) + 1] = sizes[static_cast<size_t>(row) + 1] + second;
            type = TensorType::contiguous(type.dtype, std::move(sizes), type.device);
        }
        return builder.value(module.graph().placeholder(std::string(name), std::move(type)));
    };
    if (kind == ProductKind::Addmm) operands.bias = builder.value(module.graph().placeholder("bias", match.tensor("bias")));
    operands.mat1Ready = pads && isPrePadded(match, "mat1");
    operands.mat2Ready = pads && isPrePadded(match, "mat2");
    operands.mat1 = operand("mat1", padding.m, padding.k, operands.mat1Ready);
    operands.mat2 = operand("mat2", padding.k, padding.n, operands.mat2Ready);
    const Value result = buildPadded(builder, kind, operands, padding);
    if (builder.error()) return std::nullopt;
    module.graph().output(Argument(std::vector<Argument>{result}));
    return printText(module, {.comments = false}).text;
}

std::string milliseconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g ms", value);
    return text;
}

/// Measures both ways (PAD-4, 6); nothing if nobody can.
std::optional<bool> measure(const Match& match, ProductKind kind, const std::string& key) {
    const auto& timer = match.options().timeGraph;
    if (!timer) return std::nullopt;
    const std::string baseKey = paddingKey(match, kind, true);
    std::optional<double> plain = measured().find(baseKey);
    if (!plain) {
        if (const auto graph = timedGraph(match, kind, {})) plain = timer(*graph);
        if (plain) measured().keep(baseKey, *plain);
    }
    std::optional<double> padded;
    if (const auto graph = timedGraph(match, kind, paddingOf(kind, match.tensor("mat1"), match.tensor("mat2")))) padded = timer(*graph);
    if (!plain || !padded) return std::nullopt;
    const OptionalPass* given = match.options().enabled("shape_padding_multiplier");
    const bool pays = *plain > *padded * (given ? given->number("value", 1.1) : 1.1);
    measured().keep(key, pays ? 1 : 0);
    match.note("measured " + milliseconds(*plain) + " as it is, " + milliseconds(*padded) + " padded");
    return pays;
}

}  // namespace

std::string_view unlessPadded(const Match& match, ProductKind kind) {
    const OptionalPass& settings = settingsOf(match);
    if (const std::string_view refusal = unlessPossible(match, kind, settings); !refusal.empty()) return refusal;
    if (settings.flag("force_shape_pad", false)) {
        match.note("it is forced (force_shape_pad)");
        return "";
    }
    for (const std::string_view name : {"mat1", "mat2"})
        if (!allInts(match.tensor(name).sizes)) return "a size is symbolic, so whether padding pays is not known";
    const ProductSizes size = sizesOf(match, kind);
    const DType dtype = match.tensor("mat1").dtype;
    if (const OptionalPass* large = match.options().enabled("pad_aten_mm_pass");
        large && dtype == DType::BF16 && size.k > size.m && size.k > size.n && static_cast<int64_t>(size.n) % 2 == 1 &&
        size.k >= large->number("k_threshold_to_pad", 8388608) && deviceFact(match, "capability", 9.0) < 9.0) {
        match.note("the shared dim is long (pad_aten_mm_pass)");
        return "";
    }
    if (!isComputeBound(match, dtype, size)) return "the product waits for memory, not for arithmetic";
    const std::string key = paddingKey(match, kind);
    std::optional<bool> decision;
    std::string problem;
    for (const auto& [name, path] : settings.settings)
        if (name == "decisions" && !decision) decision = decisionOfFile(path, key, problem);
    if (decision) {
        match.note("the file of decisions has it under " + key);
    } else if (const auto known = measured().find(key)) {
        decision = *known != 0;
        match.note("measured before, for " + key);
    } else {
        decision = measure(match, kind, key);
    }
    if (decision) return *decision ? "" : "padding does not pay";
    match.note(problem.empty() ? "nothing can measure it; decide with --enable pad_mm=force_shape_pad:1 or a file of decisions that has " + key : problem);
    return "whether padding pays is not known";
}

}  // namespace cutaway
