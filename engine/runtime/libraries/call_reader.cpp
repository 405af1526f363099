#include "engine/runtime/libraries/call_reader.h"

#include <algorithm>

namespace cutaway {

const CtArgument* CallReader::find(std::string_view param) const {
    for (int32_t i = 0; i < m_call->argCount; ++i)
        if (param == m_call->params[i]) return m_call->args[i].kind == CT_NONE ? nullptr : &m_call->args[i];
    return nullptr;
}
std::optional<int> CallReader::operand(std::string_view param) const {
    const CtArgument* found = find(param);
    return found && found->kind == CT_OPERAND ? std::optional(static_cast<int>(found->integer)) : std::nullopt;
}
const CtTensor* CallReader::tensor(std::string_view param) const {
    const std::optional<int> number = operand(param);
    return number ? &m_call->operands[*number] : nullptr;
}
bool CallReader::isConstant(std::string_view param) const {
    const std::optional<int> number = operand(param);
    return number && m_call->constant[*number] != 0;
}
bool CallReader::flag(std::string_view param) const {
    const CtArgument* found = find(param);
    return found && found->integer != 0;
}
std::optional<double> CallReader::real(std::string_view param) const {
    const CtArgument* found = find(param);
    if (found == nullptr) return std::nullopt;
    return found->kind == CT_REAL ? found->real : static_cast<double>(found->integer);
}
std::string_view CallReader::text(std::string_view param) const {
    const CtArgument* found = find(param);
    return found && found->kind == CT_TEXT ? found->text : std::string_view();
}
Dims CallReader::integers(std::string_view param, size_t count) const {
    const CtArgument* found = find(param);
    if (found == nullptr) return Dims(count, 0);
    Dims values;
    if (found->kind == CT_LIST)
        for (int64_t i = 0; i < found->integer; ++i) values.push_back(found->items[i].integer);
    else values.push_back(found->integer);
    if (values.size() == 1) values.resize(count, values[0]);
    return values;
}
std::vector<float> CallReader::reals(std::string_view param) const {
    std::vector<float> values;
    const CtArgument* found = find(param);
    for (int64_t i = 0; found && found->kind == CT_LIST && i < found->integer; ++i) {
        const CtArgument& item = found->items[i];
        values.push_back(item.kind == CT_REAL ? static_cast<float>(item.real) : static_cast<float>(item.integer));
    }
    return values;
}

Dims sizesOf(const CtTensor& tensor) { return Dims(tensor.sizes, tensor.sizes + tensor.rank); }
Dims stridesOf(const CtTensor& tensor) { return Dims(tensor.strides, tensor.strides + tensor.rank); }
int64_t elementsOf(const CtTensor& tensor) {
    int64_t count = 1;
    for (int32_t d = 0; d < tensor.rank; ++d) count *= tensor.sizes[d];
    return count;
}
Dims contiguousStridesOf(const Dims& sizes) {
    Dims strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    return strides;
}

}  // namespace cutaway
