#include "engine/runtime/cpu/kernel_listing.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "engine/codegen/cuda_prelude.h"
#include "engine/codegen/cuda_printer.h"
#include "engine/runtime/cpu/build_kernels.h"
#include "engine/support/files.h"
#include "engine/support/process.h"
#include "engine/support/temp_dir.h"

namespace cutaway {
namespace {

struct Tool {
    const char *name, *package;
};

/// In PATH, and where the CUDA Toolkit is.
Result<std::string> find(const Tool& tool) {
    if (std::string path = findProgram(tool.name); !path.empty()) return path;
    std::vector<std::string> roots = {"/usr/local/cuda"};
    for (const char* variable : {"CUDA_PATH", "CUDA_HOME"})
        if (const char* const root = std::getenv(variable)) roots.insert(roots.begin(), root);
    for (const std::string& root : roots)
        if (std::filesystem::exists(root + "/bin/" + tool.name)) return root + "/bin/" + tool.name;
    return Error{ErrorCode::NotFound,
                 "no program '" + std::string(tool.name) + "', which lists machine code",
                 {},
                 {"install " + std::string(tool.package)}};
}

Result<std::string> listedBy(const Tool& tool, const std::vector<std::string>& arguments, const Progress& progress) {
    CT_TRY(const std::string path, find(tool));
    ProcessOptions process;
    process.argv = {path};
    process.argv.insert(process.argv.end(), arguments.begin(), arguments.end());
    CT_TRY(ProcessEnd end, runProcess(process, {}, progress));
    if (end.ok()) return std::move(end.output);
    return Error{ErrorCode::ToolFailed, path + " " + end.text() + ": " + end.errors, {}, {}};
}

/// The functions of a disassembled library, without those that every library has.
std::string functionsOf(const std::string& listing) {
    constexpr std::string_view kOfTheCompiler[] = {
        "<deregister_tm_clones>:", "<register_tm_clones>:", "<__do_global_dtors_aux>:", "<frame_dummy>:"};
    std::istringstream lines(listing);
    std::string kept;
    bool wanted = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with(">:")) {
            const std::string_view name = std::string_view(line).substr(line.find('<'));
            wanted = std::find(std::begin(kOfTheCompiler), std::end(kOfTheCompiler), name) == std::end(kOfTheCompiler);
            if (wanted) kept += (kept.empty() ? "" : "\n") + std::string(name.substr(1, name.size() - 3)) + ":\n";
        } else if (wanted && !line.empty()) {
            // Constants lie behind the code, where objdump names the nearest function.
            kept += line.substr(0, line.find("        # ")) + "\n";
        }
    }
    return kept;
}

Result<std::string> assembly(const PrintedKernel& kernel, const Progress& progress) {
    CT_TRY(const TempDir folder, TempDir::create("listing"));
    const std::string path = (folder.path() / "kernel").string();
    CT_TRY_VOID(writeFile(path + ".cpp", cppFile({kernel})));
    CT_TRY_VOID(compileCpp(path + ".cpp", path + ".so", {}, progress));
    CT_TRY(const std::string listing, listedBy({"objdump", "binutils"},
                                               {"--disassemble", "--demangle", "--section=.text", "--no-show-raw-insn",
                                                "--disassembler-options=intel", path + ".so"},
                                               progress));
    return functionsOf(listing);
}

Result<std::string> onGpu(const PrintedKernel& kernel, Listing listing, const Progress& progress) {
    CT_TRY(const CudaFound found, findCuda(progress));
    const std::vector<std::string> options =
        cudaOptions(capabilityOf(found), listing == Listing::Ptx ? CudaCode::Ptx : CudaCode::Cubin);
    CT_TRY(std::string code, compileCuda(cudaFile({kernel}), options, progress));
    if (listing == Listing::Ptx) return code.substr(0, code.find('\0'));
    CT_TRY(const TempDir folder, TempDir::create("listing"));
    const std::string path = (folder.path() / "kernel.cubin").string();
    CT_TRY_VOID(writeFile(path, code));
    return listedBy({"nvdisasm",
                     "nvidia-cuda-nvdisasm from PyPI or cuda-nvdisasm-13-0 from NVIDIA, and have it in PATH "
                     "or in bin of CUDA_HOME"},
                    {"--print-code", path}, progress);
}

}  // namespace

Result<std::string> listKernel(const std::string& name, const PrintedKernel& kernel, Listing listing,
                               const TargetInfo& target, const Progress& progress) {
    const bool gpu = target.device.type == DeviceType::Cuda;
    if (gpu == (listing == Listing::Assembly))
        return invalidInput("code for " + std::string(gpu ? "a GPU" : "the CPU") + " has no listing '" +
                            std::string(listingName(listing)) + "'");
    progress.say(-1, "compiling the kernel");
    CT_TRY(std::string text, gpu ? onGpu(kernel, listing, progress) : assembly(kernel, progress));
    // From the last on: the first's name is what the others begin with.
    for (size_t i = kernel.functions.size(); i-- > 0;) {
        const std::string &own = kernel.functions[i], shown = i == 0 ? name : name + "_" + std::to_string(i);
        for (size_t at = text.find(own); at != std::string::npos; at = text.find(own, at + shown.size()))
            text.replace(at, own.size(), shown);
    }
    return text;
}

}  // namespace cutaway
