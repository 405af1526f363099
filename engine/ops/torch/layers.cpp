// torch.nn.functional: normalization, embedding, pooling, padding, interpolation.
#include <algorithm>
#include <array>

#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

Argument layerNorm(PythonCall& c) {
    return c.aten("layer_norm", {c["input"], c["normalized_shape"], c["weight"], c["bias"], c["eps"]});
}

Argument batchNorm(PythonCall& c) {
    return c.aten("batch_norm", {c["input"], c["weight"], c["bias"], c["running_mean"], c["running_var"],
                                 Argument(c.flag("training")), c["momentum"], c["eps"], Argument(true)});
}
Argument instanceNorm(PythonCall& c) {
    return c.aten("instance_norm", {c["input"], c["weight"], c["bias"], c["running_mean"], c["running_var"],
                                    Argument(c.flag("use_input_stats")), c["momentum"], c["eps"], Argument(true)});
}

/// x / max(|x|_p, eps), along one dim.
Argument normalize(PythonCall& c) {
    const Argument norm =
        c.aten("linalg_vector_norm", {c["input"], c["p"], Argument(std::vector<Argument>{c["dim"]}), Argument(true)});
    const Argument floor = c.aten("clamp_min", {norm, c["eps"]});
    return c.aten("div", {c["input"], c.aten("expand_as", {floor, c["input"]})});
}

Argument embedding(PythonCall& c) {
    if (c.given("max_norm"))
        return c.fail("max_norm rewrites the weight while looking it up", {"normalize the weight beforehand"});
    const TensorType weight = c.tensor("weight");
    if (weight.rank() == 0) return c.fail("the weight has no rows");
    Argument padding = c["padding_idx"];
    const auto row = padding.asInt();
    if (padding.isNone()) padding = Argument(-1);
    else if (row && *row < 0) padding = Argument(weight.sizes[0] + SymInt(*row));
    return c.aten("embedding", {c["weight"], c["input"], padding, Argument(c.flag("scale_grad_by_freq")),
                                Argument(c.flag("sparse"))});
}

/// A matrix of indices is a list of bags of one length.
Argument embeddingBag(PythonCall& c) {
    if (c.given("max_norm"))
        return c.fail("max_norm rewrites the weight while looking it up", {"normalize the weight beforehand"});
    constexpr std::array<std::string_view, 3> kModes = {"sum", "mean", "max"};
    const auto mode = std::find(kModes.begin(), kModes.end(), c.text("mode"));
    if (mode == kModes.end()) return c.fail("the mode '" + c.text("mode") + "'", {"use sum, mean or max"});
    Argument input = c["input"], weight = c["weight"];
    const TensorType* indices = tensorOf(input);
    // Until PyTorch 0.4 the weight came first.
    if (indices && isFloating(indices->dtype)) {
        std::swap(input, weight);
        indices = tensorOf(input);
    }
    if (indices == nullptr || indices->rank() < 1 || indices->rank() > 2)
        return c.fail("the indices are a line or a matrix");
    Argument offsets = c["offsets"], scales = c["per_sample_weights"];
    bool lastOffset = c.flag("include_last_offset");
    if (indices->rank() == 2) {
        if (!offsets.isNone()) return c.fail("offsets beside a matrix of indices", {"leave one of the two out"});
        const TensorType type = *indices;
        const Argument one(std::vector<Argument>{Argument(-1)});
        offsets = c.aten("arange", {Argument(0), Argument(numel(type.sizes)), Argument(type.sizes[1])},
                         {{"dtype", type.dtype}, {"device", type.device}});
        input = c.aten("reshape", {input, one});
        if (!scales.isNone()) scales = c.aten("reshape", {scales, one});
        lastOffset = false;
    }
    const Argument all =
        c.aten("embedding_bag", {weight, input, offsets, Argument(c.flag("scale_grad_by_freq")),
                                 Argument(static_cast<int64_t>(mode - kModes.begin())), Argument(c.flag("sparse")),
                                 scales, Argument(lastOffset), c["padding_idx"]});
    return c.failed() ? Argument() : Argument(c.builder().call("operator.getitem", {all, Argument(0)}).node());
}

/// x divided by a power of the mean square over neighbouring channels.
Argument localResponseNorm(PythonCall& c) {
    const TensorType type = c.tensor("input");
    const auto size = c["size"].asInt();
    if (c.failed()) return {};
    if (type.rank() < 3 || !size || *size < 1) return c.fail("takes 3 or more dims and a size of one or more");
    const auto ints = [](std::initializer_list<Argument> items) { return Argument(std::vector<Argument>(items)); };
    const Argument before(*size / 2), behind((*size - 1) / 2), zero(0), one(1);
    Argument mean = c.aten("mul", {c["input"], c["input"]});
    if (type.rank() == 3) {
        mean = c.aten("constant_pad_nd",
                      {c.aten("unsqueeze", {mean, one}), ints({zero, zero, before, behind}), Argument(0.0)});
        mean = c.aten("squeeze", {c.aten("avg_pool2d", {mean, ints({Argument(*size), one}), one}), one});
    } else {
        mean = c.aten("view", {mean, ints({Argument(type.sizes[0]), one, Argument(type.sizes[1]),
                                           Argument(type.sizes[2]), Argument(-1)})});
        mean = c.aten("constant_pad_nd", {mean, ints({zero, zero, zero, zero, before, behind}), Argument(0.0)});
        mean = c.aten("squeeze", {c.aten("avg_pool3d", {mean, ints({Argument(*size), one, one}), one}), one});
        mean = c.aten("view", {mean, Argument(type.sizes)});
    }
    return c.aten("div",
                  {c["input"], c.aten("pow", {c.aten("add", {c.aten("mul", {mean, c["alpha"]}), c["k"]}), c["beta"]})});
}

/// v scaled so that its norm over all dims but one is g.
Argument weightNorm(PythonCall& c) {
    const TensorType type = c.tensor("v");
    const auto dim = c["dim"].asInt();
    if (c.failed()) return {};
    if (!dim || *dim < -1 || *dim >= type.rank()) return c.fail("the dim is out of range");
    std::vector<Argument> others;
    for (int64_t i = 0; i < type.rank(); ++i)
        if (*dim == -1 || i != *dim) others.emplace_back(i);
    const Argument squares = c.aten("pow", {c["v"], Argument(2)});
    const Argument norm =
        c.aten("pow", {c.aten("sum", {squares, Argument(std::move(others)), Argument(*dim != -1)}), Argument(0.5)});
    return c.aten("mul", {c["v"], c.aten("div", {c["g"], norm})});
}

/// A stride that is left out is the kernel size, which ATen writes as an empty list.
Argument maxPool(PythonCall& c, const std::string& packet) {
    const Argument stride = c.given("stride") ? c["stride"] : Argument(std::vector<Argument>());
    const std::string name = c.flag("return_indices") ? packet + "_with_indices" : packet;
    return c.aten(name,
                  {c["input"], c["kernel_size"], stride, c["padding"], c["dilation"], Argument(c.flag("ceil_mode"))});
}

/// None in an output size keeps that size.
Argument adaptivePool(PythonCall& c, const std::string& packet, size_t spatial) {
    const TensorType type = c.tensor("input");
    const auto* items = c["output_size"].list();
    std::vector<Argument> sizes = items ? *items : std::vector<Argument>(spatial, c["output_size"]);
    if (sizes.size() != spatial || type.sizes.size() < spatial)
        return c.fail("output_size has " + std::to_string(spatial) + " numbers");
    for (size_t i = 0; i < spatial; ++i)
        if (sizes[i].isNone()) sizes[i] = Argument(type.sizes[type.sizes.size() - spatial + i]);
    return c.aten(packet, {c["input"], Argument(std::move(sizes))});
}

Argument adaptiveMaxPool(PythonCall& c, const std::string& packet, size_t spatial) {
    const Argument both = adaptivePool(c, packet, spatial);
    if (c.failed() || c.flag("return_indices")) return both;
    return Argument(c.builder().call("operator.getitem", {both, Argument(0)}).node());
}

Argument pad(PythonCall& c) {
    const std::string mode = c.text("mode");
    const auto* amounts = c["pad"].list();
    if (amounts == nullptr || amounts->size() % 2 != 0) return c.fail("pad is a list of pairs of numbers");
    if (mode == "constant")
        return c.aten("constant_pad_nd", {c["input"], c["pad"], c.given("value") ? c["value"] : Argument(0.0)});
    const std::string dims = std::to_string(amounts->size() / 2) + "d";
    if (mode == "reflect") return c.aten("reflection_pad" + dims, {c["input"], c["pad"]});
    if (mode == "replicate") return c.aten("replication_pad" + dims, {c["input"], c["pad"]});
    if (mode == "circular") return c.aten("pad", {c["input"], c["pad"], Argument(mode)});
    return c.fail("the mode '" + mode + "'", {"use constant, reflect, replicate or circular"});
}

/// interpolate, and its older names (upsample_nearest, upsample_bilinear), which fix mode and align_corners.
Argument resized(PythonCall& c, const std::string& mode, const Argument& corners, bool antialias, bool recompute) {
    const TensorType type = c.tensor("input");
    if (c.failed()) return {};
    if (type.rank() < 3 || type.rank() > 5) return c.fail("takes 3 to 5 dims, batch and channels first");
    const auto spatial = static_cast<size_t>(type.rank() - 2);
    const auto list = [&](std::string_view param) -> Argument {
        if (!c.given(param) || c[param].list()) return c[param];
        return Argument(std::vector<Argument>(spatial, c[param]));
    };
    Argument size = list("size"), factors = list("scale_factor");
    if (factors.list() && recompute) {
        std::vector<Argument> sizes;
        for (size_t i = 0; i < spatial; ++i) {
            const auto from = type.sizes[i + 2].asInt();
            const auto factor = (*factors.list())[i].asReal();
            if (!from || !factor) return c.fail("recompute_scale_factor with sizes that are known only at run time");
            sizes.emplace_back(static_cast<int64_t>(std::floor(static_cast<double>(*from) * *factor)));
        }
        size = Argument(std::move(sizes));
        factors = {};
    }
    if (const auto* items = factors.list()) {
        std::vector<Argument> reals;
        for (const Argument& item : *items) reals.push_back(item.asReal() ? Argument(*item.asReal()) : item);
        factors = Argument(std::move(reals));
    }
    const std::string rank = std::to_string(spatial) + "d";
    if (mode == "nearest") return c.aten("upsample_nearest" + rank, {c["input"], size, factors});
    if (mode == "nearest-exact") return c.aten("_upsample_nearest_exact" + rank, {c["input"], size, factors});
    if (mode == "area") return c.aten("adaptive_avg_pool" + rank, {c["input"], size});
    if (mode == "linear" && spatial == 1) return c.aten("upsample_linear1d", {c["input"], size, corners, factors});
    if (mode == "bilinear" && spatial == 2)
        return c.aten(antialias ? "_upsample_bilinear2d_aa" : "upsample_bilinear2d",
                      {c["input"], size, corners, factors});
    if (mode == "bicubic" && spatial == 2)
        return c.aten(antialias ? "_upsample_bicubic2d_aa" : "upsample_bicubic2d",
                      {c["input"], size, corners, factors});
    if (mode == "lanczos" && spatial == 2) {
        if (!antialias) return c.fail("the mode 'lanczos' needs antialias=True");
        return c.aten("_upsample_lanczos2d_aa", {c["input"], size, corners, factors});
    }
    if (mode == "trilinear" && spatial == 3)
        return c.aten("upsample_trilinear3d", {c["input"], size, corners, factors});
    return c.fail("the mode '" + mode + "' on " + std::to_string(type.rank()) + " dims");
}

Argument interpolate(PythonCall& c) {
    return resized(c, c.text("mode"), Argument(c.flag("align_corners")), c.flag("antialias"),
                   c.flag("recompute_scale_factor"));
}

/// The position of a word in the list that ATen counts; an error if it is none of them.
Argument positionOf(PythonCall& c, std::string_view param, std::span<const std::string_view> words) {
    const auto found = std::find(words.begin(), words.end(), c.text(param));
    if (found != words.end()) return Argument(static_cast<int64_t>(found - words.begin()));
    std::string known;
    for (const std::string_view word : words) known += (known.empty() ? "" : ", ") + std::string(word);
    return c.fail("the " + std::string(param) + " '" + c.text(param) + "'", {"use one of " + known});
}
Argument gridSample(PythonCall& c) {
    constexpr std::string_view kModes[] = {"bilinear", "nearest", "bicubic"},
                               kPaddings[] = {"zeros", "border", "reflection"};
    return c.aten("grid_sampler", {c["input"], c["grid"], positionOf(c, "mode", kModes),
                                   positionOf(c, "padding_mode", kPaddings), Argument(c.flag("align_corners"))});
}
/// The p-norm of each window, from the mean of the powers.
Argument powerPool(PythonCall& c, size_t spatial) {
    const auto p = c["norm_type"].asReal();
    if (!p || *p == 0) return c.fail("norm_type is a number other than zero");
    const auto* sides = c["kernel_size"].list();
    int64_t elements = 1;
    for (size_t i = 0; i < spatial; ++i) {
        const auto side = sides && i < sides->size() ? (*sides)[i].asInt() : c["kernel_size"].asInt();
        if (!side) return c.fail("kernel_size is a number, or one for each dim");
        elements *= *side;
    }
    const Argument stride = c.given("stride") ? c["stride"] : Argument(std::vector<Argument>());
    const Argument mean = c.aten("avg_pool" + std::to_string(spatial) + "d",
                                 {c.aten("pow", {c["input"], c["norm_type"]}), c["kernel_size"], stride, Argument(0),
                                  Argument(c.flag("ceil_mode"))});
    const Argument positive = c.aten("mul", {c.aten("sign", {mean}), c.aten("relu", {c.aten("abs", {mean})})});
    return c.aten("pow", {c.aten("mul", {positive, Argument(elements)}), Argument(1 / *p)});
}

/// What PyTorch's permute fusions put in the place of a product beside a permute.
Argument transposed(PythonCall& c, const Argument& value) {
    return c.aten("transpose", {value, Argument(-1), Argument(-2)});
}
Argument linearTranspose(PythonCall& c) {
    const Argument product = c.aten("matmul", {c["weight"], transposed(c, c["input"])});
    return c.given("bias") ? c.aten("add", {product, c.aten("unsqueeze", {c["bias"], Argument(-1)})}) : product;
}
Argument transposeLinear(PythonCall& c) {
    const Argument product = c.aten("matmul", {transposed(c, c["input"]), c.aten("t", {c["weight"]})});
    return c.given("bias") ? c.aten("add", {product, c["bias"]}) : product;
}
Argument transposeMatmul(PythonCall& c) {
    const Argument left = c.flag("Atrans") ? transposed(c, c["A"]) : c["A"];
    return c.aten("matmul", {left, c.flag("Btrans") ? transposed(c, c["B"]) : c["B"]});
}

constexpr PythonFunction kLayersFunctions[] = {
    {"torch__inductor_fx_passes_pre_grad_linear_transpose(Any input, Any weight, Any bias) -> Any", linearTranspose},
    {"torch__inductor_fx_passes_pre_grad_transpose_linear(Any input, Any weight, Any bias) -> Any", transposeLinear},
    {"torch__inductor_fx_passes_pre_grad_transpose_matmul(Any A, Any B, bool Atrans, bool Btrans) -> Any",
     transposeMatmul},
    {"torch.nn.functional.layer_norm(Any input, Any normalized_shape, Any weight=None, Any bias=None, float eps=1e-05) -> Any",
     layerNorm},
    {"torch.nn.functional.rms_norm(Any input, Any normalized_shape, Any weight=None, Any eps=None) -> Any",
     [](PythonCall& c) {
         return c.aten("rms_norm", {c["input"], c["normalized_shape"], c["weight"], c["eps"]});
     }},
    {"torch.nn.functional.group_norm(Any input, Any num_groups, Any weight=None, Any bias=None, float eps=1e-05) -> Any",
     [](PythonCall& c) {
         return c.aten("group_norm", {c["input"], c["num_groups"], c["weight"], c["bias"], c["eps"], Argument(true)});
     }},
    {"torch.nn.functional.batch_norm(Any input, Any running_mean, Any running_var, Any weight=None, Any bias=None, bool training=False, "
     "float momentum=0.1, float eps=1e-05) -> Any",
     batchNorm},
    {"torch.nn.functional.instance_norm(Any input, Any running_mean=None, Any running_var=None, Any weight=None, Any bias=None, "
     "bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Any",
     instanceNorm},
    {"torch.nn.functional.normalize(Any input, Any p=2.0, Any dim=1, Any eps=1e-12) -> Any", normalize},
    {"torch.nn.functional.embedding(Any input, Any weight, Any padding_idx=None, Any max_norm=None, Any norm_type=2.0, "
     "bool scale_grad_by_freq=False, bool sparse=False) -> Any",
     embedding},
    {"torch.nn.functional.embedding_bag(Any input, Any weight, Any offsets=None, Any max_norm=None, Any norm_type=2, bool scale_grad_by_freq=False, "
     "Any mode='mean', bool sparse=False, Any per_sample_weights=None, bool include_last_offset=False, Any padding_idx=None) -> Any",
     embeddingBag},
    {"torch.nn.functional.local_response_norm(Any input, Any size, Any alpha=0.0001, Any beta=0.75, Any k=1.0) -> Any",
     localResponseNorm},
    {"torch._weight_norm(Any v, Any g, Any dim=0) -> Any", weightNorm},
    {"torch.nn.functional.max_pool1d(Any input, Any kernel_size, Any stride=None, Any padding=0, Any dilation=1, bool ceil_mode=False, "
     "bool return_indices=False) -> Any",
     [](PythonCall& c) { return maxPool(c, "max_pool1d"); }},
    {"torch.nn.functional.max_pool2d(Any input, Any kernel_size, Any stride=None, Any padding=0, Any dilation=1, bool ceil_mode=False, "
     "bool return_indices=False) -> Any",
     [](PythonCall& c) { return maxPool(c, "max_pool2d"); }},
    {"torch.nn.functional.max_pool3d(Any input, Any kernel_size, Any stride=None, Any padding=0, Any dilation=1, bool ceil_mode=False, "
     "bool return_indices=False) -> Any",
     [](PythonCall& c) { return maxPool(c, "max_pool3d"); }},
    {"torch.nn.functional.adaptive_avg_pool2d(Any input, Any output_size) -> Any",
     [](PythonCall& c) { return adaptivePool(c, "adaptive_avg_pool2d", 2); }},
    {"torch.nn.functional.adaptive_avg_pool3d(Any input, Any output_size) -> Any",
     [](PythonCall& c) { return adaptivePool(c, "adaptive_avg_pool3d", 3); }},
    {"torch.nn.functional.adaptive_max_pool1d(Any input, Any output_size, bool return_indices=False) -> Any",
     [](PythonCall& c) { return adaptiveMaxPool(c, "adaptive_max_pool1d", 1); }},
    {"torch.nn.functional.adaptive_max_pool2d(Any input, Any output_size, bool return_indices=False) -> Any",
     [](PythonCall& c) { return adaptiveMaxPool(c, "adaptive_max_pool2d", 2); }},
    {"torch.nn.functional.adaptive_max_pool3d(Any input, Any output_size, bool return_indices=False) -> Any",
     [](PythonCall& c) { return adaptiveMaxPool(c, "adaptive_max_pool3d", 3); }},
    {"torch.nn.functional.pad(Any input, Any pad, Any mode='constant', Any value=None) -> Any", pad},
    {"torch._C._nn.pad(Any input, Any pad, Any mode='constant', Any value=None) -> Any", pad},
    {"torch.nn.functional.interpolate(Any input, Any size=None, Any scale_factor=None, Any mode='nearest', Any align_corners=None, "
     "Any recompute_scale_factor=None, bool antialias=False) -> Any",
     interpolate},
    {"torch.nn.functional.upsample(Any input, Any size=None, Any scale_factor=None, Any mode='nearest', Any align_corners=None) -> Any",
     [](PythonCall& c) { return resized(c, c.text("mode"), Argument(c.flag("align_corners")), false, false); }},
    {"torch.nn.functional.upsample_nearest(Any input, Any size=None, Any scale_factor=None) -> Any",
     [](PythonCall& c) { return resized(c, "nearest", Argument(false), false, false); }},
    {"torch.nn.functional.upsample_bilinear(Any input, Any size=None, Any scale_factor=None) -> Any",
     [](PythonCall& c) { return resized(c, "bilinear", Argument(true), false, false); }},
    {"torch.nn.functional.grid_sample(Any input, Any grid, Any mode='bilinear', Any padding_mode='zeros', Any align_corners=None) -> Any",
     gridSample},
    {"torch.nn.functional.affine_grid(Any theta, Any size, Any align_corners=None) -> Any",
     [](PythonCall& c) {
         return c.aten("affine_grid_generator", {c["theta"], c["size"], Argument(c.flag("align_corners"))});
     }},
    // torch.nn.functional.unfold takes windows of images apart; Tensor.unfold, of the same name, is another function.
    {"torch.nn.functional.unfold(Any input, Any kernel_size, Any dilation=1, Any padding=0, Any stride=1) -> Any",
     [](PythonCall& c) {
         return c.aten("im2col", {c["input"], c["kernel_size"], c["dilation"], c["padding"], c["stride"]});
     }},
    {"torch.nn.functional.fold(Any input, Any output_size, Any kernel_size, Any dilation=1, Any padding=0, Any stride=1) -> Any",
     [](PythonCall& c) {
         return c.aten("col2im",
                       {c["input"], c["output_size"], c["kernel_size"], c["dilation"], c["padding"], c["stride"]});
     }},
    {"torch.nn.functional.lp_pool1d(Any input, Any norm_type, Any kernel_size, Any stride=None, bool ceil_mode=False) -> Any",
     [](PythonCall& c) { return powerPool(c, 1); }},
    {"torch.nn.functional.lp_pool2d(Any input, Any norm_type, Any kernel_size, Any stride=None, bool ceil_mode=False) -> Any",
     [](PythonCall& c) { return powerPool(c, 2); }},
    {"torch.nn.functional.lp_pool3d(Any input, Any norm_type, Any kernel_size, Any stride=None, bool ceil_mode=False) -> Any",
     [](PythonCall& c) { return powerPool(c, 3); }},
};

}  // namespace

std::span<const PythonFunction> layerFunctions() { return kLayersFunctions; }

}  // namespace cutaway::torchcalls
