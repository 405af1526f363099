#pragma once
#include "engine/ir/type.h"

namespace cutaway {

/// So many items behind each other along a new first dim, row by row.
inline TensorType stacked(const TensorType& item, const SymInt& count) {
    SymDims sizes = item.sizes;
    sizes.insert(sizes.begin(), count);
    return TensorType::contiguous(item.dtype, std::move(sizes), item.device);
}

}  // namespace cutaway
