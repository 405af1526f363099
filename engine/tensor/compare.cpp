#include "engine/tensor/compare.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "engine/support/threads.h"

namespace cutaway {

Tolerance defaultTolerance(DType dtype) {
    switch (dtype) {
        case DType::F16: return {1e-3, 1e-5};
        case DType::BF16: return {1.6e-2, 1e-5};
        case DType::F32:
        case DType::C64: return {1.3e-6, 1e-5};
        case DType::F64:
        case DType::C128: return {1e-7, 1e-7};
        default: return {0, 0};
    }
}

namespace {

/// Collects what differs, and remembers the element that is furthest out.
class Comparing {
  public:
    explicit Comparing(Tolerance tolerance) : m_tolerance(tolerance) {}
    const Comparison& result() const { return m_result; }

    void value(double got, double want, int64_t position) {
        if (std::isnan(got) && std::isnan(want)) return;
        if (!std::isfinite(got) || !std::isfinite(want)) {
            if (got != want) outside(std::numeric_limits<double>::infinity(), position);
            return;
        }
        const double error = std::abs(got - want), allowed = allowedAt(want);
        m_result.maxExpected = std::max(m_result.maxExpected, std::abs(want));
        m_result.maxAbsoluteError = std::max(m_result.maxAbsoluteError, error);
        if (error > allowed) outside(allowed > 0 ? error / allowed : error, position);
        else if (allowed > 0) furthest(error / allowed, position);
    }
    void integer(int64_t got, int64_t want, int64_t position) {
        m_result.maxExpected = std::max(m_result.maxExpected, std::abs(static_cast<double>(want)));
        if (got == want) return;
        const double error = std::abs(static_cast<double>(got) - static_cast<double>(want));
        m_result.maxAbsoluteError = std::max(m_result.maxAbsoluteError, error);
        outside(error, position);
    }
    /// Real values. A block that cannot hold the worst element only updates the maxima; any other goes value by value.
    void block(const double* got, const double* want, int64_t count, int64_t position) {
        constexpr int64_t kLanes = 8;
        double errors[kLanes] = {}, magnitudes[kLanes] = {};
        const double limit = std::min(1.0, m_furthest) * (1 - 1e-9);
        int looked = 0;
        const auto look = [&](int64_t i, int64_t lane) {
            const double error = std::abs(got[i] - want[i]), magnitude = std::abs(want[i]);
            errors[lane] = error > errors[lane] ? error : errors[lane];
            magnitudes[lane] = magnitude > magnitudes[lane] ? magnitude : magnitudes[lane];
            // The negations also catch NaN and infinity on either side, which make these comparisons false.
            const double most = limit * (m_tolerance.absolute + m_tolerance.relative * magnitude);
            looked |= static_cast<int>(!(error <= 0)) &
                      (static_cast<int>(!(error < most)) | static_cast<int>(!(magnitude - magnitude == 0)));
        };
        int64_t i = 0;
        for (; i + kLanes <= count; i += kLanes)
            for (int64_t lane = 0; lane < kLanes; ++lane) look(i + lane, lane);
        for (; i < count; ++i) look(i, 0);
        if (looked == 0) {
            m_result.maxAbsoluteError = std::max(m_result.maxAbsoluteError, *std::max_element(errors, errors + kLanes));
            m_result.maxExpected = std::max(m_result.maxExpected, *std::max_element(magnitudes, magnitudes + kLanes));
            return;
        }
        for (int64_t k = 0; k < count; ++k) value(got[k], want[k], position + k);
    }
    /// Merges the result of the part of the tensor that comes after this one.
    void join(const Comparing& behind) {
        m_result.within = m_result.within && behind.m_result.within;
        m_result.maxAbsoluteError = std::max(m_result.maxAbsoluteError, behind.m_result.maxAbsoluteError);
        m_result.maxExpected = std::max(m_result.maxExpected, behind.m_result.maxExpected);
        m_result.mismatches += behind.m_result.mismatches;
        if (behind.m_furthest > m_furthest) furthest(behind.m_furthest, behind.m_result.worst);
    }

  private:
    double allowedAt(double want) const { return m_tolerance.absolute + m_tolerance.relative * std::abs(want); }
    void outside(double by, int64_t position) {
        // Real and imaginary part are one element.
        if (m_lastOutside != position) ++m_result.mismatches;
        m_lastOutside = position;
        m_result.within = false;
        furthest(by, position);
    }
    void furthest(double by, int64_t position) {
        if (!(by > m_furthest)) return;
        m_furthest = by;
        m_result.worst = position;
    }

    Tolerance m_tolerance;
    Comparison m_result;
    double m_furthest = 0;
    int64_t m_lastOutside = -1;
};

constexpr int64_t kPart = 1 << 18;  // elements that one thread takes at once

/// Calls body(begin, end, part) for parts of [0, count), on several threads where that is worth it.
template <class Body>
void inParts(int64_t count, Body&& body) {
    constexpr int64_t kNanoseconds = 2;  // per element
    runRange((count + kPart - 1) / kPart, 1, threadsWorth(count * kNanoseconds, threadCount()),
             [&](int64_t first, int64_t last) {
                 for (int64_t part = first; part < last; ++part)
                     body(part * kPart, std::min(count, (part + 1) * kPart), part);
             });
}
size_t partsOf(int64_t count) { return static_cast<size_t>((count + kPart - 1) / kPart); }

/// Blocks of complex numbers where the tensor has them, else of reals.
template <class Each>
void forEachBlockOf(const Tensor& tensor, int64_t begin, int64_t end, Each&& each) {
    if (isComplex(tensor.dtype())) forEachBlock<std::complex<double>>(tensor, begin, end, each);
    else forEachBlock<double>(tensor, begin, end, each);
}

/// Bits of |value| as a float: they sort as the magnitudes do. Values beyond float become the largest float.
uint32_t magnitudeBits(double value) {
    return std::bit_cast<uint32_t>(
        static_cast<float>(std::min(std::abs(value), static_cast<double>(std::numeric_limits<float>::max()))));
}
uint32_t magnitudeBits(const std::complex<double>& value) { return magnitudeBits(std::abs(value)); }

/// Calls each(bits) for the finite elements of part of a contiguous tensor.
template <class Each>
void forEachMagnitude(const Tensor& tensor, int64_t begin, int64_t end, Each&& each) {
    constexpr uint32_t kInfinite = 0x7F800000;
    if (tensor.dtype() == DType::F32) {
        const auto* bits = static_cast<const uint32_t*>(tensor.data());
        for (int64_t i = begin; i < end; ++i)
            if (const uint32_t own = bits[i] & 0x7FFFFFFF; own < kInfinite) each(own);
        return;
    }
    forEachBlockOf(tensor, begin, end, [&](int64_t, int64_t n, const auto* values) {
        for (int64_t k = 0; k < n; ++k)
            if (std::isfinite(std::abs(values[k]))) each(magnitudeBits(values[k]));
    });
}

}  // namespace

double usualMagnitude(const Tensor& given) {
    const Tensor tensor = given.contiguous();
    constexpr int kDigits = 16;  // bits counted at once: the upper half, then the lower one of those that share it
    const auto counted = [&](auto&& binOf) {
        std::vector<int64_t> all(size_t{1} << kDigits);
        std::mutex mutex;
        inParts(tensor.numel(), [&](int64_t begin, int64_t end, int64_t) {
            std::vector<int64_t> own(all.size());
            forEachMagnitude(tensor, begin, end, [&](uint32_t bits) {
                if (const int64_t bin = binOf(bits); bin >= 0) ++own[static_cast<size_t>(bin)];
            });
            const std::lock_guard lock(mutex);
            for (size_t i = 0; i < all.size(); ++i) all[i] += own[i];
        });
        return all;
    };
    const auto find = [](const std::vector<int64_t>& all, int64_t& place) {
        size_t bin = 0;
        while (place >= all[bin]) place -= all[bin++];
        return static_cast<uint32_t>(bin);
    };
    const std::vector<int64_t> high = counted([](uint32_t bits) { return static_cast<int64_t>(bits >> kDigits); });
    const int64_t finite = std::accumulate(high.begin(), high.end(), int64_t{0});
    if (finite == 0) return 0;
    // Rounded down, so that of two values or more the largest alone never decides.
    int64_t place = (finite - 1) * 9 / 10;
    const uint32_t top = find(high, place);
    const std::vector<int64_t> low = counted([&](uint32_t bits) {
        return bits >> kDigits == top ? static_cast<int64_t>(bits & ((1u << kDigits) - 1)) : -1;
    });
    return static_cast<double>(std::bit_cast<float>((top << kDigits) | find(low, place)));
}

int64_t nonFiniteCount(const Tensor& given) {
    if (!given.defined() || !(isFloating(given.dtype()) || isComplex(given.dtype()))) return 0;
    const Tensor tensor = given.contiguous();
    std::atomic<int64_t> count{0};
    inParts(tensor.numel(), [&](int64_t begin, int64_t end, int64_t) {
        int64_t own = 0;
        forEachBlockOf(tensor, begin, end, [&](int64_t, int64_t n, const auto* values) {
            for (int64_t k = 0; k < n; ++k)
                own += !std::isfinite(std::real(values[k])) || !std::isfinite(std::imag(values[k]));
        });
        count += own;
    });
    return count;
}

bool sameBits(const Tensor& a, const Tensor& b) {
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
    if (a.numel() == 0) return true;
    const Tensor x = a.contiguous(), y = b.contiguous();
    return std::memcmp(x.data(), y.data(), static_cast<size_t>(x.numel() * byteSize(x.dtype()))) == 0;
}

Comparison compare(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
    Comparison types;
    types.sameType = types.within = actual.dtype() == expected.dtype() && actual.sizes() == expected.sizes();
    if (actual.sizes() != expected.sizes()) return types;
    const Tensor a = actual.contiguous(), b = expected.contiguous();
    const auto at = [](const Tensor& tensor, int64_t position) {
        return static_cast<const std::byte*>(tensor.data()) + position * byteSize(tensor.dtype());
    };
    std::vector<Comparing> parts(partsOf(a.numel()), Comparing(tolerance));
    inParts(a.numel(), [&](int64_t begin, int64_t end, int64_t part) {
        Comparing& comparing = parts[static_cast<size_t>(part)];
        if (isIntegral(a.dtype(), true) && isIntegral(b.dtype(), true)) {
            for (int64_t i = begin; i < end; ++i) comparing.integer(toInt(a.item(i)), toInt(b.item(i)), i);
            return;
        }
        std::array<std::complex<double>, kBlockElements> complex;
        std::array<double, kBlockElements> real;
        if (isComplex(a.dtype()) || isComplex(b.dtype()))
            forEachBlock<std::complex<double>>(a, begin, end, [&](int64_t i, int64_t n, const auto* left) {
                loadElements(b.dtype(), at(b, i), 1, n, complex.data());
                for (int64_t k = 0; k < n; ++k) {
                    const auto got = left[k], want = complex[static_cast<size_t>(k)];
                    comparing.value(got.real(), want.real(), i + k);
                    comparing.value(got.imag(), want.imag(), i + k);
                }
            });
        else
            forEachBlock<double>(a, begin, end, [&](int64_t i, int64_t n, const double* left) {
                loadElements(b.dtype(), at(b, i), 1, n, real.data());
                comparing.block(left, real.data(), n, i);
            });
    });
    Comparing all(tolerance);
    for (const Comparing& part : parts) all.join(part);
    Comparison result = all.result();
    result.sameType = types.sameType;
    result.within = result.within && types.within;
    return result;
}

}  // namespace cutaway
