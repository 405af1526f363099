// Turns the program, as Python or torch.export wrote it, into a functional graph of ATen calls.
#include "engine/autograd/expand.h"
#include "engine/autograd/forward_ad.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/autograd/jvp.h"
#include "engine/passes/flex_attention.h"
#include "engine/passes/inline_wrappers.h"
#include "engine/passes/move_to_device.h"
#include "engine/passes/operator_rewrites.h"
#include "engine/passes/stage.h"
#include "engine/passes/switch_to_cond.h"
#include "engine/passes/torch_calls_to_aten.h"
#include "engine/passes/vmap/vmap.h"
#include "engine/rewrite/dead_code.h"

namespace cutaway {
namespace {

bool capturesTraining(const CompileRequest& request) { return request.mode == Mode::Training; }
bool isForwardMode(const CompileRequest& request) { return request.mode == Mode::Jvp; }
bool onGpu(const CompileRequest& request) { return request.target == Target::Cuda; }

constexpr CodeRewrite kInlineWrappersRewrites[] = {
    {"inline_wrappers", "A call that only wraps a graph is replaced by the graph's calls", "call"}};
constexpr Dependency kInlineWrappersAfter[] = {{"flex_attention", "it calls the graph of a score through a wrapper"}};
constexpr Dependency kTorchCallsToAtenAfter[] = {
    {"pre_grad", "the pre-grad passes read calls as Python wrote them"},
    {"inline_wrappers", "it writes switches between modes, which torch_calls_to_aten applies"}};
constexpr Dependency kSwitchToCondAfter[] = {
    {"torch_calls_to_aten", "which graph is chosen is a comparison of ATen's"}};
constexpr Dependency kExpandCompositesAfter[] = {
    {"torch_calls_to_aten", "only ATen operators are expanded"},
    {"move_to_device", "how attention is written out depends on the device"}};
constexpr Dependency kForwardAdAfter[] = {{"torch_calls_to_aten", "tangent rules belong to ATen operators"},
                                          {"expand_composites", "shorthand operators have no tangent rule"}};
constexpr Dependency kFunctionalizeAfter[] = {
    {"forward_ad", "what writes to a dual in place writes to its tangent, too"},
    {"torch_calls_to_aten", "only of ATen operators is it known which mutate"},
    {"expand_composites", "the views inside shorthand operators must be visible"}};
constexpr Dependency kVmapAfter[] = {{"forward_ad", "an inner jvp moves with each example"},
                                     {"functionalize", "what is written in place belongs to one example"}};
constexpr Dependency kDifferentiateAfter[] = {
    {"vmap", "derivatives are taken of what runs for all examples"},
    {"functionalize", "derivatives are taken of functional graphs"},
    {"expand_composites", "shorthand operators have no derivative of their own"}};
constexpr Dependency kDecomposeAfter[] = {
    {"differentiate", "derivatives belong to operators as they are before they are expanded"},
    {"jvp", "tangent rules belong to operators as they are before they are expanded"}};

constexpr Row kCaptureRows[] = {
    Pass{.name = "flex_attention",
         .summary = "Writes flex_attention as products, a softmax, and its graphs inside of a vmap over all scores",
         .run = writeFlexAttention,
         .functional = false,
         .starts = "higher_order.flex_attention, higher_order.flex_attention.default, "
                   "higher_order.flex_attention_backward, higher_order.flex_attention_backward.default"},
    Pass{.name = "inline_wrappers",
         .summary = "Inlines the graphs of wrapper calls: no_grad and autocast regions, activation checkpoints",
         .run = inlineWrappers,
         .functional = false,
         .after = kInlineWrappersAfter,
         .rewrites = kInlineWrappersRewrites},
    Pass{.name = "torch_calls_to_aten",
         .summary = "Writes calls of Python functions and methods as ATen operators",
         .run = torchCallsToAten,
         .functional = false,
         .after = kTorchCallsToAtenAfter,
         .undivided = "Calls of Python functions and methods are ATen operators"},
    Pass{.name = "switch_to_cond",
         .summary = "Writes torch.switch, one of many graphs, as conds",
         .run = switchToCond,
         .functional = false,
         .after = kSwitchToCondAfter,
         .starts = "call"},
    Pass{.name = "move_to_device",
         .summary = "Moves all values to the device that is compiled for",
         .run = moveToDevice,
         .when = onGpu,
         .functional = false,
         .undivided = "All values are on the device that is compiled for"},
    Pass{.name = "expand_composites",
         .summary = "Expands shorthand operators (linear, layer_norm, attention) into what they stand for",
         .run = expandComposites,
         .functional = false,
         .after = kExpandCompositesAfter,
         .operatorRewrites = compositeRewrites},
    Pass{
        .name = "forward_ad",
        .summary = "Computes the tangents of dual tensors, where the program itself uses forward mode (torch.func.jvp)",
        .run = forwardAd,
        .functional = false,
        .after = kForwardAdAfter,
        .starts = "call",
        .undivided = "Tangents of dual tensors are computed by calls of the graph"},
    Pass{.name = "functionalize",
         .summary = "Turns in-place operators into functional ones",
         .run = functionalize,
         .after = kFunctionalizeAfter,
         .starts = "call",
         .undivided = "What is written in place becomes a new value"},
    Pass{.name = "vmap",
         .summary = "Writes what torch.vmap computes for one example as calls for all examples",
         .run = vmap,
         .after = kVmapAfter,
         .starts = "call"},
    Pass{.name = "differentiate",
         .summary = "Adds the backward: the gradients of all parameters, computed from the gradients of the outputs",
         .run = differentiate,
         .when = capturesTraining,
         .after = kDifferentiateAfter,
         .starts = "output",
         .undivided = "The graph computes the gradients of its outputs"},
    Pass{.name = "jvp",
         .summary = "Adds forward mode: the tangents of the results, computed from the tangents of the inputs",
         .run = jvp,
         .when = isForwardMode,
         .repeats = "what it makes is a function, too, which can be differentiated again",
         .after = kDifferentiateAfter,
         .starts = "call, output",
         .undivided = "The graph also returns the tangents of its results"},
    Pass{.name = "decompose",
         .summary = "Decomposes operators into the smaller ones that later passes and kernels know",
         .run = decompose,
         .after = kDecomposeAfter,
         .operatorRewrites = decomposedRewrites},
    Pass{.name = "eliminate_dead_code",
         .summary = "Drops nodes that nobody reads",
         .run = eliminateDeadCode,
         .rewrites = kDeadCodeRewrites}};

}  // namespace

const Stage kCapture{.name = "capture", .rows = kCaptureRows, .required = true};

}  // namespace cutaway
