#pragma once
// The inputs of a repro script: what its load_args and its constructor say about tensors (spec: input-formats §5).
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cutaway/result.h"
#include "engine/ir/type.h"

namespace cutaway {

/// bufK = reader.storage(HASH or None, NBYTES, ...)
struct ReproStorage {
    std::string hash;  // empty: no data was saved
    SymInt bytes = 0;
};
/// One line of load_args, in order; one per placeholder (REPRO-11).
struct ReproInput {
    enum class Kind : uint8_t { Tensor, SymInt, None, Unsupported };
    Kind kind = Kind::Tensor;
    std::string name;    // from the comment
    TensorType type;     // Tensor
    size_t storage = 0;  // Tensor: which of ReproInputs::storages
    int64_t value = 0;   // SymInt
};
struct ReproInputs {
    std::map<std::string, int64_t> symbols;  // s77 = 8
    std::vector<ReproStorage> storages;
    std::vector<ReproInput> inputs;
    std::vector<std::string> remarks;
};
/// An attribute that the constructor makes.
struct ReproAttribute {
    std::string name;
    std::optional<TensorType> type;  // none: a module or a graph
    std::vector<double> values;      // exact data of small tensors, row-major; empty: random or lost
    bool exact = false;
    std::string text;  // as written, for what has no type
};

/// "s77 = 8" lines before the class.
std::map<std::string, int64_t> readReproSymbols(std::string_view head);
/// The body of load_args. Errors: a line that does not parse, by its text and rule.
Result<void> readLoadArgs(std::string_view function, ReproInputs& out);
/// The body of __init__, line by line; what is not understood has no type.
std::vector<ReproAttribute> readConstructor(std::string_view function);

}  // namespace cutaway
