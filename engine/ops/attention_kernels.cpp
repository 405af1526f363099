#include "engine/ops/attention_kernels.h"

#include <cmath>

#include "engine/ops/matrix.h"
#include "engine/ops/packed.h"

namespace cutaway {
namespace {

DType workType(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

/// [batch, key heads, group, length, dim]: query heads split into groups, key heads repeated by stride 0.
Tensor groupedHeads(const Tensor& tensor, int64_t keyHeads, int64_t group, DType dtype) {
    const Tensor packed = tensor.to(dtype).contiguous();
    const int64_t length = tensor.size(2), dim = tensor.size(3), heads = tensor.size(1);
    const int64_t matrix = length * dim;
    return packed.view(
        {tensor.size(0), keyHeads, group, length, dim},
        {heads * matrix, heads == keyHeads ? matrix : group * matrix, heads == keyHeads ? 0 : matrix, dim, 1},
        packed.offset());
}
Tensor transposed(const Tensor& t) {
    Dims sizes = t.sizes(), strides = t.strides();
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    return t.view(sizes, strides, t.offset());
}

struct Work {
    int64_t batch, heads, keyHeads, group, rows, columns;
    double scale;
    DType dtype;
    explicit Work(const AttentionCall& c)
        : batch(c.query.size(0)),
          heads(c.query.size(1)),
          keyHeads(c.key.size(1)),
          group(heads / std::max<int64_t>(keyHeads, 1)),
          rows(c.query.size(2)),
          columns(c.key.size(2)),
          scale(c.scale.value_or(1 / std::sqrt(static_cast<double>(c.query.size(3))))),
          dtype(workType(c.query.dtype())) {}
    Tensor matrix(int64_t m, int64_t n) const { return Tensor::empty(dtype, {batch, keyHeads, group, m, n}); }
};

/// Scaled and masked scores, row-major over [batch, heads, rows, columns].
std::vector<double> scoresOf(const AttentionCall& c, const Work& w) {
    Tensor product = w.matrix(w.rows, w.columns);
    multiplyMatrices(groupedHeads(c.query, w.keyHeads, w.group, w.dtype),
                     transposed(groupedHeads(c.key, w.keyHeads, w.group, w.dtype)), product);
    std::vector<double> scores = packElements<double>(product);
    for (double& score : scores) score *= w.scale;
    if (c.mask.defined()) {
        const std::vector<double> mask =
            packElements<double>(broadcastTo(c.mask, {w.batch, w.heads, w.rows, w.columns}));
        for (size_t i = 0; i < scores.size(); ++i) scores[i] += mask[i];
    }
    if (c.causal)
        for (size_t i = 0; i < scores.size(); ++i)
            if (static_cast<int64_t>(i) % w.columns > static_cast<int64_t>(i) / w.columns % w.rows)
                scores[i] = -std::numeric_limits<double>::infinity();
    return scores;
}

Tensor filled(const Work& w, const std::vector<double>& values) {
    Tensor out = w.matrix(w.rows, w.columns);
    unpackElements(values, out);
    return out;
}
/// Copies grouped heads into a [batch, heads, length, dim] tensor, summing groups that share a key head.
void ungroup(const Work& w, const Tensor& grouped, Tensor& out) {
    const std::vector<double> in = packElements<double>(grouped);
    std::vector<double> sums(static_cast<size_t>(out.numel()), 0.0);
    const int64_t matrix = out.size(2) * out.size(3), shared = out.size(1) == w.heads ? 1 : w.group;
    for (size_t i = 0; i < in.size(); ++i) {
        const auto flat = static_cast<int64_t>(i);
        sums[static_cast<size_t>(flat / matrix / shared * matrix + flat % matrix)] += in[i];
    }
    unpackElements(sums, out);
}

}  // namespace

void attend(const AttentionCall& c, Tensor& output, Tensor& logSumExp) {
    const Work w(c);
    std::vector<double> weights = scoresOf(c, w);
    std::vector<double> sums(static_cast<size_t>(w.batch * w.heads * w.rows));
    for (size_t row = 0; row < sums.size(); ++row) {
        double* line = weights.data() + static_cast<int64_t>(row) * w.columns;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < w.columns; ++j) largest = std::isnan(line[j]) ? line[j] : std::max(largest, line[j]);
        const bool nothing = largest == -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < w.columns; ++j) sum += line[j] = nothing ? 0 : std::exp(line[j] - largest);
        for (int64_t j = 0; j < w.columns && !nothing; ++j) line[j] /= sum;
        sums[row] = largest + std::log(sum);
    }
    unpackElements(sums, logSumExp);
    Tensor product = w.matrix(w.rows, c.value.size(3));
    multiplyMatrices(filled(w, weights), groupedHeads(c.value, w.keyHeads, w.group, w.dtype), product);
    ungroup(w, product, output);
}

void attendBackward(const AttentionCall& c, const Tensor& gradient, const Tensor& output, const Tensor& logSumExp,
                    Tensor& query, Tensor& key, Tensor& value) {
    const Work w(c);
    std::vector<double> weights = scoresOf(c, w);
    const std::vector<double> sums = packElements<double>(logSumExp);
    for (size_t i = 0; i < weights.size(); ++i) {
        const double sum = sums[i / static_cast<size_t>(w.columns)];
        weights[i] = std::isinf(sum) ? 0 : std::exp(weights[i] - sum);
    }
    const Tensor p = filled(w, weights), dy = groupedHeads(gradient, w.keyHeads, w.group, w.dtype);
    Tensor dv = w.matrix(w.columns, c.value.size(3)), dp = w.matrix(w.rows, w.columns);
    multiplyMatrices(transposed(p), dy, dv);
    ungroup(w, dv, value);
    multiplyMatrices(dy, transposed(groupedHeads(c.value, w.keyHeads, w.group, w.dtype)), dp);
    // Softmax's gradient: p (dp - Σ p dp), where the sum is Σ dy y.
    const std::vector<double> g = packElements<double>(gradient), y = packElements<double>(output);
    std::vector<double> ds = packElements<double>(dp);
    const auto dim = static_cast<size_t>(output.size(3)), columns = static_cast<size_t>(w.columns);
    for (size_t row = 0; row < sums.size(); ++row) {
        double dot = 0;
        for (size_t j = 0; j < dim; ++j) dot += g[row * dim + j] * y[row * dim + j];
        for (size_t j = 0; j < columns; ++j)
            ds[row * columns + j] = weights[row * columns + j] * (ds[row * columns + j] - dot) * w.scale;
    }
    const Tensor dScores = filled(w, ds);
    Tensor dq = w.matrix(w.rows, c.query.size(3)), dk = w.matrix(w.columns, c.query.size(3));
    multiplyMatrices(dScores, groupedHeads(c.key, w.keyHeads, w.group, w.dtype), dq);
    ungroup(w, dq, query);
    multiplyMatrices(transposed(dScores), groupedHeads(c.query, w.keyHeads, w.group, w.dtype), dk);
    ungroup(w, dk, key);
}

}  // namespace cutaway
