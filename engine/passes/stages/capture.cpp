// The program, as Python or torch.export wrote it, becomes a functional ATen graph.
#include "engine/autograd/expand.h"
#include "engine/autograd/functionalize.h"
#include "engine/autograd/joint_graph.h"
#include "engine/passes/dead_code.h"
#include "engine/passes/inline_wrappers.h"
#include "engine/passes/move_to_device.h"
#include "engine/passes/operator_rewrites.h"
#include "engine/passes/stage.h"
#include "engine/passes/torch_calls_to_aten.h"

namespace cutaway {
namespace {

bool isTraining(const CompileRequest& request) { return request.mode == Mode::Training; }
bool onGpu(const CompileRequest& request) { return request.target == Target::Cuda; }

constexpr CodeRewrite kInlineWrappersRewrites[] = {
    {"inline_wrappers", "What only wraps a graph is that graph's calls", "call"}};
constexpr Dependency kTorchCallsToAtenAfter[] = {
    {"pre_grad", "the pre-grad passes read calls as Python wrote them"},
    {"inline_wrappers", "the switches between modes that it writes get their effect there"}};
constexpr Dependency kExpandCompositesAfter[] = {{"torch_calls_to_aten", "only ATen operators are expanded"},
                                                 {"move_to_device", "what attention becomes depends on the device"}};
constexpr Dependency kFunctionalizeAfter[] = {
    {"torch_calls_to_aten", "which calls mutate is known of ATen operators"},
    {"expand_composites", "the views inside shorthand operators have to be seen"}};
constexpr Dependency kDifferentiateAfter[] = {
    {"functionalize", "derivatives are taken of functional graphs"},
    {"expand_composites", "shorthand operators have no derivative of their own"}};
constexpr Dependency kDecomposeAfter[] = {
    {"differentiate", "derivatives belong to operators as they are before they are expanded"}};

constexpr Row kRows[] = {
    Pass{.name = "inline_wrappers",
         .summary = "Writes the calls of regions that run in another mode, and of checkpoints, where they stand",
         .run = inlineWrappers,
         .functional = false,
         .rewrites = kInlineWrappersRewrites},
    Pass{.name = "torch_calls_to_aten",
         .summary = "Writes calls of Python functions and methods as ATen operators",
         .run = torchCallsToAten,
         .functional = false,
         .after = kTorchCallsToAtenAfter,
         .undivided = "Calls of Python functions and methods are ATen operators"},
    Pass{.name = "move_to_device",
         .summary = "Types all values for the device that is compiled for",
         .run = moveToDevice,
         .when = onGpu,
         .functional = false,
         .undivided = "All values are on the device that is compiled for"},
    Pass{.name = "expand_composites",
         .summary = "Writes shorthand operators (linear, layer_norm, attention) as what they stand for",
         .run = expandComposites,
         .functional = false,
         .after = kExpandCompositesAfter,
         .operatorRewrites = compositeRewrites},
    Pass{.name = "functionalize",
         .summary = "Turns in-place operators into functional ones",
         .run = functionalize,
         .after = kFunctionalizeAfter,
         .starts = "call",
         .undivided = "What is written in place becomes a new value"},
    Pass{.name = "differentiate",
         .summary = "Adds the backward: the gradient of every parameter from those of the outputs",
         .run = differentiate,
         .when = isTraining,
         .repeats = "a joint graph is refused: it is differentiated already",
         .after = kDifferentiateAfter,
         .starts = "output",
         .undivided = "The graph computes the gradients of its outputs"},
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

const Stage kCapture{.name = "capture", .rows = kRows, .required = true};

}  // namespace cutaway
