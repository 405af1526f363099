// cutaway-worker: runs graphs on behalf of a session, or asks the GPU, so that a crash there is only an error here.
#include <string_view>

#include "engine/runtime/cuda/cuda_device.h"
#include "engine/runtime/worker.h"

int main(int argc, char** argv) {
    const bool gpu = argc == 2 && std::string_view(argv[1]) == "cuda";
    return gpu ? cutaway::cudaWorkerMain() : cutaway::workerMain(argc, argv);
}
