#pragma once
// Estimated milliseconds of calls for overlap scheduling, from the sizes of tensors and the figures of a device;
// nothing is measured. Products take the slower of arithmetic and memory, collectives as long as NCCL's ring in its
// low-latency protocol, everything else as long as moving its bytes.
#include <optional>
#include <string>

#include "engine/ir/node.h"
#include "engine/rewrite/pass_context.h"

namespace cutaway {

class OverlapCosts {
  public:
    /// `graph`: its own calls tell how large the groups are. The settings (overlap_scheduling.h) choose the device. All
    /// three outlive the object.
    OverlapCosts(const Graph& graph, const OptionalPass& settings, const PassContext& context);

    /// Whether the call is work that collectives are hidden behind: a matrix product, a convolution, attention.
    static bool isProduct(const Node& node);
    double productMs(const Node& product) const;
    /// Of a call that reads and writes so many bytes.
    double memoryMs(double bytes) const { return bytes / m_dramGbps / 1e6; }
    /// Of a call on a group; `bytes` in place of those of its tensors.
    double collectiveMs(const Node& collective, std::optional<double> bytes = {}) const;
    /// Of its operands and its result together, what all members hold.
    int64_t collectiveBytes(const Node& collective) const;

    /// Bytes that reading or writing the value moves: dims of stride 0 count once, unknown sizes nothing, tuples their
    /// items.
    double movedBytes(const ValueType& value) const;
    /// Bytes of memory of its own that holds such a tensor; unknown sizes count as 8192 elements.
    int64_t storageBytes(const TensorType& type) const;

  private:
    double flopsOf(const Node& product) const;
    std::optional<int64_t> number(const SymInt& size) const;
    double count(const SymDims& sizes, double unknown) const;
    int64_t groupSize(const Node& collective) const;

    const Graph* m_graph;
    const OptionalPass* m_settings;
    const PassContext* m_context;
    size_t m_generation = 0;  // row of the device's generation
    double m_dramGbps = 0;
};

}  // namespace cutaway
