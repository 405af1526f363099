// Tensors in memory: their elements copied, converted, and passed over row by row, in parts that tasks share.
#include <mutex>

#include "engine/runtime/portable/portable.h"

namespace cutaway::portable {

Strided::Strided(const CtTensor& tensor) : data(static_cast<char*>(tensor.data)), dtype(tensor.dtype) {
    if (tensor.rank <= 0) return;
    rank = tensor.rank;
    std::copy_n(tensor.sizes, rank, sizes);
    std::copy_n(tensor.strides, rank, strides);
}

Strided broadcast(const Strided& tensor, const int64_t* sizes, int32_t rank) {
    Strided wide = tensor;
    wide.rank = std::max(rank, 1);
    if (rank == 0) wide.sizes[0] = 1;
    for (int32_t d = 0; d < rank; ++d) {
        const int32_t own = d - (rank - tensor.rank);
        wide.sizes[d] = sizes[d];
        wide.strides[d] = own < 0 || tensor.sizes[own] == 1 ? 0 : tensor.strides[own];
    }
    return wide;
}
void failOutside(int64_t index, int64_t dim, int64_t size) {
    throw Failure("index " + std::to_string(index) + " is out of range for dim " + std::to_string(dim) + " of size " +
                  std::to_string(size));
}

void Run::shareParts(int64_t count, void (*part)(void* body, int64_t task, int64_t begin, int64_t end),
                     void* body) const {
    struct Shared {
        void (*part)(void* body, int64_t task, int64_t begin, int64_t end);
        void* body;
        int64_t count, parts;
        std::mutex mutex;
        int64_t failed;
        std::string why;
    };
    const int64_t parts = std::min<int64_t>(count, std::max(tasks, 1));
    if (parts <= 0) return;
    Shared shared{part, body, count, parts, {}, parts, {}};
    parallel->run(
        parallel, parts, 1,
        [](void* state, int64_t begin, int64_t end) {
            Shared& own = *static_cast<Shared*>(state);
            const auto edge = [&](int64_t p) { return own.count / own.parts * p + std::min(p, own.count % own.parts); };
            for (int64_t p = begin; p < end; ++p) {
                std::string why;
                try {
                    own.part(own.body, p, edge(p), edge(p + 1));
                    continue;
                } catch (const std::exception& failure) {
                    why = failure.what();
                }
                const std::lock_guard lock(own.mutex);
                if (p >= own.failed) continue;
                own.failed = p;
                own.why = std::move(why);
            }
        },
        &shared);
    if (shared.failed < parts) throw Failure(shared.why);
}

void copyAll(const Run& run, const Strided& from, const Strided& to) {
    const int32_t last = from.rank - 1;
    const int64_t length = from.sizes[last], bytes = bytesOf(from.dtype), a = from.strides[last], b = to.strides[last];
    if (from.data == to.data) return;  // in place
    run.share(rowsOf(from), [&](int64_t, int64_t begin, int64_t end) {
        forRows(from, to, begin, end, [&](int64_t x, int64_t y, int64_t) {
            if (a == 1 && b == 1) std::memcpy(to.at(y), from.at(x), static_cast<size_t>(length * bytes));
            else
                for (int64_t i = 0; i < length; ++i) copyElement(bytes, from.at(x + i * a), to.at(y + i * b));
        });
    });
}
void convertAll(const Run& run, const Strided& from, const Strided& to) {
    if (from.dtype == to.dtype) return copyAll(run, from, to);
    const int32_t last = to.rank - 1;
    withWide(from.dtype, [&](auto tag) {
        run.share(rowsOf(to), [&](int64_t, int64_t begin, int64_t end) {
            forRows(from, to, begin, end, [&](int64_t x, int64_t y, int64_t) {
                decltype(tag) chunk[kChunk];
                for (int64_t first = 0; first < to.sizes[last]; first += kChunk) {
                    const int64_t count = std::min(kChunk, to.sizes[last] - first);
                    load(from.dtype, from.at(x + first * from.strides[last]), from.strides[last], count, chunk);
                    store(to.dtype, to.at(y + first * to.strides[last]), to.strides[last], count, chunk);
                }
            });
        });
    });
}

template <class T>
void loadAll(const Strided& tensor, T* to) {
    const int32_t last = tensor.rank - 1;
    forRows(tensor, tensor, 0, rowsOf(tensor), [&](int64_t at, int64_t, int64_t row) {
        load(tensor.dtype, tensor.at(at), tensor.strides[last], tensor.sizes[last], to + row * tensor.sizes[last]);
    });
}
template <class T>
void storeRange(const Strided& tensor, int64_t begin, int64_t end, const T* from) {
    const int32_t last = tensor.rank - 1;
    const int64_t length = tensor.sizes[last];
    for (int64_t at = begin; at < end;) {
        const int64_t column = at % length, count = std::min(length - column, end - at);
        store(tensor.dtype, tensor.at(tensor.offsetOf(at)), tensor.strides[last], count, from + (at - begin));
        at += count;
    }
}

#define CUTAWAY_COMPUTED_IN(T)                 \
    template void loadAll(const Strided&, T*); \
    template void storeRange(const Strided&, int64_t, int64_t, const T*);
CUTAWAY_COMPUTED_IN(float)
CUTAWAY_COMPUTED_IN(double)
CUTAWAY_COMPUTED_IN(int64_t)
CUTAWAY_COMPUTED_IN(std::complex<float>)
CUTAWAY_COMPUTED_IN(std::complex<double>)
#undef CUTAWAY_COMPUTED_IN

}  // namespace cutaway::portable
