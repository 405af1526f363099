#pragma once
// Matrix products and convolutions of f32 (packed ones also of bf16) through oneDNN, with what is computed of their
// results at once.
#include <array>
#include <memory>

#include "engine/runtime/cpu/plan.h"

namespace cutaway {

/// "3.0.0".
std::string oneDnnVersion();

/// The tensors among a call's first arguments, by position (null for None and numbers), and whether each never changes.
struct LibraryOperands {
    std::array<const Tensor*, 4> tensors{};
    std::array<bool, 4> constant{};
};

/// One call of a plan: its primitive and repacked constant weights, kept for all runs of the program.
class LibraryCall {
  public:
    struct State;
    explicit LibraryCall(std::unique_ptr<State> state);
    ~LibraryCall();
    /// Operands lie where they like, in the layouts that the call was prepared for. False if the library fails.
    bool run(const LibraryOperands& operands, Tensor& result);

  private:
    std::unique_ptr<State> m_state;
};

class OneDnn {
  public:
    OneDnn();
    ~OneDnn();
    /// Null if oneDNN cannot do this call; the reference kernel can.
    std::unique_ptr<LibraryCall> prepare(const PlanCall& call, const LibraryOperands& operands, Tensor& result);

  private:
    struct State;
    std::unique_ptr<State> m_state;
};

}  // namespace cutaway
