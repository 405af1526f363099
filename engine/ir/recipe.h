#pragma once
// A constant that a pass has made: a small graph over the program's own constants, computed when its value is needed.
// So no step holds a second copy of folded weights, and what a constant was made from can be looked at.
#include <memory>

#include "engine/tensor/tensor.h"

namespace cutaway {

class Module;

class Recipe {
  public:
    virtual ~Recipe() = default;
    /// Takes no inputs, reads only tensors of its own (the program's, shared), and returns the constant. Nodes have the
    /// ids that they had in the graphs of the run, so their history is that of any node.
    virtual const Module& graph() const = 0;
    /// Computed when first asked for, and kept as long as there is room or somebody holds it. Any thread may ask.
    /// Errors are those of the interpreter.
    virtual Result<Tensor> value() const = 0;
    /// A tensor whose bytes are computed when they are first read (Storage::deferred), and not kept where they are
    /// needed once (Storage::forOneUse). Errors come then, too. A constant whose type lacks numbers for sizes or
    /// strides is computed at once.
    virtual Result<Tensor> deferred() const = 0;
    /// Whether the value lies in memory that the program's own constants have anyway.
    virtual bool isView() const = 0;
    /// Constants for which this is the same lie in the same memory, being views of one computed value.
    virtual const void* memory() const = 0;
};

}  // namespace cutaway
