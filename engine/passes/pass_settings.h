#pragma once
// What `--enable NAME=key:value` can set: every key that some pass reads, in one table.
#include <cstdint>
#include <span>
#include <string_view>

#include "cutaway/options.h"

namespace cutaway {

struct PassSetting {
    enum class Kind : uint8_t { Flag, Integer, Real, Choice, File };
    std::string_view owners;  // what may set it, by the names that --enable takes, separated by blanks
    std::string_view key;     // PyTorch's name where it has one
    Kind kind = Kind::Flag;
    std::string_view initial;    // without --enable
    double least = 0, most = 0;  // of numbers
    std::string_view choices;    // of Choice, separated by blanks
    std::string_view what;       // one sentence

    bool belongsTo(std::string_view owner) const;
};
/// In the order of the passes; `counter`, which all passes have, stands first and names none.
std::span<const PassSetting> passSettings();

/// Errors: a key that its pass does not have, a value that is no such thing or out of range, a key given twice.
Result<void> checkSettings(const OptionalPass& wanted);

}  // namespace cutaway
