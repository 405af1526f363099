#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// Drops calls that return an operand unchanged (PST-5): full slices, paddings by zero, conversions to the same dtype,
/// copies, views to the same shape. Only where size, stride, dtype and device of both agree. Leaves alone: a copy that
/// keeps an output's storage apart from an input's or another output's.
Result<bool> removeNoopOps(Module& module, Rewriter& rewriter);
/// The names of its rules: the ops, each of which has one.
std::vector<std::string_view> noopRules();

}  // namespace cutaway
