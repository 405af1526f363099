#pragma once
#include "engine/autograd/metadata.h"
#include "engine/interpret/specialize.h"

namespace cutaway {

/// The gradient of an input that a view of it passes on (spec: autograd A8.5): returned views are rebuilt from the
/// input outside of both graphs, so their gradient goes back the same way, each element to the one that it shows.
/// `memory`: of the returned value, in `module`. `base`: the input's tensor. Errors: a view that cannot be
/// followed, because it copies or reads the elements as another dtype.
Result<Tensor> gradientThroughViews(const Module& module, const OutputMemory& memory, const Tensor& base,
                                    const Tensor& gradient, const SymbolValues& sizes);

}  // namespace cutaway
