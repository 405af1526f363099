#pragma once
// The GPUs of this machine, and what there is to compute on them.
#include <cstdint>
#include <string>
#include <vector>

#include "cutaway/jobs.h"
#include "cutaway/result.h"

namespace cutaway {

struct DevicesFound {
    struct Gpu {
        std::string name;         // "NVIDIA H200"
        int capability = 0;       // 90
        int64_t memoryBytes = 0;  // all of it
        int64_t freeBytes = -1;   // when it was asked; -1: not asked, only the first is opened
    };
    /// A library that is loaded when it is needed.
    struct Part {
        std::string name, version;  // "cuDNN", "9.10.2"; no version: it is not there
        std::string missing;        // why not, what it costs and what to install, in sentences
    };
    std::vector<Gpu> gpus;
    std::vector<Part> parts;
};
/// Asks a worker process, which takes a second where there is a GPU; once in a program's life. Errors: the worker's.
Result<DevicesFound> findDevices(const Progress& progress = {});
/// A line for each GPU and each library.
std::string text(const DevicesFound& found);

}  // namespace cutaway
