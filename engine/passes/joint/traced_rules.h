#pragma once
// Rules whose pattern is what a formula (formula.h) becomes when it is traced, so that it has exactly the calls that a
// model's graph has. Each formula gives a rule for inference and one for training, which finds and replaces forward and
// backward together (spec: pattern-matcher T-2). A formula is traced once on example shapes, and the constants of that
// trace match anything; where it matches, the formula is traced again on the real shapes and must match exactly (T-7).
// With CompileRequest::parity the second trace is left out, as in PyTorch (H-1).
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/module.h"
#include "engine/passes/joint/formula.h"
#include "engine/rewrite/matcher.h"
#include "engine/rewrite/rule.h"

namespace cutaway {

struct TracedRule {
    std::string_view name;
    /// "name type; ..." with example types, as in "query T[B, 4, 8, 16]; scale f32[]". A parameter of no dims may also
    /// stand for a number. T is f32 or f16; B is 2, or in the variant "bs1" 1, whose trace has no copies. In training,
    /// parameters marked "grad" have gradients. A parameter of type "number" (the probability of a dropout) matches any
    /// number in training, and is 0 in inference; one of type "scalar" matches any number in both.
    std::string_view parameters;
    std::string_view search, replace;
    std::string_view (*unless)(const Match& match) = nullptr;
    std::string_view why;
    /// "bs1": also traced with B = 1; "mask_fp32": also with T = f16 and `mask` in f32.
    std::string_view variants = "";
    TraceKind kind = TraceKind::Forward;  // set by traceRules
    Releases releases = {};               // of PyTorch, those that have it
};

/// The rules, with the storage of their texts.
struct TracedRules {
    std::deque<std::string> texts;
    std::deque<TracedRule> sources;  // one per rule
    std::vector<Rule> rules;
    std::vector<Error> broken;  // formulas left out because they do not parse or trace
};

/// Which rules to trace: only those that can occur in the graph.
struct TracedForms {
    bool training = true;
    bool half = true;  // those with T = f16, which half-precision graphs have
};

/// Traces each formula for T = f32 and again for T = f16, as "NAME[_half][_mask_fp32][_bs1]_{training,inference}".
/// Variants that do not trace, or look like an earlier rule, are left out; each formula must trace for one of the
/// dtypes.
TracedRules traceRules(std::span<const TracedRule> formulas, TracedForms forms = {});

/// The rule, or with `training` the training and the inference rule, of one formula on its example types as they are;
/// named NAME_training and NAME. Texts borrowed from `formula` must outlive the result. Errors: what does not parse or
/// trace; sides with different numbers of results.
Result<TracedRules> traceUserRule(const TracedRule& formula, bool training);

/// What Rule::build of a rule may return (PyTorch's Match.replace_by_example): the formula, traced on the types of what
/// the match bound to the free names of its pattern, constants written in, before the first result. Its errors are the
/// builder's.
Values replaceByExample(const Match& match, GraphBuilder& builder, std::string_view formula);

/// The graph that the search side of a rule becomes for its example types, `number` in place of parameters of no dims
/// and `dropout` in place of numbers.
Result<std::unique_ptr<Module>> traceSearch(const TracedRule& rule, double number, double dropout);

}  // namespace cutaway
