// In place of worker.cpp in builds without CUTAWAY_CUDA.
#include <cstdio>
#include <string_view>

#include "engine/runtime/cuda/cuda_device.h"

namespace cutaway {

int cudaWorkerMain() {
    constexpr std::string_view kWhy = "this build of Cutaway has no CUDA runtime; configure it with CUTAWAY_CUDA=ON";
    for (int c = std::getchar(); c != '\n' && c != EOF;) c = std::getchar();
    std::printf("failed %zu\n%.*s", kWhy.size(), static_cast<int>(kWhy.size()), kWhy.data());
    return 0;
}

}  // namespace cutaway
