#pragma once
// A call as libraries take it (libraries/library.h), with the memory that it points into.
#include <deque>
#include <functional>
#include <memory>

#include "engine/ir/argument.h"
#include "engine/libraries/library.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// What a plan may know of an operand or a result.
struct CallTensor {
    DType dtype = DType::F32;
    Dims sizes, strides;
    bool constant = false;       // never changes between runs
    const void* data = nullptr;  // of constants
    bool absent = false;         // a result that the call was told not to compute
};

class OwnedCall {
  public:
    using Describe = std::function<CallTensor(const Node&)>;
    /// `args`: one for each of the operator's parameters, `params`. Each node among them, in lists too, is an operand;
    /// `describe` is asked about each once.
    OwnedCall(const std::string& op, const std::vector<std::string>& params, const std::vector<Argument>& args,
              const Describe& describe, const std::vector<CallTensor>& results);
    OwnedCall(const OwnedCall&) = delete;
    OwnedCall& operator=(const OwnedCall&) = delete;

    const CtCall& call() const { return m_call; }
    /// The nodes that the operands stand for, in their order.
    const std::vector<const Node*>& operands() const { return m_nodes; }

  private:
    CtArgument argumentOf(const Argument& arg, const Describe& describe);
    int64_t operandOf(const Node& node, const Describe& describe);
    CtTensor tensorOf(const CallTensor& tensor);

    std::string m_op;
    std::deque<std::string> m_texts;
    std::deque<Dims> m_dims;
    std::deque<std::vector<CtArgument>> m_lists;
    std::vector<const char*> m_params;
    std::vector<CtArgument> m_args;
    std::vector<CtTensor> m_operands, m_results;
    std::vector<uint8_t> m_constant;
    std::vector<const Node*> m_nodes;
    CtCall m_call{};
};

}  // namespace cutaway
