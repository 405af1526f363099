#include "engine/runtime/cpu/kernel_code.h"

#include <dlfcn.h>

namespace cutaway {

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
            functions.push_back(reinterpret_cast<Function>(function));
        }
    }
    return code;
}

CompiledKernels::~CompiledKernels() {
    for (const auto& [path, handle] : m_handles) ::dlclose(handle);
}

int CompiledKernels::run(size_t kernel, size_t launch, void* const* buffers, const std::vector<int64_t>& sizes,
                         int64_t begin, int64_t end) const {
    int fault = 0;
    m_functions[kernel][launch](buffers, sizes.data(), begin, end, &fault);
    return fault;
}

}  // namespace cutaway
