#pragma once
// The texts of an exported folder beside its code.
#include <string>
#include <vector>

#include "engine/host/host_program.h"

namespace cutaway {

/// What the texts say of a program.
struct ExportedProgram {
    std::string name;                // an identifier
    std::string model, request;      // the file that it was made from; how it was compiled, as on the command line
    std::vector<std::string> files;  // all that were written, relative to the folder
    const HostProgram* program = nullptr;
};

/// Names of the libraries that the program's steps call, each once.
std::vector<std::string> librariesOf(const HostProgram& program);
/// Whether one of them stands on oneDNN.
bool needsOneDnn(const std::vector<std::string>& libraries);
/// Whether one of them stands on LAPACK and BLAS.
bool needsLapack(const std::vector<std::string>& libraries);

/// The program's header: the interface of libraries, of programs, and its own functions.
std::string headerText(const std::string& name);
std::string mainText(const std::string& name);
/// The source of the header's functions that the printed program lacks (templates/open.cpp.in).
std::string openText(const std::string& name, const std::vector<std::string>& libraries);
/// `options`: those that kernels are compiled with.
std::string cmakeText(const std::string& name, const std::vector<std::string>& libraries,
                      const std::vector<std::string>& options);
std::string manifestText(const ExportedProgram& program);

}  // namespace cutaway
