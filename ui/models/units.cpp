#include "ui/models/units.h"

#include <QLocale>
#include <cmath>

#include "cutaway/words.h"

namespace cutaway::ui {
namespace {

struct Unit {
    double size;
    const char* name;
};

/// In the largest unit of which there is at least one; units from large to small.
template <size_t N>
QString inUnits(double value, const Unit (&units)[N], bool whole) {
    size_t at = 0;
    while (at + 1 < N && value < units[at].size) ++at;
    const double number = value / units[at].size;
    const int digits = (whole && at + 1 == N) || number >= 100 || number == 0 ? 0 : 1;
    return QStringLiteral("%1 %2").arg(number, 0, 'f', digits).arg(QString::fromUtf8(units[at].name)).trimmed();
}

}  // namespace

QString countText(int64_t count) {
    static constexpr Unit kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
    return inUnits(static_cast<double>(count), kUnits, true);
}

QString sizeText(int64_t bytes) { return QString::fromStdString(bytesText(bytes)); }

QString durationText(double milliseconds) {
    static constexpr Unit kUnits[] = {{1e3, "s"}, {1, "ms"}, {1e-3, "µs"}};
    return inUnits(milliseconds, kUnits, false);
}

QString shareText(double share) { return QStringLiteral("%1 %").arg(100 * share, 0, 'f', 1); }

std::optional<double> typedNumber(const QString& text) {
    bool read = false;
    double number = text.trimmed().toDouble(&read);
    if (!read) {
        QLocale locale;
        locale.setNumberOptions(QLocale::RejectGroupSeparator);
        number = locale.toDouble(text.trimmed(), &read);
    }
    return read && std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace cutaway::ui
