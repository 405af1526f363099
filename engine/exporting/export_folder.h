#pragma once
// A compiled graph as a folder that builds and runs without us: sources, the library made of them, header, weights, a
// main program, a manifest.
#include <functional>

#include "cutaway/jobs.h"
#include "engine/codegen/cpp_printer.h"
#include "engine/exporting/export_texts.h"
#include "engine/formats/safetensors.h"
#include "engine/host/host_program.h"
#include "engine/runtime/cpu/compiler.h"

namespace cutaway {

struct ExportOptions;

struct ExportContents {
    std::string name;            // of the library and of what its functions begin with
    std::string model, request;  // for the manifest
    const HostProgram* program = nullptr;
    const std::vector<PrintedKernel>* printed = nullptr;
    const std::string* source = nullptr;  // the program, as printHost prints it under that name
    NamedTensors weights, inputs;         // by the ports' names
    const std::map<std::string, std::string>* originals = nullptr;  // HostPrinting's
    ExportForm form;
    /// Called with the folder where it was made, before it is put in place; may be empty. Errors end the export.
    std::function<Result<void>(const std::string& folder)> inspect;
};
struct ExportedFolder {
    std::vector<std::string> files;  // relative, the library among them
    std::string library;             // its path
    CompiledLibrary compiled;
};
/// Makes the files beside the folder and moves them there when all are made: all of them, or after a failure none.
/// Errors: the compiler's; the folder is a file, or holds what is not an export; a file cannot be written.
Result<ExportedFolder> writeExport(const std::string& folder, const ExportContents& contents,
                                   const CompilerOptions& compiler, const Progress& progress);

/// What was asked for. Errors: a word that there is none of.
Result<ExportForm> exportForm(const ExportOptions& options);

/// What the kernels of a target need and this machine's processor lacks, "avx512f, avx512bw"; empty if it has all.
std::string lackingFor(std::string_view target);

/// A C identifier made of any name: "resnet50" of "ResNet-50.pt2", "model_2d" of "2d".
std::string exportNameOf(const std::string& name);

}  // namespace cutaway
