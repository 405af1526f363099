// Methods and functions of tensors that are more than their ATen operator: sizes and other facts that are known while
// compiling, splits, variances, literal tensors.
#include <utility>

#include "engine/ops/torch/python_call.h"

namespace cutaway::torchcalls {
namespace {

Argument list(const SymDims& dims) {
    ArgumentList out{{}, true};
    for (const SymInt& size : dims) out.items.emplace_back(size);
    return Argument(std::move(out));
}

/// A dim given to a function that answers while compiling.
std::optional<size_t> knownDim(PythonCall& c, int64_t rank) {
    auto dim = c["dim"].asInt();
    if (dim && *dim < 0) *dim += rank;
    if (dim && *dim >= 0 && *dim < rank) return static_cast<size_t>(*dim);
    c.fail("the dim is not one of the tensor's " + std::to_string(rank));
    return std::nullopt;
}
Argument size(PythonCall& c) {
    const TensorType type = c.tensor("self");
    if (c.failed() || !c.given("dim")) return list(type.sizes);
    const auto dim = knownDim(c, type.rank());
    return dim ? Argument(type.sizes[*dim]) : Argument();
}
Argument stride(PythonCall& c) {
    const TensorType type = c.tensor("self");
    if (c.failed() || !c.given("dim")) return list(type.strides);
    const auto dim = knownDim(c, type.rank());
    return dim ? Argument(type.strides[*dim]) : Argument();
}

/// x.name without a call.
Argument attribute(PythonCall& c) {
    const std::string name = c.text("name");
    // torch.return_types: results by name.
    constexpr std::pair<std::string_view, int> kResults[] = {{"values", 0}, {"indices", 1}, {"Q", 0}, {"R", 1},
                                                             {"U", 0},      {"S", 1},       {"Vh", 2}};
    if (const Node* node = c["self"].node(); node && node->type().tuple())
        for (const auto& [result, position] : kResults)
            if (result == name) return c.builder().call("operator.getitem", {c["self"], Argument(position)}).node();
    const TensorType type = c.tensor("self");
    if (c.failed()) return {};
    if (name == "shape") return list(type.sizes);
    if (name == "ndim") return Argument(type.rank());
    if (name == "dtype") return Argument(type.dtype);
    if (name == "device") return Argument(type.device);
    if (name == "layout") return Argument(type.layout);
    if (name == "is_cuda") return Argument(type.device.type == DeviceType::Cuda);
    if (name == "requires_grad") return Argument(type.requiresGrad);
    if (name == "data") return c.aten("detach", {c["self"]});
    if (name == "T") return c.aten("numpy_T", {c["self"]});
    if (name == "mT" || name == "mH" || name == "H") {
        if (name != "mT" && isComplex(type.dtype)) return c.fail("the conjugate transpose of a complex tensor");
        return c.aten("mT", {c["self"]});
    }
    if (name == "real" && !isComplex(type.dtype)) return c["self"];
    if ((name == "real" || name == "imag") && isComplex(type.dtype)) return c.aten(name, {c["self"]});
    if (name == "itemsize") return Argument(static_cast<int64_t>(info(type.dtype).bytes));
    if (name == "is_sparse" || name == "is_quantized" || name == "is_nested" || name == "is_mkldnn")
        return Argument(false);
    return c.fail("the attribute '" + name + "' of a tensor");
}

Argument split(PythonCall& c) {
    const bool sections = c["split_size"].list() != nullptr;
    return c.aten(sections ? "split_with_sizes" : "split", {c["self"], c["split_size"], c["dim"]});
}

/// `unbiased` is the old spelling of correction 1 or 0; a bool where the dim stands is `unbiased`.
Argument variance(PythonCall& c, std::string_view packet) {
    Argument dim = c["dim"], unbiased = c["unbiased"], keepDim = c["keepdim"], correction = c["correction"];
    if (dim.get<bool>()) unbiased = std::exchange(dim, {});
    if (const auto* flag = unbiased.get<bool>()) correction = Argument(*flag ? 1 : 0);
    if (isPythonNumber(dim)) dim = Argument(std::vector<Argument>{dim});
    return c.aten(packet, {c["self"], dim}, {{"correction", correction}, {"keepdim", keepDim}});
}

/// The p-norm over some dims.
Argument norm(PythonCall& c) {
    Argument p = c["p"];
    if (const auto* word = p.get<std::string>()) {
        if (*word != "fro") return c.fail("the norm '" + *word + "'", {"use torch.linalg.matrix_norm's ATen form"});
        p = Argument(2);
    }
    if (p.isNone()) p = Argument(2);
    Argument dim = c["dim"];
    if (isPythonNumber(dim)) dim = Argument(std::vector<Argument>{dim});
    return c.aten("linalg_vector_norm", {c["self"], p, dim, c["keepdim"]}, {{"dtype", c["dtype"]}});
}

Argument literalTensor(PythonCall& c) {
    const auto* dtype = c["dtype"].get<DType>();
    if (tensorOf(c["data"])) return c.aten("clone", {c["data"]});
    const Argument made = c.constant(c["data"], dtype ? std::optional(*dtype) : std::nullopt);
    const auto* text = c["device"].get<std::string>();
    auto device = text ? deviceFromText(*text) : std::nullopt;
    if (const auto* given = c["device"].get<Device>()) device = *given;
    if (c.failed() || !device || device->type == DeviceType::Cpu) return made;
    return c.aten("to", {made, Argument(*device), Argument(tensorOf(made)->dtype)});
}

/// new_tensor, full_like and the like keep their ATen form; zero_ has none of its own here.
Argument zeroFill(PythonCall& c) {
    if (hasPacket("zero_")) return c.aten("zero_", {c["self"]});
    return c.aten("fill_", {c["self"], Argument(0)});
}

Argument stackAlong(PythonCall& c, int64_t least, int64_t dim) {
    const auto* items = c["tensors"].list();
    if (items == nullptr || items->empty()) return c.fail("takes a list of tensors");
    std::vector<Argument> raised;
    for (const Argument& item : *items) {
        const TensorType* type = tensorOf(item);
        if (type == nullptr) return c.fail("takes a list of tensors");
        if (type->rank() == 0)
            raised.push_back(
                c.aten("reshape", {item, Argument(std::vector<Argument>(static_cast<size_t>(least), Argument(1)))}));
        else raised.push_back(type->rank() < least ? c.aten("unsqueeze", {item, Argument(0)}) : item);
    }
    const bool flat = least == 1 && !raised.empty() && !c.failed() && tensorOf(raised[0])->rank() == 1;
    return c.aten("cat", {Argument(std::move(raised)), Argument(flat ? 0 : dim)});
}

/// A tensor that is contiguous already is handed back.
Argument contiguous(PythonCall& c) {
    const auto* format = c["memory_format"].get<MemoryFormat>();
    if (format && *format != MemoryFormat::Contiguous)
        return c.aten("contiguous", {c["self"]}, {{"memory_format", *format}});
    if (c.tensor("self").isContiguous()) return c["self"];
    return c.aten("contiguous", {c["self"]});
}

/// Tensors one by one or as a list.
Argument tensorsOf(const Argument& given) {
    const auto* items = given.list();
    return items && items->size() == 1 && (*items)[0].list() ? (*items)[0] : given;
}
Argument ofTensors(PythonCall& c, std::string_view packet) { return c.aten(packet, {tensorsOf(c["tensors"])}); }
Argument meshgrid(PythonCall& c) {
    const Argument tensors = tensorsOf(c["tensors"]);
    return c.given("indexing") ? c.aten("meshgrid", {tensors}, {{"indexing", c["indexing"]}})
                               : c.aten("meshgrid", {tensors});
}

Argument sameValue(PythonCall& c) { return c["self"]; }
Argument nothing(PythonCall&) { return {}; }

constexpr PythonFunction kTensorFunctionsFunctions[] = {
    {"Tensor.size(Any self, Any dim=None) -> Any", size},
    {"Tensor.stride(Any self, Any dim=None) -> Any", stride},
    {"Tensor.dim(Any self) -> Any", [](PythonCall& c) { return Argument(c.tensor("self").rank()); }},
    {"Tensor.ndimension(Any self) -> Any", [](PythonCall& c) { return Argument(c.tensor("self").rank()); }},
    {"Tensor.numel(Any self) -> Any", [](PythonCall& c) { return Argument(numel(c.tensor("self").sizes)); }},
    {"Tensor.nelement(Any self) -> Any", [](PythonCall& c) { return Argument(numel(c.tensor("self").sizes)); }},
    {"Tensor.is_floating_point(Any self) -> Any",
     [](PythonCall& c) { return Argument(isFloating(c.tensor("self").dtype)); }},
    {"Tensor.is_complex(Any self) -> Any", [](PythonCall& c) { return Argument(isComplex(c.tensor("self").dtype)); }},
    {"Tensor.is_contiguous(Any self) -> Any", [](PythonCall& c) { return Argument(c.tensor("self").isContiguous()); }},
    {"builtins.getattr(Any self, Any name) -> Any", attribute},
    {"torch.Size(Any[] sizes=[]) -> Any", [](PythonCall& c) { return c["sizes"]; }},
    {"Tensor.requires_grad_(Any self, bool requires_grad=True) -> Any", sameValue},
    {"Tensor.contiguous(Any self, *, Any memory_format=None) -> Any", contiguous},
    // torch.Tensor.view as a function, as FX prints it
    {"torch_Tensor_view(Any self, Any[] size) -> Any",
     [](PythonCall& c) {
         return c.aten("view", {c["self"], c["size"]});
     }},
    {"Tensor.split(Any self, Any split_size, Any dim=0) -> Any", split},
    {"torch._VF.split(Any self, Any split_size, Any dim=0) -> Any", split},
    {"Tensor.var(Any self, Any dim=None, Any unbiased=None, bool keepdim=False, *, Any correction=None) -> Any",
     [](PythonCall& c) { return variance(c, "var"); }},
    {"Tensor.std(Any self, Any dim=None, Any unbiased=None, bool keepdim=False, *, Any correction=None) -> Any",
     [](PythonCall& c) {
         if (hasPacket("std")) return variance(c, "std");
         return c.aten("sqrt", {variance(c, "var")});
     }},
    {"torch.var_mean(Any self, Any dim=None, Any unbiased=None, bool keepdim=False, *, Any correction=None) -> Any",
     [](PythonCall& c) { return variance(c, "var_mean"); }},
    {"Tensor.norm(Any self, Any p='fro', Any dim=None, bool keepdim=False, Any dtype=None) -> Any", norm},
    {"torch.tensor(Any data, *, Any dtype=None, Any device=None, Any requires_grad=None, Any pin_memory=None) -> Any",
     literalTensor},
    {"torch.as_tensor(Any data, Any dtype=None, Any device=None) -> Any", literalTensor},
    {"Tensor.zero_(Any self) -> Any", zeroFill},
    {"torch.einsum(Any equation, Any[] operands) -> Any",
     [](PythonCall& c) {
         return c.aten("einsum", {c["equation"], tensorsOf(c["operands"])});
     }},
    {"torch.broadcast_tensors(Any[] tensors) -> Any", [](PythonCall& c) { return ofTensors(c, "broadcast_tensors"); }},
    {"torch.block_diag(Any[] tensors) -> Any", [](PythonCall& c) { return ofTensors(c, "block_diag"); }},
    {"torch.cartesian_prod(Any[] tensors) -> Any", [](PythonCall& c) { return ofTensors(c, "cartesian_prod"); }},
    // Compiled autograd checks the shapes of gradients here, and hands them back.
    {"torch__dynamo_compiled_autograd_ops_validate_outputs(Any outputs, Any metadata=None) -> Any",
     [](PythonCall& c) { return c["outputs"]; }},
    {"torch.meshgrid(Any[] tensors, *, Any indexing=None) -> Any", meshgrid},
    {"torch.hstack(Any tensors) -> Any", [](PythonCall& c) { return stackAlong(c, 1, 1); }},
    {"torch.vstack(Any tensors) -> Any", [](PythonCall& c) { return stackAlong(c, 2, 0); }},
    // What concerns only eager execution. Switches of modes get their effect in the pass (passes/execution_modes.h).
    {"torch._C._set_grad_enabled(Any mode) -> Any", nothing},
    {"torch._C._autograd._saved_tensors_hooks_disable(Any message, Any fail_if_non_empty=True) -> Any", nothing},
    {"torch._C._autograd._saved_tensors_hooks_enable() -> Any", nothing},
    {"torch._C._log_api_usage_once(Any key) -> Any", nothing},
    {"torch._C._log_api_usage_metadata(Any key, Any metadata) -> Any", nothing},
    {"torch._assert(Any condition, Any message=None) -> Any", nothing},
    {"torch._assert_async(Any condition, Any message=None) -> Any", nothing},
    {"torch._assert_scalar(Any condition, Any message=None) -> Any", nothing},
    {"torch._functional_assert_async(Any condition, Any message, Any token) -> Any",
     [](PythonCall& c) { return c["token"]; }},
    {"torch._constrain_as_size(Any symbol, Any min=None, Any max=None) -> Any", nothing},
    {"torch.sym_constrain_range(Any size, *, Any min=None, Any max=None) -> Any", nothing},
    {"torch.sym_constrain_range_for_size(Any size, *, Any min=None, Any max=None) -> Any", nothing},
    {"torch._check_value(Any condition, Any message=None) -> Any", nothing},
    {"torch._check_index(Any condition, Any message=None) -> Any", nothing},
    {"torch._check_type(Any condition, Any message=None) -> Any", nothing},
    {"torch._check_not_implemented(Any condition, Any message=None) -> Any", nothing},
    {"torch._check_tensor_all(Any condition, Any message=None) -> Any", nothing},
    {"torch._check_with(Any error, Any condition, Any message=None) -> Any", nothing},
    {"torch._check(Any condition, Any message=None) -> Any", nothing},
    {"torch._check_is_size(Any size, Any message=None, *, Any max=None) -> Any", nothing},
};

}  // namespace

std::span<const PythonFunction> tensorFunctions() { return kTensorFunctionsFunctions; }

}  // namespace cutaway::torchcalls
