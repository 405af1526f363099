#include "engine/runtime/cpu/kernel_code.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "engine/runtime/cpu/thread_pool.h"

namespace cutaway {
namespace {

/// Elements that threads take together at least, where these are vectors: two threads never write to one cache line.
constexpr int64_t kUnit = 64;

}  // namespace

Result<std::unique_ptr<CompiledKernels>> CompiledKernels::load(const HostProgram& program,
                                                               const std::vector<std::string>& libraries) {
    if (libraries.size() != program.kernels.size()) return invalidInput("each kernel needs a library");
    std::unique_ptr<CompiledKernels> code(new CompiledKernels());
    for (size_t i = 0; i < program.kernels.size(); ++i) {
        const std::string& path = libraries[i];
        auto& functions = code->m_functions.emplace_back();
        for (const HostKernel::Launch& launch : program.kernels[i].launches) {
            void*& handle = code->m_handles[path];
            if (handle == nullptr) handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            if (handle == nullptr) {
                code->m_handles.erase(path);
                return Error{
                    ErrorCode::ToolFailed, std::string("cannot load the compiled library: ") + ::dlerror(), path, {}};
            }
            void* const function = ::dlsym(handle, launch.function.c_str());
            if (function == nullptr)
                return Error{ErrorCode::ToolFailed, "the compiled library has no " + launch.function, path, {}};
            functions.push_back(
                {reinterpret_cast<Function>(function), launch.unit > 1 ? std::max(kUnit, launch.unit) : 1});
        }
    }
    return code;
}

CompiledKernels::~CompiledKernels() {
    for (const auto& [path, handle] : m_handles) ::dlclose(handle);
}

Result<int> CompiledKernels::launch(const KernelLaunch& what) const {
    const Entry& entry = m_functions[what.kernel][what.launch];
    std::atomic<int> fault{0};
    what.pool->run(what.range, entry.unit, what.threads, [&](int64_t begin, int64_t end) {
        int failed = 0;
        entry.run(what.buffers, what.sizes, begin, end, &failed);
        if (failed != 0) fault.store(failed, std::memory_order_relaxed);
    });
    return fault.load();
}

}  // namespace cutaway
