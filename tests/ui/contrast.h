#pragma once
// How well one colour can be read on another (WCAG 2: 4.5 for text).
#include <QColor>
#include <algorithm>
#include <cmath>

namespace cutaway::testing {

inline double luminance(const QColor& color) {
    const auto part = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    return 0.2126 * part(color.redF()) + 0.7152 * part(color.greenF()) + 0.0722 * part(color.blueF());
}

inline double contrast(const QColor& a, const QColor& b) {
    const double high = std::max(luminance(a), luminance(b)), low = std::min(luminance(a), luminance(b));
    return (high + 0.05) / (low + 0.05);
}

/// `top` at `share` over `ground`.
inline QColor blended(const QColor& top, const QColor& ground, double share) {
    const auto mix = [&](double a, double b) { return static_cast<float>(share * a + (1 - share) * b); };
    return QColor::fromRgbF(mix(top.redF(), ground.redF()), mix(top.greenF(), ground.greenF()),
                            mix(top.blueF(), ground.blueF()));
}

}  // namespace cutaway::testing
