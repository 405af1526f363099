// Attention's gradients: the weights of a tile are computed again from the sums that the forward left. One task takes a
// head of keys with all heads of queries that share it, so that its gradients are added up in one order.
#include <cmath>

#include "engine/runtime/libraries/attention_rows.h"
#include "engine/runtime/libraries/attention_tiles.h"

namespace cutaway {
namespace {

class AttentionGradients final : public LibraryPlan {
  public:
    AttentionGradients(const CallReader& call, int threads)
        : m_shape(call),
          m_sums(*call.operand("logsumexp")),
          m_queryResult(headsOf(call.call().results[0], 0)),
          m_keyResult(headsOf(call.call().results[1], 1)),
          m_valueResult(headsOf(call.call().results[2], 2)) {
        const char* const gradient = call.find("grad_out") ? "grad_out" : "grad_out_";
        m_gradient = headsOf(*call.tensor(gradient), *call.operand(gradient));
        m_out = headsOf(*call.tensor("out"), *call.operand("out"));
        const CtTensor& sums = *call.tensor("logsumexp");
        if (sums.dtype != CT_F32) throw LibraryRefusal("the sums are not float32");
        for (int32_t d = 0; d < 3; ++d) m_sumStrides[static_cast<size_t>(d)] = sums.strides[d];
        const AttentionShape& s = m_shape;
        m_tasks = s.batch * s.keyHeads;
        m_workers = std::max<int64_t>(1, std::min<int64_t>(threads, m_tasks));
        m_scores = m_space.take(s.rowTile * s.columnTile);
        m_scoreGradients = m_space.take(s.rowTile * s.columnTile);
        m_queryGradients = m_space.take(s.rowTile * s.dim);
        m_keyGradients = m_space.take(s.columns * s.dim);
        m_valueGradients = m_space.take(s.columns * s.valueDim);
        m_mask = m_space.take(s.columnTile);
        m_dots = m_space.take(s.rowTile);
        m_query = m_space.take(s.query.isPlain() ? 0 : s.rowTile * s.dim);
        m_gradientRows = m_space.take(m_gradient.isPlain() ? 0 : s.rowTile * s.valueDim);
        m_outRow = m_space.take(s.valueDim);
        m_key = m_space.take(s.key.isPlain() ? 0 : s.columns * s.dim);
        m_value = m_space.take(s.value.isPlain() ? 0 : s.columns * s.valueDim);
    }
    int64_t scratchBytes() const { return m_workers * m_space.bytes(); }

    void run(const LibraryRun& run) const override {
        runTasks(run, m_tasks, m_workers, m_space.bytes(), [&](int64_t task, float* space) {
            differentiate(run, task / m_shape.keyHeads, task % m_shape.keyHeads, space);
        });
    }

  private:
    struct Tile {
        int64_t batch, head, begin, count;
        F32Matrix query, gradient;
    };

    void differentiate(const LibraryRun& run, int64_t batch, int64_t keyHead, float* space) const {
        const AttentionShape& s = m_shape;
        std::fill_n(space + m_keyGradients, s.columns * s.dim, 0.0f);
        std::fill_n(space + m_valueGradients, s.columns * s.valueDim, 0.0f);
        const F32Matrix key = rowsAsF32(s.key, run.operands, batch, keyHead, 0, s.columns, space + m_key),
                        value = rowsAsF32(s.value, run.operands, batch, keyHead, 0, s.columns, space + m_value);
        for (int64_t head = keyHead * s.group; head < (keyHead + 1) * s.group; ++head)
            for (int64_t begin = 0; begin < s.rows; begin += s.rowTile) {
                Tile tile{batch, head, begin, std::min(s.rowTile, s.rows - begin), {}, {}};
                tile.query = rowsAsF32(s.query, run.operands, batch, head, begin, tile.count, space + m_query);
                tile.gradient =
                    rowsAsF32(m_gradient, run.operands, batch, head, begin, tile.count, space + m_gradientRows);
                differentiateTile(run, tile, key, value, space);
            }
        for (int64_t column = 0; column < s.columns; ++column) {
            storeRow(m_keyResult, run.results, batch, keyHead, column, space + m_keyGradients + column * s.dim);
            storeRow(m_valueResult, run.results, batch, keyHead, column,
                     space + m_valueGradients + column * s.valueDim);
        }
    }
    void differentiateTile(const LibraryRun& run, const Tile& t, const F32Matrix& key, const F32Matrix& value,
                           float* space) const {
        const AttentionShape& s = m_shape;
        findDots(run, t, space);
        float *scores = space + m_scores, *gradients = space + m_scoreGradients, *dq = space + m_queryGradients;
        std::fill_n(dq, t.count * s.dim, 0.0f);
        const int64_t end = s.causal ? std::min(s.columns, t.begin + t.count) : s.columns;
        for (int64_t column = 0; column < end; column += s.columnTile) {
            const int64_t width = std::min(s.columnTile, s.columns - column);
            const F32Matrix keys{key.data + column * key.leading, key.leading},
                values{value.data + column * value.leading, value.leading};
            multiplyInto(scores, width, false, t.count, width, s.dim, t.query, false, keys, true);
            multiplyInto(gradients, width, false, t.count, width, s.valueDim, t.gradient, false, values, true);
            for (int64_t i = 0; i < t.count; ++i) differentiateRow(run, t, i, column, width, space);
            const F32Matrix weights{scores, width}, scoreGradients{gradients, width};
            multiplyInto(space + m_valueGradients + column * s.valueDim, s.valueDim, true, width, s.valueDim, t.count,
                         weights, true, t.gradient, false);
            multiplyInto(dq, s.dim, true, t.count, s.dim, width, scoreGradients, false, keys, false);
            multiplyInto(space + m_keyGradients + column * s.dim, s.dim, true, width, s.dim, t.count, scoreGradients,
                         true, t.query, false);
        }
        for (int64_t i = 0; i < t.count; ++i)
            storeRow(m_queryResult, run.results, t.batch, t.head, t.begin + i, dq + i * s.dim);
    }
    /// The softmax's gradient is p (dp - Σ p dp), where the sum is that of output times gradient.
    void findDots(const LibraryRun& run, const Tile& t, float* space) const {
        for (int64_t i = 0; i < t.count; ++i) {
            const F32Matrix out = rowsAsF32(m_out, run.operands, t.batch, t.head, t.begin + i, 1, space + m_outRow);
            space[m_dots + i] =
                rowFunctions().dot(t.gradient.data + i * t.gradient.leading, out.data, m_shape.valueDim);
        }
    }
    void differentiateRow(const LibraryRun& run, const Tile& t, int64_t i, int64_t column, int64_t width,
                          float* space) const {
        const int64_t row = t.begin + i;
        float *scores = space + m_scores + i * width, *gradients = space + m_scoreGradients + i * width;
        const float logSum = static_cast<const float*>(
            run.operands[m_sums].data)[t.batch * m_sumStrides[0] + t.head * m_sumStrides[1] + row * m_sumStrides[2]];
        // A row that saw nothing has no gradients.
        const int64_t seen = std::isinf(logSum) ? 0 : m_shape.visible(row, column, column + width);
        const float* mask = maskRow(m_shape, run.operands, t.batch, t.head, row, column, seen, space + m_mask);
        rowFunctions().gradients(scores, gradients, mask, m_shape.scale, logSum, space[m_dots + i], seen);
        std::fill(scores + seen, scores + width, 0.0f);
        std::fill(gradients + seen, gradients + width, 0.0f);
    }

    AttentionShape m_shape;
    int m_sums;
    HeadsTensor m_queryResult, m_keyResult, m_valueResult, m_gradient, m_out;
    std::array<int64_t, 3> m_sumStrides{};
    int64_t m_tasks = 0, m_workers = 1;
    FloatSpace m_space;
    int64_t m_scores, m_scoreGradients, m_queryGradients, m_keyGradients, m_valueGradients, m_mask, m_dots, m_query,
        m_gradientRows, m_outRow, m_key, m_value;
};

}  // namespace

std::unique_ptr<LibraryPlan> planAttentionGradients(const CallReader& call, int threads, CtNeeds& needs) {
    auto plan = std::make_unique<AttentionGradients>(call, threads);
    needs.scratch = plan->scratchBytes();
    return plan;
}

}  // namespace cutaway
