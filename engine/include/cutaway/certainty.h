#pragma once
// How much there is to say that a node of one graph and a node of another stand for the same value.
#include <cstdint>
#include <string_view>

namespace cutaway {

/// Sure: the same node, or the same call whose operands and readers are all paired with each other and which nothing
/// else could be. Likely: what surrounds it says so, but not all of it, or a twin could stand in its place. Unsure:
/// only operator, type and order agree, or less.
enum class Certainty : uint8_t { Sure, Likely, Unsure };

inline std::string_view name(Certainty certainty) {
    return certainty == Certainty::Sure ? "sure" : certainty == Certainty::Likely ? "likely" : "unsure";
}

}  // namespace cutaway
