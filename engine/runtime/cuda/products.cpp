#include "engine/runtime/cuda/products.h"

namespace cutaway::cuda {
namespace {

constexpr size_t kWorkspaceBytes = 32u << 20;  // as PyTorch gives it on recent devices

// Values of cuBLASLt's public enumerations.
constexpr int kFloat = 0, kHalf = 2, kBrainFloat = 14;
constexpr int kCompute32 = 68, kComputeTf32 = 77;
constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8;
constexpr int kEpilogueBias = 4, kTransposed = 1;
constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kPreferenceWorkspaceBytes = 1;

Result<int> typeCode(DType dtype) {
    if (dtype == DType::F32) return kFloat;
    if (dtype == DType::F16) return kHalf;
    if (dtype == DType::BF16) return kBrainFloat;
    return unsupported("products of this dtype are not timed on the GPU", "", {"f16, bf16 and f32 are"});
}

}  // namespace

Result<void> Products::check(int status, const char* what) const {
    if (status == 0) return {};
    return Error{ErrorCode::ToolFailed, std::string(what) + " failed with status " + std::to_string(status), "", {}};
}

Result<void> Products::open() {
    CT_TRY_VOID(check(m_lt.create(&m_handle), "cublasLtCreate"));
    return m_device.driver().check(m_device.driver().memAlloc(&m_workspace, kWorkspaceBytes), "cuMemAlloc");
}

/// cuBLASLt takes matrices column by column, to which a row-major one is its transpose. `transposed` becomes true for
/// operands that are column-major here.
Result<void*> Products::layout(const TensorType& type, bool& transposed) const {
    CT_TRY(const int code, typeCode(type.dtype));
    const size_t row = type.sizes.size() - 2;
    const int64_t rows = type.sizes[row].value(), columns = type.sizes[row + 1].value(),
                  rowStride = type.strides[row].value(), columnStride = type.strides[row + 1].value();
    const bool byRows = (columnStride == 1 || columns == 1) && (rowStride >= columns || rows == 1);
    const bool byColumns = (rowStride == 1 || rows == 1) && (columnStride >= rows || columns == 1);
    if (!byRows && !byColumns)
        return unsupported("operands that are neither row-major nor column-major are not timed on the GPU");
    transposed = !byRows;
    void* made = nullptr;
    const int64_t inner = byRows ? columns : rows, outer = byRows ? rows : columns;
    const int64_t lead = std::max(outer == 1 ? inner : byRows ? rowStride : columnStride, inner);
    CT_TRY_VOID(
        check(m_lt.matrixLayoutCreate(&made, code, static_cast<uint64_t>(inner), static_cast<uint64_t>(outer), lead),
              "cublasLtMatrixLayoutCreate"));
    if (row == 1) {
        const auto count = static_cast<int32_t>(type.sizes[0].value());
        const int64_t stride = type.strides[0].value();
        CT_TRY_VOID(check(m_lt.matrixLayoutSetAttribute(made, kLayoutBatchCount, &count, sizeof count),
                          "cublasLtMatrixLayoutSetAttribute"));
        CT_TRY_VOID(check(m_lt.matrixLayoutSetAttribute(made, kLayoutBatchStride, &stride, sizeof stride),
                          "cublasLtMatrixLayoutSetAttribute"));
    }
    return made;
}

Result<std::function<Result<void>()>> Products::prepare(const Call& call) {
    // Row-major out = left right is column-major out' = right' left'.
    bool leftTransposed = false, rightTransposed = false, outTransposed = false;
    SymDims sizes = call.leftType.sizes;
    sizes.back() = call.rightType.sizes.back();
    CT_TRY(void* const left, layout(call.leftType, leftTransposed));
    CT_TRY(void* const right, layout(call.rightType, rightTransposed));
    CT_TRY(void* const out, layout(TensorType::contiguous(call.leftType.dtype, sizes), outTransposed));
    void *product = nullptr, *preference = nullptr;
    CT_TRY_VOID(check(m_lt.matmulDescCreate(
                          &product, call.tf32 && call.leftType.dtype == DType::F32 ? kComputeTf32 : kCompute32, kFloat),
                      "cublasLtMatmulDescCreate"));
    const auto set = [&](int attribute, const auto& value) {
        return check(m_lt.matmulDescSetAttribute(product, attribute, &value, sizeof value),
                     "cublasLtMatmulDescSetAttribute");
    };
    if (rightTransposed) CT_TRY_VOID(set(kDescTransA, kTransposed));
    if (leftTransposed) CT_TRY_VOID(set(kDescTransB, kTransposed));
    if (call.bias != 0) {
        CT_TRY_VOID(set(kDescEpilogue, kEpilogueBias));
        CT_TRY_VOID(set(kDescBiasPointer, call.bias));
    }
    CT_TRY_VOID(check(m_lt.matmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate"));
    const uint64_t workspace = kWorkspaceBytes;
    CT_TRY_VOID(
        check(m_lt.matmulPreferenceSetAttribute(preference, kPreferenceWorkspaceBytes, &workspace, sizeof workspace),
              "cublasLtMatmulPreferenceSetAttribute"));
    MatmulHeuristic found{};
    int count = 0;
    CT_TRY_VOID(
        check(m_lt.matmulAlgoGetHeuristic(m_handle, product, right, left, out, out, preference, 1, &found, &count),
              "cublasLtMatmulAlgoGetHeuristic"));
    if (count == 0) return Error{ErrorCode::ToolFailed, "cuBLASLt has no algorithm for this product", "", {}};
    const auto pointer = [](DevicePtr place) { return reinterpret_cast<void*>(static_cast<uintptr_t>(place)); };
    return std::function<Result<void>()>([=, this]() -> Result<void> {
        const float alpha = 1, beta = call.accumulate ? 1 : 0;
        return check(m_lt.matmul(m_handle, product, &alpha, pointer(call.right), right, pointer(call.left), left, &beta,
                                 pointer(call.out), out, pointer(call.out), out, &found.algo, pointer(m_workspace),
                                 kWorkspaceBytes, nullptr),
                     "cublasLtMatmul");
    });
}

}  // namespace cutaway::cuda
