#include "engine/runtime/libraries/owned_call.h"

#include <algorithm>

namespace cutaway {

// The interface's numbers of element types are the engine's own.
static_assert(static_cast<int>(DType::U8) == CT_U8 && static_cast<int>(DType::I64) == CT_I64 &&
              static_cast<int>(DType::F16) == CT_F16 && static_cast<int>(DType::F32) == CT_F32 &&
              static_cast<int>(DType::C128) == CT_C128 && static_cast<int>(DType::Bool) == CT_BOOL &&
              static_cast<int>(DType::BF16) == CT_BF16 && static_cast<int>(DType::U64) == CT_U64);

OwnedCall::OwnedCall(const std::string& op, const std::vector<std::string>& params, const std::vector<Argument>& args,
                     const Describe& describe, const std::vector<CallTensor>& results)
    : m_op(op) {
    m_args.reserve(args.size());
    for (const std::string& param : params) m_params.push_back(m_texts.emplace_back(param).c_str());
    for (const Argument& arg : args) m_args.push_back(argumentOf(arg, describe));
    for (const CallTensor& result : results) m_results.push_back(tensorOf(result));
    m_call.op = m_op.c_str();
    m_call.params = m_params.data();
    m_call.args = m_args.data();
    m_call.argCount = static_cast<int32_t>(m_args.size());
    m_call.operandCount = static_cast<int32_t>(m_operands.size());
    m_call.resultCount = static_cast<int32_t>(m_results.size());
    m_call.operands = m_operands.data();
    m_call.constant = m_constant.data();
    m_call.results = m_results.data();
}

CtArgument OwnedCall::argumentOf(const Argument& arg, const Describe& describe) {
    CtArgument made{};
    const auto is = [&](CtArgumentKind kind, int64_t integer = 0) {
        made.kind = kind;
        made.integer = integer;
    };
    if (const Node* node = arg.node()) is(CT_OPERAND, operandOf(*node, describe));
    else if (const bool* truth = arg.get<bool>()) is(CT_TRUTH, *truth);
    else if (const int64_t* integer = arg.get<int64_t>()) is(CT_INT, *integer);
    else if (const DType* dtype = arg.get<DType>()) is(CT_TYPE, static_cast<int64_t>(*dtype));
    else if (const double* real = arg.get<double>()) {
        is(CT_REAL);
        made.real = *real;
    } else if (const auto* text = arg.get<std::string>()) {
        is(CT_TEXT);
        made.text = m_texts.emplace_back(*text).c_str();
    } else if (const auto* list = arg.list()) {
        std::vector<CtArgument> items;
        for (const Argument& item : *list) items.push_back(argumentOf(item, describe));
        is(CT_LIST, static_cast<int64_t>(items.size()));
        made.items = m_lists.emplace_back(std::move(items)).data();
    }
    return made;
}

int64_t OwnedCall::operandOf(const Node& node, const Describe& describe) {
    const auto known = std::find(m_nodes.begin(), m_nodes.end(), &node);
    if (known != m_nodes.end()) return known - m_nodes.begin();
    const CallTensor tensor = describe(node);
    m_nodes.push_back(&node);
    m_operands.push_back(tensorOf(tensor));
    m_constant.push_back(tensor.constant ? 1 : 0);
    return static_cast<int64_t>(m_nodes.size()) - 1;
}

CtTensor OwnedCall::tensorOf(const CallTensor& tensor) {
    CtTensor made{};
    made.rank = tensor.absent ? -1 : static_cast<int32_t>(tensor.sizes.size());
    made.dtype = static_cast<int32_t>(tensor.dtype);
    made.sizes = m_dims.emplace_back(tensor.sizes).data();
    made.strides = m_dims.emplace_back(tensor.strides).data();
    made.data = tensor.constant ? const_cast<void*>(tensor.data) : nullptr;
    return made;
}

}  // namespace cutaway
