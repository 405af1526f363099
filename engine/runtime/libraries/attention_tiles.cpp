#include "engine/runtime/libraries/attention_tiles.h"

#include <dnnl.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "engine/runtime/portable/elements.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

/// Equal tiles of at most so many.
int64_t tileOf(int64_t length, int64_t most) {
    const int64_t tiles = std::max<int64_t>(1, (length + most - 1) / most);
    return std::max<int64_t>(1, (length + tiles - 1) / tiles);
}

void convertRow(float* to, int32_t dtype, const std::byte* from, int64_t count, int64_t stride) {
    if (dtype != CT_BF16 || stride != 1) return portable::load(dtype, from, stride, count, to);
    const auto* const numbers = reinterpret_cast<const portable::Bfloat*>(from);
    for (int64_t i = 0; i < count; ++i) to[i] = portable::wide(numbers[i]);
}

}  // namespace

std::byte* HeadsTensor::at(const CtTensor* tensors, int64_t batch, int64_t head, int64_t row) const {
    const int64_t element = batch * strides[0] + head * strides[1] + row * strides[2];
    return static_cast<std::byte*>(tensors[number].data) + element * ct::bytesOf(dtype);
}

HeadsTensor headsOf(const CtTensor& tensor, int number) {
    if (tensor.rank > 4) throw LibraryRefusal("it takes tensors of up to four dims");
    if (tensor.dtype != CT_F32 && tensor.dtype != CT_BF16 && tensor.dtype != CT_F16 && tensor.dtype != CT_F64)
        throw LibraryRefusal("it has no such element type");
    HeadsTensor made{number, tensor.dtype, {1, 1, 1, 1}, {0, 0, 0, 0}};
    for (int32_t d = 0; d < tensor.rank; ++d) {
        const auto to = static_cast<size_t>(4 - tensor.rank + d);
        made.sizes[to] = tensor.sizes[d];
        made.strides[to] = tensor.sizes[d] == 1 && to < 3 ? 0 : tensor.strides[d];
    }
    return made;
}

AttentionShape::AttentionShape(const CallReader& call) {
    const auto read = [&](std::string_view param) { return headsOf(*call.tensor(param), *call.operand(param)); };
    query = read("query");
    key = read("key");
    value = read("value");
    for (const char* param : {"attn_mask", "attn_bias"})
        if (call.tensor(param)) mask = read(param);
    if (mask.given() && mask.sizes[3] == 1) mask.strides[3] = 0;
    if (call.real("dropout_p").value_or(0) != 0) throw LibraryRefusal("it drops nothing out");
    batch = query.sizes[0];
    heads = query.sizes[1];
    keyHeads = key.sizes[1];
    rows = query.sizes[2];
    columns = key.sizes[2];
    dim = query.sizes[3];
    valueDim = value.sizes[3];
    if (keyHeads == 0 || dim == 0 || valueDim == 0) throw LibraryRefusal("a tensor has no elements");
    group = heads / keyHeads;
    scale = static_cast<float>(call.real("scale").value_or(1 / std::sqrt(static_cast<double>(dim))));
    causal = call.flag("is_causal");
    // Scores of a tile stay in the second-level cache; the sizes depend on the call alone, so bits do.
    rowTile = tileOf(rows, 128);
    columnTile = tileOf(columns, 512);
}
int64_t AttentionShape::visible(int64_t row, int64_t begin, int64_t end) const {
    return causal ? std::clamp<int64_t>(row + 1 - begin, 0, end - begin) : end - begin;
}

F32Matrix rowsAsF32(const HeadsTensor& tensor, const CtTensor* tensors, int64_t batch, int64_t head, int64_t row,
                    int64_t count, float* space) {
    if (tensor.isPlain())
        return {reinterpret_cast<const float*>(tensor.at(tensors, batch, head, row)), tensor.strides[2]};
    for (int64_t i = 0; i < count; ++i)
        convertRow(space + i * tensor.sizes[3], tensor.dtype, tensor.at(tensors, batch, head, row + i), tensor.sizes[3],
                   tensor.strides[3]);
    return {space, tensor.sizes[3]};
}
const float* maskRow(const AttentionShape& shape, const CtTensor* tensors, int64_t batch, int64_t head, int64_t row,
                     int64_t column, int64_t count, float* space) {
    const HeadsTensor& mask = shape.mask;
    if (!mask.given()) return nullptr;
    const std::byte* from = mask.at(tensors, batch, head, row) + column * mask.strides[3] * ct::bytesOf(mask.dtype);
    if (mask.dtype == CT_F32 && mask.strides[3] == 1) return reinterpret_cast<const float*>(from);
    convertRow(space, mask.dtype, from, count, mask.strides[3]);
    return space;
}
void storeRow(const HeadsTensor& tensor, const CtTensor* tensors, int64_t batch, int64_t head, int64_t row,
              const float* values) {
    std::byte* to = tensor.at(tensors, batch, head, row);
    portable::store(tensor.dtype, to, tensor.strides[3], tensor.sizes[3], values);
}

void multiplyInto(float* c, int64_t leading, bool add, int64_t m, int64_t n, int64_t k, const F32Matrix& a,
                  bool transposeA, const F32Matrix& b, bool transposeB) {
    if (dnnl_sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', m, n, k, 1, a.data, a.leading, b.data, b.leading,
                   add ? 1.0f : 0.0f, c, leading) != dnnl_success)
        throw LibraryRefusal("a product of oneDNN failed");
}

void makeProductCode() {
    static std::once_flag made;
    std::call_once(made, [] {
        constexpr int64_t kSize = 16;
        std::array<float, kSize * kSize> a{}, c{};
        multiplyInto(c.data(), kSize, false, kSize, kSize, kSize, {a.data(), kSize}, false, {a.data(), kSize}, false);
    });
}

void runTasks(const LibraryRun& run, int64_t tasks, int64_t workers, int64_t bytesPerWorker,
              const std::function<void(int64_t, float*)>& body) {
    struct State {
        std::atomic<int64_t> next{0};
        std::atomic<bool> failed{false};
        int64_t tasks, bytes;
        std::byte* scratch;
        const std::function<void(int64_t, float*)>* body;
    } state;
    state.tasks = tasks;
    state.bytes = bytesPerWorker;
    state.scratch = run.scratch;
    state.body = &body;
    run.parallel->run(
        run.parallel, workers, 1,
        [](void* of, int64_t begin, int64_t end) {
            auto& own = *static_cast<State*>(of);
            lendThreads(1);  // for products, each of which is this thread's alone
            try {
                for (int64_t worker = begin; worker < end; ++worker)
                    for (int64_t task = own.next++; task < own.tasks; task = own.next++)
                        (*own.body)(task, reinterpret_cast<float*>(own.scratch + worker * own.bytes));
            } catch (const std::exception&) {
                own.failed = true;
            }
        },
        &state);
    if (state.failed) throw LibraryRefusal("a product of oneDNN failed");
}

}  // namespace cutaway
