#pragma once
// The machine that a module is compiled for, as a value: a schedule holds it (schedule/decisions.h), and whoever
// chooses or checks is handed it. Nothing has a target by default, and no constant of one machine stands outside of its
// row.
#include <cstdint>
#include <span>
#include <string_view>

#include "cutaway/request.h"
#include "engine/support/hash.h"
#include "engine/tensor/dtype.h"

namespace cutaway {

/// What loops cost on a target, and how large it likes them.
struct LoopTarget {
    int lanes;        // of a vector loop, whatever the dtypes: wide ones take several registers
    int warp;         // of them, a power of two, hand values to each other in registers; 0: one thread has all lanes
    int narrowBytes;  // of a vector of elements of one or two bytes; below `lanes`: no wider vectors
    int64_t elementsPerPart;  // what one part of a split inner loop has at least; fixed, so that bits do not depend on
                              // how many threads there are
    int maxSplit;
    int64_t rowBytes;     // rows from here on leave the cache: extra arithmetic is cheaper than reading twice
    int64_t minPrefetch;  // bytes of rows from which on ...
    int64_t maxPrefetch;  // ... and up to which the next comes into the cache while one is computed; 0: none
    int64_t lineBytes;    // that come into the cache together
    bool onlineSoftmax;   // whether long rows scale their sums of exponentials rather than read their elements again
    int unrollJam, maxUnrollJam;  // vectors of rows that reductions take side by side, and how many a plan may ask for
    int accumulators, maxAccumulators;  // states of a reduction in registers, and how many a plan may ask for
    int stateRegisters;                 // for states, of all registers; the rest is for what goes into them
    int tile;                           // elements that a transpose reads along memory at once
    int64_t maxCached;                  // elements of a row that scratch memory may hold
    bool atomics;      // whether threads may add to one element, in any order: CPUs give the same bits always
    int indexBits;     // of indices, where all fit
    bool inRegisters;  // tiles are turned in registers; else threads hand elements to each other in shared memory
    // Instructions of one vector load or store: elements side by side, one element for all lanes, elements a constant
    // step apart, and an index for each lane.
    double adjacentCost, sameCost, stridedCost, gatheredCost;
    bool operator==(const LoopTarget&) const = default;
};

/// What one kernel may hold, and which values are computed again rather than kept.
struct FusionLimits {
    size_t operations;        // with more, compilers take minutes ...
    size_t buffers;           // ... and what a call passes no longer fits into registers and caches
    int unrollJamOperations;  // of all vectors that are unrolled together: more takes long to compile, and gains
                              // nothing
    size_t parts;             // of a concatenation: kernels choose among them element by element; more are copied
    // In units of an addition.
    int freeCost;   // up to this a value made of constants and indices alone is computed again
    int cheapCost;  // up to this a value is computed again for each element of a loop: reading it costs as much
    bool operator==(const FusionLimits&) const = default;
};

struct TargetInfo {
    /// Has no default, so that no target has.
    struct Name {
        constexpr Name(const char* written) : text(written) {}
        std::string_view text;
        bool operator==(const Name&) const = default;
    };
    Name name;
    Device device;
    int64_t alignment;    // bytes, of each value's memory: whole vectors, and whole cache lines
    int64_t sharedBytes;  // of scratch memory that all lanes of a nest share; 0: each thread has its own, on its stack
    DType sums;           // in which f32 is summed
    /// Of the functions that kernels have (ops/lower.h), those that the target's prelude has not.
    std::span<const std::string_view> missing;
    LoopTarget loops;
    FusionLimits fusion;
    Tf32 tf32;              // which calls its libraries may round
    bool measuresProducts;  // cuBLASLt times its candidates before the first run and keeps the fastest (max_autotune)

    bool hasFunction(std::string_view function) const;
    /// Over all of it.
    void addTo(Hasher& hasher) const;
    bool operator==(const TargetInfo& other) const;
};

extern const TargetInfo kCpuTarget;   // x86-64 with AVX2 or AVX-512; vectors of 16 lanes suit both
extern const TargetInfo kH100Target;  // a GPU of compute capability 9.0, and stands for newer ones

}  // namespace cutaway
