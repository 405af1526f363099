#pragma once
// Matrix products and convolutions of f32 through oneDNN. Primitives and repacked constant weights are kept for the life
// of the object, that is, for all runs of one program.
#include <memory>

#include "engine/runtime/cpu/plan.h"

namespace cutaway {

/// "3.0.0".
std::string oneDnnVersion();

class OneDnn {
  public:
    OneDnn();
    ~OneDnn();
    /// Computes call number `slot` into `result`. `operands`: the tensors among the arguments, in order (a missing bias is
    /// undefined); `constant`: whether each never changes. False if oneDNN cannot do this call; the reference kernel can.
    bool run(size_t slot, const PlanCall& call, const std::vector<Tensor>& operands, const std::vector<bool>& constant, Tensor& result);

  private:
    struct State;
    std::unique_ptr<State> m_state;
};

}  // namespace cutaway
