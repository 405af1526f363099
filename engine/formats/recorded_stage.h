#pragma once
// How far PyTorch's compiler had come when it recorded a graph, told by the graph's name.
#include <string_view>

#include "engine/ir/module.h"

namespace cutaway {

/// The stage of the pipeline that comes next: "lowering" for "AFTER POST GRAD", "inductor_post_grad_graph" and
/// "fx_graph_transformed"; empty for names that say nothing and for graphs that no stage has seen.
std::string_view nextStage(std::string_view record);

/// Where the compiler goes on with a graph: at `stage`, but at the beginning with flex_attention, which PyTorch keeps
/// to its end and the capture stage writes out here.
void setNextStage(Module& module, std::string_view stage);

}  // namespace cutaway
