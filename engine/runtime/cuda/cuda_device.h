#pragma once
// The first NVIDIA GPU as passes want to know it: its figures, and how long a product takes on it. Everything happens
// in cutaway-worker, which loads the driver, cuBLASLt and NVRTC when it is asked; without them, without a GPU, or in a
// build without CUTAWAY_CUDA, the functions say so as an error. Nothing is linked, no header of the toolkit is needed.
#include <map>
#include <string>

#include "cutaway/jobs.h"
#include "cutaway/result.h"

namespace cutaway {

struct CudaFacts {
    std::string name;      // "NVIDIA H100 80GB HBM3"
    std::string versions;  // "driver 13.0, cuBLASLt 13.1.0"
    /// "capability" 9.0, "dram_gbps", "tflops_f16", "tflops_bf16", "tflops_f32", "tflops_tf32"; the last four with
    /// "_parity" as PyTorch 2.11 computes them: a thousandth of it for most devices, so that every product counts as
    /// bound by computing.
    std::map<std::string, double> numbers;
};

/// Asks the worker, which takes about a second when it has to be started. Errors: what is missing on this machine.
Result<CudaFacts> cudaFacts(const Progress& progress = {});

/// Milliseconds of one run of the graph on the GPU: the best of up to 100 runs within 25 ms, with a cold cache, as
/// PyTorch's benchmarker takes it. The graph is FX text of mm, bmm and addmm (f16, bf16, f32) and what pads their
/// operands: constant_pad_nd, full, cat, slice and fill_. `tf32`: f32 products may be rounded to tf32. Errors: any
/// other call, by name; operands that do not fit in memory.
Result<double> timeOnCuda(const std::string& graph, bool tf32 = false, const Progress& progress = {});

/// main() of `cutaway-worker cuda`, which answers questions from stdin until it is closed or nothing comes for 15 s:
/// the line "facts", or "time 0|1 LENGTH" with so many bytes of a graph behind it. A reply is the line "ok LENGTH" or
/// "failed LENGTH" and its text.
int cudaWorkerMain();

}  // namespace cutaway
