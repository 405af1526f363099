#pragma once
// Modes that Python switches while a program runs: whether gradients are kept, and the precision of autocast. The
// switches stand among the calls; here the calls get their effect, and the switches go.
#include <map>
#include <optional>
#include <set>

#include "engine/ops/autocast.h"
#include "engine/rewrite/rewriter.h"

namespace cutaway {

inline constexpr std::string_view kSetGradEnabled = "torch._C._set_grad_enabled";
inline constexpr std::string_view kEnterAutocast = "torch.amp.autocast_mode._enter_autocast";
inline constexpr std::string_view kExitAutocast = "torch.amp.autocast_mode._exit_autocast";

/// Whether a call is one of the switches: it computes nothing, and passes erase it.
bool isModeSwitch(const Node& node);

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
    /// Applies a switch, which is erased when its region ends; false for other nodes.
    bool take(Node& node);
    const AutocastState& autocast() const { return m_state.autocast; }
    /// Converts the operands of a call to the precision of the region. A call that PyTorch writes as several is
    /// expanded here, since the mode is no longer known when later passes meet it.
    Result<void> cast(Node& call);
    /// Values computed without gradients carry none to readers outside of the region.
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
