#include "cutaway/devices.h"

#include "engine/runtime/cuda/requests.h"

namespace cutaway {

Result<DevicesFound> findDevices(const Progress& progress) {
    CT_TRY(const CudaFound found, findCuda(progress));
    return found.all;
}

std::string text(const DevicesFound& found) {
    std::string all = found.gpus.empty() ? "No NVIDIA GPU was found.\n" : "";
    const auto gibibytes = [](int64_t bytes) {
        constexpr int64_t kTenth = (int64_t{1} << 30) / 10;
        const int64_t tenths = bytes / kTenth;
        return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
    };
    for (size_t i = 0; i < found.gpus.size(); ++i) {
        const DevicesFound::Gpu& gpu = found.gpus[i];
        all += "GPU " + std::to_string(i) + ": " + gpu.name + ", compute capability " +
               std::to_string(gpu.capability / 10) + "." + std::to_string(gpu.capability % 10) + ", " +
               gibibytes(gpu.memoryBytes) + " of memory" +
               (gpu.freeBytes < 0 ? "" : ", " + gibibytes(gpu.freeBytes) + " free") +
               (i == 0 ? "" : ", not used: graphs run on the first") + "\n";
    }
    for (const DevicesFound::Part& part : found.parts)
        all += part.name + ": " + (part.version.empty() ? part.missing : part.version) + "\n";
    return all;
}

}  // namespace cutaway
