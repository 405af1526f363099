#pragma once
// Gradient checks (engine/autograd/gradient_check.h) in the worker process.
#include "engine/autograd/gradient_check.h"
#include "engine/runtime/wire.h"
#include "engine/runtime/worker.h"

namespace cutaway {

/// What the check needs to know of a graph beside what runs: which inputs and results are what.
void writeRoles(ByteWriter& out, const Module& module);
void readRoles(ByteReader& in, Module& module);
/// Keys of nodes stay with the program: rows name them.
void writeGradientCheck(ByteWriter& out, const GradientCheck& check);
GradientCheck readGradientCheck(ByteReader& in);

}  // namespace cutaway
