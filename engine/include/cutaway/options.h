#pragma once
// What a compile run is asked for.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cutaway {

enum class Mode : uint8_t { Inference, Training };
enum class Target : uint8_t { Cpu, Cuda };

struct CompileOptions {
    Mode mode = Mode::Inference;
    Target target = Target::Cpu;
    bool freeze = false;
    bool parity = false;                      // PyTorch's behaviour where it is wrong
    std::string onlyStage;                    // empty = all
    std::vector<std::string> disabledPasses;  // by name
    std::optional<int64_t> fuel;              // total rewrites allowed; none = unlimited
};

}  // namespace cutaway
