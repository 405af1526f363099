#pragma once
// Matrix products of strided operands through cuBLASLt.
#include <functional>

#include "engine/ir/type.h"
#include "engine/runtime/cuda/device.h"

namespace cutaway::cuda {

class Products {
  public:
    explicit Products(const Device& device) : m_device(device), m_lt(device.lt()) {}
    Result<void> open();

    /// out [b,] m n = left [b,] m k times right [b,] k n; out is row-major.
    struct Call {
        DevicePtr left = 0, right = 0, out = 0;
        TensorType leftType, rightType;
        DevicePtr bias = 0;       // n numbers added to every row; 0: none
        bool accumulate = false;  // out is added to
        bool tf32 = false;        // f32 may be rounded to tf32
    };
    /// What enqueues the product. Errors: strides that are neither rows nor columns, a dtype that is not covered, no
    /// algorithm.
    Result<std::function<Result<void>()>> prepare(const Call& call);

  private:
    Result<void*> layout(const TensorType& type, bool& transposed) const;
    Result<void> check(int status, const char* what) const;

    const Device& m_device;
    const CublasLt& m_lt;
    void* m_handle = nullptr;
    DevicePtr m_workspace = 0;
};

}  // namespace cutaway::cuda
