#include "engine/runtime/cpu/concat.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/support/threads.h"

namespace cutaway {
namespace {

constexpr int64_t kPieceBytes = 1 << 16;  // what a thread copies at least of a long run

/// A part's place in the result: runs of `length` elements, as many as `sizes` say, in pieces.
struct Box {
    const char* from = nullptr;
    char* to = nullptr;
    int64_t elementBytes = 1, length = 1, fromStep = 1, toStep = 1;
    Dims sizes, fromStrides, toStrides;  // of the other dims, outermost first; in bytes
    int64_t pieceLength = 1, piecesPerRun = 1, pieces = 0;
};

struct Dim {
    int64_t size, from, to;
};

Box boxOf(const Tensor& part, Tensor& result, int64_t dim, int64_t start) {
    Box box;
    box.elementBytes = byteSize(result.dtype());
    box.from = static_cast<const char*>(part.data());
    box.to = static_cast<char*>(result.data()) + start * result.strides()[static_cast<size_t>(dim)] * box.elementBytes;
    std::vector<Dim> dims;
    for (size_t d = 0; d < part.sizes().size(); ++d)
        if (part.sizes()[d] != 1) dims.push_back({part.sizes()[d], part.strides()[d], result.strides()[d]});
    std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.to > b.to; });
    // Neighbours that both sides walk through as one.
    for (size_t i = dims.size(); i-- > 1;)
        if (dims[i - 1].from == dims[i].from * dims[i].size && dims[i - 1].to == dims[i].to * dims[i].size) {
            dims[i - 1] = {dims[i - 1].size * dims[i].size, dims[i].from, dims[i].to};
            dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
        }
    if (!dims.empty()) {
        box.length = dims.back().size;
        box.fromStep = dims.back().from;
        box.toStep = dims.back().to;
        dims.pop_back();
    }
    int64_t runs = 1;
    for (const Dim& d : dims) {
        box.sizes.push_back(d.size);
        box.fromStrides.push_back(d.from * box.elementBytes);
        box.toStrides.push_back(d.to * box.elementBytes);
        runs *= d.size;
    }
    box.pieceLength = std::max<int64_t>(1, std::min(box.length, kPieceBytes / box.elementBytes));
    box.piecesPerRun = (box.length + box.pieceLength - 1) / box.pieceLength;
    box.pieces = runs * box.piecesPerRun;
    return box;
}

template <class T>
void copyStrided(const char* from, char* to, int64_t fromStep, int64_t toStep, int64_t count) {
    const auto* source = reinterpret_cast<const T*>(from);
    auto* target = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i) target[i * toStep] = source[i * fromStep];
}
struct Wide {
    int64_t halves[2];
};

void copyPiece(const Box& box, int64_t piece) {
    int64_t run = piece / box.piecesPerRun;
    const int64_t first = piece % box.piecesPerRun * box.pieceLength;
    const int64_t count = std::min(box.pieceLength, box.length - first);
    const char* from = box.from + first * box.fromStep * box.elementBytes;
    char* to = box.to + first * box.toStep * box.elementBytes;
    for (size_t d = box.sizes.size(); d-- > 0; run /= box.sizes[d]) {
        const int64_t at = run % box.sizes[d];
        from += at * box.fromStrides[d];
        to += at * box.toStrides[d];
    }
    if (box.fromStep == 1 && box.toStep == 1) {
        std::memcpy(to, from, static_cast<size_t>(count * box.elementBytes));
        return;
    }
    switch (box.elementBytes) {
        case 1: return copyStrided<int8_t>(from, to, box.fromStep, box.toStep, count);
        case 2: return copyStrided<int16_t>(from, to, box.fromStep, box.toStep, count);
        case 4: return copyStrided<int32_t>(from, to, box.fromStep, box.toStep, count);
        case 8: return copyStrided<int64_t>(from, to, box.fromStep, box.toStep, count);
        default: return copyStrided<Wide>(from, to, box.fromStep, box.toStep, count);
    }
}

}  // namespace

void concatenate(const std::vector<const Tensor*>& parts, int64_t dim, Tensor& result, int threads) {
    std::vector<Box> boxes;
    std::vector<int64_t> ends;  // bytes up to the end of each box, pieces counted as full
    int64_t start = 0, bytes = 0;
    for (const Tensor* part : parts) {
        if (part->numel() > 0) {
            boxes.push_back(boxOf(*part, result, dim, start));
            bytes += boxes.back().pieces * boxes.back().pieceLength * boxes.back().elementBytes;
            ends.push_back(bytes);
            start += part->sizes()[static_cast<size_t>(dim)];
        }
    }
    runParts(threads, [&](int thread) {
        const int64_t from = bytes / threads * thread,
                      to = thread + 1 == threads ? bytes : bytes / threads * (thread + 1);
        for (size_t b = 0; b < boxes.size(); ++b) {
            const Box& box = boxes[b];
            const int64_t each = box.pieceLength * box.elementBytes, begin = ends[b] - box.pieces * each;
            // A piece is the thread's in whose share it begins.
            const auto pieceAt = [&](int64_t byte) {
                return std::clamp<int64_t>((byte - begin + each - 1) / each, 0, box.pieces);
            };
            for (int64_t piece = pieceAt(std::max(from, begin)); piece < pieceAt(std::max(to, begin)); ++piece)
                copyPiece(box, piece);
        }
    });
}

}  // namespace cutaway
