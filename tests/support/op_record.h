#pragma once
// What PyTorch computed for op samples (tests/data/ops, written by tests/scripts/record_ops.py), and the gradients that
// the engine computes for the same calls.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/module.h"
#include "engine/tensor/tensor.h"
#include "tests/support/op_samples.h"

namespace cutaway::testing {

/// A tensor as recorded; without values where they are random or uninitialised.
struct RecordedTensor {
    DType dtype = DType::F32;
    Dims sizes, strides;
    Dims tracedStrides;  // what tracing expects; PyTorch's kernels do not always keep to it
    Tensor values;
};
struct RecordedSample {
    std::string text;
    bool derived = false;  // a variant of a sample, not a line of the op's row
    /// RefusedWhenRun: by PyTorch's kernel only; its tracing, which is all that its compiler asks, gives `results` as
    /// types.
    enum class Outcome { Results, Refused, RefusedWhenRun, NotCompared } outcome = Outcome::Results;
    std::vector<std::optional<RecordedTensor>> results;
    /// Results that PyTorch differentiates; result r gets the tangent tangentOf(r).
    std::vector<size_t> differentiated;
    /// By number of the tensor in the sample: its gradient, or none where no gradient arrives.
    std::vector<std::pair<size_t, std::optional<RecordedTensor>>> gradients;
};

/// By op, in the order of the record. Errors: a file that is missing or damaged.
Result<std::map<std::string, std::vector<RecordedSample>>> readOpRecord();

/// A list of what does not agree with PyTorch yet, tests/data/ops/NAME: each entry with the "# reason" above it. One
/// that agrees is a failure until it is taken off, so the lists only shrink.
std::map<std::string, std::string> readOpenList(const char* name);

/// The tangent of result `number`: drawn like the tensor 1000 + number of a sample.
Tensor tangentOf(DType dtype, const Dims& sizes, size_t number);

/// The sample as a module that returns what the call returns; the values of its inputs.
Result<std::vector<Tensor>> buildSampleModule(const Op& op, std::string_view text, Module& module);

/// Gradients of the sample's floating tensors, by number: undefined where none arrives. Composites are expanded first;
/// the derivatives run through the ops' own kernels.
Result<std::map<size_t, Tensor>> gradientsOf(const Op& op, const RecordedSample& sample);

}  // namespace cutaway::testing
