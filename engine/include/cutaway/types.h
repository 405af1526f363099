#pragma once
// Ids that mean the same to the engine and to those outside.
#include <cstdint>
#include <functional>

namespace cutaway {

/// A node's identity: never changes, never reused within a compile run, kept by copies of the graph.
enum class NodeId : uint32_t { None = 0xFFFFFFFFu };
constexpr uint32_t index(NodeId id) { return static_cast<uint32_t>(id); }

}  // namespace cutaway
