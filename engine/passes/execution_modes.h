#pragma once
// Modes that Python switches while a program runs: whether gradients are kept, and the precision of autocast. The
// switches stand among the calls; here they get their effect, and then there is no need for them.
#include <map>
#include <optional>
#include <set>

#include "engine/ops/autocast.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

inline constexpr std::string_view kSetGradEnabled = "torch._C._set_grad_enabled";
inline constexpr std::string_view kEnterAutocast = "torch.amp.autocast_mode._enter_autocast";
inline constexpr std::string_view kExitAutocast = "torch.amp.autocast_mode._exit_autocast";

/// The modes at a place of a graph.
struct ModeState {
    bool gradients = true;
    AutocastState autocast;
    bool operator==(const ModeState&) const = default;
};
/// Follows the switch of gradients, if the node is one.
void followSwitch(const Node& node, ModeState& state);

/// Gives the calls of a module the effect of the modes that they run in. Walked in order: a switch is taken, any other
/// call is cast.
class ExecutionModes {
  public:
    ExecutionModes(Module& module, Rewriter& rewriter);

    /// Modes at the beginning of this graph, and no switches met yet.
    void begin(Module& module);
    /// Takes over a switch; false for other nodes. It goes when its region is over.
    bool take(Node& node);
    const AutocastState& autocast() const { return m_state.autocast; }
    /// The operands of a call get the precision of the region; a call that PyTorch writes as several is written so
    /// here, since the region is over when the passes come to it.
    Result<void> cast(Node& call);
    /// Values of regions without gradients carry none outside of them.
    Result<void> finish();

  private:
    void findStates(const Module& module, ModeState state);
    Result<void> detachOperands(Node& mutation, const std::vector<bool>& flow);
    Result<void> detachResult(Node& node);

    Rewriter& m_rewriter;
    Module* m_module = nullptr;
    std::map<const Graph*, ModeState> m_starts;
    ModeState m_state;
    std::vector<std::pair<Node*, ModeState>> m_entered;  // with the modes before
    std::set<NodeId> m_silent;                           // computed while gradients were off
};

}  // namespace cutaway
