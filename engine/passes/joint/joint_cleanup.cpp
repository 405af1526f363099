// The four clean-ups at the head of JNT-6.
#include <cmath>

#include "engine/passes/joint/pass_pattern_0.h"
#include "engine/rewrite/matcher.h"
#include "engine/support/release_changes.h"

namespace cutaway {
namespace {

std::string_view unlessReadByForeignIndex(const Match& m) {
    const Node& iota = m.root();
    std::optional<Device> common;
    for (const Node* user : iota.users()) {
        m.note("`" + user->name() + "` is one");
        if (!user->isCall("aten.index.Tensor") && !user->isCall("aten.index_put.default"))
            return "{y} has readers that do not index by it";
        const TensorType* type = user->type().tensor();
        if (type == nullptr) return "{y} has readers whose device is not known";
        if (common && !(*common == type->device)) return "{y} has readers on different devices";
        common = type->device;
    }
    m.note({});
    if (!common) return "nobody reads {y}";
    return common->type == iota.tensor().device.type ? "{y}, {y:type}, is where its readers are" : "";
}

Values buildIotaOnReadersDevice(const Match& m, GraphBuilder& builder) {
    const Node& iota = m.root();
    std::vector<Argument> args = iota.args();
    args[static_cast<size_t>(iota.op().schema()->find("device"))] = iota.users()[0]->tensor().device;
    NamedArguments keywords;
    std::vector<Argument> positional;
    for (size_t i = 0; i < args.size(); ++i) {
        const Param& param = iota.op().schema()->params[i];
        if (param.keywordOnly) keywords.emplace_back(param.name, args[i]);
        else positional.push_back(args[i]);
    }
    return builder.call(iota.op(), std::move(positional), std::move(keywords));
}

bool isPlainFloat(DType dtype) {
    return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64;
}
/// Whether every number of one is a number of the other, too.
bool holdsAll(DType narrow, DType wide) { return narrow == wide || byteSize(narrow) < byteSize(wide); }

/// Rounding in the middle stays (H-7): f32 through a half and back has lost its bits, as in eager mode and in
/// PyTorch 2.15. PyTorch 2.11 keeps the last dtype of every chain.
std::string_view unlessRoundingMayGo(const Match& m) {
    const auto *first = m["first"].get<DType>(), *last = m["last"].get<DType>();
    if (!first || !last || !isPlainFloat(*first) || !isPlainFloat(*last))
        return "one of the two dtypes, {first} and {last}, is not f16, bf16, f32 or f64";
    const DType given = m.tensor("x").dtype;
    const bool later = has(m.request().pytorch, ReleaseChange::WiderFirst);
    if (later && isPlainFloat(given) && byteSize(*first) < byteSize(*last))
        return "{first} is smaller than {last}, and PyTorch keeps such conversions since 2.13";
    if (m.parity()) return later && !isPlainFloat(given) ? "{x} is {x:type}, not f16, bf16, f32 or f64" : "";
    if (!isPlainFloat(given)) return "{x} is {x:type}, whose numbers {first} rounds (only with parity)";
    // What is rounded to more digits first and then to fewer is off by one digit of the last at most.
    return holdsAll(given, *first) || holdsAll(*last, *first)
               ? ""
               : "{first} rounds {x}, {x:type}, more than {last} does (only with parity)";
}

std::string_view unlessOneGpuBatch(const Match& m) {
    if (m.tensor("a").device.type != DeviceType::Cuda || m.tensor("b").device.type != DeviceType::Cuda)
        return "the operands are not on the GPU: {a} is {a:type}, {b} is {b:type}";
    return m.tensor("a").sizes[0] == SymInt(1) && m.tensor("b").sizes[0] == SymInt(1)
               ? ""
               : "there is not one batch: {a} is {a:type}, {b} is {b:type}";
}

/// One selected position per line of the dim, and the selector covers every other dim.
std::string_view unlessOneSelected(const Match& m) {
    const TensorType &full = m.tensor("f"), &sel = m.tensor("sel");
    if (sel.rank() != full.rank() || full.rank() == 0) return "{sel}, {sel:type}, has another rank than {f}, {f:type}";
    const auto dim = InferContext(m.root().op(), m.root().args()).dim("dim", full.rank());
    if (!dim) return "the dim is out of range";
    for (size_t i = 0; i < full.sizes.size(); ++i) {
        const bool own = static_cast<int64_t>(i) == *dim;
        if (own ? !(sel.sizes[i] == SymInt(1)) : !(sel.sizes[i] == full.sizes[i]))
            return "{sel}, {sel:type}, does not select one position of each line of {f}, {f:type}";
    }
    return "";
}
Values buildSelectByComparison(const Match& m, GraphBuilder& builder) {
    const TensorType& type = m.tensor("f");
    const auto dim = static_cast<size_t>(*InferContext(m.root().op(), m.root().args()).dim("dim", type.rank()));
    const Value selector = builder.value(m.node("sel"));
    const Value line = builder.call("prims.iota.default", {type.sizes[dim]},
                                    {{"start", 0},
                                     {"step", 1},
                                     {"dtype", DType::I64},
                                     {"device", selector.type().device},
                                     {"requires_grad", false}});
    SymDims shape(type.sizes.size(), SymInt(1));
    shape[dim] = type.sizes[dim];
    const Value positions = view(line, shape);
    const Value hit = builder.call("aten.eq.Tensor", {expand(selector, type.sizes), positions});
    // The dtype of the constant; PyTorch takes what the two numbers have in common instead (H-4).
    const Argument &value = m["value"], &background = m["background"];
    const bool real = value.get<double>() || background.get<double>(),
               truth = value.get<bool>() && background.get<bool>();
    const DType common = real ? DType::F32 : truth ? DType::Bool : DType::I64;
    // Since 2.13 that is converted, so that only numbers that f32 rounds are another.
    const auto isExact = [](const Argument& number) {
        const auto exact = number.asReal();
        return exact && (static_cast<double>(static_cast<float>(*exact)) == *exact || std::isnan(*exact));
    };
    const bool later =
        has(m.request().pytorch, ReleaseChange::SelectedDtype) && (!real || (isExact(value) && isExact(background)));
    const DType dtype = m.parity() || later ? common : type.dtype;
    const auto scalar = [&](const Argument& number) {
        return builder.call("aten.scalar_tensor.default", {number},
                            {{"dtype", dtype}, {"layout", Layout::Strided}, {"device", type.device}});
    };
    const Value elsewhere = scalar(background);
    const Value selected = where(hit, scalar(value), elsewhere);
    return has(m.request().pytorch, ReleaseChange::SelectedDtype) ? convert(selected, type.dtype) : selected;
}

constexpr Rule kCleanupRules[] = {
    {.name = "fix_iota_device",
     .find = "y = prims.iota.default(...); return y",
     .build = buildIotaOnReadersDevice,
     .unless = unlessReadByForeignIndex,
     .why = "the index tensor is made on the device of the tensor that it indexes",
     .changesType = true,
     .countsRefused = true},
    {.name = "pointless_convert",
     .find =
         "c = prims.convert_element_type.default(x, $first); y = prims.convert_element_type.default(c, $last); return y",
     .replace = "y = prims.convert_element_type.default(x, $last); return y",
     .unless = unlessRoundingMayGo,
     .why = "only the last dtype of a chain of conversions counts; what the first one rounds is kept",
     .countsRefused = true},
    {.name = "bmm_to_mm",
     .find = "y = aten.bmm.default(a, b); return y",
     .replace =
         "p = aten.squeeze.dim(a, 0); q = aten.squeeze.dim(b, 0); m = aten.mm.default(p, q); y = aten.unsqueeze.default(m, 0); return y",
     .unless = unlessOneGpuBatch,
     .why = "one batch needs no batched kernel",
     .countsRefused = true},
    {.name = "scatter_upon_const_tensor",
     .find = "f = aten.full.default(_, $background, ...); y = aten.scatter.value(f, $dim, sel, $value); return y",
     .build = buildSelectByComparison,
     .unless = unlessOneSelected,
     .why = "comparing positions needs no memory for the constant",
     .changesType = true},
};

}  // namespace

std::span<const Rule> jointCleanupRules() { return kCleanupRules; }

}  // namespace cutaway
