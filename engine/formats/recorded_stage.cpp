#include "engine/formats/recorded_stage.h"

namespace cutaway {
namespace {

struct Record {
    std::string_view name, next;
};
/// Events of traces, titles in logs, files of debug folders. A log's "Forward graph" is left out: only beside its
/// backward graph has it been through the joint passes (text_file.cpp).
constexpr Record kRecords[] = {
    {"after_pre_grad_graph", "capture"},
    {"inductor_pre_grad_graph", "capture"},
    {"AFTER PRE GRAD", "capture"},
    {"aot_joint_graph", "joint"},
    {"aot_inference_graph", "joint"},
    {"before_joint_graph", "joint"},
    {"Joint graph", "joint"},
    {"after_joint_graph", "post_grad"},
    {"aot_forward_graph", "post_grad"},
    {"aot_backward_graph", "post_grad"},
    {"Backward graph", "post_grad"},
    {"before_post_grad_graph", "post_grad"},
    {"BEFORE POST GRAD", "post_grad"},
    {"fx_graph_readable", "post_grad"},
    {"fx_graph_runnable", "post_grad"},
    {"inductor_post_grad_graph", "lowering"},
    {"after_post_grad_graph", "lowering"},
    {"AFTER POST GRAD", "lowering"},
    {"fx_graph_transformed", "lowering"},
};

}  // namespace

std::string_view nextStage(std::string_view record) {
    for (const Record& row : kRecords)
        if (row.name == record) return row.next;
    return {};
}

void setNextStage(Module& module, std::string_view stage) {
    for (const Node& node : module.graph().nodes())
        if (node.isCall() && node.op().name().starts_with("higher_order.flex_attention")) return;
    module.origin.stage = stage;
}

}  // namespace cutaway
