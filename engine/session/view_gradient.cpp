#include "engine/session/view_gradient.h"

#include "engine/interpret/interpret.h"

namespace cutaway {
namespace {

/// The place in its storage of each element, row-major.
std::vector<size_t> placesOf(const Tensor& tensor) {
    std::vector<size_t> places;
    places.reserve(static_cast<size_t>(tensor.numel()));
    Dims at(tensor.sizes().size(), 0);
    for (int64_t left = tensor.numel(); left > 0; --left) {
        int64_t place = tensor.offset();
        for (size_t dim = 0; dim < at.size(); ++dim) place += at[dim] * tensor.strides()[dim];
        places.push_back(static_cast<size_t>(place));
        for (size_t dim = at.size(); dim-- > 0;) {
            if (++at[dim] < tensor.sizes()[dim]) break;
            at[dim] = 0;
        }
    }
    return places;
}

/// Runs only the views that lead from the input to the returned value, on `base`.
Result<Tensor> viewOf(const Module& module, const OutputMemory& memory, const Tensor& base, const SymbolValues& sizes) {
    Module fixed(module);
    CT_TRY_VOID(specialize(fixed, sizes));
    Module views;
    views.graph().takeAsInput(*fixed.graph().find(memory.input->id()));
    views.inputs.emplace_back();
    for (const Node* view : memory.views) {
        const Node& node = *fixed.graph().find(view->id());
        for (const Node* operand : node.inputs())
            if (views.graph().find(operand->id()) == nullptr)
                return unsupported("the view '" + node.name() + "' of '" + memory.input->name() +
                                       "' depends on data, so its gradient has no way back",
                                   node.name(), {"return a clone() of it"});
        views.graph().take(node);
    }
    Node* last = views.graph().find(memory.views.back()->id());
    views.graph().output(Argument(ArgumentList{{Argument(last)}, true}));
    CT_TRY(const std::vector<Tensor> shown, interpret(views, {base}));
    return shown[0];
}

}  // namespace

Result<Tensor> gradientThroughViews(const Module& module, const OutputMemory& memory, const Tensor& base,
                                    const Tensor& gradient, const SymbolValues& sizes) {
    if (memory.views.empty()) return gradient;
    CT_TRY(const Tensor view, viewOf(module, memory, base, sizes));
    if (view.storage() != base.storage() || view.dtype() != base.dtype() || view.sizes() != gradient.sizes())
        return unsupported("result '" + memory.views.back()->name() + "' shows '" + memory.input->name() +
                               "' as another dtype or from a copy, so its gradient has no way back",
                           memory.views.back()->name(), {"return a clone() of it"});
    std::vector<double> sums(base.storage()->size() / static_cast<size_t>(byteSize(base.dtype())), 0.0);
    const std::vector<size_t> shown = placesOf(view), own = placesOf(base);
    for (size_t i = 0; i < shown.size(); ++i) sums[shown[i]] += toDouble(gradient.item(static_cast<int64_t>(i)));
    Tensor out = Tensor::empty(DType::F64, base.sizes());
    for (size_t i = 0; i < own.size(); ++i) out.as<double>()[i] = sums[own[i]];
    return out.to(base.dtype());
}

}  // namespace cutaway
