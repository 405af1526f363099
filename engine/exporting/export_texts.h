#pragma once
// The texts of an exported folder beside its code.
#include <string>
#include <vector>

#include "engine/host/host_program.h"
#include "engine/libraries/choose.h"

namespace cutaway {

/// What the texts say of a program.
struct ExportedProgram {
    std::string name;                // an identifier
    std::string model, request;      // the file that it was made from; how it was compiled, as on the command line
    std::vector<std::string> files;  // all that were written, relative to the folder
    const HostProgram* program = nullptr;
};

using Libraries = std::vector<const Library*>;
/// The libraries that the program's steps call, each once, in the order of the list.
Libraries librariesOf(const HostProgram& program);
bool areLinkedWith(const Libraries& libraries, LinkedWith what);

/// The program's header: the interface of libraries, of programs, and its own functions.
std::string headerText(const std::string& name);
std::string mainText(const std::string& name);
/// The source of the header's functions that the printed program lacks (templates/open.cpp.in).
std::string openText(const std::string& name, const Libraries& libraries);
/// `options`: those that kernels are compiled with.
std::string cmakeText(const std::string& name, const Libraries& libraries, const std::vector<std::string>& options);
std::string manifestText(const ExportedProgram& program);

}  // namespace cutaway
