#pragma once
// Which names somebody may have meant who wrote one that does not exist; as a sentence: suggestion (cutaway/words.h).
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/words.h"

namespace cutaway {

/// Up to three of `names` that are within a third of the given name's length in insertions, deletions and exchanges,
/// nearest first, each once; equal ones in the order of `names`.
std::vector<std::string_view> nearNames(std::string_view given, std::span<const std::string_view> names);
}  // namespace cutaway
