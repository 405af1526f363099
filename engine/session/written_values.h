#pragma once
// What a run leaves in buffers, parameters and inputs that its graph writes to: by a copy into the input, or as a
// result that the caller writes back.
#include <set>

#include "engine/session/execution.h"

namespace cutaway {

struct WrittenValue {
    std::string name;     // of the buffer or parameter, else of the input
    bool result = false;  // a result of the graph
    size_t position = 0;  // among the results, or among the inputs
};
/// In the order of results and inputs. `taken`: what else is told beside them; one that is called the same gets ".new"
/// behind its name.
std::vector<WrittenValue> writtenValues(const Module& module, const std::set<std::string>& taken);
/// With the other names that their tensors have in the opened program (tied_names.h).
std::set<std::string> namesOf(const std::vector<WrittenValue>& values, const Module& opened);
/// Undefined where the run gave none.
Tensor valueOf(const WrittenValue& value, const Execution& execution);

}  // namespace cutaway
