#include "engine/runtime/cpu/constant_memory.h"

#include <algorithm>

namespace cutaway {

ConstantMemory::ConstantMemory(const std::vector<Tensor>& constants) {
    std::vector<Piece> all;
    for (const Tensor& tensor : constants) {
        if (!tensor.defined() || tensor.numel() == 0) continue;
        auto* const begin = static_cast<std::byte*>(tensor.address());
        all.push_back({begin, begin + extent(tensor.sizes(), tensor.strides()) * byteSize(tensor.dtype())});
    }
    std::sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    for (const Piece& piece : all) {
        if (m_pieces.empty() || m_pieces.back().end <= piece.begin) m_pieces.push_back(piece);
        else m_pieces.back().end = std::max(m_pieces.back().end, piece.end);
    }
}

const ConstantMemory::Piece* ConstantMemory::find(const void* constant) const {
    const auto* const at = static_cast<const std::byte*>(constant);
    const auto behind = std::upper_bound(m_pieces.begin(), m_pieces.end(), at,
                                         [](const std::byte* address, const Piece& p) { return address < p.begin; });
    if (behind == m_pieces.begin() || at >= std::prev(behind)->end) return nullptr;
    return &*std::prev(behind);
}

void ConstantMemory::beginCount() {
    for (Piece& piece : m_pieces) piece.readers = 0;
}

void ConstantMemory::addReader(const void* constant, int by) {
    if (const Piece* piece = find(constant)) const_cast<Piece*>(piece)->readers += by;
}

void ConstantMemory::forgetUnread(const ForgetBytes& forget) {
    for (Piece& piece : m_pieces) {
        if (piece.readers > 0 || piece.gone) continue;
        forget({piece.begin, piece.end});
        piece.gone = true;
    }
}

bool ConstantMemory::wantsGone() const {
    return std::any_of(m_pieces.begin(), m_pieces.end(), [](const Piece& p) { return p.gone && p.readers > 0; });
}

int64_t ConstantMemory::bytes() const {
    int64_t sum = 0;
    for (const Piece& piece : m_pieces) sum += piece.end - piece.begin;
    return sum;
}
int64_t ConstantMemory::bytesHeld() const {
    int64_t sum = 0;
    for (const Piece& piece : m_pieces) sum += piece.gone ? 0 : piece.end - piece.begin;
    return sum;
}

}  // namespace cutaway
