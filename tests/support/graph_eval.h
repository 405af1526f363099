#pragma once
// Running small graphs in tests: FX text in, seeded inputs, results by the ops' reference kernels node by node.
#include <memory>
#include <string_view>
#include <vector>

#include "engine/ir/module.h"
#include "engine/tensor/tensor.h"

namespace cutaway::testing {

/// Fails the current test (QFAIL-style message in the thrown std::runtime_error) if the text does not parse.
std::shared_ptr<const Module> moduleOf(std::string_view text);
/// The same of `inputs`, 'x: "f32[2]", ...', and statements that "; " separates.
std::shared_ptr<const Module> moduleOf(const std::string& inputs, const std::string& statements);
/// One tensor per placeholder: floats in [-2, 2), integers in [0, `below`), bools; laid out by the placeholder's
/// strides.
std::vector<Tensor> drawnInputs(const Module& module, uint64_t seed, int64_t below = 4);
/// The graph's outputs, one by one through evaluateCall.
Result<std::vector<Tensor>> referenceOutputs(const Module& module, const std::vector<Tensor>& inputs);

}  // namespace cutaway::testing
