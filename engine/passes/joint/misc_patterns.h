#pragma once
#include "engine/rewrite/rewriter.h"

namespace cutaway {

/// A random permutation holds every index once, so adding into rows by it needs no atomic accumulation (MSC-1), and
/// reading rows by it no bounds checks (MSC-2). Used in the joint sweep and again after partitioning.
std::span<const Rule> randpermRules();

/// Rounding the exponent of an f32 up to a power of two, written with bits or with log2, is one instruction of recent
/// GPUs (MSC-3). Used after partitioning only, and only where `--enable device=capability:10.0` says that the device
/// has it. As in PyTorch, what is not a positive finite number may come out differently: infinities and NaN saturate at
/// 254.
std::span<const Rule> exponentRules();

}  // namespace cutaway
