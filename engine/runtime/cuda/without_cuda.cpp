// In place of what uses CUDA in builds without CUTAWAY_CUDA.
#include "engine/runtime/cpu/kernel_code.h"
#include "engine/runtime/cuda/cublaslt.h"
#include "engine/runtime/cuda/cudnn.h"
#include "engine/runtime/cuda/requests.h"
#include "engine/runtime/libraries/table.h"
#include "engine/runtime/wire.h"

namespace cutaway {
namespace {

Error withoutCuda() {
    return unsupported("this build of Cutaway has no CUDA runtime", {}, {"configure it with CUTAWAY_CUDA=ON"});
}

std::unique_ptr<LibraryPlan> refuse(const CtCall&, int, CtNeeds&) { throw LibraryRefusal(withoutCuda().message); }

}  // namespace

Result<Message> answerFindCuda() {
    ByteWriter out;
    const std::string none, why = withoutCuda().text();
    for (const std::string* text : {&none, &why, &none, &why}) out.text(*text);
    out.pod(0);
    out.count(0);
    out.count(1);
    for (const std::string& text : {std::string("CUDA"), none, why}) out.text(text);
    out.count(0);
    Message reply;
    reply.text = std::move(out.bytes);
    return reply;
}
const CtLibrary& cublasLtLibrary() {
    static const CtLibrary library = makeLibrary<refuse>("cuBLASLt");
    return library;
}
const CtLibrary& cudnnLibrary() {
    static const CtLibrary library = makeLibrary<refuse>("cuDNN");
    return library;
}
const CtLibrary& gpuFunctionsLibrary() {
    static const CtLibrary library = makeLibrary<refuse>("GPU functions");
    return library;
}
void keepCandidates(std::string) {}
bool cudaIsOpen() { return false; }
Result<Message> answerCompileCuda(const Message&) { return withoutCuda(); }
Result<std::shared_ptr<DeviceMemory>> cudaMemory() { return withoutCuda(); }
Result<std::unique_ptr<KernelCode>> cudaKernels(const HostProgram&, const std::vector<std::string>&) {
    return withoutCuda();
}

}  // namespace cutaway
