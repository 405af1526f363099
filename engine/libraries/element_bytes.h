#ifndef CUTAWAY_ELEMENT_BYTES_H
#define CUTAWAY_ELEMENT_BYTES_H
// Element types: how wide they are, and what they are called. C++17 and nothing of the engine, since exported programs
// carry this file.
#include "engine/libraries/library.h"

namespace ct {

/// Bytes of an element of a CtDType. What the interface has no name for is narrower than a byte, or one byte.
inline int64_t bytesOf(int32_t dtype) {
    constexpr int64_t kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 2, 2, 4, 8};  // in the order of CtDType
    return dtype >= 0 && dtype <= CT_U64 ? kBytes[dtype] : 1;
}

/// As error messages and graphs' texts name it: "f32".
inline const char* nameOfType(int32_t dtype) {
    constexpr const char* kNames[] = {"u8",  "i8",  "i16",  "i32", "i64",  "f16", "f32", "f64",
                                      "c32", "c64", "c128", "b8",  "bf16", "u16", "u32", "u64"};
    return dtype >= 0 && dtype <= CT_U64 ? kNames[dtype] : "of another dtype";
}

}  // namespace ct
#endif
