// Smaller sizes, plainer dtypes and literals. Every type behind the inputs is inferred again, and a graph whose calls
// refuse their operands is never tried.
#include <algorithm>
#include <set>

#include "engine/interpret/specialize.h"
#include "engine/ir/infer.h"
#include "engine/ir/verify.h"
#include "engine/minify/reducer.h"

namespace cutaway {
namespace {

constexpr int64_t kPlain = 1;

/// Types of all calls, in order. False: one refuses its operands.
bool retype(Module& module) {
    for (Node& node : module.graph().nodes()) {
        if (!node.isCall() || node.op().isOpaque()) continue;
        auto type = inferCall(node.op(), node.args());
        if (!type) return false;
        module.graph().setType(node, std::move(*type));
    }
    return verify(module).has_value();
}

/// Whether the parameter holds sizes of tensors, not dims, strides or paddings.
bool holdsSizes(const Param& param) {
    if (param.kind != ParamKind::Int) return false;
    static const std::set<std::string_view> known = {"size",          "shape",       "length",     "sizes",
                                                     "output_size",   "input_sizes", "input_size", "split_size",
                                                     "split_sizes",   "self_sizes",  "end",        "normalized_shape",
                                                     "sym_size",      "N",           "C",          "HxW",
                                                     "unbacked_size", "self_size",   "start",      "input_shape"};
    return known.contains(param.name);
}

Argument mapped(const Argument& argument, const std::function<int64_t(int64_t)>& change) {
    if (const auto* number = argument.get<int64_t>()) return Argument(change(*number));
    const auto* list = argument.get<ArgumentList>();
    if (!list) return argument;
    ArgumentList out{{}, list->tuple};
    for (const Argument& item : list->items) out.items.push_back(mapped(item, change));
    return Argument(std::move(out));
}

/// The strides in the same order, without gaps.
SymDims packedLike(const SymDims& sizes, const SymDims& strides) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return strides[a].isInt() && strides[b].isInt() && strides[a].value() > strides[b].value();
    });
    SymDims out(sizes.size());
    int64_t step = 1;
    for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
        out[*dim] = SymInt(step);
        step *= std::max<int64_t>(1, sizes[*dim].value());
    }
    return out;
}

bool hasNumbers(const TensorType& type) {
    const auto number = [](const SymInt& size) { return size.isInt(); };
    return std::all_of(type.sizes.begin(), type.sizes.end(), number) &&
           std::all_of(type.strides.begin(), type.strides.end(), number);
}

/// The first elements along each dim, as a tensor of its own; of integers, which may be positions, what is left when
/// divided by `modulus`.
Tensor cropped(const Tensor& value, const TensorType& type, int64_t modulus) {
    Dims sizes, strides;
    for (const SymInt& size : type.sizes) sizes.push_back(size.value());
    for (const SymInt& stride : type.strides) strides.push_back(stride.value());
    const Tensor part = value.view(sizes, value.strides(), value.offset());
    if (!isIntegral(value.dtype(), false)) return part.clone(strides);
    Tensor whole = part.to(DType::I64).clone();
    for (int64_t i = 0; i < whole.numel(); ++i) whole.as<int64_t>()[i] %= std::max<int64_t>(1, modulus);
    return whole.to(value.dtype()).clone(strides);
}

/// The best graph with `change` applied to all sizes; nothing if calls refuse the sizes or nothing changes.
std::optional<Candidate> resized(Reducer& reducer, const std::function<int64_t(int64_t)>& change) {
    const std::shared_ptr<Module> module = reducer.copy();
    auto values = std::make_shared<NamedValues>(reducer.best().values ? *reducer.best().values : NamedValues());
    bool any = false;
    int64_t least = INT64_MAX;
    const std::vector<Node*> inputs = module->graph().placeholders();
    std::vector<std::pair<size_t, TensorType>> changed;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorType* type = inputs[i]->type().tensor();
        if (!type || !hasNumbers(*type)) continue;
        TensorType fresh = *type;
        for (SymInt& size : fresh.sizes) size = SymInt(std::min(size.value(), change(size.value())));
        if (std::equal(fresh.sizes.begin(), fresh.sizes.end(), type->sizes.begin())) continue;
        for (const SymInt& size : fresh.sizes) least = std::min(least, size.value());
        fresh.strides = packedLike(fresh.sizes, type->strides);
        fresh.offset = SymInt(0);
        module->graph().setType(*inputs[i], fresh);
        changed.emplace_back(i, fresh);
        any = true;
    }
    if (!any) return std::nullopt;
    for (const auto& [i, type] : changed) {
        const std::string& name = inputs[i]->name();
        const InputSpec& spec = module->inputs[i];
        if (spec.isGiven()) {
            if (const auto value = reducer.trials().valueOf(reducer.best(), name))
                values->insert_or_assign(name, cropped(*value, type, least));
        } else if (const auto held = module->tensors.find(spec.target); held != module->tensors.end()) {
            held->second = cropped(held->second, type, least);
        }
    }
    for (Node& node : module->graph().nodes()) {
        if (!node.isCall() || node.op().isOpaque()) continue;
        for (size_t p = 0; p < node.op().schema()->params.size() && p < node.args().size(); ++p)
            if (holdsSizes(node.op().schema()->params[p])) module->graph().setArg(node, p, mapped(node.arg(p), change));
    }
    if (!retype(*module)) return std::nullopt;
    Candidate candidate = reducer.with(module);
    candidate.values = values;
    return candidate;
}

std::set<int64_t, std::greater<>> sizesOf(const Module& module) {
    std::set<int64_t, std::greater<>> sizes;
    for (const Node* input : module.graph().placeholders())
        if (const TensorType* type = input->type().tensor())
            for (const SymInt& size : type->sizes)
                if (size.isInt() && size.value() > kPlain) sizes.insert(size.value());
    return sizes;
}

}  // namespace

Result<bool> fixSizes(Reducer& reducer) {
    if (freeSymbols(reducer.graph()).empty()) return false;
    const std::shared_ptr<Module> module = reducer.copy();
    if (!specialize(*module, hintedSymbols(*module)) || !verify(*module)) return false;
    return reducer.take(reducer.with(module), "numbers for size symbols");
}

Result<bool> shrinkSizes(Reducer& reducer) {
    bool any = false;
    const auto attempt = [&](const std::function<int64_t(int64_t)>& change) -> Result<bool> {
        const std::optional<Candidate> candidate = resized(reducer, change);
        if (!candidate) return false;
        CT_TRY(const bool taken, reducer.take(*candidate, "smaller sizes"));
        any = any || taken;
        return taken;
    };
    const auto plain = [](int64_t size) { return std::min<int64_t>(size, kPlain); };
    CT_TRY(const bool ones, attempt(plain));
    if (ones) return true;
    // Perhaps only one size matters: all others small, trials are cheap, and then show which and how large it must be.
    const auto sizes = sizesOf(reducer.graph());
    if (sizes.size() > 1)
        for (const int64_t size : sizes) {
            CT_TRY(const bool taken, attempt([&](int64_t each) { return each == size ? each : plain(each); }));
            if (taken) break;
        }
    const auto shrink = [&](int64_t size, int64_t to) -> Result<bool> {
        if (to >= size || to < 1) return false;
        CT_TRY(const bool alone, attempt([=](int64_t each) { return each == size ? to : each; }));
        if (alone) return true;
        return attempt([=](int64_t each) { return each >= size && each % size == 0 ? each / size * to : each; });
    };
    for (int64_t size : sizesOf(reducer.graph())) {
        CT_TRY(bool taken, shrink(size, kPlain));
        if (!taken) {
            CT_TRY(taken, shrink(size, 2));
        }
        while (!taken && size > 1) {
            CT_TRY(const bool halved, shrink(size, size / 2));
            if (!halved) break;
            size /= 2;
        }
    }
    return any;
}

Result<bool> plainDtypes(Reducer& reducer) {
    const auto plain = [](DType dtype) { return isFloating(dtype) ? DType::F32 : dtype; };
    const std::shared_ptr<Module> module = reducer.copy();
    auto values = std::make_shared<NamedValues>(reducer.best().values ? *reducer.best().values : NamedValues());
    bool any = false;
    const std::vector<Node*> inputs = module->graph().placeholders();
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorType* type = inputs[i]->type().tensor();
        if (!type || plain(type->dtype) == type->dtype) continue;
        any = true;
        TensorType fresh = *type;
        fresh.dtype = plain(type->dtype);
        module->graph().setType(*inputs[i], fresh);
        const InputSpec& spec = module->inputs[i];
        if (spec.isGiven()) {
            if (const auto value = reducer.trials().valueOf(reducer.best(), inputs[i]->name()))
                values->insert_or_assign(inputs[i]->name(), value->to(fresh.dtype));
        } else if (const auto held = module->tensors.find(spec.target); held != module->tensors.end()) {
            held->second = held->second.to(fresh.dtype);
        }
    }
    for (Node& node : module->graph().nodes()) {
        if (!node.isCall()) continue;
        for (size_t p = 0; p < node.args().size(); ++p)
            if (const auto* dtype = node.arg(p).get<DType>(); dtype && plain(*dtype) != *dtype) {
                module->graph().setArg(node, p, Argument(plain(*dtype)));
                any = true;
            }
    }
    if (!any || !retype(*module)) return false;
    Candidate candidate = reducer.with(module);
    candidate.values = values;
    return reducer.take(candidate, "f32 for every floating dtype");
}

Result<bool> plainLiterals(Reducer& reducer) {
    std::vector<std::pair<NodeId, size_t>> places;
    for (const Node& node : reducer.graph().graph().nodes()) {
        if (!node.isCall() || node.op().isOpaque()) continue;
        const auto& params = node.op().schema()->params;
        for (size_t p = 0; p < params.size() && p < node.args().size(); ++p)
            if (params[p].hasDefault && !node.arg(p).holdsNode() && !equal(node.arg(p), params[p].defaultValue))
                places.emplace_back(node.id(), p);
    }
    return reducer.sweep(
        places.size(),
        [&](size_t i) -> std::optional<Candidate> {
            const std::shared_ptr<Module> module = reducer.copy();
            Node* node = module->graph().find(places[i].first);
            if (!node) return std::nullopt;
            module->graph().setArg(*node, places[i].second, node->op().schema()->params[places[i].second].defaultValue);
            if (!retype(*module)) return std::nullopt;
            return reducer.with(module);
        },
        "default arguments");
}

}  // namespace cutaway
