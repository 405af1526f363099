#pragma once
// Inputs that are tensor subclasses: wrappers of Python, whose graph reads the plain tensors inside by their names.
#include "engine/ir/module.h"

namespace cutaway {

/// Puts a plain input in place of each `export.access_subclass_inner_tensor(x, 'name')` of an input x, also of what
/// lies inside of another one. It is called x_name, and its data `<x's>.name` in `Module::tensors`. An input of which
/// nothing but its inner tensors is read is none any more; others stay.
void takeInnerTensors(Module& module);

}  // namespace cutaway
