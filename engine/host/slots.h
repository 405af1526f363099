#pragma once
// Where values lie in the memory of a context.
#include "engine/host/host_program.h"
#include "engine/interpret/specialize.h"

namespace cutaway {

/// A value in a slot, and the first and the last step that touch it.
struct HostLife {
    int64_t value = 0;
    int begin = 0, end = 0;
};
/// Gives the values their slots. Where all sizes of a segment are numbers it has one slot, in which values overlap in
/// space where they do not in time. Where they are not, values take turns in slots of their own, chosen for the sizes
/// that `hints` gives: a slot has the bytes of the largest, whatever the sizes are. `alignment`: the target's.
void placeInSlots(HostFunction& function, const std::vector<HostLife>& lives, const SymbolValues& hints,
                  int64_t alignment);

}  // namespace cutaway
