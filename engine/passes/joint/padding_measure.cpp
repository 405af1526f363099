#include "engine/passes/joint/padding_measure.h"

#include <cstdio>
#include <limits>

#include "cutaway/files.h"
#include "engine/formats/json.h"
#include "engine/interpret/specialize.h"
#include "engine/text/print.h"

namespace cutaway {
namespace {

/// The decision of a file; nothing if it does not have one or cannot be read, which `problem` then says.
std::optional<bool> decisionOfFile(const std::string& path, const std::string& key, std::string& problem) {
    const auto text = readTextFile(path, kMaxSettingsFile);
    if (!text) {
        problem = "the file of decisions " + text.error().text();
        return std::nullopt;
    }
    const auto document = parseJson(*text, path);
    const auto cache = document ? (*document)->root.find("cache") : std::nullopt;
    if (!cache || !cache->isObject()) {
        problem = "'" + path + "' is not a file of decisions";
        return std::nullopt;
    }
    const auto value = cache->find(key);
    return value ? value->flag() : std::nullopt;
}

/// The type with example values for its symbols.
TensorType exampleType(const Match& match, TensorType type) {
    for (SymDims* dims : {&type.sizes, &type.strides})
        for (SymInt& dim : *dims) dim = valueFor(dim, match.context().sizeHints).value_or(1);
    type.offset = 0;
    return type;
}

/// Writes zeros into the padding of an operand that comes padded, as its maker would have to. Not where a length is 0,
/// since PyTorch's slice would then start at the beginning.
void zeroCorner(GraphBuilder& builder, const Value& operand, int64_t row, int64_t first, int64_t second) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    Value corner = operand;
    if (first != 0) corner = builder.call("aten.slice.Tensor", {corner, row, -first, kEnd});
    if (second != 0) corner = builder.call("aten.slice.Tensor", {corner, row + 1, -second, kEnd});
    builder.call("aten.fill_.Scalar", {corner, 0});
}

/// The text of a graph of this one product, to be timed. Operands that are made with their padding come padded.
std::optional<std::string> timedGraph(const Match& match, ProductKind kind, const Padding& padding) {
    Module module;
    GraphBuilder builder(module.graph());
    PaddedOperands operands;
    const bool pads = padding.m != 0 || padding.k != 0 || padding.n != 0;
    const int64_t row = kind == ProductKind::Bmm ? 1 : 0;
    const auto operand = [&](std::string_view name, int64_t first, int64_t second, bool& ready) {
        TensorType type = exampleType(match, match.tensor(name));
        ready = pads && (first != 0 || second != 0) && isPrePadded(match, name);
        if (ready) {
            type.sizes[static_cast<size_t>(row)] = type.sizes[static_cast<size_t>(row)] + first;
            type.sizes[static_cast<size_t>(row) + 1] = type.sizes[static_cast<size_t>(row) + 1] + second;
            type = TensorType::contiguous(type.dtype, type.sizes, type.device);
        }
        return builder.value(module.graph().placeholder(std::string(name), std::move(type)));
    };
    if (kind == ProductKind::Addmm)
        operands.bias = builder.value(module.graph().placeholder("bias", exampleType(match, match.tensor("bias"))));
    operands.mat1 = operand("mat1", padding.m, padding.k, operands.mat1Ready);
    operands.mat2 = operand("mat2", padding.k, padding.n, operands.mat2Ready);
    // Compiled graphs for the CPU do not mutate; there the corner's few numbers are left out.
    if (operands.mat1.type().device.type == DeviceType::Cuda) {
        if (operands.mat1Ready) zeroCorner(builder, operands.mat1, row, padding.m, padding.k);
        if (operands.mat2Ready) zeroCorner(builder, operands.mat2, row, padding.k, padding.n);
    }
    const Value result = buildPadded(builder, kind, operands, padding);
    if (builder.error()) return std::nullopt;
    module.graph().output(Argument(std::vector<Argument>{result}));
    return printText(module, {.comments = false}).text;
}

/// Not kept by PyTorch; explains later why a decision was made.
const std::string kPaddedTime = "padded mm time: ";

std::string milliseconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g ms", value);
    return text;
}

/// Measures both ways (PAD-4, 6); no answer if nobody can.
PaddingAnswer measure(const Match& match, ProductKind kind, const std::string& key, const PassContext& measured) {
    const std::string baseKey = paddingKey(match, kind, true);
    std::optional<double> plain = measured.recall(baseKey);
    if (!plain) {
        if (const auto graph = timedGraph(match, kind, {})) plain = measured.timeGraph(*graph);
        if (plain) measured.remember(baseKey, *plain);
    }
    std::optional<double> padded;
    if (const auto graph =
            plain ? timedGraph(match, kind, paddingOf(kind, match.tensor("mat1"), match.tensor("mat2"))) : std::nullopt)
        padded = measured.timeGraph(*graph);
    if (!plain || !padded) return {};
    const OptionalPass* given = match.request().enabled("shape_padding_multiplier");
    const bool pays = *plain > *padded * (given ? given->number("value", 1.1) : 1.1);
    measured.remember(key, pays ? 1 : 0);
    measured.remember(kPaddedTime + key, *padded);
    return {pays, "measured " + milliseconds(*plain) + " as it is, " + milliseconds(*padded) + " padded"};
}

/// The sentence about a decision that was made before.
std::string knownNote(const Match& match, ProductKind kind, const std::string& key, const PassContext& measured) {
    const auto plain = measured.recall(paddingKey(match, kind, true)), padded = measured.recall(kPaddedTime + key);
    return "measured before" +
           (plain && padded ? ", " + milliseconds(*plain) + " as it is, " + milliseconds(*padded) + " padded"
                            : std::string()) +
           ", for " + key;
}

}  // namespace

PaddingAnswer decidePadding(const Match& match, ProductKind kind, const OptionalPass& settings) {
    const std::string key = paddingKey(match, kind);
    std::string problem;
    for (const auto& [name, path] : settings.settings)
        if (name == "decisions")
            if (const auto decision = decisionOfFile(path, key, problem))
                return {decision, "the file of decisions has it under " + key};
    const PassContext& measured = match.context();
    if (const auto known = measured.recall(key)) return {*known != 0, knownNote(match, kind, key, measured)};
    PaddingAnswer answer = measure(match, kind, key, measured);
    if (!answer.pays)
        answer.note =
            problem.empty()
                ? "nothing can measure it; decide with --enable pad_mm=force_shape_pad:1 or a file of decisions that has " +
                      key
                : problem;
    return answer;
}

}  // namespace cutaway
