#pragma once
// What a compile run is asked for.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cutaway {

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
    std::string onlyStage;                    // empty = all
    std::vector<std::string> disabledPasses;  // by name
    /// Optional passes switched on. The split-cat and fusion passes run in this order (as pre_grad_fusion_options are).
    std::vector<OptionalPass> enabledPasses;
    std::optional<int64_t> fuel;              // total rewrites allowed; none = unlimited

    /// Milliseconds that one run of a small graph, given as FX text, takes on the target; none if it cannot be timed. Absent:
    /// passes that would measure decide without.
    std::function<std::optional<double>(const std::string& graph)> timeGraph;

    /// The settings of an optional pass; null if it is off.
    const OptionalPass* enabled(const std::string& name) const;
};

}  // namespace cutaway
