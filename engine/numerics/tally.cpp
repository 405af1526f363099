#include "engine/numerics/tally.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/numerics/element_reader.h"
#include "engine/support/threads.h"

namespace cutaway {

bool hasOrder(DType dtype) {
    return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}

int64_t orderOf(DType dtype, double value) {
    const auto order = [](auto bits, auto sign) {
        return bits & sign ? -static_cast<int64_t>(bits & ~sign) : static_cast<int64_t>(bits);
    };
    switch (dtype) {
        case DType::F16:
        case DType::BF16: {
            uint16_t bits = 0;
            storeElements(dtype, &bits, 1, 1, &value);
            return order(uint32_t{bits}, uint32_t{0x8000});
        }
        case DType::F32: return order(std::bit_cast<uint32_t>(static_cast<float>(value)), uint32_t{1} << 31);
        default: return order(std::bit_cast<uint64_t>(value), uint64_t{1} << 63);
    }
}

namespace {

constexpr int64_t kPiece = 512;  // three of them stay in the first cache
constexpr int64_t kPart = int64_t{1} << 17;
constexpr int kLanes = 8;
constexpr double kMost = std::numeric_limits<double>::max();

bool finite(double x) { return std::abs(x) <= kMost; }

/// Sums kept in lanes: additions in a fixed order, the same on every processor however wide its vectors are.
struct LaneSums {
    double lanes[kLanes] = {};
    double total() const {
        double sum = 0;
        for (const double lane : lanes) sum += lane;
        return sum;
    }
};
struct LaneMost {
    double lanes[kLanes] = {};
    double total() const { return *std::max_element(lanes, lanes + kLanes); }
};

struct Piece {
    int64_t first, count;
    const double *x, *y, *exact;  // of value, reference and f64 run; null for none
};

/// Calls visit(i, lane) for all numbers of a piece, lane by lane.
template <class Visit>
void inLanes(int64_t count, Visit&& visit) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) visit(i + lane, lane);
    for (int lane = 0; i < count; ++i, ++lane) visit(i, lane);
}

void countNonFinite(const Piece& piece, Tally& tally) {
    int64_t strange = 0;
    for (int64_t i = 0; i < piece.count; ++i) strange += !finite(piece.x[i]);
    if (strange == 0) return;
    for (int64_t i = 0; i < piece.count; ++i) {
        tally.nans += std::isnan(piece.x[i]);
        tally.infinities += std::isinf(piece.x[i]);
    }
}

struct Cosine {
    LaneSums product, left, right;
    void add(const Piece& piece) {
        inLanes(piece.count, [&](int64_t i, int lane) {
            const bool counts = finite(piece.x[i]) && finite(piece.y[i]);
            const double x = counts ? piece.x[i] : 0, y = counts ? piece.y[i] : 0;
            product.lanes[lane] += x * y;
            left.lanes[lane] += x * x;
            right.lanes[lane] += y * y;
        });
    }
};

void compareOne(int64_t at, double x, double y, DType dtype, bool ordered, Tally& tally) {
    if (x == y || (std::isnan(x) && std::isnan(y))) return;
    ++tally.different;
    tally.newNonFinite += !std::isfinite(x) && std::isfinite(y);
    if (!std::isfinite(x) || !std::isfinite(y)) return;
    const double error = std::abs(x - y);
    if (error > tally.maxAbsolute) {
        tally.maxAbsolute = error;
        tally.worst = at;
        tally.worstValue = x;
        tally.worstReference = y;
    }
    if (y != 0) tally.maxRelative = std::max(tally.maxRelative, error / std::abs(y));
    if (ordered) tally.maxUlp = std::max(tally.maxUlp, std::abs(orderOf(dtype, x) - orderOf(dtype, y)));
}

struct From64 {
    LaneSums value, reference, magnitudes, counts;
    LaneMost valueMost, referenceMost, largest;

    void add(const Piece& piece) {
        const double* y = piece.y != nullptr ? piece.y : piece.exact;
        inLanes(piece.count, [&](int64_t i, int lane) {
            const bool counts64 = finite(piece.exact[i]) && finite(piece.x[i]) && finite(y[i]);
            const double exact = counts64 ? piece.exact[i] : 0;
            const double a = counts64 ? piece.x[i] - exact : 0, b = counts64 ? y[i] - exact : 0;
            value.lanes[lane] += a * a;
            reference.lanes[lane] += b * b;
            magnitudes.lanes[lane] += exact * exact;
            counts.lanes[lane] += counts64 ? 1 : 0;
            raise(valueMost, lane, a);
            raise(referenceMost, lane, b);
            raise(largest, lane, exact);
        });
    }
    static void raise(LaneMost& most, int lane, double error) {
        const double size = std::abs(error);
        most.lanes[lane] = size > most.lanes[lane] ? size : most.lanes[lane];
    }
};

/// Numbers [first, end).
Tally tallyPart(const Tensor& value, const Tensor& reference, const Tensor& exact, int64_t first, int64_t end) {
    Tally tally;
    Cosine cosine;
    From64 distances;
    const DType dtype = value.dtype();
    const bool ordered = hasOrder(dtype), hasReference = reference.defined(), hasExact = exact.defined();
    // Where distances are taken from the reference, it is read once.
    const bool own = hasExact && !(hasReference && exact.storage() == reference.storage() &&
                                   exact.strides() == reference.strides() && exact.offset() == reference.offset());
    ElementReader values(value, first), references(hasReference ? reference : value, first),
        exacts(hasExact ? exact : value, first);
    double x[kPiece], y[kPiece], z[kPiece];
    for (int64_t at = first; at < end; at += kPiece) {
        Piece piece{at, std::min(kPiece, end - at), x, hasReference ? y : nullptr, own ? z : y};
        values.read(piece.count, x);
        if (hasReference) references.read(piece.count, y);
        if (own) exacts.read(piece.count, z);
        countNonFinite(piece, tally);
        if (hasReference) {
            cosine.add(piece);
            if (std::memcmp(x, y, static_cast<size_t>(piece.count) * sizeof(double)) != 0)
                for (int64_t i = 0; i < piece.count; ++i) compareOne(at + i, x[i], y[i], dtype, ordered, tally);
        }
        if (hasExact) distances.add(piece);
    }
    tally.product = cosine.product.total();
    tally.left = cosine.left.total();
    tally.right = cosine.right.total();
    tally.value = {distances.value.total(), distances.valueMost.total()};
    tally.reference = {distances.reference.total(), distances.referenceMost.total()};
    tally.magnitudes = distances.magnitudes.total();
    tally.largest = distances.largest.total();
    tally.elements = static_cast<int64_t>(distances.counts.total());
    return tally;
}

void add(const Distances& part, Distances& all) {
    all.squares += part.squares;
    all.most = std::max(all.most, part.most);
}
void add(const Tally& part, Tally& all) {
    all.nans += part.nans;
    all.infinities += part.infinities;
    all.newNonFinite += part.newNonFinite;
    all.different += part.different;
    all.product += part.product;
    all.left += part.left;
    all.right += part.right;
    if (part.maxAbsolute > all.maxAbsolute) {
        all.maxAbsolute = part.maxAbsolute;
        all.worst = part.worst;
        all.worstValue = part.worstValue;
        all.worstReference = part.worstReference;
    }
    all.maxRelative = std::max(all.maxRelative, part.maxRelative);
    all.maxUlp = std::max(all.maxUlp, part.maxUlp);
    add(part.value, all.value);
    add(part.reference, all.reference);
    all.magnitudes += part.magnitudes;
    all.largest = std::max(all.largest, part.largest);
    all.elements += part.elements;
}

}  // namespace

Tally tallyOf(const Tensor& value, const Tensor& reference, const Tensor& exact) {
    const int64_t total = value.numel() * ElementReader::width(value.dtype());
    const auto parts = static_cast<int>((total + kPart - 1) / kPart);
    std::vector<Tally> tallies(static_cast<size_t>(parts));
    constexpr int64_t kNanoseconds = 3;  // a number
    const int threads = threadsWorth(total * kNanoseconds, std::min(threadCount(), parts));
    runRange(parts, 1, threads, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part)
            tallies[static_cast<size_t>(part)] =
                tallyPart(value, reference, exact, part * kPart, std::min(total, (part + 1) * kPart));
    });
    Tally all;
    for (const Tally& part : tallies) add(part, all);
    return all;
}

bool sameMemory(const Tensor& a, const Tensor& b) {
    if (a.dtype() != b.dtype() || a.sizes() != b.sizes() || a.strides() != b.strides()) return false;
    const int64_t reach = extent(a.sizes(), a.strides());
    return reach == a.numel() && std::memcmp(a.data(), b.data(), static_cast<size_t>(reach * byteSize(a.dtype()))) == 0;
}

}  // namespace cutaway
