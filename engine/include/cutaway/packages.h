#pragma once
// AOTInductor's packages (.pt2 with data/aotinductor, or the folder of such files): compiled code without a graph. Only
// read, never loaded or run: files, metadata, what the generated sources say of inputs, outputs, constants and calls,
// and which calls of a run of ours compute the same.
#include <string>
#include <utility>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

struct PackagedFile {
    std::string name, kind;  // "generated source", "compiled library", "metadata", "weights", …
    int64_t bytes = 0;
};
struct PackagedValue {
    std::string name, type;  // "f32[s31, 16]"; a part that the sources do not tell is "?"
};
struct PackagedConstant {
    std::string name, original;                     // in the code; in the model, where it has another name there
    std::string type, kind;                         // "Parameter", "Buffer"
    int64_t bytes = 0;                              // with padding
    bool folded = false;                            // computed from others when the package is loaded
    std::vector<int64_t> sizes = {}, strides = {};  // if `laidOut`
    int64_t offset = 0;                             // elements
    bool laidOut = false;                           // the sources tell
};
/// One call of the program, in its order.
struct PackagedCall {
    std::string name;                  // "cpp_fused_gelu_0", "aoti_torch_cpu_addmm_out"
    bool kernel = false;               // generated; else a function of PyTorch
    std::vector<std::string> ops;      // of ATen that it computes: "gelu"; by its name or the comment above it
    std::vector<std::string> sources;  // the nodes of the program as it was exported; only some calls tell
    std::vector<PackagedValue> reads, writes;
    std::string file, source;  // of a kernel
};
struct PackagedModel {
    std::string name;
    std::vector<std::pair<std::string, std::string>> metadata;  // "AOTI_DEVICE_KEY", "cpu"
    std::vector<PackagedValue> inputs, outputs;
    std::string inSpec, outSpec;  // how arguments and results are nested, as PyTorch writes it (AOT-13)
    std::string library;          // file that holds the code and, as a rule, the constants
    std::vector<PackagedConstant> constants;
    std::vector<PackagedCall> calls;
    std::vector<std::string> commands;  // of the compilers and linkers that made it
};
struct CompiledPackage {
    std::string path;
    std::vector<PackagedFile> files;
    std::vector<PackagedModel> models;  // by name
    std::vector<std::string> remarks;   // what could not be read
};
/// Whether a file is one, by its directory of entries; quick. A folder is told only when it is opened.
bool isPackage(const std::string& file);
/// Errors: the file or folder holds no such package, or is damaged.
Result<CompiledPackage> openPackage(const std::string& path);
/// The one of this name; of an empty one the only one. Errors: none or several.
Result<const PackagedModel*> modelOfPackage(const CompiledPackage& package, const std::string& name);
/// The text of one of its sources or of another text in it, by name or by the end of its name. Errors: none or several
/// files have it; it is not text.
Result<std::string> packagedText(const std::string& path, const std::string& file);

/// A constant's value as text: its type, range and first numbers, read where it lies in the library. `model`: its name;
/// empty: the only one. `constant`: either of its names. Errors: there is none; the bytes are not there.
Result<std::string> packagedConstant(const std::string& path, const std::string& model, const std::string& constant);

/// A call of a run of ours.
struct RunCall {
    std::string name, kind;              // "kernel0", "reduction"; "addmm", "library: addmm (oneDNN)"
    std::vector<std::string> ops;        // of its nodes, as they are computed
    std::vector<std::string> originals;  // and what these come from, in the graphs before
    std::vector<std::string> results;    // types
    std::string source;                  // of a kernel: C++
    std::vector<NodeKey> nodes;
};
enum class CallMatch : uint8_t {
    Same,    // the same operators, and the same results
    Part,    // some operators, or other results
    Theirs,  // nothing of ours
    Ours,    // nothing of theirs
};
struct CallPair {
    CallMatch match = CallMatch::Same;
    int theirs = -1, ours = -1;  // positions in the calls; -1: none
    std::string why;             // a sentence
};
struct PackageComparison {
    std::vector<RunCall> ours;
    std::vector<CallPair> pairs;  // in the order of their calls; then what is ours alone
    int same = 0;
};
/// A model of a package beside a run for inference. Operators are told by the kernels' names and comments and by what
/// our nodes come from, results by their types; nothing is run. Errors: the run failed, or is for training.
Result<PackageComparison> comparePackage(Session& session, RunId run, const PackagedModel& model,
                                         const Progress& progress = {});

}  // namespace cutaway
