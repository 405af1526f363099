#pragma once
// The memory that values of a graph take up on the device while its units are computed in some order.
#include "engine/passes/post_grad/overlap_units.h"

namespace cutaway {

class OverlapMemory {
  public:
    /// Before anything has been computed: inputs and attributes are there.
    explicit OverlapMemory(const OverlapUnits& units)
        : m_units(&units), m_live(units.storages().size(), false), m_waiting(units.storages().size()) {
        for (size_t i = 0; i < m_live.size(); ++i) {
            const OverlapStorage& storage = units.storages()[i];
            m_waiting[i] = storage.readers.size();
            if (storage.given) {
                m_live[i] = true;
                m_bytes += storage.bytes;
            }
        }
    }
    /// From now on what the unit makes is in memory, and what it was the last to read is not.
    void compute(const OverlapUnit& unit) {
        for (const size_t storage : unit.made)
            if (!m_live[storage]) {
                m_live[storage] = true;
                m_bytes += m_units->storages()[storage].bytes;
            }
        for (const size_t storage : unit.read)
            if (--m_waiting[storage] == 0 && m_live[storage] && m_units->storages()[storage].freed) {
                m_live[storage] = false;
                m_bytes -= m_units->storages()[storage].bytes;
            }
    }
    int64_t bytes() const { return m_bytes; }

  private:
    const OverlapUnits* m_units;
    std::vector<bool> m_live;
    std::vector<size_t> m_waiting;  // readers that have not been computed
    int64_t m_bytes = 0;
};

}  // namespace cutaway
