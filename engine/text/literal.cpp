#include "engine/text/literal.h"

#include <charconv>

#include "engine/support/characters.h"

namespace cutaway::fxtext {
namespace {

/// repr without the ".0" that makes a float of whole numbers.
std::string shortest(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char buffer[40] = {};
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    const std::string_view all(buffer, static_cast<size_t>(end - buffer));
    const size_t e = all.find('e');
    std::string digits, sign = all[0] == '-' ? "-" : "";
    for (char c : all.substr(0, e))
        if (c >= '0' && c <= '9') digits += c;
    const int exponent = std::atoi(buffer + e + 1);
    const int count = static_cast<int>(digits.size());
    if (exponent < -4 || exponent >= 16) {
        std::string out = sign + digits.substr(0, 1);
        if (count > 1) out += "." + digits.substr(1);
        const std::string power = std::to_string(std::abs(exponent));
        return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
    }
    if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    if (count <= exponent + 1) return sign + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0');
    return sign + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
           digits.substr(static_cast<size_t>(exponent) + 1);
}

}  // namespace

std::string realText(double value) {
    std::string out = shortest(value);
    if (std::isfinite(value) && out.find_first_of(".e") == std::string::npos) out += ".0";
    return out;
}

std::string complexText(std::complex<double> value) {
    const std::string imaginary = shortest(value.imag());
    if (value.real() == 0 && !std::signbit(value.real()) && !imaginary.starts_with("-")) return imaginary + "j";
    return "(" + shortest(value.real()) + (imaginary.starts_with("-") ? "" : "+") + imaginary + "j)";
}

std::string quoted(std::string_view text) {
    const char quote =
        text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
    std::string out(1, quote);
    for (char c : text) {
        if (c == quote || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') out += "\\n";
        else if (c == '\r') out += "\\r";
        else if (c == '\t') out += "\\t";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            static constexpr char kHex[] = "0123456789abcdef";
            out += "\\x";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[static_cast<unsigned char>(c) & 15];
        } else out += c;
    }
    return out + quote;
}

bool isIdentifier(std::string_view text) {
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
    while (!text.empty()) {
        const size_t length = nameCharacter(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace cutaway::fxtext
