#include "engine/ops/number_operand.h"

namespace cutaway {

Value numberLike(Decomposition& d, size_t position, const Value& like) {
    const Argument number = d.arg(position);
    if (!number.isNumber()) {
        d.builder().fail(d.fail("needs a number that is known before the run"));
        return Value(d.builder(), nullptr);
    }
    const bool real = number.get<double>() != nullptr, logical = number.get<bool>() != nullptr;
    DType dtype = like.dtype();
    if (real && isIntegral(dtype, true)) dtype = DType::F32;
    else if (!logical && dtype == DType::Bool) dtype = DType::I64;
    return full(d.builder(), {}, real ? Scalar(*number.asReal()) : Scalar(number.asInt().value_or(0)), dtype,
                like.type().device);
}

Values numberFirst(Decomposition& d, std::string_view op) {
    const Value x = d.in(1), number = numberLike(d, 0, x);
    return number ? Values(d.call(op, {number, x})) : Values(number);
}
Values numberSecond(Decomposition& d, std::string_view op) {
    const Value x = d.in(size_t{0}), number = numberLike(d, 1, x);
    return number ? Values(d.call(op, {x, number})) : Values(number);
}

}  // namespace cutaway
