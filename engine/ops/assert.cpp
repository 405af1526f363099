// Calls for what they do, not for a value: assertions that tracing leaves in a graph, promises about the range of a
// number, and printing.
#include <cstdio>

#include "engine/ops/eval.h"
#include "engine/ops/op_registry.h"
#include "engine/support/factor_status.h"

namespace cutaway {
namespace {

Result<ValueType> inferNothing(const InferContext&) { return ValueType(); }
std::string messageOf(const EvalContext& c) {
    const std::string text = c.op().schema()->find("assert_msg") >= 0 ? c.text("assert_msg") : std::string();
    return text.empty() ? "the assertion does not hold" : text;
}
EvalResult evalAssertNumber(const EvalContext& c) {
    if (toDouble(c.number("self")) == 0) return c.fail(messageOf(c));
    return TensorList{};
}
Result<ValueType> inferAssertTensor(const InferContext& c) {
    CT_TRY(const TensorType self, c.tensor(size_t{0}));
    if (differ(numel(self.sizes), 1)) return c.fail("needs a tensor of one element");
    if (c.op().schema()->returns.empty()) return ValueType();
    CT_TRY(TensorType token, c.tensor("dep_token"));
    return ValueType(std::move(token));
}
std::optional<Error> assertTensor(const EvalContext& c) {
    const Scalar value = c.in(size_t{0}).item();
    const auto* complex = std::get_if<std::complex<double>>(&value);
    if (complex ? *complex == 0.0 : toDouble(value) == 0) return c.fail(messageOf(c));
    return std::nullopt;
}
EvalResult evalAssertTensor(const EvalContext& c) {
    if (auto error = assertTensor(c)) return std::move(*error);
    if (c.op().schema()->returns.empty()) return TensorList{};
    return c.in("dep_token").clone();
}
/// min <= size <= max, and for sizes at least 0.
EvalResult evalRange(const EvalContext& c) {
    const double value = toDouble(c.number("size"));
    const std::string_view name = c.op().baseName();
    if (name == "sym_constrain_range_for_size" && value < 0) return c.fail("the size is negative");
    for (bool low : {true, false}) {
        const auto bound = c.scalar(low ? "min" : "max");
        if (bound && (low ? value < toDouble(*bound) : value > toDouble(*bound)))
            return c.fail(std::to_string(static_cast<int64_t>(value)) +
                          (low ? " is less than the promised " : " is more than the promised ") +
                          std::to_string(toInt(*bound)));
    }
    return TensorList{};
}
/// `info`: what LAPACK says of each factorization; 0 is success.
EvalResult evalFactorsFound(const EvalContext& c) {
    const Tensor& info = c.in("info");
    for (int64_t i = 0; i < info.numel(); ++i)
        if (const int64_t status = toInt(info.item(i)); status != 0)
            return c.fail(ct::factorStatusText(c.text("api_name"), status, c.flag("is_matrix") ? -1 : i));
    return TensorList{};
}
Result<ValueType> inferFactorsFound(const InferContext& c) {
    CT_TRY_VOID(c.tensor("info"));
    return ValueType();
}
/// To standard error: what a run prints on standard output are its results.
EvalResult evalPrint(const EvalContext& c) {
    std::fprintf(stderr, "%s\n", std::string(c.text("s")).c_str());
    return TensorList{};
}

constexpr OpDef kAssertOps[] = {
    {.schema = "aten._assert_scalar.default(Scalar self, str assert_msg) -> ()",
     .tags = Tag::Impure | Tag::Symbolic,
     .infer = inferNothing,
     .eval = evalAssertNumber},
    {.schema = "aten._assert_async.default(Tensor self) -> ()",
     .tags = Tag::Impure,
     .infer = inferAssertTensor,
     .eval = evalAssertTensor},
    {.schema = "aten._assert_async.msg(Tensor self, str assert_msg) -> ()",
     .tags = Tag::Impure,
     .infer = inferAssertTensor,
     .eval = evalAssertTensor},
    {.schema = "aten._functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
     .tags = Tag::Impure,
     .infer = inferAssertTensor,
     .eval = evalAssertTensor},
    {.schema = "aten._linalg_check_errors.default(Tensor info, str api_name, *, bool is_matrix) -> ()",
     .tags = Tag::Impure,
     .infer = inferFactorsFound,
     .eval = evalFactorsFound},
    {.schema = "aten._print.default(str s) -> ()", .tags = Tag::Impure, .infer = inferNothing, .eval = evalPrint},
    {.schema = "aten.sym_constrain_range.default(Scalar size, *, int? min=None, int? max=None) -> ()",
     .tags = Tag::Impure | Tag::Symbolic,
     .infer = inferNothing,
     .eval = evalRange},
    {.schema = "aten.sym_constrain_range_for_size.default(Scalar size, *, int? min=None, int? max=None) -> ()",
     .tags = Tag::Impure | Tag::Symbolic,
     .infer = inferNothing,
     .eval = evalRange},
};

}  // namespace

std::span<const OpDef> assertOps() { return kAssertOps; }

}  // namespace cutaway
