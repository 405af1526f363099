#pragma once
// How quantities are written, in every window: sizes in binary multiples, counts and times in decimal ones.
#include <QString>
#include <cstdint>

namespace cutaway::ui {

/// "1.5 MiB", "312 B".
QString bytesText(int64_t bytes);
/// "1.2 G", "640".
QString countText(int64_t count);
/// "2.5 s", "14 ms", "0.8 µs".
QString durationText(double milliseconds);
/// "12.5 %".
QString shareText(double share);

}  // namespace cutaway::ui
