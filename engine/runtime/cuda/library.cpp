#include "engine/runtime/cuda/library.h"

#include <dlfcn.h>

#include <algorithm>
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
    library.bind(driver.deviceGetCount, "cuDeviceGetCount");
    library.bind(driver.deviceGet, "cuDeviceGet");
    library.bind(driver.deviceTotalMem, "cuDeviceTotalMem_v2");
    library.bind(driver.deviceGetName, "cuDeviceGetName");
    library.bind(driver.deviceGetAttribute, "cuDeviceGetAttribute");
    library.bind(driver.devicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    library.bind(driver.ctxSetCurrent, "cuCtxSetCurrent");
    library.bind(driver.memAlloc, "cuMemAlloc_v2");
    library.bind(driver.memFree, "cuMemFree_v2");
    library.bind(driver.memGetInfo, "cuMemGetInfo_v2");
    library.bind(driver.memsetD8Async, "cuMemsetD8Async");
    library.bind(driver.memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
    library.bind(driver.memcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
    library.bind(driver.streamCreate, "cuStreamCreate");
    library.bind(driver.streamSynchronize, "cuStreamSynchronize");
    library.bind(driver.streamBeginCapture, "cuStreamBeginCapture_v2");
    library.bind(driver.streamEndCapture, "cuStreamEndCapture");
    library.bind(driver.streamIsCapturing, "cuStreamIsCapturing");
    library.bind(driver.graphInstantiate, "cuGraphInstantiateWithFlags");
    library.bind(driver.graphLaunch, "cuGraphLaunch");
    library.bind(driver.graphExecDestroy, "cuGraphExecDestroy");
    library.bind(driver.graphDestroy, "cuGraphDestroy");
    library.bind(driver.eventCreate, "cuEventCreate");
    library.bind(driver.eventRecord, "cuEventRecord");
    library.bind(driver.eventElapsedTime, "cuEventElapsedTime");
    library.bind(driver.moduleLoadData, "cuModuleLoadData");
    library.bind(driver.moduleUnload, "cuModuleUnload");
    library.bind(driver.moduleGetFunction, "cuModuleGetFunction");
    library.bind(driver.moduleGetGlobal, "cuModuleGetGlobal_v2");
    library.bind(driver.funcSetAttribute, "cuFuncSetAttribute");
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
    library.bind(lt.matmulDescDestroy, "cublasLtMatmulDescDestroy");
    library.bind(lt.matrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
    library.bind(lt.matmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
    library.bind(lt.matmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
    library.bind(lt.matrixLayoutCreate, "cublasLtMatrixLayoutCreate");
    library.bind(lt.matrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
    library.bind(lt.matmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
    library.bind(lt.matmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
    library.bind(lt.matmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
    library.bind(lt.matmulAlgoCheck, "cublasLtMatmulAlgoCheck");
    library.bind(lt.matmul, "cublasLtMatmul");
    if (!library.missing().empty()) return missingFunction(library);
    return lt;
}

Result<Nvrtc> Nvrtc::load() {
    CT_TRY(Library library, Library::open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"},
                                          "compiles kernels for the GPU"));
    Nvrtc nvrtc{};
    library.bind(nvrtc.createProgram, "nvrtcCreateProgram");
    library.bind(nvrtc.destroyProgram, "nvrtcDestroyProgram");
    library.bind(nvrtc.compileProgram, "nvrtcCompileProgram");
    library.bind(nvrtc.getProgramLogSize, "nvrtcGetProgramLogSize");
    library.bind(nvrtc.getProgramLog, "nvrtcGetProgramLog");
    library.bind(nvrtc.getPtxSize, "nvrtcGetPTXSize");
    library.bind(nvrtc.getPtx, "nvrtcGetPTX");
    library.bind(nvrtc.getCubinSize, "nvrtcGetCUBINSize");
    library.bind(nvrtc.getCubin, "nvrtcGetCUBIN");
    library.bind(nvrtc.getVersion, "nvrtcVersion");
    if (!library.missing().empty()) return missingFunction(library);
    return nvrtc;
}

namespace {

using ResultSize = int (*)(void*, size_t*);
using ResultText = int (*)(void*, char*);

/// What the compiler makes of the source, of the kind that the two functions give.
Result<std::string> compiledBy(const Nvrtc& nvrtc, const std::string& source, const std::vector<std::string>& options,
                               ResultSize sizeOf, ResultText textOf) {
    void* program = nullptr;
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    size_t size = 0;
    std::string made, log;
    bool done = nvrtc.createProgram(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr) == 0 &&
                nvrtc.compileProgram(program, static_cast<int>(words.size()), words.data()) == 0 &&
                sizeOf(program, &size) == 0;
    if (done) {
        made.resize(size);
        done = textOf(program, made.data()) == 0;
    } else if (program && nvrtc.getProgramLogSize(program, &size) == 0) {
        log.resize(size);
        nvrtc.getProgramLog(program, log.data());
    }
    if (program) nvrtc.destroyProgram(&program);
    if (done) return made;
    return Error{ErrorCode::ToolFailed, "the kernels for the GPU do not compile: " + log, "", {}};
}

}  // namespace

Result<std::string> Nvrtc::compile(const std::string& source, const std::vector<std::string>& options) const {
    const bool ptx = std::any_of(options.begin(), options.end(), [](const std::string& option) {
        return option.starts_with("--gpu-architecture=compute_");
    });
    return ptx ? compiledBy(*this, source, options, getPtxSize, getPtx)
               : compiledBy(*this, source, options, getCubinSize, getCubin);
}

std::string Nvrtc::version() const {
    int major = 0, minor = 0;
    getVersion(&major, &minor);
    return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace cutaway::cuda
