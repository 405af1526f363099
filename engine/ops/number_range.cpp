#include "engine/ops/number_range.h"

#include "engine/support/number_text.h"

namespace cutaway {
namespace {

struct IntegerRange {
    int64_t low = 0;
    uint64_t high = 0;
};
IntegerRange rangeOf(DType dtype) {
    const int bits = byteSize(dtype) * 8;
    if (isUnsigned(dtype)) return {0, bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1};
    return {bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1)),
            (uint64_t{1} << (bits - 1)) - 1};
}
bool exceeds(double value, DType dtype) {
    if (!isIntegral(dtype)) return std::isfinite(value) && std::fabs(value) > largestOf(dtype);
    const IntegerRange range = rangeOf(dtype);
    return !(value >= static_cast<double>(range.low) && value <= static_cast<double>(range.high));
}

}  // namespace

double largestOf(DType dtype) {
    switch (dtype) {
        case DType::F64:
        case DType::C128: return std::numeric_limits<double>::max();
        case DType::F32:
        case DType::C64: return std::numeric_limits<float>::max();
        case DType::F16:
        case DType::C32: return 65504;
        case DType::BF16: return 3.3895313892515355e38;
        default: return std::numeric_limits<double>::infinity();
    }
}

bool overflows(const Scalar& number, DType dtype) {
    if (dtype == DType::Bool || std::holds_alternative<bool>(number)) return false;
    if (const auto* z = std::get_if<std::complex<double>>(&number))
        return exceeds(z->real(), dtype) || (isComplex(dtype) ? exceeds(z->imag(), dtype) : z->imag() != 0);
    if (const auto* real = std::get_if<double>(&number)) return exceeds(*real, dtype);
    const int64_t value = std::get<int64_t>(number);
    if (!isIntegral(dtype)) return exceeds(static_cast<double>(value), dtype);
    const IntegerRange range = rangeOf(dtype);
    if (value >= 0) return static_cast<uint64_t>(value) > range.high;
    return isUnsigned(dtype) ? uint64_t{0} - static_cast<uint64_t>(value) > range.high : value < range.low;
}

Result<void> checkNumber(const InferContext& c, std::string_view param, DType dtype) {
    const auto number = c.scalar(param);
    if (!number || !overflows(*number, dtype)) return {};
    const Argument& value = c.arg(param);
    const std::string text = value.asInt()    ? std::to_string(*value.asInt())
                             : value.asReal() ? shortNumber(*value.asReal())
                                              : "the number";
    return c.fail("'" + std::string(param) + "' of " + text + " does not fit into " +
                  std::string(info(dtype).torchName));
}

}  // namespace cutaway
