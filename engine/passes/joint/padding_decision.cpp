#include "engine/passes/joint/padding_decision.h"

#include <algorithm>

#include "engine/interpret/specialize.h"
#include "engine/passes/joint/padding_measure.h"
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
    return {paddedLength(mat1.sizes[row], first), paddedLength(mat1.sizes[row + 1], first),
            paddedLength(mat2.sizes[row + 1], second)};
}

// ---------------------------------------------------------------- PAD-7

namespace {

Value padded(const Value& x, int64_t last, int64_t beforeLast, bool batched) {
    if (last == 0 && beforeLast == 0) return x;
    std::vector<Argument> amounts = {0, last, 0, beforeLast};
    if (batched) amounts.insert(amounts.end(), {0, 0});
    return x.builder().call("aten.constant_pad_nd.default", {x, Argument(std::move(amounts))});
}
/// x with `by` zeros appended along the dim.
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
        result = builder.call("aten.addmm.default", {bias, mat1, mat2},
                              {{"beta", operands.beta}, {"alpha", operands.alpha}});
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

/// The tensor that a view is a view of. PyTorch intends to look through getitem, too, but compares the node's kind with
/// the function, so it never does (H-10): pieces of a split count as computed, even those of an input.
const Node& producerOf(const Node& value) {
    const Node* node = &value;
    while (node->isCall() && (node->is(Tag::View) || node->isCall("aten.reshape.default")) &&
           !node->isCall("operator.getitem") && !node->inputs().empty())
        node = node->inputs()[0];
    return *node;
}
}  // namespace

bool isPrePadded(const Match& match, std::string_view name) {
    if (!match.tensor(name).isContiguous()) return false;
    const Node& producer = producerOf(match.node(name));
    for (const std::string_view op :
         {"aten.mm.default", "aten.convolution.default", "aten.convolution_backward.default", "aten.bmm.default",
          "aten.addmm.default", "aten._scaled_dot_product_flash_attention.default",
          "aten._scaled_dot_product_efficient_attention.default"})
        if (producer.isCall(op)) return false;
    constexpr size_t kMaxPointwiseCatInputs = 8;
    if (producer.isCall("aten.cat.default") && producer.inputs().size() > kMaxPointwiseCatInputs) return false;
    return !producer.isPlaceholder();
}

namespace {

std::string sizesText(const SymDims& sizes) {
    std::string out;
    for (const SymInt& size : sizes) out += (out.empty() ? "" : ", ") + printArgument(Argument(size));
    return out;
}
std::string tensorKey(const TensorType& type) {
    const std::string strides = sizesText(type.strides) + (type.strides.size() == 1 ? "," : "");
    return "(torch.Size([" + sizesText(type.sizes) + "]), (" + strides + "), " + printArgument(Argument(type.dtype)) +
           ")";
}
std::string_view packetOf(ProductKind kind) {
    return kind == ProductKind::Mm ? "aten.mm" : kind == ProductKind::Bmm ? "aten.bmm" : "aten.addmm";
}

/// What is known of the device: from the settings of pad_mm, those of `device`, or the device itself.
double deviceFact(const Match& match, const std::string& key, double fallback) {
    for (const char* name : {"pad_mm", "device"})
        if (const OptionalPass* given = match.request().enabled(name))
            for (const auto& [setting, value] : given->settings)
                if (setting == key) return given->number(key, fallback);
    if (const auto fact = match.context().deviceFact(key)) return *fact;
    return fallback;
}

const OptionalPass& settingsOf(const Match& match) {
    static const OptionalPass kDefaults;
    const OptionalPass* given = match.request().enabled("pad_mm");
    return given ? *given : kDefaults;
}
/// Whether f32 products are rounded to TF32.
bool mayRound(const Match& match) { return settingsOf(match).flag("tf32", match.request().tf32 == Tf32::All); }

}  // namespace

std::string paddingKey(const Match& match, ProductKind kind, bool base) {
    const auto exclusion = [&](std::string_view name) -> std::string {
        return base ? "None" : std::string("'exclude_pad:") + (isPrePadded(match, name) ? "True" : "False") + "'";
    };
    const TensorType& mat1 = match.tensor("mat1");
    const std::string tf32 = mat1.dtype != DType::F32 ? "None" : mayRound(match) ? "True" : "False";
    return std::string(base ? "base mm time: " : "") + "(" + tensorKey(mat1) + ", " + tensorKey(match.tensor("mat2")) +
           ", " + exclusion("mat1") + ", " + exclusion("mat2") + ", <OpOverloadPacket(op='" +
           std::string(packetOf(kind)) + "')>, " +
           (kind == ProductKind::Addmm ? tensorKey(match.tensor("bias")) : "None") + ", " + tf32 + ")";
}

// ---------------------------------------------------------------- PAD-3, PAD-4

namespace {

/// The size, or the example that the graph gives of it.
std::optional<int64_t> exampleOf(const Match& match, const SymInt& size) {
    return valueFor(size, match.context().sizeHints);
}
bool haveExamples(const Match& match, const SymDims& sizes) {
    return std::all_of(sizes.begin(), sizes.end(),
                       [&](const SymInt& size) { return exampleOf(match, size).has_value(); });
}

/// The sizes of one product, without its batch.
struct ProductSizes {
    double m, k, n;
};
ProductSizes sizesOf(const Match& match, ProductKind kind) {
    const size_t row = kind == ProductKind::Bmm ? 1 : 0;
    const SymDims &first = match.tensor("mat1").sizes, &second = match.tensor("mat2").sizes;
    const auto number = [&](const SymInt& size) { return static_cast<double>(exampleOf(match, size).value_or(0)); };
    return {number(first[row]), number(first[row + 1]), number(second[row + 1])};
}

bool isComputeBound(const Match& match, DType dtype, const ProductSizes& size) {
    const double moved = size.m * size.k + size.n * size.k + size.m * size.n;
    if (moved == 0) return false;
    if (dtype == DType::BF16 && size.k > size.m && size.k > size.n && deviceFact(match, "capability", 9.0) < 9.0)
        return true;
    const bool tf32 = dtype == DType::F32 && mayRound(match);
    const std::string rate = tf32 ? "tflops_tf32" : "tflops_" + std::string(info(dtype).abbreviation);
    const double known = deviceFact(match, rate, 0);
    const double tflops =
        deviceFact(match, "tflops", match.parity() ? deviceFact(match, rate + "_parity", known) : known);
    const double bandwidth = deviceFact(match, "dram_gbps", 0);
    if (tflops <= 0 || bandwidth <= 0) return true;
    const double balance = 0.5 * 1000 * tflops / bandwidth;
    return size.m * size.n * size.k / moved > balance;
}

/// Why padding is out of the question (PAD-3).
std::string_view unlessPossible(const Match& match, ProductKind kind, const OptionalPass& settings) {
    if (!settings.flag("shape_padding", true)) return "padding is switched off (shape_padding)";
    if (!match.isTensor("mat1") || !match.isTensor("mat2")) return "{mat1} and {mat2} are not both tensors";
    const TensorType &mat1 = match.tensor("mat1"), &mat2 = match.tensor("mat2");
    const bool onGpu = mat1.device.type == DeviceType::Cuda && mat2.device.type == DeviceType::Cuda;
    if (!onGpu && !settings.flag("any_device", false))
        return "products are padded on the GPU only, and {mat1} is {mat1:type}, {mat2} {mat2:type}";
    if (!isFloating(mat1.dtype) || !isFloating(mat2.dtype))
        return "{mat1} and {mat2}, {mat1:type} and {mat2:type}, do not both hold floating-point numbers";
    for (const std::string_view name : {"mat1", "mat2", "bias"}) {
        if (name == "bias" && kind != ProductKind::Addmm) continue;
        match.note(constantText(match[name]) + (match.isTensor(name) ? ", " + match.tensor(name).text() : ""));
        if (!match.isTensor(name)) return "an operand is not a tensor";
        const TensorType& type = match.tensor(name);
        const SymDims& sizes = type.sizes;
        if (std::none_of(sizes.begin(), sizes.end(), [](const SymInt& size) { return size.isInt(); }))
            return "all sizes of an operand are symbolic, or it has none";
        if (!haveExamples(match, sizes) || !haveExamples(match, type.strides))
            return "a size is symbolic, and the graph gives no example of it";
        if (name != "bias" &&
            std::any_of(sizes.begin(), sizes.end(), [&](const SymInt& size) { return exampleOf(match, size) == 0; }))
            return "an operand is empty";
    }
    match.note({});
    const Padding padding = paddingOf(kind, mat1, mat2);
    if (padding.m == 0 && padding.k == 0 && padding.n == 0)
        return "every size of {mat1}, {mat1:type}, and {mat2}, {mat2:type}, is a multiple of the alignment, symbolic, or 1";
    if (settings.flag("deterministic", false) && !settings.flag("force_shape_pad", false))
        return "what would have to be measured is not done (deterministic)";
    return "";
}

}  // namespace

std::string_view unlessPadded(const Match& match, ProductKind kind) {
    const OptionalPass& settings = settingsOf(match);
    if (const std::string_view refusal = unlessPossible(match, kind, settings); !refusal.empty()) return refusal;
    if (settings.flag("force_shape_pad", false)) {
        match.note("it is forced (force_shape_pad)");
        return "";
    }
    const ProductSizes size = sizesOf(match, kind);
    const DType dtype = match.tensor("mat1").dtype;
    if (const OptionalPass* large = match.request().enabled("pad_aten_mm_pass");
        large && dtype == DType::BF16 && size.k > size.m && size.k > size.n && static_cast<int64_t>(size.n) % 2 == 1 &&
        size.k >= large->number("k_threshold_to_pad", 8388608) && deviceFact(match, "capability", 9.0) < 9.0) {
        match.note("the shared dim is long (pad_aten_mm_pass)");
        return "";
    }
    if (!isComputeBound(match, dtype, size))
        return "the product of {mat1:type} and {mat2:type} waits for memory, not for arithmetic";
    const PaddingAnswer answer = decidePadding(match, kind, settings);
    if (!answer.note.empty()) match.note(answer.note);
    return !answer.pays ? "whether padding pays is not known" : *answer.pays ? "" : "padding does not pay";
}

}  // namespace cutaway
