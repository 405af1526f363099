#pragma once
// What attention's forward and backward share: the call's numbers, matrices as products of the library take them, and
// tasks that threads take one after the other.
#include <array>
#include <functional>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/library_plan.h"

namespace cutaway {

/// [batch, heads, length, dim] in memory; a broadcast dim has stride 0.
struct HeadsTensor {
    int number = -1;  // of the operand or result; -1: there is none
    int32_t dtype = CT_F32;
    std::array<int64_t, 4> sizes{}, strides{};

    bool given() const { return number >= 0; }
    bool isPlain() const { return dtype == CT_F32 && strides[3] == 1 && strides[2] >= sizes[3]; }
    /// Byte address of an element.
    std::byte* at(const CtTensor* tensors, int64_t batch, int64_t head, int64_t row) const;
};

/// Row-major f32 with a distance between rows.
struct F32Matrix {
    const float* data;
    int64_t leading;
};

struct AttentionShape {
    int64_t batch = 0, heads = 0, keyHeads = 0, group = 1, rows = 0, columns = 0, dim = 0, valueDim = 0;
    int64_t rowTile = 1, columnTile = 1;
    float scale = 1;
    bool causal = false;
    HeadsTensor query, key, value, mask;

    explicit AttentionShape(const CallReader& call);
    int64_t rowTiles() const { return (rows + rowTile - 1) / rowTile; }
    /// How many columns from `begin` on a row sees, of those below `end`.
    int64_t visible(int64_t row, int64_t begin, int64_t end) const;
};
HeadsTensor headsOf(const CtTensor& tensor, int number);

/// Rows of a head as f32: where they lie, or converted into `space`.
F32Matrix rowsAsF32(const HeadsTensor& tensor, const CtTensor* tensors, int64_t batch, int64_t head, int64_t row,
                    int64_t count, float* space);
/// The mask's numbers for one row of scores, where they lie or in `space`; null without a mask.
const float* maskRow(const AttentionShape& shape, const CtTensor* tensors, int64_t batch, int64_t head, int64_t row,
                     int64_t column, int64_t count, float* space);
void storeRow(const HeadsTensor& tensor, const CtTensor* tensors, int64_t batch, int64_t head, int64_t row,
              const float* values);
/// c = a b, or c += a b; one thread.
void multiplyInto(float* c, int64_t leading, bool add, int64_t m, int64_t n, int64_t k, const F32Matrix& a,
                  bool transposeA, const F32Matrix& b, bool transposeB);

/// The library makes the code of all its products with the first one: for a plan, so that no run waits for it.
void makeProductCode();

/// Places for floats in one worker's memory, each at a multiple of 64 bytes.
class FloatSpace {
  public:
    int64_t take(int64_t count) {
        const int64_t at = m_size;
        m_size += (count + 15) / 16 * 16;
        return at;
    }
    int64_t bytes() const { return m_size * static_cast<int64_t>(sizeof(float)); }

  private:
    int64_t m_size = 0;
};
/// Calls body(task, space) once for each task; each worker has `bytesPerWorker` of the scratch memory. Which worker
/// takes a task changes no bit of its result.
void runTasks(const LibraryRun& run, int64_t tasks, int64_t workers, int64_t bytesPerWorker,
              const std::function<void(int64_t task, float* space)>& body);

std::unique_ptr<LibraryPlan> planAttention(const CallReader& call, int threads, CtNeeds& needs);
std::unique_ptr<LibraryPlan> planAttentionGradients(const CallReader& call, int threads, CtNeeds& needs);

}  // namespace cutaway
