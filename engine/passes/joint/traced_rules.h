#pragma once
// Rules whose pattern is what a formula becomes when it is traced: composite ops are expanded and decomposed as in a
// model, so the pattern has exactly the calls that a model's graph has. Traced once on example shapes, the constants of
// the trace are left open; where that matches, the formula is traced again on the real shapes and must match exactly
// (spec: pattern-matcher T-7). With CompileOptions::parity the second trace is left out, as in PyTorch (H-1).
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/module.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

/// A formula: FX statements over the parameters. Written in as constants when it is traced: `size(x, d, ...)`, the number
/// of elements along these dims of x together; `sqrt_size(x, d)`, its square root; `dtype_of(x)`; `device_of(x)`;
/// `lowest(x)`, the least number of x's dtype; `inverse(s)`, one over a number.
struct TracedRule {
    std::string_view name;
    /// "name type; ..." with example types, as in "query T[B, 4, 8, 16]; scale f32[]". A parameter of no dims may also
    /// stand for a number. T is f32 or f16, B is 2; or 1, which needs no copies.
    std::string_view parameters;
    std::string_view search, replace;
    std::string_view (*unless)(const Match& match) = nullptr;
    std::string_view why;
    /// "bs1": also traced with B = 1; "mask_fp32": also with T = f16 and `mask` in f32.
    std::string_view variants = "";
};

/// The rules, with the storage of their texts.
struct TracedRules {
    std::deque<std::string> texts;
    std::deque<TracedRule> sources;
    std::vector<Rule> rules;
    std::vector<Error> broken;   // formulas left out because they do not parse or trace
};

/// Traces each formula for T = f32 and again for T = f16, as "NAME[_half][_mask_fp32][_bs1]_inference". Variants that do
/// not trace, or look like an earlier rule, are left out; each formula must trace for one of the dtypes.
TracedRules traceRules(std::span<const TracedRule> formulas);

/// The graph that a formula's search side becomes for its example types, `number` in place of parameters of no dims.
Result<std::unique_ptr<Module>> traceFormula(const TracedRule& formula, double number);

}  // namespace cutaway
