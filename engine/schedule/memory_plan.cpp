#include <numeric>

#include "engine/schedule/schedule.h"
#include "engine/support/checked.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

namespace {

int64_t rounded(int64_t bytes, int64_t to) { return (std::max<int64_t>(bytes, 1) + to - 1) / to * to; }

constexpr size_t kFewBlocks = 2000;

/// Places all blocks in one order after the other, each into the lowest gap between those that live at the same time.
class Placing {
  public:
    Placing(std::vector<MemoryBlock>& blocks, int64_t alignment) : m_blocks(&blocks) {
        for (const MemoryBlock& block : blocks) m_needs.push_back(rounded(block.bytes, alignment));
    }
    /// Returns the arena's size.
    int64_t place(const std::vector<size_t>& order) {
        m_placed.clear();
        int64_t total = 0;
        for (const size_t current : order) {
            MemoryBlock& block = (*m_blocks)[current];
            int64_t at = 0;
            for (const Placed& other : m_placed) {
                if (other.first > block.end || block.begin > other.last) continue;
                if (other.begin - at >= m_needs[current]) break;
                at = std::max(at, other.end);
            }
            block.offset = at;
            const Placed placed{at, checkedAdd(at, m_needs[current]), block.begin, block.end};
            total = std::max(total, placed.end);
            const auto behind =
                std::upper_bound(m_placed.begin(), m_placed.end(), at,
                                 [](int64_t begin, const Placed& other) { return begin < other.begin; });
            m_placed.insert(behind, placed);
        }
        return total;
    }
    int64_t end(size_t block) const { return (*m_blocks)[block].offset + m_needs[block]; }

  private:
    struct Placed {
        int64_t begin = 0, end = 0;  // bytes
        int first = 0, last = 0;     // calls
    };
    std::vector<MemoryBlock>* m_blocks;
    std::vector<int64_t> m_needs;
    std::vector<Placed> m_placed;  // by where they begin
};

/// The call at which most bytes live, the first of some block, and how many.
struct PeakUsage {
    int call = 0;
    int64_t bytes = -1;
};
PeakUsage fullestCall(const std::vector<MemoryBlock>& blocks, int64_t alignment) {
    int first = 0, last = 0;
    for (const MemoryBlock& block : blocks) {
        first = std::min(first, block.begin);
        last = std::max(last, block.end);
    }
    const auto at = [&](int call) { return static_cast<size_t>(call - first); };
    std::vector<int64_t> begun(at(last) + 2), ended(at(last) + 2), live(at(last) + 1);
    for (const MemoryBlock& block : blocks) {
        int64_t& more = begun[at(block.begin)];
        more = checkedAdd(more, rounded(block.bytes, alignment));
        int64_t& less = ended[at(block.end) + 1];
        less = checkedAdd(less, rounded(block.bytes, alignment));
    }
    int64_t now = 0;
    for (size_t call = 0; call < live.size(); ++call) live[call] = now = checkedAdd(now - ended[call], begun[call]);
    PeakUsage fullest;
    for (const MemoryBlock& block : blocks)
        if (const int64_t own = live[at(block.begin)]; own > fullest.bytes) fullest = {block.begin, own};
    return fullest;
}

}  // namespace

int64_t planMemory(std::vector<MemoryBlock>& blocks, int64_t alignment) {
    if (blocks.empty()) return 0;
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // No order is best for all graphs. Placing is quadratic, so large graphs have one.
    const int rounds = blocks.size() < 500 ? 8 : 1;
    const auto bytes = [&](size_t i) { return static_cast<double>(blocks[i].bytes); };
    const auto time = [&](size_t i) { return static_cast<double>(blocks[i].end - blocks[i].begin + 1); };
    const PeakUsage most = fullestCall(blocks, alignment);
    const int fullest = most.call;
    const std::function<double(size_t)> keys[] = {
        bytes, [&](size_t i) { return bytes(i) * time(i); }, time,
        [&](size_t i) { return -static_cast<double>(blocks[i].begin); },
        [&](size_t i) { return static_cast<double>(blocks[i].end); },
        // Those of the fullest call at the bottom, side by side.
        [&](size_t i) { return bytes(i) + (blocks[i].begin <= fullest && fullest <= blocks[i].end ? 1e18 : 0); }};
    Placing placing(blocks, alignment);
    std::vector<MemoryBlock> best;
    int64_t least = 0;
    for (const auto& key : keys) {
        if (!best.empty() && (blocks.size() > kFewBlocks || least == most.bytes)) break;
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
        // What ends highest goes first the next time.
        for (int round = 0; round < rounds; ++round) {
            const int64_t total = placing.place(order);
            if (best.empty() || total < least) {
                best = blocks;
                least = total;
            }
            if (least == most.bytes) break;  // no arena is smaller
            const auto highest = std::max_element(order.begin(), order.end(),
                                                  [&](size_t x, size_t y) { return placing.end(x) < placing.end(y); });
            if (highest == order.end() || highest == order.begin()) break;
            std::rotate(order.begin(), highest, highest + 1);
        }
    }
    blocks = std::move(best);
    return least;
}

Result<ProgramMemory> memoryOf(const ScheduledProgram& program) {
    ProgramMemory memory;
    std::vector<MemoryBlock> blocks;
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ScheduledValue& value = program.values[i];
        const bool made = value.kind == ScheduledValue::Kind::Temporary || value.kind == ScheduledValue::Kind::Output;
        // What a reference kernel returns has memory of its own.
        if (!made || program.calls[static_cast<size_t>(value.definedBy)].kind == CallKind::Reference) continue;
        if (value.over >= 0) continue;  // it lies where that does
        const TensorType& type = *tensorOf(value.key);
        if (!allInts(type.sizes) || !allInts(type.strides))
            return unsupported("the size of " + value.key.node->name() + ", " + type.text() +
                               ", is known only at run time");
        const int64_t bytes = checkedMul(extent(toInts(type.sizes), toInts(type.strides)), byteSize(type.dtype));
        blocks.push_back({bytes, value.definedBy, value.memoryUntil, 0});
        memory.bars.push_back({i, blocks.back()});
    }
    const int64_t alignment = program.target->alignment;
    memory.arena = planMemory(blocks, alignment);
    for (size_t i = 0; i < blocks.size(); ++i) memory.bars[i].block = blocks[i];
    const PeakUsage fullest = fullestCall(blocks, alignment);
    memory.peak = fullest.call;
    memory.largestLive = std::max<int64_t>(fullest.bytes, 0);
    return memory;
}

}  // namespace cutaway
