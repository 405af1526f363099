// Attention: tiles of queries by tiles of keys, the softmax's largest score and sum kept as they grow, so that no
// matrix of all scores is ever in memory.
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/runtime/libraries/attention_rows.h"
#include "engine/runtime/libraries/attention_tiles.h"
#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

class Attention final : public LibraryPlan {
  public:
    Attention(const CallReader& call, int threads)
        : m_shape(call), m_out(headsOf(call.call().results[0], 0)), m_results(call.call().resultCount) {
        const CtTensor& sums = call.call().results[1];
        for (int32_t d = 0; d < 3; ++d) m_sumStrides[static_cast<size_t>(d)] = sums.strides[d];
        m_sumRows = sums.sizes[2];
        m_tasks = m_shape.batch * m_shape.heads * m_shape.rowTiles();
        m_workers = std::max<int64_t>(1, std::min<int64_t>(threads, m_tasks));
        const AttentionShape& s = m_shape;
        m_scores = m_space.take(s.rowTile * s.columnTile);
        m_sum = m_space.take(s.rowTile * s.valueDim);
        m_largest = m_space.take(s.rowTile);
        m_total = m_space.take(s.rowTile);
        m_mask = m_space.take(s.columnTile);
        m_query = m_space.take(s.query.isPlain() ? 0 : s.rowTile * s.dim);
        m_key = m_space.take(s.key.isPlain() ? 0 : s.columnTile * s.dim);
        m_value = m_space.take(s.value.isPlain() ? 0 : s.columnTile * s.valueDim);
    }
    int64_t scratchBytes() const { return m_workers * m_space.bytes(); }

    void run(const LibraryRun& run) const override {
        runTasks(run, m_tasks, m_workers, m_space.bytes(),
                 [&](int64_t task, float* space) { attend(run, task, space); });
        for (int32_t r = 2; r < m_results; ++r)  // the state of a random generator that nothing was drawn from
            if (run.results[r].rank >= 0) std::memset(run.results[r].data, 0, sizeof(int64_t));
    }

  private:
    void attend(const LibraryRun& run, int64_t task, float* space) const {
        const AttentionShape& s = m_shape;
        const int64_t tile = task % s.rowTiles(), head = task / s.rowTiles() % s.heads,
                      batch = task / s.rowTiles() / s.heads;
        const int64_t begin = tile * s.rowTile, count = std::min(s.rowTile, s.rows - begin);
        const F32Matrix query = rowsAsF32(s.query, run.operands, batch, head, begin, count, space + m_query);
        float *largest = space + m_largest, *total = space + m_total, *sum = space + m_sum;
        std::fill(largest, largest + count, kNothing);
        std::fill(total, total + count, 0.0f);
        const int64_t end = s.causal ? std::min(s.columns, begin + count) : s.columns;
        if (end == 0) std::fill(sum, sum + count * s.valueDim, 0.0f);
        for (int64_t column = 0; column < end; column += s.columnTile) {
            const int64_t width = std::min(s.columnTile, s.columns - column);
            const F32Matrix key = rowsAsF32(s.key, run.operands, batch, head / s.group, column, width, space + m_key);
            float* scores = space + m_scores;
            multiplyInto(scores, width, false, count, width, s.dim, query, false, key, true);
            for (int64_t i = 0; i < count; ++i) weigh(run, batch, head, begin + i, column, width, space, i);
            const F32Matrix value =
                rowsAsF32(s.value, run.operands, batch, head / s.group, column, width, space + m_value);
            multiplyInto(sum, s.valueDim, column > 0, count, s.valueDim, width, {scores, width}, false, value, false);
        }
        finish(run, batch, head, begin, count, space);
    }
    /// Scores of one row against one tile of keys become weights relative to the largest score so far; what was summed
    /// up with an earlier one is brought down to it.
    void weigh(const LibraryRun& run, int64_t batch, int64_t head, int64_t row, int64_t column, int64_t width,
               float* space, int64_t i) const {
        const RowFunctions& rows = rowFunctions();
        float &largest = space[m_largest + i], &total = space[m_total + i], *line = space + m_scores + i * width;
        const int64_t seen = m_shape.visible(row, column, column + width);
        std::fill(line + seen, line + width, 0.0f);
        if (seen == 0) return;
        const float* mask = maskRow(m_shape, run.operands, batch, head, row, column, seen, space + m_mask);
        const float here = rows.largest(line, mask, m_shape.scale, seen), now = here > largest ? here : largest;
        const float added = rows.exponentials(line, mask, m_shape.scale, now == kNothing ? 0 : now, seen);
        if (now != largest && largest != kNothing) {
            const float factor = std::exp(largest - now);
            total *= factor;
            rows.multiply(space + m_sum + i * m_shape.valueDim, factor, m_shape.valueDim);
        }
        largest = now;
        total += added;
    }
    void finish(const LibraryRun& run, int64_t batch, int64_t head, int64_t begin, int64_t count, float* space) const {
        const AttentionShape& s = m_shape;
        auto* sums = static_cast<float*>(run.results[1].data);
        const int64_t at = batch * m_sumStrides[0] + head * m_sumStrides[1];
        for (int64_t i = 0; i < count; ++i) {
            float* line = space + m_sum + i * s.valueDim;
            const float total = space[m_total + i];
            rowFunctions().multiply(line, total == 0 ? 0 : 1 / total, s.valueDim);  // a row that sees nothing: zeros
            storeRow(m_out, run.results, batch, head, begin + i, line);
            if (m_sumRows > 0) sums[at + (begin + i) * m_sumStrides[2]] = space[m_largest + i] + std::log(total);
        }
        if (begin + count == s.rows)  // some forms pad the sums to whole blocks of rows
            for (int64_t row = s.rows; row < m_sumRows; ++row) sums[at + row * m_sumStrides[2]] = -kNothing;
    }

    AttentionShape m_shape;
    HeadsTensor m_out;
    int32_t m_results;
    std::array<int64_t, 3> m_sumStrides{};
    int64_t m_sumRows = 0, m_tasks = 0, m_workers = 1;
    FloatSpace m_space;
    int64_t m_scores, m_sum, m_largest, m_total, m_mask, m_query, m_key, m_value;
};

std::unique_ptr<LibraryPlan> planAttention(const CtCall& call, int threads, CtNeeds& needs) {
    const CallReader reader(call);
    makeProductCode();
    return std::string_view(call.op).find("_backward") == std::string_view::npos
               ? planAttention(reader, threads, needs)
               : planAttentionGradients(reader, threads, needs);
}

}  // namespace

std::unique_ptr<LibraryPlan> planAttention(const CallReader& call, int threads, CtNeeds& needs) {
    auto plan = std::make_unique<Attention>(call, threads);
    needs.scratch = plan->scratchBytes();
    return plan;
}

const CtLibrary& attentionLibrary() {
    static const CtLibrary library = makeLibrary<planAttention>("attention");
    return library;
}

}  // namespace cutaway
