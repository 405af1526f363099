#include "engine/ops/packed_int4.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace cutaway {
namespace {

int64_t blockRowsOf(Int4Packing packing) {
    if (packing == Int4Packing::Avx512) return 64;
#if defined(__aarch64__)
    if (packing == Int4Packing::Pairs) return 16;
#endif
    return 32;
}

/// Where a number lies: its byte, and whether in the high half.
struct NibblePlace {
    int64_t byte;
    bool high;
};
NibblePlace placeOf(int64_t row, int64_t column, int64_t rows, int64_t columns, Int4Packing packing) {
    const int64_t most = blockRowsOf(packing), first = row / most * most, inBlock = row - first;
    const int64_t blockRows = std::min(most, rows - first), begin = first * columns / 2 + column * blockRows / 2;
    if (blockRows < most || packing == Int4Packing::Pairs) return {begin + inBlock / 2, inBlock % 2 != 0};
    return {begin + inBlock % (most / 2), inBlock >= most / 2};
}

}  // namespace

Int4Packing int4Packing() {
    const char* given = std::getenv("ATEN_CPU_CAPABILITY");
    for (const Int4Packing each : {Int4Packing::Avx512, Int4Packing::Avx2, Int4Packing::Pairs})
        if (given != nullptr && std::string_view(given) == name(each)) return each;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return Int4Packing::Avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Int4Packing::Avx2;
#endif
    return Int4Packing::Pairs;
}
const char* name(Int4Packing packing) {
    if (packing == Int4Packing::Avx512) return "avx512";
    return packing == Int4Packing::Avx2 ? "avx2" : "default";
}

Tensor packInt4(const Tensor& numbers, Int4Packing packing) {
    const Tensor source = numbers.contiguous();
    const int64_t rows = source.size(0), columns = source.size(1);
    Tensor out = Tensor::zeros(DType::U8, {rows, columns / 2});
    const auto* from = source.as<int32_t>();
    auto* to = out.as<uint8_t>();
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
            const NibblePlace place = placeOf(row, column, rows, columns, packing);
            const int32_t number = from[row * columns + column] & 15;
            to[place.byte] = static_cast<uint8_t>(to[place.byte] | (place.high ? number << 4 : number));
        }
    return out;
}

Tensor unpackInt4(const Tensor& packed, Int4Packing packing) {
    const Tensor source = packed.contiguous();
    const int64_t rows = source.size(0), columns = source.size(1) * 2;
    Tensor out = Tensor::empty(DType::I32, {rows, columns});
    const auto* from = source.as<uint8_t>();
    auto* to = out.as<int32_t>();
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
            const NibblePlace place = placeOf(row, column, rows, columns, packing);
            to[row * columns + column] = place.high ? from[place.byte] >> 4 : from[place.byte] & 15;
        }
    return out;
}

}  // namespace cutaway
