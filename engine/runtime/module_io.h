#pragma once
// A module as bytes, as far as running it needs it: graphs, types and symbols without where they came from.
#include "engine/ir/module.h"
#include "engine/runtime/wire.h"

namespace cutaway {

/// `tensors` receives the module's own tensors that the graph reads by name, those of bodies too, in the order in which
/// readModule wants them back.
void writeModule(ByteWriter& out, const Module& module, std::vector<Tensor>& tensors);
/// Takes tensors from `next` on. Ids of nodes are other ones, their names and order the same.
std::shared_ptr<Module> readModule(ByteReader& in, const std::vector<Tensor>& tensors, size_t& next);

}  // namespace cutaway
