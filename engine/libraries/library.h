#ifndef CUTAWAY_LIBRARY_H
#define CUTAWAY_LIBRARY_H
/* How a compiled program calls what it does not compute by kernels of its own: libraries and portable functions. Plain
   C, since exported programs are C and carry this file. Nothing here allocates for the caller: tensors, scratch and
   packed weights are the caller's memory. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CT_LIBRARY_VERSION 7
#define CT_MAX_RANK 16

/* Element types; the numbers are part of the interface. */
typedef enum CtDType {
    CT_U8,
    CT_I8,
    CT_I16,
    CT_I32,
    CT_I64,
    CT_F16,
    CT_F32,
    CT_F64,
    CT_C32,
    CT_C64,
    CT_C128,
    CT_BOOL,
    CT_BF16,
    CT_U16,
    CT_U32,
    CT_U64
} CtDType;

/* `data` is the first element; strides count elements. While a call is planned, data is null unless the tensor is a
   constant. A result that the call was told not to compute has rank -1. */
typedef struct CtTensor {
    void* data;
    int32_t dtype, rank;
    const int64_t* sizes;
    const int64_t* strides;
} CtTensor;

typedef enum CtArgumentKind {
    CT_NONE,
    CT_OPERAND,
    CT_INT,
    CT_REAL,
    CT_TRUTH,
    CT_TEXT,
    CT_TYPE,
    CT_LIST
} CtArgumentKind;
typedef struct CtArgument {
    int32_t kind;    /* CtArgumentKind */
    int64_t integer; /* operand number, integer, truth (0, 1), CtDType; of a list its length */
    double real;
    const char* text;
    const struct CtArgument* items; /* of a list */
} CtArgument;

/* One call of an operator, every parameter of its schema in order, defaults filled in. */
typedef struct CtCall {
    const char* op;            /* "aten.mm.default" */
    const char* const* params; /* the names of the arguments */
    const CtArgument* args;
    int32_t argCount, operandCount, resultCount;
    const CtTensor* operands;
    const uint8_t* constant; /* by operand: never changes between runs, so that it may be packed once */
    const CtTensor* results;
} CtCall;

/* From where a run draws random numbers: the key, and how many calls of it have drawn. */
typedef struct CtRandom {
    uint64_t seed, draws;
} CtRandom;

/* Memory for results whose sizes follow from a call's data; their tensors have no sizes then. */
typedef struct CtResults {
    void* own;
    /* Room for a result of these sizes, row by row. */
    void* (*take)(struct CtResults* self, int32_t result, int32_t rank, const int64_t* sizes);
} CtResults;

/* Who shares work among `threads`, and what else a run lends a call. `run` calls body(state, begin, end) for parts of
   [0, range) and returns when all are done; bounds are multiples of `unit`. The parts do not depend on the number of
   threads if `unit` says them all. */
typedef struct CtParallel {
    void* pool;
    int32_t threads;
    void (*run)(const struct CtParallel* self, int64_t range, int64_t unit,
                void (*body)(void* state, int64_t begin, int64_t end), void* state);
    CtRandom* random;   /* of the run; null: its calls draw nothing */
    CtResults* results; /* null: the call's results have their memory */
    void* stream;       /* of the device on which operands and results lie: work is enqueued there; null: the host's */
    int32_t* fault;     /* on that device, set to 1 where an index that comes from data is out of range; may be null */
} CtParallel;

typedef struct CtNeeds {
    int64_t scratch, packed; /* bytes, aligned to 64 by the caller */
} CtNeeds;

typedef struct CtPlan CtPlan; /* a library's own */

/* What a plan does with an operand: runs read it where it lies, packing reads it. One that is only packed need not be
   kept. */
enum { CT_READS = 1, CT_PACKS = 2 };

typedef struct CtLibrary {
    uint32_t version, bytes; /* CT_LIBRARY_VERSION, sizeof(CtLibrary) */
    const char* name;        /* "oneDNN" */
    /* Null if the library has no such call: error() says why. What it returns may be run by many threads at once.
       The call, with all that it points to, outlives the plan. */
    CtPlan* (*plan)(const CtCall* call, int32_t threads, CtNeeds* needs);
    /* Once, before the first run: constant operands into `packed`. 0 on success. Null if nothing is ever packed. */
    int32_t (*pack)(const CtPlan* plan, const CtTensor* operands, void* packed);
    /* 0 on success. Operands and results are as planned but for their data. */
    int32_t (*run)(const CtPlan* plan, const CtTensor* operands, const CtTensor* results, const void* packed,
                   void* scratch, const CtParallel* parallel);
    void (*drop)(CtPlan* plan);
    /* CT_READS, CT_PACKS, both or 0. Null: runs read every operand, and packing what it likes. */
    int32_t (*uses)(const CtPlan* plan, int32_t operand);
    /* Whether two of its plans make the same of the same numbers, so that one packed memory serves both. Null: no. */
    int32_t (*packAlike)(const CtPlan* a, const CtPlan* b);
    const char* (*error)(void); /* of the last failure on this thread */
} CtLibrary;

#ifdef __cplusplus
}
#endif
#endif
