// The batch norm operators that ATen's layers call (native_batch_norm, _batch_norm_with_update, ...). Training writes
// to the running statistics. `reserve` is what cuDNN's backward reads; on the CPU it is an empty tensor.
#include "engine/ops/build.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

Value reserve(Decomposition& d) {
    return d.call("aten.empty.memory_format", {Argument(SymDims{0})},
                  {{"dtype", DType::U8},
                   {"layout", Layout::Strided},
                   {"device", d.in("input").type().device},
                   {"pin_memory", false}});
}
/// Result, mean and reciprocal deviation. With statistics of the batch, the running ones are written to.
std::vector<Value> batchNormalised(Decomposition& d, bool training) {
    const Argument input = d.arg("input"), weight = d.arg("weight"), bias = d.arg("bias"), momentum = d.arg("momentum"),
                   eps = d.arg("eps");
    const bool running = d.has("running_mean") && d.has("running_var");
    if (!running && (d.has("running_mean") || d.has("running_var"))) {
        refuse(d, "needs both running_mean and running_var, or neither");
        return std::vector<Value>(3);
    }
    if (training && !running) {
        const Value all = d.call("aten._native_batch_norm_legit.no_stats", {input, weight, bias, true, momentum, eps});
        return {all[0], all[1], all[2]};
    }
    if (!running) {
        refuse(d, "evaluation needs running_mean and running_var");
        return std::vector<Value>(3);
    }
    const Value mean = d.in("running_mean"), variance = d.in("running_var");
    if (!training) {
        const Value all = d.call("aten._native_batch_norm_legit_no_training.default",
                                 {input, weight, bias, mean, variance, momentum, eps});
        return {all[0], all[1], all[2]};
    }
    const Value all = d.call("aten._native_batch_norm_legit_functional.default",
                             {input, weight, bias, mean, variance, true, momentum, eps});
    std::vector<Value> results = {all[0], all[1], all[2]};
    d.call("aten.copy_.default", {mean, all[3]});
    d.call("aten.copy_.default", {variance, all[4]});
    return results;
}
Values asFlagSays(Decomposition& d) { return batchNormalised(d, d.flag("training")); }
Values withReserve(Decomposition& d, bool training) {
    std::vector<Value> results = batchNormalised(d, training);
    results.push_back(reserve(d));
    return results;
}
/// The running statistics come back as results.
Values updated(Decomposition& d) {
    const Value all = d.call("aten._native_batch_norm_legit_functional.default",
                             {d.arg("input"), d.arg("weight"), d.arg("bias"), d.arg("running_mean"),
                              d.arg("running_var"), true, d.arg("momentum"), d.arg("eps")});
    return {all[0], all[1], all[2], reserve(d), all[3], all[4]};
}

/// The reserve is not read.
template <class Call>
std::vector<Argument> withoutReserve(const Call& c) {
    std::vector<Argument> args;
    for (size_t i = 0; i + 1 < c.count(); ++i) args.push_back(c.arg(i));
    return args;
}
Result<ValueType> inferBatchNormBackward(const InferContext& c) {
    return inferCall(requireOp("aten.native_batch_norm_backward.default"), withoutReserve(c));
}
Values backward(Decomposition& d) {
    const Value all = d.call("aten.native_batch_norm_backward.default", withoutReserve(d));
    const auto* mask = d.arg("output_mask").list();
    std::vector<Value> results(3);
    for (size_t i = 0; mask && i < results.size(); ++i)
        if ((*mask)[i].asInt().value_or(0) != 0) results[i] = all[static_cast<int64_t>(i)];
    return results;
}

constexpr OpDef kBatchNormNamesOps[] = {
    shorthand(
        "aten.native_batch_norm.default(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        asFlagSays,
        "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, False, 0.1, 1e-5\nf32[2, 3, 4, 4], f32[3], f32[3], None, None, True, 0.1, 1e-5\nf64[4, 3], None, None, f64[3], f64[3]>0, False, 0.1, 1e-5"),
    shorthand(
        "aten._native_batch_norm_legit.default(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        asFlagSays,
        "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, True, 0.1, 1e-5\nf64[4, 3], None, None, f64[3], f64[3]>0, False, 0.1, 1e-5"),
    shorthand(
        "aten._batch_norm_with_update.default(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        [](Decomposition& d) { return withReserve(d, true); },
        "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, 0.1, 1e-5\nf64[4, 3], None, None, f64[3], f64[3]>0, 0.1, 1e-5"),
    shorthand(
        "aten._batch_norm_with_update_functional.default(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        updated, "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, 0.1, 1e-5"),
    shorthand(
        "aten._batch_norm_no_update.default(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        [](Decomposition& d) { return withReserve(d, false); },
        "f32[2, 3, 4, 4], f32[3], f32[3], f32[3], f32[3]>0, 0.1, 1e-5"),
    {.schema =
         "aten.batch_norm_backward.default(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)",
     .tags = Tag::Reduction,
     .infer = inferBatchNormBackward,
     .eval = evalExpanded,
     .expand = Expand::Decompose,
     .decompose = backward,
     .samples =
         "f32[2, 3, 4], f32[2, 3, 4], f32[3], None, None, f32[3], f32[3]>0, True, 1e-5, [True, True, True], u8[0]\nf32[4, 3], f32[4, 3], f32[3], f32[3], f32[3]>0, f32[3], f32[3]>0, False, 1e-5, [True, False, True], u8[0]"},
};

}  // namespace

std::span<const OpDef> batchNormNameOps() { return kBatchNormNamesOps; }

}  // namespace cutaway
