// Concatenation as copies: what many parts cost least. No kernel chooses among them element by element.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/runtime/libraries/call_reader.h"
#include "engine/runtime/libraries/library_plan.h"
#include "engine/runtime/libraries/table.h"

namespace cutaway {
namespace {

constexpr int64_t kPieceBytes = 1 << 16;  // what a thread copies at least of a long run

/// A part's place in the result: runs of `length` elements, as many as `sizes` say, in pieces.
struct Box {
    int operand = 0;
    int64_t start = 0;  // in the result, bytes
    int64_t elementBytes = 1, length = 1, fromStep = 1, toStep = 1;
    Dims sizes, fromStrides, toStrides;  // of the other dims, outermost first; in bytes
    int64_t pieceLength = 1, piecesPerRun = 1, pieces = 0;
};

struct Dim {
    int64_t size, from, to;
};

Box boxOf(const CtTensor& part, const CtTensor& result, int32_t dim, int64_t start) {
    Box box;
    box.elementBytes = ct::bytesOf(result.dtype);
    box.start = start * result.strides[dim] * box.elementBytes;
    std::vector<Dim> dims;
    for (int32_t d = 0; d < part.rank; ++d)
        if (part.sizes[d] != 1) dims.push_back({part.sizes[d], part.strides[d], result.strides[d]});
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

void copyPiece(const Box& box, const LibraryRun& run, int64_t piece) {
    int64_t line = piece / box.piecesPerRun;
    const int64_t first = piece % box.piecesPerRun * box.pieceLength;
    const int64_t count = std::min(box.pieceLength, box.length - first);
    const char* from =
        static_cast<const char*>(run.operands[box.operand].data) + first * box.fromStep * box.elementBytes;
    char* to = static_cast<char*>(run.results[0].data) + box.start + first * box.toStep * box.elementBytes;
    for (size_t d = box.sizes.size(); d-- > 0; line /= box.sizes[d]) {
        const int64_t at = line % box.sizes[d];
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

class Copies final : public LibraryPlan {
  public:
    explicit Copies(const CtCall& call) {
        const CallReader reader(call);
        const CtArgument& parts = *reader.find("tensors");
        const CtTensor& result = call.results[0];
        int64_t dim = reader.integers("dim", 1)[0], start = 0;
        if (dim < 0) dim += result.rank;
        for (int64_t i = 0; i < parts.integer; ++i) {
            const auto number = static_cast<int>(parts.items[i].integer);
            const CtTensor& part = call.operands[number];
            if (elementsOf(part) == 0) continue;
            m_boxes.push_back(boxOf(part, result, static_cast<int32_t>(dim), start));
            m_boxes.back().operand = number;
            m_bytes += bytesOf(m_boxes.back());
            m_ends.push_back(m_bytes);
            start += part.sizes[dim];
        }
    }
    /// Threads take equal shares of the bytes, pieces counted as full.
    void run(const LibraryRun& run) const override {
        const std::pair<const Copies*, const LibraryRun*> state(this, &run);
        run.parallel->run(
            run.parallel, m_bytes, kPieceBytes,
            [](void* of, int64_t begin, int64_t end) {
                const auto& [copies, own] = *static_cast<const std::pair<const Copies*, const LibraryRun*>*>(of);
                copies->copyBytes(*own, begin, end);
            },
            const_cast<void*>(static_cast<const void*>(&state)));
    }

  private:
    static int64_t bytesOf(const Box& box) { return box.pieces * box.pieceLength * box.elementBytes; }
    void copyBytes(const LibraryRun& run, int64_t from, int64_t to) const {
        for (size_t b = 0; b < m_boxes.size(); ++b) {
            const Box& box = m_boxes[b];
            const int64_t each = box.pieceLength * box.elementBytes, begin = m_ends[b] - bytesOf(box);
            // A piece is the thread's in whose share it begins.
            const auto pieceAt = [&](int64_t byte) {
                return std::clamp<int64_t>((byte - begin + each - 1) / each, 0, box.pieces);
            };
            for (int64_t piece = pieceAt(std::max(from, begin)); piece < pieceAt(std::max(to, begin)); ++piece)
                copyPiece(box, run, piece);
        }
    }

    std::vector<Box> m_boxes;
    std::vector<int64_t> m_ends;  // bytes up to the end of each box
    int64_t m_bytes = 0;
};

std::unique_ptr<LibraryPlan> planCopies(const CtCall& call, int, CtNeeds&) { return std::make_unique<Copies>(call); }

}  // namespace

const CtLibrary& copiesLibrary() {
    static const CtLibrary library = makeLibrary<planCopies>("copies");
    return library;
}

}  // namespace cutaway
