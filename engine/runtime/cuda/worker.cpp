// The worker's end of cuda_device.h.
#include <cstdio>
#include <exception>
#include <string_view>

#include "engine/runtime/cuda/cuda_device.h"
#include "engine/runtime/cuda/timer.h"
#include "engine/support/temp_dir.h"
#include "engine/text/parse.h"

namespace cutaway {
namespace {

Result<std::string> factsText() {
    CT_TRY(const cuda::Device device, cuda::Device::open());
    CT_TRY(const CudaFacts facts, device.facts());
    std::string out = facts.name + "\n" + facts.versions + "\n";
    for (const auto& [name, value] : facts.numbers) out += name + " " + std::to_string(value) + "\n";
    return out;
}

Result<std::string> timeText(const std::string& file, bool tf32) {
    CT_TRY(const std::string text, readFile(file));
    CT_TRY(const auto module, parseText(text));
    CT_TRY(const cuda::Device device, cuda::Device::open());
    CT_TRY(const double milliseconds, cuda::timeGraph(device, *module, tf32));
    char out[64];
    std::snprintf(out, sizeof out, "%.9g\n", milliseconds);
    return std::string(out);
}

Result<std::string> answer(int argc, char** argv) {
    const std::string_view what = argv[1];
    if (what == "cuda-facts") return factsText();
    if (what == "cuda-time" && argc == 4) return timeText(argv[2], std::string_view(argv[3]) == "1");
    return invalidInput("cutaway-worker knows cuda-facts and cuda-time GRAPH 0|1");
}

}  // namespace

int cudaWorkerMain(int argc, char** argv) {
    try {
        const auto reply = answer(argc, argv);
        if (reply) std::printf("ok\n%s", reply->c_str());
        else std::printf("failed\n%s\n", reply.error().text().c_str());
    } catch (const std::exception& error) {
        std::printf("failed\n%s\n", error.what());
    }
    return 0;
}

}  // namespace cutaway
