#ifndef CUTAWAY_PROGRAM_H
#define CUTAWAY_PROGRAM_H
/* A compiled graph as a C library. A program has code, constants and what libraries have planned, and never changes; a
   context has the memory of one run at a time, and the buffers that the graph writes to. Any number of contexts run one
   program at once. Experimental: version and struct sizes are checked, and a later version may take others. */
#include "engine/libraries/library.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CT_PROGRAM_VERSION 3

typedef struct CtProgram CtProgram;
typedef struct CtContext CtContext;

/* What a program needs of the process it is in. */
typedef struct CtHost {
    uint32_t version, bytes;                       /* CT_PROGRAM_VERSION, sizeof(CtHost) */
    const CtLibrary* (*library)(const char* name); /* null: there is none of that name */
} CtHost;

/* A value that a program takes or gives. */
typedef struct CtPort {
    const char* name;
    int32_t dtype, rank;    /* rank -1: a None, which is given as a tensor of rank -1 */
    const int64_t* sizes;   /* -1: any that the graph was exported for */
    const int64_t* strides; /* null: contiguous, or not known before a run */
    int32_t state;          /* of a constant: the graph writes to it; each context has its own, which begins as this */
    const char* original; /* of a constant: its name in the model, "layer.weight"; null: compiling made it of others */
} CtPort;

/* How weights are updated: values that are added up. */
typedef enum CtUpdate {
    CT_ALL = 1,  /* an error unless each weight is given */
    CT_LENT = 2, /* not copied: memory and its contents stay until the program is closed, or is given others. What the
                    graph reads in another layout is copied all the same */
    CT_NEXT = 4  /* not for the next runs, but kept beside for a swap */
} CtUpdate;

/* Pointers live as long as the library is loaded. */
typedef struct CtProgramInfo {
    uint32_t version, bytes; /* of this struct */
    int32_t constantCount, inputCount, outputCount;
    const CtPort *constants, *inputs, *outputs;
} CtProgramInfo;

#ifdef __cplusplus
}
#endif
#endif
