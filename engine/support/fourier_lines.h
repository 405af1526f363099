#pragma once
// Discrete Fourier transforms of lines of numbers, several at once, in f64. Exported programs carry this.
#include <complex>
#include <cstddef>
#include <vector>

namespace cutaway::fourier {

using Complex = std::complex<double>;

/// So many lines are transformed at once. Each is computed by itself: a NaN stays in its line.
inline constexpr size_t kLanes = 4;
/// Element k of line l is at [k * kLanes + l].
struct Lines {
    std::vector<double> real, imag;

    void resize(size_t length) {
        real.resize(length * kLanes);
        imag.resize(length * kLanes);
    }
};

/// All lines of one length in one direction: what does not depend on the line is computed once. Not normalized.
class Transform {
  public:
    /// Of one call at a time: a thread needs its own.
    struct Memory {
        Lines other, wide;
    };

    Transform(size_t length, bool forward);
    void operator()(Lines& x, Memory& memory) const;

  private:
    void byRadices(Lines& x, Lines& y) const;

    size_t m_length;
    double m_sign;  // 1 forward, -1 back: the direction of a quarter turn
    std::vector<size_t> m_radices;
    std::vector<Complex> m_turns, m_chirp, m_filter;
    std::vector<Transform> m_ways;  // of the convolution, forward and back
};

/// Between `length` real numbers and the first length / 2 + 1 of their transform; the others are conjugates. Lines of
/// an even length are transformed as half as many complex numbers.
class RealTransform {
  public:
    RealTransform(size_t length, bool forward);
    /// Real numbers in x.real; x is as long as the result, or longer.
    void forward(Lines& x, Transform::Memory& memory) const;
    /// The other way. What the first number, and of an even length the last one, has that is not real does not count.
    void back(Lines& x, Transform::Memory& memory) const;

  private:
    size_t m_length;
    Transform m_transform;
    std::vector<Complex> m_turns;  // of halves
};

}  // namespace cutaway::fourier
