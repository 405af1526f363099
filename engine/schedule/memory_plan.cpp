#include "engine/schedule/schedule.h"
#include "engine/support/checked.h"

namespace cutaway {

int64_t planMemory(std::vector<MemoryBlock>& blocks) {
    // Largest first, each into the lowest gap between the blocks that live at the same time.
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
    std::vector<size_t> placed;
    int64_t total = 0;
    for (size_t current : order) {
        MemoryBlock& block = blocks[current];
        const int64_t need = (std::max<int64_t>(block.bytes, 1) + 63) / 64 * 64;
        std::vector<std::pair<int64_t, int64_t>> taken;
        for (size_t other : placed) {
            const MemoryBlock& b = blocks[other];
            if (b.begin <= block.end && block.begin <= b.end)
                taken.emplace_back(b.offset, b.offset + (std::max<int64_t>(b.bytes, 1) + 63) / 64 * 64);
        }
        std::sort(taken.begin(), taken.end());
        int64_t at = 0;
        for (const auto& [begin, end] : taken) {
            if (begin - at >= need) break;
            at = std::max(at, end);
        }
        block.offset = at;
        total = std::max(total, checkedAdd(at, need));
        placed.push_back(current);
    }
    return total;
}

}  // namespace cutaway
