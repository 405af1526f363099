#pragma once
// Compiled kernels of a program on the GPU.
#include "engine/runtime/cpu/kernel_code.h"
#include "engine/runtime/cuda/memory.h"

namespace cutaway::cuda {

class Kernels final : public KernelCode {
  public:
    /// `cubins`: by kernel, the path of the file that has its functions. Errors: one that cannot be read or loaded,
    /// or that does not have them.
    static Result<std::unique_ptr<KernelCode>> load(const HostProgram& program, const std::vector<std::string>& cubins,
                                                    const std::shared_ptr<Memory>& memory);
    ~Kernels() override;
    /// Enqueues it.
    Result<int> launch(const KernelLaunch& what) const override;

  private:
    struct Entry {
        Function* run = nullptr;
        int64_t unit = 1;
        unsigned threads = 1, mostBlocks = 1, sharedBytes = 0;
        bool hasSizes = false;
    };
    explicit Kernels(std::shared_ptr<Memory> memory) : m_memory(std::move(memory)) {}

    std::shared_ptr<Memory> m_memory;
    std::map<std::string, LoadedModule*> m_modules;  // by path
    std::vector<std::vector<Entry>> m_functions;
};

}  // namespace cutaway::cuda
