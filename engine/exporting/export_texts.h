#pragma once
// The texts of an exported folder beside its code.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/host/host_program.h"
#include "engine/libraries/choose.h"

namespace cutaway {

/// How an export is made (cutaway/export.h).
struct ExportForm {
    enum class Weights : uint8_t { Beside, Embedded, None };
    std::string_view target = "native";
    Weights weights = Weights::Beside;
    bool debug = false;
    /// Where the file of the weights is in the folder; empty: there is none.
    std::string weightsFile() const {
        return weights == Weights::None       ? ""
               : weights == Weights::Embedded ? "src/weights.safetensors"
                                              : "weights.safetensors";
    }
};

/// What the texts say of a program.
struct ExportedProgram {
    std::string name;                // an identifier
    std::string model, request;      // the file that it was made from; how it was compiled, as on the command line
    std::vector<std::string> files;  // all that were written, relative to the folder
    std::map<std::string, std::string> checksums;  // SHA-256 of each but the manifest
    const HostProgram* program = nullptr;
    const std::map<std::string, std::string>* originals = nullptr;  // HostPrinting's
    ExportForm form;
};

using Libraries = std::vector<const Library*>;
/// The libraries that the program's steps call, each once, in the order of the list.
Libraries librariesOf(const HostProgram& program);
bool areLinkedWith(const Libraries& libraries, LinkedWith what);

/// The program's header: the interface of libraries, of programs, and its own functions.
std::string headerText(const std::string& name);
/// The source of the header's functions that the printed program lacks (templates/open.cpp.in).
std::string openText(const std::string& name, const Libraries& libraries, const ExportForm& form);
/// A template with its names filled in: main.c, the examples, AOTInductor's verbs.
std::string templateText(const std::string& file, const std::string& name, const ExportForm& form);
/// `options`: those that kernels are compiled with.
std::string cmakeText(const std::string& name, const Libraries& libraries, const ExportForm& form,
                      const std::vector<std::string>& options);
std::string manifestText(const ExportedProgram& program);

}  // namespace cutaway
