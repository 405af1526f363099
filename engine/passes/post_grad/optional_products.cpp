#include "engine/passes/post_grad/optional_products.h"

#include <algorithm>
#include <cmath>

#include "engine/rewrite/matcher.h"

namespace cutaway {
namespace {

const OptionalPass& settingsOf(const Match& m, const std::string& name) {
    static const OptionalPass kDefaults;
    const OptionalPass* given = m.request().enabled(name);
    return given ? *given : kDefaults;
}

// ---------------------------------------------------------------- decompose_mm_pass

/// Limits on sizes as the settings give them.
class SizeLimits {
  public:
    explicit SizeLimits(const Match& m)
        : m_match(m),
          m_settings(settingsOf(m, "decompose_mm_pass")),
          m_lenient(m_settings.flag("skip_dynamic_shape_dim_check", false)) {}
    int64_t gpuFirst() const { return setting("min_first_dimension_decomposition", 10240); }
    int64_t gpuOther() const { return setting("max_other_dimension_decomposition", 32); }
    int64_t cpuFirst() const { return setting("cpu_max_first_dimension_decomposition", 1); }
    int64_t cpuOther() const { return setting("cpu_max_other_dimension_decomposition", 2048); }
    bool atLeast(const SymInt& size, int64_t limit) const {
        return (size.isInt() ? size.value() >= limit : m_lenient) || failed(size, "at least", limit);
    }
    bool atMost(const SymInt& size, int64_t limit) const {
        return (size.isInt() ? size.value() <= limit : m_lenient || knownLessEqual(size, limit)) ||
               failed(size, "at most", limit);
    }

  private:
    /// Says which size it is that does not keep to its limit.
    bool failed(const SymInt& size, const char* relation, int64_t limit) const {
        m_match.note("it is " + size.text() + ", and must be " + relation + " " + std::to_string(limit));
        return false;
    }
    int64_t setting(const std::string& key, int64_t fallback) const {
        return static_cast<int64_t>(m_settings.number(key, static_cast<double>(fallback)));
    }
    const Match& m_match;
    const OptionalPass& m_settings;
    bool m_lenient;
};

std::string_view unlessMatrixWaitsForMemory(const Match& m) {
    if (!m.isTensor("a") || !m.isTensor("b")) return "{a} and {b} are not both tensors";
    const TensorType &a = m.tensor("a"), &b = m.tensor("b");
    if (a.device.type != b.device.type) return "{a} and {b} are on different devices: {a:type} and {b:type}";
    const SizeLimits limits(m);
    const bool gpu = a.device.type == DeviceType::Cuda;
    if (gpu && !limits.atLeast(a.sizes[0], limits.gpuFirst())) return "{a}, {a:type}, has too few rows";
    if (!gpu && !limits.atMost(a.sizes[0], limits.cpuFirst())) return "{a}, {a:type}, has too many rows";
    for (const SymInt& size : b.sizes)
        if (!limits.atMost(size, gpu ? limits.gpuOther() - 1 : limits.cpuOther()))
            return "{b}, {b:type}, has too large a size";
    m.note(a.text() + " and " + b.text());
    return "";
}
std::string_view unlessSumWaitsForMemory(const Match& m) {
    if (!m.parity() && (m["alpha"].asReal() != 1.0 || m["beta"].asReal() != 1.0))
        return "factors would have to be applied: beta is {beta}, alpha {alpha}";
    return unlessMatrixWaitsForMemory(m);
}
std::string_view unlessBatchWaitsForMemory(const Match& m) {
    if (!m.isTensor("a") || !m.isTensor("b")) return "{a} and {b} are not both tensors";
    const TensorType &a = m.tensor("a"), &b = m.tensor("b");
    if (a.device.type != b.device.type) return "{a} and {b} are on different devices: {a:type} and {b:type}";
    const SizeLimits limits(m);
    const bool gpu = a.device.type == DeviceType::Cuda;
    if (!gpu && !(limits.atMost(a.sizes[0], limits.cpuFirst()) && limits.atMost(b.sizes[0], limits.cpuFirst())))
        return "{a} and {b}, {a:type} and {b:type}, have too many batches";
    if (gpu && !limits.atLeast(a.sizes[0], limits.gpuFirst())) return "{a}, {a:type}, has too few batches";
    const int small = limits.atMost(a.sizes[1], limits.gpuOther() - 1) +
                      limits.atMost(a.sizes[2], limits.gpuOther() - 1) +
                      limits.atMost(b.sizes[2], limits.gpuOther() - 1);
    if (gpu && small < 2)
        return "the matrices of {a} and {b}, {a:type} and {b:type}, have two sizes that are too large";
    m.note(a.text() + " and " + b.text());
    return "";
}

/// sum over k of a[.., m, k] * b[.., k, n].
Value summedProducts(const Match& m, GraphBuilder& builder) {
    const Value a = builder.value(m.node("a")), b = builder.value(m.node("b"));
    const Value left = unsqueeze(a, a.rank()),
                right = unsqueeze(b, b.rank() - 2);  // not within left * right: C++ leaves that order open
    return convert(sum(left * right, {-2}, false), a.dtype());
}
Values buildSummed(const Match& m, GraphBuilder& builder) { return summedProducts(m, builder); }
Values buildSummedWithBias(const Match& m, GraphBuilder& builder) {
    return summedProducts(m, builder) + builder.value(m.node("bias"));
}

constexpr std::string_view kWaits = "the product waits for memory anyway, and its parts fuse with their neighbours";
constexpr Rule kDecompose[] = {
    {.name = "decompose_bmm",
     .find = "y = aten.bmm.default(a, b); return y",
     .build = buildSummed,
     .unless = unlessBatchWaitsForMemory,
     .why = kWaits},
    {.name = "decompose_addmm",
     .find = "y = aten.addmm.default(bias, a, b, beta=$beta, alpha=$alpha); return y",
     .build = buildSummedWithBias,
     .unless = unlessSumWaitsForMemory,
     .why = kWaits},
    {.name = "decompose_mm",
     .find = "y = aten.mm.default(a, b); return y",
     .build = buildSummed,
     .unless = unlessMatrixWaitsForMemory,
     .why = kWaits},
};

// ---------------------------------------------------------------- mm_plus_mm

std::string_view unlessShapesAgree(const Match& m) {
    if (m["p"].node() == m["q"].node()) return "{p} is added to itself";
    if (!m.parity() && m["alpha"].asReal() != 1.0) return "{q} is scaled by {alpha}";
    return m.tensor("p").sizes == m.tensor("q").sizes && m.tensor("p").dtype == m.tensor("q").dtype
               ? ""
               : "{p} and {q} differ in shape or dtype: {p:type} and {q:type}";
}
constexpr Rule kAdded[] = {
    {.name = "mm_plus_mm",
     .find = "p = aten.mm.default(a, b); q = aten.mm.default(c, d); y = aten.add.Tensor(p, q, alpha=$alpha); return y",
     .replace = "y = torch__inductor_fx_passes_post_grad_mm_plus_mm(a, b, c, d); return y",
     .unless = unlessShapesAgree,
     .why = "one kernel adds both products while they are in registers"},
};

// ---------------------------------------------------------------- partitioned_scatter

/// The only index of the call and the dim that it is for.
struct OnlyIndex {
    const Node* node = nullptr;
    size_t dim = 0;
};
OnlyIndex onlyIndex(const Match& m) {
    OnlyIndex out;
    const auto* items = m["indices"].list();
    if (items == nullptr) return {};
    for (size_t i = 0; i < items->size(); ++i) {
        const Node* node = (*items)[i].node();
        if (node == nullptr) continue;
        if (out.node) return {};
        out = {node, i};
    }
    return out;
}

int64_t partitionsFor(const Match& m, int64_t outputs, int64_t indices) {
    const OptionalPass& settings = settingsOf(m, "partitioned_scatter");
    const auto least = static_cast<int64_t>(settings.number("min_partitions", 2)),
               most = static_cast<int64_t>(settings.number("max_partitions", 128));
    int64_t bySize = most;
    for (const auto& [elements, parts] : {std::pair{1'000'000, 16}, {10'000'000, 8}, {100'000'000, 4}})
        if (outputs >= elements) bySize = parts;
    const int64_t wanted = std::max(
        least, static_cast<int64_t>(std::sqrt(static_cast<double>(indices) / static_cast<double>(outputs)) * 16));
    int64_t partitions = 1;
    while (partitions < wanted && partitions < (int64_t{1} << 32)) partitions *= 2;
    partitions = std::min({partitions, bySize, most});
    const double memory = settings.number("memory_bytes", 0);
    const double copy = static_cast<double>(outputs) * static_cast<double>(byteSize(m.tensor("x").dtype));
    while (memory > 0 && partitions >= least &&
           copy * static_cast<double>(partitions - 1) > memory * settings.number("memory_budget", 0.1))
        partitions /= 2;
    return partitions >= least ? partitions : 0;
}

std::string_view unlessContended(const Match& m) {
    const OnlyIndex index = onlyIndex(m);
    if (index.node == nullptr || !index.node->type().tensor()) return "there is not exactly one index: {indices}";
    if (!m.isTensor("x") || !m.isTensor("values")) return "{x} and {values} are not both tensors";
    const TensorType &x = m.tensor("x"), &at = index.node->tensor(), &values = m.tensor("values");
    if (!allInts(x.sizes) || !allInts(at.sizes) || !allInts(values.sizes))
        return "a size of {x:type}, {values:type} or of the index {indices} is symbolic";
    if (x.dtype == DType::Bool || at.dtype == DType::Bool || at.dtype == DType::U8)
        return "{x}, {x:type}, or the index {indices} is a mask";
    const int64_t outputs = numel(x.sizes).value(), count = numel(at.sizes).value();
    if (outputs == 0 || count == 0) return "{x}, {x:type}, or the index {indices} is empty";
    if (static_cast<double>(count) < settingsOf(m, "partitioned_scatter").number("min_index_size", 4096)) {
        m.note(
            std::to_string(count) + ", and min_index_size is " +
            std::to_string(static_cast<int64_t>(settingsOf(m, "partitioned_scatter").number("min_index_size", 4096))));
        return "too few values are added";
    }
    // An index of several dims is flattened together with the values, so these must have all of its dims.
    SymDims expected(x.sizes.begin(), x.sizes.begin() + static_cast<int64_t>(index.dim));
    expected.insert(expected.end(), at.sizes.begin(), at.sizes.end());
    expected.insert(expected.end(), x.sizes.begin() + static_cast<int64_t>(index.dim) + 1, x.sizes.end());
    if (at.sizes.size() > 1 && (index.dim != 0 || !(values.sizes == expected)))
        return "{values}, {values:type}, is broadcast over an index of several dims";
    return partitionsFor(m, outputs, count) > 1
               ? ""
               : "copies of {x}, {x:type}, take too much memory (memory_bytes, memory_budget)";
}

Values buildPartitioned(const Match& m, GraphBuilder& builder) {
    const OnlyIndex only = onlyIndex(m);
    const Value x = builder.value(m.node("x"));
    Value at = builder.value(*const_cast<Node*>(only.node)), values = builder.value(m.node("values"));
    const auto dim = static_cast<int64_t>(only.dim);
    const int64_t count = numel(at.sizes()).value(), partitions = partitionsFor(m, numel(x.sizes()).value(), count);
    if (at.rank() != 1) {
        SymDims flat = {SymInt(count)};
        flat.insert(flat.end(), values.sizes().begin() + at.rank(), values.sizes().end());
        values = builder.call("aten.reshape.default", {values, Argument(flat)});
        at = builder.call("aten.reshape.default", {at, Argument(SymDims{SymInt(count)})});
    }
    const Value turns = builder.call(
        "prims.iota.default", {count},
        {{"start", 0}, {"step", 1}, {"dtype", at.dtype()}, {"device", at.type().device}, {"requires_grad", false}});
    const Value partition = builder.call("aten.bitwise_and.Scalar", {turns, partitions - 1});
    SymDims wide = x.sizes();
    wide[only.dim] = wide[only.dim] * partitions;
    const Value buffer = full(builder, wide, Scalar(int64_t{0}), values.dtype(), values.type().device);
    const Value moved = at + builder.call("aten.mul.Tensor", {partition, x.sizes()[only.dim]});
    std::vector<Argument> indices = *m["indices"].list();
    indices[only.dim] = moved;
    const Value put = builder.call("aten.index_put.default", {buffer, Argument(std::move(indices)), values, true});
    SymDims apart = x.sizes();
    apart.insert(apart.begin() + dim, SymInt(partitions));
    const Value copies = builder.call("aten.reshape.default", {put, Argument(apart)});
    return x + convert(sum(copies, {dim}, false), x.dtype());
}

constexpr Rule kPartition[] = {
    {.name = "partitioned_scatter",
     .find = "y = aten.index_put.default(x, indices, values, True); return y",
     .build = buildPartitioned,
     .unless = unlessContended,
     .why = "values for one place wait for each other less when they go to several copies of it"},
};

}  // namespace

std::span<const Rule> decomposeProductRules() { return kDecompose; }
std::span<const Rule> addedProductRules() { return kAdded; }
std::span<const Rule> partitionedScatterRules() { return kPartition; }
Result<bool> decomposeProducts(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kDecompose); }
Result<bool> mergeAddedProducts(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kAdded); }
Result<bool> partitionScatters(Module& module, Rewriter& rewriter) { return rewriter.applyRules(module, kPartition); }

}  // namespace cutaway
