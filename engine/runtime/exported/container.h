#ifndef CUTAWAY_CONTAINER_H
#define CUTAWAY_CONTAINER_H
// What AOTInductor's verbs do in an exported program (templates/container.h.in): a program with some contexts, which
// runs take in turns. Nothing is thrown; lastError() says why something failed.
#include "engine/runtime/exported/open.h"

struct CtContainer;

namespace ct {

/// `contexts`: how many runs there may be at once; 0 is refused. 0 on success, as everywhere here.
int32_t createContainer(const Library& library, CtContainer** out, size_t contexts, const char* device,
                        const char* weights);
void deleteContainer(CtContainer* container);
CtProgram* programOf(CtContainer* container);
/// Waits for a context. Results are copies that belong to the caller: dropTensor() frees one. `alone`: on the calling
/// thread, and without waiting; it fails where no context is free.
int32_t runContainer(CtContainer* container, const CtTensor* inputs, size_t inputCount, CtTensor* outputs,
                     size_t outputCount, bool alone);
void dropTensor(CtTensor* tensor);
/// A port's name; null, and an error, behind the last.
const char* nameOf(const CtPort* ports, int32_t count, size_t index, bool original);
int64_t bytesOfPort(const CtPort& port);
int32_t extract(CtProgram* program, CtTensor* out, bool later);

}  // namespace ct
#endif
