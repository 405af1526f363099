#pragma once
// What a compile run is asked for, as data, and the functions that the caller lends it.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/releases.h"
#include "cutaway/result.h"

namespace cutaway {

class Module;
class Rewriter;

enum class Mode : uint8_t {
    Inference,
    Training,
    Jvp,  // forward mode: results and their tangents, the derivative along a direction that the run is given
};
constexpr Mode kModes[] = {Mode::Inference, Mode::Training, Mode::Jvp};
/// As the command line names it: "inference", "training", "jvp".
std::string_view modeName(Mode mode);
/// Nullopt for any other name.
std::optional<Mode> modeOf(std::string_view name);
enum class Target : uint8_t { Cpu, Cuda };
/// Which f32 calls of libraries an NVIDIA GPU may round to TF32, whose mantissa has 10 bits: convolutions that do not
/// transpose, as PyTorch does (torch.backends.cudnn.allow_tf32), or those and products (allow_tf32 of both).
enum class Tf32 : uint8_t { None, Conv, All };
/// As the command line names it: "none", "conv", "all".
std::string_view tf32Name(Tf32 tf32);

/// A pass that is off by default, and its settings: counter, min_fuse_set_size, threshold_to_cat, precision.
struct OptionalPass {
    std::string name;
    std::vector<std::pair<std::string, std::string>> settings;

    /// A setting as a number; `fallback` if it is not given or not a number.
    double number(const std::string& key, double fallback) const;
    bool flag(const std::string& key, bool fallback) const;
    bool operator==(const OptionalPass&) const = default;
};
/// Reads "name" or "name=key:value,key:value"; nullopt for text that is not of this form.
std::optional<OptionalPass> parseOptionalPass(const std::string& text);

/// Rules of the user's own as text, in the form in which the engine prints its own.
struct UserRules {
    std::string name;  // in messages and in the names of steps
    std::string text;
    std::string path = {};  // the file that they were read from, if there is one: says nothing of what they do
    bool operator==(const UserRules& other) const { return name == other.name && text == other.text; }
};
/// A pass of a plugin ("PLUGIN.PASS"), by name, version and hash. The session fills in what is empty, and takes all
/// passes and rules where only PLUGIN is named. The caller lends its function (CompileHooks::passes), or the session
/// finds the plugin.
struct PluginPass {
    std::string place, name, version, hash;
    std::vector<std::pair<std::string, std::string>> settings = {};
    bool operator==(const PluginPass&) const = default;
};
/// Runs a pass right before or after another one instead of where it stands.
struct PassMove {
    std::string pass;
    bool before = true;
    std::string anchor;
    bool operator==(const PassMove&) const = default;
};
/// Reads "NAME=before:OTHER" or "NAME=after:OTHER"; nullopt for text that is not of this form.
std::optional<PassMove> parsePassMove(const std::string& text);

/// What opening a file is asked for.
struct OpenSettings {
    std::string graph;                     // of a file with several: the one to work on; empty = the first
    std::map<std::string, int64_t> sizes;  // size symbols that become numbers: {"s77", 4}
};

/// Equal requests on equal graphs, with equal answers of the hooks, give equal runs.
struct CompileRequest {
    Mode mode = Mode::Inference;
    Target target = Target::Cpu;
    Tf32 tf32 = Tf32::Conv;  // has no meaning on the CPU
    bool freeze = false;
    bool strict = false;                // of Mode::Jvp: a result that depends on no differentiated input is an error
    bool parity = false;                // PyTorch's behaviour where it is wrong
    Release pytorch = kDefaultRelease;  // whose compiler this one does as
    std::string onlyStage;              // empty = all that come next
    bool allStages = false;             // also those that PyTorch ran before the graph was recorded
    bool passesOnly = false;            // without the schedule: nothing decides how the graph's calls are computed
    std::vector<std::string> disabledPasses;  // passes by name; rules by name or as "pass/rule"
    std::vector<UserRules> userRules;
    std::vector<PluginPass> plugins;
    std::vector<PassMove> moves;  // in this order, each on what the ones before it made
    /// Optional passes switched on. The split-cat and fusion passes run in this order (as pre_grad_fusion_options are).
    std::vector<OptionalPass> enabledPasses;
    std::vector<std::string> gradients;  // inputs whose gradient is wanted beside the parameters'
    double memoryBudget = 1;             // of what the forward saves: 0 its inputs, 1 what makes the backward fastest
    std::string solver = "dp";           // which chooses what is saved within a budget
    std::optional<int64_t> fuel;         // rewrites allowed in passes that are not required; none = unlimited

    /// The settings of an optional pass; null if it is off.
    const OptionalPass* enabled(std::string_view name) const;
    bool operator==(const CompileRequest&) const = default;

    /// The request as options of `cutaway-cli`, quoted as in a shell: "--mode training --enable
    /// 'pad_mm=force_shape_pad:1'". parseRequest reads it back as an equal request. Empty if every option has its
    /// default.
    std::string text() const;
    /// Of `text`; the same in every process.
    uint64_t hash() const;
};
/// Errors: an unknown option, with the nearest name; a missing or misshapen value; options that contradict each other.
/// Names of passes, rules and settings are looked up by the run.
Result<CompileRequest> parseRequest(std::string_view text);
/// The same from words that a shell has already separated.
Result<CompileRequest> parseRequest(std::span<const std::string> words);
/// One request of each kind of run that has passes of its own: of each mode, and frozen.
std::vector<CompileRequest> kindsOfRun();
/// Errors: options of the request that contradict each other.
Result<void> checkRequest(const CompileRequest& request);

/// A pass of the user's own, at one of the places where PyTorch takes one: pre_grad_custom_pass, joint_custom_pre_pass,
/// joint_custom_post_pass, post_grad_custom_pre_pass, post_grad_custom_post_pass. It edits through the rewriter and
/// says whether anything changed.
struct UserPass {
    PluginPass id;
    std::string summary;
    std::function<Result<bool>(Module&, Rewriter&)> run;
};

/// What a session lends to a run. Answers are recorded in the run, which is replayed from the record.
struct CompileHooks {
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
    /// The functions of the request's plugin passes.
    std::vector<UserPass> passes;
};

}  // namespace cutaway
