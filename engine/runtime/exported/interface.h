#ifndef CUTAWAY_INTERFACE_H
#define CUTAWAY_INTERFACE_H
// What the functions of an exported program's C interface do. Nothing is thrown through them.
#include "engine/runtime/exported/frame.h"

/// What the library shows; all else is its own.
#define CT_EXPORTED __attribute__((visibility("default")))

namespace ct {

CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants);
void close(CtProgram* program);
CtContext* contextOf(CtProgram* program, const CtParallel* parallel);
void release(CtContext* context);
int32_t run(CtContext* context, const CtTensor* inputs, CtTensor* outputs);
const char* contextError(const CtContext* context);
/// Of this thread.
const char* lastError();

}  // namespace ct
#endif
