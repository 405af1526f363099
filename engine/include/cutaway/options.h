#pragma once
// What a compile run is asked for.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cutaway/result.h"

namespace cutaway {

class Module;
class Rewriter;

enum class Mode : uint8_t { Inference, Training };
enum class Target : uint8_t { Cpu, Cuda };

/// A pass that is off by default, and its settings: counter, min_fuse_set_size, threshold_to_cat, precision.
struct OptionalPass {
    std::string name;
    std::vector<std::pair<std::string, std::string>> settings;

    /// A setting as a number; `fallback` if it is not given or not a number.
    double number(const std::string& key, double fallback) const;
    bool flag(const std::string& key, bool fallback) const;
};
/// Reads "name" or "name=key:value,key:value"; nullopt for text that is not of this form.
std::optional<OptionalPass> parseOptionalPass(const std::string& text);

/// Rules of the user's own as text, in the form in which the engine prints its own.
struct UserRules {
    std::string name;  // in messages and in the names of steps
    std::string text;
};
/// A pass of the user's own, at one of the places where PyTorch takes one: pre_grad_custom_pass, joint_custom_pre_pass,
/// joint_custom_post_pass, post_grad_custom_pre_pass, post_grad_custom_post_pass. It edits through the rewriter and
/// says whether anything changed.
struct UserPass {
    std::string place, name, summary;
    std::function<Result<bool>(Module&, Rewriter&)> run;
};
/// Runs a pass right before or after another one instead of where it stands.
struct PassMove {
    std::string pass;
    bool before = true;
    std::string anchor;
};
/// Reads "NAME=before:OTHER" or "NAME=after:OTHER"; nullopt for text that is not of this form.
std::optional<PassMove> parsePassMove(const std::string& text);

/// What opening a file is asked for.
struct OpenSettings {
    std::string graph;                     // of a file with several: the one to work on; empty = the first
    std::map<std::string, int64_t> sizes;  // size symbols that become numbers: {"s77", 4}
};

struct CompileOptions {
    Mode mode = Mode::Inference;
    Target target = Target::Cpu;
    bool freeze = false;
    bool parity = false;                      // PyTorch's behaviour where it is wrong
    std::string onlyStage;                    // empty = all that come next
    bool allStages = false;                   // also those that PyTorch ran before the graph was recorded
    std::vector<std::string> disabledPasses;  // passes by name; rules by name or as "pass/rule"
    std::vector<UserRules> userRules;
    std::vector<UserPass> userPasses;
    std::vector<PassMove> moves;  // in this order, each on what the ones before it made
    /// Optional passes switched on. The split-cat and fusion passes run in this order (as pre_grad_fusion_options are).
    std::vector<OptionalPass> enabledPasses;
    std::optional<int64_t> fuel;  // total rewrites allowed; none = unlimited

    /// Milliseconds that one run of a small graph, given as FX text, takes on the target; none if it cannot be timed.
    /// Absent: passes that would measure decide without.
    std::function<std::optional<double>(const std::string& graph)> timeGraph;
    /// What is known of the target device: "capability" (9.0), "dram_gbps", "tflops_f16" and its like for other dtypes
    /// and tf32; none if unknown. Absent: nothing is.
    std::function<std::optional<double>(const std::string& fact)> deviceFact;
    /// Where measured numbers are kept for later programs, by key. Absent: they are remembered as long as this one
    /// runs.
    std::function<std::optional<double>(const std::string& key)> recall;
    std::function<void(const std::string& key, double value)> remember;
    /// The file in which the session keeps them: empty = the user's own, "off" = none.
    std::string cacheFile;
    /// Example values of the graph's size symbols; each pass is given those of the module that it works on.
    std::map<std::string, int64_t> sizeHints;

    /// The settings of an optional pass; null if it is off.
    const OptionalPass* enabled(const std::string& name) const;
};

}  // namespace cutaway
