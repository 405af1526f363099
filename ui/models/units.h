#pragma once
// How counts and times are written, in every window: in decimal multiples. Sizes in bytes: cutaway/words.h.
#include <QString>
#include <cstdint>

namespace cutaway::ui {

/// "1.2 G", "640".
QString countText(int64_t count);
/// "2.5 s", "14 ms", "0.8 µs".
QString durationText(double milliseconds);
/// "12.5 %".
QString shareText(double share);

}  // namespace cutaway::ui
