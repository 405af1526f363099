// executorch's dialects: other names of ATen's operators, and copies whose memory format is written as an order of
// dims.
#include "engine/ops/executorch.h"

#include <numeric>

#include "engine/ops/expanded.h"
#include "engine/ops/op_registry.h"
#include "engine/ops/torch/torch_calls.h"

namespace cutaway {
namespace {

/// The names of PyTorch's operators in the edge and backend dialects, in files and as Python text shows them.
constexpr std::string_view kDialects[] = {"executorch.exir.dialects.edge._ops.",
                                          "executorch.exir.dialects.backend._ops."};
constexpr std::string_view kTextDialects[] = {"executorch_exir_dialects_edge__ops_",
                                              "executorch_exir_dialects_backend__ops_"};
constexpr std::string_view kDelegate = "higher_order.executorch_call_delegate";

/// The memory format that has its dims in this order, outermost first; PyTorch's own if none is given.
std::optional<MemoryFormat> formatOfOrder(Decomposition& d, MemoryFormat without) {
    if (!d.has("dim_order")) return without;
    const auto order = read(d, d.integers("dim_order"));
    if (!order) return std::nullopt;
    const auto is = [&](std::initializer_list<int64_t> wanted) { return std::ranges::equal(*order, wanted); };
    std::vector<int64_t> rising(order->size());
    std::iota(rising.begin(), rising.end(), int64_t{0});
    if (*order == rising) return MemoryFormat::Contiguous;
    if (is({0, 2, 3, 1})) return MemoryFormat::ChannelsLast;
    if (is({0, 2, 3, 4, 1})) return MemoryFormat::ChannelsLast3d;
    refuse(d, "dim_order is neither contiguous nor channels last");
    return std::nullopt;
}
/// The call of ATen's operator with a memory format in the order's place.
Values withFormat(Decomposition& d, std::string_view op, MemoryFormat without) {
    const auto format = formatOfOrder(d, without);
    if (!format) return Value(d.builder(), nullptr);
    NamedArguments keywords{{"memory_format", *format}};
    const auto& params = d.op().schema()->params;
    for (size_t i = 1; i + 1 < params.size(); ++i)
        if (requireOp(op).schema()->find(params[i].name) >= 0) keywords.emplace_back(params[i].name, d.arg(i));
    return d.call(op, {d.arg(size_t{0})}, std::move(keywords));
}

constexpr OpDef kExecutorchOps[] = {
    shorthand(
        "dim_order_ops._to_dim_order_copy.default(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "bool non_blocking=False, int[]? dim_order=None) -> Tensor",
        [](Decomposition& d) -> Values { return withFormat(d, "aten._to_copy.default", MemoryFormat::Preserve); },
        "f32[2, 3], dtype=torch.float64, dim_order=[0, 1]\nf32[2, 3, 4, 2], dim_order=[0, 2, 3, 1]\ni64[], dtype=torch.float32, dim_order=[]\nf32[3, 2][1, 3]"),
    shorthand(
        "dim_order_ops._clone_dim_order.default(Tensor self, *, bool non_blocking=False, int[]? dim_order=None) -> Tensor",
        [](Decomposition& d) -> Values { return withFormat(d, "aten.clone.default", MemoryFormat::Preserve); },
        "f32[2, 3], dim_order=[0, 1]\nf32[2, 3, 4, 2], dim_order=[0, 2, 3, 1]\nf32[3, 2][1, 3]"),
    shorthand(
        "dim_order_ops._empty_dim_order.default(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "int[]? dim_order=None) -> Tensor",
        [](Decomposition& d) -> Values { return withFormat(d, "aten.empty.memory_format", MemoryFormat::Contiguous); },
        "[2, 3], dim_order=[0, 1]\n[2, 3, 4, 2], dtype=torch.float64, dim_order=[0, 2, 3, 1]"),
};

}  // namespace

std::span<const OpDef> executorchOps() { return kExecutorchOps; }

std::string_view withoutDialect(std::string_view name) {
    for (const std::string_view dialect : kDialects)
        if (name.starts_with(dialect)) return name.substr(dialect.size());
    return name;
}
std::optional<std::string_view> textOfDialect(std::string_view name) {
    for (const std::string_view dialect : kTextDialects)
        if (name.starts_with(dialect)) return name.substr(dialect.size());
    return std::nullopt;
}

bool isDelegate(const Node& attribute) {
    const auto& users = attribute.users();
    return attribute.kind() == NodeKind::GetAttr && !users.empty() &&
           std::all_of(users.begin(), users.end(),
                       [&](const Node* user) { return user->isCall(kDelegate) && user->arg(0).node() == &attribute; });
}
std::string_view adviceOnUnknown(const Op& op) {
    if (op.name() == kDelegate)
        return "executorch gave this part of the graph to a backend, and its graph is not here: look at the "
               "original_module of the lowered module, or at the program before to_backend";
    if (isNamelessLowering(op))
        return "PyTorch's compiler registered it as a lowering, and its operator is not in the text: run a graph before "
               "it, as that of AOTAutograd";
    return "the op is not in Cutaway's tables; it can be shown, not run";
}

}  // namespace cutaway
