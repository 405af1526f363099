#include "engine/runtime/result_memory.h"

#include <atomic>

#include "engine/support/machine.h"

namespace cutaway {

namespace {
constexpr size_t kMostHeld = size_t{64} << 20;  // bytes that are held while nobody uses them
}

void ResultMemory::prepare(const std::vector<size_t>& bytes) {
    m_pieces.clear();
    size_t all = 0;
    for (const size_t one : bytes) {
        if (all + one > kMostHeld) continue;
        all += one;
        Piece& piece = m_pieces.emplace_back(Piece{Storage::allocateUninitialized(one)});
        populatePages({piece.storage->data(), one});
    }
}

std::shared_ptr<Storage> ResultMemory::take(size_t bytes) {
    size_t all = bytes;
    for (Piece& piece : m_pieces) {
        if (piece.storage->size() == bytes && !piece.taken && piece.storage.use_count() == 1) {
            std::atomic_thread_fence(std::memory_order_acquire);  // after whoever used it last
            piece.taken = true;
            return piece.storage;
        }
        all += piece.storage->size();
    }
    auto fresh = Storage::allocateUninitialized(bytes);
    if (all <= kMostHeld) m_pieces.push_back({fresh, true});
    return fresh;
}

void ResultMemory::endAnswer() {
    std::erase_if(m_pieces, [](const Piece& piece) { return !piece.taken; });
    for (Piece& piece : m_pieces) piece.taken = false;
}

}  // namespace cutaway
