#include "engine/ops/autocast.h"

#include <algorithm>
#include <span>

namespace cutaway {
namespace {

// PyTorch's aten/src/ATen/autocast_mode.{h,cpp}. In-place operators and those that write to a given tensor are in no
// list.
constexpr std::string_view kCpuLower[] = {"conv1d",
                                          "conv2d",
                                          "conv3d",
                                          "bmm",
                                          "mm",
                                          "linalg_vecdot",
                                          "baddbmm",
                                          "addmm",
                                          "_addmm_activation",
                                          "addbmm",
                                          "linear",
                                          "matmul",
                                          "conv_tbc",
                                          "conv_transpose1d",
                                          "conv_transpose2d",
                                          "conv_transpose3d",
                                          "prelu",
                                          "scaled_dot_product_attention",
                                          "_native_multi_head_attention"};
// In no list for the CPU, but expanded to bmm and the like, which are: mixed operands get the lower precision.
constexpr std::string_view kProductShorthand[] = {"einsum", "tensordot", "inner", "linalg_multi_dot", "chain_matmul"};
constexpr std::string_view kCpuFloat32[] = {"avg_pool3d",
                                            "binary_cross_entropy",
                                            "grid_sampler",
                                            "polar",
                                            "prod",
                                            "quantile",
                                            "nanquantile",
                                            "stft",
                                            "cdist",
                                            "grid_sampler_2d",
                                            "grid_sampler_3d",
                                            "trace",
                                            "view_as_complex",
                                            "cholesky",
                                            "cholesky_inverse",
                                            "cholesky_solve",
                                            "inverse",
                                            "lu_solve",
                                            "orgqr",
                                            "ormqr",
                                            "pinverse",
                                            "max_pool3d",
                                            "max_unpool2d",
                                            "max_unpool3d",
                                            "adaptive_avg_pool3d",
                                            "reflection_pad1d",
                                            "reflection_pad2d",
                                            "replication_pad1d",
                                            "replication_pad2d",
                                            "replication_pad3d",
                                            "mse_loss",
                                            "cosine_embedding_loss",
                                            "nll_loss",
                                            "nll_loss2d",
                                            "hinge_embedding_loss",
                                            "poisson_nll_loss",
                                            "smooth_l1_loss",
                                            "cross_entropy_loss",
                                            "l1_loss",
                                            "huber_loss",
                                            "margin_ranking_loss",
                                            "soft_margin_loss",
                                            "triplet_margin_loss",
                                            "multi_margin_loss",
                                            "ctc_loss",
                                            "kl_div",
                                            "multilabel_margin_loss",
                                            "binary_cross_entropy_with_logits",
                                            "fft_fft",
                                            "fft_ifft",
                                            "fft_fft2",
                                            "fft_ifft2",
                                            "fft_fftn",
                                            "fft_ifftn",
                                            "fft_rfft",
                                            "fft_irfft",
                                            "fft_rfft2",
                                            "fft_irfft2",
                                            "fft_rfftn",
                                            "fft_irfftn",
                                            "fft_hfft",
                                            "fft_ihfft",
                                            "linalg_cond",
                                            "linalg_matrix_rank",
                                            "linalg_solve",
                                            "linalg_cholesky",
                                            "linalg_svdvals",
                                            "linalg_eigvals",
                                            "linalg_eigvalsh",
                                            "linalg_inv",
                                            "linalg_householder_product",
                                            "linalg_tensorinv",
                                            "linalg_tensorsolve",
                                            "fake_quantize_per_tensor_affine",
                                            "geqrf",
                                            "qr",
                                            "svd",
                                            "triangular_solve",
                                            "fractional_max_pool2d",
                                            "fractional_max_pool3d",
                                            "adaptive_max_pool3d",
                                            "multilabel_margin_loss_forward",
                                            "linalg_qr",
                                            "linalg_cholesky_ex",
                                            "linalg_svd",
                                            "linalg_eig",
                                            "linalg_eigh",
                                            "linalg_matrix_sqrth",
                                            "linalg_lstsq",
                                            "linalg_inv_ex"};
constexpr std::string_view kCpuWidest[] = {"stack", "cat", "index_copy"};

constexpr std::string_view kCudaLower[] = {"_convolution",
                                           "conv1d",
                                           "conv2d",
                                           "conv3d",
                                           "conv_tbc",
                                           "conv_transpose1d",
                                           "conv_transpose2d",
                                           "conv_transpose3d",
                                           "convolution",
                                           "prelu",
                                           "addmm",
                                           "addmv",
                                           "addr",
                                           "matmul",
                                           "einsum",
                                           "mm",
                                           "mv",
                                           "linalg_vecdot",
                                           "linear",
                                           "addbmm",
                                           "baddbmm",
                                           "bmm",
                                           "chain_matmul",
                                           "linalg_multi_dot",
                                           "_thnn_fused_lstm_cell",
                                           "_thnn_fused_gru_cell",
                                           "lstm_cell",
                                           "gru_cell",
                                           "rnn_tanh_cell",
                                           "rnn_relu_cell",
                                           "_scaled_dot_product_flash_attention",
                                           "scaled_dot_product_attention"};
constexpr std::string_view kCudaFloat32[] = {"acos",
                                             "asin",
                                             "cosh",
                                             "erfinv",
                                             "exp",
                                             "expm1",
                                             "log",
                                             "log10",
                                             "log2",
                                             "log1p",
                                             "reciprocal",
                                             "rsqrt",
                                             "sinh",
                                             "tan",
                                             "pow",
                                             "softplus",
                                             "layer_norm",
                                             "native_layer_norm",
                                             "group_norm",
                                             "frobenius_norm",
                                             "nuclear_norm",
                                             "cosine_similarity",
                                             "poisson_nll_loss",
                                             "cosine_embedding_loss",
                                             "nll_loss",
                                             "nll_loss2d",
                                             "hinge_embedding_loss",
                                             "kl_div",
                                             "l1_loss",
                                             "smooth_l1_loss",
                                             "huber_loss",
                                             "mse_loss",
                                             "margin_ranking_loss",
                                             "multilabel_margin_loss",
                                             "soft_margin_loss",
                                             "triplet_margin_loss",
                                             "multi_margin_loss",
                                             "binary_cross_entropy_with_logits",
                                             "dist",
                                             "pdist",
                                             "cdist",
                                             "renorm",
                                             "logsumexp",
                                             "upsample_nearest1d",
                                             "_upsample_nearest_exact1d",
                                             "upsample_nearest2d",
                                             "_upsample_nearest_exact2d",
                                             "upsample_nearest3d",
                                             "_upsample_nearest_exact3d",
                                             "upsample_linear1d",
                                             "upsample_bilinear2d",
                                             "_upsample_bilinear2d_aa",
                                             "upsample_trilinear3d",
                                             "upsample_bicubic2d",
                                             "_upsample_bicubic2d_aa",
                                             "linalg_matrix_sqrth",
                                             "norm"};
constexpr std::string_view kCudaFloat32Result[] = {
    "prod", "softmax", "log_softmax", "cumprod", "cumsum", "linalg_vector_norm", "linalg_matrix_norm", "sum"};
constexpr std::string_view kCudaWidest[] = {"addcdiv", "addcmul",      "atan2",     "bilinear",  "cross",      "dot",
                                            "vdot",    "grid_sampler", "index_put", "tensordot", "scatter_add"};

struct List {
    DeviceType device;
    AutocastPolicy policy;
    std::span<const std::string_view> names;
};
constexpr List kLists[] = {{DeviceType::Cpu, AutocastPolicy::Lower, kCpuLower},
                           {DeviceType::Cpu, AutocastPolicy::Float32, kCpuFloat32},
                           {DeviceType::Cpu, AutocastPolicy::Widest, kCpuWidest},
                           {DeviceType::Cuda, AutocastPolicy::Lower, kCudaLower},
                           {DeviceType::Cuda, AutocastPolicy::Float32, kCudaFloat32},
                           {DeviceType::Cuda, AutocastPolicy::Float32Result, kCudaFloat32Result},
                           {DeviceType::Cuda, AutocastPolicy::Widest, kCudaWidest}};

/// What autocast converts: floating tensors on the device, except float64.
bool isEligible(const Argument& argument, DeviceType device) {
    const TensorType* type = argument.node() ? argument.node()->type().tensor() : nullptr;
    return type && isFloating(type->dtype) && type->dtype != DType::F64 && type->device.type == device;
}

DType wantedType(const std::vector<Argument>& args, AutocastPolicy policy, DeviceType device, DType lower) {
    if (policy == AutocastPolicy::Lower) return lower;
    if (policy != AutocastPolicy::Widest) return DType::F32;
    bool wide = false;
    for (const Argument& arg : args)
        arg.forEachNode(
            [&](Node* input) { wide |= isEligible(Argument(input), device) && input->tensor().dtype == DType::F32; });
    return wide ? DType::F32 : lower;
}

/// Whether the call is shorthand for products of operands in several precisions.
bool mixesProducts(const Op& op, const std::vector<Argument>& args, DeviceType device) {
    const std::string_view packet = op.packet();
    if (!packet.starts_with("aten.") || std::find(std::begin(kProductShorthand), std::end(kProductShorthand),
                                                  packet.substr(5)) == std::end(kProductShorthand))
        return false;
    bool wide = false, narrow = false;
    for (const Argument& arg : args)
        arg.forEachNode([&](Node* input) {
            if (isEligible(Argument(input), device)) (input->tensor().dtype == DType::F32 ? wide : narrow) = true;
        });
    return wide && narrow;
}

/// Float32Result: a `dtype` that the call leaves open becomes float32.
void setResultType(const Op& op, std::vector<Argument>& args, DeviceType device) {
    const int position = op.schema() ? op.schema()->find("dtype") : -1;
    if (position >= 0 && args[static_cast<size_t>(position)].isNone() && !args.empty() && isEligible(args[0], device))
        args[static_cast<size_t>(position)] = Argument(DType::F32);
}

}  // namespace

AutocastPolicy autocastPolicy(const Op& op, DeviceType device) {
    std::string_view packet = op.packet();
    if (!packet.starts_with("aten.")) return AutocastPolicy::Other;
    packet.remove_prefix(5);
    for (const List& list : kLists)
        if (list.device == device && std::find(list.names.begin(), list.names.end(), packet) != list.names.end())
            return list.policy;
    return AutocastPolicy::Other;
}

std::vector<Argument> autocastArguments(GraphBuilder& builder, const Op& op, std::vector<Argument> args,
                                        const AutocastState& state) {
    for (const auto& [device, lower] : state) {
        AutocastPolicy policy = autocastPolicy(op, device);
        if (policy == AutocastPolicy::Other && mixesProducts(op, args, device)) policy = AutocastPolicy::Lower;
        if (policy == AutocastPolicy::Other) continue;
        if (policy == AutocastPolicy::Float32Result) {
            setResultType(op, args, device);
            continue;
        }
        const DeviceType on = device;
        const DType wanted = wantedType(args, policy, on, lower);
        const auto cast = [&builder, on, wanted](Node* input) {
            return isEligible(Argument(input), on) ? convert(builder.value(*input), wanted).node() : input;
        };
        for (Argument& arg : args) arg = arg.mapNodes(cast);
    }
    return args;
}

Result<void> autocastCall(Node& call, const AutocastState& state, GraphBuilder builder) {
    std::vector<Argument> args = autocastArguments(builder, call.op(), call.args(), state);
    if (builder.error()) return *builder.error();
    if (std::equal(args.begin(), args.end(), call.args().begin(),
                   [](const Argument& a, const Argument& b) { return equal(a, b); }))
        return {};
    auto type = inferCall(call.op(), args);
    if (!type) {
        Error error = std::move(type).error();
        error.where = call.name();
        return error;
    }
    call.graph().setArgs(call, std::move(args));
    call.graph().setType(call, std::move(*type));
    return {};
}

}  // namespace cutaway
