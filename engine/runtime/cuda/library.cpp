#include "engine/runtime/cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace cutaway::cuda {
namespace {

Error missingFunction(const Library& library) {
    return {ErrorCode::ToolFailed,
            library.name() + " has no function " + library.missing(),
            "",
            {"install a newer version of CUDA"}};
}

}  // namespace

Result<Library> Library::open(std::initializer_list<const char*> names, const std::string& purpose) {
    std::vector<std::string> folders = {""};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
        if (const char* folder = std::getenv(variable)) folders.push_back(std::string(folder) + "/lib64/");
    folders.emplace_back("/usr/local/cuda/lib64/");
    for (const std::string& folder : folders)
        for (const char* name : names) {
            Library library;
            library.m_handle = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
            library.m_name = name;
            if (library.m_handle) return library;
        }
    return Error{ErrorCode::ToolFailed,
                 std::string(*names.begin()) + " is not there, which " + purpose,
                 "",
                 {"install it, or name its folder in LD_LIBRARY_PATH"}};
}

void* Library::find(const char* name) {
    void* symbol = dlsym(m_handle, name);
    if (symbol == nullptr && m_missing.empty()) m_missing = name;
    return symbol;
}

Result<Driver> Driver::load() {
    CT_TRY(Library library, Library::open({"libcuda.so.1"}, "the driver of an NVIDIA GPU brings"));
    Driver driver{};
    library.bind(driver.init, "cuInit");
    library.bind(driver.driverGetVersion, "cuDriverGetVersion");
    library.bind(driver.deviceGet, "cuDeviceGet");
    library.bind(driver.deviceGetName, "cuDeviceGetName");
    library.bind(driver.deviceGetAttribute, "cuDeviceGetAttribute");
    library.bind(driver.devicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    library.bind(driver.ctxSetCurrent, "cuCtxSetCurrent");
    library.bind(driver.ctxSynchronize, "cuCtxSynchronize");
    library.bind(driver.memAlloc, "cuMemAlloc_v2");
    library.bind(driver.memFree, "cuMemFree_v2");
    library.bind(driver.memsetD8Async, "cuMemsetD8Async");
    library.bind(driver.eventCreate, "cuEventCreate");
    library.bind(driver.eventDestroy, "cuEventDestroy_v2");
    library.bind(driver.eventRecord, "cuEventRecord");
    library.bind(driver.eventSynchronize, "cuEventSynchronize");
    library.bind(driver.eventElapsedTime, "cuEventElapsedTime");
    library.bind(driver.moduleLoadData, "cuModuleLoadData");
    library.bind(driver.moduleGetFunction, "cuModuleGetFunction");
    library.bind(driver.launchKernel, "cuLaunchKernel");
    library.bind(driver.getErrorString, "cuGetErrorString");
    if (!library.missing().empty()) return missingFunction(library);
    return driver;
}

Result<void> Driver::check(int status, const char* call) const {
    if (status == 0) return {};
    const char* words = nullptr;
    getErrorString(status, &words);
    return Error{
        ErrorCode::ToolFailed, std::string(call) + ": " + (words ? words : "error " + std::to_string(status)), "", {}};
}

Result<CublasLt> CublasLt::load() {
    CT_TRY(Library library,
           Library::open({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"},
                         "multiplies matrices on the GPU"));
    CublasLt lt{};
    library.bind(lt.getVersion, "cublasLtGetVersion");
    library.bind(lt.create, "cublasLtCreate");
    library.bind(lt.matmulDescCreate, "cublasLtMatmulDescCreate");
    library.bind(lt.matmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
    library.bind(lt.matrixLayoutCreate, "cublasLtMatrixLayoutCreate");
    library.bind(lt.matrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
    library.bind(lt.matmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
    library.bind(lt.matmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
    library.bind(lt.matmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
    library.bind(lt.matmul, "cublasLtMatmul");
    if (!library.missing().empty()) return missingFunction(library);
    return lt;
}

Result<Nvrtc> Nvrtc::load() {
    CT_TRY(Library library, Library::open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"},
                                          "compiles kernels for the GPU"));
    Nvrtc nvrtc{};
    library.bind(nvrtc.createProgram, "nvrtcCreateProgram");
    library.bind(nvrtc.compileProgram, "nvrtcCompileProgram");
    library.bind(nvrtc.getProgramLogSize, "nvrtcGetProgramLogSize");
    library.bind(nvrtc.getProgramLog, "nvrtcGetProgramLog");
    library.bind(nvrtc.getPtxSize, "nvrtcGetPTXSize");
    library.bind(nvrtc.getPtx, "nvrtcGetPTX");
    if (!library.missing().empty()) return missingFunction(library);
    return nvrtc;
}

Result<std::string> Nvrtc::compile(const std::string& source, int capability) const {
    void* program = nullptr;
    const std::string architecture = "--gpu-architecture=compute_" + std::to_string(capability);
    const char* const options[] = {architecture.c_str()};
    size_t size = 0;
    if (createProgram(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr) == 0 &&
        compileProgram(program, 1, options) == 0 && getPtxSize(program, &size) == 0) {
        std::string ptx(size, '\0');
        if (getPtx(program, ptx.data()) == 0) return ptx;
    }
    std::string log;
    if (program && getProgramLogSize(program, &size) == 0) {
        log.resize(size);
        getProgramLog(program, log.data());
    }
    return Error{ErrorCode::ToolFailed, "the kernels for the GPU do not compile: " + log, "", {}};
}

}  // namespace cutaway::cuda
