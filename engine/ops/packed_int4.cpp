#include "engine/ops/packed_int4.h"

#include <algorithm>

namespace cutaway {
namespace {

constexpr int64_t kBlockRows = 64, kLanes = 16;

/// Where a number lies: its byte, and whether in the high half.
struct NibblePlace {
    int64_t byte;
    bool high;
};
NibblePlace placeOf(int64_t row, int64_t column, int64_t rows, int64_t columns) {
    const int64_t first = row / kBlockRows * kBlockRows, inBlock = row - first;
    const int64_t blockRows = std::min(kBlockRows, rows - first), begin = first * columns / 2;
    if (blockRows < kBlockRows) return {begin + column * blockRows / 2 + inBlock / 2, inBlock % 2 != 0};
    const int64_t quarter = inBlock / kLanes;
    return {begin + column * kBlockRows / 2 + quarter % 2 * kLanes + inBlock % kLanes, quarter >= 2};
}

}  // namespace

Tensor packInt4(const Tensor& numbers) {
    const Tensor source = numbers.contiguous();
    const int64_t rows = source.size(0), columns = source.size(1);
    Tensor out = Tensor::zeros(DType::U8, {rows, columns / 2});
    const auto* from = source.as<int32_t>();
    auto* to = out.as<uint8_t>();
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
            const NibblePlace place = placeOf(row, column, rows, columns);
            const int32_t number = from[row * columns + column] & 15;
            to[place.byte] = static_cast<uint8_t>(to[place.byte] | (place.high ? number << 4 : number));
        }
    return out;
}

Tensor unpackInt4(const Tensor& packed) {
    const Tensor source = packed.contiguous();
    const int64_t rows = source.size(0), columns = source.size(1) * 2;
    Tensor out = Tensor::empty(DType::I32, {rows, columns});
    const auto* from = source.as<uint8_t>();
    auto* to = out.as<int32_t>();
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
            const NibblePlace place = placeOf(row, column, rows, columns);
            to[row * columns + column] = place.high ? from[place.byte] >> 4 : from[place.byte] & 15;
        }
    return out;
}

}  // namespace cutaway
