#pragma once
// A module as bytes, with what running it needs: graphs, types and symbols, no provenance.
#include "engine/ir/module.h"
#include "engine/runtime/wire.h"

namespace cutaway {

/// `tensors` receives the module's own tensors that the graph reads by name, those of bodies too, in the order in which
/// readModule wants them back.
void writeModule(ByteWriter& out, const Module& module, std::vector<Tensor>& tensors);
/// Takes tensors from `next` on. Nodes get new ids; names and order stay.
std::shared_ptr<Module> readModule(ByteReader& in, const std::vector<Tensor>& tensors, size_t& next);

}  // namespace cutaway
