#include "engine/libraries/choose.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

#include "engine/ir/data_dependent.h"
#include "engine/ir/graph.h"
#include "engine/ir/readers.h"
#include "engine/libraries/library.h"
#include "engine/ops/alias.h"

namespace cutaway {
namespace {

std::string nameOf(DType dtype) { return std::string(info(dtype).torchName); }

/// Whether somebody reads the memory that the call writes to, other than as its result: then the write itself counts.
/// The library stores the result elsewhere.
bool isSeenAfterwards(const Node& node) {
    const Node* written = node.arg(size_t{0}).node();
    const Node& root = storageRoot(*written);
    if (!root.isCall()) return true;
    std::set<const Node*> sharers = {&root};  // membership only
    for (const Node* sharer : sharersOf(root)) {
        const Node* source = sharedOperand(*sharer);
        if (sharer != &node && source && sharers.contains(source)) sharers.insert(sharer);
    }
    for (const Node* later = node.next(); later; later = later->next()) {
        bool reads = false;
        later->forEachInput([&](const Node* input) { reads |= sharers.contains(input); });
        if (reads) return true;
    }
    return false;
}

/// float16 is computed in f32 where the processor has no such products.
constexpr DType kServed[] = {DType::F32, DType::BF16, DType::F16};

std::string whyNotType(const ValueType& type, const std::string& what) {
    const TensorType* tensor = type.tensor();
    if (tensor == nullptr) return what + " is no tensor";
    if (std::ranges::find(kServed, tensor->dtype) == std::end(kServed))
        return what + " is " + nameOf(tensor->dtype) + ", which the library does not compute in here";
    return {};
}
std::string whyNotOperands(const Node& node) {
    for (const Node* input : node.inputs())
        if (std::string why = whyNotType(input->type(), "'" + input->name() + "'"); !why.empty()) return why;
    return {};
}

/// The library rounds once, at the end, as the operators do.
std::string whyNotProduct(const Node& node) {
    std::string why = whyNotType(node.type(), "the result");
    return why.empty() ? whyNotOperands(node) : why;
}
std::string whyNotConvolution(const Node& node) {
    const Node* input = node.arg("input").node();
    const TensorType* type = input ? input->type().tensor() : nullptr;
    if (type == nullptr || type->sizes.size() < 3 || type->sizes.size() > 5)
        return "the library slides windows over one to three dims";
    return whyNotOperands(node);
}
/// Packed calls round once, as the library does.
std::string whyNotPacked(const Node& node) {
    if (std::string why = whyNotProduct(node); !why.empty()) return why;
    if (node.op().mutates() && isSeenAfterwards(node))
        return "what it writes to is read later under another name, and the library stores its result elsewhere";
    return {};
}
/// Floats of up to 32 bits, nothing dropped out, a mask that is added.
std::string whyNotAttention(const Node& node) {
    const auto served = [](DType dtype) { return dtype == DType::F32 || isHalf(dtype); };
    const auto find = [&](std::string_view param) {
        const int at = node.op().schema()->find(param);
        return at < 0 ? nullptr : &node.arg(static_cast<size_t>(at));
    };
    const TensorType* query = find("query")->node() ? find("query")->node()->type().tensor() : nullptr;
    if (query == nullptr || !served(query->dtype)) return "the query is no tensor of float32, bfloat16 or float16";
    if (find("dropout_p")->asReal().value_or(1) != 0)
        return "it drops weights out, and the state of the random generator is no operand";
    const Argument* mask = find("attn_mask") ? find("attn_mask") : find("attn_bias");
    const TensorType* added = mask && mask->node() ? mask->node()->type().tensor() : nullptr;
    if (added != nullptr && !isFloating(added->dtype))
        return "the mask is " + nameOf(added->dtype) + ", and only floats are added to scores";
    if (find("grad_input_mask") && (*find("grad_input_mask")->list())[3].asInt() != 0)
        return "the gradient of the mask is asked for";
    return {};
}
std::string whyNotCopies(const Node& node) {
    if (isCopiedConcatenation(node)) return {};
    return "only more than " + std::to_string(kMaxParts) +
           " parts of the result's dtype and rank are copied, fewer are chosen between by a kernel";
}

/// Every tensor of the call has a dtype and a number of dims that the C interface knows, and no number is complex.
std::string whyNotPortable(const Node& node) {
    std::string why;
    const auto check = [&](const ValueType& type, const std::string& what) {
        const TensorType* tensor = type.tensor();
        if (tensor == nullptr || !why.empty()) return;
        const bool known = tensor->dtype <= DType::U64;
        if (!known) why = what + " is " + nameOf(tensor->dtype) + ", which portable functions do not compute in";
        if (tensor->rank() > CT_MAX_RANK)
            why = what + " has " + std::to_string(tensor->rank()) + " dims, and portable functions take up to " +
                  std::to_string(CT_MAX_RANK);
    };
    check(node.type(), "the result");
    if (const TupleType* tuple = node.type().tuple())
        for (const ValueType& item : *tuple) check(item, "a result");
    for (const Node* input : node.inputs()) check(input->type(), "'" + input->name() + "'");
    for (const Argument& arg : node.args())
        if (arg.get<std::complex<double>>() && why.empty()) why = "portable functions take no complex numbers";
    const Node* const written = node.op().mutates() ? node.arg(size_t{0}).node() : nullptr;
    const Node* const root = written ? &storageRoot(*written) : nullptr;
    if (root && !root->isCall() && !root->isPlaceholder() && why.empty())
        why = "it writes to '" + root->name() + "', a constant, whose memory may be a file's";
    return why;
}

/// Where the engine's function has oneDNN compute in float32.
std::string whySlowProduct(const Node& node) {
    for (const Node* input : node.inputs())
        if (const TensorType* type = input->type().tensor())
            if (type->dtype == DType::F32 || isHalf(type->dtype))
                return "the engine's own function is faster at " + nameOf(type->dtype);
    return {};
}

/// For operators that kernels compute, but not on complex numbers, and not always where there is nothing to compute.
std::string whyNotLeft(const Node& node) {
    bool left = false;
    const auto check = [&](const ValueType& type) {
        const TensorType* tensor = type.tensor();
        left |=
            tensor && (isComplex(tensor->dtype) || std::count(tensor->sizes.begin(), tensor->sizes.end(), SymInt(0)));
    };
    check(node.type());
    for (const Node* input : node.inputs()) check(input->type());
    return left ? whyNotPortable(node) : "kernels compute it of real numbers";
}

/// Here the engine's own functions find sizes in runs, and check them; exported programs have none of those.
std::string whyNotFound(const Node&) {
    return "the engine's own function computes or checks sizes that follow from data";
}
/// Kernels make rows alone; their gradient reads the other results, which have other sizes.
std::string whyNotBag(const Node& node) {
    const bool rowsAlone = std::all_of(node.users().begin(), node.users().end(), [](const Node* user) {
        return user->isCall("operator.getitem") && user->arg(1).asInt() == 0;
    });
    return rowsAlone ? "of its results the rows alone are read, which a kernel makes" : whyNotPortable(node);
}

std::string whyNotIndex(const Node& node) {
    return sizeDependsOnData(node.op(), node.args()) ? whyNotFound(node) : whyNotLeft(node);
}

constexpr LibraryRow kRows[] = {
    {"aten.cat.default", "copies", whyNotCopies},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", "attention", whyNotAttention},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", "attention", whyNotAttention},
    {"aten._scaled_dot_product_efficient_attention.default", "attention", whyNotAttention},
    {"aten._scaled_dot_product_efficient_attention_backward.default", "attention", whyNotAttention},
    {"aten.mm.default", "oneDNN", whyNotProduct},
    {"aten.addmm.default", "oneDNN", whyNotProduct},
    {"aten.bmm.default", "oneDNN", whyNotProduct},
    {"aten.baddbmm.default", "oneDNN", whyNotProduct},
    {"aten.convolution.default", "oneDNN", whyNotConvolution},
    {"aten.convolution_backward.default", "oneDNN", whyNotConvolution},
    {"mkl._mkl_linear", "oneDNN", whyNotProduct},
    {"mkldnn._linear_pointwise.default", "oneDNN", whyNotPacked},
    {"mkldnn._linear_pointwise.binary", "oneDNN", whyNotPacked},
    {"mkldnn._convolution_pointwise.default", "oneDNN", whyNotPacked},
    {"mkldnn._convolution_pointwise.binary", "oneDNN", whyNotPacked},
    {"mkldnn._convolution_pointwise_.binary", "oneDNN", whyNotPacked},
    {"mkldnn._convolution_transpose_pointwise.default", "oneDNN", whyNotPacked},
    {"onednn.qlinear_pointwise.default", "oneDNN int8", whyNotPortable},
    {"onednn.qlinear_pointwise.tensor", "oneDNN int8", whyNotPortable},
    {"onednn.qconv_pointwise.default", "oneDNN int8", whyNotPortable},
    {"onednn.qconv_pointwise.tensor", "oneDNN int8", whyNotPortable},
    {"onednn.qconv1d_pointwise.default", "oneDNN int8", whyNotPortable},
    {"onednn.qconv2d_pointwise.default", "oneDNN int8", whyNotPortable},
    {"onednn.qconv2d_pointwise.tensor", "oneDNN int8", whyNotPortable},
    {"onednn.qconv2d_pointwise.binary", "oneDNN int8", whyNotPortable},
    {"onednn.qconv2d_pointwise.binary_tensor", "oneDNN int8", whyNotPortable},
    {"onednn.qconv3d_pointwise.default", "oneDNN int8", whyNotPortable},
    // Behind all others, since they are plain loops.
    {"aten.cumsum.default", kPortable, whyNotPortable},
    {"aten.cumprod.default", kPortable, whyNotPortable},
    {"aten.cummax.default", kPortable, whyNotPortable},
    {"aten.cummin.default", kPortable, whyNotPortable},
    {"aten.logcumsumexp.default", kPortable, whyNotPortable},
    {"aten.sort.default", kPortable, whyNotPortable},
    {"aten.sort.stable", kPortable, whyNotPortable},
    {"aten.argsort.default", kPortable, whyNotPortable},
    {"aten.argsort.stable", kPortable, whyNotPortable},
    {"aten.topk.default", kPortable, whyNotPortable},
    {"aten.kthvalue.default", kPortable, whyNotPortable},
    {"aten.median.dim", kPortable, whyNotPortable},
    {"aten.median.default", kPortable, whyNotPortable},
    {"aten.nanmedian.dim", kPortable, whyNotPortable},
    {"aten.nanmedian.default", kPortable, whyNotPortable},
    {"aten.mode.default", kPortable, whyNotPortable},
    {"aten.scatter.src", kPortable, whyNotPortable},
    {"aten.scatter.value", kPortable, whyNotPortable},
    {"aten.scatter.reduce", kPortable, whyNotPortable},
    {"aten.scatter.value_reduce", kPortable, whyNotPortable},
    {"aten.scatter_add.default", kPortable, whyNotPortable},
    {"aten.scatter_reduce.two", kPortable, whyNotPortable},
    {"aten.index_reduce.default", kPortable, whyNotPortable},
    {"aten.index_put.default", kPortable, whyNotPortable},
    {"aten._unsafe_index_put.default", kPortable, whyNotPortable},
    {"aten.index_add.default", kPortable, whyNotPortable},
    {"aten.index_copy.default", kPortable, whyNotPortable},
    {"aten.index_fill.int_Scalar", kPortable, whyNotPortable},
    {"aten.index_fill.int_Tensor", kPortable, whyNotPortable},
    {"aten.put.default", kPortable, whyNotPortable},
    {"aten.embedding_dense_backward.default", kPortable, whyNotPortable},
    {"aten._embedding_bag.default", kPortable, whyNotBag},
    {"aten._embedding_bag_forward_only.default", kPortable, whyNotBag},
    {"aten._embedding_bag_backward.default", kPortable, whyNotPortable},
    {"aten._embedding_bag_dense_backward.default", kPortable, whyNotPortable},
    {"aten.masked_scatter.default", kPortable, whyNotPortable},
    {"aten.masked_scatter_backward.default", kPortable, whyNotPortable},
    {"aten.copy.default", kPortable, whyNotPortable},
    {"aten.histc.default", kPortable, whyNotPortable},
    {"aten.max_pool2d_with_indices_backward.default", kPortable, whyNotPortable},
    {"aten.max_pool3d_with_indices_backward.default", kPortable, whyNotPortable},
    {"aten.adaptive_max_pool2d_backward.default", kPortable, whyNotPortable},
    {"aten.adaptive_max_pool3d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_nearest1d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_nearest2d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_nearest3d_backward.default", kPortable, whyNotPortable},
    {"aten._upsample_nearest_exact1d_backward.default", kPortable, whyNotPortable},
    {"aten._upsample_nearest_exact2d_backward.default", kPortable, whyNotPortable},
    {"aten._upsample_nearest_exact3d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_linear1d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_bilinear2d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_trilinear3d_backward.default", kPortable, whyNotPortable},
    {"aten.upsample_bicubic2d_backward.default", kPortable, whyNotPortable},
    {"aten.grid_sampler_2d.default", kPortable, whyNotPortable},
    {"aten.grid_sampler_3d.default", kPortable, whyNotPortable},
    {"aten.grid_sampler_2d_backward.default", kPortable, whyNotPortable},
    {"aten.grid_sampler_3d_backward.default", kPortable, whyNotPortable},
    {"aten.mm.default", kPortable, whyNotPortable},
    {"aten.bmm.default", kPortable, whyNotPortable},
    {"aten.addmm.default", kPortable, whyNotPortable},
    {"aten.baddbmm.default", kPortable, whyNotPortable},
    {"aten.mv.default", kPortable, whyNotPortable},
    {"aten.dot.default", kPortable, whyNotPortable},
    {"aten._int_mm.default", kPortable, whyNotPortable},
    {"aten._assert_scalar.default", kPortable, whyNotFound},
    {"aten._assert_async.default", kPortable, whyNotFound},
    {"aten._assert_async.msg", kPortable, whyNotFound},
    {"aten.sym_constrain_range.default", kPortable, whyNotFound},
    {"aten.sym_constrain_range_for_size.default", kPortable, whyNotFound},
    {"aten.index.Tensor", kPortable, whyNotFound},
    {"aten._unsafe_index.Tensor", kPortable, whyNotFound},
    {"aten.nonzero.default", kPortable, whyNotFound},
    {"aten.nonzero_numpy.default", kPortable, whyNotFound},
    {"aten.where.default", kPortable, whyNotFound},
    {"aten.masked_select.default", kPortable, whyNotFound},
    {"aten.repeat_interleave.Tensor", kPortable, whyNotFound},
    {"aten._unique2.default", kPortable, whyNotFound},
    {"aten._unique.default", kPortable, whyNotFound},
    {"aten.unique_dim.default", kPortable, whyNotFound},
    {"aten.unique_consecutive.default", kPortable, whyNotFound},
    {"aten.bincount.default", kPortable, whyNotFound},
    {"aten.rand.default", kPortable, whyNotPortable},
    {"aten.randn.default", kPortable, whyNotPortable},
    {"aten.randint.low", kPortable, whyNotPortable},
    {"aten.randperm.default", kPortable, whyNotPortable},
    {"aten.bernoulli.Tensor", kPortable, whyNotPortable},
    {"aten.normal.Tensor_Tensor", kPortable, whyNotPortable},
    {"aten.normal.Tensor_float", kPortable, whyNotPortable},
    {"aten.normal.float_Tensor", kPortable, whyNotPortable},
    {"aten.multinomial.default", kPortable, whyNotPortable},
    {"prims.inductor_seeds.default", kPortable, whyNotPortable},
    {"prims.inductor_randint.default", kPortable, whyNotPortable},
    {"aten.uniform.default", kPortable, whyNotPortable},
    {"aten.normal_functional.default", kPortable, whyNotPortable},
    {"aten.bernoulli.p", kPortable, whyNotPortable},
    {"aten.random.default", kPortable, whyNotPortable},
    {"aten.random.to", kPortable, whyNotPortable},
    {"aten.random.from", kPortable, whyNotPortable},
    {"aten.poisson.default", kPortable, whyNotPortable},
    {"aten.binomial.default", kPortable, whyNotPortable},
    {"aten.empty.memory_format", kPortable, whyNotPortable},
    {"aten.empty_strided.default", kPortable, whyNotPortable},
    {"aten.new_empty_strided.default", kPortable, whyNotPortable},
    {"aten.hann_window.default", kPortable, whyNotPortable},
    {"aten.hann_window.periodic", kPortable, whyNotPortable},
    {"aten.hamming_window.default", kPortable, whyNotPortable},
    {"aten.hamming_window.periodic", kPortable, whyNotPortable},
    {"aten.hamming_window.periodic_alpha", kPortable, whyNotPortable},
    {"aten.hamming_window.periodic_alpha_beta", kPortable, whyNotPortable},
    {"aten.bartlett_window.default", kPortable, whyNotPortable},
    {"aten.bartlett_window.periodic", kPortable, whyNotPortable},
    {"aten.blackman_window.default", kPortable, whyNotPortable},
    {"aten.blackman_window.periodic", kPortable, whyNotPortable},
    {"aten.kaiser_window.default", kPortable, whyNotPortable},
    {"aten.kaiser_window.periodic", kPortable, whyNotPortable},
    {"aten.kaiser_window.beta", kPortable, whyNotPortable},
    {"aten.fft_fftfreq.default", kPortable, whyNotPortable},
    {"aten.fft_rfftfreq.default", kPortable, whyNotPortable},
    {"aten._adaptive_avg_pool2d.default", kPortable, whyNotPortable},
    {"aten._adaptive_avg_pool3d.default", kPortable, whyNotPortable},
    {"aten._adaptive_avg_pool2d_backward.default", kPortable, whyNotPortable},
    {"aten._adaptive_avg_pool3d_backward.default", kPortable, whyNotPortable},
    {"aten.adaptive_max_pool2d.default", kPortable, whyNotPortable},
    {"aten.adaptive_max_pool3d.default", kPortable, whyNotPortable},
    {"quantized.max_pool2d.default", kPortable, whyNotPortable},
    {"aten.replication_pad1d_backward.default", kPortable, whyNotPortable},
    {"aten.replication_pad2d_backward.default", kPortable, whyNotPortable},
    {"aten.replication_pad3d_backward.default", kPortable, whyNotPortable},
    {"aten._upsample_bilinear2d_aa.default", kPortable, whyNotPortable},
    {"aten._upsample_bicubic2d_aa.default", kPortable, whyNotPortable},
    {"aten._upsample_bilinear2d_aa_backward.default", kPortable, whyNotPortable},
    {"aten._upsample_bicubic2d_aa_backward.default", kPortable, whyNotPortable},
    {"aten._embedding_bag_per_sample_weights_backward.default", kPortable, whyNotPortable},
    {"aten.nonzero_static.default", kPortable, whyNotPortable},
    {"aten.add.Tensor", kPortable, whyNotLeft},
    {"aten.add.Scalar", kPortable, whyNotLeft},
    {"aten.sub.Tensor", kPortable, whyNotLeft},
    {"aten.sub.Scalar", kPortable, whyNotLeft},
    {"aten.mul.Tensor", kPortable, whyNotLeft},
    {"aten.mul.Scalar", kPortable, whyNotLeft},
    {"aten.div.Tensor", kPortable, whyNotLeft},
    {"aten.div.Scalar", kPortable, whyNotLeft},
    {"aten.neg.default", kPortable, whyNotLeft},
    {"aten.abs.default", kPortable, whyNotLeft},
    {"aten._conj.default", kPortable, whyNotPortable},
    {"aten._conj_physical.default", kPortable, whyNotPortable},
    {"aten.exp.default", kPortable, whyNotLeft},
    {"aten.log.default", kPortable, whyNotLeft},
    {"aten.sqrt.default", kPortable, whyNotLeft},
    {"aten.reciprocal.default", kPortable, whyNotLeft},
    {"aten.sin.default", kPortable, whyNotLeft},
    {"aten.cos.default", kPortable, whyNotLeft},
    {"aten.sinh.default", kPortable, whyNotLeft},
    {"aten.cosh.default", kPortable, whyNotLeft},
    {"aten.eq.Tensor", kPortable, whyNotLeft},
    {"aten.eq.Scalar", kPortable, whyNotLeft},
    {"aten.ne.Tensor", kPortable, whyNotLeft},
    {"aten.ne.Scalar", kPortable, whyNotLeft},
    {"aten.logical_not.default", kPortable, whyNotLeft},
    {"aten.any.default", kPortable, whyNotLeft},
    {"aten.any.dim", kPortable, whyNotLeft},
    {"aten.all.default", kPortable, whyNotPortable},
    {"aten.all.dim", kPortable, whyNotPortable},
    {"aten.complex.default", kPortable, whyNotPortable},
    {"aten.polar.default", kPortable, whyNotPortable},
    {"aten.where.self", kPortable, whyNotLeft},
    {"aten.gcd.default", kPortable, whyNotPortable},
    {"aten.lcm.default", kPortable, whyNotPortable},
    {"aten.pow.Tensor_Scalar", kPortable, whyNotPortable},
    {"aten.pow.Tensor_Tensor", kPortable, whyNotPortable},
    {"aten.pow.Scalar", kPortable, whyNotPortable},
    {"aten.signbit.default", kPortable, whyNotPortable},
    {"aten.nextafter.default", kPortable, whyNotPortable},
    {"aten.ldexp.Tensor", kPortable, whyNotPortable},
    {"aten.i0.default", kPortable, whyNotPortable},
    {"aten.special_i0e.default", kPortable, whyNotPortable},
    {"aten.special_i1.default", kPortable, whyNotPortable},
    {"aten.special_i1e.default", kPortable, whyNotPortable},
    {"aten.special_erfcx.default", kPortable, whyNotPortable},
    {"aten.special_ndtri.default", kPortable, whyNotPortable},
    {"aten.special_zeta.default", kPortable, whyNotPortable},
    {"aten.polygamma.default", kPortable, whyNotPortable},
    {"aten.clone.default", kPortable, whyNotLeft},
    {"aten.lift_fresh_copy.default", kPortable, whyNotLeft},
    {"prims.convert_element_type.default", kPortable, whyNotLeft},
    {"aten.reshape.default", kPortable, whyNotLeft},
    {"aten.full.default", kPortable, whyNotLeft},
    {"aten.scalar_tensor.default", kPortable, whyNotLeft},
    {"aten.cat.default", kPortable, whyNotLeft},
    {"aten.constant_pad_nd.default", kPortable, whyNotLeft},
    {"aten.repeat.default", kPortable, whyNotLeft},
    {"prims.rev.default", kPortable, whyNotLeft},
    {"aten.select_scatter.default", kPortable, whyNotLeft},
    {"aten.slice_scatter.default", kPortable, whyNotLeft},
    {"aten.sum.default", kPortable, whyNotLeft},
    {"aten.sum.dim_IntList", kPortable, whyNotLeft},
    {"aten.prod.default", kPortable, whyNotLeft},
    {"aten.prod.dim_int", kPortable, whyNotLeft},
    {"aten.index.Tensor", kPortable, whyNotIndex},
    {"aten._unsafe_index.Tensor", kPortable, whyNotIndex},
    {"aten.embedding.default", kPortable, whyNotLeft},
    {"aten.linalg_lu_factor_ex.default", kPortable, whyNotPortable},
    {"aten.linalg_lu.default", kPortable, whyNotPortable},
    {"aten.lu_unpack.default", kPortable, whyNotPortable},
    {"aten.linalg_lu_solve.default", kPortable, whyNotPortable},
    {"aten.linalg_solve_triangular.default", kPortable, whyNotPortable},
    {"aten._linalg_solve_ex.default", kPortable, whyNotPortable},
    {"aten.linalg_inv_ex.default", kPortable, whyNotPortable},
    {"aten._linalg_det.default", kPortable, whyNotPortable},
    {"aten._linalg_slogdet.default", kPortable, whyNotPortable},
    {"aten.linalg_cholesky_ex.default", kPortable, whyNotPortable},
    {"aten.cholesky.default", kPortable, whyNotPortable},
    {"aten.cholesky_solve.default", kPortable, whyNotPortable},
    {"aten.cholesky_inverse.default", kPortable, whyNotPortable},
    {"aten.linalg_qr.default", kPortable, whyNotPortable},
    {"aten.linalg_householder_product.default", kPortable, whyNotPortable},
    {"aten._linalg_eigh.default", kPortable, whyNotPortable},
    {"aten.linalg_eig.default", kPortable, whyNotPortable},
    {"aten._linalg_svd.default", kPortable, whyNotPortable},
    {"aten.linalg_pinv.atol_rtol_tensor", kPortable, whyNotPortable},
    {"aten.linalg_matrix_exp.default", kPortable, whyNotPortable},
    {"aten._fft_c2c.default", kPortable, whyNotPortable},
    {"aten._fft_r2c.default", kPortable, whyNotPortable},
    {"aten._fft_c2r.default", kPortable, whyNotPortable},
    {"aten.convolution.default", kPortable, whyNotPortable, whySlowProduct},
    {"aten.convolution_backward.default", kPortable, whyNotPortable, whySlowProduct},
    {"quantized_decomposed.choose_qparams.tensor", kPortable, whyNotPortable},
    {"quantized_decomposed.choose_qparams_symmetric.tensor", kPortable, whyNotPortable},
    {"quantized_decomposed.choose_qparams_per_token.default", kPortable, whyNotPortable},
    {"quantized_decomposed.choose_qparams_per_token_asymmetric.default", kPortable, whyNotPortable},
    {"quantized_decomposed.fake_quant_per_channel.default", kPortable, whyNotPortable},
    {"aten.fake_quantize_per_channel_affine_cachemask.default", kPortable, whyNotPortable},
    {"aten.fake_quantize_per_tensor_affine_cachemask.default", kPortable, whyNotPortable},
    {"aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default", kPortable, whyNotPortable},
    {"aten._grouped_mm.default", kPortable, whyNotPortable, whySlowProduct},
    {"transformers.grouped_mm_fallback.default", kPortable, whyNotPortable, whySlowProduct},
    {"transformers.grouped_mm_fallback_backward.default", kPortable, whyNotPortable, whySlowProduct},
    {"onednn.qlinear_pointwise.binary", kPortable, whyNotPortable},
    {"onednn.qlinear_pointwise.binary_tensor", kPortable, whyNotPortable},
    {"quantized_decomposed.quantize_per_channel_group.default", kPortable, whyNotPortable},
    {"quantized_decomposed.dequantize_per_channel_group.default", kPortable, whyNotPortable},
    {"aten._weight_int8pack_mm.default", kPortable, whyNotPortable, whySlowProduct},
    {"onednn.linear_dynamic_fp16.default", kPortable, whyNotPortable, whySlowProduct},
    {"onednn.linear_relu_dynamic_fp16.default", kPortable, whyNotPortable, whySlowProduct},
    {"onednn.linear_prepack_fp16.default", kPortable, whyNotPortable},
};

}  // namespace

std::span<const LibraryRow> libraryRows() { return kRows; }

namespace {
using Rows = std::vector<const LibraryRow*>;

/// In their order. Every node is asked about, more than once.
const Rows& rowsNamed(std::string_view op) {
    static const auto& byOp = *new std::unordered_map<std::string_view, Rows>([] {
        std::unordered_map<std::string_view, Rows> all;
        for (const LibraryRow& row : kRows) all[row.op].push_back(&row);
        return all;
    }());
    static const Rows none;
    const auto found = byOp.find(op);
    return found == byOp.end() ? none : found->second;
}
/// Portable functions take their operators' twins in place, too.
Rows rowsOf(const Node& call) {
    if (!call.isCall()) return {};
    Rows rows = rowsNamed(call.op().name());
    if (const Op* functional = call.op().functional())
        std::ranges::copy_if(rowsNamed(functional->name()), std::back_inserter(rows),
                             [](const LibraryRow* row) { return row->library == kPortable; });
    return rows;
}
}  // namespace

const LibraryRow* libraryRowOf(const Node& call, bool alone) {
    for (const LibraryRow* row : rowsOf(call)) {
        if (!row->whyNot(call).empty()) continue;
        if (alone || row->whySlow == nullptr || row->whySlow(call).empty()) return row;
    }
    return nullptr;
}

bool hasFinder(std::string_view op) {
    return std::ranges::any_of(rowsNamed(op), [](const LibraryRow* row) { return row->whyNot == whyNotFound; });
}

std::string whyNoLibrary(const Node& node) {
    std::string first;
    for (const LibraryRow* row : rowsOf(node)) {
        std::string why = row->whyNot(node);
        if (why.empty() && row->whySlow) why = row->whySlow(node);
        if (why.empty()) return {};
        if (first.empty()) first = std::move(why);
    }
    return first.empty() ? "no library computes it" : first;
}

std::string libraryFor(const Node& node, bool alone) {
    const LibraryRow* const row = libraryRowOf(node, alone);
    if (row == nullptr) return {};
    if (row->library == kPortable) return std::string(kPortable) + ": " + node.op().name();
    return std::string(node.op().baseName()) + " (" + std::string(row->library) + ")";
}

bool isCopiedConcatenation(const Node& node) {
    if (!node.isCall("aten.cat.default") || node.arg(size_t{0}).list() == nullptr) return false;
    const auto& parts = *node.arg(size_t{0}).list();
    const TensorType* result = node.type().tensor();
    if (parts.size() <= kMaxParts || result == nullptr) return false;
    return std::all_of(parts.begin(), parts.end(), [&](const Argument& part) {
        const TensorType* type = part.node() ? part.node()->type().tensor() : nullptr;
        return type && type->dtype == result->dtype && type->sizes.size() == result->sizes.size();
    });
}

}  // namespace cutaway
