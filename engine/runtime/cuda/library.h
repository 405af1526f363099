#pragma once
// The driver, cuBLASLt and NVRTC, found at run time. The declarations are those of their public C interfaces, which
// stay compatible from version to version: handles are pointers, enumerations are ints.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "cutaway/result.h"

namespace cutaway::cuda {

using DevicePtr = unsigned long long;
struct Context;
struct Stream;
struct Event;
struct LoadedModule;
struct Function;
struct Graph;
struct GraphExec;

/// A shared library that stays open until the program ends.
class Library {
  public:
    /// The first of the names that opens: by the loader's own search, then in CUDA_HOME, CUDA_PATH and /usr/local/cuda.
    /// Error: none does.
    static Result<Library> open(std::initializer_list<const char*> names, const std::string& purpose);
    template <class F>
    void bind(F*& function, const char* name) {
        function = reinterpret_cast<F*>(find(name));
    }
    /// The first symbol that was not there; empty if all were.
    const std::string& missing() const { return m_missing; }
    const std::string& name() const { return m_name; }

  private:
    void* find(const char* name);
    void* m_handle = nullptr;
    std::string m_name, m_missing;
};

struct Driver {
    int (*init)(unsigned);
    int (*driverGetVersion)(int*);
    int (*deviceGetCount)(int*);
    int (*deviceGet)(int*, int);
    int (*deviceTotalMem)(size_t*, int);
    int (*deviceGetName)(char*, int, int);
    int (*deviceGetAttribute)(int*, int, int);
    int (*devicePrimaryCtxRetain)(Context**, int);
    int (*ctxSetCurrent)(Context*);
    int (*memAlloc)(DevicePtr*, size_t);
    int (*memFree)(DevicePtr);
    int (*memGetInfo)(size_t*, size_t*);
    int (*memsetD8Async)(DevicePtr, unsigned char, size_t, Stream*);
    int (*memcpyHtoDAsync)(DevicePtr, const void*, size_t, Stream*);
    int (*memcpyDtoHAsync)(void*, DevicePtr, size_t, Stream*);
    int (*streamCreate)(Stream**, unsigned);
    int (*streamSynchronize)(Stream*);
    int (*streamBeginCapture)(Stream*, int);
    int (*streamEndCapture)(Stream*, Graph**);
    int (*streamIsCapturing)(Stream*, int*);
    int (*graphInstantiate)(GraphExec**, Graph*, unsigned long long);
    int (*graphLaunch)(GraphExec*, Stream*);
    int (*graphExecDestroy)(GraphExec*);
    int (*graphDestroy)(Graph*);
    int (*eventCreate)(Event**, unsigned);
    int (*eventRecord)(Event*, Stream*);
    int (*eventElapsedTime)(float*, Event*, Event*);
    int (*moduleLoadData)(LoadedModule**, const void*);
    int (*moduleUnload)(LoadedModule*);
    int (*moduleGetFunction)(Function**, LoadedModule*, const char*);
    int (*moduleGetGlobal)(DevicePtr*, size_t*, LoadedModule*, const char*);
    int (*funcSetAttribute)(Function*, int, int);
    int (*launchKernel)(Function*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream*,
                        void**, void**);
    int (*getErrorString)(int, const char**);

    static Result<Driver> load();
    /// An error that names the call, unless it succeeded.
    Result<void> check(int status, const char* call) const;
};

struct MatmulAlgo {
    uint64_t data[8];
};
struct MatmulHeuristic {
    MatmulAlgo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

struct CublasLt {
    size_t (*getVersion)();
    int (*create)(void**);
    int (*matmulDescCreate)(void**, int, int);
    int (*matmulDescDestroy)(void*);
    int (*matrixLayoutDestroy)(void*);
    int (*matmulPreferenceDestroy)(void*);
    int (*matmulDescSetAttribute)(void*, int, const void*, size_t);
    int (*matrixLayoutCreate)(void**, int, uint64_t, uint64_t, int64_t);
    int (*matrixLayoutSetAttribute)(void*, int, const void*, size_t);
    int (*matmulPreferenceCreate)(void**);
    int (*matmulPreferenceSetAttribute)(void*, int, const void*, size_t);
    int (*matmulAlgoGetHeuristic)(void*, void*, void*, void*, void*, void*, void*, int, MatmulHeuristic*, int*);
    int (*matmulAlgoCheck)(void*, void*, void*, void*, void*, void*, const MatmulAlgo*, MatmulHeuristic*);
    int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                  void*, void*, const MatmulAlgo*, void*, size_t, Stream*);

    static Result<CublasLt> load();
};

struct Nvrtc {
    int (*createProgram)(void**, const char*, const char*, int, const char* const*, const char* const*);
    int (*destroyProgram)(void**);
    int (*compileProgram)(void*, int, const char* const*);
    int (*getProgramLogSize)(void*, size_t*);
    int (*getProgramLog)(void*, char*);
    int (*getPtxSize)(void*, size_t*);
    int (*getPtx)(void*, char*);
    int (*getCubinSize)(void*, size_t*);
    int (*getCubin)(void*, char*);
    int (*getVersion)(int*, int*);

    static Result<Nvrtc> load();
    /// Machine code by these options (cudaOptions), or PTX where they name a virtual architecture (compute_90). Error:
    /// the compiler's own words.
    Result<std::string> compile(const std::string& source, const std::vector<std::string>& options) const;
    /// "13.0".
    std::string version() const;
};

}  // namespace cutaway::cuda
