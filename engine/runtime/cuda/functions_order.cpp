// Sorting and selection by rank along a dim: tiles are sorted in shared memory and merged, pass by pass. NaN is the
// largest value; equal elements keep their order.
#include <algorithm>
#include <limits>

#include "engine/runtime/cuda/functions.h"

namespace cutaway::cuda {
namespace {

constexpr int64_t kTile = 1024;
constexpr unsigned kTileThreads = 512;
constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();

constexpr const char* kOrderText = R"(
#define TILE 1024
typedef unsigned long Key;
FN Key keyOf(long value) { return (Key)value ^ 0x8000000000000000ul; }
FN Key keyOf(double value) {
    if (value != value) return ~0ul;
    const long bits = __double_as_longlong(value + 0.0);  // -0.0 is not smaller
    return (Key)bits ^ ((Key)(bits >> 63) | 0x8000000000000000ul);
}
FN Key keyAt(const Strided& x, long at) {
    if (isFloat(x.dtype)) return keyOf(loadReal(x, at));
    return x.dtype == U64 ? ((const Key*)x.data)[at] : keyOf(loadWhole(x, at));
}
FN long elementOf(const Strided& x, int dim, long line, long i) {
    return dim < 0 ? offsetOf(x, i) : offsetOf(x, line, dim) + i * x.strides[dim];
}
FN bool before(Key a, unsigned i, Key b, unsigned j) { return a != b ? a < b : i < j; }

/// Sorts tiles of so many elements, a power of two; as many at once as there is room for.
extern "C" __global__ void sortTiles(Strided x, int dim, long lines, long length, int tile, int descending, Key* keys, unsigned* places) {
    __shared__ Key key[TILE];
    __shared__ unsigned place[TILE];
    const long perLine = (length + tile - 1) / tile, tiles = lines * perLine, together = TILE / tile;
    for (long first = (long)blockIdx.x * together; first < tiles; first += (long)gridDim.x * together) {
        for (int s = threadIdx.x; s < TILE; s += blockDim.x) {
            const long own = first + s / tile, line = own / perLine, at = own % perLine * tile + s % tile;
            key[s] = ~0ul;
            place[s] = 0xffffffffu;
            if (own < tiles && at < length) {
                const Key given = keyAt(x, elementOf(x, dim, line, at));
                key[s] = descending ? ~given : given;
                place[s] = (unsigned)at;
            }
        }
        for (int run = 2; run <= tile; run *= 2)
            for (int step = run / 2; step > 0; step /= 2) {
                __syncthreads();
                const int t = threadIdx.x, low = 2 * step * (t / step) + t % step, high = low + step;
                if (before(key[high], place[high], key[low], place[low]) == ((low & run & (tile - 1)) == 0)) {
                    const Key k = key[low];
                    const unsigned p = place[low];
                    key[low] = key[high];
                    place[low] = place[high];
                    key[high] = k;
                    place[high] = p;
                }
            }
        __syncthreads();
        for (int s = threadIdx.x; s < TILE; s += blockDim.x) {
            const long own = first + s / tile, line = own / perLine, at = own % perLine * tile + s % tile;
            if (own < tiles && at < length) {
                keys[line * length + at] = key[s];
                places[line * length + at] = place[s];
            }
        }
        __syncthreads();
    }
}

/// Each element finds its place among those of the run beside its own.
extern "C" __global__ void mergeRuns(long lines, long length, long width, const Key* keys, const unsigned* places, Key* toKeys, unsigned* toPlaces) {
    for (long e = firstThread(); e < lines * length; e += allThreads()) {
        const long line = e / length, at = e % length, run = at / width, base = run / 2 * 2 * width;
        const Key* const k = keys + line * length;
        const unsigned* const p = places + line * length;
        const long middle = min(base + width, length), end = min(base + 2 * width, length);
        long low = run % 2 ? base : middle, high = run % 2 ? middle : end;
        const long other = low;
        const Key key = k[at];
        const unsigned place = p[at];
        while (low < high) {
            const long half = low + (high - low) / 2;
            if (before(k[half], p[half], key, place)) low = half + 1;
            else high = half;
        }
        const long to = line * length + base + (at - (run % 2 ? middle : base)) + (low - other);
        toKeys[to] = key;
        toPlaces[to] = place;
    }
}

FN void copyOne(const Strided& from, long a, const Strided& to, long b) {
    if (isFloat(from.dtype)) store(to, b, loadReal(from, a));
    else store(to, b, loadWhole(from, a));
}

/// Elements `first` to `first + count` of each line. Results have the dim, with `count` elements.
extern "C" __global__ void keepRanked(Strided x, int dim, Strided values, Strided positions, long lines, long length, long first, long count, const unsigned* places) {
    for (long i = firstThread(); i < lines * count; i += allThreads()) {
        const long line = i / count, k = i % count, place = places[line * length + first + k];
        if (positions.data) store(positions, offsetOf(positions, line, dim) + k * positions.strides[dim], place);
        if (values.data)
            copyOne(x, elementOf(x, dim, line, place), values, offsetOf(values, line, dim) + k * values.strides[dim]);
    }
}

/// One element of each line: 0 the lower median, 1 that of numbers, 2 the smallest of the most frequent, where it stands last.
extern "C" __global__ void keepOne(Strided x, int dim, Strided values, Strided positions, long lines, long length, int which, const Key* keys, const unsigned* places) {
    const Key nan = isFloat(x.dtype) ? ~0ul : 0;
    for (long line = firstThread(); line < lines; line += allThreads()) {
        const Key* const k = keys + line * length;
        const unsigned* const p = places + line * length;
        long chosen = 0;
        if (which < 2) {
            long low = 0, high = length;  // the first NaN
            if (!isFloat(x.dtype)) low = length;
            while (low < high) {
                const long half = low + (high - low) / 2;
                if (k[half] < nan) low = half + 1;
                else high = half;
            }
            if (which == 0 && low < length) chosen = low;
            else chosen = (max(low, 1L) - 1) / 2;
        } else {
            long most = 0, together = 0;
            for (long i = 0; i < length; ++i) {
                const bool same = i > 0 && k[i] == k[i - 1] && !(isFloat(x.dtype) && k[i] == nan);
                together = same ? together + 1 : 1;
                if (together > most) {
                    most = together;
                    chosen = i;
                }
            }
        }
        const long place = p[chosen];
        const int own = dim < 0 ? 0 : dim;
        copyOne(x, elementOf(x, dim, line, place), values, dim < 0 ? 0 : offsetOf(values, line, own));
        if (positions.data) store(positions, offsetOf(positions, line, own), place);
    }
}
)";
constexpr Family kOrder{kOrderText};

struct LinesOf {
    int64_t count, length;
};
LinesOf linesOf(const DeviceTensor& x, int dim) {
    const int64_t length = dim < 0 ? x.elements() : x.sizes[dim];
    return {length == 0 ? 0 : x.elements() / length, length};
}
/// With the dim in its place, where it is gone.
DeviceTensor withDim(const DeviceTensor& result, int rank, int dim) {
    if (dim < 0 || result.rank == rank) return result;
    DeviceTensor made = result;
    made.rank = rank;
    for (int d = rank; d-- > 0;) {
        if (d == dim) continue;
        made.sizes[d] = result.sizes[d > dim ? d - 1 : d];
        made.strides[d] = result.strides[d > dim ? d - 1 : d];
    }
    made.sizes[dim] = 1;
    made.strides[dim] = 0;
    return made;
}

class OrderPlan final : public LibraryPlan {
  public:
    OrderPlan(const CtCall& call, CtNeeds& needs) : m_x(described(call.operands[0])) {
        const CallReader reader(call);
        const std::string_view op = call.op;
        const bool whole = op == "aten.median.default" || op == "aten.nanmedian.default";
        m_dim = whole ? -1 : dimOf(reader, "dim", call.operands[0].rank);
        m_lines = linesOf(m_x, m_dim);
        if (m_lines.length > kMostElements) throw LibraryRefusal("it sorts up to 2^31 - 1 elements a line");
        m_descending = reader.flag("descending") || reader.flag("largest");
        m_count = m_lines.length;
        if (op == "aten.topk.default") m_count = reader.find("k")->integer;
        if (op == "aten.kthvalue.default") {
            m_first = reader.find("k")->integer - 1;
            m_count = 1;
        }
        const bool placesOnly = op.starts_with("aten.argsort.");
        m_values = placesOnly ? -1 : 0;
        m_positions = placesOnly ? 0 : whole ? -1 : 1;
        if (op == "aten.median.dim" || op == "aten.median.default") m_one = 0;
        if (op == "aten.nanmedian.dim" || op == "aten.nanmedian.default") m_one = 1;
        if (op == "aten.mode.default") m_one = 2;
        if (whole && m_lines.length == 0) throw LibraryRefusal("there is no median of nothing");
        for (const int result : {m_values, m_positions})
            if (result >= 0 && call.results[result].rank >= 0)
                m_results[result] = withDim(described(call.results[result]), m_x.rank, m_dim);
        Room room(nullptr);
        Sorted spare{};
        sortedRoom(room, m_x.elements(), spare);
        needs.scratch = room.bytes();
    }
    void run(const LibraryRun& given) const override {
        if (m_lines.count == 0 || m_count == 0) return;
        Room room(given.scratch);
        Sorted spare{};
        const Sorted own = sortedRoom(room, m_x.elements(), spare);
        const DeviceTensor x = m_x.at(given.operands[0].data);
        const Sorted sorted = sortLines(x, m_dim, m_descending, own, spare, given);
        const auto result = [&](int number) {
            return number < 0 || m_results[number].rank == 0 ? DeviceTensor()
                                                             : m_results[number].at(given.results[number].data);
        };
        const Launcher launch(kOrder, given);
        if (m_one >= 0)
            launch.threads("keepOne", m_lines.count, x, m_dim, result(m_values), result(m_positions), m_lines.count,
                           m_lines.length, m_one, sorted.keys, sorted.places);
        else
            launch.threads("keepRanked", m_lines.count * m_count, x, m_dim, result(m_values), result(m_positions),
                           m_lines.count, m_lines.length, m_first, m_count, sorted.places);
    }

  private:
    DeviceTensor m_x, m_results[2];
    LinesOf m_lines{};
    int m_dim = 0, m_values = 0, m_positions = 1;
    int m_one = -1;  // which element of each line is kept, as the kernel counts them; -1: a range of ranks
    int64_t m_first = 0, m_count = 0;
    bool m_descending = false;
};

constexpr std::string_view kOrderOps[] = {
    "aten.sort.default",  "aten.sort.stable",       "aten.argsort.default", "aten.argsort.stable",
    "aten.topk.default",  "aten.kthvalue.default",  "aten.median.dim",      "aten.median.default",
    "aten.nanmedian.dim", "aten.nanmedian.default", "aten.mode.default",
};

}  // namespace

Sorted sortedRoom(Room& room, int64_t elements, Sorted& spare) {
    const auto take = [&] { return Sorted{room.take<uint64_t>(elements), room.take<uint32_t>(elements)}; };
    const Sorted first = take();
    spare = take();
    return first;
}

Sorted sortLines(const DeviceTensor& x, int dim, bool descending, Sorted first, Sorted second, const LibraryRun& run) {
    const LinesOf lines = linesOf(x, dim);
    int64_t tile = 2;
    while (tile < kTile && tile < lines.length) tile *= 2;
    const Launcher launch(kOrder, run);
    const int64_t tiles = lines.count * ((lines.length + tile - 1) / tile), together = kTile / tile;
    launch.blocks("sortTiles", (tiles + together - 1) / together, kTileThreads, x, dim, lines.count, lines.length,
                  static_cast<int>(tile), static_cast<int>(descending), first.keys, first.places);
    for (int64_t width = tile; width < lines.length; width *= 2) {
        launch.threads("mergeRuns", lines.count * lines.length, lines.count, lines.length, width, first.keys,
                       first.places, second.keys, second.places);
        std::swap(first, second);
    }
    return first;
}

const Family* orderFamily() { return &kOrder; }

std::unique_ptr<LibraryPlan> planOrder(const CtCall& call, CtNeeds& needs) {
    if (std::find(std::begin(kOrderOps), std::end(kOrderOps), std::string_view(call.op)) == std::end(kOrderOps))
        return nullptr;
    return std::make_unique<OrderPlan>(call, needs);
}

}  // namespace cutaway::cuda
