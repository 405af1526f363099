#include "engine/ops/number_operand.h"

namespace cutaway {
namespace {

/// A number as a tensor that does not widen `like`, as PyTorch wraps it.
Value wrapped(Decomposition& d, std::string_view param, const Value& like) {
    const Argument number = d.arg(param);
    const bool real = number.get<double>() != nullptr, logical = number.get<bool>() != nullptr;
    DType dtype = like.dtype();
    if (real && isIntegral(dtype, true)) dtype = DType::F32;
    else if (!logical && dtype == DType::Bool) dtype = DType::I64;
    return full(d.builder(), {}, real ? Scalar(*number.asReal()) : Scalar(number.asInt().value_or(0)), dtype,
                like.type().device);
}

}  // namespace

Values numberFirst(Decomposition& d, std::string_view op) {
    if (!d.arg(size_t{0}).isNumber()) return refuse(d, "needs a number that is known before the run");
    const Value x = d.in(1);
    return d.call(op, {wrapped(d, d.op().schema()->params[0].name, x), x});
}
Values numberSecond(Decomposition& d, std::string_view op) {
    if (!d.arg(1).isNumber()) return refuse(d, "needs a number that is known before the run");
    const Value x = d.in(size_t{0});
    return d.call(op, {x, wrapped(d, d.op().schema()->params[1].name, x)});
}

}  // namespace cutaway
