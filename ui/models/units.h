#pragma once
// How counts and times are written, in every window: in decimal multiples, sizes in bytes in
// binary ones. And how a number that was typed is read.
#include <QString>
#include <cstdint>
#include <optional>

namespace cutaway::ui {

/// "1.2 G", "640".
QString countText(int64_t count);
/// Of bytes, as the command line writes them (bytesText in cutaway/words.h): "1.5 MiB".
QString sizeText(int64_t bytes);
/// "2.5 s", "14 ms", "0.8 µs".
QString durationText(double milliseconds);
/// "12.5 %".
QString shareText(double share);

/// A finite number that is 0 or more, typed with a decimal point, as the command line takes it, or as the user's locale
/// writes it. The thousands' sign is refused: it is another locale's decimal sign.
std::optional<double> typedNumber(const QString& text);

}  // namespace cutaway::ui
