#include "engine/support/fourier.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "engine/support/fourier_lines.h"

namespace cutaway::fourier {
namespace {

/// Elements of dims from..to-1.
int64_t countOf(const std::vector<int64_t>& sizes, size_t from, size_t to) {
    int64_t count = 1;
    for (size_t dim = from; dim < to; ++dim) count *= sizes[dim];
    return count;
}
/// The factor by PyTorch's number of a norm: any but "none" and "by root" divides by the length, as in its kernels.
double factorOf(int64_t norm, int64_t length) {
    if (norm == kNone) return 1;
    return 1 / (norm == kByRoot ? std::sqrt(static_cast<double>(length)) : static_cast<double>(length));
}
int64_t lengthOf(const Call& call) {
    int64_t length = 1;
    for (const int64_t dim : call.dims) length *= call.sizes[static_cast<size_t>(dim)];
    return length;
}

/// Where each of a batch's lines begins, its elements `step` apart, and between lanes: element by element, so that
/// neighbours in memory come together.
template <class T>
struct Batch {
    T* lines[kLanes];
    size_t count;
    int64_t step = 1;

    template <class Each>
    void each(size_t length, const Each& body) const {
        for (size_t k = 0; k < length; ++k) {
            const auto at = static_cast<int64_t>(k) * step;
            if (count == kLanes)
                for (size_t l = 0; l < kLanes; ++l) body(k * kLanes + l, lines[l][at]);
            else
                for (size_t l = 0; l < count; ++l) body(k * kLanes + l, lines[l][at]);
        }
    }
};
void put(Lines& to, const Batch<const Complex>& from, size_t length) {
    double *const real = to.real.data(), *const imag = to.imag.data();
    from.each(length, [=](size_t at, const Complex& x) {
        real[at] = x.real();
        imag[at] = x.imag();
    });
}
void put(Lines& to, const Batch<const double>& from, size_t length) {
    double* const real = to.real.data();
    from.each(length, [=](size_t at, const double& x) { real[at] = x; });
}
void take(const Lines& from, const Batch<Complex>& to, size_t length, double factor) {
    const double *const real = from.real.data(), *const imag = from.imag.data();
    to.each(length, [=](size_t at, Complex& x) { x = {real[at] * factor, imag[at] * factor}; });
}
void take(const Lines& from, const Batch<double>& to, size_t length, double factor) {
    const double* const real = from.real.data();
    to.each(length, [=](size_t at, double& x) { x = real[at] * factor; });
}

/// What lies between one dim's transform and the next.
using Between = Rows<Complex>;
Between betweenOf(const std::vector<int64_t>& sizes) {
    return {sizes, std::vector<Complex>(static_cast<size_t>(countOf(sizes, 0, sizes.size())))};
}
template <class T>
Batch<T> batchOf(Between& between, int64_t dim, int64_t first, size_t count) {
    Batch<T> made{{}, count, between.step(dim)};
    for (size_t l = 0; l < count; ++l) made.lines[l] = between.begin(dim, first + static_cast<int64_t>(l));
    return made;
}
/// One end of a transform: the caller's lines, one by one by way of `buffer`, or what lies between two dims.
template <class T>
class Source {
  public:
    explicit Source(const Load<T>& load) : m_load(&load) {}
    explicit Source(Between& between) : m_between(&between) {}
    void read(int64_t dim, int64_t first, size_t count, size_t length, std::vector<T>& buffer, Lines& to) const {
        if constexpr (std::is_same_v<T, Complex>)
            if (m_between) return put(to, batchOf<const Complex>(*m_between, dim, first, count), length);
        Batch<const T> batch{{}, count};
        buffer.resize(count * length);
        for (size_t l = 0; l < count; ++l) {
            batch.lines[l] = buffer.data() + l * length;
            (*m_load)(dim, first + static_cast<int64_t>(l), buffer.data() + l * length);
        }
        put(to, batch, length);
    }

  private:
    const Load<T>* m_load = nullptr;
    Between* m_between = nullptr;
};
template <class T>
class Sink {
  public:
    explicit Sink(const Store<T>& store) : m_store(&store) {}
    explicit Sink(Between& between) : m_between(&between) {}
    void write(int64_t dim, int64_t first, size_t count, size_t length, double factor, std::vector<T>& buffer,
               const Lines& from) const {
        if constexpr (std::is_same_v<T, Complex>)
            if (m_between) return take(from, batchOf<Complex>(*m_between, dim, first, count), length, factor);
        Batch<T> batch{{}, count};
        buffer.resize(count * length);
        for (size_t l = 0; l < count; ++l) batch.lines[l] = buffer.data() + l * length;
        take(from, batch, length, factor);
        for (size_t l = 0; l < count; ++l) (*m_store)(dim, first + static_cast<int64_t>(l), batch.lines[l]);
    }

  private:
    const Store<T>* m_store = nullptr;
    Between* m_between = nullptr;
};

/// How many elements of a line are read and written, and how many it takes while it is transformed.
struct Extents {
    size_t read, written, room;
};
/// All lines along a dim.
template <class In, class Out, class Body>
void alongDim(const Call& call, int64_t dim, int64_t lines, const Extents& extents, double factor,
              const Source<In>& source, const Sink<Out>& sink, const Body& body) {
    const auto run = [&](int64_t begin, int64_t end) {
        Transform::Memory memory;
        Lines all;
        all.resize(extents.room);
        std::vector<In> in;
        std::vector<Out> out;
        for (int64_t batch = begin; batch < end; ++batch) {
            const int64_t first = batch * static_cast<int64_t>(kLanes);
            const auto count = static_cast<size_t>(std::min<int64_t>(kLanes, lines - first));
            source.read(dim, first, count, extents.read, in, all);
            body(all, memory);
            sink.write(dim, first, count, extents.written, factor, out, all);
        }
    };
    const int64_t batches = (lines + static_cast<int64_t>(kLanes) - 1) / static_cast<int64_t>(kLanes);
    if (call.inParts) call.inParts(batches, run);
    else run(0, batches);
}

void complexAlongDim(const Call& call, const std::vector<int64_t>& sizes, int64_t dim, bool forward, double factor,
                     const Source<Complex>& source, const Sink<Complex>& sink) {
    const auto length = static_cast<size_t>(sizes[static_cast<size_t>(dim)]);
    const Transform transform(length, forward);
    const int64_t lines = countOf(sizes, 0, sizes.size()) / static_cast<int64_t>(length);
    alongDim(call, dim, lines, {length, length, length}, factor, source, sink,
             [&](Lines& all, Transform::Memory& memory) { transform(all, memory); });
}

/// Leading dims that are not transformed are taken a few at a time, so that what lies between two dims' transforms
/// stays in a thread's cache. False: there are too few of them to share among threads. Sizes of the result are `made`.
template <class In, class Out, class Whole>
bool inBlocks(const Call& call, const std::vector<int64_t>& made, const Load<In>& load, const Store<Out>& store,
              const Whole& whole) {
    constexpr int64_t kCached = 1 << 16, kFew = 8;  // elements; blocks
    const int64_t leading = *std::min_element(call.dims.begin(), call.dims.end());
    const auto front = static_cast<size_t>(leading);
    const int64_t rows = countOf(call.sizes, 0, front);
    const int64_t row = countOf(call.sizes, front, call.sizes.size()), madeRow = countOf(made, front, made.size());
    const int64_t block = std::max<int64_t>(1, kCached / std::max(row, madeRow)), blocks = (rows + block - 1) / block;
    if (call.dims.size() < 2 || blocks < kFew || !call.inParts) return false;
    call.inParts(blocks, [&](int64_t begin, int64_t end) {
        for (int64_t number = begin; number < end; ++number) {
            const int64_t first = number * block;
            Call own{{std::min(block, rows - first)}, {}, call.normalization, {}};
            own.sizes.insert(own.sizes.end(), call.sizes.begin() + leading, call.sizes.end());
            for (const int64_t dim : call.dims) own.dims.push_back(dim - leading + 1);
            const auto dimOf = [&](int64_t dim) { return dim + leading - 1; };
            whole(
                own,
                [&](int64_t dim, int64_t line, In* to) {
                    const int64_t whence = dimOf(dim);
                    load(whence, first * (row / call.sizes[static_cast<size_t>(whence)]) + line, to);
                },
                [&](int64_t dim, int64_t line, const Out* from) {
                    const int64_t whither = dimOf(dim);
                    store(whither, first * (madeRow / made[static_cast<size_t>(whither)]) + line, from);
                });
        }
    });
    return true;
}

}  // namespace

void complexToComplex(const Call& call, bool forward, const Load<Complex>& load, const Store<Complex>& store) {
    if (countOf(call.sizes, 0, call.sizes.size()) == 0) return;
    if (inBlocks(call, call.sizes, load, store,
                 [&](const Call& own, const Load<Complex>& from, const Store<Complex>& to) {
                     complexToComplex(own, forward, from, to);
                 }))
        return;
    const double factor = factorOf(call.normalization, lengthOf(call));
    Between between = betweenOf(call.dims.size() > 1 ? call.sizes : std::vector<int64_t>{0});
    for (size_t i = 0; i < call.dims.size(); ++i) {
        const bool last = i + 1 == call.dims.size();
        complexAlongDim(call, call.sizes, call.dims[i], forward, last ? factor : 1,
                        i == 0 ? Source<Complex>(load) : Source<Complex>(between),
                        last ? Sink<Complex>(store) : Sink<Complex>(between));
    }
}

void realToComplex(const Call& call, int64_t kept, const Load<double>& load, const Store<Complex>& store) {
    const int64_t dim = call.dims.back();
    std::vector<int64_t> sizes = call.sizes;
    sizes[static_cast<size_t>(dim)] = kept;
    if (countOf(sizes, 0, sizes.size()) == 0) return;
    if (inBlocks(call, sizes, load, store, [&](const Call& own, const Load<double>& from, const Store<Complex>& to) {
            realToComplex(own, kept, from, to);
        }))
        return;
    const auto length = static_cast<size_t>(call.sizes[static_cast<size_t>(dim)]), written = static_cast<size_t>(kept);
    const double factor = factorOf(call.normalization, lengthOf(call));
    const RealTransform transform(length, true);
    const int64_t lines = countOf(call.sizes, 0, call.sizes.size()) / static_cast<int64_t>(length);
    const bool one = call.dims.size() == 1;
    Between between = betweenOf(one ? std::vector<int64_t>{0} : sizes);
    const auto body = [&](Lines& all, Transform::Memory& memory) {
        transform.forward(all, memory);
        for (size_t k = length / 2 + 1; k < written; ++k)
            for (size_t l = 0; l < kLanes; ++l) {
                all.real[k * kLanes + l] = all.real[(length - k) * kLanes + l];
                all.imag[k * kLanes + l] = -all.imag[(length - k) * kLanes + l];
            }
    };
    alongDim(call, dim, lines, {length, written, std::max(length, written)}, one ? factor : 1, Source<double>(load),
             one ? Sink<Complex>(store) : Sink<Complex>(between), body);
    for (size_t i = call.dims.size() - 1; i-- > 0;)
        complexAlongDim(call, sizes, call.dims[i], true, i == 0 ? factor : 1, Source<Complex>(between),
                        i == 0 ? Sink<Complex>(store) : Sink<Complex>(between));
}

void complexToReal(const Call& call, int64_t size, const Load<Complex>& load, const Store<double>& store) {
    const int64_t dim = call.dims.back();
    const auto d = static_cast<size_t>(dim);
    std::vector<int64_t> made = call.sizes;
    made[d] = size;
    if (countOf(made, 0, made.size()) == 0) return;
    if (inBlocks(call, made, load, store, [&](const Call& own, const Load<Complex>& from, const Store<double>& to) {
            complexToReal(own, size, from, to);
        }))
        return;
    const size_t given = static_cast<size_t>(call.sizes[d]), length = static_cast<size_t>(size);
    const double factor = factorOf(call.normalization, lengthOf(call) / call.sizes[d] * size);
    const bool one = call.dims.size() == 1;
    Between between = betweenOf(one ? std::vector<int64_t>{0} : call.sizes);
    for (size_t i = 0; i + 1 < call.dims.size(); ++i)
        complexAlongDim(call, call.sizes, call.dims[i], false, 1,
                        i == 0 ? Source<Complex>(load) : Source<Complex>(between), Sink<Complex>(between));
    const RealTransform transform(length, false);
    const auto body = [&](Lines& all, Transform::Memory& memory) {
        for (size_t k = given; k <= length / 2; ++k) {
            std::fill_n(&all.real[k * kLanes], kLanes, 0.0);
            std::fill_n(&all.imag[k * kLanes], kLanes, 0.0);
        }
        transform.back(all, memory);
    };
    alongDim(call, dim, countOf(call.sizes, 0, call.sizes.size()) / call.sizes[d],
             {given, length, std::max({given, length, length / 2 + 1})}, factor,
             one ? Source<Complex>(load) : Source<Complex>(between), Sink<double>(store), body);
}

}  // namespace cutaway::fourier
