#pragma once
// Tensors whose sizes, strides and offset came from a file: the one place where these are checked against the bytes.
#include <memory>
#include <string>

#include "cutaway/result.h"
#include "engine/tensor/tensor.h"

namespace cutaway {

/// A view of `bytes`, checked to lie inside them. Sizes and strides in elements, one stride per size, none negative;
/// offset in elements. Copies the storage into `bytes` when its address does not suit the dtype, so that tensors made
/// from the same variable stay ties. Errors begin with `fault` ("invalid tensor") and carry `where`.
Result<Tensor> makeTensor(std::shared_ptr<Storage>& bytes, DType dtype, Dims sizes, Dims strides, int64_t offset,
                          const std::string& fault, const std::string& where);

/// The elements from the first to the last that such a view reaches, 0 if it is empty. Errors as above.
Result<int64_t> reach(const Dims& sizes, const Dims& strides, int64_t offset, const std::string& fault,
                      const std::string& where);

}  // namespace cutaway
