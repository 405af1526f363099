#pragma once
// The one place where files are recognised (spec: input-formats §1, DET-1..9) and opened.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cutaway/result.h"
#include "engine/formats/torch_save.h"
#include "engine/ir/module.h"

namespace cutaway {

enum class FileFormat : uint8_t {
    Unknown,
    Pt2,              // torch.export.save, new layout
    Pt2Flat,          // the same before 2.8
    CompiledPackage,  // a .pt2 with compiled code only
    TorchSave,
    TorchScript,      // refused
    LegacyTorchSave,  // refused
    SafeTensors,
    Repro,  // fx_graph_runnable.py, repro.py, minifier_launcher.py
    FxText,
    Log,              // TORCH_LOGS output, several graphs
    StructuredTrace,  // TORCH_TRACE output
    ModuleFolder,     // what GraphModule.to_folder writes
    DebugFolder,      // torch_compile_debug, minifier folders
    Exported,         // what `export` writes, a folder or a zip archive
};
std::string_view name(FileFormat format);
inline std::string_view textOf(const Storage& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct OpenOptions {
    /// Opens only the graph of this name; empty = all.
    std::string graph;
};

/// One program of a file.
struct OpenedGraph {
    std::string name;
    std::unique_ptr<Module> module;
    /// What the file was exported with: one value per placeholder of kind UserInput, in order; empty if there is none.
    std::vector<SavedValue> sampleInputs;
    /// What the file calls the arguments of operators without a row, by operator: one for each place in its calls.
    std::map<std::string, std::vector<std::string>, std::less<>> argumentNames = {};
    std::string noSamples = {};  // why the sample inputs that are in the file are left out; empty: they are not
};

/// A file that was opened: its graphs, and what else is in it.
struct OpenedFile {
    std::string path;
    FileFormat format = FileFormat::Unknown;
    std::string description;                              // ".pt2 (PyTorch 2.11.0+cu130, schema 8.17)"
    std::vector<OpenedGraph> graphs;                      // in file order
    std::vector<std::pair<std::string, Tensor>> tensors;  // of files that are tensors only
    std::vector<std::string> contents;  // archives: entries with sizes that were not turned into graphs
    std::vector<std::string> remarks;   // what was assumed or left out
};

/// A file or folder and its kind, found from its content (not its name) once, however often it is opened.
class RecognisedFile {
  public:
    /// Errors: the file or folder cannot be read.
    static Result<RecognisedFile> at(const std::string& path);
    /// The same for bytes in memory; `path` is for messages, and for repro scripts, whose storages lie beside it.
    static Result<RecognisedFile> of(const ByteSource& source, const std::string& path);
    FileFormat format() const;
    /// As openFile.
    Result<OpenedFile> open(const OpenOptions& options = {}) const;

  private:
    struct Data;
    explicit RecognisedFile(std::shared_ptr<const Data> data) : m_data(std::move(data)) {}
    std::shared_ptr<const Data> m_data;
};

/// Opens a file of any format, or a folder that PyTorch wrote. Executes nothing of it. Errors name the entry, the place
/// and the broken rule; for a kind that is recognised but cannot be opened they say what to do instead. In a file of
/// several graphs one that cannot be read becomes a remark; it is an error if none can.
Result<OpenedFile> openFile(const std::string& path, const OpenOptions& options = {});
/// The same for bytes in memory.
Result<OpenedFile> openBytes(const ByteSource& source, const std::string& path, const OpenOptions& options = {});

}  // namespace cutaway
