// In place of worker.cpp in builds without CUTAWAY_CUDA.
#include <cstdio>

#include "engine/runtime/cuda/cuda_device.h"

namespace cutaway {

int cudaWorkerMain(int, char**) {
    std::printf("failed\nthis build of Cutaway has no CUDA runtime; configure it with CUTAWAY_CUDA=ON\n");
    return 0;
}

}  // namespace cutaway
