#pragma once
// One number for "nothing visible changed". Pass runner and snapshots compare fingerprints instead of graphs.
#include <functional>

#include "engine/ir/module.h"
#include "engine/support/hash.h"

namespace cutaway {

/// Over the nodes in order (ids, names, operators, arguments by id, types), input and output roles, subgraphs, and the
/// module's tensors by storage and meta, its plan. Leaves out provenance and ModuleOrigin. Tensors count by address, so
/// the number has a meaning only within one run of the program; for a key on disk see engine/cache.
Hash128 fingerprint(const Module& module);

/// Of one node without its id and name: equal iff operator, arguments (by id) and type are the same.
Hash128 contentFingerprint(const Node& node);
/// The same with `of(operand)` in place of the operands' ids, so that it has a meaning across graphs.
Hash128 contentFingerprint(const Node& node, const std::function<Hash128(const Node&)>& of);
void addTo(Hasher& hasher, const ValueType& type);
void addTo(Hasher& hasher, const SymInt& value);

}  // namespace cutaway
