#pragma once
// Reference execution: every node in order, by its op's reference kernel. Everything faster is compared with it. Runs
// imported graphs, which may mutate, as well as functional ones.
#include <functional>

#include "cutaway/jobs.h"
#include "engine/ir/module.h"
#include "engine/ops/eval.h"

namespace cutaway {

/// Computes a call in place of its kernel, from its operands' values; nullopt leaves it to the kernel.
using ComputeCall = std::function<Result<std::optional<TensorList>>(const Node& call, const ValueSource& values)>;

struct InterpretOptions {
    /// Called before each node, those of bodies too.
    std::function<void(const Node&)> begin;
    /// Called after each node with its value; for numerics and constant folding of ranges.
    std::function<void(const Node&, const TensorList&)> observe;
    /// Called before `observe`, for calls only: may replace the value by tensors of the same dtypes and shapes, such as
    /// what a random op drew in another run.
    std::function<void(const Node&, TensorList&)> exchange;
    ComputeCall compute;
    const CancelToken* cancel = nullptr;
    /// Every call by our own kernel, element by element with the functions of the C library, each value rounded to its
    /// dtype: what other ways to compute are judged by. Without it products and convolutions are oneDNN's.
    bool pure = false;
};

/// `inputs`: one tensor per placeholder, in order. Returns the output values in order (undefined for None and for
/// text). Inputs are not changed: a graph that mutates works on copies. Symbolic sizes take the inputs' numbers, sizes
/// that depend on data those of the values computed. Attributes without data get synthetic weights (tensor/fill.h).
/// Errors name the node and the op.
Result<std::vector<Tensor>> interpret(const Module& module, const std::vector<Tensor>& inputs,
                                      const InterpretOptions& options = {});

/// The graph that is then run: with numbers for symbols and ATen calls for Python's. Null if that is the module itself.
Result<Snapshot> readyToRun(const Module& module, const std::vector<Tensor>& inputs);

/// One tensor per placeholder: user inputs in order from `user`, the rest from the module's own tensors, or synthetic
/// weights made from their names (tensor/fill.h) where the file has no data. Errors name the input that is missing or
/// has the wrong dtype or shape.
Result<std::vector<Tensor>> bindInputs(const Module& module, const std::vector<Tensor>& user);

/// The tensor of a get_attr node, or the synthetic weight for it that interpret() takes. Errors: no data, and sizes
/// that are not numbers.
Result<Tensor> attributeOf(const Module& module, const Node& node);

/// The same for a parameter or buffer that `node`, a placeholder, stands for, by its name.
Result<Tensor> constantNamed(const Module& module, const std::string& name, const Node& node);

/// The parameters, buffers, constants and attributes that such synthetic weights are needed for, sorted.
std::vector<std::string> tensorsWithoutData(const Module& module);

/// Values for the user inputs, from a seed: normal floats, small non-negative integers, random bools. Symbolic sizes
/// take their example values; an error names one that has none.
Result<std::vector<Tensor>> randomInputs(const Module& module, uint64_t seed);

}  // namespace cutaway
