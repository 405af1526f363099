#ifndef CUTAWAY_OPEN_H
#define CUTAWAY_OPEN_H
// What an exported program has beside its code: weights from a file, threads, files of inputs and results. Nothing is
// thrown.
#include "engine/runtime/exported/interface.h"

struct CtTensorFile;

namespace ct {

/// What an exported library is made of.
struct Library {
    const Code* code;
    const CtHost* host;
    const char* target;                // "x86-64-v3"
    const char* const* needs;          // of the processor, up to null (processor_needs.h)
    const char *weights, *weightsEnd;  // those in the library; the same where there are none
};
/// The program with the weights of that file, which it maps; `weights` null: with those in the library, or without any.
/// Null: lastError() says why.
CtProgram* open(const Library& library, const char* weights);
/// `threads` 0: one per core.
CtParallel parallel(int32_t threads);

CtTensorFile* readFile(const char* path);
int32_t fileCount(const CtTensorFile* file);
const char* fileName(const CtTensorFile* file, int32_t number);
const CtTensor* fileTensor(const CtTensorFile* file, const char* name);
void closeFile(CtTensorFile* file);
int32_t writeFile(const char* path, const char* const* names, const CtTensor* tensors, int32_t count);

}  // namespace ct
#endif
