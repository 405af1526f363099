#pragma once
// One call of an operator, as somebody wrote it, as a graph and as PyTorch notes it.
#include "cutaway/operators.h"
#include "engine/cache/operator_records.h"
#include "engine/formats/safetensors.h"
#include "engine/ir/op.h"

namespace cutaway {

/// "aten::add.Tensor", "aten.add.Tensor" or, without a name of an overload, "aten::relu".
struct OperatorName {
    std::string space, op;  // "aten", "add.Tensor"; "relu"
    const Op* known = nullptr;
    std::string text() const { return space + "::" + op; }
};
/// Errors: no operator has the name, with those that are near; it returns no value, or one that is not a tensor.
Result<OperatorName> operatorNamed(const std::string& text);

struct OperatorCall {
    OperatorName name;
    std::string graph;                // as text, with one call
    NamedTensors inputs;              // of a file, by the graph's names; empty: none were given
    std::vector<InputRecord> record;  // what PyTorch notes
};
/// Errors: an argument that cannot be read or is of no parameter; inputs that PyTorch does not take, in its words
/// (AOT-1 to 3); what the operator's type rule refuses.
Result<OperatorCall> operatorCall(const OperatorOptions& options);
/// The tensors of a file by the names of the graph's inputs.
Result<NamedTensors> operatorInputs(const Op& op, const std::string& path);

}  // namespace cutaway
