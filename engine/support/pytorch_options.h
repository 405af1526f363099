#pragma once
// What releases of PyTorch changed in the options of its compiler (torch._inductor.config, torch._functorch.config).
#include <span>
#include <string_view>

#include "cutaway/releases.h"

namespace cutaway {

enum class OptionChange : uint8_t { Added, Removed, Changed };

struct OptionRow {
    Release release;
    OptionChange change;
    std::string_view name;           // "inductor.strict_signed_zero"
    std::string_view value, before;  // initial values as Python writes them; empty where there is none
};
/// By release, then by name.
std::span<const OptionRow> pytorchOptions();

}  // namespace cutaway
