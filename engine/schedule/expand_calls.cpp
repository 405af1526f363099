// Calls that no kernel, library or function of the device computes, written as calls that something does compute: the
// reference is slow, and on a GPU it costs copies both ways.
#include "engine/autograd/expand.h"
#include "engine/libraries/choose.h"
#include "engine/schedule/decisions.h"
#include "engine/schedule/lowering.h"

namespace cutaway {
namespace {

constexpr std::string_view kRule = "expand_call";

/// Why a call stays as it is; empty if nothing computes it and it has an expansion.
std::string whyKept(const Node& node, const TargetInfo& target) {
    if (node.is(Tag::View)) return "it looks at its operand's memory";
    if (node.op().mutates()) return "it writes to memory that others see";
    if (const LibraryRow* const row = libraryRowOf(node, target))
        return "a library computes it: " + libraryText(*row, node, target);
    if (probe(node, target).lowers) return "a kernel computes it";
    if (node.op().def() == nullptr || !node.op().def()->decompose) return "it has no expansion";
    return {};
}

}  // namespace

Result<bool> expandCalls(Module& module, Rewriter& rewriter) {
    if (rewriter.disabled(kRule)) return false;
    const TargetInfo& target = targetOf(module, rewriter.request());
    return expandCalls(module, rewriter,
                       {.isWanted =
                            [&](const Node& call) {
                                const std::string kept = whyKept(call, target);
                                if (!kept.empty() && rewriter.watches(call)) rewriter.refuse(kRule, call, kept);
                                return kept.empty();
                            },
                        .rule = [](const Node&) { return std::string(kRule); },
                        .declined = [](const Node&) { return std::string("it has no expansion for these operands"); }});
}

}  // namespace cutaway
