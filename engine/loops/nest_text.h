#pragma once
// Loop nests as text, and back; after any of the steps that lower them. Expressions are those of kernels
// (kernel_text.h).
//
//   sums(b0: f32!, b1: f32, s0)                        buffers by number, "!" where it writes; then its sizes
//     lanes 16                                         of its vector loops
//     range s0                                         steps of the parallel loop
//     scratch c0: f32[64]                              an array of each thread's own
//     parallel for x0 in 0 .. s0:                      indented by two spaces: what stands inside
//       var t0: f64x16 = 0.0_f64                       a variable of 16 lanes that changes, "let" of one that does not
//       vector 16 for x1 in 0 .. 40:
//         t0 = t0 + f64(b1[40*x0 + x1 : 1])            lanes 40*x0 + x1, one further each
//       x2 = x0//3                                     an axis that follows from others
//       if x2 < 4:
//         b0[x0] = f32(lane(t0, 0))
//   alloc sum t1: f64 of f32; accumulate sum t1 with VALUE at POSITION where ACTIVE; combine sum t1 with t2; barrier
//   prefetch b1[40*x0 + 40]; prefetch b0[40*x0] to write     asks for the memory of an element
#include <string>
#include <string_view>

#include "engine/loops/loop_nest.h"

namespace cutaway {

std::string text(const LoopNest& nest);
/// The same in the words of version 0.1. Functions are named by its hash: other words would compile every kernel of
/// every cache again.
std::string keyText(const LoopNest& nest);
/// The nest whose text this is. Errors name the line, and what is expected there.
Result<LoopNest> parseNest(std::string_view text);

}  // namespace cutaway
