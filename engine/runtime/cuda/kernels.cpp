#include "engine/runtime/cuda/kernels.h"

#include <algorithm>

#include "engine/support/files.h"

namespace cutaway::cuda {
namespace {

constexpr int kMaxDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
/// Threads that a multiprocessor holds at once; blocks beyond twice as many walk further along the range instead.
constexpr int64_t kThreadsAtOnce = 2048, kWaves = 2;

/// What a launch asks for: the module's own number, if it has one (codegen/cuda_printer.h).
Result<unsigned> sharedBytes(Memory& memory, LoadedModule* module, const std::string& function) {
    DevicePtr at = 0;
    size_t size = 0;
    const std::string name = function + "_shared";
    if (memory.device().driver().moduleGetGlobal(&at, &size, module, name.c_str()) != 0) return 0u;
    int bytes = 0;
    CT_TRY_VOID(memory.toHost(&bytes, reinterpret_cast<const void*>(at), sizeof bytes));
    return static_cast<unsigned>(bytes);
}

}  // namespace

Result<std::unique_ptr<KernelCode>> Kernels::load(const HostProgram& program, const std::vector<std::string>& cubins,
                                                  const std::shared_ptr<Memory>& memory) {
    if (cubins.size() != program.kernels.size()) return invalidInput("each kernel needs its machine code");
    const Driver& driver = memory->device().driver();
    CT_TRY(const int64_t parts, memory->device().attribute(kMultiprocessors));
    std::unique_ptr<Kernels> code(new Kernels(memory));
    for (size_t i = 0; i < program.kernels.size(); ++i) {
        auto& functions = code->m_functions.emplace_back();
        for (const HostKernel::Launch& launch : program.kernels[i].launches) {
            LoadedModule*& module = code->m_modules[cubins[i]];
            if (module == nullptr) {
                CT_TRY(const std::string bytes, readFile(cubins[i]));
                const auto loaded = memory->check(driver.moduleLoadData(&module, bytes.data()), "cuModuleLoadData");
                if (!loaded) {
                    code->m_modules.erase(cubins[i]);
                    return loaded.error();
                }
            }
            Entry entry;
            CT_TRY_VOID(memory->check(driver.moduleGetFunction(&entry.run, module, launch.function.c_str()),
                                      "cuModuleGetFunction"));
            CT_TRY(entry.sharedBytes, sharedBytes(*memory, module, launch.function));
            if (entry.sharedBytes > 0)
                CT_TRY_VOID(memory->check(
                    driver.funcSetAttribute(entry.run, kMaxDynamicShared, static_cast<int>(entry.sharedBytes)),
                    "cuFuncSetAttribute"));
            entry.unit = launch.unit;
            entry.threads = static_cast<unsigned>(launch.threads);
            const int64_t perPart = std::max<int64_t>(kThreadsAtOnce / std::max(launch.threads, 1), 1);
            entry.mostBlocks = static_cast<unsigned>(kWaves * parts * std::min<int64_t>(perPart, 32));
            entry.hasSizes = !program.kernels[i].sizes.empty();
            functions.push_back(entry);
        }
    }
    return std::unique_ptr<KernelCode>(std::move(code));
}

Kernels::~Kernels() {
    static_cast<void>(m_memory->wait().has_value());
    for (const auto& [path, module] : m_modules) m_memory->device().driver().moduleUnload(module);
}

Result<int> Kernels::launch(const KernelLaunch& what) const {
    const Entry& entry = m_functions[what.kernel][what.launch];
    if (what.range <= 0) return 0;
    const int64_t blocks = std::min<int64_t>((what.range + entry.unit - 1) / entry.unit, entry.mostBlocks);
    // Buffers and sizes go by value, so that a kernel reads no table before it can begin.
    const int64_t none = 0;
    int64_t begin = 0, end = what.range;
    int* fault = what.fault;
    void* arguments[] = {const_cast<void**>(what.buffers), const_cast<int64_t*>(entry.hasSizes ? what.sizes : &none),
                         &begin, &end, &fault};
    CT_TRY_VOID(m_memory->check(m_memory->device().driver().launchKernel(
                                    entry.run, static_cast<unsigned>(blocks), 1, 1, entry.threads, 1, 1,
                                    entry.sharedBytes, static_cast<Stream*>(m_memory->stream()), arguments, nullptr),
                                "cuLaunchKernel"));
    return 0;
}

}  // namespace cutaway::cuda
