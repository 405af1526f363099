// What becomes of the calls: libraries, kernels, and which nodes share one. The graph keeps its nodes; what is decided
// is its plan (schedule/decisions.h), which is what is built and run.
#include "engine/passes/stage.h"
#include "engine/rewrite/dead_code.h"
#include "engine/schedule/decisions.h"

namespace cutaway {
namespace {

constexpr CodeRewrite kDropUnread[] = {{"dead node", "Nobody reads it, so nothing has to compute it"}};
constexpr CodeRewrite kExpandCalls[] = {
    {"expand_call", "A call that nothing on the device computes is written as calls that something does", "call"}};
constexpr CodeRewrite kAssignLayouts[] = {
    {"channels_last", "A call's result has the layout that its library writes without copies", "call"}};
constexpr CodeRewrite kSavedLayouts[] = {
    {"saved_layout", "A saved value lies in the backward as the forward leaves it", "placeholder"}};
constexpr CodeRewrite kViewReshapes[] = {
    {"view_reshape", "A reshape that moves nothing is a view", "aten.reshape.default"}};
constexpr CodeRewrite kChooseLibraries[] = {{"call_library", "A library computes the call", "call"}};
constexpr CodeRewrite kFuse[] = {{"fuse", "A value is computed in the kernel that reads it", "call"},
                                 {"share_loop", "Two that read the same memory share a kernel", "call"}};

constexpr CodeRewrite kReuse[] = {
    {"in_place", "A value takes the memory of an operand that nobody reads afterwards", "call"}};

bool schedulesTraining(const CompileRequest& request) { return request.mode == Mode::Training; }

constexpr Row kScheduleRows[] = {
    Pass{.name = "expand_calls",
         .summary = "Writes calls that nothing on the device computes as calls that something does",
         .run = expandCalls,
         .functional = false,
         .rewrites = kExpandCalls},
    Pass{.name = "drop_unread",
         .summary = "Removes calls that nobody reads any more",
         .run = eliminateDeadCode,
         .required = true,
         .functional = false,
         .rewrites = kDropUnread},
    Pass{.name = "begin_schedule",
         .summary = "Gives each call a kernel of its own, or a portable function where it has no lowering rule",
         .run = beginSchedule,
         .required = true,
         .functional = false,
         .starts = "output"},
    Pass{.name = "saved_layouts",
         .summary = "Gives saved values in the backward the strides that the forward leaves them with",
         .follow = takeSavedLayouts,
         .when = schedulesTraining,
         .functional = false,
         .rewrites = kSavedLayouts},
    Pass{.name = "assign_layouts",
         .summary = "Gives values the layouts that libraries read and write without copies",
         .run = assignLayouts,
         .functional = false,
         .rewrites = kAssignLayouts},
    Pass{.name = "view_reshapes",
         .summary = "Turns reshapes that need no copy into views",
         .run = viewReshapes,
         .functional = false,
         .rewrites = kViewReshapes},
    // Behind the layouts, which are those of our libraries, and in front of these: who names a plugin wants it asked.
    UserPlace{.name = "library", .functional = false, .rules = false},
    Pass{.name = "choose_libraries",
         .summary = "Decides which calls libraries compute",
         .run = chooseLibraries,
         .functional = false,
         .rewrites = kChooseLibraries},
    Pass{.name = "fuse_nodes",
         .summary = "Decides which nodes share a kernel",
         .run = fuseNodes,
         .functional = false,
         .rewrites = kFuse},
    Pass{.name = "reuse_memory",
         .summary = "Decides which values overwrite an operand that nobody reads afterwards",
         .run = reuseMemory,
         .functional = false,
         .rewrites = kReuse},
};

}  // namespace

const Stage kSchedule{.name = "schedule", .rows = kScheduleRows};

}  // namespace cutaway
