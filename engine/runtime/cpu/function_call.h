#pragma once
// How a host program's cond, while_loop and their kin are run by the interpreter's rules.
#include <map>
#include <memory>

#include "engine/host/bind_host.h"
#include "engine/interpret/higher_order.h"

namespace cutaway {

/// A call of functions as the interpreter's rules want it: a module whose graphs stand for the functions of their
/// names.
struct FunctionCall {
    Module module;
    const Node* node = nullptr;
    std::map<const Node*, const Node*> operands;  // from the module's to those of the step's arguments

    FunctionCall(const Op& op, const BoundStep& step, const HostProgram& program) {
        for (const HostFunction& function : program.functions) {
            module.subgraphs.emplace_back(function.name, std::make_unique<Module>());
            module.subgraphs.back().second->name = function.name;
        }
        std::map<const Node*, Node*> own;
        std::vector<Argument> args;
        for (const Argument& arg : step.args)
            args.push_back(arg.mapNodes([&](Node* operand) -> Node* {
                Node*& known = own[operand];
                if (known == nullptr) known = &module.graph().placeholder(operand->name(), operand->type());
                operands[known] = operand;
                return known;
            }));
        node = &module.graph().call(op, std::move(args), step.type);
    }
};
class CallValues final : public ValueSource {
  public:
    CallValues(const ValueSource& values, const FunctionCall& call) : m_values(&values), m_call(&call) {}
    const TensorList& valueOf(const Node& node) const override {
        return m_values->valueOf(*m_call->operands.at(&node));
    }

  private:
    const ValueSource* m_values;
    const FunctionCall* m_call;
};

}  // namespace cutaway
