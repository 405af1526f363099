#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// The first sweep of the joint graph (JNT-6): small clean-ups, padding of products, attention, randperm indexing, in
/// PyTorch's order of registration. Leaves alone: see the families' own files.
Result<bool> passPattern0(Module& module, Rewriter& rewriter);
std::span<const Rule> passPattern0Rules();

/// prims.iota read by indexing on another device moves there (6a); chains of float conversions keep the last (6b); a
/// bmm of one GPU batch is an mm (6c); scattering one value per row into a constant is a comparison (6d).
std::span<const Rule> jointCleanupRules();

}  // namespace cutaway
