#include "cutaway/version.h"

#if __has_include(<oneapi/dnnl/dnnl_version.h>)
#include <oneapi/dnnl/dnnl_version.h>
#endif

namespace cutaway {
namespace {

std::string compiler() {
#if defined(__clang__)
    return "Clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
           std::to_string(__clang_patchlevel__);
#else
    return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
           std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

std::string oneDnn() {
#if defined(DNNL_VERSION_MAJOR)
    return std::to_string(DNNL_VERSION_MAJOR) + "." + std::to_string(DNNL_VERSION_MINOR) + "." +
           std::to_string(DNNL_VERSION_PATCH);
#else
    return "not built in";
#endif
}

}  // namespace

std::string version() { return CUTAWAY_VERSION; }

std::string buildText() {
    return std::string(CUTAWAY_BUILD_TYPE) + " build, " + compiler() + "\noneDNN: " + oneDnn() +
           "\nCUDA: " + (CUTAWAY_CUDA ? "built in, loaded when a GPU is asked for" : "not built in") + "\n";
}

}  // namespace cutaway
