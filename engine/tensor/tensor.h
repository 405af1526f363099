#pragma once
// Concrete tensors: strided views over shared, immutable-by-convention storages. Used by readers, the reference
// interpreter and the runtimes; graphs hold TensorType (engine/ir/type.h) instead.
#include <atomic>
#include <complex>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "cutaway/result.h"
#include "engine/support/unreadable_data.h"
#include "engine/tensor/dtype.h"

namespace cutaway {

using Dims = std::vector<int64_t>;

/// A block of bytes. Owns them, keeps alive whatever does, or fetches them from a file when they are first asked for.
class Storage {
  public:
    using Fetch = std::function<Result<void>(std::span<std::byte> into)>;

    Storage() = default;
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    /// Zero-filled, 64-byte aligned.
    static std::shared_ptr<Storage> allocate(size_t bytes);
    /// Same without the zero fill, for results that are written whole.
    static std::shared_ptr<Storage> allocateUninitialized(size_t bytes);
    /// Borrows `data`, which `owner` keeps alive. Never written to by us: kernels allocate their results.
    static std::shared_ptr<Storage> view(const void* data, size_t bytes, std::shared_ptr<const void> owner);
    /// Memory that `fetch` fills when the bytes are first asked for, so that opening a model costs its graph, not its
    /// weights. Read-only as a view is; aligned as memory of our own is.
    static std::shared_ptr<Storage> deferred(size_t bytes, Fetch fetch);
    /// Memory of another device than the host, at its address there, which `owner` keeps. Its bytes are copied by the
    /// device (runtime/device_memory.h): data() throws InternalError.
    static std::shared_ptr<Storage> foreign(void* address, size_t bytes, std::shared_ptr<const void> owner);
    bool isForeign() const { return m_foreign != nullptr; }
    /// Where its first byte lies on the device that has it; of the host's as data().
    std::byte* address() const { return m_foreign != nullptr ? m_foreign : bytes(); }

    /// Has the bytes at hand from now on. Errors are those of a deferred storage's `fetch`; a later call tries again.
    Result<void> load() const;
    /// The storage itself if its bytes are at hand, else another one with the same bytes, so that whoever needs them
    /// once leaves nothing behind. Errors as those of load().
    static Result<std::shared_ptr<Storage>> forOneUse(const std::shared_ptr<Storage>& storage);
    /// Throws UnreadableData where load() would fail.
    std::byte* data() { return bytes(); }
    const std::byte* data() const { return bytes(); }
    size_t size() const { return m_size; }
    /// True if `data` may not be written (what a file holds).
    bool readOnly() const { return m_readOnly; }
    /// True if the address is, or will be, a multiple of `bytes`, a power of two up to 64.
    bool aligned(size_t bytes) const {
        return m_pending != nullptr || reinterpret_cast<uintptr_t>(m_data.load()) % bytes == 0;
    }

  private:
    struct Pending {
        std::mutex mutex;
        Fetch fetch;
    };
    std::byte* bytes() const {
        std::byte* at = m_data.load(std::memory_order_acquire);
        return at != nullptr || (m_pending == nullptr && m_foreign == nullptr) ? at : loadOrThrow();
    }
    std::byte* loadOrThrow() const;

    // Written once, by whoever asks first.
    mutable std::atomic<std::byte*> m_data{nullptr};
    size_t m_size = 0;
    bool m_readOnly = false;
    std::byte* m_foreign = nullptr;
    mutable std::shared_ptr<const void> m_owner;
    std::unique_ptr<Pending> m_pending;
};

/// Row-major strides of `sizes`, as PyTorch computes them (a size-0 dim counts as 1).
Dims contiguousStrides(std::span<const int64_t> sizes);
/// Product of sizes. Throws SizeError if one is negative or the product does not fit into 64 bits.
int64_t numel(std::span<const int64_t> sizes);
/// One past the last element that these sizes and strides reach from `offset`; 0 without elements. Throws SizeError if
/// that does not fit into 64 bits, or lies before the start.
int64_t extent(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset = 0);
/// Bytes of so many elements. Throws SizeError, which names the sizes, if 64 bits cannot count them.
size_t checkedBytes(DType dtype, int64_t elements, std::span<const int64_t> sizes);

/// A number as an op argument: what PyTorch calls Scalar.
using Scalar = std::variant<bool, int64_t, double, std::complex<double>>;
double toDouble(const Scalar& scalar);
int64_t toInt(const Scalar& scalar);  // truncates towards zero
bool isFloatingScalar(const Scalar& scalar);

/// Never reaches outside of its storage: every constructor and view throws SizeError instead.
class Tensor {
  public:
    Tensor() = default;
    Tensor(std::shared_ptr<Storage> storage, DType dtype, Dims sizes, Dims strides, int64_t offset = 0,
           Device device = {});
    /// Contiguous and zero-filled.
    static Tensor zeros(DType dtype, Dims sizes);
    /// Uninitialized, with the given strides (dense permutations only) or contiguous.
    static Tensor empty(DType dtype, Dims sizes, Dims strides = {});
    static Tensor scalar(DType dtype, const Scalar& value);
    static Tensor full(DType dtype, Dims sizes, const Scalar& value);

    bool defined() const { return m_storage != nullptr; }
    DType dtype() const { return m_dtype; }
    const Dims& sizes() const { return m_sizes; }
    const Dims& strides() const { return m_strides; }
    int64_t size(int64_t dim) const { return m_sizes[static_cast<size_t>(dim < 0 ? dim + rank() : dim)]; }
    int64_t stride(int64_t dim) const { return m_strides[static_cast<size_t>(dim < 0 ? dim + rank() : dim)]; }
    int64_t offset() const { return m_offset; }  // elements
    int64_t rank() const { return static_cast<int64_t>(m_sizes.size()); }
    int64_t numel() const { return cutaway::numel(m_sizes); }
    size_t bytes() const { return static_cast<size_t>(numel()) * static_cast<size_t>(byteSize(m_dtype)); }
    Device device() const { return m_device; }
    const std::shared_ptr<Storage>& storage() const { return m_storage; }

    bool isContiguous() const;
    /// Address of the first element.
    void* data() { return m_storage->data() + m_offset * byteSize(m_dtype); }
    const void* data() const { return m_storage->data() + m_offset * byteSize(m_dtype); }
    /// The same on whichever device has it.
    void* address() const { return m_storage->address() + m_offset * byteSize(m_dtype); }
    template <class T>
    T* as() {
        return static_cast<T*>(data());
    }
    template <class T>
    const T* as() const {
        return static_cast<const T*>(data());
    }

    /// Another view of the same storage.
    Tensor view(Dims sizes, Dims strides, int64_t offset) const;
    Tensor viewAs(DType dtype) const;  // same item size
    /// Itself if contiguous, else a packed copy.
    Tensor contiguous() const;
    /// A packed copy, or one with the given strides.
    Tensor clone(Dims strides = {}) const;
    /// Values converted as PyTorch's `.to(dtype)` does; a packed copy unless the dtype is already right.
    Tensor to(DType dtype) const;
    /// One element, by logical row-major position.
    Scalar item(int64_t position = 0) const;

  private:
    std::shared_ptr<Storage> m_storage;
    DType m_dtype = DType::F32;
    Device m_device;
    Dims m_sizes, m_strides;
    int64_t m_offset = 0;
};

/// Writes `source` (broadcast and converted) into the elements of `target`'s storage; the two may not overlap.
void copyInto(Tensor& target, const Tensor& source);
/// Expands to `sizes` by stride 0. Throws SizeError where the tensor's own do not fit.
Tensor broadcastTo(const Tensor& tensor, const Dims& sizes);

struct Tolerance {
    double relative = 0, absolute = 0;
};
/// PyTorch's testing defaults per dtype (f32: 1.3e-6 / 1e-5, bf16: 1.6e-2 / 1e-5, integers exact).
Tolerance defaultTolerance(DType dtype);

struct Comparison {
    bool sameType = true;         // dtype and shape agree
    bool within = true;           // every element within tolerance
    double maxAbsoluteError = 0;  // over elements finite in both
    double maxExpected = 0;       // largest |expected| among finite elements
    int64_t worst = -1;      // row-major position of the element whose error is the largest part of what is allowed
    int64_t mismatches = 0;  // elements out of tolerance, NaN against number, differing infinities
};
/// |actual - expected| <= absolute + relative * |expected|; NaN equals NaN.
Comparison compare(const Tensor& actual, const Tensor& expected, Tolerance tolerance);

// Conversions of single elements, IEEE round-to-nearest-even.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
inline float bfloatToFloat(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}
inline uint16_t floatToBfloat(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0;  // NaN
    return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// Loads `count` elements starting at `data`, `stride` elements apart, converted to the compute type
/// (float, double, int64_t, std::complex<float>, std::complex<double>). Bool loads as 0 or 1.
template <class Compute>
void loadElements(DType dtype, const void* data, int64_t stride, int64_t count, Compute* out);
/// The inverse: rounds floats to nearest even, wraps integers, makes bool from "not zero".
template <class Compute>
void storeElements(DType dtype, void* data, int64_t stride, int64_t count, const Compute* in);

}  // namespace cutaway
