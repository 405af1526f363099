#pragma once
// Cubic convolution, which sampling by a grid and its gradients read planes by.
namespace cutaway {

/// Weights of the four taps around fraction t by cubic convolution with A = -0.75, and their slopes.
template <class T>
void cubicTaps(T t, T* weights, T* slopes) {
    const T a = T(-0.75);
    const auto near = [&](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [&](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    const auto nearSlope = [&](T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
    const auto farSlope = [&](T x) { return (3 * a * x - 10 * a) * x + 8 * a; };
    weights[0] = far(t + 1);
    weights[1] = near(t);
    weights[2] = near(1 - t);
    weights[3] = far(2 - t);
    slopes[0] = farSlope(t + 1);
    slopes[1] = nearSlope(t);
    slopes[2] = -nearSlope(1 - t);
    slopes[3] = -farSlope(2 - t);
}

}  // namespace cutaway
