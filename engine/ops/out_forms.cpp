// Calls that write their result into a tensor they are given (`out=`): the functional call, and a copy. PyTorch makes
// `out` larger or smaller where it has other sizes, which here is refused. Only the forms that programs use most have
// rows, which the tests of all operators see; the others are made of their functional row when a name asks for them.
#include "engine/ops/out_forms.h"

#include <algorithm>
#include <array>

#include "engine/ops/build.h"
#include "engine/ops/counts.h"
#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"

namespace cutaway {
namespace {

struct OutForm {
    std::string_view schema, functional, samples;
    bool exact = false;  // takes no out of another dtype than the result's
};
#define CUTAWAY_UNARY_OUT(name, how, ...)                                                           \
    {                                                                                               \
        "aten." name ".out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "aten." name ".default", \
            "f32[2, 3]" how ", out = f32[2, 3]" __VA_OPT__(, ) __VA_ARGS__                          \
    }
#define CUTAWAY_BINARY_OUT(name, functional)                                                             \
    {                                                                                                    \
        "aten." name "(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "aten." functional, \
            "f32[2, 3]>0, f32[3]>0, out = f32[2, 3]"                                                     \
    }
#define CUTAWAY_COMPARE_OUT(name)                                                                                    \
    {"aten." name ".Tensor_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "aten." name ".Tensor", \
     "f32[2, 3], f32[3], out = b8[2, 3]"},                                                                           \
    {                                                                                                                \
        "aten." name ".Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",                      \
            "aten." name ".Scalar", "f32[2, 3], 0.5, out = b8[2, 3]"                                                 \
    }
constexpr OutForm kForms[] = {
    CUTAWAY_UNARY_OUT("abs", "", true),
    CUTAWAY_UNARY_OUT("neg", ""),
    CUTAWAY_UNARY_OUT("exp", ""),
    CUTAWAY_UNARY_OUT("log", ">0"),
    CUTAWAY_UNARY_OUT("sqrt", ">0"),
    CUTAWAY_UNARY_OUT("rsqrt", ">0"),
    CUTAWAY_UNARY_OUT("reciprocal", ">0"),
    CUTAWAY_UNARY_OUT("sin", ""),
    CUTAWAY_UNARY_OUT("cos", ""),
    CUTAWAY_UNARY_OUT("tanh", ""),
    CUTAWAY_UNARY_OUT("sigmoid", ""),
    CUTAWAY_UNARY_OUT("floor", "", true),
    CUTAWAY_UNARY_OUT("ceil", "", true),
    CUTAWAY_UNARY_OUT("round", ""),
    CUTAWAY_UNARY_OUT("sign", "", true),
    {"aten.add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", "aten.add.Tensor",
     "f32[2, 3], f32[3], alpha = 2, out = f32[2, 3]"},
    {"aten.sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)", "aten.sub.Tensor",
     "f32[2, 3], f32[3], out = f32[2, 3]\nf32[2, 3], f32[3], out = f64[2, 3]"},
    CUTAWAY_BINARY_OUT("mul.out", "mul.Tensor"),
    CUTAWAY_BINARY_OUT("div.out", "div.Tensor"),
    CUTAWAY_BINARY_OUT("maximum.out", "maximum.default"),
    CUTAWAY_BINARY_OUT("minimum.out", "minimum.default"),
    {"aten.pow.Tensor_Tensor_out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.pow.Tensor_Tensor", "f32[2, 3]>0, f32[3], out = f32[2, 3]"},
    {"aten.pow.Tensor_Scalar_out(Tensor self, Scalar exponent, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.pow.Tensor_Scalar", "f32[2, 3], 2, out = f32[2, 3]"},
    CUTAWAY_COMPARE_OUT("eq"),
    CUTAWAY_COMPARE_OUT("ne"),
    CUTAWAY_COMPARE_OUT("lt"),
    CUTAWAY_COMPARE_OUT("le"),
    CUTAWAY_COMPARE_OUT("gt"),
    CUTAWAY_COMPARE_OUT("ge"),
    {"aten.clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.clamp.default", "f32[2, 3], -0.5, 0.5, out = f32[2, 3]"},
    {"aten.where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.where.self", "b8[2, 3], f32[2, 3], f32[3], out = f32[2, 3]", true},
    {"aten.mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "aten.mm.default",
     "f32[2, 3], f32[3, 4], out = f32[2, 4]"},
    {"aten.bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "aten.bmm.default",
     "f32[2, 3, 4], f32[2, 4, 5], out = f32[2, 3, 5]"},
    {"aten.mv.out(Tensor self, Tensor vec, *, Tensor(a!) out) -> Tensor(a!)", "aten.mv.default",
     "f32[2, 3], f32[3], out = f32[2]"},
    {"aten.matmul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "aten.matmul.default",
     "f32[2, 3, 4], f32[4], out = f32[2, 3]"},
    {"aten.addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
     "aten.addmm.default", "f32[4], f32[2, 3], f32[3, 4], out = f32[2, 4]"},
    {"aten.baddbmm.out(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
     "aten.baddbmm.default", "f32[2, 3, 5], f32[2, 3, 4], f32[2, 4, 5], alpha = 0.5, out = f32[2, 3, 5]"},
    {"aten.cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)", "aten.cat.default",
     "[f32[2, 3], f32[1, 3]], out = f32[3, 3]"},
    {"aten.stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)", "aten.stack.default",
     "[f32[3], f32[3]], 1, out = f32[3, 2]"},
    {"aten.sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.sum.dim_IntList", "f32[2, 3], [1], out = f32[2]"},
    {"aten.mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.mean.dim", "f32[2, 3], [1], True, out = f32[2, 1]"},
    {"aten.cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.cumsum.default", "f32[2, 3], 1, out = f32[2, 3]"},
    {"aten.index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
     "aten.index_select.default", "f32[4, 3], 0, i64[2]<4, out = f32[2, 3]"},
    {"aten.gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!)",
     "aten.gather.default", "f32[4, 3], 0, i64[2, 3]<4, out = f32[2, 3]", true},
    {"aten.linalg_vector_norm.out(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
     "aten.linalg_vector_norm.default", "f32[2, 3], 2, [1], out = f32[2]", true},
};

/// Forms that are named neither "out" (of the default overload) nor OVERLOAD_out, or whose results are not called
/// "out".
struct NamedForm {
    std::string_view out, functional, results;
};
constexpr NamedForm kNamedForms[] = {
    {"aten._linalg_det.result", "aten._linalg_det.default", "result LU pivots"},
    {"aten._linalg_eigh.eigenvalues", "aten._linalg_eigh.default", "eigenvalues eigenvectors"},
    {"aten._linalg_slogdet.sign", "aten._linalg_slogdet.default", "sign logabsdet LU pivots"},
    {"aten._linalg_solve_ex.result", "aten._linalg_solve_ex.default", "result LU pivots info"},
    {"aten._linalg_svd.U", "aten._linalg_svd.default", "U S Vh"},
    {"aten._native_batch_norm_legit.no_stats_out", "aten._native_batch_norm_legit.no_stats",
     "out save_mean save_invstd"},
    {"aten._softmax_backward_data.out", "aten._softmax_backward_data.default", "grad_input"},
    {"aten.adaptive_max_pool2d.out", "aten.adaptive_max_pool2d.default", "out indices"},
    {"aten.adaptive_max_pool3d.out", "aten.adaptive_max_pool3d.default", "out indices"},
    {"aten.add.out", "aten.add.Tensor", "out"},
    {"aten.all.all_out", "aten.all.default", "out"},
    {"aten.all.out", "aten.all.dim", "out"},
    {"aten.aminmax.out", "aten.aminmax.default", "min max"},
    {"aten.any.all_out", "aten.any.default", "out"},
    {"aten.any.out", "aten.any.dim", "out"},
    {"aten.arange.start_out", "aten.arange.start_step", "out"},
    {"aten.bernoulli.float_out", "aten.bernoulli.p", "out"},
    {"aten.copysign.out", "aten.copysign.Tensor", "out"},
    {"aten.cummax.out", "aten.cummax.default", "values indices"},
    {"aten.cummin.out", "aten.cummin.default", "values indices"},
    {"aten.div.out", "aten.div.Tensor", "out"},
    {"aten.div.out_mode", "aten.div.Tensor_mode", "out"},
    {"aten.divide.out", "aten.divide.Tensor", "out"},
    {"aten.divide.out_mode", "aten.divide.Tensor_mode", "out"},
    {"aten.empty.out", "aten.empty.memory_format", "out"},
    {"aten.fractional_max_pool2d.output", "aten.fractional_max_pool2d.default", "output indices"},
    {"aten.fractional_max_pool3d.output", "aten.fractional_max_pool3d.default", "output indices"},
    {"aten.frexp.Tensor_out", "aten.frexp.Tensor", "mantissa exponent"},
    {"aten.frobenius_norm.out", "aten.frobenius_norm.dim", "out"},
    {"aten.geqrf.a", "aten.geqrf.default", "a tau"},
    {"aten.histogram.bin_ct_out", "aten.histogram.bin_ct", "hist bin_edges"},
    {"aten.histogram.bins_tensor_out", "aten.histogram.bins_tensor", "hist bin_edges"},
    {"aten.huber_loss_backward.out", "aten.huber_loss_backward.default", "grad_input"},
    {"aten.kthvalue.values", "aten.kthvalue.default", "values indices"},
    {"aten.ldexp.out", "aten.ldexp.Tensor", "out"},
    {"aten.linalg_cholesky_ex.L", "aten.linalg_cholesky_ex.default", "L info"},
    {"aten.linalg_eig.out", "aten.linalg_eig.default", "eigenvalues eigenvectors"},
    {"aten.linalg_eigh.eigvals", "aten.linalg_eigh.default", "eigvals eigvecs"},
    {"aten.linalg_inv_ex.inverse", "aten.linalg_inv_ex.default", "inverse info"},
    {"aten.linalg_ldl_factor.out", "aten.linalg_ldl_factor.default", "LD pivots"},
    {"aten.linalg_ldl_factor_ex.out", "aten.linalg_ldl_factor_ex.default", "LD pivots info"},
    {"aten.linalg_lstsq.out", "aten.linalg_lstsq.default", "solution residuals rank singular_values"},
    {"aten.linalg_lu.out", "aten.linalg_lu.default", "P L U"},
    {"aten.linalg_lu_factor.out", "aten.linalg_lu_factor.default", "LU pivots"},
    {"aten.linalg_lu_factor_ex.out", "aten.linalg_lu_factor_ex.default", "LU pivots info"},
    {"aten.linalg_matrix_rank.out_tol_tensor", "aten.linalg_matrix_rank.tol_tensor", "out"},
    {"aten.linalg_pinv.out_rcond_tensor", "aten.linalg_pinv.rcond_tensor", "out"},
    {"aten.linalg_qr.out", "aten.linalg_qr.default", "Q R"},
    {"aten.linalg_slogdet.out", "aten.linalg_slogdet.default", "sign logabsdet"},
    {"aten.linalg_solve_ex.out", "aten.linalg_solve_ex.default", "result info"},
    {"aten.linalg_svd.U", "aten.linalg_svd.default", "U S Vh"},
    {"aten.log_sigmoid_forward.output", "aten.log_sigmoid_forward.default", "output buffer"},
    {"aten.lu_unpack.out", "aten.lu_unpack.default", "P L U"},
    {"aten.max.dim_max", "aten.max.dim", "max max_values"},
    {"aten.max.out", "aten.max.other", "out"},
    {"aten.max.unary_out", "aten.max.default", "out"},
    {"aten.max_pool2d_with_indices.out", "aten.max_pool2d_with_indices.default", "out indices"},
    {"aten.max_pool3d_with_indices.out", "aten.max_pool3d_with_indices.default", "out indices"},
    {"aten.mean.dtype_out", "aten.mean.default", "out"},
    {"aten.mean.out", "aten.mean.dim", "out"},
    {"aten.median.dim_values", "aten.median.dim", "values indices"},
    {"aten.min.dim_min", "aten.min.dim", "min min_indices"},
    {"aten.min.out", "aten.min.other", "out"},
    {"aten.min.unary_out", "aten.min.default", "out"},
    {"aten.mode.values", "aten.mode.default", "values indices"},
    {"aten.mul.out", "aten.mul.Tensor", "out"},
    {"aten.multilabel_margin_loss_forward.output", "aten.multilabel_margin_loss_forward.default", "output is_target"},
    {"aten.multiply.out", "aten.multiply.Tensor", "out"},
    {"aten.nanmedian.dim_values", "aten.nanmedian.dim", "values indices"},
    {"aten.native_batch_norm.out", "aten.native_batch_norm.default", "out save_mean save_invstd"},
    {"aten.nll_loss2d_forward.output", "aten.nll_loss2d_forward.default", "output total_weight"},
    {"aten.nll_loss_forward.output", "aten.nll_loss_forward.default", "output total_weight"},
    {"aten.norm.dtype_out", "aten.norm.ScalarOpt_dim_dtype", "out"},
    {"aten.norm.out", "aten.norm.ScalarOpt_dim", "out"},
    {"aten.prod.int_out", "aten.prod.dim_int", "out"},
    {"aten.slogdet.out", "aten.slogdet.default", "sign logabsdet"},
    {"aten.sort.values", "aten.sort.default", "values indices"},
    {"aten.sort.values_stable", "aten.sort.stable", "values indices"},
    {"aten.std.out", "aten.std.dim", "out"},
    {"aten.sub.out", "aten.sub.Tensor", "out"},
    {"aten.subtract.out", "aten.subtract.Tensor", "out"},
    {"aten.sum.IntList_out", "aten.sum.dim_IntList", "out"},
    {"aten.svd.U", "aten.svd.default", "U S V"},
    {"aten.topk.values", "aten.topk.default", "values indices"},
    {"aten.triangular_solve.X", "aten.triangular_solve.default", "X M"},
    {"aten.true_divide.out", "aten.true_divide.Tensor", "out"},
    {"aten.var.out", "aten.var.dim", "out"},
    {"aten.xlogy.OutScalar_Other", "aten.xlogy.Scalar_Other", "out"},
    {"aten.xlogy.OutScalar_Self", "aten.xlogy.Scalar_Self", "out"},
    {"aten.xlogy.OutTensor", "aten.xlogy.Tensor", "out"},
};

/// The names of a list of words.
std::vector<std::string> wordsOf(std::string_view text) {
    std::vector<std::string> words;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        words.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}
bool isOptionOfFactories(std::string_view param) {
    return param == "dtype" || param == "layout" || param == "device" || param == "pin_memory";
}

/// bool < integers < floats < complex: a result is not written to an `out` of a lower category.
int categoryOf(DType dtype) {
    if (isComplex(dtype)) return 3;
    if (isFloating(dtype)) return 2;
    return dtype == DType::Bool ? 0 : 1;
}
/// The functional call, and a copy of each result into its tensor.
Values written(Decomposition& d) {
    const auto found = std::find_if(std::begin(kForms), std::end(kForms), [&](const OutForm& row) {
        return row.schema.substr(0, row.schema.find('(')) == d.op().name();
    });
    const Op* functional =
        found != std::end(kForms) ? &requireOp(found->functional) : outFormOf(d.op().name(), findOp)->functional;
    std::vector<Value> outs;
    std::vector<Argument> positional;
    NamedArguments keywords;
    const auto& params = d.op().schema()->params;
    for (size_t i = 0; i < params.size(); ++i) {
        if (params[i].mutated) outs.push_back(d.in(i));
        else if (params[i].keywordOnly) keywords.emplace_back(params[i].name, d.arg(i));
        else positional.push_back(d.arg(i));
    }
    if (functional->schema()->find("layout") >= 0 && d.op().schema()->find("layout") < 0) {  // a factory
        keywords.emplace_back("dtype", outs[0].dtype());
        keywords.emplace_back("device", outs[0].type().device);
    }
    const Value result = d.builder().call(*functional, std::move(positional), std::move(keywords));
    if (!result) return result;
    const std::vector<Value> results = functional->schema()->returnsTuple() ? itemsOf(result) : std::vector{result};
    std::vector<Value> copies;
    for (size_t i = 0; i < std::min(outs.size(), results.size()); ++i) {
        const Value &from = results[i], &out = outs[i];
        if (found != std::end(kForms) && found->exact ? from.dtype() != out.dtype()
                                                      : categoryOf(from.dtype()) > categoryOf(out.dtype()))
            return refuse(
                d, "the result does not fit into out, which has dtype " + std::string(info(out.dtype()).torchName));
        if (differ(from.sizes(), out.sizes()))
            return refuse(d, "gives " + from.type().text() + ", and out is " + out.type().text() +
                                 "; give one of the result's sizes");
        copies.push_back(d.call("aten.copy_.default", {out, from}));
    }
    return copies.size() == 1 ? Values(copies[0]) : Values(copies);
}

constexpr auto kOutFormsOps = [] {
    std::array<OpDef, std::size(kForms)> ops;
    size_t at = 0;
    for (const OutForm& row : kForms) ops[at++] = shorthand(row.schema, written, row.samples);
    return ops;
}();

}  // namespace

std::span<const OpDef> outFormOps() { return kOutFormsOps; }

std::optional<OutFormOf> outFormOf(std::string_view name, const Op* (*find)(std::string_view)) {
    const size_t dot = name.rfind('.');
    if (!name.starts_with("aten.") || dot == std::string_view::npos) return std::nullopt;
    const std::string packet(name.substr(0, dot));
    const std::string_view overload = name.substr(dot + 1);
    OutFormOf form;
    const auto named = std::find_if(std::begin(kNamedForms), std::end(kNamedForms),
                                    [&](const NamedForm& row) { return row.out == name; });
    if (named != std::end(kNamedForms)) {
        form.functional = find(named->functional);
        form.results = wordsOf(named->results);
    } else if (overload == "grad_input") {
        form.functional = find(packet + ".default");
        form.results = {"grad_input"};
    } else if (overload == "out" || overload.ends_with("_out")) {
        form.functional = find(overload == "out" ? packet + ".default"
                                                 : packet + "." + std::string(overload.substr(0, overload.size() - 4)));
    }
    if (form.functional == nullptr || form.functional->mutates()) return std::nullopt;
    const std::vector<Return>& returns = form.functional->schema()->returns;
    for (const Return& one : returns)
        if (one.kind != ParamKind::Tensor || one.list) return std::nullopt;
    if (returns.empty()) return std::nullopt;
    if (form.results.empty() && returns.size() == 1) form.results = {"out"};
    for (size_t i = 0; form.results.empty() && i < returns.size(); ++i)
        form.results.push_back("out" + std::to_string(i));
    if (form.results.size() != returns.size()) return std::nullopt;
    return form;
}

Schema outSchema(std::string_view name, const OutFormOf& form) {
    Schema schema = *form.functional->schema();
    schema.name = name;
    if (schema.find("layout") >= 0)
        std::erase_if(schema.params, [](const Param& param) { return isOptionOfFactories(param.name); });
    schema.returns.clear();
    for (Param& param : schema.params) param.alias = 0;
    for (size_t i = 0; i < form.results.size(); ++i) {
        const char alias = static_cast<char>('a' + i);
        Param& out = schema.params.emplace_back();
        out.name = form.results[i];
        out.kind = ParamKind::Tensor;
        out.keywordOnly = out.mutated = true;
        out.alias = alias;
        schema.returns.push_back(Return{ParamKind::Tensor, false, alias, true});
    }
    return schema;
}

OpDef outDef(const OutFormOf& form) { return shorthand(form.functional->def()->schema, written, {}); }

}  // namespace cutaway
