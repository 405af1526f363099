#pragma once
// What graphs that are run one after the other compute alike, computed once: a pass changes a few nodes of thousands.
#include <map>
#include <set>

#include "engine/interpret/interpret.h"
#include "engine/support/hash.h"

namespace cutaway {

class SharedValues {
  public:
    /// Keeps at most this much memory for runs to come.
    explicit SharedValues(int64_t mostBytes) : m_bytesLeft(mostBytes) {}
    SharedValues(const SharedValues&) = delete;
    SharedValues& operator=(const SharedValues&) = delete;

    /// interpret(), and its results to the bit; what an earlier run computed by the same calls from equal inputs is
    /// taken from it. Graphs that write to their values, that have symbolic sizes or calls of Python, and runs in which
    /// operators are made wrong on demand (fault_points.h) share nothing. `observe` is called for all.
    Result<std::vector<Tensor>> interpret(const Module& module, const std::vector<Tensor>& inputs,
                                          const InterpretOptions& options = {});

    /// Calls of all runs that were not computed anew.
    int64_t reused() const { return m_reused; }

  private:
    class Run;
    struct Less {
        bool operator()(const Hash128& a, const Hash128& b) const {
            return a.high != b.high ? a.high < b.high : a.low < b.low;
        }
    };
    /// By place in memory for what is held, else by content.
    Hash128 keyOf(const Tensor& given);
    void keep(const Hash128& key, const TensorList& values);

    int64_t m_bytesLeft, m_reused = 0;
    std::map<Hash128, TensorList, Less> m_values;
    std::map<Hash128, Hash128, Less> m_given;  // content by place, of what m_held holds
    std::vector<Tensor> m_held;
    std::set<const Storage*> m_storages;  // of m_values, which hold them
};

}  // namespace cutaway
