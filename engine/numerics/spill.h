#pragma once
// Values of runs that go side by side, within an amount of memory: beyond it they wait in a file without a name until
// they are read.
#include "engine/interpret/interpreter.h"

namespace cutaway {

class Spill {
  public:
    /// `limit`: bytes of values that may be held.
    explicit Spill(double limit) : m_limit(limit) {}
    ~Spill();
    Spill(const Spill&) = delete;
    Spill& operator=(const Spill&) = delete;

    /// Brings what the runs hold below the limit, values that are read latest first. Where no file can be had, nothing
    /// happens.
    void relieve(const std::vector<Interpreter*>& runs);
    int64_t written() const { return m_written; }

  private:
    struct Place {
        std::weak_ptr<Storage> storage;
        std::shared_ptr<std::atomic<bool>> atHand;
        int64_t offset = 0;
        size_t bytes = 0;
    };
    struct ResidentStorage {
        std::shared_ptr<Storage> storage;
        size_t nextRead = 0;  // nodes from the one that runs next
        bool written = false;
    };
    template <class Visit>
    void forEachOwn(const std::vector<Interpreter*>& runs, Visit&& visit);
    double bytesHeld(const std::vector<Interpreter*>& runs);
    std::vector<ResidentStorage> latestFirst(const std::vector<Interpreter*>& runs);
    void giveBack(double bytes);
    size_t nextRead(const Interpreter& run, NodeId node);
    std::shared_ptr<Storage> away(const std::shared_ptr<Storage>& storage);
    std::shared_ptr<Storage> fromFile(int64_t offset, size_t bytes);
    void forgetDead();

    double m_limit, m_held = 0, m_freed = 0;
    int m_file = -1;
    bool m_refused = false;
    int64_t m_end = 0, m_written = 0;
    std::map<const Storage*, Place> m_places;                   // never iterated in an order that matters
    std::map<const Interpreter*, std::vector<size_t>> m_order;  // places of a run's nodes in its order, by id
};

}  // namespace cutaway
