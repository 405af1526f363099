#ifndef CUTAWAY_INTERFACE_H
#define CUTAWAY_INTERFACE_H
// What the functions of an exported program's C interface do. Nothing is thrown through them.
#include "engine/runtime/exported/frame.h"

/// What the library shows; all else is its own.
#define CT_EXPORTED __attribute__((visibility("default")))

namespace ct {

/// `constants` null: they are given by updates before the first run.
CtProgram* create(const Code& code, const CtHost* host, const CtTensor* constants);
/// Weights by name; `how`: CtUpdate. Runs that have begun keep theirs. 0 on success.
int32_t update(CtProgram* program, const char* const* names, const CtTensor* tensors, int32_t count, int32_t how);
int32_t swap(CtProgram* program);
void forgetNext(CtProgram* program);
int32_t weight(CtProgram* program, const char* name, int32_t later, CtTensor* out);
void close(CtProgram* program);
CtContext* contextOf(CtProgram* program, const CtParallel* parallel);
void release(CtContext* context);
int32_t run(CtContext* context, const CtTensor* inputs, CtTensor* outputs);
const char* contextError(const CtContext* context);
/// Of this thread.
const char* lastError();

}  // namespace ct
#endif
