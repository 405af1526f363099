#ifndef CUTAWAY_PROGRAM_H
#define CUTAWAY_PROGRAM_H
/* A compiled graph as a C library. A program has code, constants and what libraries have planned, and never changes; a
   context has the memory of one run at a time. Any number of contexts run one program at once. Experimental: version
   and struct sizes are checked, and a later version may take others. */
#include "engine/libraries/library.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CT_PROGRAM_VERSION 1

typedef struct CtProgram CtProgram;
typedef struct CtContext CtContext;

/* What a program needs of the process it is in. */
typedef struct CtHost {
    uint32_t version, bytes;                       /* CT_PROGRAM_VERSION, sizeof(CtHost) */
    const CtLibrary* (*library)(const char* name); /* null: there is none of that name */
} CtHost;

/* What a program has to be given, for messages and loaders. Pointers live as long as the library is loaded. */
typedef struct CtProgramInfo {
    uint32_t version, bytes; /* of this struct */
    int32_t constantCount, inputCount, outputCount;
    const char* const* constants; /* names, in the order of ct_program_create */
    const char* const* inputs;    /* names, in the order of ct_run */
} CtProgramInfo;

const CtProgramInfo* ct_program_info(void);
/* `constants` are read where they lie and must outlive the program; their strides are the graph's. Null: ct_error()
   says why. */
CtProgram* ct_program_create(const CtHost* host, const CtTensor* constants);
/* After its last context. */
void ct_program_destroy(CtProgram* program);
/* `parallel` shares work among threads; null: the calling thread does all. */
CtContext* ct_context_create(CtProgram* program, const CtParallel* parallel);
void ct_context_destroy(CtContext* context);
/* 0 on success, else ct_context_error() says what happened, and where. Inputs have the graph's strides, and a number is
   a tensor of rank 0; the graph may write to them. Outputs point into the context's memory, or into an input's, until
   the next run; a returned None has rank -1. */
int32_t ct_run(CtContext* context, const CtTensor* inputs, CtTensor* outputs);
const char* ct_context_error(const CtContext* context);
const char* ct_error(void); /* of the last ct_program_create of this thread */

#ifdef __cplusplus
}
#endif
#endif
