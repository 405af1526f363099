#pragma once
// Operators compiled one by one, ahead of time, into a cache that outlives the program: what PyTorch's
// aoti_compile_with_persistent_cache does, with its files (engine/cache/operator_cache.h). An entry is a library for
// one operator and the types, sizes and literals of one call.
#include <string>
#include <vector>

#include "cutaway/session.h"

namespace cutaway {

struct OperatorOptions {
    std::string op;  // "aten::add.Tensor"
    /// By position, or "name=value": a tensor as its type ("f32[2, 3]", with strides "f32[2, 3][1, 2]"), a list of
    /// tensors, or a literal as Python writes it.
    std::vector<std::string> arguments;
    /// Tensors (safetensors) by the names of their parameters, those of a list as "tensors.0", "tensors.1".
    std::string inputsFile;
    Target device = Target::Cpu;
    std::string cache;  // the folder; empty: the user's own
    double timeoutSeconds = 300;
};

struct OperatorEntry {
    std::string op, device;                           // "aten::add.Tensor", "cpu"
    std::vector<std::string> inputs;                  // "f32[2, 3]", "2"; without those that have their default
    std::string library;                              // its path
    std::string cache, key;                           // key: empty of an entry of PyTorch's
    int64_t bytes = 0, hits = 0, made = 0, used = 0;  // seconds since 1970; 0: not known
    std::string problem;                              // why it cannot be run; empty if it can
};

struct CompiledOperator {
    OperatorEntry entry;
    bool found = false;  // in the cache; else it was compiled
    double compileSeconds = 0;
    std::vector<std::string> remarks;  // what is wrong with the cache, a sentence each
};
/// Finds or compiles. Sizes are numbers; an argument that has its default does not count. Several processes that ask
/// for one entry at once compile it once. If the cache cannot be written the library lives as long as the program, and
/// a remark says so. Errors: PyTorch's, in its words, for inputs that it does not take; what exporting refuses.
Result<CompiledOperator> compileOperator(const OperatorOptions& options, const Progress& progress = {});

struct OperatorList {
    std::vector<OperatorEntry> entries;  // by operator, then as the file has them
    std::vector<std::string> remarks;
};
/// All entries of a cache, those of PyTorch's, too. `cache` as OperatorOptions'.
Result<OperatorList> operatorEntries(const std::string& cache);

struct OperatorRunOptions {
    std::string inputsFile;  // as OperatorOptions'; empty: those that it was compiled with, random ones
    int repeat = 1;
    bool compare = false;  // with the interpreter, on the same inputs
    double timeoutSeconds = 60;
};
/// In a process of its own. Errors: the entry's problem; inputs that do not fit; the process failed.
Result<RunReport> runOperator(const OperatorEntry& entry, const OperatorRunOptions& options,
                              const Progress& progress = {});

/// Removes an entry and its library. Of PyTorch's: the entry alone.
Result<void> removeOperator(const OperatorEntry& entry);

}  // namespace cutaway
