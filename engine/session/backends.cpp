#include "cutaway/backends.h"

#include "engine/runtime/cuda/requests.h"

namespace cutaway {
namespace {

struct NamedBackend {
    Backend backend;
    std::string_view name;
};
constexpr NamedBackend kNamedBackends[] = {
    {Backend::Reference, "reference"}, {Backend::Cpu, "cpu"}, {Backend::Cuda, "cuda"}};

}  // namespace

std::string_view backendName(Backend backend) {
    for (const NamedBackend& each : kNamedBackends)
        if (each.backend == backend) return each.name;
    return {};
}

Result<Backend> backendNamed(std::string_view name) {
    std::string known;
    for (const NamedBackend& each : kNamedBackends) {
        if (each.name == name) return each.backend;
        known += (known.empty() ? "" : ", ") + std::string(each.name);
    }
    return Error{ErrorCode::NotFound, "no backend is called '" + std::string(name) + "'", {}, {"there are: " + known}};
}

Result<void> checkTarget(Backend backend, Target target) {
    if (backend == Backend::Cpu && target == Target::Cuda)
        return unsupported("the backend cpu runs what is compiled for the CPU, and this is compiled for a GPU", {},
                           {"compile it for the CPU (--device cpu), or run it with the backend cuda or reference"});
    if (backend == Backend::Cuda && target == Target::Cpu)
        return unsupported("the backend cuda runs what is compiled for a GPU, and this is compiled for the CPU", {},
                           {"compile it for a GPU (--device cuda), or run it with the backend cpu or reference"});
    return {};
}

Result<void> checkBackend(Backend backend, Target target) {
    CT_TRY_VOID(checkTarget(backend, target));
    if (backend != Backend::Cuda) return {};
    CT_TRY(const CudaFound found, findCuda());
    for (const auto& [what, why] :
         {std::pair(&found.device, &found.whyNoDevice), {&found.compiler, &found.whyNoCompiler}})
        if (what->empty())
            return unsupported("the backend cuda has nothing to run on: " + *why, {},
                               {"run it with the backend reference, or compile it for the CPU"});
    return {};
}

}  // namespace cutaway
