#include "engine/runtime/cpu/build_kernels.h"

#include <thread>

#include "engine/codegen/cuda_prelude.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/support/elapsed.h"
#include "engine/support/files.h"
#include "engine/support/hash.h"
#include "engine/support/threads.h"

namespace cutaway {
namespace {

/// Letters of source that are worth a compiler of their own: starting one and reading the helpers costs as much.
constexpr size_t kSmallestShard = 4000;

struct Shard {
    std::vector<size_t> kernels;
    size_t letters = 0;
};

/// The largest first, each to the shard that has least.
std::vector<Shard> shardsOf(const std::vector<PrintedKernel>& kernels, std::vector<size_t> missing) {
    size_t letters = 0;
    for (const size_t kernel : missing) letters += kernels[kernel].source.size();
    const size_t count = std::clamp<size_t>(letters / kSmallestShard, 1, static_cast<size_t>(threadCount()));
    std::vector<Shard> shards(std::min(count, missing.size()));
    std::stable_sort(missing.begin(), missing.end(),
                     [&](size_t a, size_t b) { return kernels[a].source.size() > kernels[b].source.size(); });
    for (const size_t kernel : missing) {
        Shard& least = *std::min_element(shards.begin(), shards.end(),
                                         [](const Shard& a, const Shard& b) { return a.letters < b.letters; });
        least.kernels.push_back(kernel);
        least.letters += kernels[kernel].source.size();
    }
    return shards;
}

class Builder {
  public:
    Builder(const std::vector<PrintedKernel>& kernels, const KernelBuild& how, const Progress& progress)
        : m_kernels(kernels), m_how(how), m_progress(progress) {}

    Result<BuiltKernels> run() {
        m_built.libraries.resize(m_kernels.size());
        CT_TRY_VOID(findKept());
        if (m_missing.empty()) return std::move(m_built);
        m_progress.say(0.5, "compiling " + std::to_string(m_missing.size()) + " kernels");
        // NVRTC splits a program itself, and starting another costs more than a kernel.
        const std::vector<Shard> shards =
            m_how.gpu ? std::vector<Shard>{{m_missing, 0}} : shardsOf(m_kernels, m_missing);
        std::vector<Result<CompiledLibrary>> done(shards.size(), CompiledLibrary{});
        std::vector<std::thread> others;
        for (size_t i = 1; i < shards.size(); ++i) others.emplace_back([&, i] { done[i] = compile(shards[i], i); });
        done[0] = compile(shards[0], 0);
        for (std::thread& other : others) other.join();
        for (size_t i = 0; i < shards.size(); ++i) {
            CT_TRY(const CompiledLibrary compiled, std::move(done[i]));
            m_built.log += compiled.command + "\n" + compiled.log;
            m_built.seconds = std::max(m_built.seconds, compiled.seconds);
            take(shards[i], pathOf(i) + (m_how.gpu ? ".cubin" : ".so"));
        }
        return std::move(m_built);
    }

  private:
    /// Those that are in a library already; all others are missing.
    Result<void> findKept() {
        if (!m_how.store) {
            for (size_t i = 0; i < m_kernels.size(); ++i) m_missing.push_back(i);
            return {};
        }
        CT_TRY(const std::string compiler, identity());
        for (size_t i = 0; i < m_kernels.size(); ++i) {
            const PrintedKernel& kernel = m_kernels[i];
            m_keys.push_back(Hasher()
                                 .add(std::string_view(compiler))
                                 .add(m_how.gpu ? std::string_view() : cppVectors())
                                 .add(std::string_view(m_how.gpu ? cudaPrelude(kernel.helpers)
                                                                 : cppPrelude(kernel.lanes, kernel.helpers)))
                                 .add(std::string_view(kernel.content))
                                 .finish()
                                 .hex());
            if (auto kept = m_how.store->find(m_keys.back())) m_built.libraries[i] = std::move(*kept);
            else m_missing.push_back(i);
        }
        return {};
    }
    std::string pathOf(size_t shard) const { return m_how.folder + "/kernels" + std::to_string(shard); }
    int capability() const { return capabilityOf(*m_how.gpu); }
    Result<std::string> identity() const {
        if (!m_how.gpu) return compilerIdentity(m_how.compiler);
        std::string command = "NVRTC " + m_how.gpu->compiler;
        for (const std::string& option : cudaOptions(capability())) command += " " + option;
        return command;
    }
    Result<CompiledLibrary> compileOnGpu(const std::vector<PrintedKernel>& own, const std::string& path) const {
        const auto start = std::chrono::steady_clock::now();
        CT_TRY_VOID(writeFile(path + ".cu", cudaFile(own)));
        CT_TRY(const std::string code, compileCuda(cudaFile(own), cudaOptions(capability()), m_progress));
        CT_TRY_VOID(writeFile(path + ".cubin", code));
        CT_TRY(const std::string command, identity());
        return CompiledLibrary{command, "", millisecondsSince(start) / 1000};
    }
    Result<CompiledLibrary> compile(const Shard& shard, size_t number) const {
        std::vector<PrintedKernel> own;
        for (const size_t kernel : shard.kernels) own.push_back(m_kernels[kernel]);
        if (m_how.gpu) return compileOnGpu(own, pathOf(number));
        CT_TRY_VOID(writeFile(pathOf(number) + ".cpp", cppFile(own)));
        return compileCpp(pathOf(number) + ".cpp", pathOf(number) + ".so", m_how.compiler, m_progress);
    }
    void take(const Shard& shard, const std::string& library) {
        for (const size_t kernel : shard.kernels) m_built.libraries[kernel] = library;
        if (!m_how.store) return;
        std::vector<std::string> keys;
        for (const size_t kernel : shard.kernels) keys.push_back(m_keys[kernel]);
        m_how.store->keep(library, keys);
    }

    const std::vector<PrintedKernel>& m_kernels;
    const KernelBuild& m_how;
    const Progress& m_progress;
    BuiltKernels m_built;
    std::vector<std::string> m_keys;  // of each kernel, if there is a store
    std::vector<size_t> m_missing;
};

}  // namespace

Result<BuiltKernels> buildKernels(const std::vector<PrintedKernel>& kernels, const KernelBuild& how,
                                  const Progress& progress) {
    if (kernels.empty()) return BuiltKernels{};
    return Builder(kernels, how, progress).run();
}

}  // namespace cutaway
