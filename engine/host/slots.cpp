#include "engine/host/slots.h"

#include "engine/schedule/schedule.h"
#include "engine/support/checked.h"
#include "engine/tensor/tensor.h"

namespace cutaway {
namespace {

/// Bytes between a tensor's first element and the end of its last.
SymInt bytesOf(const TensorType& type) {
    SymInt last = 0;
    bool empty = false;
    for (size_t d = 0; d < type.sizes.size(); ++d) {
        empty |= type.sizes[d].asInt() == 0;
        last = last + (type.sizes[d] - 1) * type.strides[d];
    }
    if (empty) return 0;
    // Where a symbolic size is 0 the sum is negative (cut to 0) or too large, and never less than the 0 bytes needed.
    const SymInt bytes = (last + 1) * byteSize(type.dtype);
    return bytes.isInt() ? bytes : max(bytes, 0);
}

class Placer {
  public:
    Placer(HostFunction& function, const SymbolValues& hints, int64_t alignment)
        : m_function(&function), m_hints(hints), m_alignment(alignment) {}

    void place(size_t segment, const std::vector<HostLife>& lives) {
        bool numbers = true;
        for (const HostLife& life : lives) numbers &= bytesOf(valueOf(life).type).isInt();
        if (numbers) pack(segment, lives);
        else takeTurns(segment, lives);
    }

  private:
    struct Turn {
        int64_t hinted = 0;
        HostLife life;
    };
    HostValue& valueOf(const HostLife& life) { return m_function->values[static_cast<size_t>(life.value)]; }

    void pack(size_t segment, const std::vector<HostLife>& lives) {
        std::vector<MemoryBlock> blocks;
        for (const HostLife& life : lives)
            blocks.push_back({bytesOf(valueOf(life).type).value(), life.begin, life.end, 0});
        const auto slot = static_cast<int64_t>(m_function->memory.size());
        m_function->memory.push_back({segment, planMemory(blocks, m_alignment)});
        for (size_t i = 0; i < lives.size(); ++i) {
            valueOf(lives[i]).index = slot;
            valueOf(lives[i]).offset = blocks[i].offset;
        }
    }
    /// The largest first, each in the first slot that is free while it lives.
    void takeTurns(size_t segment, const std::vector<HostLife>& lives) {
        std::vector<Turn> turns;
        for (const HostLife& life : lives) turns.push_back({likelyValue(bytesOf(valueOf(life).type), m_hints), life});
        std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.hinted > b.hinted; });
        const size_t first = m_function->memory.size();
        std::vector<std::vector<HostLife>> taken;
        for (const Turn& turn : turns) {
            const auto isFree = [&](const std::vector<HostLife>& others) {
                return std::none_of(others.begin(), others.end(), [&](const HostLife& other) {
                    return other.begin <= turn.life.end && turn.life.begin <= other.end;
                });
            };
            const auto place = std::find_if(taken.begin(), taken.end(), isFree);
            const auto number = static_cast<size_t>(place - taken.begin());
            if (place == taken.end()) {
                taken.emplace_back();
                m_function->memory.push_back({segment, 0});
            }
            taken[number].push_back(turn.life);
            HostSlot& slot = m_function->memory[first + number];
            slot.bytes = largest(slot.bytes, bytesOf(valueOf(turn.life).type));
            valueOf(turn.life).index = static_cast<int64_t>(first + number);
        }
    }
    /// One of the two where it is known which, so that expressions stay short.
    static SymInt largest(const SymInt& a, const SymInt& b) {
        if (knownLessEqual(a, b)) return b;
        return knownLessEqual(b, a) ? a : max(a, b);
    }

    HostFunction* m_function;
    const SymbolValues& m_hints;
    int64_t m_alignment;
};

}  // namespace

void placeInSlots(HostFunction& function, const std::vector<HostLife>& lives, const SymbolValues& hints,
                  int64_t alignment) {
    Placer placer(function, hints, alignment);
    for (size_t segment = 0; segment < function.segments.size(); ++segment) {
        const auto [first, end] = function.stepsOf(segment);
        std::vector<HostLife> own;
        for (HostLife life : lives) {
            if (life.begin < static_cast<int>(first) || life.begin >= static_cast<int>(end)) continue;
            life.end =
                std::min(life.end, static_cast<int>(end) - 1);  // memory of a segment is there until the run ends
            own.push_back(life);
        }
        placer.place(segment, own);
    }
}

}  // namespace cutaway
