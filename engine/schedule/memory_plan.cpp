#include <numeric>

#include "engine/schedule/schedule.h"
#include "engine/support/checked.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

namespace {

int64_t rounded(int64_t bytes, int64_t to) { return (std::max<int64_t>(bytes, 1) + to - 1) / to * to; }

constexpr size_t kFewBlocks = 2000;

/// In this order, each into the lowest gap between the blocks that live at the same time.
int64_t place(std::vector<MemoryBlock>& blocks, const std::vector<size_t>& order, int64_t alignment) {
    std::vector<size_t> placed;
    int64_t total = 0;
    for (const size_t current : order) {
        MemoryBlock& block = blocks[current];
        const int64_t need = rounded(block.bytes, alignment);
        std::vector<std::pair<int64_t, int64_t>> taken;
        for (const size_t other : placed) {
            const MemoryBlock& b = blocks[other];
            if (b.begin <= block.end && block.begin <= b.end)
                taken.emplace_back(b.offset, b.offset + rounded(b.bytes, alignment));
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

int64_t livingBytes(const std::vector<MemoryBlock>& blocks, int at, int64_t alignment) {
    int64_t live = 0;
    for (const MemoryBlock& block : blocks)
        if (block.begin <= at && at <= block.end) live = checkedAdd(live, rounded(block.bytes, alignment));
    return live;
}

/// The call at which most bytes live: it is the first of some block.
int fullestCall(const std::vector<MemoryBlock>& blocks, int64_t alignment) {
    int found = 0;
    int64_t most = -1;
    for (const MemoryBlock& block : blocks)
        if (const int64_t live = livingBytes(blocks, block.begin, alignment); live > most) {
            most = live;
            found = block.begin;
        }
    return found;
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
    const int fullest = fullestCall(blocks, alignment);
    const std::function<double(size_t)> keys[] = {
        bytes, [&](size_t i) { return bytes(i) * time(i); }, time,
        [&](size_t i) { return -static_cast<double>(blocks[i].begin); },
        [&](size_t i) { return static_cast<double>(blocks[i].end); },
        // Those of the fullest call at the bottom, side by side.
        [&](size_t i) { return bytes(i) + (blocks[i].begin <= fullest && fullest <= blocks[i].end ? 1e18 : 0); }};
    std::vector<MemoryBlock> best;
    int64_t least = 0;
    for (const auto& key : keys) {
        if (blocks.size() > kFewBlocks && !best.empty()) break;
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
        // What ends highest goes first the next time.
        for (int round = 0; round < rounds; ++round) {
            const int64_t total = place(blocks, order, alignment);
            if (best.empty() || total < least) {
                best = blocks;
                least = total;
            }
            const auto highest = std::max_element(order.begin(), order.end(), [&](size_t x, size_t y) {
                return blocks[x].offset + rounded(blocks[x].bytes, alignment) <
                       blocks[y].offset + rounded(blocks[y].bytes, alignment);
            });
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
    memory.peak = fullestCall(blocks, alignment);
    memory.largestLive = livingBytes(blocks, memory.peak, alignment);
    return memory;
}

}  // namespace cutaway
