#include "engine/ir/data_dependent.h"

#include <algorithm>

#include "engine/ir/node.h"

namespace cutaway {

bool sizeDependsOnData(const Op& op, std::span<const Argument> args) {
    // Its results have one item per step of the loop, and how many steps there are is known when it has run.
    if (op.packet() == "higher_order.while_loop_stack_output") return true;
    if (op.schema() == nullptr) return op.is(Tag::DataDependent);
    if (op.is(Tag::DataDependent)) {
        const auto& params = op.schema()->params;
        const auto found = std::ranges::find(params, "output_size", &Param::name);
        const auto at = static_cast<size_t>(found - params.begin());
        return at >= std::min(args.size(), params.size()) || args[at].isNone();
    }
    if (op.mutates()) return false;
    for (size_t i = 0; i < std::min(args.size(), op.schema()->params.size()); ++i) {
        const Param& param = op.schema()->params[i];
        if (param.kind != ParamKind::Tensor || !param.itemOptional || !args[i].list()) continue;  // Tensor?[] indices
        for (const Argument& item : *args[i].list()) {
            const TensorType* type = item.node() ? item.node()->type().tensor() : nullptr;
            if (type && (type->dtype == DType::Bool || type->dtype == DType::U8)) return true;
        }
    }
    return false;
}

}  // namespace cutaway
